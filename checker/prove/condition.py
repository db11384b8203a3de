"""The shortest exact condition on features with a few values each: an OR of ANDs of literals such as `role in {a, b}`.

Quine and McCluskey's method for features of any number of values: all terms that no excluded combination satisfies and that
cannot be widened, and of these a choice of the fewest that covers every wanted combination, found by branch and bound.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

Value = int | str
Combination = tuple[Value, ...]
"""One value a feature, in the order of the features."""
Term = tuple[frozenset[Value], ...]
"""The values that a term allows of each feature; a feature of which it allows all has no literal."""


@dataclass(frozen=True)
class Feature:
    """Something that is chosen, and its values in order."""

    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Condition:
    """A condition on combinations of the features: one of its terms allows every value."""

    features: tuple[Feature, ...]
    terms: tuple[Term, ...]

    def holds(self, combination: Combination) -> bool:
        """Whether a combination satisfies it."""
        return any(_allows(term, combination) for term in self.terms)

    @property
    def literals(self) -> int:
        """How many literals it has."""
        return sum(_size(self.features, term) for term in self.terms)

    @property
    def words(self) -> str:
        """The condition as text; `never` and `always` where it has no term or a term without literals."""
        if not self.terms:
            return "never"
        written = [" and ".join(self._literals(term)) for term in self.terms]
        if len(written) > 1:
            written = [f"({text})" if " and " in text else text for text in written]
        return " or ".join(written) or "always"

    def allowed(self) -> list[dict[str, list[Value]]]:
        """Each term as the values of the features that it has a literal of."""
        named = [zip(self.features, term, strict=True) for term in self.terms]
        return [{f.name: [v for v in f.values if v in some] for f, some in term if len(some) < len(f.values)} for term in named]

    def _literals(self, term: Term) -> Iterator[str]:
        for feature, some in zip(self.features, term, strict=True):
            if len(some) < len(feature.values):
                yield _literal(feature, some)


def _literal(feature: Feature, some: frozenset[Value]) -> str:
    chosen = [value for value in feature.values if value in some]
    left = [value for value in feature.values if value not in some]
    if len(chosen) == 1:
        return f"{feature.name} = {chosen[0]}"
    if all(isinstance(value, int) for value in feature.values):
        if feature.values[-len(chosen) :] == tuple(chosen):
            return f"{feature.name} >= {chosen[0]}"
        if feature.values[: len(chosen)] == tuple(chosen):
            return f"{feature.name} <= {chosen[-1]}"
    if len(left) == 1:
        return f"{feature.name} != {left[0]}"
    return f"{feature.name} in {{{', '.join(map(str, chosen))}}}"


def minimal(features: Sequence[Feature], truth: Mapping[Combination, bool]) -> Condition:
    """The condition that is true and false as the table says, with the fewest terms, then the fewest literals.

    Combinations that are not in the table do not occur, so the condition may be either there. Equal choices are settled
    by the order of the features' values, and a literal names no value that its term does not need.
    """
    wanted = [combination for combination, true in truth.items() if true]
    excluded = [combination for combination, true in truth.items() if not true]
    terms = [t for t in _primes(features, excluded) if any(_allows(t, c) for c in wanted)]
    columns = {k: sum(1 << i for i, c in enumerate(wanted) if _allows(t, c)) for k, t in enumerate(terms)}
    dear = 1 + len(features) * len(wanted)
    costs = {k: dear + _size(features, t) for k, t in enumerate(terms)}
    chosen = _Cover(costs).best((1 << len(wanted)) - 1, columns)
    terms = [_tight(features, t, [c for c in wanted if _allows(t, c)]) for t in terms]
    free = {k: tuple(len(some) == len(f.values) for f, some in zip(features, terms[k], strict=True)) for k in chosen}
    return Condition(tuple(features), tuple(terms[k] for k in sorted(chosen, key=lambda k: (free[k], k))))


def _allows(term: Term, combination: Combination) -> bool:
    return all(value in some for value, some in zip(combination, term, strict=True))


def _tight(features: Sequence[Feature], term: Term, covered: Sequence[Combination]) -> Term:
    """The term with no value in a literal that no covered combination has."""
    had = [frozenset(values) for values in zip(*covered, strict=True)]
    return tuple(some if len(some) == len(f.values) else some & h for f, some, h in zip(features, term, had, strict=True))


def _size(features: Sequence[Feature], term: Term) -> int:
    return sum(len(some) < len(f.values) for f, some in zip(features, term, strict=True))


def _primes(features: Sequence[Feature], excluded: Sequence[Combination]) -> list[Term]:
    """Every term that allows no excluded combination, and none of whose literals can be widened; widest literals first."""
    every = [
        [frozenset(some) for n in range(len(f.values), 0, -1) for some in itertools.combinations(f.values, n)] for f in features
    ]
    sound = {term: None for term in itertools.product(*every) if not any(_allows(term, c) for c in excluded)}
    return [term for term in sound if not any(wider in sound for wider in _wider(features, term))]


def _wider(features: Sequence[Feature], term: Term) -> Iterator[Term]:
    for at, (feature, some) in enumerate(zip(features, term, strict=True)):
        for value in feature.values:
            if value not in some:
                yield (*term[:at], some | {value}, *term[at + 1 :])


class _Cover:
    """Chooses columns (sets of rows, as bit masks) that together have every row, at the least cost."""

    def __init__(self, costs: Mapping[int, int]) -> None:
        self.costs = costs
        self.least = sum(costs.values()) + 1

    def best(self, rows: int, columns: Mapping[int, int]) -> tuple[int, ...]:
        """The numbers of the columns; every row must be in one."""
        self.found: tuple[int, ...] = ()
        self._search(rows, dict(columns), ())
        return self.found

    def _search(self, rows: int, columns: dict[int, int], taken: tuple[int, ...]) -> None:
        cost = sum(self.costs[k] for k in taken)
        if rows == 0:
            if cost < self.least:
                self.least, self.found = cost, taken
            return
        columns = self._useful({k: mask & rows for k, mask in columns.items()})
        if cost + self._bound(rows, columns) >= self.least:
            return
        having = min((self._having(row, columns) for row in _bits(rows)), key=len)
        for k in having:
            self._search(rows & ~columns[k], columns, (*taken, k))

    def _useful(self, columns: dict[int, int]) -> dict[int, int]:
        """Without the columns that have nothing, or no more than another that costs no more."""
        kept: dict[int, int] = {}
        for k in sorted(columns, key=lambda k: (self.costs[k], -columns[k].bit_count(), k)):
            if columns[k] and not any(columns[k] & ~mask == 0 for mask in kept.values()):
                kept[k] = columns[k]
        return kept

    def _bound(self, rows: int, columns: dict[int, int]) -> int:
        """A cost that is surely needed: that of rows no two of which are in one column."""
        total = 0
        while rows:
            having = min((self._having(row, columns) for row in _bits(rows)), key=len)
            total += min(self.costs[k] for k in having)
            for k in having:
                rows &= ~columns[k]
        return total

    def _having(self, row: int, columns: dict[int, int]) -> list[int]:
        return [k for k, mask in columns.items() if mask & row]


def _bits(mask: int) -> Iterator[int]:
    while mask:
        yield mask & -mask
        mask &= mask - 1
