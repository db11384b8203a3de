"""Classification: every mix of a small spec is found again, and the rows of kv tell its switches apart."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fencepost.checker.cli import kvdata
from fencepost.checker.cli.classifying import profiles, rows, switches
from fencepost.checker.cli.target import load_shipped
from fencepost.checker.conform import classify_report
from fencepost.checker.conform.classify import UNTOLD, Classification, Classifier, Profile, switches_of
from fencepost.checker.conform.experiments import Experiments, Recording, Row, against
from fencepost.checker.conform.observer import Observer
from fencepost.checker.conform.result import Kind
from fencepost.checker.model import Limits, Model
from fencepost.checker.report.terminal import console
from fencepost.checker.result import Verdict
from fencepost.impl.drivers.reference import ReferenceDriver
from fencepost.spec.lang import BoundSpec, Switch, load_file

from .specdriver import SpecDriver

DESK = load_file(Path(__file__).parent / "specs" / "desk.py")
DESK_ROWS = (
    Row("a small desk", {"loans": 3, "storm": "on"}),
    Row("more copies than readers", {"copies": 3, "loans": 2, "storm": "off"}, 6),
)
CHOICES = switches_of(DESK, DESK_ROWS)
MIXES = [dict(zip(CHOICES, choices, strict=True)) for choices in itertools.product(*CHOICES.values())]
PLAIN = Profile("plain", {name: choices[0] for name, choices in CHOICES.items()})
LAX = Profile("lax", {**PLAIN.mix, "return": "not-when-all-lent", "closing": "any"})
QUIET = ("ask", "lend", "give_back", "shut")

KV = load_shipped("kv")
INTENDED = "intended-free-order"
UNTESTABLE = {
    INTENDED: "what the authors of a release meant, which changes nothing that it does",
}
"""Switches of kv whose choices no experiment can tell apart, and why."""
UNTOLD_IN = {
    ("vllm-0.23", "victim-rule"): "blocks of the preempted come back at once, so every victim pays",
    ("vllm-0.23", "waiting-queues"): "with counted output nobody waits for old output: no request is ever skipped",
    ("vllm-0.25", "waiting-queues"): "the same",
}
"""Profiles under which a switch has no effect, and why."""


class Queueing(SpecDriver):
    """A desk at which who asks last is served first."""

    def observe(self) -> Mapping[str, Any]:
        shown = dict(super().observe())
        return {**shown, "line": shown["line"][::-1]} if "line" in shown else shown


class Late(SpecDriver):
    """A desk that is shown as shut, or as open if it is shut, after four events."""

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        super().take(action, arguments)
        self.hidden = min(4, self.hidden + 1)

    def observe(self) -> Mapping[str, Any]:
        shown = dict(super().observe())
        return {**shown, "open": not shown["open"]} if self.hidden == 4 else shown


def desk(
    mix: Mapping[str, int | str],
    kind: type[SpecDriver] = SpecDriver,
    limits: Limits | None = None,
    rows: Sequence[Row] = DESK_ROWS,
    known: Sequence[Profile] = (PLAIN, LAX),
) -> Classification:
    """Classify a desk with these switches."""

    def make(values: Mapping[str, int | str]) -> SpecDriver:
        return kind(BoundSpec(DESK, {**values, **mix}), QUIET)

    return Classifier(Experiments(DESK, rows, make, limits or Limits()), known).run()


def differing(one: Mapping[str, int | str], other: Mapping[str, int | str]) -> dict[str, int | str]:
    """The choices of one mix that another has otherwise."""
    return {name: choice for name, choice in one.items() if other[name] != choice}


@pytest.mark.parametrize("mix", MIXES, ids=lambda mix: ",".join(map(str, mix.values())))
def test_every_mix_is_found_again(mix: dict[str, str]) -> None:
    found = desk(mix)
    assert found.verdict is Verdict.HOLDS
    assert found.mix == mix
    nearest = min((PLAIN, LAX), key=lambda profile: len(differing(mix, profile.mix)))
    assert found.nearest == nearest
    assert found.flips == differing(mix, nearest.mix)
    assert all(experiment.agrees for experiment in found.experiments)
    assert {finding.switch for finding in found.findings if finding.told} == set(CHOICES)
    for profile in (PLAIN, LAX):
        assert (found.profiles[profile.name] is None) == (profile.mix == mix)


def test_evidence_is_where_the_flip_differs_from_what_was_found() -> None:
    found = desk(PLAIN.mix)
    (order,) = (finding for finding in found.findings if finding.switch == "order")
    experiment = order.told["newest"]
    assert experiment.model.bound.values["order"] == "newest"
    mismatch = experiment.mismatch
    assert mismatch is not None
    assert mismatch.kind is Kind.OBSERVATION
    assert [step.action for step in mismatch.trace.steps] == ["ask", "lend"]
    assert {difference.path for difference in mismatch.differences} == {"readers[A].copy", "shelf"}


def test_a_desk_unlike_any_mix_is_shown_where_it_differs_first() -> None:
    found = desk(LAX.mix, Queueing)
    assert found.verdict is Verdict.VIOLATED
    assert found.unlike is not None
    mismatch = found.unlike.mismatch
    assert mismatch is not None
    assert [step.action for step in mismatch.trace.steps] == ["ask", "ask"]
    assert [difference.path for difference in mismatch.differences] == ["line"]
    assert found.findings == ()


FAR = {name: choices[-1] for name, choices in CHOICES.items()}
"""Every switch of the desk is otherwise than in PLAIN."""


def test_three_flips_of_the_expected_profile_are_tried_before_a_better_mix_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none(*_: object) -> list[Mapping[str, int | str]]:
        return []

    monkeypatch.setattr(Classifier, "_better", none)
    found = desk(FAR, known=(PLAIN,))
    assert (found.verdict, found.nearest, found.flips) == (Verdict.HOLDS, PLAIN, FAR)
    assert found.tried <= 5


@pytest.mark.parametrize("first", [0, 1])
def test_of_mixes_that_agree_as_long_the_nearest_is_around_the_expected_profile(
    first: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    some = [Profile("one", {**FAR, "return": "always"}), Profile("other", {**FAR, "closing": "empty"})]
    known = (some[first], some[1 - first])
    found = desk(PLAIN.mix, Late, known=known)
    assert (found.verdict, found.nearest) == (Verdict.VIOLATED, known[0])
    classify_report.verdict(console(), classify_report.Told(found, known, 1, 1, lambda _: ""))
    assert f"; the nearest is {known[0].name} with " in (shown := capsys.readouterr().out)
    assert ", which agrees longest; " in shown


def test_no_more_than_the_switches_that_differences_concern_are_flipped_in_threes() -> None:
    experiments = Experiments(DESK, DESK_ROWS, lambda values: SpecDriver(BoundSpec(DESK, {**values, **FAR}), QUIET), Limits())
    assert experiments.concerned(CHOICES) == []
    experiments.compare(PLAIN.mix, DESK_ROWS[0])
    (recording,) = experiments.recordings
    (concerned,) = experiments.concerned(CHOICES)
    flipped = {**PLAIN.mix, concerned: FAR[concerned]}
    assert experiments.agrees_until(PLAIN.mix) == len(recording.events)
    assert experiments.agrees_until(flipped) == math.inf


ENDLESS, NOTHING = Row("paths of any length", {"copies": 1, "loans": 1, "storm": "off"}), ""
THREE, FIVE = (Row(f"paths of {n} events", {"copies": 1, "loans": 2, "storm": "off"}, n) for n in (3, 5))


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ((ENDLESS,), NOTHING),
        ((replace(ENDLESS, longest=100),), NOTHING),
        ((THREE,), " on paths of at most 3 events"),
        ((FIVE, THREE), " on paths of at most 3 to 5 events"),
        ((ENDLESS, THREE, FIVE), " on paths of at most 3 to 5 events (at 2 of 3 rows)"),
    ],
)
def test_where_a_row_ends_paths_the_verdict_says_it(
    at: tuple[Row, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    found = desk(PLAIN.mix, rows=at)
    classify_report.verdict(console(), classify_report.Told(found, (PLAIN, LAX), 1, len(at), lambda _: ""))
    assert f"behaves as plain: every transition agrees{said}; " in capsys.readouterr().out


def test_a_difference_after_the_end_of_all_paths_is_not_seen() -> None:
    assert desk(PLAIN.mix, Late, rows=(THREE,)).verdict is Verdict.HOLDS
    assert classify_report.longest(desk(PLAIN.mix, Late, rows=(THREE,))) == {THREE.name: 3}
    assert desk(PLAIN.mix, Late, rows=(FIVE,)).verdict is Verdict.VIOLATED


def test_a_limit_that_is_reached_is_undetermined_with_its_reason() -> None:
    found = desk(PLAIN.mix, limits=Limits(max_states=5))
    assert found.verdict is Verdict.UNDETERMINED
    assert found.reason == "more than 5 states (--max-states)"


def test_no_time_at_all_is_undetermined() -> None:
    found = desk(LAX.mix, limits=Limits(max_seconds=1e-9))
    assert found.verdict is Verdict.UNDETERMINED
    assert found.reason == "time limit of 1e-09 s (--max-time)"


def test_ctrl_c_is_undetermined() -> None:
    found = desk(PLAIN.mix, limits=Limits(cancelled=lambda: True))
    assert found.verdict is Verdict.UNDETERMINED
    assert found.reason == "interrupted"


def test_choices_that_no_row_tells_apart_are_those_of_the_nearest_profile() -> None:
    alone = (Row("one reader, who never waits for a copy", {"readers": 1, "copies": 1, "loans": 1, "storm": "off"}),)
    known = (Profile("newest", {**PLAIN.mix, "order": "newest"}), PLAIN)

    def make(values: Mapping[str, int | str]) -> SpecDriver:
        return SpecDriver(BoundSpec(DESK, values), QUIET)

    found = Classifier(Experiments(DESK, alone, make, Limits()), known).run()
    assert (found.verdict, found.nearest, found.flips) == (Verdict.HOLDS, known[0], {})
    (order,) = (finding for finding in found.findings if finding.switch == "order")
    assert (order.told, order.untold) == ({}, {"oldest": UNTOLD})


def test_a_recording_contradicts_exactly_the_mixes_that_lockstep_contradicts_there() -> None:
    """What was driven once is held against other mixes as if it were driven again."""
    row = DESK_ROWS[0]
    model = Model.of(DESK, {**row.bounds, **LAX.mix})

    def make(values: Mapping[str, int | str]) -> SpecDriver:
        return SpecDriver(BoundSpec(DESK, {**values, **PLAIN.mix}), QUIET)

    experiments = Experiments(DESK, (row,), make, Limits())
    found = experiments.compare(LAX.mix, row).mismatch
    (recording,) = experiments.recordings
    again = against(recording, model, Observer(model.bound))
    assert found is not None
    assert again is not None
    assert (again.kind, again.event, again.differences) == (found.kind, found.event, found.differences)
    for mix in MIXES:
        other = Model.of(DESK, {**row.bounds, **mix})
        driver = make(row.bounds)
        rules = {rule.name: rule for rule in model.bound.actions}
        fresh = Recording(driver, row, [(rules[name], args) for name, args in recording.events], model.bound)
        one, two = (against(made, other, Observer(other.bound)) for made in (recording, fresh))
        assert (one is None) == (two is None)
    assert against(recording, Model.of(DESK, {**row.bounds, **PLAIN.mix}), Observer(model.bound)) is None


# The rows of the spec kv.


def profile_mix(name: str) -> dict[str, int | str]:
    """The switches of a profile."""
    values = KV.values(kvdata.profile(name).switches)
    return {switch: values[switch] for switch in switches()}


def kv_experiments(mix: Mapping[str, int | str], only: list[str] | None = None) -> Experiments:
    """Experiments on the reference implementation with these switches, at some of the rows."""
    some = [row for row in rows() if only is None or row.name in only]
    return Experiments(KV, some, lambda values: ReferenceDriver({**values, **mix}), Limits(max_states=50_000))


def test_rows_leave_every_mechanism_switch_open_and_name_no_other() -> None:
    every = {name for name, bound in KV.bounds.items() if isinstance(bound, Switch)}
    assert set(switches()) == every - {"kv-role"}
    told = [switch for row in rows() for switch in row.tells]
    assert sorted(told) == sorted(set(switches()) - set(UNTESTABLE))


@pytest.mark.parametrize("switch", UNTESTABLE)
def test_what_no_experiment_can_tell_apart_no_action_reads(switch: str) -> None:
    mix = profile_mix("reference")
    experiments = kv_experiments(mix)
    bound = KV.bounds[switch]
    assert isinstance(bound, Switch)
    for row in experiments.rows:
        assert len({experiments.steps({**mix, switch: choice}, row) for choice in bound.choices}) == 1


def test_rows_have_every_action() -> None:
    taken: set[str] = set()
    for row in rows():
        taken |= {rule.name for rule in BoundSpec(KV, row.bounds).actions}
    assert taken == {declared.name for declared in KV.actions}


@pytest.mark.parametrize("switch", sorted(set(switches()) - set(UNTESTABLE)))
@pytest.mark.parametrize("base", ["reference", pytest.param("vllm-0.23", marks=pytest.mark.slow)])
def test_choices_are_told_apart_at_the_row_that_is_for_it(base: str, switch: str) -> None:
    """The spec with one switch flipped differs soon from an implementation without the flip, and a row says where."""
    mix = profile_mix(base)
    (row,) = (row for row in rows() if switch in row.tells)
    experiments = kv_experiments(mix, [row.name])
    bound = KV.bounds[switch]
    assert isinstance(bound, Switch)
    if (base, switch) in UNTOLD_IN:
        pytest.skip(UNTOLD_IN[base, switch])
    for other in set(bound.choices) - {str(mix[switch])}:
        found = experiments.compare({**mix, switch: other}, row, shortest=True)
        assert found.mismatch is not None, other
        assert len(found.mismatch.trace) <= 9


@pytest.mark.slow
@pytest.mark.parametrize("profile", list(kvdata.profiles()))
def test_every_profile_is_classified_as_itself(profile: str) -> None:
    found = Classifier(kv_experiments(profile_mix(profile)), profiles()).run()
    assert found.verdict is Verdict.HOLDS
    assert (found.nearest.name, found.flips) == (profile, {})
    untold = {finding.switch for finding in found.findings if finding.untold}
    assert untold == {switch for at, switch in UNTOLD_IN if at == profile} | set(UNTESTABLE)


@pytest.mark.slow
@pytest.mark.parametrize("switch", sorted(set(switches()) - set(UNTESTABLE)))
def test_every_flip_is_found(switch: str) -> None:
    mix = profile_mix("reference")
    bound = KV.bounds[switch]
    assert isinstance(bound, Switch)
    for other in set(bound.choices) - {str(mix[switch])}:
        found = Classifier(kv_experiments({**mix, switch: other}), profiles()).run()
        assert found.verdict is Verdict.HOLDS, found.reason
        assert {**found.nearest.mix, **found.flips} == {**mix, switch: other}
