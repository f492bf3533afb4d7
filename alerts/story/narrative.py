"""Tells what happened to one group: takes transitions, alerts and the present state, returns sentences.

Pure; ``groupwatch explain``, the HTTP API and ``groupwatch replay --explain`` use it.  A rebalance is one
entry, however many states it passed; an alert is one entry when it fires and one when it ends.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from alerts.alert import Alert, AlertStatus, RecentRecords, is_jump, some, span, times, who, who_is
from alerts.story.costs import Spent, in_words, summed_up
from alerts.story.episodes import Episode, episodes_of, joined, moves_of, refined, with_late_news
from alerts.story.words import began, ended, how_it_went, noun
from coordinator_model.kafka import SETTLED, GroupState
from coordinator_model.shard import GroupReport
from coordinator_model.state import Transition

ENTRIES_MAX = 500
_MEMBERS_NAMED = 5


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the story."""

    at_ms: int
    """When it began (epoch ms)."""
    until_ms: int
    """When it ended; equal to ``at_ms`` if it has no length, -1 if it continues."""
    kind: str
    """rebalance, state, alert, or alert_over."""
    text: str
    details: list[str] = []
    """How it went, by whom, what it cost and what to do, a sentence each."""
    alert_id: str = ""
    """Of the alert that it is about; "": it is about none."""
    cost: Spent | None = None
    """The cost of a rebalance that ended in a new assignment."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """One group's story."""

    cluster: str
    group: str
    since_ms: int
    """-1: from the first fact known."""
    until_ms: int
    """The present, or the end of what was captured (epoch ms)."""
    now: str
    """The group's present state."""
    summary: str
    """A summary of the period."""
    advice: list[str]
    """Advice of the alerts that fire now."""
    entries: list[Entry]
    left_out: int = 0
    """How many older entries are left out."""
    notes: list[str] = []
    """What the story may lack, and why."""


class Present(msgspec.Struct, frozen=True, kw_only=True):
    """The group's present facts that no transition carries."""

    report: GroupReport | None = None
    lag: Sequence[tuple[str, int, float]] = ()
    """(topic, records, seconds) of lag."""
    reread: tuple[int, int] | None = None
    """Epoch ms of the last rebalance's end, and the records read again since; None: unknown."""


def explain(
    cluster: str,
    group: str,
    transitions: Iterable[Transition],
    alerts: Iterable[Alert],
    *,
    since_ms: int,
    until_ms: int,
    present: Present | None = None,
    notes: Sequence[str] = (),
) -> Explanation:
    """Return the story of ``group`` from ``since_ms`` (-1: all) until ``until_ms``.

    Args:
        cluster: its name, for the title.
        group: whose transitions and alerts are told; others are passed over.
        transitions: in any order, with repeats; those that were replaced are left out.
        alerts: any revisions, in the order in which they were said.
        since_ms: what was over before is left out.
        until_ms: now, or the end of what was replayed.
        present: what is known of it now.
        notes: what the reader of the sources has to say.
    """
    alerts = [one for one in alerts if one.group == group]
    moves = refined(moves_of(transitions, group), alerts)
    present = present or Present()
    whole = joined(with_late_news(episodes_of(moves), present.reread))
    episodes = [one for one in whole if not one.is_over or one.last.at_ms >= since_ms]
    told = _told(alerts, since_ms)
    entries = [_episode_entry(one, until_ms) for one in episodes]
    for first, newest in told:
        entries += _alert_entries(first, newest, since_ms)
    entries.sort(key=lambda entry: entry.at_ms)
    newest_alerts = [newest for _, newest in told]
    return Explanation(
        cluster=cluster,
        group=group,
        since_ms=since_ms,
        until_ms=until_ms,
        now=_now(group, moves, present, until_ms),
        summary=_summary(episodes, newest_alerts, until_ms),
        advice=_advice(newest_alerts),
        entries=entries[-ENTRIES_MAX:],
        left_out=max(0, len(entries) - ENTRIES_MAX),
        notes=list(notes),
    )


