"""Lines that the JVM has cut at the words between their parts (``streaming/jars/Cutting.java``).

It tells of each line where the words stand, and gives each part a number that equal parts share, also later.
So a part is read where it comes first, and for all other lines a number is looked up.
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streaming.decoders.binary_column import BinaryColumn, Ints
from streaming.decoders.known_texts import Finding

CUT = "cut"
"""The column of what is told of each line, as ``_TOLD`` says."""
_PLACES = ("begin", "end", "head_end", "who", "times", "origin", "asked", "answered", "connection")
"""Where the parts begin or end, behind the beginning of the row; 65,535: there is no such part."""
_PARTS = (
    "heads",
    "whos",
    "timed",
    "origins",
    "offsets",
    "answers",
    "connections",
    "before",
    "behind",
)
"""The numbers of the parts; -1: it has none."""
_TOLD = np.dtype(
    [
        ("depth", "<i2"),
        *((name, "<u2") for name in _PLACES),
        *((name, "<i4") for name in _PARTS),
        ("whose", "<i4"),
    ]
)
"""In how many JSON strings a message stands, -1 if nothing is told; places, numbers, and whose these are."""
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)


class CutLines:
    """The lines of a column that were cut, and stand in so many JSON strings."""

    def __init__(self, column: BinaryColumn, row: Ints, told: npt.NDArray[np.void]) -> None:
        """Take lines that stand in equally many JSON strings.

        Args:
            column: in which they stand.
            row: which of it they are, at least one.
            told: what is told of each.
        """
        self.column = column
        self.row = row
        self.depth = int(told["depth"][0])
        """In how many JSON strings they stand."""
        self.end: Ints = column.start[row] + told["end"]
        """Where each message ends."""
        self._told = told
        self._whose = int(told["whose"][0])
        self._data = memoryview(column.data.data)

    def around(self, before: Finding, behind: Finding, some: Ints) -> tuple[Ints, Ints]:
        """Return the codes of what stands before the messages of some of the lines, and behind."""
        start = self.column.start[self.row]
        stop = start + self.column.length[self.row]

        def texts(begin: Ints, end: Ints) -> Callable[[Ints], list[bytes]]:
            return lambda line: self._texts(begin[some[line]], end[some[line]], digits=False)

        head, tail = texts(start, start + self._told["begin"] + 1), texts(self.end - 1, stop)
        return (
            before.codes_of(self._told["before"][some], self._whose, head),
            behind.codes_of(self._told["behind"][some], self._whose, tail),
        )

    def codes(
        self, known: Finding, some: Ints, part: str, places: tuple[str, str], *, digits: bool = True
    ) -> Ints:
        """Return the code of a part of some of the lines.

        Args:
            known: the texts that it may be.
            some: which lines.
            part: what its number is called.
            places: what is told of where it begins, and of where it ends.
            digits: False: every digit counts as 0.
        """

        def texts(line: Ints) -> list[bytes]:
            start, told = self.column.start[self.row[some[line]]], self._told[some[line]]
            return self._texts(*(start + told[name] for name in places), digits=digits)

        return known.codes_of(self._told[part][some], self._whose, texts)

    def _texts(self, begin: Ints, end: Ints, *, digits: bool) -> list[bytes]:
        pairs = zip(begin.tolist(), end.tolist(), strict=True)
        texts = [self._data[one:other].tobytes() for one, other in pairs]
        return texts if digits else [text.translate(_ZEROS) for text in texts]


def cut_lines(values: pa.ChunkedArray, cut: pa.ChunkedArray) -> Iterator[tuple[CutLines, int]]:
    """Yield the lines of a column that were cut, each time with the first row of their part of the column.

    Args:
        values: the rows.
        cut: what is told of each.
    """
    first = 0
    for chunk, told in zip(values.chunks, cut.chunks, strict=True):
        rows = np.frombuffer(told.buffers()[1], _TOLD, len(told), _TOLD.itemsize * told.offset)
        column = BinaryColumn(chunk)
        depths = rows["depth"]
        for depth in np.unique(depths[depths >= 0]).tolist():
            row = np.flatnonzero(depths == depth)
            yield CutLines(column, row, rows[row]), first
        first += len(chunk)
