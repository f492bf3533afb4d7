"""The only writer of a group's state, its generation and the time since when: every transition is made here.

A classic group's life is a sequence of places ``(generation, phase)`` that only ever grows: a generation is
completing (or empty), then stable, then preparing the next one.  So an observation that repeats or comes late
lies at or before the group's place and changes nothing, whatever its source and however often it comes. Only
two things lead back: a new coordinator resumes from the last record, and a group is created again after its
end.

Transitions that no source reported are filled in on the shortest legal way and marked inferred.
"""

import logging
from hashlib import blake2b

import msgspec

from coordinator_model.groups.core import costs, story
from coordinator_model.groups.core.inferences import Inference
from coordinator_model.groups.core.places import place, place_of, way
from coordinator_model.groups.core.rebalances import note_move
from coordinator_model.groups.core.turn import Turn
from coordinator_model.kafka import CauseKind, GroupState
from coordinator_model.state import Basis, Cause, Group, Transition

_log = logging.getLogger(__name__)

GUESS_TOLERANCE_MS = 300
"""An inferred time this close to the observed one is not corrected."""
GUESSES_MAX = 8


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The place that a turn proves for the group, and what the turn shows of the way there."""

    to: GroupState
    generation: int
    at_ms: int
    cause: Cause
    by: Inference | None = None
    """The rule that inferred it; None: it was observed."""
    start: Cause = Cause(kind=CauseKind.UNKNOWN)
    """Why the rebalance on the way began, if it has to be filled in."""
    started_at_ms: int = -1
    joined_at_ms: int = -1
    """When the join phase on the way ended, if it has to be filled in."""

    @property
    def basis(self) -> Basis:
        """Whether it was observed or inferred."""
        return Basis.OBSERVED if self.by is None else Basis.INFERRED


def transition_id(cluster: str, group: str, to: GroupState, generation: int, at_ms: int) -> str:
    """Return the id of a transition, which is the same for everyone who computes it, at any time."""
    text = f"{cluster}|{group}|{to}|{generation}|{at_ms}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def reach(turn: Turn, target: Target) -> bool:
    """Bring the group to ``target`` by legal transitions; False if the group is there already or beyond."""
    if target.basis is Basis.OBSERVED and _confirm(turn, target):
        return False
    if place(target.to, target.generation) <= place_of(turn.group):
        return False
    replaces = _retract(turn, target)
    for state in way(turn.group, target.to, target.generation):
        _fill(turn, state, target, replaces)
        replaces = None  # the first transition has replaced it
    make(turn, target, replaces=replaces)
    return True


def make(turn: Turn, target: Target, *, replaces: str | None = None) -> Target:
    """Put the group at ``target``, whether or not the state machine allows that transition.

    Args:
        turn: the observation or deadline that proves it.
        target: where the group is.
        replaces: id of the transition to the group's former place, which never happened.

    Returns:
        The target as emitted: never before the last emitted transition.
    """
    group = turn.group
    came_from = group.state
    _forget_from(group, target)  # of an earlier visit, before the group went back
    told_from, replaces = _take_back(turn, came_from, replaces)
    target = dated(turn, target)
    before_ms = group.state_since_ms
    _enter(group, target)
    note_move(group, came_from, target.at_ms, target.cause, counted=not turn.context.backlog)
    if group.rebalance is not None and target.to is GroupState.PREPARING_REBALANCE:
        group.rebalance.not_before_ms = before_ms
        costs.note_start(turn)
    tell(turn, told_from, target, replaces)
    return target


def move_modern(turn: Turn, target: Target) -> Target:
    """Make a transition of a modern group, as its records report it; return it as emitted."""
    group = turn.group
    came_from = group.state
    target = dated(turn, target)
    _enter(group, target)
    tell(turn, came_from, target)
    return target


def _enter(group: Group, target: Target) -> None:
    if group.state is GroupState.DEAD:
        group.born_ms = target.at_ms
    group.state, group.state_since_ms, group.generation = target.to, target.at_ms, target.generation


def correct_silently(
    group: Group,
    *,
    state: GroupState | None = None,
    generation: int | None = None,
    since_ms: int | None = None,
) -> None:
    """Correct the group's place without a transition; None leaves that part as it is.

    For corrections that are no transition: the group is first seen as a broker describes it, its epoch grew
    within one state, a transition gets another time, or one that never happened is taken back before the true
    one is emitted.
    """
    group.state = group.state if state is None else state
    group.generation = group.generation if generation is None else generation
    group.state_since_ms = group.state_since_ms if since_ms is None else since_ms


def _take_back(turn: Turn, came_from: GroupState, replaces: str | None) -> tuple[GroupState, str | None]:
    """Drop the last row if a transition replaces it; return the previous state and the replaced id."""
    known = story.rows(turn.group) if replaces is not None else []
    if not known:
        return came_from, None
    last = known[-1]
    if _id_of(turn, last) != replaces:
        return last.to, None
    story.take_back(turn.group)
    return last.came_from, replaces


def dated(turn: Turn, target: Target) -> Target:
    """Return a transition as it can be emitted next: not before the last one, and with an id of its own."""
    if turn.context.backlog:
        return target
    known = story.rows(turn.group)
    within = story.between(known, len(known))
    at_ms = story.free_time(turn.group, target.to, target.generation, target.at_ms, within)
    return target if at_ms in {None, target.at_ms} else msgspec.structs.replace(target, at_ms=at_ms)


def cause(kind: CauseKind, detail: str = "") -> Cause:
    """Return a cause that names no member."""
    return Cause(kind=kind, detail=detail)


def forget_guesses(group: Group, state: GroupState, generation: int) -> str | None:
    """Drop the inferred transition to this place and return its id; None if there was none."""
    for guess in group.guesses:
        if guess[1] is state and guess[2] == generation:
            group.guesses = tuple(other for other in group.guesses if other is not guess)
            return guess[0]
    return None


def _forget_from(group: Group, target: Target) -> None:
    """Drop the inferred transitions to a place that is reached, and to the places after it."""
    if group.guesses:
        here = place(target.to, target.generation)
        group.guesses = tuple(guess for guess in group.guesses if place(guess[1], guess[2]) < here)


def is_guess(group: Group, state: GroupState, generation: int) -> bool:
    """Return whether this place was inferred and no observation has confirmed it yet."""
    return any(guess[1] is state and guess[2] == generation for guess in group.guesses)


def restate(turn: Turn, target: Target, replaces: str, *, news: bool = False) -> Target:
    """Emit a correction of a past transition in place of the one with the id ``replaces``.

    The correction keeps the previous state and stays between its neighbours.  Nothing is emitted for a
    transition that was never emitted, or that is too old to be stored.

    Args:
        turn: the observation that corrects it.
        target: the better transition: same state and generation, another time or cause.
        replaces: the id of the worse one.
        news: whether it is worth emitting at the very same time, for its cause.

    Returns:
        The target with the time that it has in the story.
    """
    known = story.rows(turn.group)
    index = next((n for n, row in enumerate(known) if _id_of(turn, row) == replaces), None)
    if index is None or turn.context.backlog:
        return target
    lowest, highest = story.between(known, index)
    at_ms = max(lowest, min(target.at_ms, highest))
    if at_ms == known[index].at_ms and not news:
        return msgspec.structs.replace(target, at_ms=at_ms)
    free_ms = story.free_time(turn.group, target.to, target.generation, at_ms, (lowest, highest))
    if free_ms is None:
        return msgspec.structs.replace(target, at_ms=at_ms)
    target = msgspec.structs.replace(target, at_ms=free_ms)
    came_from = known[index].came_from
    story.replace(turn.group, index, story.Row(came_from, target.to, target.generation, free_ms))
    _tell(turn, came_from, target, replaces)
    return target


def restate_guess(turn: Turn, target: Target) -> None:
    """Replace the inferred transition to this place by a better one, if it is still unconfirmed."""
    last = turn.group.rebalance
    is_same_time = any(guess[0] == transition_id_of(turn, target) for guess in turn.group.guesses)
    if is_same_time and (last is None or _blames_the_same(last.cause, target.cause)):
        return
    replaces = forget_guesses(turn.group, target.to, target.generation)
    if replaces is not None:
        _correct(turn.group, restate(turn, target, replaces, news=is_same_time))


def _blames_the_same(one: Cause, other: Cause) -> bool:
    return (one.kind, one.member_id) == (other.kind, other.member_id)


def _id_of(turn: Turn, row: story.Row) -> str:
    return transition_id(turn.context.cluster, turn.group.group, row.to, row.generation, row.at_ms)


def transition_id_of(turn: Turn, target: Target) -> str:
    """Return the id of the transition to ``target``."""
    return transition_id(turn.context.cluster, turn.group.group, target.to, target.generation, target.at_ms)


def tell(turn: Turn, came_from: GroupState, target: Target, replaces: str | None = None) -> None:
    """Emit a transition as ``dated`` returned it; a correction takes the row of what it replaces."""
    if turn.context.backlog:
        turn.group.told = ()  # a transition that is not emitted is no part of the story
    else:
        row = story.Row(came_from, target.to, target.generation, target.at_ms)
        story.append(turn.group, row)
    _tell(turn, came_from, target, replaces)


def _tell(turn: Turn, came_from: GroupState, target: Target, replaces: str | None) -> None:
    """Emit a transition, and keep it if it is inferred; in the backlog only inferred ones are kept."""
    if turn.context.backlog and target.basis is not Basis.INFERRED:
        return
    told_id = transition_id_of(turn, target)
    if not turn.context.backlog:
        turn.step.transitions.append(_emitted(turn, told_id, came_from, target, replaces))
        _note_inference(turn, told_id, target)
    if target.basis is Basis.INFERRED:
        guess = (told_id, target.to, target.generation, target.at_ms)
        turn.group.guesses = (*turn.group.guesses, guess)[-GUESSES_MAX:]


def _note_inference(turn: Turn, told_id: str, target: Target) -> None:
    """Name the rule that inferred a transition in the step; the topic does not carry it."""
    if target.by is not None:
        turn.step.inferred[told_id] = target.by
        _log.debug("%s: %s %d inferred: %s", turn.group.group, target.to, target.generation, target.by)


def _emitted(
    turn: Turn, told_id: str, came_from: GroupState, target: Target, replaces: str | None
) -> Transition:
    group = turn.group
    return Transition(
        id=told_id,
        cluster=turn.context.cluster,
        group=group.group,
        group_type=group.group_type,
        from_state=came_from,
        to_state=target.to,
        generation=target.generation,
        at_ms=target.at_ms,
        recorded_at_ms=turn.recorded_at_ms,
        cause=target.cause,
        basis=target.basis,
        source=turn.source,
        replaces=replaces,
        cost=costs.untold(turn, target.to),
        reread=costs.reread_since(turn, came_from),
    )


def _confirm(turn: Turn, target: Target) -> bool:
    """Confirm or replace an inferred transition that ``target`` observes; False if there is none."""
    group = turn.group
    guess = next((g for g in group.guesses if g[1] is target.to and g[2] == target.generation), None)
    if guess is None or target.to is GroupState.DEAD:
        return False
    group.guesses = tuple(other for other in group.guesses if other is not guess)
    is_late = abs(target.at_ms - guess[3]) > GUESS_TOLERANCE_MS
    if is_late:
        turn.diverged("inferred_wrong")
    knows_better = _knows_better(group, target)
    if is_late or knows_better:
        target = _with_known_cause(group, target)
        _correct(group, restate(turn, target, guess[0], news=knows_better))
    return True


def _knows_better(group: Group, target: Target) -> bool:
    """Return whether the observation gives another reason for the running rebalance than the inferred one."""
    return (
        _is_its_start(group, target)
        and group.rebalance is not None
        and target.cause.kind not in {CauseKind.UNKNOWN, group.rebalance.cause.kind}
    )


def _with_known_cause(group: Group, target: Target) -> Target:
    """Let the start of the running rebalance keep its cause where the better source gives none."""
    if target.cause.kind is not CauseKind.UNKNOWN or not _is_its_start(group, target):
        return target
    known = target.cause if group.rebalance is None else group.rebalance.cause
    return msgspec.structs.replace(target, cause=known)


def _is_its_start(group: Group, target: Target) -> bool:
    last = group.rebalance
    is_start = target.to is GroupState.PREPARING_REBALANCE
    return is_start and last is not None and last.old_generation == target.generation


def _correct(group: Group, target: Target) -> None:
    """Correct the stored time and cause of an inferred transition to the observed ones.

    ``rebalances`` stays as counted: it feeds a Prometheus counter, which must not fall.
    """
    if (group.state, group.generation) == (target.to, target.generation):
        correct_silently(group, since_ms=target.at_ms)
    last = group.rebalance
    if last is None or last.old_generation != target.generation:
        return
    if target.to is GroupState.PREPARING_REBALANCE:
        if last.unstable_since_ms == last.started_at_ms:
            last.unstable_since_ms = target.at_ms
        last.started_at_ms = target.at_ms
        last.cause = target.cause


def _retract(turn: Turn, target: Target) -> str | None:
    """Take back an inferred Empty of the very generation that now shows members.

    Returns the id of the wrong transition; the group goes back to its place before it.
    """
    group = turn.group
    is_wrong = (
        group.state is GroupState.EMPTY
        and group.generation == target.generation > 0
        and target.to in {GroupState.STABLE, GroupState.COMPLETING_REBALANCE}
    )
    wrong = forget_guesses(group, GroupState.EMPTY, group.generation) if is_wrong else None
    if wrong is not None:
        turn.diverged("inferred_wrong")
        correct_silently(group, state=GroupState.PREPARING_REBALANCE, generation=group.generation - 1)
    return wrong


def _fill(turn: Turn, state: GroupState, target: Target, replaces: str | None) -> None:
    """Make one transition that no source reported; the first may replace an inference taken back."""
    if target.basis is Basis.OBSERVED and turn.context.info_live:
        turn.diverged("log_line_missing")
    group = turn.group
    joined_at_ms = target.joined_at_ms if target.joined_at_ms >= 0 else target.at_ms
    at_ms, why = joined_at_ms, cause(CauseKind.GROUP_CREATED)
    generation = 0 if group.state is GroupState.DEAD else group.generation  # a new life
    if state is GroupState.PREPARING_REBALANCE:
        at_ms = target.started_at_ms if target.started_at_ms >= 0 else joined_at_ms
        why = target.start
    elif state is GroupState.COMPLETING_REBALANCE:
        generation, why = target.generation, cause(CauseKind.JOIN_COMPLETED)
    elif target.started_at_ms >= 0:
        at_ms = target.started_at_ms
    at_ms = min(max(at_ms, group.state_since_ms), max(target.at_ms, group.state_since_ms))
    source, turn.source = turn.source, "model" if target.basis is Basis.OBSERVED else turn.source
    step = Target(to=state, generation=generation, at_ms=at_ms, cause=why, by=Inference.FILLED_IN)
    make(turn, step, replaces=replaces)
    turn.source = source
