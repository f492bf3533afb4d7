"""The data of /metrics, the API and the page: the store's groups with their alerts.

It stores nothing itself; safe to use from several threads.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from alerts.alert import Alert, AlertStatus
from alerts.delivery import NO_QUIET, LiveQuiet, Match, Quiet, Silenced
from alerts.metrics import ClusterSample, Firing, GroupSample
from coordinator_model.groups import KINDS
from coordinator_model.shard import GroupReport
from streaming.group_store import GroupStore, KeptCluster, KeptGroup, Lag
from streaming.serving.api import (
    AlertList,
    ClusterDetail,
    ClusterList,
    Divergence,
    GroupDetail,
    GroupList,
    GroupSummary,
    SourceList,
    Spark,
    TopicLag,
    Undecodable,
    UndecodableCount,
    UndecodableSample,
)
from streaming.serving.choosing import Wanted, by_trouble, key_of, matching, page_of
from streaming.serving.known_lags import KnownLags, Recent
from streaming.serving.shown_alerts import ShownAlerts
from streaming.serving.sources import cluster_sources


class View:
    """The groups of ``store`` with ``alerts``, for people and Prometheus."""

    def __init__(
        self,
        store: GroupStore,
        alerts: ShownAlerts,
        *,
        clock_ms: Callable[[], int],
        quiet: Quiet | LiveQuiet = NO_QUIET,
        held_back: Callable[[str], Mapping[str, str]] = lambda _alert_id: {},
        partition_lag: bool = False,
        owner_of: Callable[[str, str], str] = lambda _cluster, _group: "",
        recent: Recent | None = None,
    ) -> None:
        """Prepare.

        Args:
            store: the known groups.
            alerts: open alerts, and those that ended lately.
            clock_ms: returns the current time.
            quiet: silences and maintenance, shown beside the alerts they silence.
            held_back: returns receiver -> why an alert is not sent to it now.
            partition_lag: the metrics show the lag of each partition.
            owner_of: returns the owner of (cluster, group), "" if nobody is named.
            recent: knows the last hour of each group; None: nobody does.
        """
        self._store = store
        self._alerts = alerts
        self._clock_ms = clock_ms
        self._quiet = quiet
        self._held_back = held_back
        self._partition_lag = partition_lag
        self._owner_of = owner_of
        self._recent = recent
        self._lags = KnownLags(store, clock_ms, recent)

    # -- metrics -------------------------------------------------------------------------------

    def group_samples(self, limit: int) -> list[GroupSample]:
        """Return at most ``limit`` groups for the metrics; of more, the most troubled."""
        now_ms, groups = self._clock_ms(), self._store.groups()
        return [
            GroupSample(
                cluster=name,
                group=group.group,
                group_type=group.group_type,
                state=group.state,
                state_since_ms=group.state_since_ms,
                members=group.members,
                generation=group.generation,
                rebalances=group.rebalances,
                lags=self._store.lags(name, group, now_ms),
                partition_lags=self._store.partition_lags(name, group, now_ms) if self._partition_lag else {},
            )
            for name, group in (groups if len(groups) <= limit else self._chosen(groups, limit))
        ]

    def firing(self, limit: int) -> list[Firing]:
        """Return the open alerts, loudest first."""
        now_ms = self._clock_ms()
        return list(dict.fromkeys(self._firing(one, now_ms) for one in self._alerts.loudest(limit)))

    def _firing(self, alert: Alert, now_ms: int) -> Firing:
        is_silenced = self._quiet.until_ms(alert, now_ms) is not None
        silenced = "true" if is_silenced else "false"
        return Firing(alert.cluster, alert.group, alert.name, str(alert.severity), silenced)

    def cluster_samples(self) -> list[ClusterSample]:
        """Return every cluster for the metrics."""
        now_ms = self._clock_ms()
        return self._store.clusters(lambda name, known: cluster_sample(name, known, now_ms))

    # -- the API -------------------------------------------------------------------------------

    def groups(self, wanted: Wanted | None = None, *, spark: bool = False) -> GroupList:
        """Return one page of the groups that match all filters; ``spark`` adds the last hour of each."""
        wanted, now_ms = wanted or Wanted(), self._clock_ms()
        names = self._alerts.names() if wanted.alert else {}
        found = matching(self._store.groups(wanted.cluster), wanted, names, self._owner_of)
        lags = self._lags.of(found) if wanted.sort == "lag" else {}
        key = key_of(wanted.sort, self._alerts.troubles(), lambda one: lags.get((one[0], one[1].group), -1))
        page = page_of(found, wanted, key)
        return GroupList(
            total=len(found),
            offset=wanted.offset,
            limit=wanted.limit,
            at_ms=now_ms,
            groups=[self._summary(name, group, now_ms, spark=spark) for name, group in page],
        )

    def group(self, cluster: str, group: str) -> GroupDetail | None:
        """Return all known facts about one group."""
        found = self._store.group(cluster, group)
        if found is None:
            return None
        return GroupDetail(
            cluster=cluster,
            report=msgspec.json.decode(found.report, type=GroupReport),
            lag=_topic_lags(self._store.lags(cluster, found, self._clock_ms())),
            alerts=self._alerts.of(cluster, group),
            transitions=self._store.transitions(cluster, group),
        )

    def alerts(
        self,
        *,
        status: str = "firing",
        cluster: str = "",
        group: str | None = None,
        severity: str = "",
        offset: int = 0,
        limit: int = 100,
    ) -> AlertList:
        """Return open alerts, loud before silenced; ``status`` "resolved": the last that ended, "": both."""
        matching = self._alerts.matching(status=status, cluster=cluster, group=group, severity=severity)
        now_ms, quiet = self._clock_ms(), self._quiet.now
        in_force = [one.match for one in quiet.windows(now_ms, 0)]
        page = _loud_first(matching, in_force, offset + limit)[offset:]
        found = ((alert.id, quiet.silenced(alert, now_ms)) for alert in page)
        silenced: dict[str, Silenced] = {alert_id: why for alert_id, why in found if why is not None}
        reasons = {alert.id: dict(self._held_back(alert.id)) for alert in page}
        return AlertList(
            total=len(matching),
            offset=offset,
            limit=limit,
            at_ms=now_ms,
            alerts=page,
            silenced={alert_id: why.until_ms for alert_id, why in silenced.items()},
            silenced_by=silenced,
            held_back={alert_id: why for alert_id, why in reasons.items() if why},
        )

    def undecodable(self) -> Undecodable:
        """Return the records and lines that could not be read."""
        reports = self._store.clusters(lambda name, known: (name, known.report))
        return Undecodable(
            counts=[
                UndecodableCount(cluster=name, source=source, reason=reason, count=count)
                for name, report in reports
                for source, reason, count in report.undecodable
            ],
            samples=[
                msgspec.convert({"cluster": name, **sample}, UndecodableSample)
                for name, report in reports
                for sample in reversed(report.samples)
            ],
        )

    def clusters(self) -> ClusterList:
        """Return the brokers' own facts, and how well their answers agree with the mirror."""
        now_ms = self._clock_ms()
        details = self._store.clusters(lambda name, known: cluster_detail(name, known, now_ms))
        return ClusterList(at_ms=now_ms, clusters=details)

    def sources(self, health: Sequence[Mapping[str, Any]]) -> SourceList:
        """Return what each cluster's job hears, and what it misses; ``health`` is what ``/ready`` says."""
        now_ms, told = self._clock_ms(), {str(one.get("cluster", "")): one for one in health}
        found = self._store.clusters(
            lambda name, known: cluster_sources(name, known, told.get(name, {}), now_ms)
        )
        return SourceList(at_ms=now_ms, clusters=found)

    # -- inside --------------------------------------------------------------------------------

    def _chosen(self, groups: Iterable[tuple[str, KeptGroup]], limit: int) -> list[tuple[str, KeptGroup]]:
        """Return the first groups: by their loudest alert, then unsettled ones, then by name."""
        return page_of(groups, Wanted(limit=limit), by_trouble(self._alerts.troubles()))

    def _summary(self, cluster: str, group: KeptGroup, now_ms: int, *, spark: bool) -> GroupSummary:
        return GroupSummary(
            cluster=cluster,
            group=group.group,
            group_type=group.group_type,
            state=str(group.state),
            state_since_ms=group.state_since_ms,
            members=group.members,
            generation=group.generation,
            rebalances=sum(group.rebalances.values()),
            lag=_topic_lags(self._store.lags(cluster, group, now_ms)),
            alerts=[alert.name for alert in self._alerts.of(cluster, group.group)],
            assignment_epoch=group.assignment_epoch,
            held_up_by=list(group.held_up_by),
            owner=self._owner_of(cluster, group.group),
            spark=self._spark(cluster, group.group) if spark else None,
        )

    def _spark(self, cluster: str, group: str) -> Spark | None:
        found = self._recent.spark(cluster, group) if self._recent else None
        return None if found is None else Spark(step_ms=found[0], lag=found[1], rebalances=found[2])


