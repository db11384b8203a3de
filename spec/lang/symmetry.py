"""States up to relabelling: one representative of all states that differ only by permutations of an index.

A state is a set of facts. A fact is an occupied cell: where it lies (fields and positions), the members that take part
in it (as index of an array along the way, or as value), and its plain value. Members are told apart by the facts they
take part in: by plain facts first, then again and again by the other members in their facts, until nothing new is told
apart. What is still tied is tried one after another, and the least state wins. Only that last choice compares states,
so the result is exact whatever the hashes are; they only decide how much is left to try.

The colouring is kept as a `rank` for each member: how many members of its index come before it. Splitting a group of
equal rank never reorders groups, so a member that is alone in its group keeps its rank, which is its new label at last.
Facts that hold the blank value count as absent. Members of all indices share one numbering here, index after index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from operator import itemgetter

from .layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape, State

Rank = list[int]
Values = Callable[[State], tuple[int, ...]]

_KEPT = 4096


class _Part:
    """What a part of a state can say about members, by kind; `owners` are the members that it belongs to.

    `plain`: (owner, place) of plain cells; `shared`: (place, blank, salt, owners) of those of several owners; `alone`,
    `paired`, `crowded`: (place, first member of its index, salt, owners) of cells that hold a member, with no, one and
    more owners; `sets`: the same of sets; `arrays`: (place, elements, size of one, first member) of arrays over an
    index, inner ones first; `runs`: (place of the length, parts of the elements) of sequences.
    """

    def __init__(self) -> None:
        self.plain: list[tuple[int, int]] = []
        self.shared: list[tuple[int, int, int, tuple[int, ...]]] = []
        self.alone: list[tuple[int, int, int]] = []
        self.paired: list[tuple[int, int, int, int]] = []
        self.crowded: list[tuple[int, int, int, tuple[int, ...]]] = []
        self.sets: list[tuple[int, int, int, tuple[int, ...]]] = []
        self.arrays: list[tuple[int, int, int, int]] = []
        self.runs: list[tuple[int, list[_Part]]] = []

    def include(self, other: _Part, state: State) -> None:
        """Add all that another part says in states with the same lengths of sequences."""
        for at, elements in other.runs:
            for element in elements[: state[at]]:
                self.include(element, state)
        self.plain += other.plain
        self.shared += other.shared
        self.alone += other.alone
        self.paired += other.paired
        self.crowded += other.crowded
        self.sets += other.sets
        self.arrays += other.arrays


class _Plan(_Part):
    """How to read the states whose sequences have certain lengths."""

    def __init__(self, root: _Part, state: State) -> None:
        super().__init__()
        self.include(root, state)
        owned: dict[int, list[int]] = {}
        for owner, at in self.plain:
            owned.setdefault(owner, []).append(at)
        self.values = [(owner, _values(places)) for owner, places in owned.items()]
        self.mentions = [(at, first) for at, first, *_ in (*self.alone, *self.paired, *self.crowded)]


class _Facts:
    """The facts of one state: sums of the facts of one member, facts of two members, and of more."""

    __slots__ = ("more", "pairs", "plan", "sums")

    def __init__(self, plan: _Plan, state: State, members: int) -> None:
        self.plan = plan
        self.sums = sums = [0] * members
        self.more: list[tuple[int, tuple[int, ...]]] = []
        for owner, values in plan.values:
            sums[owner] = hash(values(state))
        for at, first, salt in plan.alone:
            if state[at] >= 0:
                sums[first + state[at]] += salt
        self.pairs = [(salt, owner, first + state[at]) for at, first, salt, owner in plan.paired if state[at] >= 0]
        for at, blank, salt, owners in plan.shared:
            if state[at] != blank:
                self._add(hash((salt, state[at])), owners)
        for at, first, salt, owners in plan.crowded:
            if state[at] >= 0:
                self._add(salt, (*owners, first + state[at]))
        for at, first, salt, owners in plan.sets:
            for i in _bits(state[at]):
                self._add(salt, (*owners, first + i))

    def _add(self, salt: int, members: tuple[int, ...]) -> None:
        if len(members) == 2:
            self.pairs.append((salt, *members))
        elif len(members) == 1:
            self.sums[members[0]] += salt
        else:
            self.more.append((salt, members))


class Symmetry:
    """Relabels states of a shape over permutable indices, given by name with their sizes."""

    def __init__(self, shape: Shape, indices: Mapping[str, int]) -> None:
        self.shape = shape
        self.groups: dict[str, range] = {}
        self.total = 0
        for name, size in indices.items():
            self.groups[name] = range(self.total, self.total + size)
            self.total += size
        self._first_of = [group.start for group in self.groups.values() for _ in group]
        self._salts: dict[tuple[int, ...], int] = {}
        self._length_places: list[int] = []
        self._root = _Part()
        self._describe(self._root, shape, 0, (), ())
        self._lengths = _values(self._length_places)
        self._plans: dict[tuple[int, ...], _Plan] = {}

    # -- reading the shape, once --------------------------------------------------------------------------------------

    def _is_plain(self, shape: Shape) -> bool:
        """Whether nothing in a part of the state is a member, or belongs to one."""
        match shape:
            case Leaf() | SetShape():
                return shape.index not in self.groups
            case ArrayShape(_, item, index):
                return index not in self.groups and self._is_plain(item)
            case SeqShape(_, item):
                return self._is_plain(item)
            case RecordShape():
                return all(self._is_plain(inner) for _, _, inner in shape.fields)

    def _describe(self, part: _Part, shape: Shape, at: int, path: tuple[int, ...], owners: tuple[int, ...]) -> None:
        if self._is_plain(shape):
            self._describe_plain(part, shape, at, path, owners)
            return
        match shape:
            case Leaf() | SetShape():
                self._describe_member(part, shape, at, path, owners)
            case ArrayShape(count, item, name):
                for i in range(count):
                    inner = (path, (*owners, self.groups[name][i])) if name in self.groups else ((*path, i), owners)
                    self._describe(part, item, at + i * item.size, *inner)
                if name in self.groups:
                    part.arrays.append((at, count, item.size, self.groups[name].start))
            case SeqShape(capacity, item):
                self._describe_plain(part, Leaf("int", 0, capacity), at, (*path, capacity), owners)
                elements = [_Part() for _ in range(capacity)]
                part.runs.append((at, elements))
                self._length_places.append(at)
                for i, element in enumerate(elements):
                    self._describe(element, item, at + 1 + i * item.size, (*path, i), owners)
            case RecordShape():
                for number, (_, offset, inner) in enumerate(shape.fields):
                    self._describe(part, inner, at + offset, (*path, number), owners)

    def _describe_plain(self, part: _Part, shape: Shape, at: int, path: tuple[int, ...], owners: tuple[int, ...]) -> None:
        for i, blank in enumerate(shape.blank):
            if len(owners) == 1:
                part.plain.append((owners[0], at + i))
            elif owners:
                part.shared.append((at + i, blank, self._salt((*path, i)), owners))

    def _describe_member(
        self, part: _Part, shape: Leaf | SetShape, at: int, path: tuple[int, ...], owners: tuple[int, ...]
    ) -> None:
        assert shape.index is not None
        first, salt = self.groups[shape.index].start, self._salt(path)
        if isinstance(shape, SetShape):
            part.sets.append((at, first, salt, owners))
        elif not owners:
            part.alone.append((at, first, salt))
        elif len(owners) == 1:
            part.paired.append((at, first, salt, owners[0]))
        else:
            part.crowded.append((at, first, salt, owners))

    def _salt(self, path: tuple[int, ...]) -> int:
        return hash((self._salts.setdefault(path, len(self._salts)), 0x5EED))

    def _facts(self, state: State) -> _Facts:
        lengths = self._lengths(state)
        plan = self._plans.get(lengths)
        if plan is None:
            if len(self._plans) >= _KEPT:
                self._plans.clear()
            plan = self._plans[lengths] = _Plan(self._root, state)
        return _Facts(plan, state, self.total)

    # -- relabelling --------------------------------------------------------------------------------------------------

    def permute(self, state: State, to: Mapping[str, Sequence[int]]) -> State:
        """Move every member x of an index to `to[index][x]`, everywhere in a state; indices not given stay."""
        rank = [x - first for x, first in enumerate(self._first_of)]
        for name, permutation in to.items():
            group = self.groups[name]
            if sorted(permutation) != list(range(len(group))):
                raise ValueError(f"{permutation} is not a permutation of the {len(group)} members of {name}")
            rank[group.start : group.stop] = permutation
        return self._relabel(state, self._facts(state).plan, rank)

    def _relabel(self, state: State, plan: _Plan, rank: Rank) -> State:
        new = list(state)
        for at, first in plan.mentions:
            if state[at] >= 0:
                new[at] = rank[first + state[at]]
        for at, first, _, _ in plan.sets:
            if state[at]:
                new[at] = sum(1 << rank[first + i] for i in _bits(state[at]))
        for at, count, size, first in plan.arrays:
            end = at + count * size
            old = new[at:end]
            for i, to in enumerate(rank[first : first + count]):
                if i != to:
                    new[at + to * size : at + to * size + size] = old[i * size : i * size + size]
        return tuple(new)

    # -- telling members apart ----------------------------------------------------------------------------------------

    def canonical(self, state: State) -> State:
        """The representative of all relabellings of a state: a permutation of it, the same for each of them."""
        facts = self._facts(state)
        rank, groups = self._split([0] * self.total, facts.sums)
        rank, groups = self._refine(facts, rank, groups)
        if groups == self.total:
            return self._relabel(state, facts.plan, rank)
        return _Search(self, state, facts).least(rank)

    def _split(self, rank: Rank, sums: list[int]) -> tuple[Rank, int]:
        """Split groups of equal rank by their sums; the new ranks and the number of groups."""
        keys = list(zip(rank, sums, strict=True))
        new, groups = [0] * self.total, 0
        for group in self.groups.values():
            last = None
            place = 0
            for i, x in enumerate(sorted(group, key=keys.__getitem__)):
                if keys[x] != last:
                    last, place = keys[x], i
                    groups += 1
                new[x] = place
        return new, groups

    def _refine(self, facts: _Facts, rank: Rank, groups: int) -> tuple[Rank, int]:
        """Split groups by the ranks of the other members in their facts, until the number of groups stays."""
        while groups < self.total:
            sums = [0] * self.total
            for salt, a, b in facts.pairs:
                sums[a] += hash((salt, rank[b]))
                sums[b] += hash((rank[a], salt))
            for salt, members in facts.more:
                ranks = [rank[x] for x in members]
                for role, x in enumerate(members):
                    sums[x] += hash((salt, role, *ranks[:role], *ranks[role + 1 :]))
            before = groups
            rank, groups = self._split(rank, sums)
            if groups == before:
                break
        return rank, groups

    def tied(self, rank: Rank) -> list[int]:
        """The smallest group of two or more members, the first of several; empty if there is none."""
        together: dict[tuple[int, int], list[int]] = {}
        for x, first in enumerate(self._first_of):
            together.setdefault((first, rank[x]), []).append(x)
        groups = [(len(members), key) for key, members in together.items() if len(members) > 1]
        return together[min(groups)[1]] if groups else []

    def swaps(self, state: State, facts: _Facts, a: int, b: int) -> bool:
        """Whether exchanging two members of one index leaves a state as it is."""
        rank = [x - first for x, first in enumerate(self._first_of)]
        rank[a], rank[b] = rank[b], rank[a]
        return self._relabel(state, facts.plan, rank) == state

    def leaf(self, state: State, facts: _Facts, rank: Rank) -> State:
        """A state relabelled by ranks that tell all members apart."""
        return self._relabel(state, facts.plan, rank)

    def refine(self, facts: _Facts, rank: Rank) -> Rank:
        """`_refine` from any ranks."""
        return self._refine(facts, rank, len(set(zip(self._first_of, rank, strict=True))))[0]


class _Search:
    """Tries tied members one after another, each in turn first, and keeps the least state.

    Two orders that give the same state differ by a permutation that leaves the state as it is: what one of them leads
    to needs no second look, neither here nor for any member which that permutation exchanges with one already tried.
    """

    def __init__(self, symmetry: Symmetry, state: State, facts: _Facts) -> None:
        self.symmetry, self.state, self.facts = symmetry, state, facts
        self.best: State | None = None
        self.best_rank: Rank = []
        self.best_path: tuple[int, ...] = ()
        self.orbits: list[list[int]] = []

    def least(self, rank: Rank) -> State:
        """The least state over all orders that refine these ranks."""
        self._visit(rank, ())
        assert self.best is not None
        return self.best

    def _visit(self, rank: Rank, path: tuple[int, ...]) -> int:
        """Search below the choices of `path`; the depth at which to go on."""
        depth = len(path)
        rank, tied = self._order_twins(rank)
        if not tied:
            return self._leaf(rank, path)
        self.orbits[depth:] = [list(range(self.symmetry.total))]
        tried: list[int] = []
        for x in tied:
            orbit = self.orbits[depth]
            if any(orbit[x] == orbit[y] for y in tried):
                continue
            chosen = list(rank)
            for y in tied:
                chosen[y] += y != x
            back = self._visit(self.symmetry.refine(self.facts, chosen), (*path, x))
            if back < depth:
                return back
            tried.append(x)
        return depth - 1

    def _order_twins(self, rank: Rank) -> tuple[Rank, list[int]]:
        """Order groups whose members can be exchanged freely, in any way; the first group that is not of that kind."""
        while tied := self.symmetry.tied(rank):
            if not all(self.symmetry.swaps(self.state, self.facts, tied[0], x) for x in tied[1:]):
                break
            rank = list(rank)
            for i, x in enumerate(tied):
                rank[x] += i
            rank = self.symmetry.refine(self.facts, rank)
        return rank, tied

    def _leaf(self, rank: Rank, path: tuple[int, ...]) -> int:
        found = self.symmetry.leaf(self.state, self.facts, rank)
        if self.best is None or found < self.best:
            self.best, self.best_rank, self.best_path = found, rank, path
        elif found == self.best:
            shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(path, self.best_path, strict=False))))
            self._join(rank, shared)
            return shared
        return len(path) - 1

    def _join(self, rank: Rank, depth: int) -> None:
        """Note, up to this depth, which members the permutation between two equal leaves exchanges."""
        for group in self.symmetry.groups.values():
            holder = {rank[x]: x for x in group}
            for x in group:
                y = holder[self.best_rank[x]]
                for orbit in self.orbits[: depth + 1]:
                    if orbit[x] != orbit[y]:
                        gone, kept = orbit[y], orbit[x]
                        orbit[:] = [kept if one == gone else one for one in orbit]


def _values(places: list[int]) -> Values:
    """A function that takes a state to its cells at these places, as a tuple."""
    if len(places) == 1:
        place = places[0]
        return lambda state: (state[place],)
    return itemgetter(*places) if places else lambda state: ()


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
