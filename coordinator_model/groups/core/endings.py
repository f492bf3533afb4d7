"""Creates and ends groups."""

from coordinator_model.groups.core.inferences import Inference
from coordinator_model.groups.core.transitions import Target, cause, make, reach, restate, transition_id_of
from coordinator_model.groups.core.turn import Turn
from coordinator_model.kafka import CauseKind, GroupState
from coordinator_model.state import Cause, Ended

DELETION_TOLD_LATE_MS = 5_000
"""A DeleteGroups line or answer may follow the tombstone that it explains by this much."""


def create(turn: Turn, *, by: Inference | None = None, at_ms: int | None = None) -> None:
    """Begin a group that the coordinator did not have before; does nothing if the group exists."""
    if turn.group.state is not GroupState.DEAD or turn.group.group_type != "classic":
        return
    now = turn.at_ms if at_ms is None else at_ms
    created = cause(CauseKind.GROUP_CREATED)
    reach(turn, Target(to=GroupState.EMPTY, generation=0, at_ms=now, cause=created, by=by))


def end(turn: Turn, why: Cause, *, by: Inference | None = None) -> None:
    """End a group; does nothing if the group has ended already.

    Counts, departures and inferred transitions stay, since the rules' windows span a new beginning.
    """
    group = turn.group
    if group.state is GroupState.DEAD:
        return
    turn.step.ended = Ended(
        last_commit_ms=group.last_commit_ms,
        state_since_ms=group.state_since_ms,
        partitions=sum(map(len, group.commits.values())),
        offsets_gone_ms=group.offsets_gone_ms,
        guessed=why.kind is CauseKind.OFFSETS_EXPIRED,
        protocol_type=group.protocol_type if group.group_type == "classic" else "",
    )
    told = Target(to=GroupState.DEAD, generation=group.generation, at_ms=turn.at_ms, cause=why, by=by)
    told = make(turn, told)
    group.ended_ms = max(group.ended_ms, turn.at_ms)
    group.guesses = ()
    if why.kind is CauseKind.OFFSETS_EXPIRED:
        group.guesses = ((transition_id_of(turn, told), told.to, told.generation, told.at_ms),)
    group.protocol_type = ""
    group.pending, group.commits, group.rebalance = {}, {}, None
    group.held_record, group.held_until_ms = None, -1
    group.coordinator = -1
    group.last_commit_ms = group.stored_generation = group.stored_at_ms = group.stored_members = -1
    group.offsets_gone_ms, group.claims, group.tracks, group.costs = -1, None, None, None


def told_deleted(turn: Turn) -> bool:
    """Correct the cause of a tombstone that was taken for expiry, as a DeleteGroups has explained it."""
    group = turn.group
    if group.state is not GroupState.DEAD or not group.guesses:
        return group.state is GroupState.DEAD
    guess = group.guesses[-1]
    if guess[1] is GroupState.DEAD and abs(turn.at_ms - guess[3]) <= DELETION_TOLD_LATE_MS:
        why = cause(CauseKind.GROUP_DELETED)
        told = Target(to=GroupState.DEAD, generation=guess[2], at_ms=turn.at_ms, cause=why)
        restate(turn, told, guess[0], news=True)
        group.guesses = ()
    return True
