"""Opens what carries a broker's log line: a bare message, a whole line, or a shipper's JSON envelope.

Accepted: the message alone, with its level before it, the line in the patterns that Kafka ships with
(``[2026-11-20 23:51:50,925] INFO message (logger)``, 3.x and 4.x), and the JSON of Vector, Fluent
Bit, Filebeat, Docker, GELF and log4j2's own layouts, also one inside the other.

Time: the envelope's event time, else the line's own, else the record's.
Broker: the record's key, else an envelope field, else -1 (the caller knows the line's ``id=``).
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

LENGTH_MAX = 16 << 20
"""Bytes; a leader's JoinGroup line of a big group reaches 10 MB, what is longer is not read at all."""
_TIME_MAX_MS = 253_402_300_799_999  # the end of year 9999
_DEPTH_MAX = 3
_BROKER_MAX = 2**31


class EnvelopeError(Exception):
    """The record cannot be opened; ``reason`` is one of a small fixed vocabulary."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        """empty, too_long, not_utf8, envelope_invalid or envelope_without_message."""
        self.detail = detail


class Line(NamedTuple):
    """One log event."""

    broker: int
    """-1: neither key nor envelope tell."""
    at_ms: int
    """-1: nothing tells."""
    level: str | None
    logger: str | None
    message: str


_LEVEL = r"TRACE|DEBUG|INFO|WARN|ERROR|FATAL"
_DATED = re.compile(rf"\[(\d{{4}}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)[,.](\d{{3}})\] ({_LEVEL}) (.*)", re.DOTALL)
_REQUEST = re.compile(
    rf"(?:\[(\d{{4}}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)[,.](\d{{3}})\] )?(?:({_LEVEL}) )?(?=Completed request:)"
)
_REQUEST_LOGGER = "kafka.request.logger"
_LEVELLED = re.compile(rf"({_LEVEL}) (.*)", re.DOTALL)
_LOGGER = re.compile(r"(.*) \(([\w.$-]+)\)\s*", re.DOTALL)
_LOGGER_OURS = re.compile(r"(.*) \(((?:kafka|org\.apache\.kafka)\.[\w.$-]+)\)\s*", re.DOTALL)
_CONTINUATION = re.compile(
    r"\s|Caused by: |Suppressed: |\.\.\. \d+ more|[\w$]+(?:\.[\w$]+)+(?:Exception|Error)\b"
)
_ASCII_INT = re.compile(rb"\s*(\d{1,10})\s*")


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # The configuration refuses unknown names; a host without time zone data must not stop the query.
        return UTC


@lru_cache(maxsize=8192)
def local_second_ms(second: str, timezone: str) -> tuple[int, int]:
    """Return both readings, in epoch ms, of a local ``2026-11-20 23:51:50``.

    They differ in the hour that a zone repeats when summer time ends (and in the one it skips).
    (-1, -1): no such date.
    """
    try:
        naive = datetime.fromisoformat(second)
    except ValueError:
        return -1, -1
    zone = _zone(timezone)
    try:
        readings = [int(naive.replace(tzinfo=zone, fold=fold).timestamp()) * 1000 for fold in (0, 1)]
    except (OverflowError, OSError, ValueError):
        return -1, -1
    return readings[0], readings[1]


def local_ms(second: str, milliseconds: int, timezone: str, near_ms: int = -1) -> int:
    """Return epoch ms of a local time; of two readings the one nearer to ``near_ms``; -1: no such date."""
    first, second_reading = local_second_ms(second, timezone)
    if first < 0:
        return -1
    near_second = near_ms >= 0 and abs(second_reading - near_ms) < abs(first - near_ms)
    return (second_reading if near_second else first) + milliseconds


def is_continuation(message: str) -> bool:
    """Say whether a line without a date is the rest of an event above it: a stack trace."""
    return _CONTINUATION.match(message) is not None


def open_line(text: str, *, broker: int = -1, timestamp_ms: int = -1, timezone: str = "UTC") -> Line:
    """Open one line of a file, or the text of an event.

    Args:
        text: with or without its line end.
        broker: who wrote it, if known.
        timestamp_ms: used where the line has no time of its own, and to tell apart the two readings
            of a local time in the hour that is repeated.
        timezone: of the line's own time.
    """
    text = text.rstrip("\r\n")
    request = _REQUEST.match(text)
    if request:
        # Nearly all lines: no search through a long text for what can only stand at its end.
        own_ms = -1 if request[1] is None else local_ms(request[1], int(request[2]), timezone, timestamp_ms)
        message = text[request.end() :]
        bare = message.removesuffix(f" ({_REQUEST_LOGGER})")
        logger = None if bare is message else _REQUEST_LOGGER
        return Line(broker, own_ms if own_ms >= 0 else timestamp_ms, request[3], logger, bare)
    dated = _DATED.match(text)
    if dated:
        message, logger = _split_logger(dated[4], _LOGGER)
        own_ms = local_ms(dated[1], int(dated[2]), timezone, timestamp_ms)
        return Line(broker, own_ms if own_ms >= 0 else timestamp_ms, dated[3], logger, message)
    levelled = _LEVELLED.match(text)
    level, rest = (levelled[1], levelled[2]) if levelled else (None, text)
    message, logger = _split_logger(rest, _LOGGER_OURS)
    return Line(broker, timestamp_ms, level, logger, message)


def _split_logger(text: str, shape: re.Pattern[str]) -> tuple[str, str | None]:
    """Cut ` (logger)` off the end, and before it the stack trace that may follow."""
    head, newline, rest = text.partition("\n")
    first = shape.fullmatch(head) if newline and is_continuation(rest) else None
    found = first or shape.fullmatch(text)
    return (found[1], found[2]) if found else (text, None)


def key_broker(key: bytes | None) -> int:
    """Return the broker that a record key names in ASCII digits; -1: none."""
    found = _ASCII_INT.fullmatch(key) if key else None
    number = int(found[1]) if found else -1
    return number if number < _BROKER_MAX else -1


def open_record(value: bytes | None, *, key: bytes | None, timestamp_ms: int, timezone: str) -> Line:
    """Open the value of a record of the events topic.

    Raises:
        EnvelopeError: it is empty, too long, not UTF-8, or JSON that carries no message.
    """
    if not value:
        raise EnvelopeError("empty")
    if len(value) > LENGTH_MAX:
        raise EnvelopeError("too_long")
    if value.lstrip(b" \t\r\n\xef\xbb\xbf")[:1] == b"{":
        return _open_envelope(value, key_broker(key), timestamp_ms, timezone, 0)
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        raise EnvelopeError("not_utf8", str(error)[:200]) from None
    return open_line(text, broker=key_broker(key), timestamp_ms=timestamp_ms, timezone=timezone)


# --- envelopes -------------------------------------------------------------------------------------

_Fields = Mapping[str, Any]
_MESSAGES = ("message", "log", "msg", "line", "short_message", "MESSAGE", "body", "text")
_TIMES = (
    "@timestamp",
    "timestamp",
    "time",
    "date",
    "ts",
    "timeMillis",
    "instant",
    "eventTime",
    "event_time",
    "datetime",
    "_time",
)
_LEVELS = ("level", "log.level", "severity", "loglevel")
_LOGGERS = ("logger", "loggerName", "logger_name", "log.logger")
_BROKERS = (
    "broker",
    "broker_id",
    "brokerId",
    "broker.id",
    "broker-id",
    "node_id",
    "nodeId",
    "node.id",
    "kafka_broker_id",
)
_NESTS = ("fields", "labels", "kafka", "attributes", "tags")
_POD_NESTS = ("labels", "pod_labels", "annotations", "pod_annotations")
_JSON = msgspec.json.Decoder()


def _open_envelope(value: bytes | str, broker: int, timestamp_ms: int, timezone: str, depth: int) -> Line:
    try:
        fields = _JSON.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EnvelopeError("envelope_invalid", str(error)[:200]) from None
    if not isinstance(fields, dict):
        raise EnvelopeError("envelope_invalid", "not an object")
    message = _message(fields)
    if message is None:
        raise EnvelopeError("envelope_without_message")
    event_ms = _event_ms(fields, timezone)
    reference_ms = timestamp_ms if event_ms < 0 else event_ms
    broker = broker if broker >= 0 else _envelope_broker(fields)
    if depth < _DEPTH_MAX and message.lstrip()[:1] == "{":
        # A shipper that read JSON lines (Docker's, or log4j2's own): the inner one is nearer to the event.
        return _open_envelope(message, broker, reference_ms, timezone, depth + 1)
    line = open_line(message, broker=broker, timestamp_ms=reference_ms, timezone=timezone)
    return Line(
        broker,
        event_ms if event_ms >= 0 else line.at_ms,
        line.level or _text(fields, _LEVELS),
        line.logger or _text(fields, _LOGGERS),
        line.message,
    )


def _message(fields: _Fields) -> str | None:
    for name in _MESSAGES:
        found = fields.get(name)
        if found and isinstance(found, str):
            return str(found)
    return None


def _first(fields: _Fields, names: tuple[str, ...], wanted: Callable[[Any], bool]) -> Any:
    for name in names:
        found = fields.get(name)
        if found is not None and wanted(found):
            return found
    return None


def _text(fields: _Fields, names: tuple[str, ...]) -> str | None:
    flat = _first(fields, names, lambda found: isinstance(found, str))
    nested = fields.get("log")
    if flat is None and isinstance(nested, dict):
        flat = _first(nested, ("level", "logger") if "level" in names else ("logger",), _is_text)
    return flat if isinstance(flat, str) else None


def _is_text(found: Any) -> bool:
    return isinstance(found, str)


def _event_ms(fields: _Fields, timezone: str) -> int:
    for name in _TIMES:
        found = fields.get(name)
        at_ms = -1 if found is None else time_ms(found, timezone)
        if at_ms >= 0:
            return at_ms
    return -1


def time_ms(found: Any, timezone: str) -> int:
    """Return epoch ms of an envelope's time: ISO 8601, epoch s, ms, us or ns, log4j2's instant; or -1."""
    if isinstance(found, bool):
        return -1
    if isinstance(found, int | float):
        return _epoch_ms(found)
    if isinstance(found, str):
        return _iso_ms(found.strip(), timezone)
    if isinstance(found, dict):
        return _instant_ms(found)
    return -1


def _epoch_ms(number: float) -> int:
    """Tell the unit by the size: seconds until the year 5138, ms from 1973 on, and so on."""
    if not 0 <= number < 1e20:
        return -1
    for limit, factor in ((1e11, 1000.0), (1e14, 1.0), (1e17, 1e-3), (1e20, 1e-6)):
        if number < limit:
            # An integer in ms must not pass through a float and back.
            at_ms = number if factor == 1.0 else round(number * factor, 3)
            return int(at_ms)
    return -1


def _instant_ms(found: _Fields) -> int:
    seconds, nanos = found.get("epochSecond"), found.get("nanoOfSecond", 0)
    if type(seconds) is not int or type(nanos) is not int:
        return -1
    at_ms = seconds * 1000 + nanos // 1_000_000
    return at_ms if 0 <= at_ms <= _TIME_MAX_MS else -1


def _iso_ms(text: str, timezone: str) -> int:
    try:
        return (
            _epoch_ms(float(text))
            if text.replace(".", "", 1).isascii() and text[:5].isdigit()
            else _date_ms(text, timezone)
        )
    except (ValueError, OverflowError, OSError):
        return -1


def _date_ms(text: str, timezone: str) -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=_zone(timezone))
    at_ms = int(moment.timestamp()) * 1000 + moment.microsecond // 1000
    return at_ms if 0 <= at_ms <= _TIME_MAX_MS else -1


def _envelope_broker(fields: _Fields) -> int:
    for place in _places(fields):
        for name in _BROKERS:
            number = _number(place.get(name))
            if number >= 0:
                return number
    return -1


def _places(fields: _Fields) -> list[_Fields]:
    nests = [fields, *(fields.get(name) for name in _NESTS)]
    pod = fields.get("kubernetes")
    if isinstance(pod, dict):
        nests += [pod.get(name) for name in _POD_NESTS]
    broker = fields.get("broker")
    if isinstance(broker, dict):  # ECS style: {"broker": {"id": 1}}
        nests.append({"broker": broker.get("id")})
    flat = {
        name.removeprefix("fields."): value for name, value in fields.items() if name.startswith("fields.")
    }
    return [nest for nest in (*nests, flat) if isinstance(nest, dict)]


def _number(found: Any) -> int:
    if type(found) is int:
        return found if 0 <= found < _BROKER_MAX else -1
    return key_broker(found.encode()) if isinstance(found, str) and found.isascii() else -1
