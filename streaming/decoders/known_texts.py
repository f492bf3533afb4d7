"""Texts that occur in column after column; each is read once.

A known text is found without making a Python object of it: its words of eight bytes, each times a number of
its own, are added up, and for a known sum the words are compared.  Where the JVM has numbered texts, a number
that was met before tells its code.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streaming.decoders.binary_column import BinaryColumn, Ints
from streaming.decoders.escaped_texts import unescaped

T = TypeVar("T")
Words = npt.NDArray[np.uint64]
_Bytes = npt.NDArray[np.uint8]

_NEW = -2
_NAME_BYTES = 400
_WORD = 8
_WORDS_MAX = 512
"""Longer texts are looked up one by one."""
_NUMBERINGS_MAX = 64
"""Each task of the JVM numbers for itself, and begins anew when it has too many texts."""
_SIZES_COUNTED_MAX = 4_096
_FACTORS: Words = np.random.default_rng(0).integers(1, 2**63, _WORDS_MAX, np.uint64) | np.uint64(1)


class Finding(ABC):
    """Finds texts in columns that it has met before; what they mean is read once."""

    def __init__(self) -> None:
        self.bytes = 0
        """Rough cost in bytes."""
        self._found_again: dict[int, _Texts] = {}
        self._numbered: dict[int, Ints] = {}

    @abstractmethod
    def codes(self, texts: Sequence[bytes]) -> Ints:
        """Return the code of each text; -1 if it cannot be read."""

    def codes_of(self, numbers: Ints, whose: int, texts: Callable[[Ints], Iterable[bytes]]) -> Ints:
        """Return the code of each text that somebody else has numbered; -1 for a number below 0.

        Args:
            numbers: of the texts; equal numbers mean equal texts.
            whose: who numbered them.
            texts: reads the texts at some places of ``numbers``.
        """
        most = int(numbers.max(initial=-1)) + 1
        known = self._of(whose, most)
        codes = known[numbers]  # the last is that of -1
        new = np.flatnonzero(codes == _NEW)
        if len(new):
            first = np.full(most, -1)
            first[numbers[new[::-1]]] = new[::-1]
            there = np.flatnonzero(first >= 0)
            known[there] = self.codes([*texts(first[there])])
            codes[new] = known[numbers[new]]
        return np.asarray(codes)

    def _of(self, whose: int, size: int) -> Ints:
        """Return the codes of somebody's numbers, with room for so many and one, which is that of -1."""
        known = self._numbered.pop(whose, np.empty(0, np.int64))
        if len(known) <= size:
            before = known[:-1]
            new = np.full(max(2 * len(before), size) - len(before), _NEW)
            # Never less again: a reader's cost must not fall while it reads.
            self.bytes += 8 * (len(before) + len(new) + 1) - known.nbytes
            known = np.concatenate((before, new, [-1]))
        while len(self._numbered) >= _NUMBERINGS_MAX:
            del self._numbered[next(iter(self._numbered))]
        self._numbered[whose] = known  # the last one in use is the last
        return known

    def codes_in(self, column: BinaryColumn, start: Ints, end: Ints, *, digits: bool = True) -> Ints:
        """Return the code of each text (at least one byte long) from ``start`` to before ``end``.

        Args:
            column: in whose buffer they stand.
            start: of each.
            end: of each.
            digits: False: every digit counts as 0.
        """
        length, codes = end - start, np.full(len(start), -1)
        for size in _sizes(length):
            rows = np.flatnonzero(length == size)
            codes[rows] = self._codes_of(column, start[rows], size, digits=digits)
        return codes

    def _codes_of(self, column: BinaryColumn, start: Ints, size: int, *, digits: bool) -> Ints:
        count = -(-size // _WORD)
        lead = count * _WORD - size
        if count > _WORDS_MAX or int(start.min()) < lead:
            return self._read_all(_plain(column.window(start, size), digits=digits))
        # The first word begins before the text: after the last text the column may end.
        texts = _plain(column.window(start - lead, count * _WORD), digits=digits)
        texts[:, :lead] = 0
        known = self._found_again.setdefault(size, _Texts(count))
        words = texts.view(np.uint64)
        codes = known.codes(words)
        new = np.flatnonzero(codes == _NEW)
        if len(new):
            codes[new] = self._read_all(np.ascontiguousarray(texts[new, lead:]))
            self.bytes += known.add(words[new], codes[new])
        return codes

    def _read_all(self, texts: _Bytes) -> Ints:
        count, size = texts.shape
        fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(size), count, [None, pa.py_buffer(texts)])
        encoded = fixed.dictionary_encode()
        distinct = np.frombuffer(encoded.dictionary.buffers()[1], f"V{size}", len(encoded.dictionary))
        return np.asarray(self.codes(distinct.tolist())[encoded.indices.to_numpy()])


