"""Alarms: variables that are to stay as they are, such as an error that stops everything.

A run that raises one raises a first one. If what raises it is about a member of an index, that member may be the tracked one:
so of all others it can be taken that they raise none, up to the first one, as long as none is shown to be raised of the tracked
ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...spec.lang import BoundSpec, Property
from ...spec.lang import tree as t
from ...spec.lang.bounds import number_at
from ...spec.lang.loops import called_by

Alarms = Mapping[str, int]
"""Variables, with the value that each is to keep."""


def alarms_of(bound: BoundSpec, facts: Iterable[Property]) -> Alarms:
    """The variables of which a fact says what they are, and nothing else, and which actions change only by storing others."""
    functions = bound.spec.elaborated
    assert functions is not None
    found: dict[str, int] = {}
    for fact in facts:
        if fact.condition is None and fact.kind == "always":
            found.update(_said(bound, functions.of(fact.declared.function)))
    if not found:
        return found
    every = [function for rule in bound.actions for function in called_by(functions.of(rule.declared.function))]
    stores = [node for function in every for node in t.walk(function.body) if isinstance(node, t.Store)]
    changes = {effect for function in every for effect in function.effects if effect.kind not in ("read", "require")}

    def only_raised(name: str, quiet: int) -> bool:
        raising = {store.target.place for store in stores if _raises(bound, store, name, quiet)}
        return all(effect.place in raising for effect in changes if effect.path in (("s",), ("s", name)))

    return {name: quiet for name, quiet in found.items() if only_raised(name, quiet)}


def _said(bound: BoundSpec, function: t.Function) -> dict[str, int]:
    match function.body:
        case (
            t.Return(value=t.Compare(op="==", left=t.FieldOf(base=t.Root(number=0), name=name), right=t.Const(value=value))),
        ):
            return {name: number_at(value, bound.values)}
        case (t.Return(value=t.Not(operand=t.FieldOf(base=t.Root(number=0), name=name))),):
            return {name: 0}
        case _:
            return {}


def _raises(bound: BoundSpec, store: t.Store, name: str, quiet: int) -> bool:
    """Whether a statement stores into a variable of the state, by its name, surely something other than a value."""
    match store.target:
        case t.FieldOf(base=t.Root(number=0), name=stored) if stored == name:
            return store.op is None and isinstance(store.value, t.Const) and number_at(store.value.value, bound.values) != quiet
        case _:
            return False


def raises(body: Sequence[t.Stmt], alarms: Alarms) -> bool:
    """Whether statements begin with one that raises an alarm, before anything else can go wrong."""
    match body[:1]:
        case (t.Store(target=t.FieldOf(base=t.Root(number=0), name=name)),):
            return name in alarms
        case _:
            return False
