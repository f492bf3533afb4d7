"""Opens what carries a broker's log lines: bare messages, whole lines, and the envelopes of shippers.

One record holds one line or many: the text of a line in any layout (``line_header.py``), JSON as Vector,
Fluent Bit, Filebeat, Docker, journald and log4j2's own layouts write it, arrays and lines of such JSON,
and the batches of Loki and OpenTelemetry; also one inside the other.

Time: the line's own, else the envelope's, else the record's; an envelope's time is mostly when the
shipper read the line.  Broker: the record's key, else an envelope field, else -1 (the caller knows the
line's ``id=``).

A text with line breaks is one event, whatever its lines look like: a stack trace follows, or a name holds
the break and may imitate another line behind it.  Only where each line has an envelope of its own (JSON
lines, a container runtime's) is it several.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import msgspec

from coordinator_model.decoding import otlp
from coordinator_model.decoding.envelope_fields import (
    Fields,
    attributes_of,
    carrier_of,
    envelope_broker,
    key_broker,
    message_of,
    objects,
    open_quickly,
    pairs_of,
    part_of,
)
from coordinator_model.decoding.line_text import Carrier, Line, Opened, open_text
from coordinator_model.decoding.line_times import Moment

LENGTH_MAX = 16 << 20
"""Bytes; a leader's JoinGroup line of a big group reaches 10 MB, longer records are not read at all."""
LINES_MAX = 10_000
"""Limit of lines in one record; further lines are counted and not read."""
_DEPTH_MAX = 4


class EnvelopeError(Exception):
    """The record cannot be opened; ``reason`` is one of a small fixed vocabulary."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        """empty, too_long, too_many_lines, not_utf8, envelope_invalid or envelope_without_message."""
        self.detail = detail


Found = Opened | EnvelopeError


def open_record(value: bytes | None, *, key: bytes | None, timestamp_ms: int, timezone: str) -> Line:
    """Open the first line in the value of a record of the events topic.

    Raises:
        EnvelopeError: it is empty, too long, not UTF-8, or JSON that carries no message.
    """
    for found in open_lines(value, key=key, timestamp_ms=timestamp_ms, timezone=timezone):
        if isinstance(found, EnvelopeError):
            raise found
        return found.line
    raise EnvelopeError("envelope_without_message")


def open_lines(
    value: bytes | None, *, key: bytes | None, timestamp_ms: int, timezone: str
) -> Iterable[Found]:
    """Return each line in the value of a record, or why it cannot be opened; at least one entry."""
    if not value:
        return (EnvelopeError("empty"),)
    if len(value) > LENGTH_MAX:
        return (EnvelopeError("too_long"),)
    carrier = Carrier(_broker_of(key), timestamp_ms, timezone)
    if value.startswith(_OWN_PATTERN):
        # Nearly all lines.
        try:
            return (open_text(value.decode(), carrier),)
        except UnicodeDecodeError as error:
            return (EnvelopeError("not_utf8", str(error)[:200]),)
    simple = _simple_envelope(value, carrier) if value[:1] == b"{" else None
    return _bounded(_lines_of(value, carrier)) if simple is None else (simple,)


MAY_BE_PART: Final = "may be a part"
"""What ``whole_line`` returns for a part of a line, or for what may hold one."""


def whole_line(value: bytes, broker: int) -> tuple[bytes, int] | str | None:
    """Return the line and the broker of a plain JSON object around one whole line in Kafka's own pattern.

    Args:
        value: begins with a brace.
        broker: named by the record's key; -1: none.

    Returns:
        the line and its broker, which mean what ``open_lines`` would find; ``MAY_BE_PART``; or None: it holds
        no part of a line, and only ``open_lines`` knows what else it holds.
    """
    if len(value) > LENGTH_MAX:
        return None
    try:
        fields = _JSON.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return MAY_BE_PART
    part = part_of(fields)
    if part is not None and part[1]:
        return MAY_BE_PART
    message = fields.get("message") or fields.get("log")
    if type(message) is not str or _SIMPLE.match(message) is None:
        other = message_of(fields)
        return MAY_BE_PART if other is None or may_hold_parts(other) else None
    try:
        return message.encode(), broker if broker >= 0 else envelope_broker(fields)
    except UnicodeEncodeError:
        return None


_SIMPLE = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) "
    r"(?:Completed request:|\[GroupCoordinator (?:id=)?\d|\[GroupMetadataManager brokerId=\d)",
    re.ASCII,
)
"""The beginning of a line that needs nothing of its envelope but the broker; ``QUICK`` matches it as well."""


def may_hold_parts(text: str) -> bool:
    """Say whether a text may hold a part of a line: a container runtime's, or further JSON behind a header.

    JSON behind ``Completed request:`` is the broker's own.
    """
    if "stdout P" in text or "stderr P" in text or text.lstrip()[:1] == "{":
        return True
    place = text.find('{"')
    return place >= 0 and "Completed request:" not in text[:place]


def _simple_envelope(value: bytes, carrier: Carrier) -> Opened | None:
    """Return the line of a plain object with a message in Kafka's own pattern; None for any other."""
    try:
        fields = _JSON.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return _simple_line(fields, carrier)


