"""Rows of the events topic in Arrow, as the decode stage gets them."""

from collections.abc import Sequence

import pyarrow as pa

from streaming.decoders.decoding_events import Row


def events_table(rows: Sequence[Row]) -> pa.Table:
    """Return these rows, at least one, as a table."""
    names = ("partition", "offset", "timestamp_ms", "key", "value")
    types = (pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.binary())
    columns = zip(*rows, strict=True)
    return pa.table({n: pa.array(list(one), t) for n, t, one in zip(names, types, columns, strict=True)})
