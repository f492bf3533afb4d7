"""The stateful stage: takes one shard's cells, yields transitions, alerts and reports.

Spark's Python workers run it with ``applyInPandasWithState``.  For each shard Spark stores a version, the
time at which the shard must be looked at even without news, and the shard itself as opaque bytes that only
``coordinator_model`` reads.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
import pandas as pd

from alerts.rules import RuleJudge
from coordinator_model.observations import CLUSTER_SHARD, Clock, EventsClock, Seen
from coordinator_model.ordering import fastest
from coordinator_model.shard import DamagedError, Divergence, Judge, Outputs, Shard, SnapshotError
from streaming.control import ClocksRead
from streaming.decoders import plain, unpack_cell
from streaming.workers.collector import collector_paused
from streaming.workers.saved_state import SavedState
from streaming.workers.worker_memory import keep_memory
from streaming.workers.zstd import ZSTD

STATE_SCHEMA = "version int, due_ms long, blob binary"
"""Fixed in every checkpoint: after a change no checkpoint can be read."""

OUTPUT_SCHEMA = "kind string, key string, value binary"

STATE_VERSION = 1
NEVER_MS = 2**62
"""``due_ms`` of a shard that waits for nothing."""
LOOK_NOW_MS = -1

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

    def __call__(self, key: tuple[Any, ...], frames: Iterable[Any], state: Any) -> Iterator[Any]:
        """Apply one batch's cells to one shard; yields at most once: rows of ``OUTPUT_SCHEMA``.

        ``frames`` have a column ``payload``.  The rows come as a frame, as Spark wants them, or as they are
        for ``state_stream.py``.
        """
        keep_memory()
        # Nothing made here has cycles, and the collector would examine a shard's many objects repeatedly.
        with collector_paused():
            seen, unread = _unpacked(cell for frame in frames for cell in frame["payload"])
            shard, (due_ms, blob) = int(key[1]), _stored(state)
            if blob is not None and not unread and not needs_look(seen, due_ms):
                rows = clocks_row(seen) if shard == CLUSTER_SHARD else []
            else:
                rows, blob, due_ms = self.advance(shard, seen, blob)
                state.update((STATE_VERSION, due_ms, blob))
            del seen
        rows += unread
        if rows:
            is_plain = isinstance(state, SavedState)
            yield rows if is_plain else pd.DataFrame(rows, columns=["kind", "key", "value"])

    def advance(self, shard: int, seen: list[Seen], blob: bytes | None) -> tuple[list[_Row], bytes, int]:
        """Return the output rows, the new blob and when the shard is due, after ``seen``.

        Raises:
            SnapshotError: a newer groupwatch wrote the blob, or the number of shards has changed: the
                operator must choose.
        """
        try:
            return self._advance(self._load(shard, blob), shard, seen)
        except SnapshotError:
            raise
        except Exception as error:
            # This is not one group's failure: whatever it is, it would return with the next batch.
            why = _words(error)
            _log.exception("shard %d of %s failed and starts again without its state", shard, self.cluster)
        try:
            return self._advance(self._anew(shard, why), shard, seen)
        except Exception:
            _log.exception("shard %d of %s failed again; this input of it is lost", shard, self.cluster)
            return self._advance(self._anew(shard, why), shard, [])

    def _advance(self, machine: Shard, shard: int, seen: list[Seen]) -> tuple[list[_Row], bytes, int]:
        outputs = machine.step(seen, _judge())
        due_ms = machine.due_ms
        rows = list(rows_of(outputs, shard, self.shard_count))
        rows.append(due_row(shard, machine.wake_ms))
        if shard == CLUSTER_SHARD:
            rows += clocks_row(seen, machine.header.order.now_ms)
        return rows, machine.save(), NEVER_MS if due_ms is None else min(due_ms, NEVER_MS)

    def _load(self, shard: int, blob: bytes | None) -> Shard:
        try:
            return Shard.load(
                blob, cluster=self.cluster, shard=shard, shard_count=self.shard_count, codec=ZSTD
            )
        except DamagedError as error:
            _log.error("shard %d of %s starts again without its state: %s", shard, self.cluster, error)
            return self._anew(shard, _words(error))

    def _anew(self, shard: int, why: str) -> Shard:
        return Shard.anew(
            cluster=self.cluster, shard=shard, shard_count=self.shard_count, why=why, codec=ZSTD
        )


def _words(error: Exception) -> str:
    return plain(f"{type(error).__name__}: {error}"[:500])


def _unpacked(cells: Iterable[Any]) -> tuple[list[Seen], list[_Row]]:
    """Return the observations in the cells, and rows that count unreadable cells (a bug of ours)."""
    seen: list[Seen] = []
    rows: list[_Row] = []
    for cell in cells:
        found, unread, why = unpack_cell(bytes(cell))
        seen += found
        if unread:
            rows.append(_failed("", f"a cell cannot be read: {why}", unread))
    return seen, rows


def _failed(group: str, detail: str, count: int = 1) -> _Row:
    _log.error("%s", detail)
    one = Divergence(
        kind="internal_error", group=group, broker=-1, at_ms=-1, detail=detail[:500], count=count
    )
    return "divergence", group, msgspec.json.encode(one)


def _stored(state: Any) -> tuple[int, bytes | None]:
    """Return when the shard is due and its blob; of a row in any other form, what is usable."""
    if not state.exists:
        return NEVER_MS, None
    _, due_ms, blob = state.get
    try:
        due = int(due_ms)
    except (TypeError, ValueError, OverflowError):
        due = LOOK_NOW_MS
    return due, blob if isinstance(blob, bytes) else bytes(blob or b"")


def needs_look(seen: Iterable[Seen], due_ms: int) -> bool:
    """Say whether a shard must be loaded: not for mere clocks that ask nothing and reach no deadline.

    The shard never sees skipped clocks, which is harmless: each partition's next clock replaces them within
    half a second.
    """
    reached_ms = -1
    for one in seen:
        what = one.what
        if isinstance(what, Clock):
            if what.ask:
                return True
            reached_ms = max(reached_ms, one.at_ms + fastest(what.skew_ms))
        elif isinstance(what, EventsClock):
            reached_ms = max(reached_ms, one.at_ms)
        else:
            return True
    return reached_ms >= due_ms


def due_row(shard: int, wake_ms: int | None) -> _Row:
    """Return the row that tells the driver when a shard must see a clock, although nothing happens."""
    return "due", str(shard), msgspec.json.encode(NEVER_MS if wake_ms is None else min(wake_ms, NEVER_MS))


def clocks_row(seen: Iterable[Seen], now_ms: int = -1) -> list[_Row]:
    """Return the row that tells the driver which clocks were read; ``now_ms`` is the shard's watermark."""
    control_ms, partitions = -1, -1
    events: dict[int, int] = {}
    for one in seen:
        if isinstance(one.what, Clock):
            control_ms, partitions = max(control_ms, one.at_ms), one.what.events_partitions
        elif isinstance(one.what, EventsClock):
            events[one.partition] = max(events.get(one.partition, -1), one.at_ms)
    if control_ms < 0 and not events:
        return []
    told = ClocksRead(control_ms=control_ms, events=events, partitions=partitions, now_ms=now_ms)
    return [("clocks_read", "", msgspec.json.encode(told))]


