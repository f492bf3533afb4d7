"""The health of one cluster's job: its query, its watermark, its limits."""

from streaming.health.limits import Limits
from streaming.health.query_progress import (
    DEATHS_MAX,
    LATE_S,
    LATE_TRIGGERS,
    LULL_S,
    WAITING,
    Progress,
    positions_in,
)
from streaming.health.watermark import Watermark

__all__ = [
    "DEATHS_MAX",
    "LATE_S",
    "LATE_TRIGGERS",
    "LULL_S",
    "WAITING",
    "Limits",
    "Progress",
    "Watermark",
    "positions_in",
]
