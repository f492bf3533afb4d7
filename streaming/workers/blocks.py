"""Blocks of records, as ``Packing.java`` writes them, read as the rows that Spark's own source would give.

The columns lie in the block, and nothing is copied; many values come compressed.  A block of
which some lines were cut has one column more, ``CUT``: where (``decoders/cut_lines.py``).
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from streaming.decoders import CUT

BLOCK = "block"
"""The only column of a batch of blocks."""
_HEAD_NUMBERS = 6
_NUMBER_BYTES = 4
_LZ4 = pa.Codec("lz4_raw")
_ROW_COLUMNS = ("feed", "partition", "offset", "timestamp_ms", "key", "value")


def unpacked(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each block; a batch that has rows is yielded as it is."""
    if batch.schema.names != [BLOCK]:
        yield batch
        return
    blocks = batch.column(BLOCK)
    _, ends, data = blocks.buffers()
    places = np.frombuffer(ends, np.int32)[blocks.offset : blocks.offset + len(blocks) + 1].tolist()
    for begin, end in pairwise(places):
        yield _rows(data.slice(begin, end - begin))


def _rows(block: pa.Buffer) -> pa.RecordBatch:
    head = np.frombuffer(block, np.int32, _HEAD_NUMBERS).tolist()
    count, key_bytes, value_bytes, compressed, numbers, _ = head
    bits = (count + 7) // 8
    place = _HEAD_NUMBERS * 4

    def part(size: int) -> pa.Buffer:
        nonlocal place
        found = block.slice(place, size)
        place += (size + 7) // 8 * 8
        return found

    offset, timestamp_ms, partition = part(8 * count), part(8 * count), part(4 * count)
    key_end, value_end, feed = part(4 * (count + 1)), part(4 * (count + 1)), part(count)
    has_key, has_value = part(bits), part(bits)
    cut = part(_NUMBER_BYTES * numbers * count)
    key, value = part(key_bytes), part(compressed or value_bytes)
    if compressed:
        value = _LZ4.decompress(value, value_bytes)
    columns = [
        pa.Array.from_buffers(pa.int8(), count, [None, feed]),
        pa.Array.from_buffers(pa.int32(), count, [None, partition]),
        pa.Array.from_buffers(pa.int64(), count, [None, offset]),
        pa.Array.from_buffers(pa.int64(), count, [None, timestamp_ms]),
        pa.Array.from_buffers(pa.binary(), count, [has_key, key_end, key]),
        pa.Array.from_buffers(pa.binary(), count, [has_value, value_end, value]),
    ]
    names = [*_ROW_COLUMNS]
    if numbers:
        columns.append(pa.Array.from_buffers(pa.binary(_NUMBER_BYTES * numbers), count, [None, cut]))
        names.append(CUT)
    return pa.RecordBatch.from_arrays(columns, names)
