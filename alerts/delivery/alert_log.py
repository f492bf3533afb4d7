"""The alerts topic as one receiver reads it, with a cursor of its own.

The reader assigns its partitions itself, so it joins no consumer group and causes no rebalance.  It commits
its cursor under a group id that begins with ``groupwatch-``; the monitor does not watch those groups.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

GROUP_PREFIX = "groupwatch-notifier-"
"""Prefix of the group ids that cursors are committed under; the receiver's name follows."""


class AlertRecord(NamedTuple):
    """One record of the alerts topic; ``value`` is None for a tombstone."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class Cursor(NamedTuple):
    """Where a receiver stands: all before ``offset`` is delivered; ``metadata`` is committed with it."""

    offset: int
    metadata: str = ""


class AlertLog(Protocol):
    """The Kafka calls that the notifier needs.  One thread makes them; each may raise while Kafka is away."""

    def committed(self) -> Mapping[int, Cursor]:
        """Return the cursor of each partition that has one."""
        ...

    def ends(self) -> Mapping[int, int]:
        """Return the current end offset of every partition."""
        ...

    def positions(self) -> Mapping[int, int]:
        """Return the offset of the next record to read, for every partition."""
        ...

    def seek(self, positions: Mapping[int, int]) -> None:
        """Continue reading at ``positions``; read partitions not named from their beginning."""
        ...

    def poll(self, timeout_ms: int) -> list[AlertRecord]:
        """Return the next records, in order within a partition; empty if none came within ``timeout_ms``."""
        ...

    def commit(self, cursors: Mapping[int, Cursor]) -> None:
        """Commit cursors; returns once Kafka has stored them."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...
