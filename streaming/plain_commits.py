"""Reads offset commits whose bytes are laid out as nearly all are, a whole column at once.

What is read here needs no second look, and what is not said to be plain may still be a good commit
(texts beyond ASCII, tags of the future): ``records.py`` decides.
"""

from typing import NamedTuple

import numpy as np

from streaming.binary_column import BinaryColumn, Bools, Ints

_KEY_FRAME_SIZE = 10
"""Record type, two lengths and the partition of a commit's key."""

# The plain layouts of a commit's value, by its version: 2 bytes version, 8 offset, from 3 on 4 leader
# epoch, then the metadata behind its length, 8 commit time, in version 1 another 8, in version 4 tags.
_METADATA_LENGTH_AT: Ints = np.array([10, 10, 10, 14, 14])
_AFTER_METADATA: Ints = np.array([8, 16, 8, 8, 8])
_NEWEST_VERSION = 4
_NO_TAGS_SIZE = 1
_TOPIC_ID_TAG = 0x01_00_10
"""One tagged field, number 0, 16 bytes long."""
_TOPIC_ID_SIZE = 19


class KeyLayout(NamedTuple):
    """Where group and topic end within each commit key, and whether it is surely a whole one."""

    group_end: Ints
    topic_end: Ints
    partition: Ints
    plain: Bools


class PlainValues(NamedTuple):
    """Each row's offset and commit time, which mean nothing where ``plain`` is false."""

    offset: Ints
    committed_at_ms: Ints
    plain: Bools


def key_layout(key: BinaryColumn) -> KeyLayout:
    """Return the layout of keys that announce an offset commit (type 0 or 1)."""
    group = key.number(key.start + 2, 2)
    topic = key.number(key.start + 4 + np.maximum(group, 0), 2)
    fits = (group >= 0) & (topic >= 0) & (group + topic + _KEY_FRAME_SIZE == key.length)
    plain = fits & key.is_ascii(key.start, np.where(fits, key.length - 4, 0))
    partition = key.number(key.start + key.length - 4, 4)
    return KeyLayout(4 + group, 6 + group + topic, partition, plain)


def read_plain_values(value: BinaryColumn, row: Ints, *, legacy: Bools) -> PlainValues:
    """Return what the values of these rows say, as far as their layout is plain.

    Args:
        value: the column of values.
        row: which of its rows to read.
        legacy: for each of them, whether its key is of type 0, which knows version 0 only.
    """
    start, length = value.start[row], value.length[row]
    version = value.number(start, 2)
    known = value.present[row] & (version >= 0) & (version <= np.where(legacy, 0, _NEWEST_VERSION))
    version = np.where(known, version, 0)
    metadata_at, metadata = _metadata(value, start + _METADATA_LENGTH_AT[version], version)
    time_at = metadata_at + metadata
    tail = np.where(version == _NEWEST_VERSION, _tags_size(value, time_at + 8), 0)
    # Parts that add up to exactly the value's length prove that each was read within the value.
    fits = (metadata >= 0) & (time_at + _AFTER_METADATA[version] + tail == start + length)
    plain = known & fits & (tail >= 0)
    plain &= value.is_ascii(metadata_at, np.where(plain, metadata, 0))
    return PlainValues(value.number(start + 2, 8), value.number(time_at, 8), plain)


def _metadata(value: BinaryColumn, place: Ints, version: Ints) -> tuple[Ints, Ints]:
    """Return where each value's metadata begins and how long it is; -1 where its length is odd."""
    compact = version == _NEWEST_VERSION
    low, high = value.byte(place), value.byte(place + 1)
    # A varint of one or two bytes reaches far beyond offset.metadata.max.bytes (4096 by default).
    two = compact & (low >= 0x80)
    long = np.where(high < 0x80, (low & 0x7F) + 0x80 * high, 0)
    length = np.where(compact, np.where(two, long, low) - 1, value.number(place, 2))
    return place + np.where(compact, 1 + two, 2), length


def _tags_size(value: BinaryColumn, place: Ints) -> Ints:
    """Return the size of a tagged section without tags or with the topic id alone, else -1."""
    none = value.byte(place) == 0
    topic_id = value.number(place - 1, 4) & 0xFF_FF_FF == _TOPIC_ID_TAG
    return np.where(none, _NO_TAGS_SIZE, np.where(topic_id, _TOPIC_ID_SIZE, -1))


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
