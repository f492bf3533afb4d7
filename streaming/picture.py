"""What the view keeps of each cluster and group, and how much of a report it decodes for that."""

from collections import Counter, deque
from typing import Any

import msgspec

from alerts.alert import Alert, AlertStatus, Severity
from coordinator_model.group import Transition
from coordinator_model.states import GroupState
from streaming.lag import ClusterEnds

TRANSITIONS_KEPT_MAX = 20
RANK = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}


class Commits(msgspec.Struct, frozen=True):
    """The part of a report that lag needs."""

    commits: dict[str, dict[int, tuple[int, int]]]


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a report that is kept decoded."""

    group: str
    group_type: str
    state: GroupState
    state_since_ms: int
    generation: int
    members: list[msgspec.Raw]
    rebalances: dict[str, int]
    commits: dict[str, msgspec.Raw] = {}
    removed: bool = False


class KeptGroup(msgspec.Struct):
    """One group of the picture."""

    group: str
    group_type: str
    state: GroupState
    state_since_ms: int
    generation: int
    members: int
    rebalances: dict[str, int]
    topics: tuple[str, ...]
    """What it commits to."""
    report: bytes


class ClusterReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the cluster's own shard says."""

    events: list[tuple[str, str, int]] = []
    undecodable: list[tuple[str, str, int]] = []
    samples: list[dict[str, Any]] = []
    divergences: dict[str, int] = {}
    newest_ms: dict[str, int] = {}


class DivergenceRow(msgspec.Struct, frozen=True, kw_only=True):
    """What is counted of a divergence."""

    kind: str
    count: int = 1


class KeptCluster:
    """What is known of one cluster."""

    def __init__(self) -> None:
        self.groups: dict[str, KeptGroup] = {}
        self.topics: Counter[str] = Counter()
        """Topic → how many groups commit to it."""
        self.firing: dict[str, dict[str, Alert]] = {}
        """Group → alert id → alert."""
        self.report = ClusterReport()
        self.divergences: dict[str, int] = {}
        self.ends = ClusterEnds()
        self.transitions: dict[str, deque[Transition]] = {}
        self.rebalancing_since_ms: dict[str, int] = {}

    def count_topics(self, *, gone: tuple[str, ...], come: tuple[str, ...]) -> None:
        """Note which topics a group commits to, and forget the ends of those nobody does any more."""
        self.topics.subtract(gone)
        self.topics.update(come)
        left = {topic for topic in gone if self.topics[topic] <= 0}
        for topic in left:
            del self.topics[topic]
        if left:
            self.ends.keep_only(set(self.topics))


def commits_of(report: bytes) -> dict[str, dict[int, tuple[int, int]]]:
    """Return topic → partition → (offset, epoch ms) of a report."""
    return msgspec.json.decode(report, type=Commits).commits


def loudness(alert: Alert) -> tuple[bool, int, int, str]:
    """Order alerts: open before ended, loud before quiet, new before old."""
    return alert.status is AlertStatus.RESOLVED, RANK[alert.severity], -alert.starts_at_ms, alert.id
