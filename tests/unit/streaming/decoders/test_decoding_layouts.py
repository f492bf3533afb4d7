"""Rows of the events topic in other layouts than Kafka's own, and lines that imitate others."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from coordinator_model.kafka.hashing import shard_of
from coordinator_model.observations.base import CLUSTER_SHARD, GroupObservation
from coordinator_model.observations.log import MemberFailed
from streaming.decoders.decoded import Decoded
from streaming.decoders.decoding_events import Row, decode_rows

SHARDS = 50
AT = 1795218710925  # 2026-11-20 23:51:50.925 UTC
LOGGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"


def sentence(group: str = "g", member: str = "m", partition: int | None = None) -> str:
    """Return what a broker says of a member that has failed."""
    home = shard_of(group, SHARDS) if partition is None else partition
    return (
        f"[GroupCoordinator id=1 topic=__consumer_offsets partition={home}] "
        f"Member {member} in group {group} has failed, removing it from the group."
    )


def leave_answer() -> str:
    """Return what the request log says of a member that leaves."""
    name = {"requestApiKey": 13, "requestApiVersion": 5, "clientId": "c", "requestApiKeyName": "LEAVE_GROUP"}
    told = {
        "isForwarded": False,
        "requestHeader": name,
        "request": {"groupId": "g", "members": [{"memberId": "m"}]},
        "response": {"errorCode": 0, "members": [{"memberId": "m", "errorCode": 0}]},
        "connection": "10.0.0.1:9092-10.0.0.2:4242-0",
        "totalTimeMs": 1.0,
    }
    return f"Completed request:{json.dumps(told, separators=(',', ':'))}"


def line(message: str, tail: str = "") -> str:
    """Return a line in Kafka's own pattern."""
    return f"[2026-11-20 23:51:50,925] INFO {message} ({LOGGER}){tail}"


def decoded(*values: str | bytes, stamps: Sequence[int] = ()) -> Decoded:
    """Decode rows of one partition, written a second after their lines."""
    rows: list[Row] = [
        (
            0,
            offset,
            stamps[offset] if stamps else AT + 1_000,
            None,
            value.encode() if isinstance(value, str) else value,
        )
        for offset, value in enumerate(values)
    ]
    return decode_rows(rows, shard_count=SHARDS, backlog_ends={}, timezone="UTC")


def said(result: Decoded) -> list[tuple[int, int, int, Any]]:
    """Return what all shards hear of groups, with its place."""
    return sorted(
        (seen.offset, seen.index, seen.at_ms, seen.what)
        for shard, cell in result.cells.items()
        if shard != CLUSTER_SHARD
        for seen in cell
        if isinstance(seen.what, GroupObservation)
    )


def bad(result: Decoded) -> dict[str, int]:
    """Return how many lines could not be read, by reason."""
    return {one.reason: one.count for one in result.bad}


def failed(member: str, group: str = "g") -> MemberFailed:
    """Return what such a line says."""
    return MemberFailed(group=group, member_id=member)


def test_many_lines_in_one_record() -> None:
    """Lines of one record keep their order, each with a place of its own."""
    batch = json.dumps([line(sentence(member=f"m{number}")) for number in range(3)])

    assert said(decoded(batch)) == [(0, number, AT, failed(f"m{number}")) for number in range(3)]


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        (line(sentence()), False),
        (f"2026-11-20 23:51:50 INFO  [x] GroupMetadataManager:612 - {sentence()}", True),
        (f"2026-11-20 23:51:50 DEBUG [x] logger:283 - {leave_answer()}", True),
        (f"2026-11-20 23:51:50,925 DEBUG [x] logger:283 - {leave_answer()}", False),
        (json.dumps({"message": sentence(), "timestamp": "2026-11-20T23:51:50Z"}), True),
        (json.dumps({"message": sentence(), "timestamp": "2026-11-20T23:51:50.9Z"}), False),
        (sentence(), False),
    ],
)
def test_what_is_told_in_whole_seconds_is_marked(text: str, is_whole: bool) -> None:
    """The groups must know how far an age can be believed, whether a line or its envelope tells it."""
    told = (one for cell in decoded(text).cells.values() for one in cell)

    assert [one.is_whole for one in told if isinstance(one.what, GroupObservation)] == [is_whole]


