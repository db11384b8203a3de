"""A spec bound to bounds: its own functions, run as Python on states.

Binding gives every function of the spec a copy of its module's names in which bounds are numbers and switches are
strings; the code objects stay the same, so breakpoints and line numbers work.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from .bounds import Count, Index, Number, Switch, number_at
from .declare import fresh
from .errors import BoundsError, Disabled, Place, SpecError
from .layout import MAX_CELLS, Leaf, RecordShape, SetShape, State, leaves, shape_of
from .spec import Declared, Parameter, Spec
from .types import Bool, Int, Member, SetOf, as_type
from .views import Cells, read

Arguments = tuple[int, ...]
"""Values of an action's parameters: members and numbers as they are, booleans 0 or 1, sets as bit masks."""

MAX_INSTANCES = 1_000_000


@dataclass(frozen=True)
class Rule:
    """An action or initial state at these bounds: its place in declaration order, and every choice of arguments."""

    declared: Declared
    function: Callable[..., Any]
    number: int
    domains: tuple[range, ...]

    @property
    def name(self) -> str:
        """Its name."""
        return self.declared.name

    def choices(self) -> Iterator[Arguments]:
        """Every choice of arguments, in order."""
        return itertools.product(*self.domains)

    @property
    def count(self) -> int:
        """How many choices of arguments there are."""
        total = 1
        for domain in self.domains:
            total *= domain.stop - domain.start  # len() does not count beyond 63 bits
        return total


@dataclass(frozen=True)
class Property:
    """A property at these bounds; `condition` is the bound predicate of a quiescent or leads-to property."""

    declared: Declared
    function: Callable[..., Any]
    condition: Callable[..., Any] | None

    @property
    def name(self) -> str:
        """Its name."""
        return self.declared.name

    @property
    def kind(self) -> str:
        """always, step, quiescent, reachable, eventually or leads_to."""
        return self.declared.declaration.kind


@dataclass(frozen=True)
class LoopInvariant:
    """What holds at the head of a loop at these bounds, and for each of the locals that it names what they can be."""

    declared: Declared
    function: Callable[..., Any]
    domains: tuple[range, ...]

    @property
    def name(self) -> str:
        """Its name."""
        return self.declared.name


