"""Which commits are read without a second look: a wrong "no" would only be slow, so it is asked for."""

import numpy as np
import pyarrow as pa
import pytest

from streaming.decoders.binary_column import BinaryColumn
from streaming.decoders.plain_commits import find_plain_values, key_layout
from tests.unit.coordinator_model.kafka_bytes import commit_key, commit_value, uvarint


def _column(*values: bytes | None) -> BinaryColumn:
    return BinaryColumn(pa.array(values, pa.binary()))


def _read(*values: bytes | None, legacy: bool = False) -> list[tuple[int, int] | None]:
    """Return offset and commit time of each value, None where it is not plain."""
    column = _column(*values)
    found = find_plain_values(column, np.arange(len(values)), legacy=np.full(len(values), legacy))
    offset, at_ms = column.number(column.start + 2, 8), column.number(found.time_at, 8)
    numbers = zip(offset.tolist(), at_ms.tolist(), found.plain.tolist(), strict=True)
    return [(offset, at_ms) if plain else None for offset, at_ms, plain in numbers]


@pytest.mark.parametrize("topic_id", [None, b"\x05" * 16])
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 4096, 16_382])
def test_every_version_is_plain(size: int, topic_id: bytes | None) -> None:
    """All versions with ASCII metadata, with and without a topic id, stand side by side."""
    values = [
        commit_value(version - 2, 2**40 + version, version=version, metadata="m" * size, topic_id=topic_id)
        for version in range(5)
    ]
    assert _read(*values) == [(version - 2, 2**40 + version) for version in range(5)]


def test_legacy_keys_know_version_0_only() -> None:
    """Type 0 was never written with a newer value."""
    values = [commit_value(1, 2, version=version) for version in range(5)]
    assert _read(*values, legacy=True) == [(1, 2), None, None, None, None]


def _announcing(length: bytes, metadata: bytes) -> bytes:
    """Return a version 4 value with this metadata behind these length bytes, true or not."""
    return commit_value(1, 1, topic_id=None).replace(
        b"\1" + (1).to_bytes(8, "big"), length + metadata + bytes(8)
    )


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"\0",
        commit_value(1, 1, version=5),
        commit_value(1, 1, metadata="é"),
        commit_value(1, 1, extra_tags=((3, b""),)),
        *(
            commit_value(1, 1, version=version).replace(
                b"\0\0" + (1).to_bytes(8, "big"), b"\xff\xff" + bytes(7)
            )
            for version in (0, 2, 3)
        ),
        _announcing(b"\0", b"")[:-1],
        _announcing(b"\x80\x80", b"m" * 16_383),
        _announcing(uvarint(20_000), b"m" * 19_999),
    ],
    ids=lambda value: None if value is None else value[:24].hex(),
)
def test_what_is_not_plain(value: bytes | None) -> None:
    """Nulls, torn ones, null metadata, texts beyond ASCII, other tags and longer lengths are not."""
    assert _read(commit_value(1, 1), value) == [(1, 1), None]


def test_a_long_length_is_written_as_meant() -> None:
    """The bytes that the test above takes for odd are plain where their length is true and short enough."""
    assert _read(_announcing(uvarint(9), b"m" * 8), _announcing(uvarint(300), b"m" * 299)) == [(1, 0), (1, 0)]


def test_keys_are_laid_out() -> None:
    """Ends of group and topic, the partition, and whether all of it is ASCII."""
    layout = key_layout(
        _column(commit_key("group", "topic", -7), commit_key("ü", "t", 2), commit_key("g", "t", 2)[:-1])
    )
    assert layout.plain.tolist() == [True, False, False]
    assert layout.group_end.tolist()[:2] == [9, 6]
    assert layout.topic_end.tolist()[:2] == [16, 9]
    assert layout.partition.tolist()[:2] == [-7, 2]