def _loud_first(alerts: Sequence[Alert], in_force: Iterable[Match], count: int) -> list[Alert]:
    """Return the first ``count`` alerts: open ones, those silenced after the others, then ended ones.

    It looks no further than it must: what silences is known already, and a loud page ends the search.
    """
    of_one: dict[str, list[Match]] = defaultdict(list)
    for one in in_force:
        of_one[one.alert_id].append(one)
    if not of_one:
        return list(alerts[:count])
    wide = sorted(of_one.pop("", []), key=lambda one: bool(one.groups))  # patterns cost the most
    loud: list[Alert] = []
    silenced: list[Alert] = []
    for alert in alerts:
        if len(loud) == count or alert.status is AlertStatus.RESOLVED:
            break
        is_silenced = any(match.is_of(alert) for match in (*of_one.get(alert.id, ()), *wide))
        (silenced if is_silenced else loud).append(alert)
    ended = alerts[len(loud) + len(silenced) :]
    return [*loud, *silenced, *ended][:count]


def _topic_lags(lags: Mapping[str, Lag]) -> list[TopicLag]:
    return [TopicLag(topic=topic, records=lag.records, seconds=lag.seconds) for topic, lag in lags.items()]


def cluster_detail(name: str, known: KeptCluster, now_ms: int) -> ClusterDetail:
    """Return the API's facts about one cluster as a whole."""
    agreement, report = known.agreement, known.report
    return ClusterDetail(
        cluster=name,
        groups=len(known.groups),
        agreement=agreement.ratio(now_ms),
        answers_compared=agreement.compared,
        answers_agreeing=agreement.agreeing,
        probe_requests=known.probe_requests,
        brokers=report.brokers,
        offsets_leaders={partition: leader for partition, (leader, _) in report.leaders.items()},
        partitions=report.partitions,
        divergences=[
            Divergence(kind=d.kind, group=d.group, broker=d.broker, at_ms=d.at_ms, detail=d.detail)
            for d in reversed(known.last_divergences)
        ],
    )


def cluster_sample(name: str, known: KeptCluster, now_ms: int) -> ClusterSample:
    """Return the metrics' values for one cluster."""
    report, agreement = known.report, known.agreement
    return ClusterSample(
        cluster=name,
        groups=len(known.groups),
        events={(source, kind): count for source, kind, count in report.events},
        undecodable={(source, why): count for source, why, count in report.undecodable},
        # Foreseeable kinds exist at 0: ``rate`` misses the first value of a series that appears late.
        divergences=_larger(dict.fromkeys(KINDS, 0) | known.divergences, report.divergences),
        newest_ms=report.newest_ms,
        answers={
            "agreeing": agreement.agreeing,
            "differing": agreement.compared - agreement.agreeing,
        },
        agreement=agreement.ratio(now_ms),
        probe_requests=known.probe_requests,
        quarantined=len(report.quarantined),
    )


def _larger(here: Mapping[str, int], reported: Mapping[str, int]) -> dict[str, int]:
    """Merge counts: the cluster's shard keeps some kinds across restarts, and gets them a little later."""
    return {kind: max(here.get(kind, 0), reported.get(kind, 0)) for kind in {**here, **reported}}
