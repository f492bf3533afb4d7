"""Orders observations in time: buffers them until the watermark and corrects their times."""

from coordinator_model.ordering.buffered import (
    Buffered,
    Run,
    apart,
    cut,
    part,
    rest_of,
    span_ms,
    taken_apart,
)
from coordinator_model.ordering.lanes import BEYOND_MS, fastest, slowest
from coordinator_model.ordering.order import END_UNKNOWN, SETTLE_MS, Order
from coordinator_model.ordering.righting import SKEW_MAX_MS
from coordinator_model.ordering.zones import AHEAD_MS, DELAY_MS

__all__ = [
    "AHEAD_MS",
    "BEYOND_MS",
    "DELAY_MS",
    "END_UNKNOWN",
    "SETTLE_MS",
    "SKEW_MAX_MS",
    "Buffered",
    "Order",
    "Run",
    "apart",
    "cut",
    "fastest",
    "part",
    "rest_of",
    "slowest",
    "span_ms",
    "taken_apart",
]
