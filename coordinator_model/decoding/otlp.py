"""Reads OpenTelemetry's binary export of logs, the default format of the Collector's Kafka exporter.

Reads of ``ExportLogsServiceRequest`` only what a log line needs, into the same shape as its JSON.  A message
is a row of fields, each a number with a wire type; unknown fields are skipped.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_BYTES_MAX = 10


class NotOtlp(Exception):  # noqa: N818 - says what it is
    """These bytes are no export of logs."""


class _Field(NamedTuple):
    number: int
    value: int | bytes


def export_of(data: bytes) -> dict[str, Any]:
    """Return an export in the shape of its JSON.

    Raises:
        NotOtlp: these bytes are no export, or contain no log record.
    """
    resources = [_resource_logs(one) for one in _messages(data, 1, is_strict=True)]
    if not any(scope["logRecords"] for resource in resources for scope in resource["scopeLogs"]):
        raise NotOtlp
    return {"resourceLogs": resources}


def _resource_logs(data: bytes) -> dict[str, Any]:
    resource = next(_messages(data, 1), b"")
    scopes = [{"logRecords": [_record(one) for one in _messages(scope, 2)]} for scope in _messages(data, 2)]
    return {"resource": {"attributes": _attributes(resource, 1)}, "scopeLogs": scopes}


def _record(data: bytes) -> dict[str, Any]:
    fields = list(_fields(data))
    record: dict[str, Any] = {"attributes": _attributes(data, 6)}
    for number, name in ((1, "timeUnixNano"), (11, "observedTimeUnixNano")):
        found = next((one.value for one in fields if one.number == number), 0)
        if isinstance(found, int) and found:
            record[name] = found
    for number, name in ((3, "severityText"), (5, "body")):
        value = next((one.value for one in fields if one.number == number), None)
        if isinstance(value, bytes):
            record[name] = _value(value) if name == "body" else value.decode(errors="replace")
    return record


def _attributes(data: bytes, number: int) -> list[dict[str, Any]]:
    found = []
    for pair in _messages(data, number):
        key, value = next(_messages(pair, 1), b""), next(_messages(pair, 2), b"")
        found.append({"key": key.decode(errors="replace"), "value": _value(value)})
    return found


def _value(data: bytes) -> dict[str, Any]:
    """Return a text or an integer; other values do not matter here."""
    for field in _fields(data):
        if field.number in (1, 7) and isinstance(field.value, bytes):
            return {"stringValue": field.value.decode(errors="replace")}
        if field.number == 3 and isinstance(field.value, int):
            return {"intValue": field.value}
    return {}


def _messages(data: bytes, number: int, *, is_strict: bool = False) -> Iterator[bytes]:
    for field in _fields(data):
        if field.number == number and isinstance(field.value, bytes):
            yield field.value
        elif is_strict:
            raise NotOtlp


def _fields(data: bytes) -> Iterator[_Field]:
    place, end = 0, len(data)
    while place < end:
        tag, place = _varint(data, place)
        number, kind = tag >> 3, tag & 7
        value: int | bytes
        if kind == _VARINT:
            value, place = _varint(data, place)
        else:
            size = 8 if kind == _FIXED64 else 4
            if kind == _BYTES:
                size, place = _varint(data, place)
            if kind not in (_FIXED64, _FIXED32, _BYTES) or number == 0 or place + size > end:
                raise NotOtlp
            piece, place = data[place : place + size], place + size
            value = piece if kind == _BYTES else int.from_bytes(piece, "little")
        yield _Field(number, value)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    number = 0
    for index, byte in enumerate(data[place : place + _VARINT_BYTES_MAX]):
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, place + index + 1
    raise NotOtlp
