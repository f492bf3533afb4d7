"""Silences topics in memory."""

from collections.abc import Sequence

from kafka.errors import KafkaTimeoutError

from streaming.kafka_address import KafkaAddress
from streaming.silences.topic import Record, SilencesTopic


class MemorySilences(SilencesTopic):
    """A topic whose records are a list; it may be away."""

    def __init__(self, name: str = "main") -> None:
        super().__init__(KafkaAddress((f"{name}:9092",)), "groupwatch-silences")
        self.records: list[Record] = []
        self.is_away = False

    def write(self, records: Sequence[Record]) -> None:
        """Append, or fail as Kafka does."""
        if self.is_away:
            raise KafkaTimeoutError("nobody answers")
        self.records.extend(records)

    def read(self) -> list[Record]:
        """Return all records."""
        return list(self.records)
