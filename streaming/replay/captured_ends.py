"""Takes end offsets from captured rows, for the groups that read those partitions.

In the stream the driver does that (``streaming/driver/probing/ends.py``).  In a capture an end holds until
the next one.
"""

from collections.abc import Iterable

from coordinator_model.capture import EndOffsetRow
from coordinator_model.kafka import shard_of
from coordinator_model.observations import EndOffsetsReported, OffsetsCommitted, Seen, Source


class CapturedEnds:
    """Who reads which partition, and where it ended last; gives out what groups are to be told."""

    def __init__(self, shard_count: int) -> None:
        """Begin without any."""
        self._shard_count = shard_count
        self._rows: dict[tuple[str, int], EndOffsetRow] = {}
        self._readers: dict[tuple[str, int], dict[str, None]] = {}
        """Topic and partition -> the groups that commit to it, in the order in which they were met."""

    def captured(self, row: EndOffsetRow, offset: int) -> dict[int, list[Seen]]:
        """Return what a captured end tells the groups that are known to read the partition."""
        place = (row.topic, row.partition)
        self._rows[place] = row
        told = ((group, [row]) for group in self._readers.get(place, ()))
        return self._seen(told, row.timestamp_ms, offset)

    def committed(self, what: OffsetsCommitted, at_ms: int, offset: int) -> dict[int, list[Seen]]:
        """Return what was captured before a group was met, of the partitions that it is met with now."""
        rows = []
        for commit in what.commits:
            readers = self._readers.setdefault((commit.topic, commit.partition), {})
            row = self._rows.get((commit.topic, commit.partition))
            if what.group not in readers and row is not None:
                rows.append(row)
            readers[what.group] = None
        # Each as old as it is: the lag at this commit is not known from it.
        return self._seen([(what.group, [row]) for row in rows], at_ms, offset)

    def _seen(
        self, told: Iterable[tuple[str, list[EndOffsetRow]]], at_ms: int, offset: int
    ) -> dict[int, list[Seen]]:
        cells: dict[int, list[Seen]] = {}
        for index, (group, rows) in enumerate(told):
            seen = Seen(
                at_ms=at_ms,
                source=Source.CONTROL,
                partition=0,
                offset=offset,
                index=index,
                broker=-1,
                recorded_at_ms=at_ms,
                backlog=False,
                what=EndOffsetsReported(group=group, ends=_ends_of(rows), asked_ms=_asked_ms(rows, at_ms)),
            )
            cells.setdefault(shard_of(group, self._shard_count), []).append(seen)
        return cells


def _asked_ms(rows: Iterable[EndOffsetRow], at_ms: int) -> int:
    """Return when the brokers were asked, -1 if that was at ``at_ms``."""
    asked_ms = max(row.timestamp_ms for row in rows)
    return asked_ms if asked_ms < at_ms else -1


def _ends_of(rows: Iterable[EndOffsetRow]) -> dict[str, dict[int, int]]:
    ends: dict[str, dict[int, int]] = {}
    for row in rows:
        ends.setdefault(row.topic, {})[row.partition] = row.offset
    return ends
