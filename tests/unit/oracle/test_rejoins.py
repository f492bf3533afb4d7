"""JoinGroup of members that are in, and of groups that are full."""

import pytest

from tests.oracle import Config, Configure, Errors, JoinGroup, MarkDead
from tests.oracle.values.responses import JoinGroupResponse
from tests.unit.oracle.stage import (
    DELAY_MS,
    NOBODY,
    REBALANCE_MS,
    SESSION_MS,
    STATES,
    G,
    Stage,
    error_of,
    joined,
    member_of,
    offers,
)

# --- joins of members that are in ---------------------------------------------------------------------


def test_a_follower_that_changed_nothing_gets_the_current_generation() -> None:
    """No rebalance, and no list of members."""
    stage = Stage()
    leader, follower = stage.stable(2)

    again = joined(stage.join(follower))

    assert (again.generation_id, again.leader, again.members) == (1, leader, ())
    assert stage.state() is STATES.STABLE


def test_a_follower_that_changed_its_metadata_starts_a_rebalance() -> None:
    """Its subscription is part of it."""
    stage = Stage()
    _, follower = stage.stable(2)

    ticket = stage.join(follower, protocols=offers("range", topics=["payments"]))

    assert not ticket.is_answered
    assert stage.last_move().reason == (
        f"Updating metadata for member {follower} during Stable; client reason: not provided"
    )
    assert stage.last_move().cause.value == "subscription_changed"


def test_a_leader_that_joins_again_always_starts_a_rebalance() -> None:
    """It may know of new partitions."""
    stage = Stage()
    leader, _ = stage.stable(2)

    ticket = stage.join(leader)

    assert not ticket.is_answered
    assert stage.last_move().reason == (
        f"Leader {leader} re-joining group during Stable; client reason: not provided"
    )


def test_a_lone_leader_is_answered_at_once() -> None:
    """Everybody has joined the moment the rebalance starts."""
    stage = Stage()
    (leader,) = stage.stable()

    assert joined(stage.join(leader)).generation_id == 2


@pytest.mark.parametrize("who", ["leader", "follower"])
def test_a_join_that_is_repeated_in_the_sync_phase_is_answered_again(who: str) -> None:
    """The first answer may have been lost; the leader gets the list again."""
    stage = Stage()
    tickets = [stage.add(), stage.add()]
    stage.wait(DELAY_MS * 2)
    lost = next(one for one in map(joined, tickets) if (one.leader == one.member_id) == (who == "leader"))

    again = stage.join(lost.member_id)

    assert again.response == lost
    assert stage.state() is STATES.COMPLETING_REBALANCE


def test_a_member_that_changed_in_the_sync_phase_starts_a_rebalance() -> None:
    """The leader would assign by old metadata."""
    stage = Stage()
    ticket = stage.add()
    stage.wait(DELAY_MS)

    stage.join(member_of(ticket), protocols=offers("range", "sticky"))

    assert stage.last_move().generation == 2
    assert "during CompletingRebalance" in stage.line("preparing_to_rebalance")


def test_a_join_that_its_member_repeats_is_never_answered() -> None:
    """The coordinator answers the latest one only."""
    stage = Stage()
    member = member_of(stage.join())
    first = stage.join(member)

    second = stage.join(member)
    stage.wait(DELAY_MS)

    assert (first.is_answered, second.is_answered) == (False, True)


@pytest.mark.parametrize("instance", [None, "i"], ids=["dynamic", "static"])
def test_an_unknown_id_is_refused(instance: str | None) -> None:
    """25, with the id repeated."""
    stage = Stage()
    stage.stable()

    ticket = stage.join(NOBODY, group_instance_id=instance)

    assert ticket.response == JoinGroupResponse(error_code=Errors.UNKNOWN_MEMBER_ID, member_id=NOBODY)


def test_an_id_of_a_group_that_is_empty_is_refused() -> None:
    """It went with the members."""
    stage = Stage()
    (member,) = stage.stable()
    stage.leave(member)

    assert error_of(stage.join(member)) is Errors.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("member", ["", NOBODY], ids=["without-id", "with-id"])
def test_a_dead_group_cannot_be_joined(member: str) -> None:
    """15: look for the coordinator again."""
    stage = Stage()
    stage.stable()
    stage.happen(MarkDead(group_id=G))

    assert error_of(stage.join(member)) is Errors.COORDINATOR_NOT_AVAILABLE


# --- group.max.size -----------------------------------------------------------------------------------


def test_a_full_group_takes_nobody_into_its_first_rebalance() -> None:
    """Members that wait are counted."""
    stage = Stage(group_max_size=2)
    stage.add()
    stage.add()

    ticket = stage.join()

    assert ticket.response == JoinGroupResponse(error_code=Errors.GROUP_MAX_SIZE_REACHED)


