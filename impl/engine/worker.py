"""The interface between the engine and whatever executes its steps: a simulation, or a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .output import LoadSpec, ModelRunnerOutput, SchedulerOutput


class Worker(Protocol):
    """Executes steps in the order they were enqueued in, on one stream, and loads in no order with it.

    All it knows of requests it is told with steps and loads. Block tables are its own; of a request that is known they
    only grow, until the request is resumed after a preemption.
    """

    def allocate(self, num_blocks: int, block_size: int) -> None:
        """Reserve KV memory of so many blocks of `block_size` tokens, block 0 included; called once, at first."""
        ...

    def enqueue(self, step: SchedulerOutput) -> None:
        """Bring the tables up to date, and put the step on the stream behind those before it."""
        ...

    def no_forward(self, step: SchedulerOutput) -> None:
        """Bring the tables up to date for a step without tokens that is processed at once; nothing is executed."""
        ...

    def start_load(self, load: LoadSpec) -> None:
        """Begin to write a load's tokens into its blocks; nothing orders that with the stream."""
        ...

    def loads_in_flight(self) -> Sequence[str]:
        """The requests whose load has been started and not landed, in the order of their starts."""
        ...

    def has_load(self, request_id: str) -> bool:
        """Whether a load of the request has been started and not acknowledged, landed or not."""
        ...

    def has_landed(self, request_id: str) -> bool:
        """Whether such a load has landed."""
        ...

    def land(self, request_id: str) -> None:
        """Let all bytes of a load arrive; `KeyError` unless it is in flight."""
        ...

    def acknowledge(self, request_id: str) -> None:
        """Forget a load that has landed, as its report is about to be made; `KeyError` unless there is one."""
        ...

    def drop_rows(self, request_id: str) -> None:
        """Leave out an ended request's tokens in steps that did not run yet (only under the mechanism `ended_rows`)."""
        ...

    def has_step(self) -> bool:
        """Whether some step did not run yet."""
        ...

    def run_step(self) -> None:
        """Execute the oldest step that did not run yet; `IndexError` if there is none."""
        ...

    def is_ready(self) -> bool:
        """Whether the oldest step not read yet has been executed."""
        ...

    def read(self) -> ModelRunnerOutput:
        """Take the output of the oldest step; `IndexError` unless it is ready."""
        ...
