"""The log4j2 configuration of an embedded broker; ``deploy/log4j2/`` explains the same one to operators.

Two loggers write to the events topic and to files: the coordinator's at INFO, and the request logger.  The
request logger's appenders are always attached, so that changing its level at run time (``BROKER_LOGGER``) is
enough; Kafka lets one change nothing else.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from coordinator_model.decoding import BREAKS_ENCODED

COORDINATOR_LOGGERS = (
    "org.apache.kafka.coordinator.group",
    "org.apache.kafka.coordinator.common.runtime",
)
REQUEST_LOGGER = "kafka.request.logger"

GROUP_APIS = (
    "JOIN_GROUP",
    "SYNC_GROUP",
    "HEARTBEAT",
    "LEAVE_GROUP",
    "OFFSET_COMMIT",
    "TXN_OFFSET_COMMIT",
    "WRITE_TXN_MARKERS",
    "OFFSET_DELETE",
    "DELETE_GROUPS",
    "CONSUMER_GROUP_HEARTBEAT",
    "SHARE_GROUP_HEARTBEAT",
    "STREAMS_GROUP_HEARTBEAT",
)
"""The requests that say something about a group; all others are dropped before they are shipped."""

EVENT_BYTES_MAX = 8 * 1024 * 1024
"""A leader's JoinGroup line of a big group reaches megabytes; the topic must take what the appender sends."""

_PATTERN = (
    "[%d{yyyy-MM-dd HH:mm:ss,SSS}{UTC}] %p %enc{%m}{CRLF} (%c)"
    f"{BREAKS_ENCODED}%n%notEmpty{{%enc{{%xEx}}{{CRLF}}%n}}"
)
"""Kafka's own, with its line breaks encoded, so that no name can begin a line, and with a mark that says so;
a stack trace, whose exceptions quote names as well, becomes one line of its own."""


def _layout() -> dict[str, Any]:
    # Each a dictionary of its own: of one that is used twice YAML makes an alias, which log4j2 cannot read.
    return {"PatternLayout": {"pattern": _PATTERN, "alwaysWriteExceptions": False}}


class Logging(msgspec.Struct, frozen=True, kw_only=True):
    """What one broker logs and where to."""

    broker_id: int
    folder: Path
    bootstrap_servers: str
    events_topic: str
    request_log: bool
    coordinator_log: bool


def log4j2_yaml(logging: Logging) -> str:
    """The text of ``log4j2.yaml`` for one broker."""
    configuration = {
        "Configuration": {
            "status": "WARN",
            # Otherwise logging ends at the signal, seconds before a stopping broker has unloaded its groups.
            "shutdownHook": "disable",
            "Appenders": {
                "RollingFile": [
                    _file("ServerLog", logging.folder / "server.log"),
                    _file("RequestLog", logging.folder / "kafka-request.log"),
                ],
                "Kafka": _kafka(logging),
                # Two buffers: a flood of request lines must never push out the coordinator's few.
                "Async": [_async("CoordinatorToKafka", 4096), _async("RequestsToKafka", 32768)],
            },
            "Loggers": {
                "Root": {"level": "INFO", "AppenderRef": [{"ref": "ServerLog"}]},
                "Logger": [*_coordinator_loggers(logging), _request_logger(logging)],
            },
        }
    }
    return yaml.safe_dump(configuration, sort_keys=False, width=1000)


def _file(name: str, path: Path) -> dict[str, Any]:
    return {
        "name": name,
        "fileName": str(path),
        "filePattern": f"{path}.%i",
        **_layout(),
        "SizeBasedTriggeringPolicy": {"size": "256 MB"},
        "DefaultRolloverStrategy": {"max": "2"},
    }


def _kafka(logging: Logging) -> dict[str, Any]:
    properties = {
        "bootstrap.servers": logging.bootstrap_servers,
        "client.id": f"groupwatch-appender-{logging.broker_id}",
        # A line that cannot be sent at once is dropped: the broker matters more than its log.
        "max.block.ms": "200",
        "linger.ms": "5",
        "acks": "1",
        "compression.type": "gzip",
        "max.request.size": str(EVENT_BYTES_MAX),
        "buffer.memory": "16777216",
        "delivery.timeout.ms": "10000",
        "request.timeout.ms": "5000",
        # A topic that is created after the broker's start must be noticed soon.
        "metadata.max.age.ms": "5000",
        # The appender's own: how long a stopping broker waits for what is left.
        "timeout.ms": "500",
    }
    return {
        "name": "Events",
        "topic": logging.events_topic,
        "key": str(logging.broker_id),
        "syncSend": "false",
        "ignoreExceptions": "true",
        **_layout(),
        "Property": [{"name": name, "value": value} for name, value in properties.items()],
    }


def _async(name: str, buffer: int) -> dict[str, Any]:
    return {
        "name": name,
        "blocking": "false",
        "bufferSize": str(buffer),
        "shutdownTimeout": "500",
        "AppenderRef": {"ref": "Events"},
    }


def _coordinator_loggers(logging: Logging) -> list[dict[str, Any]]:
    if not logging.coordinator_log:
        return []
    return [_logger(name, "INFO", ["ServerLog", "CoordinatorToKafka"]) for name in COORDINATOR_LOGGERS]


def _request_logger(logging: Logging) -> dict[str, Any]:
    level = "DEBUG" if logging.request_log else "WARN"
    logger = _logger(REQUEST_LOGGER, level, ["RequestLog", "RequestsToKafka"])
    logger["RegexFilter"] = {"regex": request_filter(), "onMatch": "NEUTRAL", "onMismatch": "DENY"}
    return logger


def _logger(name: str, level: str, appenders: Sequence[str]) -> dict[str, Any]:
    refs = [{"ref": appender} for appender in appenders]
    return {"name": name, "level": level, "additivity": "false", "AppenderRef": refs}


def request_filter() -> str:
    """The regular expression (matched against the whole message) that keeps the group requests."""
    return f'.*?"requestApiKeyName":"(?:{"|".join(GROUP_APIS)})".*'
