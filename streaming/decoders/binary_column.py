"""One binary Arrow column, read with numpy directly from its buffers."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def _within(place: Ints, count: int) -> Ints:
    """Return the nearest of the first ``count`` places; faster than ``np.clip`` for few places.

    For windows: ``take``, which clips by itself, would copy the whole array of windows.
    """
    return np.minimum(np.maximum(place, 0), count - 1)


class BinaryColumn:
    """A binary or large_binary column for numpy: every value's place in one buffer."""

    def __init__(self, column: pa.Array) -> None:
        self.column = column
        _, offsets, data = column.buffers()
        wide = pa.types.is_large_binary(column.type)
        ends = (
            np.frombuffer(offsets, dtype=np.int64 if wide else np.int32) if offsets else np.zeros(1, np.int64)
        )
        ends = ends[column.offset : column.offset + len(column) + 1].astype(np.int64)
        self.start: Ints = ends[:-1]
        self.length: Ints = np.diff(ends)
        self.present: Bools = (
            column.is_valid().to_numpy(zero_copy_only=False)
            if column.null_count
            else np.ones(len(column), np.bool_)
        )
        raw = np.frombuffer(data, dtype=np.uint8) if data else np.zeros(0, np.uint8)
        # Reads of 8 bytes are clipped to the buffer, so it must have at least 8.
        self.data = raw if len(raw) >= 8 else np.pad(raw, (0, 8 - len(raw)))

    def byte(self, place: Ints) -> Ints:
        """Return the byte at each place; a place outside gives any byte, which the caller must mask."""
        return self.data.take(place, mode="clip").astype(np.int64)

    def is_digit(self, place: Ints) -> Bools:
        """Say whether the byte at each place is one of 0 to 9; mask as with ``byte``."""
        # A byte below "0" wraps around and is far above 9.
        return np.asarray(self.data.take(place, mode="clip") - np.uint8(ord("0")) < 10)

    def number(self, place: Ints, size: int) -> Ints:
        """Return the big-endian signed number of ``size`` bytes at each place; mask as with ``byte``."""
        count = len(self.data) - size + 1
        window: npt.NDArray[Any] = np.ndarray((count,), dtype=f">i{size}", buffer=self.data, strides=(1,))
        return window[_within(place, count)].astype(np.int64)

    def text(self, place: Ints, size: int) -> npt.NDArray[np.bytes_]:
        """Return ``size`` bytes at each place, without trailing NULs; mask as with ``byte``."""
        texts: npt.NDArray[np.bytes_] = self.window(place, size).view(f"S{size}").reshape(len(place))
        return texts

    def window(self, place: Ints, size: int) -> npt.NDArray[np.uint8]:
        """Return ``size`` (at least one) bytes at each place as a row of a matrix; mask as with ``byte``."""
        data = self.data if len(self.data) >= size else np.pad(self.data, (0, size - len(self.data)))
        count = len(data) - size + 1
        whole: npt.NDArray[np.void] = np.ndarray((count,), f"V{size}", buffer=data, strides=(1,))
        return whole[_within(place, count)].view(np.uint8).reshape(len(place), size)

    def holds(self, row: Ints, place: Ints, word: bytes) -> Bools:
        """Say for each row whether ``word`` stands at the given place in it."""
        start = self.start[row]
        within = (start <= place) & (place + len(word) <= start + self.length[row])
        return np.asarray(within & (self.text(place, len(word)) == word))

    def find(self, row: int, word: bytes, *, is_last: bool = False) -> int:
        """Return the first (or last) place of ``word`` in a row, -1 if there is none."""
        start = int(self.start[row])
        text = self.data[start : start + int(self.length[row])].tobytes()
        at = text.rfind(word) if is_last else text.find(word)
        return at if at < 0 else start + at

    def at(self, row: int) -> bytes | None:
        """Return one value."""
        value: bytes | None = self.column[row].as_py()
        return value

    def those(self, row: Ints) -> list[bytes | None]:
        """Return the values of these rows; faster than one by one."""
        values: list[bytes | None] = self.column.take(pa.array(row)).to_pylist()
        return values

    def texts(self, start: Ints, size: Ints) -> pa.Array:
        """Return consecutive, disjoint stretches of valid UTF-8 as a column of texts, in this order."""
        some = np.flatnonzero(size)
        step = np.zeros(len(self.data) + 1, np.int8)
        step[start[some]] += 1
        step[(start + size)[some]] -= 1
        within = np.cumsum(step[:-1], dtype=np.int8).view(np.bool_)
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(size)))
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(self.data[within])]
        return pa.Array.from_buffers(pa.large_string(), len(size), buffers)

    def is_ascii(self, start: Ints, length: Ints) -> Bools:
        """Say for each stretch whether it is ASCII, and so valid UTF-8; stretches must lie in the buffer."""
        others = np.flatnonzero(self.data >= 0x80)
        return np.asarray(np.searchsorted(others, start) == np.searchsorted(others, start + length))