class Known(Finding, Generic[T]):
    """Texts that were read, each once; a text's code is its index in ``values``."""

    def __init__(self, read: Callable[[bytes], T | None]) -> None:
        super().__init__()
        self.values: list[T] = []
        self._read = read
        self._codes: dict[bytes, int] = {}

    def codes(self, texts: Sequence[bytes]) -> Ints:
        """Return the code of each text; -1 if it cannot be read."""
        known = self._codes.get
        found = [known(text, _NEW) for text in texts]
        if _NEW in found:
            found = [
                self._learn(text) if code == _NEW else code for text, code in zip(texts, found, strict=True)
            ]
        return np.array(found, np.int64)

    def _learn(self, text: bytes) -> int:
        value = self._read(text)
        # One character beyond Latin makes each part that is read of a text four bytes a character.
        self.bytes += _NAME_BYTES + (2 if text.isascii() else 10) * len(text)
        code = -1 if value is None else len(self.values)
        if value is not None:
            self.values.append(value)
        return self._codes.setdefault(text, code)


class Escaped(Finding):
    """Known texts as they stand in so many JSON strings, with the same codes."""

    def __init__(self, bare: Known[Any], depth: int = 1) -> None:
        super().__init__()
        self._bare = bare
        self._depth = depth

    def codes(self, texts: Sequence[bytes]) -> Ints:
        """Return the code of what each text means; -1 if it cannot be read."""
        found = [unescaped(text, self._depth) for text in texts]
        known = self._bare.codes([text for text in found if text is not None])
        codes = np.full(len(texts), -1)
        codes[[text is not None for text in found]] = known
        return codes


class _Texts:
    """Texts of one size with their codes."""

    def __init__(self, width: int) -> None:
        self._words: Words = np.empty((0, width), np.uint64)
        self._codes: Ints = np.empty(0, np.int64)
        self._sums: Words = np.empty(0, np.uint64)
        """Ascending."""
        self._order: Ints = np.empty(0, np.int64)
        """Index of the text with each sum."""

    def codes(self, words: Words) -> Ints:
        """Return the code of each row; ``_NEW`` if it is unknown, or hidden by another text with its sum."""
        if not len(self._sums):
            return np.full(len(words), _NEW)
        place = np.searchsorted(self._sums, _sums(words))
        which = self._order[np.minimum(place, len(self._sums) - 1)]
        there, codes = self._words.take(which, axis=0), self._codes[which]
        if not np.array_equal(there, words):
            codes[(there != words).any(axis=1)] = _NEW
        return codes

    def add(self, words: Words, codes: Ints) -> int:
        """Keep each of these texts once, unless another text with its sum hides it; return their bytes."""
        sums, first = np.unique(_sums(words), return_index=True)
        if len(self._sums):
            place = np.searchsorted(self._sums, sums)
            is_new = self._sums[np.minimum(place, len(self._sums) - 1)] != sums
            sums, first = sums[is_new], first[is_new]
        which = np.concatenate((self._order, len(self._words) + np.arange(len(first))))
        sums = np.concatenate((self._sums, sums))
        order = np.argsort(sums, kind="stable")  # of two ascending parts
        self._sums, self._order = sums[order], which[order]
        self._words = np.concatenate((self._words, words[first]))
        self._codes = np.concatenate((self._codes, codes[first]))
        return int(words[first].nbytes)


def _sums(words: Words) -> Words:
    return np.asarray(np.einsum("ij,j->i", words, _FACTORS[: words.shape[1]]))


def _plain(texts: _Bytes, *, digits: bool) -> _Bytes:
    """Return the texts, changed in place: without ``digits`` each digit is 0."""
    if not digits:
        above = texts - np.uint8(ord("0"))  # of what is less it is far more than 9
        texts -= above * (above < 10)
    return texts


def _sizes(length: Ints) -> list[int]:
    """Return the distinct lengths, ascending; they are not negative, and mostly few and small."""
    is_counted = int(length.max(initial=0)) < _SIZES_COUNTED_MAX
    sizes: list[int] = (np.flatnonzero(np.bincount(length)) if is_counted else np.unique(length)).tolist()
    return sizes
