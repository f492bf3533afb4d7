"""Applies lines of the coordinator's INFO log to a classic group.

Each line is the coordinator's own report at its own time, so it makes observed transitions; lines about
members come before the line about the rebalance that they cause.
"""

import msgspec

from coordinator_model.groups.classic.corrections import never_joined
from coordinator_model.groups.classic.failover import begin_below, resumed_generation
from coordinator_model.groups.classic.storing import given_up
from coordinator_model.groups.core import (
    DELETION_TOLD_LATE_MS,
    Inference,
    Target,
    Turn,
    add,
    cause,
    create,
    depart,
    emptied,
    end,
    everybody_left,
    gone_for_good,
    id_unused,
    line_ms,
    make,
    place,
    place_of,
    reach,
    recognise,
    restart_session,
    resume_members,
    start_before_emptiness,
    start_of_rebalance,
    told_deleted,
    wait_for,
)
from coordinator_model.kafka import DEPARTURES, REJOINS, REMOVALS, CauseKind, GroupState, how_it_left
from coordinator_model.observations import (
    AssignmentReceived,
    GroupConverted,
    GroupDied,
    GroupEmptied,
    GroupLoaded,
    GroupsDeleted,
    GroupUnloaded,
    JoinPhaseEnded,
    LeaderReplaced,
    MemberFailed,
    MemberIdHandedOut,
    MemberJoined,
    MemberLeft,
    MembersKicked,
    PendingMemberExpired,
    RebalanceStarted,
    SimpleGroupCreated,
    StaticMemberReplaced,
)
from coordinator_model.state import Basis, Group, Replaced

_YOUNG = frozenset({"", GroupState.EMPTY, GroupState.DEAD})


def member_id_handed_out(turn: Turn, what: MemberIdHandedOut) -> None:
    """Expect a client to return with the member id that it just got."""
    if what.state in _YOUNG:
        create(turn)
    wait_for(turn.group, what.member_id, turn.at_ms)


def member_joined(turn: Turn, what: MemberJoined) -> None:
    """Add a member, new or under an id that it had got before."""
    if turn.group.state is GroupState.EMPTY and turn.at_ms < turn.group.state_since_ms:
        return  # late: members that joined then have left with the others
    create(turn)
    turn.group.pending.pop(what.member_id, None)
    add(turn, what.member_id, instance_id=what.instance_id)


def static_member_replaced(turn: Turn, what: StaticMemberReplaced) -> None:
    """Expect no more of the old process; the next record or answer names the new one."""
    member = turn.group.members.get(what.old_member_id)
    replaced = Replaced(at_ms=turn.at_ms, instance_id=what.instance_id, old_id=what.old_member_id)
    if member is not None:
        member.instance_id = what.instance_id
        member.last_heartbeat_ms = -1
        replaced = msgspec.structs.replace(
            replaced, client_id=member.client_id, client_host=member.client_host
        )
    turn.step.notes.append(replaced)


def rebalance_started(turn: Turn, what: RebalanceStarted) -> None:
    """Enter PreparingRebalance, with the coordinator's reason as its cause."""
    group = turn.group
    begin_below(turn, GroupState.PREPARING_REBALANCE, what.generation)
    why = start_of_rebalance(group, what.reason, turn.at_ms)
    if place(GroupState.PREPARING_REBALANCE, what.generation) > place_of(group):
        _apply_reason(turn, what, why.kind)
        why = start_of_rebalance(group, what.reason, turn.at_ms)
    at_ms = line_ms(turn, GroupState.PREPARING_REBALANCE, what.generation)
    started = Target(to=GroupState.PREPARING_REBALANCE, generation=what.generation, at_ms=at_ms, cause=why)
    if given_up(turn, what, started):
        return
    if reach(turn, started) and why.kind in REJOINS and why.member_id in group.members:
        group.members[why.member_id].rejoined = True


def _apply_reason(turn: Turn, what: RebalanceStarted, kind: CauseKind) -> None:
    """Apply what the reason says of members, in case the lines about them are lost."""
    how = kind if kind in DEPARTURES else None
    for member_id in what.reason.member_ids:
        recognise(turn, member_id)
        if how is not None and member_id in turn.group.members:
            depart(turn, member_id, how, reason=_client_reason_of_leave(what, how))
        elif kind is CauseKind.MEMBER_JOINED:
            turn.group.pending.pop(member_id, None)
            add(turn, member_id, instance_id=what.reason.instance_id)


def _client_reason_of_leave(what: RebalanceStarted, how: CauseKind) -> str:
    """Return why a client left, which 3.x logs only in the reason of the rebalance."""
    return "" if how in REMOVALS else what.reason.client_reason or ""


def join_phase_ended(turn: Turn, what: JoinPhaseEnded) -> None:
    """Enter CompletingRebalance with the new generation."""
    begin_below(turn, GroupState.COMPLETING_REBALANCE, what.generation)
    why = cause(CauseKind.JOIN_COMPLETED, f"{what.member_count} members")
    at_ms = line_ms(turn, GroupState.COMPLETING_REBALANCE, what.generation)
    ended = Target(to=GroupState.COMPLETING_REBALANCE, generation=what.generation, at_ms=at_ms, cause=why)
    reach(turn, ended)


