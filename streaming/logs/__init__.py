"""The log of our processes, and the form of its lines."""

from streaming.logs.formats import JsonFormatter, LineFormatter
from streaming.logs.setup import LogFormat, LogLevel, set_up

__all__ = ["JsonFormatter", "LineFormatter", "LogFormat", "LogLevel", "set_up"]
