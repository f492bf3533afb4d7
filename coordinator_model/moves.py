"""Which rebalances go back to a move of the coordinator: those that begin just after it, and why.

A clean move makes nobody rebalance: the new coordinator reads the same group and its members go on.  What
does is a rebalance that was lost with its coordinator, members that it does not know any more, and
clients that were without one for longer than their session.
"""

from coordinator_model.group import CauseKind, Transition
from coordinator_model.observations import GroupUpset
from coordinator_model.snapshot import Moved
from coordinator_model.states import GroupState

UPSET_MS = 60_000
"""So long after the new coordinator has taken over a rebalance may go back to the move."""

_OTHER = {
    # Who is not known any more joined in a rebalance that was lost, which tells by itself; the rest are new.
    CauseKind.MEMBER_JOINED,
    CauseKind.MEMBER_LEFT,
    CauseKind.POLL_TIMEOUT,
    CauseKind.SUBSCRIPTION_CHANGED,
    CauseKind.PARTITIONS_CHANGED,
    CauseKind.STATIC_MEMBER_REPLACED,
    CauseKind.PROTOCOL_CHANGED,
    CauseKind.UNKNOWN,
}
"""Causes that have nothing to do with who coordinates; one that nobody has told may be any of them."""
_FRESH = {GroupState.EMPTY, GroupState.DEAD}


def is_upset(transition: Transition, moved: Moved) -> bool:
    """Say whether a group's transition goes back to the shard's move."""
    if transition.group_type != "classic" or not 0 <= transition.at_ms - moved.at_ms <= UPSET_MS:
        return False
    if transition.cause.kind is CauseKind.COORDINATOR_MOVED:
        return True
    begins = transition.to_state is GroupState.PREPARING_REBALANCE and transition.from_state not in _FRESH
    return begins and transition.cause.kind not in _OTHER


def upset(transition: Transition, shard: int, moved: Moved) -> GroupUpset:
    """Return what the whole cluster is told of it."""
    return GroupUpset(
        group=transition.group,
        rebalanced_ms=transition.at_ms,
        partition=shard,
        moved_ms=moved.at_ms,
        came_from=moved.came_from,
        went_to=moved.went_to,
    )
