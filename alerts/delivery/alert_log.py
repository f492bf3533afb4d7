"""``groupwatch-alerts`` as one receiver reads it: a log with a cursor of its own.

Partitions are assigned by hand, so no consumer group is joined and nothing rebalances; the cursor is
kept under a group id that begins with ``groupwatch-``, which the monitor does not watch.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

GROUP_PREFIX = "groupwatch-notifier-"
"""Cursors are committed under this and the receiver's name."""


class AlertRecord(NamedTuple):
    """One record of the alerts topic; ``value`` is None for a tombstone."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class Cursor(NamedTuple):
    """What is done with: everything before ``offset``; ``metadata`` travels with the commit."""

    offset: int
    metadata: str = ""


class AlertLog(Protocol):
    """What the notifier needs of Kafka.  Used from one thread; any call may raise when Kafka is away."""

    def committed(self) -> Mapping[int, Cursor]:
        """Return the cursor of each partition that has one."""
        ...

    def ends(self) -> Mapping[int, int]:
        """Return the end offset of every partition, now."""
        ...

    def positions(self) -> Mapping[int, int]:
        """Return for every partition the offset of the next record to be read."""
        ...

    def seek(self, positions: Mapping[int, int]) -> None:
        """Go on reading there; partitions not named are read from their beginning."""
        ...

    def poll(self, timeout_ms: int) -> list[AlertRecord]:
        """Return the next records, in order within a partition; empty after ``timeout_ms`` without any."""
        ...

    def commit(self, cursors: Mapping[int, Cursor]) -> None:
        """Store cursors; returns when they are stored."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...
