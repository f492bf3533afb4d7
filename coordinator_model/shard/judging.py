"""The interface between a shard and the rules, and a shard's outputs.

The model knows no rule.  It calls a ``Judge`` at the times at which a rule may have a finding, and stores the
judge's memory, unread, beside each group.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from coordinator_model.observations import GroupQuarantined, GroupRebalancedByFailover
from coordinator_model.shard.cluster import ClusterState
from coordinator_model.shard.report import GroupReport
from coordinator_model.state import Group, LastFailover, Step, Transition

ASKED_AGAIN_MS = 1_000
"""Rules that wait for a proof ask to be called again so soon; any observation before that may bring it."""


class LiveSources(msgspec.Struct, frozen=True, kw_only=True):
    """The live sources at the time of judgement, so that a rule does not take a silent source for proof."""

    info_live: bool
    """Whether the coordinator's INFO log is live and no record has contradicted it since."""
    requests_live: bool
    """Whether the coordinator's request log had a line within the last half minute."""
    offsets_enabled: bool
    requests_heard_ms: int
    """Newest whole second (epoch ms), already over, in which the coordinator broker's request log had

    any line; -1 never.
    """
    live_since_ms: int
    """Event time at which this shard left its backlog; -1 while it is in the backlog."""
    requests_seconds: Sequence[tuple[int, int]] = ()
    """When that log had lines in the last 110 s, in order: (from when a second counts, the second in ms)."""

    retention_ms: Mapping[int, int] = {}
    """Broker -> how long (ms) it keeps unused offsets, for the brokers that were asked."""
    moved: LastFailover | None = None
    """The last failover of the group's coordinator, or the last time it waited for a replica."""
    brokers_heard: int = 0
    """How many brokers' request logs were ever heard; a cluster of one broker waits for no replica."""

    def requests_since_ms(self, gap_ms: int) -> int:
        """Return since when (epoch ms) that log has had no silence of more than ``gap_ms``; -1 never.

        The log of the last 110 s is kept.
        """
        since_ms = self.requests_heard_ms
        for _, at_ms in reversed(self.requests_seconds):
            if since_ms - at_ms > gap_ms:
                break
            since_ms = at_ms
        return since_ms


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's answer."""

    memory: bytes | None
    alerts: list[Any]
    due_ms: int | None
    """When to be called again if there is no observation."""
    failures: Sequence[tuple[str, Exception]] = ()
    """Rules that raised; only their own verdict is missing."""


class Judge(Protocol):
    """The rules, as a shard calls them; ``memory`` holds everything they remember of a group.

    One judge serves many shards, so ``configure`` is called at the start of each step and must be cheap if
    the settings have not changed.
    """

    def configure(self, settings: bytes) -> None:
        """Use these settings (canonical JSON) from here on."""

    def judge(
        self,
        *,
        cluster: str,
        group: Group,
        step: Step,
        memory: bytes | None,
        now_ms: int,
        evidence: LiveSources,
        removed: bool,
    ) -> Judgement:
        """Return what the rules make of ``step`` at ``now_ms``; ``removed``: resolve everything."""

    def silent_share(self, group: str) -> float:
        """Return the part of its session timeout after which a member's silence may matter.

        Nobody calls ``judge`` for the first heartbeat of a member: it has the first look then.
        """

    def is_watching(self, memory: bytes | None) -> bool:
        """Return whether any observation of the group may matter, even before the judgement's due time."""

    def adopt(self, *, alert: bytes, memory: bytes | None) -> bytes | None:
        """Return the memory with an alert (JSON) that an earlier job left open."""

    def judge_cluster(
        self, *, cluster: str, state: ClusterState, memory: bytes | None, now_ms: int
    ) -> Judgement:
        """Return the findings of the rules about the whole cluster at ``now_ms``."""


class Divergence(msgspec.Struct, kw_only=True):
    """The mirror and the sources disagree, or our own code failed (``internal_error``)."""

    kind: str
    group: str
    broker: int
    at_ms: int
    """When it was first found in this step."""
    detail: str = ""
    count: int = 1


class Outputs(msgspec.Struct, kw_only=True):
    """The outputs of one step of a shard, in the order in which they must be written."""

    transitions: list[Transition] = []
    alerts: list[Any] = []
    reports: list[GroupReport] = []
    contradictions: list[tuple[int, str, str, int]] = []
    """(broker, what its log lost, group, when that was found in stream time)."""
    divergences: list[Divergence] = []
    cluster_report: bytes | None = None
    reported: bool = False
    """Whether every group was reported, because a clock asked."""
    upset: list[GroupRebalancedByFailover] = []
    """Groups whose rebalance a failover of their coordinator caused."""
    compared: int = 0
    """How many answers of the brokers could be compared with the mirror."""
    agreeing: int = 0
    """How many of them agreed with it."""
    quarantined: list[GroupQuarantined] = []
    """Groups that our own code failed on, and those that work again."""
    zones: list[tuple[int, int]] = []
    """(broker, how far (ms) its lines are ahead by their zone), when it is found and with each report."""
    rebuilding: int = -1
    """Since when the shard refills itself because its saved bytes could not be read; -1: it does not."""
