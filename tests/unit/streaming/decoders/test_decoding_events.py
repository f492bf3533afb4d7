"""From rows of the events topic to cells of observations."""

import json
import re
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model import observations as on
from coordinator_model.kafka.hashing import shard_of
from coordinator_model.observations.base import CLUSTER_SHARD, GroupObservation, Source
from coordinator_model.observations.control import EventsClock, LogSeconds
from coordinator_model.observations.log import (
    GroupEmptied,
    GroupsDeleted,
    InstanceFenced,
    MemberFailed,
    RebalanceStarted,
    ShardLoaded,
    ShardLoading,
)
from coordinator_model.observations.requests import Client, CommitsAnswered, Heartbeats
from streaming.control.clock_records import sealed
from streaming.decoders import quiet_lines
from streaming.decoders.buffered_lines import LineReader
from streaming.decoders.clock_copies import CLOCK_KEY
from streaming.decoders.decoded import Decoded
from streaming.decoders.decoding_events import (
    SAMPLE_BYTES_MAX,
    Row,
    decode_lines,
    decode_rows,
)
from streaming.decoders.line_times import AHEAD_MAX_MS
from streaming.decoders.stretches import Coalesced

SHARDS = 5
AT = 1795218710925  # 2026-11-20 23:51:50.925 UTC
LOGS = Path(__file__).parents[3] / "golden" / "logs"
PREFIX = "[GroupCoordinator id=1 topic=__consumer_offsets partition=3] "
CLIENT = Client(
    client_id="cA",
    host="/10.0.0.7",
    connection="127.0.0.1:39192-10.0.0.7:55350-0-3",
    principal="User:ANONYMOUS",
    software="unknown",
)


def heartbeat(
    at_ms: int = AT,
    group: str = "g1",
    *,
    member: str = "cA-1",
    generation: int = 1,
    error: int = 0,
    instance: str | None = None,
) -> str:
    """Return a heartbeat line as brokers write it, on the 20th of November 2026 from 23:51:00 on."""
    since_ms = at_ms - 1795218660000
    text = [json.dumps(one, ensure_ascii=False) for one in (group, member, instance)]
    return (
        f"[2026-11-20 23:51:{since_ms // 1000:02d},{since_ms % 1000:03d}] DEBUG "
        'Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":12,"requestApiVersion":3,'
        '"correlationId":5,"clientId":"cA","requestApiKeyName":"HEARTBEAT"},'
        f'"request":{{"groupId":{text[0]},"generationId":{generation},"memberId":{text[1]},'
        f'"groupInstanceId":{text[2]}}},"response":{{"throttleTimeMs":0,"errorCode":{error}}},'
        '"connection":"127.0.0.1:39192-10.0.0.7:55350-0-3","totalTimeMs":5.079,"requestQueueTimeMs":0.784,'
        '"localTimeMs":3.345,"remoteTimeMs":0.0,"throttleTimeMs":0,"responseQueueTimeMs":0.396,'
        '"sendTimeMs":0.553,"securityProtocol":"PLAINTEXT","principal":"User:ANONYMOUS",'
        '"listener":"PLAINTEXT","clientInformation":{"softwareName":"unknown","softwareVersion":"unknown"}}'
        " (kafka.request.logger)"
    )


def row(
    text: str | bytes | None, offset: int = 0, stamp: int = AT, key: bytes | None = b"1", partition: int = 0
) -> Row:
    """Return one row of the events topic."""
    return partition, offset, stamp, key, text.encode() if isinstance(text, str) else text


def clock(offset: int, at_ms: int, partition: int = 0, shards: list[int] | None = None) -> Row:
    """Return one copy of the clock, for all shards or for some."""
    value = {"groupwatch": "clock", "at_ms": at_ms, "sequence": at_ms, "run": "r", "skew_ms": {"1": 20}}
    value["shards"] = shards
    return row(json.dumps(value), offset, at_ms, CLOCK_KEY, partition)


def decoded(*rows: Row, timezone: str = "UTC", **ends: int) -> Decoded:
    """Decode rows; ``p0=7`` puts the backlog's end of partition 0 at 7."""
    backlog_ends = {int(name[1:]): end for name, end in ends.items()}
    return decode_rows(rows, shard_count=SHARDS, backlog_ends=backlog_ends, timezone=timezone)


