"""Lowering of a bound spec: every function as dialect text, and the `check` and `expand` that the search calls.

A lowered function takes the addresses of the state and of the successor, then its parameters. One that can fail returns a
status: 0 done, -1 disabled (a `require`), a positive number for the site at which the spec left its own bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....spec.lang import tree as t
from ....spec.lang.bind import BoundSpec, Property, Rule
from ....spec.lang.declare import WITNESS_KINDS
from ....spec.lang.errors import BoundsError, Place
from ....spec.lang.source import left_sides, tree_of
from ..watch import condition_number
from .emit import Sites
from .lower_statements import FunctionLowering, Made
from .pack import CellLayout, Packing
from .program import MAX_MASK_BITS, Program

STATE_KINDS = ("always", "quiescent")


class Lowering:
    """Makes the program of a bound spec. `failing` and `witnesses` number the bits of the search's masks."""

    def __init__(self, bound: BoundSpec, *, symmetry: bool) -> None:
        self.bound, self.values = bound, bound.values
        self.layout = CellLayout(bound.shape)
        self.packing = Packing(self.layout)
        self.sites = Sites()
        self.made: dict[t.Function, Made] = {}
        self.texts: list[str] = []
        self.permutable = bound.permutable() if symmetry else {}
        self.failing = [p for p in bound.properties if p.kind in (*STATE_KINDS, "step")]
        self.witnesses = [p for p in bound.properties if p.kind in WITNESS_KINDS]
        for what, found in (("properties", self.failing), ("witnesses", self.witnesses)):
            if len(found) > MAX_MASK_BITS:
                rule = f"{len(found)} {what}, the native engine takes {MAX_MASK_BITS} at once"
                raise BoundsError(f"{rule}; name some with --property, or use --engine reference")
        self.covers: list[tuple[str, int]] = []
        assert bound.spec.elaborated is not None
        self.elaborated = bound.spec.elaborated

    def function(self, function: t.Function) -> Made:
        """A helper, lowered once."""
        if function not in self.made:
            self.made[function] = self._add(FunctionLowering(self, function, self._name(function)).lower())
        return self.made[function]

    def _name(self, function: t.Function) -> str:
        return f"f{len(self.made)}_{function.name}"

    def _add(self, made: Made) -> Made:
        self.texts.append(made.text)
        return made

    def program(self) -> Program:
        """The whole program."""
        check, expand = self.check(), self._expand()
        return Program(
            text="\n".join([self.packing.source(), self._canon(), *self.texts, check, expand]),
            words=self.packing.words,
            cell_bytes=self.layout.bytes,
            max_out=max(1, sum(rule.count for rule in self.bound.actions)),
            actions=max(1, len(self.bound.actions)),
            properties=len(self.failing),
            witnesses=len(self.witnesses),
            covers=len(self.covers),
            symmetry=bool(self.permutable),
        )

    def _canon(self) -> str:
        if not self.permutable:
            return ""
        from .canon import canon_source

        return canon_source(self.bound.shape, self.permutable, self.layout)

    def site(self, number: int) -> tuple[Place, str]:
        """The place and rule of a site."""
        return next(site for site, n in self.sites.found.items() if n == number)

    # ---- properties

    def _property(self, prop: Property) -> Made:
        cover = len(self.covers)
        if prop.kind in (*STATE_KINDS, "step"):
            self.covers += [(prop.name, k) for k in range(len(left_sides(tree_of(prop.declared.function))))]
        function = self.elaborated.of(prop.declared.function)
        states = 2 if prop.kind == "step" else 1
        return self._add(FunctionLowering(self, function, f"p{len(self.texts)}_{function.name}", states, cover).lower())

    def _condition(self, prop: Property) -> Made:
        assert prop.declared.declaration.condition is not None
        return self.function(self.elaborated.of(prop.declared.declaration.condition))

    def _evaluate(self, made: Made, arguments: str, failed: str) -> list[str]:
        """Lines that leave the truth value of a property in `v`; `failed` is done where it hits a spec error."""
        if not made.can_fail:
            return [f"v = {made.name}({arguments})"]
        return [f"st = {made.name}({arguments}, ret)", "if unlikely(st != 0):", *failed.splitlines(), "v = load64(ret)"]

    def check(self) -> str:
        """`check(cells, out, cover)`: the masks of failing properties and reached witnesses of a state; returns a site or 0."""
        lines = ["ret = alloca(8)", "failed = 0", "reached = 0", "store64(out, 0)", "store64(out + 8, 0)"]
        error = "    return st"
        for bit, prop in enumerate(self.failing):
            if prop.kind == "step":
                continue
            made = self._property(prop)
            body = self._evaluate(made, "cells, cells, cover", error)
            body += ["if not v:", f"    failed = failed | {1 << bit}"]
            if prop.kind == "quiescent":
                lines += self._evaluate(self._condition(prop), "cells, cells, cells", error)
                body = [f"store8(cover + {self._note(prop)}, 1)", *body]
                body = ["if v:", *("    " + line for line in body)]
            lines += body
        for prop in self.bound.properties:
            if prop.kind == "leads_to":
                lines += self._evaluate(self._condition(prop), "cells, cells, cells", error)
                lines += ["if v:", f"    store8(cover + {self._note(prop)}, 1)"]
        for bit, prop in enumerate(self.witnesses):
            lines += self._evaluate(self._property(prop), "cells, cells, cover", error)
            lines += ["if v:", f"    reached = reached | {1 << bit}"]
        lines += ["store64(out, failed)", "store64(out + 8, reached)", "return 0"]
        return _function("check", "cells, out, cover", lines)

    def check_step(self) -> str:
        """`check_step(cells, d, out, cover)`: the mask of step properties that fail on a transition; returns a site or 0."""
        lines = ["ret = alloca(8)", "failed = 0", "store64(out, 0)"]
        for bit, prop in enumerate(self.failing):
            if prop.kind == "step":
                lines += self._evaluate(self._property(prop), "cells, d, cover", "    return st")
                lines += ["if not v:", f"    failed = failed | {1 << bit}"]
        return _function("check_step", "cells, d, out, cover", [*lines, "store64(out, failed)", "return 0"])

    def _note(self, prop: Property) -> int:
        self.covers.append((prop.name, condition_number(prop)))
        return len(self.covers) - 1

    # ---- actions

    def _expand(self) -> str:
        steps = [(bit, self._property(p)) for bit, p in enumerate(self.failing) if p.kind == "step"]
        calls: list[str] = [f"d = alloca({self.layout.bytes})"]
        after = self._after(steps)
        for rule in self.bound.actions:
            calls.append(f"x{rule.number}(cells, ctx, d)")
            self.texts.append(self._instances(rule, after))
        return _function("expand", "cells, ctx", [*calls, "return 0"])

    def _after(self, steps: Sequence[tuple[int, Made]]) -> list[str]:
        """Lines for an enabled instance of action `k`: step properties, then the transition."""
        if not steps:
            return ["emit(ctx, k, d)"]
        lines = ["ret = alloca(8)", "cover = load64(ctx + CTX_COVER)", "failed = 0"]
        error = "    spec_error(ctx, k, st)\n    return 0"
        for bit, made in steps:
            lines += self._evaluate(made, "cells, d, cover", error)
            lines += ["if not v:", f"    failed = failed | {1 << bit}"]
        self.texts.append(
            _function("after", "cells, ctx, d, k", [*lines, "if failed:", "    step_failed(ctx, failed)", "emit(ctx, k, d)"])
        )
        return ["after(cells, ctx, d, k)"]

    def _instances(self, rule: Rule, after: Sequence[str]) -> str:
        function = self.elaborated.of(rule.declared.function)
        made = self._add(FunctionLowering(self, function, f"a{rule.number}_{function.name}", 1).lower_action())
        lines = [f"k = {rule.number}"]
        names = [f"p{i}" for i in range(len(rule.domains))]
        for depth, (name, domain) in enumerate(zip(names, rule.domains, strict=True)):
            lines.append("    " * depth + f"for {name} in range({domain.start}, {domain.stop}):")
        body = [
            f"st = {made.name}({', '.join(['cells', 'd', *names])})",
            "if st == 0:",
            *("    " + line for line in after),
        ]
        body += ["elif st > 0:", "    spec_error(ctx, k, st)"]
        lines += ["    " * len(names) + line for line in body]
        return _function(f"x{rule.number}", "cells, ctx, d", lines)


def _function(name: str, parameters: str, lines: Sequence[str]) -> str:
    return f"def {name}({parameters}):\n" + "".join(f"    {line}\n" for line in lines)