def test_unknown_layouts_are_counted() -> None:
    """A line that nobody understands is counted with a sample; other loggers' and stack traces are not."""
    unknown = f"node=1 rack=a {sentence()}"
    result = decoded(
        unknown,
        "no header at all",
        json.dumps({"message": unknown, "timestamp": "2026-11-20T23:51:51Z"}),
        "[2026-11-20 23:51:50,925] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
        f"[2026-11-20 23:51:50,925] WARN Failed for {sentence()} (kafka.network.SocketServer)",
        "\tat kafka.Kafka.main(Kafka.scala)",
    )

    assert said(result) == []
    assert bad(result) == {"unknown_layout": 3}
    assert result.bad[0].sample == unknown.encode()
    assert result.counts == {("coordinator_log", "other"): 2, ("coordinator_log", "continuation"): 1}


def cri(text: str, tag: str, stream: str = "stdout") -> str:
    """Return a part of a line as a container runtime writes it."""
    return f"2026-11-20T23:51:51.1Z {stream} {tag} {text}"


@pytest.mark.parametrize("in_one_record", [True, False])
def test_parts_of_a_line_are_joined(in_one_record: bool) -> None:
    """A line that a container runtime has cut is one line again, whatever the other stream says meanwhile."""
    whole = line(sentence(member="m" * 40_000))
    parts = [
        cri(whole[:16_384], "P"),
        cri(whole[16_384:32_768], "P"),
        cri("x", "F", "stderr"),
        cri(whole[32_768:], "F"),
    ]
    result = decoded("\n".join(parts)) if in_one_record else decoded(*parts)

    assert [(at_ms, what) for _, _, at_ms, what in said(result)] == [(AT, failed("m" * 40_000))]
    assert result.counts["events", "line_part"] == 2


def test_parts_in_envelopes_are_joined() -> None:
    """Fluent Bit and Docker say in their own ways that a line goes on."""
    whole = line(sentence(member="m" * 20_000))
    for first, rest in (
        (
            {"log": whole[:16_384], "stream": "stdout", "time": "x"},
            {"stream": "stdout", "time": "x"},
        ),
        ({"log": whole[:16_384], "logtag": "P"}, {"logtag": "F"}),
    ):
        result = decoded(json.dumps(first), json.dumps({"log": whole[16_384:] + "\n", **rest}))
        assert [what for *_, what in said(result)] == [failed("m" * 20_000)]


def test_parts_of_two_brokers_are_not_joined() -> None:
    """Where the envelope names the broker, each has a line of its own under way in one partition."""
    long = line(sentence(member="m" * 20_000))
    result = decoded(
        json.dumps({"log": long[:16_384], "broker": 1, "logtag": "P"}),
        json.dumps({"log": line(sentence(member="short")), "broker": 2, "logtag": "F"}),
        json.dumps({"log": long[16_384:], "broker": 1, "logtag": "F"}),
    )

    whats = [what for *_, what in said(result)]
    assert len(whats) == 2
    assert failed("m" * 20_000) in whats
    assert failed("short") in whats


LONG = "m" * 20_000


def keyed(*records: tuple[bytes | None, str]) -> Decoded:
    """Decode records of one partition, each with its key."""
    rows: list[Row] = [
        (0, offset, AT + 1_000, key, value.encode()) for offset, (key, value) in enumerate(records)
    ]
    return decode_rows(rows, shard_count=SHARDS, backlog_ends={}, timezone="UTC")


def cut(member: str) -> tuple[str, str]:
    """Return both parts of a long line."""
    whole = line(sentence(member=member))
    return whole[:16_384], whole[16_384:]


def two_writers() -> list[tuple[int, str, str]]:
    """Return (writer, tag, text) of two long lines that come mixed."""
    ones, others = cut(f"one{LONG}"), cut(f"other{LONG}")
    return [(1, "P", ones[0]), (2, "P", others[0]), (1, "F", ones[1]), (2, "F", others[1])]


def test_parts_of_two_writers_whom_nothing_names_are_not_joined() -> None:
    """Nobody knows whose rest comes first; what comes after both is read again."""
    short = line(sentence(member="short"))
    result = decoded(*(cri(text, tag) for _, tag, text in two_writers()), cri(short, "F"))

    assert [what for *_, what in said(result)] == [failed("short")]
    assert bad(result) == {"partial_line": 4}
    assert not any(source == "coordinator_log" and kind == "other" for source, kind in result.counts)


def test_a_line_between_the_parts_of_another_is_no_part_of_it() -> None:
    """It is counted, and not read by itself: it may be the rest, with a name that imitates a line."""
    first, rest = cut(LONG)
    between = line(sentence(member="between"))
    result = decoded(cri(first, "P"), cri(between, "F"), cri(rest, "F"), cri(between, "F"))

    assert [(offset, what) for offset, _, _, what in said(result)] == [(3, failed("between"))]
    assert bad(result) == {"partial_line": 3}


