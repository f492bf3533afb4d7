"""Whether a line is too old to mean the group as it is now.

Logs are shipped late, in part twice, and by hand an hour later.  A group has its name for many lives, in each
of which generations begin anew, so a line says nothing by its generation alone.  It is old if it happened

- before the end of the life before this one; or, if it tells an end, before this life began;
- before the group's coordinator had it: what another said then, and what this one had said before, is of a
  group that was loaded since;
- before the newest record of the group, which says by itself who was in it.  What such a line tells of a
  move that was guessed, or of how a member went whose going was seen, still corrects that.

Of a line that tells whole seconds the start of its second counts against an end, and the end of its second
against a birth and a record: the milliseconds that it got from its append prove nothing.

An old line is counted, moves nothing, and proves nothing.  Times are held against one another on one
broker's clock as far as that can be had: a coordinator stamps its lines and its records with the same.
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
"""The same of lines that told a time long after their append, so that their age is not known."""
WHOLE_SECOND_MS = 1_000


_LOGS = frozenset({Source.COORDINATOR_LOG, Source.REQUEST_LOG})
_ENDS_LIFE = on.types_that(lambda one: one.ends_life)
_OF_ONE_MEMBER = on.types_that(lambda one: one.after_record in {AfterRecord.ARRIVAL, AfterRecord.DEPARTURE})
_ID_HANDED_OUT = 79
_UNKNOWN_MEMBER = 25


def is_of_another_life(group: Group, seen: Seen) -> bool:
    """Say whether a line tells of a life of the group that is over, or of a coordinator before its own."""
    if seen.source not in _LOGS:
        return False
    if _earliest_ms(seen) < group.ended_ms:
        return True
    if type(seen.what) in _ENDS_LIFE and _latest_ms(seen) < group.born_ms:
        return True
    return seen.at_ms < (group.loaded_ms if seen.broker in (-1, group.coordinator) else _led_ms(group))


def has_no_age(group: Group, seen: Seen, *, is_recorded: bool) -> bool:
    """Say whether a line may be of any time, and records tell what has become of the group.

    Its broker writes another zone than we were told, or has a wrong clock, and nothing has proved it.  It
    counts at its append, where also what is sent again an hour later seems new.

    Args:
        group: as it is known.
        seen: the line.
        is_recorded: whether records are read.
    """
    is_told = group.stored_at_ms >= 0 or group.modern is not None or group.ended_ms >= 0
    return seen.is_ahead and is_recorded and is_told


def _led_ms(group: Group) -> int:
    """Return since when the group's coordinator is known to be another than the one before."""
    return max(group.loaded_ms, -1 if group.taken is None else group.taken[0])


def is_before_record(group: Group, seen: Seen) -> bool:
    """Say whether a line is older than the group's newest record, and corrects nothing either."""
    if seen.source not in _LOGS or group.group_type != "classic":
        return False
    if _latest_ms(seen) >= group.stored_at_ms:
        return _is_beyond_memory(group, seen)
    return _COUNTS_NO_MORE[on.TRAITS[type(seen.what)].after_record](group, seen.what)


def _is_beyond_place(group: Group, what: Any) -> bool:
    state = on.TRAITS[type(what)].place
    return state is not None and place(state, what.generation) > place_of(group)


def _went_unseen(group: Group, what: on.MemberFailed | on.MemberLeft | on.MembersKicked) -> bool:
    """Say whether a line tells only of departures that are not known."""
    member_ids = what.member_ids if isinstance(what, on.MembersKicked) else (what.member_id,)
    return all(departure_of(group, member_id) is None for member_id in member_ids)


def _is_of_another_assignment(group: Group, what: on.AssignmentReceived) -> bool:
    """Say whether an assignment did not bring about the newest record, before which it stands."""
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
"""How to say that nothing counts of an observation that is older than the group's newest record."""


def learn_coordinator(group: Group, seen: Seen) -> None:
    """Take from a load that is older than the newest record at least who has the group since."""
    if isinstance(seen.what, on.GroupLoaded) and seen.broker >= 0 and seen.at_ms >= _led_ms(group):
        group.coordinator, group.loaded_ms = seen.broker, seen.at_ms


def _is_beyond_memory(group: Group, seen: Seen) -> bool:
    """Say whether a line about a member is older than all departures that are remembered."""
    full = len(group.departures) >= DEPARTURES_MAX
    is_of_member = type(seen.what) in _OF_ONE_MEMBER
    return full and is_of_member and _latest_ms(seen) < group.departures[0].at_ms


def _earliest_ms(seen: Seen) -> int:
    """Return the earliest time that a line may mean: one in whole seconds, the start of its second."""
    return seen.at_ms - seen.at_ms % WHOLE_SECOND_MS if seen.is_whole else seen.at_ms


def _latest_ms(seen: Seen) -> int:
    """Return the latest time that a line may mean: one in whole seconds, the end of its second."""
    return _earliest_ms(seen) + WHOLE_SECOND_MS - 1 if seen.is_whole else seen.at_ms
