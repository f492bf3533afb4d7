"""How a job is doing, as it tells it with each clock record to a notifier in another process."""

import msgspec


class JobState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The job of one cluster at one moment; durations in milliseconds."""

    cluster: str
    batches: int = 0
    """Finished since the job was started."""
    stuck_ms: int = 0
    """How long no batch has ended although Kafka was there."""
    losing_ms: int = 0
    """How long the watermark has been behind without gaining."""
    lagging: str = ""
    """A sentence about that."""
    trouble: str = ""
    """What stands in the job's way; "" if nothing."""
    is_dying: bool = False
    """Its query dies again and again of one batch."""
    speaks: bool = False
    """It tells the receivers itself."""
