"""Shapes and states at random, for tests of what works on every shape: layout, packing, symmetry."""

from collections.abc import Iterator, Mapping
from itertools import permutations, product

from fencepost.spec.lang.layout import ArrayShape, Leaf, RecordShape, SeqShape, SetShape, Shape, State
from hypothesis import strategies as st

Draw = st.DrawFn
Permutations = dict[str, tuple[int, ...]]


def record(**fields: Shape) -> RecordShape:
    """A record shape with these fields."""
    placed: list[tuple[str, int, Shape]] = []
    at = 0
    for name, shape in fields.items():
        placed.append((name, at, shape))
        at += shape.size
    return RecordShape("Record", tuple(placed), at)


def member(index: str, size: int, *, maybe: bool = False) -> Leaf:
    """A cell for a member of an index."""
    return Leaf("index", -1 if maybe else 0, size - 1, index, maybe)


@st.composite
def shapes(draw: Draw, sizes: Mapping[str, int], depth: int = 3) -> Shape:
    """A shape over indices of these sizes, nested at most this deep."""
    index = draw(st.sampled_from(list(sizes)))
    kinds = ["number", "member", "maybe", "set", "record", "array", "row", "sequence"]
    match draw(st.sampled_from(kinds if depth else kinds[:4])):
        case "number":
            return Leaf("int", draw(st.sampled_from([0, -1, 1])), draw(st.sampled_from([1, 2, 300])))
        case "member" | "maybe" as kind:
            return member(index, sizes[index], maybe=kind == "maybe")
        case "set":
            return SetShape(index, sizes[index])
        case "array":
            return ArrayShape(sizes[index], draw(shapes(sizes, depth - 1)), index)
        case "row":
            return ArrayShape(2, draw(shapes(sizes, depth - 1)), None)
        case "sequence":
            return SeqShape(draw(st.integers(0, 3)), draw(shapes(sizes, depth - 1)))
        case _:
            return record(**{f"f{i}": draw(shapes(sizes, depth - 1)) for i in range(draw(st.integers(1, 3)))})


@st.composite
def states(draw: Draw, shape: Shape, busy: int = 5) -> State:
    """A state of a shape; of ten cells about `busy` are not blank."""
    filled = draw(st.integers(0, 9)) < busy
    match shape:
        case SetShape(_, count):
            return (draw(st.integers(0, (1 << count) - 1)) if filled else 0,)
        case Leaf():
            return (draw(st.integers(shape.low, shape.high)),) if filled else shape.blank
        case ArrayShape(count, item, _):
            return tuple(cell for _ in range(count) for cell in draw(states(item, busy)))
        case SeqShape(capacity, item):
            length = draw(st.integers(0, capacity))
            body = tuple(cell for _ in range(length) for cell in draw(states(item, busy)))
            return (length, *body, *(item.blank * (capacity - length)))
        case RecordShape():
            return tuple(cell for _, _, inner in shape.fields for cell in draw(states(inner, busy)))


@st.composite
def cases(draw: Draw, most: int = 3) -> tuple[Shape, dict[str, int], State]:
    """A shape of at most 200 cells, the sizes of its indices, and a state."""
    sizes = {"requests": draw(st.integers(1, most)), "blocks": draw(st.integers(1, most))}
    fields = st.lists(shapes(sizes), min_size=1, max_size=3).map(lambda all: record(**{f"g{i}": s for i, s in enumerate(all)}))
    shape = draw(fields.filter(lambda shape: shape.size <= 200))
    return shape, sizes, draw(states(shape, draw(st.sampled_from([1, 5, 10]))))


def all_permutations(sizes: Mapping[str, int]) -> Iterator[Permutations]:
    """Every choice of a permutation for each index."""
    for chosen in product(*(permutations(range(size)) for size in sizes.values())):
        yield dict(zip(sizes, chosen, strict=True))
