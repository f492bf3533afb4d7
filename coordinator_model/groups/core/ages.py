"""Decides whether a log line is too old to describe the group as it is.

Logs are shipped late, in part twice, and by hand an hour later.  A group keeps its name for many lives, and
generations begin anew in each life, so the generation alone does not date a line.  A line is old if it
happened

- before the previous life of the group ended, or at the very millisecond of that end if it names a generation
after the first, which a new life cannot have reached; or, for a line that ends a group, before this life
began;
- before the group's coordinator loaded it: an earlier line describes a group that was loaded again since;
- before the group's newest record, which names the members by itself.  Such a line may still correct an
inferred transition, or how a member left whose departure was seen.

Some lines have times in whole seconds.  Against an end the start of that second counts; against a birth or a
record the end of that second: the milliseconds that such a line gets from its append prove nothing.

An old line is counted, makes no transition and proves nothing.  Times are compared on one broker's clock
where possible: a coordinator stamps its lines and its records with the same clock.
"""

from collections.abc import Callable, Mapping
from typing import Any

from coordinator_model import observations as on
from coordinator_model.groups.core.members import DEPARTURES_MAX, departure_of
from coordinator_model.groups.core.places import place, place_of
from coordinator_model.observations import AfterRecord, Seen, Source
from coordinator_model.state import Group

OLD_LINE = "old_line"
"""The divergence under which old lines are counted."""
LINE_AHEAD = "line_ahead"
"""The divergence for lines whose own time was long after their append, so that their age is unknown."""
WHOLE_SECOND_MS = 1_000


_LOGS = frozenset({Source.COORDINATOR_LOG, Source.REQUEST_LOG})
_ENDS_LIFE = on.types_that(lambda one: one.ends_life)
_TELLS_GENERATION = on.types_that(lambda one: one.tells_generation)
_OF_ONE_MEMBER = on.types_that(lambda one: one.after_record in {AfterRecord.ARRIVAL, AfterRecord.DEPARTURE})
_ID_HANDED_OUT = 79
_UNKNOWN_MEMBER = 25


def is_of_another_life(group: Group, seen: Seen) -> bool:
    """Return whether a line belongs to an ended life of the group, or to an earlier coordinator."""
    if seen.source not in _LOGS:
        return False
    if _earliest_ms(seen) < group.ended_ms + _is_of_later_generation(seen.what):
        return True
    if type(seen.what) in _ENDS_LIFE and _latest_ms(seen) < group.born_ms:
        return True
    return seen.at_ms < (group.loaded_ms if seen.broker in (-1, group.coordinator) else _led_ms(group))


def _is_of_later_generation(what: Any) -> bool:
    return type(what) in _TELLS_GENERATION and what.generation > 0


def has_no_age(group: Group, *, is_recorded: bool) -> bool:
    """Return whether records describe the group, so that a line ahead of them (``is_ahead``) has no age.

    The line's broker writes another time zone than configured, or has a wrong clock, and nothing has proved
    which. The line gets the time of its append, and a line that is sent again an hour later looks new by
    that.

    Args:
        group: before the line is applied.
        is_recorded: whether records are read.
    """
    is_described = group.stored_at_ms >= 0 or group.modern is not None or group.ended_ms >= 0
    return is_recorded and is_described


def _led_ms(group: Group) -> int:
    """Return since when (epoch ms) the group's coordinator is known to be another than the previous one."""
    return max(group.loaded_ms, -1 if group.taken is None else group.taken[0])


def is_before_record(group: Group, seen: Seen) -> bool:
    """Return whether a line is older than the group's newest record and corrects nothing."""
    if seen.source not in _LOGS or group.group_type != "classic":
        return False
    if _latest_ms(seen) >= group.stored_at_ms:
        return _is_beyond_memory(group, seen)
    return _COUNTS_NO_MORE[on.TRAITS[type(seen.what)].after_record](group, seen.what)


def _is_beyond_place(group: Group, what: Any) -> bool:
    state = on.TRAITS[type(what)].place
    return state is not None and place(state, what.generation) > place_of(group)


def _went_unseen(group: Group, what: on.MemberFailed | on.MemberLeft | on.MembersKicked) -> bool:
    """Return whether a line reports only departures that are not known."""
    member_ids = what.member_ids if isinstance(what, on.MembersKicked) else (what.member_id,)
    return all(departure_of(group, member_id) is None for member_id in member_ids)


def _is_of_another_assignment(group: Group, what: on.AssignmentReceived) -> bool:
    """Return whether an assignment did not cause the newest record, which was written after it."""
    return what.generation != group.stored_generation or what.leader_id not in group.members


def _has_left(group: Group, what: on.LeaveAnswered) -> bool:
    if what.error_code == 0:
        return what.member_id in group.members or departure_of(group, what.member_id) is None
    return what.error_code == _UNKNOWN_MEMBER


_COUNTS_NO_MORE: Mapping[AfterRecord, Callable[[Group, Any], bool]] = {
    AfterRecord.ALL: lambda _, __: False,
    AfterRecord.NOTHING: lambda _, __: True,
    AfterRecord.ARRIVAL: lambda _, __: True,
    AfterRecord.PLACE: _is_beyond_place,
    AfterRecord.DEPARTURE: _went_unseen,
    AfterRecord.ASSIGNMENT: _is_of_another_assignment,
    AfterRecord.MEMBERSHIP: lambda _, what: what.error_code == _UNKNOWN_MEMBER,
    AfterRecord.HANDED_OUT: lambda _, what: what.error_code in {_UNKNOWN_MEMBER, _ID_HANDED_OUT},
    AfterRecord.LEAVE: _has_left,
}
"""Observation older than the group's newest record -> a test that nothing of it counts."""


def learn_coordinator(group: Group, seen: Seen) -> None:
    """Set the coordinator from a load line that is older than the newest record; apply nothing else of it."""
    if isinstance(seen.what, on.GroupLoaded) and seen.broker >= 0 and seen.at_ms >= _led_ms(group):
        group.coordinator, group.loaded_ms = seen.broker, seen.at_ms


def _is_beyond_memory(group: Group, seen: Seen) -> bool:
    """Return whether a line about a member is older than all departures that are kept."""
    full = len(group.departures) >= DEPARTURES_MAX
    is_of_member = type(seen.what) in _OF_ONE_MEMBER
    return full and is_of_member and _latest_ms(seen) < group.departures[0].at_ms


def _earliest_ms(seen: Seen) -> int:
    """Return the earliest time (epoch ms) that a line may mean: the start of its second if it has no ms."""
    return seen.at_ms - seen.at_ms % WHOLE_SECOND_MS if seen.is_whole else seen.at_ms


def _latest_ms(seen: Seen) -> int:
    """Return the latest time (epoch ms) that a line may mean; for whole seconds, the end of its second."""
    return _earliest_ms(seen) + WHOLE_SECOND_MS - 1 if seen.is_whole else seen.at_ms