def rows_of(outputs: Outputs, shard: int, shard_count: int = 0) -> Iterator[_Row]:
    """Yield a shard's outputs as rows for the driver, in the order in which they must be written.

    An output that cannot be written becomes a divergence row with the reason.
    """
    for kind, key, what in _outputs_of(outputs, shard, shard_count):
        try:
            yield kind, plain(key), what if isinstance(what, bytes) else msgspec.json.encode(what)
        except Exception as error:
            yield _failed(plain(key), f"a {kind} cannot be written: {_words(error)}")


def _outputs_of(outputs: Outputs, shard: int, shard_count: int) -> Iterator[tuple[str, str, Any]]:
    if outputs.rebuilding >= 0:
        # Before the reports: earlier reports of this shard are out of date.
        told = {"shard": shard, "shard_count": shard_count, "since_ms": outputs.rebuilding}
        yield "rebuilding", str(shard), told
    yield from (("transition", one.group, one) for one in outputs.transitions)
    yield from (("alert", one.id, one) for one in outputs.alerts)
    yield from _for_the_cluster(outputs)
    yield from (("divergence", one.group, one) for one in outputs.divergences)
    yield from (("report", one.group, one) for one in outputs.reports)
    yield from _totals_of(outputs)
    if outputs.reported:
        yield "reported", str(shard), b"{}"


def _for_the_cluster(outputs: Outputs) -> Iterator[tuple[str, str, Any]]:
    """Yield the rows that the driver carries to the cluster's shard."""
    for broker, lost, group, at_ms in outputs.contradictions:
        yield "contradiction", group, {"broker": broker, "lost": lost, "group": group, "at_ms": at_ms}
    yield from (("zone", str(broker), {"ahead_ms": ahead_ms}) for broker, ahead_ms in outputs.zones)
    yield from (("upset", one.group, msgspec.structs.asdict(one)) for one in outputs.upset)
    yield from (("quarantined", one.group, msgspec.structs.asdict(one)) for one in outputs.quarantined)


def _totals_of(outputs: Outputs) -> Iterator[tuple[str, str, Any]]:
    if outputs.compared:
        yield "agreement", "", {"compared": outputs.compared, "agreeing": outputs.agreeing}
    if outputs.cluster_report is not None:
        yield "cluster", "", outputs.cluster_report
