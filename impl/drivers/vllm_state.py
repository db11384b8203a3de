"""The whole state of a release's scheduler under its driver: saved, restored, and digested.

Saved is whatever hangs on the scheduler, field by field (`impl/vllm/memory.py`), so that a fork's own fields are saved, too.

The digest has what an observation does not show. Fields that this module knows are digested in terms that do not depend on
how a run came there, or left out for a reason that `LEFT_OUT` states. A field that it does not know counts as state as soon as
it differs from what it was in the beginning: a fork's own field can make a difference that nobody here has heard of. So can
a field of `LEFT_OUT` that the user's own scheduler or connector names in its source: it counts, too.
"""

from __future__ import annotations

import random
import re
import sys
import types
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from copy import copy
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...traces.driver import Names
from ..vllm.build import load_params
from ..vllm.memory import Memory, Saved
from ..vllm.own_sources import source_of
from .frozen import ABSENT, GONE, PLAIN, REQUEST, Frozen, changes, few_of_the_gone
from .kv_digest import members, worker_part, worker_tables

if TYPE_CHECKING:
    from ..vllm.engine import ReleaseEngine
    from .vllm import VllmDriver

SHOWN = {
    "scheduler": (
        "requests waiting kv_holding_waiting skipped_waiting running finished_recving_kv_req_ids deferred_frees "
        "_inflight_prefills processed_step_seq sched_step_seq kv_cache_manager connector"
    ),
    "request": (
        "request_id status num_prompt_tokens kv_transfer_params num_computed_tokens num_output_placeholders prompt_token_ids "
        "_output_token_ids output_token_ids _all_token_ids all_token_ids num_stale_output_tokens drop_stale_output "
        "async_tokens_to_discard num_in_flight_tokens last_sched_seq block_hashes"
    ),
    "manager": "coordinator block_pool",
    "coordinator": "block_pool single_type_managers",
    "group": "block_pool req_to_blocks _null_block",
    "pool": "blocks free_block_queue cached_block_hash_to_block null_block get_new_blocks",
    "queue": "num_free_blocks fake_free_list_head fake_free_list_tail",
    "cached": "_cache",
    "block": "block_id ref_cnt _block_hash prev_free_block next_free_block pool is_null",
    "connector": "_vllm_config _kv_transfer_config _kv_cache_config _kv_cache_manager _role update_state_after_alloc",
}
"""Fields that an observation shows, or that `digest` spells out."""

LEFT_OUT = {
    "scheduler.current_step": "counts calls; asked only where pipeline stages alternate under the V2 model runner",
    "scheduler.num_executed_steps": "counts steps; asked only where prefills are held back (prefill_schedule_interval > 1)",
    "scheduler.last_prefill_step": "the same",
    "scheduler.prefill_capacity_bound": "asked only where prefills are throttled between data-parallel ranks",
    "scheduler.prev_step_scheduled_req_ids": (
        "tells the worker which token ids to repeat; 0.23 also asserts that a resumed request was not in the step before, "
        "which it cannot have been: that step would have had to preempt it after it had scheduled it"
    ),
    "scheduler.finished_req_ids": (
        "tells the worker whom to forget; ids are never used twice; digested where a connector or scheduler of the user's own "
        "reads it"
    ),
    "scheduler.reset_preempted_req_ids": (
        "tells the worker what it also learns as the request is resumed; digested where a class of the user's own reads it"
    ),
    "scheduler._kv_fetch_counts": "statistics",
    "scheduler._kv_fetch_stages": "statistics",
    "scheduler.deferred_waiting": "who was skipped by the last scan: statistics, and the bound on prefills above",
    "scheduler._skip_zero_block_ids": "blocks that the worker must not zero: it has nothing to zero here (0.27)",
    "scheduler._spec_token_placeholders": "what drafts would stand for: there are none",
    "request.sampling_params": "one for all requests",
    "request.arrival_time": "asked only under the priority policy",
    "request.events": "statistics",
    "request.num_preemptions": "digested with a connector of the user's own: asked where a load completes; else statistics",
    "request.num_cached_tokens": "statistics",
    "request.num_external_computed_tokens": "statistics",
    "request.prefill_stats": "statistics",
    "request.spec_decode_metrics": "statistics",
    "request.spec_token_ids": "drafts: there are none",
    "request.is_prefill_chunk": "read by the call that sets it; later only for throttled prefills, drafts and grammars",
    "request.next_decode_eligible_step": "set only under the V2 model runner",
    "request.stop_reason": "set as the request ends",
    "request._block_hasher": "one for all requests",
    "request.get_hash_new_full_blocks": "the same",
    "request.skip_reading_prefix_cache": "said by the sampling parameters",
    "manager.empty_kv_cache_blocks": "one for all requests: no blocks",
    "group.new_block_ids": "blocks to zero, taken only where the worker zeroes (0.23 and 0.25 collect them for ever otherwise)",
    "group.num_cached_block": "how many blocks of a table have a hash: the tables and hashes shown say so",
    "pool._reuse_watchers": "who is told when a block is reused: nobody here",
    "block._block_hash_num_tokens": "how many tokens the hash is of: all of a block",
}
"""Fields that make no difference to anything that can happen later in the releases, and why.

A new use of one in a changed checkout is not seen; one that the user's own scheduler or connector names counts as state.
"""
NEXT_STEP = {"finished_req_ids", "reset_preempted_req_ids"}
"""Fields of the scheduler that the next step tells a connector."""
NEVER = {"arrival_time", "new_block_ids", *NEXT_STEP}
"""Names that make no left-out field count as state: the time of day, what also has another meaning, and what `digest` adds."""

