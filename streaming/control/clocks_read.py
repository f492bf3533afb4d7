"""A worker's report to the driver: which clocks a batch has read."""

import msgspec


class ClocksRead(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one batch's clocks told the cluster's shard; sent in the row ``clocks_read``."""

    control_ms: int = -1
    events: dict[int, int] = {}
    """Partition of the events topic -> time of its newest clock copy."""
    partitions: int = -1
    """Number of events partitions; -1: no clock gave it."""
    now_ms: int = -1
    """The shard's watermark, if the shard was awake."""