def _simple_line(fields: Fields, carrier: Carrier) -> Opened | None:
    message = fields.get("message") or fields.get("log")
    return open_quickly(message, carrier, fields) if type(message) is str else None


_OWN_PATTERN = (b"[2", b"Completed request:")
_broker_of = lru_cache(maxsize=4096)(key_broker)


def _bounded(lines: Iterator[Found]) -> Iterator[Found]:
    is_any = False
    for one in islice(lines, LINES_MAX):
        is_any = True
        yield one
    if not is_any:
        yield EnvelopeError("envelope_without_message")
    elif next(lines, None) is not None:
        yield EnvelopeError("too_many_lines", f"more than {LINES_MAX} in one record")


_IS_JSON = re.compile(rb"[ \t\r\n\xef\xbb\xbf,]*+(?:\{|\[\s*[{\"])")
_IS_CARRIED = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d) (?:stdout|stderr) [FP](?::\w+)* ")


def _lines_of(value: bytes, carrier: Carrier) -> Iterator[Found]:
    if _IS_JSON.match(value):
        yield from _json_lines(value.lstrip(b" \t\r\n\xef\xbb\xbf,"), carrier)
    elif value[:1] == b'"' and (text := _json_text(value)) is not None:
        yield from _text_lines(text, carrier, 0)
    elif value[:1] == _OTLP:
        yield from _binary_lines(value, carrier)
    else:
        yield from _decoded_lines(value, carrier)


def _json_text(value: bytes) -> str | None:
    try:
        found = _JSON.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if isinstance(found, str) else None


def _decoded_lines(value: bytes, carrier: Carrier) -> Iterator[Found]:
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        yield EnvelopeError("not_utf8", str(error)[:200])
        return
    yield from _text_lines(text, carrier, 0)


_OTLP = b"\x0a"
"""The first field of OpenTelemetry's exports; also a line feed, but no line begins with one."""


def _binary_lines(value: bytes, carrier: Carrier) -> Iterator[Found]:
    try:
        export = otlp.export_of(value)
    except otlp.NotOtlp:
        yield from _decoded_lines(value, carrier)
        return
    yield from _otlp_lines(export, carrier, 0)


def _text_lines(text: str, carrier: Carrier, depth: int) -> Iterator[Found]:
    if "\n" in text and _IS_CARRIED.match(text):
        for line in text.split("\n"):
            if line:
                yield from _one_line(line, carrier, depth)
    else:
        yield from _one_line(text, carrier, depth)


def _one_line(text: str, carrier: Carrier, depth: int) -> Iterator[Found]:
    opened = open_text(text, carrier)
    pairs = None if opened.is_known or depth > _DEPTH_MAX else pairs_of(text)
    if pairs is not None and message_of(pairs):
        yield from _field_lines(pairs, carrier, depth + 1)
        return
    if not opened.is_known and depth < _DEPTH_MAX and opened.line.message[:2] == '{"':
        # A container runtime may carry JSON again.
        within = opened.carrier._replace(
            moment=Moment(opened.line.at_ms) if opened.has_header else carrier.moment
        )
        inner = list(_json_lines(opened.line.message.encode(errors="replace"), within, depth + 1))
        if not any(isinstance(one, EnvelopeError) for one in inner):
            yield from inner
            return
    yield opened


_JSON = msgspec.json.Decoder()