class BoundSpec:
    """A spec at given bounds: layout, initial states, transitions and properties, evaluated as plain Python.

    `properties` are those to check, which may be fewer than are declared; `every` are all, and the lemmas.
    With `enumerable`, there must be few enough instances of its actions to try them all; without, single ones are taken.
    """

    def __init__(self, spec: Spec, given: Mapping[str, int | str], *, enumerable: bool = True) -> None:
        self.spec = spec
        self.enumerable = enumerable
        self.values = spec.values(given)
        shape = shape_of(spec.state, self.values)
        assert isinstance(shape, RecordShape)
        self.shape = shape
        if shape.size > MAX_CELLS:
            raise BoundsError(f"a state has {shape.size:,} cells at these bounds, the limit is {MAX_CELLS:,}; lower them")
        self._globals: dict[int, dict[str, Any]] = {}
        self._functions: dict[FunctionType, FunctionType] = {}
        self._modules = {id(m.__dict__) for m in spec.modules}
        if spec.elaborated is not None:
            self._modules |= {id(function.__globals__) for function in spec.elaborated.written}
        self._files = {str(path) for path in spec.sources}
        self.inits = self._rules(spec.inits)
        self.actions = self._rules(spec.actions)
        self.properties = tuple(self._property(d) for d in spec.properties if self.applicable(d))
        self.lemmas = tuple(self._property(d) for d in spec.lemmas if self.applicable(d))
        self.every = (*self.lemmas, *self.properties)
        self.loops = tuple(self._invariant(d) for d in spec.loops if self.applicable(d))
        declared = (*spec.actions, *spec.properties, *spec.lemmas)
        self.not_applicable = tuple(d.name for d in declared if not self.applicable(d))

    def applicable(self, declared: Declared) -> bool:
        """Whether the `when=` of a declaration holds at these bounds."""
        when = declared.declaration.when
        if when is None:
            return True
        try:
            return bool(self.rebind(when)())
        except Exception as error:
            raise BoundsError(f"{declared.place}: when= of {declared.name}: {type(error).__name__}: {error}") from None

    def rebind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with this spec's bounds in place of their names."""
        assert isinstance(function, FunctionType)
        if function not in self._functions:
            made = FunctionType(
                function.__code__,
                self._names(function.__globals__),
                function.__name__,
                function.__defaults__,
                function.__closure__,
            )
            made.__kwdefaults__ = function.__kwdefaults__
            self._functions[function] = made
        return self._functions[function]

    def _names(self, original: dict[str, Any]) -> dict[str, Any]:
        if id(original) not in self._globals:
            made = {"all": _all, "any": _any, **original}
            self._globals[id(original)] = made
            for name, value in original.items():
                if isinstance(value, Index):
                    made[name] = Count.of(value, self.values)
                elif isinstance(value, Number):
                    made[name] = number_at(value, self.values)
                elif isinstance(value, Switch):
                    made[name] = self.values[value.name]
                elif value is fresh:
                    made[name] = self._fresh
                elif isinstance(value, FunctionType) and id(value.__globals__) in self._modules:
                    made[name] = self.rebind(value)
        return self._globals[id(original)]

    def _fresh(self, kind: Any) -> Any:
        shape = shape_of(as_type(kind), self.values)
        return read(Cells(shape.blank), 0, shape)

    def _rules(self, declared: tuple[Declared, ...]) -> tuple[Rule, ...]:
        rules = tuple(
            Rule(d, self.rebind(d.function), number, tuple(self._domain(p) for p in d.parameters))
            for number, d in enumerate(d for d in declared if self.applicable(d))
        )
        total = sum(rule.count for rule in rules)
        if self.enumerable and total > MAX_INSTANCES:
            raise BoundsError(f"{total:,} action instances at these bounds, the limit is {MAX_INSTANCES:,}; lower them")
        return rules

    def _invariant(self, declared: Declared) -> LoopInvariant:
        domains = tuple(self._domain(parameter) for parameter in declared.parameters)
        for parameter, domain in zip(declared.parameters, domains, strict=True):
            if not domain:
                raise BoundsError(f"{declared.place}: {declared.name}: {parameter.name} has no value at these bounds")
        return LoopInvariant(declared, self.rebind(declared.function), domains)

    def _domain(self, parameter: Parameter) -> range:
        match parameter.type:
            case Member(index):
                return range(number_at(index, self.values))
            case Int(low, high):
                return range(number_at(low, self.values), number_at(high, self.values) + 1)
            case Bool():
                return range(2)
            case SetOf(index):
                return range(1 << number_at(index, self.values))
            case _:
                raise TypeError(parameter)

    def _property(self, declared: Declared) -> Property:
        condition = declared.declaration.condition
        return Property(declared, self.rebind(declared.function), self.rebind(condition) if condition else None)

    def call(self, function: Callable[..., Any], cells: Cells, *more: Any) -> Any:
        """Run a function of the spec on cells; every failure inside becomes a `SpecError` with its place."""
        try:
            return function(read(cells, 0, self.shape), *more)
        except Disabled:
            raise
        except SpecError as error:
            raise SpecError(error.rule, self._blame(error)) from error
        except RecursionError as error:
            raise SpecError("helpers call each other without end", self._blame(error)) from error
        except Exception as error:
            raise SpecError(f"{type(error).__name__}: {error}", self._blame(error)) from error

    def _blame(self, error: BaseException) -> Place | None:
        place, trace = None, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename in self._files:
                place = Place(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
            trace = trace.tb_next
        return place

    def initial(self) -> list[tuple[Rule | None, Arguments, State]]:
        """The initial states, with the @init function and arguments that make each; blank if the spec has none."""
        if not self.inits:
            return [(None, (), self.shape.blank)]
        made = ((rule, args, self.after(self.shape.blank, rule, args)) for rule in self.inits for args in rule.choices())
        return [(rule, args, after) for rule, args, after in made if after is not None]

    def after(self, state: State, rule: Rule, args: Arguments) -> State | None:
        """The successor by one action instance, or None where it is disabled; `SpecError` where the spec is wrong."""
        cells = Cells(state)
        try:
            self.call(rule.function, cells, *self.arguments(rule, args))
        except Disabled:
            return None
        return tuple(cells)

    def arguments(self, rule: Rule, args: Arguments) -> tuple[Any, ...]:
        """Arguments as the spec's function takes them: booleans and sets decoded."""
        return tuple(_argument(p, value) for p, value in zip(rule.declared.parameters, args, strict=True))

    def transitions(self, state: State) -> Iterator[tuple[Rule, Arguments, State]]:
        """Every enabled action instance with its successor, in order."""
        for rule in self.actions:
            for args in rule.choices():
                after = self.after(state, rule, args)
                if after is not None:
                    yield rule, args, after

    def invariant_holds(self, loop: LoopInvariant, states: Sequence[State], named: Arguments) -> bool:
        """Whether an invariant of a loop holds at its head with these locals; `states` as it takes them."""
        first, *more = states
        shown = [_argument(p, value) for p, value in zip(loop.declared.parameters, named, strict=True)]
        return bool(self.call(loop.function, Cells(first), *(read(Cells(s), 0, self.shape) for s in more), *shown))

    def holds(self, prop: Property, state: State, after: State | None = None) -> bool:
        """Whether a property's own formula holds in a state (for a step property: on a transition)."""
        more = () if after is None else (read(Cells(after), 0, self.shape),)
        return bool(self.call(prop.function, Cells(state), *more))

    def condition_holds(self, prop: Property, state: State) -> bool:
        """Whether the condition of a quiescent or leads-to property holds in a state."""
        assert prop.condition is not None
        return bool(self.call(prop.condition, Cells(state)))

    def cells(self) -> Iterator[tuple[int, Leaf | SetShape]]:
        """Every cell of a state with what it holds."""
        return leaves(self.shape)

    def indices(self) -> dict[str, int]:
        """The indices of the spec that bounds give a size, by name."""
        return {n: int(self.values[n]) for n, b in self.spec.bounds.items() if isinstance(b, Index)}

    def permutable(self) -> dict[str, int]:
        """The indices that may be relabelled (none of the spec's functions depends on their order), with their sizes."""
        return {name: size for name, size in self.indices().items() if name not in self.spec.ordered}

    def show_arguments(self, rule: Rule, args: Arguments) -> dict[str, Any]:
        """Arguments by name as plain values: members as their labels, sets as sorted lists of labels."""
        return {p.name: _shown(p, value) for p, value in zip(rule.declared.parameters, args, strict=True)}


def _all(elements: Iterable[Any]) -> bool:
    """`all` of every element, also past the first that is false: a spec error in one does not depend on their order."""
    return all(list(elements))


def _any(elements: Iterable[Any]) -> bool:
    """`any` of every element, likewise."""
    return any(list(elements))


def _argument(parameter: Parameter, value: int) -> Any:
    if isinstance(parameter.type, Bool):
        return bool(value)
    if isinstance(parameter.type, SetOf):
        return frozenset(i for i in range(value.bit_length()) if value >> i & 1)
    return value


def _shown(parameter: Parameter, value: int) -> Any:
    match parameter.type:
        case Bool():
            return bool(value)
        case Member(index):
            return index.label(value)
        case SetOf(index):
            return [index.label(i) for i in range(value.bit_length()) if value >> i & 1]
        case _:
            return value
