"""Inferences that later evidence corrects: a member that was not dead, a rebalance that began earlier."""

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
"""Inferred reasons that a join which came before gives way to: whoever fell silent then only held it up."""


def disprove(turn: Turn, generation: int, member_id: str, at_ms: int) -> None:
    """Take back a session timeout that the model concluded, if the group's heartbeats are still accepted.

    In a join phase the coordinator answers 27, so an accepted heartbeat of the old generation proves
    that the group never left it.
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
    if emptied is not None:  # the one that shows now is replaced; its way there goes with it
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


def _concluded_timeout(group: Group, generation: int) -> bool:
    """Say whether the group left this generation only because a session timer ran out in the model."""
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

    Joins are answered when the join phase ends, so the one that began it may be read last.
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
    """Say whether the reason we gave is only the best that was left.

    So is a newcomer that had its id and, as the list that the leader got shows, did not come with it.
    """
    is_no_show = what.member_ids and last.cause.member_id in group.pending
    return last.cause.kind in _FALLBACKS or bool(is_no_show and last.cause.member_id not in what.member_ids)


def _says_the_same(last: Rebalance, why: Cause, started_at_ms: int) -> bool:
    is_same = (last.cause.kind, last.cause.member_id) == (why.kind, why.member_id)
    return is_same and abs(started_at_ms - last.started_at_ms) <= GUESS_TOLERANCE_MS


def explain_start(turn: Turn, why: Cause) -> None:
    """Tell again, with its reason, a start that was inferred from answers to others a moment ago.

    What a leave makes the coordinator answer (parked syncs, a record of nobody) may be logged before
    the leave itself.  Where lines are read late, the record of the next generation may even have been read
    before: who left a group at rest, before anything else shows that it rebalances, began it.
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
        # What has followed already keeps its place behind it.
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
