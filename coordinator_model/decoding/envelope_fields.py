"""The fields of a shipper's JSON: the message, its time, its logger, and which broker wrote it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from coordinator_model.decoding.line_text import QUICK, Carrier, Opened, opened_quickly
from coordinator_model.decoding.line_times import Moment, moment_of

_BROKER_MAX = 2**31
_ASCII_INT = re.compile(rb"\s*(\d{1,10})\s*")

Fields = Mapping[str, Any]
_MESSAGES = (
    "message",
    "log",
    "msg",
    "line",
    "short_message",
    "MESSAGE",
    "body",
    "text",
    "textPayload",
    "event",
    "payload",
    "content",
    "original",
    "_raw",
    "raw",
)
_TIMES = (
    "instant",
    "timeMillis",
    "@timestamp",
    "timestamp",
    "time",
    "date",
    "ts",
    "eventTime",
    "event_time",
    "datetime",
    "_time",
    "timeUnixNano",
    "_SOURCE_REALTIME_TIMESTAMP",
    "__REALTIME_TIMESTAMP",
    "observedTimeUnixNano",
)
"""The field nearest to the event first: a shipper adds its own time beside that of a layout."""
_LEVELS = ("level", "log.level", "severity", "loglevel", "severityText")
_LOGGERS = ("logger", "loggerName", "logger_name", "log.logger", "_logger")
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
_NESTS = ("fields", "labels", "kafka", "attributes", "tags", "resource", "stream")
_POD_NESTS = ("labels", "pod_labels", "annotations", "pod_annotations")
_PART_FIELDS = frozenset(
    {"stream", "logtag", "_partial", "_LINE_BREAK", "time", "CONTAINER_PARTIAL_MESSAGE", "partial_message"}
)
_DOCKER_FIELDS = frozenset({"log", "stream", "time", "attrs"})
_DOCKER_PART_BYTES = 16_384
"""Length at which Docker's json-file cuts a line."""


_GOES_ON = ("_partial", "CONTAINER_PARTIAL_MESSAGE", "partial_message")
"""Vector, and Docker's journald and fluentd drivers; only Docker's mark the last part."""
_SOURCE_NESTS = frozenset(
    {"host", "container", "kubernetes", "log", "file", "labels", "stream", "resource", "attributes", "fields"}
)
_PASSED_OVER = frozenset({"labels", "stream", "resource", "attributes", "fields", "kubernetes"})
"""Nested objects whose name says nothing about their content."""
_WRITERS = frozenset(
    {
        *("host", "hostname", "host_name", "host.name", "host.id", "_HOSTNAME", "_MACHINE_ID", "_BOOT_ID"),
        *("_PID", "_STREAM_ID", "node", "node_name", "nodename", "instance", "host.hostname"),
        *("pod", "pod_name", "pod_id", "pod_uid", "pod.name", "k8s.pod.name", "k8s.pod.uid"),
        *("container_id", "container.id", "docker_id", "CONTAINER_ID", "CONTAINER_ID_FULL"),
        *("partial_id", "CONTAINER_PARTIAL_ID"),
    }
)
"""Fields that distinguish one process, container or machine from others."""
_FILES = frozenset(
    {"file", "filename", "filepath", "path", "log.file.path", "file.path", "log.file.name", "file.name"}
)
"""Fields that distinguish the logs of one machine; two machines may have the same values."""
_OF_A_CONTAINER = ("/pods/", "/containers/")
_WORD_MAX = 1_024
_NESTED_MAX = 3


class Origin(NamedTuple):
    """The writer of a line, as far as the envelopes name it."""

    words: tuple[tuple[str, str], ...]
    is_told: bool
    """Whether they name the process, the container or the machine."""


def origin_of(around: Iterable[Fields]) -> Origin:
    """Return the writer of a line, as far as its envelopes name it."""
    words = [word for fields in around for word in _words_of(fields, "", 0)]
    is_told = any(
        name in _WRITERS or (name in _FILES and any(one in text for one in _OF_A_CONTAINER))
        for name, text in words
    )
    return Origin(tuple(words), is_told)


def _words_of(fields: Fields, prefix: str, depth: int) -> Iterator[tuple[str, str]]:
    for name, value in fields.items():
        if isinstance(value, dict):
            if name in _SOURCE_NESTS and depth < _NESTED_MAX:
                inner = prefix if name in _PASSED_OVER else f"{prefix}{name}."
                yield from _words_of(value, inner, depth + 1)
        elif f"{prefix}{name}" in _WRITERS or f"{prefix}{name}" in _FILES:
            yield f"{prefix}{name}", str(value)[:_WORD_MAX]


def key_broker(key: bytes | None) -> int:
    """Return the broker that a record key names in ASCII digits; -1: none."""
    found = _ASCII_INT.fullmatch(key) if key else None
    number = int(found[1]) if found else -1
    return number if number < _BROKER_MAX else -1


def open_quickly(message: str, carrier: Carrier, fields: Fields) -> Opened | None:
    """Open a line in Kafka's own pattern whose envelope names only the broker.

    None: the line is not so simple; nearly all lines are.
    """
    quick = QUICK.match(message)
    if quick is None or quick[1] is None:
        return None
    broker = carrier.broker if carrier.broker >= 0 else envelope_broker(fields)
    around = (*carrier.around, fields)
    within = Carrier(broker, carrier.stamp_ms, carrier.timezone, part=part_of(fields), around=around)
    opened = opened_quickly(message.rstrip("\r\n"), quick, within)
    return None if opened.line.at_ms < 0 else opened


