"""Reads Kafka's wire types from bytes that may be anything.

Every mistake in the bytes is one exception, ``DecodeError``, whose ``fault`` comes from a small fixed list,
because it becomes a metric label.  Every length in the bytes is compared with the bytes that are left before
it is used, so nothing here allocates more than it was given.
"""

import base64
import struct
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")

_INT16 = struct.Struct(">h")
_UINT16 = struct.Struct(">H")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_VARINT_BYTES_MAX = 5
"""Kafka's varints hold 32 bits."""
_VARINT_MAX = 2**32 - 1
_LENGTH_MAX = 2**31 - 1
_TEXT_BYTES_MAX = 2**15 - 1
"""Kafka refuses longer strings, whatever length the bytes announce."""


class Fault(StrEnum):
    """The mistake in bytes that cannot be read; the values are metric labels."""

    TRUNCATED = "truncated"
    """More bytes are announced than there are: a torn record, or a length made of garbage."""
    BAD_LENGTH = "bad_length"
    """An impossible length: negative, null where Kafka writes no null, a varint without an end."""
    BAD_UTF8 = "bad_utf8"
    """A text that is not UTF-8. Brokers write only what they decoded themselves, so this is damage."""
    UNKNOWN_TYPE = "unknown_type"
    """A record type of no release; Kafka's own loader skips these as well."""
    UNKNOWN_VERSION = "unknown_version"
    """A value version newer than we know; Kafka's own loader fails on these."""
    TRAILING_BYTES = "trailing_bytes"
    """The record ends before its bytes do."""
    EMPTY = "empty"
    """No bytes at all, which is not the same as a null value."""
    NULL_KEY = "null_key"
    """A record without a key, which no coordinator writes."""
    OUT_OF_RANGE = "out_of_range"
    """A number that fits its bytes but not its meaning: a negative offset, a time of no year."""


class DecodeError(Exception):
    """Bytes that are not in Kafka's format.

    ``fault`` is safe as a metric label; ``detail`` is for people and may contain numbers.
    """

    def __init__(self, fault: Fault, detail: str = "") -> None:
        super().__init__(f"{fault.value}: {detail}" if detail else fault.value)
        self.fault = fault
        self.detail = detail


