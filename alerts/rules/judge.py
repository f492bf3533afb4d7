"""RuleJudge: runs the rules over one group or over the cluster, and updates their memory.

``quick`` answers a call without news, mostly a heartbeat, without running a rule.
"""

import logging
from typing import Any

import msgspec

from alerts.alert import Alert
from alerts.rules import completeness, memories, rebalances
from alerts.rules.endings import GROUP_DELETED
from alerts.rules.engine import (
    FIRING,
    NEVER,
    NOTHING,
    AlertBook,
    ClusterMemory,
    GroupMemory,
    GroupRule,
    Situation,
    Verdict,
    adopt,
    held_back_until_ms,
)
from alerts.rules.members import silent_share
from alerts.rules.memories import Failure
from alerts.rules.quick import quick
from alerts.rules.registry import CLUSTER_RULES, RULES, SUPERVISOR_RULES
from alerts.rules.settings import Settings
from coordinator_model.kafka import GroupState
from coordinator_model.shard import DEAD_KEPT_MS, ClusterState, Judgement, LiveSources
from coordinator_model.state import Group, Step

_LOG = logging.getLogger(__name__)

_ALERT_DECODER = msgspec.json.Decoder(Alert)

_WATCHED = frozenset(rule.name for rule in RULES if rule.watched)


class RuleJudge:
    """The rules as a shard calls them (``coordinator_model.Judge``)."""

    def __init__(self, settings: bytes = b"{}") -> None:
        """Start with these settings (canonical JSON; default: every rule with its defaults)."""
        self._given = settings
        self._settings = Settings(settings)

    def configure(self, settings: bytes) -> None:
        """Use these settings from now on; if they cannot be read, keep the old ones."""
        if settings == self._given:
            return
        self._given = settings
        try:
            self._settings = Settings(settings)
        except Exception:
            # The decoder refuses unusable settings; a bug there must not stop the stream.
            _LOG.exception("settings refused, the rules keep their thresholds")

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
        """Return the judgement of ``step`` at ``now_ms``; ``removed`` resolves all alerts."""
        thresholds = self._settings.of_group(group.group)
        is_news = step.transitions or step.departures or step.arrivals or step.notes or step.met
        if not (is_news or removed or step.progressed or step.cost):
            answer = quick(group, thresholds, memory, now_ms)
            if answer is not None:
                return answer
        failures: list[Failure] = []
        situation = Situation(
            group=group,
            step=step,
            now_ms=now_ms,
            evidence=evidence,
            thresholds=thresholds,
            memory=memories.group_memory(memory, failures),
        )
        book = AlertBook(cluster, group.group, situation.memory, now_ms, self._settings.runbook_base)
        if removed:
            alerts = book.close_all(step.why_dropped or _removal(group))
            return Judgement(memory=None, alerts=alerts, due_ms=None, failures=failures)
        book.resolve_surplus()
        due_ms, memory_due_ms = _run(situation, book, failures)
        held_ms = book.end_held()
        due_ms, memory_due_ms = min(due_ms, held_ms), min(memory_due_ms, held_ms)
        saved = memories.save_group(situation.memory, memory_due_ms, _WATCHED)
        due = None if due_ms == NEVER else due_ms
        return Judgement(memory=saved, alerts=book.alerts, due_ms=due, failures=failures)

    def silent_share(self, group: str) -> float:
        """Return the part of its session timeout that a member of ``group`` may be silent."""
        return silent_share(self._settings.of_group(group))

    def is_watching(self, memory: bytes | None) -> bool:
        """Return whether any observation may change what is remembered, or nobody can read that."""
        return memory is not None and memories.is_watching(memory)

    def adopt(self, *, alert: bytes, memory: bytes | None) -> bytes | None:
        """Return the memory with an alert that an earlier job left open.

        The alert keeps its id and gets the next revision, or is resolved at the next judgement (the shard
        must ask for one) if its condition does not hold.  The history of events and storms is unknown here,
        so their quiet time starts anew.
        """
        found = _ALERT_DECODER.decode(alert)
        if any(rule.name == found.name for rule in SUPERVISOR_RULES):
            return memory
        if found.group:
            known = memories.load_group(memory)
            _take_over(known, found)
            return memories.save_group(known, 0, _WATCHED)
        of_cluster = memories.load_cluster(memory)
        _take_over(of_cluster, found)
        return memories.save_cluster(of_cluster)

    def judge_cluster(
        self, *, cluster: str, state: ClusterState, memory: bytes | None, now_ms: int
    ) -> Judgement:
        """Return the judgement of the cluster-wide rules at ``now_ms``."""
        failures: list[Failure] = []
        thresholds, known = self._settings.defaults, memories.cluster_memory(memory, failures)
        book = AlertBook(cluster, "", known, now_ms, self._settings.runbook_base)
        book.resolve_surplus()
        due_ms = NEVER
        for rule in CLUSTER_RULES:
            if not thresholds.of(rule.options).enabled:
                book.disabled(rule.name)
                continue
            try:
                verdict = rule.evaluate(state, known, thresholds, now_ms)
                book.turn(rule.name, verdict)
            except Exception as error:
                failures.append((rule.name, error))
                continue
            due_ms = min(due_ms, NEVER if verdict.due_ms is None else verdict.due_ms)
        due_ms = min(due_ms, book.end_held())
        due = None if due_ms == NEVER else due_ms
        return Judgement(
            memory=memories.save_cluster(known), alerts=book.alerts, due_ms=due, failures=failures
        )


