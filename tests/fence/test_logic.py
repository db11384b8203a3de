"""The language: what is decidable, and what is refused with words that help."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fencepost.checker.prove.protocol_obligations import obligations
from fencepost.spec.fence.declare import Do, Protocol, claim
from fencepost.spec.fence.fragment import circle, dependences, undecidable
from fencepost.spec.fence.logic import Formula, LogicError, Ordered, Relation, Sort, every, free_in, implies, same, some
from fencepost.spec.fence.protocol import fence
from fencepost.spec.fence.queue import queue


class Cat(Sort):
    """Sleeps."""


class Box(Ordered):
    """Holds cats."""


def boxes() -> tuple[Protocol, Relation[Cat, Box], Relation[Cat, Cat]]:
    """A protocol of cats and boxes."""
    made = Protocol("boxes", "Cats sit in boxes.")
    inside = made.relation("inside", Cat, Box, sentence="the cat is in the box")
    likes = made.relation("likes", Cat, Cat, sentence="the first likes the second")
    return made, inside, likes


PROTOCOL, INSIDE, LIKES = boxes()
HAS_A_BOX = every(Cat, lambda c: some(Box, lambda b: INSIDE(c, b)))
HAS_A_CAT = every(Box, lambda b: some(Cat, lambda c: INSIDE(c, b)))
HAS_A_FRIEND = every(Cat, lambda c: some(Cat, lambda d: LIKES(c, d)))


def names(formula: Formula) -> set[str]:
    """The dependences of a formula, as words."""
    return {f"{a.__name__} -> {b.__name__}" for a, b in dependences([formula])}


def test_quantifiers_that_alternate_make_members_exist() -> None:
    assert names(HAS_A_BOX) == {"Cat -> Box"}
    assert names(~HAS_A_BOX) == set()
    assert names(implies(HAS_A_BOX, HAS_A_CAT)) == {"Box -> Cat"}
    assert names(some(Box, lambda b: every(Cat, lambda c: INSIDE(c, b)))) == set()
    assert names(~some(Box, lambda b: every(Cat, lambda c: INSIDE(c, b)))) == {"Box -> Cat"}
    both = every(Cat, Box, lambda c, b: INSIDE(c, b) | some(Cat, lambda d: LIKES(c, d)))
    assert names(both) == {"Cat -> Cat", "Box -> Cat"}


def test_only_a_circle_is_outside_the_fragment() -> None:
    assert undecidable([HAS_A_BOX]) is None
    assert undecidable([HAS_A_CAT]) is None
    assert undecidable([HAS_A_FRIEND]) == "Cat -> Cat"
    assert undecidable([HAS_A_BOX, HAS_A_CAT]) in ("Box -> Cat -> Box", "Cat -> Box -> Cat")
    assert undecidable([HAS_A_BOX, ~HAS_A_CAT]) is None


def test_a_circle_is_found_behind_other_dependences() -> None:
    class Dog(Sort):
        pass

    assert circle({(Dog, Cat), (Cat, Box), (Box, Cat)}) in ((Cat, Box, Cat), (Box, Cat, Box))
    assert circle({(Dog, Cat), (Dog, Box), (Cat, Box)}) is None


def test_free_variables_and_relations() -> None:
    cat, box = Cat("cat"), Box("box")
    variables, relations = free_in([INSIDE(cat, box) & every(Cat, lambda c: LIKES(c, cat) | same(c, cat)), box <= box])
    assert variables == [cat, box]
    assert relations == [INSIDE, LIKES]


def sits(do: Do, c: Cat, b: Box) -> None:
    """Cat {c} sits down in {b}."""
    do.insert(INSIDE(c, b))


def test_a_claim_about_an_action_takes_its_parameters_by_name() -> None:
    made, inside, likes = boxes()

    @made.action
    def sit(do: Do, c: Cat, b: Box) -> None:
        """Cat {c} sits down in {b}."""
        do.insert(inside(c, b))

    @made.safety(sit)
    def friends_only(b: Box, c: Cat, d: Cat) -> Formula:
        """Whoever sits there already likes the newcomer."""
        return implies(inside(d, b), likes(d, c))

    about = friends_only.of(sit)
    assert [v.name for v in about.variables] == ["d"]
    assert set(free_in([about.formula])[0]) == set(sit.parameters)


def twice(do: Do, c: Cat, b: Box) -> None:
    """Changes one thing twice."""
    do.insert(INSIDE(c, b))
    do.remove(INSIDE(c, b))


def guarded_twice(do: Do, c: Cat, b: Box) -> None:
    """Has two guards of one name."""
    do.require("empty", ~INSIDE(c, b))
    do.require("empty", INSIDE(c, b))


def counted(do: Do, c: Cat, often: int) -> None:
    """Has a number."""


def elsewhere(do: Do, c: Cat, d: Cat) -> None:
    """Changes another protocol's relation."""
    do.insert(boxes()[2](c, d))


