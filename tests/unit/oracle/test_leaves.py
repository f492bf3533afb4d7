"""LeaveGroup, of one and of many."""

from typing import Any

import pytest

from tests.oracle import Errors, LeaveGroup, MarkDead, MemberIdentity, Ticket
from tests.oracle.values.responses import LeaveGroupResponse
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
)


def _errors(ticket: Ticket) -> list[Errors]:
    assert isinstance(ticket.response, LeaveGroupResponse)
    return [one.error_code for one in ticket.response.members]


def test_the_last_member_leaves() -> None:
    """The group is empty in the same millisecond, with the next generation."""
    stage = Stage()
    (member,) = stage.stable()

    ticket = stage.leave(member)

    assert _errors(ticket) == [Errors.NONE]
    assert [move[1:] for move in stage.moves()[-2:]] == [
        (STATES.PREPARING_REBALANCE, 1, "member_left"),
        (STATES.EMPTY, 2, "all_members_left"),
    ]
    assert stage.last_move().at_ms == stage.now_ms


def test_a_member_leaves_the_others() -> None:
    """They have to join again."""
    stage = Stage()
    leader, follower = stage.stable(2)

    stage.leave(follower)

    assert stage.last_move().reason == f"explicit `LeaveGroup` request for ({follower}) members."
    assert stage.beat(leader) is Errors.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(("reason", "told"), [(None, "not provided"), ("", ""), ("closing", "closing")])
def test_the_log_has_the_clients_reason(reason: str | None, told: str) -> None:
    """As it came."""
    stage = Stage()
    (member,) = stage.stable()

    stage.leave(MemberIdentity(member_id=member, reason=reason))

    assert stage.line("member_left").endswith(f"`LeaveGroup` request; client reason: {told}")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_versions_have_one_member_and_its_error_on_top(version: int) -> None:
    """Of the member, or of the group."""
    stage = Stage()
    (member,) = stage.stable()

    unknown = stage.send(LeaveGroup(group_id=G, member_id=NOBODY, api_version=version))
    nowhere = stage.send(LeaveGroup(group_id="other", member_id=member, api_version=version))
    known = stage.send(LeaveGroup(group_id=G, member_id=member, api_version=version))

    assert [one.response for one in (unknown, nowhere, known)] == [
        LeaveGroupResponse(error_code=Errors.UNKNOWN_MEMBER_ID),
        LeaveGroupResponse(error_code=Errors.UNKNOWN_MEMBER_ID),
        LeaveGroupResponse(),
    ]
    assert stage.state() is STATES.EMPTY


def test_a_member_that_missed_its_poll_interval_says_so() -> None:
    """The Java client's reason is the cause of both moves."""
    stage = Stage()
    (member,) = stage.stable()

    stage.leave(MemberIdentity(member_id=member, reason="consumer poll timeout has expired."))

    assert [move[3] for move in stage.moves()[-2:]] == ["poll_timeout", "poll_timeout"]


def test_a_group_without_a_name() -> None:
    """24 on top."""
    assert error_of(Stage().leave(NOBODY, group_id="")) is Errors.INVALID_GROUP_ID


def test_a_group_that_is_not_there() -> None:
    """25 for each member; on top there is no error."""
    ticket = Stage().leave(NOBODY, MemberIdentity(group_instance_id="i"))

    assert (error_of(ticket), _errors(ticket)) == (Errors.NONE, [Errors.UNKNOWN_MEMBER_ID] * 2)


def test_a_dead_group() -> None:
    """15 on top, and no members."""
    stage = Stage()
    (member,) = stage.stable()
    stage.happen(MarkDead(group_id=G))

    ticket = stage.leave(member)

    assert ticket.response == LeaveGroupResponse(error_code=Errors.COORDINATOR_NOT_AVAILABLE)


def test_a_stranger_leaves_nothing() -> None:
    """25, and no rebalance."""
    stage = Stage()
    stage.stable()

    assert _errors(stage.leave(NOBODY)) == [Errors.UNKNOWN_MEMBER_ID]
    assert stage.state() is STATES.STABLE


def test_a_batch_is_one_rebalance() -> None:
    """However many leave; each has its own result."""
    stage = Stage()
    leader, second, third = stage.stable(3)

    ticket = stage.leave(second, NOBODY, third)

    assert _errors(ticket) == [Errors.NONE, Errors.UNKNOWN_MEMBER_ID, Errors.NONE]
    assert stage.last_move().reason == f"explicit `LeaveGroup` request for ({second}, {third}) members."
    assert stage.members() == {leader}


