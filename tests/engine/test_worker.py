"""What the simulated worker knows of requests, what it writes, and when."""

from __future__ import annotations

import pytest
from fencepost.impl.engine.output import CachedRequestData, LoadSpec, NewRequestData, SchedulerOutput
from fencepost.impl.engine.simulated_worker import SimulatedWorker, Tag, prefix_tags

from .play import Play, wrong_positions


def worker(blocks: int = 4, block_size: int = 2) -> SimulatedWorker:
    made = SimulatedWorker(lambda request_id: ord(request_id[0]))
    made.allocate(blocks + 1, block_size)
    return made


def new(request_id: str, tokens: list[int], block_ids: list[int], computed: int = 0) -> SchedulerOutput:
    """A step that computes the rest of a new request's prompt."""
    data = NewRequestData(request_id, tuple(tokens), (block_ids,), computed)
    count = len(tokens) - computed
    return SchedulerOutput([data], num_scheduled_tokens={request_id: count}, total_num_scheduled_tokens=count)


def cached(
    request_id: str, start: int, outputs: int, new_block_ids: list[int] | None = None, *, resumed: bool = False, count: int = 1
) -> SchedulerOutput:
    """A step that computes further tokens of a known request."""
    data = CachedRequestData(
        req_ids=[request_id],
        resumed_req_ids={request_id} if resumed else set(),
        new_block_ids=[None if new_block_ids is None else (new_block_ids,)],
        num_computed_tokens=[start],
        num_output_tokens=[outputs],
    )
    return SchedulerOutput(
        scheduled_cached_reqs=data, num_scheduled_tokens={request_id: count}, total_num_scheduled_tokens=count
    )


def slots(made: SimulatedWorker, *block_ids: int) -> list[Tag | None]:
    return [tag for b in block_ids for tag in made.slots[b * made.block_size : (b + 1) * made.block_size]]


def test_tags_are_equal_exactly_for_equal_prefixes() -> None:
    tags = prefix_tags([5, 6, 7, 5, 6, 7])
    assert prefix_tags([5, 6, 7, 8])[:3] == tags[:3]
    assert len({*tags, prefix_tags([5, 6, 7, 8])[3], prefix_tags([6])[0]}) == 8


def test_a_step_writes_its_slots_when_it_runs_and_not_before() -> None:
    made = worker()
    made.enqueue(new("A", [1, 2, 3], [2, 1]))
    assert slots(made, 1, 2) == [None] * 4
    assert not made.is_ready()
    made.run_step()
    assert slots(made, 2, 1) == [*prefix_tags([1, 2, 3]), None]
    assert made.is_ready()
    assert made.read().sampled_token_ids == {"A": [65]}


def test_output_tokens_are_named_by_request_and_position() -> None:
    made = worker()
    made.enqueue(new("A", [1, 2], [1]))
    made.enqueue(cached("A", 2, 0, [3]))
    made.run_step()
    made.run_step()
    assert slots(made, 3) == [("A", 2), None]


def test_a_part_of_a_prompt_yields_no_token() -> None:
    made = worker()
    step = new("A", [1, 2, 3], [1, 2])
    step.num_scheduled_tokens["A"] = 2
    made.enqueue(step)
    made.enqueue(cached("A", 2, 0))
    made.run_step()
    made.run_step()
    assert [made.read().sampled_token_ids, made.read().sampled_token_ids] == [{}, {"A": [65]}]


def test_a_resumed_request_yields_a_token_only_after_all_its_known_ones() -> None:
    made = worker()
    made.enqueue(new("A", [1, 2], [1]))
    made.enqueue(cached("A", 0, 2, [3, 4], resumed=True, count=3))
    made.enqueue(cached("A", 3, 2))
    for _ in range(3):
        made.run_step()
    assert [made.read().sampled_token_ids for _ in range(3)] == [{"A": [65]}, {}, {"A": [65]}]


def test_a_step_in_flight_keeps_the_table_it_was_enqueued_with() -> None:
    made = worker()
    made.enqueue(new("A", [1, 2], [1]))
    made.enqueue(cached("A", 2, 0, [2]))
    made.enqueue(cached("A", 0, 0, [4, 3], resumed=True, count=2))
    assert [[row.block_ids(2) for row in step.rows] for step in made.steps] == [[([1],)], [([1, 2],)], [([4],)]]
    for _ in range(3):
        made.run_step()
    assert slots(made, 1) == slots(made, 4) == prefix_tags([1, 2])
    assert slots(made, 2, 3) == [("A", 2), None, None, None]


def test_the_steps_that_told_of_blocks_stay_as_they_were() -> None:
    made = worker()
    step = new("A", [1, 2], [1])
    made.enqueue(step)
    made.enqueue(cached("A", 2, 0, [2]))
    assert step.scheduled_new_reqs[0].block_ids == ([1],)