def _told(alerts: Iterable[Alert], since_ms: int) -> list[tuple[Alert, Alert]]:
    """Return the first and the newest revision of each alert that was open since then."""
    first: dict[str, Alert] = {}
    newest: dict[str, Alert] = {}
    said = RecentRecords()
    for alert in alerts:
        before = newest.get(alert.id)
        if is_jump(alert.revision, before.revision if before else -1) or said.is_repeat(alert):
            continue
        if alert.status is AlertStatus.FIRING:
            first[alert.id] = alert
        newest[alert.id] = alert
    open_then = [one for one in newest.values() if one.ends_at_ms is None or one.ends_at_ms >= since_ms]
    open_then.sort(key=lambda one: one.detected_at_ms)
    return [(first.get(one.id, one), one) for one in open_then]


# --- entries -----------------------------------------------------------------------------------------


def _episode_entry(episode: Episode, now_ms: int) -> Entry:
    first, last, cost = episode.first, episode.last, episode.cost
    details = _went(episode.steps, now_ms) if episode.is_rebalance else []
    before = episode.steps
    for number, then in enumerate(episode.then):
        later = span(then[0].at_ms - before[-1].at_ms)
        went, *anew = _went(then, now_ms)
        nth = "Further step" if number else "Second step"
        details += [f"{nth}, {later} later: {went[:1].lower()}{went[1:]}", *anew]
        before = then
    if cost is not None:
        details.append(in_words(cost, first.group_type))
    return Entry(
        at_ms=first.at_ms,
        until_ms=last.at_ms if episode.is_over else -1,
        kind="rebalance" if episode.is_rebalance else "state",
        text=f"{began(first)}." if episode.is_rebalance else f"{ended(first)}.",
        details=details,
        cost=cost,
    )


def _went(steps: list[Transition], now_ms: int) -> list[str]:
    """Return how one step of a rebalance went, and what restarted it on the way."""
    anew = [
        f"Begun anew after {span(step.at_ms - steps[0].at_ms)}: {began(step)}."
        for step in steps[1:]
        if step.to_state is GroupState.PREPARING_REBALANCE
    ]
    return [how_it_went(steps, now_ms), *anew]


def _alert_entries(first: Alert, newest: Alert, since_ms: int) -> list[Entry]:
    is_over = newest.status is AlertStatus.RESOLVED
    entries = []
    if newest.detected_at_ms >= since_ms or not is_over:
        # A compacted topic keeps only the last revision: then its cause must say what the alert was about.
        summary = first.summary if first.status is AlertStatus.FIRING else newest.cause
        entries.append(
            Entry(
                at_ms=newest.detected_at_ms,
                until_ms=-1 if newest.ends_at_ms is None else newest.ends_at_ms,
                kind="alert",
                text=f"Alert {newest.name} ({newest.severity}): {summary}",
                details=_alert_details(newest, summary),
                alert_id=newest.id,
            )
        )
    if is_over and newest.ends_at_ms is not None:
        entries.append(
            Entry(
                at_ms=newest.ends_at_ms,
                until_ms=newest.ends_at_ms,
                kind="alert_over",
                text=f"Alert {newest.name} is over: {newest.summary}",
                alert_id=newest.id,
            )
        )
    return entries


def _alert_details(alert: Alert, summary: str) -> list[str]:
    rows = [
        # Event alerts use one sentence for both.
        ("Cause", "" if alert.cause.split(" UTC: ", 1)[-1] in summary else alert.cause),
        ("By", some([who_is(one) for one in alert.culprits], at_most=_MEMBERS_NAMED)),
        ("Cost", alert.cost),
        ("Do", alert.advice),
    ]
    return [f"{name}: {text}" for name, text in rows if text]


# --- the whole ---------------------------------------------------------------------------------------


def _now(group: str, moves: list[Transition], present: Present, until_ms: int) -> str:
    report = present.report
    if report is None:
        return _now_by_moves(group, moves, until_ms)
    for_long = f" for {span(until_ms - report.state_since_ms)}" if report.state_since_ms >= 0 else ""
    text = f"{group} is {report.state}{for_long}, generation {report.generation}"
    if report.coordinator >= 0:
        text += f", coordinated by broker {report.coordinator}"
    return f"{text}. {_members(report)}{_lag(present)}{_blind(report)}"


