"""Metrics about deliveries, read from the outboxes at each scrape."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from alerts.alert import REASONS
from alerts.delivery import SILENCE_REASONS, SILENCE_STATES, DeliveryState, KeptSilence, wall_clock_ms
from alerts.metrics import metrics


class Silences(Protocol):
    """What is known of the silences that were added at run time."""

    def newest(self) -> Mapping[str, KeptSilence]:
        """Return id -> silence."""
        ...

    def refused(self) -> Mapping[str, int]:
        """Return reason -> number of refused records."""
        ...


class DeliveryCollector(Collector):
    """Prometheus collector for the receivers."""

    def __init__(self, deliveries: Callable[[], Sequence[DeliveryState]]) -> None:
        self._deliveries = deliveries

    def describe(self) -> Iterable[Metric]:
        """Name the metrics without reading the outboxes."""
        return [_family(one) for one in metrics.DELIVERY]

    def collect(self) -> Iterable[Metric]:
        """Read the current state of the receivers."""
        families = {one: _family(one) for one in metrics.DELIVERY}
        for state in self._deliveries():
            label = (state.receiver,)
            families[metrics.OLDEST_UNDELIVERED].add_metric(label, state.oldest_s)
            families[metrics.UNDELIVERED].add_metric(label, state.waiting)
            families[metrics.RECEIVER_UP].add_metric(label, float(not state.trouble))
            families[metrics.SENDER_ERRORS].add_metric(label, state.failures)
            for reason in REASONS:
                refused = state.refused.get(reason, 0)
                families[metrics.REFUSED_RECORDS].add_metric((*label, reason), refused)
        return families.values()


class SilenceCollector(Collector):
    """Prometheus collector for the silences that were added at run time."""

    def __init__(self, silences: Silences, clock_ms: Callable[[], int] = wall_clock_ms) -> None:
        self._silences = silences
        self._clock_ms = clock_ms

    def describe(self) -> Iterable[Metric]:
        """Name the metrics without reading the silences."""
        return [_family(one) for one in metrics.SILENCE_METRICS]

    def collect(self) -> Iterable[Metric]:
        """Count the silences and the refused records."""
        now_ms, refused = self._clock_ms(), self._silences.refused()
        states = Counter(one.state_at(now_ms) for one in self._silences.newest().values())
        counted, skipped = (_family(one) for one in metrics.SILENCE_METRICS)
        for state in SILENCE_STATES:
            counted.add_metric((state,), states[state])
        for reason in SILENCE_REASONS:
            skipped.add_metric((reason,), refused.get(reason, 0))
        return [counted, skipped]


def _family(metric: metrics.Metric) -> GaugeMetricFamily | CounterMetricFamily:
    kind = GaugeMetricFamily if metric.kind == "gauge" else CounterMetricFamily
    return kind(metric.name, metric.help, labels=metric.labels)
