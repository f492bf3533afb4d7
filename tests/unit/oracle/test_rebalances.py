"""Rebalances of a group that has members: who is awaited, who is removed, who leads."""

import pytest

from coordinator_model.kafka.java_order import JavaMap
from tests.oracle import Errors, GroupMetadata
from tests.unit.oracle.stage import (
    DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    STATES,
    Stage,
    error_of,
    joined,
    member_of,
    offers,
)

LONG_MS = 1_000_000
"""A session that outlives every rebalance here."""


def test_generations_count_rebalances() -> None:
    """One more each time."""
    stage = Stage()
    (member,) = stage.stable()

    generations = []
    for _ in range(3):
        generations.append(joined(stage.join(member)).generation_id)
        stage.sync(member, None, member)

    assert generations == [2, 3, 4]


def test_it_ends_when_the_last_member_has_joined() -> None:
    """No delay, and everybody is answered in the same millisecond."""
    stage = Stage()
    leader, follower = stage.stable(2)
    newcomer = stage.add()
    first = stage.join(leader)
    stage.wait(50)

    last = stage.join(follower)

    assert {one.answered_at_ms for one in (newcomer, first, last)} == {stage.now_ms}
    assert stage.state() is STATES.COMPLETING_REBALANCE


def test_it_waits_for_the_longest_rebalance_timeout() -> None:
    """Of all members, also of those that are missing."""
    stage = Stage()
    slow, quick = stage.add(rebalance_timeout_ms=9_000), stage.add(rebalance_timeout_ms=2_000)
    stage.settle([slow, quick])
    changed = offers("range", topics=["more"])
    stage.join(member_of(quick), protocols=changed, rebalance_timeout_ms=2_000)
    began_ms = stage.now_ms

    stage.wait(8_999)
    assert stage.state() is STATES.PREPARING_REBALANCE
    stage.wait(1)

    assert stage.moves()[-1] == (began_ms + 9_000, STATES.COMPLETING_REBALANCE, 2, "join_completed")


def test_dynamic_members_that_do_not_rejoin_are_removed() -> None:
    """At the rebalance timeout, all in one line."""
    stage = Stage()
    leader, follower, third = stage.stable(3, session_timeout_ms=LONG_MS)
    stage.join(leader)

    stage.wait(REBALANCE_MS)

    assert stage.members() == {leader}
    assert set(stage.line("dynamic_members_removed").rpartition("[")[2].rstrip("]").split(", ")) == {
        follower,
        third,
    }


def test_a_leader_that_does_not_rejoin_is_followed_by_one_that_did() -> None:
    """A removed leader is replaced by the first member in Java's order."""
    stage = Stage()
    leader, follower, third = stage.stable(3, session_timeout_ms=LONG_MS)
    stage.join(follower, protocols=offers("range", topics=["more"]))
    joins = stage.join(third)

    stage.wait(REBALANCE_MS)

    order: JavaMap[None] = JavaMap()
    for member in sorted((leader, follower, third)):
        order[member] = None
    order.pop(leader)
    assert joined(joins).leader == stage.leader() == order.keys()[0]


def test_if_nobody_rejoins_the_group_is_empty() -> None:
    """With the next generation; the record keeps the protocol type alone."""
    stage = Stage()
    first, second = stage.stable(2, session_timeout_ms=LONG_MS)
    stage.leave(first)

    stage.wait(REBALANCE_MS)

    assert stage.moves()[-1] == (stage.now_ms, STATES.EMPTY, 2, "rebalance_timeout")
    assert stage.written()[-1] == GroupMetadata(
        group="g", protocol_type="consumer", generation=2, current_state_timestamp=stage.now_ms
    )
    assert error_of(stage.join(second)) is Errors.UNKNOWN_MEMBER_ID


def test_the_first_to_miss_its_session_starts_a_rebalance() -> None:
    """The others learn of it by their heartbeats."""
    stage = Stage()
    leader, follower = stage.stable(2)
    stage.wait(SESSION_MS - 1)
    stage.beat(follower)

    stage.wait(1)

    assert stage.moves()[-1][1:] == (STATES.PREPARING_REBALANCE, 1, "session_timeout")
    assert stage.last_move().member_id == leader
    assert stage.beat(follower) is Errors.REBALANCE_IN_PROGRESS


def test_members_that_are_missing_can_expire_during_the_join_phase() -> None:
    """Then nobody is missing any more, and it ends."""
    stage = Stage()
    leader, follower = stage.stable(2)
    ticket = stage.join(leader)

    stage.wait(SESSION_MS)

    assert joined(ticket).generation_id == 2
    assert "member_failed" in stage.kinds()
    assert stage.members() == {leader}
    assert follower not in stage.members()


