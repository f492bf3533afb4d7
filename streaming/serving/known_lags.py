"""The lag of every group for a list that is sorted by it: computed once in a while, not at each request."""

import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from streaming.group_store import GroupStore, KeptGroup

FRESH_MS = 10_000
"""End offsets are asked for no more often."""


class Recent(Protocol):
    """The last hour of each group."""

    def lag(self, cluster: str, group: str) -> int | None:
        """Return the records behind at the last look; -1: unknown, None: nobody looked."""
        ...

    def spark(self, cluster: str, group: str) -> tuple[int, list[int | None], list[int]] | None:
        """Return step (ms), lag and starts of rebalances; None: nobody looked."""
        ...


class KnownLags:
    """Records behind, all topics together; -1: unknown."""

    def __init__(self, store: GroupStore, clock_ms: Callable[[], int], recent: Recent | None = None) -> None:
        self._store = store
        self._clock_ms = clock_ms
        self._recent = recent
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], tuple[int, int]] = {}
        """(cluster, group) -> when it was computed, and the records."""

    def of(self, items: Iterable[tuple[str, KeptGroup]]) -> dict[tuple[str, str], int]:
        """Return (cluster, group) -> records, for some groups."""
        now_ms = self._clock_ms()
        with self._lock:  # whoever asks meanwhile gets what is computed now
            if len(self._known) > 2 * len(self._store.groups()) + FRESH_MS:
                self._known.clear()  # names come and go
            return {(name, group.group): self._one(name, group, now_ms) for name, group in items}

    def _one(self, name: str, group: KeptGroup, now_ms: int) -> int:
        looked = self._recent.lag(name, group.group) if self._recent else None
        if looked is not None:
            return looked
        at_ms, records = self._known.get((name, group.group), (-FRESH_MS, -1))
        if now_ms - at_ms < FRESH_MS:
            return records
        lags = self._store.lags(name, group, now_ms) if group.topics else {}
        records = sum(one.records for one in lags.values()) if lags else -1
        self._known[name, group.group] = (now_ms, records)
        return records
