"""The whole state of a release's scheduler under its driver: saved, restored, and digested.

Saved is whatever hangs on the scheduler, field by field (`impl/vllm/memory.py`), so that a fork's own fields are saved, too.

The digest has what an observation does not show. Fields that this module knows are digested in terms that do not depend on
how a run came there, or left out for a reason that `LEFT_OUT` states. A field that it does not know counts as state as soon as
it differs from what it was in the beginning: a fork's own field can make a difference that nobody here has heard of. So can
a field of `LEFT_OUT` that the user's own scheduler or connector names in its source: it counts, too.
"""

from __future__ import annotations

import inspect
import random
import re
import sys
import types
import weakref
from array import array
from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from ...traces.driver import Names
from ..vllm.build import LOAD_PARAMS
from ..vllm.memory import CODE, VIEWS, Memory, Saved, inside
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
        "tells the worker whom to forget; ids are never used twice; digested with a connector of the user's own, which the "
        "next step tells: of requests that are gone and that it does not name itself, whether there are none, one or several"
    ),
    "scheduler.reset_preempted_req_ids": (
        "tells the worker what it also learns as the request is resumed; digested with a connector of the user's own"
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
NEVER = {"arrival_time", "new_block_ids", "finished_req_ids", "reset_preempted_req_ids"}
"""Names that make no left-out field count as state: the time of day, what also has another meaning, and what `digest` adds."""

ROLES = ("scheduler", "manager", "coordinator", "group", "pool", "queue", "cached")
"""The objects that are there from the beginning to the end, whose fields are looked at."""


_PLAIN = (int, float, str, bytes, bool, type(None), complex)
_REQUEST_ID = re.compile(r"(\d+)#\d+")
_PLAIN_VALUE: Mapping[type, Any] = {str: str.__str__, int: int.__int__, float: float.__float__, bytes: bytes.__bytes__}
_STEPS = "vllm.v1.core.sched.output"
_NEXT_STEP = ("finished_req_ids", "reset_preempted_req_ids")

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
        self.met_numbers = False
        own = [engine.scheduler] if driver.settings.scheduler_cls else []
        own += [engine.scheduler.connector] if driver.settings.connector else []
        named = {word for one in own for word in _words_of(_type(one))}
        self.asked = named - NEVER
        self.tells_connector = driver.settings.connector is not None or not named.isdisjoint(_NEXT_STEP)
        coordinator, pool = engine.manager.coordinator, engine.pool
        group = coordinator.single_type_managers[0]
        cached = pool.cached_block_hash_to_block
        known = (engine.scheduler, engine.manager, coordinator, group, pool, pool.free_block_queue, cached)
        self._known = {id(one) for one in known}
        self._watched = [Watched(self, role, one) for role, one in zip(ROLES, known, strict=True)]
        if driver.settings.connector is not None:
            self._watched.append(Watched(self, "connector", engine.scheduler.connector))
        self._request = Watched(self, "request", request)
        self._block = Watched(self, "block", pool.blocks[1])

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
        self.met_numbers = False
        requests, blocks = members(driver, names)
        scheduler = engine.scheduler
        ahead = getattr(scheduler, "sched_step_seq", 0) - getattr(scheduler, "processed_step_seq", 0)
        unknown = [found for watched in self._watched for found in watched.changed(requests, blocks)]
        unknown += self._of_blocks(requests, blocks)
        told = [self._of_request(request, requests, blocks) for request in scheduler.requests.values()]
        if self.met_numbers:
            # They may name members: then nothing is taken for the same under other names.
            unknown.append(("names", tuple(requests), tuple(blocks)))
        unknown += self._of_next_step(requests) if self.tells_connector else []
        return (ahead, tuple(sorted(told, key=repr)), *worker_part(driver, requests, blocks), tuple(unknown))

    def _of_next_step(self, requests: Sequence[int]) -> list[tuple[Any, ...]]:
        """Whose end, and whose preemption by a reset, the next step tells: of those gone that nothing else names, how many."""
        found: list[tuple[Any, ...]] = []
        for name in _NEXT_STEP:
            ids: set[str] = getattr(self.driver.engine.scheduler, name, None) or set()
            named = [i for i in ids if i in self.gone or i in self.driver.current.values()]
            told = sorted([self.request_name(i, requests) or () for i in named])
            found.append(("scheduler", name, (tuple(told), min(len(ids) - len(named), 2))))
        return found

    def _of_blocks(self, requests: Sequence[int], blocks: Sequence[int]) -> list[tuple[Any, ...]]:
        """Fields of blocks that are not known."""
        if not self._block.before and not self._block.others:
            return []
        found: list[tuple[Any, ...]] = []
        every: list[Any] = self.driver.engine.pool.blocks
        for block in every[1:]:
            changed = self._block.changed(requests, blocks, block)
            if changed:
                found.append(("block", blocks[int(block.block_id)], tuple(changed)))
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
            unknown.append(("request", "num_preemptions", request.num_preemptions > 0))
            unknown.append(("request", "kv_transfer_params", self._params(request, requests, blocks)))
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
        own = {name: value for name, value in params.items() if LOAD_PARAMS.get(name, self) != value}
        return self.frozen(own, requests, blocks), tuple(sorted(LOAD_PARAMS.keys() - params.keys()))

    def frozen(self, value: Any, requests: Sequence[int], blocks: Sequence[int]) -> Hashable:
        """A value as nested tuples, requests and blocks by their names."""
        return Frozen(self, requests, blocks).of(value)

    def request_name(self, request_id: str, requests: Sequence[int]) -> tuple[str, int] | None:
        """The name of a request, or its number among those met that are gone; None for what is no request's id."""
        found = _REQUEST_ID.fullmatch(request_id)
        if found is None:
            return None
        r = int(found[1])
        if self.driver.current.get(r) == request_id:
            return "request", requests[r]
        return "gone", self.gone.setdefault(request_id, len(self.gone))

    def fields(self, one: Any) -> Mapping[str, Any]:
        """An object's attributes by name: those in its dictionary, and its slots."""
        slots = self.memory.slots(_type(one))
        if not hasattr(one, "__dict__"):
            return {name: getattr(one, name, None) for name in slots}
        return _fields(one) | {name: getattr(one, name, None) for name in slots} if slots else _fields(one)

    def is_followed(self, one: Any) -> bool:
        """Whether an object's fields are looked at: not those of constant types, nor of objects that are looked at anyway."""
        return id(one) not in self._known and (_type(one) in self.handed_out or self.memory.has_fields(one))

    def is_opaque(self, one: Any) -> bool:
        """Whether nothing of an object can be looked at, though it is none of a constant type."""
        return not self.memory.has_fields(one) and _type(one) not in self.constant | self.handed_out

    def block_name(self, one: Any, blocks: Sequence[int]) -> int | None:
        """The name of one of the pool's own blocks."""
        pool, block_id = self.driver.engine.pool.blocks, int(one.block_id)
        return blocks[block_id] if 0 <= block_id < len(blocks) and pool[block_id] is one else None


class Frozen:
    """Makes nested tuples of values, which have all that can differ; an object that is met again is said by its number."""

    def __init__(self, state: State, requests: Sequence[int], blocks: Sequence[int]) -> None:
        self.state, self.requests, self.blocks = state, requests, blocks
        self.met: dict[int, tuple[int, Any]] = {}

    def of(self, value: Any) -> Hashable:
        """A value's tuple."""
        made = _type(value)
        if made is str:
            return self.state.request_name(value, self.requests) or value
        if made in _PLAIN:
            self.state.met_numbers |= made in (int, float, bytes)
            return value
        if isinstance(value, Enum):
            return made.__name__, value.name or str(value)
        for plain in (str, int, float, bytes):
            if isinstance(value, plain):
                return made.__name__, self.of(_PLAIN_VALUE[plain](value))
        if made not in (tuple, frozenset):
            if id(value) in self.met:
                return "met", self.met[id(value)][0]
            self.met[id(value)] = len(self.met), value
        if isinstance(value, self.state.request_type):
            return self.of(value.request_id)
        name = self.state.block_name(value, self.blocks) if isinstance(value, self.state.block_type) else None
        return self._compound(value) if name is None else ("block", name)

    def _compound(self, value: Any) -> Hashable:
        made = _type(value)
        fields = sorted(self.state.fields(value).items()) if self.state.is_followed(value) else []
        if made.__module__ == _STEPS:  # tokens are said by the request's name
            fields = [(name, one) for name, one in fields if not name.endswith("token_ids")]
        return (made.__name__, *[(name, self.of(one)) for name, one in fields], *self._content(value))

    def _content(self, value: Any) -> Iterator[Hashable]:
        """What is in an object besides its fields."""
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value).items()
            yield from [(self.of(key), self.of(one)) for key, one in items]
        elif isinstance(value, set | frozenset):
            yield from self._members(cast("set[Any] | frozenset[Any]", value))
        elif isinstance(value, list | tuple | deque):
            yield from [self.of(one) for one in cast("Sequence[Any]", value)]
        elif isinstance(value, weakref.ref):
            yield self.of(value())
        elif isinstance(value, random.Random):
            yield self.of(value.getstate())
        elif isinstance(value, (*CODE, *VIEWS, types.CellType)):
            yield from _place(value)
            yield from [self.of(one) for one in inside(value)]
        else:
            yield from self._data(value)

    def _members(self, value: set[Any] | frozenset[Any]) -> list[Hashable]:
        """A set's members, strings in the same order in every process."""
        ordered = sorted(value, key=lambda one: (len(one), one) if isinstance(one, str) else (0, ""))
        return sorted([self.of(one) for one in ordered], key=repr)

    def _data(self, value: Any) -> Iterator[Hashable]:
        """The content of arrays, tensors and what is known by its value only."""
        made = _type(value)
        if isinstance(value, bytearray):
            yield bytes(value)
        elif isinstance(value, array):
            yield from (value.typecode, value.tobytes())
        elif hasattr(value, "dtype") and hasattr(value, "tolist"):
            yield from (str(value.dtype), tuple(value.shape), self.of(value.tolist()))
        elif isinstance(value, type | types.ModuleType):
            yield getattr(value, "__module__", ""), value.__name__
        elif made.__hash__ not in (None, object.__hash__) and self.state.is_opaque(value):
            yield repr(value)


