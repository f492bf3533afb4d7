"""RuleJudge: runs the rules over one group, or over the cluster, and keeps what they remember.

The memory of a group is ``header + msgpack``.  The header (version, flags, due time) lets the most
frequent call, a heartbeat that changes nothing, pass without reading the rest; a group without news
has no memory at all.
"""

import logging
from collections.abc import Callable
from struct import Struct as Layout
from typing import Final

import msgspec

from alerts.alert import Alert
from alerts.rules import completeness, members, rebalances
from alerts.rules.endings import GROUP_DELETED, OFFSETS_EXPIRING
from alerts.rules.engine import (
    EFFECTS,
    FIRING,
    NEVER,
    NOTHING,
    RULE_KEYS,
    ClusterMemory,
    GroupMemory,
    Pages,
    Rule,
    Settings,
    Situation,
    Thresholds,
    Verdict,
    adopt,
    held_back_until_ms,
)
from alerts.rules.members import (
    GROUP_ID_COLLISION,
    IDLE_MEMBERS,
    POLL_INTERVAL_EXCEEDED,
    SESSION_TIMEOUT,
    SESSION_TIMEOUT_IMMINENT,
    STATIC_MEMBER_FENCED,
    UNSAFE_TIMEOUTS,
    ZOMBIE_COMMIT,
)
from alerts.rules.monitor import CLUSTER_UNREACHABLE, GROUPS_QUARANTINED, MONITOR_STALLED, SOURCE_SILENT
from alerts.rules.progress import COMMITS_STALLED, COMMITS_STOPPED, OFFSET_REWIND
from alerts.rules.rebalances import (
    ASSIGNMENT_CHURN,
    COORDINATOR_MOVED,
    REBALANCE_STORM,
    STUCK_COMPLETING_REBALANCE,
    STUCK_PREPARING_REBALANCE,
)
from alerts.rules.registry import RULES
from coordinator_model.kafka import GroupState
from coordinator_model.shard import DEAD_KEPT_MS, ClusterState, Evidence, Judgement
from coordinator_model.state import Group, Step

_LOG = logging.getLogger(__name__)

MEMORY_VERSION: Final = 1

_HEADER = Layout("<BBqq")
"""Version, flags, when the memory itself wants a judgement, and a bound for large groups (0: none)."""
_LARGE: Final = 16
"""Members above which the deadlines of all are not computed anew at each heartbeat."""
_WATCH: Final = 1
"""Flag: an alert is open whose end or culprits any observation may change."""

_WATCHED = frozenset(
    {
        STUCK_COMPLETING_REBALANCE.name,
        STUCK_PREPARING_REBALANCE.name,
        SESSION_TIMEOUT_IMMINENT.name,
        COMMITS_STOPPED.name,
    }
)
_OF_THE_SUPERVISOR = frozenset({CLUSTER_UNREACHABLE, MONITOR_STALLED})
_TIMELESS = frozenset(
    {
        REBALANCE_STORM.name,
        SESSION_TIMEOUT.name,
        POLL_INTERVAL_EXCEEDED.name,
        ZOMBIE_COMMIT.name,
        STATIC_MEMBER_FENCED.name,
        GROUP_ID_COLLISION.name,
        IDLE_MEMBERS.name,
        UNSAFE_TIMEOUTS.name,
        # Commits and end offsets move these only away, so an early look is all that can come of it.
        COMMITS_STOPPED.name,
        COMMITS_STALLED.name,
        OFFSET_REWIND.name,
        ASSIGNMENT_CHURN.name,
        GROUP_DELETED.name,
        OFFSETS_EXPIRING.name,
    }
)
"""Rules whose due times depend on their memory alone; the others' follow from the group."""

_CLUSTER_RULES = {
    SOURCE_SILENT.name: SOURCE_SILENT.evaluate,
    COORDINATOR_MOVED.name: COORDINATOR_MOVED.evaluate,
    GROUPS_QUARANTINED.name: GROUPS_QUARANTINED.evaluate,
}
"""Rules about the cluster as a whole."""

Failure = tuple[str, Exception]
"""What failed, a rule mostly, and how."""
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, IndexError)