def _json_lines(value: bytes, carrier: Carrier, depth: int = 0) -> Iterator[Found]:
    try:
        found = _JSON.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        lines = value.split(b"\n")
        if len(lines) > 1 and all(line.lstrip()[:1] in (b"{", b"") for line in lines):
            for line in lines:
                if line.strip():
                    yield from _json_lines(line.strip(), carrier, depth)
        else:
            yield EnvelopeError("envelope_invalid", str(error)[:200])
        return
    yield from _found_lines(found, carrier, depth)


# --- JSON --------------------------------------------------------------------------------------------

_BATCHES = ("records", "logs", "events", "logEvents", "entries", "lines", "messages", "result", "data")
_WITHIN = ("jsonPayload", "message", "log", "body", "event", "payload", "_source", "data")


def _found_lines(found: Any, carrier: Carrier, depth: int) -> Iterator[Found]:
    """Yield the lines in decoded JSON."""
    if depth > _DEPTH_MAX:
        yield EnvelopeError("envelope_invalid", "nested too deeply")
    elif isinstance(found, list):
        for one in found:
            yield from _found_lines(one, carrier, depth + 1)
    elif isinstance(found, dict):
        yield from _field_lines(found, carrier, depth)
    elif isinstance(found, str):
        yield from _message_lines(found, carrier, depth)
    else:
        yield EnvelopeError("envelope_invalid", "not an object")


def _field_lines(fields: Fields, carrier: Carrier, depth: int) -> Iterator[Found]:
    simple = _simple_line(fields, carrier)
    if simple is not None:
        yield simple
        return
    for name, read in _SHAPES:
        if isinstance(fields.get(name), list):
            yield from read(fields, carrier, depth)
            return
    message = message_of(fields)
    carrier = carrier_of(fields, carrier)
    if message is not None:
        yield from _message_lines(message, carrier, depth)
        return
    within = next((fields[name] for name in _BATCHES if isinstance(fields.get(name), list)), None)
    if within is None:
        within = next((fields[name] for name in _WITHIN if isinstance(fields.get(name), dict)), None)
    if within is None:
        yield EnvelopeError("envelope_without_message")
    else:
        yield from _found_lines(within, carrier, depth + 1)


def _message_lines(message: str, carrier: Carrier, depth: int) -> Iterator[Found]:
    if depth < _DEPTH_MAX and message.lstrip()[:1] == "{":
        # A shipper wrapped JSON lines (Docker's, or log4j2's own): the inner one is closer to the event.
        try:
            yield from _json_lines(message.strip().encode(), carrier, depth + 1)
        except UnicodeEncodeError as error:
            yield EnvelopeError("not_utf8", str(error)[:200])
    else:
        yield from _text_lines(message, carrier, depth + 1)


# --- batches -----------------------------------------------------------------------------------------


def _loki_lines(fields: Fields, carrier: Carrier, depth: int) -> Iterator[Found]:
    """Yield the lines of a push to Loki: streams with labels, each of them times with lines."""
    for stream in fields["streams"]:
        if not isinstance(stream, dict):
            yield EnvelopeError("envelope_invalid", "a stream is no object")
            continue
        of_stream = carrier_of({"stream": stream.get("stream")}, carrier)
        values = stream.get("values")
        entries = values if isinstance(values, list) else stream.get("entries")
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, list) and len(entry) > 1:
                time, line = entry[0], entry[1]
                yield from _field_lines({"timestamp": time, "line": line}, of_stream, depth + 1)
            else:
                yield from _found_lines(entry, of_stream, depth + 1)


def _otlp_lines(fields: Fields, carrier: Carrier, depth: int) -> Iterator[Found]:
    """Yield the lines of an OpenTelemetry export: resources, their scopes, and the records of each."""
    for resource in objects(fields.get("resourceLogs")):
        told = resource.get("resource")
        of_resource = carrier_of(attributes_of(told if isinstance(told, dict) else {}), carrier)
        for scope in objects(resource.get("scopeLogs") or resource.get("instrumentationLibraryLogs")):
            for record in objects(scope.get("logRecords")):
                attributes = attributes_of(record)
                named: dict[str, Any] = {**record, "attributes": attributes}
                named.update((name, attributes[name]) for name in _OF_A_RUNTIME if name in attributes)
                yield from _field_lines(named, of_resource, depth + 1)


_OF_A_RUNTIME = ("logtag", "stream")
_Reader = Callable[[Fields, Carrier, int], Iterator[Found]]
_SHAPES: tuple[tuple[str, _Reader], ...] = (("resourceLogs", _otlp_lines), ("streams", _loki_lines))
