"""What the model notes for the rules beside a group's moves."""

import json
from typing import Any

import msgspec
import pytest

from coordinator_model.decoding import coordinator_log, request_log
from coordinator_model.groups import table as classic
from coordinator_model.groups.core.turn import Context
from coordinator_model.kafka.states import GroupState
from coordinator_model.observations.base import Source
from coordinator_model.observations.log import InstanceRefused, PendingMemberExpired, StaticMemberReplaced
from coordinator_model.observations.requests import CommitsAnswered, EpochAnswered, Heartbeats, JoinAnswered
from coordinator_model.state.group import Group, Member
from coordinator_model.state.modern import Modern
from coordinator_model.state.notes import IdUnused, Refused, Replaced
from tests.unit.made_seen import seen

UUID = "00000000-0000-4000-8000-000000000000"
A, B = f"i-{UUID}", f"i-{UUID[:-1]}1"
FULL = Context("c", info_live=True, offsets_enabled=True, backlog=False, requests_live=True)


def apply(group: Group, at_ms: int, what: Any, context: Context = FULL) -> list[Any]:
    """Return what is noted."""
    told = seen(at_ms, what, Source.REQUEST_LOG, backlog=context.backlog)
    return classic.apply(group, told, context).notes


def group_of(*members: Member) -> Group:
    return Group(
        group="g",
        state=GroupState.STABLE,
        state_since_ms=0,
        generation=3,
        members={member.member_id: member for member in members},
        coordinator=1,
    )


def commit(at_ms: int, error_code: int, member_id: str = A) -> CommitsAnswered:
    return CommitsAnswered(
        group="g", member_id=member_id, generation=3, error_code=error_code, times=(at_ms,)
    )


@pytest.mark.parametrize("error_code", [22, 25, 82, 110, 113])
def test_a_refused_commit_is_noted(error_code: int) -> None:
    """With who sent it and the generation it had."""
    assert apply(group_of(), 1_000, commit(1_000, error_code)) == [
        Refused(at_ms=1_000, operation="commit", error_code=error_code, member_id=A, generation=3)
    ]


@pytest.mark.parametrize("error_code", [0, 27, 16, 14, 12])
def test_other_answers_are_not(error_code: int) -> None:
    """They say nothing of the member's right to commit."""
    assert apply(group_of(Member(member_id=A)), 1_000, commit(1_000, error_code)) == []


def test_a_flood_is_noted_once_a_second() -> None:
    """Each sender's same refusal; another sender's at once."""
    group = group_of()
    noted = [at_ms for at_ms in range(0, 5_000, 10) if apply(group, at_ms, commit(at_ms, 25))]

    assert noted == [0, 1_000, 2_000, 3_000, 4_000]
    assert apply(group, 4_995, commit(4_995, 25, "other"))


def test_the_backlog_is_silent() -> None:
    """It sets states and says nothing."""
    context = msgspec.structs.replace(FULL, backlog=True)

    assert apply(group_of(), 1_000, commit(1_000, 25), context) == []


def test_a_replacement_is_told_by_its_line_and_by_who_has_the_id_then() -> None:
    """The line does not know the new member id, the answer does; both name the old one."""
    group = group_of(Member(member_id=A, client_id="app", client_host="/h", instance_id="i"))
    line = apply(group, 1_000, StaticMemberReplaced(group="g", instance_id="i", old_member_id=A))
    joined = JoinAnswered(
        group="g",
        member_id=B,
        error_code=0,
        generation=3,
        leader_id=B,
        arrived_at_ms=1_000,
        instance_id="i",
    )
    answer = apply(group, 1_010, joined)

    assert line == [Replaced(at_ms=1_000, instance_id="i", old_id=A, client_id="app", client_host="/h")]
    assert answer == [
        Replaced(at_ms=1_010, instance_id="i", old_id=A, new_id=B, client_id="app", client_host="/h")
    ]


def test_a_fenced_request_names_the_holder() -> None:
    """Whoever has the instance id in the mirror."""
    group = group_of(Member(member_id=B, instance_id="i"))
    beat = Heartbeats(group="g", member_id=A, generation=3, error_code=82, times=(1_000,), instance_id="i")

    (noted,) = apply(group, 1_000, beat)

    assert (noted.operation, noted.member_id, noted.holder_id) == ("heartbeat", A, B)