def said(result: Decoded, shard: int) -> list[Any]:
    """Return what a shard hears, without who spoke when."""
    return [seen.what for seen in result.cells.get(shard, []) if not isinstance(seen.what, LogSeconds)]


def beats(times: tuple[int, ...], **fields: Any) -> Heartbeats:
    """Return heartbeats of our usual member."""
    usual = {"group": "g1", "member_id": "cA-1", "generation": 1, "error_code": 0, "client": CLIENT}
    return Heartbeats(times=times, **{**usual, **fields})


def enveloped(line: str) -> str:
    """Return a line as a shipper may wrap it."""
    return json.dumps({"message": line})


@pytest.mark.parametrize("wrap", [str, enveloped])
def test_heartbeats_are_folded(wrap: Callable[[str], str]) -> None:
    """Heartbeats of one member with one answer become one observation, at its last time and offset."""
    rows = [
        row(wrap(heartbeat(AT + ms)), offset, AT + ms + 7) for offset, ms in ((10, 0), (11, 2000), (12, 1000))
    ]
    result = decoded(*rows)

    cell = result.cells[shard_of("g1", SHARDS)]
    expected = on.Seen(
        at_ms=AT + 2000,
        source=Source.REQUEST_LOG,
        partition=0,
        offset=12,
        index=0,
        broker=1,
        recorded_at_ms=AT + 1007,
        backlog=False,
        what=beats((AT, AT + 1000, AT + 2000)),
    )
    assert [seen for seen in cell if isinstance(seen.what, Heartbeats)] == [expected]
    assert result.counts == {("request_log", "heartbeat"): 3}
    assert result.bad == []


@pytest.mark.parametrize(
    "other", [{"group": "g2"}, {"member": "cA-2"}, {"generation": 2}, {"error": 27}, {"instance": "i"}]
)
def test_different_heartbeats_stay_apart(other: dict[str, Any]) -> None:
    """Another group, member, generation or answer is another observation."""
    result = decoded(row(heartbeat(), 1), row(heartbeat(**other), 2))

    runs = [what for shard in range(SHARDS) for what in said(result, shard)]
    assert sorted(len(run.times) for run in runs) == [1, 1]


def test_no_fold_across_a_clock() -> None:
    """What stands before a copy of the clock is not folded with what stands behind it."""
    result = decoded(
        row(heartbeat(AT), 1), clock(2, AT + 50), row(heartbeat(AT + 100), 3), clock(4, AT + 150)
    )

    ticks = [EventsClock(sequence=AT + ms, skew_ms={1: 20}) for ms in (50, 150)]
    assert said(result, shard_of("g1", SHARDS)) == [beats((AT,)), ticks[0], beats((AT + 100,)), ticks[1]]
    heard = [seen.offset for seen in result.cells[0] if isinstance(seen.what, LogSeconds)]
    assert heard == [1, 3]


def test_clock_reaches_every_shard() -> None:
    """A copy of the clock goes to all shards and the cluster's, and of idle copies only the newest."""
    result = decoded(clock(1, AT), clock(2, AT + 250), clock(3, AT + 500))

    for shard in range(CLUSTER_SHARD, SHARDS):
        assert said(result, shard) == [EventsClock(sequence=AT + 500, skew_ms={1: 20})]
    assert result.cells[0][0] is result.cells[1][0]
    assert result.counts == {("control", "events_clock"): 3}


def test_clock_for_some_shards_reaches_no_other() -> None:
    """While nothing happens only those that are due get it; it takes no other copy's place."""
    result = decoded(clock(1, AT), clock(2, AT + 250, shards=[-1, 2]), row(heartbeat(AT), 3))

    broad, narrow = EventsClock(sequence=AT, skew_ms={1: 20}), EventsClock(sequence=AT + 250, skew_ms={1: 20})
    for shard in set(range(CLUSTER_SHARD, SHARDS)) - {shard_of("g1", SHARDS)}:
        assert said(result, shard) == ([broad, narrow] if shard in (-1, 2) else [broad])


