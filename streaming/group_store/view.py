"""The latest picture of every cluster, in the driver: what /metrics, the API and the page show.

Fed by the batches (``apply``), by the end offsets (``set_end_offsets``) and, at start, by the alerts
topic (``remember``).  Reports are kept as the bytes they came in, and only what lists and metrics need
is decoded: 100,000 groups must fit.  Safe to use from several threads.
"""

import heapq
import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from alerts.alert import Alert, AlertStatus, Said
from alerts.delivery import NO_QUIET, Quiet
from alerts.metrics import ClusterSample, GroupSample
from coordinator_model.groups import KINDS
from coordinator_model.kafka import SETTLED, GroupState, shard_of
from coordinator_model.shard import GroupReport
from coordinator_model.state import Transition
from streaming.group_store.api import (
    AlertList,
    ClusterList,
    GroupDetail,
    GroupList,
    GroupSummary,
    TopicLag,
    Undecodable,
    UndecodableCount,
    UndecodableSample,
)
from streaming.group_store.lag import Lag
from streaming.group_store.picture import (
    RANK,
    TRANSITIONS_KEPT_MAX,
    AgreementRow,
    Brief,
    ClusterReport,
    DivergenceRow,
    KeptCluster,
    KeptGroup,
    RebuildingRow,
    cluster_detail,
    cluster_sample,
    commits_of,
    loudness,
    members_of,
)

_LOGGER = logging.getLogger("groupwatch.view")

_RESOLVED_KEPT_MAX = 1_000
_TRANSITION_IDS_MAX = 10_000

Row = tuple[str, str, bytes]
"""(kind, key, value) as the state function yields it; the value is JSON."""


def _ignore(*_: object) -> None:
    """Take no note."""


