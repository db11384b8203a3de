"""Lowering of statements, and of whole functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ....spec.lang import tree as t
from ....spec.lang.layout import Leaf, SetShape
from .emit import Emitter, Returning, Value
from .lower_calls import CallLowering
from .lower_expressions import acts

if TYPE_CHECKING:
    from .lower import Lowering


@dataclass(frozen=True)
class Made:
    """A lowered function: its name and text, and whether it returns a status (0 done, -1 disabled, else an error site)."""

    name: str
    text: str
    can_fail: bool


class FunctionLowering(CallLowering):
    """Lowers one function.

    `states` is how many of its first parameters are the state and successor themselves (those of an action or property; a
    helper gets every argument); `cover` is the number of a property's first left side.
    """

    def __init__(self, owner: Lowering, function: t.Function, name: str, states: int = 0, cover: int | None = None) -> None:
        counts = Counter(assigned(function.body))
        counts.update(parameter for parameter, _ in function.parameters)
        super().__init__(owner, Emitter(owner.sites), frozenset(n for n, c in counts.items() if c > 1), cover or 0)
        self.function, self.name, self.states = function, name, states
        self.covers = cover is not None

    def lower(self) -> Made:
        """The function as dialect text: state, successor, parameters, then cover bytes and the place of its result."""
        self.block(self.function.body)
        return self._finish()

    def lower_action(self) -> Made:
        """The same for an action: leading guards are tried on the state `s` before it is copied to the successor `t`."""
        body = list(self.function.body)
        guards = 0
        while guards < len(body) and _is_guard(body[guards]):
            guards += 1
        self.block(body[:guards])
        self.emit.line(f"copy(t, s, {self.layout.bytes})")
        self.roots = ["t", "t"]
        self.block(body[guards:])
        self.emit.can_fail = True
        return self._finish()

    def _finish(self) -> Made:
        returns = self.function.returns is not None
        parameters = ["s", "t", *(f"l_{name}" for name, _ in self.function.parameters[self.states :])]
        parameters += ["cover"] * self.covers + ["ret"] * (returns and self.emit.can_fail)
        text = self.emit.render(f"def {self.name}({', '.join(parameters)}):", returns=returns)
        return Made(self.name, text, self.emit.can_fail)

    # ---- statements

    def block(self, statements: Sequence[t.Stmt]) -> None:
        """Lower statements in order."""
        for statement in statements:
            getattr(self, "_do_" + type(statement).__name__.lower())(statement)

    def _do_setlocal(self, node: t.SetLocal) -> None:
        if isinstance(node.value.type, t.PlaceType):
            self._name_place(node.name, self.address(node.value))
            return
        value = self.not_negative(self.value(node.value), node.value, self.function.locals.get(node.name))
        self.emit.line(f"l_{node.name} = {value.text}")
        if node.name not in self.reassigned:
            self.singles[node.name] = Value("", value.low, value.high)

    def _do_store(self, node: t.Store) -> None:
        if node.op is not None:
            self._update(node)
            return
        if isinstance(node.target.type, t.PlaceType) and isinstance(node.value.type, t.PlaceType):
            held = self.hold(self.address(node.value))
            self.copy(self.address(node.target), held)
            return
        value = self.pure(node.value) if acts(node.target) else self.value(node.value)
        target = self.address(node.target)
        if isinstance(target.shape, Leaf):
            value = self.fitted(value, target.shape, node.value)
            if target.shape.low == target.shape.high:
                return
        assert isinstance(target.shape, Leaf | SetShape)
        self.emit.line(self.layout.store(target.shape, target.text, value.text))

    def _update(self, node: t.Store) -> None:
        assert node.op is not None
        target = self.address(node.target)
        if acts(node.value):
            target = self.settled(target)
        shape = target.shape
        assert isinstance(shape, Leaf | SetShape)
        before = self._load(target)
        kind = t.SetValue(None) if isinstance(shape, SetShape) else t.INT
        held = t.Local(kind, node.place, "__held")
        self.singles["__held"] = before
        name = self.emit.name("h")
        self.emit.line(f"{name} = {before.text}")
        self.emit.line(f"l___held = {name}")
        if isinstance(shape, SetShape):
            value = self.value(t.Binary(t.SetValue(node.target.type.type.index), node.place, node.op, held, node.value))
        else:
            left: Any = replace(held, type=node.target.type)
            value = self.fitted(self._binary(t.Binary(t.INT, node.place, node.op, left, node.value)), shape, node.value)
        del self.singles["__held"]
        self.emit.line(self.layout.store(shape, target.text, value.text))

    def _do_do(self, node: t.Do) -> None:
        match node.value:
            case t.Method():
                self.method(node.value)
            case t.Call():
                self.call(node.value)
            case _:
                self.value(node.value)

    def _do_require(self, node: t.Require) -> None:
        condition = node.condition
        for part in condition.parts if isinstance(condition, t.Logic) and condition.op == "and" else (condition,):
            value = self.value(part)
            if value.constant != 1:
                self.emit.disable_if("1" if value.constant == 0 else f"not {value.text}")

    def _do_if(self, node: t.If) -> None:
        condition = self.value(node.condition)
        if condition.constant is not None:
            self.block(node.then if condition.constant else node.otherwise)
            return
        before = dict(self.singles)
        with self.emit.block(f"if {condition.text}:"):
            self.block(node.then)
        if node.otherwise:
            with self.emit.block("else:"):
                self.block(node.otherwise)
        self.singles = before

    def _do_for(self, node: t.For) -> None:
        before = dict(self.singles)
        self.loop(node.loop, lambda: self.block(node.body))
        self.singles = before

    def _do_jump(self, node: t.Jump) -> None:
        self.emit.line(node.kind)

    def _do_return(self, node: t.Return) -> None:
        text = None
        if node.value is not None:
            value = self.not_negative(self.value(node.value), node.value, self.function.returns)
            text = self.emit.keep(value).text
        self.emit.lines.append((self.emit.depth, Returning(text)))


def _is_guard(statement: t.Stmt) -> bool:
    match statement:
        case t.Require(condition=condition):
            return not acts(condition)
        case t.SetLocal(value=value):
            return not isinstance(value.type, t.PlaceType) and not acts(value)
        case _:
            return False


def assigned(body: Sequence[t.Stmt]) -> Iterator[str]:
    """The name of every local for each place that assigns it."""
    for statement in body:
        match statement:
            case t.SetLocal(name=name):
                yield name
            case t.If(then=then, otherwise=otherwise):
                yield from assigned(then)
                yield from assigned(otherwise)
            case t.For(loop=loop, body=inner):
                if loop.variable is not None:
                    yield loop.variable
                yield from assigned(inner)
            case _:
                pass
