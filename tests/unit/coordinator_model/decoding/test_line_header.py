"""Lines in the layouts that people have, bare and in what carries them."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model.decoding.line_header import read_header
from coordinator_model.decoding.line_text import Opened
from coordinator_model.decoding.log_envelope import EnvelopeError, open_lines

AT = 1795218710925  # 2026-11-20 23:51:50.925 UTC, a Friday
SECOND = AT - 925
READ = AT + 31_000
"""When a shipper that is behind reads the line."""
LOGGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"
THREAD = "group-coordinator-event-processor-1"
NETWORK_THREAD = "data-plane-kafka-network-thread-0-ListenerName(PLAIN-9092)-PLAINTEXT-3"
SENTENCE = (
    "[GroupCoordinator id=1 topic=__consumer_offsets partition=3] Preparing to rebalance group g in state "
    "PreparingRebalance with old generation 4 (reason: leader x re-joining group during Stable; "
    "client reason: INFO [a] (b) - [GroupCoordinator id=9] Startup complete.)."
)
REQUEST = 'Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":12}}'
SCALA = "[GroupCoordinator 1]: Member m in group g has failed, removing it from the group"
MESSAGES = (
    SENTENCE,
    REQUEST,
    SCALA,
    "[GroupMetadataManager brokerId=1] Finished x",
    "Group leader [member.id: m, x",
)

CLOCK = "2026-11-20 23:51:50,925"
ISO = "2026-11-20T23:51:50.925Z"

# What each pattern makes of {m}; with the second ones the line has whole seconds.
PATTERNS = {
    "kafka": f"[{CLOCK}] INFO {{m}} ({LOGGER})",
    "confluent": f"[INFO] {CLOCK} [{THREAD}] {LOGGER} lambda$classicGroupJoin$1 - {{m}}",
    "confluent-constructor": f"[INFO] {CLOCK} [{THREAD}] {LOGGER} <init> - {{m}}",
    "confluent-no-location": f"[INFO] {CLOCK} [{THREAD}] {LOGGER}  - {{m}}",
    "padded-level": f"{CLOCK} INFO  [{THREAD}] {LOGGER}:61 - {{m}}",
    "iso": f"{ISO} INFO [{THREAD}] {LOGGER} - {{m}}",
    "iso-offset": f"2026-11-21T00:51:50.925+01:00 [INFO ] [{THREAD}] k.c.g.GroupMetadataManager: {{m}}",
    "iso-offset-in-brackets": f"[2026-11-20T18:51:50,925-0500] INFO {{m}} ({LOGGER})",
    "space-before-offset": f"2026-11-20 18:51:50.925 -05:00 INFO {{m}} ({LOGGER})",
    "nanoseconds": f"2026-11-20T23:51:50.925123456Z INFO {{m}} ({LOGGER})",
    "epoch-milliseconds": f"{AT} INFO {LOGGER} - {{m}}",
    "epoch-seconds-with-fraction": f"[1795218710.925] [INFO] {LOGGER}: {{m}}",
    "basic": f"20261120 235150,925 INFO {LOGGER} - {{m}}",
    "compact": f"20261120235150925 INFO {LOGGER} - {{m}}",
    "date-in-words": f"20 Nov 2026 23:51:50,925 INFO {LOGGER} - {{m}}",
    "absolute": f"23:51:50,925 INFO  [{THREAD}] {LOGGER} - {{m}}",
    "spring": f"{CLOCK}  INFO 4711 --- [{THREAD}] o.a.k.c.g.GroupMetadataManager       : {{m}}",
    "elastic": f"[{CLOCK}][INFO ][o.a.k.c.g.GroupMetadataManager] [{THREAD}] {{m}}",
    "bars": f"{CLOCK} | INFO | {THREAD} | {LOGGER} | {{m}}",
    "thread-without-brackets": f"{CLOCK} {THREAD} INFO {LOGGER}: {{m}}",
    "thread-with-brackets-inside": f"{CLOCK} INFO [[x id=1] y z] {LOGGER} - {{m}}",
    "thread-then-message": f"[{CLOCK}] INFO [{THREAD}] {{m}} ({LOGGER})",
    "strimzi-before-log4j2": f"{CLOCK} INFO {{m}} ({LOGGER}) [{THREAD}]",
    "thread-at-the-end": f"[{CLOCK}] INFO {{m}} ({LOGGER}) [{NETWORK_THREAD}]",
    "line-behind": f"[{CLOCK}] INFO {{m}} ({LOGGER}:612)",
    "file-and-line": f"{CLOCK} INFO [{THREAD}] GroupMetadataManager(GroupMetadataManager.java:612) - {{m}}",
    "lower-case-level": f"{CLOCK} info [{THREAD}] {LOGGER} - {{m}}",
    "level-first": f"INFO [{CLOCK}] {LOGGER}: {{m}}",
    "colours": f"\x1b[36m[{CLOCK}]\x1b[0m \x1b[32mINFO\x1b[0m {{m}} ({LOGGER})\x1b[0m",
    "whole-line-coloured": f"\x1b[1;32m[{CLOCK}] INFO {{m}} ({LOGGER})\x1b[m",
    "context": f"{CLOCK} INFO {{}} [{THREAD}] {LOGGER} - {{m}}".replace("{}", "{broker=1, rack=a}"),
    "syslog": f"<134>Nov 20 23:51:50.925 kafka-0 kafka[4711]: INFO {{m}} ({LOGGER})",
    "journald": f"Nov 20 23:51:51 kafka-0 kafka[4711]: [{CLOCK}] INFO {{m}} ({LOGGER})",
    "journald-iso": f"2026-11-20T23:51:51+0000 kafka-0 kafka.sh[4711]: [{CLOCK}] INFO {{m}} ({LOGGER})",
    "journald-precise": f"2026-11-21T00:51:51.000002+01:00 k kafka[47]: [{CLOCK}] INFO {{m}} ({LOGGER})",
    "journald-full": f"Fri 2026-11-20 23:51:51 UTC kafka-0 kafka[4711]: [{CLOCK}] INFO {{m}} ({LOGGER})",
    "syslog-5424": f'<134>1 2026-11-20T23:51:51.003Z k-0 kafka 4711 ID47 [x@1 a="b c"] [{CLOCK}] INFO {{m}}'
    f" ({LOGGER})",
    "syslog-5424-plain": f"<134>1 {ISO} kafka-0 kafka 4711 - - {{m}}",
    "cri": f"2026-11-20T23:51:51.123456789Z stdout F [{CLOCK}] INFO {{m}} ({LOGGER})",
    "cri-with-offset": f"2026-11-21T00:51:51.123456789+01:00 stderr F [{CLOCK}] INFO {{m}} ({LOGGER})",
    "kubectl": f"[pod/kafka-0/kafka] 2026-11-20T23:51:51.123456789Z [{CLOCK}] INFO {{m}} ({LOGGER})",
    "compose": f"kafka-1  | [{CLOCK}] INFO {{m}} ({LOGGER})",
    "compose-coloured": f"\x1b[36mkafka-1  | \x1b[0m[{CLOCK}] INFO {{m}} ({LOGGER})",
    "stern": f"kafka-0 kafka [{CLOCK}] INFO {{m}} ({LOGGER})",
    "pod-before": f"kafka-0: [{CLOCK}] INFO {{m}} ({LOGGER})",
    "pod-before-a-date": f"kafka-0 {CLOCK} INFO {LOGGER} - {{m}}",
    "file-before": f"/var/log/kafka/server.log:17:[{CLOCK}] INFO {{m}} ({LOGGER})",
    "host-between": f"2026-11-20T23:51:51.000000+00:00 broker-1 [{CLOCK}] INFO {{m}} ({LOGGER})",
    "jboss": f"23:51:50,925 INFO  [{LOGGER}] ({THREAD}) {{m}}",
    "two-contexts": f"{CLOCK} INFO [clusterId=abc, broker=1] [{THREAD}] {LOGGER} - {{m}}",
    "tabs": f"{CLOCK}\tINFO\t{THREAD}\t{LOGGER}\t{{m}}",
    "letter": f"{CLOCK} I [{THREAD}] {{m}}",
    "parts-coloured": f"{CLOCK} \x1b[32mINFO \x1b[m [{THREAD}] \x1b[36m{LOGGER}\x1b[m - {{m}}",
    "cri-and-syslog": f"2026-11-20T23:51:52.1Z stdout F <13>Nov 20 23:51:51 h kafka: [{CLOCK}] INFO {{m}}"
    f" ({LOGGER})",
}
WHOLE_SECONDS = {
    "strimzi": f"2026-11-20 23:51:50 INFO  [{THREAD}] GroupMetadataManager:612 - {{m}}",
    "strimzi-no-location": f"2026-11-20 23:51:50 INFO  [{THREAD}] GroupMetadataManager: - {{m}}",
    "strimzi-request-logger": f"2026-11-20 23:51:50 DEBUG [{THREAD}] logger:283 - {{m}}",
    "strimzi-in-cri": f"2026-11-20T23:51:51.123456789Z stdout F 2026-11-20 23:51:50 INFO  [{THREAD}]"
    " GroupMetadataManager:61 - {m}",
    "iso-seconds": f"2026-11-20T23:51:50Z INFO [{THREAD}] {LOGGER} - {{m}}",
    "journald-alone": "Nov 20 23:51:50 kafka-0 kafka[4711]: {m}",
    "common-log-format": f"[20/Nov/2026:23:51:50 +0000] INFO {LOGGER} - {{m}}",
}


def opened(value: bytes | str, stamp: int = READ, key: bytes | None = b"1") -> list[Opened]:
    """Open a record that was written when the shipper had read the line."""
    raw = value.encode() if isinstance(value, str) else value
    found = list(open_lines(raw, key=key, timestamp_ms=stamp, timezone="UTC"))
    assert not [one for one in found if isinstance(one, EnvelopeError)], found
    return [one for one in found if isinstance(one, Opened)]


def written(pattern: str, message: str) -> str:
    """Return the line that a pattern makes of a message."""
    return pattern.replace("{m}", message)


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("layout", PATTERNS)
def test_any_layout(layout: str, message: str) -> None:
    """A message is read to its last letter, with its own time, from whatever pattern wrote it."""
    (one,) = opened(written(PATTERNS[layout], message))

    assert (one.line.message, one.line.at_ms, one.is_known) == (message, AT, True)


@pytest.mark.parametrize("name", ["a (b) [c]", "a) [c]", "a (kafka.x) [c", "a [kafka.x]"])
@pytest.mark.parametrize("layout", ["kafka", "strimzi-before-log4j2", "thread-at-the-end", "padded-level"])
def test_a_name_that_looks_like_a_thread(layout: str, name: str) -> None:
    """A group may be called anything; what a pattern writes behind it stands behind its last letter."""
    message = f"{SCALA[:-1]}{name}"
    (one,) = opened(written(PATTERNS[layout], message))

    assert one.line.message == message


def test_a_name_alone_is_not_cut() -> None:
    """Without a logger of Kafka's before it, what stands in brackets at the end is the message's."""
    (one,) = opened(f"[{CLOCK}] INFO {SCALA} a (b) [c]")

    assert one.line.message == f"{SCALA} a (b) [c]"


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("layout", WHOLE_SECONDS)
def test_whole_seconds(layout: str, message: str) -> None:
    """Whole seconds take their milliseconds from a record of the same second, else the second's end."""
    line = written(WHOLE_SECONDS[layout], message)

    assert [one.line.message for one in opened(line)] == [message]
    assert [opened(line, stamp)[0].line.at_ms for stamp in (AT, READ)] == [AT, SECOND + 999]


