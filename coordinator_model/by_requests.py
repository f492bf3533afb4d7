"""What the answers to a group's requests prove.

While the INFO log is live they only tell about members: clients, timeouts, heartbeats, who has joined
and synced.  Without it they also move the group, and each such move is inferred: an answer proves
that the coordinator *is* in a state, not when it went there.
"""

from collections.abc import Callable, Mapping
from typing import Any

from coordinator_model.by_log import how_it_left
from coordinator_model.causes import cause_by
from coordinator_model.disproof import disprove, refine_start
from coordinator_model.endings import create, end, told_deleted
from coordinator_model.group import Basis, Cause, CauseKind, Group, Member
from coordinator_model.inferring import members_gone, prove
from coordinator_model.members import (
    add,
    depart,
    departure_of,
    heard,
    how_it_went_missing,
    learn_client,
    member_of_instance,
    rename,
    wait_for,
)
from coordinator_model.observations import (
    CommitsAnswered,
    DeleteAnswered,
    Heartbeats,
    JoinAnswered,
    LeaveAnswered,
    SyncAnswered,
)
from coordinator_model.sessions import expire_silent, start_by_silence
from coordinator_model.silence import has_run_out
from coordinator_model.states import GroupState
from coordinator_model.transitions import Turn, cause, place, place_of

NONE = 0
UNKNOWN_MEMBER_ID = 25
REBALANCE_IN_PROGRESS = 27
MEMBER_ID_REQUIRED = 79

_UNKNOWN = Cause(kind=CauseKind.UNKNOWN)


def _present(
    turn: Turn, member_id: str, generation: int, what: Heartbeats | SyncAnswered | CommitsAnswered
) -> Member | None:
    """Return a member whose request was accepted: if it was unknown, it was here before we looked."""
    group = turn.group
    member = group.members.get(member_id)
    if member is None and generation >= 0 and place_of(group) >= place(GroupState.EMPTY, generation):
        if departure_of(group, member_id) is not None or group.state is GroupState.EMPTY:
            return None  # the answer to a request that was under way when the member went
        if member_id and generation == group.generation:
            member = add(turn, member_id, instance_id=what.instance_id)
            if member is not None:
                member.joined_at_ms = -1
                turn.step.arrivals.remove(member_id)
    if member is not None:
        learn_client(member, what.client)
    return member


# --- Heartbeat -----------------------------------------------------------------------------------


def _heartbeats(turn: Turn, what: Heartbeats) -> None:
    if what.error_code == NONE:
        _heartbeats_accepted(turn, what)
    elif what.error_code == REBALANCE_IN_PROGRESS:
        _heartbeats_refused(turn, what)
    elif what.error_code == UNKNOWN_MEMBER_ID:
        _unknown_member(turn, what.member_id, what.generation)


def _heartbeats_accepted(turn: Turn, what: Heartbeats) -> None:
    group = turn.group
    disprove(turn, what.generation, what.member_id, what.times[-1])
    if group.state is GroupState.DEAD:
        # Met in mid-life: groups are Stable nearly all the time.
        prove(turn, GroupState.STABLE, what.generation, what.times[0], _UNKNOWN)
    elif what.generation > group.generation:
        joined = cause(CauseKind.JOIN_COMPLETED)
        prove(turn, GroupState.COMPLETING_REBALANCE, what.generation, what.times[0], joined)
    member = _present(turn, what.member_id, what.generation, what)
    if member is not None:
        member.last_heartbeat_ms = max(member.last_heartbeat_ms, what.times[-1])
        member.session_base_ms = max(member.session_base_ms, what.times[-1])


def _heartbeats_refused(turn: Turn, what: Heartbeats) -> None:
    """Error 27: the join phase runs and this member is alive and not in it yet."""
    group = turn.group
    if what.generation >= group.generation:
        first_ms = max(what.times[0], group.state_since_ms)
        expire_silent(turn, first_ms, heard=what.member_id)
        prove(turn, GroupState.PREPARING_REBALANCE, what.generation, first_ms, _UNKNOWN)
    member = _present(turn, what.member_id, what.generation, what)
    if member is None:
        return
    member.session_base_ms = max(member.session_base_ms, what.times[-1])
    if group.state is GroupState.PREPARING_REBALANCE and what.generation == group.generation:
        member.heartbeats_refused += len(what.times)
        member.rejoined = False


def _unknown_member(turn: Turn, member_id: str, generation: int) -> None:
    """Error 25: the coordinator has removed this member, and nothing told us when or why."""
    group = turn.group
    member = group.members.get(member_id)
    if member is None or not turn.may_infer or generation > group.generation:
        return
    how = CauseKind.SESSION_TIMEOUT if has_run_out(member, turn.at_ms) else CauseKind.UNKNOWN
    depart(turn, member_id, how, basis=Basis.INFERRED)
    members_gone(turn, turn.at_ms, cause_by(group, how, member_id))


