"""Texts in columns get the same code wherever they stand, and no two the same."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.decoders.binary_column import BinaryColumn, Ints
from streaming.decoders.known_texts import Known, _Texts

_TEXTS = st.lists(
    st.one_of(
        st.binary(min_size=1, max_size=40), st.sampled_from([b"team-1/m-1", b"team-1/m-2", b"x" * 600])
    ),
    max_size=30,
)


def even(text: bytes) -> bytes | None:
    """Stand in for a reader: texts of an odd number of bytes cannot be read."""
    return None if len(text) % 2 else text


def read(known: Known[bytes], texts: Sequence[bytes], *, lead: int = 0, digits: bool = True) -> list[int]:
    """Return the codes of a column's values, each without its first ``lead`` bytes."""
    column = BinaryColumn(pa.array(texts, pa.binary()))
    start = column.start + lead
    codes: list[int] = known.codes_in(column, start, column.start + column.length, digits=digits).tolist()
    return codes


@given(st.lists(_TEXTS, max_size=4), st.integers(0, 9))
def test_each_text_has_its_code_wherever_it_stands(columns: list[list[bytes]], lead: int) -> None:
    """In column after column, short or long, at the beginning of the buffer and at its end."""
    known = Known(even)
    for texts in columns:
        codes = read(known, [b"." * lead + one for one in texts], lead=lead)
        for text, code in zip(texts, codes, strict=True):
            assert (known.values[code] if code >= 0 else None) == even(text)
    assert len(known.values) == len(set(known.values))


def test_what_is_known_is_not_read_again() -> None:
    """Neither from the next column, nor where it stands elsewhere."""
    asked: list[bytes] = []

    def ask(text: bytes) -> bytes:
        asked.append(text)
        return text

    known = Known(ask)

    first = read(known, [b"one text", b"another text", b"one text"])
    again = read(known, [b"...another text", b"...one text"], lead=3)

    assert first == [0, 1, 0]
    assert again == [1, 0]
    assert sorted(asked) == [b"another text", b"one text"]


def test_texts_with_the_same_sum_are_told_apart() -> None:
    """The highest bit of two words: twice an odd number times 2**63 is nothing."""
    text = bytearray(b"two words, twice 8")
    other = bytearray(text)
    other[7 - 6] ^= 0x80
    other[15 - 6] ^= 0x80
    known = Known(even)

    for _ in range(3):
        codes = read(known, [b"......" + text, b"......" + other], lead=6)
        assert [known.values[code] for code in codes] == [text, other]


@pytest.mark.parametrize("size", [3, 30, 700])
def test_without_digits_each_counts_as_nought(size: int) -> None:
    """Measured times repeat but for their digits."""
    known = Known(lambda text: text)
    codes = read(known, [b"12:" * size, b"90:" * size, b"9x:" * size], digits=False)

    assert codes[0] == codes[1] != codes[2]
    assert known.values[codes[0]] == b"00:" * size


def test_a_text_that_is_hidden_by_another_is_not_kept_again() -> None:
    """However often it comes: nobody counts what is kept here."""
    words = np.zeros((2, 2), np.uint64)
    words[1] = 2**63  # in both words: the same sum
    texts = _Texts(2)
    for _ in range(3):
        texts.add(words, np.arange(2))

    assert len(texts._words) == len(texts._sums) == 1
    assert sorted(texts.codes(words).tolist()) == [-2, 0]


def test_what_is_kept_counts() -> None:
    """Whoever holds names without end must know."""
    known = Known(even)
    read(known, [b"%08d" % number for number in range(1_000)])

    assert known.bytes > 24_000


def test_no_text_has_no_code() -> None:
    """An empty column."""
    known = Known(even)

    assert known.codes_in(BinaryColumn(pa.array([], pa.binary())), *np.zeros((2, 0), np.int64)).tolist() == []


def test_numbers_of_many_are_kept_apart_and_forgotten_again() -> None:
    """Equal numbers of two mean two texts; who has not told any for long is read anew."""
    read: list[bytes] = []

    def noted(text: bytes) -> bytes:
        read.append(text)
        return text

    known = Known(noted)
    asked = 0

    def codes(whose: int, texts: list[bytes]) -> list[bytes]:
        def told(line: Ints) -> list[bytes]:
            nonlocal asked
            asked += len(line)
            return [texts[one] for one in line.tolist()]

        numbers = np.array([int(text[-1:]) for text in texts])
        found = known.codes_of(np.append(numbers, -1), whose, told)
        assert found[-1] == -1
        return [known.values[code] for code in found[:-1].tolist()]

    before = 0
    for whose in range(100):
        texts = [b"%d-7" % whose, b"%d-0" % whose, b"%d-7" % whose]
        assert codes(whose, texts) == texts
        assert codes(0, [b"0-0", b"0-7"]) == [b"0-0", b"0-7"]
        assert known.bytes > before
        before = known.bytes
    assert (asked, len(read)) == (200, 200)  # the first was used all the time
    assert codes(1, [b"1-0"]) == [b"1-0"]
    assert (asked, len(read)) == (201, 200)