def test_a_join_that_waited_is_marked() -> None:
    """It was ended by what happened meanwhile, and its sender may be gone."""
    refused = [
        apply(
            group_of(),
            9_000,
            JoinAnswered(
                group="g",
                member_id="",
                error_code=82,
                generation=-1,
                leader_id="",
                arrived_at_ms=arrived_at_ms,
                requested_member_id=A,
                instance_id="i",
                protocol_type="consumer",
                protocols=("range",),
            ),
        )[0]
        for arrived_at_ms in (5_000, 8_999)
    ]

    assert [one.parked for one in refused] == [True, False]
    assert refused[0].protocols == ("consumer", "range")


def modern_group() -> Group:
    """A consumer group of KIP-848 with one static member."""
    group = group_of(Member(member_id=B, instance_id="i"))
    group.group_type, group.modern = "consumer", Modern(epoch=3, assignment_epoch=3)
    return group


@pytest.mark.parametrize(
    ("asked", "error_code", "operation"), [(0, 111, "join"), (0, 69, "join"), (3, 82, "heartbeat")]
)
def test_a_consumer_group_notes_who_is_refused(asked: int, error_code: int, operation: str) -> None:
    """An instance id that is not released, another type of group, a member that was replaced."""
    answered = EpochAnswered(
        group="g",
        protocol="consumer",
        member_id=A,
        asked=asked,
        epoch=-1,
        error_code=error_code,
        arrived_at_ms=1_000,
        instance_id="i",
    )

    (noted,) = apply(modern_group(), 1_000, answered)

    assert (noted.operation, noted.error_code, noted.holder_id) == (operation, error_code, B)


def test_a_consumer_group_notes_refused_commits() -> None:
    """A stale epoch, and a member that was fenced."""
    group = modern_group()

    assert [apply(group, 1_000, commit(1_000, code))[0].error_code for code in (113, 25)] == [113, 25]
    assert apply(group, 1_000, commit(1_000, 27)) == []


def test_other_errors_of_heartbeats_are_not_noted() -> None:
    """An epoch that is behind is how members learn of a change."""
    answered = EpochAnswered(
        group="g", protocol="consumer", member_id=B, asked=2, epoch=3, error_code=110, arrived_at_ms=1
    )

    assert apply(modern_group(), 1_000, answered) == []


def test_an_id_that_expired_is_noted() -> None:
    """Its client never came back."""
    group = group_of()
    group.pending["x"] = 0

    assert apply(group, 9_000, PendingMemberExpired(group="g", member_id="x")) == [
        IdUnused(at_ms=9_000, member_id="x")
    ]
    assert group.pending == {}


def test_a_refused_commit_line_tells_its_offsets() -> None:
    """An accepted one does not: the topic has them."""

    def read(error_code: int, **topic: Any) -> Any:
        partition = {"partitionIndex": 1, "committedOffset": 52, "committedMetadata": ""}
        fields = {
            "isForwarded": False,
            "requestHeader": {"requestApiKey": 8, "requestApiVersion": 9, "correlationId": 1},
            "request": {
                "groupId": "g",
                "generationIdOrMemberEpoch": 3,
                "memberId": A,
                "topics": [{**topic, "partitions": [partition]}],
            },
            "response": {
                "topics": [{**topic, "partitions": [{"partitionIndex": 1, "errorCode": error_code}]}]
            },
        }
        (what,) = request_log.parse_request_line(
            b"Completed request:" + json.dumps(fields, separators=(",", ":")).encode(), 9
        ).observations
        return what.claims  # type: ignore[union-attr]

    assert read(25, name="orders") == (("orders", 1, 52),)
    assert read(25, topicId="ltJ7t-oMR0ajXC1nN-Crsg") == (("ltJ7t-oMR0ajXC1nN-Crsg", 1, 52),)
    assert read(0, name="orders") == ()


@pytest.mark.parametrize(
    ("text", "fenced"),
    [
        (f"cannot join the group because the instance id is owned by member {B}.", False),
        (f"is fenced by existing member {B}.", True),
    ],
)
def test_the_lines_of_consumer_groups(text: str, fenced: bool) -> None:
    """KIP-848: who asks for an instance id that another one holds."""
    line = (
        "[GroupCoordinator id=1 topic=__consumer_offsets partition=3] [GroupId g [x]] "
        f"Static member {A} with instance id i {text}"
    )

    assert coordinator_log.parse_coordinator_line(line, shard_count=50).observation == InstanceRefused(
        group="g [x]", member_id=A, instance_id="i", by_member_id=B, fenced=fenced
    )
