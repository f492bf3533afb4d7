"""Lines of the request log as brokers write them, of every version that clients use."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model import observations as on
from coordinator_model.decoding.request_log import (
    Answered,
    RequestLineError,
    client_of,
    host_of,
    parse_request_line,
    worst_error,
)
from coordinator_model.observations.base import Source
from coordinator_model.observations.log import LogNoted, ShardStalled
from coordinator_model.observations.requests import (
    Client,
    CommitsAnswered,
    DeleteAnswered,
    EpochAnswered,
    Heartbeats,
    JoinAnswered,
    LeaveAnswered,
    SyncAnswered,
    TransactionalCommit,
    TransactionEnded,
)

AT = 1795218710925
MEMBER = "cA-ca3b18a3-a3f6-4c3f-a3e3-e97c3daff200"
CONNECTION = "127.0.0.1:39192-10.0.0.7:55350-0-3"
CLIENT = Client(
    client_id="cA", host="/10.0.0.7", connection=CONNECTION, principal="User:ANONYMOUS", software="librdkafka"
)
REAL = (
    b'Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":12,"requestApiVersion":3,'
    b'"correlationId":5,"clientId":"cA","requestApiKeyName":"HEARTBEAT"},"request":{"groupId":"g1",'
    b'"generationId":1,"memberId":"cA-ca3b18a3-a3f6-4c3f-a3e3-e97c3daff200","groupInstanceId":null},'
    b'"response":{"throttleTimeMs":0,"errorCode":0},"connection":"127.0.0.1:39192-127.0.0.1:55350-0-3",'
    b'"totalTimeMs":5.079,"requestQueueTimeMs":0.784,"localTimeMs":3.345,"remoteTimeMs":0.0,"throttleTimeMs":0,'
    b'"responseQueueTimeMs":0.396,"sendTimeMs":0.553,"securityProtocol":"PLAINTEXT",'
    b'"principal":"User:ANONYMOUS","listener":"PLAINTEXT","clientInformation":{"softwareName":"unknown",'
    b'"softwareVersion":"unknown"}} (kafka.request.logger)'
)


def line(api: int, request: Any, response: Any, **more: Any) -> bytes:
    """Return a line in the order in which brokers write the fields."""
    fields = {
        "isForwarded": False,
        "requestHeader": {"requestApiKey": api, "requestApiVersion": 3, "correlationId": 1, "clientId": "cA"},
        "request": request,
        "response": response,
        "connection": CONNECTION,
        "totalTimeMs": 3023.4,
        "principal": "User:ANONYMOUS",
        "clientInformation": {"softwareName": "librdkafka", "softwareVersion": "2.6.0"},
        **more,
    }
    return b"Completed request:" + json.dumps(fields, separators=(",", ":")).encode()


def test_real_heartbeat() -> None:
    """A heartbeat of a real broker, with the logger's name behind it."""
    client = Client(
        client_id="cA",
        host="/127.0.0.1",
        connection="127.0.0.1:39192-127.0.0.1:55350-0-3",
        principal="User:ANONYMOUS",
        software="unknown",
    )
    beat = Heartbeats(group="g1", member_id=MEMBER, generation=1, error_code=0, times=(AT,), client=client)

    assert parse_request_line(REAL, AT) == Answered("heartbeat", (beat,))


