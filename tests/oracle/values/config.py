"""What a broker's configuration says about classic groups."""

import msgspec

UNLIMITED = 2**31 - 1


class Config(msgspec.Struct, frozen=True, kw_only=True, tag="Config", forbid_unknown_fields=True):
    """A broker's options, named as Kafka names them, with Kafka's defaults; times in milliseconds.

    ``commit_delay_ms`` is no option of Kafka: how long a record takes to be replicated.  None means
    that records are committed by ``Commit`` events alone.
    """

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = UNLIMITED
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    offset_metadata_max_bytes: int = 4_096
    offsets_commit_timeout_ms: int = 5_000
    """A write that is not committed by then fails with REQUEST_TIMED_OUT, although its records stay."""
    new_member_join_timeout_ms: int = 300_000
    """Not configurable in brokers: how long a member may wait in its first join."""
    commit_delay_ms: int | None = 0
    broker_id: int = 1
    partition: int = 0
    """The partition of ``__consumer_offsets``; every group of one coordinator is taken to be in it."""

    @property
    def offsets_retention_ms(self) -> int:
        """How long offsets of nobody stay."""
        return self.offsets_retention_minutes * 60_000
