"""Dialect text of `canon(cells, out)`: the representative of all states that differ only by permutations of indices.

Asked for names too, it is `canon(cells, out, names)`: `names` takes the new number of each member within its index, as a
64-bit word, for all indices one after another.

The method of `spec/lang/symmetry.py`, which explains it, on the unpacked struct. Members are told apart by sums of
64-bit products; ties are searched, and only the bytes of whole states decide, so the result is exact. Ranks are found
by counting smaller keys, without branches; the rank so far stands in the top bits of a key, so that splits keep order.
Members that nothing mentions and whose elements are equal in every array are put in any order before anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from string import Template

from ....spec.lang.errors import BoundsError
from ....spec.lang.layout import Shape
from .canon_walk import Group, ReadWalk, RelabelWalk, SameWalk, constant, fact_size, has_array
from .pack import CellLayout

MAX_MEMBERS = 63
_UNROLLED = 12

_SMALL = """
@inline
def canon_mix(x):
    x = (x ^ lshr(x, 32)) * $MIX
    return x ^ lshr(x, 29)


@inline
def canon_add(c, member, x):
    store64(c + $sums + member * 8, load64(c + $sums + member * 8) + x)


@inline
def canon_key(c, member):
    return (load64(c + member * 8) << 55) | lshr(load64(c + $sums + member * 8), 9)
"""

_MAIN = """
def canon(cells, out$names):
    c = alloca($memory)
    store64(c + $cells, cells)
    store64(c + $out, out)
    clear(c, $code)
$lists
    canon_read(c, cells)
    if canon_rank(c) < $MEMBERS:
        canon_order_idle(c)
        if canon_refine(c) < $MEMBERS:
            canon_search(c)
            $name_by_search
            return 0
    canon_relabel(cells, c, out)
    $name_by_rank

@noinline
def canon_refine(c):
    groups = $groups
    while groups < $MEMBERS:
        before = groups
        canon_round(c)
        groups = canon_rank(c)
        if groups == before:
            break
    return groups
"""

_TIED = """
@noinline
def canon_smallest(c, index, first, count, least):
    seen = load64(c + $seen + index * 8)
    start = 0
    while start < count:
        size = min(ctz(lshr(seen, start + 1)), count - start - 1) + 1
        if size > 1 and size < least:
            least = size
            canon_group(c, index, first, count, start)
        start += size
    return least


@inline
def canon_group(c, index, first, count, start):
    store64(c + $index, index)
    store64(c + $first, first)
    store64(c + $last, first + count)
    store64(c + $start, start)


@noinline
def canon_idle(c, index, first, count):
    seen = load64(c + $seen + index * 8)
    start = 0
    while start < count:
        size = min(ctz(lshr(seen, start + 1)), count - start - 1) + 1
        if size > 1:
            canon_group(c, index, first, count, start)
            if canon_twins(c, 1):
                canon_put_in_order(c)
        start += size


@noinline
def canon_twins(c, idle):
    first = load64(c + $first)
    start = load64(c + $start)
    x = -1
    for y in range(first, load64(c + $last)):
        if load64(c + y * 8) == start:
            if x < 0:
                x = y
            elif not canon_swaps(c, first, x, y, idle):
                return 0
    return 1


def canon_swaps(c, first, x, y, idle):
    index = load64(c + $index)
    used = load64(c + $used + index * 8)
    if not (lshr(used, x - first) & 1) and not (lshr(used, y - first) & 1):
        if canon_same(load64(c + $cells), index, x - first, y - first):
            return 1
        if lshr($SIMPLE, index) & 1:
            return 0
    if idle:
        return 0
    return canon_swaps_all(c, x, y)


@noinline
def canon_put_in_order(c):
    start = load64(c + $start)
    place = c + $seen + load64(c + $index) * 8
    rank = start
    for y in range(load64(c + $first), load64(c + $last)):
        if load64(c + y * 8) == start:
            store64(c + y * 8, rank)
            store64(place, load64(place) | 1 << rank)
            rank += 1