class View:
    """The picture; see the module."""

    def __init__(
        self,
        clusters: Iterable[str] = (),
        *,
        clock_ms: Callable[[], int],
        rebalanced: Callable[[str, float], None] = _ignore,
        detected: Callable[[float], None] = _ignore,
        quiet: Quiet = NO_QUIET,
    ) -> None:
        """Start with an empty picture.

        Args:
            clusters: names known already, so that they are shown before anything is known of them.
            clock_ms: the time now.
            rebalanced: told (cluster, seconds) for each finished rebalance.
            detected: told for each new alert how many seconds after its condition held it got here.
            quiet: when receivers are left in peace, to be shown beside what they are not told.
        """
        self._lock = threading.RLock()
        self._clusters = {name: KeptCluster() for name in clusters}
        self._clock_ms = clock_ms
        self._rebalanced = rebalanced
        self._detected = detected
        self._quiet = quiet
        self._alerts: dict[str, Alert] = {}
        self._resolved: OrderedDict[str, Alert] = OrderedDict()
        self._said = Said()
        self._transition_ids: OrderedDict[str, None] = OrderedDict()
        self._takers: dict[str, Callable[[str, KeptCluster, str, bytes], None]] = {
            "report": self._take_report,
            "alert": self._take_alert,
            "transition": self._take_transition,
            "cluster": self._take_cluster,
            "divergence": self._take_divergence,
            "agreement": self._take_agreement,
            "rebuilding": self._take_rebuilding,
        }

    # -- what comes in -------------------------------------------------------------------------

    def apply(self, cluster: str, rows: Iterable[Row]) -> None:
        """Take the rows of one batch; kinds that are not for the picture are passed over."""
        with self._lock:
            known = self._clusters.setdefault(cluster, KeptCluster())
            for kind, key, value in rows:
                taker = self._takers.get(kind)
                if taker is None:
                    continue
                try:
                    taker(cluster, known, key, value)
                except msgspec.DecodeError as error:
                    _LOGGER.error("a %s of %s cannot be read: %s", kind, cluster, error)

    def remember(self, alert: Alert) -> None:
        """Take an alert from the alerts topic, or from the supervisor; older revisions change nothing.

        Reading the topic and the batches overlap, and have no order; what a batch says afterwards wins.
        """
        with self._lock:
            before = self._alerts.get(alert.id) or self._resolved.get(alert.id)
            if before is None or before.revision < alert.revision:
                self._said.is_repeat(alert)
                self._put_alert(self._clusters.setdefault(alert.cluster, KeptCluster()), alert)

    def set_end_offsets(self, cluster: str, ends: Mapping[str, Mapping[int, tuple[int, int]]]) -> None:
        """Take topic → partition → (end offset, epoch ms) of one cluster."""
        with self._lock:
            self._clusters.setdefault(cluster, KeptCluster()).ends.add(ends)

    def committed_topics(self, cluster: str) -> set[str]:
        """Return the topics that any group of ``cluster`` commits to, whose ends are worth asking for."""
        with self._lock:
            known = self._clusters.get(cluster)
            return set(known.topics) if known else set()

    def readers(self, cluster: str) -> dict[str, tuple[str, ...]]:
        """Return group -> topics that it commits to, of one cluster."""
        with self._lock:
            known = self._clusters.get(cluster)
            groups = known.groups.items() if known else ()
            return {name: group.topics for name, group in groups if group.topics}

    def commits(self, cluster: str, group: str) -> dict[str, dict[int, tuple[int, int]]]:
        """Return topic → partition → (offset, epoch ms) of one group; empty if it is not known."""
        with self._lock:
            known = self._clusters.get(cluster)
            found = known.groups.get(group) if known else None
        return {} if found is None else commits_of(found.report)

    def _take_report(self, _: str, known: KeptCluster, __: str, value: bytes) -> None:
        brief = msgspec.json.decode(value, type=Brief)
        if brief.removed:
            known.forget(brief.group)
            return
        before, topics = known.groups.pop(brief.group, None), tuple(brief.commits)
        if before is None or before.topics != topics:
            known.count_topics(gone=before.topics if before else (), come=topics)
        known.groups[brief.group] = KeptGroup(
            group=brief.group,
            group_type=brief.group_type,
            state=brief.state,
            state_since_ms=brief.state_since_ms,
            generation=brief.generation,
            members=len(brief.members),
            rebalances=brief.rebalances,
            topics=topics,
            report=bytes(value),
            assignment_epoch=brief.assignment_epoch,
            held_up_by=() if brief.state in SETTLED else brief.held_up_by,
        )

    def _take_alert(self, _: str, known: KeptCluster, __: str, value: bytes) -> None:
        alert = msgspec.json.decode(value, type=Alert)
        if self._said.is_repeat(alert):
            return  # a batch that was run again after a failure
        self._put_alert(known, alert)
        if alert.revision == 0 and alert.status is AlertStatus.FIRING:
            self._detected(max(0, self._clock_ms() - alert.detected_at_ms) / 1000)

    def _put_alert(self, known: KeptCluster, alert: Alert) -> None:
        self._take_away(alert.id)
        if alert.status is AlertStatus.FIRING:
            self._alerts[alert.id] = known.firing.setdefault(alert.group, {})[alert.id] = alert
        else:
            self._resolved[alert.id] = alert
            while len(self._resolved) > _RESOLVED_KEPT_MAX:
                self._said.forget(self._resolved.popitem(last=False)[0])

    def _take_away(self, alert_id: str) -> None:
        """Take an alert out of where its last record has put it; a forged one may name another group."""
        self._resolved.pop(alert_id, None)
        before = self._alerts.pop(alert_id, None)
        if before is None:
            return
        firing = self._clusters[before.cluster].firing
        del firing[before.group][alert_id]
        if not firing[before.group]:
            del firing[before.group]

    def _take_transition(self, cluster: str, known: KeptCluster, group: str, value: bytes) -> None:
        transition = msgspec.json.decode(value, type=Transition)
        if transition.id in self._transition_ids:
            return  # a batch that was run again after a failure
        self._transition_ids[transition.id] = None
        while len(self._transition_ids) > _TRANSITION_IDS_MAX:
            self._transition_ids.popitem(last=False)
        kept = known.transitions.setdefault(group, deque(maxlen=TRANSITIONS_KEPT_MAX))
        if transition.replaces is not None:
            for earlier in [one for one in kept if one.id == transition.replaces]:
                kept.remove(earlier)
        kept.append(transition)
        self._time_rebalance(cluster, known, transition)

    def _time_rebalance(self, cluster: str, known: KeptCluster, transition: Transition) -> None:
        if transition.to_state not in SETTLED:
            known.rebalancing_since_ms.setdefault(transition.group, transition.at_ms)
            return
        since_ms = known.rebalancing_since_ms.pop(transition.group, None)
        if since_ms is not None and transition.to_state is not GroupState.DEAD:
            self._rebalanced(cluster, max(0, transition.at_ms - since_ms) / 1000)

    def _take_cluster(self, _: str, known: KeptCluster, __: str, value: bytes) -> None:
        known.report = msgspec.json.decode(value, type=ClusterReport)

    def _take_divergence(self, cluster: str, known: KeptCluster, __: str, value: bytes) -> None:
        one = msgspec.json.decode(value, type=DivergenceRow)
        known.divergences[one.kind] = known.divergences.get(one.kind, 0) + one.count
        known.last_divergences.append(one)
        if one.kind in KINDS:
            _LOGGER.warning("%s: %s: group %s: %s", cluster, one.kind, one.group, one.detail)

    def _take_agreement(self, _: str, known: KeptCluster, __: str, value: bytes) -> None:
        known.agreement.add(msgspec.json.decode(value, type=AgreementRow), self._clock_ms())

    def _take_rebuilding(self, _: str, known: KeptCluster, __: str, value: bytes) -> None:
        """Forget the groups of a shard that begins anew: what was reported of them is out of date."""
        told = msgspec.json.decode(value, type=RebuildingRow)
        before = known.rebuilding.get(told.shard, -1)
        known.rebuilding[told.shard] = told.since_ms
        if before in (0, told.since_ms):  # 0: it had no time yet
            return
        for name in [one for one in known.groups if shard_of(one, told.shard_count) == told.shard]:
            known.forget(name)

    def probed(self, cluster: str, requests: Mapping[str, int]) -> None:
        """Take how many requests of each kind the probe has sent to the brokers since its start."""
        with self._lock:
            self._clusters.setdefault(cluster, KeptCluster()).probe_requests = dict(requests)

    def pictured(self, cluster: str) -> dict[str, tuple[str, str]]:
        """Return group -> (type, state) of one cluster."""
        with self._lock:
            known = self._clusters.get(cluster)
            groups = known.groups if known else {}
            return {name: (group.group_type, str(group.state)) for name, group in groups.items()}

    def members(self, cluster: str, group: str) -> tuple[str, str, frozenset[str]] | None:
        """Return type, state and member ids of one group; None if it is not known."""
        with self._lock:
            known = self._clusters.get(cluster)
            found = known.groups.get(group) if known else None
        return None if found is None else (found.group_type, str(found.state), members_of(found.report))

    def moved(self, cluster: str) -> tuple[int, str] | None:
        """Return when a broker last said that it loads, or gives up, a shard, and which; None: nobody did."""
        with self._lock:
            known = self._clusters.get(cluster)
            moves = known.report.moves if known else []
        said = [one for one in moves if one.get("kind") != "led"]
        return (said[-1]["at_ms"], f"{said[-1]['kind']} {said[-1]['broker']} {len(said)}") if said else None

    # -- what goes out: metrics ----------------------------------------------------------------

    def group_samples(self, limit: int) -> list[GroupSample]:
        """Return at most ``limit`` groups for the metrics, the troubled ones first."""
        now_ms = self._clock_ms()
        with self._lock:
            chosen = self._chosen(self._everything(), limit)
        # Lag takes by far the longest; the batches must not wait for a whole scrape.
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
                lags=self._lags(name, group, now_ms),
            )
            for name, group in chosen
        ]

    def firing(self, limit: int) -> list[tuple[str, str, str]]:
        """Return (cluster, group, name) of the open alerts, the loudest first."""
        with self._lock:
            chosen = heapq.nsmallest(limit, self._alerts.values(), key=loudness)
            return list(dict.fromkeys((alert.cluster, alert.group, alert.name) for alert in chosen))

    def cluster_samples(self) -> list[ClusterSample]:
        """Return every cluster for the metrics."""
        with self._lock:
            return [cluster_sample(name, known, self._clock_ms()) for name, known in self._clusters.items()]

    # -- what goes out: the API ----------------------------------------------------------------

    def groups(
        self, *, cluster: str = "", state: str = "", text: str = "", offset: int = 0, limit: int = 100
    ) -> GroupList:
        """Return one page of the groups that match all filters; "" matches everything."""
        now_ms = self._clock_ms()
        wanted = text.casefold()
        with self._lock:
            matching = [
                (name, group)
                for name, group in self._everything()
                if (not cluster or name == cluster)
                and (not state or group.state == state)
                and wanted in group.group.casefold()
            ]
            page = self._chosen(matching, offset + limit)[offset:]
            return GroupList(
                total=len(matching),
                offset=offset,
                limit=limit,
                at_ms=now_ms,
                groups=[self._summary(name, group, now_ms) for name, group in page],
            )

    def group(self, cluster: str, group: str) -> GroupDetail | None:
        """Return everything known of one group."""
        with self._lock:
            known = self._clusters.get(cluster)
            found = known.groups.get(group) if known else None
            if known is None or found is None:
                return None
            lags = self._lags(cluster, found, self._clock_ms())
            return GroupDetail(
                cluster=cluster,
                report=msgspec.json.decode(found.report, type=GroupReport),
                lag=_topic_lags(lags),
                alerts=sorted(known.firing.get(group, {}).values(), key=loudness),
                transitions=list(known.transitions.get(group, ())),
            )

    def alerts(
        self,
        *,
        status: str = "firing",
        cluster: str = "",
        group: str | None = None,
        offset: int = 0,
        limit: int = 100,
    ) -> AlertList:
        """Return open alerts, or with ``status`` "resolved" the last that ended, or with "" both."""
        with self._lock:
            matching = sorted(
                (
                    alert
                    for alert in (*self._alerts.values(), *self._resolved.values())
                    if (not status or alert.status == status)
                    and (not cluster or alert.cluster == cluster)
                    and (group is None or alert.group == group)
                ),
                key=loudness,
            )
        page, now_ms = matching[offset : offset + limit], self._clock_ms()
        untils = {alert.id: self._quiet.until_ms(alert, now_ms) for alert in page}
        return AlertList(
            total=len(matching),
            offset=offset,
            limit=limit,
            at_ms=now_ms,
            alerts=page,
            silenced={alert_id: until for alert_id, until in untils.items() if until is not None},
        )

    def undecodable(self) -> Undecodable:
        """Return what could not be read."""
        with self._lock:
            reports = [(name, known.report) for name, known in self._clusters.items()]
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
        """Return what the brokers said of themselves, and how well their answers fit the mirror."""
        now_ms = self._clock_ms()
        with self._lock:
            return ClusterList(
                at_ms=now_ms,
                clusters=[cluster_detail(name, known, now_ms) for name, known in self._clusters.items()],
            )

    # -- inside: under the lock, but for ``_lags``, which takes it -------------------------------

    def _everything(self) -> Iterator[tuple[str, KeptGroup]]:
        for name, known in self._clusters.items():
            for group in known.groups.values():
                yield name, group

    def _chosen(self, groups: Iterable[tuple[str, KeptGroup]], limit: int) -> list[tuple[str, KeptGroup]]:
        return heapq.nsmallest(limit, groups, key=self._trouble)

    def _trouble(self, item: tuple[str, KeptGroup]) -> tuple[int, str, str]:
        """Order groups: alerts by loudness, then those not Stable (an Empty one is calm), then by name."""
        name, group = item
        firing = self._clusters[name].firing.get(group.group)
        if firing:
            rank = min(RANK[alert.severity] for alert in firing.values())
        else:
            rank = {GroupState.STABLE: 5, GroupState.EMPTY: 4, GroupState.DEAD: 4}.get(group.state, 3)
        return rank, name, group.group

    def _lags(self, cluster: str, group: KeptGroup, now_ms: int) -> Mapping[str, Lag]:
        commits = commits_of(group.report)
        with self._lock:
            return self._clusters[cluster].ends.lags(commits, now_ms)

    def _summary(self, cluster: str, group: KeptGroup, now_ms: int) -> GroupSummary:
        firing = self._clusters[cluster].firing.get(group.group, {})
        return GroupSummary(
            cluster=cluster,
            group=group.group,
            group_type=group.group_type,
            state=str(group.state),
            state_since_ms=group.state_since_ms,
            members=group.members,
            generation=group.generation,
            rebalances=sum(group.rebalances.values()),
            lag=_topic_lags(self._lags(cluster, group, now_ms)),
            alerts=[alert.name for alert in sorted(firing.values(), key=loudness)],
            assignment_epoch=group.assignment_epoch,
            held_up_by=list(group.held_up_by),
        )


def _topic_lags(lags: Mapping[str, Lag]) -> list[TopicLag]:
    return [TopicLag(topic=topic, records=lag.records, seconds=lag.seconds) for topic, lag in lags.items()]
