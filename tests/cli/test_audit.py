"""`fencepost audit` beyond its output: JSON, limits, sections that fail, errors, commands."""

from __future__ import annotations

import importlib
import json
import shlex
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import pytest
from fencepost.checker.cli import audit_session, classifying
from fencepost.checker.cli.audit_rows import SMALL, AuditRow, config_row, fault_rows, small_rows
from fencepost.checker.cli.audit_session import Asked, AuditSession
from fencepost.checker.cli.check import limits_of
from fencepost.checker.cli.classifying import profiles, switches
from fencepost.checker.cli.drivers import Implementation, find
from fencepost.checker.cli.errors import UsageError
from fencepost.checker.cli.main import main
from fencepost.checker.conform import audit_report
from fencepost.checker.conform.audit import CLASSIFY, LOCKSTEP, PROPERTIES, Audit, Checked, Compared
from fencepost.checker.conform.audit_schema import AuditDocument, Request, document
from fencepost.checker.conform.classify import Classification
from fencepost.checker.conform.classify_report import Told
from fencepost.checker.conform.errors import DriverUnstable
from fencepost.checker.conform.expand import Known, Node
from fencepost.checker.conform.experiments import Experiment, Row
from fencepost.checker.conform.parallel import LEAST, Expansion
from fencepost.checker.conform.product import conform
from fencepost.checker.conform.search import search
from fencepost.checker.conform.transitions import Seen
from fencepost.checker.model import Limits, Options
from fencepost.checker.report.terminal import console
from fencepost.checker.result import ActionCount, Status, Verdict
from fencepost.traces.driver import Driver

CONFIG = "max-num-seqs: 1\nno-enable-prefix-caching: true\n"
FEW = Limits(max_states=30)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A small config."""
    path = tmp_path / "serve.yaml"
    path.write_text(CONFIG)
    return path


def session(asked: Asked, limits: Limits = FEW) -> AuditSession:
    """An audit that prints nothing but its verdict."""
    return AuditSession.of(asked, limits, quiet=True, verbose=False)


def test_json_of_an_audit(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["audit", "--target", "reference", "--config", str(config), "--max-states", "30", "--json"])
    made = AuditDocument.model_validate(json.loads(capsys.readouterr().out))
    assert (code, made.exit_code, made.verdict) == (3, 3, "UNDETERMINED")
    assert made.classification is not None
    assert made.classification.nearest.profile == "reference"
    assert made.classification.behaves_as is None
    assert [row.name for row in made.lockstep] == [row.name for row in made.searched] == [str(config)]
    assert made.lockstep[0].bounds["max-num-seqs"] == 1
    assert made.errors == {}
    assert {one.status for one in made.properties} <= {"undetermined", "reached", "not reached", "not applicable", "LATENT"}
    assert shlex.split(made.again) == [
        "fencepost",
        "audit",
        "--target",
        "reference",
        "--config",
        str(config),
        "--max-states",
        "30",
    ]


def test_a_section_that_fails_hides_no_other(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = session(Asked(target="reference", config=config))

    def fail(*_: object, **__: object) -> None:
        raise UsageError("the classification cannot be made")

    monkeypatch.setattr(made.classifying, "run", fail)
    assert made.run(json=False, quiet=True) == 3
    assert made.audit.errors == {CLASSIFY: "the classification cannot be made"}
    assert made.audit.verdict is Verdict.UNDETERMINED
    assert len(made.audit.compared) == len(made.audit.checked) == 1
    assert f"{CLASSIFY} failed" in " ".join(capsys.readouterr().out.split())


def test_a_defect_is_an_internal_error(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = session(Asked(target="reference", config=config))

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by nothing")

    for section in ("_compare", "_check"):
        monkeypatch.setattr(made, section, fail)
    monkeypatch.setattr(made.classifying, "run", fail)
    assert made.run(json=False, quiet=True) == 4
    assert set(made.audit.errors) == {CLASSIFY, LOCKSTEP, PROPERTIES}
    assert "internal error: ZeroDivisionError: by nothing" in capsys.readouterr().err


def test_ctrl_c_while_it_is_classified_ends_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    made = interrupted_session(monkeypatch)
    assert made.run(json=False, quiet=True) == 3
    assert made.audit.told is not None
    assert made.audit.told.found.reason == "interrupted"
    assert (made.audit.compared, made.audit.checked) == ((), ())
    assert list(made.audit.left_out[LOCKSTEP]) == [row.name for row in small_rows("reference")]


def test_ctrl_c_once_more_ends_the_command_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = interrupted_session(monkeypatch)

    def press(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(made, "_compare", press)
    with pytest.raises(KeyboardInterrupt):
        made.run(json=False, quiet=True)


def interrupted_session(monkeypatch: pytest.MonkeyPatch) -> AuditSession:
    """An audit with Ctrl-C pressed when its classification begins."""
    made = session(Asked(target="reference"))
    kept, presses = made.target.make, iter([signal.SIGINT])

    def make(values: Mapping[str, int | str]) -> Driver:
        for press in presses:
            signal.raise_signal(press)
        return kept(values)

    monkeypatch.setattr(made.classifying, "target", replace(made.target, make=make))
    return made


PLUGIN = """\
import fractions


