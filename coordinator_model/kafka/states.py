"""The states of a group and the moves a classic group can make.

Mirrors ``ClassicGroupState`` of Apache Kafka 4.3.1.  No other module says which moves are possible;
``classic.py`` says when they happen.  README.md's diagram is drawn from ``MOVES``.
"""

from collections.abc import Mapping
from enum import StrEnum


class GroupState(StrEnum):
    """Where a group stands, spelled as brokers spell it."""

    EMPTY = "Empty"
    """No members; offsets may remain."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """The join phase: the coordinator waits for every member to (re)join; nobody consumes for long."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """The sync phase: the coordinator waits for the leader's assignment; commits are refused."""
    STABLE = "Stable"
    """Every member has, or can fetch, its assignment."""
    DEAD = "Dead"
    """Unknown to the coordinator: never created, deleted, expired, or moved away."""
    ASSIGNING = "Assigning"
    """KIP-848: the target assignment is older than the group epoch."""
    RECONCILING = "Reconciling"
    """KIP-848: members are still on their way to the target assignment."""
    NOT_READY = "NotReady"
    """Streams: topics missing or topology invalid."""


SETTLED = frozenset({GroupState.STABLE, GroupState.EMPTY, GroupState.DEAD})
"""No rebalance goes on, whatever the group's type: it stays so until somebody comes, goes or changes."""
WITHOUT_MEMBERS = frozenset({GroupState.EMPTY, GroupState.DEAD})

MOVES: Mapping[GroupState, frozenset[GroupState]] = {
    GroupState.DEAD: frozenset({GroupState.EMPTY, GroupState.DEAD}),
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.COMPLETING_REBALANCE, GroupState.EMPTY, GroupState.DEAD}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.DEAD}
    ),
    GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
}
"""Classic moves, from -> possible next.  A group that a new coordinator loads is set to Stable or
Empty directly, which is no move of the machine."""


def can_move(source: GroupState, target: GroupState) -> bool:
    """Say whether Kafka's classic coordinator has this move."""
    return target in MOVES.get(source, frozenset())