_GROUP_DECODER = msgspec.msgpack.Decoder(GroupMemory)
_CLUSTER_DECODER = msgspec.msgpack.Decoder(ClusterMemory)
_ENCODER = msgspec.msgpack.Encoder()
_ALERT_DECODER = msgspec.json.Decoder(Alert)

_NO_GROUP_MEMORY = _ENCODER.encode(GroupMemory())


class RuleJudge:
    """The rules as a shard sees them (``coordinator_model.judging.Judge``)."""

    def __init__(self, settings: bytes = b"{}") -> None:
        """Begin with these settings (canonical JSON; default: every rule with its defaults)."""
        self._given = settings
        self._settings = Settings(settings)

    def configure(self, settings: bytes) -> None:
        """Use these settings from here on; settings that cannot be read leave the old ones in force."""
        if settings == self._given:
            return
        self._given = settings
        try:
            self._settings = Settings(settings)
        except Exception:
            # What decodes them refuses those that cannot be used; a bug there must not stop the stream.
            _LOG.exception("settings refused, the rules keep their thresholds")

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
        """Return what the rules make of ``step`` at ``now_ms``; ``removed`` resolves everything."""
        thresholds = self._settings.of_group(group.group)
        is_news = step.transitions or step.departures or step.arrivals or step.notes or step.met
        if not (is_news or removed or step.progressed or step.cost):
            answer = _quick(group, thresholds, memory, now_ms)
            if answer is not None:
                return answer
        failures: list[Failure] = []
        situation = Situation(
            group=group,
            step=step,
            now_ms=now_ms,
            evidence=evidence,
            thresholds=thresholds,
            memory=_group_memory(memory, failures),
        )
        pages = Pages(cluster, group.group, situation.memory, now_ms, self._settings.runbook_base)
        if removed:
            alerts = pages.close_all(step.why_dropped or _removal(group))
            return Judgement(memory=None, alerts=alerts, due_ms=None, failures=failures)
        pages.resolve_surplus()
        due_ms, memory_due_ms = _run(situation, pages, failures)
        held_ms = pages.end_held()
        due_ms, memory_due_ms = min(due_ms, held_ms), min(memory_due_ms, held_ms)
        saved = _save_group(situation.memory, memory_due_ms)
        due = None if due_ms == NEVER else due_ms
        return Judgement(memory=saved, alerts=pages.alerts, due_ms=due, failures=failures)

    def adopt(self, *, alert: bytes, memory: bytes | None) -> bytes | None:
        """Return the memory with an alert that an earlier job left open.

        It goes on under its id at the next revision, or is resolved at the next judgement (which the
        shard must ask for) if its condition does not hold.  Events and storms, whose history is not
        known here, get their quiet time anew.
        """
        found = _ALERT_DECODER.decode(alert)
        if found.name in _OF_THE_SUPERVISOR:
            return memory
        if found.group:
            known = _load_group(memory)
            _take_over(known, found)
            return _save_group(known, 0)
        of_cluster = _load_cluster(memory)
        _take_over(of_cluster, found)
        return _save_cluster(of_cluster)

    def judge_cluster(
        self, *, cluster: str, state: ClusterState, memory: bytes | None, now_ms: int
    ) -> Judgement:
        """Return what the rules about the whole cluster say at ``now_ms``."""
        failures: list[Failure] = []
        thresholds, known = self._settings.defaults, _cluster_memory(memory, failures)
        pages = Pages(cluster, "", known, now_ms, self._settings.runbook_base)
        pages.resolve_surplus()
        due_ms = NEVER
        for name, evaluate in _CLUSTER_RULES.items():
            configured: Rule = getattr(thresholds, RULE_KEYS[name])
            if not configured.enabled:
                pages.disabled(name)
                continue
            try:
                verdict = evaluate(state, known, thresholds, now_ms)
                pages.turn(name, verdict)
            except Exception as error:
                failures.append((name, error))
                continue
            due_ms = min(due_ms, NEVER if verdict.due_ms is None else verdict.due_ms)
        due_ms = min(due_ms, pages.end_held())
        due = None if due_ms == NEVER else due_ms
        return Judgement(memory=_save_cluster(known), alerts=pages.alerts, due_ms=due, failures=failures)