JOIN = {"groupId": "g", "sessionTimeoutMs": 6000, "memberId": "", "protocolType": "consumer"}
CASES = [
    pytest.param(
        11,
        {
            **JOIN,
            "rebalanceTimeoutMs": 5000,
            "groupInstanceId": "i",
            "protocols": [{"name": "range", "metadata": "AAE="}],
            "reason": "why",
        },
        {
            "throttleTimeMs": 0,
            "errorCode": 0,
            "generationId": 4,
            "protocolType": "consumer",
            "protocolName": "range",
            "leader": MEMBER,
            "skipAssignment": False,
            "memberId": MEMBER,
            "members": [{"memberId": MEMBER, "groupInstanceId": "i", "metadata": "AAE="}, {"memberId": "b"}],
        },
        "join_group",
        (
            JoinAnswered(
                group="g",
                member_id=MEMBER,
                error_code=0,
                generation=4,
                leader_id=MEMBER,
                arrived_at_ms=AT - 3023,
                instance_id="i",
                session_timeout_ms=6000,
                rebalance_timeout_ms=5000,
                protocol_type="consumer",
                protocol="range",
                reason="why",
                member_ids=(MEMBER, "b"),
                client=CLIENT,
                protocols=("range",),
            ),
        ),
        id="the-leader-joins-version-9",
    ),
    pytest.param(
        11,
        JOIN,
        {
            "errorCode": 79,
            "generationId": -1,
            "protocolName": "",
            "leader": "",
            "memberId": MEMBER,
            "members": [],
        },
        "join_group",
        (
            JoinAnswered(
                group="g",
                member_id=MEMBER,
                error_code=79,
                generation=-1,
                leader_id="",
                arrived_at_ms=AT - 3023,
                session_timeout_ms=6000,
                rebalance_timeout_ms=6000,
                protocol_type="consumer",
                protocol="",
                client=CLIENT,
            ),
        ),
        id="an-id-is-handed-out-version-0",
    ),
    pytest.param(
        14,
        {"groupId": "g", "generationId": 4, "memberId": MEMBER, "assignments": [{"memberId": MEMBER}]},
        {"errorCode": 27, "assignment": ""},
        "sync_group",
        (
            SyncAnswered(
                group="g",
                member_id=MEMBER,
                error_code=27,
                generation=4,
                arrived_at_ms=AT - 3023,
                by_leader=True,
                client=CLIENT,
            ),
        ),
        id="the-leader-syncs",
    ),
    pytest.param(
        13,
        {"groupId": "g", "memberId": MEMBER},
        {"errorCode": 25},
        "leave_group",
        (LeaveAnswered(group="g", member_id=MEMBER, error_code=25, client=CLIENT),),
        id="a-member-leaves-version-0",
    ),
    pytest.param(
        13,
        {
            "groupId": "g",
            "members": [
                {"memberId": MEMBER, "groupInstanceId": None, "reason": "bye"},
                {"memberId": "", "groupInstanceId": "i"},
            ],
        },
        {
            "errorCode": 0,
            "members": [{"memberId": MEMBER, "errorCode": 0}, {"memberId": "", "errorCode": 25}],
        },
        "leave_group",
        (
            LeaveAnswered(group="g", member_id=MEMBER, error_code=0, reason="bye", client=CLIENT),
            LeaveAnswered(group="g", member_id="", error_code=25, instance_id="i", client=CLIENT),
        ),
        id="two-members-leave-version-5",
    ),
    pytest.param(
        8,
        {"groupId": "g", "generationIdOrMemberEpoch": 4, "memberId": MEMBER, "topics": [{"name": "t"}]},
        {
            "topics": [
                {"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": 12}, {"partitionIndex": 1}]},
                {"name": "u", "partitions": [{"partitionIndex": 0, "errorCode": 22}]},
            ]
        },
        "offset_commit",
        (
            CommitsAnswered(
                group="g", member_id=MEMBER, generation=4, error_code=22, times=(AT,), client=CLIENT
            ),
        ),
        id="a-commit-is-refused",
    ),
    pytest.param(
        28,
        {
            "transactionalId": "x",
            "groupId": "g",
            "producerId": 4001,
            "producerEpoch": 0,
            "generationId": 4,
            "memberId": MEMBER,
            "groupInstanceId": "i",
            "topics": [
                {
                    "name": "t",
                    "partitions": [
                        {"partitionIndex": 0, "committedOffset": 7, "committedMetadata": ""},
                        {"partitionIndex": 1, "committedOffset": 8, "committedMetadata": ""},
                    ],
                }
            ],
        },
        {
            "topics": [
                {
                    "name": "t",
                    "partitions": [
                        {"partitionIndex": 0, "errorCode": 0},
                        {"partitionIndex": 1, "errorCode": 12},
                    ],
                }
            ]
        },
        "txn_offset_commit",
        (
            TransactionalCommit(
                group="g",
                member_id=MEMBER,
                generation=4,
                error_code=12,
                producer_id=4001,
                offsets=(("t", 0, 7),),
                client=CLIENT,
                instance_id="i",
            ),
        ),
        id="a-commit-in-a-transaction",
    ),
    pytest.param(
        27,
        {
            "markers": [
                {
                    "producerId": 4001,
                    "producerEpoch": 0,
                    "transactionResult": False,
                    "topics": [
                        {"name": "__consumer_offsets", "partitionIndexes": [3, 4]},
                        {"name": "payments", "partitionIndexes": [3]},
                    ],
                    "coordinatorEpoch": 0,
                }
            ]
        },
        {
            "markers": [
                {
                    "producerId": 4001,
                    "topics": [
                        {
                            "name": "__consumer_offsets",
                            "partitions": [
                                {"partitionIndex": 3, "errorCode": 0},
                                {"partitionIndex": 4, "errorCode": 16},
                            ],
                        },
                        {"name": "payments", "partitions": [{"partitionIndex": 3, "errorCode": 0}]},
                    ],
                }
            ]
        },
        "write_txn_markers",
        (TransactionEnded(producer_id=4001, committed=False, partition=3),),
        id="a-transaction-ends-where-its-marker-was-written",
    ),
    pytest.param(
        42,
        {"groupsNames": ["g", "h"]},
        {"results": [{"groupId": "g", "errorCode": 0}, {"groupId": "h", "errorCode": 68}]},
        "delete_groups",
        (DeleteAnswered(group="g", error_code=0), DeleteAnswered(group="h", error_code=68)),
        id="groups-are-deleted",
    ),
    pytest.param(
        68,
        {"groupId": "g"},
        {"errorCode": 0},
        "consumer_group_heartbeat",
        (LogNoted(kind="consumer_group_heartbeat"),),
        id="a-kip-848-heartbeat",
    ),
    pytest.param(
        68,
        {"groupId": "g", "memberId": "m", "memberEpoch": 4, "instanceId": "i", "topicPartitions": None},
        {"errorCode": 0, "memberId": "m", "memberEpoch": 4, "heartbeatIntervalMs": 5000, "assignment": None},
        "consumer_group_heartbeat",
        (
            Heartbeats(
                group="g",
                member_id="m",
                generation=4,
                error_code=0,
                times=(AT,),
                client=CLIENT,
                instance_id="i",
                protocol="consumer",
            ),
        ),
        id="a-member-of-a-consumer-group-lives",
    ),
    pytest.param(
        76,
        {"groupId": "g", "memberId": "m", "memberEpoch": 0, "subscribedTopicNames": ["t"]},
        {"errorCode": 0, "memberId": "m", "memberEpoch": 2, "heartbeatIntervalMs": 5000},
        "share_group_heartbeat",
        (
            EpochAnswered(
                group="g",
                protocol="share",
                member_id="m",
                asked=0,
                epoch=2,
                error_code=0,
                arrived_at_ms=AT - 3023,
                interval_ms=5000,
                client=CLIENT,
            ),
        ),
        id="a-member-of-a-share-group-joins",
    ),
    pytest.param(
        88,
        {"groupId": "g", "memberId": "m", "memberEpoch": 3, "topology": None},
        {"errorCode": 110, "memberId": "", "memberEpoch": 0, "heartbeatIntervalMs": 0},
        "streams_group_heartbeat",
        (
            EpochAnswered(
                group="g",
                protocol="streams",
                member_id="m",
                asked=3,
                epoch=0,
                error_code=110,
                arrived_at_ms=AT - 3023,
                interval_ms=0,
                client=CLIENT,
            ),
        ),
        id="a-member-of-a-streams-group-is-fenced",
    ),
    pytest.param(1, {"any": "fetch"}, {}, "other_api", (), id="a-fetch"),
]


