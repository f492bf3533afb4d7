"""Which rebalances go back to a move of the coordinator: those that begin just after it, and why.

A clean move makes nobody rebalance: the new coordinator reads the same group and its members go on.  What
does is a rebalance that was lost with its coordinator, members that it does not know any more, and
clients that were without one for longer than their session.
"""

import msgspec

from coordinator_model.groups.core.members import client_name, departure_of
from coordinator_model.kafka import MAY_FOLLOW_FAILOVER, WITHOUT_MEMBERS, CauseKind, GroupState
from coordinator_model.observations import GroupUpset
from coordinator_model.state import Departure, Group, Member, Moved, Transition

UPSET_MS = 60_000
"""So long after the new coordinator has taken over a rebalance may go back to the move."""


def is_upset(group: Group, transition: Transition, moved: Moved) -> bool:
    """Say whether a group's transition goes back to the shard's move; ``group`` as it stands after it."""
    if transition.group_type != "classic":
        return False
    if transition.cause.kind is CauseKind.COORDINATOR_MOVED:
        return True
    if not 0 <= transition.at_ms - moved.at_ms <= UPSET_MS:
        return False
    begins = (
        transition.to_state is GroupState.PREPARING_REBALANCE and transition.from_state not in WITHOUT_MEMBERS
    )
    if begins and transition.cause.kind is CauseKind.MEMBER_JOINED:
        gone = [one for one in group.departures if one.at_ms >= moved.at_ms]
        formers: list[Member | Departure] = [*group.members.values(), *gone]
        return any(comes_again(transition.cause.client_id, one, moved) for one in formers)
    if begins and transition.cause.kind is CauseKind.SESSION_TIMEOUT:
        # Who has spoken to the coordinator since has found it: that silence has a reason of its own.
        removed = departure_of(group, transition.cause.member_id)
        return removed is None or _is_from_before(removed, moved)
    return begins and transition.cause.kind in MAY_FOLLOW_FAILOVER


def last_move(group: Group, moved: Moved | None) -> Moved | None:
    """Return the last move of a group's coordinator.

    Args:
        group: its own requests tell of a move as soon as another broker answers one.
        moved: the shard's last, which without the INFO log only the metadata tell, seconds later.
    """
    if group.taken is None:
        return moved
    at_ms, came_from = group.taken
    if moved is None or moved.over_ms < at_ms - UPSET_MS:
        return Moved(at_ms=at_ms, came_from=came_from, went_to=group.coordinator)
    is_same = moved.went_to == group.coordinator and at_ms < moved.at_ms <= at_ms + UPSET_MS
    return msgspec.structs.replace(moved, at_ms=at_ms) if is_same else moved


def move_behind(transition: Transition, moved: Moved | None, coordinator: int) -> Moved | None:
    """Return the move that a transition may go back to: the shard's last, or one that it tells by itself.

    A group may be told of before its shard is: an answer that its broker does not coordinate comes before
    the metadata, and both before the new coordinator's lines if those are late.

    Args:
        transition: a group's.
        moved: the shard's last move, by when it was learned.
        coordinator: who holds the shard, as far as is known; -1 nobody.
    """
    if transition.cause.kind is not CauseKind.COORDINATOR_MOVED:
        return moved
    if moved is None or abs(transition.at_ms - moved.at_ms) > UPSET_MS:
        return Moved(at_ms=transition.at_ms, came_from=coordinator)
    return msgspec.structs.replace(moved, at_ms=min(moved.at_ms, transition.at_ms))


def comes_again(client_id: str, former: Member | Departure, moved: Moved) -> bool:
    """Say whether a client that joins after the move may be one that is, or was, a member from before it.

    librdkafka ends its session itself when no coordinator answers for so long, and joins as a new member;
    the former one stays until the new coordinator, which never heard of it, has waited its session for it.
    """
    return _is_from_before(former, moved) and client_id == client_name(former) != ""


def _is_from_before(former: Member | Departure, moved: Moved) -> bool:
    """Say whether nothing has been heard of a member since the move."""
    return max(former.joined_at_ms, former.last_heartbeat_ms) < moved.over_ms


def upset(transition: Transition, shard: int, moved: Moved) -> GroupUpset:
    """Return what the whole cluster is told of it."""
    return GroupUpset(
        group=transition.group,
        rebalanced_ms=transition.at_ms,
        partition=shard,
        moved_ms=moved.at_ms,
        came_from=moved.came_from,
        went_to=moved.went_to,
        stood=moved.stood,
    )
