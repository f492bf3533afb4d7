"""Finds rebalances that a failover of the coordinator caused: those that begin just after it, and why.

A clean failover causes no rebalance: the new coordinator loads the same group and its members go on.  Three
things do: a rebalance that was lost with its coordinator, members that the new coordinator does not know, and
clients that had no coordinator for longer than their session.
"""

import msgspec

from coordinator_model.groups.core.members import client_name, departure_of
from coordinator_model.kafka import MAY_FOLLOW_FAILOVER, WITHOUT_MEMBERS, CauseKind, GroupState
from coordinator_model.observations import GroupRebalancedByFailover
from coordinator_model.state import Departure, Group, LastFailover, Member, Transition

UPSET_MS = 60_000
"""A failover may cause a rebalance for so long after the new coordinator has loaded the shard."""


def is_upset(group: Group, transition: Transition, moved: LastFailover) -> bool:
    """Return whether a failover of the shard caused a transition; ``group`` is as after the transition."""
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
        # A member that has reached the new coordinator has found it: a later silence has another reason.
        removed = departure_of(group, transition.cause.member_id)
        return removed is None or _is_from_before(removed, moved)
    return begins and transition.cause.kind in MAY_FOLLOW_FAILOVER


def last_move(group: Group, moved: LastFailover | None) -> LastFailover | None:
    """Return the last failover of a group's coordinator.

    Args:
        group: its own requests show a failover as soon as another broker answers one.
        moved: the shard's last failover, which without the INFO log only the metadata show, seconds later.
    """
    if group.taken is None:
        return moved
    at_ms, came_from = group.taken
    if moved is None or moved.over_ms < at_ms - UPSET_MS:
        return LastFailover(at_ms=at_ms, came_from=came_from, went_to=group.coordinator)
    is_same = moved.went_to == group.coordinator and at_ms < moved.at_ms <= at_ms + UPSET_MS
    return msgspec.structs.replace(moved, at_ms=at_ms) if is_same else moved


def move_behind(transition: Transition, moved: LastFailover | None, coordinator: int) -> LastFailover | None:
    """Return the failover that may have caused a transition: the shard's last, or one that it shows."""
    if transition.cause.kind is not CauseKind.COORDINATOR_MOVED:
        return moved
    if moved is None or abs(transition.at_ms - moved.at_ms) > UPSET_MS:
        return LastFailover(at_ms=transition.at_ms, came_from=coordinator)
    return msgspec.structs.replace(moved, at_ms=min(moved.at_ms, transition.at_ms))


def comes_again(client_id: str, former: Member | Departure, moved: LastFailover) -> bool:
    """Return whether a client that joins after the failover may have been a member before it.

    librdkafka ends its session itself if no coordinator answers for so long, and joins as a new member.  The
    new coordinator keeps the former member until that member's session timeout is over.
    """
    return _is_from_before(former, moved) and client_id == client_name(former) != ""


def _is_from_before(former: Member | Departure, moved: LastFailover) -> bool:
    """Return whether a member has sent nothing since the failover."""
    return max(former.joined_at_ms, former.last_heartbeat_ms) < moved.over_ms


def upset(transition: Transition, shard: int, moved: LastFailover) -> GroupRebalancedByFailover:
    """Return the observation by which the cluster learns of a transition that a failover caused."""
    return GroupRebalancedByFailover(
        group=transition.group,
        rebalanced_ms=transition.at_ms,
        partition=shard,
        moved_ms=moved.at_ms,
        came_from=moved.came_from,
        went_to=moved.went_to,
        stood=moved.stood,
    )
