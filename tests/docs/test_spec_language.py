"""The page on the spec language names every code, every word of the language and every method."""

import pytest
from code_blocks import ROOT
from fencepost.spec import lang
from fencepost.spec.lang.calls import SEQ_METHODS, SET_METHODS
from fencepost.spec.lang.codes import CODES
from fencepost.spec.lang.scope import BUILTINS

PAGE = (ROOT / "docs" / "spec-language.md").read_text()
OUTSIDE = {  # what a spec does not write
    "Arguments", "BoundSpec", "BoundsError", "FencepostSpecError", "LanguageError", "LoadError", "Number", "Property", "Rule",
    "Spec", "SpecError", "State", "load_file", "load_module",
}  # fmt: skip


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_explained(code: str) -> None:
    assert f"| {code} | {CODES[code].rule} | {CODES[code].fix} |" in PAGE


@pytest.mark.parametrize("word", sorted({*lang.__all__, *SEQ_METHODS, *SET_METHODS, *BUILTINS} - OUTSIDE))
def test_every_word_is_there(word: str) -> None:
    assert word in PAGE
