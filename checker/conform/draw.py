"""Draws events of a spec at random, also where they are too many to list; knows no particular spec.

Everything follows from the seed: only `random.Random.random` is used, whose numbers Python promises to keep, and
nothing depends on the order of sets or on hashes.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeVar

from ...spec.lang import Arguments, BoundSpec, Rule, SetOf, State
from ...spec.lang.bounds import number_at

T = TypeVar("T")
After = Callable[[State, Rule, Arguments], State | None]
"""The successor by one action instance, or None where it is disabled."""

TRIES = 16
"""Arguments that are tried of an action before it counts as disabled."""
LISTED = 4096
"""Instances of an action up to which all are tried before nothing counts as enabled."""
ABSENT, NARROWED = 0.25, 0.5
"""Chances that an action is left out of a phase, and that the values of a parameter are a part of all."""
UNFAIR = 1 / 32
"""The weight of an action that need not happen, such as an abort, beside one that is fair."""
SHORTEST, LONGEST = 16, 512
"""Events of a phase."""


class Dice:
    """Random choices that are the same for one seed on every machine and version of Python."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, count: int) -> int:
        """A number from 0 to below `count`, which is less than 2**50."""
        return int(self._random() * count)

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._random() < probability

    def one_of(self, things: Sequence[T]) -> T:
        """One of them, each as likely."""
        return things[self.below(len(things))]

    def weighted(self, weights: Sequence[float]) -> int:
        """The place of one of the weights, as likely as it is heavy."""
        rest = self._random() * sum(weights)
        for place, weight in enumerate(weights):
            rest -= weight
            if rest < 0:
                return place
        return len(weights) - 1

    def shuffled(self, things: Sequence[T]) -> list[T]:
        """All of them in any order."""
        left = list(things)
        return [left.pop(self.below(len(left))) for _ in range(len(left))]

    def part(self, values: range) -> range:
        """Any run of neighbours of a range."""
        first, last = sorted((self.below(len(values)), self.below(len(values))))
        return values[first : last + 1]


@dataclass(frozen=True)
class Scope:
    """What is drawn from for a while: the actions, and for each parameter of them its values.

    The values of a set are the members that it may have; of those, up to `most` are put in.
    """

    values: dict[str, tuple[range, ...]]
    most: int


