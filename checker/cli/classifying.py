"""A classification for a command: the rows and profiles of the spec kv, the experiments, and the commands that repeat them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...traces.driver import ANYTHING, Handing
from ..conform.follow import restorable
from . import kvdata
from .clock import since_start
from .drivers import RELEASE, Implementation
from .driving import driving
from .errors import UsageError
from .target import Values, load_shipped, parse_bounds

if TYPE_CHECKING:
    from ...impl.vllm.release import Release
    from ...traces.driver import Driver, Observation
    from ..conform.classify import Profile
    from ..conform.classify_report import Told
    from ..conform.classify_schema import ClassificationPart, ClassifyDocument
    from ..conform.experiments import Experiment, Experiments, Row
    from ..explore.findings import OnProgress
    from ..model import Limits
    from .interrupt import Interrupts


def rows() -> tuple[Row, ...]:
    """Where the spec kv is held against an implementation of unknown mechanisms."""
    from ..conform.experiments import Row

    found: list[dict[str, Any]] = kvdata.load("classify")["rows"]
    return tuple(Row(r["name"], r["bounds"], r.get("longest"), tuple(r.get("tells") or ())) for r in found)


def profiles(first: str = kvdata.DEFAULT) -> tuple[Profile, ...]:
    """Every profile, with a choice for each switch, and this one before the others."""
    from ..conform.classify import Profile

    spec = load_shipped("kv")
    found = [Profile(name, spec.values(profile.switches)) for name, profile in kvdata.profiles().items()]
    return tuple(sorted(found, key=lambda profile: profile.name != first))


def expected(target: Implementation) -> str:
    """The profile that a target is expected to behave as: that of its version, or of the nearest version before it.

    A version before them all, such as 0+checkout, says nothing: then it is the newest profile.
    """
    release = release_of(target) if target.profile is None else None
    if release is None:
        return target.profile or kvdata.DEFAULT
    titles = {name: profile.title.partition("vLLM ")[2] for name, profile in kvdata.profiles().items()}
    versions = {name: _numbers(version) for name, version in titles.items() if version}
    before = [name for name, numbers in versions.items() if numbers <= _numbers(release.version)]
    return max(before or versions, key=versions.__getitem__)


def release_of(target: Implementation) -> Release | None:
    """Which vLLM a target is; None where it is none."""
    if not target.name.startswith(RELEASE):
        return None
    from ...impl.vllm import find as releases

    word = target.name.removeprefix(RELEASE)
    return releases.at(Path(word)) if "/" in word or Path(word).is_dir() else releases.fetched(word)


def _numbers(version: str) -> list[int]:
    """The three numbers of a version."""
    return [*map(int, re.findall(r"\d+", version.partition("+")[0])), 0, 0, 0][:3]


def switches() -> tuple[str, ...]:
    """The mechanism switches: those that no row decides."""
    from ..conform.classify import switches_of

    return tuple(switches_of(load_shipped("kv"), rows()))


def has_fence(mix: Mapping[str, int | str]) -> bool:
    """Whether any blocks are fenced with these switches (spec/kv/pool.py)."""
    return "fenced" in (mix["finish-free"], mix["abort-free"], mix["preemption-free"])


class Mechanisms(Handing):
    """A driver of the spec kv, of which `foreign` is not compared.

    The spec notes a write to somebody else's block only where anything is fenced, which is not known of what is classified.
    """

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._whole = restorable(driver)

    def observe(self) -> Observation:
        """What the implementation shows of its mechanisms."""
        shown = self._whole.observe()
        return {**shown, "foreign": ANYTHING} if "foreign" in shown else shown

    def take(self, action: str, arguments: tuple[Any, ...]) -> None:
        """Let an event happen."""
        self._whole.take(action, arguments)

    def reset(self) -> None:
        """Begin again."""
        self._whole.reset()

    def save(self) -> Any:
        """The whole state."""
        return self._whole.save()

    def restore(self, saved: Any) -> None:
        """Go back to a saved state."""
        self._whole.restore(saved)


@dataclass
class Classifying:
    """A classification of a target of the spec kv.

    `own` are values that only the target gets; `fixed` bounds that its classes fit, in place of those of the rows. A connector
    that loads `whole_prompts` does so at each row that has loads.
    """

    target: Implementation
    own: Values
    limits: Limits
    fixed: Values = field(default_factory=dict[str, int | str])
    whole_prompts: bool = False
    title: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """Where it is held against the spec."""
        return tuple(replace(row, bounds=self.fitted({**row.bounds, **self.fixed})) for row in rows())

    def fitted(self, bounds: Mapping[str, int | str]) -> Mapping[str, int | str]:
        """The bounds of a row, with as many tokens loaded as the connector would load."""
        values = load_shipped("kv").values(bounds)
        whole = self.whole_prompts and values["remote-tokens"] != 0
        return {**bounds, "remote-tokens": values["prompt-tokens"]} if whole else bounds

    @classmethod
    def of(cls, target: Implementation, own: Sequence[str], limits: Limits) -> Classifying:
        """What is asked for on a command line; `UsageError` where bounds are given that every row has of its own."""
        try:
            values = parse_bounds(own)
        except UsageError as error:
            raise UsageError(str(error).replace("--bounds", "--target-bounds")) from None
        sizes = [name for name in values if name not in switches()]
        if sizes:
            known = ", ".join(switches())
            raise UsageError(f"--target-bounds: {sizes[0]} is decided by each row; mechanism switches are: {known}")
        load_shipped("kv").values(values)
        return cls(target, values, limits)

    def make(self, values: Mapping[str, int | str]) -> Driver:
        """A driver at the bounds of a row; what it says of itself is kept."""
        driver = self.target.make({**values, **self.own})
        self.title = driver.title
        return driver

    def run(self, *, quiet: bool = False, verbose: bool = False, interrupts: Interrupts | None = None) -> Told:
        """Make the experiments, with `interrupts` as in `driving`; what an implementation prints goes to standard error."""
        from ..conform.classify import Classifier
        from ..conform.classify_report import Told

        known = profiles(expected(self.target))
        with driving(self.target, self.limits, quiet=quiet, interrupts=interrupts) as run:
            experiments = self._experiments(run.limits, run.progress)
            found = Classifier(experiments, known).run()
        return Told(found, known, experiments.transitions, len(experiments.rows), self.again, verbose)

    def again(self, experiment: Experiment) -> str:
        """The command that holds the same mix against the implementation again."""
        longest = () if experiment.row.longest is None else ("--max-depth", str(experiment.row.longest))
        return repeated("conform", self.target, self.own, experiment.model.bound.values, experiment.row.bounds, longest)

    def part(self, told: Told) -> ClassificationPart:
        """A classification in its JSON form."""
        from ..conform.classify_schema import classification_part

        return classification_part(told, self.rows)

    def document(self, told: Told, exit_code: int) -> ClassifyDocument:
        """The whole result in its JSON form."""
        from ..conform.classify_schema import whole
        from ..conform.schema import TargetPart
        from ..model import Model
        from ..report.schema import SpecPart

        spec = SpecPart.of(Model.of(load_shipped("kv")), None)
        target = TargetPart(name=self.target.name, title=self.title)
        return whole(spec, target, self.part(told), exit_code, since_start())

    def _experiments(self, limits: Limits, progress: OnProgress | None) -> Experiments:
        from ..conform.experiments import Experiments
        from ..explore.native.memory import processors

        workers = 1 if self.target.path is not None else processors()  # as in conform: a driver of a user's is not forked
        return Experiments(
            load_shipped("kv"), self.rows, lambda values: Mechanisms(self.make(values)), limits, progress, workers
        )


def repeated(
    verb: str, target: Implementation, own: Values, values: Values, bounds: Mapping[str, int | str], more: Sequence[str] = ()
) -> str:
    """The command that compares or checks a mix of switches (in `values`) at these bounds on a target again."""
    mix = {name: values[name] for name in switches()}
    named = min(kvdata.profiles(), key=lambda name: len(_differing(mix, name)))
    words = ["fencepost", verb, *(["kv"] if verb == "check" else []), "--profile", named, "--target", target.name]
    words += ["--bounds", listed({**bounds, **_differing(mix, named)})]
    its = load_shipped("kv").values(own)
    other = {name: its[name] for name in mix if its[name] != mix[name]}
    if verb == "conform" and other and not target.name.startswith(RELEASE):  # a release does what it does
        words += ["--target-bounds", listed(other)]
    return shlex.join([*words, *more])


def _differing(mix: Values, profile: str) -> Values:
    """The choices of a mix that a profile has otherwise."""
    of_profile = load_shipped("kv").values(kvdata.profile(profile).switches)
    return {name: choice for name, choice in mix.items() if of_profile[name] != choice}


def listed(values: Mapping[str, int | str]) -> str:
    """Values as `--bounds` takes them."""
    return ",".join(f"{name}={value}" for name, value in values.items())
