"""Members with an instance id: they keep their place when they restart."""

import pytest

from tests.oracle import Errors, FailAppends, GroupMetadata
from tests.oracle.values.responses import JoinGroupResponse
from tests.unit.oracle.stage import (
    DELAY_MS,
    NOBODY,
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

# --- the first join -----------------------------------------------------------------------------------


def test_a_static_member_is_in_at_once() -> None:
    """It has a name already, so nobody asks it to come twice."""
    stage = Stage()

    ticket = stage.join(group_instance_id="i")

    assert not ticket.is_answered
    assert stage.kinds()[0] == "static_member_added"
    assert stage.last_move().reason.startswith("Adding new member i-")
    assert "with group instance id i;" in stage.last_move().reason


def test_an_id_without_its_instance_is_unknown() -> None:
    """25 for an instance that nobody has."""
    stage, leader, _ = static_pair()

    assert error_of(stage.join(leader, group_instance_id="other")) is Errors.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("who", [0, 1], ids=["leader", "follower"])
def test_an_instance_with_another_id_is_fenced(who: int) -> None:
    """82, and a line about it."""
    stage, *members = static_pair()

    ticket = stage.join(NOBODY, group_instance_id=instance_of(stage, members[who]))

    assert ticket.response == JoinGroupResponse(error_code=Errors.FENCED_INSTANCE_ID, member_id=NOBODY)
    assert stage.line("instance_fenced").endswith("during operation join-group")


# --- back in a Stable group ---------------------------------------------------------------------------


def test_a_follower_comes_back_without_a_rebalance() -> None:
    """Same generation, new id; it is told who leads and fetches its assignment."""
    stage, leader, follower = static_pair()

    back = joined(stage.join(group_instance_id=instance_of(stage, follower)))

    assert (back.error_code, back.generation_id, back.leader, back.skip_assignment, back.members) == (
        Errors.NONE,
        1,
        leader,
        False,
        (),
    )
    assert stage.members() == {leader, back.member_id}
    assert stage.state() is STATES.STABLE
    assert getattr(stage.sync(back.member_id).response, "assignment", None) == follower.encode()


def test_a_leader_comes_back_and_is_told_not_to_assign() -> None:
    """Version 9: it gets the list, and skipAssignment."""
    stage, leader, follower = static_pair()

    back = joined(stage.join(group_instance_id=instance_of(stage, leader)))

    assert (back.leader, back.skip_assignment) == (back.member_id, True)
    assert {one.member_id for one in back.members} == {back.member_id, follower}
    assert stage.leader() == back.member_id


@pytest.mark.parametrize("version", [5, 8])
def test_an_older_leader_is_made_to_believe_that_it_follows(version: int) -> None:
    """It would assign otherwise: its answer names the id that it had."""
    stage, leader, _ = static_pair()

    back = joined(stage.join(group_instance_id=instance_of(stage, leader), api_version=version))

    assert (back.leader, back.skip_assignment, back.members) == (leader, False, ())
    assert stage.leader() == back.member_id


def test_a_comeback_is_recorded_under_the_same_generation() -> None:
    """With the time at which the group became Stable, and the assignment it had."""
    stage, leader, follower = static_pair()
    stable_ms = stage.now_ms
    stage.wait(500)

    back = joined(stage.join(group_instance_id=instance_of(stage, follower)))

    record = stage.written()[-1]
    assert isinstance(record, GroupMetadata)
    assert (record.generation, record.leader, record.current_state_timestamp) == (1, leader, stable_ms)
    assert {one.member_id: one.assignment for one in record.members}[back.member_id] == follower.encode()


def test_a_comeback_that_would_change_the_strategy_starts_a_rebalance() -> None:
    """Stable assignments are of one strategy."""
    stage = Stage()
    stage.stable_static("i1", "i2", protocols=offers("range", "roundrobin"))
    follower = next(iter(stage.members() - {stage.leader()}))

    ticket = stage.join(group_instance_id=instance_of(stage, follower), protocols=offers("roundrobin"))

    assert not ticket.is_answered
    assert stage.last_move().reason.startswith("Group's selectedProtocol will change because static member i")
    assert stage.last_move().cause.value == "protocol_changed"


def test_a_comeback_with_other_metadata_but_the_same_strategy_does_not() -> None:
    """Its subscription is not looked at."""
    stage, _, follower = static_pair()

    ticket = stage.join(
        group_instance_id=instance_of(stage, follower), protocols=offers("range", topics=["new"])
    )

    assert error_of(ticket) is Errors.NONE
    assert stage.state() is STATES.STABLE


def test_a_comeback_takes_over_the_new_timeouts() -> None:
    """The session from the next heartbeat on."""
    stage, _, follower = static_pair()

    back = member_of(stage.join(group_instance_id=instance_of(stage, follower), session_timeout_ms=20_000))

    group = stage.coordinator.group(G)
    assert group is not None
    assert group.members[back].session_timeout_ms == 20_000


def test_each_comeback_has_another_id() -> None:
    """Else the old process could not be fenced."""
    stage, _, follower = static_pair()
    instance = instance_of(stage, follower)

    ids = {member_of(stage.join(group_instance_id=instance)) for _ in range(3)}

    assert len(ids | {follower}) == 4


def test_the_old_ids_session_ends_without_effect() -> None:
    """Its timer runs on and finds nobody."""
    stage, leader, follower = static_pair()
    stage.wait(5_000)
    back = member_of(stage.join(group_instance_id=instance_of(stage, follower)))
    stage.beat(leader)

    stage.wait(SESSION_MS - 5_000)

    assert stage.members() == {leader, back}


def test_a_comeback_that_cannot_be_stored_is_undone() -> None:
    """The old id is a member again; the client gets the error and no id."""
    stage, leader, follower = static_pair()
    stage.happen(FailAppends(error=Errors.MESSAGE_TOO_LARGE))

    ticket = stage.join(group_instance_id=instance_of(stage, follower), protocols=offers("range", "more"))

    assert ticket.response == JoinGroupResponse(
        error_code=Errors.UNKNOWN_SERVER_ERROR,
        generation_id=1,
        protocol_type="consumer",
        protocol_name="range",
        leader=leader,
    )
    assert stage.members() == {leader, follower}
    assert stage.beat(follower, None, group_instance_id=instance_of(stage, follower)) is Errors.NONE
    assert "Reverting to old member id" in stage.line("write_failed")


def test_a_comeback_is_answered_when_it_is_replicated() -> None:
    """Not before."""
    stage = Stage(commit_delay_ms=40)
    tickets = [stage.join(group_instance_id="i")]
    stage.wait(DELAY_MS)
    member = member_of(tickets[0])
    stage.sync(member, None, member)
    stage.wait(100)

    back = stage.join(group_instance_id="i")
    assert not back.is_answered
    stage.wait(40)

    assert back.answered_at_ms == back.arrived_at_ms + 40


# --- back in the middle of a rebalance ----------------------------------------------------------------


def test_a_comeback_in_the_sync_phase_starts_another_rebalance() -> None:
    """The leader may be assigning to the old id; the old one's parked sync is fenced."""
    stage = Stage()
    tickets = [stage.join(group_instance_id=one) for one in ("i1", "i2")]
    stage.wait(2 * DELAY_MS)
    follower = next(one for one in map(joined, tickets) if one.leader != one.member_id)
    parked = stage.sync(follower.member_id)

    stage.join(group_instance_id=instance_of(stage, follower.member_id))

    assert error_of(parked) is Errors.FENCED_INSTANCE_ID
    assert stage.last_move().reason.startswith("Updating metadata for static member i")
    assert stage.last_move().cause.value == "static_member_replaced"


def test_a_comeback_in_the_join_phase_takes_the_place_of_the_one_that_waits() -> None:
    """The parked join is fenced, the new one waits."""
    stage, leader, follower = static_pair()
    instance = instance_of(stage, follower)
    waiting = stage.join(follower, group_instance_id=instance, protocols=offers("range", topics=["new"]))

    back = stage.join(group_instance_id=instance)

    assert waiting.response == JoinGroupResponse(error_code=Errors.FENCED_INSTANCE_ID, member_id=follower)
    assert not back.is_answered
    assert joined(stage.join(leader)).generation_id == joined(back).generation_id == 2


def test_a_comeback_can_end_the_join_phase() -> None:
    """It was the last one that was missing."""
    stage, leader, follower = static_pair()
    waiting = stage.join(leader)

    back = stage.join(group_instance_id=instance_of(stage, follower))

    assert joined(back).generation_id == joined(waiting).generation_id == 2


def test_a_leader_whose_old_process_still_waits_is_replaced_as_leader() -> None:
    """The new id leads."""
    stage, leader, follower = static_pair()
    instance = instance_of(stage, leader)
    waiting = stage.join(leader)

    back = stage.join(group_instance_id=instance)
    stage.join(follower, protocols=offers("range"))

    assert error_of(waiting) is Errors.FENCED_INSTANCE_ID
    assert joined(back).leader == member_of(back)


@pytest.mark.parametrize("who", [0, 1], ids=["leader", "follower"])
def test_a_static_member_with_its_id_joins_like_any_other(who: int) -> None:
    """The leader rebalances, the follower that changed nothing does not."""
    stage, *members = static_pair()

    ticket = stage.join(members[who], group_instance_id=instance_of(stage, members[who]))

    assert ticket.is_answered is (who == 1)
