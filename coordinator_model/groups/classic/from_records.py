"""Applies records of ``__consumer_offsets`` to a classic group.

A record with members proves that a generation's assignment was stored; it does not say how the group came
there, so transitions that no other source reported are filled in as inferred.
"""

from coordinator_model.groups.core import (
    GUESS_TOLERANCE_MS,
    Inference,
    Target,
    Turn,
    adopt_members,
    assigned_now,
    cause,
    cause_by,
    create,
    emptied,
    end,
    end_silent,
    everybody_left,
    gone_for_good,
    make,
    note_assignment,
    place,
    place_of,
    reach,
    resume_members,
    start_before_emptiness,
    start_by_absence,
    start_by_arrival,
    start_by_emptiness,
    start_by_record,
    unburn,
    update_members,
    was_heard,
)
from coordinator_model.kafka import WITHOUT_MEMBERS, CauseKind, GroupState
from coordinator_model.observations import GroupRecorded, GroupTombstone
from coordinator_model.state import Basis, Cause, Group

GAP_TOLD_MAX = 16
"""Generations without a record that are emitted one by one; more of them in one gap are only counted."""

_UNKNOWN = Cause(kind=CauseKind.UNKNOWN)


def is_ahead_of_log(group: Group, what: GroupRecorded, at_ms: int) -> bool:
    """Return whether log lines that must come with this record have not been seen yet."""
    if group.group_type != "classic":
        return False  # a conversion writes the record without a rebalance
    if _is_creation(what):
        return False
    there = place(_state_in(what), what.generation)
    if there < place_of(group):
        return _has_fallen(group, what, at_ms)
    if there == place_of(group):
        return False
    if not what.members:
        return group.state is not GroupState.DEAD
    here = (group.state, group.generation)
    return here != (GroupState.COMPLETING_REBALANCE, what.generation)


def _state_in(what: GroupRecorded) -> GroupState:
    return GroupState.STABLE if what.members else GroupState.EMPTY


def _is_creation(what: GroupRecorded) -> bool:
    """Return whether this is the record of a group that has just been created (Kafka 4)."""
    return what.generation == 0 and not what.members and not what.protocol_type


def _has_fallen(group: Group, what: GroupRecorded, at_ms: int) -> bool:
    """Return whether a younger record has an older generation: the coordinator lost the end of the topic."""
    return what.generation < group.generation and at_ms > group.state_since_ms


def group_recorded(turn: Turn, what: GroupRecorded) -> None:
    """Bring the group to the place in the record, if that is beyond the group's place."""
    group = turn.group
    group.group_type = "classic"
    _undo_generation(turn, what)
    if place(_state_in(what), what.generation) < place_of(group):
        _behind(turn, what)
        return
    skipped = 0 if _says_nothing_of_gaps(turn) else what.generation - group.generation - 1
    _fill_gap(turn, what, skipped)
    _remember(turn, what)
    if what.members:
        _stored(turn, what)
    else:
        _nobody(turn, what)
    if group.rebalance is not None:
        # Generations without a record ended their join phase and were never stored.
        group.rebalance.burned = max(group.rebalance.burned, skipped)


def _undo_generation(turn: Turn, what: GroupRecorded) -> None:
    """Go back if the generation in a record is another one of the same number: it began again elsewhere."""
    group = turn.group
    if what.generation != group.generation or what.generation <= 0 or not _came_twice(turn, what):
        return
    turn.diverged("generation_fell")
    why = cause(CauseKind.COORDINATOR_MOVED, f"generation {what.generation} came twice")
    generation = what.generation - 1
    was_empty = generation == 0 or group.stored_members == 0
    before = Target(
        to=GroupState.EMPTY if was_empty else GroupState.STABLE,
        generation=generation,
        at_ms=turn.at_ms if not what.members else min(turn.at_ms, what.state_since_ms),
        cause=why,
        by=Inference.GENERATION_FELL,
    )
    make(turn, before)
    resume_members(turn)


def _came_twice(turn: Turn, what: GroupRecorded) -> bool:
    """Return whether the group has had this generation, and left it, before the one in the record began.

    Under one coordinator no generation comes twice: one that had members is not recorded without any, and its
    join phase does not end after the next rebalance has begun.
    """
    group = turn.group
    if not what.members:
        return group.state not in WITHOUT_MEMBERS and turn.at_ms > group.state_since_ms
    has_left = group.state is GroupState.PREPARING_REBALANCE
    return has_left and what.state_since_ms > group.state_since_ms + GUESS_TOLERANCE_MS


def _says_nothing_of_gaps(turn: Turn) -> bool:
    """Return whether a gap in generations proves nothing: records were compacted, or we started late."""
    return turn.context.backlog or turn.group.stored_generation < 0


