"""Lines that are older than the group's life, its coordinator's load, or its newest record."""

import msgspec
import pytest

from coordinator_model.groups import table as classic
from coordinator_model.groups.core import ages
from coordinator_model.groups.core.turn import Context
from coordinator_model.kafka.states import GroupState
from coordinator_model.observations.base import Source
from coordinator_model.observations.log import (
    GroupDied,
    GroupEmptied,
    GroupLoaded,
    GroupsDeleted,
    JoinPhaseEnded,
    MemberIdHandedOut,
    MemberJoined,
    MemberLeft,
    Reason,
    RebalanceStarted,
)
from coordinator_model.observations.records import GroupRecorded, GroupTombstone, MemberRecord
from coordinator_model.observations.requests import Heartbeats, JoinAnswered, LeaveAnswered, SyncAnswered
from coordinator_model.observations.seen import AnyObservation, Seen
from coordinator_model.shard.snapshot import Header
from coordinator_model.shard.strangers import ENDED_MAX, remember_end
from coordinator_model.state.group import Group, Step
from tests.unit.made_seen import seen

G = "orders"
QUIET = Context("c", info_live=True, offsets_enabled=True, backlog=False)
REQUESTS = Context("c", info_live=False, offsets_enabled=True, backlog=False, requests_live=True)
LEFT = Reason(kind="member_left", text="explicit leave", member_ids=("a",))


def applied(
    group: Group, at_ms: int, what: AnyObservation, context: Context = QUIET, broker: int = 1
) -> Step:
    return classic.apply(group, line(at_ms, what, broker), context)


def line(at_ms: int, what: AnyObservation, broker: int = 1) -> Seen:
    if isinstance(what, GroupRecorded | GroupTombstone):
        return seen(at_ms, what, Source.OFFSETS)
    is_request = isinstance(what, JoinAnswered | LeaveAnswered | SyncAnswered | Heartbeats)
    return seen(at_ms, what, Source.REQUEST_LOG if is_request else Source.COORDINATOR_LOG, broker=broker)


def whole(at_ms: int, what: AnyObservation) -> Seen:
    """Return a line of a layout without milliseconds: those of ``at_ms`` are of its append."""
    return msgspec.structs.replace(line(at_ms, what), is_whole=True)


def recorded(generation: int, *names: str) -> GroupRecorded:
    members = tuple(
        MemberRecord(member_id=name, client_id=name, client_host="/h", session_timeout_ms=6_000)
        for name in names
    )
    return GroupRecorded(
        group=G,
        generation=generation,
        protocol_type="consumer",
        protocol="range" if names else None,
        leader_id=names[0] if names else None,
        state_since_ms=-1,
        members=members,
    )


def a_life(group: Group, from_ms: int, name: str) -> list[Seen]:
    """Let the group begin and become Stable(1); returns the lines of that."""
    lines = [
        line(from_ms, MemberIdHandedOut(group=G, member_id=name, state="Empty")),
        line(from_ms + 2, MemberJoined(group=G, member_id=name)),
        line(from_ms + 2, RebalanceStarted(group=G, generation=0, reason=joins(name))),
        line(from_ms + 30, JoinPhaseEnded(group=G, generation=1, member_count=1)),
    ]
    for one in lines:
        classic.apply(group, one, QUIET)
    applied(group, from_ms + 40, recorded(1, name))
    return lines


def joins(name: str) -> Reason:
    return Reason(kind="member_joined", text="Adding new member", member_ids=(name,))


def an_end(group: Group, from_ms: int, name: str) -> list[Seen]:
    """Let the last member leave, and the group be deleted; returns the lines of that."""
    lines = [
        line(from_ms, MemberLeft(group=G, member_id=name)),
        line(from_ms, RebalanceStarted(group=G, generation=1, reason=LEFT)),
        line(from_ms, GroupEmptied(group=G, generation=2)),
        line(from_ms + 900, GroupsDeleted(names=G)),
    ]
    for one in lines[:3]:
        classic.apply(group, one, QUIET)
    applied(group, from_ms, recorded(2))
    classic.apply(group, lines[3], QUIET)
    applied(group, from_ms + 901, GroupTombstone(group=G))
    return lines


