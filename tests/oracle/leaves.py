"""LeaveGroup of all versions (Kafka: ``classicGroupLeave``)."""

from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.client_reasons import POLL_TIMEOUT_REASON
from coordinator_model.kafka.states import GroupState
from tests.oracle import log_lines, phases
from tests.oracle.due import SessionDue
from tests.oracle.group import Group
from tests.oracle.shard import NOTHING, Result, Shard
from tests.oracle.values.errors import Errors, RefusedError
from tests.oracle.values.requests import LeaveGroup, MemberIdentity
from tests.oracle.values.responses import JoinGroupResponse, LeaveGroupResponse, LeftMember

_BATCH_SINCE = 3


def leaving(request: LeaveGroup) -> tuple[MemberIdentity, ...]:
    """Return who leaves, whatever the version."""
    if request.api_version < _BATCH_SINCE:
        return (MemberIdentity(member_id=request.member_id),)
    return request.members


def as_version(response: LeaveGroupResponse, request: LeaveGroup) -> LeaveGroupResponse:
    """Return the answer as this version has it: before 3 the single member's error stands on top."""
    if request.api_version >= _BATCH_SINCE:
        return response
    error = response.error_code or next((one.error_code for one in response.members), Errors.NONE)
    return LeaveGroupResponse(error_code=Errors(error))


def leave(shard: Shard, request: LeaveGroup) -> Result:
    """Serve a LeaveGroup; one valid member is enough for a rebalance, and a pending one counts.

    Raises:
        RefusedError: UNKNOWN_MEMBER_ID; there is no such group.
    """
    members = leaving(request)
    group = shard.find(request.group_id)
    if group is None:
        raise RefusedError(Errors.UNKNOWN_MEMBER_ID)
    if group.state is GroupState.DEAD:
        return Result(response=LeaveGroupResponse(error_code=Errors.COORDINATOR_NOT_AVAILABLE))
    results = tuple(_left(one, _remove(shard, group, one)) for one in members)
    gone = [one.member_id for one in results if one.error_code is Errors.NONE]
    rebalance = _rebalance(shard, group, gone) if gone else NOTHING
    return Result(
        records=rebalance.records,
        response=as_version(LeaveGroupResponse(members=results), request),
        after_append=rebalance.after_append,
        replay=rebalance.replay,
    )


def refused(request: LeaveGroup, error: Errors) -> LeaveGroupResponse:
    """Return the answer of a leave that failed as a whole; of an unknown group every member gets 25."""
    if error is Errors.UNKNOWN_MEMBER_ID:
        members = tuple(_left(one, error) for one in leaving(request))
        return as_version(LeaveGroupResponse(members=members), request)
    return LeaveGroupResponse(error_code=error)


def _left(one: MemberIdentity, error: Errors) -> LeftMember:
    return LeftMember(member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=error)


def _remove(shard: Shard, group: Group, one: MemberIdentity) -> Errors:
    reason = "not provided" if one.reason is None else one.reason
    if not one.member_id:
        # An administrator removes a static member by its instance id alone.
        mapped = group.static_members.get(one.group_instance_id or "")
        if one.group_instance_id is None or mapped is None:
            return Errors.UNKNOWN_MEMBER_ID
        return _remove_member(shard, group, mapped, reason)
    if one.member_id in group.pending_joins:
        group.remove(one.member_id)
        shard.cancel_timer(SessionDue(group.group_id, one.member_id))
        shard.host.log(log_lines.left(group, one.member_id, reason, pending=True))
        return Errors.NONE
    try:
        shard.validate_member(group, one.member_id, one.group_instance_id, "leave-group")
    except RefusedError as refused:
        return refused.error
    return _remove_member(shard, group, one.member_id, reason)


def _remove_member(shard: Shard, group: Group, member_id: str, reason: str) -> Errors:
    shard.cancel_timer(SessionDue(group.group_id, member_id))
    shard.host.log(log_lines.left(group, member_id, reason))
    # Its own parked join is answered; a parked sync never is.
    member = group.members[member_id]
    phases.answer_join(shard, member, JoinGroupResponse(error_code=Errors.UNKNOWN_MEMBER_ID))
    group.remove(member_id)
    is_late = reason.startswith(POLL_TIMEOUT_REASON)
    group.last_gone = CauseKind.POLL_TIMEOUT if is_late else CauseKind.ALL_MEMBERS_LEFT
    return Errors.NONE


def _rebalance(shard: Shard, group: Group, gone: list[str]) -> Result:
    if group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        # Who was removed by instance id is listed with an empty id.
        reason = f"explicit `LeaveGroup` request for ({', '.join(gone)}) members."
        return phases.prepare_or_complete(shard, group, reason)
    return phases.complete_join_if_all_are_there(shard, group)