def _fill_gap(turn: Turn, what: GroupRecorded, skipped: int) -> None:
    """Emit the generations without a record: each completed its join phase and was lost in the next.

    Their times are unknown; they are put where the join phase of the recorded generation ended.
    """
    told = min(skipped, GAP_TOLD_MAX)
    newcomers = [member for member in what.members if member.member_id not in turn.group.members]
    source, turn.source = turn.source, "model"
    for index, generation in enumerate(range(what.generation - told, what.generation)):
        at_ms = what.state_since_ms if what.members and what.state_since_ms >= 0 else turn.at_ms
        lost = Target(
            to=GroupState.COMPLETING_REBALANCE,
            generation=generation,
            at_ms=max(at_ms, turn.group.state_since_ms),
            cause=cause(CauseKind.JOIN_COMPLETED, "its assignment was never stored"),
            by=Inference.GENERATIONS_SKIPPED,
            start=start_by_arrival(newcomers[index]) if index < len(newcomers) else _UNKNOWN,
        )
        reach(turn, lost)
    turn.source = source


def _stored(turn: Turn, what: GroupRecorded) -> None:
    start, started_at_ms = start_by_record(turn.group, what), -1
    if start.kind is CauseKind.UNKNOWN:
        start, started_at_ms = start_by_absence(turn, what.state_since_ms) or (start, -1)
    stored = Target(
        to=GroupState.STABLE,
        generation=what.generation,
        at_ms=max(turn.at_ms, what.uncommitted_ms),
        cause=cause(CauseKind.ASSIGNMENT_STORED),
        start=start,
        started_at_ms=started_at_ms,
        joined_at_ms=what.state_since_ms,
    )
    reach(turn, stored)
    _take_over(turn, what)


def _take_over(turn: Turn, what: GroupRecorded) -> None:
    group, before = turn.group, assigned_now(turn.group)
    adopt_members(turn, what.members)
    group.protocol_type, group.protocol = what.protocol_type, what.protocol
    group.leader_id, group.leader_basis = what.leader_id, Basis.OBSERVED
    if what.leader_id in group.members:
        group.members[what.leader_id].synced = True
    note_assignment(turn, before)


def _nobody(turn: Turn, what: GroupRecorded) -> None:
    group = turn.group
    is_new = place(GroupState.EMPTY, what.generation) > place_of(group)
    start = start_by_emptiness(group, turn.at_ms)
    how = start.kind
    seen = _seen_to_end(turn) if is_new and how is CauseKind.UNKNOWN else None
    if seen is not None and seen.kind is CauseKind.ALL_MEMBERS_LEFT:
        how = CauseKind.MEMBER_LEFT
    why = seen or _why_empty(group, what, turn.at_ms)
    if how is CauseKind.SYNC_TIMEOUT:
        why = start
    else:
        start = start_before_emptiness(why)
    if is_new:
        everybody_left(turn, how, Basis.INFERRED, turn.at_ms)
    reach(
        turn,
        Target(to=GroupState.EMPTY, generation=what.generation, at_ms=turn.at_ms, cause=why, start=start),
    )
    group.protocol_type, group.protocol = what.protocol_type, None


def _seen_to_end(turn: Turn) -> Cause | None:
    """Return what emptied a group whose members' requests we read; None if unknown.

    A member that was not silent must have left: its LeaveGroup answer is logged a little after the record.
    """
    group = turn.group
    members = list(group.members)
    is_past_joining = group.state in {GroupState.STABLE, GroupState.COMPLETING_REBALANCE}
    could_be_heard = is_past_joining and all(map(was_heard, group.members.values()))
    silent = end_silent(turn, turn.at_ms)
    if silent is None and members and could_be_heard and turn.reads_requests:
        return cause_by(group, CauseKind.ALL_MEMBERS_LEFT, members[-1])
    return silent


def _why_empty(group: Group, what: GroupRecorded, at_ms: int) -> Cause:
    return cause(CauseKind.GROUP_CREATED) if what.generation == 0 else emptied(group, at_ms)


def _behind(turn: Turn, what: GroupRecorded) -> None:
    """Apply a record of a place that the group has left, or seemed to have left."""
    group = turn.group
    if _is_creation(what) and turn.at_ms > group.state_since_ms and group.generation > 0:
        turn.diverged("tombstone_missing")
        end(turn, cause(CauseKind.UNKNOWN), by=Inference.TOMBSTONE_MISSING)
        create(turn)
        _remember(turn, what)
    elif _has_fallen(group, what, turn.at_ms):
        turn.diverged("generation_fell")
        why = cause(CauseKind.COORDINATOR_MOVED, f"generation {what.generation} follows {group.generation}")
        fallen = Target(to=_state_in(what), generation=what.generation, at_ms=turn.at_ms, cause=why)
        make(turn, fallen)
        _remember(turn, what)
        _take_over(turn, what)
    elif what.generation == group.generation:
        _remember(turn, what)
        update_members(group, what.members)
        unburn(group, what.generation, what.state_since_ms)
        confirmed = cause(CauseKind.ASSIGNMENT_STORED)
        reach(
            turn,
            Target(to=_state_in(what), generation=what.generation, at_ms=turn.at_ms, cause=confirmed),
        )


def _remember(turn: Turn, what: GroupRecorded) -> None:
    group = turn.group
    group.stored_generation, group.stored_at_ms = what.generation, turn.at_ms
    group.stored_members = len(what.members)


def group_tombstone(turn: Turn, what: GroupTombstone) -> None:
    """End a group whose record was deleted."""
    if turn.at_ms >= turn.group.state_since_ms:
        would_be_told = turn.context.info_live or turn.context.requests_live
        end(turn, gone_for_good(turn.group, turn.at_ms, would_be_told=would_be_told))
