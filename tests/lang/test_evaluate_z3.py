"""The evaluator's terms in Z3: a concrete state put into a symbolic successor, and bounded model checking."""

import random
from pathlib import Path
from typing import Any

from fencepost.checker.prove.integers import Integers
from fencepost.checker.prove.solver import z3
from fencepost.checker.prove.terms import Term, Terms, assignment, symbolic_cells
from fencepost.spec.lang import Arguments, BoundSpec, Rule, load_file
from fencepost.spec.lang.evaluate import Evaluator

from . import agreement

KVFENCE = Path(__file__).resolve().parents[2] / "benchmarks" / "kvfence.py"
TINY = {"requests": 2, "blocks": 2, "steps": 2, "per_request": 2}


def kvfence(fence: int) -> BoundSpec:
    """The benchmark model, as small as it gets."""
    return BoundSpec(load_file(KVFENCE), {**TINY, "fence": fence})


def values(at: dict[str, int], integers: Integers, cells: list[Term]) -> list[tuple[Any, Any]]:
    """What Z3 is to put in for the variables of cells."""
    given: list[tuple[Any, Any]] = []
    for variable in (member for cell in cells for member in (cell.args if cell.sort == "set" else (cell,))):
        value = at[variable.value]
        given.append((integers.of(variable), z3.BoolVal(bool(value)) if variable.sort == "truth" else z3.IntVal(value)))
    return given


def test_a_state_put_into_the_successor() -> None:
    bound, domain, integers = kvfence(1), Terms(), Integers()
    evaluator, cells = Evaluator(bound, domain), symbolic_cells(bound, domain)
    states = random.Random(1).sample(agreement.reached(bound, 200), 5)
    given = {state: values(assignment(bound, state), integers, cells) for state in states}

    def constant(term: Term, state: tuple[int, ...]) -> int:
        if term.sort == "set":
            return sum(constant(member, state) << i for i, member in enumerate(term.args))
        made = z3.simplify(z3.substitute(integers.of(term), given[state]))
        return int(z3.is_true(made)) if z3.is_bool(made) else made.as_long()

    for rule in bound.actions:
        for args in rule.choices():
            made = evaluator.action(cells, rule, evaluator.arguments(rule, args))
            for state in states:
                after = bound.after(state, rule, args)
                assert constant(made.enabled, state) == (after is not None)
                assert all(constant(o.condition, state) for o in made.obligations)
                if after is not None:
                    assert tuple(constant(cell, state) for cell in made.cells) == after


class Unrolled:
    """The model unrolled from its initial state: in each step one action instance, chosen by a variable."""

    def __init__(self, bound: BoundSpec) -> None:
        self.bound, self.domain, self.integers = bound, Terms(), Integers()
        self.evaluator = Evaluator(bound, self.domain)
        self.instances = [(rule, args) for rule in bound.actions for args in rule.choices()]
        self.picks: list[Term] = []
        self.assumed: list[Term] = []
        self.obliged: list[Term] = []
        ((_, _, first),) = bound.initial()
        self.cells = list(self.evaluator.cells(first))

    def step(self) -> None:
        """Unroll one more step; what would leave the spec's bounds counts where the instance is the chosen one."""
        domain = self.domain
        pick = domain.variable(f"step{len(self.picks)}", 0, len(self.instances) - 1)
        possible, after = domain.no, self.cells
        for number, (rule, args) in enumerate(self.instances):
            made = self.evaluator.action(self.cells, rule, self.evaluator.arguments(rule, args))
            here = domain.equal(pick, domain.number(number))
            possible = domain.either(possible, domain.both(here, made.enabled))
            after = [domain.choose(here, new, old) for new, old in zip(made.cells, after, strict=True)]
            self.obliged += [o.condition for o in made.obligations]
        self.picks.append(pick)
        self.assumed.append(possible)
        self.cells = after

    def find(self, wrong: Term) -> list[tuple[Rule, Arguments]] | None:
        """Action instances that lead to what is wrong in exactly as many steps as are unrolled, or None."""
        integers, solver = self.integers, z3.Solver()
        solver.add(*map(integers.of, (*self.assumed, wrong)))
        solver.add(*(fact for pick in self.picks for fact in integers.within(pick)))
        if solver.check() != z3.sat:
            return None
        return [self.instances[integers.value(pick, solver.model())] for pick in self.picks]

    def violation(self) -> list[tuple[Rule, Arguments]] | None:
        """A trace to a state in which an invariant fails."""
        safe = self.domain.yes
        for prop in self.bound.properties:
            if prop.kind == "always":
                safe = self.domain.both(safe, self.evaluator.holds(prop, self.cells)[0])
        return self.find(self.domain.negation(safe))


def test_bounded_search_finds_the_violation() -> None:
    unrolled = Unrolled(kvfence(0))
    for _ in range(3):
        assert unrolled.violation() is None
        unrolled.step()
    assert unrolled.violation() is None
    unrolled.step()
    found = unrolled.violation()
    assert found is not None
    assert [rule.name for rule, _ in found][::3] == ["admit_local", "admit_remote"]
    state = unrolled.bound.initial()[0][2]
    for rule, args in found:
        after = unrolled.bound.after(state, rule, args)
        assert after is not None
        state = after
    assert not all(unrolled.bound.holds(p, state) for p in unrolled.bound.properties if p.kind == "always")


def test_bounded_search_of_the_correct_model() -> None:
    unrolled = Unrolled(kvfence(1))
    for _ in range(4):
        unrolled.step()
        assert unrolled.violation() is None
    fine = unrolled.domain.yes
    for obligation in unrolled.obliged:
        fine = unrolled.domain.both(fine, obligation)
    assert unrolled.find(unrolled.domain.negation(fine)) is None