ROLES = ("scheduler", "manager", "coordinator", "group", "pool", "queue", "cached")
"""The objects that are there from the beginning to the end, whose fields are looked at."""


_REQUEST_ID = re.compile(r"(\d+)#\d+")

OF_MANY = ("request", "block")
"""The roles of objects of which there are many."""
MANY = 64
"""More than there are requests or blocks at any bounds at which a release is searched."""
_CONTAINERS = (Mapping, Sequence, Set, types.FunctionType, random.Random)

Told = tuple[str, Hashable]
"""Where something stands that is not as in the beginning, and what is there."""

Saving = tuple[Saved, tuple[Any, ...]]


class State:
    """The state of a driver's release."""

    def __init__(self, driver: VllmDriver) -> None:
        self.driver = driver
        engine = driver.engine
        self.constant = _constant_types(engine) | {type(driver)}
        request = engine.new_request("0#0", [1])
        self.request_type, self.block_type = _type(request), _type(engine.pool.blocks[1])
        self.handed_out = {_type(engine.empty_step()), _type(request.output_token_ids)}
        self.memory = Memory([engine.scheduler, engine.in_flight, driver.worker], self.constant | self.handed_out)
        self.gone: dict[str, int] = {}
        self.alive: set[str] = set()
        own = [engine.scheduler] if driver.settings.scheduler_cls else []
        own += [engine.scheduler.connector] if driver.settings.connector else []
        source = source_of([_type(part) for one in own for part in (one, *self.fields(one).values())])
        named = {name.partition(".")[2] for name in LEFT_OUT} if source.unread else source.named
        self.asked, self.told = named - NEVER, sorted(named & NEXT_STEP)
        self.changed_by_own, self.ordered = source.changed, "requests" in source.through
        self._is_theirs = bool(own) or driver.release.origin != "fetched"
        coordinator, pool = engine.manager.coordinator, engine.pool
        group = coordinator.single_type_managers[0]
        cached = pool.cached_block_hash_to_block
        known = (engine.scheduler, engine.manager, coordinator, group, pool, pool.free_block_queue, cached)
        self._known = {id(one) for one in known}
        self._looked_at: set[int] = set()
        self._watched = [Watched(self, role, one) for role, one in zip(ROLES, known, strict=True)]
        if driver.settings.connector is not None:
            self._watched.append(Watched(self, "connector", engine.scheduler.connector))
        self._request = Watched(self, "request", request)
        self._block = Watched(self, "block", pool.blocks[1])
        self._aliases = self._shared()

    # Saved and restored.

    def save(self) -> Saving:
        """Everything that changes."""
        driver = self.driver
        lives = {i: driver.lives[i] for i in driver.current.values()}
        return self.memory.save(), (
            driver.engine.error,
            driver.born,
            driver.foreign,
            driver.misread,
            dict(driver.current),
            lives,
        )

    def restore(self, saved: Saving) -> None:
        """Put everything back as it was when it was saved."""
        driver = self.driver
        memory, (driver.engine.error, driver.born, driver.foreign, driver.misread, current, lives) = saved
        memory.restore()
        driver.current = dict(current)
        driver.lives.update(lives)

    # The digest.

    def digest(self, names: Names | None) -> Hashable:
        """What of the state is neither shown nor `LEFT_OUT`, as nested tuples."""
        driver, engine = self.driver, self.driver.engine
        if engine.error is not None:
            return ()
        self.gone.clear()
        steps = (i for step in engine.in_flight for i in step.num_scheduled_tokens)
        self.alive = {*engine.scheduler.requests, *steps, *driver.worker.loads}
        requests, blocks = members(driver, names)
        scheduler = engine.scheduler
        ahead = getattr(scheduler, "sched_step_seq", 0) - getattr(scheduler, "processed_step_seq", 0)
        unknown = [found for watched in self._watched for found in watched.changed(requests, blocks)]
        unknown += self._of_blocks(requests, blocks)
        told = [self._of_request(request, requests, blocks) for request in scheduler.requests.values()]
        if self.ordered and scheduler.requests:
            unknown.append(("scheduler.requests", tuple([self.request_name(i, requests) for i in scheduler.requests])))
        shared = self._shared() if self._is_theirs else self._aliases
        unknown += [("the same object", shared)] if shared != self._aliases else []
        tells = [(name, getattr(scheduler, name, None)) for name in self.told]
        unknown += [(f"scheduler.{name}", self.frozen(ids, requests, ())) for name, ids in tells if ids]
        digest = ahead, tuple(sorted(told, key=repr)), *worker_part(driver, requests, blocks), tuple(unknown)
        return few_of_the_gone(digest) if self.gone else digest

    def _shared(self) -> tuple[tuple[str, str], ...]:
        """Fields in which an object is that stands in an earlier field, too."""
        first: dict[int, str] = {}
        found: list[tuple[str, str]] = []
        for path, value in (pair for watched in self._watched for pair in watched.objects()):
            if first.setdefault(id(value), path) != path:
                found.append((path, first[id(value)]))
        return tuple(found)

    def _of_blocks(self, requests: Sequence[int], blocks: Sequence[int]) -> list[Told]:
        """Fields of blocks that are not known."""
        if not self._block.before and not self._block.others:
            return []
        found: list[Told] = []
        every: list[Any] = self.driver.engine.pool.blocks
        for block in every[1:]:
            changed = self._block.changed(requests, blocks, block)
            if changed:
                found.append((f"block[{blocks[int(block.block_id)]}]", tuple(changed)))
        return sorted(found, key=repr)

    def _of_request(self, request: Any, requests: Sequence[int], blocks: Sequence[int]) -> tuple[Any, ...]:
        """Steps in flight that name a request, its hashed blocks, and the worker's own table of it while it runs."""
        driver = self.driver
        name = requests[driver.lives[request.request_id].r]
        processed = getattr(driver.engine.scheduler, "processed_step_seq", 0)
        last = max(0, getattr(request, "last_sched_seq", 0) - processed)
        if request.is_finished():
            return name, last, ()
        unknown = self._request.changed(requests, blocks, request)
        if driver.settings.connector is not None:
            unknown.append(("request.num_preemptions", request.num_preemptions > 0))
        if self._is_theirs:
            unknown.append(("request.kv_transfer_params", self._params(request, requests, blocks)))
        return (
            name,
            last,
            request.num_tokens,
            getattr(request, "num_in_flight_tokens", 0),
            len(request.block_hashes),
            worker_tables(driver, request.request_id, blocks) if request.status.name == "RUNNING" else (),
            tuple(unknown),
        )

    def _params(self, request: Any, requests: Sequence[int], blocks: Sequence[int]) -> Hashable:
        """What a request says of its transfer otherwise than at the start."""
        params: dict[str, Any] | None = request.kv_transfer_params
        if params is None:
            return None
        first = load_params(request.request_id)
        own = {name: value for name, value in params.items() if _differs(value, first.get(name, ABSENT))}
        return self.frozen(own, requests, blocks), tuple(sorted(first.keys() - params.keys()))

    def frozen(self, value: Any, requests: Sequence[int], blocks: Sequence[int], *, named: bool = True) -> Hashable:
        """A value as nested tuples, requests and blocks by their names, and numbers, too, if they are `named`."""
        return Frozen(self, requests, blocks, named=named).of(value)

    def request_name(self, request_id: str, requests: Sequence[int]) -> tuple[str, int] | None:
        """The name of a request, or its number among those met that are gone; None for what is no request's id.

        Gone is who has ended, and is named by no step or load in flight.
        """
        found = _REQUEST_ID.fullmatch(request_id)
        if found is None:
            return None
        r = int(found[1])
        if request_id in self.alive and self.driver.current.get(r) == request_id:
            return REQUEST, requests[r]
        return GONE, self.gone.setdefault(request_id, len(self.gone))

    def fields(self, one: Any) -> Mapping[str, Any]:
        """An object's attributes by name: those in its dictionary, and its slots."""
        slots = self.memory.slots(_type(one))
        if not hasattr(one, "__dict__"):
            return {name: getattr(one, name, ABSENT) for name in slots}
        return _fields(one) | {name: getattr(one, name, ABSENT) for name in slots} if slots else _fields(one)

    def is_followed(self, one: Any) -> bool:
        """Whether an object's fields are looked at: not those of constant types, nor of objects that are looked at anyway."""
        return id(one) not in self._known and (_type(one) in self.handed_out or self.memory.has_fields(one))

    def names_members(self, value: Any) -> bool:
        """Whether a value has a number that could be that of a request or a block."""
        of = value, range(MANY), range(MANY)
        return self.frozen(*of) != self.frozen(*of, named=False)

    def stays(self, role: str, one: Any) -> bool:
        """Whether an object is looked at field by field: one that hangs on the scheduler or connector, not on a request."""
        if role in OF_MANY or id(one) in self._looked_at or not self.is_followed(one):
            return False
        made = _type(one)
        if made.__module__.partition(".")[0] in {"builtins", *sys.stdlib_module_names} or issubclass(made, _CONTAINERS):
            return False
        self._looked_at.add(id(one))
        return True

    def is_opaque(self, one: Any) -> bool:
        """Whether nothing of an object can be looked at, though it is none of a constant type."""
        return not self.memory.has_fields(one) and _type(one) not in self.constant | self.handed_out

    def block_name(self, one: Any, blocks: Sequence[int]) -> int | None:
        """The name of one of the pool's own blocks."""
        pool, block_id = self.driver.engine.pool.blocks, int(one.block_id)
        return blocks[block_id] if 0 <= block_id < len(blocks) and pool[block_id] is one else None


