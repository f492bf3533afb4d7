"""Writes records that only one process at a time can write: the broker refuses every other one.

Each writer opens a transaction under a shared transactional id.  The broker gives the id's newest opener a
higher producer epoch, and refuses and aborts what an earlier one still writes (Kafka: KIP-98,
``TransactionCoordinator.handleInitProducerId``).  So a process that was frozen while another took over adds
nothing to the topics that a reader with ``isolation.level=read_committed`` sees.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from kafka import KafkaProducer
from kafka.errors import (
    InvalidProducerEpochError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    TransactionalIdAuthorizationFailedError,
)

from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients.clients import admin_client, producer

READ_COMMITTED = "read_committed"
"""The isolation level of readers that see nothing of a fenced writer."""
_STATE = "__transaction_state"
"""Topic that the brokers make with the first transaction; where it stands, transactions are possible."""
_FLUSH_S = 30.0
_CLOSE_S = 5.0
_RETRY_MS = 20
"""The coordinator refuses a new transaction while it finishes the previous one, which takes milliseconds."""
_FENCED = (ProducerFencedError, InvalidProducerEpochError)


class FencedError(RuntimeError):
    """Another process writes these outputs now; the broker refused ours."""


class Output(NamedTuple):
    """A record to write."""

    topic: str
    key: bytes
    value: bytes | None
    partition: int | None = None


def topics_of(address: KafkaAddress) -> Collection[str]:
    """Return the names of all topics that we may see.

    Raises:
        kafka.errors.KafkaError: no broker answers.
    """
    admin = admin_client(address)
    try:
        return list(admin.list_topics())
    finally:
        admin.close()


class FencedProducer:
    """The one writer of a set of outputs, for all threads of this process."""

    def __init__(
        self,
        address: KafkaAddress,
        transactional_id: str,
        *,
        waits: bool = True,
        open_producer: Callable[..., KafkaProducer] = producer,
        topics_of: Callable[[KafkaAddress], Collection[str]] = topics_of,
    ) -> None:
        """Connect, and fence every earlier writer with this id.

        Where the cluster has no transactions for us, it writes without them, and ``unfenced`` says why.  A
        coordinator that only does not answer just now is no reason, as long as the caller waits: an earlier
        writer would stay unfenced.

        Args:
            address: the output cluster.
            transactional_id: what all writers of these outputs have in common.
            waits: fail where the cluster has transactions and its coordinator does not answer.
            open_producer: opens a producer.
            topics_of: returns the names of the cluster's topics.

        Raises:
            kafka.errors.KafkaError: no bootstrap server answers, or no coordinator although there is one.
        """
        self._lock = threading.Lock()
        self.unfenced = ""
        """Why no writer is fenced; "" if the others are."""
        out = open_producer(address, transactional_id=transactional_id, retry_backoff_ms=_RETRY_MS)
        try:
            out.init_transactions()
        except (TransactionalIdAuthorizationFailedError, KafkaTimeoutError) as error:
            if waits and isinstance(error, KafkaTimeoutError) and _STATE in topics_of(address):
                out.close(timeout=_CLOSE_S)
                raise
            self.unfenced = _why_unfenced(transactional_id, error)
            out.close(timeout=_CLOSE_S)
            out = open_producer(address)
        except BaseException:
            out.close(timeout=_CLOSE_S)
            raise
        self._out = out

    def write(self, records: Iterable[Output]) -> None:
        """Write all records or, for readers of committed records, none; wait for every acknowledgement.

        After an error the object is of no further use: a new one has to be made.

        Raises:
            FencedError: another process has opened the same outputs.
            kafka.errors.KafkaError: not everything was acknowledged.
        """
        kept = list(records)
        if not kept:
            return
        with self._lock:
            try:
                if self.unfenced:
                    self._send(kept)
                else:
                    self._transact(kept)
            except _FENCED as error:
                raise FencedError("another process writes the same outputs now") from error

    def _transact(self, records: list[Output]) -> None:
        self._out.begin_transaction()
        try:
            self._send(records)
            self._out.commit_transaction()
        except BaseException:
            with suppress(Exception):  # the next opener aborts it in any case
                self._out.abort_transaction()
            raise

    def _send(self, records: list[Output]) -> None:
        sent: list[Any] = [
            self._out.send(one.topic, key=one.key, value=one.value, partition=one.partition)
            for one in records
        ]
        until_s = time.monotonic() + _FLUSH_S
        with suppress(KafkaError):  # each record's own future has the reason of its failure
            self._out.flush(timeout=_FLUSH_S)
        for future in sent:
            future.get(timeout=max(0.0, until_s - time.monotonic()))

    def close(self) -> None:
        """Close the connection."""
        with suppress(Exception):
            self._out.close(timeout=_CLOSE_S)


def _why_unfenced(transactional_id: str, error: KafkaError) -> str:
    why = (
        f"the brokers do not allow the transactional id {transactional_id!r}"
        if isinstance(error, TransactionalIdAuthorizationFailedError)
        else "no broker coordinates its transactions (topic __transaction_state needs as many brokers as "
        "transaction.state.log.replication.factor says; or an earlier transaction cannot be ended)"
    )
    return (
        f"{why}; outputs are written without transactions, so a frozen process that wakes after another "
        "took over may still add a batch to them"
    )
