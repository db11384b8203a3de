"""What a driver shows of the engine's own objects: all that holds, may write or may read a block in a state, and no more."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from fencepost.impl.drivers.reference import ReferenceDriver
from fencepost.spec.lang import BoundSpec
from fencepost.traces.driver import Exhibits, Observation

from .runs import Values, bound_at, draw, driver_of, take

BOUNDS: dict[str, Values] = {
    "loads": {"kv-role": "kv_consumer", "requests": 3, "blocks": 5, "prompt-tokens": 2, "remote-tokens": 2},
    "cache": {"requests": 3, "blocks": 5, "enable-prefix-caching": 1, "block-size": 2, "max-tokens": 3},
    "bug": {"kv-role": "kv_consumer", "requests": 3, "blocks": 5, "remote-tokens": 1, "abort-of-load": "at-once"},
}


def uses(shown: Observation, block: int) -> set[str]:
    """Who has to do with a block by what the driver observes: kinds and requests, such as `step 0`."""
    found = {f"table {r}" for r, request in shown["requests"].items() if block in request.get("table", ())}
    found |= {f"step {row[0]}" for step in shown["flight"] for row in step["rows"] if block in row[4]}
    found |= {"deferred" for _, blocks in shown["parked"] if block in blocks}
    return found | {f"load {r}" for r, blocks in shown["orphans"].items() if block in blocks}


def exhibited(lines: Iterable[tuple[str, str]]) -> set[str]:
    """The same by the lines of an exhibit; a load whose request waits for it is left out."""
    kinds = {"req_to_blocks": "table", "step in flight": "step", "load of": "load"}
    found: set[str] = set()
    for where, _ in lines:
        request = re.search(r"'(\d+)#", where)
        kind = next((word for start, word in kinds.items() if where.startswith(start)), None)
        if where.startswith("scheduler.deferred_frees"):
            found.add("deferred")
        elif kind is not None and request is not None:
            found.add(f"{kind} {request[1]}")
    return found


@pytest.mark.parametrize("name", BOUNDS)
def test_every_use_of_a_block_is_shown(name: str) -> None:
    bound = bound_at("reference", BOUNDS[name])
    seen: set[str] = set()
    for seed in range(6):
        for driver in states(bound, seed):
            shown = driver.observe()
            if shown["error"] != "NONE":
                break
            for block in range(int(bound.values["blocks"])):
                wanted, lines = uses(shown, block), driver.exhibit([block], [])
                loading = {f"load {r}" for r, job in shown["loads"].items() if job in ("MOVING", "LANDED")}
                assert wanted <= exhibited(lines) <= wanted | loading
                assert lines[0][0] == f"block {block}: block_pool.blocks[{block + 1}]"
                assert f"ref_cnt={shown['refs'][block]}" in lines[0][1]
                assert ("free_block_queue" in lines[0][1]) == (block in shown["free"])
                seen |= {one.split()[0] for one in wanted}
    assert {"table", "step"} <= seen


@pytest.mark.parametrize("name", BOUNDS)
def test_every_request_is_shown_once(name: str) -> None:
    bound = bound_at("reference", BOUNDS[name])
    for driver in states(bound, 7):
        shown = driver.observe()
        if shown["error"] != "NONE":
            break
        lines = driver.exhibit([], list(range(3)))
        assert len(set(lines)) == len(lines)
        alive = {r for r, request in shown["requests"].items() if request["status"] != "HELD"}
        statuses = [(where, what) for where, what in lines if where.startswith("request ")]
        assert alive <= {int(where.split()[1].rstrip(":")) for where, what in statuses if "num_tokens=" in what}


def states(bound: BoundSpec, seed: int) -> Iterable[ReferenceDriver]:
    """The driver in each state of a random run."""
    driver = driver_of(bound)
    assert isinstance(driver, Exhibits)
    yield driver
    for rule, args, _ in draw(bound, seed, 60):
        take(driver, bound, rule, args)
        yield driver