def test_broker_heard() -> None:
    """Every shard hears in which seconds a broker's request log spoke; the cluster's hears of both logs."""
    result = decoded(
        row(heartbeat(AT), 1),
        row(heartbeat(AT + 2000), 2),
        row(f"{PREFIX}Starting up.", 3, AT + 2500),
        row(f"{PREFIX}Startup complete.", 4, AT + 2600),
    )

    seconds = AT // 1000
    for shard in range(CLUSTER_SHARD, SHARDS):
        heard = [
            (seen.what, seen.at_ms, seen.offset)
            for seen in result.cells[shard]
            if isinstance(seen.what, LogSeconds)
        ]
        requests = LogSeconds(broker=1, heard=Source.REQUEST_LOG, seconds=(seconds, seconds + 2))
        coordinator = LogSeconds(broker=1, heard=Source.COORDINATOR_LOG, seconds=(seconds + 3,))
        assert heard[:1] == [(requests, seconds * 1000 + 2999, 2)]
        of_cluster = [(coordinator, (seconds + 3) * 1000 + 999, 4)]
        assert heard[1:] == (of_cluster if shard == CLUSTER_SHARD else [])


def test_backlog() -> None:
    """Rows before the end at the first start are backlog, and not folded with those behind it."""
    result = decoded(row(heartbeat(AT), 6), row(heartbeat(AT + 1000), 7), p0=7)

    cell = result.cells[shard_of("g1", SHARDS)]
    runs = [(seen.offset, seen.backlog) for seen in cell if isinstance(seen.what, Heartbeats)]
    assert runs == [(6, True), (7, False)]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(heartbeat(), id="fast"),
        pytest.param(heartbeat().replace(" (kafka.request.logger)", "\n"), id="without-logger"),
        pytest.param(heartbeat().replace('"isForwarded":false,', ""), id="another-order"),
        pytest.param(heartbeat().replace("DEBUG", "TRACE"), id="another-level"),
        pytest.param(heartbeat().replace("g1", "\\u00671"), id="escaped"),
        pytest.param(json.dumps({"message": heartbeat()}), id="envelope"),
    ],
)
def test_both_paths_agree(text: str) -> None:
    """A heartbeat says the same whether it is read by its bytes or as JSON."""
    assert said(decoded(row(text)), shard_of("g1", SHARDS)) == [beats((AT,))]


@settings(max_examples=200, deadline=None)
@given(
    group=st.text(),
    member=st.text(),
    instance=st.none() | st.text(),
    generation=st.integers(-(2**31), 2**31 - 1),
    error=st.integers(-1, 200),
)
def test_any_member_is_read_whole(
    group: str, member: str, instance: str | None, generation: int, error: int
) -> None:
    """Whatever the texts of a heartbeat, the observation repeats them."""
    line = heartbeat(AT, group, member=member, generation=generation, error=error, instance=instance)
    result = decoded(row(line))

    assert said(result, shard_of(group, SHARDS)) == [
        beats(
            (AT,),
            group=group,
            member_id=member,
            generation=generation,
            error_code=error,
            instance_id=instance,
        )
    ]


def test_time_of_a_bare_message() -> None:
    """A message without date and envelope has its record's time."""
    bare = heartbeat().partition("DEBUG ")[2].removesuffix(" (kafka.request.logger)")

    assert said(decoded(row(bare, stamp=AT + 5)), shard_of("g1", SHARDS)) == [beats((AT + 5,))]


@pytest.mark.parametrize("wrap", [str, enveloped])
def test_a_clock_that_is_ahead(wrap: Callable[[str], str]) -> None:
    """A line dated long after its record has the record's time, so that it cannot drag the shard's now."""
    stamp = AT - AHEAD_MAX_MS - 1

    assert said(decoded(row(wrap(heartbeat()), stamp=stamp)), shard_of("g1", SHARDS)) == [beats((stamp,))]


@pytest.mark.parametrize(("stamp", "hours"), [(AT - 3_600_000, 1), (AT, 0)])
def test_repeated_hour(stamp: int, hours: int) -> None:
    """In the hour that a zone repeats, both paths take the reading that is nearer to the record's time."""
    # 2026-10-25 02:51:50.925 in Berlin is 00:51:50.925 or 01:51:50.925 UTC.
    late = 1792893110925
    line = heartbeat().replace("2026-11-20 23", "2026-10-25 02")
    stamp = stamp - AT + late

    for text in (line, line.replace("DEBUG", "TRACE")):
        rows = (row(text, 1, stamp), row(text, 2, stamp))
        (run,) = said(decoded(*rows, timezone="Europe/Berlin"), shard_of("g1", SHARDS))
        assert run.times == (late - hours * 3_600_000,) * 2


