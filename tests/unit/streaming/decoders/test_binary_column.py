"""Numbers and texts read out of an Arrow column's buffer."""

import numpy as np
import pyarrow as pa
import pytest

from streaming.decoders.binary_column import BinaryColumn

VALUES = [b"ab", None, b"\xff\xfe\0\0\0\0\0\1", b"", "é".encode()]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_places_of_values(kind: pa.DataType) -> None:
    """Every value has its place and length in the buffer; a slice has its own."""
    column = BinaryColumn(pa.array(VALUES, kind))
    assert column.present.tolist() == [True, False, True, True, True]
    assert column.length[column.present].tolist() == [2, 8, 0, 2]
    sliced = BinaryColumn(pa.array(VALUES, kind).slice(2, 2))
    assert [sliced.at(row) for row in range(2)] == [VALUES[2], b""]
    assert bytes(sliced.data[sliced.start[0] : sliced.start[0] + sliced.length[0]]) == VALUES[2]


def test_numbers_are_big_endian_and_signed() -> None:
    """Of every size that is asked for, at any place."""
    column = BinaryColumn(pa.array(VALUES, pa.binary()))
    start = column.start[2:3]
    assert column.byte(start).tolist() == [0xFF]
    assert [column.number(start, size).tolist() for size in (2, 4)] == [[-2], [-131_072]]
    assert column.number(start, 8).tolist() == [int.from_bytes(VALUES[2] or b"", "big", signed=True)]


def test_digits_are_those_of_ascii() -> None:
    """Their neighbours are none, and neither is a byte far above."""
    column = BinaryColumn(pa.array([b"/0459:\xb3a"], pa.binary()))
    found = column.is_digit(np.arange(8))
    assert found.tolist() == [False, True, True, True, True, False, False, False]


def test_places_outside_are_harmless() -> None:
    """A place before or behind the buffer gives some number instead of an error, in an empty column too."""
    for column in (BinaryColumn(pa.array(VALUES, pa.binary())), BinaryColumn(pa.array([], pa.binary()))):
        places = np.array([-5, 10**9])
        assert len(column.number(places, 8)) == len(column.byte(places)) == 2


def test_a_word_is_found_within_its_row_only() -> None:
    """Neither across the end of a row nor in its neighbour, and nowhere in one that is null."""
    column = BinaryColumn(pa.array([b"xabc", None, b"ab", b"cab", b"abc"], pa.binary()))
    assert [column.find(row, b"abc") for row in range(5)] == [1, -1, -1, -1, 9]
    row, place = np.array([0, 0, 2, 3, 4, 4]), np.array([1, 0, 4, 7, 9, 1])
    assert column.holds(row, place, b"abc").tolist() == [True, False, False, False, True, False]
    assert bytes(column.window(place[:1], 3)[0]) == b"abc"


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_several_values_and_stretches_at_once(kind: pa.DataType) -> None:
    """Of a slice as well, nulls and empty stretches among them."""
    column = BinaryColumn(pa.array(VALUES, kind).slice(1))
    assert column.those(np.array([3, 0, 1])) == [VALUES[4], None, VALUES[2]]
    places = np.array([0, column.start[1] + 2, column.start[1] + 3, column.start[1], column.start[3]])
    assert column.texts(places, np.array([1, 1, 1, 0, 2])).to_pylist() == ["a", "\0", "\0", "", "é"]
    assert column.texts(column.start[:0], column.length[:0]).to_pylist() == []


def test_ascii_is_judged_stretch_by_stretch() -> None:
    """Only the bytes of a stretch count, not its neighbours."""
    column = BinaryColumn(pa.array(VALUES, pa.binary()))
    assert column.is_ascii(column.start, column.length).tolist() == [True, True, False, True, False]
    assert column.is_ascii(column.start[2:3] + 2, np.array([6])).tolist() == [True]
