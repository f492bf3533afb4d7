"""Heartbeats in every state, and sessions."""

from typing import Any

import pytest

from tests.oracle import Errors, MarkDead
from tests.unit.oracle.stage import (
    DELAY_MS,
    NOBODY,
    SESSION_MS,
    STATES,
    G,
    Stage,
    member_of,
)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({}, Errors.NONE, id="all-right"),
        pytest.param({"group_id": ""}, Errors.INVALID_GROUP_ID, id="a-group-without-a-name"),
        pytest.param({"group_id": "other"}, Errors.UNKNOWN_MEMBER_ID, id="a-group-that-is-not-there"),
        pytest.param({"member_id": NOBODY}, Errors.UNKNOWN_MEMBER_ID, id="a-stranger"),
        pytest.param({"generation": 0}, Errors.ILLEGAL_GENERATION, id="a-generation-of-the-past"),
        pytest.param({"generation": 2}, Errors.ILLEGAL_GENERATION, id="a-generation-to-come"),
        pytest.param({"member_id": NOBODY, "generation": 2}, Errors.UNKNOWN_MEMBER_ID, id="member-is-first"),
    ],
)
def test_what_a_heartbeat_must_say(fields: dict[str, Any], error: Errors) -> None:
    """Member, then generation."""
    stage = Stage()
    (member,) = stage.stable()

    assert stage.beat(**{"member_id": member, "generation": 1, **fields}) is error


def test_a_pending_member_cannot_beat() -> None:
    """It is no member yet."""
    stage = Stage()

    assert stage.beat(member_of(stage.join()), 0) is Errors.UNKNOWN_MEMBER_ID


def test_an_empty_group_knows_nobody() -> None:
    """25, even of the right generation."""
    stage = Stage()
    (member,) = stage.stable()
    stage.leave(member)

    assert stage.beat(member) is Errors.UNKNOWN_MEMBER_ID


def test_a_dead_group_is_looked_for_elsewhere() -> None:
    """15."""
    stage = Stage()
    (member,) = stage.stable()
    stage.happen(MarkDead(group_id=G))

    assert stage.beat(member) is Errors.COORDINATOR_NOT_AVAILABLE


def test_in_the_join_phase_members_are_told_to_join() -> None:
    """27; that heartbeat keeps the session all the same."""
    stage = Stage()
    leader, follower = stage.stable(2)
    stage.join(leader)
    stage.wait(SESSION_MS - 1)

    assert stage.beat(follower) is Errors.REBALANCE_IN_PROGRESS
    stage.wait(SESSION_MS - 1)
    assert stage.members() == {leader, follower}
    stage.wait(1)
    assert stage.members() == {leader}


def test_in_the_join_phase_the_generation_is_still_checked() -> None:
    """It is the old one."""
    stage = Stage()
    leader, follower = stage.stable(2)
    stage.join(leader)

    assert stage.beat(follower, 2) is Errors.ILLEGAL_GENERATION


def test_in_the_sync_phase_heartbeats_are_normal() -> None:
    """No error, and they keep the session."""
    stage = Stage()
    stage.add()
    stage.wait(DELAY_MS)
    (member,) = stage.members()
    stage.wait(SESSION_MS - 1)

    assert stage.beat(member, 1) is Errors.NONE
    stage.wait(SESSION_MS - 1)
    assert stage.state() is STATES.COMPLETING_REBALANCE


def test_heartbeats_keep_a_member() -> None:
    """Each begins the session anew; the first that is missing ends it, exactly then."""
    stage = Stage()
    (member,) = stage.stable()
    for _ in range(5):
        stage.wait(SESSION_MS - 1)
        assert stage.beat(member) is Errors.NONE

    stage.wait(SESSION_MS - 1)
    assert stage.members() == {member}
    stage.wait(1)

    assert stage.members() == set()
    assert (
        stage.line("member_failed") == f"Member {member} in group g has failed, removing it from the group."
    )


def test_a_refused_heartbeat_keeps_nobody() -> None:
    """Of another generation it does not count."""
    stage = Stage()
    (member,) = stage.stable()
    stage.wait(SESSION_MS - 1)
    stage.beat(member, 9)

    stage.wait(1)

    assert stage.members() == set()


def test_commits_keep_a_member() -> None:
    """In Stable."""
    stage = Stage()
    (member,) = stage.stable()
    stage.wait(SESSION_MS - 1)
    assert stage.commit(member, 1) is Errors.NONE

    stage.wait(SESSION_MS - 1)

    assert stage.members() == {member}


def test_commits_keep_a_member_in_the_join_phase() -> None:
    """They are of the old generation."""
    stage = Stage()
    leader, follower = stage.stable(2)
    stage.join(leader)
    stage.wait(SESSION_MS - 1)
    assert stage.commit(follower, 1) is Errors.NONE

    stage.wait(SESSION_MS - 1)

    assert follower in stage.members()


def test_transactional_commits_keep_nobody() -> None:
    """The coordinator does not look at the session then."""
    stage = Stage()
    (member,) = stage.stable()
    stage.wait(SESSION_MS - 1)
    assert stage.commit_in_transaction(member_id=member, generation_id=1) is Errors.NONE

    stage.wait(1)

    assert stage.members() == set()


def test_a_sync_alone_keeps_nobody() -> None:
    """A sync that is answered at once does not begin a session."""
    stage = Stage()
    (member,) = stage.stable()
    stage.wait(SESSION_MS - 1)
    stage.sync(member)

    stage.wait(1)

    assert stage.members() == set()


def test_a_follower_that_rejoins_unchanged_is_not_kept_by_it() -> None:
    """Its answer comes at once, and its session goes on from before."""
    stage = Stage()
    leader, follower = stage.stable(2)
    stage.wait(SESSION_MS - 1)
    stage.beat(leader)
    stage.join(follower)

    stage.wait(1)

    assert stage.members() == {leader}
