"""Applies log lines and answers to a modern group: how members left, and that they are alive.

They make no transitions.  The INFO log reports a departure before its record, the request log after it; the
later of the two corrects what was inferred.
"""

import msgspec

from coordinator_model import observations as on
from coordinator_model.groups.core import (
    Target,
    Turn,
    cause_by,
    commit_refused,
    departure_of,
    epoch_refused,
    heard,
    heartbeat_fenced,
    join_refused,
    learn_client,
    restart_session,
    restate,
    sync_refused,
)
from coordinator_model.groups.modern.departures import remember
from coordinator_model.kafka import CauseKind, Error, GroupState, how_it_left
from coordinator_model.state import Basis, Departure, Group, Hint, Member

LATE_MS = 60_000
_LEAVES = -1


def modern_member_gone(turn: Turn, what: on.ModernMemberGone) -> None:
    """Keep how a member is about to leave, or correct how one left."""
    modern = turn.group.modern
    if modern is None:
        return
    hint = Hint(
        at_ms=turn.at_ms, kind=what.kind, text=what.text[:1_000], client_reason=what.client_reason or ""
    )
    member = turn.group.members.get(what.member_id)
    if member is not None and member.joined_at_ms <= turn.at_ms:
        remember(modern, what.member_id, hint)
    else:
        _explain(turn, what.member_id, hint)


def epoch_answered(turn: Turn, what: on.EpochAnswered) -> None:
    """Apply the answer to a heartbeat that joined, left, or brought another epoch."""
    modern = turn.group.modern
    if modern is None or what.error_code != Error.NONE:
        epoch_refused(turn, what)
        return
    if what.asked == _LEAVES:
        hint = Hint(at_ms=turn.at_ms, kind=CauseKind.MEMBER_LEFT, text="left by request")
        _explain(turn, what.member_id, hint)
    elif what.asked > _LEAVES:
        _alive(turn, what.member_id, (turn.at_ms,), what.client, progressed=what.asked == 0)
        known = modern.members.get(what.member_id)
        if known is not None and what.interval_ms > 0:
            known.interval_ms = what.interval_ms
        if what.asked == 0:
            heard(turn, what.client, "")  # these clients keep their id when they come back


def _explain(turn: Turn, member_id: str, hint: Hint) -> None:
    """Correct how a member left of which only the record was seen."""
    group = turn.group
    gone = departure_of(group, member_id)
    if gone is None or gone.basis is not Basis.INFERRED or abs(gone.at_ms - hint.at_ms) > LATE_MS:
        return
    better = msgspec.structs.replace(
        gone, how=CauseKind(hint.kind), basis=Basis.OBSERVED, reason=hint.client_reason or gone.reason
    )
    group.departures = tuple(better if one is gone else one for one in group.departures)
    if better.how is not gone.how:
        turn.step.departures.append(better)
        _retell(turn, gone, better, hint)


def _retell(turn: Turn, gone: Departure, better: Departure, hint: Hint) -> None:
    """Correct the transition that the departure caused, and what the group stores of it."""
    group, modern = turn.group, turn.group.modern
    told = None if modern is None else modern.told
    if modern is None or told is None or told.member_id != gone.member_id:
        return
    is_end = told.to_state is GroupState.EMPTY and better.how is CauseKind.MEMBER_LEFT
    kind = CauseKind.ALL_MEMBERS_LEFT if is_end else better.how
    cause = cause_by(group, kind, gone.member_id, hint.text)
    if group.rebalance is not None and group.rebalance.cause.member_id == gone.member_id:
        group.rebalance.cause = cause
    target = Target(to=told.to_state, generation=told.generation, at_ms=turn.at_ms, cause=cause)
    restate(turn, target, told.id, news=True)
    modern.told = None


# --- signs of life ----------------------------------------------------------------------------------------


def _alive(
    turn: Turn, member_id: str, times: tuple[int, ...], client: on.Client, *, progressed: bool = False
) -> Member | None:
    member = turn.group.members.get(member_id)
    if member is None:
        return None
    at_ms = times[-1]
    if member.last_heartbeat_ms < 0:
        member.first_beat_ms = times[0]
    member.last_heartbeat_ms = max(member.last_heartbeat_ms, at_ms)
    restart_session(member, at_ms, may_set_back=False)
    if progressed:
        member.progressed_at_ms = max(member.progressed_at_ms, at_ms)
    learn_client(member, client)
    return member


def heartbeats(turn: Turn, what: on.Heartbeats) -> None:
    """Apply heartbeats, which a member sends in either protocol."""
    if what.error_code in {Error.NONE, Error.REBALANCE_IN_PROGRESS}:
        _alive(turn, what.member_id, what.times, what.client)
    elif what.error_code == Error.FENCED_INSTANCE_ID:
        heartbeat_fenced(turn, what)


def commits_answered(turn: Turn, what: on.CommitsAnswered) -> None:
    """Apply the answer to commits of a member, in the classic protocol or the group's own."""
    # Kafka: commits do not restart the session timer of a member that speaks the group's own protocol.
    member = turn.group.members.get(what.member_id)
    if member is not None and what.error_code == Error.NONE:
        member.progressed_at_ms = max(member.progressed_at_ms, what.times[-1])
        learn_client(member, what.client)
    elif what.error_code != Error.NONE:
        commit_refused(turn, what)


def join_answered(turn: Turn, what: on.JoinAnswered) -> None:
    """Apply the answer to a JoinGroup of a member that speaks the classic protocol."""
    if what.error_code == Error.NONE:
        _alive(turn, what.member_id, (turn.at_ms,), what.client, progressed=True)
    else:
        join_refused(turn, what)


def sync_answered(turn: Turn, what: on.SyncAnswered) -> None:
    """Apply the answer to a SyncGroup of a member that speaks the classic protocol."""
    if what.error_code == Error.NONE:
        _alive(turn, what.member_id, (turn.at_ms,), what.client, progressed=True)
    else:
        sync_refused(turn, what)


def leave_answered(turn: Turn, what: on.LeaveAnswered) -> None:
    """Note how a member that speaks the classic protocol left."""
    if what.error_code == Error.NONE:
        member_id = what.member_id or _holder(turn.group, what.instance_id)
        hint = Hint(
            at_ms=turn.at_ms, kind=how_it_left(what.reason), text="left", client_reason=what.reason or ""
        )
        _explain(turn, member_id, hint)


def _holder(group: Group, instance_id: str | None) -> str:
    """Return the former member that had an instance id."""
    gone = (one for one in reversed(group.departures) if instance_id and one.instance_id == instance_id)
    found = next(gone, None)
    return found.member_id if found else ""
