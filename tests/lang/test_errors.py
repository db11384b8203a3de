"""Errors come out of another process as what went in."""

from __future__ import annotations

import pickle

import pytest
from fencepost.spec.lang.errors import BoundsError, FencepostSpecError, LanguageError, LoadError, Place, SpecError
from fencepost.spec.lang.evaluate import UnboundedLoop

HERE = Place("spec.py", 3, 5)
ERRORS = [
    LanguageError("FP102", HERE, "a lambda is not part of the spec language", "write a function"),
    BoundsError("requests is 0"),
    LoadError("spec.py cannot be read"),
    SpecError("an index is outside a sequence", HERE),
    SpecError("an index is outside a sequence"),
    UnboundedLoop(HERE),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_pickled_as_it_is(error: FencepostSpecError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.args, vars(again)) == (type(error), str(error), error.args, vars(error))