def test_coordinator_line_goes_to_its_partition() -> None:
    """A coordinator line goes to the shard that its prefix names, also where it names no group."""
    fenced = "Request memberId=a for static member with groupInstanceId=i is fenced by existing memberId=b "
    result = decoded(row(f"{PREFIX}{fenced}during operation heartbeat", key=None))

    assert said(result, 3) == [
        InstanceFenced(member_id="a", instance_id="i", by_member_id="b", operation="heartbeat")
    ]
    assert [seen.broker for seen in result.cells[3]] == [1]
    assert result.counts == {("coordinator_log", "instance_fenced"): 1}


def test_coordinator_that_moves_concerns_the_cluster() -> None:
    """Loading and unloading of a partition is told to its shard and to the cluster's."""
    line = "[GroupCoordinator id=1] Scheduling loading of metadata from __consumer_offsets-4 with epoch 9"
    result = decoded(row(line))

    assert said(result, 4) == said(result, CLUSTER_SHARD) == [ShardLoading(epoch=9)]


def test_a_sentence_that_nobody_knows() -> None:
    """A coordinator's line of another wording, of a new Kafka perhaps, is counted with a sample."""
    result = decoded(row(f"{PREFIX}Getting ready to rebalance group g."))

    (bad,) = result.bad
    assert (bad.reason, bad.count, bad.sample[-8:]) == ("unknown_sentence", 1, b"group g.")


def test_line_without_partition() -> None:
    """Without a partition a line goes by its group; without both it is counted as unroutable."""
    nameless = (
        "[GroupCoordinator 1]: Request memberId=a for static member with groupInstanceId=i is "
        "fenced by current "
        "memberId=b during operation heartbeat"
    )
    result = decoded(
        row("[GroupCoordinator 1]: Member m in group g has failed, removing it from the group"),
        row(nameless, 1),
    )

    assert said(result, shard_of("g", SHARDS)) == [MemberFailed(group="g", member_id="m")]
    assert result.counts == {("coordinator_log", "member_failed"): 1, ("coordinator_log", "unroutable"): 1}


def test_deleted_groups_without_partition() -> None:
    """Kafka 3 deletes groups of several partitions in one line: each shard that may hold one hears of it."""
    line = (
        "[GroupCoordinator 1]: The following groups were deleted: a, b, c. A total of 2 offsets were removed."
    )
    result = decoded(row(line))

    for name in ("a", "b", "c", "b, c", "a, b, c"):
        assert said(result, shard_of(name, SHARDS)) == [GroupsDeleted(names="a, b, c")]


def test_implausible_partition() -> None:
    """A partition beyond the shards is not believed."""
    line = f"{PREFIX}Group g with generation 4 is now empty.".replace("partition=3", "partition=99")

    assert said(decoded(row(line)), shard_of("g", SHARDS)) == [GroupEmptied(group="g", generation=4)]


def test_commits_are_folded() -> None:
    """Commits of one member with one answer become one observation."""
    line = (
        'Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":8,"requestApiVersion":8,'
        '"correlationId":1,"clientId":"cA"},'
        '"request":{"groupId":"g","generationIdOrMemberEpoch":4,"memberId":"m"},'
        '"response":{"topics":[{"name":"t","partitions":[{"partitionIndex":0,"errorCode":22}]}]}}'
    )
    result = decoded(row(line, 1, AT), row(line, 2, AT + 9))

    assert said(result, shard_of("g", SHARDS)) == [
        CommitsAnswered(
            group="g",
            member_id="m",
            generation=4,
            error_code=22,
            times=(AT, AT + 9),
            client=Client(client_id="cA"),
        )
    ]


def test_refused_commits_of_other_offsets_are_not_folded() -> None:
    """What is told of them must not depend on what stood beside them in a batch."""
    line = (
        'Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":8,"requestApiVersion":8,'
        '"correlationId":1,"clientId":"cA"},'
        '"request":{"groupId":"g","generationIdOrMemberEpoch":4,"memberId":"m","topics":'
        '[{"name":"t","partitions":[{"partitionIndex":0,"committedOffset":5}]}]},'
        '"response":{"topics":[{"name":"t","partitions":[{"partitionIndex":0,"errorCode":22}]}]}}'
    )
    other = line.replace('"committedOffset":5', '"committedOffset":6')
    result = decoded(row(line, 1, AT), row(other, 2, AT + 9), row(line, 3, AT + 20))

    told = [what for what in said(result, shard_of("g", SHARDS)) if isinstance(what, CommitsAnswered)]
    assert sorted((what.claims, what.times) for what in told) == [
        ((("t", 0, 5),), (AT, AT + 20)),
        ((("t", 0, 6),), (AT + 9,)),
    ]


