"""What ``groupwatch notify`` shows of jobs in other processes, read off at each scrape."""

from collections.abc import Iterable, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from streaming.watching import FarProgress


class JobCollector(Collector):
    """Prometheus' view of the jobs."""

    def __init__(self, jobs: Mapping[str, FarProgress]) -> None:
        self._jobs = jobs

    def describe(self) -> Iterable[Metric]:
        """Name the metrics without looking at the jobs."""
        return list(_families())

    def collect(self) -> Iterable[Metric]:
        """Look at the jobs as they are now."""
        heard, answered = _families()
        for name, job in self._jobs.items():
            heard.add_metric((name,), job.seconds_since_heard())
            answered.add_metric((name,), job.seconds_since_kafka())
        return heard, answered


def _families() -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
    return (
        GaugeMetricFamily(
            "groupwatch_job_silent_seconds",
            "Age of the last record that the cluster's job wrote; without one, of this process.",
            labels=("cluster",),
        ),
        GaugeMetricFamily(
            "groupwatch_kafka_silent_seconds",
            "How long ago the cluster answered this process last; if it never did, the age of this process.",
            labels=("cluster",),
        ),
    )
