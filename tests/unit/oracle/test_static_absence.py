"""Static members that stay away, and instance ids in every request."""

from typing import Any

import pytest

from tests.oracle import Errors, GroupMember, GroupMetadata, Load, MarkDead, MemberIdentity
from tests.unit.oracle.stage import (
    REBALANCE_MS,
    SESSION_MS,
    STATES,
    G,
    Stage,
    error_of,
    instance_of,
    joined,
    member_of,
    offers,
    static_pair,
)

# --- static members that do not come back -------------------------------------------------------------


def test_a_missing_static_member_stays_in_the_next_generation() -> None:
    """Only dynamic ones are removed at the rebalance timeout."""
    stage, leader, follower = static_pair(session_timeout_ms=1_000_000)
    ticket = stage.join(leader)

    stage.wait(REBALANCE_MS)

    assert joined(ticket).generation_id == 2
    assert stage.members() == {leader, follower}
    assert {one.member_id for one in joined(ticket).members} == {leader, follower}


def test_a_missing_static_leader_loses_its_lead() -> None:
    """The first member that has joined leads; the log names it with all that is known of it."""
    stage, leader, follower = static_pair(session_timeout_ms=1_000_000)
    ticket = stage.join(follower, protocols=offers("range", topics=["new"]))

    stage.wait(REBALANCE_MS)

    assert joined(ticket).leader == follower
    line = stage.line("leader_replaced")
    assert line.startswith(
        f"Group leader [memberId: {leader}, groupInstanceId: {instance_of(stage, leader)}]"
    )
    assert f"Member ClassicGroupMember(memberId='{follower}'" in line


def test_if_all_static_members_are_missing_the_join_timer_is_set_again() -> None:
    """And again, without a new generation, until their sessions run out."""
    stage = Stage()
    tickets = [
        stage.join(group_instance_id="i", session_timeout_ms=150_000),
        stage.add(session_timeout_ms=150_000),
    ]
    stage.settle(tickets)
    dynamic = member_of(tickets[1])
    began_ms = stage.now_ms
    stage.leave(dynamic)

    stage.wait(REBALANCE_MS)
    assert (stage.state(), stage.generation()) == (STATES.PREPARING_REBALANCE, 1)
    stage.wait(REBALANCE_MS)
    assert stage.kinds().count("nobody_rejoined") == 2
    stage.wait(REBALANCE_MS)

    assert stage.kinds().count("nobody_rejoined") == 2
    assert stage.moves()[-1] == (began_ms + 150_000, STATES.EMPTY, 2, "session_timeout")


def test_a_static_member_expires_like_any_other() -> None:
    """Being static it has no longer life, only a longer name."""
    stage, leader, follower = static_pair()
    stage.wait(5_000)
    stage.beat(leader)

    stage.wait(SESSION_MS - 5_000)

    assert stage.members() == {leader}
    assert stage.last_move().reason == f"removing member {follower} on heartbeat expiration."


# --- the instance id in every request -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("instance", "error"),
    [("i1", Errors.FENCED_INSTANCE_ID), ("other", Errors.UNKNOWN_MEMBER_ID)],
    ids=["somebody-else-has-it", "nobody-has-it"],
)
@pytest.mark.parametrize(
    "operation", ["heartbeat", "sync-group", "leave-group", "txn-offset-commit", "offset-commit"]
)
def test_a_wrong_instance_is_found_in_every_request(operation: str, instance: str, error: Errors) -> None:
    """82 or 25; the log names the operation (the two commits the wrong way round)."""
    stage = Stage()
    _, other = stage.stable_static("i1", "i2")

    found = {
        "heartbeat": lambda: stage.beat(other, None, group_instance_id=instance),
        "sync-group": lambda: error_of(stage.sync(other, None, group_instance_id=instance)),
        "leave-group": lambda: _left(stage, other, instance),
        "txn-offset-commit": lambda: stage.commit(other, 1, group_instance_id=instance),
        "offset-commit": lambda: stage.commit_in_transaction(
            member_id=other, generation_id=1, group_instance_id=instance
        ),
    }[operation]()

    assert found is error
    if error is Errors.FENCED_INSTANCE_ID:
        assert stage.line("instance_fenced").endswith(f"during operation {operation}")


def _left(stage: Stage, member: str, instance: str) -> Errors:
    ticket = stage.leave(MemberIdentity(member_id=member, group_instance_id=instance))
    response: Any = ticket.response
    error = response.members[0].error_code
    assert isinstance(error, Errors)
    return error


# --- what cannot be -----------------------------------------------------------------------------------


def test_a_static_member_of_an_empty_group_cannot_be() -> None:
    """Its id went with it, so it is new."""
    stage = Stage()
    (member,) = stage.stable_static("i")
    stage.leave(member)

    ticket = stage.join(group_instance_id="i")

    assert not ticket.is_answered
    assert stage.state() is STATES.PREPARING_REBALANCE


def test_a_static_member_of_a_dead_group_looks_elsewhere() -> None:
    """15."""
    stage, leader, _ = static_pair()
    stage.happen(MarkDead(group_id=G))

    assert error_of(stage.join(group_instance_id="i1")) is Errors.COORDINATOR_NOT_AVAILABLE
    assert error_of(stage.join(leader, group_instance_id="i1")) is Errors.COORDINATOR_NOT_AVAILABLE


def test_static_members_are_loaded_with_their_instances() -> None:
    """A comeback after a failover needs no rebalance either."""
    stage = Stage(loaded=False)
    member = GroupMember(member_id="m", group_instance_id="i")
    stage.happen(
        Load(records=(GroupMetadata(group=G, generation=4, protocol="range", leader="m", members=(member,)),))
    )

    back = joined(stage.join(group_instance_id="i"))

    assert (back.generation_id, back.error_code) == (4, Errors.NONE)