@pytest.mark.parametrize(
    ("waited_ms", "total_ms", "at_ms"),
    [(0.0, 2.0, AT), (999.4, 1_003.0, AT), (0.0, 9_000.2, AT), (9_000.2, 9_002.0, AT - 9_000)],
)
def test_heartbeats_that_waited_count_from_when_they_came(
    waited_ms: float, total_ms: float, at_ms: int
) -> None:
    """So does the coordinator, which answers late while a replica is missed; not one that was busy."""
    asked = {"groupId": "g", "generationId": 1, "memberId": MEMBER, "groupInstanceId": None}
    times = {"totalTimeMs": total_ms, "remoteTimeMs": waited_ms}
    _, (beat,) = parse_request_line(line(12, asked, {"errorCode": 0}, **times), AT)

    assert isinstance(beat, Heartbeats)
    assert beat.times == (at_ms,)


def _committed(error_code: int) -> tuple[Any, Any]:
    asked = {"groupId": "g", "generationIdOrMemberEpoch": 1, "memberId": MEMBER, "topics": []}
    parts = [{"partitionIndex": 0, "errorCode": error_code}]
    return asked, {"topics": [{"name": "t", "partitions": parts}]}


def _beaten(error_code: int) -> tuple[Any, Any]:
    return {"groupId": "g", "generationId": 1, "memberId": MEMBER}, {"errorCode": error_code}