def _now_by_moves(group: str, moves: list[Transition], until_ms: int) -> str:
    if not moves:
        return f"What state {group} is in is not known."
    last = moves[-1]
    lasts = span(until_ms - last.at_ms)
    return f"{group} is {last.to_state} for {lasts}, generation {last.generation}."


def _members(report: GroupReport) -> str:
    names = [who_is(one) for one in report.members]
    if not names:
        return "It has no members."
    leader = [
        name for name, one in zip(names, report.members, strict=True) if one.member_id == report.leader_id
    ]
    leads = f"; {leader[0]} leads" if leader and len(names) > 1 else ""
    return f"{times(len(names), 'member')}: {some(names, at_most=_MEMBERS_NAMED)}{leads}."


def _lag(present: Present) -> str:
    behind = [
        f"{times(records, 'record')} ({span(seconds * 1000)}) in {topic}"
        for topic, records, seconds in present.lag
        if records
    ]
    if behind:
        return f" It is behind by {some(behind)}."
    return " It is up to date." if present.lag else ""


def _blind(report: GroupReport) -> str:
    if not report.unknown:
        return ""
    return f" Not told by any source: {', '.join(one.replace('_', ' ') for one in report.unknown)}."


def _summary(episodes: list[Episode], alerts: list[Alert], until_ms: int) -> str:
    rebalances = [one for one in episodes if one.is_rebalance]
    return f"{_rebalances(rebalances, until_ms)} {_alerts(alerts)}"


def _rebalances(episodes: list[Episode], until_ms: int) -> str:
    starts = [step for one in episodes for step in one.steps if _is_start(step)]
    if not starts:
        return "No rebalance."
    kinds = Counter(noun(step.cause.kind) for step in starts)
    why = ", ".join(f"{count} x {kind}" for kind, count in kinds.most_common())
    away_ms = sum(one.lasted_ms if one.is_over else max(0, until_ms - one.first.at_ms) for one in episodes)
    costs = summed_up([one.cost for one in episodes if one.cost is not None])
    return (
        f"{times(len(starts), 'rebalance')} ({why}); not Stable for {span(away_ms)} in all."
        f"{costs}{_mostly(starts)}"
    )


def _is_start(step: Transition) -> bool:
    if step.group_type == "classic":
        return step.to_state is GroupState.PREPARING_REBALANCE
    return step.from_state in SETTLED and step.to_state not in SETTLED


def _mostly(starts: list[Transition]) -> str:
    """Return who started most of them, if one stands out; a log does not give the host of a new member."""
    causes = [step.cause for step in starts if step.cause.client_id or step.cause.member_id]
    named = Counter(cause.client_id or cause.member_id for cause in causes)
    (name, count), *_ = [*named.most_common(1), ("", 0)]
    if count < 2 or count * 2 < len(starts):
        return ""
    mine = [cause for cause in causes if name in {cause.client_id, cause.member_id}]
    hosts = {cause.client_host for cause in mine if cause.client_host}
    host = hosts.pop() if len(hosts) == 1 else ""
    return (
        f" Most often by {who(member_id=name, client_id=name, client_host=host)} ({count} of {len(starts)})."
    )


def _alerts(alerts: list[Alert]) -> str:
    firing = [one.name for one in alerts if one.status is AlertStatus.FIRING]
    if not alerts:
        return "No alert."
    names = some([one.name for one in alerts], at_most=len(alerts))
    still = f"; {some(firing, at_most=len(firing))} still firing" if firing else ", all over"
    return f"{times(len(alerts), 'alert')} ({names}){still}."


def _advice(alerts: list[Alert]) -> list[str]:
    firing = [one for one in alerts if one.status is AlertStatus.FIRING and one.advice]
    return list(dict.fromkeys(f"{one.name}: {one.advice}" for one in firing))
