"""Writes a batch's rows: to the output topics first, then to the view.

One action per batch.  Kafka acknowledges everything before the batch ends.  So a crash at any point repeats
records, which readers recognise by their id, and loses none.
"""

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import msgspec
from pyspark.sql import DataFrame

from streaming.config import ClusterPlan
from streaming.control import ContradictedRecord, QuarantinedRecord, UpsetRecord, encode_record
from streaming.kafka_clients import KafkaError, KafkaProducer

Row = tuple[str, str, bytes]
"""kind, key, value"""

Apply = Callable[[str, Iterable[Row]], None]
"""Takes a cluster's rows for the view."""

_FLUSH_S = 30.0
_RELAYED = frozenset({"contradiction", "upset", "quarantined"})
"""Kinds of rows from a shard to the cluster's shard, which travel through the control topic."""
_log = logging.getLogger(__name__)


class BatchSink:
    """The function for ``foreachBatch``."""

    def __init__(
        self,
        plan: ClusterPlan,
        run: str,
        producer: KafkaProducer,
        apply: Apply,
        done: Callable[[Iterable[int]], None],
        *,
        begun: Callable[[int], None] = lambda _batch_id: None,
        ensure: Callable[[], None] = lambda: None,
    ) -> None:
        self._plan = plan
        self._run = run
        self._producer = producer
        self._apply = apply
        self._done = done
        self._begun = begun
        self._ensure = ensure

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Write one batch.

        Raises:
            kafka.errors.KafkaError: not everything was acknowledged; the batch will be repeated.
        """
        self._begun(batch_id)
        rows = rows_in(frame)
        self._ensure()  # that we may still write; asked last, for the batch may have been frozen for long
        self.write(rows)
        self._apply(self._plan.cluster, rows)
        self._done([int(key) for kind, key, _ in rows if kind == "reported"])
        _log.debug("batch %d: %d rows", batch_id, len(rows))

    def write(self, rows: Iterable[Row]) -> None:
        """Produce transitions, alerts and records for the cluster's shard; wait for every acknowledgement.

        Raises:
            kafka.errors.KafkaError: one was not acknowledged.
        """
        sent = [
            self._producer.send(topic, key=key.encode(), value=value)
            for topic, key, value in map(self._target, rows)
            if topic is not None
        ]
        if not sent:
            return
        until_s = time.monotonic() + _FLUSH_S
        with suppress(KafkaError):  # what has failed is told, with its reason, by the record's own future
            self._producer.flush(timeout=_FLUSH_S)
        for future in sent:
            future.get(timeout=max(0.0, until_s - time.monotonic()))

    def _target(self, row: Row) -> tuple[str | None, str, bytes]:
        kind, key, value = row
        if kind == "transition":
            return self._plan.transitions_topic, key, value
        if kind == "alert":
            return self._plan.alerts_topic, key, value
        if kind in _RELAYED:
            return self._plan.control_topic, "", relayed(kind, value, self._run)
        return None, key, value


def relayed(kind: str, value: bytes, run: str) -> bytes:
    """Return the control record that carries a shard's row of this kind to the cluster's shard.

    It has the time of its subject: rules judge it, so the driver's clock must not influence it.
    """
    told = msgspec.json.decode(value, type=dict[str, Any])
    if kind == "contradiction":
        return encode_record(ContradictedRecord(run=run, **told))
    if kind == "upset":
        return encode_record(UpsetRecord(at_ms=told["rebalanced_ms"], run=run, **told))
    return encode_record(QuarantinedRecord(at_ms=told["last_ms"], run=run, **told))


def rows_in(frame: DataFrame) -> list[Row]:
    """Return a batch's rows: its only action (a second one would run the state function again)."""
    table = frame.toArrow()
    columns = (table.column(name).to_pylist() for name in ("kind", "key", "value"))
    return list(zip(*columns, strict=True))
