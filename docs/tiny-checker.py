"""A model checker in one page: every reachable state, breadth first, with a shortest way to what must not happen.

Run it: `python docs/tiny-checker.py`. Fencepost's engines do the same and answer for much more: specs that cannot leave
their bounds unnoticed, compiled search, symmetry, limits, vacuity. The shape is this one. Read it before
`checker/explore/reference.py`.
"""

from collections.abc import Callable, Iterator

State = tuple[frozenset[str], frozenset[str], bool]  # the free blocks, the blocks that a step may still write, request runs
Steps = Callable[[State], Iterator[tuple[str, State]]]


def search(start: State, steps: Steps, holds: Callable[[State], bool]) -> tuple[int, list[str] | None]:
    """Return how many states were seen, and the shortest list of actions to one in which `holds` is false, or None."""
    came_from: dict[State, tuple[str, State] | None] = {start: None}  # a state is in here exactly if it was seen
    level = [start]
    while level:
        following: list[State] = []
        for state in level:
            if not holds(state):
                return len(came_from), path_to(state, came_from)
            for action, after in steps(state):
                if after not in came_from:
                    came_from[after] = action, state
                    following.append(after)
        level = following
    return len(came_from), None


def path_to(state: State, came_from: dict[State, tuple[str, State] | None]) -> list[str]:
    """Return the actions from the initial state, found by going backwards."""
    actions: list[str] = []
    while (step := came_from[state]) is not None:
        action, state = step
        actions.append(action)
    return actions[::-1]


def lending(fence: bool) -> Steps:
    """Return the transitions of a request that borrows block b; `fence` keeps the block while a step may write it."""

    def steps(state: State) -> Iterator[tuple[str, State]]:
        free, writing, runs = state
        if not runs and free:
            yield "borrow", (free - {"b"}, writing, True)
        if runs and not writing:
            yield "launch a step that writes b", (free, frozenset({"b"}), True)
        if writing:
            yield "the step ends", (free, frozenset(), runs)
        if runs and not (fence and writing):
            yield "give b back", (free | {"b"}, writing, False)

    return steps


if __name__ == "__main__":
    initial: State = (frozenset({"b"}), frozenset(), False)
    for with_fence in (False, True):
        seen, found = search(initial, lending(with_fence), lambda state: not state[0] & state[1])
        print(f"fence={with_fence}: {seen} states;", "holds" if found is None else "violated by: " + ", ".join(found))
