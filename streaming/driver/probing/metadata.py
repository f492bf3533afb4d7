"""Writes leaders, numbers of partitions and brokers' settings into the control topic when they change."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from streaming.control import BrokersRecord, ControlRecord, LeadersRecord, TopicsRecord
from streaming.driver.probing.brokers import Layout

REPEATS = 3
"""How many times all leaders are written again after a line said that a shard moved."""


def wall_ms() -> int:
    """Return the driver's wall clock, in epoch ms."""
    return time.time_ns() // 1_000_000


class MetadataWriter:
    """Remembers what was written of one cluster, and writes what differs."""

    def __init__(self, run: str, write: Callable[[Iterable[ControlRecord]], None]) -> None:
        self._run = run
        self._write = write
        self._written: dict[str, dict[Any, Any]] = {}
        self._failover: tuple[object, int] = (None, REPEATS)
        self.transaction_ms = -1
        """The brokers' longest transaction; -1: unknown yet."""
        self.forget()

    def forget(self) -> None:
        """Write everything again at the next chance; from any thread."""
        self._written = {"leaders": {}, "brokers": {}, "topics": {}}

    def write_changes(self, what: Literal["leaders", "brokers", "topics"], found: Mapping[Any, Any]) -> None:
        """Write what is new; the first time, everything."""
        written = self._written[what]
        changed = {key: value for key, value in found.items() if written.get(key) != value}
        if not changed:
            return
        at_ms = wall_ms()
        record: ControlRecord
        if what == "leaders":
            record = LeadersRecord(at_ms=at_ms, run=self._run, leaders=changed)
        elif what == "brokers":
            record = BrokersRecord(at_ms=at_ms, run=self._run, brokers=changed)
        else:
            record = TopicsRecord(at_ms=at_ms, run=self._run, partitions=changed)
        self._write([record])
        written.update(changed)
        if what == "brokers":
            self.transaction_ms = _longest_transaction_ms(written)

    def repeat_leaders_after(self, failover: object) -> None:
        """Write all leaders again, a few times, after brokers logged another ``failover``.

        A line alone proves no failover (``coordinator_model/shard/loads.py``), and the first answer after it
        may still be the old one.
        """
        repeated = self._failover[1] if failover == self._failover[0] else 0
        if repeated < REPEATS:
            repeated += 1
            self._written["leaders"] = {}
        self._failover = failover, repeated

    def write_shrunk(self, before: Layout, now: Layout) -> None:
        """Write the offsets partitions that lost an in-sync replica because its broker is gone.

        A replica that is only slow leaves the in-sync set as well, now and then, and nobody need notice.
        """
        known = before.in_sync.items()
        left = {shard: was - now.in_sync.get(shard, was) for shard, was in known}
        shrunk = [shard for shard, brokers in left.items() if brokers.difference(now.brokers)]
        if shrunk:
            self._write([LeadersRecord(at_ms=wall_ms(), run=self._run, leaders={}, shrunk=sorted(shrunk))])


def _longest_transaction_ms(brokers: Mapping[int, Mapping[str, str]]) -> int:
    told = (settings.get("transaction.max.timeout.ms", "") for settings in brokers.values())
    return max((int(one) for one in told if one.isdecimal()), default=-1)
