"""SyncGroup in every state, and what the leader's assignment does."""

from typing import Any

import pytest

from tests.oracle import Errors, FailAppends, GroupMember, GroupMetadata, MarkDead, Ticket
from tests.oracle.values.responses import JoinGroupResponse, SyncGroupResponse
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
    subscription,
)


def _completing(size: int = 2, **options: Any) -> tuple[Stage, str, str]:
    """A group in its sync phase, its leader and one follower."""
    stage = Stage(**options)
    tickets = [stage.add() for _ in range(size)]
    while not all(ticket.is_answered for ticket in tickets):
        stage.wait(DELAY_MS)
    leader = joined(tickets[0]).leader
    return stage, leader, next((member_of(one) for one in tickets if member_of(one) != leader), "")


def _assigned(ticket: Ticket) -> bytes:
    assert isinstance(ticket.response, SyncGroupResponse)
    return ticket.response.assignment


def test_a_follower_waits_for_the_leader() -> None:
    """Both are answered in the same millisecond, each with its own assignment."""
    stage, leader, follower = _completing()
    waiting = stage.sync(follower)
    stage.wait(70)
    assert not waiting.is_answered

    delivered = stage.sync(leader, None, leader, follower)

    assert (_assigned(waiting), _assigned(delivered)) == (follower.encode(), leader.encode())
    assert waiting.answered_at_ms == delivered.answered_at_ms == stage.now_ms
    assert stage.moves()[-1] == (stage.now_ms, STATES.STABLE, 1, "assignment_stored")


def test_a_follower_that_comes_later_is_answered_at_once() -> None:
    """The group is Stable."""
    stage, leader, follower = _completing()
    stage.sync(leader, None, leader, follower)
    stage.wait(70)

    ticket = stage.sync(follower)

    assert ticket.response == SyncGroupResponse(
        protocol_type="consumer", protocol_name="range", assignment=follower.encode()
    )


def test_the_record_has_the_time_of_the_sync_phases_beginning() -> None:
    """And everything that a new coordinator needs."""
    stage, leader, _ = _completing(1)
    began_ms = stage.now_ms
    stage.wait(400)

    stage.sync(leader, None, leader)

    member = GroupMember(
        member_id=leader,
        client_id="client",
        client_host="/127.0.0.1",
        rebalance_timeout=REBALANCE_MS,
        session_timeout=SESSION_MS,
        subscription=subscription("orders"),
        assignment=leader.encode(),
    )
    assert stage.written()[-1] == GroupMetadata(
        group=G,
        generation=1,
        protocol="range",
        leader=leader,
        current_state_timestamp=began_ms,
        members=(member,),
    )


def test_whoever_the_leader_forgets_gets_nothing() -> None:
    """An empty assignment, with two warnings."""
    stage, leader, follower = _completing()
    waiting = stage.sync(follower)

    stage.sync(leader, None, leader)

    assert (error_of(waiting), _assigned(waiting)) == (Errors.NONE, b"")
    assert stage.kinds()[-2:] == ["empty_assignment", "empty_assignment"]


def test_assignments_of_strangers_are_ignored() -> None:
    """They are no members."""
    stage, leader, _ = _completing(1)

    stage.sync(leader, None, leader, NOBODY)

    record = stage.written()[-1]
    assert isinstance(record, GroupMetadata)
    assert [one.member_id for one in record.members] == [leader]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"protocol_type": "connect"}, Errors.INCONSISTENT_GROUP_PROTOCOL, id="other-type"),
        pytest.param({"protocol_name": "sticky"}, Errors.INCONSISTENT_GROUP_PROTOCOL, id="other-strategy"),
        pytest.param({"protocol_type": "consumer", "protocol_name": "range"}, Errors.NONE, id="both-right"),
        pytest.param({}, Errors.NONE, id="neither-given"),
        pytest.param({"api_version": 5}, Errors.INCONSISTENT_GROUP_PROTOCOL, id="version-5-gives-neither"),
        pytest.param({"group_id": ""}, Errors.INVALID_GROUP_ID, id="a-group-without-a-name"),
        pytest.param({"group_id": "other"}, Errors.UNKNOWN_MEMBER_ID, id="a-group-that-is-not-there"),
        pytest.param({"member_id": NOBODY}, Errors.UNKNOWN_MEMBER_ID, id="a-stranger"),
        pytest.param({"generation": 2}, Errors.ILLEGAL_GENERATION, id="a-generation-to-come"),
        pytest.param({"generation": 0}, Errors.ILLEGAL_GENERATION, id="a-generation-of-the-past"),
        pytest.param(
            {"generation": 2, "protocol_type": "connect"}, Errors.ILLEGAL_GENERATION, id="generation-is-first"
        ),
        pytest.param({"member_id": NOBODY, "generation": 2}, Errors.UNKNOWN_MEMBER_ID, id="member-is-first"),
    ],
)
@pytest.mark.parametrize("is_stable", [False, True], ids=["completing", "stable"])
def test_what_a_sync_must_say(fields: dict[str, Any], error: Errors, *, is_stable: bool) -> None:
    """Member, then generation, then protocol; a wrong one is answered at once."""
    stage, leader, _ = _completing(1)
    if is_stable:
        stage.sync(leader, None, leader)

    ticket = stage.sync(**{"member_id": leader, "generation": 1, **fields})

    assert error_of(ticket) is error


def test_during_the_join_phase_members_are_sent_back() -> None:
    """27, and they join."""
    stage, leader, follower = _completing()
    stage.sync(leader, None, leader, follower)
    stage.join(leader)

    assert error_of(stage.sync(follower)) is Errors.REBALANCE_IN_PROGRESS


