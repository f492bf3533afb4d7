"""The journal of raised request logs, written before each raise: a compacted topic beside the outputs.

A file beside the checkpoint would be lost with it, and a record in the control topic after a day.  The
journal survives both, and a change of machine: only after the loss of the outputs' topics must somebody
restore a level by hand.  Each broker has one record (key ``cluster/broker``), for good, with its last raise.
"""

from collections.abc import Iterable

import msgspec

from streaming.driver.evidence.deciding import JournalEntry
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import admin_client, consumer, producer, read_whole
from streaming.pipeline import TopicSpec, create_missing

_ANSWER_S = 10.0


class Journal:
    """One cluster's entries."""

    def __init__(self, address: KafkaAddress, topic: str, cluster: str) -> None:
        self._address = address
        self._topic = topic
        self._cluster = cluster

    def ensure(self) -> None:
        """Create the topic if it is missing.

        Raises:
            streaming.pipeline.TopicsRefusedError: the cluster does not let us.
            kafka.errors.KafkaError: it does not answer.
        """
        admin = admin_client(self._address)
        try:
            create_missing(admin, self._address, [TopicSpec(self._topic, 1, {"cleanup.policy": "compact"})])
        finally:
            admin.close()

    def read(self) -> dict[int, JournalEntry]:
        """Return broker -> its last entry; empty if there is no such topic.

        Raises:
            TimeoutError: the topic could not be read to its end.
            kafka.errors.KafkaError: Kafka does not answer.
        """
        reader = consumer(self._address)
        try:
            return newest((value for _, value in read_whole(reader, self._topic)), self._cluster)
        finally:
            reader.close()

    def write(self, entry: JournalEntry) -> None:
        """Write an entry; return when every in-sync replica has it.

        Raises:
            kafka.errors.KafkaError: it was not acknowledged.
        """
        out = producer(self._address)
        try:
            key, value = f"{entry.cluster}/{entry.broker}".encode(), msgspec.json.encode(entry)
            out.send(self._topic, key=key, value=value, partition=0).get(timeout=_ANSWER_S)
        finally:
            out.close(timeout=1)


def newest(values: Iterable[bytes | None], cluster: str) -> dict[int, JournalEntry]:
    """Return broker -> the last entry of ``cluster`` among ``values``; other values are ignored."""
    found: dict[int, JournalEntry] = {}
    for value in values:
        try:
            entry = msgspec.json.decode(value or b"", type=JournalEntry)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        if entry.cluster == cluster:
            found[entry.broker] = entry
    return found