def test_bad_rows_are_counted() -> None:
    """What cannot be read is counted by reason, exactly, with one bounded sample."""
    broken = b"\xff" * 1000
    not_text = heartbeat().encode().replace(b"g1", b"\xff1")
    result = decoded(
        row(None), row(broken, 1), row(broken, 2), row(not_text, 3), row("{}", 4), row("x", 5, key=CLOCK_KEY)
    )

    assert {(bad.origin, bad.reason): bad.count for bad in result.bad} == {
        ("events", "empty"): 1,
        ("events", "not_utf8"): 3,
        ("events", "envelope_without_message"): 1,
        ("events", "clock_invalid"): 1,
    }
    assert max(len(bad.sample) for bad in result.bad) == SAMPLE_BYTES_MAX


def test_other_lines_are_counted() -> None:
    """Lines of other loggers, stack traces and other requests are counted and make nothing."""
    fetch = (
        'Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":1,"requestApiVersion":17}}'
    )
    result = decoded(
        row("[2026-11-20 23:51:50,925] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)"),
        row("\tat kafka.Kafka.main(Kafka.scala)", 1),
        row(fetch, 2),
    )

    assert result.counts == {
        ("coordinator_log", "other"): 1,
        ("coordinator_log", "continuation"): 1,
        ("request_log", "other_api"): 1,
    }
    assert result.bad == []


def test_arrow_batch() -> None:
    """A batch of Arrow columns gives what its rows give."""
    rows = [row(heartbeat(AT + 10 * offset), offset) for offset in range(3)] + [clock(3, AT + 99)]
    types = (pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.binary())
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
    batch = pa.table(columns, ["partition", "offset", "timestamp_ms", "key", "value"])

    assert decode_lines(LineReader({}, "UTC").lines(batch), shard_count=SHARDS, timezone="UTC") == decoded(
        *rows
    )


_VALUES = (
    st.none()
    | st.binary()
    | st.text().map(str.encode)
    | st.text().map(lambda tail: (PREFIX + "Preparing to rebalance group " + tail).encode())
    | st.binary().map(lambda tail: heartbeat().encode()[:400] + tail)
    | st.tuples(st.integers(0, 800), st.binary(max_size=3)).map(
        lambda cut: heartbeat().encode()[: cut[0]] + cut[1] + heartbeat().encode()[cut[0] :]
    )
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(_VALUES, st.sampled_from([None, b"1", CLOCK_KEY, b"\xff"])), max_size=5))
def test_no_rows_raise(values: list[tuple[bytes | None, bytes | None]]) -> None:
    """Whatever the rows, each is counted once, as read or as bad, and what is made of them can be packed."""
    result = decoded(*(row(value, offset, key=key) for offset, (value, key) in enumerate(values)))

    assert sum(result.counts.values()) + sum(bad.count for bad in result.bad) == len(values)
    for cell in result.cells.values():
        assert on.unpack(on.pack(cell)) == cell


_ROWS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["g1", "g2"]), st.sampled_from([0, 27]), st.sampled_from([str, enveloped])),
        st.none(),
    ),
    max_size=12,
)


@settings(max_examples=100, deadline=None)
@given(_ROWS, st.integers(0, 12))
def test_cuts_do_not_matter(steps: list[tuple[str, int, Callable[[str], str]] | None], cut: int) -> None:
    """Wherever the input is cut, the same heartbeats come out."""
    rows = [
        clock(offset, AT + offset)
        if step is None
        else row(step[2](heartbeat(AT + offset, step[0], error=step[1])), offset, AT + offset)
        for offset, step in enumerate(steps)
    ]

    assert sorted(_beats_in(decoded(*rows[:cut])) + _beats_in(decoded(*rows[cut:]))) == sorted(
        _beats_in(decoded(*rows))
    )


