"""Removes members whose session timer ran out, and explains transitions by their silence.

Another sign of the same removal (a record, a refused heartbeat) often comes before a timer here may be
trusted to have run out.  Then the silence of the member explains that transition.

Timers run only where silence proves something: the INFO log is not live (it would report the timeout), the
request log is, and heartbeats of this very member were seen before.  In a join phase a member waits in its
parked JoinGroup and sends no heartbeat, so only members of a Stable group can run out.
"""

from typing import NamedTuple

from coordinator_model.groups.core.causes import TOLD_WITHIN_MS, cause_by, start_by_newcomer
from coordinator_model.groups.core.inferences import Inference
from coordinator_model.groups.core.inferring import members_gone
from coordinator_model.groups.core.members import depart
from coordinator_model.groups.core.session_timer import (
    TOLERANCE_MS,
    restart_session,
    runs_out_at,
    was_heard,
    went_silent,
)
from coordinator_model.groups.core.turn import Context, Turn
from coordinator_model.kafka import CauseKind, GroupState
from coordinator_model.state import Basis, Cause, Group, Member

SESSION_GRACE_MS = 1_000
"""How much later than its deadline a heartbeat may still be read."""


def restart_all_sessions(group: Group, at_ms: int) -> None:
    """Restart every session timer: a new coordinator does so when it has loaded the group, before it answers.

    Until all members have found the coordinator, some seem to have been silent for long. Source:
    ``GroupMetadataManager.onLoaded``.
    """
    for member in group.members.values():
        restart_session(member, at_ms, may_set_back=False)


def next_deadline(group: Group, context: Context) -> int | None:
    """Return when (epoch ms) the first session timer runs out; None if none can."""
    return soonest_deadline(group) if _can_run_out(group, context) else None


def soonest_deadline(group: Group) -> int | None:
    """Return when (epoch ms) the first session timer runs out, if silence proves anything then."""
    first_ms: int | None = None
    # This runs at each observation, so it is one plain loop over ``_deadline``.
    for member in group.members.values():
        beat_ms = member.last_heartbeat_ms
        if beat_ms < 0 or member.session_timeout_ms <= 0:
            continue
        base_ms = member.session_base_ms
        ends_ms = (base_ms if base_ms > beat_ms else beat_ms) + member.session_timeout_ms
        if first_ms is None or ends_ms < first_ms:
            first_ms = ends_ms
    return None if first_ms is None else first_ms + SESSION_GRACE_MS


def run_out(turn: Turn, now_ms: int) -> None:
    """Remove the members whose session ended by ``now_ms``, earliest first."""
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
        members_gone(
            turn, at_ms, cause_by(group, CauseKind.SESSION_TIMEOUT, member_id), by=Inference.SESSION_RAN_OUT
        )


def expire_silent(turn: Turn, at_ms: int, *, heard: str, within_ms: int = TOLD_WITHIN_MS) -> None:
    """Remove the absent members that made a group rebalance, which was rebalancing at ``at_ms``.

    ``heard`` is the member whose answer shows the rebalance, at most ``within_ms`` after it began.  In the
    sync phase followers wait in their parked SyncGroup, so only the leader's silence means something.
    """
    group = turn.group
    if not turn.may_infer or group.state not in {GroupState.STABLE, GroupState.COMPLETING_REBALANCE}:
        return
    in_sync_phase = group.state is GroupState.COMPLETING_REBALANCE
    began_by: CauseKind | None = None
    newcomer = start_by_newcomer(group, at_ms)
    for gone in _absent(turn, at_ms, within_ms):
        if newcomer is not None and gone.ends_at_ms > newcomer[1]:
            continue  # an earlier departure began it; the silent member only prolongs it
        if gone.member_id == heard or (in_sync_phase and not _is_known_leader(group, gone.member_id)):
            continue
        if began_by is CauseKind.SESSION_TIMEOUT and gone.how is CauseKind.SYNC_TIMEOUT:
            continue  # the rebalance that a silent member began has stopped that timer
        began_by = began_by or gone.how
        ended_at_ms = min(gone.ends_at_ms, at_ms)
        depart(turn, gone.member_id, gone.how, basis=Basis.INFERRED, at_ms=ended_at_ms)
        members_gone(
            turn, ended_at_ms, cause_by(group, gone.how, gone.member_id), by=Inference.SILENCE_EXPLAINS
        )


class _Absence(NamedTuple):
    """A member that a timer of the coordinator has removed, by the requests that were seen."""

    ends_at_ms: int
    """When the timer runs out by our measure; it may lie a little after the first sign that it did."""
    how: CauseKind
    member_id: str


def _absent(turn: Turn, at_ms: int, within_ms: int = TOLD_WITHIN_MS) -> list[_Absence]:
    """Return the members that a timer removed by ``at_ms``, earliest first; each member once."""
    found = {gone.member_id: gone for gone in _silent(turn, at_ms)}
    for late in _unsynced(turn, at_ms, within_ms):
        silent = found.get(late.member_id)
        if silent is None or late.ends_at_ms < silent.ends_at_ms:
            found[late.member_id] = late
    return sorted(found.values())


def _silent(turn: Turn, at_ms: int) -> list[_Absence]:
    """Return the members whose session was over by ``at_ms``, earliest first."""
    if not turn.reads_requests:
        return []
    return sorted(
        _Absence(runs_out_at(member) or at_ms, CauseKind.SESSION_TIMEOUT, member.member_id)
        for member in turn.group.members.values()
        if went_silent(member, at_ms)
    )


def _unsynced(turn: Turn, at_ms: int, within_ms: int) -> list[_Absence]:
    """Return the members that the pending-sync timer removed, by the sync answers that were seen."""
    group, last = turn.group, turn.group.rebalance
    if not turn.reads_requests or last is None or last.joined_at_ms < 0:
        return []
    timeout_ms = max((member.rebalance_timeout_ms for member in group.members.values()), default=-1)
    ends_at_ms = last.joined_at_ms + timeout_ms
    if timeout_ms <= 0 or not ends_at_ms - TOLERANCE_MS <= at_ms <= ends_at_ms + within_ms:
        return []
    return [
        _Absence(ends_at_ms, CauseKind.SYNC_TIMEOUT, member.member_id)
        for member in group.members.values()
        if not member.synced and member.joined_at_ms <= last.joined_at_ms and was_heard(member)
    ]


def _is_known_leader(group: Group, member_id: str) -> bool:
    return member_id == group.leader_id and group.leader_basis is Basis.OBSERVED


def end_silent(turn: Turn, at_ms: int) -> Cause | None:
    """Remove the silent members of a group that is known to be empty at ``at_ms``; return the cause."""
    why = None
    for gone in _silent(turn, at_ms):
        depart(turn, gone.member_id, gone.how, basis=Basis.INFERRED, at_ms=min(gone.ends_at_ms, at_ms))
        why = cause_by(turn.group, gone.how, gone.member_id)
    return why


def start_by_absence(turn: Turn, at_ms: int) -> tuple[Cause, int] | None:
    """Return why and when (epoch ms) a Stable group began to rebalance, if an absent member explains it."""
    absent = _absent(turn, at_ms) if turn.group.state is GroupState.STABLE else []
    if not absent:
        return None
    first = absent[0]
    return cause_by(turn.group, first.how, first.member_id), min(first.ends_at_ms, at_ms)


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
