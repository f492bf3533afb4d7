"""Packs the values of many groups at one moment into few bytes.  Pure.

Groups are numbered, and 256 neighbours make a page, so that reading one group's hours touches one page of
each moment, and writing all groups' values touches few rows.  Only groups whose values changed are in a page.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

SIZE = 256
_LEVEL = 1
_TENTHS, _HUNDREDTHS = 10, 100
_INT32_MAX = 2**31 - 1
_ROW = 1 + 8 + 4 + 4


class Value(NamedTuple):
    """What was known of one group at one moment; -1: unknown."""

    records: int
    seconds: float
    """Age of the oldest record that waits; it grows by itself while the value holds."""
    rate: float
    """Offsets committed a second."""


UNKNOWN = Value(-1, -1.0, -1.0)


def page_of(group: int) -> int:
    """Return the page of a group's number."""
    return group // SIZE


def pack(values: Sequence[tuple[int, Value]]) -> bytes:
    """Return the bytes of (group's number, value) pairs of one page."""
    slots = np.fromiter((group % SIZE for group, _ in values), dtype="u1", count=len(values))
    records = np.fromiter((one.records for _, one in values), dtype="<i8", count=len(values))
    seconds = np.fromiter((_whole(one.seconds, _TENTHS) for _, one in values), "<i4", len(values))
    rates = np.fromiter((_whole(one.rate, _HUNDREDTHS) for _, one in values), "<i4", len(values))
    # Column by column: equal bytes lie together, which is what makes it small.
    return zlib.compress(b"".join(one.tobytes() for one in (slots, records, seconds, rates)), _LEVEL)


def _whole(number: float, parts: int) -> int:
    return -1 if number < 0 else min(_INT32_MAX, round(number * parts))


def packed(changes: Iterable[tuple[int, Value]]) -> Iterator[tuple[int, bytes]]:
    """Yield (page, bytes) for values of any groups."""
    pages: dict[int, list[tuple[int, Value]]] = {}
    for group, value in changes:
        pages.setdefault(page_of(group), []).append((group, value))
    for page, values in pages.items():
        yield page, pack(values)


def value_in(packed_page: bytes, group: int) -> Value | None:
    """Return one group's value; None: it did not change then."""
    raw = zlib.decompress(packed_page)
    count = len(raw) // _ROW
    at = raw.find(group % SIZE, 0, count)
    if at < 0:
        return None
    records = int.from_bytes(raw[count + 8 * at : count + 8 * at + 8], "little", signed=True)
    second, rate = (
        int.from_bytes(raw[start : start + 4], "little", signed=True)
        for start in (count * 9 + 4 * at, count * 13 + 4 * at)
    )
    return Value(records, _part(second, _TENTHS), _part(rate, _HUNDREDTHS))


def _part(number: int, parts: int) -> float:
    return -1.0 if number < 0 else number / parts


def records_in(page: int, packed_page: bytes) -> tuple["np.ndarray", "np.ndarray"]:
    """Return the groups' numbers of a page, and their records behind."""
    raw = zlib.decompress(packed_page)
    count = len(raw) // _ROW
    slots = np.frombuffer(raw, dtype="u1", count=count).astype("i8") + page * SIZE
    return slots, np.frombuffer(raw, dtype="<i8", count=count, offset=count)