def _run(situation: Situation, book: AlertBook, failures: list[Failure]) -> tuple[int, int]:
    """Run all rules; return when to judge again, and when because of the memory alone.

    A rule that raises has no say this time; the other rules are not affected.
    """
    due_ms = memory_due_ms = NEVER
    try:
        rebalances.note(situation)
    except Exception as error:
        failures.append(("costs", error))
    for rule in RULES:
        try:
            verdict = _verdict(rule, situation, book)
        except Exception as error:
            failures.append((rule.name, error))
            continue
        if verdict.due_ms is None:
            continue
        due_ms = min(due_ms, verdict.due_ms)
        if rule.timed:
            memory_due_ms = min(memory_due_ms, verdict.due_ms)
    gone_ms = _bury(situation, book)
    return min(due_ms, gone_ms), min(memory_due_ms, gone_ms)


def _verdict(rule: GroupRule[Any], situation: Situation, book: AlertBook) -> Verdict:
    """Return one rule's verdict, after its alert was fired or ended."""
    if not situation.thresholds.of(rule.options).enabled:
        _switch_off(rule.name, situation, book)
        return NOTHING
    verdict = rule.evaluate(situation)
    if verdict.finding is not None or verdict.closing is not None:
        return _turned(rule, verdict, situation, book)
    return verdict


def _bury(situation: Situation, book: AlertBook) -> int:
    """Resolve all alerts of a dead group but GroupDeleted; return when to judge again."""
    ended_ms = _ended_ms(situation)
    if ended_ms is None or situation.memory.open.keys() <= {GROUP_DELETED.name}:
        return NEVER
    gone_ms = ended_ms + DEAD_KEPT_MS
    if situation.group.state is not GroupState.DEAD or situation.now_ms < gone_ms:
        return gone_ms if situation.now_ms < gone_ms else NEVER
    book.close_others(GROUP_DELETED.name, _removal(situation.group))
    return NEVER


def _ended_ms(situation: Situation) -> int | None:
    """Return when the group ended; None if it lives or was never seen."""
    group, ending = situation.group, situation.memory.ending
    if ending is not None:
        return ending.at_ms
    is_dead = group.state is GroupState.DEAD and not group.members and group.state_since_ms >= 0
    return group.state_since_ms if is_dead else None


def _switch_off(name: str, situation: Situation, book: AlertBook) -> None:
    book.disabled(name)
    situation.memory.events.pop(name, None)


def _turned(rule: GroupRule[Any], verdict: Verdict, situation: Situation, book: AlertBook) -> Verdict:
    """Fire or end the alert as the verdict says; return what remains to be done."""
    verdict = completeness.judged(rule, verdict, situation)
    verdict = _held_back(rule, verdict, situation)
    book.turn(rule.name, verdict)
    return verdict


def _held_back(rule: GroupRule[Any], verdict: Verdict, situation: Situation) -> Verdict:
    """Return ``verdict``; if it would fire while a firing cause explains it, return a verdict that waits."""
    memory, now_ms = situation.memory, situation.now_ms
    if verdict.finding is None or not rule.effect_of or rule.name in memory.open:
        return verdict
    ended = {cause: ends[-1] for cause, ends in memory.ends.items()}
    until_ms = held_back_until_ms(rule, is_firing=memory.open, ended=ended)
    if until_ms == FIRING:
        return Verdict(due_ms=None)
    return verdict if until_ms is None or until_ms <= now_ms else Verdict(due_ms=until_ms)


def _removal(group: Group) -> str:
    return f"Group {group.group} is gone: it was deleted, is no longer watched, or was not seen for too long."


def _take_over(memory: GroupMemory | ClusterMemory, alert: Alert) -> None:
    """Put an alert from the alerts topic into the memory."""
    is_known = any(rule.name == alert.name for rule in (*RULES, *CLUSTER_RULES))
    opened = memory.open.get(alert.name)
    if not is_known:
        memory.surplus.append(alert)
    elif opened is None:
        memory.open[alert.name] = adopt(alert)
    elif opened.alert.id != alert.id:
        memory.surplus.append(alert)
    elif alert.revision >= opened.alert.revision:
        memory.open[alert.name] = adopt(alert)
