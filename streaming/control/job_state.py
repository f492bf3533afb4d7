"""The state of a job, which it adds to each clock record for a notifier in another process."""

import msgspec


class JobState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of one cluster's job; durations in milliseconds."""

    cluster: str
    batches: int = 0
    """Batches finished since the job started."""
    stuck_ms: int = 0
    """How long no batch has ended although Kafka was available."""
    losing_ms: int = 0
    """How long the watermark has been behind without gaining."""
    lagging: str = ""
    """A sentence about that."""
    trouble: str = ""
    """Why the job cannot run; "" if it can."""
    is_dying: bool = False
    """The job's query dies repeatedly of one batch."""
    speaks: bool = False
    """The job delivers alerts to the receivers itself."""
