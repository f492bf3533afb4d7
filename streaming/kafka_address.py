"""The address of a Kafka cluster, with its Java client properties."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class KafkaAddress:
    """A Kafka cluster and how to log in to it."""

    bootstrap_servers: tuple[str, ...]
    client: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str, ...]:
        """Identifies the address, whatever the order in which the servers are listed."""
        return tuple(sorted(self.bootstrap_servers))
