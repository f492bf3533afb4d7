"""What a batch says: to the output topics first, then to the view.

One action for each batch.  Everything is acknowledged by Kafka before the batch ends, so a crash at
any point repeats records that readers drop by their id, and loses none.
"""

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from pyspark.sql import DataFrame

from streaming.config import ClusterPlan
from streaming.control import ContradictedRecord, QuarantinedRecord, UpsetRecord, encode_record
from streaming.kafka_clients import KafkaError, KafkaProducer

Row = tuple[str, str, bytes]
"""kind, key, value"""

Apply = Callable[[str, Iterable[Row]], None]
"""Takes a cluster's rows into the view."""

_FLUSH_S = 30.0
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
        """Produce transitions, alerts and contradictions, and wait for every acknowledgement.

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
        if kind == "contradiction":
            return self._plan.control_topic, "", self._contradicted(value)
        if kind == "upset":
            return self._plan.control_topic, "", upset_record(value, self._run, time.time_ns() // 1_000_000)
        if kind == "quarantined":
            now_ms = time.time_ns() // 1_000_000
            return self._plan.control_topic, "", quarantined_record(value, self._run, now_ms)
        return None, key, value

    def _contradicted(self, value: bytes) -> bytes:
        return contradicted_record(value, self._run, time.time_ns() // 1_000_000)


def contradicted_record(value: bytes, run: str, at_ms: int) -> bytes:
    """Return the control record for one contradiction row of the state function."""
    import msgspec  # noqa: PLC0415

    told = msgspec.json.decode(value)
    lost = told["lost"] if isinstance(told["lost"], str) else "coordinator_log"
    return encode_record(
        ContradictedRecord(at_ms=at_ms, run=run, broker=told["broker"], lost=lost, group=told["group"])
    )


def upset_record(value: bytes, run: str, at_ms: int) -> bytes:
    """Return the control record for a group that its coordinator's move made rebalance."""
    import msgspec  # noqa: PLC0415

    told = msgspec.json.decode(value, type=dict[str, Any])
    return encode_record(UpsetRecord(at_ms=at_ms, run=run, **told))


def quarantined_record(value: bytes, run: str, at_ms: int) -> bytes:
    """Return the control record for a group that our own code failed on, or that works again."""
    import msgspec  # noqa: PLC0415

    told = msgspec.json.decode(value, type=dict[str, Any])
    return encode_record(QuarantinedRecord(at_ms=at_ms, run=run, **told))


def rows_in(frame: DataFrame) -> list[Row]:
    """Return a batch's rows: the one action on it (a second would run the state function again)."""
    table = frame.toArrow()
    columns = (table.column(name).to_pylist() for name in ("kind", "key", "value"))
    return list(zip(*columns, strict=True))
