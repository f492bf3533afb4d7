"""The envelopes around whole lines, by what stands before and behind the line.

Only their digits differ from row to row (times, offsets in a file), so each shape is opened once.  Which
broker it names counts only if no digit can change that, or if the record's key names one.
"""

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from coordinator_model import decoding
from streaming.decoders.binary_column import BinaryColumn, Ints
from streaming.decoders.known_texts import Known

_SHAPES_MAX = 1_000
"""More of them are no shapes: something else than digits differs in each row."""
_LINE = b"[2026-11-21 06:28:53,123] DEBUG Completed request:{} (kafka.request.logger)"
_DIGIT = re.compile(rb"\d")
_CODE_BITS = 28
_REFUSED, _VARIES = -3, -2


class Inside(NamedTuple):
    """The lines that were read inside their envelopes."""

    row: Ints
    """Row numbers, ascending."""
    broker: Ints
    """The broker of each row's key, or else of its envelope; -1: none."""
    named: Ints
    """The broker of each row's key; -1: it names none."""
    second: npt.NDArray[np.bytes_]
    millis: Ints
    who: Ints
    origin: Ints


class Shapes:
    """The shapes that one reader has met, and the broker that each names."""

    def __init__(self) -> None:
        self._before = Known(bytes)
        self._behind = Known(bytes)
        self._brokers: dict[int, int] = {}
        self.places: tuple[list[int], list[int]] = ([], [])
        """How far lines began behind the beginning of their rows, and ended before the end."""

    def brokers(self, column: BinaryColumn, row: Ints, begin: Ints, end: Ints, named: Ints) -> Ints:
        """Return the broker of each row, -1 if nothing names it; -2 or less: to be opened by itself.

        Args:
            column: of the rows.
            row: which of them.
            begin: where the line begins in each, behind a quote.
            end: where it ends, at a quote.
            named: the broker that the key of each names, -1: none.
        """
        if max(len(self._before.values), len(self._behind.values)) > _SHAPES_MAX:
            return np.full(len(row), _REFUSED)
        start = column.start[row]
        before = self._before.codes_in(column, start, begin, digits=False)
        behind = self._behind.codes_in(column, end, start + column.length[row], digits=False)
        pairs, index = np.unique((before << _CODE_BITS) | behind, return_inverse=True)
        brokers = np.array([self._broker(pair) for pair in pairs.tolist()], np.int64)[index]
        return np.where((named >= 0) & (brokers != _REFUSED), named, brokers)

    def _broker(self, pair: int) -> int:
        broker = self._brokers.get(pair)
        if broker is None:
            before, behind = pair >> _CODE_BITS, pair & ((1 << _CODE_BITS) - 1)
            broker = self._brokers[pair] = _broker(self._before.values[before], self._behind.values[behind])
        return broker


def _broker(before: bytes, behind: bytes) -> int:
    """Return which broker an envelope names whose digits may be any."""
    found = {_opened(_DIGIT.sub(digit, before), _DIGIT.sub(digit, behind)) for digit in (b"1", b"2")}
    if _REFUSED in found:
        return _REFUSED
    zero = _opened(_DIGIT.sub(b"0", before), _DIGIT.sub(b"0", behind))
    found |= set() if zero == _REFUSED else {zero}  # JSON has no number that begins with zeros
    return found.pop() if len(found) == 1 else _VARIES


def _opened(before: bytes, behind: bytes) -> int:
    simple = decoding.whole_line(before + _LINE + behind, -1)
    return simple[1] if isinstance(simple, tuple) and simple[0] == _LINE else _REFUSED
