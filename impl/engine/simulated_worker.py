"""A worker without a device, which remembers for each slot of KV memory what its content depends on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from .output import BlockIds, LoadSpec, ModelRunnerOutput, SchedulerOutput

Tag = int | tuple[str, int]
"""What the KV in a slot depends on: all tokens up to its own.

Of a prompt token that is a number, equal for equal tokens up to there, whoever's prompt they are in. Of an output token
it is its request and its position, since a step is executed before its predecessor's token is known to anybody; a prompt
that repeats another request's output has other tags than that.
"""


def prefix_tags(token_ids: Sequence[int]) -> list[Tag]:
    """The tags of a prompt's tokens: position p depends on tokens 0 to p."""
    tags: list[Tag] = []
    tag = 0
    for token_id in token_ids:
        tag = hash((tag, token_id))
        tags.append(tag)
    return tags


def _own(block_ids: BlockIds) -> BlockIds:
    """A table of the worker's own, to grow while the step that brought it stays as it is."""
    return tuple(list(group) for group in block_ids)


class Sampler(Protocol):
    """Chooses the next token of a request, when its step's output is read."""

    def __call__(self, request_id: str, /) -> int: ...


class RequestState:
    """A request as the worker knows it: the tags of its prompt, and its table in each group."""

    __slots__ = ("prompt_tags", "tables")

    def __init__(self, prompt_tags: list[Tag], tables: BlockIds) -> None:
        self.prompt_tags = prompt_tags
        self.tables = tables

    def tag(self, request_id: str, position: int) -> Tag:
        """The tag of the request's token at a position."""
        return self.prompt_tags[position] if position < len(self.prompt_tags) else (request_id, position)


