"""The committed offsets of a partition's groups, and those that wait for their transaction.

Kafka: the maps of ``OffsetMetadataManager``.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tests.oracle.timeline import Journal, TimelineMap
from tests.oracle.values.stored import OffsetCommitted


class Place(NamedTuple):
    """One partition, as one group sees it."""

    group: str
    topic: str
    partition: int


class PendingOffset(NamedTuple):
    """A place, in one producer's open transaction."""

    producer_id: int
    place: Place


class Stored(NamedTuple):
    """A committed offset, and where its record stands in the log."""

    value: OffsetCommitted
    record_offset: int


class Skipped(NamedTuple):
    """An offset that a transaction brought too late."""

    pending: Stored
    latest: Stored


class OffsetStore:
    """All offsets of one partition of ``__consumer_offsets``."""

    def __init__(self, journal: Journal) -> None:
        """No offsets."""
        self.main: TimelineMap[Place, Stored] = TimelineMap(journal)
        self.pending: TimelineMap[PendingOffset, Stored] = TimelineMap(journal)

    def of_group(self, group_id: str, *, committed: bool = False) -> list[tuple[Place, Stored]]:
        """Return the offsets of a group outside of transactions, oldest first."""
        view = self.main.committed if committed else self.main.live
        return [(place, stored) for place, stored in view.items() if place.group == group_id]

    def pending_of(self, group_id: str) -> list[Place]:
        """Return the places of a group that wait for a transaction."""
        return list(
            dict.fromkeys(claim.place for claim in self.pending.live if claim.place.group == group_id)
        )

    def is_pending(self, place: Place) -> bool:
        """Say whether some open transaction holds an offset of this place."""
        return any(claim.place == place for claim in self.pending.live)

    def put(self, value: OffsetCommitted, record_offset: int) -> None:
        """Take a record: into the main store, or aside until its transaction ends."""
        place = Place(value.group, value.topic, value.partition)
        stored = Stored(value, record_offset)
        if value.producer_id < 0:
            self.main.put(place, stored)
        else:
            self.pending.put(PendingOffset(value.producer_id, place), stored)

    def forget(self, place: Place) -> None:
        """Take a tombstone: the offset goes, and whatever transactions hold of it."""
        self.main.pop(place)
        for claim in [claim for claim in self.pending.live if claim.place == place]:
            self.pending.pop(claim)

    def end_transaction(self, producer_id: int, *, committed: bool) -> Iterator[Skipped]:
        """Take a marker, and tell which offsets a later commit has overtaken meanwhile."""
        for claim in [claim for claim in self.pending.live if claim.producer_id == producer_id]:
            stored = self.pending.pop(claim)
            if stored is None or not committed:
                continue
            latest = self.main.live.get(claim.place)
            if latest is None or stored.record_offset > latest.record_offset:
                self.main.put(claim.place, stored)
            else:
                yield Skipped(stored, latest)