def print_uuid(raw: bytes) -> str:
    """Return 16 bytes as Kafka prints a Uuid: URL-safe base64 without padding, 22 characters."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


class Reader:
    """A cursor over one record's bytes that never moves past their end."""

    __slots__ = ("_data", "_end", "_position")

    def __init__(self, data: bytes, start: int = 0, end: int | None = None) -> None:
        self._data = data
        self._position = start
        self._end = len(data) if end is None else end

    @property
    def remaining(self) -> int:
        """Bytes left."""
        return self._end - self._position

    def _advance(self, size: int) -> int:
        """Return where ``size`` bytes begin, and skip them.

        Raises:
            DecodeError: there are fewer left.
        """
        start = self._position
        if size > self._end - start:
            raise DecodeError(Fault.TRUNCATED, f"{size} bytes wanted, {self._end - start} left")
        self._position = start + size
        return start

    def int8(self) -> int:
        """Return a signed byte."""
        value = self._data[self._advance(1)]
        return value - 256 if value > 127 else value

    def int16(self) -> int:
        """Return a signed 16-bit integer."""
        start = self._position
        if start + 2 > self._end:
            self._advance(2)
        self._position = start + 2
        value: int = _INT16.unpack_from(self._data, start)[0]
        return value

    def uint16(self) -> int:
        """Return an unsigned 16-bit integer."""
        value: int = _UINT16.unpack_from(self._data, self._advance(2))[0]
        return value

    def int32(self) -> int:
        """Return a signed 32-bit integer."""
        start = self._position
        if start + 4 > self._end:
            self._advance(4)
        self._position = start + 4
        value: int = _INT32.unpack_from(self._data, start)[0]
        return value

    def int64(self) -> int:
        """Return a signed 64-bit integer."""
        start = self._position
        if start + 8 > self._end:
            self._advance(8)
        self._position = start + 8
        value: int = _INT64.unpack_from(self._data, start)[0]
        return value

    def uvarint(self) -> int:
        """Return an unsigned varint of at most 32 bits."""
        value = 0
        for shift in range(0, 7 * _VARINT_BYTES_MAX, 7):
            byte = self._data[self._advance(1)]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > _VARINT_MAX:
                    break
                return value
        raise DecodeError(Fault.BAD_LENGTH, "varint of more than 32 bits")

    def uuid(self) -> str:
        """Return a uuid as Kafka prints it."""
        return print_uuid(self.take(16))

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes."""
        start = self._advance(size)
        return self._data[start : start + size]

    def short_length(self) -> int | None:
        """Return the length before a non-flexible string; None is null."""
        length: int = _INT16.unpack_from(self._data, self._advance(2))[0]
        return length if length >= 0 else _checked(length)

    def int_length(self) -> int | None:
        """Return the length before non-flexible bytes or a non-flexible array; None is null."""
        length: int = _INT32.unpack_from(self._data, self._advance(4))[0]
        return length if length >= 0 else _checked(length)

    def compact_length(self) -> int | None:
        """Return the length before a flexible string, bytes or array; None is null."""
        return _checked(self.uvarint() - 1)

    def short_text(self) -> str | None:
        """Return a non-flexible string; None is null.

        The same as ``text`` after ``short_length``, in one call: group records consist of these.
        """
        data, start, end = self._data, self._position + 2, self._end
        if start <= end:
            stop = start + ((data[start - 2] << 8) | data[start - 1])
            if stop <= end and data[start - 2] < 0x80:
                self._position = stop
                try:
                    return data[start:stop].decode()
                except UnicodeDecodeError as error:
                    raise DecodeError(Fault.BAD_UTF8, error.reason) from None
        size = self.short_length()
        return None if size is None else self.text(size)

    def blob(self) -> bytes | None:
        """Return non-flexible bytes; None is null. As ``take`` after ``int_length``, in one call."""
        start = self._position + 4
        if start <= self._end:
            size: int = _INT32.unpack_from(self._data, start - 4)[0]
            if 0 <= size <= self._end - start:
                self._position = start + size
                return self._data[start : start + size]
        length = self.int_length()
        return None if length is None else self.take(length)

    def text(self, size: int) -> str:
        """Return ``size`` bytes of UTF-8."""
        if size > _TEXT_BYTES_MAX:
            raise DecodeError(Fault.BAD_LENGTH, f"a text of {size} bytes")
        start = self._advance(size)
        try:
            return self._data[start : start + size].decode()
        except UnicodeDecodeError as error:
            raise DecodeError(Fault.BAD_UTF8, error.reason) from None

    def array(self, count: int, element: Callable[["Reader"], T]) -> list[T]:
        """Return ``count`` elements, each of which takes one byte at least."""
        if count > self.remaining:
            raise DecodeError(Fault.TRUNCATED, f"{count} elements announced, {self.remaining} bytes left")
        return [element(self) for _ in range(count)]

    def int32s(self, count: int) -> tuple[int, ...]:
        """Return ``count`` signed 32-bit integers; assignments are mostly made of these."""
        start = self._advance(4 * count)
        return struct.unpack_from(f">{count}i", self._data, start)

    def tags(self) -> Iterator[tuple[int, "Reader"]]:
        """Yield each tagged field as (tag, reader of exactly its payload) and skip it.

        A caller that does not know a tag does not use its reader.
        """
        for _ in range(self.uvarint()):
            tag, size = self.uvarint(), self.uvarint()
            start = self._advance(size)
            yield tag, Reader(self._data, start, start + size)

    def finish(self) -> None:
        """Check that no bytes are left.

        Kafka's loader would ignore a rest.  But no release writes one, and a mirror that ignores it makes
        groups out of garbage, so here it is a fault.

        Raises:
            DecodeError: bytes are left.
        """
        if self.remaining:
            raise DecodeError(Fault.TRAILING_BYTES, f"{self.remaining} bytes left over")


def _checked(length: int) -> int | None:
    """Return ``length``, or None for null.

    Raises:
        DecodeError: negative otherwise, or more than Java can count.
    """
    if length == -1:
        return None
    if not 0 <= length <= _LENGTH_MAX:
        raise DecodeError(Fault.BAD_LENGTH, f"length {length}")
    return length
