"""The demo: real trouble in real consumer groups."""

from streaming.devkit.demo.clients import Connection

__all__ = [
    "Connection",
]