def _quick(group: Group, thresholds: Thresholds, memory: bytes | None, now_ms: int) -> Judgement | None:
    """Return the answer if nothing needs judging now, None if something does."""
    due_ms, bound_ms = NEVER, 0
    if memory is not None:
        if len(memory) < _HEADER.size:
            return None
        version, flags, due_ms, bound_ms = _HEADER.unpack_from(memory)
        if version != MEMORY_VERSION or flags & _WATCH or due_ms <= now_ms:
            return None
    if group.state is not GroupState.STABLE:
        found = _stuck_due_ms(group, thresholds, now_ms)
    elif bound_ms > now_ms:
        found = bound_ms
    else:
        found, memory = _silence_due_ms(group, thresholds, memory, now_ms)
    if found is None:
        return Judgement(memory=memory, alerts=[], due_ms=None if due_ms == NEVER else due_ms)
    if found <= now_ms:
        return None
    return Judgement(memory=memory, alerts=[], due_ms=found if found < due_ms else due_ms)


def _silence_due_ms(
    group: Group, thresholds: Thresholds, memory: bytes | None, now_ms: int
) -> tuple[int | None, bytes | None]:
    """Return when a member of a Stable group may be silent for too long, and the memory.

    For a large group that is a bound, and remembered: heartbeats only move deadlines away, and a
    member heard for the first time has at least the shortest one.
    """
    if not thresholds.session_timeout_imminent.enabled:
        return None, memory
    found = members.silence_due_ms(group, thresholds, now_ms)
    if found is None or found <= now_ms or len(group.members) <= _LARGE:
        return found, memory
    bound_ms = min(found, now_ms + members.shortest_silence_ms(group, thresholds))
    if memory is None:
        return bound_ms, _HEADER.pack(MEMORY_VERSION, 0, NEVER, bound_ms) + _NO_GROUP_MEMORY
    version, flags, due_ms, _ = _HEADER.unpack_from(memory)
    return bound_ms, _HEADER.pack(version, flags, due_ms, bound_ms) + memory[_HEADER.size :]


def _stuck_due_ms(group: Group, thresholds: Thresholds, now_ms: int) -> int | None:
    dues = []
    if thresholds.stuck_completing_rebalance.enabled:
        dues.append(rebalances.completing_due_ms(group, thresholds, now_ms))
    if thresholds.stuck_preparing_rebalance.enabled:
        dues.append(rebalances.preparing_due_ms(group, thresholds))
    return min((due for due in dues if due is not None), default=None)


def _run(situation: Situation, pages: Pages, failures: list[Failure]) -> tuple[int, int]:
    """Run all rules; return when to judge again, and when because of what is in the memory.

    A rule that fails has no say this time, and nobody else notices.
    """
    due_ms = memory_due_ms = NEVER
    try:
        rebalances.note(situation)
    except Exception as error:
        failures.append(("costs", error))
    for name, evaluate in RULES:
        try:
            verdict = _verdict(name, evaluate, situation, pages)
        except Exception as error:
            failures.append((name, error))
            continue
        if verdict.due_ms is None:
            continue
        due_ms = min(due_ms, verdict.due_ms)
        if name in _TIMELESS:
            memory_due_ms = min(memory_due_ms, verdict.due_ms)
    gone_ms = _bury(situation, pages)
    return min(due_ms, gone_ms), min(memory_due_ms, gone_ms)


def _verdict(
    name: str, evaluate: Callable[[Situation], Verdict], situation: Situation, pages: Pages
) -> Verdict:
    """Return what one rule says, after its alert has fired or ended."""
    configured: Rule = getattr(situation.thresholds, RULE_KEYS[name])
    if not configured.enabled:
        _switch_off(name, situation, pages)
        return NOTHING
    verdict = evaluate(situation)
    if verdict.finding is not None or verdict.closing is not None:
        return _turned(name, verdict, situation, pages)
    return verdict


def _bury(situation: Situation, pages: Pages) -> int:
    """Resolve what is told of a dead group, but for GroupDeleted; return when."""
    ended_ms = _ended_ms(situation)
    if ended_ms is None or situation.memory.open.keys() <= {GROUP_DELETED.name}:
        return NEVER
    gone_ms = ended_ms + DEAD_KEPT_MS
    if situation.group.state is not GroupState.DEAD or situation.now_ms < gone_ms:
        return gone_ms if situation.now_ms < gone_ms else NEVER
    pages.close_others(GROUP_DELETED.name, _removal(situation.group))
    return NEVER


