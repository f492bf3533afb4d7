"""The metrics of ``groupwatch notify`` about jobs in other processes, read at each scrape."""

from collections.abc import Iterable, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from alerts import metrics
from streaming.notify.watching import RemoteProgress


class JobCollector(Collector):
    """Prometheus collector for the jobs."""

    def __init__(self, jobs: Mapping[str, RemoteProgress]) -> None:
        self._jobs = jobs

    def describe(self) -> Iterable[Metric]:
        """Name the metrics without reading the jobs' state."""
        return _families()

    def collect(self) -> Iterable[Metric]:
        """Read the jobs' present state."""
        heard, answered = _families()
        for name, job in self._jobs.items():
            heard.add_metric((name,), job.seconds_since_heard())
            answered.add_metric((name,), job.seconds_since_kafka())
        return [heard, answered]


def _families() -> list[GaugeMetricFamily]:
    return [GaugeMetricFamily(one.name, one.help, labels=one.labels) for one in metrics.FAR_JOB]
