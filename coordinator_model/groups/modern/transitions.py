"""Makes the transitions of a modern group, and keeps its rebalance and counters in step.

A rebalance of these groups is a growth of the group epoch: it lasts until every member has reached an
assignment of that epoch.
"""

from coordinator_model.groups.core import Target, Turn, correct_silently, move_modern, transition_id_of
from coordinator_model.groups.modern.costs import Rest, note_write
from coordinator_model.groups.modern.replay import Changes
from coordinator_model.kafka import WITHOUT_MEMBERS, GroupState
from coordinator_model.state import Cause, EmittedState, Group, Modern, Rebalance, state_of

_CALM = frozenset({GroupState.STABLE, GroupState.EMPTY})


def settle(
    turn: Turn,
    modern: Modern,
    changes: Changes,
    cause: Cause,
    *,
    unexplained: str,
    converted: bool,
    before: Rest,
) -> None:
    """Set the group's state and epoch to those of its records, and emit the transition.

    Args:
        turn: the write.
        modern: the group after it.
        changes: what it changed.
        cause: why it was written.
        unexplained: a member that left for an unknown reason, which a late line may still give.
        converted: whether the group had another type before; a conversion is emitted even in the same state.
        before: its state before the write.
    """
    group = turn.group
    came_from, epoch_before = group.state, group.generation
    to = state_of(modern, group.group_type)
    _note(turn, changes, cause, came_from, epoch_before)
    correct_silently(group, generation=modern.epochs[0])
    if to is not came_from or converted:
        committed_ms = max(turn.at_ms, changes.uncommitted_ms)  # a coordinator answers with replicated state
        target = Target(to=to, generation=group.generation, at_ms=committed_ms, cause=cause)
        target = move_modern(turn, target)
        modern.told = _emitted(turn, came_from, target, unexplained) if unexplained else None
    _follow_rebalance(group, modern, turn.at_ms)
    note_write(turn, modern, changes, before)


def _emitted(turn: Turn, came_from: GroupState, target: Target, member_id: str) -> EmittedState:
    return EmittedState(
        id=transition_id_of(turn, target),
        from_state=came_from,
        to_state=target.to,
        generation=target.generation,
        member_id=member_id,
    )


def _note(turn: Turn, changes: Changes, cause: Cause, came_from: GroupState, epoch_before: int) -> None:
    """Count the rebalances that began; the broker's own counter also grows with each epoch."""
    if not changes.epochs:
        return
    group, last = turn.group, turn.group.rebalance
    # A conversion begins with the generation of the classic group.
    begun = [epoch for epoch in changes.epochs if came_from is GroupState.DEAD or epoch > epoch_before]
    if not turn.context.backlog and begun:
        group.rebalances[str(cause.kind)] = group.rebalances.get(cause.kind, 0) + len(begun)
    goes_on = last is not None and last.ended_at_ms < 0
    group.rebalance = Rebalance(
        started_at_ms=turn.at_ms,
        old_generation=epoch_before,
        cause=cause,
        initial=came_from in WITHOUT_MEMBERS,
        unstable_since_ms=last.unstable_since_ms if goes_on and last is not None else turn.at_ms,
        not_before_ms=group.state_since_ms,
    )


def _follow_rebalance(group: Group, modern: Modern, at_ms: int) -> None:
    running = group.rebalance
    if running is None or running.ended_at_ms >= 0:
        return
    if running.joined_at_ms < 0 and modern.epochs[1] >= modern.epochs[0]:
        running.joined_at_ms = at_ms
    if group.state in _CALM:
        running.ended_at_ms = at_ms