def test_blocks_stand_for_nothing_once_they_are_handed_out_again() -> None:
    made = worker()
    made.enqueue(new("A", [1, 2, 3, 4], [1, 2]))
    made.run_step()
    made.no_forward(SchedulerOutput(finished_req_ids=["A"], new_block_ids_to_zero=[2]))
    assert slots(made, 1, 2) == [*prefix_tags([1, 2]), None, None]
    assert made.requests == {}
    made.start_load(LoadSpec("B", (7, 8), ([1],), 0, 2))
    assert slots(made, 1) == [None, None]


def test_a_preempted_request_has_no_table_until_it_is_resumed() -> None:
    made = worker()
    made.enqueue(new("A", [1, 2], [1]))
    made.no_forward(SchedulerOutput(preempted_req_ids=["A", "B"]))
    assert made.requests["A"].tables == ([],)
    made.run_step()
    assert slots(made, 1) == prefix_tags([1, 2])


def test_the_step_of_a_request_that_ended_is_still_written_unless_its_rows_are_dropped() -> None:
    for dropped in (False, True):
        made = worker()
        made.enqueue(new("A", [1, 2], [1]))
        made.enqueue(cached("A", 2, 0, [2]))
        made.run_step()
        made.no_forward(SchedulerOutput(finished_req_ids=["A"]))
        if dropped:
            made.drop_rows("A")
        made.run_step()
        assert slots(made, 1, 2) == [*prefix_tags([1, 2]), None if dropped else ("A", 2), None]


def test_a_load_writes_behind_the_hits_when_it_lands() -> None:
    made = worker()
    made.start_load(LoadSpec("A", (1, 2, 3, 4, 5), ([3, 1],), 2, 3))
    assert (made.loads_in_flight(), slots(made, 3, 1)) == (["A"], [None] * 4)
    with pytest.raises(KeyError):
        made.acknowledge("A")
    made.land("A")
    assert slots(made, 3, 1) == [*prefix_tags([1, 2, 3, 4, 5])[2:], None]
    with pytest.raises(KeyError):
        made.land("A")
    assert (made.loads_in_flight(), list(made.loads)) == ([], ["A"])
    made.acknowledge("A")
    assert made.loads == {}


def test_what_is_not_there_is_refused() -> None:
    made = worker()
    with pytest.raises(IndexError):
        made.run_step()
    with pytest.raises(IndexError):
        made.read()
    made.enqueue(new("A", [1], [1]))
    with pytest.raises(IndexError):
        made.read()


def test_an_empty_step_runs_and_returns_nothing() -> None:
    made = worker()
    made.enqueue(SchedulerOutput())
    made.run_step()
    assert made.read().sampled_token_ids == {}


def test_tables_of_several_groups_are_written_alike() -> None:
    made = worker()
    data = NewRequestData("A", (1, 2), ([1], [4]), 0)
    made.enqueue(SchedulerOutput([data], num_scheduled_tokens={"A": 2}, total_num_scheduled_tokens=2))
    made.run_step()
    assert slots(made, 1) == slots(made, 4) == prefix_tags([1, 2])


def race(finish_free: str) -> list[int]:
    """A stops while its next step is in flight; B's load lands; A's step runs; B reads: its wrong positions."""
    play = Play(4, remote_tokens=4, block_size=2, mechanisms={"finish-free": finish_free})
    play.submit("A", 3, 4)
    play.schedule()
    play.schedule()
    play.finish_step("A")
    play.submit("B", 4, 3, remote=True)
    play.schedule()
    play.load("B")
    play.finish_step()
    play.schedule()
    (row,) = play.run()
    assert row.request_id == "B"
    return wrong_positions(play.worker, row)


def test_the_race_of_0_23_overwrites_a_load_and_the_fence_prevents_it() -> None:
    assert race("fenced") == []
    assert race("at-once") == [1]


def test_a_hit_is_read_as_it_was_written_by_another_request() -> None:
    play = Play(4, enable_prefix_caching=True).submit("A", [1, 2, 3], 1)
    play.schedule()
    play.submit("B", [1, 2, 4], 1)
    play.schedule()
    assert play.table("B")[:2] == play.table("A")[:2]
    for _ in range(2):
        assert [wrong_positions(play.worker, row) for row in play.run()] == [[]]


def test_dropped_rows_leave_a_hit_without_content() -> None:
    for choice, wrong in (("written", []), ("dropped", [0, 1])):
        play = Play(4, enable_prefix_caching=True, mechanisms={"ended-rows": choice}).submit("A", [1, 2], 2)
        play.schedule()
        play.submit("B", [1, 2, 3], 1)
        play.engine.abort("A")
        play.schedule()
        play.run()
        assert [wrong_positions(play.worker, row) for row in play.run()] == [wrong]


def test_rows_of_a_request_that_ended_by_itself_can_be_dropped_too() -> None:
    for choice, written in (("written", True), ("dropped", False)):
        play = Play(4, mechanisms={"ended-rows": choice}).submit("A", 1, 3).submit("B", 1, 3)
        play.schedule()
        play.schedule()
        (late_a, late_b) = play.worker.steps[1].rows
        play.finish_step("A")
        play.run()
        assert (wrong_positions(play.worker, late_a) == []) == written
        assert wrong_positions(play.worker, late_b) == []
