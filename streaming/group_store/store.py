"""The known groups of every cluster, in the driver; probes, refilling and the server read them.

Batches (``apply``) and end offsets (``set_end_offsets``) feed it.  Reports stay as bytes, and only what
lists, metrics and probes need is decoded, so that 100,000 groups fit.  Safe to use from several threads.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from sys import intern
from typing import TypeVar

import msgspec

from coordinator_model.groups import KINDS
from coordinator_model.kafka import SETTLED, GroupState, shard_of
from coordinator_model.state import Transition
from streaming.group_store.kept import (
    AgreementRow,
    Brief,
    ClusterReport,
    DivergenceRow,
    KeptCluster,
    KeptGroup,
    RebuildingRow,
    commits_of,
    members_of,
)
from streaming.group_store.lag import Commits, Lag, compact

_log = logging.getLogger("groupwatch.group_store")

_TRANSITION_IDS_MAX = 10_000

_Read = TypeVar("_Read")

Row = tuple[str, str, bytes]
"""(kind, key, value) as the state function yields it; the value is JSON."""


class GroupStore:
    """The groups of all clusters; see the module."""

    def __init__(
        self,
        clusters: Iterable[str] = (),
        *,
        clock_ms: Callable[[], int],
        rebalanced: Callable[[str, float], None] = lambda _cluster, _seconds: None,
    ) -> None:
        """Start without groups.

        Args:
            clusters: clusters to show before anything is known of them.
            clock_ms: returns the current time.
            rebalanced: takes (cluster, seconds) of each finished rebalance.
        """
        self._lock = threading.RLock()
        self._clusters = {name: KeptCluster() for name in clusters}
        self._clock_ms = clock_ms
        self._rebalanced = rebalanced
        self._transition_ids: OrderedDict[str, None] = OrderedDict()
        self._takers: dict[str, Callable[[str, KeptCluster, str, bytes], None]] = {
            "report": self._take_report,
            "transition": self._take_transition,
            "cluster": self._take_cluster,
            "divergence": self._take_divergence,
            "agreement": self._take_agreement,
            "rebuilding": self._take_rebuilding,
        }

    # -- what comes in -------------------------------------------------------------------------

    def apply(self, cluster: str, rows: Iterable[Row]) -> None:
        """Take the rows of one batch; rows about other things than groups are ignored."""
        with self._lock:
            known = self._cluster(cluster)
            for kind, key, value in rows:
                taker = self._takers.get(kind)
                if taker is None:
                    continue
                try:
                    taker(cluster, known, key, value)
                except msgspec.DecodeError as error:
                    _log.error("a %s of %s cannot be read: %s", kind, cluster, error)

    def set_end_offsets(self, cluster: str, ends: Mapping[str, Mapping[int, tuple[int, int]]]) -> None:
        """Take topic → partition → (end offset, epoch ms) of one cluster."""
        with self._lock:
            self._cluster(cluster).ends.add(ends)

    def probed(self, cluster: str, requests: Mapping[str, int]) -> None:
        """Take how many requests of each kind the probe has sent to the brokers since its start."""
        with self._lock:
            self._cluster(cluster).probe_requests = dict(requests)

    def _cluster(self, cluster: str) -> KeptCluster:
        return self._clusters.setdefault(cluster, KeptCluster())

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
            group_type=intern(brief.group_type),
            state=brief.state,
            state_since_ms=brief.state_since_ms,
            generation=brief.generation,
            members=len(brief.members),
            rebalances=brief.rebalances,
            commits=compact(brief.commits),
            report=bytes(value),
            assignment_epoch=brief.assignment_epoch,
            held_up_by=() if brief.state in SETTLED else brief.held_up_by,
        )

    def _take_transition(self, cluster: str, known: KeptCluster, group: str, value: bytes) -> None:
        transition = msgspec.json.decode(value, type=Transition)
        if transition.id in self._transition_ids:
            return  # a batch that was run again after a failure
        self._transition_ids[transition.id] = None
        while len(self._transition_ids) > _TRANSITION_IDS_MAX:
            self._transition_ids.popitem(last=False)
        known.add_transition(transition, value)
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
            _log.warning("%s: %s: group %s: %s", cluster, one.kind, one.group, one.detail)

    def _take_agreement(self, _: str, known: KeptCluster, __: str, value: bytes) -> None:
        known.agreement.add(msgspec.json.decode(value, type=AgreementRow), self._clock_ms())

    def _take_rebuilding(self, _: str, known: KeptCluster, __: str, value: bytes) -> None:
        """Forget the groups of a shard that starts anew: their reports are out of date."""
        told = msgspec.json.decode(value, type=RebuildingRow)
        before = known.rebuilding.get(told.shard, -1)
        known.rebuilding[told.shard] = told.since_ms
        if before in (0, told.since_ms):  # 0: it had no time yet
            return
        for name in [one for one in known.groups if shard_of(one, told.shard_count) == told.shard]:
            known.forget(name)

    # -- what probes ask -----------------------------------------------------------------------

    def committed_topics(self, cluster: str) -> set[str]:
        """Return the topics to which any group of ``cluster`` commits, whose ends are worth asking for."""
        with self._lock:
            known = self._clusters.get(cluster)
            return set(known.topics) if known else set()

    def readers(self, cluster: str) -> dict[str, tuple[str, ...]]:
        """Return group -> topics that it commits to, for one cluster."""
        with self._lock:
            known = self._clusters.get(cluster)
            groups = known.groups.items() if known else ()
            return {name: group.topics for name, group in groups if group.topics}

    def commits(self, cluster: str, group: str) -> dict[str, dict[int, tuple[int, int]]]:
        """Return topic → partition → (offset, epoch ms) of one group; empty if the group is unknown."""
        with self._lock:
            known = self._clusters.get(cluster)
            found = known.groups.get(group) if known else None
        return {} if found is None else commits_of(found.report)

    def types_and_states(self, cluster: str) -> dict[str, tuple[str, str]]:
        """Return group -> (type, state), for one cluster."""
        with self._lock:
            known = self._clusters.get(cluster)
            groups = known.groups if known else {}
            return {name: (group.group_type, str(group.state)) for name, group in groups.items()}

    def members(self, cluster: str, group: str) -> tuple[str, str, frozenset[str]] | None:
        """Return type, state and member ids of one group; None if it is unknown."""
        with self._lock:
            known = self._clusters.get(cluster)
            found = known.groups.get(group) if known else None
        return None if found is None else (found.group_type, str(found.state), members_of(found.report))

    def last_failover(self, cluster: str) -> tuple[int, str] | None:
        """Return when a broker last logged that it loads or unloads a shard, and which; None: none did."""
        with self._lock:
            known = self._clusters.get(cluster)
            moves = known.report.moves if known else []
        said = [one for one in moves if one.get("kind") != "led"]
        return (said[-1]["at_ms"], f"{said[-1]['kind']} {said[-1]['broker']} {len(said)}") if said else None

    # -- what the server asks ------------------------------------------------------------------

    def groups(self, cluster: str = "") -> list[tuple[str, KeptGroup]]:
        """Return (cluster, group) of every group, or of one cluster's groups."""
        with self._lock:
            return [
                (name, group)
                for name, known in self._clusters.items()
                if not cluster or name == cluster
                for group in known.groups.values()
            ]

    def group(self, cluster: str, group: str) -> KeptGroup | None:
        """Return one group; None if it is unknown."""
        with self._lock:
            known = self._clusters.get(cluster)
            return known.groups.get(group) if known else None

    def transitions(self, cluster: str, group: str) -> list[Transition]:
        """Return the last transitions of one group, newest last."""
        with self._lock:
            known = self._clusters.get(cluster)
            return known.transitions(group) if known else []

    def lags(self, cluster: str, group: KeptGroup, now_ms: int) -> Mapping[str, Lag]:
        """Return topic → how far a group is behind."""
        with self._lock:
            return self._clusters[cluster].ends.lags(group.commits, now_ms)

    def lags_of(self, cluster: str, commits: Iterable[Commits], now_ms: int) -> list[dict[str, Lag]]:
        """Return topic → lag for the commits of several groups."""
        with self._lock:
            ends = self._cluster(cluster).ends
            return [ends.lags(one, now_ms) for one in commits]

    def moved_topics(self, cluster: str, since: int) -> tuple[int, set[str]]:
        """Return the version of a cluster's end offsets, and the topics that grew after an earlier one."""
        with self._lock:
            ends = self._cluster(cluster).ends
            return ends.version, ends.moved(since)

    def partition_lags(self, cluster: str, group: KeptGroup, now_ms: int) -> dict[tuple[str, int], int]:
        """Return (topic, partition) → how many records a group is behind."""
        with self._lock:
            return self._clusters[cluster].ends.partition_lags(group.commits, now_ms)

    def clusters(self, read: Callable[[str, KeptCluster], _Read]) -> list[_Read]:
        """Return the result of ``read`` for each cluster, under the lock."""
        with self._lock:
            return [read(name, known) for name, known in self._clusters.items()]