def test_no_cut_makes_a_line_of_a_name() -> None:
    """Whoever chooses a name knows where a runtime cuts."""
    head = line(sentence()).index("Member m") + len("Member ")
    empty = f"{sentence('victim').split(']')[0]}] Group victim with generation 3 is now empty."
    member = "m" * (16_384 - head) + line(empty) + "m" * 20_000
    whole = line(sentence(member=member))
    parts = [(whole[:16_384], "P"), (whole[16_384:32_768], "P"), (whole[32_768:], "F")]
    unnamed = decoded(*(cri(text, tag) for text, tag in parts))
    named = keyed(*((b"1", cri(text, tag)) for text, tag in parts))

    assert (said(unnamed), bad(unnamed)) == ([], {"partial_line": 3})
    assert [what for *_, what in said(named)] == [failed(member)]


def test_a_doubt_whose_rest_never_comes_ends_after_many_parts() -> None:
    """One line that was given up does not silence its partition."""
    first, _ = cut(LONG)
    short = [cri(line(sentence(member=f"m{n}")), "F") for n in range(150)]
    result = decoded(cri(first, "P"), *short)

    assert bad(result) == {"partial_line": 101}
    assert len(said(result)) == 50


PATH = "/var/log/pods/ns_kafka-%d_0f/kafka/0.log"


@pytest.mark.parametrize(
    "envelope",
    [
        pytest.param(lambda n, text, tag: {"message": cri(text, tag), "host": {"name": f"k{n}"}}, id="host"),
        pytest.param(
            lambda n, text, tag: {"message": cri(text, tag), "log": {"file": {"path": PATH % n}}}, id="file"
        ),
        pytest.param(
            lambda n, text, tag: {"log": text, "logtag": tag, "kubernetes": {"pod_name": f"k-{n}"}}, id="pod"
        ),
        pytest.param(
            lambda n, text, tag: (
                {"MESSAGE": text, "_PID": f"{n}", "_HOSTNAME": "h", "_STREAM_ID": f"{n}f"}
                | ({"_LINE_BREAK": "line-max"} if tag == "P" else {})
            ),
            id="journald",
        ),
        pytest.param(
            lambda n, text, tag: (
                {"message": text, "stream": "stdout", "file": PATH % n}
                | ({"_partial": True} if tag == "P" else {})
            ),
            id="vector",
        ),
        pytest.param(
            lambda n, text, tag: (
                {"MESSAGE": text, "CONTAINER_ID_FULL": f"{n}c", "CONTAINER_PARTIAL_ID": f"{n}p"}
                | ({"CONTAINER_PARTIAL_MESSAGE": "true"} if tag == "P" else {})
            ),
            id="docker-journald",
        ),
        pytest.param(
            lambda n, text, tag: {
                "log": text,
                "container_id": f"{n}c",
                "partial_message": "true",
                "partial_id": f"{n}p",
                "partial_last": str(tag == "F").lower(),
            },
            id="docker-fluentd",
        ),
    ],
)
def test_parts_of_two_writers_whom_their_envelopes_name_are_joined(envelope: Any) -> None:
    """Each finds its own rest, whether the last part is marked or not."""
    result = decoded(*(json.dumps(envelope(n, text, tag)) for n, tag, text in two_writers()))

    assert [what for *_, what in said(result)] == [failed(f"one{LONG}"), failed(f"other{LONG}")]
    assert bad(result) == {}


def test_parts_of_two_writers_whom_their_keys_name_are_joined() -> None:
    """The record key is the broker."""
    result = keyed(*((str(n).encode(), cri(text, tag)) for n, tag, text in two_writers()))

    assert [what for *_, what in said(result)] == [failed(f"one{LONG}"), failed(f"other{LONG}")]


def test_the_path_of_a_file_alone_names_no_writer() -> None:
    """Two machines have the same."""
    values = [
        json.dumps({"message": cri(text, tag), "log": {"file": {"path": "/var/log/kafka.log"}}})
        for _, tag, text in two_writers()
    ]
    assert said(decoded(*values)) == []


def test_a_whole_line_in_place_of_an_unmarked_rest_is_not_joined() -> None:
    """Journald lost the rest, or a name imitates a line: neither is read, and what follows is."""
    entry = {"_PID": "7", "_HOSTNAME": "h"}
    values = [
        {"MESSAGE": cut(LONG)[0], "_LINE_BREAK": "line-max", **entry},
        {"MESSAGE": line(sentence(member="next")), **entry},
        {"MESSAGE": line(sentence(member="after")), **entry},
    ]
    result = decoded(*map(json.dumps, values))

    assert [what for *_, what in said(result)] == [failed("after")]
    assert bad(result) == {"partial_line": 2}