def picture(group: Group) -> tuple[GroupState, int, list[str]]:
    return group.state, group.generation, list(group.members)


def test_lines_of_an_earlier_life_move_nothing() -> None:
    """A group that was deleted and created again stays as it is when its old lines are sent once more."""
    group = classic.new_group(G)
    lines = a_life(group, 1_000, "a") + an_end(group, 5_000, "a")
    a_life(group, 10_000, "b")
    before = picture(group)
    steps = [classic.apply(group, one, QUIET) for one in lines]

    assert picture(group) == before == (GroupState.STABLE, 1, ["b"])
    assert [one for step in steps for one in (*step.transitions, *step.departures, *step.arrivals)] == []
    assert {kind for step in steps for kind in step.divergences} == {ages.OLD_LINE}


def test_a_late_line_of_the_end_s_own_millisecond_revives_nobody() -> None:
    """A group emptied and deleted in one millisecond stays dead when its lines come behind the records."""
    group = classic.new_group(G)
    a_life(group, 1_000, "a")
    applied(group, 5_000, recorded(2))
    applied(group, 5_000, GroupTombstone(group=G))
    late = RebalanceStarted(group=G, generation=1, reason=LEFT), GroupEmptied(group=G, generation=2)
    steps = [applied(group, 5_000, one) for one in late]

    assert group.state is GroupState.DEAD
    assert [kind for step in steps for kind in step.divergences] == [ages.OLD_LINE] * 2


def test_a_group_begins_anew_in_the_millisecond_of_its_end() -> None:
    """The first lines of a new life count although the former one ended in the same millisecond."""
    group = classic.new_group(G)
    a_life(group, 1_000, "a")
    applied(group, 5_000, recorded(2))
    applied(group, 5_000, GroupTombstone(group=G))
    applied(group, 5_000, MemberJoined(group=G, member_id="b"))
    applied(group, 5_000, RebalanceStarted(group=G, generation=0, reason=joins("b")))

    assert picture(group) == (GroupState.PREPARING_REBALANCE, 0, ["b"])


def test_a_late_load_moves_nothing_that_was_recorded_since() -> None:
    """A "Loaded classic group" line that is older than the newest record leaves the group Empty."""
    group = classic.new_group(G)
    a_life(group, 1_000, "a")
    applied(group, 5_000, MemberLeft(group=G, member_id="a"))
    applied(group, 5_000, RebalanceStarted(group=G, generation=1, reason=LEFT))
    applied(group, 5_000, GroupEmptied(group=G, generation=2))
    applied(group, 5_000, recorded(2))
    step = applied(group, 900, GroupLoaded(group=G, group_type="classic", member_count=1), broker=2)

    assert picture(group) == (GroupState.EMPTY, 2, [])
    assert (step.transitions, step.divergences) == ([], [ages.OLD_LINE])


@pytest.mark.parametrize(
    "what",
    [
        LeaveAnswered(group=G, member_id="a", error_code=0),
        Heartbeats(group=G, member_id="a", generation=1, error_code=25, times=(900,)),
        SyncAnswered(group=G, member_id="a", error_code=25, generation=1, arrived_at_ms=890),
    ],
)
def test_answers_older_than_the_record_remove_nobody(what: AnyObservation) -> None:
    """Who is in the newest record is not taken out by what was answered before that."""
    group = classic.new_group(G)
    applied(group, 1_000, recorded(1, "a"), REQUESTS)
    step = applied(group, 900, what, REQUESTS)

    assert picture(group) == (GroupState.STABLE, 1, ["a"])
    assert (step.transitions, step.departures) == ([], [])


def test_a_late_line_of_this_life_is_told_at_its_own_time() -> None:
    """What is late and not old still moves the group, at the time at which it happened."""
    group = classic.new_group(G)
    a_life(group, 1_000, "a")
    applied(group, 9_000, MemberIdHandedOut(group=G, member_id="b"))
    step = applied(group, 8_000, RebalanceStarted(group=G, generation=1, reason=LEFT))

    assert [(one.to_state, one.at_ms) for one in step.transitions] == [
        (GroupState.PREPARING_REBALANCE, 8_000)
    ]


