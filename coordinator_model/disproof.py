"""Inferences that later evidence corrects: a member that was not dead, a rebalance that began earlier."""

from coordinator_model.group import Basis, Cause, CauseKind, Departure, Group
from coordinator_model.members import bring_back
from coordinator_model.observations import JoinAnswered
from coordinator_model.states import GroupState
from coordinator_model.transitions import (
    GUESS_TOLERANCE_MS,
    Target,
    Turn,
    forget_guesses,
    is_guess,
    make,
    restate_guess,
)

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
        group.state, group.generation, wrong = *start, emptied
    turn.diverged("inferred_wrong")
    detail = "heartbeats of the generation are still accepted"
    right = Target(
        to=GroupState.STABLE,
        generation=generation,
        at_ms=at_ms,
        cause=Cause(kind=CauseKind.UNKNOWN, detail=detail),
        basis=Basis.INFERRED,
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
    is_earlier = started_at_ms < last.started_at_ms - GUESS_TOLERANCE_MS
    is_reason = (
        why.kind is not CauseKind.UNKNOWN
        and last.cause.kind in _FALLBACKS
        and what.arrived_at_ms <= last.started_at_ms
    )
    if is_earlier or is_reason:
        better = why if why.kind is not CauseKind.UNKNOWN else last.cause
        restate_guess(
            turn,
            Target(
                to=GroupState.PREPARING_REBALANCE,
                generation=last.old_generation,
                at_ms=started_at_ms,
                cause=better,
                basis=Basis.INFERRED,
            ),
        )
