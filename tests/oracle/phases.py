"""The phases of a rebalance: how one starts, when its join phase ends, and its sync phase's limit.

Kafka: ``prepareRebalance``, ``completeClassicGroupJoin`` and their neighbours in ``GroupMetadataManager``.
"""

from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.java_order import copied_order, printed, put_in_order
from coordinator_model.kafka.states import GroupState
from tests.oracle import log_lines
from tests.oracle.due import InitialJoinDue, JoinDue, SessionDue, SyncDue
from tests.oracle.group import Group, Member
from tests.oracle.shard import NOTHING, Result, Shard
from tests.oracle.values.errors import Errors, IllegalStateError, storing_error
from tests.oracle.values.responses import JoinGroupResponse, SyncGroupResponse
from tests.oracle.values.stored import GroupMetadata


def prepare_or_complete(shard: Shard, group: Group, reason: str) -> Result:
    """Start a rebalance, or end the join phase if one is on and nobody is missing."""
    if group.can_rebalance:
        return prepare(shard, group, reason)
    return complete_join_if_all_are_there(shard, group)


def prepare(shard: Shard, group: Group, reason: str) -> Result:
    """Start a rebalance: parked syncs are sent back, and a join timer runs unless all are there."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        reset_assignments(shard, group, Errors.REBALANCE_IN_PROGRESS)
    group.pending_syncs.clear()
    shard.cancel_timer(SyncDue(group.group_id))
    is_initial = group.state is GroupState.EMPTY
    if is_initial:
        delay_ms = shard.config.group_initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        shard.set_timer(InitialJoinDue(group.group_id, delay_ms, remaining_ms), delay_ms)
    shard.move(group, GroupState.PREPARING_REBALANCE, CauseKind.UNKNOWN, reason=reason)
    shard.host.log(log_lines.preparing(group, reason))
    if is_initial:
        return NOTHING
    if group.has_all_joined:
        return complete_join(shard, group)
    shard.set_timer(JoinDue(group.group_id), group.rebalance_timeout_ms)
    return NOTHING


def complete_join_if_all_are_there(shard: Shard, group: Group) -> Result:
    """End the join phase early; never that of a first rebalance, which waits for more members."""
    if group.state is not GroupState.PREPARING_REBALANCE or group.previous_state is GroupState.EMPTY:
        return NOTHING
    return complete_join(shard, group) if group.has_all_joined else NOTHING


def on_join_due(shard: Shard, due: JoinDue) -> Result:
    """Serve the join timer."""
    group = shard.find(due.group_id)
    return complete_join(shard, group) if group is not None else NOTHING


def on_initial_join_due(shard: Shard, due: InitialJoinDue) -> Result:
    """Serve the first join phase's timer: wait once more if somebody came, as long as time remains."""
    group = shard.find(due.group_id)
    if group is None:
        return NOTHING
    if not group.new_member_added or due.remaining_ms == 0:
        return complete_join(shard, group)
    group.new_member_added = False
    delay_ms = min(shard.config.group_initial_rebalance_delay_ms, due.remaining_ms)
    remaining_ms = max(due.remaining_ms - due.delay_ms, 0)
    shard.set_timer(InitialJoinDue(due.group_id, delay_ms, remaining_ms), delay_ms)
    return NOTHING


def complete_join(shard: Shard, group: Group) -> Result:
    """End the join phase: who is missing goes (static members stay), and the next generation begins."""
    shard.cancel_timer(JoinDue(group.group_id))
    _remove_missing_dynamic(shard, group)
    if group.state is GroupState.DEAD:
        shard.host.log(log_lines.dead_group(group))
        return NOTHING
    if not _has_joined_leader(shard, group) and len(group.members):
        # Only static members are left and none of them is back: their sessions have to run out first.
        shard.host.log(log_lines.nobody_rejoined(group))
        shard.set_timer(JoinDue(group.group_id), group.rebalance_timeout_ms)
        return NOTHING
    return _next_generation(shard, group)


def _remove_missing_dynamic(shard: Shard, group: Group) -> None:
    missing = [member.member_id for member in group.not_rejoined() if member.group_instance_id is None]
    removed = put_in_order(missing)
    for member_id in removed:
        group.remove(member_id)
        group.last_gone = CauseKind.REBALANCE_TIMEOUT
        shard.cancel_timer(SessionDue(group.group_id, member_id))
    if removed:
        shard.host.log(log_lines.not_rejoined(group, removed))


def _has_joined_leader(shard: Shard, group: Group) -> bool:
    """Elect another leader if the present one did not rejoin (Kafka: ``maybeElectNewJoinedLeader``)."""
    if group.leader_id is None:
        return False
    leader = group.members[group.leader_id]
    if leader.parked_join is not None:
        return True
    joined = (member for member in group.members.values() if member.parked_join is not None)
    new_leader = next(joined, None)
    if new_leader is not None:
        group.leader_id = new_leader.member_id
    shard.host.log(log_lines.leader_replaced(group, leader, new_leader))
    return new_leader is not None