@settings(max_examples=200)
@given(st.lists(st.integers(0, 5_000), min_size=2, max_size=20))
def test_whole_seconds_keep_the_order_of_records(delays: list[int]) -> None:
    """Lines of whole seconds, each in a record that is never older than the one before, keep their order."""
    times, stamp = [], SECOND
    for index, delay in enumerate(delays):
        stamp = max(stamp, SECOND + index * 130) + delay // 10
        second = datetime.fromtimestamp((SECOND + index * 130) // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        times += [one.line.at_ms for one in opened(f"{second} INFO  [t] X:1 - {SENTENCE}", stamp)]

    assert times == sorted(times)


# --- envelopes ---------------------------------------------------------------------------------------


def iso(at_ms: int) -> str:
    """Return a time as JSON has it."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def otlp(*lines: str) -> dict[str, Any]:
    """Return an export of the OpenTelemetry Collector."""
    records = [
        {"timeUnixNano": str(READ * 1_000_000), "body": {"stringValue": line}, "attributes": []}
        for line in lines
    ]
    resource = {"attributes": [{"key": "broker.id", "value": {"intValue": "1"}}]}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": {}, "logRecords": records}]}]}


def loki(*lines: str) -> dict[str, Any]:
    """Return a push to Loki."""
    values = [[str(READ * 1_000_000), line] for line in lines]
    return {"streams": [{"stream": {"broker": "1", "job": "kafka"}, "values": values}]}


ENVELOPES: dict[str, Callable[[str], Any]] = {
    "vector": lambda line: {"message": line, "timestamp": iso(READ), "host": "h", "source_type": "file"},
    "fluent-bit": lambda line: {"log": line, "date": READ / 1000, "broker": "1"},
    "fluent-bit-kubernetes": lambda line: {
        "@timestamp": iso(READ),
        "stream": "stdout",
        "logtag": "F",
        "log": line,
        "kubernetes": {"pod_name": "kafka-0", "labels": {"broker": "1"}},
    },
    "filebeat": lambda line: {
        "@timestamp": iso(READ),
        "@metadata": {"beat": "filebeat"},
        "log": {"offset": 1},
        "message": line,
        "event": {"module": "kafka"},
        "fields": {"broker": 1},
    },
    "promtail": loki,
    "alloy-entry": lambda line: {"ts": iso(READ), "line": line, "labels": '{job="kafka"}'},
    "otlp": otlp,
    "otlp-record": lambda line: {"body": {"stringValue": line}, "timeUnixNano": str(READ * 1_000_000)},
    "bodies": lambda line: [line],
    "docker": lambda line: {"log": f"{line}\n", "stream": "stdout", "time": iso(READ)},
    "journald": lambda line: {"MESSAGE": line, "__REALTIME_TIMESTAMP": str(READ * 1000), "_PID": "1"},
    "journald-bytes": lambda line: {"MESSAGE": list(line.encode()), "__REALTIME_TIMESTAMP": str(READ * 1000)},
    "gcp": lambda line: {"textPayload": line, "timestamp": iso(READ), "resource": {"labels": {"x": "y"}}},
    "cloudwatch": lambda line: {
        "messageType": "DATA_MESSAGE",
        "logEvents": [{"timestamp": READ, "message": line}],
    },
    "splunk": lambda line: {"time": READ / 1000, "event": line, "source": "x"},
    "filebeat-around-docker": lambda line: {
        "@timestamp": iso(READ),
        "message": json.dumps({"log": f"{line}\n", "stream": "stdout", "time": iso(READ)}),
    },
}


@pytest.mark.parametrize("envelope", ENVELOPES)
@pytest.mark.parametrize("layout", [*PATTERNS, *WHOLE_SECONDS])
def test_any_layout_in_any_envelope(layout: str, envelope: str) -> None:
    """The line's own time wins over the envelope's, which is that of reading it."""
    pattern = PATTERNS.get(layout) or WHOLE_SECONDS[layout]
    (one,) = opened(json.dumps(ENVELOPES[envelope](written(pattern, SENTENCE))))

    assert one.line.message == SENTENCE
    assert one.line.at_ms == (AT if layout in PATTERNS else SECOND + 999)
    assert one.line.broker == 1


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_bare_in_any_envelope(envelope: str) -> None:
    """A message without a time of its own has the envelope's."""
    (one,) = opened(json.dumps(ENVELOPES[envelope](SENTENCE)), stamp=READ + 5_000)

    assert (one.line.message, one.line.at_ms) == (SENTENCE, READ + 5_000 if envelope == "bodies" else READ)


@pytest.mark.parametrize("many", [otlp, loki, lambda *lines: list(lines)])
def test_batches(many: Callable[..., Any]) -> None:
    """A record may hold many lines."""
    lines = [written(PATTERNS["kafka"], f"{SCALA}{number}") for number in range(5)]

    assert [one.line.message for one in opened(json.dumps(many(*lines)))] == [f"{SCALA}{n}" for n in range(5)]


def field(number: int, value: bytes | int) -> bytes:
    """Return one field of a protobuf message: bytes, or a number of 64 bits."""
    if isinstance(value, int):
        return bytes([number << 3 | 1]) + value.to_bytes(8, "little")
    size, digits = len(value), b""
    while size >= 0x80:
        digits, size = digits + bytes([size & 0x7F | 0x80]), size >> 7
    return bytes([number << 3 | 2]) + digits + bytes([size]) + value


def binary_otlp(*lines: str) -> bytes:
    """Return an export of the OpenTelemetry Collector as its Kafka exporter writes it by default."""
    records = b"".join(
        field(2, field(1, READ * 1_000_000) + field(5, field(1, line.encode())) + field(11, READ * 1_000_000))
        for line in lines
    )
    broker = field(1, field(1, b"broker.id") + field(2, field(1, b"1")))
    return field(1, field(1, broker) + field(2, field(1, field(1, b"scope")) + records))


def test_binary_export_of_opentelemetry() -> None:
    """The Collector's own encoding is read as its JSON is; bytes that only begin like it are counted."""
    lines = [written(PATTERNS["kafka"], f"{SCALA}{number}") for number in range(3)]
    found = opened(binary_otlp(*lines, SCALA), key=None)

    assert [one.line.message for one in found] == [*(f"{SCALA}{number}" for number in range(3)), SCALA]
    assert [(one.line.broker, one.line.at_ms) for one in found] == [(1, AT)] * 3 + [(1, READ)]


@settings(max_examples=300, deadline=None)
@given(st.binary(), st.integers(0, 300))
def test_no_binary_export_raises(noise: bytes, place: int) -> None:
    """Whatever is in an export, or is missing from it, its lines are read or it is refused."""
    whole = binary_otlp(SENTENCE)
    for value in (whole[:place] + noise + whole[place:], whole[:place], b"\n" + noise):
        assert list(open_lines(value, key=None, timestamp_ms=AT, timezone="UTC"))


def test_pairs() -> None:
    """Lines of names and values, and texts as JSON, are read like any envelope."""
    message = SENTENCE.replace("x re", 'x "re')
    escaped = json.dumps(message)
    pairs = f'time="{ISO}" level=info logger={LOGGER} msg={escaped}'

    assert [(*one.line[1:5],) for one in opened(pairs)] == [(AT, "info", LOGGER, message)]
    assert [one.line.message for one in opened(json.dumps(written(PATTERNS["kafka"], message)))] == [message]


def test_json_lines() -> None:
    """A record may hold JSON lines, and the lines of a container's log."""
    rows = "\n".join(json.dumps({"message": SCALA, "n": number}) for number in range(3))
    carried = "\n".join(f"{ISO} stdout F {SCALA}{number}" for number in range(3))

    assert [one.line.message for one in opened(rows)] == [SCALA] * 3
    assert [one.line.message for one in opened(carried)] == [f"{SCALA}{number}" for number in range(3)]


def test_a_text_is_one_event() -> None:
    """A line break in a name makes no second line, whatever follows it."""
    forged = "[2026-11-20 23:51:51,000] INFO [GroupCoordinator id=1] Startup complete. (x)"
    (one,) = opened(written(PATTERNS["kafka"], f"{SCALA}\n{forged}"))

    assert one.line.message == f"{SCALA}\n{forged}"


LAYOUTS_OF_LOG4J = {
    "json": {
        "instant": {"epochSecond": SECOND // 1000, "nanoOfSecond": 925_000_000},
        "thread": THREAD,
        "level": "INFO",
        "loggerName": LOGGER,
        "message": SENTENCE,
        "endOfBatch": False,
        "threadId": 52,
        "threadPriority": 5,
    },
    "json-compact": {"timeMillis": AT, "level": "INFO", "loggerName": LOGGER, "message": SENTENCE},
    "ecs": {
        "@timestamp": ISO,
        "ecs.version": "1.2.0",
        "log.level": "INFO",
        "message": SENTENCE,
        "log.logger": LOGGER,
    },
    "logstash": {
        "@version": 1,
        "source_host": "h",
        "message": SENTENCE,
        "thread_name": THREAD,
        "@timestamp": ISO,
        "level": "INFO",
        "logger_name": LOGGER,
    },
    "gelf": {
        "version": "1.1",
        "host": "h",
        "short_message": SENTENCE,
        "timestamp": AT / 1000,
        "level": 6,
        "_logger": LOGGER,
        "_thread": THREAD,
    },
    "gcp": {
        "timestampSeconds": AT // 1000,
        "timestampNanos": 925_000_001,
        "severity": "INFO",
        "message": SENTENCE,
        "_logger": LOGGER,
        "logging.googleapis.com/sourceLocation": {"function": "x"},
    },
}


@pytest.mark.parametrize("layout", LAYOUTS_OF_LOG4J)
def test_layouts_of_log4j(layout: str) -> None:
    """log4j2's JSON layouts tell message, time and logger, also within another envelope."""
    text = json.dumps(LAYOUTS_OF_LOG4J[layout])
    around = {"@timestamp": iso(READ), "message": text}
    found = [*opened(text), *opened(json.dumps(around)), *opened(f"{iso(READ)} stdout F {text}")]

    expected = (1, AT, LOGGER, SENTENCE)
    assert [(*one.line[:2], *one.line[3:5]) for one in found] == [expected] * 3


# --- what is not understood, and what imitates -------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "node=1 zone=a [GroupCoordinator id=1] Startup complete.",
        f"{CLOCK} INFO something else {SENTENCE}",
        f"{CLOCK} WARN Client evil - {SENTENCE}",
        f"{CLOCK} WARN Unknown client of evil - {SENTENCE}",
        f"[{CLOCK}] INFO [SocketServer nodeId=1] Failed for {SENTENCE} (kafka.network.SocketServer)",
        f"kafka {SENTENCE}",
        f"{CLOCK} WARN Failed host.evil.com {SENTENCE}",
        f"{CLOCK} WARN Failed for kafka.coordinator.group.GroupCoordinator {SENTENCE}",
        f"{CLOCK} WARN Unknown client-1 kafka.coordinator.group.GroupCoordinator {SENTENCE}",
    ],
)
def test_words_are_no_header(line: str) -> None:
    """A sentence behind other words is not read as one: another logger's line may quote a client's name."""
    (one,) = opened(line)

    assert not one.is_known
    assert one.has_marks


