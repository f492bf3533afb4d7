"""One group over a window of time: what the store of history has, and what the job knows now."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from alerts.alert import Alert
from alerts.story import StateSpan, Timeline, moves_of, refined, timeline
from coordinator_model.kafka import GroupState
from coordinator_model.shard import GroupReport
from coordinator_model.state import Basis
from streaming.history import Past
from streaming.serving.api import GroupDetail, GroupHistory, LagPoint, Owners
from streaming.serving.member_lanes import member_lanes
from streaming.serving.view import View

WINDOW_MIN_MS = 5 * 60_000
WINDOW_MAX_MS = 7 * 86_400_000
DEFAULT_WINDOW_MS = 3_600_000
_ALERTS_MAX = 1_000
NOT_KEPT = "No history is kept (history.enabled is false), so this is the job's memory only."

ReadPast = Callable[[str, str, int, int], Past]
"""(cluster, group, from, to in epoch ms) → what was."""


class Window(NamedTuple):
    """A stretch of time that somebody looks at, and when: all in epoch milliseconds."""

    from_ms: int
    to_ms: int
    now_ms: int


def window(from_ms: int | None, to_ms: int | None, now_ms: int) -> Window:
    """Return the window that was asked for.

    Raises:
        ValueError: it is shorter than 5 minutes, longer than 7 days, or lies in the future.
    """
    until = now_ms if to_ms is None else to_ms
    since = until - DEFAULT_WINDOW_MS if from_ms is None else from_ms
    if not WINDOW_MIN_MS <= until - since <= WINDOW_MAX_MS:
        raise ValueError("from and to must be 5 minutes to 7 days apart")
    if since > now_ms or since < 0:
        raise ValueError("from must lie between 1970 and now")
    return Window(since, until, now_ms)


def history_of(
    view: View,
    past: ReadPast | None,
    cluster: str,
    group: str,
    seen: Window,
) -> GroupHistory | None:
    """Return a group's history; None if neither the job nor the store knows the group."""
    detail = view.group(cluster, group)
    kept = past(cluster, group, seen.from_ms, seen.to_ms) if past else Past(problem=NOT_KEPT)
    known = view.alerts(status="", cluster=cluster, group=group, limit=_ALERTS_MAX).alerts
    return history_from(kept, detail, known, seen, cluster=cluster, group=group)


def history_from(
    kept: Past,
    detail: GroupDetail | None,
    known: Sequence[Alert],
    seen: Window,
    *,
    cluster: str,
    group: str,
) -> GroupHistory | None:
    """Return a group's history out of what was kept and what is known now; None if there is neither."""
    from_ms, to_ms, now_ms = seen
    alerts = _newest([*kept.alerts, *known], from_ms, to_ms)
    transitions = [*kept.transitions, *(detail.transitions if detail else ())]
    if detail is None and not transitions and not alerts and not kept.lanes:
        return None
    moves = refined(moves_of(transitions, group), alerts)
    told = timeline(group, moves, alerts, from_ms=from_ms, to_ms=to_ms, now_ms=now_ms)
    return GroupHistory(
        cluster=cluster,
        group=group,
        from_ms=from_ms,
        to_ms=to_ms,
        at_ms=now_ms,
        step_ms=kept.step_ms,
        lag=_points(kept, detail, to_ms, now_ms),
        gaps=list(kept.gaps),
        states=_states(told.states, detail),
        rebalances=told.rebalances,
        members=member_lanes(
            kept.lanes, moves, detail.report if detail else None, from_ms=from_ms, to_ms=to_ms
        ),
        owners=_owners(kept, detail),
        alerts=alerts,
        notes=_notes(told),
        problem=kept.problem,
    )


def _notes(told: Timeline) -> list[str]:
    """Return what is missing in the picture, as sentences."""
    if not told.left_out:
        return []
    shown = len(told.rebalances)
    return [
        f"The newest {shown} of {shown + told.left_out} rebalances of this window are drawn; a shorter "
        "window shows the others."
    ]


def _newest(alerts: Sequence[Alert], from_ms: int, to_ms: int) -> list[Alert]:
    """Return the newest revision of each alert that was open in the window."""
    found: dict[str, Alert] = {}
    for one in alerts:
        before = found.get(one.id)
        if before is None or one.revision >= before.revision:
            found[one.id] = one
    touching = [
        one
        for one in found.values()
        if one.starts_at_ms <= to_ms and (one.ends_at_ms is None or one.ends_at_ms >= from_ms)
    ]
    return sorted(touching, key=lambda one: (one.starts_at_ms, one.id))


def _points(kept: Past, detail: GroupDetail | None, to_ms: int, now_ms: int) -> list[LagPoint]:
    """Return the points that were kept, and the present one if the window reaches until now."""
    points = [
        LagPoint(at_ms=one.at_ms, records=one.records, seconds=one.seconds, commits_per_s=one.commits_per_s)
        for one in kept.points
    ]
    if detail is not None and detail.lag and to_ms >= now_ms:
        rate = points[-1].commits_per_s if points else None
        records, seconds = sum(one.records for one in detail.lag), max(one.seconds for one in detail.lag)
        points.append(LagPoint(at_ms=now_ms, records=records, seconds=seconds, commits_per_s=rate))
    return points


def _states(told: list[StateSpan], detail: GroupDetail | None) -> list[StateSpan]:
    """Return the states that transitions tell, else the present one."""
    if told or detail is None:
        return told
    report = detail.report
    return [
        StateSpan(
            from_ms=report.state_since_ms,
            to_ms=-1,
            state=report.state,
            generation=report.generation,
            basis=Basis.OBSERVED,
        )
    ]


def _owners(kept: Past, detail: GroupDetail | None) -> list[Owners]:
    """Return who had what, from the store and now."""
    found = [
        Owners(at_ms=one.at_ms, generation=one.generation, assignment=one.assignment) for one in kept.owners
    ]
    now = None if detail is None else owners_now(detail.report)
    if now is not None and (not found or found[-1].generation != now.generation):
        found.append(now)
    return found


def owners_now(report: GroupReport) -> Owners | None:
    """Return who has what in a group that is Stable; None: it is not, or no source shows it."""
    if report.state is not GroupState.STABLE or any(one.assigned is None for one in report.members):
        return None
    assignment = {
        one.member_id: {topic: list(numbers) for topic, numbers in (one.assigned or {}).items()}
        for one in report.members
    }
    return Owners(at_ms=report.state_since_ms, generation=report.generation, assignment=assignment)