# --- JoinGroup -----------------------------------------------------------------------------------


def _join_answered(turn: Turn, what: JoinAnswered) -> None:
    if what.error_code == NONE:
        heard(turn, what.client, what.member_id)
        _join_accepted(turn, what)
    elif what.error_code == MEMBER_ID_REQUIRED:
        heard(turn, what.client, what.member_id)
        if turn.may_infer:
            create(turn, basis=Basis.INFERRED, at_ms=what.arrived_at_ms)
        wait_for(turn.group, what.member_id, turn.at_ms)
    elif what.error_code == UNKNOWN_MEMBER_ID:
        turn.group.pending.pop(what.requested_member_id, None)
        _unknown_member(turn, what.requested_member_id, turn.group.generation)


def _join_accepted(turn: Turn, what: JoinAnswered) -> None:
    group = turn.group
    why = _why_joined(group, what)
    if place(GroupState.COMPLETING_REBALANCE, what.generation) > place_of(group):
        _end_join_phase(turn, what, why)
    if turn.may_infer:
        refine_start(turn, what, why)
    if what.generation < group.generation:
        return
    member = _joiner(turn, what)
    if what.generation == group.generation and what.leader_id:
        group.leader_id, group.leader_basis = what.leader_id, Basis.OBSERVED
    if what.generation == group.generation and what.member_ids and turn.may_infer:
        _left_behind(turn, what)
    if member is not None and place_of(group) == place(GroupState.COMPLETING_REBALANCE, what.generation):
        member.session_base_ms = max(member.session_base_ms, turn.at_ms)


def _end_join_phase(turn: Turn, what: JoinAnswered, start: Cause) -> None:
    joined, started_at_ms = cause(CauseKind.JOIN_COMPLETED), what.arrived_at_ms
    if start.kind is CauseKind.UNKNOWN:
        start, started_at_ms = start_by_silence(turn, what.arrived_at_ms) or (start, started_at_ms)
    prove(
        turn,
        GroupState.COMPLETING_REBALANCE,
        what.generation,
        turn.at_ms,
        joined,
        start=start,
        started_at_ms=started_at_ms,
    )


def _joiner(turn: Turn, what: JoinAnswered) -> Member | None:
    """Return the member that joined, with all that its request told."""
    group = turn.group
    static = member_of_instance(group, what.instance_id)
    if static is not None and static.member_id != what.member_id:
        rename(turn, static.member_id, what.member_id)
    group.pending.pop(what.member_id, None)
    is_first_join = what.member_id not in group.members
    member = add(turn, what.member_id, instance_id=what.instance_id, at_ms=what.arrived_at_ms)
    if member is None:
        return None
    learn_client(member, what.client)
    if what.session_timeout_ms > 0:
        member.session_timeout_ms = what.session_timeout_ms
    # Kafka: JoinGroup v0 has no rebalance timeout, the session's stands in for it.
    timeout_ms = what.rebalance_timeout_ms if what.rebalance_timeout_ms >= 0 else what.session_timeout_ms
    member.rebalance_timeout_ms = timeout_ms if timeout_ms >= 0 else member.rebalance_timeout_ms
    member.progressed_at_ms = max(member.progressed_at_ms, turn.at_ms)
    if is_first_join:
        member.session_base_ms = turn.at_ms
    member.joined_at_ms = min(member.joined_at_ms, what.arrived_at_ms)
    member.rejoined = True
    return member


def _why_joined(group: Group, what: JoinAnswered) -> Cause:
    """Return why a join would start a rebalance."""
    reason = what.reason or ""
    if reason.startswith("cached metadata has changed"):
        kind = CauseKind.PARTITIONS_CHANGED
    elif reason.startswith("subscription has changed"):
        kind = CauseKind.SUBSCRIPTION_CHANGED
    elif _is_new(group, what):
        kind = CauseKind.MEMBER_JOINED
    elif _leads_the_way(group, what):
        kind = CauseKind.LEADER_REJOINED
    else:
        # A member that is here joins again because others made it.
        return Cause(kind=CauseKind.UNKNOWN, detail=reason)
    return Cause(
        kind=kind,
        member_id=what.member_id,
        client_id=what.client.client_id,
        client_host=what.client.host,
        detail=reason[:1_000],
    )


def _is_new(group: Group, what: JoinAnswered) -> bool:
    """Say whether this join made the member; the leader's answer may have named it before its own."""
    member = group.members.get(what.member_id)
    return member is None or member.joined_at_ms >= what.arrived_at_ms