def test_members_that_have_joined_owe_no_heartbeat() -> None:
    """However long the join phase lasts."""
    stage = Stage()
    tickets = [stage.add(session_timeout_ms=ms) for ms in (SESSION_MS, LONG_MS)]
    stage.settle(tickets)
    ticket = stage.join(member_of(tickets[0]), protocols=offers("range", topics=["more"]))

    stage.wait(REBALANCE_MS)

    assert (error_of(ticket), joined(ticket).generation_id) == (Errors.NONE, 2)


def test_a_member_joins_while_the_leader_assigns() -> None:
    """Parked syncs are sent back with 27, and the generation never becomes Stable."""
    stage = Stage()
    tickets = [stage.add(), stage.add()]
    stage.wait(2 * DELAY_MS)
    follower = next(one for one in map(joined, tickets) if one.leader != one.member_id)
    parked = stage.sync(follower.member_id)

    stage.add()

    assert error_of(parked) is Errors.REBALANCE_IN_PROGRESS
    assert stage.state() is STATES.PREPARING_REBALANCE


# --- the sync phase's limit ---------------------------------------------------------------------------


def _completing(stage: Stage, size: int) -> tuple[str, list[str]]:
    """Bring a group into its sync phase; its leader and its followers."""
    tickets = [stage.add(session_timeout_ms=LONG_MS, rebalance_timeout_ms=7_000) for _ in range(size)]
    while not all(ticket.is_answered for ticket in tickets):
        stage.wait(1)
    leader = joined(tickets[0]).leader
    return leader, [member_of(one) for one in tickets if member_of(one) != leader]


def test_without_any_sync_the_group_is_empty_after_the_rebalance_timeout() -> None:
    """Everybody is removed, and the next generation begins and ends in the same instant."""
    stage = Stage()
    _completing(stage, 2)
    began_ms = stage.now_ms

    stage.wait(7_000)

    assert stage.moves()[-2:] == [
        (began_ms + 7_000, STATES.PREPARING_REBALANCE, 1, "sync_timeout"),
        (began_ms + 7_000, STATES.EMPTY, 2, "sync_timeout"),
    ]


def test_a_leader_that_never_syncs_is_removed() -> None:
    """The follower that waits for its assignment is sent back; it does not lead before it rejoins."""
    stage = Stage()
    leader, (follower,) = _completing(stage, 2)
    parked = stage.sync(follower)

    stage.wait(7_000)

    assert error_of(parked) is Errors.REBALANCE_IN_PROGRESS
    assert stage.members() == {follower}
    assert stage.last_move().reason == f"Removing [{leader}] on pending sync request expiration"
    assert joined(stage.join(follower)).leader == follower


def test_followers_that_never_sync_are_removed_from_a_stable_group() -> None:
    """The group was Stable all the time."""
    stage = Stage()
    leader, followers = _completing(stage, 3)
    stage.sync(leader, None, leader)
    assert stage.state() is STATES.STABLE

    stage.wait(7_000)

    assert stage.members() == {leader}
    assert set(followers) == {one for one in followers if one in stage.last_move().reason}
    assert stage.state() is STATES.PREPARING_REBALANCE


def test_when_all_have_synced_that_timer_is_off() -> None:
    """Nothing happens at the rebalance timeout."""
    stage = Stage()
    leader, followers = _completing(stage, 2)
    for member in (*followers, leader):
        stage.sync(member, None, leader, *followers)

    stage.wait(8_000)

    assert stage.state() is STATES.STABLE


def test_a_new_rebalance_stops_that_timer() -> None:
    """It belongs to the generation that is over."""
    stage = Stage()
    leader, _ = _completing(stage, 1)
    stage.wait(3_000)
    stage.join(leader, protocols=offers("range", "more"))
    stage.sync(leader, 2, leader)

    stage.wait(4_000)

    assert stage.state() is STATES.STABLE
    assert "late_timer" not in stage.kinds()


def test_that_timer_does_not_ring_in_the_next_join_phase() -> None:
    """Although the join phase lasts beyond its time."""
    stage = Stage()
    leader, followers = _completing(stage, 2)
    stage.wait(3_000)
    stage.join(leader, protocols=offers("range", "more"), rebalance_timeout_ms=60_000)

    stage.wait(5_000)

    assert (stage.state(), stage.members()) == (STATES.PREPARING_REBALANCE, {leader, *followers})
    assert "late_timer" not in stage.kinds()


# --- legal moves --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3])
def test_every_move_is_one_that_kafka_knows(size: int) -> None:
    """A whole life, from nothing to nothing."""
    stage = Stage()
    members = stage.stable(size)
    for member in members:
        stage.leave(member)
        stage.wait(REBALANCE_MS)
    stage.wait(600_000)

    path = [one[1].value for one in stage.moves()]
    assert path[:4] == ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable"]
    assert path[-2:] == ["Empty", "Dead"]
