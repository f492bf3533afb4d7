"""Lines as brokers write them and as shippers wrap them."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model.decoding.envelope_fields import key_broker
from coordinator_model.decoding.line_text import Line, is_continuation, open_line
from coordinator_model.decoding.line_times import time_ms
from coordinator_model.decoding.log_envelope import LENGTH_MAX, EnvelopeError, open_record

AT = 1795218710925  # 2026-11-20 23:51:50.925 UTC
STAMP = 1795218711500
LOGGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"
MESSAGE = "[GroupCoordinator id=1] Starting up. (really)"
FULL = f"[2026-11-20 23:51:50,925] INFO {MESSAGE} ({LOGGER})"


def opened(
    value: bytes | str | dict[str, Any] | None, key: bytes | None = b"1", timezone: str = "UTC"
) -> Line:
    """Open a record with our usual timestamp."""
    if isinstance(value, dict):
        value = json.dumps(value)
    raw = value.encode() if isinstance(value, str) else value
    return open_record(raw, key=key, timestamp_ms=STAMP, timezone=timezone)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(MESSAGE, Line(1, STAMP, None, None, MESSAGE), id="bare"),
        pytest.param(f"DEBUG {MESSAGE}\n", Line(1, STAMP, "DEBUG", None, MESSAGE), id="level-before"),
        pytest.param(FULL + "\r\n", Line(1, AT, "INFO", LOGGER, MESSAGE), id="whole-line"),
        pytest.param(
            f"{MESSAGE} (kafka.request.logger)",
            Line(1, STAMP, None, "kafka.request.logger", MESSAGE),
            id="logger-without-date",
        ),
        pytest.param(
            f"[2026-11-20 23:51:50,925] ERROR it broke ({LOGGER})\njava.lang.IllegalStateException: "
            "y\n\tat z.Z (Z.java)",
            Line(1, AT, "ERROR", LOGGER, "it broke"),
            id="stack-trace-below",
        ),
        pytest.param(
            f"[2026-13-20 23:51:50,925] INFO {MESSAGE} ({LOGGER})",
            Line(1, STAMP, "INFO", LOGGER, MESSAGE),
            id="no-such-date",
        ),
        pytest.param(
            f"[2026-11-20 23:51:50,925] INFO a\nb ({LOGGER})",
            Line(1, AT, "INFO", LOGGER, "a\nb"),
            id="line-break",
        ),
    ],
)
def test_lines(text: str, expected: Line) -> None:
    """A line gives its message in every form that Kafka's own patterns can give it."""
    assert opened(text) == expected


@pytest.mark.parametrize(
    ("second", "near", "expected"),
    [
        ("2026-10-25 02:30:00", 1792888200000, 1792888200000),
        ("2026-10-25 02:30:00", 1792891800000, 1792891800000),
        ("2026-10-25 02:30:00", -1, 1792888200000),
        ("2026-07-01 12:00:00", -1, 1782900000000),
        ("2026-12-01 12:00:00", -1, 1796122800000),
    ],
)
def test_summer_time(second: str, near: int, expected: int) -> None:
    """In the hour that a zone repeats, the record's time tells which of the two was meant."""
    line = open_line(f"[{second},000] INFO x (a)", timestamp_ms=near, timezone="Europe/Berlin")

    assert line.at_ms == expected


ENVELOPES = [
    pytest.param(
        {"message": FULL, "timestamp": "2026-11-20T23:51:51.125Z", "host": "kafka-0", "source_type": "file"},
        Line(1, AT, "INFO", LOGGER, MESSAGE),
        id="vector",
    ),
    pytest.param({"log": FULL, "date": AT / 1000}, Line(1, AT, "INFO", LOGGER, MESSAGE), id="fluent-bit"),
    pytest.param(
        {
            "@timestamp": "2026-11-20T23:51:50.925Z",
            "log": {"offset": 1, "file": {"path": "/x"}},
            "message": FULL,
            "host": {"name": "kafka-0"},
            "fields": {"broker": 1},
        },
        Line(1, AT, "INFO", LOGGER, MESSAGE),
        id="filebeat",
    ),
    pytest.param(
        {"log": FULL + "\n", "stream": "stdout", "time": "2026-11-20T23:51:50.925123456Z"},
        Line(1, AT, "INFO", LOGGER, MESSAGE),
        id="docker",
    ),
    pytest.param(
        {
            "instant": {"epochSecond": 1795218710, "nanoOfSecond": 925000000},
            "level": "INFO",
            "loggerName": LOGGER,
            "message": MESSAGE,
        },
        Line(1, AT, "INFO", LOGGER, MESSAGE),
        id="log4j2-json-layout",
    ),
    pytest.param(
        {"timeMillis": AT, "level": "INFO", "loggerName": LOGGER, "message": MESSAGE},
        Line(1, AT, "INFO", LOGGER, MESSAGE),
        id="log4j2-json-layout-compact",
    ),
    pytest.param(
        {
            "@timestamp": "2026-11-20T23:51:50.925Z",
            "log.level": "INFO",
            "log.logger": LOGGER,
            "message": MESSAGE,
        },
        Line(1, AT, "INFO", LOGGER, MESSAGE),
        id="ecs-layout",
    ),
    pytest.param(
        {
            "@timestamp": "2026-11-20T23:51:52Z",
            "log": {"level": "INFO", "logger": LOGGER},
            "message": MESSAGE,
        },
        Line(1, AT + 1075, "INFO", LOGGER, MESSAGE, is_whole=True),
        id="ecs-nested",
    ),
    pytest.param(
        {"short_message": MESSAGE, "timestamp": AT / 1000, "level": 6},
        Line(1, AT, None, None, MESSAGE),
        id="gelf",
    ),
    pytest.param(
        {"@timestamp": "2026-11-20T23:51:52Z", "message": json.dumps({"message": MESSAGE, "timeMillis": AT})},
        Line(1, AT, None, None, MESSAGE),
        id="one-in-the-other",
    ),
    pytest.param({"message": FULL}, Line(1, AT, "INFO", LOGGER, MESSAGE), id="only-the-line-has-a-time"),
    pytest.param(
        {"message": MESSAGE, "time": "noon"}, Line(1, STAMP, None, None, MESSAGE), id="no-time-at-all"
    ),
]