@settings(max_examples=300, deadline=None)
@given(st.text(), st.integers(-1, 2**62), st.sampled_from(["UTC", "Europe/Berlin", "Pacific/Kiritimati"]))
def test_no_text_raises(text: str, near_ms: int, timezone: str) -> None:
    """Whatever a text is, its header ends somewhere in it."""
    assert 0 <= read_header(text, timezone, near_ms).end <= len(text)


_PIECES = st.sampled_from(
    [
        CLOCK,
        ISO,
        "[",
        "]",
        "(",
        " ",
        " - ",
        "INFO",
        "<1>",
        "1 ",
        "a.b.C",
        "x",
        "|",
        "\n",
        ":",
        "{",
        "99999999999",
        "Nov 31 99:99:99",
        "0000-00-00 00:00:00",
        "9999-12-31 23:59:59-14:00",
        "0001-01-01 00:00:00+14:00",
        "stdout F ",
    ]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(_PIECES, max_size=30), st.sampled_from([-1, 0, AT, 253_402_300_799_999]))
def test_no_pieces_of_headers_raise(pieces: list[str], near_ms: int) -> None:
    """Whatever headers are made of, in any order, is read without an error."""
    assert read_header("".join(pieces) + SENTENCE, "Pacific/Kiritimati", near_ms) is not None


@pytest.mark.parametrize(
    "unit", ["[", "INFO ", "a.", "[a", "1", "<", "x | ", " ", "[x] ", "(", "2026-11-20 23:51:50 ", '{"', '["']
)
def test_long_lines_cost_what_they_are_long(unit: str) -> None:
    """A line of a megabyte that imitates headers is read as fast as any."""
    costs = []
    for size in (1 << 17, 1 << 20):
        line = (unit * size)[:size].encode()
        start = time.process_time()
        list(open_lines(line, key=None, timestamp_ms=AT, timezone="UTC"))
        costs.append(time.process_time() - start)

    assert costs[1] < 0.05 + 40 * costs[0]


def test_golden_lines_in_every_layout() -> None:
    """Each line that a real broker wrote says the same in every layout."""
    path = Path(__file__).parents[3] / "golden" / "logs" / "kafka-4.3.1-server.log"
    messages = {
        one.line.message for text in path.read_text().splitlines() for one in opened(text) if one.is_known
    }

    assert len(messages) > 50
    for pattern in (*PATTERNS.values(), *WHOLE_SECONDS.values()):
        assert {one.line.message for text in messages for one in opened(written(pattern, text))} == messages