def test_whole_seconds_are_no_proof_of_age() -> None:
    """A line that tells whole seconds may mean any time within its second, also after the record."""
    group = classic.new_group(G)
    a_life(group, 1_960, "a")  # its record is of 2_000
    applied(group, 2_300, recorded(1, "a"))
    step = classic.apply(group, whole(2_000, RebalanceStarted(group=G, generation=1, reason=LEFT)), QUIET)

    assert [one.to_state for one in step.transitions] == [GroupState.PREPARING_REBALANCE]


def test_a_line_at_the_full_second_is_no_whole_second() -> None:
    """One line in a thousand tells three noughts as its milliseconds: it is as old as it says."""
    group = classic.new_group(G)
    a_life(group, 1_960, "a")
    applied(group, 2_300, recorded(1, "a"))

    assert applied(group, 2_000, MemberJoined(group=G, member_id="b")).divergences == [ages.OLD_LINE]


def test_whole_seconds_of_an_ended_group_do_not_bring_it_back() -> None:
    """A line that got its milliseconds from its append may be older than a deletion of the same second."""
    group = classic.new_group(G)
    a_life(group, 1_000, "a")
    an_end(group, 5_000, "a")  # its tombstone is of 5_901
    ghost = RebalanceStarted(group=G, generation=1, reason=LEFT)
    steps = [classic.apply(group, whole(at_ms, ghost), QUIET) for at_ms in (5_950, 5_999)]

    assert (group.state, [step.divergences for step in steps]) == (GroupState.DEAD, [[ages.OLD_LINE]] * 2)
    assert classic.apply(group, whole(6_000, ghost), QUIET).transitions


def test_a_record_brings_a_group_back_within_the_second_of_its_end() -> None:
    """What was created anew in the second in which it was deleted is there as soon as it is recorded."""
    group = classic.new_group(G)
    a_life(group, 1_000, "a")
    an_end(group, 5_000, "a")
    classic.apply(group, whole(5_940, MemberJoined(group=G, member_id="b")), REQUESTS)
    assert group.state is GroupState.DEAD
    applied(group, 5_950, recorded(1, "b"), REQUESTS)

    assert picture(group) == (GroupState.STABLE, 1, ["b"])


@pytest.mark.parametrize("end", [GroupsDeleted(names=G), GroupDied(group=G, generation=0)])
def test_a_group_that_lines_alone_made_ends_in_the_millisecond_of_its_birth(end: AnyObservation) -> None:
    """A stretch of lines that is sent again in one batch begins a group and ends it: it does not stay."""
    group = classic.new_group(G)
    applied(group, 1_000, RebalanceStarted(group=G, generation=0, reason=joins("a")))
    applied(group, 1_000, end)

    assert group.state is GroupState.DEAD


def test_an_end_of_the_second_of_a_birth_is_not_old() -> None:
    """Where lines tell whole seconds, an end that seems to come before a birth may have come after it."""
    group = classic.new_group(G)
    classic.apply(group, whole(1_700, RebalanceStarted(group=G, generation=0, reason=joins("a"))), QUIET)
    classic.apply(group, whole(1_650, GroupDied(group=G, generation=0)), QUIET)

    assert group.state is GroupState.DEAD


def test_ends_of_forgotten_groups_are_bounded() -> None:
    """Of ended groups only the newest, and those of the last two hours, are remembered."""
    header = Header(shard=0, shard_count=1, order=None)  # type: ignore[arg-type]
    for number in range(ENDED_MAX + 5):
        remember_end(header, Group(group=f"g{number}", ended_ms=number), number)
    assert len(header.ended_ms) == ENDED_MAX

    remember_end(header, Group(group="late", ended_ms=10**9), 10**9)
    assert list(header.ended_ms) == ["late"]
