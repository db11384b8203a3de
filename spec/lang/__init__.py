"""How a spec is written, loaded and bound. Spec modules import their words from here."""

from .bind import Arguments, BoundSpec, Property, Rule
from .bounds import Bound, Index, Number, Switch, larger, smaller
from .declare import (
    abstraction,
    action,
    always,
    eventually,
    fresh,
    implies,
    init,
    latent,
    leads_to,
    loop_invariant,
    narrator,
    observed,
    published,
    quiescent,
    reachable,
    refines,
    require,
    state,
    step,
)
from .errors import BoundsError, FencepostSpecError, LanguageError, LoadError, SpecError
from .layout import State
from .spec import Spec, load_file, load_module
from .types import Array, Bool, Int, Maybe, Seq, SetOf, record

__all__ = [
    "Arguments", "Array", "Bool", "Bound", "BoundSpec", "BoundsError", "FencepostSpecError", "Index", "Int",
    "LanguageError", "LoadError", "Maybe", "Number", "Property", "Rule", "Seq", "SetOf", "Spec", "SpecError", "State",
    "Switch", "abstraction", "action", "always", "eventually", "fresh", "implies", "init", "larger", "latent", "leads_to",
    "load_file", "load_module", "loop_invariant", "narrator", "observed", "published", "quiescent", "reachable", "record",
    "refines", "require", "smaller", "state", "step",
]  # fmt: skip
