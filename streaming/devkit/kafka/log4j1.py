"""The log4j 1 configuration of an embedded broker before Kafka 4; ``deploy/log4j2/`` has one for operators.

log4j 1 has no appender that names a key, so both logs are files, and ``shipping.py`` sends them.
"""

from streaming.devkit.kafka.log4j2 import GROUP_APIS, REQUEST_LOGGER, Logging

_PATTERN = "[%d] %p %m (%c)%n"
"""What Kafka ships with; the broker runs in UTC."""
_SINCE_4 = frozenset({"SHARE_GROUP_HEARTBEAT", "STREAMS_GROUP_HEARTBEAT"})
KAFKA_3_APIS = tuple(api for api in GROUP_APIS if api not in _SINCE_4)
"""The requests about groups that a broker before Kafka 4 can get."""


def log4j1_properties(logging: Logging) -> str:
    """The text of ``log4j.properties`` for one broker."""
    settings = {
        "rootLogger": "INFO, serverLog",
        **_file("serverLog", f"{logging.folder / 'server.log'}"),
        **_file("requestLog", f"{logging.folder / 'kafka-request.log'}"),
        **_filters("requestLog"),
        # Attached at every level, so that the level can be changed at run time.
        f"logger.{REQUEST_LOGGER}": f"{'DEBUG' if logging.request_log else 'WARN'}, requestLog",
        f"additivity.{REQUEST_LOGGER}": "false",
    }
    return "".join(f"log4j.{name}={value}\n" for name, value in settings.items())


def _file(name: str, path: str) -> dict[str, str]:
    return {
        f"appender.{name}": "org.apache.log4j.RollingFileAppender",
        f"appender.{name}.File": path,
        f"appender.{name}.MaxFileSize": "256MB",
        f"appender.{name}.MaxBackupIndex": "2",
        f"appender.{name}.layout": "org.apache.log4j.PatternLayout",
        f"appender.{name}.layout.ConversionPattern": _PATTERN,
    }


def _filters(name: str) -> dict[str, str]:
    """One filter for each API that may pass, since none takes an expression; the last refuses the rest."""
    found = {}
    for number, api in enumerate(KAFKA_3_APIS, start=1):
        filter_name = f"appender.{name}.filter.{number:02}"
        found[filter_name] = "org.apache.log4j.varia.StringMatchFilter"
        found[f"{filter_name}.StringToMatch"] = f'"requestApiKeyName":"{api}"'
    found[f"appender.{name}.filter.99"] = "org.apache.log4j.varia.DenyAllFilter"
    return found