@pytest.mark.parametrize(("envelope", "expected"), ENVELOPES)
def test_envelopes(envelope: dict[str, Any], expected: Line) -> None:
    """A shipper's JSON gives the message; the line's own time wins over the envelope's."""
    assert opened(envelope) == expected


@pytest.mark.parametrize(
    ("key", "fields", "broker"),
    [
        (b"7", {"broker": 1}, 7),
        (None, {"broker": 1}, 1),
        (None, {"broker_id": "2"}, 2),
        (b"host-a", {"brokerId": 3}, 3),
        (None, {"node_id": 4}, 4),
        (None, {"fields": {"broker": "5"}}, 5),
        (None, {"fields.broker": 5}, 5),
        (None, {"kubernetes": {"labels": {"broker_id": "6"}}}, 6),
        (None, {"kubernetes": {"pod_labels": {"broker": "6"}}}, 6),
        (None, {"broker": {"id": 8}}, 8),
        (None, {"broker": True}, -1),
        (None, {"broker": -1}, -1),
        (None, {"broker": 1e300, "node_id": "99999999999"}, -1),
        (None, {"broker": "five"}, -1),
    ],
)
def test_brokers(key: bytes | None, fields: dict[str, Any], broker: int) -> None:
    """The record's key names the broker, else a field of the envelope."""
    assert opened({"message": MESSAGE, **fields}, key=key).broker == broker


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (1795218710, 1795218710000),
        (1795218710.925, AT),
        (AT, AT),
        (AT * 1000, AT),
        (AT * 1_000_000, AT),
        ("1795218710.925", AT),
        ("2026-11-21T00:51:50.925+01:00", AT),
        ("2026-11-21T00:51:50.925+0100", AT),
        ("2026-11-21 00:51:50,925", AT),
        ("", -1),
        ("yesterday", -1),
        (1e300, -1),
        (-5, -1),
        (True, -1),
        (None, -1),
        ([1], -1),
        ({"epochSecond": 10**30}, -1),
        ({"epochSecond": "x"}, -1),
    ],
)
def test_times(found: Any, expected: int) -> None:
    """A time is ISO 8601 or an epoch in any usual unit; what is none of these is no time."""
    assert time_ms(found, "Europe/Berlin") == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "empty"),
        (b"", "empty"),
        (b"\xff\xfe line", "not_utf8"),
        (b'{"message": "\xff"}', "envelope_invalid"),
        (b'{"message": "x"', "envelope_invalid"),
        (b'{"message": NaN}', "envelope_invalid"),
        (b'{"note": "x"}', "envelope_without_message"),
        (b'{"message": {"a": 1}}', "envelope_without_message"),
        (b"{" * 100_000, "envelope_invalid"),
        (b"x" * (LENGTH_MAX + 1), "too_long"),
    ],
)
def test_what_cannot_be_opened(value: bytes | None, reason: str) -> None:
    """What cannot be opened says why, in one of a few words."""
    with pytest.raises(EnvelopeError) as error:
        opened(value)

    assert error.value.reason == reason


def test_keys() -> None:
    """A key is a broker only if it is a number in ASCII digits that a broker can have."""
    keys = (b"12", b" 3 ", b"", None, b"-1", b"1.5", b"\x00\x00\x00\x01", b"99999999999", "\uff11".encode())

    assert [key_broker(key) for key in keys] == [12, 3, -1, -1, -1, -1, -1, -1, -1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\tat kafka.Kafka.main(Kafka.scala)", True),
        ("Caused by: java.io.IOException: x", True),
        ("org.apache.kafka.common.errors.TimeoutException: x", True),
        ("... 3 more", True),
        ("Stabilized group", False),
    ],
)
def test_continuations(text: str, expected: bool) -> None:
    """Lines of a stack trace are known as the rest of the line above them."""
    assert is_continuation(text) is expected


REASONS = {"empty", "not_utf8", "envelope_invalid", "envelope_without_message"}


@settings(deadline=None)
@given(st.binary() | st.text().map(str.encode), st.binary() | st.none())
def test_no_bytes_raise_anything_else(value: bytes, key: bytes | None) -> None:
    """Whatever the bytes, they are opened or refused with a reason."""
    try:
        assert opened(value, key) is not None
    except EnvelopeError as error:
        assert error.reason in REASONS  # noqa: PT017


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_NAMES = st.sampled_from(
    [
        "@timestamp",
        "time",
        "instant",
        "broker",
        "fields",
        "kubernetes",
        "log",
        "level",
        "labels",
        "timeMillis",
    ]
)


@settings(deadline=None)
@given(st.dictionaries(_NAMES, _JSON, max_size=6), st.text(min_size=1))
def test_no_envelope_raises(fields: dict[str, Any], message: str) -> None:
    """Whatever stands in an envelope's other fields, its message is read."""
    try:
        line = opened({**fields, "message": message}, key=None)
    except EnvelopeError as error:
        assert message.lstrip().startswith("{"), error.reason  # noqa: PT017
    else:
        assert -1 <= line.broker < 2**31
        assert line.at_ms >= -1