def test_static_members_can_be_removed_by_instance_alone() -> None:
    """The reason shows empty ids."""
    stage = Stage()
    stage.stable_static("i1", "i2", "i3")

    ticket = stage.leave(*(MemberIdentity(group_instance_id=one) for one in ("i1", "i2")))

    assert _errors(ticket) == [Errors.NONE, Errors.NONE]
    assert stage.last_move().reason == "explicit `LeaveGroup` request for (, ) members."
    assert len(stage.members()) == 1


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"group_instance_id": "other"}, Errors.UNKNOWN_MEMBER_ID, id="an-unknown-instance"),
        pytest.param({}, Errors.UNKNOWN_MEMBER_ID, id="neither-id-nor-instance"),
        pytest.param({"member_id": NOBODY, "group_instance_id": "i1"}, Errors.FENCED_INSTANCE_ID, id="other"),
        pytest.param({"member_id": NOBODY, "group_instance_id": "x"}, Errors.UNKNOWN_MEMBER_ID, id="unknown"),
    ],
)
def test_one_bad_identity_does_not_spoil_the_batch(fields: dict[str, Any], error: Errors) -> None:
    """The other one leaves."""
    stage = Stage()
    _, second = stage.stable_static("i1", "i2")

    ticket = stage.leave(MemberIdentity(**fields), MemberIdentity(member_id=second, group_instance_id="i2"))

    assert _errors(ticket) == [error, Errors.NONE]
    assert stage.state() is STATES.PREPARING_REBALANCE


def test_a_static_member_may_leave_by_its_id_alone() -> None:
    """Without naming its instance."""
    stage = Stage()
    (member,) = stage.stable_static("i")

    assert _errors(stage.leave(member)) == [Errors.NONE]
    assert error_of(stage.join(member, group_instance_id="i")) is Errors.UNKNOWN_MEMBER_ID


def test_a_pending_member_can_leave() -> None:
    """An id that is given back cannot be used."""
    stage = Stage()
    pending = member_of(stage.join())

    assert _errors(stage.leave(pending)) == [Errors.NONE]
    assert stage.kinds()[-1] == "pending_member_left"
    assert error_of(stage.join(pending)) is Errors.UNKNOWN_MEMBER_ID


def test_a_pending_member_that_leaves_a_stable_group_disturbs_it() -> None:
    """Kafka starts a full rebalance although nobody was in."""
    stage = Stage()
    stage.stable()
    pending = member_of(stage.join())

    stage.leave(pending)

    assert stage.state() is STATES.PREPARING_REBALANCE


def test_a_pending_member_that_leaves_can_end_the_join_phase() -> None:
    """It was the one that was missing."""
    stage = Stage()
    (leader,) = stage.stable()
    pending = member_of(stage.join())
    waiting = stage.join(leader)
    assert not waiting.is_answered

    stage.leave(pending)

    assert joined(waiting).generation_id == 2


def test_members_and_pending_members_leave_together() -> None:
    """In one batch, with a stranger."""
    stage = Stage()
    (leader,) = stage.stable()
    pending = member_of(stage.join())

    ticket = stage.leave(leader, pending, NOBODY)

    assert _errors(ticket) == [Errors.NONE, Errors.NONE, Errors.UNKNOWN_MEMBER_ID]
    assert stage.state() is STATES.EMPTY


def test_a_member_that_is_missing_leaves_and_ends_the_join_phase() -> None:
    """All who are left have joined."""
    stage = Stage()
    leader, follower = stage.stable(2)
    waiting = stage.join(leader)

    stage.leave(follower)

    assert joined(waiting).generation_id == 2


def test_a_member_that_waits_in_its_join_is_answered_when_it_leaves() -> None:
    """25."""
    stage = Stage()
    leader, _ = stage.stable(2)
    waiting = stage.join(leader)

    stage.leave(leader)

    assert error_of(waiting) is Errors.UNKNOWN_MEMBER_ID


def test_a_member_that_waits_in_its_sync_is_never_answered() -> None:
    """As in Kafka: nobody remembers that request."""
    stage = Stage()
    tickets = [stage.add(), stage.add()]
    stage.wait(2 * DELAY_MS)
    follower = next(one.member_id for one in map(joined, tickets) if one.leader != one.member_id)
    waiting = stage.sync(follower)

    stage.leave(follower)
    stage.wait(REBALANCE_MS + SESSION_MS)

    assert not waiting.is_answered


def test_a_leader_that_leaves_is_followed_by_a_member() -> None:
    """At once, although the next one is told only when it joins."""
    stage = Stage()
    leader, follower = stage.stable(2)

    stage.leave(leader)

    assert stage.leader() == follower