class Drawer:
    """Draws enabled events of one run.

    The run goes through phases (swarm testing: Groce et al., ISSTA 2012): in each, some actions are left out and some
    parameters have a part of their values, so that queues fill up and run dry. Within a phase an action is the likelier
    the less often it was taken, and one that is not fair comes seldom. Where a phase has no fair action enabled,
    everything is drawn from, and the next phase begins.
    """

    def __init__(self, bound: BoundSpec, after: After, dice: Dice) -> None:
        self._after, self._dice = after, dice
        self._rules = [rule for rule in bound.actions if rule.count]
        self._sets = {rule.name: _sets(rule) for rule in bound.actions}
        self._all = Scope({rule.name: _values(bound, rule) for rule in self._rules}, _largest(bound))
        self._fair = {rule.name for rule in self._rules if rule.declared.declaration.fair} or set(self._all.values)
        self._taken = {rule.name: 0 for rule in bound.actions}
        self._phase, self._left = self._all, 0

    def draw(self, state: State) -> tuple[Rule, Arguments, State] | None:
        """An enabled event and the state it leads to; None where none was found."""
        if self._left == 0:
            self._begin()
        self._left -= 1
        found = self._from(self._phase, state)
        if found is None:
            self._left = 0
            found = self._from(self._all, state) or self._listed(state)
        if found is not None:
            self._taken[found[0].name] += 1
        return found

    def any_of(self, rules: Sequence[Rule]) -> tuple[Rule, Arguments]:
        """Any event of these actions, enabled or not."""
        rule = self._dice.one_of(rules)
        return rule, self._filled(rule, self._all)

    def _begin(self) -> None:
        """Draw the next phase."""
        dice = self._dice
        values = {
            name: tuple(dice.part(v) if dice.chance(NARROWED) else v for v in every)
            for name, every in self._all.values.items()
            if not dice.chance(ABSENT)
        }
        most = (1 << dice.below(self._all.most.bit_length() + 1)) - 1
        self._left = SHORTEST << dice.below((LONGEST // SHORTEST).bit_length())
        self._phase = Scope(values, most)

    def _from(self, scope: Scope, state: State) -> tuple[Rule, Arguments, State] | None:
        left = [rule for rule in self._rules if rule.name in scope.values]
        while left:
            if scope is self._phase and not any(rule.name in self._fair for rule in left):
                break
            rule = left.pop(self._dice.weighted([self._weight(rule) for rule in left]))
            for args in self._arguments(rule, scope):
                after = self._after(state, rule, args)
                if after is not None:
                    return self._grown(state, rule, args, after, scope)
        return None

    def _weight(self, rule: Rule) -> float:
        return (1.0 if rule.name in self._fair else UNFAIR) / (1 + self._taken[rule.name])

    def _arguments(self, rule: Rule, scope: Scope) -> Iterator[Arguments]:
        """What is tried of an action: first with empty sets, then with sets of any size."""
        values = scope.values[rule.name]
        sets = self._sets[rule.name]
        plain = [range(1) if is_set else v for is_set, v in zip(sets, values, strict=True)]
        if prod(map(len, plain)) <= TRIES:
            yield from self._dice.shuffled(list(itertools.product(*plain)))
        else:
            yield from (tuple(self._dice.one_of(v) for v in plain) for _ in range(TRIES))
        if any(sets):
            yield from (self._filled(rule, scope) for _ in range(TRIES // 4))

    def _filled(self, rule: Rule, scope: Scope) -> Arguments:
        """Any arguments; sets are as likely small as large."""
        args: list[int] = []
        for is_set, values in zip(self._sets[rule.name], scope.values[rule.name], strict=True):
            if is_set:
                size = self._dice.below(len(values) + 1)
                args.append(sum(1 << member for member in self._dice.shuffled(values)[:size]))
            else:
                args.append(self._dice.one_of(values))
        return tuple(args)

    def _grown(self, state: State, rule: Rule, args: Arguments, after: State, scope: Scope) -> tuple[Rule, Arguments, State]:
        """Put members into the sets of an enabled event, as long as it stays enabled."""
        for place, is_set in enumerate(self._sets[rule.name]):
            members = scope.values[rule.name][place]
            for _ in range(self._dice.below(1 + scope.most) if is_set else 0):
                larger = (*args[:place], args[place] | 1 << self._dice.one_of(members), *args[place + 1 :])
                found = self._after(state, rule, larger) if larger != args else None
                if found is not None:
                    args, after = larger, found
        return rule, args, after

    def _listed(self, state: State) -> tuple[Rule, Arguments, State] | None:
        """The first enabled event of the actions that are few enough to list."""
        for rule in self._dice.shuffled([rule for rule in self._rules if rule.count <= LISTED]):
            for args in rule.choices():
                after = self._after(state, rule, args)
                if after is not None:
                    return rule, args, after
        return None


def _sets(rule: Rule) -> tuple[bool, ...]:
    return tuple(isinstance(parameter.type, SetOf) for parameter in rule.declared.parameters)


def _values(bound: BoundSpec, rule: Rule) -> tuple[range, ...]:
    kinds = [parameter.type for parameter in rule.declared.parameters]
    return tuple(
        range(number_at(kind.index, bound.values)) if isinstance(kind, SetOf) else domain
        for kind, domain in zip(kinds, rule.domains, strict=True)
    )


def _largest(bound: BoundSpec) -> int:
    """The size of the largest set that is an argument."""
    sizes = [
        number_at(parameter.type.index, bound.values)
        for rule in bound.actions
        for parameter in rule.declared.parameters
        if isinstance(parameter.type, SetOf)
    ]
    return max(sizes, default=0)