def _place(code: Any) -> tuple[Hashable, ...]:
    """Where a function was written."""
    if isinstance(code, types.BuiltinFunctionType):
        return str(code.__module__), code.__qualname__
    function = code.__func__ if isinstance(code, types.MethodType) else code
    if not isinstance(function, types.FunctionType):
        return ()
    where = function.__code__
    return function.__module__, function.__qualname__, where.co_firstlineno, where.co_linetable


def _words_of(made: type) -> set[str]:
    """The words in the files of a class and of its bases that are not the release's."""
    words: set[str] = set()
    for module in {base.__module__ for base in made.__mro__}:
        if module.partition(".")[0] not in {"vllm", *sys.stdlib_module_names}:
            with suppress(OSError, TypeError, KeyError):
                words |= {*re.findall(r"\w+", inspect.getsource(sys.modules[module]))}
    return words


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
        return all(isinstance(one, _PLAIN) for one in value)
    if made is dict:
        return len(value) < 2 and all(isinstance(one, _PLAIN) for item in value.items() for one in item)
    return made in _PLAIN or isinstance(value, Enum)


class Watched:
    """The fields of an object that this module does not know, with their values in the beginning.

    Values in which nothing but plain ones can be are compared as they are, all others as nested tuples.
    """

    def __init__(self, state: State, role: str, one: Any) -> None:
        self.state, self.role, self.one = state, role, one
        left_out = {name.partition(".")[2] for name in LEFT_OUT if name.startswith(f"{role}.")}
        self.known = {*SHOWN[role].split()} | left_out - state.asked
        there = state.fields(one)
        self.size = len(there)
        fields = {name: value for name, value in there.items() if name not in self.known}
        self.before = {name: value for name, value in fields.items() if _type(value) in state.constant}
        self.before |= {name: copy(value) for name, value in fields.items() if _is_flat(value)}
        others = {name: value for name, value in fields.items() if name not in self.before}
        self.others = {name: state.frozen(value, *members(state.driver, None)) for name, value in others.items()}
        self._before = tuple(self.before.values())
        self._names = tuple(self.before)

    def _values(self, fields: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple([fields.get(name) for name in self._names])

    def changed(self, requests: Sequence[int], blocks: Sequence[int], one: Any = None) -> list[tuple[Any, ...]]:
        """The fields that are not as in the beginning, of this object or another one of its kind."""
        fields = self.state.fields(self.one if one is None else one)
        if not self.others and len(fields) == self.size and not _differs(self._values(fields), self._before):
            return []
        suspects = [name for name, value in self.before.items() if _differs(fields.get(name), value)]
        found: list[tuple[Any, ...]] = [(self.role, n, self.state.frozen(fields.get(n), requests, blocks)) for n in suspects]
        for name, before in self.others.items():
            numbers = self.state.met_numbers
            now = self.state.frozen(fields.get(name), requests, blocks)
            if now != before:
                found.append((self.role, name, now))
            else:
                self.state.met_numbers = numbers
        if len(fields) != self.size:
            new = sorted(fields.keys() - self.before.keys() - self.others.keys() - self.known)
            found += [(self.role, name, self.state.frozen(fields[name], requests, blocks)) for name in new]
        return found


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
