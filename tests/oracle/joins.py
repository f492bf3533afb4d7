"""JoinGroup (Kafka: ``classicGroupJoin`` and what it calls)."""

from coordinator_model.kafka.states import GroupState
from tests.oracle import log_lines, phases, static_members
from tests.oracle.due import SessionDue
from tests.oracle.group import Group, Member
from tests.oracle.shard import NOTHING, Result, Shard
from tests.oracle.static_members import Comeback
from tests.oracle.values.errors import Errors, IllegalStateError, RefusedError, storing_error
from tests.oracle.values.outcomes import Ticket
from tests.oracle.values.requests import JoinGroup
from tests.oracle.values.responses import JoinGroupResponse
from tests.oracle.values.stored import GroupMetadata

_MEMBER_ID_REQUIRED_SINCE = 4


def join(shard: Shard, request: JoinGroup, ticket: Ticket) -> Result:
    """Serve a JoinGroup; the answer may come much later.

    The record of a group that is new is appended even if the join itself is refused (Kafka 4; the old
    Scala coordinator wrote none).
    """
    group = shard.find(request.group_id)
    is_new_group = group is None
    if group is None:
        if request.member_id:
            _refuse(shard, ticket, Errors.UNKNOWN_MEMBER_ID, request.member_id)
            return NOTHING
        group = shard.create(request.group_id)
    result = _admit(shard, group, request, ticket)
    if is_new_group and result is NOTHING:
        return _creation(shard, group, ticket)
    return result


def _admit(shard: Shard, group: Group, request: JoinGroup, ticket: Ticket) -> Result:
    if not _has_room(shard, group, request.member_id):
        group.remove(request.member_id)
        _refuse(shard, ticket, Errors.GROUP_MAX_SIZE_REACHED, "")
        return NOTHING
    error = _unfit(group, request)
    if error is not None:
        _refuse(shard, ticket, error, request.member_id)
        return NOTHING
    if request.member_id:
        return _join_known(shard, group, request, ticket)
    return _join_unknown(shard, group, request, ticket)


def _refuse(shard: Shard, ticket: Ticket, error: Errors, member_id: str) -> None:
    shard.host.answer(ticket, JoinGroupResponse(error_code=error, member_id=member_id))


def _creation(shard: Shard, group: Group, ticket: Ticket) -> Result:
    def after_append(error: Errors | None) -> None:
        if error is not None:
            shard.host.log(log_lines.empty_not_written(group, error.name))
            _refuse(shard, ticket, storing_error(error), "")

    # What the group has become meanwhile does not matter: the record says Empty, generation 0.
    record = GroupMetadata(
        group=group.group_id, protocol_type="", current_state_timestamp=group.state_since_ms
    )
    return Result(records=[record], after_append=after_append, replay=False)


def _has_room(shard: Shard, group: Group, member_id: str) -> bool:
    """Say whether ``group.max.size`` lets this one in (Kafka: ``acceptJoiningMember``).

    While members are awaited only those count who are there already, so that the last ones to rejoin
    of a group that is too large are turned away.
    """
    if group.is_in(GroupState.EMPTY, GroupState.DEAD):
        return True
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        waits = member is not None and member.parked_join is not None
        return waits or group.awaiting_join_count < shard.config.group_max_size
    return member is not None or len(group.members) < shard.config.group_max_size


def _unfit(group: Group, request: JoinGroup) -> Errors | None:
    if group.state is GroupState.DEAD:
        return Errors.COORDINATOR_NOT_AVAILABLE
    if not group.supports(request.protocol_type, request.protocols):
        return Errors.INCONSISTENT_GROUP_PROTOCOL
    return None


# --- without a member id ------------------------------------------------------------------------------


