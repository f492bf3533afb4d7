"""A cluster whose brokers can be replaced by those of another version, one after the other, on their data."""

from typing import Any

import msgspec
import yaml

from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.devkit.kafka.log4j2 import Logging, log4j2_yaml


class Upgradable(EmbeddedKafka):
    """All its brokers log to files, which one shipper goes on reading, whatever the version is."""

    def upgrade(self, broker: int, version: str) -> None:
        """Stop a broker gently and start it as ``version``; its formatted metadata stay as they are."""
        self.stop_broker(broker)
        self.plan = msgspec.structs.replace(self.plan, version=version)
        self.start_broker(broker)

    def log4j2_text(self, logging: Logging) -> str:
        """Return the usual file without what sends to the events topic."""
        text: dict[str, Any] = yaml.safe_load(log4j2_yaml(logging))
        configuration = text["Configuration"]
        sending = [configuration["Appenders"].pop(kind) for kind in ("Kafka", "Async")]
        names = {one["name"] for found in sending for one in (found if isinstance(found, list) else [found])}
        for logger in configuration["Loggers"]["Logger"]:
            logger["AppenderRef"] = [ref for ref in logger["AppenderRef"] if ref["ref"] not in names]
        return yaml.safe_dump(text, sort_keys=False, width=1000)
