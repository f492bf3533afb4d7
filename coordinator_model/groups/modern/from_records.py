"""Applies records to a consumer, share or streams group, and keeps lines for when it becomes classic.

Only the topic makes transitions here, each at the time of its record and observed: the coordinator's records
are its state.  The logs show how members left and that they are alive.
"""

from collections import Counter

from coordinator_model import observations as on
from coordinator_model.groups.core import Turn, cause, end, gone_for_good
from coordinator_model.groups.modern.conversion import become_classic, become_modern, named_conversion
from coordinator_model.groups.modern.costs import Rest, before_write
from coordinator_model.groups.modern.membership import follow, leave_behind
from coordinator_model.groups.modern.names import learn
from coordinator_model.groups.modern.reasons import why
from coordinator_model.groups.modern.replay import Changes, replay
from coordinator_model.groups.modern.transitions import settle
from coordinator_model.kafka import CauseKind, GroupState
from coordinator_model.observations import Seen
from coordinator_model.state import SHARE, Group, Modern, state_of

WAITING_MAX = 16
WAITING_MS = 5_000
"""A classic line comes at most so long before the record that makes its group classic."""

_SHOWS_CLASSIC_LIFE = on.types_that(lambda one: one.shows_classic_life)
_Record = on.ModernRecord | on.GroupTombstone | on.GroupRecorded


def converts(group: Group, what: on.AnyObservation) -> bool:
    """Return whether ``what`` converts a modern group, whose past must be finished first."""
    return (
        isinstance(what, on.ModernWrite | on.ModernRecord)
        and group.modern is None
        and any(map(_begins, _records_of(what)))
    )


def leftovers(group: Group, what: on.AnyObservation) -> list[on.GroupTombstone | on.GroupRecorded] | None:
    """Return the classic records beside tombstones of a modern group that has ended, or was never seen.

    None: the write is about a modern group that exists, or creates one.
    """
    if not isinstance(what, on.ModernWrite | on.ModernRecord) or group.modern is not None:
        return None
    records = _records_of(what)
    if any(map(_begins, records)):
        return None
    return [one for one in records if not isinstance(one, on.ModernRecord)]


def begin_anew(group: Group, what: on.AnyObservation) -> None:
    """Reset a group that ended, or that the broker describes as classic.

    A modern group that has ended is a classic one if it comes back as such.
    """
    if group.modern is not None and (group.state is GroupState.DEAD or group.group_type == "classic"):
        group.modern = None
    is_over = group.modern is None and group.group_type != "classic" and group.state is GroupState.DEAD
    if is_over and group.state_since_ms >= 0 and type(what) in _SHOWS_CLASSIC_LIFE:
        group.group_type = "classic"


def wait(group: Group, seen: Seen) -> None:
    """Keep a classic line: the group may be about to become the classic group that the line is about."""
    modern = group.modern
    if modern is None:
        return
    waiting = [] if modern.waiting is None else on.unpack(modern.waiting)
    waiting = [one for one in waiting if seen.at_ms - one.at_ms <= WAITING_MS]
    modern.waiting = on.pack([*waiting, seen][-WAITING_MAX:])


def waited(group: Group, before: Modern | None, at_ms: int) -> list[Seen]:
    """Return the lines that waited until the group became classic.

    Args:
        group: after an observation was applied.
        before: its newer part before that; None: it had none.
        at_ms: the time of the observation.
    """
    became_classic = group.modern is None and group.group_type == "classic"
    if before is None or before.waiting is None or not became_classic:
        return []
    return [one for one in on.unpack(before.waiting) if at_ms - one.at_ms <= WAITING_MS]


def _records_of(what: on.ModernWrite | on.ModernRecord) -> tuple[_Record, ...]:
    return what.records if isinstance(what, on.ModernWrite) else (what,)


def _begins(record: _Record) -> bool:
    return isinstance(record, on.ModernRecord) and not record.tombstone


def modern_write(turn: Turn, what: on.ModernWrite | on.ModernRecord) -> None:
    """Apply the records of one write at once."""
    records, group = _records_of(what), turn.group
    own = [one for one in records if isinstance(one, on.ModernRecord)]
    before = before_write(group, own)
    was = _enter(turn, own)
    modern, changes = group.modern or Modern(), Changes(uncommitted_ms=max(one.uncommitted_ms for one in own))
    for one in own:
        if one.group_type == group.group_type:
            replay(modern, one, turn.at_ms, changes)
    to_classic = next((one for one in reversed(records) if isinstance(one, on.GroupRecorded)), None)
    if to_classic is not None:
        become_classic(turn, modern, changes, to_classic)
    elif changes.ended:
        _end(turn, modern)
    else:
        _settle(turn, modern, changes, was, before)


def _enter(turn: Turn, own: list[on.ModernRecord]) -> str:
    """Set the group to the type of its records; return the type it was converted from, or ""."""
    group = turn.group
    group_type = next((one.group_type for one in reversed(own) if _begins(one)), group.group_type)
    if group.modern is not None and group.group_type == group_type:
        return ""
    return become_modern(turn, group_type)


def _settle(turn: Turn, modern: Modern, changes: Changes, was: str, before: Rest) -> None:
    group = turn.group
    names = len(modern.names)
    if changes.retargeted:
        learn(modern, group.group_type)
    if was:
        leave_behind(turn, modern)
    renamed = len(modern.names) != names or changes.topics_changed or bool(changes.resolved)
    passage = follow(turn, modern, changes, renamed=renamed)
    before.rename(group, passage.replaced)
    reason = why(group, modern, changes, passage, state_of(modern, group.group_type))
    if was:
        reason = named_conversion(reason, was, group.group_type)
    group.protocol = _assignor(modern)
    settle(
        turn,
        modern,
        changes,
        reason,
        unexplained=passage.unexplained(),
        converted=bool(was),
        before=before,
    )


def _assignor(modern: Modern) -> str | None:
    """Return the assignor that most members prefer; None if no member names one (the broker's default)."""
    votes = Counter(one.metadata.assignor for one in modern.members.values() if one.metadata)
    del votes[""]
    return min(votes, key=lambda name: (-votes[name], name), default=None)


def _end(turn: Turn, modern: Modern) -> None:
    """End a group whose own record was deleted.  Kafka deletes only empty ones."""
    group = turn.group
    leave_behind(turn, modern)
    group.members = {}
    # Kafka: share groups are never cleaned up automatically.
    is_share = group.group_type == SHARE
    end(turn, cause(CauseKind.GROUP_DELETED) if is_share else gone_for_good(group, turn.at_ms))
    group.modern = None


def group_recorded(turn: Turn, what: on.GroupRecorded) -> None:
    """End the modern group: a classic group's record proves that it is over, wherever its tombstones are."""
    become_classic(turn, turn.group.modern or Modern(), Changes(), what)


def groups_deleted(turn: Turn, _: on.GroupsDeleted) -> None:
    """Keep the deletion: the line comes before the tombstones that it explains."""
    end(turn, cause(CauseKind.GROUP_DELETED))
    turn.group.modern = None


def ignored(turn: Turn, what: on.GroupTombstone | on.GroupLoaded) -> None:
    """Ignore old tombstones of a converted group, and load lines: the group's records show the rest."""
