"""What the language refuses: a spec for every code and kind, the line it names, and nothing but its own errors.

Every file in `specs/` breaks one rule; the line to blame ends with `# <- FPxxx`.
"""

import re
from pathlib import Path

import pytest
from fencepost.spec.lang import LanguageError, load_file
from fencepost.spec.lang.codes import CODES

SPECS = sorted((Path(__file__).parent / "specs").glob("FP*.py"))
MARK = re.compile(r"# <- (FP\d+)$")


def marked(path: Path) -> tuple[str, int]:
    """Returns the code and line that a file says it is refused with."""
    found = [(m[1], n) for n, line in enumerate(path.read_text().splitlines(), 1) if (m := MARK.search(line))]
    assert len(found) == 1, f"{path.name} marks {len(found)} lines"
    return found[0]


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_refused_with_code_and_line(path: Path) -> None:
    with pytest.raises(LanguageError) as refused:
        load_file(path)
    error = refused.value
    assert (error.code, error.place.line) == marked(path)
    assert error.place.file == str(path)
    assert path.stem.startswith(error.code)
    assert str(error) == f"{path}:{error.place.line}: {error.code}: {error.rule}; {error.fix}"
    assert error.rule
    assert error.fix


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_spec(code: str) -> None:
    assert [path for path in SPECS if path.stem.startswith(code)], f"no spec in specs/ is refused with {code}"


def test_every_spec_has_a_known_code() -> None:
    assert {path.stem.split("_")[0] for path in SPECS} == set(CODES)


def test_every_code_is_raised_somewhere() -> None:
    lang = Path(__file__).resolve().parents[2] / "spec" / "lang"
    source = "".join(path.read_text() for path in lang.glob("*.py") if path.name != "codes.py")
    assert {code for code in CODES if f'"{code}"' not in source} == set()
    assert set(re.findall(r'"(FP\d+)"', source)) == set(CODES)
