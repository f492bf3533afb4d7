"""The metrics of ``groupwatch notify`` about jobs in other processes, read at each scrape."""

import time
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
        heard_at, answered_at, heard, answered = families = _families()
        now_s = time.time()
        for name, job in self._jobs.items():
            heard_s, answered_s = job.seconds_since_heard(), job.seconds_since_kafka()
            heard_at.add_metric((name,), now_s - heard_s)
            answered_at.add_metric((name,), now_s - answered_s)
            heard.add_metric((name,), heard_s)
            answered.add_metric((name,), answered_s)
        return families


def _families() -> list[GaugeMetricFamily]:
    return [GaugeMetricFamily(one.name, one.help, labels=one.labels) for one in metrics.FAR_JOB]
