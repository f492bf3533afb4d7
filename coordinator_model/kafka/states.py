"""The states of a group, and the transitions that a classic group can make.

Mirrors ``ClassicGroupState`` of Apache Kafka 4.3.1.  No other module says which transitions are possible;
``groups/core/transitions.py`` makes them.  The documented diagram is drawn from ``MOVES``.
"""

from collections.abc import Mapping
from enum import StrEnum


class GroupState(StrEnum):
    """The state of a group, spelled as brokers spell it."""

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
"""No rebalance is running, whatever the group's type: a change of its members or topics begins one."""
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
"""Classic transitions, from -> possible next: Kafka's, and Dead -> Empty, by which the mirror says "created".

A new coordinator sets a group that it loads to Stable or Empty directly, which is no transition of this
machine.
"""


def can_move(source: GroupState, target: GroupState) -> bool:
    """Return whether a classic group can make this transition."""
    return target in MOVES.get(source, frozenset())
