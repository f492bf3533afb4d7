"""Consumers that misbehave as asked, each a process of its own, and the protocol that they speak by hand."""

from streaming.devkit.consumers.wire import Connection, blob, text, texts

__all__ = ["Connection", "blob", "text", "texts"]