def test_an_empty_group_knows_nobody() -> None:
    """25, whatever the generation."""
    stage, leader, _ = _completing(1)
    stage.leave(leader)

    assert error_of(stage.sync(leader, 9)) is Errors.UNKNOWN_MEMBER_ID


def test_a_dead_group_is_looked_for_elsewhere() -> None:
    """15."""
    stage, leader, _ = _completing(1)
    stage.happen(MarkDead(group_id=G))

    assert error_of(stage.sync(leader)) is Errors.COORDINATOR_NOT_AVAILABLE


def test_a_sync_that_is_repeated_leaves_the_first_one_waiting() -> None:
    """The coordinator answers the latest one only."""
    stage, leader, follower = _completing()
    first = stage.sync(follower)

    second = stage.sync(follower)
    stage.sync(leader, None, leader, follower)

    assert (first.is_answered, second.is_answered) == (False, True)


def test_waiting_for_the_leader_keeps_the_session() -> None:
    """Who waits owes no heartbeat; afterwards the session begins anew."""
    stage, leader, follower = _completing()
    stage.sync(follower)
    for _ in range(4):
        stage.wait(SESSION_MS - 1)
        stage.beat(leader)
    stage.sync(leader, None, leader, follower)

    stage.wait(SESSION_MS - 1)

    assert stage.members() == {leader, follower}


def test_a_leader_that_fails_takes_the_generation_with_it() -> None:
    """The followers that wait are sent back with 27."""
    stage, leader, follower = _completing()
    waiting = stage.sync(follower)

    stage.wait(SESSION_MS)

    assert error_of(waiting) is Errors.REBALANCE_IN_PROGRESS
    assert stage.last_move().reason == f"removing member {leader} on heartbeat expiration."


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Errors.UNKNOWN_TOPIC_OR_PARTITION, Errors.COORDINATOR_NOT_AVAILABLE),
        (Errors.NOT_ENOUGH_REPLICAS, Errors.COORDINATOR_NOT_AVAILABLE),
        (Errors.REQUEST_TIMED_OUT, Errors.COORDINATOR_NOT_AVAILABLE),
        (Errors.NOT_LEADER_OR_FOLLOWER, Errors.NOT_COORDINATOR),
        (Errors.KAFKA_STORAGE_ERROR, Errors.NOT_COORDINATOR),
        (Errors.MESSAGE_TOO_LARGE, Errors.UNKNOWN_SERVER_ERROR),
        (Errors.RECORD_LIST_TOO_LARGE, Errors.UNKNOWN_SERVER_ERROR),
        (Errors.INVALID_FETCH_SIZE, Errors.UNKNOWN_SERVER_ERROR),
        (Errors.ILLEGAL_GENERATION, Errors.ILLEGAL_GENERATION),
    ],
)
def test_an_assignment_that_cannot_be_stored_starts_a_rebalance(error: Errors, told: Errors) -> None:
    """All who wait get the mapped error; nothing is written."""
    stage, leader, follower = _completing()
    waiting = stage.sync(follower)
    written = len(stage.written())
    stage.happen(FailAppends(error=error))

    delivered = stage.sync(leader, None, leader, follower)

    assert (error_of(waiting), error_of(delivered)) == (told, told)
    assert len(stage.written()) == written
    assert stage.last_move().reason == (
        f"Error {told.name} when storing group assignmentduring SyncGroup (member: {leader})."
    )


def test_a_generation_is_stable_when_it_is_replicated() -> None:
    """Until then the answers wait, and heartbeats too."""
    stage, leader, _ = _completing(1, commit_delay_ms=30)
    stage.wait(100)
    ticket = stage.sync(leader, None, leader)
    stage.wait(29)
    assert (ticket.is_answered, stage.state()) == (False, STATES.COMPLETING_REBALANCE)

    stage.wait(1)

    assert ticket.answered_at_ms == stage.now_ms
    assert stage.state() is STATES.STABLE


def test_a_generation_that_is_overtaken_before_it_is_replicated_is_never_stable() -> None:
    """The record stays; the parked syncs are told to rejoin."""
    stage, leader, _ = _completing(1, commit_delay_ms=30)
    stage.wait(100)
    ticket = stage.sync(leader, None, leader)

    stage.join(api_version=3)
    stage.wait(1_000)

    assert error_of(ticket) is Errors.REBALANCE_IN_PROGRESS
    assert STATES.STABLE not in [move[1] for move in stage.moves()]
    assert getattr(stage.written()[-1], "generation", None) == 1


def test_a_write_that_takes_too_long_fails_although_it_is_written() -> None:
    """After ``offsets.commit.timeout.ms``: 15 to the members, and a rebalance."""
    stage = Stage(commit_delay_ms=None)
    joins = stage.add()
    stage.replicate()
    stage.wait(DELAY_MS)
    ticket = stage.sync(member_of(joins), None, member_of(joins))

    stage.wait(4_999)
    assert not ticket.is_answered
    stage.wait(1)

    assert error_of(ticket) is Errors.COORDINATOR_NOT_AVAILABLE
    assert stage.state() is STATES.PREPARING_REBALANCE
    assert getattr(stage.written()[-1], "generation", None) == 1


def test_a_first_join_that_cannot_be_stored_is_told() -> None:
    """The group is gone again; the id that was handed out cannot be used."""
    stage = Stage()
    stage.happen(FailAppends(error=Errors.NOT_LEADER_OR_FOLLOWER))

    ticket = stage.join(api_version=3)

    assert ticket.response == JoinGroupResponse(error_code=Errors.NOT_COORDINATOR)
    assert stage.state() is STATES.DEAD
    assert stage.written() == []