"""

_SEARCH = """
@noinline
def canon_search(c):
    trial = alloca($bytes)
    store64(c + $trial, trial)
    store64(c + $found, 0)
    canon_visit(c, 0)


@noinline
def canon_visit(c, depth):
    mine = alloca($sums)
    orbit = alloca(8 * $MEMBERS)
    tried = alloca(8 * $MEMBERS)
    while canon_tied(c) and canon_twins(c, 0):
        canon_put_in_order(c)
        canon_refine(c)
    if not canon_tied(c):
        return canon_leaf(c, depth)
    copy(mine, c, $sums)
    for x in range($MEMBERS):
        store64(orbit + x * 8, x)
    store64(c + $orbits + depth * 8, orbit)
    first = load64(c + $first)
    last = load64(c + $last)
    start = load64(c + $start)
    place = c + $seen + load64(c + $index) * 8
    tries = 0
    for x in range(first, last):
        if load64(mine + x * 8) == start and canon_is_new(orbit, tried, tries, x):
            copy(c, mine, $sums)
            for y in range(first, last):
                if y != x and load64(c + y * 8) == start:
                    store64(c + y * 8, start + 1)
            store64(place, load64(place) | 1 << start + 1)
            store64(c + $path + depth * 8, x)
            canon_refine(c)
            back = canon_visit(c, depth + 1)
            if back < depth:
                return back
            store64(tried + tries * 8, x)
            tries += 1
    return depth - 1


def canon_is_new(orbit, tried, tries, x):
    for i in range(tries):
        if load64(orbit + load64(tried + i * 8) * 8) == load64(orbit + x * 8):
            return 0
    return 1


def canon_leaf(c, depth):
    cells = load64(c + $cells)
    out = load64(c + $out)
    trial = load64(c + $trial)
    if load64(c + $found) == 0:
        canon_relabel(cells, c, out)
        return canon_keep(c, depth)
    canon_relabel(cells, c, trial)
    order = canon_compare(trial, out)
    if order < 0:
        copy(out, trial, $bytes)
        return canon_keep(c, depth)
    if order > 0:
        return depth - 1
    shared = 0
    while load64(c + $path + shared * 8) == load64(c + $bestpath + shared * 8):
        shared += 1
    canon_join_all(c, shared)
    return shared


def canon_keep(c, depth):
    store64(c + $found, 1)
    copy(c + $bestrank, c, 8 * $MEMBERS)
    copy(c + $bestpath, c + $path, 8 * $MEMBERS)
    return depth - 1


@noinline
def canon_join(c, depth, first, last):
    for x in range(first, last):
        for y in range(first, last):
            if load64(c + $bestrank + x * 8) == load64(c + y * 8):
                for level in range(depth + 1):
                    canon_unite(load64(c + $orbits + level * 8), x, y)


def canon_unite(orbit, x, y):
    kept = load64(orbit + x * 8)
    gone = load64(orbit + y * 8)
    for z in range($MEMBERS):
        if load64(orbit + z * 8) == gone:
            store64(orbit + z * 8, kept)


def canon_compare(a, b):
    for i in range($whole):
        x = load64(a + i * 8)
        y = load64(b + i * 8)
        if x != y:
            return -1 if x < y else 1
    x = load64(a + $whole * 8 - $over) & $tail
    y = load64(b + $whole * 8 - $over) & $tail
    return (x > y) - (x < y)