def _join_unknown(shard: Shard, group: Group, request: JoinGroup, ticket: Ticket) -> Result:
    instance_id = request.group_instance_id
    member_id = shard.host.new_member_id(request.client_id if instance_id is None else instance_id)
    if instance_id is None:
        return _join_unknown_dynamic(shard, group, request, ticket, member_id)
    old_member_id = group.static_members.get(instance_id)
    if old_member_id is not None:
        shard.host.log(log_lines.static_replaced(group, instance_id, old_member_id))
        back = Comeback(
            group=group,
            request=request,
            ticket=ticket,
            old=group.members[old_member_id],
            leader_id=group.leader_id,
        )
        return static_members.replace(shard, back, member_id)
    shard.host.log(log_lines.static_added(group, instance_id, member_id))
    return _add(shard, group, request, ticket, member_id)


def _join_unknown_dynamic(
    shard: Shard, group: Group, request: JoinGroup, ticket: Ticket, member_id: str
) -> Result:
    if request.api_version < _MEMBER_ID_REQUIRED_SINCE:
        shard.host.log(log_lines.dynamic_added(group, member_id))
        return _add(shard, group, request, ticket, member_id)
    shard.host.log(log_lines.id_handed_out(group, member_id))
    if member_id in group.members:
        raise IllegalStateError(f"{member_id} is a member already")
    group.pending_joins[member_id] = None
    shard.set_timer(SessionDue(group.group_id, member_id), request.session_timeout_ms)
    _refuse(shard, ticket, Errors.MEMBER_ID_REQUIRED, member_id)
    return NOTHING


def _add(shard: Shard, group: Group, request: JoinGroup, ticket: Ticket, member_id: str) -> Result:
    member = Member(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        rebalance_timeout_ms=request.effective_rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=request.protocols,
        parked_join=ticket,
        is_new=True,
    )
    if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
        group.new_member_added = True
    group.add(member)
    # It cannot send heartbeats while it waits, and its client may be gone for long.
    shard.expect_heartbeat(group, member, shard.config.new_member_join_timeout_ms)
    instance_id = "null" if request.group_instance_id is None else request.group_instance_id
    return phases.prepare_or_complete(
        shard,
        group,
        f"Adding new member {member_id} with group instance id {instance_id}; {request.client_reason}",
    )


# --- with a member id ---------------------------------------------------------------------------------


def _join_known(shard: Shard, group: Group, request: JoinGroup, ticket: Ticket) -> Result:
    if request.member_id in group.pending_joins:
        if request.group_instance_id is not None:
            raise IllegalStateError(f"pending member {request.member_id} cannot be static")
        shard.host.log(log_lines.pending_joined(group, request.member_id))
        return _add(shard, group, request, ticket, request.member_id)
    try:
        shard.validate_member(group, request.member_id, request.group_instance_id, "join-group")
    except RefusedError as refused:
        _refuse(shard, ticket, refused.error, request.member_id)
        return NOTHING
    member = group.members[request.member_id]
    if group.state is GroupState.EMPTY:
        shard.host.log(log_lines.unexpected_rejoin(group, request.member_id))
        _refuse(shard, ticket, Errors.UNKNOWN_MEMBER_ID, request.member_id)
        return NOTHING
    reason = _why_again(group, member, request)
    if reason is None:
        lists_members = group.state is GroupState.COMPLETING_REBALANCE
        shard.host.answer(ticket, phases.joined(group, member, lists_members=lists_members))
        return NOTHING
    group.update_from(member, request, ticket)
    return phases.prepare_or_complete(shard, group, reason)


def _why_again(group: Group, member: Member, request: JoinGroup) -> str | None:
    """Return why this join needs a rebalance; None if the member can have the current generation."""
    said = request.client_reason
    if group.state is GroupState.PREPARING_REBALANCE:
        return f"Member {member.member_id} is joining group during {group.state}; {said}"
    if group.state is GroupState.STABLE and group.leader_id == member.member_id:
        # What the leader knows of (new partitions) may show in nobody's metadata.
        return f"Leader {member.member_id} re-joining group during {group.state}; {said}"
    if member.protocols != request.protocols:
        return f"Updating metadata for member {member.member_id} during {group.state}; {said}"
    return None
