"""Decides which request log is raised, when, and when it is put back; pure, so that tests cover every bound.

A broker is raised because it coordinates a group with an open alert.  It is put back when its time is over,
when none of its groups is in trouble any more, or when groupwatch stops.  Three bounds limit the cost:
duration (``for``), time between raises of a broker (``every``), and brokers at once (``brokers``).
"""

from collections.abc import Iterable, Mapping, Set
from typing import Any, NamedTuple

import msgspec

from alerts.alert import Alert, AlertStatus, RecentRecords
from alerts.delivery import RANK
from streaming.config import EvidenceConfig

REQUEST_LEVEL = "DEBUG"
"""The level at which Kafka logs requests, and which we set."""
TALKING = frozenset({"DEBUG", "TRACE", "ALL"})
SETTABLE = frozenset({"FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"})
"""Kafka: ``LogLevelConfig.VALID_LOG_LEVELS``; any other level could not be restored."""
ROOT_LOGGER = "root"
GROUPS_NAMED_MAX = 20
OTHERS_GRACE_MS = 10_000
"""Another groupwatch puts back what it raised; when it is this late, we do."""


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The journal's entry for one broker: its last raise.  New fields get a default."""

    cluster: str
    broker: int
    holder: str
    """Who raised it; unchanged by a restart at the same place."""
    before: str
    """The level to restore."""
    inherited: bool
    """The level came from a parent logger, so restoring means deleting ours."""
    raised_at_ms: int
    until_ms: int
    groups: tuple[str, ...] = ()
    back_at_ms: int | None = None
    """None: it is raised, as far as we know."""


class TroublingAlert(NamedTuple):
    """An open alert that calls for evidence; sorts by urgency."""

    rank: int
    since_ms: int
    group: str
    name: str


class WantedRaise(NamedTuple):
    """A broker to raise."""

    broker: int
    groups: tuple[str, ...]
    names: tuple[str, ...]
    """The alerts of its groups."""


class WantedRestore(NamedTuple):
    """A broker to put back."""

    entry: JournalEntry
    why: str


class Decision(NamedTuple):
    """What to do now: put back first, then raise."""

    back: tuple[WantedRestore, ...]
    wanted: tuple[WantedRaise, ...]


class TroublingAlerts:
    """One cluster's open alerts that call for evidence."""

    def __init__(self, names: Set[str]) -> None:
        self._names = names
        self._open: dict[str, Alert] = {}
        self._said = RecentRecords()

    def remember(self, alert: Alert) -> None:
        """Take an alert of the alerts topic; revisions older than the known one change nothing."""
        known = self._open.get(alert.id)
        if known is None or known.revision < alert.revision:
            self.take(alert)

    def take(self, alert: Alert) -> None:
        """Take an alert of the job; its newest record counts (``alerts/alert/newest_record.py``)."""
        if alert.name not in self._names or not alert.group or self._said.is_repeat(alert):
            return
        if alert.status is AlertStatus.FIRING:
            self._open[alert.id] = alert
        else:
            self._open.pop(alert.id, None)
            self._said.forget(alert.id)

    def sorted(self) -> list[TroublingAlert]:
        """Return the alerts, loudest first, then oldest."""
        return sorted(
            TroublingAlert(RANK[a.severity], a.starts_at_ms, a.group, a.name) for a in self._open.values()
        )


def decide(
    limits: EvidenceConfig | None,
    *,
    troubles: Iterable[TroublingAlert],
    coordinators: Mapping[str, int],
    entries: Mapping[int, JournalEntry],
    holder: str,
    not_before_ms: Mapping[int, int],
    away: Set[int],
    now_ms: int,
    stopping: bool = False,
) -> Decision:
    """Return what to do now.

    Args:
        limits: the limits; None: evidence is off, and everything raised goes back.
        troubles: the open alerts, most urgent first.
        coordinators: group -> broker, as far as known.
        entries: broker -> its last raise.
        holder: identifies us.
        not_before_ms: broker -> when it may be raised again after a failure.
        away: brokers that are not in the cluster now; they do not count among those raised.
        now_ms: epoch milliseconds of a clock that never goes back.
        stopping: groupwatch is stopping.
    """
    known = list(troubles)
    raised = {broker: one for broker, one in entries.items() if one.back_at_ms is None}
    ends = "groupwatch stops" if stopping else "evidence is disabled" if limits is None else ""
    reasons = [
        (entry, _why_back(entry, known, coordinators, holder, now_ms, ends=ends))
        for _, entry in sorted(raised.items())
    ]
    back = tuple(WantedRestore(entry, why) for entry, why in reasons if why)
    if limits is None or stopping:
        return Decision(back, ())
    free = limits.brokers - len(raised.keys() - away)
    wanted: list[WantedRaise] = []
    for want in _wants(known, coordinators):
        last = entries.get(want.broker)
        is_early = last is not None and now_ms < last.raised_at_ms + limits.every_ms
        rests = now_ms < not_before_ms.get(want.broker, now_ms)
        if len(wanted) < free and want.broker not in raised and not is_early and not rests:
            wanted.append(want)
    return Decision(back, tuple(wanted))


def _why_back(
    entry: JournalEntry,
    troubles: list[TroublingAlert],
    coordinators: Mapping[str, int],
    holder: str,
    now_ms: int,
    *,
    ends: str,
) -> str:
    """Return why a broker is put back now; "" if it is not."""
    if entry.holder != holder:
        is_late = now_ms >= entry.until_ms + OTHERS_GRACE_MS
        return "the process that raised it has not restored it" if is_late else ""
    if ends:
        return ends
    if now_ms >= entry.until_ms:
        return "its time is up"
    places = {coordinators.get(one.group, entry.broker) for one in troubles}
    return "" if entry.broker in places else "none of its groups is in trouble any more"


def _wants(troubles: list[TroublingAlert], coordinators: Mapping[str, int]) -> list[WantedRaise]:
    """Return the coordinators of the troubled groups, by their most urgent group."""
    found: dict[int, list[TroublingAlert]] = {}
    for trouble in troubles:
        broker = coordinators.get(trouble.group)
        if broker is not None:
            found.setdefault(broker, []).append(trouble)
    return [
        WantedRaise(
            broker,
            tuple(dict.fromkeys(one.group for one in ours))[:GROUPS_NAMED_MAX],
            tuple(dict.fromkeys(one.name for one in ours)),
        )
        for broker, ours in found.items()
    ]


def resumed(entries: Mapping[int, JournalEntry], *, holder: str, now_ms: int) -> dict[int, JournalEntry]:
    """Return the journal's entries for a new start: the time of our own raises is over."""
    return {
        broker: msgspec.structs.replace(one, until_ms=min(one.until_ms, now_ms))
        if one.holder == holder and one.back_at_ms is None
        else one
        for broker, one in entries.items()
    }


def parent_level(levels: Mapping[str, Any], logger: str) -> str | None:
    """Return the level that ``logger`` would inherit: from its nearest named ancestor, else from the root."""
    name = logger
    while "." in name:
        name = name.rpartition(".")[0]
        if name in levels:
            return str(levels[name])
    root = levels.get(ROOT_LOGGER)
    return None if root is None else str(root)
