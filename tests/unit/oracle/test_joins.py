"""JoinGroup: who gets in, at once or in two steps, and what is refused."""

from typing import Any

import pytest

from tests.oracle import Coordinator, Errors, GroupMetadata, JoinGroup, numbered
from tests.oracle.values.responses import JoinedMember, JoinGroupResponse
from tests.unit.oracle.stage import (
    DELAY_MS,
    NOBODY,
    SESSION_MS,
    STATES,
    G,
    Stage,
    error_of,
    joined,
    member_of,
    offers,
    subscription,
)

FIRST = numbered("client", 1)


# --- before any group is looked at --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"group_id": ""}, Errors.INVALID_GROUP_ID, id="a-group-without-a-name"),
        pytest.param({"session_timeout_ms": 5_999}, Errors.INVALID_SESSION_TIMEOUT, id="too-short"),
        pytest.param({"session_timeout_ms": 1_800_001}, Errors.INVALID_SESSION_TIMEOUT, id="too-long"),
        pytest.param({"member_id": NOBODY}, Errors.UNKNOWN_MEMBER_ID, id="an-id-in-no-group"),
    ],
)
def test_refused_without_a_trace(fields: dict[str, Any], error: Errors) -> None:
    """Such a request makes no group; the answer repeats the member id."""
    stage = Stage()

    ticket = stage.join(**fields)

    assert ticket.response == JoinGroupResponse(error_code=error, member_id=fields.get("member_id", ""))
    assert stage.coordinator.outcomes[1:] == []


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_the_bounds_of_the_session_timeout_are_allowed(session_ms: int) -> None:
    """Both ends belong to it."""
    assert error_of(Stage().join(session_timeout_ms=session_ms)) is Errors.MEMBER_ID_REQUIRED


@pytest.mark.parametrize(
    "fields",
    [pytest.param({"protocol_type": ""}, id="no-type"), pytest.param({"protocols": ()}, id="no-strategies")],
)
def test_the_first_member_needs_a_protocol(fields: dict[str, Any]) -> None:
    """Refused with 23; the group is made all the same, and so is its record."""
    stage = Stage()

    ticket = stage.join(**fields)

    assert error_of(ticket) is Errors.INCONSISTENT_GROUP_PROTOCOL
    assert stage.written() == [GroupMetadata(group=G, protocol_type="", current_state_timestamp=0)]


# --- the two steps ------------------------------------------------------------------------------------


def test_a_dynamic_member_gets_an_id_first() -> None:
    """79 with the id; the group exists, Empty at generation 0, and nobody is in it."""
    stage = Stage()

    ticket = stage.join()

    assert ticket.response == JoinGroupResponse(error_code=Errors.MEMBER_ID_REQUIRED, member_id=FIRST)
    assert (stage.state(), stage.generation(), stage.members()) == (STATES.EMPTY, 0, set())
    assert stage.kinds() == ["member_id_handed_out"]


def test_the_record_of_a_new_group_says_nothing_but_that_it_exists() -> None:
    """Generation 0, no protocol type, no members (Kafka 4)."""
    stage = Stage()
    stage.wait(7)

    stage.join()

    assert stage.written() == [GroupMetadata(group=G, protocol_type="", current_state_timestamp=7)]


def test_only_a_new_group_gets_such_a_record() -> None:
    """The second id in the same group writes nothing."""
    stage = Stage()
    stage.join()

    stage.join()

    assert len(stage.written()) == 1


def test_no_record_for_a_group_that_a_commit_made() -> None:
    """A simple group exists already."""
    stage = Stage()
    stage.commit()

    stage.join()

    assert [type(one).__name__ for one in stage.written()] == ["OffsetCommitted"]


def test_the_second_step_makes_a_member_and_starts_the_rebalance() -> None:
    """The request is parked; the member leads because it is the first."""
    stage = Stage()

    ticket = stage.add()

    assert not ticket.is_answered
    assert (stage.state(), stage.members(), stage.leader()) == (STATES.PREPARING_REBALANCE, {FIRST}, FIRST)
    assert stage.last_move().reason == (
        f"Adding new member {FIRST} with group instance id null; client reason: not provided"
    )


def test_the_client_may_say_why() -> None:
    """Its reason ends the coordinator's."""
    stage = Stage()

    stage.add(reason="because")

    assert stage.last_move().reason.endswith("; client reason: because")


@pytest.mark.parametrize("version", [0, 3])
def test_old_clients_are_in_at_once(version: int) -> None:
    """Before version 4 nobody had to come twice."""
    stage = Stage()

    ticket = stage.join(api_version=version)

    assert not ticket.is_answered
    assert stage.members() == {FIRST}
    assert stage.kinds()[0] == "dynamic_member_added"


def test_version_0_has_one_timeout_for_both() -> None:
    """Its session timeout is its rebalance timeout, as the record shows."""
    stage = Stage()

    stage.settle([stage.join(api_version=0, session_timeout_ms=8_000)])

    record = stage.written()[-1]
    assert isinstance(record, GroupMetadata)
    assert record.members[0].rebalance_timeout == 8_000