def assignment_received(turn: Turn, what: AssignmentReceived) -> None:
    """Enter Stable where the topic is not read; otherwise only note when the leader answered."""
    group = turn.group
    if what.generation < group.generation:
        return
    why = cause(CauseKind.JOIN_COMPLETED)
    before = Target(
        to=GroupState.COMPLETING_REBALANCE,
        generation=what.generation,
        at_ms=turn.at_ms,
        cause=why,
        by=Inference.ASSIGNMENT_RECEIVED,
    )
    if reach(turn, before):
        turn.diverged("log_line_missing")
    recognise(turn, what.leader_id)
    group.leader_id, group.leader_basis = what.leader_id, Basis.OBSERVED
    if what.leader_id in group.members:
        group.members[what.leader_id].synced = True
    if not turn.context.offsets_enabled:
        stored = cause(CauseKind.ASSIGNMENT_STORED)
        reach(turn, Target(to=GroupState.STABLE, generation=what.generation, at_ms=turn.at_ms, cause=stored))


def group_emptied(turn: Turn, what: GroupEmptied) -> None:
    """Enter Empty: the join phase ended with nobody in the group."""
    begin_below(turn, GroupState.EMPTY, what.generation)
    why = emptied(turn.group, turn.at_ms)
    if place(GroupState.EMPTY, what.generation) > place_of(turn.group):
        everybody_left(turn, CauseKind.UNKNOWN, Basis.INFERRED, turn.at_ms)
    empty = Target(
        to=GroupState.EMPTY,
        generation=what.generation,
        at_ms=line_ms(turn, GroupState.EMPTY, what.generation),
        cause=why,
        start=start_before_emptiness(why),
    )
    reach(turn, empty)


def members_kicked(turn: Turn, what: MembersKicked) -> None:
    """Remove members that did not rejoin in time."""
    for member_id in what.member_ids:
        depart(turn, member_id, CauseKind.REBALANCE_TIMEOUT)


def member_failed(turn: Turn, what: MemberFailed) -> None:
    """Remove a member whose session timed out."""
    recognise(turn, what.member_id)
    depart(turn, what.member_id, CauseKind.SESSION_TIMEOUT)


def pending_member_expired(turn: Turn, what: PendingMemberExpired) -> None:
    """Stop expecting a client that never returned with its id."""
    turn.group.pending.pop(what.member_id, None)
    id_unused(turn, what)


def member_left(turn: Turn, what: MemberLeft) -> None:
    """Remove a member that left by LeaveGroup."""
    recognise(turn, what.member_id)
    if what.pending or what.member_id in turn.group.pending:
        turn.group.pending.pop(what.member_id, None)
        never_joined(turn, what.member_id)
    else:
        depart(turn, what.member_id, how_it_left(what.client_reason), reason=what.client_reason or "")


def simple_group_created(turn: Turn, what: SimpleGroupCreated) -> None:
    """Create a group without members."""
    create(turn)


def group_loaded(turn: Turn, what: GroupLoaded) -> None:
    """Resume from the last record, as the new coordinator does; a rebalance that was under way is lost."""
    group = turn.group
    if what.group_type != "classic":
        group.group_type = what.group_type
        return
    generation = what.generation if what.generation >= 0 else resumed_generation(group)
    group.pending = {}
    resume_members(turn)
    to = GroupState.STABLE if _is_loaded_with_members(group, what) else GroupState.EMPTY
    if (group.state, group.generation) != (to, generation):
        why = cause(CauseKind.COORDINATOR_MOVED, f"loaded by broker {turn.broker}")
        make(turn, Target(to=to, generation=generation, at_ms=turn.at_ms, cause=why))
    if to is GroupState.EMPTY:
        group.members, group.leader_id = {}, None
    for member in group.members.values():
        restart_session(member, turn.at_ms, may_set_back=True)


def _is_loaded_with_members(group: Group, what: GroupLoaded) -> bool:
    """Return whether the last record had members, which the line of 3.x does not say."""
    if what.member_count >= 0:
        return what.member_count > 0
    if group.stored_members >= 0 and group.stored_generation == what.generation:
        return group.stored_members > 0
    is_under_way = group.state in {GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE}
    was_empty = group.rebalance is not None and group.rebalance.initial
    return group.state is GroupState.STABLE or (is_under_way and not was_empty)


def group_unloaded(turn: Turn, what: GroupUnloaded) -> None:
    """Clear the group's coordinator; its state stays until another coordinator loads it."""
    turn.group.coordinator = -1
    turn.group.pending = {}


def leader_replaced(turn: Turn, what: LeaderReplaced) -> None:
    """Set the new leader, who is a member."""
    if what.new_leader_id is not None:
        recognise(turn, what.new_leader_id)
        turn.group.leader_id, turn.group.leader_basis = what.new_leader_id, Basis.OBSERVED


def groups_deleted(turn: Turn, what: GroupsDeleted) -> None:
    """End a group that DeleteGroups deleted."""
    if not told_deleted(turn):
        end(turn, cause(CauseKind.GROUP_DELETED))


def group_died(turn: Turn, what: GroupDied) -> None:
    """End a group that the cleanup found empty and without offsets."""
    end(turn, gone_for_good(turn.group, turn.at_ms, would_be_told=True, late_ms=DELETION_TOLD_LATE_MS))


def group_converted(turn: Turn, what: GroupConverted) -> None:
    """End a classic group that was converted to a modern type, if its records are not read.

    Its later lines report members that come and go, but no state; it begins again as a classic group.
    """
    if not (what.to_classic or turn.context.offsets_enabled):
        end(turn, cause(CauseKind.PROTOCOL_CHANGED))
