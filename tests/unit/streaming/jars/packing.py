"""Records packed into blocks by our Java."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pyarrow as pa

from streaming.decoders import cut_words
from streaming.workers import BLOCK, EVENTS
from streaming.workers.blocks import unpacked

Record = tuple[int, int, int, int, bytes | None, bytes | None]
"""Feed, partition, offset, timestamp_ms, key, value."""
_TOPICS = ("offsets", "events", "control")


def packed(java: Any, records: list[Record]) -> list[pa.RecordBatch]:
    """Return the rows of the blocks that Java makes of records."""
    batch = pa.RecordBatch.from_arrays([pa.array(blocks(java, records), pa.binary())], [BLOCK])
    return [one for part in (batch.slice(0, 1), batch.slice(1)) for one in unpacked(part)]


def blocks(java: Any, records: list[Record]) -> list[bytes]:
    """Return the blocks that Java makes of records."""
    kafka, given = java.org.apache.kafka, java.java.util.ArrayList()
    headers = kafka.common.header.internals.RecordHeaders()
    create, nobody = kafka.common.record.TimestampType.CREATE_TIME, java.java.util.Optional.empty()
    # Each call of Java is a round trip, so equal neighbours are made at once.
    for (feed, partition, offset, timestamp_ms, key, value), alike in groupby(records):
        place = _TOPICS[feed], partition, offset, timestamp_ms, create, -1, -1
        record = kafka.clients.consumer.ConsumerRecord(*place, key, value, headers, nobody)
        given.addAll(java.java.util.Collections.nCopies(len(list(alike)), record))
    feeds = java.java.util.HashMap()
    for number, topic in enumerate(_TOPICS):
        feeds[topic] = number
    rows = java.groupwatch.Packing(feeds, EVENTS, cut_words()).call(given.iterator())
    return [bytes(row.getBinary(1)) for row in _each(rows)]


def _each(iterator: Any) -> Iterator[Any]:
    while iterator.hasNext():
        yield iterator.next()
