"""What is kept of the past, for the page."""

from pydantic import Field

from streaming.config.types import Options


class HistoryConfig(Options):
    """Lag, members, rebalances and alerts of the last hours and days, in a file on local disk."""

    enabled: bool = True
    path: str = ""
    """The file; "": beside what a process must remember without Kafka, see ``state_dir``."""
    max_size_mb: int = Field(default=1_000, ge=10, le=1_000_000)
    """When it is larger, the oldest goes first; 10,000 groups that all commit need some 350."""
