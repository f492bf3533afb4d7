"""Lines that are older than the group's life, its coordinator's load, or its newest record."""

import pytest

from coordinator_model import ages, classic
from coordinator_model import observations as on
from coordinator_model.classic import Context
from coordinator_model.group import Group, Step
from coordinator_model.observations import AnyObservation, MemberRecord, Seen, Source
from coordinator_model.snapshot import Header
from coordinator_model.states import GroupState
from tests.unit.made_seen import seen

G = "orders"
QUIET = Context("c", info_live=True, offsets_enabled=True, backlog=False)
REQUESTS = Context("c", info_live=False, offsets_enabled=True, backlog=False, requests_live=True)
LEFT = on.Reason(kind="member_left", text="explicit leave", member_ids=("a",))


def applied(
    group: Group, at_ms: int, what: AnyObservation, context: Context = QUIET, broker: int = 1
) -> Step:
    return classic.apply(group, line(at_ms, what, broker), context)


def line(at_ms: int, what: AnyObservation, broker: int = 1) -> Seen:
    if isinstance(what, on.GroupRecorded | on.GroupTombstone):
        return seen(at_ms, what, Source.OFFSETS)
    is_request = isinstance(what, on.JoinAnswered | on.LeaveAnswered | on.SyncAnswered | on.Heartbeats)
    return seen(at_ms, what, Source.REQUEST_LOG if is_request else Source.COORDINATOR_LOG, broker=broker)


def recorded(generation: int, *names: str) -> on.GroupRecorded:
    members = tuple(
        MemberRecord(member_id=name, client_id=name, client_host="/h", session_timeout_ms=6_000)
        for name in names
    )
    return on.GroupRecorded(
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
        line(from_ms, on.MemberIdHandedOut(group=G, member_id=name, state="Empty")),
        line(from_ms + 2, on.MemberJoined(group=G, member_id=name)),
        line(from_ms + 2, on.RebalanceStarted(group=G, generation=0, reason=joins(name))),
        line(from_ms + 30, on.JoinPhaseEnded(group=G, generation=1, member_count=1)),
    ]
    for one in lines:
        classic.apply(group, one, QUIET)
    applied(group, from_ms + 40, recorded(1, name))
    return lines


def joins(name: str) -> on.Reason:
    return on.Reason(kind="member_joined", text="Adding new member", member_ids=(name,))


def an_end(group: Group, from_ms: int, name: str) -> list[Seen]:
    """Let the last member leave, and the group be deleted; returns the lines of that."""
    lines = [
        line(from_ms, on.MemberLeft(group=G, member_id=name)),
        line(from_ms, on.RebalanceStarted(group=G, generation=1, reason=LEFT)),
        line(from_ms, on.GroupEmptied(group=G, generation=2)),
        line(from_ms + 900, on.GroupsDeleted(names=G)),
    ]
    for one in lines[:3]:
        classic.apply(group, one, QUIET)
    applied(group, from_ms, recorded(2))
    classic.apply(group, lines[3], QUIET)
    applied(group, from_ms + 901, on.GroupTombstone(group=G))
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


def test_a_late_load_moves_nothing_that_was_recorded_since() -> None:
    """A "Loaded classic group" line that is older than the newest record leaves the group Empty."""
    group = classic.new_group(G)
    a_life(group, 1_000, "a")
    applied(group, 5_000, on.MemberLeft(group=G, member_id="a"))
    applied(group, 5_000, on.RebalanceStarted(group=G, generation=1, reason=LEFT))
    applied(group, 5_000, on.GroupEmptied(group=G, generation=2))
    applied(group, 5_000, recorded(2))
    step = applied(group, 900, on.GroupLoaded(group=G, group_type="classic", member_count=1), broker=2)

    assert picture(group) == (GroupState.EMPTY, 2, [])
    assert (step.transitions, step.divergences) == ([], [ages.OLD_LINE])


@pytest.mark.parametrize(
    "what",
    [
        on.LeaveAnswered(group=G, member_id="a", error_code=0),
        on.Heartbeats(group=G, member_id="a", generation=1, error_code=25, times=(900,)),
        on.SyncAnswered(group=G, member_id="a", error_code=25, generation=1, arrived_at_ms=890),
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
    applied(group, 9_000, on.MemberIdHandedOut(group=G, member_id="b"))
    step = applied(group, 8_000, on.RebalanceStarted(group=G, generation=1, reason=LEFT))

    assert [(one.to_state, one.at_ms) for one in step.transitions] == [
        (GroupState.PREPARING_REBALANCE, 8_000)
    ]


def test_whole_seconds_are_no_proof_of_age() -> None:
    """A line that tells whole seconds may mean any time within its second, also after the record."""
    group = classic.new_group(G)
    a_life(group, 1_960, "a")  # its record is of 2_000
    applied(group, 2_300, recorded(1, "a"))
    step = applied(group, 2_000, on.RebalanceStarted(group=G, generation=1, reason=LEFT))

    assert [one.to_state for one in step.transitions] == [GroupState.PREPARING_REBALANCE]


def test_ends_of_forgotten_groups_are_bounded() -> None:
    """Of ended groups only the newest, and those of the last two hours, are remembered."""
    header = Header(shard=0, shard_count=1, order=None)  # type: ignore[arg-type]
    for number in range(ages.ENDED_MAX + 5):
        ages.remember_end(header, Group(group=f"g{number}", ended_ms=number), number)
    assert len(header.ended_ms) == ages.ENDED_MAX

    ages.remember_end(header, Group(group="late", ended_ms=10**9), 10**9)
    assert list(header.ended_ms) == ["late"]
