"""Kafka clients that only remember what they were told."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Written(NamedTuple):
    """What a broker answers to a record."""

    topic: str
    partition: int
    timestamp: int


@dataclass
class Acknowledgement:
    """A record's future: the answer, or why there is none."""

    written: Written | None

    def get(self, timeout: float | None = None) -> Written:
        """Return the answer at once, or fail as one that never comes."""
        if self.written is None:
            raise TimeoutError("not acknowledged")
        return self.written


@dataclass
class FakeProducer:
    """Keeps what is sent; ``failing`` topics are never acknowledged."""

    sent: list[dict[str, Any]] = field(default_factory=list)
    failing: frozenset[str] = frozenset()
    appended_ms: int = -1
    flushed: int = 0

    def send(self, topic: str, value: bytes, key: bytes | None = None, partition: int = 0) -> Acknowledgement:
        """Keep a record and answer at once."""
        self.sent.append({"topic": topic, "key": key, "value": value, "partition": partition})
        written = Written(topic, partition, self.appended_ms)
        return Acknowledgement(None if topic in self.failing else written)

    def flush(self, timeout: float | None = None) -> None:
        """Count that it was asked to wait."""
        self.flushed += 1
