"""Turns the verdicts of one judgement, on a group or the cluster, into revisions of alerts.

It changes only the memory that it is given.  ``lifecycle`` makes the revisions, ``damping`` keeps a flapping
alert open.
"""

from typing import Final

import msgspec

from alerts.alert import Alert
from alerts.rules.engine import damping
from alerts.rules.engine.cluster_memory import ClusterMemory
from alerts.rules.engine.lifecycle import Closing, OpenAlert, fire, resolve, update
from alerts.rules.engine.situation import GroupMemory, Verdict

NEVER: Final = 2**62
"""A due time (epoch ms) that never comes."""


class AlertBook:
    """The alerts of one judgement: turns verdicts into revisions, within one memory."""

    def __init__(
        self, cluster: str, group: str, memory: GroupMemory | ClusterMemory, now_ms: int, runbook_base: str
    ) -> None:
        """Start a judgement at ``now_ms`` (epoch ms); ``group`` is "" for the cluster."""
        self.alerts: list[Alert] = []
        self._cluster = cluster
        self._group = group
        self._memory = memory
        self._now_ms = now_ms
        self._runbook_base = runbook_base
        for opened in memory.open.values():
            if opened.adopted and opened.touched_ms < 0:
                opened.touched_ms = now_ms

    def turn(self, name: str, verdict: Verdict) -> None:
        """Fire, revise or resolve a rule's alert, as its verdict says."""
        opened = self._memory.open.get(name)
        if verdict.finding is None:
            if verdict.closing is not None and opened is not None and opened.ended_ms < 0:
                self._end(name, opened, verdict.closing)
        elif opened is not None:
            damping.resume(opened)
            is_old = damping.is_old_news(opened, verdict.finding)
            news = None if is_old else update(opened, verdict.finding)
            if news is not None:
                self.alerts.append(news)
        else:
            self._fire(name, verdict)

    def disabled(self, name: str) -> None:
        """Resolve the alert of a rule that is switched off."""
        opened = self._memory.open.get(name)
        if opened is not None:
            of_group = f" for group {self._group}" if self._group else ""
            summary = f"{name} was switched off{of_group} in the configuration."
            self._close(name, opened, Closing(ends_at_ms=self._now_ms, summary=summary))

    def resolve_surplus(self) -> None:
        """Resolve alerts of an earlier job that no rule has taken over."""
        for alert in self._memory.surplus:
            summary = f"Taken over by a newer {alert.name} alert, or its rule is gone."
            self.alerts.append(resolve(alert, Closing(ends_at_ms=self._now_ms, summary=summary)))
        self._memory.surplus = []

    def close_all(self, why: str) -> list[Alert]:
        """Resolve all open alerts; return every alert of the judgement."""
        self.resolve_surplus()
        for name, opened in list(self._memory.open.items()):
            self._close(name, opened, Closing(ends_at_ms=self._now_ms, summary=why))
        return self.alerts

    def close_others(self, kept: str, why: str) -> None:
        """Resolve all open alerts but the one called ``kept``."""
        for name, opened in list(self._memory.open.items()):
            if name != kept:
                self._close(name, opened, Closing(ends_at_ms=self._now_ms, summary=why))

    def _fire(self, name: str, verdict: Verdict) -> None:
        finding = verdict.finding
        if finding is None:
            return
        if finding.starts_at_ms <= self._memory.used.get(name, -1):
            # The same trouble starts again after its alert was resolved: the old id must not be used twice.
            starts_at_ms = max(self._now_ms, self._memory.used[name] + 1)
            finding = msgspec.structs.replace(finding, starts_at_ms=starts_at_ms)
        opened = fire(
            finding,
            cluster=self._cluster,
            group=self._group,
            name=name,
            detected_at_ms=self._now_ms,
            runbook_base=self._runbook_base,
        )
        self._memory.open[name] = opened
        self.alerts.append(opened.alert)

    def _end(self, name: str, opened: OpenAlert, closing: Closing) -> None:
        """Resolve an alert whose condition ended; keep it open for a while if it flaps."""
        held_ms = damping.note_end(self._memory.ends, name, self._now_ms)
        if not held_ms:
            self._close(name, opened, closing)
            return
        news = damping.hold(opened, closing, now_ms=self._now_ms, held_ms=held_ms)
        if news is not None:
            self.alerts.append(news)

    def end_held(self) -> int:
        """Resolve alerts whose condition stayed away for their hold; return when the next hold ends."""
        damping.forget(self._memory.ends, self._now_ms)
        if not self._memory.open:
            return NEVER
        held = [(name, one) for name, one in self._memory.open.items() if one.ended_ms >= 0]
        for name, opened in held:
            if self._now_ms >= opened.kept_until_ms:
                self._close(name, opened, damping.closing_of(opened))
        return min((one.kept_until_ms for name, one in held if name in self._memory.open), default=NEVER)

    def _close(self, name: str, opened: OpenAlert, closing: Closing) -> None:
        del self._memory.open[name]
        self._memory.used[name] = max(self._memory.used.get(name, -1), opened.alert.starts_at_ms)
        self.alerts.append(resolve(opened.alert, closing))
