"""What releases were seen to do, told action by action (block b of the spec is block b + 1 of a release's pool)."""

from __future__ import annotations

import pytest

from .player import A, B, C, Player

OFF = {"finish_free": "at-once", "abort_free": "at-once", "preemption_free": "at-once"}


@pytest.mark.parametrize(
    ("order", "queue"), [("head", [2, 1, 0, 3, 4, 5, 6, 7]), ("tail", [3, 4, 5, 6, 7, 2, 1, 0])], ids=["LIFO", "FIFO"]
)
def test_order_of_reuse_with_caching_off(order: str, queue: list[int]) -> None:
    play = Player(blocks=8, uncached_free_order=order)
    play.submit(A, 3).schedule().do("abort", A)
    assert play.free == queue


def test_with_caching_on_unhashed_blocks_go_to_the_head_and_hashed_ones_to_the_tail() -> None:
    play = Player(blocks=5, enable_prefix_caching=1, block_size=2)
    play.submit(A, 3).schedule().do("abort", A)
    assert play.table == [[], []]
    assert play.free == [1, 2, 3, 4, 0]


def test_a_block_loses_its_hash_when_it_is_handed_out_not_when_it_is_freed() -> None:
    play = Player(blocks=3, enable_prefix_caching=1, max_tokens=1, prompt_tokens=3)
    play.submit(A, 2, 1).schedule().do("abort", A).run().process()
    assert [play.key[b] for b in (0, 1, 2)] == [1, 1, 0]
    assert play.free == [2, 1, 0]
    play.submit(B, 3, 0).schedule()
    assert play.key == [2, 2, 2]


def test_a_hit_takes_a_block_out_of_the_middle_of_the_free_queue() -> None:
    play = Player(blocks=4, enable_prefix_caching=1, max_tokens=1)
    play.submit(A, 2, 1).schedule().run().process()
    assert play.free == [2, 3, 1, 0]
    play.submit(B, 2, 1).schedule()
    assert play.table[B] == [0, 2]
    assert play.free == [3, 1]


def test_a_finish_is_parked_behind_the_newest_step_unless_its_last_step_is_the_processed_one() -> None:
    play = Player(kv_role="kv_consumer", remote_tokens=2, blocks=6, max_tokens=3, prompt_tokens=2)
    play.submit(A, 2).schedule().schedule().run().process(A)
    assert play.parked == [0, 1, 2]
    assert play.entries == [{"fence": 1, "size": 3}]
    play.run().process()
    assert play.free == [2, 1, 0, 3, 4, 5]
    play.submit(B, 1).schedule().run().process(B)
    assert (play.parked, play.free) == ([], [2, 1, 0, 3, 4, 5])


def test_the_fence_is_global_and_the_test_is_per_request() -> None:
    play = Player(kv_role="kv_consumer", remote_tokens=2, blocks=6, prompt_tokens=2, steps_in_flight=3, max_tokens=3)
    play.submit(A, 1).schedule().submit(B, 1).schedule().do("abort", A)
    assert play.entries == [{"fence": 2, "size": 2}]
    play.schedule().do("abort", B)
    assert [entry["fence"] for entry in play.entries] == [2, 3]


def test_without_a_consumer_role_or_with_one_step_the_fence_is_off() -> None:
    for values in ({"kv_role": "none"}, {"kv_role": "kv_producer"}, {"kv_role": "kv_both", "steps_in_flight": 1}):
        play = Player(blocks=4, **values)
        play.submit(A, 2).schedule().do("abort", A)
        assert (play.parked, len(play.free)) == ([], 4)


def test_a_step_without_tokens_moves_no_counter() -> None:
    play = Player(kv_role="kv_consumer", remote_tokens=1, prompt_tokens=1, empty_steps=1, steps_in_flight=3, blocks=4)
    play.submit(B, 1, remote=True).schedule().submit(A, 1).schedule().do("abort", A)
    assert [len(step["owners"]) for step in play.flight] == [0, 1]
    assert play.entries[0]["fence"] == 1
    play.run().process()
    assert play.entries[0]["fence"] == 1
    play.run().process()
    assert play.entries == []


def test_with_two_steps_a_finish_by_length_is_not_over_scheduled_and_one_by_stop_token_is() -> None:
    play = Player(blocks=6, max_tokens=2, prompt_tokens=2)
    play.submit(A, 2).schedule().schedule().run().process()
    assert not play.can("schedule")
    assert play.run().process().status[A] == "ENDED"
    play = Player(blocks=6, max_tokens=3, prompt_tokens=2)
    play.submit(A, 2).schedule().schedule().run().process(A)
    assert (play.status[A], len(play.flight)) == ("ENDED", 1)


def test_the_race_of_0_23() -> None:
    play = Player(kv_role="kv_consumer", remote_tokens=2, blocks=3, prompt_tokens=2, uncached_free_order="tail", **OFF)
    play.submit(A, 2).schedule().submit(B, 2, remote=True).do("abort", A).schedule()
    assert play.table[B] == [2, 1]
    assert play.fails() == {"no-unordered-write-in-flight"}


def test_0_33_does_not_preempt_whose_blocks_would_only_be_parked_and_0_27_takes_everybody_down() -> None:
    sizes = {"kv_role": "kv_consumer", "remote_tokens": 1, "requests": 3, "blocks": 3, "prompt_tokens": 1}
    play = Player(**sizes)
    play.submit(A, 1).submit(B, 1).submit(C, 1).schedule()
    assert not play.can("schedule")
    play = Player(**sizes, victim_rule="any")
    play.submit(A, 1).submit(B, 1).submit(C, 1).schedule().schedule()
    assert play.status == ["PREEMPTED"] * 3
    assert (play.waiting, play.parked) == ([A, B, C], [2, 1, 0])


