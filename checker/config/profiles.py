"""Which profile of the KV spec a config is checked against: a config names no release of vLLM."""

from __future__ import annotations

import re
from importlib import metadata
from typing import NamedTuple

from .errors import ConfigError, did_you_mean

RELEASES = {
    "vllm-0.23": "0.23.0",
    "vllm-0.25": "0.25.0",
    "vllm-0.27": "0.27.0",
    "vllm-0.33": "0.33.0",
    "reference": "0.33.0",
}
"""The release whose options and defaults a profile has; `reference` takes those of the newest."""
NEWEST = "vllm-0.33"


class Profile(NamedTuple):
    """A profile's name, the release whose rules it follows, and why it was chosen."""

    name: str
    release: str
    source: str


def numbers(release: str) -> tuple[int, ...]:
    """A release as numbers, for comparing: 0.27.0 is (0, 27, 0)."""
    return tuple(int(part) for part in re.findall(r"\d+", release)[:3])


def choose(name: str | None = None) -> Profile:
    """The named profile; else that of the vLLM installed beside Fencepost; else the newest."""
    if name is not None:
        if name not in RELEASES:
            known = ", ".join(RELEASES)
            raise ConfigError("--profile", f"{name!r} is no profile", did_you_mean(name, RELEASES, f"choose one of {known}"))
        return Profile(name, RELEASES[name], "--profile")
    try:
        installed = metadata.version("vllm")
    except metadata.PackageNotFoundError:
        return Profile(NEWEST, RELEASES[NEWEST], "no vLLM is installed here: the newest release that is modelled")
    return nearest_to(installed)


def nearest_to(installed: str) -> Profile:
    """The newest profile that is not newer than a release; for older releases the oldest."""
    known = [profile for profile in RELEASES if profile != "reference"]
    fits = [profile for profile in known if numbers(RELEASES[profile])[:2] <= numbers(installed)[:2]]
    name = fits[-1] if fits else known[0]
    exact = numbers(RELEASES[name])[:2] == numbers(installed)[:2]
    source = f"the installed vLLM is {installed}" + (
        "" if exact else "; this is the nearest profile, check what changed between"
    )
    return Profile(name, RELEASES[name], source)


def has(release: str, since: str | None, until: str | None) -> bool:
    """Whether a release lies within since and until."""
    at = numbers(release)
    return (since is None or numbers(since) <= at) and (until is None or at <= numbers(until))
