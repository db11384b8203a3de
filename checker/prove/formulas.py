"""What bounded search asks of the last frame: properties violated, witnesses reached, properties that cannot be evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...spec.lang import Property
from ...spec.lang.declare import WITNESS_KINDS
from ...spec.lang.evaluate import Obligation
from .terms import Term
from .unroll import Unrolled

Value = tuple[Term, Term]
"""A truth value, and that it can be evaluated."""


class Formulas:
    """The properties of a spec as terms over the last frame, each made once a frame.

    As in a search, a state or transition of which some property cannot be evaluated shows that, and nothing else.
    """

    def __init__(self, unrolled: Unrolled) -> None:
        self.unrolled, self.terms = unrolled, unrolled.terms
        self._frame, self._made = -1, dict[tuple[str, str], Value]()

    def violated(self, prop: Property) -> Term:
        """That a property fails at the end of the path."""
        on_step = prop.kind == "step"
        if on_step and not self.unrolled.moves:
            return self.terms.no
        holds, _ = self._value(prop)
        failing = self.terms.negation(holds)
        if prop.kind == "quiescent":
            failing = self.terms.both(failing, self._condition(prop)[0])
        return self.terms.both(failing, self.judged() if on_step else self._defined())

    def witnessed(self, prop: Property) -> Term:
        """That a witness is reached at the end of the path."""
        return self.terms.both(self._value(prop)[0], self._defined())

    def undefined(self) -> Term:
        """That some property cannot be evaluated at the end of the path: the spec leaves its own bounds in it."""
        return self.terms.negation(self._defined())

    def judged(self) -> Term:
        """That every step property can be evaluated on the last transition."""
        terms, defined = self.terms, self.terms.yes
        for prop in self.unrolled.bound.properties:
            if prop.kind == "step" and self.unrolled.moves:
                defined = terms.both(defined, self._value(prop)[1])
        return defined

    def _defined(self) -> Term:
        terms, defined = self.terms, self.judged()
        for prop in self.unrolled.bound.properties:
            if prop.condition is not None:
                applies, known = self._condition(prop)
                defined = terms.both(defined, known)
                if prop.kind == "quiescent":
                    defined = terms.both(defined, terms.either(terms.negation(applies), self._value(prop)[1]))
            elif prop.kind in ("always", *WITNESS_KINDS):
                defined = terms.both(defined, self._value(prop)[1])
        return defined

    def _value(self, prop: Property) -> Value:
        frames = self.unrolled.frames
        of = frames[-2:] if prop.kind == "step" else frames[-1:]
        return self._once(("value", prop.name), lambda: self.unrolled.evaluator.holds(prop, *of))

    def _condition(self, prop: Property) -> Value:
        return self._once(("condition", prop.name), lambda: self.unrolled.evaluator.condition(prop, self.unrolled.frames[-1]))

    def _once(self, key: tuple[str, str], make: Callable[[], tuple[Term, Sequence[Obligation[Term]]]]) -> Value:
        if self._frame != len(self.unrolled.frames):
            self._frame, self._made = len(self.unrolled.frames), {}
        if key not in self._made:
            value, obligations = make()
            self._made[key] = value, self.terms.together(obligation.condition for obligation in obligations)
        return self._made[key]
