"""Kafka clients that only remember what they were told."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

from kafka.errors import KafkaConnectionError, KafkaTimeoutError, UnknownBrokerIdError
from kafka.future import Future
from kafka.protocol.metadata import MetadataRequest


class NotAcknowledgedError(KafkaTimeoutError, TimeoutError):  # type: ignore[misc]  # kafka-python has no types
    """What waiting for an acknowledgement ends in that does not come."""


class Written(NamedTuple):
    """What a broker answers to a record."""

    topic: str
    partition: int
    timestamp: int
    offset: int = -1


@dataclass
class Acknowledgement:
    """A record's future: the answer, or why there is none."""

    written: Written | None

    @property
    def is_done(self) -> bool:
        """Say whether there is an answer."""
        return self.written is not None

    def get(self, timeout: float | None = None) -> Written:
        """Return the answer at once, or fail as one that never comes."""
        if self.written is None:
            raise NotAcknowledgedError
        return self.written


@dataclass
class FakeProducer:
    """Keeps what is sent; ``failing`` topics are never acknowledged."""

    sent: list[dict[str, Any]] = field(default_factory=list)
    failing: frozenset[str] = frozenset()
    appended_ms: int = -1
    flushed: int = 0
    appended: dict[tuple[str, int], int] = field(default_factory=dict)
    """(topic, partition) -> when its leader says that it appended; else ``appended_ms``."""
    transactions: list[str] = field(default_factory=list)
    """What was asked of transactions, and ``close``, in order."""

    def send(
        self,
        topic: str,
        value: bytes,
        key: bytes | None = None,
        partition: int = 0,
        timestamp_ms: int | None = None,
    ) -> Acknowledgement:
        """Keep a record and answer at once."""
        one = {"topic": topic, "key": key, "value": value, "partition": partition}
        self.sent.append({**one, "timestamp_ms": timestamp_ms})
        written = Written(topic, partition, self.appended.get((topic, partition), self.appended_ms))
        return Acknowledgement(None if topic in self.failing else written)

    def flush(self, timeout: float | None = None) -> None:
        """Count that it was asked to wait."""
        self.flushed += 1

    def init_transactions(self) -> None:
        """Note it, as the next three do."""
        self.transactions.append("init")

    def begin_transaction(self) -> None:
        """Note it."""
        self.transactions.append("begin")

    def commit_transaction(self) -> None:
        """Note it."""
        self.transactions.append("commit")

    def abort_transaction(self) -> None:
        """Note it."""
        self.transactions.append("abort")

    def close(self, timeout: float | None = None) -> None:
        """Note it."""
        self.transactions.append("close")


@dataclass
class FakeConnections:
    """The connections of an admin client, to brokers that lead partitions of one topic."""

    leaders: dict[int, int]
    """Partition -> broker; -1 for none."""
    ends: dict[int, int]
    """Partition -> its end, or the code of the error that its leader answers, negative."""
    other_ends: dict[str, dict[int, int]] = field(default_factory=dict)
    """The same of topics whose ends are others."""
    gone: set[int] = field(default_factory=set)
    hanging: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)
    """Brokers that the client has not heard of."""
    deaf: int = 0
    """How many questions for the metadata reach a broker that hangs."""
    asked: list[tuple[int, list[int]]] = field(default_factory=list)
    """(broker, partitions) of each question for ends."""
    owed: list[Future] = field(default_factory=list)
    """Answers that hanging brokers owe."""
    refreshed: int = 0

    def look_for_brokers(self) -> None:
        """Count it."""
        self.refreshed += 1

    def run(self, asking: Callable[[], Any]) -> Any:
        """Return what a coroutine returns that has nothing to wait for."""
        try:
            asking().send(None)
        except StopIteration as ended:
            return ended.value
        raise AssertionError("it waits for something")

    async def answer(self, future: Future, patience_s: float) -> Any:
        """Return the answer, or fail as one that does not come in time."""
        if not future.is_done:
            raise KafkaTimeoutError(f"nothing for {patience_s} s")
        return await future

    def send(self, request: Any, broker: int | None = None) -> Future:
        """Answer at once, never, or fail."""
        if isinstance(request, MetadataRequest):
            if self.deaf:
                self.deaf -= 1
                return Future()
            return Future().success(SimpleNamespace(topics=[self._layout()]))
        assert broker is not None
        if broker in self.unknown:
            raise UnknownBrokerIdError(broker)
        wanted = [one.partition_index for topic in request.topics for one in topic.partitions]
        self.asked.append((broker, wanted))
        if broker in self.gone:
            return Future().failure(KafkaConnectionError("refused"))
        if broker in self.hanging:
            self.owed.append(Future())
            return self.owed[-1]
        (topic,) = request.topics
        ends = self.other_ends.get(topic.name, self.ends)
        partitions = [self._end(n, ends) for n in wanted]
        return Future().success(SimpleNamespace(topics=[SimpleNamespace(partitions=partitions)]))

    def _layout(self) -> Any:
        led = [SimpleNamespace(partition_index=n, leader_id=leader) for n, leader in self.leaders.items()]
        return SimpleNamespace(error_code=0, partitions=led)

    def _end(self, partition: int, ends: dict[int, int]) -> Any:
        told = ends[partition]
        return SimpleNamespace(partition_index=partition, offset=max(told, -1), error_code=max(-told, 0))


class SavedShard:
    """Stands in for PySpark's group state: a tuple, or nothing yet."""

    def __init__(self) -> None:
        self.saved: tuple[Any, ...] | None = None
        self.updates = 0

    @property
    def exists(self) -> bool:
        """Say whether anything was saved."""
        return self.saved is not None

    @property
    def get(self) -> tuple[Any, ...]:
        """Return what was saved."""
        assert self.saved is not None
        return self.saved

    def update(self, values: tuple[Any, ...]) -> None:
        """Save, and count it."""
        self.saved = values
        self.updates += 1
