"""A group that goes on with another coordinator, which knows no more than the last record.

The INFO log says so itself (``by_log``).  Without it, four things do: answers that their broker no
longer coordinates the group, answers of another broker, answers that fit only a place which the group
had left already, and a join phase that ends with the generation that had ended one before.  Within one
coordinator's time no generation comes back.

Source: ``GroupMetadataManager`` (``onLoaded``, ``onUnloaded``); a rebalance under way is in no record.
"""

from coordinator_model.groups.core import (
    GUESS_TOLERANCE_MS,
    Inference,
    Target,
    Turn,
    cause,
    make,
    place,
    place_of,
    restart_session,
    resume_members,
)
from coordinator_model.kafka import CauseKind, Error, GroupState
from coordinator_model.state import Group

"""Answers of a broker that is not, or not yet, the group's coordinator; they say nothing of the group."""

_UNDER_WAY = frozenset({GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE})


def resumed_generation(group: Group) -> int:
    """Return the generation of the last record; where none was seen, the last that looked completed."""
    if group.stored_generation >= 0:
        return group.stored_generation
    if group.state is GroupState.COMPLETING_REBALANCE and group.rebalance is not None:
        return max(group.rebalance.old_generation, 0)
    return group.generation


def refused(turn: Turn, error_code: int) -> None:
    """Take in that a broker is not, or not yet, in charge: a rebalance that was under way is lost.

    Clients ask brokers that never had the group as well, so "not the coordinator" counts only from
    the one that was.
    """
    group = turn.group
    is_loss = error_code == Error.COORDINATOR_LOAD_IN_PROGRESS or (
        error_code == Error.NOT_COORDINATOR and turn.broker == group.coordinator
    )
    is_loss = is_loss and turn.at_ms >= group.state_since_ms  # before, it was of another rebalance
    if is_loss and turn.may_infer and group.state in _UNDER_WAY:
        _lose_rebalance(turn, turn.at_ms)


def taken_over(turn: Turn, asked_at_ms: int) -> None:
    """Take in that another broker answers a request of that time: what was under way before is lost.

    A broker that was killed said nothing of it; what the new one answers tells what has begun there since.
    """
    group = turn.group
    has_begun_before = asked_at_ms > group.state_since_ms + GUESS_TOLERANCE_MS
    if turn.may_infer and group.state in _UNDER_WAY and has_begun_before:
        _lose_rebalance(turn, asked_at_ms)


def _lose_rebalance(turn: Turn, at_ms: int) -> None:
    group = turn.group
    group.pending = {}
    resume_members(turn)
    to = GroupState.STABLE if group.members and group.stored_members != 0 else GroupState.EMPTY
    _go_back(turn, to, resumed_generation(group), at_ms)


def came_back(turn: Turn, to: GroupState, generation: int, at_ms: int) -> bool:
    """Go back to a generation that an answer at ``at_ms`` proves current although the group had left it.

    True if it did: then the group is Stable again, from where the answer's own state may be reached.
    """
    group = turn.group
    if not turn.may_infer or group.state is GroupState.DEAD:
        return False
    is_past = place(to, generation) < place_of(group)
    if not is_past or at_ms <= group.state_since_ms + GUESS_TOLERANCE_MS:
        return False
    resume_members(turn)
    _go_back(turn, GroupState.STABLE, generation, at_ms)
    return True


def joined_again(turn: Turn, generation: int, arrived_at_ms: int) -> None:
    """Go back if a join waited for the generation that the group has, though it came after it began.

    Whoever joins a group that is past its join phase is answered at once, or makes it begin another.
    Not so a static member that takes the place of its old self: it waits for the record of that.
    """
    group = turn.group
    has_waited = turn.at_ms - arrived_at_ms > GUESS_TOLERANCE_MS
    last = group.rebalance
    if generation != group.generation or not has_waited or last is None or last.joined_at_ms < 0:
        return
    if arrived_at_ms > last.joined_at_ms + GUESS_TOLERANCE_MS and turn.may_infer:
        group.pending = {}
        resume_members(turn)
        _go_back(turn, GroupState.STABLE, max(generation - 1, 0), arrived_at_ms)


def begin_below(turn: Turn, to: GroupState, generation: int) -> None:
    """Go back if the first generation that a new coordinator tells is one that the group had passed.

    It loaded an older record than the last: elected uncleanly, it has lost the end of the topic.  What it
    loaded the line does not tell (4.x), so its own first word does.
    """
    group = turn.group
    is_its_word = group.loaded_ms >= 0 and turn.broker == group.coordinator and turn.at_ms >= group.loaded_ms
    if not is_its_word or group.spoken_ms >= group.loaded_ms:
        return
    group.spoken_ms = turn.at_ms
    is_newest = turn.at_ms > max(group.state_since_ms, group.stored_at_ms)
    if not is_newest or place(to, generation) > place_of(group) or group.state is GroupState.DEAD:
        return
    turn.diverged("generation_fell")
    loaded = generation if to is GroupState.PREPARING_REBALANCE else max(generation - 1, 0)
    why = cause(CauseKind.COORDINATOR_MOVED, f"broker {turn.broker} goes on from generation {loaded}")
    base = GroupState.STABLE if group.members else GroupState.EMPTY
    make(
        turn,
        Target(to=base, generation=loaded, at_ms=group.loaded_ms, cause=why, by=Inference.GENERATION_FELL),
    )
    group.stored_generation, group.stored_members = loaded, len(group.members)


def _go_back(turn: Turn, to: GroupState, generation: int, at_ms: int) -> None:
    why = cause(CauseKind.COORDINATOR_MOVED, "the rebalance under way was lost with its coordinator")
    make(
        turn,
        Target(to=to, generation=generation, at_ms=at_ms, cause=why, by=Inference.COORDINATOR_LOST_REBALANCE),
    )
    for member in turn.group.members.values():
        restart_session(member, at_ms, may_set_back=True)
