"""Corrects inferences by later answers: a member that was alive, a rebalance that began earlier."""

from coordinator_model.groups.core import (
    GUESS_TOLERANCE_MS,
    Inference,
    Target,
    Turn,
    bring_back,
    correct_silently,
    forget_guesses,
    is_guess,
    make,
    restate_guess,
)
from coordinator_model.kafka import CauseKind, GroupState
from coordinator_model.observations import JoinAnswered
from coordinator_model.state import Basis, Cause, Departure, Group, Rebalance

_FALLBACKS = frozenset({CauseKind.UNKNOWN, CauseKind.SESSION_TIMEOUT})
"""Inferred causes that give way to an earlier join: a member that fell silent then only prolonged it."""


def disprove(turn: Turn, generation: int, member_id: str, at_ms: int) -> None:
    """Take back an inferred session timeout if the group's heartbeats are still accepted.

    In a join phase the coordinator answers 27, so an accepted heartbeat of the old generation proves that the
    group never left it.
    """
    group = turn.group
    start = (GroupState.PREPARING_REBALANCE, generation)
    is_suspect = (
        turn.may_infer
        and _concluded_timeout(group, generation)
        and is_guess(group, *start)
        and at_ms > group.state_since_ms + GUESS_TOLERANCE_MS
    )
    if not is_suspect:
        return
    wrong = forget_guesses(group, *start)
    emptied = forget_guesses(group, GroupState.EMPTY, generation + 1)
    if emptied is not None:  # this turn replaces that Empty, and the transitions on the way to it
        correct_silently(group, state=GroupState.PREPARING_REBALANCE, generation=generation)
        wrong = emptied
    turn.diverged("inferred_wrong")
    detail = "heartbeats of the generation are still accepted"
    right = Target(
        to=GroupState.STABLE,
        generation=generation,
        at_ms=at_ms,
        cause=Cause(kind=CauseKind.UNKNOWN, detail=detail),
        by=Inference.NEVER_LEFT,
    )
    make(turn, right, replaces=wrong)
    for gone in group.departures:
        if gone.member_id == member_id and _was_concluded(gone):
            bring_back(group, gone)


def never_joined(turn: Turn, member_id: str) -> None:
    """Take back an inferred first rebalance by a client that, as the log shows, left before it had joined.

    Clients join with their id at once, so one that leaves later is taken for a member that had joined.  One
    that is closed between two polls has not, and its group has been Empty all the time.
    """
    group, last = turn.group, turn.group.rebalance
    start = (GroupState.PREPARING_REBALANCE, group.generation)
    is_suspect = (
        last is not None
        and last.initial
        and last.cause.member_id == member_id
        and (group.state, group.generation) == start
        and is_guess(group, *start)
        and not group.members
    )
    if last is None or not is_suspect:
        return
    turn.diverged("inferred_wrong")
    right = Target(
        to=GroupState.EMPTY,
        generation=group.generation,
        at_ms=last.started_at_ms,
        cause=Cause(kind=CauseKind.UNKNOWN, detail="the client left before it had joined"),
        by=Inference.NEVER_JOINED,
    )
    make(turn, right, replaces=forget_guesses(group, *start))


def _concluded_timeout(group: Group, generation: int) -> bool:
    """Return whether the group left this generation only because a session timer ran out in the mirror."""
    last = group.rebalance
    if last is None or last.old_generation != generation or last.joined_at_ms >= 0:
        return False
    if any(member.heartbeats_refused for member in group.members.values()):
        return False
    at_place = (group.state, group.generation)
    return last.cause.kind is CauseKind.SESSION_TIMEOUT and at_place in {
        (GroupState.PREPARING_REBALANCE, generation),
        (GroupState.EMPTY, generation + 1),
    }


def _was_concluded(gone: Departure) -> bool:
    return gone.how is CauseKind.SESSION_TIMEOUT and gone.basis is Basis.INFERRED


def refine_start(turn: Turn, what: JoinAnswered, why: Cause) -> None:
    """Correct an inferred start of the rebalance that this join turns out to have begun.

    Joins are answered when the join phase ends, so the join that began it may be read last.
    """
    group = turn.group
    last = group.rebalance
    if last is None or what.generation != last.old_generation + 1 or group.generation != what.generation:
        return
    started_at_ms = max(what.arrived_at_ms, last.not_before_ms)
    is_known = why.kind is not CauseKind.UNKNOWN
    slack_ms = 0 if is_known else GUESS_TOLERANCE_MS
    is_earlier = started_at_ms < last.started_at_ms - slack_ms
    told_at_ms = max(last.started_at_ms, last.told_at_ms)
    is_reason = is_known and _is_fallback(group, last, what) and started_at_ms <= told_at_ms
    if (is_earlier or is_reason) and not _says_the_same(last, why, started_at_ms):
        better = why if why.kind is not CauseKind.UNKNOWN else last.cause
        _explain(turn, last, better, started_at_ms)


def _is_fallback(group: Group, last: Rebalance, what: JoinAnswered) -> bool:
    """Return whether the reason of the rebalance is only a fallback.

    So is a new member that had its id and, as the leader's list shows, did not join with it.
    """
    is_no_show = what.member_ids and last.cause.member_id in group.pending
    return last.cause.kind in _FALLBACKS or bool(is_no_show and last.cause.member_id not in what.member_ids)


def _says_the_same(last: Rebalance, why: Cause, started_at_ms: int) -> bool:
    is_same = (last.cause.kind, last.cause.member_id) == (why.kind, why.member_id)
    return is_same and abs(started_at_ms - last.started_at_ms) <= GUESS_TOLERANCE_MS


def explain_start(turn: Turn, why: Cause) -> None:
    """Correct the cause of a start that was inferred from answers to other members a moment ago.

    What a leave makes the coordinator answer (parked syncs, a record without members) may be logged before
    the leave itself.  Where lines are read late, the record of the next generation may be read before it too.
    A member that left a Stable group before any other sign of the rebalance began that rebalance.
    """
    group = turn.group
    last = group.rebalance
    if last is None or not turn.may_infer:
        return
    if last.not_before_ms <= turn.at_ms < last.started_at_ms and not _says_the_same(last, why, turn.at_ms):
        _explain(turn, last, why, turn.at_ms)
        return
    if not 0 <= turn.at_ms - last.started_at_ms <= GUESS_TOLERANCE_MS:
        return
    is_same_leave = last.cause.kind is CauseKind.MEMBER_LEFT and last.cause.member_id == why.member_id
    if last.cause.kind is CauseKind.UNKNOWN or (is_same_leave and last.cause != why):
        is_over = group.state is not GroupState.PREPARING_REBALANCE
        # The transitions that followed keep their places after it.
        _explain(turn, last, why, min(turn.at_ms, group.state_since_ms - 1) if is_over else turn.at_ms)


def _explain(turn: Turn, last: Rebalance, why: Cause, at_ms: int) -> None:
    restate_guess(
        turn,
        Target(
            to=GroupState.PREPARING_REBALANCE,
            generation=last.old_generation,
            at_ms=at_ms,
            cause=why,
            by=Inference.START_EXPLAINED,
        ),
    )