def silent(do: Do, c: Cat) -> None:
    pass


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (twice, "inside is changed twice; say in one formula what it becomes"),
        (guarded_twice, "two guards are called 'empty'; give each its own name"),
        (counted, "counted: often is no member of a sort; annotate it with a sort or a Relation of sorts"),
        (elsewhere, "elsewhere changes likes, which is no relation of boxes; declare it there"),
        (silent, "silent has no docstring; say in a sentence what it means"),
    ],
)
def test_an_action_that_is_not_well_formed_is_refused(function: Callable[..., None], message: str) -> None:
    with pytest.raises(LogicError, match=message):
        PROTOCOL.action(function)


def test_two_declarations_of_one_name_are_refused() -> None:
    made, inside, _ = boxes()

    def alone(c: Cat, d: Cat, b: Box) -> Formula:
        """No two cats share a box."""
        return implies(inside(c, b) & inside(d, b), same(c, d))

    made.invariant(alone)
    with pytest.raises(LogicError, match="two declarations are called alone; rename one"):
        made.invariant(alone)
    with pytest.raises(LogicError, match="two relations are called inside; rename one"):
        made.relation("inside", Cat, sentence="the cat is at home")


def test_a_solver_must_not_take_two_things_for_one() -> None:
    made, where, _ = boxes()

    @made.action
    def sit(do: Do, c: Cat, inside: Relation[Cat, Box]) -> None:
        """Cat {c} sits down in {inside}."""
        do.becomes(where, lambda d, b: where(d, b) | (same(c, d) & inside(d, b)))

    assert list(made.actions.values()) == [sit]
    with pytest.raises(LogicError, match="possible/sit has two things called inside"):
        list(obligations(made))


def test_a_claim_is_about_members() -> None:
    def chosen(pick: Relation[Cat]) -> Formula:
        """Is about a choice."""
        return some(Cat, lambda c: pick(c))

    with pytest.raises(LogicError, match="chosen has a parameter that is no member of a sort"):
        claim(chosen)


def test_members_of_the_wrong_sort_are_refused() -> None:
    with pytest.raises(LogicError, match=r"inside is used with other members than \(Cat, Box\)"):
        INSIDE(Box("b"), Cat("c"))  # pyright: ignore[reportArgumentType]


def test_what_is_taken_away_has_to_be_there() -> None:
    for wrong in (
        lambda: fence.without_guard("free", "nothing"),
        lambda: fence.without_guard("nothing", "owned"),
        lambda: fence.without_invariant("nothing"),
        lambda: fence.claiming("nothing"),
    ):
        with pytest.raises(LogicError, match=r"fence has no .* 'nothing'; it has "):
            wrong()


@pytest.mark.parametrize("whole", [fence, queue], ids=lambda whole: whole.name)
def test_every_declaration_is_told_in_a_sentence(whole: Protocol) -> None:
    for action in whole.actions.values():
        told = action.sentence.format(**{parameter.name: "X" for parameter in action.parameters})
        assert told.endswith((".", "X", "X."))
        assert told.count("X") >= len(action.parameters)
    for made in (*whole.conjuncts.values(), *whole.claims.values(), *whole.axioms.values()):
        assert made.sentence.endswith(".")
