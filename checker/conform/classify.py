"""Which choices of a spec's switches an implementation behaves as, found by experiment.

Named sets of choices (profiles) are tried first, the one that is expected before the others. Where none of them agrees,
switches are flipped in the expected one, then in the others: one, two, and three of those that have to do with the
differences. A mix that is held against the implementation and differs leaves a recorded path, and only mixes that no recording
contradicts are tried after it. In the end each switch is flipped in the mix that was found: the shortest path on which the
implementation contradicts the flip is the evidence for the choice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...spec.lang import Spec, Switch
from ..result import Verdict
from .experiments import Experiment, Experiments, Mix, Row

ANY, CONCERNED = 2, 3
"""Switches that are flipped together in a mix that a candidate is made from: of all, and of those that differences concern."""
SAME, UNTOLD = "no action depends on it", "no row tells them apart"
"""Why the choices of a switch cannot be told apart."""


@dataclass(frozen=True)
class Profile:
    """A named set of choices: one for each switch."""

    name: str
    mix: Mix


@dataclass(frozen=True)
class Finding:
    """What is known of the choice of one switch.

    `told` holds, for each other choice that the implementation contradicts, a shortest path that shows it. `untold` are the
    others, with the reason; where an experiment was `cut`, that is why.
    """

    switch: str
    choice: int | str
    told: Mapping[str, Experiment]
    untold: Mapping[str, str]
    cut: str | None = None


@dataclass(frozen=True)
class Classification:
    """What an implementation behaves as.

    `mix` agrees with it at every row (`experiments`), or is `unlike` it at one like every other mix that was tried; `nearest`
    is the profile with the fewest other choices, `flips` what is otherwise there. `profiles` has for each profile where it
    differs first, None for one that agrees or was not tried. `tried` mixes were searched for a difference.
    """

    mix: Mix
    nearest: Profile
    profiles: Mapping[str, Experiment | None]
    experiments: tuple[Experiment, ...] = ()
    findings: tuple[Finding, ...] = ()
    unlike: Experiment | None = None
    cut: str | None = None
    tried: int = 0

    @property
    def flips(self) -> dict[str, int | str]:
        """The choices that the nearest profile has otherwise."""
        return {name: choice for name, choice in self.mix.items() if self.nearest.mix[name] != choice}

    @property
    def verdict(self) -> Verdict:
        """HOLDS where it behaves as the mix, VIOLATED where it is unlike any, UNDETERMINED where a limit was reached."""
        if self.unlike is not None:
            return Verdict.VIOLATED
        return Verdict.HOLDS if self.reason is None else Verdict.UNDETERMINED

    @property
    def reason(self) -> str | None:
        """Why not everything was compared; None where it was."""
        cuts = [self.cut, *(e.cut for e in self.experiments), *(finding.cut for finding in self.findings)]
        return next((cut for cut in cuts if cut is not None), None)


def switches_of(spec: Spec, rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """The switches in question with their choices: those that no row decides."""
    decided = {name for row in rows for name in row.bounds}
    return {n: b.choices for n, b in spec.bounds.items() if isinstance(b, Switch) and n not in decided}


class Classifier:
    """One classification; see the module. The first of the profiles is the one that is expected."""

    def __init__(self, experiments: Experiments, profiles: Sequence[Profile]) -> None:
        self.experiments = experiments
        self.switches = switches_of(experiments.spec, experiments.rows)
        self.profiles = [Profile(p.name, {name: p.mix[name] for name in self.switches}) for p in profiles]
        self._differs: dict[tuple[tuple[str, int | str], ...], Experiment] = {}

    def run(self) -> Classification:
        """Find the mix and the evidence for it."""
        mix, cut = self._first_agreeing()
        if mix is None or cut is not None:
            return self._without(mix, cut)
        mix = self._settled(mix)
        experiments = [self.experiments.compare(mix, row) for row in self.experiments.rows]
        nearest = self._nearest(mix)
        findings = [self._finding(mix, name) for name in self.switches]
        return Classification(
            mix, nearest, self._of_profiles(), tuple(experiments), tuple(findings), tried=len(self._differs) + 1
        )

    # The mix.

    def _first_agreeing(self) -> tuple[Mix | None, str | None]:
        """The first mix without a difference, or None where there is none; and why the search for it ended early."""
        for mix in self._candidates():
            if self._refute(mix) is None:
                return mix, self.experiments.over
            if self.experiments.over:
                return None, self.experiments.over
        return None, self.experiments.over

    def _refute(self, mix: Mix) -> Experiment | None:
        """Where a mix first differs from the implementation, row by row; None where it does not."""
        found = self.experiments.recorded(mix)
        for row in () if found is not None else self.experiments.rows:
            compared = self.experiments.compare(mix, row)
            if compared.mismatch is not None:
                found = compared
                break
        if found is not None:
            self._differs[_key(mix)] = found
        return found

    def _candidates(self) -> Iterator[Mix]:
        """The profiles, then what is few flips away from the first, from the others, or from a better mix."""
        centres: list[Mix] = [profile.mix for profile in self.profiles]
        yield from centres
        yield from self._near(centres[:1])
        while centres:
            yield from self._near(centres)
            centres = self._better(centres)

    def _near(self, centres: Sequence[Mix]) -> Iterator[Mix]:
        """Mixes around these that no recording contradicts, until experiments with them add no recording."""
        known = -1
        while known < len(self.experiments.recordings):
            known = len(self.experiments.recordings)
            for mix in self._around(centres):
                if _key(mix) not in self._differs and self.experiments.recorded(mix) is None:
                    yield mix

    def _better(self, centres: Sequence[Mix]) -> list[Mix]:
        """The mix near to these that the fewest recordings contradict, if that is fewer than of any of these."""
        least = max(map(self.experiments.agreeing, centres))
        best = max(self._around(centres), key=self.experiments.agreeing)
        return [best] if self.experiments.agreeing(best) > least else []

    def _around(self, centres: Sequence[Mix]) -> Iterator[Mix]:
        """Every mix up to so many flips away from one of these, fewer flips first."""
        for flips in range(1, ANY + 1):
            yield from self._flipped(centres, itertools.combinations(self.switches, flips))
        concerned = self.experiments.concerned(self.switches)
        yield from self._flipped(centres, itertools.combinations(concerned, CONCERNED))

    def _flipped(self, centres: Sequence[Mix], sets: Iterable[tuple[str, ...]]) -> Iterator[Mix]:
        """These mixes with other choices of the switches of each set."""
        for centre, names in itertools.product(centres, sets):
            others = ([choice for choice in self.switches[n] if choice != centre[n]] for n in names)
            for choices in itertools.product(*others):
                yield {**centre, **dict(zip(names, choices, strict=True))}

    def _settled(self, mix: Mix) -> Mix:
        """A mix that agrees, drawn as near to a profile as agreement allows: choices that nothing tells apart are its own."""
        while True:
            drawn = [self._drawn(mix, profile) for profile in self.profiles]
            best = min(drawn, key=lambda one: self._distance(one, self._nearest(one)))
            if _key(best) == _key(mix) or self._refute(best) is None:
                return best

    def _drawn(self, mix: Mix, profile: Profile) -> Mix:
        """A mix with every choice of a profile that no recording contradicts, taken over one by one."""
        for name, choice in profile.mix.items():
            nearer = {**mix, name: choice}
            if _key(nearer) not in self._differs and self.experiments.recorded(nearer) is None:
                mix = nearer
        return mix

    def _distance(self, mix: Mix, profile: Profile) -> int:
        return sum(profile.mix[name] != mix[name] for name in self.switches)

    def _nearest(self, mix: Mix) -> Profile:
        return min(self.profiles, key=lambda profile: self._distance(mix, profile))

    def _of_profiles(self) -> dict[str, Experiment | None]:
        """Where each profile differs first, as far as the experiments tell."""
        return {
            profile.name: self._differs.get(_key(profile.mix)) or self.experiments.recorded(profile.mix)
            for profile in self.profiles
        }

    def _without(self, mix: Mix | None, cut: str | None) -> Classification:
        """No mix agrees, or there was no time to find it: where the mix that comes nearest differs."""
        tried: list[Mix] = [] if mix is None else [mix]
        tried += [profile.mix for profile in self.profiles] + [dict(key) for key in self._differs]
        best = max(tried, key=self._merit)
        unlike = None if cut else self._shortest(best)
        return Classification(best, self._nearest(best), self._of_profiles(), unlike=unlike, cut=cut, tried=len(self._differs))

    def _merit(self, mix: Mix) -> tuple[float, bool, int, int]:
        """How near a mix comes: first of all it agrees for long, then it belongs to the profile that is expected."""
        nearest = self._nearest(mix)
        own = nearest is self.profiles[0]
        return self.experiments.agrees_until(mix), own, self.experiments.agreeing(mix), -self._distance(mix, nearest)

    def _shortest(self, mix: Mix) -> Experiment | None:
        """The shortest path to a difference at any row."""
        found = [self.experiments.compare(mix, row, shortest=True) for row in self.experiments.rows]
        return min((one for one in found if one.mismatch is not None), key=_length, default=None)

    # The evidence.

    def _finding(self, mix: Mix, switch: str) -> Finding:
        told: dict[str, Experiment] = {}
        untold: dict[str, str] = {}
        cuts: list[str] = []
        for other in self.switches[switch]:
            if other == mix[switch]:
                continue
            shown, why = self._evidence(mix, {**mix, switch: other}, switch)
            if shown is not None:
                told[other] = shown
            else:
                untold[other] = why
                cuts += [why] if why not in (SAME, UNTOLD) else []
        return Finding(switch, mix[switch], told, untold, cuts[0] if cuts else None)

    def _evidence(self, mix: Mix, flipped: Mix, switch: str) -> tuple[Experiment | None, str]:
        """A shortest path at the first row at which a flip shows; else why there is none."""
        cut: str | None = None
        depends = False
        known = self.experiments.recorded(flipped)
        first = [row for row in self.experiments.rows if switch in row.tells]
        first += [known.row] if known is not None else []
        for row in _once([*first, *self.experiments.rows]):
            if self.experiments.over is not None:
                return None, self.experiments.over
            if self.experiments.steps(mix, row) == self.experiments.steps(flipped, row):
                continue
            depends = True
            found = self.experiments.compare(flipped, row, shortest=True)
            if found.mismatch is not None:
                return found, ""
            cut = cut or found.cut
        return None, cut or (UNTOLD if depends else SAME)


def _once(rows: Sequence[Row]) -> list[Row]:
    """Each row once, in order."""
    return list({row.name: row for row in rows}.values())


def _length(experiment: Experiment) -> int:
    assert experiment.mismatch is not None
    return len(experiment.mismatch.trace)


def _key(mix: Mix) -> tuple[tuple[str, int | str], ...]:
    return tuple(sorted(mix.items()))