class Row:
    """One request's part of a step: tokens `start` to `start + num_tokens` - 1, and whether they yield a token.

    `tables` are the request's own, which only grow and are replaced when it is resumed: as far as the row reaches, they
    stay what they were when the step was enqueued.
    """

    __slots__ = ("dropped", "num_tokens", "request_id", "samples", "start", "state", "tables")

    def __init__(self, request_id: str, state: RequestState, start: int, num_tokens: int, samples: bool) -> None:
        self.request_id = request_id
        self.state = state
        self.tables = state.tables
        self.start = start
        self.num_tokens = num_tokens
        self.samples = samples
        self.dropped = False

    @property
    def end(self) -> int:
        """Tokens that are computed once the row has run."""
        return self.start + self.num_tokens

    def block_ids(self, block_size: int) -> BlockIds:
        """The blocks of the tokens up to the row's end, in each group."""
        num_blocks = -(-self.end // block_size)
        return tuple(table[:num_blocks] for table in self.tables)


class DeviceStep:
    """A step on the stream: its rows in scheduling order, and whether it has run."""

    __slots__ = ("ran", "rows")

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.ran = False


class Load:
    """A load that was started, and whether its bytes have landed."""

    __slots__ = ("landed", "spec")

    def __init__(self, spec: LoadSpec) -> None:
        self.spec = spec
        self.landed = False


class SimulatedWorker:
    """Keeps a tag a slot; `slots[block_id * block_size + offset]` is None where nothing was written since the block was
    handed out.

    A step writes the slots of all its tokens when it runs, also those of requests that have ended since it was enqueued.
    """

    __slots__ = ("block_size", "loads", "requests", "sampler", "slots", "steps")

    def __init__(self, sampler: Sampler) -> None:
        self.sampler = sampler
        self.block_size = 0
        self.slots: list[Tag | None] = []
        self.requests: dict[str, RequestState] = {}
        self.steps: deque[DeviceStep] = deque()
        self.loads: dict[str, Load] = {}

    def allocate(self, num_blocks: int, block_size: int) -> None:
        """Reserve empty slots."""
        self.block_size = block_size
        self.slots = [None] * (num_blocks * block_size)

    def enqueue(self, step: SchedulerOutput) -> None:
        """Bring the tables up to date, and put the step on the stream behind those before it."""
        self._update_states(step)
        rows = {row.request_id: row for row in self._rows(step)}
        self.steps.append(DeviceStep([rows[request_id] for request_id in step.num_scheduled_tokens]))

    def no_forward(self, step: SchedulerOutput) -> None:
        """Bring the tables up to date for a step without tokens that is processed at once."""
        self._update_states(step)

    def _update_states(self, step: SchedulerOutput) -> None:
        """Forget requests that ended and tables of preempted ones; take in new ones, and new blocks, which are blank so far."""
        for request_id in step.finished_req_ids:
            self.requests.pop(request_id, None)
        for request_id in step.preempted_req_ids:
            if (state := self.requests.get(request_id)) is not None:
                state.tables = tuple([] for _ in state.tables)
        self._clear(step.new_block_ids_to_zero)
        for new in step.scheduled_new_reqs:
            self.requests[new.req_id] = RequestState(prefix_tags(new.prompt_token_ids), _own(new.block_ids))
        cached = step.scheduled_cached_reqs
        for request_id, new_block_ids in zip(cached.req_ids, cached.new_block_ids, strict=True):
            if new_block_ids is None:
                continue
            state = self.requests[request_id]
            if request_id in cached.resumed_req_ids:
                state.tables = _own(new_block_ids)
            else:
                for table, block_ids in zip(state.tables, new_block_ids, strict=True):
                    table.extend(block_ids)

    def _rows(self, step: SchedulerOutput) -> Iterator[Row]:
        counts = step.num_scheduled_tokens
        for new in step.scheduled_new_reqs:
            start, count = new.num_computed_tokens, counts[new.req_id]
            samples = start + count >= len(new.prompt_token_ids)
            yield Row(new.req_id, self.requests[new.req_id], start, count, samples)
        cached = step.scheduled_cached_reqs
        for request_id, start, num_outputs in zip(
            cached.req_ids, cached.num_computed_tokens, cached.num_output_tokens, strict=True
        ):
            state, count = self.requests[request_id], counts[request_id]
            samples = start + count >= len(state.prompt_tags) + num_outputs
            yield Row(request_id, state, start, count, samples)

    def start_load(self, load: LoadSpec) -> None:
        """Begin a load; its targets stand for nothing until it lands."""
        for block_ids in load.block_ids:
            self._clear(block_ids)
        self.loads[load.request_id] = Load(load)

    def loads_in_flight(self) -> list[str]:  # beyond the spec: for a loop that drives the engine
        """The requests whose load has been started and not landed, in the order of their starts."""
        return [request_id for request_id, load in self.loads.items() if not load.landed]

    def has_load(self, request_id: str) -> bool:
        """Whether a load of the request has been started and not acknowledged, landed or not."""
        return request_id in self.loads

    def has_landed(self, request_id: str) -> bool:
        """Whether such a load has landed."""
        return request_id in self.loads and self.loads[request_id].landed

    def land(self, request_id: str) -> None:
        """Write a load's slots, whoever has its blocks by now; `KeyError` unless it is in flight."""
        load = self.loads[request_id]
        if load.landed:
            raise KeyError(request_id)  # beyond the spec: a caller's mistake
        load.landed = True
        spec = load.spec
        tags = prefix_tags(spec.token_ids)[spec.start : spec.start + spec.num_tokens]
        for block_ids in spec.block_ids:
            for offset, tag in enumerate(tags):
                block, slot = divmod(offset, self.block_size)
                self.slots[block_ids[block] * self.block_size + slot] = tag

    def acknowledge(self, request_id: str) -> None:
        """Forget a load that has landed; `KeyError` unless there is one."""
        if not self.loads[request_id].landed:
            raise KeyError(request_id)  # beyond the spec: a caller's mistake
        del self.loads[request_id]

    def drop_rows(self, request_id: str) -> None:
        """Leave out a request's tokens in steps that did not run yet."""
        for step in self.steps:
            for row in step.rows:
                if row.request_id == request_id and not step.ran:
                    row.dropped = True

    def has_step(self) -> bool:
        """Whether some step did not run yet."""
        return bool(self.steps) and not self.steps[-1].ran

    def run_step(self) -> None:
        """Write the slots of the oldest step that did not run yet; `IndexError` if there is none."""
        step = next((step for step in self.steps if not step.ran), None)
        if step is None:
            raise IndexError("no step is left to run")  # beyond the spec: a caller's mistake
        for row in step.rows:
            if not row.dropped:
                self._write(row)
        step.ran = True

    def is_ready(self) -> bool:
        """Whether the oldest step has run."""
        return bool(self.steps) and self.steps[0].ran

    def read(self) -> ModelRunnerOutput:
        """Sample for the rows of the oldest step that yield a token; `IndexError` unless it has run."""
        if not self.is_ready():
            raise IndexError("no output is ready")  # beyond the spec: a caller's mistake
        rows = self.steps.popleft().rows
        return ModelRunnerOutput({row.request_id: [self.sampler(row.request_id)] for row in rows if row.samples})

    def _write(self, row: Row) -> None:
        size = self.block_size
        for table in row.tables:
            for position in range(row.start, row.end):
                tag = row.state.tag(row.request_id, position)
                self.slots[table[position // size] * size + position % size] = tag

    def _clear(self, block_ids: Sequence[int]) -> None:
        size = self.block_size
        for block_id in block_ids:
            self.slots[block_id * size : (block_id + 1) * size] = [None] * size
