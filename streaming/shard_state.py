"""The stateful stage: one shard's cells in, transitions, alerts and reports out.

Runs in Spark's Python workers by ``applyInPandasWithState``.  Spark keeps, per shard, a version, the
time at which the shard must be looked at without news, and the shard itself as opaque bytes: only
``coordinator_model.shard`` reads those.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
import pandas as pd

from alerts.rules import RuleJudge
from coordinator_model.observations import CLUSTER_SHARD, Clock, EventsClock, Seen, unpack
from coordinator_model.shard import Judge, Outputs, Shard
from streaming.collector import collector_paused
from streaming.watermark import Clocked
from streaming.worker_memory import keep_memory

STATE_SCHEMA = "version int, due_ms long, blob binary"
"""Frozen in every checkpoint: change it and no checkpoint can be read."""

OUTPUT_SCHEMA = "kind string, key string, value binary"

STATE_VERSION = 1
NEVER_MS = 2**62
"""``due_ms`` of a shard that waits for nothing."""

_log = logging.getLogger(__name__)
_Row = tuple[str, str, bytes]


@cache
def _judge() -> Judge:
    return RuleJudge()


@dataclass(frozen=True)
class ShardStage:
    """The function for ``applyInPandasWithState``: small, and pickled by reference to this module."""

    cluster: str
    shard_count: int

    def __call__(
        self, key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: Any
    ) -> Iterator[pd.DataFrame]:
        """Apply one batch's cells to one shard; yields at most one frame of ``OUTPUT_SCHEMA``."""
        keep_memory()
        # Nothing made here has cycles, and a shard's many small objects are looked through again and again.
        with collector_paused():
            seen = [one for frame in frames for cell in frame["payload"] for one in unpack(bytes(cell))]
            shard, (due_ms, blob) = int(key[1]), _stored(state)
            if blob is not None and not needs_look(seen, due_ms):
                rows = clocked(seen) if shard == CLUSTER_SHARD else []
            else:
                rows, blob, due_ms = self.advance(shard, seen, blob)
                state.update((STATE_VERSION, due_ms, blob))
            del seen
        if rows:
            yield pd.DataFrame(rows, columns=["kind", "key", "value"])

    def advance(self, shard: int, seen: list[Seen], blob: bytes | None) -> tuple[list[_Row], bytes, int]:
        """Return the output rows, the new blob and when the shard is due, after ``seen``."""
        machine = self._load(shard, blob)
        outputs = machine.step(seen, _judge())
        due_ms = machine.due_ms
        rows = list(rows_of(outputs, shard))
        if shard == CLUSTER_SHARD:
            rows += clocked(seen, machine.header.order.now_ms)
        return rows, machine.save(), NEVER_MS if due_ms is None else due_ms

    def _load(self, shard: int, blob: bytes | None) -> Shard:
        return Shard.load(blob, cluster=self.cluster, shard=shard, shard_count=self.shard_count)


def _stored(state: Any) -> tuple[int, bytes | None]:
    if not state.exists:
        return NEVER_MS, None
    _, due_ms, blob = state.get
    return int(due_ms), bytes(blob)


def needs_look(seen: Iterable[Seen], due_ms: int) -> bool:
    """Say whether a shard must be loaded: not if only clocks came that ask nothing and reach no deadline.

    Clocks that are skipped are lost to the shard, which is harmless: each partition's next one says
    more, and comes within half a second.
    """
    reached_ms = -1
    for one in seen:
        what = one.what
        if isinstance(what, Clock):
            if what.ask:
                return True
            reached_ms = max(reached_ms, one.at_ms + max(what.skew_ms.values(), default=0))
        elif isinstance(what, EventsClock):
            reached_ms = max(reached_ms, one.at_ms)
        else:
            return True
    return reached_ms >= due_ms


def clocked(seen: Iterable[Seen], now_ms: int = -1) -> list[_Row]:
    """Return the row that tells the driver which clocks were read; ``now_ms``: how far the shard came."""
    control_ms, partitions = -1, -1
    events: dict[int, int] = {}
    for one in seen:
        if isinstance(one.what, Clock):
            control_ms, partitions = max(control_ms, one.at_ms), one.what.events_partitions
        elif isinstance(one.what, EventsClock):
            events[one.partition] = max(events.get(one.partition, -1), one.at_ms)
    if control_ms < 0 and not events:
        return []
    told = Clocked(control_ms=control_ms, events=events, partitions=partitions, now_ms=now_ms)
    return [("clocked", "", msgspec.json.encode(told))]


def _totals_of(outputs: Outputs) -> Iterator[_Row]:
    if outputs.compared:
        told = {"compared": outputs.compared, "agreeing": outputs.agreeing}
        yield "agreement", "", msgspec.json.encode(told)
    if outputs.cluster_report is not None:
        yield "cluster", "", outputs.cluster_report


def rows_of(outputs: Outputs, shard: int) -> Iterator[_Row]:
    """Yield a shard's outputs as rows for the driver, in the order in which they must be written."""
    encode = msgspec.json.encode
    for transition in outputs.transitions:
        yield "transition", transition.group, encode(transition)
    for alert in outputs.alerts:
        yield "alert", alert.id, encode(alert)
    for broker, lost, group in outputs.contradictions:
        yield "contradiction", group, encode({"broker": broker, "lost": lost, "group": group})
    for upset in outputs.upset:
        yield "upset", upset.group, encode(msgspec.structs.asdict(upset))
    for divergence in outputs.divergences:
        yield "divergence", divergence.group, encode(divergence)
    for report in outputs.reports:
        yield "report", report.group, encode(report)
    yield from _totals_of(outputs)
    if outputs.reported:
        yield "reported", str(shard), b"{}"