def fail(*_, **__):
    return fractions.Fraction("[")


def call(function, *args):
    return function(*args)
"""


class Failing:
    """What expands the states of a search, and fails."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work

    def visit(self, node: Node, known: Known) -> Seen:
        """Fail."""
        self.work()
        raise AssertionError("it did not fail")


@pytest.mark.parametrize("apart", [False, True], ids=["here", "in a process of a search"])
@pytest.mark.parametrize("theirs", [True, False], ids=["in their class", "in Fencepost"])
def test_of_a_class_of_the_users_own_only_its_errors_are_blamed_on_it(
    config: Path, tmp_path: Path, theirs: bool, apart: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "somebodys_plugin.py").write_text(PLUGIN)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    plugin = importlib.import_module("somebodys_plugin")
    made = session(Asked(target="reference", config=config))
    made.asked = Asked(scheduler_cls="somebodys_plugin:Scheduler", config=config)
    work: Callable[[], object] = plugin.fail if theirs else partial(plugin.call, limits_of, 1.5, None, None, None)

    def fail(*_: object, **__: object) -> None:
        if not apart:
            work()
        with Expansion(Failing(work), lambda _, __: False, workers=2) as expansion:
            list(expansion.visits([Node(number, (), b"", None) for number in range(LEAST)]))

    monkeypatch.setattr(made, "_compare", fail)
    monkeypatch.setattr(made, "_check", known)
    monkeypatch.setattr(made.classifying, "run", known)
    code = made.run(json=False, quiet=True)
    assert set(made.audit.errors) == {LOCKSTEP}
    if theirs:
        assert code == 3
        assert made.audit.errors[LOCKSTEP].startswith("--scheduler-cls somebodys_plugin:Scheduler: ValueError: ")
        assert capsys.readouterr().err == ""
    else:
        assert code == 4
        assert "internal error: " in capsys.readouterr().err


