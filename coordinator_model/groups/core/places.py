"""The order of places in a group's life, and the shortest legal way between two places."""

from collections import deque

from coordinator_model.kafka import MOVES, GroupState
from coordinator_model.state import Group

_PHASE = {
    GroupState.COMPLETING_REBALANCE: 0,
    GroupState.EMPTY: 0,
    GroupState.STABLE: 1,
    GroupState.PREPARING_REBALANCE: 2,
}

_FILL_ORDER = (
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
    GroupState.EMPTY,
)

_YOUNGEST = {
    GroupState.PREPARING_REBALANCE: 0,
    GroupState.COMPLETING_REBALANCE: 1,
    GroupState.STABLE: 1,
}
"""The generation in which a group is first in that state."""


def place(state: GroupState, generation: int) -> tuple[int, int]:
    """Return the place of a state and generation in a group's life; Dead comes before everything."""
    return (-1, 0) if state is GroupState.DEAD else (generation, _PHASE.get(state, 1))


def place_of(group: Group) -> tuple[int, int]:
    """Return the group's place."""
    return place(group.state, group.generation)


def way(group: Group, to: GroupState, generation: int) -> tuple[GroupState, ...]:
    """Return the states between the group's place and a state of a generation, on the shortest legal way.

    A group that is first seen in mid-life starts at the place where it was seen, without earlier transitions.
    """
    if to is GroupState.DEAD:
        return ()
    if group.state is GroupState.DEAD and generation != _YOUNGEST.get(to):
        return ()
    if generation > group.generation and _leads_through(group, to):
        # Each generation has a join phase of its own.
        return (GroupState.PREPARING_REBALANCE, *_WAYS[GroupState.PREPARING_REBALANCE, to])
    return _WAYS.get((group.state, to), ())


def _leads_through(group: Group, to: GroupState) -> bool:
    """Return whether the shortest way by states to a later generation would skip its join phase."""
    is_start = to is GroupState.PREPARING_REBALANCE and group.state is not to
    return is_start or group.state is GroupState.COMPLETING_REBALANCE


def _shortest_way(source: GroupState, target: GroupState) -> tuple[GroupState, ...]:
    """Return the states between two states by ``MOVES``; a fixed order makes the answer unique."""
    queue: deque[tuple[GroupState, tuple[GroupState, ...]]] = deque([(source, ())])
    visited: set[GroupState] = set()
    while queue:
        state, way = queue.popleft()
        if target in MOVES[state]:
            return way
        visited.add(state)
        queue.extend(
            (following, (*way, following))
            for following in _FILL_ORDER
            if following in MOVES[state] and following not in visited
        )
    return ()


_WAYS = {(source, target): _shortest_way(source, target) for source in MOVES for target in _FILL_ORDER}
