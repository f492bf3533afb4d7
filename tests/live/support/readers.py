"""Consumers of real records, each a thread of librdkafka whose reading and committing can be steered."""

import contextlib
import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from tests.live.support.members import CALM_SESSION_MS


class Reader:
    """Reads all the time and commits every now and then, as its ``mode`` says.

    reads; silent: commits nothing; stuck: commits the same again; back: seeks to the beginning, once.
    """

    def __init__(
        self,
        bootstrap: str,
        group: str,
        client_id: str,
        topics: tuple[str, ...] = ("busy",),
        *,
        every_s: float = 1.0,
        rate: float = 0.0,
        first_s: float = 0.0,
        mode: str = "reads",
        **config: Any,
    ) -> None:
        """Join at once.

        Args:
            bootstrap: the cluster.
            group: its group.
            client_id: its name.
            topics: names or a pattern ("^…"); with "topic:0" a partition is taken without asking anybody.
            every_s: between two commits.
            rate: at most so many records a second; 0: as many as there are.
            first_s: what the first records take.
            mode: how it begins.
            config: more of librdkafka's, with "_" for "."; None takes one of ours away.
        """
        self.commits = 0
        self.is_hanging = False
        """It has met the record that takes so long, and does not poll."""
        self.mode = mode
        self._bootstrap, self._group, self._client_id, self._topics = bootstrap, group, client_id, topics
        self._every_s, self._rate, self._first_s = every_s, rate, first_s
        self._config = {name.replace("_", "."): value for name, value in config.items()}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.start()

    def start(self) -> None:
        """Join (again)."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name=self._client_id, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Leave the group."""
        self.ask_to_stop()
        if self._thread is not None:
            self._thread.join()

    def ask_to_stop(self) -> None:
        """Leave the group, soon."""
        self._stop.set()

    def hang(self) -> None:
        """Never come back from the next record."""
        self._first_s = 86_400.0

    def _run(self) -> None:
        consumer = self._open()
        last: list[TopicPartition] = []
        committed_at, busy_until = time.monotonic(), 0.0
        while not self._stop.is_set():
            message = self._next(consumer) if time.monotonic() >= busy_until else None
            if message is not None:
                busy_until = time.monotonic() + self._work_s()
            elif busy_until > time.monotonic():
                self._stop.wait(min(0.2, busy_until - time.monotonic()))
            if self.mode == "back":
                self._go_back(consumer)
            is_late = time.monotonic() - committed_at >= self._every_s
            if not is_late or self.mode == "silent" or busy_until - time.monotonic() > 1.0:
                continue
            committed_at = time.monotonic()
            last = last if self.mode == "stuck" else _positions(consumer)
            self._commit(consumer, last)
        consumer.close()

    def _open(self) -> Consumer:
        config = {
            "bootstrap.servers": self._bootstrap,
            "group.id": self._group,
            "client.id": self._client_id,
            "session.timeout.ms": CALM_SESSION_MS,
            "heartbeat.interval.ms": 1_000,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 2_000,
            **self._config,
        }
        consumer = Consumer({name: value for name, value in config.items() if value is not None})
        taken = [topic.rsplit(":", 1) for topic in self._topics if ":" in topic]
        if taken:
            consumer.assign([TopicPartition(topic, int(number)) for topic, number in taken])
        else:
            consumer.subscribe(list(self._topics))
        return consumer

    def _next(self, consumer: Consumer) -> Message | None:
        message = consumer.poll(0.05)
        return None if message is None or message.error() else message

    def _work_s(self) -> float:
        first, self._first_s = self._first_s, 0.0
        self.is_hanging = first > 0
        return first or (1.0 / self._rate if self._rate else 0.0)

    def _commit(self, consumer: Consumer, where: list[TopicPartition]) -> None:
        if where:
            with contextlib.suppress(KafkaException):  # as in rebalances; the next one may succeed
                consumer.commit(offsets=where, asynchronous=False)
                self.commits += 1

    def _go_back(self, consumer: Consumer) -> None:
        where = [TopicPartition(one.topic, one.partition, 0) for one in consumer.assignment()]
        for one in where:
            consumer.seek(one)
        self._commit(consumer, where)
        self.mode = "reads"


def _positions(consumer: Consumer) -> list[TopicPartition]:
    return [one for one in consumer.position(consumer.assignment()) if one.offset >= 0]


class Writer:
    """Writes to topics, each at its own pace, until stopped."""

    def __init__(self, bootstrap: str, rates: dict[str, float]) -> None:
        """Begin; ``rates`` are records a second."""
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self._rates = rates
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, name="writer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write no more."""
        self._stop.set()
        self._thread.join()
        self._producer.flush(10)

    def _write(self) -> None:
        begun, sent = time.monotonic(), dict.fromkeys(self._rates, 0)
        while not self._stop.wait(0.05):
            elapsed = time.monotonic() - begun
            for topic, rate in self._rates.items():
                while sent[topic] < elapsed * rate:
                    with contextlib.suppress(KafkaException):  # a topic may be gone for a while
                        self._producer.produce(topic, b"x", key=str(sent[topic] % 97))
                    sent[topic] += 1
            self._producer.poll(0)


class Transformer:
    """Reads, writes and commits in transactions, as an exactly-once service does."""

    def __init__(self, bootstrap: str, group: str, client_id: str, source: str, target: str) -> None:
        """Begin."""
        self.commits = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "client.id": client_id,
                "session.timeout.ms": CALM_SESSION_MS,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{group}-tx"})
        self._source, self._target = source, target
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=client_id, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Leave the group."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        self._producer.init_transactions(30)
        self._consumer.subscribe([self._source])
        while not self._stop.is_set():
            found = self._consumer.consume(100, 0.5)
            if not found:
                continue
            self._producer.begin_transaction()
            for message in found:
                if not message.error():
                    self._producer.produce(self._target, message.value())
            where = self._consumer.position(self._consumer.assignment())
            whose = self._consumer.consumer_group_metadata()
            self._producer.send_offsets_to_transaction(where, whose, 10)
            # Now and then a transaction is given up, and what it read is read again.
            if self.commits % 7 == 6:
                self._producer.abort_transaction(10)
                self._go_back()
            else:
                self._producer.commit_transaction(10)
            self.commits += 1
        self._consumer.close()

    def _go_back(self) -> None:
        mine = self._consumer.assignment()
        for one in self._consumer.committed(mine, 10):
            if one.offset >= 0:
                self._consumer.seek(one)
