"""Sets up the log of a process, and of the JVM that it starts."""

import logging
import os
import sys
from enum import StrEnum
from pathlib import Path

from streaming.logs.formats import JsonFormatter, LineFormatter

_SPARK_OPTIONS = "SPARK_SUBMIT_OPTS"
"""Spark's launcher gives the JVM of the driver the options in this variable."""
_FILE_OPTION = "-Dlog4j2.configurationFile="
_QUIET_LOGGERS = (
    "kafka",
    "httpcore",
    "py4j",
    "pyspark",
    "uvicorn",
    "asyncio",
    "mcp",
    "urllib3",
    "requests_oauthlib",
)


class LogLevel(StrEnum):
    """The least level that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """The form of a line."""

    TEXT = "text"
    JSON = "json"


def set_up(level: LogLevel, form: LogFormat) -> None:
    """Log to stderr from now on, and let a JVM that this process starts do so in the same form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form is LogFormat.JSON else LineFormatter())
    logging.basicConfig(handlers=[handler], level=level.upper())
    # At any lower level it logs whole addresses, and that of a receiver is often its password.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    is_debug = level is LogLevel.DEBUG
    for name in _QUIET_LOGGERS:
        least = (
            logging.INFO if is_debug else max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()])
        )
        logging.getLogger(name).setLevel(least)
    if not is_debug:
        # It logs, at every batch, each tenth of a second for which Python's threads kept a client waiting.
        logging.getLogger("kafka.net.selector").setLevel(logging.ERROR)
    options = os.environ.get(_SPARK_OPTIONS, "")
    if _FILE_OPTION not in options:
        file = Path(__file__).with_name(f"log4j2-{form}.properties")
        os.environ[_SPARK_OPTIONS] = f"{options} {_FILE_OPTION}{file.as_uri()}".strip()
