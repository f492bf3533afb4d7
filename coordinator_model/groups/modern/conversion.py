"""Converts groups: a group keeps its name and changes its type, within one write of the coordinator.

Kafka: GroupMetadataManager.convertToConsumerGroup and convertToClassicGroup; empty groups are replaced. The
tombstones of the old type are in the same write as the records of the new one, and end no group.
"""

from coordinator_model.groups.core import Target, Turn, adopt_members, cause_by, depart, make
from coordinator_model.groups.modern import departures
from coordinator_model.groups.modern.replay import Changes
from coordinator_model.kafka import CauseKind, GroupState
from coordinator_model.observations import GroupRecorded
from coordinator_model.state import Basis, Cause, Modern


def become_modern(turn: Turn, group_type: str) -> str:
    """Convert the group to ``group_type`` without records; return its former type, "" if it is new."""
    group = turn.group
    was = "" if group.state is GroupState.DEAD else group.group_type
    if turn.context.backlog and group.stored_generation < 0 and not group.members:
        was = ""  # commits that compaction left before the group's own records
    group.group_type, group.modern = group_type, Modern()
    group.protocol_type, group.protocol, group.leader_id = group_type, None, None
    group.pending, group.rebalance, group.guesses = {}, None, ()
    group.stored_generation = group.stored_at_ms = -1
    return was


def become_classic(turn: Turn, modern: Modern, changes: Changes, what: GroupRecorded) -> None:
    """Convert the group to a classic one of ``what``'s generation, which is the group epoch.

    A classic group with members was converted because a member left, and rebalances at once; an empty one is
    new, created for the member that joins next.
    """
    group = turn.group
    was = group.group_type
    staying = {member.member_id for member in what.members}
    instances = {member.instance_id for member in what.members} - {None}
    cause = Cause(kind=CauseKind.PROTOCOL_CHANGED, detail=f"converted from {was} to classic")
    for member_id in [m for m in group.members if m not in staying]:
        before = changes.gone.get(member_id) or modern.members.get(member_id)
        if before is None or group.members[member_id].instance_id in instances:
            continue  # a static member that came back speaking the classic protocol
        how = departures.how_it_went(turn, modern, before)
        depart(turn, member_id, how.how, basis=how.basis, reason=how.client_reason)
        cause = cause_by(group, CauseKind.PROTOCOL_CHANGED, member_id, cause.detail)
    group.group_type, group.modern, group.rebalance, group.guesses = "classic", None, None, ()
    to = GroupState.PREPARING_REBALANCE if what.members else GroupState.EMPTY
    adopt_members(turn, what.members)
    make(turn, Target(to=to, generation=what.generation, at_ms=turn.at_ms, cause=cause))
    group.protocol_type, group.protocol = what.protocol_type, what.protocol
    group.leader_id, group.leader_basis = what.leader_id, Basis.OBSERVED
    group.stored_generation, group.stored_at_ms = what.generation, turn.at_ms


def named_conversion(cause: Cause, was: str, now: str) -> Cause:
    """Return why a group changed its type: the conversion, and the member that caused it."""
    return Cause(
        kind=CauseKind.PROTOCOL_CHANGED,
        member_id=cause.member_id,
        client_id=cause.client_id,
        client_host=cause.client_host,
        detail=f"converted from {was} to {now}",
    )