def test_handed_out_ids_do_not_count_for_the_size() -> None:
    """Three have an id; the third that comes with it is too late, and loses it."""
    stage = Stage(group_max_size=2)
    ids = [member_of(stage.join()) for _ in range(3)]
    stage.join(ids[0])
    stage.join(ids[1])

    third = stage.join(ids[2])
    again = stage.join(ids[2])

    assert [error_of(third), error_of(again)] == [Errors.GROUP_MAX_SIZE_REACHED] * 2
    stage.wait(DELAY_MS * 2)
    assert error_of(stage.join(ids[2])) is Errors.GROUP_MAX_SIZE_REACHED
    assert len(stage.members()) == 2


def test_who_is_turned_away_loses_the_id() -> None:
    """When there is room again it is unknown."""
    stage = Stage(group_max_size=1)
    first, second = member_of(stage.join()), member_of(stage.join())
    stage.join(first)
    assert error_of(stage.join(second)) is Errors.GROUP_MAX_SIZE_REACHED
    stage.leave(first)

    assert error_of(stage.join(second)) is Errors.UNKNOWN_MEMBER_ID


def test_who_waits_already_can_ask_again_in_a_full_group() -> None:
    """It holds its place."""
    stage = Stage(group_max_size=1)
    member = member_of(stage.join())
    stage.join(member)

    again = stage.join(member)
    stage.wait(DELAY_MS)

    assert error_of(again) is Errors.NONE


@pytest.mark.parametrize("version", [3, 9])
@pytest.mark.parametrize("instance", [None, "i"], ids=["dynamic", "static"])
def test_a_full_group_takes_nobody_when_stable(instance: str | None, version: int) -> None:
    """Of whatever kind."""
    stage = Stage(group_max_size=1)
    stage.stable()

    ticket = stage.join(group_instance_id=instance, api_version=version)

    assert error_of(ticket) is Errors.GROUP_MAX_SIZE_REACHED


def test_members_of_a_full_group_can_rejoin() -> None:
    """They are in already."""
    stage = Stage(group_max_size=2)
    leader, follower = stage.stable(2)

    tickets = [stage.join(leader), stage.join(follower)]

    assert [joined(ticket).generation_id for ticket in tickets] == [2, 2]


def test_the_last_to_rejoin_a_group_that_is_too_large_are_turned_away() -> None:
    """The limit came down while the group was large; the first to come stay."""
    stage = Stage()
    members = stage.stable(3)
    stage.happen(Configure(config=Config(group_max_size=2)))

    tickets = [stage.join(one) for one in members]
    stage.wait(REBALANCE_MS)

    assert error_of(tickets[2]) is Errors.GROUP_MAX_SIZE_REACHED
    assert [joined(one).generation_id for one in tickets[:2]] == [2, 2]
    assert members[2] not in stage.members()


def test_an_empty_group_is_never_full() -> None:
    """Even if nobody is allowed."""
    stage = Stage(group_max_size=0)

    assert error_of(stage.join()) is Errors.MEMBER_ID_REQUIRED


# --- the limit of a first join ------------------------------------------------------------------------


def test_a_new_member_may_wait_five_minutes() -> None:
    """Not its session timeout counts while it waits for the first time."""
    stage = Stage()
    stage.stable(1, session_timeout_ms=1_800_000, rebalance_timeout_ms=1_000_000)
    new = stage.add()

    stage.wait(299_999)
    assert not new.is_answered
    stage.wait(1)

    assert new.response == JoinGroupResponse(error_code=Errors.UNKNOWN_MEMBER_ID)
    assert new.answered_at_ms == DELAY_MS + 300_000


def test_once_its_first_join_is_answered_a_member_has_its_session_timeout() -> None:
    """It fails when it does not sync either."""
    stage = Stage()
    ticket = stage.add()
    stage.wait(DELAY_MS)
    assert ticket.is_answered

    stage.wait(SESSION_MS)

    assert stage.state() is STATES.EMPTY
    assert stage.moves()[-2:] == [
        (DELAY_MS + SESSION_MS, STATES.PREPARING_REBALANCE, 1, "session_timeout"),
        (DELAY_MS + SESSION_MS, STATES.EMPTY, 2, "session_timeout"),
    ]


def test_a_request_is_served_when_all_that_is_due_has_happened() -> None:
    """Of a timer and a request at one instant the timer is first."""
    stage = Stage()
    stage.add(rebalance_timeout_ms=REBALANCE_MS)

    request = JoinGroup(group_id=G, api_version=3, protocols=offers("range"))
    late = stage.coordinator.request(DELAY_MS, request)

    assert not late.is_answered
    assert stage.last_move().generation == 1


def test_time_does_not_go_back() -> None:
    """That is the caller's mistake."""
    stage = Stage()
    stage.wait(10)

    with pytest.raises(ValueError, match="9 is before 10"):
        stage.coordinator.request(9, JoinGroup(group_id=G))