def carrier_of(fields: Fields, around: Carrier) -> Carrier:
    """Return the carrier of a line in an envelope inside another one."""
    moment = _event_moment(fields, around)
    return Carrier(
        broker=around.broker if around.broker >= 0 else envelope_broker(fields),
        stamp_ms=around.stamp_ms,
        timezone=around.timezone,
        moment=moment if moment.at_ms >= 0 else around.moment,
        level=_text(fields, _LEVELS) or around.level,
        logger=_text(fields, _LOGGERS) or around.logger,
        part=part_of(fields) or around.part,
        around=(*around.around, fields),
    )


def part_of(fields: Fields) -> tuple[str, bool] | None:
    """Return the stream of a part of a line, and whether another part follows; None: the line is whole."""
    if _PART_FIELDS.isdisjoint(fields):
        return None
    stream = str(fields.get("stream") or "stdout")
    tag = fields.get("logtag")
    if tag in ("P", "F"):
        return stream, tag == "P"
    if marks_no_end(fields):
        return stream, not _is_true(fields.get("partial_last"))
    log = fields.get("log")
    if isinstance(log, str) and fields.keys() <= _DOCKER_FIELDS:
        is_cut = len(log) <= _DOCKER_PART_BYTES and len(log.encode(errors="replace")) == _DOCKER_PART_BYTES
        return (stream, True) if is_cut and not log.endswith("\n") else (stream, False)
    return None


def marks_no_end(fields: Fields) -> bool:
    """Return whether a part has a mark that the last part of its line does not have."""
    return fields.get("_LINE_BREAK") == "line-max" or any(_is_true(fields.get(name)) for name in _GOES_ON)


def _is_true(found: Any) -> bool:
    return found is True or found == "true"


def message_of(fields: Fields) -> str | None:
    """Return the text of the log event; None: there is none."""
    for name in _MESSAGES:
        found = fields.get(name)
        if found:
            text = found if isinstance(found, str) else _text_of(found)
            if text:
                return text
    return None


def _text_of(found: Any) -> str | None:
    """Return a text that is not a JSON string: OpenTelemetry's, or journald's array of bytes."""
    if isinstance(found, dict):
        text = found.get("stringValue")
        return text if isinstance(text, str) else None
    if isinstance(found, list) and all(type(one) is int and 0 <= one < 256 for one in found):
        return bytes(found).decode(errors="replace")
    return None


def _first(fields: Fields, names: tuple[str, ...], wanted: Callable[[Any], bool]) -> Any:
    for name in names:
        found = fields.get(name)
        if found is not None and wanted(found):
            return found
    return None


def _text(fields: Fields, names: tuple[str, ...]) -> str | None:
    flat = _first(fields, names, _is_text)
    nested = fields.get("log")
    if flat is None and isinstance(nested, dict):
        flat = _first(nested, ("level", "logger") if "level" in names else ("logger",), _is_text)
    return flat if isinstance(flat, str) else None


def _is_text(found: Any) -> bool:
    return isinstance(found, str)


def _event_moment(fields: Fields, around: Carrier) -> Moment:
    for name in _TIMES:
        found = fields.get(name)
        if found is not None:
            moment = moment_of(found, around.timezone, around.stamp_ms)
            if moment.at_ms >= 0:
                return moment
    return moment_of(
        {"seconds": fields.get("timestampSeconds"), "nanos": fields.get("timestampNanos")}, "UTC"
    )


def envelope_broker(fields: Fields) -> int:
    """Return the broker in the envelope; -1: none."""
    for place in _places(fields):
        for name in _BROKERS:
            number = _number(place.get(name))
            if number >= 0:
                return number
    return -1


def _places(fields: Fields) -> list[Fields]:
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


def objects(found: Any) -> Iterator[Fields]:
    """Return the objects in a list; none if it is no list."""
    return (one for one in found if isinstance(one, dict)) if isinstance(found, list) else iter(())


def attributes_of(told: Fields) -> dict[str, Any]:
    """Return OpenTelemetry's attributes by their keys."""
    found: dict[str, Any] = {}
    for one in objects(told.get("attributes")):
        value = one.get("value")
        if isinstance(value, dict) and value and isinstance(one.get("key"), str):
            found[one["key"]] = next(iter(value.values()))
    return found


_PAIR = re.compile(r'([\w.@-]{1,64}+)=(?:"((?>(?:[^"\\]|\\.)*))"|([^\s"]*+))(?:\s++|\Z)', re.DOTALL)
_PAIRS_MAX = 64
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def pairs_of(text: str) -> dict[str, str] | None:
    """Return the fields of a line that is nothing but ``name=value name="value"``; None: it is not."""
    found: dict[str, str] = {}
    place = 0
    while place < len(text) and len(found) < _PAIRS_MAX:
        pair = _PAIR.match(text, place)
        if pair is None:
            return None
        quoted, plain = pair[2], pair[3]
        found[pair[1]] = plain if quoted is None else _ESCAPED.sub(_unescaped, quoted)
        place = pair.end()
    return found if found and place == len(text) else None


def _unescaped(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[1], found[1])
