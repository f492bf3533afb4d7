"""Metrics of groups and clusters, read from the latest snapshot at each scrape.

A removed group disappears from the next scrape, and no series of it can freeze.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from alerts.metrics import metrics
from alerts.metrics.exposition import CLUSTER
from alerts.metrics.group_lines import GROUP_METRICS, GroupLines, GroupSample


class ClusterSample(NamedTuple):
    """The values of one cluster that the metrics show."""

    cluster: str
    groups: int
    events: Mapping[tuple[str, str], int]
    undecodable: Mapping[tuple[str, str], int]
    divergences: Mapping[str, int]
    newest_ms: Mapping[str, int]
    answers: Mapping[str, int] = {}
    """Agreeing, differing -> how many of the brokers' answers did so."""
    agreement: float | None = None
    """Share of recent answers that agreed; None: nothing could be compared."""
    probe_requests: Mapping[str, int] = {}
    """Kafka request -> how many we sent."""
    quarantined: int = 0
    """Groups quarantined because our own code failed on them."""


class Firing(NamedTuple):
    """An open alert, as the labels of its series have it."""

    cluster: str
    group: str
    """Empty for alerts about a whole cluster."""
    alertname: str
    severity: str
    silenced: str
    """true or false."""


class MetricsSource(Protocol):
    """The latest snapshot; each method may be called from any thread."""

    def group_samples(self, limit: int) -> Iterable[GroupSample]:
        """Return at most ``limit`` groups; of more, those with alerts, then those not Stable."""
        ...

    def firing(self, limit: int) -> Iterable[Firing]:
        """Return at most ``limit`` open alerts."""
        ...

    def cluster_samples(self) -> Iterable[ClusterSample]:
        """Return all clusters."""
        ...


class SnapshotCollector(Collector):
    """Prometheus collector for a ``MetricsSource``."""

    def __init__(
        self,
        picture: MetricsSource,
        *,
        groups_max: int,
        clock_ms: Callable[[], int],
        cluster_label: str = CLUSTER,
    ) -> None:
        self._picture = picture
        self._groups_max = groups_max
        self._clock_ms = clock_ms
        self._lines = GroupLines(cluster_label)

    def describe(self) -> Iterable[Metric]:
        """Name the metrics without reading the picture."""
        return [*self._lines.families((), 0), *self._families().values()]

    def collect(self) -> Iterable[Metric]:
        """Read the current picture."""
        families = self._families()
        for labels in self._picture.firing(self._groups_max):
            families[metrics.ALERTS_FIRING].add_metric(labels, 1)
        for cluster in self._picture.cluster_samples():
            _add_cluster(families, cluster)
        groups = self._picture.group_samples(self._groups_max)
        return [*self._lines.families(groups, self._clock_ms()), *families.values()]

    @staticmethod
    def _families() -> "_Families":
        kinds = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily}
        return {
            m: kinds[m.kind](m.name, m.help, labels=m.labels)
            for m in metrics.SNAPSHOT_METRICS
            if m not in GROUP_METRICS
        }


_Families = dict[metrics.Metric, GaugeMetricFamily | CounterMetricFamily]


def _add_cluster(families: _Families, sample: ClusterSample) -> None:
    cluster = sample.cluster
    families[metrics.GROUPS].add_metric((cluster,), sample.groups)
    for (source, kind), count in sample.events.items():
        families[metrics.EVENTS].add_metric((cluster, source, kind), count)
    for (source, reason), count in sample.undecodable.items():
        families[metrics.UNDECODABLE].add_metric((cluster, source, reason), count)
    for kind, count in sample.divergences.items():
        families[metrics.DIVERGENCE].add_metric((cluster, kind), count)
    families[metrics.QUARANTINED].add_metric((cluster,), sample.quarantined)
    _add_answers(families, sample)
    for source, at_ms in sample.newest_ms.items():
        if at_ms >= 0:
            families[metrics.SOURCE_NEWEST].add_metric((cluster, source), at_ms / 1000)


def _add_answers(families: _Families, sample: ClusterSample) -> None:
    for outcome, count in sample.answers.items():
        families[metrics.ANSWERS].add_metric((sample.cluster, outcome), count)
    for request, count in sample.probe_requests.items():
        families[metrics.PROBE_REQUESTS].add_metric((sample.cluster, request), count)
    if sample.agreement is not None:
        families[metrics.AGREEMENT_RATIO].add_metric((sample.cluster,), sample.agreement)
