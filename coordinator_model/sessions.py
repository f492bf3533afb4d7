"""Session timers: when must a member have been heard, and what follows if it was not.

What else moves the group (a record, a heartbeat refused) often comes before a timer here may be
trusted to have run out.  Then the silence of a member explains that move.

Timers run only where their silence proves something: the INFO log is not live (it would tell), the
request log is, and this very member's heartbeats were seen before.  In a join phase a member waits
in its parked JoinGroup and owes no heartbeat, so only a Stable group's members can run out.
"""

from coordinator_model.causes import TOLD_WITHIN_MS, cause_by
from coordinator_model.group import Basis, Cause, CauseKind, Group, Member
from coordinator_model.inferring import members_gone
from coordinator_model.members import depart
from coordinator_model.silence import TOLERANCE_MS, runs_out_at, was_heard, went_silent
from coordinator_model.states import GroupState
from coordinator_model.transitions import Context, Turn

SESSION_GRACE_MS = 1_000
"""How much later than its deadline a heartbeat may still be read."""


def next_deadline(group: Group, context: Context) -> int | None:
    """Return when the first session timer is known to have run out, None if none can."""
    if not _can_run_out(group, context):
        return None
    due = (_deadline(member) for member in group.members.values())
    return min((at_ms + SESSION_GRACE_MS for at_ms in due if at_ms is not None), default=None)


def run_out(turn: Turn, now_ms: int) -> None:
    """Take out the members whose session has ended by ``now_ms``, earliest first."""
    group = turn.group
    if not _can_run_out(group, turn.context):
        return
    ended = [
        (at_ms, member.member_id)
        for member in group.members.values()
        if (at_ms := _deadline(member)) is not None and at_ms + SESSION_GRACE_MS <= now_ms
    ]
    for at_ms, member_id in sorted(ended):
        turn.at_ms = turn.recorded_at_ms = at_ms
        depart(turn, member_id, CauseKind.SESSION_TIMEOUT, basis=Basis.INFERRED)
        members_gone(turn, at_ms, cause_by(group, CauseKind.SESSION_TIMEOUT, member_id))


def expire_silent(turn: Turn, at_ms: int, *, heard: str) -> None:
    """Take out the members whose absence made a group rebalance that is known to do so at ``at_ms``.

    ``heard`` is the member whose answer tells so.  In the sync phase followers wait in their parked
    SyncGroup, so only the silence of the leader means something.
    """
    group = turn.group
    if not turn.may_infer or group.state not in {GroupState.STABLE, GroupState.COMPLETING_REBALANCE}:
        return
    in_sync_phase = group.state is GroupState.COMPLETING_REBALANCE
    for ended_at_ms, member_id in _silent(turn, at_ms):
        if member_id == heard or (in_sync_phase and not _is_known_leader(group, member_id)):
            continue
        _depart_silent(turn, member_id, ended_at_ms)
        members_gone(turn, ended_at_ms, cause_by(group, CauseKind.SESSION_TIMEOUT, member_id))
    _expire_unsynced(turn, at_ms, heard=heard)


def _expire_unsynced(turn: Turn, at_ms: int, *, heard: str) -> None:
    """Take out who never synced, if the time that the coordinator gives for that was over by ``at_ms``."""
    group = turn.group
    ended_at_ms, late = _unsynced(turn, at_ms)
    late = [member_id for member_id in late if member_id != heard]
    if group.state is GroupState.COMPLETING_REBALANCE:  # the others wait for the leader
        late = [member_id for member_id in late if _is_known_leader(group, member_id)]
    for member_id in late:
        why = cause_by(group, CauseKind.SYNC_TIMEOUT, member_id)
        depart(turn, member_id, CauseKind.SYNC_TIMEOUT, basis=Basis.INFERRED, at_ms=ended_at_ms)
        members_gone(turn, ended_at_ms, why)


def _unsynced(turn: Turn, at_ms: int) -> tuple[int, list[str]]:
    """Return when the pending-sync timer ran out, and whom it removed as far as we saw syncs answered."""
    group, last = turn.group, turn.group.rebalance
    if not turn.reads_requests or last is None or last.joined_at_ms < 0:
        return at_ms, []
    timeout_ms = max((member.rebalance_timeout_ms for member in group.members.values()), default=-1)
    ended_at_ms = last.joined_at_ms + timeout_ms
    is_over = timeout_ms > 0 and ended_at_ms - TOLERANCE_MS <= at_ms <= ended_at_ms + TOLD_WITHIN_MS
    late = [
        member.member_id
        for member in group.members.values()
        if not member.synced and member.joined_at_ms <= last.joined_at_ms and was_heard(member)
    ]
    return min(ended_at_ms, at_ms), late if is_over else []


def _is_known_leader(group: Group, member_id: str) -> bool:
    return member_id == group.leader_id and group.leader_basis is Basis.OBSERVED


def end_silent(turn: Turn, at_ms: int) -> Cause | None:
    """Take out the silent members of a group that is known to be empty at ``at_ms``; return what ended it."""
    why = None
    for ended_at_ms, member_id in _silent(turn, at_ms):
        _depart_silent(turn, member_id, ended_at_ms)
        why = cause_by(turn.group, CauseKind.SESSION_TIMEOUT, member_id)
    return why


def start_by_absence(turn: Turn, at_ms: int) -> tuple[Cause, int] | None:
    """Return why and when a Stable group began to rebalance by ``at_ms``, if an absent member explains it."""
    if turn.group.state is not GroupState.STABLE:
        return None
    for ended_at_ms, member_id in _silent(turn, at_ms):
        return cause_by(turn.group, CauseKind.SESSION_TIMEOUT, member_id), ended_at_ms
    ended_at_ms, late = _unsynced(turn, at_ms)
    return (cause_by(turn.group, CauseKind.SYNC_TIMEOUT, late[0]), ended_at_ms) if late else None


def _silent(turn: Turn, at_ms: int) -> list[tuple[int, str]]:
    """Return the members whose session was over, with when it ended, earliest first."""
    if not turn.reads_requests:
        return []
    return sorted(
        (min(runs_out_at(member) or at_ms, at_ms), member.member_id)
        for member in turn.group.members.values()
        if went_silent(member, at_ms)
    )


def _depart_silent(turn: Turn, member_id: str, at_ms: int) -> None:
    depart(turn, member_id, CauseKind.SESSION_TIMEOUT, basis=Basis.INFERRED, at_ms=at_ms)


def _can_run_out(group: Group, context: Context) -> bool:
    return (
        context.requests_live
        and context.requests_steady
        and not context.info_live
        and group.group_type == "classic"
        and group.state is GroupState.STABLE
    )


def _deadline(member: Member) -> int | None:
    return runs_out_at(member) if member.last_heartbeat_ms >= 0 else None
