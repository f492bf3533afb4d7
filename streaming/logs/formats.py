"""The form of our log lines: no text from outside can forge a line or control the terminal.

Each line has a time in UTC, a level, an event and a message.  The event names the place in the code that
logged it (``streaming.driver.lease.stand_by``), so it is the same for all messages of one kind.
"""

import json
import logging
import time

from alerts.alert import printable

_INDENT = "    "


def event_of(record: logging.LogRecord) -> str:
    """Return the event of a record: its logger, and the function that logged it."""
    return f"{record.name}.{record.funcName.strip('_<>')}" if record.funcName else record.name


def time_of(record: logging.LogRecord) -> str:
    """Return the time of a record in UTC, with milliseconds."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


class LineFormatter(logging.Formatter):
    """Writes one event as one line; if it has more (a stack trace), all but the first are indented."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the event with invisible characters escaped."""
        head = f"{time_of(record)} {record.levelname} {event_of(record)}: "
        first, *rest = (head + super().format(record)).expandtabs().split("\n")
        return "\n".join([printable(first), *(f"{_INDENT}{printable(line)}" for line in rest)])


class JsonFormatter(logging.Formatter):
    """Writes one event as one JSON object: ``time``, ``level``, ``event``, ``message`` and ``trace``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object, in one line."""
        told = {
            "time": time_of(record),
            "level": record.levelname,
            "event": event_of(record),
            "message": printable(record.getMessage()),
        }
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        return json.dumps(told)
