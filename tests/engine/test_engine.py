"""The engine's events, its loop, and what stops it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from fencepost.impl.engine.config import EngineConfig, KVRole
from fencepost.impl.engine.engine import Engine
from fencepost.impl.engine.errors import EngineError, InternalError, ResetWhileHeld, UnknownCompletion
from fencepost.impl.engine.kv_cache_manager import KVCacheManager
from fencepost.impl.engine.kv_connector import RemotePrefillConnector
from fencepost.impl.engine.request import Request, RequestStatus
from fencepost.impl.engine.scheduler import Scheduler
from fencepost.impl.engine.simulated_worker import SimulatedWorker

from .play import Play, wrong_positions


def test_the_batch_queue_holds_as_many_steps_as_configured() -> None:
    play = Play(9, max_concurrent_batches=2).submit("A", 2, 5)
    play.schedule()
    play.schedule()
    with pytest.raises(RuntimeError, match="batch queue is full"):
        play.schedule()
    play.finish_step()
    assert play.schedule() is not None


def test_a_step_is_processed_only_after_it_has_run_and_in_order() -> None:
    play = Play(9).submit("A", 2, 5)
    play.schedule()
    play.schedule()
    with pytest.raises(RuntimeError, match="not been executed"):
        play.process()
    play.run()
    play.run()
    assert [out.new_token_ids for out in (*play.process(), *play.process())] == [[501], [502]]


@pytest.mark.parametrize(("allowed", "kept"), [(0, 0), (1, 1)])
def test_steps_without_tokens_come_back_at_once_save_as_many_as_are_allowed(allowed: int, kept: int) -> None:
    play = Play(4, remote_tokens=2, max_concurrent_batches=3, max_empty_batches=allowed)
    assert play.schedule() is None
    play.submit("A", 2, remote=True)
    assert (play.schedule() is not None) == bool(kept)
    assert play.schedule() is None
    assert len(play.engine.batch_queue) == kept
    assert play.worker.loads_in_flight() == ["A"]


def test_a_worker_learns_of_ends_and_preemptions_with_the_next_step() -> None:
    play = Play(3).submit("A", 1, 3).submit("B", 1, 3)
    play.schedule()
    step = play.schedule()
    assert step is not None
    assert (step.preempted_req_ids, step.finished_req_ids, step.new_block_ids_to_zero) == (["B"], [], [3])
    play.finish_step("A")
    assert sorted(play.worker.requests) == ["A", "B"]
    step = play.schedule()
    assert step is not None
    assert (step.preempted_req_ids, step.finished_req_ids) == ([], ["A"])
    assert sorted(play.worker.requests) == ["B"]


def test_targets_of_loads_are_not_to_be_zeroed() -> None:
    play = Play(4, remote_tokens=2, enable_prefix_caching=True, kv_role="none").submit("A", [1, 2], 1)
    play.schedule()
    play.submit("B", [1, 5, 6], 1, remote=True).submit("C", [9], 1)
    step = play.schedule()
    assert step is not None
    assert step.kv_connector_metadata is not None
    (load,) = step.kv_connector_metadata.loads
    assert (load.block_ids, load.start, load.num_tokens, load.token_ids) == (([3],), 1, 1, (1, 5))
    assert (play.table("B"), step.new_block_ids_to_zero) == ([1, 3], [4])


def test_requests_that_could_never_be_completed_or_told_apart_are_refused() -> None:
    play = Play(4, remote_tokens=2, mechanisms={"abort-of-load": "at-once"})
    with pytest.raises(ValueError, match="more than there are"):
        play.submit("A", 3, 3)
    play.submit("A", 3, 2)
    with pytest.raises(ValueError, match="in use"):
        play.submit("A", 3, 2)
    play.schedule()
    play.engine.abort("A")
    with pytest.raises(ValueError, match="in use by a step"):
        play.submit("A", 3, 2)
    play.finish_step()
    play.submit("A", 2, 2, remote=True)
    play.schedule()
    play.engine.abort("A")
    with pytest.raises(ValueError, match="in use by a load"):
        play.submit("A", 2, 2)


def test_an_abort_of_nothing_has_no_effect() -> None:
    play = Play(4).submit("A", 1, 1)
    assert not play.engine.abort("B")
    play.schedule()
    play.finish_step()
    assert not play.engine.abort("A")


@pytest.mark.parametrize("when", ["waiting", "running", "preempted", "promoted"])
def test_an_abort_in_any_status_leaves_nothing_behind(when: str) -> None:
    play = Play(3, remote_tokens=1, kv_role="none").submit("A", 1, 3)
    victim = "A"
    if when == "running":
        play.schedule()
    elif when == "preempted":
        play.submit("B", 1, 3)
        play.schedule()
        play.schedule()
        victim = "B"
        assert play.status("B") is RequestStatus.PREEMPTED
    elif when == "promoted":
        play.submit("B", 1, 3, remote=True)
        play.schedule()
        play.schedule()
        play.load("B")
        victim = "B"
    assert play.engine.abort(victim)
    play.engine.abort("A")
    while play.engine.batch_queue:
        assert play.finish_step() == []
    assert (sorted(play.free), play.scheduler.requests, play.waiting, play.holding) == ([1, 2, 3], {}, [], [])


def test_what_stops_the_engine_is_raised_again_by_every_later_event() -> None:
    play = Play(4, enable_prefix_caching=True, kv_role="kv_both", mechanisms={"reset-while-parked": "raise"})
    play.submit("A", 2, 2)
    play.schedule()
    with pytest.raises(ResetWhileHeld):
        play.engine.reset_prefix_cache(True)
    events: list[Callable[[], object]] = [
        play.schedule,
        play.engine.run_step,
        play.engine.process,
        lambda: play.engine.abort("A"),
        lambda: play.engine.land("A"),
        lambda: play.engine.report("A"),
        play.engine.reset_prefix_cache,
        lambda: play.submit("B", 1),
    ]
    for event in events:
        with pytest.raises(EngineError) as raised:
            event()
        assert raised.value is play.engine.error
        assert raised.value.kind == "RESET"


def test_a_mistake_of_the_caller_does_not_stop_the_engine() -> None:
    play = Play(4).submit("A", 2, 1)
    for mistake in (lambda: play.engine.land("A"), lambda: play.engine.report("A"), play.engine.run_step):
        with pytest.raises(LookupError):
            mistake()
    assert len(play.engine.run_until_idle()) == 1


def test_the_loop_schedules_ahead_and_then_takes_turns() -> None:
    play = Play(9).submit("A", 2, 3)
    assert (play.engine.step_with_batch_queue(), len(play.engine.batch_queue)) == ([], 1)
    assert (len(play.engine.step_with_batch_queue()), len(play.engine.batch_queue)) == (1, 1)
    assert [out.finish_reason for out in play.engine.run_until_idle()] == [None, "length"]
    assert play.engine.step_with_batch_queue() == []


def many_requests(rng: random.Random) -> list[Request]:
    """Requests of which half share the beginnings of their prompts, and a third load them."""
    common = [rng.randrange(50_000) for _ in range(100)]
    requests: list[Request] = []
    for i in range(150):
        own = [rng.randrange(50_000) for _ in range(rng.randrange(1, 60))]
        prompt = common[: rng.randrange(100)] + own if i % 2 else own
        requests.append(Request(f"{i}", prompt, rng.randrange(1, 60), do_remote_prefill=i % 3 == 0))
    return requests


@pytest.mark.parametrize(("role", "caching"), [("none", True), ("kv_consumer", True), ("kv_both", False)])
def test_at_real_sizes_requests_get_all_their_tokens_and_read_only_their_own_content(role: KVRole, caching: bool) -> None:
    rng = random.Random(1)
    config = EngineConfig(num_gpu_blocks=101, enable_prefix_caching=caching, kv_role=role, max_num_batched_tokens=128)
    worker = SimulatedWorker(lambda _: rng.randrange(50_000))
    engine = Engine(config, worker, RemotePrefillConnector(1000 if role != "none" else 0))
    requests = {request.request_id: request for request in many_requests(rng)}
    for request in requests.values():
        engine.submit(request)
    preemptions = rows = 0
    while engine.scheduler.has_unfinished_requests() or engine.batch_queue:
        if len(engine.batch_queue) < 2 and (step := engine.schedule()):
            preemptions += len(step.preempted_req_ids)
        for request_id in worker.loads_in_flight():
            if rng.random() < 0.5:
                engine.land(request_id)
                engine.report(request_id)
        if engine.batch_queue and rng.random() < 0.7:
            engine.run_step()
            for row in worker.steps[0].rows:
                if requests[row.request_id].status is RequestStatus.RUNNING:
                    rows += 1
                    assert wrong_positions(worker, row) == []
            engine.process()
    assert [len(request.output_token_ids) for request in requests.values()] == [r.max_tokens for r in requests.values()]
    assert engine.scheduler.kv_cache_manager.num_free_blocks == 100
    assert engine.reset_prefix_cache()
    assert preemptions > 0
    assert rows > sum(request.max_tokens for request in requests.values()) / 2


def counting_loads(loads: int) -> int:
    """How often one step's scan asks what a request still lacks, with so many loads to admit."""
    play = Play(2 * loads + 1, remote_tokens=1, max_num_seqs=2 * loads, max_num_batched_tokens=10_000)
    for i in range(loads):
        play.submit(f"{i}", 2, 1, remote=True)
    calls = 0
    asked = KVCacheManager.num_missing_blocks

    def count(manager: KVCacheManager, request: Request) -> int:
        nonlocal calls
        calls += 1
        return asked(manager, request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KVCacheManager, "num_missing_blocks", count)
        play.schedule()
    assert len(play.worker.loads_in_flight()) == loads
    return calls


