"""Metrics about the health of each cluster's job, read from it at each scrape."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric
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
