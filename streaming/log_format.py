"""The format of our own log lines: no text from outside can forge a line or control the terminal."""

import logging

from alerts.alert import printable

_INDENT = "    "


class LineFormatter(logging.Formatter):
    """Writes one event as one line; if it has more (a stack trace), all but the first are indented."""

    def __init__(self) -> None:
        """Use our format."""
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the event with invisible characters escaped."""
        first, *rest = super().format(record).expandtabs().split("\n")
        return "\n".join([printable(first), *(f"{_INDENT}{printable(line)}" for line in rest)])
