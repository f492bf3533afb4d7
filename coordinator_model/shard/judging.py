"""What a shard asks of the rules, and what it hands to whoever runs it.

The model knows no rule.  It calls a ``Judge`` at the times at which a rule may have something to say
and keeps the judge's memory, unread, beside each group.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from coordinator_model.observations import GroupQuarantined, GroupUpset
from coordinator_model.shard.cluster import ClusterState
from coordinator_model.shard.report import GroupReport
from coordinator_model.state import Group, Moved, Step, Transition


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What can be known at the time of judgement, so that silence is not taken for proof."""

    info_live: bool
    """The coordinator's INFO log speaks and has not been contradicted since."""
    requests_live: bool
    """The coordinator's request log gave a line within the last half minute."""
    offsets_enabled: bool
    requests_heard_ms: int
    """Newest whole second (epoch ms), over by now, in which the coordinator broker's request log gave
    any line; -1 never."""
    live_since_ms: int
    """Event time at which this shard left its backlog; -1 while it is in it."""
    requests_seconds: Sequence[tuple[int, int]] = ()
    """When that log spoke in the last 110 s, in order: from when on a second counts, and the second (ms)."""

    retention_ms: Mapping[int, int] = {}
    """Broker -> how long it keeps offsets that nobody uses, as far as the brokers were asked."""
    moved: Moved | None = None
    """The last move of the group's coordinator, or the last time it waited for a replica."""
    brokers_heard: int = 0
    """How many brokers' request logs were ever heard; in a cluster of one no replica is waited for."""

    def requests_since_ms(self, gap_ms: int) -> int:
        """Return since when that log has spoken without a silence of more than ``gap_ms``; -1 never.

        It looks back 110 s at most.
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
    """When to be called again if there is no news."""
    failures: Sequence[tuple[str, Exception]] = ()
    """Rules that failed, which costs nothing but their own verdict."""


class Judge(Protocol):
    """The rules, as a shard sees them; everything they remember of a group is in ``memory``.

    One judge serves many shards, so ``configure`` is called at the start of each step and must be
    cheap for settings that it has already.
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
        evidence: Evidence,
        removed: bool,
    ) -> Judgement:
        """Return what the rules make of ``step`` at ``now_ms``; ``removed``: resolve everything."""

    def adopt(self, *, alert: bytes, memory: bytes | None) -> bytes | None:
        """Return the memory with an alert (JSON) that an earlier job left open."""

    def judge_cluster(
        self, *, cluster: str, state: ClusterState, memory: bytes | None, now_ms: int
    ) -> Judgement:
        """Return what the rules about the whole cluster say at ``now_ms``."""


class Divergence(msgspec.Struct, kw_only=True):
    """Our picture and the sources disagreed, or our own code failed (``internal_error``)."""

    kind: str
    group: str
    broker: int
    at_ms: int
    """When it was first found in this step."""
    detail: str = ""
    count: int = 1


class Outputs(msgspec.Struct, kw_only=True):
    """What one step of a shard produced, in the order in which it must be written."""

    transitions: list[Transition] = []
    alerts: list[Any] = []
    reports: list[GroupReport] = []
    contradictions: list[tuple[int, str, str, int]] = []
    """(broker, what it lost, group, when that was found out, in the time of the stream)."""
    divergences: list[Divergence] = []
    cluster_report: bytes | None = None
    reported: bool = False
    """Every group was reported, because a clock asked."""
    upset: list[GroupUpset] = []
    """Groups that rebalanced because their coordinator moved."""
    compared: int = 0
    """Answers of the brokers that could be held against the mirror."""
    agreeing: int = 0
    """Those of them that said the same."""
    quarantined: list[GroupQuarantined] = []
    """Groups that our own code failed on, and those that work again."""
    zones: list[tuple[int, int]] = []
    """(broker, how far its lines are ahead by their zone), when it is found and with each report."""
    rebuilding: int = -1
    """Since when the shard fills itself anew after its saved bytes could not be read; -1: it does not."""