def _next_generation(shard: Shard, group: Group) -> Result:
    group.generation_id += 1
    if len(group.members):
        group.protocol_name = group.select_protocol()
        group.subscribed_topics = group.compute_subscribed_topics()
        shard.move(group, GroupState.COMPLETING_REBALANCE, CauseKind.JOIN_COMPLETED)
        group.pending_syncs.clear()
        _answer_joins(shard, group)
        return NOTHING
    group.protocol_name = None
    group.subscribed_topics = group.compute_subscribed_topics()
    shard.move(group, GroupState.EMPTY, group.last_gone)
    group.pending_syncs.clear()
    shard.host.log(log_lines.emptied(group))

    def after_append(error: Errors | None) -> None:
        if error is not None:
            shard.host.log(log_lines.empty_not_written(group, storing_error(error).name))

    return Result(records=[record_of(group, {})], after_append=after_append, replay=False)


def _answer_joins(shard: Shard, group: Group) -> None:
    shard.host.log(log_lines.stabilized(group))
    for member in group.members.values():
        answer_join(shard, member, joined(group, member, lists_members=True))
        shard.expect_heartbeat(group, member)
        member.is_new = False
        group.pending_syncs[member.member_id] = None
    shard.set_timer(SyncDue(group.group_id), group.rebalance_timeout_ms)


def joined(group: Group, member: Member, *, lists_members: bool) -> JoinGroupResponse:
    """Return the answer of a join that worked; only the leader is told of the others."""
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=group.for_leader() if lists_members and group.leader_id == member.member_id else (),
    )


def answer_join(shard: Shard, member: Member, response: JoinGroupResponse) -> None:
    """Answer a member's parked join, if there is one."""
    ticket, member.parked_join = member.parked_join, None
    if ticket is not None:
        shard.host.answer(ticket, response)


def answer_sync(shard: Shard, member: Member, response: SyncGroupResponse) -> bool:
    """Answer a member's parked sync; False if there is none."""
    ticket, member.parked_sync = member.parked_sync, None
    if ticket is not None:
        shard.host.answer(ticket, response)
    return ticket is not None


# --- assignments --------------------------------------------------------------------------------------


def reset_assignments(shard: Shard, group: Group, error: Errors) -> None:
    """Take everybody's assignment away and answer the parked syncs with an error."""
    if group.state is not GroupState.COMPLETING_REBALANCE:
        raise IllegalStateError(f"{group.group_id} is in {group.state}")
    for member in group.members.values():
        member.assignment = b""
    for member in group.members.values():
        if answer_sync(shard, member, SyncGroupResponse(error_code=error)):
            shard.expect_heartbeat(group, member)


def set_assignments(shard: Shard, group: Group, assignments: dict[str, bytes]) -> None:
    """Give everybody an assignment and answer the parked syncs with it."""
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
    for member in group.members.values():
        if not member.assignment:
            shard.host.log(log_lines.empty_assignment(group, member.member_id))
        if answer_sync(shard, member, assigned(group, member)):
            shard.expect_heartbeat(group, member)


def assigned(group: Group, member: Member) -> SyncGroupResponse:
    """Return the answer of a sync that worked."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def record_of(group: Group, assignments: dict[str, bytes]) -> GroupMetadata:
    """Return the group's record with these assignments.

    Raises:
        IllegalStateError: a member has none.
    """
    members = []
    for member in group.members.values():
        if member.member_id not in assignments:
            raise IllegalStateError(f"{member.member_id} has no assignment")
        members.append(member.recorded(group.protocol_name, assignments[member.member_id]))
    return GroupMetadata(
        group=group.group_id,
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.state_since_ms,
        members=tuple(members),
    )


# --- the sync phase's limit ---------------------------------------------------------------------------


def on_sync_due(shard: Shard, due: SyncDue) -> Result:
    """Remove everybody who has not sent SyncGroup in this generation, even from a Stable group."""
    group = shard.find(due.group_id)
    if group is None:
        return NOTHING
    if not group.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        shard.host.log(log_lines.late_sync_timer(group))
        return NOTHING
    late = copied_order(group.pending_syncs.keys())
    if not late:
        return NOTHING
    for member_id in late:
        group.remove(member_id)
        group.last_gone = CauseKind.SYNC_TIMEOUT
        shard.cancel_timer(SessionDue(group.group_id, member_id))
    return prepare(shard, group, f"Removing {printed(late)} on pending sync request expiration")


def has_synced(shard: Shard, group: Group, member_id: str) -> None:
    """Note that a member sent SyncGroup; the last one stops the timer."""
    group.pending_syncs.pop(member_id)
    if not len(group.pending_syncs):
        shard.cancel_timer(SyncDue(group.group_id))