def _type(one: Any) -> type:
    return one.__class__


def _fields(one: Any) -> dict[str, Any]:
    return one.__dict__


def _differs(now: Any, before: Any) -> bool:
    try:
        return bool(now != before)
    except Exception:  # what cannot be compared, such as an array with None, is something else
        return True


def _is_flat(value: Any) -> bool:
    """Whether a value is plain, or an ordinary container of plain values whose order cannot change unnoticed."""
    made = _type(value)
    if made is tuple:
        return all(_is_flat(one) for one in value)
    if made in (list, set, frozenset):
        return all(isinstance(one, PLAIN) for one in value)
    if made is dict:
        return len(value) < 2 and all(isinstance(one, PLAIN) for item in value.items() for one in item)
    return made in PLAIN or isinstance(value, Enum)


class Watched:
    """The fields of an object that this module does not know, with their values in the beginning.

    Values in which nothing but plain ones can be are compared as they are, objects that stay field by field, all others as
    nested tuples.
    """

    def __init__(self, state: State, role: str, one: Any) -> None:
        self.state, self.role, self.one = state, role, one
        left_out = {name.partition(".")[2] for name in LEFT_OUT if name.startswith(f"{role}.")}
        self.known = {*SHOWN.get(role, "").split()} | left_out - state.asked
        there = state.fields(one)
        self.size = len(there)
        fields = {name: value for name, value in there.items() if name not in self.known}
        self.before = {name: value for name, value in fields.items() if _type(value) in state.constant}
        self.before |= {name: copy(value) for name, value in fields.items() if _is_flat(value)}
        others = {name: value for name, value in fields.items() if name not in self.before}
        stay = {name: value for name, value in others.items() if state.stays(role, value)}
        self.parts = {name: Watched(state, f"{role}.{name}", value) for name, value in stay.items()}
        others = {name: value for name, value in others.items() if name not in self.parts}
        self.others = {name: state.frozen(value, *members(state.driver, None), named=False) for name, value in others.items()}
        self._before = tuple(self.before.values())
        self._names = tuple(self.before)
        classes = [f"{base.__module__}.{base.__qualname__}" for base in _type(one).__mro__ if role not in OF_MANY]
        again = [name for name in (*self.before, *self.others) if any(f"{at}.{name}" in state.changed_by_own for at in classes)]
        self.again = [name for name in again if state.names_members(fields[name])]

    def _values(self, fields: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple([fields.get(name, ABSENT) for name in self._names])

    def changed(self, requests: Sequence[int], blocks: Sequence[int], one: Any = None) -> list[Told]:
        """The fields that are not as in the beginning, of this object or another one of its kind.

        Also those that are so again, where they can have changed and name members: the same number is that of another one now.
        """
        fields = self.state.fields(self.one if one is None else one)
        plain = not self.others and not self.parts and not self.again
        if plain and len(fields) == self.size and not _differs(self._values(fields), self._before):
            return []

        def frozen(name: str, *, named: bool = True) -> Hashable:
            return self.state.frozen(fields.get(name, ABSENT), requests, blocks, named=named)

        suspects = [name for name, value in self.before.items() if _differs(fields.get(name, ABSENT), value)]
        found: list[Told] = [(f"{self.role}.{name}", frozen(name)) for name in suspects]
        for name, before in self.others.items():
            now = frozen(name, named=False)
            if now != before:
                found += changes(f"{self.role}.{name}", frozen(name), now, before)
        told = {path for path, _ in found}
        found += [(f"{self.role}.{name}", frozen(name)) for name in self.again if f"{self.role}.{name}" not in told]
        for name, part in self.parts.items():
            same = fields.get(name) is part.one
            found += part.changed(requests, blocks) if same else [(part.role, frozen(name))]
        new = sorted(fields.keys() - self.before.keys() - self.others.keys() - self.parts.keys() - self.known)
        return found + [(f"{self.role}.{name}", frozen(name)) for name in new]

    def objects(self) -> Iterator[tuple[str, Any]]:
        """What can be shared of what stands in these fields now, and in those of parts, with where it stands."""
        fields = self.state.fields(self.one)
        for name in (*self.before, *self.others, *self.parts):
            value = fields.get(name)
            if not isinstance(value, (*PLAIN, tuple, frozenset, Enum)) and _type(value) not in self.state.constant:
                yield f"{self.role}.{name}", value
        for part in self.parts.values():
            yield from part.objects()


def _constant_types(engine: ReleaseEngine) -> set[type]:
    """Types whose objects never change, or only count: configurations, statistics."""
    interface = import_module("vllm.v1.kv_cache_interface")
    scheduler = engine.scheduler
    config = scheduler.vllm_config
    never_changed: list[Any] = [
        config,
        *_fields(config).values(),
        scheduler.structured_output_manager,
        scheduler.kv_event_publisher,
        scheduler.encoder_cache_manager,
        *engine.statistics(),
    ]
    types: set[type] = {type(one) for one in never_changed}
    types |= {interface.KVCacheConfig, interface.KVCacheGroupSpec, interface.FullAttentionSpec}
    return types - {type(None), dict, list, set, str, int, float, bool, tuple}
