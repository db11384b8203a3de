"""Runs of a protocol on a finite structure: in words, and a shortest one to a state in which a claim is false."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from .finite import Argument, Arguments, Finite, State
from .logic import Action, Claim, Parameter, Sort


@dataclass(frozen=True)
class Taken:
    """One step of a run: the action, its arguments, and the state after it."""

    action: Action
    arguments: Arguments
    after: State

    def told(self) -> str:
        """The action with its arguments, and what that means."""
        values = {p.name: shown(p, value) for p, value in zip(self.action.parameters, self.arguments, strict=True)}
        call = ", ".join(f"{name}={value}" for name, value in values.items())
        return f"{self.action.name}({call})  {self.action.sentence.format(**values)}"


@dataclass(frozen=True)
class Run:
    """A run from an initial state; `violated` is what is false at its end, `example` members of which it is false.

    A claim about actions is false of the last step, in the state before it.
    """

    finite: Finite
    start: State
    steps: tuple[Taken, ...]
    violated: Claim
    example: Mapping[Sort, int]

    def lines(self) -> list[str]:
        """The run in words: an action a line, numbered from 1, and what is false at last."""
        where = ", ".join(f"{v.name}={type(v).shown(i)}" for v, i in self.example.items())
        last = [f"violated: {self.violated.name} ({where})", f"  {self.violated.sentence}"]
        return [*(f"{i}  {taken.told()}" for i, taken in enumerate(self.steps, 1)), *last]


def judged(finite: Finite, start: State, steps: Sequence[Taken]) -> Run | None:
    """The run, where some claim is false at its end; None where none is."""
    states = [start, *(taken.after for taken in steps)]
    cases = [(claim, states[-1], dict[Parameter, Argument]()) for claim in finite.protocol.claims.values() if not claim.before]
    if steps:
        values = dict(zip(steps[-1].action.parameters, steps[-1].arguments, strict=True))
        cases += [(claim, states[-2], values) for claim in finite.about[steps[-1].action.name]]
    for claim, state, values in cases:
        for example in _examples(finite, claim, state, values):
            return Run(finite, start, tuple(steps), claim, example)
    return None


def _examples(finite: Finite, claim: Claim, state: State, values: Mapping[Parameter, Argument]) -> Iterator[dict[Sort, int]]:
    """Members of which a claim is false."""
    own = {v: i for v, i in values.items() if isinstance(v, Sort) and isinstance(i, int)}
    for choice in product(*(range(finite.sizes[type(v)]) for v in claim.variables)):
        example = dict(zip(claim.variables, choice, strict=True))
        if not finite.holds(claim.body, state, {**values, **example}):
            yield {**own, **example}


def shortest(finite: Finite) -> Run | None:
    """A shortest run to a violation of a claim, looking at every state; None where nothing is violated."""
    came: dict[State, tuple[State, Taken] | None] = {}
    for state in finite.initial():
        came[state] = None
        run = judged(finite, state, [])
        if run:
            return run
    waiting = list(came)
    for state in waiting:
        for action, arguments, after in finite.transitions(state):
            taken = Taken(action, arguments, after)
            run = judged(finite, state, [taken]) if after not in came or finite.about[action.name] else None
            if run:
                return _from_the_start(came, run)
            if after not in came:
                came[after] = (state, taken)
                waiting.append(after)
    return None


def _from_the_start(came: Mapping[State, tuple[State, Taken] | None], run: Run) -> Run:
    """The run, with the steps that lead from an initial state to where it starts."""
    start, steps = run.start, list(run.steps)
    while (link := came[start]) is not None:
        start, taken = link
        steps.insert(0, taken)
    return Run(run.finite, start, tuple(steps), run.violated, run.example)


def shown(parameter: Parameter, value: Argument) -> str:
    """A member by its name, a chosen relation by the names of what it holds of."""
    if isinstance(parameter, Sort):
        return type(parameter).shown(value) if isinstance(value, int) else str(value)
    places = sorted(value) if not isinstance(value, int) else []
    each = [" ".join(sort.shown(i) for sort, i in zip(parameter.sorts, place, strict=True)) for place in places]
    return "{" + ", ".join(each) + "}"
