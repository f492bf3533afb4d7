"""Kafka's timeouts and defaults that the model counts with, in milliseconds, each with its setting.

Sources: ``GroupCoordinatorConfig`` and ``ConsumerConfig`` of Apache Kafka 4.3.1.
"""

WRITE_TIMEOUT_MS = 5_000
"""``offsets.commit.timeout.ms``: so long a coordinator waits until a write is replicated."""
NEW_MEMBER_MS = 300_000
"""So long a member may wait in its first join (``CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS``, no setting)."""
MODERN_INTERVAL_MS = 5_000
"""``group.consumer.heartbeat.interval.ms`` and its kin, where no answer has told it."""
MAX_POLL_INTERVAL_MS = 300_000
"""``max.poll.interval.ms`` of the Java client, and so the rebalance timeout where nobody told another."""
RETENTION_MS = 7 * 24 * 3_600_000
"""``offsets.retention.minutes``."""
RETENTION_MIN_MS = 60_000
"""The least ``offsets.retention.minutes``: offsets that are younger were deleted, not expired."""
RETENTION_CHECK_MS = 600_000
"""``offsets.retention.check.interval.ms``: offsets are gone so much later than their retention at most."""
