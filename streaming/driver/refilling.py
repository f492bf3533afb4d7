"""Shards that lost their saved state: writes again what they need, and watches until they know their groups.

Such a shard starts anew (``coordinator_model/shard/shard.py``) and says so in each batch.  The driver writes
its own part again: settings, leaders, brokers' settings.  The shard's groups return with new records and with
the brokers' answers.  Once it knows every group that the brokers list, or after a bounded time, open alerts
about those groups are handed over as at a first start, and the shard is told that it is complete.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from alerts.alert import Alert
from coordinator_model.kafka import shard_of
from coordinator_model.observations import CLUSTER_SHARD
from streaming.config import ClusterPlan
from streaming.control import AdoptRecord, ControlRecord, RefilledRecord, encode_record
from streaming.driver.adoption import records
from streaming.group_store import RebuildingRow
from streaming.health import Progress
from streaming.kafka_clients import KafkaProducer
from streaming.pipeline import Beginning

WAIT_MAX_S = 600.0
_TOPIC = "rebuilt shards"
_WRITE_S = 10.0
_NAMED_MAX = 10
_log = logging.getLogger(__name__)

Row = tuple[str, str, bytes]
Listing = Callable[[], tuple[float, Collection[str]] | None]
"""When (monotonic) the brokers last listed all groups, and which; None: never."""


class Refilling:
    """One cluster's rebuilt shards."""

    def __init__(
        self,
        plan: ClusterPlan,
        began: Beginning,
        producer: KafkaProducer,
        progress: Progress,
        *,
        listing: Listing,
        known: Callable[[], Collection[str]],
        tell_again: Callable[[], None],
        alerts: Callable[[ClusterPlan], list[Alert]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start without any.

        Args:
            plan: the cluster.
            began: the start of its checkpoint.
            producer: writes the control topic.
            progress: shows which shards are being rebuilt.
            listing: returns the brokers' list of groups.
            known: returns the groups of our mirror.
            tell_again: has leaders and brokers' settings written again.
            alerts: reads a cluster's open alerts.
            now: monotonic seconds.
        """
        self._plan = plan
        self._began = began
        self._producer = producer
        self._progress = progress
        self._listing = listing
        self._known = known
        self._tell_again = tell_again
        self._alerts = alerts
        self._now = now
        self._since_s: dict[int, float] = {}
        self._begun: set[int] = set()
        """Of these the ones whose beginning Kafka took; filled by other threads."""
        self._ended: set[int] = set()
        self._failed: deque[int] = deque()
        """Shards whose beginning or end could not be written; filled by other threads."""
        self._incomplete: dict[int, str] = {}

    def take(self, rows: Iterable[Row]) -> None:
        """Take a batch's rows, and check the shards that were rebuilding before."""
        told = {_shard_in(value) for kind, _, value in rows if kind == "rebuilding"}
        while self._failed:  # what they need was not written; they say it in each batch
            shard = self._failed.popleft()
            self._since_s.pop(shard, None)
            self._ended.discard(shard)
        begun = self._begun.copy()
        new = sorted(told - self._since_s.keys() - self._ended)
        self._ended &= told  # once a shard says it no more, the next time is another one
        if new:
            self._since_s.update(dict.fromkeys(new, self._now()))
            self._in_background(lambda: self._begin(new), new)
        if self._since_s:
            self._look(begun)

    def _look(self, begun: Collection[int]) -> None:
        """End what is whole; one whose beginning was not written would be told so without its settings."""
        missing = self._missing()
        for shard in begun:
            waited_s = self._now() - self._since_s[shard]
            left = missing.get(shard)
            is_complete = left is not None and not left
            if is_complete or waited_s > WAIT_MAX_S:
                self._end(shard, left or [], is_complete=is_complete)
        self._say(missing)

    def _missing(self) -> dict[int, list[str] | None]:
        """Return for each shard the listed groups that it does not know again; None: no list yet."""
        listing, known = self._listing(), self._known()
        found: dict[int, list[str] | None] = {}
        for shard, since_s in self._since_s.items():
            if listing is None or listing[0] <= since_s:
                found[shard] = None
            else:
                there = (name for name in listing[1] if self._shard_of(name) == shard)
                found[shard] = sorted(name for name in there if name not in known)
        return found

    def _shard_of(self, group: str) -> int:
        return shard_of(group, max(1, self._began.shard_count))

    def _say(self, missing: Mapping[int, list[str] | None]) -> None:
        running = [
            f"{_name(shard)} lost its saved state and is being rebuilt: "
            + ("the brokers have not listed its groups yet" if left is None else _left(left))
            for shard, left in sorted(missing.items())
            if shard in self._since_s
        ]
        self._progress.notice(_TOPIC, "; ".join((*running, *self._incomplete.values()))[:2_000])

    def _end(self, shard: int, left: list[str], *, is_complete: bool) -> None:
        del self._since_s[shard]
        self._begun.discard(shard)
        self._ended.add(shard)
        self._incomplete.pop(shard, None)
        if not is_complete:
            waited = f"{WAIT_MAX_S / 60:.0f} minutes"
            self._incomplete[shard] = (
                f"{_name(shard)} lost its saved state, and within {waited} {_left(left)}; groups that "
                "neither write nor are described stay unknown: start with a new checkpoint to read them all"
            )
        known = set(self._known()) if not is_complete else None
        self._in_background(lambda: self._finish(shard, known, is_complete=is_complete), [shard])

    # --- what is written -----------------------------------------------------------------------------

    def _begin(self, shards: list[int]) -> None:
        _log.error("%s: rebuilding lost state of %s", self._plan.cluster, ", ".join(map(_name, shards)))
        self._write(records(self._plan, self._began, [], _wall_ms()))
        self._tell_again()
        self._begun.update(shards)

    def _finish(self, shard: int, known: Collection[str] | None, *, is_complete: bool) -> None:
        alerts = [one for one in self._alerts(self._plan) if self._concerns(shard, one, known)]
        told = records(self._plan, self._began, alerts, _wall_ms())
        self._write(one for one in told if isinstance(one, AdoptRecord))
        run = self._began.run
        self._write([RefilledRecord(at_ms=_wall_ms(), run=run, shards=[shard], complete=is_complete)])

    def _concerns(self, shard: int, alert: Alert, known: Collection[str] | None) -> bool:
        """Say whether an open alert belongs to that shard and a group in ``known``; None: all groups do."""
        if not alert.group:
            return shard == CLUSTER_SHARD
        return self._shard_of(alert.group) == shard and (known is None or alert.group in known)

    def _write(self, told: Iterable[ControlRecord]) -> None:
        topic = self._plan.control_topic
        sent = [self._producer.send(topic, value=encode_record(one), partition=0) for one in told]
        for future in sent:
            future.get(timeout=_WRITE_S)

    def _in_background(self, act: Callable[[], None], shards: Collection[int]) -> None:
        """Do work that waits for Kafka outside the batches; if it fails, these shards begin again."""

        def run() -> None:
            try:
                act()
            except Exception:
                _log.exception("%s: telling the rebuilt shards failed", self._plan.cluster)
                self._failed.extend(shards)

        threading.Thread(target=run, name=f"refilling-{self._plan.cluster}", daemon=True).start()


def _shard_in(value: Any) -> int:
    return msgspec.json.decode(value, type=RebuildingRow).shard


def _name(shard: int) -> str:
    return "the cluster's own shard" if shard == CLUSTER_SHARD else f"shard {shard}"


def _left(left: list[str]) -> str:
    if not left:
        return "not every group that brokers list is known again"
    named = ", ".join(left[:_NAMED_MAX])
    more = f" and {len(left) - _NAMED_MAX} more" if len(left) > _NAMED_MAX else ""
    return f"{len(left)} of the groups that brokers list are not known again ({named}{more})"


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
