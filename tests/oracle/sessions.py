"""Heartbeats, and members that are not heard of (Kafka: ``classicGroupHeartbeat``, ``expireClassic…``)."""

from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState
from tests.oracle import log_lines, phases
from tests.oracle.due import SessionDue
from tests.oracle.group import Group, Member
from tests.oracle.shard import NOTHING, Result, Shard
from tests.oracle.values.errors import Errors, RefusedError
from tests.oracle.values.requests import Heartbeat
from tests.oracle.values.responses import HeartbeatResponse, JoinGroupResponse

_REBALANCING = GroupState.PREPARING_REBALANCE


def heartbeat(shard: Shard, request: Heartbeat) -> Result:
    """Serve a heartbeat; while members are awaited it is told to join, and counts all the same.

    Raises:
        RefusedError: COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    group = shard.find(request.group_id)
    if group is None:
        raise RefusedError(Errors.UNKNOWN_MEMBER_ID)
    if group.state is GroupState.DEAD:
        raise RefusedError(Errors.COORDINATOR_NOT_AVAILABLE)
    shard.validate_member(group, request.member_id, request.group_instance_id, "heartbeat")
    if request.generation_id != group.generation_id:
        raise RefusedError(Errors.ILLEGAL_GENERATION)
    if group.state is GroupState.EMPTY:
        return Result(response=HeartbeatResponse(error_code=Errors.UNKNOWN_MEMBER_ID))
    shard.expect_heartbeat(group, group.members[request.member_id])
    error = Errors.REBALANCE_IN_PROGRESS if group.state is _REBALANCING else Errors.NONE
    return Result(response=HeartbeatResponse(error_code=error))


def on_session_due(shard: Shard, due: SessionDue) -> Result:
    """Remove a member or a pending id that was not heard of, unless it waits for the coordinator."""
    group = shard.find(due.group_id)
    if group is None:
        return NOTHING
    if group.state is GroupState.DEAD:
        shard.host.log(log_lines.late_session_timer(group, due.member_id))
        return NOTHING
    if due.member_id in group.pending_joins:
        shard.host.log(log_lines.pending_expired(group, due.member_id))
        group.remove(due.member_id)
        return _complete_without(shard, group)
    member = group.members.get(due.member_id)
    if member is None or member.has_satisfied_heartbeat:
        return NOTHING
    shard.host.log(log_lines.failed(group, member.member_id))
    return _remove(shard, group, member)


def _remove(shard: Shard, group: Group, member: Member) -> Result:
    # A new member can expire in its parked join; told 25, a client that still lives joins again.
    phases.answer_join(shard, member, JoinGroupResponse(error_code=Errors.UNKNOWN_MEMBER_ID))
    group.remove(member.member_id)
    group.last_gone = CauseKind.SESSION_TIMEOUT
    if group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        reason = f"removing member {member.member_id} on heartbeat expiration."
        return phases.prepare_or_complete(shard, group, reason)
    return _complete_without(shard, group)


def _complete_without(shard: Shard, group: Group) -> Result:
    # Unlike a leave, an expiry ends even a first join phase, as soon as all who are left have joined.
    if group.state is _REBALANCING and group.has_all_joined:
        return phases.complete_join(shard, group)
    return NOTHING