def test_a_scan_that_admits_many_loads_costs_its_requests() -> None:
    assert counting_loads(200) <= 2 * counting_loads(100) + 2


@pytest.mark.parametrize("seed", range(20))
def test_a_scan_keeps_the_reservation_that_would_be_summed_afresh(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    given: list[int] = []
    play = Play(
        40,
        remote_tokens=5,
        block_size=2,
        enable_prefix_caching=seed % 2 == 0,
        scheduler_reserve_full_isl=False,
        max_num_batched_tokens=12,
    )
    allocate = KVCacheManager.allocate_slots

    def allocate_slots(manager: KVCacheManager, request: Request, num_new_tokens: int, **kwargs: Any) -> Any:
        if kwargs.get("delay_cache_blocks"):
            prefills = play.scheduler.inflight_prefills.values()
            assert kwargs["reserved_blocks"] == sum(map(manager.num_missing_blocks, prefills))
            given.append(kwargs["reserved_blocks"])
        return allocate(manager, request, num_new_tokens, **kwargs)

    monkeypatch.setattr(KVCacheManager, "allocate_slots", allocate_slots)
    for i in range(60):
        if i < 30:
            play.submit(f"{i}", [rng.randrange(2) for _ in range(rng.randrange(1, 16))], 2, remote=rng.random() < 0.7)
        if len(play.engine.batch_queue) < 2:
            play.schedule()
        for name in play.worker.loads_in_flight():
            if rng.random() < 0.5:
                play.load(name)
        if play.engine.batch_queue and rng.random() < 0.6:
            play.finish_step()
    assert max(given) > 0


def test_a_client_says_nothing_of_hashing() -> None:
    for caching in (True, False):
        play = Play(8, block_size=2, enable_prefix_caching=caching)
        request = Request("A", [1, 2, 3, 4, 5], 1)
        play.engine.submit(request)
        assert len(request.block_hashes) == (2 if caching else 0)
        play.schedule()
        other = Request("B", [1, 2, 3, 4, 6], 1)
        play.engine.submit(other)
        step = play.schedule()
        assert step is not None
        assert step.num_scheduled_tokens == {"B": 1 if caching else 5}


@pytest.mark.parametrize("raised", [KeyError, IndexError, ValueError, RuntimeError])
@pytest.mark.parametrize("event", ["schedule", "run_step", "process", "land", "report", "abort", "reset_prefix_cache"])
def test_whatever_goes_wrong_within_an_event_stops_the_engine(
    event: str, raised: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    play = Play(8, remote_tokens=2).submit("A", 2, remote=True).submit("B", 2, 5)
    play.schedule()
    play.schedule()
    breaks: dict[str, tuple[type, str, tuple[Any, ...]]] = {
        "schedule": (SimulatedWorker, "enqueue", ()),
        "run_step": (SimulatedWorker, "run_step", ()),
        "process": (Scheduler, "update_from_output", ()),
        "land": (SimulatedWorker, "land", ("A",)),
        "report": (Scheduler, "update_from_kv_xfer_finished", ("A",)),
        "abort": (KVCacheManager, "pop_blocks_for_free", ("B",)),
        "reset_prefix_cache": (KVCacheManager, "reset_prefix_cache", ()),
    }
    if event in ("schedule", "process"):
        play.run()
    if event == "schedule":
        play.process()
    if event == "report":
        play.engine.land("A")
    owner, name, args = breaks[event]
    bug = raised("bug")

    def broken(*_args: object) -> None:
        raise bug

    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(InternalError) as caught:
        getattr(play.engine, event)(*args)
    assert (caught.value.kind, caught.value.__cause__, play.engine.error) == ("INTERNAL", bug, caught.value)
    with pytest.raises(InternalError):
        play.submit("C", 1)


def test_no_mistake_of_a_caller_stops_the_engine_or_has_an_effect() -> None:
    play = Play(6, remote_tokens=2).submit("A", 2, 1, remote=True).submit("B", 2, 1)
    play.schedule()
    mistakes: list[tuple[type[Exception], Callable[[], object]]] = [
        (RuntimeError, play.process),
        (KeyError, lambda: play.engine.report("A")),
        (KeyError, lambda: play.engine.land("B")),
        (ValueError, lambda: play.submit("A", 1)),
        (ValueError, lambda: play.submit("C", 99)),
    ]
    for kind, mistake in mistakes:
        with pytest.raises(kind):
            mistake()
    play.engine.land("A")
    with pytest.raises(KeyError):
        play.engine.land("A")
    play.engine.report("A")
    play.run()
    with pytest.raises(IndexError):
        play.engine.run_step()
    play.schedule()
    with pytest.raises(RuntimeError):
        play.schedule()
    assert play.engine.error is None
    assert len(play.engine.run_until_idle()) == 2


def test_an_id_that_a_landed_load_still_names_is_refused() -> None:
    play = Play(4, remote_tokens=2, mechanisms={"abort-of-load": "at-once"}).submit("A", 2, remote=True)
    play.schedule()
    play.engine.abort("A")
    play.engine.land("A")
    assert play.worker.loads_in_flight() == []
    with pytest.raises(ValueError, match="in use by a load"):
        play.submit("A", 2, 2)


@pytest.mark.parametrize("status", ["waiting", "running"])
def test_a_load_is_complete_only_of_who_waits_for_it(status: str) -> None:
    play = Play(4).submit("A", 2)
    if status == "running":
        play.schedule()
    with pytest.raises(UnknownCompletion):
        play.scheduler.update_from_kv_xfer_finished("A")
    assert (play.table("A"), "A" in play.scheduler.requests) == ([1, 2] if status == "running" else [], True)


def test_several_requests_are_ended_at_once_with_the_status_given() -> None:
    play = Play(9, remote_tokens=2).submit("A", 1).submit("B", 1).submit("C", 2, remote=True).submit("D", 1)
    play.schedule()
    play.submit("E", 1)
    ended = play.scheduler.finish_requests(["E", "B", "F", "C", "B", "A"], RequestStatus.FINISHED_STOPPED)
    assert ended == ["E", "B", "C", "A"]
    assert [play.status(name) for name in "ABCDE"] == [
        RequestStatus.FINISHED_STOPPED,
        RequestStatus.FINISHED_STOPPED,
        RequestStatus.FINISHED_STOPPED,
        RequestStatus.RUNNING,
        RequestStatus.FINISHED_STOPPED,
    ]
    assert (play.running, play.waiting, play.holding, sorted(play.scheduler.requests)) == (["D"], [], [], ["C", "D"])
    assert [blocks for _, blocks in play.parked] == [[2], [1]]
    play.load("C")
    assert play.scheduler.finish_requests("C", RequestStatus.FINISHED_ABORTED) == []


class Running(list[Request]):
    """A running list that is not searched for one request."""

    def remove(self, value: Request, /) -> None:
        raise AssertionError("searched")


def test_requests_that_end_together_leave_the_running_list_together() -> None:
    play = Play(9)
    for name in "ABCDE":
        play.submit(name, 1, 3)
    play.schedule()
    play.scheduler.running = Running(play.scheduler.running)
    outputs = play.finish_step("B", "D", "E")
    assert [out.request_id for out in outputs if out.finish_reason] == ["B", "D", "E"]
    assert (play.running, play.free) == (["A", "C"], [5, 4, 2, 6, 7, 8, 9])
