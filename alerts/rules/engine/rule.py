"""A rule: the name of its alert, and the function that judges."""

from collections.abc import Callable
from typing import NamedTuple

from alerts.rules.engine.cluster_memory import ClusterMemory
from alerts.rules.engine.situation import Situation, Verdict
from alerts.rules.engine.thresholds import Thresholds
from coordinator_model.shard import ClusterState


class GroupRule(NamedTuple):
    """A rule about one group."""

    name: str
    evaluate: Callable[[Situation], Verdict]


class ClusterRule(NamedTuple):
    """A rule about the whole cluster."""

    name: str
    evaluate: Callable[[ClusterState, ClusterMemory, Thresholds, int], Verdict]