def _synced(error_code: int) -> tuple[Any, Any]:
    asked = {"groupId": "g", "generationId": 1, "memberId": MEMBER, "assignments": []}
    return asked, {"errorCode": error_code, "assignment": ""}


@pytest.mark.parametrize(("api", "said"), [(8, _committed), (12, _beaten), (14, _synced)])
def test_writes_that_were_not_replicated_concern_the_shard(api: int, said: Any) -> None:
    """An answer after 5 s is of a coordinator that waits for a replica; at once, of one that goes down."""
    told = parse_request_line(
        line(api, *said(15), totalTimeMs=5_001.2, remoteTimeMs=5_000.1), AT
    ).observations
    stalls = [one for one in told if isinstance(one, ShardStalled)]

    assert stalls == [ShardStalled(group="g", since_ms=AT - 5_001)]
    for error_code, waited_ms in ((15, 3.0), (16, 5_001.2), (0, 4_000.0)):
        times = {"totalTimeMs": waited_ms + 1, "remoteTimeMs": waited_ms}
        told = parse_request_line(line(api, *said(error_code), **times), AT).observations
        assert not any(isinstance(one, ShardStalled) for one in told)


@pytest.mark.parametrize(("api", "request_", "response", "kind", "observations"), CASES)
def test_apis(
    api: int, request_: Any, response: Any, kind: str, observations: tuple[on.AnyObservation, ...]
) -> None:
    """Each group request says who asked what and what the answer was."""
    assert parse_request_line(line(api, request_, response), AT) == Answered(kind, observations)


@pytest.mark.parametrize(
    ("connection", "host"),
    [
        (CONNECTION, "/10.0.0.7"),
        ("127.0.0.1:9092-10.0.0.7:1-3", "/10.0.0.7"),
        ("0:0:0:0:0:0:0:1:9092-fe80:0:0:0:0:0:0:2%br-12:55350-0-3", "/fe80:0:0:0:0:0:0:2%br-12"),
        ("", ""),
        ("nonsense", ""),
    ],
)
def test_hosts(connection: str, host: str) -> None:
    """The remote host is spelled as in group metadata records, IPv6 and scopes included."""
    assert host_of(connection) == host


@pytest.mark.parametrize("place", range(4))
def test_a_sender_is_one_object_unless_its_texts_are_long(place: int) -> None:
    """Whoever is refused may name itself anew with each request, in 32,767 characters."""
    texts = ["cA", CONNECTION, "User:ANONYMOUS", "librdkafka"]
    assert client_of(*texts) is client_of(*texts) == CLIENT
    texts[place] = "x" * 32_767
    assert client_of(*texts) == client_of(*texts)
    assert client_of(*texts) is not client_of(*texts)