def _beats_in(result: Decoded) -> list[tuple[str, int, int, int]]:
    """Return each heartbeat on its own: group, error, time and partition."""
    return [
        (seen.what.group, seen.what.error_code, at_ms, seen.partition)
        for cell in result.cells.values()
        for seen in cell
        if isinstance(seen.what, Heartbeats)
        for at_ms in seen.what.times
    ]


# --- what a real broker wrote ------------------------------------------------------------------------


def golden(name: str) -> list[Row]:
    """Return the lines of a captured log as rows."""
    with (LOGS / name).open(encoding="utf-8", newline="\n") as lines:
        return [row(line, offset, 2**42) for offset, line in enumerate(lines)]


def test_real_coordinator_log() -> None:
    """Every coordinator line of a real broker is known, and each group is in the partition its line names."""
    result = decoded(*golden("kafka-4.3.1-server.log"))

    kinds = Counter(
        {kind: count for (source, kind), count in result.counts.items() if source == "coordinator_log"}
    )
    assert kinds["unrecognized"] == 0
    assert result.bad == []
    assert (kinds["rebalance_started"], kinds["join_phase_ended"], kinds["assignment_received"]) == (
        25,
        18,
        18,
    )
    assert (kinds["member_failed"], kinds["member_left"], kinds["instance_fenced"]) == (2, 12, 1)
    for shard, cell in result.cells.items():
        groups = {what.group for what in (seen.what for seen in cell) if isinstance(what, GroupObservation)}
        assert {shard_of(group, SHARDS) for group in groups} <= {shard}


def test_real_java_clients() -> None:
    """The reasons of real Java clients become causes, and a restarted broker's loading is understood."""
    result = decoded(*golden("kafka-4.3.1-server-java-clients.log"))

    started = [
        what.reason
        for what in said(result, shard_of("javagroup", SHARDS))
        if isinstance(what, RebalanceStarted)
    ]
    assert [reason.kind for reason in started] == [
        "member_joined",
        "member_joined",
        "partitions_changed",
        "member_joined",
        "session_timeout",
        "member_joined",
        "member_left",
    ]
    assert started[2].client_reason == "cached metadata has changed"
    assert result.counts["coordinator_log", "group_loaded"] == 6
    assert [type(what) for what in said(result, CLUSTER_SHARD)].count(ShardLoaded) == SHARDS
    assert ("coordinator_log", "unrecognized") not in result.counts


def test_real_request_log() -> None:
    """Every line of a real broker's request log is read, heartbeats without escapes by their bytes."""
    rows = golden("kafka-4.3.1-request.log")
    result = decoded(*rows)

    heartbeats = [value for *_, value in rows if value and b'"HEARTBEAT"' in value]
    slow = [value for value in heartbeats if not quiet_lines.LINE.fullmatch(value)]
    groups = {
        seen.what.group
        for cell in result.cells.values()
        for seen in cell
        if isinstance(seen.what, GroupObservation)
    }
    assert result.bad == []
    assert result.counts["request_log", "heartbeat"] == len(heartbeats) > 0
    assert all(b"\\" in value for value in slow)
    assert groups >= {"g1", "static", "slow", "группа-日本", '[Group x] Member y "quoted" `tick` (b), c'}


SEAL = "hush"


def _copy(offset: int, at_ms: int, stamp: int, /, **changes: object) -> Row:
    value = {"groupwatch": "clock", "at_ms": at_ms, "sequence": at_ms, "run": "r", "skew_ms": {}} | changes
    return row(json.dumps(value), offset, stamp, CLOCK_KEY)


def _clocks_of_run(*rows: Row, secret: str = "") -> tuple[list[int], dict[str, int]]:
    result = decode_rows(rows, shard_count=1, backlog_ends={}, timezone="UTC", run="r", secret=secret)
    told = [seen.at_ms for seen in result.cells.get(0, []) if isinstance(seen.what, EventsClock)]
    return told, {bad.reason: bad.count for bad in result.bad}


def test_copies_of_another_run_tell_nothing() -> None:
    """A second groupwatch on the same topics has a clock of its own, perhaps a minute ahead."""
    beats = [row(heartbeat(AT + 10 * n), 3 * n) for n in range(1, 4)]
    other = [_copy(3 * n + 1, AT + 59_000, AT, run="other") for n in range(1, 4)]
    told, bad = _clocks_of_run(_copy(1, AT, AT), *beats, *other, _copy(99, AT + 500, AT + 500))
    assert (told, bad) == ([AT, AT + 500], {})


