"""Kafka's timeouts and defaults that the model uses, in milliseconds, each with its setting.

Sources: ``GroupCoordinatorConfig`` and ``ConsumerConfig`` of Apache Kafka 4.3.1 (names of settings, defaults,
least values).
"""

WRITE_TIMEOUT_MS = 5_000
"""``offsets.commit.timeout.ms``: how long a coordinator waits for a write to be replicated."""
NEW_MEMBER_MS = 300_000
"""How long a member may wait in its first join (``CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS``, no setting)."""
MODERN_INTERVAL_MS = 5_000
"""``group.consumer.heartbeat.interval.ms`` and the like, where no answer has shown it."""
MAX_POLL_INTERVAL_MS = 300_000
"""``max.poll.interval.ms`` of the Java client: the rebalance timeout where no source shows another."""
RETENTION_MS = 7 * 24 * 3_600_000
"""``offsets.retention.minutes``."""
RETENTION_MIN_MS = 60_000
"""The least ``offsets.retention.minutes``: younger offsets were deleted, not expired."""
RETENTION_CHECK_MS = 600_000
"""``offsets.retention.check.interval.ms``: offsets are deleted at most this much after their retention."""