"""


def canon_source(
    shape: Shape, indices: Mapping[str, int], layout: CellLayout | None = None, *, with_names: bool = False
) -> str:
    """Dialect text of `canon` for a shape, over these indices with their sizes; `BoundsError` above 63 members."""
    layout = layout or CellLayout(shape)
    groups: dict[str, Group] = {}
    for name, size in indices.items():
        if size > MAX_MEMBERS:
            raise BoundsError(
                f"{name} has {size} members, and symmetry in the native engine takes "
                f"{MAX_MEMBERS} at most; lower it, or give --symmetry off"
            )
        groups[name] = Group(len(groups), sum(group.size for group in groups.values()), size)
    return _Source(layout, groups, with_names).write()


class _Source:
    """Puts the text together for one layout."""

    def __init__(self, layout: CellLayout, groups: Mapping[str, Group], with_names: bool) -> None:
        self.layout, self.groups, self.with_names = layout, groups, with_names
        self.members = sum(group.size for group in groups.values())
        probe = ReadWalk(layout, groups)
        probe.write({}, 0)
        self.capacity = dict(sorted(probe.capacity.items()))
        self.places = self._places()

    def _places(self) -> dict[str, int]:
        """Byte offsets in the working memory of one call; the first five are cleared, or copied, together."""
        members, indices = 8 * self.members, 8 * len(self.groups)
        sizes = {"rank": members, "seen": indices, "sums": members, "code": members, "used": indices}
        sizes |= dict.fromkeys(("cells", "out", "trial", "found", "index", "first", "last", "start"), 8)
        sizes |= dict.fromkeys([f"{what}{arity}" for arity in self.capacity for what in ("facts", "end")], 8)
        sizes |= {"path": members + 8, "bestpath": members + 8, "bestrank": members, "orbits": members + 8}
        places: dict[str, int] = {}
        at = 0
        for name, size in sizes.items():
            places[name] = at
            at += size
        return places | {"memory": max(at, 8)}

    def write(self) -> str:
        """The whole text."""
        ends = {arity: self.places[f"end{arity}"] for arity in self.capacity}
        parts = [
            self._fill(_SMALL),
            ReadWalk(self.layout, self.groups).write(ends, self.places["used"]),
            RelabelWalk(self.layout, self.groups).write(),
            *(SameWalk(self.layout, self.groups, name).write() for name in self.groups),
            self._fill(_MAIN),
            self._fill(self._round()),
            self._rank(),
            self._fill(self._dispatch()),
            self._fill(_TIED),
            self._fill(_SEARCH),
        ]
        return "\n\n".join(part.strip("\n") for part in parts) + "\n"

    def _fill(self, text: str) -> str:
        size = self.layout.size(self.layout.shape)
        whole, rest = divmod(size, 8)
        lists = [
            f"    facts_{arity} = alloca({max(8, count * fact_size(arity))})\n"
            f"    store64(c + $facts{arity}, facts_{arity})\n    store64(c + $end{arity}, facts_{arity})"
            for arity, count in self.capacity.items()
        ]
        text = text.replace("$lists", "\n".join(lists))
        copied = "copy(names, c + {}, 8 * $MEMBERS)" if self.with_names else "pass"
        text = text.replace("$names", ", names" * self.with_names)
        text = text.replace("$name_by_search", copied.format("$bestrank")).replace("$name_by_rank", copied.format("$rank"))
        simple = sum(
            1 << group.number for name, group in self.groups.items() if not has_array(self.layout.shape, name, inside=True)
        )
        return Template(text).substitute(
            self.places,
            MEMBERS=self.members,
            MIX=constant(0),
            SIMPLE=simple,
            bytes=max(8, self.layout.bytes),
            whole=whole,
            over=0 if rest else 8,
            tail=(1 << 8 * rest) - 1 if rest else 0,
            groups=" + ".join(f"popcount(load64(c + {place}))" for place in self._seen()) or "0",
        )

    def _seen(self) -> Iterable[int]:
        return (self.places["seen"] + 8 * group.number for group in self.groups.values())

    def _round(self) -> str:
        """Sums of the facts of several members, each with the ranks of the other members in it."""
        lines = [
            "@noinline",
            "def canon_round(c):",
            "    for x in range($MEMBERS):",
            f"        store64(c + $code + x * 8, canon_mix((load64(c + x * 8) + 1) * {constant(1)}))",
            "    clear(c + $sums, 8 * $MEMBERS)",
        ]
        for arity in self.capacity:
            lines += [f"    p = load64(c + $facts{arity})", f"    while p < load64(c + $end{arity}):"]
            lines += ["        key = load64(p)"]
            lines += [f"        member_{i} = load32(p + {8 + 4 * i})" for i in range(arity)]
            lines += [f"        code_{i} = load64(c + $code + member_{i})" for i in range(arity)]
            for i in range(arity):
                others = [j for j in range(arity) if j != i]
                mixed = f"code_{others[0]}"
                for j in others[1:]:
                    mixed = f"canon_mix({mixed} + code_{j} * {constant(2 + j)})"
                key = f"(key ^ {constant(100 + i)})" if i else "key"
                lines.append(f"        store64(c + $sums + member_{i}, load64(c + $sums + member_{i}) + {key} * {mixed})")
            lines.append(f"        p += {fact_size(arity)}")
        return "\n".join(lines)

    def _rank(self) -> str:
        """Ranks from keys: for each member, how many of its index have a smaller key; returns the number of groups."""
        lines = ["@noinline", "def canon_rank(c):", "    groups = 0"]
        for group in self.groups.values():
            members = range(group.first, group.first + group.size)
            lines += self._rank_short(members) if group.size <= _UNROLLED else self._rank_long(members)
            lines += [
                f"    store64(c + {self.places['seen'] + 8 * group.number}, seen)",
                "    groups += popcount(seen)",
            ]
        return "\n".join([*lines, "    return groups"])

    def _rank_short(self, members: range) -> list[str]:
        lines = [f"    key_{x} = canon_key(c, {x})" for x in members]
        for x in members:
            smaller = " + ".join(f"(key_{y} < key_{x})" for y in members if y != x) or "0"
            lines += [f"    rank_{x} = {smaller}", f"    store64(c + {8 * x}, rank_{x})"]
        return [*lines, "    seen = " + (" | ".join(f"(1 << rank_{x})" for x in members) or "0")]

    def _rank_long(self, members: range) -> list[str]:
        return [
            f"    keys = alloca({8 * len(members)})",
            f"    for x in range({len(members)}):",
            f"        store64(keys + x * 8, canon_key(c, x + {members.start}))",
            "    seen = 0",
            f"    for x in range({len(members)}):",
            "        key = load64(keys + x * 8)",
            "        rank = 0",
            f"        for y in range({len(members)}):",
            "            rank += load64(keys + y * 8) < key",
            f"        store64(c + {8 * members.start} + x * 8, rank)",
            "        seen |= 1 << rank",
        ]

    def _dispatch(self) -> str:
        """The functions that name the indices one by one."""
        groups = self.groups.values()
        idle = [f"    canon_idle(c, {g.number}, {g.first}, {g.size})" for g in groups]
        same = [f"    if index == {g.number}:\n        return canon_same_{g.number}(cells, x, y)" for g in groups]
        tied = [f"    least = canon_smallest(c, {g.number}, {g.first}, {g.size}, least)" for g in groups]
        join = [f"    canon_join(c, depth, {g.first}, {g.first + g.size})" for g in groups]
        still = [f"    for i in range({g.size}):\n        store64(rank + {8 * g.first} + i * 8, i)" for g in groups]
        swap = ["    old = load64(rank + x * 8)", "    store64(rank + x * 8, load64(rank + y * 8))"]
        swap += ["    store64(rank + y * 8, old)", "    canon_relabel(load64(c + $cells), rank, load64(c + $trial))"]
        functions = {
            "canon_order_idle(c)": idle,
            "canon_same(cells, index, x, y)": same,
            "canon_tied(c)": ["    least = 64", *tied, "    return least < 64"],
            "canon_join_all(c, depth)": join,
            "canon_swaps_all(c, x, y)": [
                "    rank = alloca(8 * $MEMBERS)",
                *still,
                *swap,
                "    return canon_compare(load64(c + $cells), load64(c + $trial)) == 0",
            ],
        }
        return "\n\n".join("\n".join([f"def {head}:", *body, "    return 0"]) for head, body in functions.items())
