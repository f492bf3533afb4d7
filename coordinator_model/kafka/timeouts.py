"""Kafka's timeouts that the model counts with, in milliseconds, each with its setting."""

WRITE_TIMEOUT_MS = 5_000
"""``offsets.commit.timeout.ms``: so long a coordinator waits until a write is replicated."""
