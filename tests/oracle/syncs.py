"""SyncGroup (Kafka: ``classicGroupSync``)."""

from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.java_order import put_in_order
from coordinator_model.kafka.states import GroupState
from tests.oracle import log_lines, phases
from tests.oracle.group import Group
from tests.oracle.shard import NOTHING, Result, Shard
from tests.oracle.values.errors import Errors, RefusedError, storing_error
from tests.oracle.values.outcomes import Ticket
from tests.oracle.values.requests import SyncGroup
from tests.oracle.values.responses import SyncGroupResponse


def sync(shard: Shard, request: SyncGroup, ticket: Ticket) -> Result:
    """Serve a SyncGroup: it is parked until the leader's assignment is stored."""
    group = shard.find(request.group_id)
    error = Errors.UNKNOWN_MEMBER_ID if group is None else _refusal(shard, group, request)
    if group is None or error is not Errors.NONE:
        shard.host.answer(ticket, SyncGroupResponse(error_code=error))
        return NOTHING
    phases.has_synced(shard, group, request.member_id)
    member = group.members[request.member_id]
    if group.state is GroupState.STABLE:
        shard.host.answer(ticket, phases.assigned(group, member))
        return NOTHING
    member.parked_sync = ticket
    if group.leader_id == request.member_id:
        return _assign(shard, group, request)
    return NOTHING


def _refusal(shard: Shard, group: Group, request: SyncGroup) -> Errors:
    if group.state is GroupState.EMPTY:
        return Errors.UNKNOWN_MEMBER_ID
    if group.state is GroupState.DEAD:
        return Errors.COORDINATOR_NOT_AVAILABLE
    try:
        shard.validate_member(group, request.member_id, request.group_instance_id, "sync-group")
    except RefusedError as refused:
        return refused.error
    if request.generation_id != group.generation_id:
        return Errors.ILLEGAL_GENERATION
    if _differs(request.protocol_type, group.protocol_type) or _differs(
        request.protocol_name, group.protocol_name
    ):
        return Errors.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return Errors.REBALANCE_IN_PROGRESS
    return Errors.NONE


def _differs(said: str | None, known: str | None) -> bool:
    return said is not None and known is not None and said != known


def _assign(shard: Shard, group: Group, request: SyncGroup) -> Result:
    """Store what the leader assigned; the group is Stable when the record is committed."""
    shard.host.log(log_lines.assignment_received(group, request.member_id))
    given = {one.member_id: one.assignment for one in request.assignments}
    forgotten = put_in_order(member_id for member_id in group.members if member_id not in given)
    if forgotten:
        shard.host.log(log_lines.assignment_missing(group, forgotten))
    assignments = {**given, **dict.fromkeys(forgotten, b"")}

    def after_append(error: Errors | None) -> None:
        # Somebody may have joined since; then this generation never becomes Stable.
        is_current = request.generation_id == group.generation_id
        if group.state is not GroupState.COMPLETING_REBALANCE or not is_current:
            return
        if error is None:
            phases.set_assignments(shard, group, assignments)
            shard.move(group, GroupState.STABLE, CauseKind.ASSIGNMENT_STORED)
            return
        told = storing_error(error)
        phases.reset_assignments(shard, group, told)
        # The missing space is Kafka's.
        reason = (
            f"Error {told.name} when storing group assignmentduring SyncGroup (member: {request.member_id})."
        )
        phases.prepare_or_complete(shard, group, reason)

    record = phases.record_of(group, assignments)
    return Result(records=[record], after_append=after_append, replay=False)
