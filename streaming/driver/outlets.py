"""Where a cluster's job puts what it learns: two named things in place of a handful of callables."""

from collections.abc import Callable
from dataclasses import dataclass

from alerts.alert import Alert
from streaming.pipeline import Apply


@dataclass(frozen=True, kw_only=True)
class Outlets:
    """Who takes a batch's rows, and alerts that were open before the first batch."""

    apply: Apply
    remember: Callable[[Alert], None] = lambda _alert: None


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Who counts what happens beside the batches; metrics, in a running process."""

    raise_tried: Callable[[str], None] = lambda _outcome: None
    """The outcome of each attempt to raise a request log or to put it back."""
    brokers_raised: Callable[[int], None] = lambda _brokers: None
    """How many brokers' request logs are raised."""
    missed: Callable[[str, int], None] = lambda _topic, _records: None
    """How many records of which topic were gone before they were read."""
    corrected: Callable[[int, float], None] = lambda _broker, _seconds: None
    """How many seconds are added to the times of which broker."""
