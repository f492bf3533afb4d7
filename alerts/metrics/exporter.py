"""Metrics of groups and clusters, read from the latest snapshot at each scrape.

Nothing is kept between scrapes: a removed group disappears from the next scrape, and no series of it can
freeze.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from alerts.metrics import metrics
from coordinator_model.kafka import GroupState

_S = GroupState
STATES: Mapping[str, tuple[GroupState, ...]] = {
    "classic": (_S.EMPTY, _S.PREPARING_REBALANCE, _S.COMPLETING_REBALANCE, _S.STABLE, _S.DEAD),
    "consumer": (_S.EMPTY, _S.ASSIGNING, _S.RECONCILING, _S.STABLE, _S.DEAD),
    "share": (_S.EMPTY, _S.STABLE, _S.DEAD),
    "streams": (_S.EMPTY, _S.NOT_READY, _S.ASSIGNING, _S.RECONCILING, _S.STABLE, _S.DEAD),
}
"""Group type → its states."""


class GroupSample(NamedTuple):
    """The values of one group that the metrics show; unknown times and numbers are -1."""

    cluster: str
    group: str
    group_type: str
    state: GroupState
    state_since_ms: int
    members: int
    generation: int
    rebalances: Mapping[str, int]
    lags: Mapping[str, tuple[int, float]]
    """Topic → (records, seconds); topics with unknown lag are left out."""
    partition_lags: Mapping[tuple[str, int], int] = {}
    """(Topic, partition) → records, if these are wanted."""


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
        """Return at most ``limit`` groups: those with alerts first, then those not Stable, then by name."""
        ...

    def firing(self, limit: int) -> Iterable[Firing]:
        """Return at most ``limit`` open alerts."""
        ...

    def cluster_samples(self) -> Iterable[ClusterSample]:
        """Return all clusters."""
        ...


class SnapshotCollector(Collector):
    """Prometheus collector for a ``MetricsSource``."""

    def __init__(self, picture: MetricsSource, *, groups_max: int, clock_ms: Callable[[], int]) -> None:
        self._picture = picture
        self._groups_max = groups_max
        self._clock_ms = clock_ms

    def describe(self) -> Iterable[Metric]:
        """Name the metrics without reading the picture."""
        return list(self._families().values())

    def collect(self) -> Iterable[Metric]:
        """Read the current picture."""
        now_ms = self._clock_ms()
        families = self._families()
        for group in self._picture.group_samples(self._groups_max):
            _add_group(families, group, now_ms)
        for labels in self._picture.firing(self._groups_max):
            families[metrics.ALERTS_FIRING].add_metric(labels, 1)
        for cluster in self._picture.cluster_samples():
            _add_cluster(families, cluster)
        return families.values()

    @staticmethod
    def _families() -> "_Families":
        kinds = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily}
        return {m: kinds[m.kind](m.name, m.help, labels=m.labels) for m in metrics.SNAPSHOT_METRICS}


_Families = dict[metrics.Metric, GaugeMetricFamily | CounterMetricFamily]


def _add_group(families: _Families, sample: GroupSample, now_ms: int) -> None:
    labels = (sample.cluster, sample.group)
    # A state that the group's type should not have is shown anyway: an odd series beats a hidden state.
    states = dict.fromkeys((*STATES.get(sample.group_type, ()), sample.state))
    for state in states:
        families[metrics.GROUP_STATE].add_metric(
            (*labels, sample.group_type, str(state)), float(state is sample.state)
        )
    families[metrics.GROUP_MEMBERS].add_metric(labels, sample.members)
    if sample.generation >= 0:
        families[metrics.GROUP_GENERATION].add_metric(labels, sample.generation)
    if sample.state_since_ms >= 0:
        families[metrics.GROUP_STATE_CHANGED].add_metric(labels, sample.state_since_ms / 1000)
        families[metrics.GROUP_STATE_SECONDS].add_metric(labels, _age_s(sample.state_since_ms, now_ms))
    for cause, count in sample.rebalances.items():
        families[metrics.GROUP_REBALANCES].add_metric((*labels, cause), count)
    for topic, (records, seconds) in sample.lags.items():
        families[metrics.GROUP_LAG].add_metric((*labels, topic), records)
        families[metrics.GROUP_LAG_SECONDS].add_metric((*labels, topic), seconds)
    for (topic, partition), records in sample.partition_lags.items():
        families[metrics.GROUP_PARTITION_LAG].add_metric((*labels, topic, str(partition)), records)


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


def _age_s(since_ms: int, now_ms: int) -> float:
    return max(0, now_ms - since_ms) / 1000