def test_a_line_that_lies_across_two_batches_is_counted_once_for_each_part_of_the_first() -> None:
    """What comes in the second is no sentence."""
    whole = line(sentence(member="m" * 40_000))
    first = decoded(cri(whole[:16_384], "P"), cri(whole[16_384:32_768], "P"))
    second = decoded(cri(whole[32_768:], "F"), cri(line(sentence()), "F"))

    assert (said(first), bad(first)) == ([], {"partial_line": 2})
    assert ([what for *_, what in said(second)], bad(second)) == ([failed("m")], {})


def test_a_part_whose_rest_is_missing() -> None:
    """A line whose rest never came is counted, and what is left of it is no sentence."""
    result = decoded(cri(line(sentence())[:90], "P"))

    assert (said(result), bad(result)) == ([], {"partial_line": 1})


FORGED = (
    "evil\n[2026-11-20 23:51:50,925] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=3] "
    f"Group victim with generation 3 is now empty. ({LOGGER})\n[2026-11-20 23:51:50,925] INFO x"
)


def encoded(message: str) -> str:
    """Return a message as log4j2's %enc{%m}{CRLF} writes it."""
    return message.replace("\r", "\\r").replace("\n", "\\n")


def test_encoded_line_breaks_are_undone() -> None:
    """In the layouts that we ship a name comes back with its line breaks, and forges nothing."""
    result = decoded(line(encoded(sentence(member=FORGED)), " [CRLF]"))

    assert [what for *_, what in said(result)] == [failed(FORGED)]


def test_a_backslash_in_a_name() -> None:
    """The partition that a line names tells a group with a line break from one with a backslash and an n."""
    for group in ("a\nb", "a\\nb", "\\r\\n"):
        for tail in (" [CRLF]", ""):
            result = decoded(line(encoded(sentence(group)), tail))
            assert [what for *_, what in said(result)] == [failed("m", group)], (group, tail)


def test_other_layouts_keep_their_backslashes() -> None:
    """Where nothing says that line breaks were encoded, a member id is what the line says."""
    assert [what for *_, what in said(decoded(line(sentence(member="a\\nb"))))] == [failed("a\\nb")]


def test_shippers_time() -> None:
    """Lines in envelopes that are stamped when they were read have the times that they tell themselves."""
    rows = [
        json.dumps(
            {"log": line(sentence(member=str(number))).replace("50,925", f"50,{number:03d}"), "date": date}
        )
        for number, date in enumerate((1795218800.5, 1795218700.5, 1795218750))
    ]

    assert [at_ms for _, _, at_ms, _ in said(decoded(*rows))] == [AT - 925, AT - 924, AT - 923]


COMMIT = (
    'Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":8,"requestApiVersion":8,'
    '"correlationId":1,"clientId":"c"},"request":{"groupId":"g","generationIdOrMemberEpoch":4,"memberId":"m"},'
    '"response":{"topics":[{"name":"t","partitions":[{"partitionIndex":0,"errorCode":0}]}]}}'
)
JOIN = (
    'Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":11,"requestApiVersion":9,'
    '"correlationId":1,"clientId":"c"},"request":{"groupId":"g","sessionTimeoutMs":1,"rebalanceTimeoutMs":1,'
    '"memberId":"","groupInstanceId":null,"protocolType":"consumer","protocols":[]},"response":'
    '{"throttleTimeMs":0,"errorCode":0,"generationId":1,"protocolType":null,"protocolName":null,"leader":"m",'
    '"memberId":"m","members":[]},"totalTimeMs":1.0}'
)


@pytest.mark.parametrize("message", [COMMIT, JOIN, sentence()])
@pytest.mark.parametrize("stamp", [AT + 1_000, AT - 120_000, AT + 7_200_000])
def test_every_path_gives_the_same(message: str, stamp: int) -> None:
    """A line says the same at the same time, bare or in any envelope, however early or late its record is."""
    level = "DEBUG" if message.startswith("Completed") else "INFO"
    whole = f"[2026-11-20 23:51:50,925] {level} {message} (kafka.request.logger)"
    if level == "INFO":
        whole = line(message)
    others = (
        json.dumps({"message": whole, "timestamp": "2026-11-20T23:51:59Z"}),
        json.dumps([whole]),
        f"2026-11-20T23:51:59Z stdout F {whole}",
        f"2026-11-20 23:51:50,925 {level} [t] {LOGGER} - {message}",
        json.dumps({"timeMillis": AT, "level": level, "loggerName": "l", "message": message}),
    )
    expected = decoded(whole, stamps=[stamp])

    assert said(expected)
    for other in others:
        result = decoded(other, stamps=[stamp])
        assert (said(result), result.counts) == (said(expected), expected.counts), other