def test_a_copy_far_from_its_append_is_refused() -> None:
    """One of the future would make each line behind it late by years; one of the past proves nothing."""
    rows = [
        _copy(1, AT, AT),
        _copy(2, AT + 61_000, AT + 1),
        _copy(3, 4 * 10**12, AT + 1),
        _copy(4, AT, AT + 61_000),
    ]
    assert _clocks_of_run(*rows) == ([AT], {"clock_refused": 3})


def test_a_copy_tells_how_far_its_leader_is_off() -> None:
    """A broker five minutes slow stamps each copy with its own time; the lane must not stand still for it."""
    assert _clocks_of_run(_copy(1, AT, AT - 300_000, lead_ms=-300_000)) == ([AT], {})


@pytest.mark.parametrize(
    "changes", [{"at_ms": 10**30}, {"sequence": 2**64}, {"skew_ms": {"1": 2**64}}, {"at_ms": -5}]
)
def test_a_copy_of_wild_numbers_is_set_aside(changes: dict[str, object]) -> None:
    """Beyond 64 bits nothing can be packed."""
    assert _clocks_of_run(_copy(1, AT, AT, **changes)) == ([], {"out_of_range": 1})


def test_a_copy_that_only_names_our_run_is_refused() -> None:
    """The name stands in each copy; what seals ours is in the checkpoint."""
    forged = _copy(1, AT + 30_000, AT)
    ours = (0, 2, AT, CLOCK_KEY, sealed(_copy(2, AT, AT)[4] or b"", SEAL))
    assert _clocks_of_run(forged, ours, secret=SEAL) == ([AT], {"clock_refused": 1})


# --- values that cannot be ---------------------------------------------------------------------------------

_PARTITION = {"partitionIndex": 1, "committedOffset": 7, "committedMetadata": ""}
_REFUSED = {"topics": [{"name": "t", "partitions": [{"partitionIndex": 1, "errorCode": 22}]}]}
_MARKED = [{"name": "__consumer_offsets", "partitions": [{"partitionIndex": 1, "errorCode": 0}]}]
_TOPICS = [{"name": "t", "partitions": [_PARTITION]}]
_NAMED = {"groupId": "g", "generationId": 4, "memberId": "m", "groupInstanceId": None}


def _api_line(api: int, asked: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    header = {"requestApiKey": api, "requestApiVersion": 3, "correlationId": 1, "clientId": "cA"}
    return {"isForwarded": False, "requestHeader": header, "request": asked, "response": answer}


_MARKER = {"producerId": 5, "transactionResult": True}
REQUESTS: list[dict[str, Any]] = [
    json.loads(line.partition("Completed request:")[2].rpartition(" (")[0])
    for line in (LOGS / "kafka-4.3.1-request.log").read_text(encoding="utf-8").splitlines()
] + [
    _api_line(8, {**_NAMED, "topics": _TOPICS}, _REFUSED),
    _api_line(28, {**_NAMED, "producerId": 5, "topics": _TOPICS}, {"topics": _MARKED}),
    _api_line(
        27,
        {"markers": [{**_MARKER, "topics": [{"name": "__consumer_offsets", "partitionIndexes": [1]}]}]},
        {"markers": [{**_MARKER, "topics": _MARKED}]},
    ),
]
_NUMBERS: list[Any] = [2**31, -(2**31) - 1, 2**63, -(2**63) - 1, 2**64, 10**400, 1e300, 1.5, float("nan")]
_OTHERS: list[Any] = [True, None, "", "\0", "\ud800", "\udfff\ud800", "9" * 500, [], {}, [[[]]], {"name": {}}]
_WILD = st.sampled_from([*_NUMBERS, *_OTHERS, float("inf"), ["\ud800"]]) | st.recursive(
    st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=2), max_leaves=3
)


def _places(part: Any) -> list[tuple[Any, Any]]:
    """Return each place of a JSON value: what holds it, and its key or index."""
    keys = list(part) if isinstance(part, dict) else list(range(len(part))) if isinstance(part, list) else []
    return [(part, key) for key in keys] + [one for key in keys for one in _places(part[key])]