def _ended_ms(situation: Situation) -> int | None:
    """Return when the group ended, None if it lives, or was never seen."""
    group, ending = situation.group, situation.memory.ending
    if ending is not None:
        return ending.at_ms
    is_dead = group.state is GroupState.DEAD and not group.members and group.state_since_ms >= 0
    return group.state_since_ms if is_dead else None


def _switch_off(name: str, situation: Situation, pages: Pages) -> None:
    pages.disabled(name)
    situation.memory.events.pop(name, None)


def _turned(name: str, verdict: Verdict, situation: Situation, pages: Pages) -> Verdict:
    """Make revisions of a verdict that fires or ends; return what came of it."""
    verdict = completeness.judged(name, verdict, situation)
    verdict = _held_back(name, verdict, situation)
    pages.turn(name, verdict)
    return verdict


def _held_back(name: str, verdict: Verdict, situation: Situation) -> Verdict:
    """Return ``verdict``, or nothing yet if it would fire for what a cause that fires explains."""
    memory, now_ms = situation.memory, situation.now_ms
    if verdict.finding is None or name not in EFFECTS or name in memory.open:
        return verdict
    ended = {cause: ends[-1] for cause, ends in memory.ends.items()}
    until_ms = held_back_until_ms(name, is_firing=memory.open, ended=ended)
    if until_ms == FIRING:
        return Verdict(due_ms=None)
    return verdict if until_ms is None or until_ms <= now_ms else Verdict(due_ms=until_ms)


def _removal(group: Group) -> str:
    return f"Group {group.group} is gone: deleted, no longer watched, or not seen for too long."


def _take_over(memory: GroupMemory | ClusterMemory, alert: Alert) -> None:
    """Put an alert from the alerts topic into the memory."""
    is_known = alert.name in _CLUSTER_RULES or any(rule.name == alert.name for rule in RULES)
    opened = memory.open.get(alert.name)
    if not is_known:
        memory.surplus.append(alert)
    elif opened is None:
        memory.open[alert.name] = adopt(alert)
    elif opened.alert.id != alert.id:
        memory.surplus.append(alert)
    elif alert.revision >= opened.alert.revision:
        memory.open[alert.name] = adopt(alert)


def _load_group(memory: bytes | None) -> GroupMemory:
    if memory is None or memory[0] != MEMORY_VERSION:
        return GroupMemory()
    return _GROUP_DECODER.decode(memoryview(memory)[_HEADER.size :])


def _group_memory(memory: bytes | None, failures: list[Failure]) -> GroupMemory:
    """Return a group's memory; one that cannot be read is empty, and said to be lost."""
    try:
        return _load_group(memory)
    except _UNREADABLE as error:
        failures.append(("memory", error))
        return GroupMemory()


def _cluster_memory(memory: bytes | None, failures: list[Failure]) -> ClusterMemory:
    try:
        return _load_cluster(memory)
    except _UNREADABLE as error:
        failures.append(("memory", error))
        return ClusterMemory()


def _save_group(memory: GroupMemory, due_ms: int) -> bytes | None:
    if memory.hygiene is not None and memory.hygiene.is_empty():
        memory.hygiene = None
    has_any = memory.open or memory.used or memory.surplus or memory.storm or memory.events or memory.rewound
    has_costs = memory.costs is not None or memory.ending is not None
    if not (has_any or has_costs or memory.wholes or memory.hygiene or due_ms != NEVER):
        return None
    flags = _WATCH if memory.surplus or not _WATCHED.isdisjoint(memory.open) else 0
    return _HEADER.pack(MEMORY_VERSION, flags, due_ms, 0) + _ENCODER.encode(memory)


def _load_cluster(memory: bytes | None) -> ClusterMemory:
    if memory is None or memory[0] != MEMORY_VERSION:
        return ClusterMemory()
    return _CLUSTER_DECODER.decode(memoryview(memory)[_HEADER.size :])


def _save_cluster(memory: ClusterMemory) -> bytes | None:
    if not (memory.open or memory.used or memory.surplus or memory.watches):
        return None
    return _HEADER.pack(MEMORY_VERSION, 0, NEVER, 0) + _ENCODER.encode(memory)
