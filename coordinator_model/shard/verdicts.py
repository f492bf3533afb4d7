"""Handles the results of a group's step: emits transitions and asks the rules."""

from collections.abc import Sequence
from typing import Any

from coordinator_model.groups import core
from coordinator_model.groups.core import Context
from coordinator_model.observations import NEVER, Seen
from coordinator_model.shard.coalescing import FirstBeat
from coordinator_model.shard.failures import Failures
from coordinator_model.shard.judging import Judge, LiveSources, Outputs
from coordinator_model.shard.live_group import Live
from coordinator_model.shard.live_sources import HeardSpans
from coordinator_model.shard.snapshot import Header
from coordinator_model.state import Step, Transition


class Verdicts:
    """Collects the results of all groups of a shard in one step, and asks the rules about them."""

    def __init__(
        self,
        *,
        cluster: str,
        header: Header,
        judge: Judge | None,
        outputs: Outputs,
        failures: Failures,
        offsets_enabled: bool,
    ) -> None:
        self.cluster = cluster
        self.header = header
        self.judge = judge
        self.outputs = outputs
        self.failures = failures
        self.offsets_enabled = offsets_enabled
        self.heard = HeardSpans(header)
        self.contradicted_ms = NEVER
        """When the INFO log was first found to have lost a line in this step."""
        self.transitions: list[tuple[int, Transition]] = []
        self.alerts: list[tuple[int, Any]] = []
        # One for all groups, each of whose observations asks.
        self._contexts: dict[tuple[bool, bool, bool, bool], Context] = {}

    def context(self, live: Live, order_ms: int, *, backlog: bool) -> Context:
        """Return the live sources at ``order_ms``."""
        info_live, heard = self.header.info_live, self.heard.at(self.broker(live), order_ms)
        # Only session timers use it, and they run where the INFO log is not live.
        is_steady = info_live or heard.is_steady
        key = info_live, backlog, heard.is_live, is_steady
        known = self._contexts.get(key)
        if known is None:
            known = self._contexts[key] = Context(
                cluster=self.cluster,
                info_live=info_live,
                offsets_enabled=self.offsets_enabled,
                backlog=backlog,
                requests_live=heard.is_live,
                requests_steady=is_steady,
            )
        return known

    def broker(self, live: Live) -> int:
        """Return the coordinator of a group, as far as it is known."""
        return live.group.coordinator if live.group.coordinator >= 0 else self.header.coordinator

    def evidence(self, live: Live, at_ms: int) -> LiveSources:
        """Return the live sources at ``at_ms`` for the rules."""
        header, heard = self.header, self.heard.at(self.broker(live), at_ms)
        return LiveSources(
            info_live=header.info_live,
            requests_live=heard.is_live,
            offsets_enabled=self.offsets_enabled,
            requests_heard_ms=heard.heard_ms,
            live_since_ms=header.live_since_ms,
            requests_seconds=heard.seconds,
            retention_ms=header.retention_ms,
            moved=core.last_move(live.group, header.moved),
            brokers_heard=heard.brokers,
        )

    def account(self, live: Live, step: Step, seen: Seen | None, at_ms: int, *, backlog: bool) -> None:
        """Store the results of a step and ask the rules; in the backlog nothing is emitted.

        What still comes of the backlog when the shard is live is no news, but the rules look at the group as
        it is now: nothing else would call them until there is news.
        """
        if self.header.live_since_ms < 0:
            return
        if backlog:
            is_news = step.transitions or step.arrivals or step.departures or step.notes
            self.ask_judge(live, Step(met=bool(is_news)), at_ms)
            return
        group = live.group.group
        for transition in step.transitions:
            self.transitions.append((at_ms, transition))
            last = core.last_move(live.group, self.header.moved)
            moved = core.move_behind(transition, last, self.header.coordinator)
            if moved is not None and core.is_upset(live.group, transition, moved):
                self.outputs.upset.append(core.upset(transition, self.header.shard, moved))
        self.count_divergences(live, step, at_ms, backlog=backlog)
        if step.contradicted:
            self.outputs.contradictions.append((self.broker(live), "coordinator_log", group, at_ms))
            self.contradicted_ms = min(self.contradicted_ms, at_ms)
        if step.transitions or step.arrivals or step.departures:
            live.visible = True
        self.ask_judge(live, step, at_ms)

    def count_divergences(self, live: Live, step: Step, at_ms: int, *, backlog: bool) -> None:
        """Count divergences between the sources; in the backlog none."""
        if backlog or self.header.live_since_ms < 0:
            return
        for kind in step.divergences:
            self.failures.diverge(kind, live.group.group, self.broker(live), at_ms)

    def is_watched(self, live: Live, at_ms: int) -> bool:
        """Return whether the rules may have something to say at ``at_ms`` although nothing is news."""
        if self.judge is None:
            return False
        return live.slot.judge_due_ms <= at_ms or self.judge.is_watching(live.slot.memory)

    def look_ms(self, live: Live, firsts: Sequence[FirstBeat]) -> int:
        """Return when (epoch ms) the first of these members may be too silent for the rules; NEVER: none."""
        if not firsts or self.judge is None or self.header.live_since_ms < 0:
            return NEVER
        share = self.judge.silent_share(live.group.group)
        return min(first_ms + round(share * member.session_timeout_ms) for member, first_ms in firsts)

    def ask_judge(self, live: Live, step: Step, at_ms: int, *, removed: bool = False) -> None:
        """Let the rules judge the group as it is at ``at_ms``."""
        if self.judge is None:
            return
        slot = live.slot
        try:
            judgement = self.judge.judge(
                cluster=self.cluster,
                group=live.group,
                step=step,
                memory=slot.memory,
                now_ms=at_ms,
                evidence=self.evidence(live, at_ms),
                removed=removed,
            )
        except Exception as error:
            self.failures.contain(live.group.group, None, at_ms, error, what="the rules")
            slot.judge_due_ms = NEVER
            return
        for rule, failure in judgement.failures:
            self.failures.contain(live.group.group, None, at_ms, failure, what=rule)
        slot.memory = judgement.memory
        slot.judge_due_ms = NEVER if judgement.due_ms is None else judgement.due_ms
        if judgement.alerts:
            live.visible = True
            self.alerts.extend((at_ms, alert) for alert in judgement.alerts)

    def adopt(self, live: Live, alert: bytes, at_ms: int) -> bool:
        """Give the rules an alert that an earlier job left open; False: no rule takes it."""
        if self.judge is None:
            return False
        try:
            live.slot.memory = self.judge.adopt(alert=alert, memory=live.slot.memory)
        except Exception as error:
            self.failures.contain(live.group.group, None, at_ms, error)
            return False
        return True
