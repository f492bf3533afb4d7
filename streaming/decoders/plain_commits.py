"""Reads a whole column of offset commits at once, if their bytes have the usual layout.

A commit read here needs no further check.  One that is not plain may still be good (texts beyond ASCII,
future tags): ``coordinator_model.decoding`` decides.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from streaming.decoders.binary_column import BinaryColumn, Bools, Ints

_KEY_FRAME_SIZE = 10
"""Record type, two lengths and the partition of a commit's key."""

_NEWEST_VERSION = 4
_TOPIC_ID_TAG = 0x01_00_10
"""One tagged field, number 0, 16 bytes long."""
_TOPIC_ID_SIZE = 19
_SIZE_MAX = 2**14 + 64
"""Longer values are not plain: metadata has at most offset.metadata.max.bytes (4096 by default)."""
_KINDS = 8
"""Versions that are distinguished; the last stands for all others."""


class _Frame(NamedTuple):
    """The fixed parts of a value: all but its metadata and their length.

    Before the metadata: 2 bytes version, 8 offset, and from version 3 on 4 leader epoch.  After it: 8 commit
    time, in version 1 another 8, in version 4 tags.
    """

    version: int
    before: int
    behind: int
    tags: bytes = b""
    """The bytes at the beginning of tags."""


_FRAMES = (
    _Frame(_NEWEST_VERSION, 14, 8 + _TOPIC_ID_SIZE, _TOPIC_ID_TAG.to_bytes(3, "big")),
    _Frame(_NEWEST_VERSION, 14, 8 + 1, b"\0"),
    _Frame(3, 14, 8),
    _Frame(2, 10, 8),
    _Frame(1, 10, 16),
    _Frame(0, 10, 8),
)


class _Layout(NamedTuple):
    """A frame for values of one size."""

    version: int
    places: Ints
    """Places within the value, each relative to its start."""
    fixed: npt.NDArray[np.uint8]
    """The bytes that must stand there."""
    metadata_at: int
    metadata_size: int
    time_at: int


class KeyLayout(NamedTuple):
    """Where group and topic end within each commit key, and whether the key is surely complete."""

    group_end: Ints
    topic_end: Ints
    partition: Ints
    plain: Bools


class PlainValues(NamedTuple):
    """Where each row's commit time stands in the column's buffer; meaningless where not ``plain``.

    The offset always follows the version.
    """

    time_at: Ints
    plain: Bools


def key_layout(key: BinaryColumn) -> KeyLayout:
    """Return the layout of keys that announce an offset commit (type 0 or 1)."""
    group = key.number(key.start + 2, 2)
    topic = key.number(key.start + 4 + np.maximum(group, 0), 2)
    fits = (group >= 0) & (topic >= 0) & (group + topic + _KEY_FRAME_SIZE == key.length)
    plain = fits & key.is_ascii(key.start, np.where(fits, key.length - 4, 0))
    partition = key.number(key.start + key.length - 4, 4)
    return KeyLayout(4 + group, 6 + group + topic, partition, plain)


def find_plain_values(value: BinaryColumn, row: Ints, *, legacy: Bools) -> PlainValues:
    """Return which of these rows have values of a plain layout, and where to read them.

    Values of one size and version differ only in their contents, so comparing the few bytes that follow from
    size and version is enough; clients write metadata of few sizes (most none at all).

    Args:
        value: the column of values.
        row: which of its rows to look at.
        legacy: for each of them, whether its key is of type 0, which knows version 0 only.
    """
    start, length = value.start[row], value.length[row] * value.present[row]
    found = PlainValues(np.zeros(len(row), np.int64), np.zeros(len(row), np.bool_))
    kind = np.minimum(length, _SIZE_MAX) * _KINDS + np.minimum(value.byte(start + 1), _KINDS - 1)
    for number in np.flatnonzero(np.bincount(kind)).tolist():
        layouts = _layouts(*divmod(number, _KINDS))
        alike = np.flatnonzero(kind == number) if layouts else row[:0]
        for layout in layouts:
            like = _is_like(value, start[alike], layout)
            if layout.version > 0:
                like &= ~legacy[alike]
            hits = alike[like]
            found.time_at[hits], found.plain[hits] = start[hits] + layout.time_at, True
    return found


def _is_like(value: BinaryColumn, start: Ints, layout: _Layout) -> Bools:
    """Say for the values of the layout's size that begin at ``start`` whether they have this layout."""
    like: Bools = (value.data.take(start + layout.places) == layout.fixed).all(axis=0)
    if layout.metadata_size and like.any():
        like[like] = _is_ascii(value.window(start[like] + layout.metadata_at, layout.metadata_size))
    return like


def _is_ascii(texts: npt.NDArray[np.uint8]) -> Bools:
    """Say for each text whether it is ASCII; mostly all are, which one check shows much faster."""
    return np.ones(len(texts), np.bool_) if texts.max() < 0x80 else texts.max(axis=1) < 0x80


@lru_cache(maxsize=1_024)
def _layouts(size: int, version: int) -> tuple[_Layout, ...]:
    """Return the plain layouts for a value of this size and version; no value has two of them."""
    frames = [frame for frame in _FRAMES if frame.version == version and size < _SIZE_MAX]
    return tuple(filter(None, (_layout(frame, size) for frame in frames)))


def _layout(frame: _Frame, size: int) -> _Layout | None:
    """Return the layout in which metadata and its length fill the rest of the frame."""
    length = _metadata_length(size - frame.before - frame.behind, compact=frame.version == _NEWEST_VERSION)
    if length is None:
        return None
    time_at = size - frame.behind
    version = enumerate(frame.version.to_bytes(2, "big"))
    fixed = [*version, *enumerate(length, frame.before), *enumerate(frame.tags, time_at + 8)]
    place, byte = (np.array(column).reshape(-1, 1) for column in zip(*fixed, strict=True))
    metadata_at = frame.before + len(length)
    return _Layout(frame.version, place, byte.astype(np.uint8), metadata_at, time_at - metadata_at, time_at)


def _metadata_length(room: int, *, compact: bool) -> bytes | None:
    """Return the bytes of the length of metadata that fills the rest of ``room`` after them."""
    if not compact:
        return (room - 2).to_bytes(2, "big") if 2 <= room < 2**15 else None
    if 1 <= room < 0x80:
        return bytes([room])  # a varint of the length + 1
    return bytes([room - 1 & 0x7F | 0x80, room - 1 >> 7]) if 0x80 < room <= 2**14 else None


def topic_ids(value: BinaryColumn, row: Ints, wanted: Bools) -> Ints:
    """Return the first 8 bytes of the topic's id in the values of these rows, 0 where there is none.

    Args:
        value: the column of values.
        row: which of its rows to read.
        wanted: for each of them, whether to.
    """
    end = value.start[row] + value.length[row]
    told = (
        wanted & (value.length[row] > _TOPIC_ID_SIZE) & (value.number(value.start[row], 2) == _NEWEST_VERSION)
    )
    told &= value.number(end - _TOPIC_ID_SIZE - 1, 4) & 0xFF_FF_FF == _TOPIC_ID_TAG
    return np.where(told, value.number(end - 16, 8), 0)
