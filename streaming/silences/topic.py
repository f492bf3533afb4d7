"""The topic that holds the silences, one on each output cluster; key = id, compacted."""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from streaming.config import Config, plan_of
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import KafkaError, consumer, producer, read_whole

Record = tuple[bytes, bytes | None]

_ANSWER_S = 8.0
_POLL_MS = 250
_BOOTSTRAP_MS = 3_000
"""How long a broker may take to answer: outages are to be told soon, and delivery waits for the silences."""

_log = logging.getLogger("groupwatch.silences")


class SilencesTopic:
    """One cluster's topic, in Kafka."""

    def __init__(self, address: KafkaAddress, topic: str) -> None:
        self.address = address
        self.topic = topic
        self.name = ",".join(address.bootstrap_servers)

    def write(self, records: Sequence[Record]) -> None:
        """Write records; return when every in-sync replica has them.

        Raises:
            kafka.errors.KafkaError: they were not acknowledged.
        """
        out = producer(self.address, max_block_ms=5_000, delivery_timeout_ms=7_000, request_timeout_ms=5_000)
        try:
            sent = [out.send(self.topic, key=key, value=value, partition=0) for key, value in records]
            for one in sent:
                one.get(timeout=_ANSWER_S)
        finally:
            out.close(timeout=1)

    def read(self) -> list[Record]:
        """Return all records; none if there is no such topic.

        Raises:
            TimeoutError: the topic could not be read to its end.
            kafka.errors.KafkaError: Kafka does not answer.
        """
        reader = consumer(self.address)
        try:
            return read_whole(reader, self.topic) if reader.partitions_for_topic(self.topic) else []
        finally:
            reader.close()

    def follow(
        self,
        began: Callable[[list[Record]], None],
        take: Callable[[Record], None],
        is_over: Callable[[], bool],
    ) -> None:
        """Give ``began`` all records, then ``take`` each new one until ``is_over``.

        Returns at once, after ``began`` with nothing, if there is no such topic.

        Raises:
            TimeoutError: the topic could not be read to its end.
            kafka.errors.KafkaError: Kafka does not answer.
        """
        reader = consumer(self.address, bootstrap_timeout_ms=_BOOTSTRAP_MS)
        try:
            # Asked once: a topic that is made meanwhile would be followed without having been assigned.
            is_there = bool(reader.partitions_for_topic(self.topic))
            began(read_whole(reader, self.topic) if is_there else [])
            if not is_there:
                return
            while not is_over():
                for records in reader.poll(timeout_ms=_POLL_MS).values():
                    for record in records:
                        take((record.key or b"", record.value))
        finally:
            reader.close()


def topics_of(config: Config) -> list[SilencesTopic]:
    """Return the topic on each output cluster: one for all, or one on each watched cluster."""
    found: dict[tuple[str, ...], KafkaAddress] = {}
    for cluster in config.clusters:
        address = plan_of(config, cluster).output
        found.setdefault(address.identity, address)
    return [SilencesTopic(address, config.output.silences_topic) for address in found.values()]


def write_to_all(topics: Sequence[SilencesTopic], records: Mapping[str, Sequence[Record]]) -> dict[str, str]:
    """Write each topic's records (by its ``name``) at the same time; return name -> what failed."""

    def write(one: SilencesTopic) -> str:
        try:
            one.write(records[one.name])
        except (KafkaError, OSError, ValueError, AssertionError) as error:
            _log.warning("silences cannot be written to %s of %s: %s", one.topic, one.name, error)
            return f"{type(error).__name__}: {error}"
        return ""

    wanted = [one for one in topics if records.get(one.name)]
    if not wanted:
        return {}
    with ThreadPoolExecutor(len(wanted), thread_name_prefix="silences-write") as pool:
        said = list(pool.map(write, wanted))
    return {one.name: why for one, why in zip(wanted, said, strict=True) if why}
