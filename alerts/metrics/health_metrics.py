"""Metrics about the health of each cluster's job and of the history, read from them at each scrape."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from alerts.metrics import metrics


class HealthSample(NamedTuple):
    """The health of one cluster's job."""

    cluster: str
    is_ready: bool
    delays_s: Mapping[str, float]
    """Source -> how far behind the end of its topic we are."""
    last_batch_s: float | None
    """When the last batch ended (Unix time); None: none has."""


class HealthCollector(Collector):
    """Prometheus collector for the jobs of the clusters."""

    def __init__(self, samples: Callable[[], Iterable[HealthSample]]) -> None:
        self._samples = samples

    def describe(self) -> Iterable[Metric]:
        """Name the metrics without asking the jobs."""
        return _families()

    def collect(self) -> Iterable[Metric]:
        """Ask the jobs."""
        ready, delay, last_batch = families = _families()
        for one in self._samples():
            ready.add_metric((one.cluster,), one.is_ready)
            for source, seconds in one.delays_s.items():
                delay.add_metric((one.cluster, source), seconds)
            if one.last_batch_s is not None:
                last_batch.add_metric((one.cluster,), one.last_batch_s)
        return families


def _families() -> list[GaugeMetricFamily]:
    return [GaugeMetricFamily(one.name, one.help, labels=one.labels) for one in metrics.HEALTH]


class HistoryCollector(Collector):
    """Prometheus collector for what the history lost."""

    def __init__(self, dropped: Callable[[], Mapping[str, int]]) -> None:
        """Prepare; ``dropped`` returns reason -> number of lost rows."""
        self._dropped = dropped

    def describe(self) -> Iterable[Metric]:
        """Name the metric without asking the history."""
        return [_dropped_family()]

    def collect(self) -> Iterable[Metric]:
        """Ask the history."""
        family = _dropped_family()
        for reason, count in self._dropped().items():
            family.add_metric((reason,), count)
        return [family]


def _dropped_family() -> CounterMetricFamily:
    one = metrics.HISTORY_DROPPED
    return CounterMetricFamily(one.name, one.help, labels=one.labels)
