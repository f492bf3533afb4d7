"""Which clocks a batch has seen, as a worker tells the driver."""

import msgspec


class Clocked(msgspec.Struct, frozen=True, omit_defaults=True):
    """What clocks of one batch told the cluster's shard; the row ``clocked``."""

    control_ms: int = -1
    events: dict[int, int] = {}
    """Partition of the events topic -> time of the newest copy."""
    partitions: int = -1
    """How many there are; -1: no clock told."""
    now_ms: int = -1
    """The shard's *now*, if it was awake."""
