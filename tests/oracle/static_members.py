"""A static member that comes back without its member id (Kafka: ``updateStaticMember…``)."""

from dataclasses import dataclass

from coordinator_model.kafka.states import GroupState
from tests.oracle import log_lines, phases
from tests.oracle.group import Group, Member
from tests.oracle.shard import Result, Shard
from tests.oracle.values.errors import Errors, IllegalStateError, storing_error
from tests.oracle.values.outcomes import Ticket
from tests.oracle.values.requests import JoinGroup
from tests.oracle.values.responses import JoinGroupResponse, SyncGroupResponse

_SKIPS_ASSIGNMENT_SINCE = 9


@dataclass(frozen=True, kw_only=True)
class Comeback:
    """Who comes back: ``old`` was the member, ``leader_id`` led at that moment."""

    group: Group
    request: JoinGroup
    ticket: Ticket
    old: Member
    leader_id: str | None


def replace(shard: Shard, back: Comeback, new_member_id: str) -> Result:
    """Put a new id in the place of the old one, with a rebalance only where there must be one."""
    group, request = back.group, back.request
    new = _exchange(shard, group, back.old, new_member_id)
    group.update_from(new, request, back.ticket)
    if group.state is GroupState.STABLE:
        if group.select_protocol() != (group.protocol_name or ""):
            return phases.prepare_or_complete(shard, group, _protocol_changes(new, request))
        shard.host.log(log_lines.static_without_rebalance(group))
        return _stored(shard, back, new)
    if group.state is GroupState.COMPLETING_REBALANCE:
        # The leader may be assigning to the old id right now.
        return phases.prepare(shard, group, _metadata_updated(new, request))
    if group.is_in(GroupState.EMPTY, GroupState.DEAD):
        raise IllegalStateError(f"{group.group_id} has a static member in {group.state}")
    return phases.complete_join_if_all_are_there(shard, group)


def _exchange(shard: Shard, group: Group, old: Member, new_member_id: str) -> Member:
    """Replace one id by another: whoever still waits under the old one is fenced at once."""
    fenced = Errors.FENCED_INSTANCE_ID
    new = group.replace_static(old, new_member_id)
    phases.answer_join(shard, old, JoinGroupResponse(error_code=fenced, member_id=old.member_id))
    phases.answer_sync(shard, old, SyncGroupResponse(error_code=fenced))
    # The old id's timer still runs, and will find nobody.
    shard.expect_heartbeat(group, new)
    return new


def _protocol_changes(new: Member, request: JoinGroup) -> str:
    return (
        f"Group's selectedProtocol will change because static member {new.member_id} with instance id "
        f"{new.group_instance_id} joined with change of protocol; {request.client_reason}"
    )


def _metadata_updated(new: Member, request: JoinGroup) -> str:
    return (
        f"Updating metadata for static member {new.member_id} with instance id {new.group_instance_id}; "
        f"{request.client_reason}"
    )


def _stored(shard: Shard, back: Comeback, new: Member) -> Result:
    """Write the same generation with the new id; answer, or undo everything, when that is known."""
    group = back.group

    def after_append(error: Errors | None) -> None:
        if error is None:
            phases.answer_join(shard, new, _answer(back, new))
        else:
            _revert(shard, back, new, error)

    assignments = {member.member_id: member.assignment for member in group.members.values()}
    return Result(records=[phases.record_of(group, assignments)], after_append=after_append, replay=False)


def _revert(shard: Shard, back: Comeback, new: Member, error: Errors) -> None:
    group, old = back.group, back.old
    group.update(
        new,
        protocols=old.protocols,
        rebalance_timeout_ms=old.rebalance_timeout_ms,
        session_timeout_ms=old.session_timeout_ms,
        parked_join=None,
    )
    _exchange(shard, group, new, old.member_id)
    instance_id = new.group_instance_id
    shard.host.log(log_lines.static_reverted(group, new.member_id, instance_id, old.member_id, error.name))
    shard.host.answer(
        back.ticket,
        JoinGroupResponse(
            error_code=storing_error(error),
            generation_id=group.generation_id,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=back.leader_id or "",
        ),
    )


def _answer(back: Comeback, new: Member) -> JoinGroupResponse:
    """Return the answer; clients older than version 9 must not think that they lead, or they would assign."""
    group = back.group
    is_leader = group.leader_id == new.member_id
    skips = back.request.api_version >= _SKIPS_ASSIGNMENT_SINCE
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=(group.leader_id if skips else back.leader_id) or "",
        skip_assignment=skips and is_leader,
        member_id=new.member_id,
        members=group.for_leader() if skips and is_leader else (),
    )