def test_a_class_that_is_not_deterministic_is_named(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = session(Asked(target="reference", config=config))
    made.asked = Asked(scheduler_cls="somebodys_plugin:Scheduler", config=config)

    def fail(*_: object, **__: object) -> None:
        raise DriverUnstable("a restored state shows something else")

    monkeypatch.setattr(made, "_compare", fail)
    monkeypatch.setattr(made, "_check", known)
    monkeypatch.setattr(made.classifying, "run", known)
    assert made.run(json=False, quiet=True) == 3
    said = (
        "--scheduler-cls somebodys_plugin:Scheduler: a restored state shows something else: the implementation is not determin"
    )
    assert made.audit.errors[LOCKSTEP].startswith(said)
    assert capsys.readouterr().err == ""


def test_rows_load_as_many_tokens_as_the_connector(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connector that loads whole prompts is held against the spec where the spec does so, too."""
    made = session(Asked(target="reference"))
    loading = [row for row in made.classifying.rows if row.bounds.get("remote-tokens")]
    assert any(row.bounds["remote-tokens"] != row.bounds["prompt-tokens"] for row in loading)
    made.classifying.whole_prompts = True
    rows = {row.name: row.bounds for row in made.classifying.rows}
    assert all(rows[row.name]["remote-tokens"] == rows[row.name]["prompt-tokens"] for row in loading)
    others = [row for row in classifying.rows() if row not in loading]
    assert [rows[row.name] for row in others] == [row.bounds for row in others if not row.bounds.get("remote-tokens")]


def test_of_a_config_the_derived_bounds_are_told(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = AuditSession.of(Asked(target="reference", config=config), FEW, quiet=False, verbose=False)
    monkeypatch.setattr(made.classifying, "run", known)
    monkeypatch.setattr(audit_report, "classification", known)
    made.run(json=False, quiet=False)
    bounds = config_row(config, "reference")[0].bounds
    assert f"bounds derived from {config}: {classifying.listed(bounds)}\n" in capsys.readouterr().out


@pytest.mark.parametrize(("plain", "error"), [(True, UsageError), (False, ZeroDivisionError)])
def test_what_cannot_be_made_without_a_class_of_the_users_either_is_not_its_fault(
    plain: bool, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def release(name: str, _: str, scheduler_cls: str | None, connector: str | None, __: str | None) -> Implementation:
        def make(values: Mapping[str, int | str]) -> Driver:
            if plain and (scheduler_cls, connector) == (None, None):
                return find("reference", "kv").make(values)
            raise ZeroDivisionError("by nothing")

        return Implementation(name, make)

    monkeypatch.setattr(audit_session, "of_release", release)
    with pytest.raises(error, match="by nothing"):
        session(Asked(vllm="0.33.0", scheduler_cls="somebodys:Scheduler"))


def test_rows_for_which_there_is_no_time_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    made = session(Asked(target="reference"), Limits(max_states=30, max_seconds=1e-6))
    assert made.run(json=False, quiet=True) == 3
    assert list(made.audit.left_out[LOCKSTEP]) == [row.name for row in small_rows("reference")]
    everything = [*small_rows("reference"), *fault_rows(switches())]
    assert list(made.audit.left_out[PROPERTIES]) == [row.name for row in everything]
    assert (made.audit.compared, made.audit.checked) == ((), ())
    assert capsys.readouterr().out.startswith("UNDETERMINED: reference: ")


# The verdict over all rows.

KNOWN = {one.name: replace(one, mix={name: one.mix[name] for name in switches()}) for one in profiles()}
REFERENCE = KNOWN["reference"]
MIX = REFERENCE.mix


def known(*_: object, cut: str | None = None, **__: object) -> Told:
    """A classification as the reference implementation, complete or cut."""
    return Told(Classification(MIX, REFERENCE, {}, cut=cut), profiles(), 0, 0, lambda _: "")


def row_of(name: str) -> AuditRow:
    """A row of an audit of the reference implementation by its name."""
    return next(row for row in [*small_rows("reference"), *fault_rows(switches())] if row.name == name)


@cache
def checked(name: str, max_states: int | None = None) -> Checked:
    """The reference implementation searched at a row."""
    row = row_of(name)
    model = row.model(MIX, "reference")
    driver = find("reference", "kv").make(model.bound.values)
    return Checked(row.name, model, search(model, driver, Options(keep_going=True, limits=Limits(max_states))), "")


@cache
def compared(name: str, *, lax: bool = False) -> Compared:
    """The reference implementation, or one that frees the blocks of aborted requests at once, in lockstep at a row."""
    row = row_of(name)
    model = row.model(MIX, "reference")
    own = {"abort-free": "at-once"} if lax else {}
    driver = find("reference", "kv").make({**model.bound.values, **own})
    return Compared(row.name, model, conform(model, driver, Limits()), "")


def untaken(row: Checked, action: str) -> Checked:
    """The same search with an action that was never taken."""
    result = row.searched.result
    counts = tuple(ActionCount(a.name, 0, 0) if a.name == action else a for a in result.figures.actions)
    assert counts != result.figures.actions, action
    return replace(row, searched=replace(row.searched, result=replace(result, figures=replace(result.figures, actions=counts))))


ALONE, FULL = "no connector, one request runs at a time", "where B01 shows"
NARROW, NARROWEST = "where B23 shows", "where B11 shows"
"""Rows: something is vacuous at all but FULL, and pools run full at NARROW only of the two."""


def audit_of(*rows: Checked, lockstep: tuple[Compared, ...] | None = None, told: Told | None = None) -> Audit:
    """An audit of which everything but these rows holds."""
    return Audit((), told or known(), (compared(ALONE),) if lockstep is None else lockstep, rows)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is wrapped."""
    monkeypatch.setenv("COLUMNS", "2000")


def reasons(audit: Audit, capsys: pytest.CaptureFixture[str]) -> str:
    """The verdict line."""
    audit_report.verdict(console(), audit, "it")
    return capsys.readouterr().out.rstrip()


def test_what_some_row_puts_to_the_test_is_not_vacuous() -> None:
    alone, full = checked(ALONE), checked(FULL)
    assert alone.searched.result.vacuous
    assert audit_of(alone, full).vacuous == ()
    assert audit_of(alone, full).verdict is Verdict.HOLDS


def test_one_row_is_judged_as_a_check_judges_it() -> None:
    for row in (checked(ALONE), checked(FULL), checked(FULL, 30)):
        result = row.searched.result
        assert audit_of(row).vacuous == result.vacuous
        assert audit_of(row).verdict is result.verdict
    assert {checked(row).searched.result.verdict for row in (ALONE, FULL)} == {Verdict.UNDETERMINED, Verdict.HOLDS}


def test_what_no_row_puts_to_the_test_is_vacuous(capsys: pytest.CaptureFixture[str]) -> None:
    audit = audit_of(checked(NARROW), checked(NARROWEST))
    never = {one.partition(" is ")[0].partition(":")[0] for one in audit.vacuous}
    assert {"preemption-pays", "witness preemption-with-a-step-in-flight", "witness a-token-is-known"} <= never
    assert "witness pool-runs-full" not in never, "it is reached at one of the rows"
    assert "witness pool-runs-full is never reached" in audit.checked[1].searched.result.vacuous
    assert not any("block-in-flight-is-allocatable" in one for one in never), "that a latent state is not reached is no fault"
    assert audit.verdict is Verdict.UNDETERMINED
    assert f"; vacuous: {'; '.join(audit.vacuous)}" in reasons(audit, capsys)


def test_an_action_that_no_row_takes_is_vacuous(capsys: pytest.CaptureFixture[str]) -> None:
    alone, full = checked(ALONE), checked(FULL)
    assert audit_of(untaken(alone, "abort"), full).verdict is Verdict.HOLDS
    never = audit_of(untaken(alone, "abort"), untaken(full, "abort"))
    assert never.vacuous == ("action abort is never taken",)
    assert never.verdict is Verdict.UNDETERMINED
    assert reasons(never, capsys).endswith("vacuous: action abort is never taken")


def test_an_action_that_no_lockstep_takes_is_vacuous() -> None:
    one = compared(ALONE)
    figures = replace(one.agreement.figures, taken={**one.agreement.figures.taken, "abort": 0})
    without = replace(one, agreement=replace(one.agreement, figures=figures))
    full = checked(FULL)
    assert audit_of(full, lockstep=(without, one)).verdict is Verdict.HOLDS
    assert audit_of(full, lockstep=(without, without)).vacuous == ("in lockstep, action abort is never taken",)
    assert audit_of(full, lockstep=(without, without)).verdict is Verdict.UNDETERMINED


def test_of_a_search_that_was_cut_the_limit_is_the_reason() -> None:
    cut, narrow = checked(FULL, 5), checked(NARROWEST)
    assert any(action.taken == 0 for action in cut.searched.result.figures.actions)
    for audit in (audit_of(narrow, cut), replace(audit_of(narrow), left_out={PROPERTIES: (FULL,)})):
        assert audit.vacuous == ()
        assert audit.verdict is Verdict.UNDETERMINED


def test_an_audit_that_lacks_a_section_does_not_hold(capsys: pytest.CaptureFixture[str]) -> None:
    whole = audit_of(checked(FULL))
    assert whole.verdict is Verdict.HOLDS
    for lacking in (replace(whole, told=None), replace(whole, compared=()), replace(whole, checked=())):
        assert lacking.verdict is Verdict.UNDETERMINED
    assert "nothing was compared in lockstep" in reasons(replace(whole, compared=()), capsys)
    assert "no state was searched" in reasons(replace(whole, checked=()), capsys)
    assert replace(whole, errors={LOCKSTEP: "no driver"}).verdict is Verdict.UNDETERMINED


def test_a_difference_counts_where_it_is_known_what_the_implementation_behaves_as() -> None:
    differs = (compared(FULL, lax=True),)
    assert differs[0].verdict is Verdict.VIOLATED
    whole = audit_of(checked(FULL), lockstep=differs)
    assert whole.verdict is Verdict.VIOLATED
    assert replace(whole, errors={PROPERTIES: "no driver"}).verdict is Verdict.VIOLATED
    assert replace(whole, told=known(cut="time limit")).verdict is Verdict.UNDETERMINED
    assert replace(whole, told=None).verdict is Verdict.UNDETERMINED


def test_where_paths_of_the_classification_ended_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    model = row_of(ALONE).model(MIX, "reference")
    ends = {"the first": 9, "the second": None, "the third": 14}
    experiments = tuple(Experiment(Row(name, {}, end), model, None, None, 1, end) for name, end in ends.items())
    told = replace(known(), found=replace(known().found, experiments=experiments))
    audit_report.classification(console(), told, ())
    assert "every transition agrees on paths of at most 9 to 14 events (at 2 of 3 rows); " in capsys.readouterr().out
    line = "classification, paths of more than 9 to 14 events: the first, the third"
    assert line in audit_report.open_questions(audit_of(told=told))


@cache
def lax() -> Checked:
    """An implementation that does as vllm-0.27 and violates a property, searched against the spec with the same switches."""
    row = row_of("where B41 shows")
    model = row.model(KNOWN["vllm-0.27"].mix, None)
    driver = find("reference", "kv").make(model.bound.values)
    return Checked(row.name, model, search(model, driver, Options(keep_going=True)), "")


@pytest.mark.parametrize(
    ("by_spec", "said", "reason"),
    [
        (True, "reference does the same: the spec takes these steps, too.", "violates free-order (new)"),
        (False, "The spec takes the same steps, and its own state at the end does not show it.", "violates free-order (new)"),
    ],
)
def test_the_spec_does_the_same_where_its_own_state_shows_it(
    by_spec: bool, said: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    row = lax()
    path = row.searched.paths["free-order"]
    assert (path.by_spec, path.otherwise) == (True, None)
    paths = {"free-order": replace(path, by_spec=by_spec)}
    audit = audit_of(replace(row, searched=replace(row.searched, paths=paths)))
    assert [one.like_spec for one in audit.judged if one.result.name == "free-order"] == [by_spec]
    audit_report.checked(console(), audit, verbose=False)
    assert ("does the same" in (shown := capsys.readouterr().out), said in shown) == (by_spec, True)
    assert reasons(audit, capsys).endswith(f"; {reason}")


@pytest.mark.parametrize(
    ("profile", "flips", "inherited"),
    [
        ("vllm-0.27", {}, True),
        ("vllm-0.27", {"ended-rows": "dropped"}, True),
        ("reference", {"uncached-free-order": "tail"}, False),
        ("reference", {}, False),
    ],
)
def test_what_the_nearest_profile_violates_likewise_is_inherited(
    profile: str, flips: dict[str, str], inherited: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    told = replace(known(), found=Classification({**KNOWN[profile].mix, **flips}, KNOWN[profile], {}))
    audit = audit_of(lax(), told=told)
    (violated,) = (one for one in audit.judged if one.status is Status.VIOLATED)
    assert (audit.verdict, audit.inherited(violated)) == (Verdict.VIOLATED, inherited)
    assert reasons(audit, capsys).endswith(f" free-order as {profile} does (inherited)" if inherited else " free-order (new)")
    made = document(audit, Request("it", profile, ""), None, [], 1, 0.0)
    assert {one.name: one.inherited for one in made.properties if one.status == "violated"} == {"free-order": inherited}


def test_at_the_bounds_of_a_config_it_is_the_verdict_of_a_check(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row, _ = config_row(config, "reference")
    model = row.model(MIX, "reference")
    driver = find("reference", "kv").make(model.bound.values)
    expected = search(model, driver, Options(keep_going=True)).result
    assert expected.vacuous, "a config at which nothing is vacuous tells nothing here"
    made = session(Asked(target="reference", config=config), Limits())
    monkeypatch.setattr(made.classifying, "run", known)
    assert made.run(json=False, quiet=True) == 3
    assert [one.verdict for one in made.audit.compared] == [Verdict.HOLDS]
    assert f"; vacuous: {'; '.join(expected.vacuous)}\n" in capsys.readouterr().out
    assert main(["check", str(config), "--target", "reference", "--quiet"]) == 3


def test_small_rows_are_there_for_every_profile() -> None:
    for profile in profiles():
        rows = small_rows(profile.name)
        assert len(rows) >= 3, f"{profile.name} has few rows with at most {SMALL} transitions"
        assert all(set(row.bounds).isdisjoint(switches()) for row in rows)


def test_where_public_bugs_show_is_looked_at_once_each() -> None:
    rows = fault_rows(switches())
    assert len(rows) >= 5
    assert all(set(row.bounds).isdisjoint(switches()) for row in rows)
    assert len({tuple(sorted(row.bounds.items())) for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Asked(vllm="99.0.1"), "vLLM 99.0.1 is not in"),
        (Asked(vllm="/", scheduler_cls="a:B"), "holds no package vllm"),
        (Asked(target="nothing"), "there is no target 'nothing'"),
        (Asked(target="reference", connector="a:B"), "--kv-connector is for a vLLM"),
        (Asked(vllm="/", connector="Connector"), "name the module, too"),
        (Asked(target="reference", own=("blocks=2",)), "blocks is decided by each row"),
    ],
)
def test_what_cannot_be_audited_is_an_input_error(asked: Asked, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        session(asked)


def test_a_config_that_cannot_be_read_is_an_input_error_before_anything_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.yaml").write_text("max-num-seqs: [1\n")
    assert main(["audit", "--target", "reference", "--config", str(tmp_path / "broken.yaml")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "broken.yaml" in captured.err


def test_without_a_vllm_there_is_nothing_to_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    from fencepost.impl.vllm import find as releases

    monkeypatch.setattr(releases, "importable", lambda: None)
    with pytest.raises(UsageError, match="no vLLM is installed here"):
        Asked().implementation()


@pytest.mark.slow
def test_the_reference_implementation_passes_its_audit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--target", "reference", "--quiet"]) == 0
    assert capsys.readouterr().out.startswith(
        "HOLDS: reference: behaves as reference; lockstep agrees; no property is violated"
    )
