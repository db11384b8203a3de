"""What the scheduler of each release does, told event by event, and what each mechanism changes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from fencepost.impl.engine.errors import DoubleFree, EngineError, PlaceholderUnderflow, PoolExhausted, ResetWhileHeld
from fencepost.impl.engine.request import RequestStatus

from .play import Play

LOADS: dict[str, Any] = {"remote_tokens": 2}


# The order of reuse.


@pytest.mark.parametrize(("order", "queue"), [("head", [3, 2, 1, 4, 5, 6, 7, 8]), ("tail", [4, 5, 6, 7, 8, 3, 2, 1])])
def test_with_caching_off_a_table_comes_back_reversed_to_one_end_of_the_queue(order: str, queue: list[int]) -> None:
    play = Play(8, mechanisms={"uncached-free-order": order}).submit("A", 3)
    play.schedule()
    play.engine.abort("A")
    assert play.free == queue


@pytest.mark.parametrize(("order", "queue"), [("split", [2, 3, 4, 5, 1]), ("tail", [3, 4, 5, 2, 1])])
def test_with_caching_on_unhashed_blocks_may_go_to_the_head(order: str, queue: list[int]) -> None:
    play = Play(5, enable_prefix_caching=True, block_size=2, mechanisms={"cached-free-order": order}).submit("A", 3)
    play.schedule()
    play.engine.abort("A")
    assert play.free == queue


# The fence.


def test_a_finish_is_parked_behind_the_newest_step_unless_its_last_step_is_the_processed_one() -> None:
    play = Play(6, **LOADS).submit("A", 2, 3)
    play.schedule()
    play.schedule()
    play.finish_step("A")
    assert play.parked == [(1, [1, 2, 3])]
    play.finish_step()
    assert (play.parked, play.free) == ([], [3, 2, 1, 4, 5, 6])
    play.submit("B", 1)
    play.schedule()
    play.finish_step("B")
    assert (play.parked, play.free) == ([], [3, 2, 1, 4, 5, 6])


def test_the_fence_is_that_of_the_newest_step_and_the_test_is_about_the_request() -> None:
    play = Play(6, max_concurrent_batches=3, **LOADS).submit("A", 1, 3)
    play.schedule()
    play.submit("B", 1, 3)
    play.schedule()
    play.engine.abort("A")
    assert play.parked == [(2, [1, 2])]
    play.schedule()
    play.engine.abort("B")
    assert [fence for fence, _ in play.parked] == [2, 3]


@pytest.mark.parametrize(
    "sizes", [{"kv_role": "none"}, {"kv_role": "kv_producer"}, {"kv_role": "kv_both", "max_concurrent_batches": 1}]
)
def test_without_a_role_that_loads_or_with_one_step_nothing_is_parked(sizes: dict[str, Any]) -> None:
    play = Play(4, **sizes).submit("A", 2)
    play.schedule()
    play.engine.abort("A")
    assert (play.parked, len(play.free)) == ([], 4)


def finished(play: Play) -> None:
    play.submit("A", 2, 3)
    play.schedule()
    play.schedule()
    play.finish_step("A")


def aborted(play: Play) -> None:
    play.submit("A", 3)
    play.schedule()
    play.engine.abort("A")


def preempted(play: Play) -> None:
    play.submit("A", 2, 3).submit("B", 2, 3)
    play.schedule()
    play.schedule()


@pytest.mark.parametrize(
    ("mechanism", "story"), [("finish-free", finished), ("abort-free", aborted), ("preemption-free", preempted)]
)
def test_each_kind_of_free_can_be_at_once(mechanism: str, story: Callable[[Play], None]) -> None:
    held: list[int] = []
    for choice in ("fenced", "at-once"):
        play = Play(4, mechanisms={mechanism: choice, "victim-rule": "any"}, **LOADS)
        story(play)
        held.append(sum(len(blocks) for _, blocks in play.parked))
        assert held[-1] + len(play.free) + sum(len(play.table(name)) for name in play.running) == 4
    assert held[0] > held[1] == 0


def test_a_parked_block_can_be_hit_and_then_stays_out_of_the_queue() -> None:
    play = Play(5, enable_prefix_caching=True, **LOADS).submit("A", [1, 2, 3])
    play.schedule()
    play.engine.abort("A")
    assert play.parked == [(1, [1, 2, 3])]
    play.submit("B", [1, 2, 3])
    play.schedule()
    assert play.table("B") == [1, 2, 4]
    play.finish_step()
    assert (play.parked, play.free) == ([], [5, 3])
    assert [play.pool.blocks[b].ref_cnt for b in (1, 2, 3, 4)] == [1, 1, 0, 1]


def test_a_step_without_tokens_moves_no_counter() -> None:
    play = Play(4, remote_tokens=1, max_empty_batches=1, max_concurrent_batches=3).submit("B", 1, remote=True)
    play.schedule()
    play.submit("A", 1)
    play.schedule()
    play.engine.abort("A")
    assert [len(step.num_scheduled_tokens) for step in play.engine.batch_queue] == [0, 1]
    play.finish_step()
    assert [fence for fence, _ in play.parked] == [1]
    play.finish_step()
    assert play.parked == []


# Preemption.


def test_a_victim_is_the_last_one_admitted_and_resumes_with_its_known_tokens() -> None:
    play = Play(5).submit("A", 2, 3).submit("B", 2, 3)
    for _ in range(2):
        play.schedule()
        play.finish_step()
    assert (play.status("B"), play.waiting, play.table("A")) == (RequestStatus.PREEMPTED, ["B"], [1, 2, 5])
    while play.status("A") is not RequestStatus.FINISHED_LENGTH_CAPPED:
        play.schedule()
        play.finish_step()
    step = play.schedule()
    assert step is not None
    assert step.num_scheduled_tokens == {"B": 3}
    assert step.scheduled_cached_reqs.resumed_req_ids == {"B"}
    assert list(step.scheduled_cached_reqs.all_token_ids["B"]) == [66000, 66001, *play.requests["B"].output_token_ids]


def test_0_33_does_not_preempt_what_would_only_be_parked_and_0_27_takes_everybody_down() -> None:
    play = Play(3, **LOADS).submit("A", 1).submit("B", 1).submit("C", 1)
    play.schedule()
    assert play.schedule() is None
    assert play.running == ["A", "B", "C"]
    play = Play(3, mechanisms={"victim-rule": "any"}, **LOADS).submit("A", 1).submit("B", 1).submit("C", 1)
    play.schedule()
    play.schedule()
    assert (play.running, play.waiting) == ([], ["A", "B", "C"])
    assert (play.parked, play.free) == ([(1, [3]), (1, [2]), (1, [1])], [])


def late_output(choice: str) -> Play:
    """B is preempted with a step in flight, and could resume before that step is processed, were it not for its output."""
    play = Play(3, max_concurrent_batches=3, mechanisms={"stale-output": choice}).submit("A", 1, 3).submit("B", 1, 3)
    play.schedule()
    play.schedule()
    assert (play.status("B"), play.requests["B"].num_in_flight) == (RequestStatus.PREEMPTED, 1)
    play.engine.abort("A")
    play.schedule()
    return play


def test_late_output_is_delivered_before_its_request_resumes() -> None:
    play = late_output("marked")
    assert (play.waiting, len(play.engine.batch_queue)) == (["B"], 2)
    assert [output.request_id for output in play.finish_step()] == ["B"]
    play.finish_step()
    step = play.schedule()
    assert step is not None
    assert step.num_scheduled_tokens == {"B": 2}


def test_late_output_counted_like_any_other_runs_out_of_placeholders() -> None:
    play = late_output("counted")
    assert play.running == ["B"]
    play.finish_step()
    play.finish_step()
    play.run()
    with pytest.raises(PlaceholderUnderflow):
        play.process()


def test_late_output_can_end_a_preempted_request() -> None:
    play = Play(3).submit("A", 1, 3).submit("B", 1, 3)
    play.schedule()
    play.schedule()
    (a, b) = play.finish_step("B")
    assert (a.finish_reason, b.finish_reason, b.new_token_ids) == (None, "stop", [999])
    assert (play.waiting, "B" in play.scheduler.requests) == ([], False)


def test_a_request_that_ended_but_stays_on_the_running_list_is_freed_twice_as_a_victim() -> None:
    for choice in ("yes", "no"):
        play = Play(3, mechanisms={"preempt-skips-ended": choice}, max_concurrent_batches=1, async_scheduling=False)
        play.submit("A", 2, 2).submit("B", 1, 1)
        play.schedule()
        play.finish_step()
        assert play.running == (["A"] if choice == "yes" else ["A", "B"])
        play.scheduler.kv_cache_manager.block_pool.get_new_blocks(1)
        if choice == "yes":
            play.schedule()
            assert play.running == []
        else:
            with pytest.raises(DoubleFree):
                play.schedule()


def test_ended_requests_are_swept_off_the_running_list_by_the_next_step() -> None:
    play = Play(3, mechanisms={"preempt-skips-ended": "no"}).submit("A", 1, 1)
    play.schedule()
    play.finish_step()
    assert (play.running, play.free) == (["A"], [1, 2, 3])
    assert play.schedule() is None
    assert play.running == []


# Waiting requests.


@pytest.mark.parametrize(("choice", "waiting", "holding"), [("holding", ["B"], []), ("skipped", [], ["B"])])
def test_who_stands_in_the_queue_that_is_looked_at_first(choice: str, waiting: list[str], holding: list[str]) -> None:
    play = Play(3, max_concurrent_batches=3, mechanisms={"waiting-queues": choice}).submit("A", 1, 3).submit("B", 1, 3)
    play.schedule()
    play.schedule()
    assert (play.waiting, play.holding) == (["B"], [])
    play.engine.abort("A")
    play.schedule()
    assert (play.waiting, play.holding) == (waiting, holding)


def test_a_load_waits_outside_the_running_list_and_computes_its_last_token() -> None:
    play = Play(4, **LOADS).submit("A", 2, remote=True)
    assert play.schedule() is None
    assert (play.status("A"), play.running, play.holding) == (RequestStatus.WAITING_FOR_REMOTE_KVS, [], ["A"])
    play.engine.land("A")
    assert play.schedule() is None
    play.engine.report("A")
    step = play.schedule()
    assert step is not None
    assert (step.num_scheduled_tokens, step.scheduled_new_reqs[0].num_computed_tokens) == ({"A": 1}, 1)
    assert (play.running, play.holding) == (["A"], [])


@pytest.mark.parametrize("reported", [False, True])
def test_an_aborted_load_holds_its_blocks_until_the_report(reported: bool) -> None:
    play = Play(4, **LOADS).submit("A", 2, remote=True)
    play.schedule()
    play.engine.land("A")
    if reported:
        play.engine.report("A")
    assert play.engine.abort("A")
    assert not play.engine.abort("A")
    assert len(play.free) == (4 if reported else 2)
    if not reported:
        play.engine.report("A")
    assert (len(play.free), play.scheduler.requests) == (4, {})


def test_an_aborted_load_can_give_its_blocks_back_at_once() -> None:
    play = Play(4, mechanisms={"abort-of-load": "at-once"}, **LOADS).submit("A", 2, remote=True)
    play.schedule()
    play.engine.abort("A")
    assert (len(play.free), play.worker.loads_in_flight()) == (4, ["A"])
    play.engine.land("A")
    with pytest.raises(EngineError) as raised:
        play.engine.report("A")
    assert raised.value.kind == "COMPLETION"


def test_an_abort_after_the_report_can_hold_the_blocks_for_ever() -> None:
    play = Play(4, mechanisms={"abort-after-report": "hold"}, **LOADS).submit("A", 2, remote=True)
    play.schedule()
    play.load("A").engine.abort("A")
    assert play.worker.loads == {}
    play.schedule()
    assert len(play.free) == 2


def test_two_loads_each_hold_their_prefix_and_neither_can_get_the_rest() -> None:
    for choice in ("on", "off"):
        play = Play(4, scheduler_reserve_full_isl=False, mechanisms={"admission-reservation": choice}, **LOADS)
        play.submit("A", 3, 1, remote=True).submit("B", 3, 1, remote=True)
        play.schedule()
        assert play.holding == (["A"] if choice == "on" else ["A", "B"])
        if choice == "on":
            assert len(play.engine.run_until_idle()) == 2
        else:
            with pytest.raises(RuntimeError, match="nothing in flight will move them on"):
                play.engine.run_until_idle()


@pytest.mark.parametrize(("watermark", "admitted"), [(0, ["A", "B"]), (1, ["A"])])
def test_the_watermark_is_kept_free_while_something_runs(watermark: int, admitted: list[str]) -> None:
    play = Play(4, watermark=watermark).submit("A", 2, 1).submit("B", 2, 1)
    play.schedule()
    assert play.running == admitted


@pytest.mark.parametrize(("full", "tokens"), [(True, {}), (False, {"B": 1})])
def test_a_whole_sequence_must_fit_at_admission_where_so_configured(full: bool, tokens: dict[str, int]) -> None:
    play = Play(4, scheduler_reserve_full_isl=full, max_num_batched_tokens=3).submit("A", 2, 1).submit("B", 3, 1)
    step = play.schedule()
    assert step is not None
    assert step.num_scheduled_tokens == {"A": 2, **tokens}


def test_prompts_are_cut_to_the_budget_and_seats_are_limited() -> None:
    play = Play(9, max_num_batched_tokens=2, max_num_seqs=1).submit("A", 3, 1).submit("B", 1, 1)
    steps = [play.schedule(), play.schedule()]
    assert [step and step.num_scheduled_tokens for step in steps] == [{"A": 2}, {"A": 1}]
    assert [play.finish_step(), [out.finish_reason for out in play.finish_step()]] == [[], ["length"]]
    step = play.schedule()
    assert step is not None
    assert step.num_scheduled_tokens == {"B": 1}


# Decoding ahead.


def test_a_finish_by_length_is_not_over_scheduled_and_one_by_stop_token_is() -> None:
    play = Play(6).submit("A", 2, 2)
    play.schedule()
    play.schedule()
    play.finish_step()
    assert play.schedule() is None
    assert play.finish_step()[0].finish_reason == "length"
    play = Play(6).submit("A", 2, 3)
    play.schedule()
    play.schedule()
    assert play.finish_step("A")[0].finish_reason == "stop"
    assert (len(play.engine.batch_queue), play.finish_step()) == (1, [])


def test_without_asynchronous_scheduling_a_token_is_computed_only_once_it_is_known() -> None:
    play = Play(6, async_scheduling=False).submit("A", 2, 2)
    play.schedule()
    assert play.schedule() is None
    play.finish_step()
    step = play.schedule()
    assert step is not None
    assert step.num_scheduled_tokens == {"A": 1}


def test_blocks_filled_by_unknown_tokens_are_hashed_once_they_are_known() -> None:
    play = Play(6, enable_prefix_caching=True).submit("A", 2, 4)
    play.schedule()
    play.schedule()
    assert [play.pool.blocks[b].block_hash is not None for b in play.table("A")] == [True, True, False]
    play.finish_step()
    assert [play.pool.blocks[b].block_hash is not None for b in play.table("A")] == [True, True, False]
    play.finish_step()
    assert [play.pool.blocks[b].block_hash is not None for b in play.table("A")] == [True, True, True]


# The prefix cache.


def test_hits_pinned_before_the_test_stay_pinned_when_it_fails() -> None:
    for choice, references in (("no", 1), ("yes", 2)):
        play = Play(3, enable_prefix_caching=True, mechanisms={"pin-before-test": choice}).submit("A", [1, 2], 2)
        play.schedule()
        play.submit("B", [1, 2, 3], 1)
        play.schedule()
        assert (play.waiting, play.pool.blocks[1].ref_cnt) == (["B"], references)


def test_hits_in_the_free_queue_counted_as_free_let_an_allocation_fail_half_way() -> None:
    for choice in ("no", "yes"):
        play = Play(3, enable_prefix_caching=True, mechanisms={"capacity-counts-hits": choice}).submit("A", [1, 2], 1)
        play.schedule()
        play.finish_step()
        play.submit("C", [7], 1)
        play.schedule()
        play.submit("B", [1, 2, 3], 1)
        assert play.free == [2, 1]
        if choice == "no":
            play.schedule()
            assert (play.running, play.free) == (["C"], [2, 1])
        else:
            with pytest.raises(PoolExhausted):
                play.schedule()


@pytest.mark.parametrize("running", [False, True])
def test_a_reset_takes_all_hashes_once_nothing_is_held(running: bool) -> None:
    play = Play(4, enable_prefix_caching=True).submit("A", 2, 3)
    play.schedule()
    assert not play.engine.reset_prefix_cache()
    assert play.pool.cached_block_hash_to_block
    if running:
        assert play.engine.reset_prefix_cache(reset_running_requests=True)
        assert (play.waiting, play.requests["A"].drops_stale_outputs) == (["A"], True)
        step = play.schedule()
        assert step is not None
        assert (step.num_scheduled_tokens, play.finish_step()) == ({"A": 2}, [])
        assert len(play.finish_step()) == 1
    else:
        play.engine.abort("A")
        assert play.engine.reset_prefix_cache()
        assert play.pool.cached_block_hash_to_block == {}


@pytest.mark.parametrize("choice", ["marked", "counted"])
def test_a_running_reset_drops_the_output_in_flight_however_late_output_is_treated(choice: str) -> None:
    play = Play(6, enable_prefix_caching=True, max_concurrent_batches=3, mechanisms={"stale-output": choice})
    play.submit("A", 2, 3)
    play.schedule()
    play.schedule()
    assert play.engine.reset_prefix_cache(reset_running_requests=True)
    request = play.requests["A"]
    assert (request.num_stale_outputs, request.num_output_placeholders, request.drops_stale_outputs) == (2, 0, True)
    play.schedule()
    assert [play.finish_step(), play.finish_step()] == [[], []]
    assert (request.num_stale_outputs, request.drops_stale_outputs) == (0, False)
    assert [output.new_token_ids for output in play.finish_step()] == [[503]]
    assert len(play.engine.run_until_idle()) == 2


@pytest.mark.parametrize("choice", ["refuse", "raise"])
def test_a_running_reset_while_blocks_would_be_parked(choice: str) -> None:
    play = Play(4, enable_prefix_caching=True, mechanisms={"reset-while-parked": choice}, **LOADS).submit("A", 2, 3)
    play.schedule()
    if choice == "refuse":
        assert not play.engine.reset_prefix_cache(reset_running_requests=True)
        assert (play.running, play.parked, play.table("A")) == (["A"], [], [1, 2])
        assert play.scheduler.requests["A"].num_stale_outputs == 0
    else:
        with pytest.raises(ResetWhileHeld):
            play.engine.reset_prefix_cache(reset_running_requests=True)
        assert (play.running, play.parked) == ([], [(1, [1, 2])])


def test_a_running_reset_is_refused_for_blocks_that_others_hold() -> None:
    play = Play(4, enable_prefix_caching=True, remote_tokens=1, kv_role="none").submit("A", 1, 3)
    play.submit("B", 1, remote=True)
    play.schedule()
    assert (play.running, play.holding) == (["A"], ["B"])
    assert not play.engine.reset_prefix_cache(reset_running_requests=True)
    play.engine.abort("B")
    play.load("B")
    assert play.engine.reset_prefix_cache(reset_running_requests=True)


def test_at_the_end_of_any_story_every_block_is_free() -> None:
    for caching, role, depth in product((False, True), ("none", "kv_both"), (1, 2, 3)):
        play = Play(7, remote_tokens=2, enable_prefix_caching=caching, kv_role=role, max_concurrent_batches=depth)
        for i in range(6):
            play.submit(f"{i}", [1, 2, 3, i][: 2 + i % 3], 3, remote=i % 2 == 0)
        outputs = play.engine.run_until_idle()
        assert sum(len(output.new_token_ids) for output in outputs) == 18
        assert (sorted(play.free), play.parked, play.scheduler.requests) == ([1, 2, 3, 4, 5, 6, 7], [], {})
