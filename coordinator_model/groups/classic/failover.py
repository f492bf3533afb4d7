"""Applies a failover: the new coordinator of a group knows only the last record.

The INFO log reports a failover itself (``from_log.py``).  Without it, four signs do: the old broker answers
that it no longer coordinates the group, another broker answers, an answer fits only a place that the group
has left, or a join phase ends with a generation that had ended one before.  Under one coordinator no
generation comes twice.

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

"""Answers of a broker that does not coordinate the group (yet); they prove nothing about the group."""

_UNDER_WAY = frozenset({GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE})


def resumed_generation(group: Group) -> int:
    """Return the generation of the last record; without a record, the last that looked completed."""
    if group.stored_generation >= 0:
        return group.stored_generation
    if group.state is GroupState.COMPLETING_REBALANCE and group.rebalance is not None:
        return max(group.rebalance.old_generation, 0)
    return group.generation


def refused(turn: Turn, error_code: int) -> None:
    """Apply an answer of a broker that does not coordinate the group: a running rebalance is lost.

    Clients also ask brokers that never had the group, so "not the coordinator" counts only from the broker
    that coordinated it.
    """
    group = turn.group
    is_loss = error_code == Error.COORDINATOR_LOAD_IN_PROGRESS or (
        error_code == Error.NOT_COORDINATOR and turn.broker == group.coordinator
    )
    is_loss = is_loss and turn.at_ms >= group.state_since_ms  # an earlier answer belongs to another rebalance
    if is_loss and turn.may_infer and group.state in _UNDER_WAY:
        _lose_rebalance(turn, turn.at_ms)


def taken_over(turn: Turn, asked_at_ms: int) -> None:
    """Apply that another broker answers a request of that time: a rebalance that ran before is lost.

    A killed broker logged nothing about it; the answers of the new one show what has begun there since.
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

    Returns True if it did: then the group is Stable again, and the state in the answer can be reached from
    there.
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
    """Go back if a join was parked for the group's present generation, although it came after that began.

    After the join phase a join is answered at once, or begins a rebalance.  One exception: a static member
    that replaces its former process waits for the record of the replacement.
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
    """Go back if the first generation that a new coordinator names is one that the group had passed.

    The coordinator was elected uncleanly: it loaded an older record and has lost the end of the topic.  Its
    load line does not name the generation (4.x), so its first line with one does.
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
