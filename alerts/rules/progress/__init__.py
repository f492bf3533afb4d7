"""Rules about commits and lag."""

from alerts.rules.progress.commits_stalled import COMMITS_STALLED
from alerts.rules.progress.commits_stopped import COMMITS_STOPPED
from alerts.rules.progress.lag_growing import LAG_GROWING
from alerts.rules.progress.offset_rewind import OFFSET_REWIND

__all__ = [
    "COMMITS_STALLED",
    "COMMITS_STOPPED",
    "LAG_GROWING",
    "OFFSET_REWIND",
]