def test_late_output_of_a_preempted_request_is_delivered_and_it_waits_for_it() -> None:
    play = Player(blocks=4, prompt_tokens=2, max_tokens=3)
    play.submit(A, 2).submit(B, 2).schedule().schedule()
    assert (play.status[B], play.stale[B], play.places[B]) == ("PREEMPTED", 1, 0)
    play.run().process()
    assert (play.known[B], play.stale[B]) == (1, 0)


def test_a_load_waits_outside_the_running_list_and_recomputes_its_last_token() -> None:
    play = Player(kv_role="kv_consumer", remote_tokens=2, blocks=4, prompt_tokens=2)
    play.submit(A, 2, remote=True).schedule()
    assert (play.status[A], play.computed[A], play.running, play.flight) == ("LOADING", 2, [], [])
    assert not play.can("schedule")
    play.load(A).schedule()
    assert (play.status[A], play.flight[0]["start"][A], play.flight[0]["count"][A]) == ("RUNNING", 1, 1)


@pytest.mark.parametrize("reported", [False, True])
def test_abort_of_a_load_holds_its_blocks_until_the_report(reported: bool) -> None:
    play = Player(kv_role="kv_consumer", remote_tokens=2, blocks=4, prompt_tokens=2)
    play.submit(A, 2, remote=True).schedule().do("land", A)
    if reported:
        play.do("report", A)
    play.do("abort", A)
    assert play.status[A] == ("ENDED" if reported else "HELD")
    if not reported:
        play.do("report", A)
    assert len(play.free) == 4


def test_a_load_is_admitted_only_beside_what_admitted_prompts_still_need() -> None:
    sizes = {"kv_role": "kv_consumer", "remote_tokens": 2, "blocks": 4, "prompt_tokens": 3, "max_tokens": 1}
    play = Player(**sizes, scheduler_reserve_full_isl=0)
    play.submit(A, 3, remote=True).submit(B, 3, remote=True).schedule()
    assert (play.status, play.free) == (["LOADING", "WAITING"], [2, 3])


def test_a_prompt_is_cut_to_the_budget() -> None:
    play = Player(blocks=4, prompt_tokens=3, max_num_batched_tokens=2, max_tokens=1)
    play.submit(A, 3).schedule()
    assert (play.computed[A], play.places[A], play.prefilling[A]) == (2, 0, True)
    play.schedule()
    assert (play.computed[A], play.places[A], play.prefilling[A]) == (3, 1, False)
    assert [step["samples"] for step in play.flight] == [frozenset(), frozenset({A})]


def test_hits_never_cover_the_last_known_token() -> None:
    play = Player(blocks=4, enable_prefix_caching=1, max_tokens=1)
    play.submit(A, 2, 1).submit(B, 2, 1).schedule()
    assert play.table[B] == [play.table[A][0], 2]
    assert play.refs[play.table[A][0]] == 2


def test_equal_hashes_are_kept_and_the_oldest_is_hit() -> None:
    play = Player(blocks=6, requests=3, enable_prefix_caching=1, max_tokens=1)
    play.submit(A, 3, 1).submit(B, 3, 1).submit(C, 3, 1).schedule()
    assert play.table == [[0, 1, 2], [0, 1, 3], [0, 1, 4]]
    assert play.cached == [0, 1, 2, 3, 4]


def test_a_hit_on_an_unwritten_block_is_made_good_by_stream_order() -> None:
    play = Player(blocks=4, enable_prefix_caching=1, prompt_tokens=2)
    play.submit(A, 2, 1).schedule().do("abort", A).submit(B, 2, 1).schedule()
    assert (play.table[B][0], play.good[play.table[B][0]]) == (0, 0)
    play.run().run()
    assert play.fails() == set()


def test_a_running_reset_under_the_fence_is_refused_or_raises() -> None:
    sizes = {"kv_role": "kv_consumer", "remote_tokens": 1, "reset_running": 1, "prompt_tokens": 1}
    assert not Player(**sizes).submit(A, 1).schedule().can("reset_running")
    play = Player(**sizes, reset_while_parked="raise").submit(A, 1).schedule().do("reset_running")
    assert (play.error, play.fails()) == ("RESET", {"no-error"})


def test_a_reset_clears_the_cache_only_when_every_block_is_free() -> None:
    play = Player(blocks=4, enable_prefix_caching=1, max_tokens=1)
    play.submit(A, 2, 1).schedule()
    assert not play.can("reset_prefix_cache")
    play.run().process().do("reset_prefix_cache")
    assert (play.cached, play.key) == ([], [0, 0, 0, 0])


def test_old_output_is_dropped_where_the_request_is_resumed_in_the_same_step() -> None:
    play = Player(blocks=4, enable_prefix_caching=1, reset_running=1, prompt_tokens=2, steps_in_flight=3)
    play.submit(A, 2).schedule().do("reset_running").schedule()
    assert (play.status[A], play.stale[A], play.drop[A]) == ("RUNNING", 1, 1)
    play.run().process()
    assert (play.known[A], play.stale[A], play.drop[A]) == (0, 0, 0)
    play.run().process()
    assert play.known[A] == 1