def test_a_handed_out_id_expires() -> None:
    """After the session timeout of the request; then the id is unknown."""
    stage = Stage()
    member = member_of(stage.join())

    stage.wait(SESSION_MS - 1)
    assert "pending_member_expired" not in stage.kinds()
    stage.wait(1)

    assert stage.kinds()[-1] == "pending_member_expired"
    assert error_of(stage.join(member)) is Errors.UNKNOWN_MEMBER_ID


def test_a_handed_out_id_keeps_the_join_phase_open() -> None:
    """Everybody else is there, but somebody may still come."""
    stage = Stage()
    first, second = stage.stable(2)
    stage.join()
    stage.join(first)

    rejoin = stage.join(second)

    assert not rejoin.is_answered


def test_the_join_phase_ends_when_the_pending_member_comes() -> None:
    """It was the last one that was missing."""
    stage = Stage()
    (first,) = stage.stable()
    pending = member_of(stage.join())
    rejoin = stage.join(first)
    assert not rejoin.is_answered

    second = stage.join(pending)

    assert (joined(rejoin).generation_id, joined(second).generation_id) == (2, 2)


def test_the_join_phase_ends_when_the_pending_member_expires() -> None:
    """At the instant of its session timeout."""
    stage = Stage()
    (first,) = stage.stable()
    stage.join()
    rejoin = stage.join(first)

    stage.wait(SESSION_MS)

    assert joined(rejoin).generation_id == 2
    assert stage.members() == {first}


def test_an_id_that_was_handed_out_cannot_become_static() -> None:
    """Kafka calls that impossible; the client gets an unknown server error."""
    stage = Stage()
    member = member_of(stage.join())

    ticket = stage.join(member, group_instance_id="i")

    assert error_of(ticket) is Errors.UNKNOWN_SERVER_ERROR


# --- the answer ---------------------------------------------------------------------------------------


def test_only_the_leader_is_told_of_the_others() -> None:
    """With the subscription for the chosen strategy; the follower gets an empty list."""
    stage = Stage()
    tickets = [stage.add(), stage.add()]

    stage.wait(DELAY_MS * 2)

    leader, follower = sorted(map(joined, tickets), key=lambda one: one.leader != one.member_id)
    assert set(leader.members) == {
        JoinedMember(member_id=one.member_id, metadata=subscription("orders")) for one in (leader, follower)
    }
    assert follower == JoinGroupResponse(
        generation_id=1,
        protocol_type="consumer",
        protocol_name="range",
        leader=leader.member_id,
        member_id=follower.member_id,
    )


def test_a_refusal_names_no_protocol() -> None:
    """Neither type nor name stand in an error."""
    stage = Stage()
    stage.stable()

    refused = joined(stage.join(protocol_type="connect"))

    assert (refused.error_code, refused.protocol_type, refused.protocol_name, refused.generation_id) == (
        Errors.INCONSISTENT_GROUP_PROTOCOL,
        None,
        None,
        -1,
    )


def test_two_groups_do_not_meddle() -> None:
    """Each has its own generation and members."""
    stage = Stage()
    stage.settle([stage.add()])

    stage.add(group_id="other")

    assert (stage.state(), stage.state("other")) == (STATES.STABLE, STATES.PREPARING_REBALANCE)


def test_generated_ids_begin_with_the_clients_id_or_the_instance() -> None:
    """A static member's id comes from its instance id."""
    stage = Stage()

    dynamic = stage.join(client_id="app")
    stage.join(group_instance_id="i")

    assert member_of(dynamic).startswith("app-")
    assert {one.rpartition("-0000")[0][:2] for one in stage.members()} == {"i-"}


def test_ids_can_be_given() -> None:
    """Whoever compares with a real broker needs the broker's."""
    coordinator = Coordinator(member_ids=lambda prefix, number: f"{prefix}/{number}")

    assert member_of(coordinator.request(0, JoinGroup(group_id=G, client_id="app"))) == "app/1"


# --- protocols ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_known", [False, True], ids=["new", "known"])
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"protocol_type": "connect"}, id="other-type"),
        pytest.param({"protocols": offers("sticky")}, id="no-strategy-in-common"),
        pytest.param({"protocols": ()}, id="no-strategy"),
    ],
)
def test_a_member_must_fit_to_the_group(fields: dict[str, Any], *, is_known: bool) -> None:
    """Refused with 23; the group does not notice."""
    stage = Stage()
    first, _ = stage.stable(2)

    ticket = stage.join(first if is_known else "", **fields)

    assert error_of(ticket) is Errors.INCONSISTENT_GROUP_PROTOCOL
    assert stage.state() is STATES.STABLE


def test_the_group_takes_the_strategy_that_most_members_prefer() -> None:
    """Each votes for the first one of its own that all support."""
    stage = Stage()
    tickets = [
        stage.add(protocols=offers("range", "roundrobin")),
        stage.add(protocols=offers("roundrobin", "range")),
        stage.add(protocols=offers("sticky", "roundrobin", "range")),
    ]

    stage.wait(DELAY_MS * 3)

    assert {joined(ticket).protocol_name for ticket in tickets} == {"roundrobin"}


def test_a_strategy_that_not_all_support_cannot_win() -> None:
    """However many like it."""
    stage = Stage()
    tickets = [stage.add(protocols=offers("sticky", "range")) for _ in range(2)]
    tickets.append(stage.add(protocols=offers("range")))

    stage.wait(DELAY_MS * 3)

    assert joined(tickets[0]).protocol_name == "range"
