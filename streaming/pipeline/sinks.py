"""Writes a batch's rows: to the output topics first, then to the view.

One action per batch.  Kafka acknowledges everything before the batch ends.  So a crash at any point repeats
records, which readers recognise by their id, and loses none.
"""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from pyspark.sql import DataFrame

from streaming.config import ClusterPlan
from streaming.control import ContradictedRecord, FailoverRebalanceRecord, QuarantinedRecord, encode_record
from streaming.kafka_clients import FencedProducer, KafkaProducer, Output

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
        *,
        producer: KafkaProducer,
        outputs: FencedProducer,
        apply: Apply,
        done: Callable[[Iterable[int]], None],
        begun: Callable[[int], None] = lambda _batch_id: None,
        ensure: Callable[[], None] = lambda: None,
    ) -> None:
        self._plan = plan
        self._topics = {"transition": plan.transitions_topic, "alert": plan.alerts_topic}
        self._run = run
        self._producer = producer
        self._outputs = outputs
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
        """Write transitions and alerts, then records for the cluster's shard; wait for every acknowledgement.

        Raises:
            streaming.kafka_clients.FencedError: another process writes these outputs now.
            kafka.errors.KafkaError: one was not acknowledged.
        """
        kept = list(rows)
        self._outputs.write(
            Output(topic, key.encode(), value)
            for kind, key, value in kept
            if (topic := self._topics.get(kind)) is not None
        )
        until_s = time.monotonic() + _FLUSH_S
        sent = [
            self._producer.send(self._plan.control_topic, key=b"", value=relayed(kind, value, self._run))
            for kind, _, value in kept
            if kind in _RELAYED
        ]
        for future in sent:
            future.get(timeout=max(0.0, until_s - time.monotonic()))


def relayed(kind: str, value: bytes, run: str) -> bytes:
    """Return the control record that carries a shard's row of this kind to the cluster's shard.

    It has the time of its subject: rules judge it, so the driver's clock must not influence it.
    """
    told = msgspec.json.decode(value, type=dict[str, Any])
    if kind == "contradiction":
        return encode_record(ContradictedRecord(run=run, **told))
    if kind == "upset":
        return encode_record(FailoverRebalanceRecord(at_ms=told["rebalanced_ms"], run=run, **told))
    return encode_record(QuarantinedRecord(at_ms=told["last_ms"], run=run, **told))


def rows_in(frame: DataFrame) -> list[Row]:
    """Return a batch's rows: its only action (a second one would run the state function again)."""
    table = frame.toArrow()
    columns = (table.column(name).to_pylist() for name in ("kind", "key", "value"))
    return list(zip(*columns, strict=True))
