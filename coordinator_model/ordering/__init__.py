"""Orders observations in time: buffers them until the watermark and corrects their times."""

from coordinator_model.ordering.buffered import Buffered, Run, cut, part, rest_of
from coordinator_model.ordering.lanes import fastest, slowest
from coordinator_model.ordering.order import END_UNKNOWN, SETTLE_MS, Order
from coordinator_model.ordering.righting import SKEW_MAX_MS

__all__ = [
    "END_UNKNOWN",
    "SETTLE_MS",
    "SKEW_MAX_MS",
    "Buffered",
    "Order",
    "Run",
    "cut",
    "fastest",
    "part",
    "rest_of",
    "slowest",
]