def _held_to_pack(text: str) -> Decoded:
    """Decode one line and pack what it gave; whatever it gave not is counted, with a sample."""
    result = decoded(row(text.encode("utf-8", "surrogatepass")))
    for cell in result.cells.values():
        assert on.unpack(on.pack(cell)) == cell
    assert sum(result.counts.values()) + sum(bad.count for bad in result.bad) >= 1
    assert all(bad.sample for bad in result.bad)
    return result


@settings(deadline=None)
@given(st.sampled_from(REQUESTS), st.lists(st.tuples(st.integers(0, 10**6), _WILD), min_size=1, max_size=3))
def test_requests_with_wild_values(line: dict[str, Any], changes: list[tuple[int, Any]]) -> None:
    """A request-log line of the right shape with any value anywhere can be packed, or is counted."""
    line = json.loads(json.dumps(line))
    for at, wild in changes:
        places = _places(line)
        holder, key = places[at % len(places)]
        holder[key] = deepcopy(wild)

    _held_to_pack(f"Completed request:{json.dumps(line, separators=(',', ':'))}")


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30, 10**400], ids=["max", "min", "30", "400"])
@pytest.mark.parametrize(
    ("line", "path"),
    [
        (REQUESTS[-3], ("request", "topics", 0, "partitions", 0, "committedOffset")),
        (REQUESTS[-3], ("request", "generationId")),
        (REQUESTS[-2], ("request", "producerId")),
        (REQUESTS[-2], ("request", "topics", 0, "partitions", 0, "committedOffset")),
        (REQUESTS[-1], ("request", "markers", 0, "producerId")),
        (REQUESTS[-1], ("response", "markers", 0, "producerId")),
    ],
)
def test_numbers_beyond_64_bits(line: dict[str, Any], path: tuple[str | int, ...], number: int) -> None:
    """They ended the query for ever: msgpack cannot carry them. Now they are out of range, with a sample."""
    line = json.loads(json.dumps(line))
    part: Any = line
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = number

    result = _held_to_pack(f"Completed request:{json.dumps(line, separators=(',', ':'))}")

    assert [(bad.reason, bad.count) for bad in result.bad] == [("out_of_range", 1)]
    assert {type(seen.what) for cell in result.cells.values() for seen in cell} == {LogSeconds}


def test_an_epoch_beyond_32_bits() -> None:
    """So is a forged epoch of a coordinator's line."""
    line = f"Finished loading of metadata from __consumer_offsets-1 with epoch {'9' * 400} in 1ms where x"
    result = _held_to_pack(PREFIX + line)

    assert [(bad.reason, bad.count) for bad in result.bad] == [("out_of_range", 1)]
    assert result.bad[0].sample.decode().startswith(PREFIX)


SENTENCES = [
    line
    for version in ("4.3.1", "3.9.2")
    for line in (LOGS / f"sentences-{version}.log").read_text(encoding="utf-8").splitlines()
]


_DIGITS = st.integers().map(str) | st.sampled_from(["9" * 11, "9" * 5_000, "-1", "00"])


@settings(deadline=None)
@given(st.sampled_from(SENTENCES), st.integers(0, 99), _DIGITS, st.text(max_size=5))
def test_coordinator_lines_with_wild_values(line: str, at: int, digits: str, name: str) -> None:
    """A real coordinator line with any number and any name in it can be packed, or is counted."""
    numbers = list(re.finditer(r"(?<=[ =-])\d+", line[30:]))
    if numbers:
        one = numbers[at % len(numbers)]
        line = line[: 30 + one.start()] + digits + line[30 + one.end() :]

    _held_to_pack(line.replace("duel", name or "duel"))


def test_what_is_coalesced_is_what_the_model_lets_coalesce() -> None:
    """The decoder and the model's traits name the same observations."""
    assert set(get_args(Coalesced)) == on.COALESCED


def test_lines_of_a_shard_that_moves_go_to_the_cluster_too() -> None:
    """A failover concerns the cluster; whether a line does, its traits say."""
    lines = {one for one in on.TRAITS if one.__module__.endswith("observations.log")}
    for_cluster = {one for one in lines if on.Concerns.CLUSTER in on.TRAITS[one].concerns}

    assert for_cluster == {on.ShardLoading, on.ShardLoaded, on.ShardUnloaded}
