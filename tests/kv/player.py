"""Plays actions of the KV spec one by one, as the facts about a release tell a story, and shows the state as plain Python."""

from __future__ import annotations

from typing import Any

from fencepost.spec.lang import BoundSpec, load_module
from fencepost.spec.lang.layout import decode

A, B, C = 0, 1, 2


class Player:
    """One run of the KV spec at given bounds and switches."""

    def __init__(self, **values: int | str) -> None:
        spec = load_module("fencepost.spec.kv.kv", "kv")
        self.bound = BoundSpec(spec, {name.replace("_", "-"): value for name, value in values.items()})
        self.rules = {rule.name: rule for rule in self.bound.actions}
        self.state = self.bound.initial()[0][2]

    def can(self, action: str, *arguments: int) -> bool:
        """Whether an action is enabled."""
        return self.bound.after(self.state, self.rules[action], arguments) is not None

    def do(self, action: str, *arguments: int) -> Player:
        """Take an action, which must be enabled; its step properties must hold."""
        after = self.bound.after(self.state, self.rules[action], arguments)
        assert after is not None, f"{action}{arguments} is disabled"
        self.state = after
        return self

    def submit(self, r: int, prompt: int, group: int = 0, *, remote: bool = False) -> Player:
        """A request arrives."""
        return self.do("submit", r, prompt, group, int(remote))

    def schedule(self) -> Player:
        """A step is built."""
        return self.do("schedule")

    def run(self) -> Player:
        """The device runs a step."""
        return self.do("run_step")

    def process(self, *stops: int) -> Player:
        """The oldest output is processed; these requests sampled a stop token."""
        return self.do("process", sum(1 << r for r in stops))

    def load(self, r: int) -> Player:
        """A load lands and is reported."""
        return self.do("land", r).do("report", r)

    def __getattr__(self, name: str) -> Any:
        return decode(self.bound.shape, self.state)[name]

    def fails(self) -> set[str]:
        """Invariants that do not hold in this state."""
        return {p.name for p in self.bound.properties if p.kind == "always" and not self.bound.holds(p, self.state)}