@pytest.mark.parametrize(
    ("codes", "worst"), [(set(), 0), ({0}, 0), ({0, 3}, 3), ({12, 27}, 27), ({22, 25, 82}, 82)]
)
def test_worst_errors(codes: set[int], worst: int) -> None:
    """Of several errors in one commit, what concerns the member counts before what concerns a partition."""
    assert worst_error(codes) == worst


BEAT = {"groupId": "g", "generationId": 1, "memberId": "m"}


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"Completed request:RequestHeader(apiKey=HEARTBEAT)", "request_not_json"),
        (b"Completed request:{}", "request_json_invalid"),
        (line(12, "", {"errorCode": 0}), "request_not_rendered"),
        (line(12, BEAT, ""), "request_not_rendered"),
        (line(12, BEAT, {"errorCode": 0})[:-40], "request_json_invalid"),
        (line(12, {**BEAT, "generationId": 2**31}, {"errorCode": 0}), "out_of_range"),
        (line(12, {**BEAT, "generationId": 1e300}, {"errorCode": 0}), "request_json_invalid"),
        (line(12, BEAT, {"errorCode": 10**30}), "out_of_range"),
        (line(12, BEAT, {"errorCode": 0}, totalTimeMs=float("inf")), "request_json_invalid"),
        (line(12, {**BEAT, "groupId": None}, {"errorCode": 0}), "request_json_invalid"),
        (line(12, {**BEAT, "groupId": "X"}, {}).replace(b'"X"', b'"\xff"'), "request_json_invalid"),
        (line(12, {**BEAT, "groupId": "X"}, {}).replace(b'"X"', b'"\\ud800"'), "request_json_invalid"),
    ],
)
def test_what_cannot_be_read(message: bytes, reason: str) -> None:
    """A line that cannot be read says why, in one of a few words."""
    with pytest.raises(RequestLineError) as error:
        parse_request_line(message, AT)

    assert error.value.reason == reason


def test_huge_leader_answer() -> None:
    """A leader's answer of ten megabytes is read."""
    members = [{"memberId": f"{MEMBER}{n}", "metadata": "A" * 2000} for n in range(5000)]
    message = line(
        11, JOIN, {"errorCode": 0, "generationId": 1, "leader": "l", "memberId": "l", "members": members}
    )

    (join,) = parse_request_line(message, AT).observations

    assert len(message) > 10_000_000
    assert isinstance(join, JoinAnswered)
    assert len(join.member_ids) == 5000


@settings(deadline=None)
@given(st.binary(), st.sampled_from([8, 11, 12, 13, 14, 27, 28, 42, 68, 99999]))
def test_no_bytes_raise_anything_else(tail: bytes, api: int) -> None:
    """Whatever follows, the line is read or refused with a reason."""
    start = b'Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":%d,' % api
    try:
        assert parse_request_line(start + tail, AT).kind
    except RequestLineError as error:
        assert error.reason.startswith("request_")  # noqa: PT017


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["groupId", "memberId", "members", "errorCode", "generationId", "topics", "results"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.sampled_from([8, 11, 12, 13, 14, 27, 28, 42]), _JSON, _JSON)
def test_no_shape_raises_anything_else(api: int, request_: Any, response: Any) -> None:
    """Whatever the shape of request and response, the observations can be packed."""
    try:
        answered = parse_request_line(line(api, request_, response), AT)
    except RequestLineError:
        return
    seen = [
        on.Seen(
            at_ms=AT,
            source=Source.REQUEST_LOG,
            partition=0,
            offset=0,
            index=index,
            broker=1,
            recorded_at_ms=AT,
            backlog=False,
            what=what,
        )
        for index, what in enumerate(answered.observations)
    ]

    assert on.unpack(on.pack(seen)) == seen