def _leads_the_way(group: Group, what: JoinAnswered) -> bool:
    """Say whether the leader joined again before anything else was seen of this rebalance.

    Kafka: a leader that joins a Stable group always makes it rebalance.
    """
    last = group.rebalance
    if what.member_id != group.leader_id or group.leader_basis is not Basis.OBSERVED or last is None:
        return False
    if what.generation == group.generation + 1 and group.state is GroupState.STABLE:
        return True
    is_this = last.old_generation + 1 == what.generation
    return is_this and last.cause.kind is CauseKind.UNKNOWN and what.arrived_at_ms < last.started_at_ms


def _left_behind(turn: Turn, what: JoinAnswered) -> None:
    """Take out who is not in the list that the leader got."""
    group = turn.group
    for member_id in [m for m in group.members if m not in what.member_ids]:
        depart(turn, member_id, how_it_went_missing(turn, group.members[member_id]), basis=Basis.INFERRED)
    for member_id in what.member_ids:
        group.pending.pop(member_id, None)
        add(turn, member_id)


# --- SyncGroup, LeaveGroup, commits, DeleteGroups ----------------------------------------------------


def _sync_answered(turn: Turn, what: SyncAnswered) -> None:
    if what.error_code == NONE:
        _sync_accepted(turn, what)
    elif what.error_code == REBALANCE_IN_PROGRESS and what.generation >= turn.group.generation:
        expire_silent(turn, turn.at_ms, heard=what.member_id)
        prove(turn, GroupState.PREPARING_REBALANCE, what.generation, turn.at_ms, _UNKNOWN)
    elif what.error_code == UNKNOWN_MEMBER_ID:
        _unknown_member(turn, what.member_id, what.generation)


def _sync_accepted(turn: Turn, what: SyncAnswered) -> None:
    group = turn.group
    stored = cause(CauseKind.ASSIGNMENT_STORED)
    prove(turn, GroupState.STABLE, what.generation, turn.at_ms, stored)
    member = _present(turn, what.member_id, what.generation, what)
    if member is None or what.generation != group.generation:
        return
    member.synced = True
    member.session_base_ms = max(member.session_base_ms, turn.at_ms)
    member.progressed_at_ms = max(member.progressed_at_ms, turn.at_ms)
    if what.by_leader:
        group.leader_id, group.leader_basis = what.member_id, Basis.OBSERVED


def _left(turn: Turn, what: LeaveAnswered) -> None:
    if what.error_code != NONE:
        return
    group = turn.group
    static = member_of_instance(group, what.instance_id)
    member_id = what.member_id or (static.member_id if static else "")
    was_pending = group.pending.pop(member_id, None) is not None
    was_here = member_id in group.members or (member_id != "" and departure_of(group, member_id) is None)
    how = how_it_left(what.reason)
    if not was_pending:
        depart(turn, member_id, how, reason=what.reason or "", client=what.client)
    if was_here or was_pending:
        # Kafka: even a pending member that leaves makes a Stable group rebalance.
        detail = f"client reason: {what.reason}" if what.reason else ""
        members_gone(turn, turn.at_ms, cause_by(group, how, member_id, detail))


def _commits_answered(turn: Turn, what: CommitsAnswered) -> None:
    if what.error_code == UNKNOWN_MEMBER_ID:
        _unknown_member(turn, what.member_id, what.generation)
    elif what.error_code == REBALANCE_IN_PROGRESS and what.generation > turn.group.generation:
        joined = cause(CauseKind.JOIN_COMPLETED)
        prove(turn, GroupState.COMPLETING_REBALANCE, what.generation, what.times[0], joined)
    elif what.error_code == NONE and what.member_id:
        _commits_accepted(turn, what)


def _commits_accepted(turn: Turn, what: CommitsAnswered) -> None:
    if what.generation > turn.group.generation:
        stored = cause(CauseKind.ASSIGNMENT_STORED)
        prove(turn, GroupState.STABLE, what.generation, what.times[0], stored)
    member = _present(turn, what.member_id, what.generation, what)
    if member is not None:
        member.session_base_ms = max(member.session_base_ms, what.times[-1])
        member.progressed_at_ms = max(member.progressed_at_ms, what.times[-1])


def _delete_answered(turn: Turn, what: DeleteAnswered) -> None:
    if what.error_code == NONE and not told_deleted(turn) and turn.may_infer:
        end(turn, cause(CauseKind.GROUP_DELETED), basis=Basis.INFERRED)


HANDLERS: Mapping[type, Callable[[Turn, Any], None]] = {
    Heartbeats: _heartbeats,
    JoinAnswered: _join_answered,
    SyncAnswered: _sync_answered,
    LeaveAnswered: _left,
    CommitsAnswered: _commits_answered,
    DeleteAnswered: _delete_answered,
}
