"""Lowering of loops, quantifiers, calls of helpers and methods of places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....spec.lang import tree as t
from ....spec.lang.layout import Leaf, SeqShape, SetShape, describe_leaf
from .emit import TOO_LARGE, Address, Value
from .lower_expressions import ExpressionLowering, acts


class CallLowering(ExpressionLowering):
    """Lowers what runs other code: loops and calls."""

    # ---- quantifiers

    def _quantified(self, node: t.Quantified) -> Value:
        """A quantifier looks at every element, so that a spec error does not depend on their order.

        Where none can fail, and none is noted as a left side that holds, it stops once it is decided.
        """
        name = self.emit.name("q")
        self.emit.line(f"{name} = {int(node.op == 'all')}")
        could_fail, self.emit.can_fail = self.emit.can_fail, False
        with self.emit.aside() as lines:
            self._clauses(node, node.clauses, name, leaves=node.op in ("all", "any"))
        if self.emit.can_fail or any("store8(cover" in str(text) for _, text in lines):
            with self.emit.aside() as lines:
                self._clauses(node, node.clauses, name, leaves=False)
        self.emit.can_fail |= could_fail
        self.emit.lines += lines
        low, high = (0, 1) if node.op in ("all", "any") else self.leaf_of(node.type)
        return Value(name, low, high)

    def _clauses(self, node: t.Quantified, clauses: tuple[t.Clause, ...], name: str, *, leaves: bool) -> None:
        if not clauses:
            self._element_of(node, name, leaves=leaves)
            return
        clause = clauses[0]

        def body() -> None:
            opened = 0
            for condition in clause.conditions:
                value = self.value(condition)
                if value.constant == 1:
                    continue
                self.emit.line(f"if {value.text}:")
                self.emit.depth += 1
                opened += 1
            self._clauses(node, clauses[1:], name, leaves=leaves)
            if opened and self.emit.lines[-1][0] < self.emit.depth:
                self.emit.line("pass")
            self.emit.depth -= opened
            if len(clauses) > 1 and leaves:
                with self.emit.block(f"if {name} {'==' if node.op == 'all' else '!='} 0:"):
                    self.emit.line("break")

        self.loop(clause.loop, body)

    def _element_of(self, node: t.Quantified, name: str, *, leaves: bool) -> None:
        if node.side is not None:
            self.emit.line(f"store8(cover + {self.cover + node.side}, 1)")
        value = self.value(node.element)
        if node.op == "sum":
            if node.element.type != t.BOOL:
                value = self.is_defined(value, node.element)
            value = self.emit.keep(value)
            if not value.within(-(1 << 40), 1 << 40):
                self.emit.fail_if(f"add_overflows({name}, {value.text})", node.place, TOO_LARGE)
            self.emit.line(f"{name} = {name} + {value.text}")
        elif node.op == "set":
            member = self.member(value, node.element, node.type.index)
            self.emit.line(f"{name} = {name} | (1 << {member.text})")
        else:
            test = f"if not {value.text}:" if node.op == "all" else f"if {value.text}:"
            with self.emit.block(test):
                self.emit.line(f"{name} = {int(node.op == 'any')}")
                if leaves:
                    self.emit.line("break")

    def loop(self, loop: t.Loop, body: Callable[[], None]) -> None:
        """Emit a loop around what `body` emits."""
        i = self.emit.name("i")
        if loop.kind == "range":
            assert loop.start is not None
            assert loop.stop is not None
            start = self.pure(loop.start) if acts(loop.stop) else self.value(loop.start)
            stop = self.value(loop.stop)
            start, stop = self.is_defined(start, loop.start), self.is_defined(stop, loop.stop)
            with self.emit.block(f"for {i} in range({start.text}, {stop.text}):"):
                self._bind(loop, Value(i, start.low, max(start.low, stop.high - 1)), body)
        elif loop.kind == "items":
            assert loop.source is not None
            source = self.settled(self.address(loop.source))
            count = self.emit.keep(self.length(source))
            with self.emit.block(f"for {i} in range({count.text}):"):
                slot = self.slot(source, f"({count.text} - 1 - {i})" if loop.backwards else i)
                if isinstance(loop.type, t.PlaceType):
                    self._name_place(loop.variable, slot)
                    body()
                else:
                    self._bind(loop, self._load(slot), body)
        else:
            assert loop.source is not None
            mask = self.emit.name("m")
            self.emit.line(f"{mask} = {self.value(loop.source).text}")
            with self.emit.block(f"while {mask}:"):
                self.emit.line(f"{i} = ctz({mask})")
                self.emit.line(f"{mask} = {mask} & ({mask} - 1)")
                self._bind(loop, Value(i, *self.leaf_of(loop.type)), body)

    def _bind(self, loop: t.Loop, value: Value, body: Callable[[], None]) -> None:
        if loop.variable is None:
            body()
            return
        self.emit.line(f"l_{loop.variable} = {value.text}")
        before = self.singles.get(loop.variable)
        if loop.variable not in self.reassigned:
            self.singles[loop.variable] = Value("", value.low, value.high)
        body()
        self.singles.pop(loop.variable, None)
        if before is not None:
            self.singles[loop.variable] = before

    def _name_place(self, name: str | None, address: Address) -> None:
        if name is not None:
            self.emit.line(f"l_{name} = {address.text}")

    # ---- calls

    def _call(self, node: t.Call) -> Value:
        value = self.call(node)
        assert value is not None
        return value

    def call(self, node: t.Call) -> Value | None:
        """Call a helper; a failure inside it is passed on."""
        made = self.owner.function(node.function)
        moves = any(map(acts, node.arguments))
        arguments = [*self.roots, *(self._argument(a, moves=moves) for a in node.arguments)]
        result = None if node.type is None else self.emit.name("r")
        if not made.can_fail:
            call = f"{made.name}({', '.join(arguments)})"
            self.emit.line(call if result is None else f"{result} = {call}")
        else:
            self.emit.can_fail = True
            status = self.emit.name("st")
            if result is not None:
                arguments.append(f"ret_{result}")
                self.emit.line(f"ret_{result} = alloca(8)")
            self.emit.line(f"{status} = {made.name}({', '.join(arguments)})")
            with self.emit.block(f"if {status} != 0:"):
                self.emit.line(f"return {status}")
            if result is not None:
                self.emit.line(f"{result} = load64(ret_{result})")
        return None if result is None else Value(result, *self.leaf_of(node.type))

    def _argument(self, node: t.Expr, *, moves: bool) -> str:
        if isinstance(node.type, t.PlaceType):
            address = self.address(node)
            return self.settled(address).text if moves else address.text
        return self.pure(node).text

    def _method(self, node: t.Method) -> Value:
        value = self.method(node)
        assert value is not None
        return value

    def method(self, node: t.Method) -> Value | None:
        """A method of a sequence, set or other place."""
        base, name = self.address(node.base), node.name
        if any(map(acts, node.arguments)):
            base = self.settled(base)
        shape = base.shape
        if isinstance(shape, SetShape) and name in ("add", "discard"):
            value = self.member(self.value(node.arguments[0]), node.arguments[0], node.base.type.type.index)
            change = f"| (1 << {value.text})" if name == "add" else f"& ~(1 << {value.text})"
            self.emit.line(self.layout.store(shape, base.text, f"{self._load(base).text} {change}"))
            return None
        if name == "clear":
            self.blank(base)
            return None
        assert isinstance(shape, SeqShape)
        if name in ("append", "push_front", "insert"):
            at = self.kept(node.arguments[0]) if name == "insert" else None
            self.insert(name, base, at, node.arguments[-1], node.place)
            return None
        if name == "grow":
            self.grow(base, node.place)
            return None
        return self.take(name, base, [self.kept(a) for a in node.arguments], node.place)

    def fitted(self, value: Value, leaf: Leaf, node: t.Expr) -> Value:
        """A scalar checked against the cell that it is to be stored in."""
        rule = f"a value is stored where {describe_leaf(leaf)} is declared"
        if leaf.maybe and isinstance(node.type, t.Scalar) and not node.type.maybe and value.low < 0:
            return self.emit.check_range(value, 0, leaf.high, node.place, rule)
        if not leaf.maybe and isinstance(node.type, t.Scalar) and node.type.maybe:
            value = self.is_defined(value, node)
        return self.emit.check_range(value, leaf.low, leaf.high, node.place, rule)

    def insert(self, name: str, base: Address, at: Value | None, item: t.Expr, place: Any) -> None:
        """append, push_front and insert."""
        shape = base.shape
        assert isinstance(shape, SeqShape)
        if isinstance(shape.item, Leaf):
            new = self.fitted(self.pure(item), shape.item, item)
            slot = self.open(name, base, at, place)
            self.emit.line(self.layout.store(shape.item, slot.text, new.text))
        elif isinstance(shape.item, SetShape):
            new = self.pure(item)
            slot = self.open(name, base, at, place)
            self.emit.line(self.layout.store(shape.item, slot.text, new.text))
        else:
            held = self.hold(self.address(item))
            self.copy(self.open(name, base, at, place), held)
