"""How our own log lines are written: no text from outside can forge one, or reach into the terminal."""

import logging

from alerts.alert import printable

_INDENT = "    "


class LineFormatter(logging.Formatter):
    """Writes one event as one line; of several lines (a stack trace) all but the first are indented."""

    def __init__(self) -> None:
        """Take our format."""
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the event with what cannot be seen written out."""
        first, *rest = super().format(record).expandtabs().split("\n")
        return "\n".join([printable(first), *(f"{_INDENT}{printable(line)}" for line in rest)])
