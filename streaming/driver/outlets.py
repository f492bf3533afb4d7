"""The takers of what a cluster's job learns: two named things instead of a handful of callables."""

from collections.abc import Callable
from dataclasses import dataclass

from alerts.alert import Alert
from streaming.pipeline import Apply


@dataclass(frozen=True, kw_only=True)
class Outlets:
    """Take a batch's rows, and alerts that were open before the first batch."""

    apply: Apply
    remember: Callable[[Alert], None] = lambda _alert: None


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Count what happens outside the batches; metrics, in a running process."""

    raise_tried: Callable[[str], None] = lambda _outcome: None
    """Takes the outcome of each attempt to raise or restore a request log."""
    brokers_raised: Callable[[int], None] = lambda _brokers: None
    """Takes the number of brokers with a raised request log."""
    batch_took: Callable[[float], None] = lambda _seconds: None
    """Takes the seconds of each batch."""
    missed: Callable[[str, int], None] = lambda _topic, _records: None
    """Takes a topic and the number of its records that were deleted before they were read."""
    corrected: Callable[[int, float], None] = lambda _broker, _seconds: None
    """Takes a broker and the seconds that are added to its times."""
