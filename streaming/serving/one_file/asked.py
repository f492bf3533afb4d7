"""Captures one group of a running job, or out of the topics."""

from urllib.parse import urlencode

import msgspec

from streaming.asking import JobAddress, job_of
from streaming.config import ClusterConfig, Config
from streaming.history import Past
from streaming.serving import (
    WINDOW_MAX_MS,
    WINDOW_MIN_MS,
    AlertList,
    ExplainError,
    GroupDetail,
    GroupHistory,
    Window,
    answer_of,
    explain_by_url,
    explain_known,
    group_path,
    history_from,
    known_by_config,
)
from streaming.serving.one_file.captured import Captured, CapturedGroup, listed

_TOPICS_ONLY = (
    "Lag, heartbeats and owners are not in the topics, so only what a running job kept of them is shown."
)


def captured_by_url(url: str, cluster: str, group: str, *, since_ms: int, now_ms: int) -> Captured:
    """Return what a running job answers about a group.

    Raises:
        ExplainError: it does not answer, or knows no such group.
    """
    job, path = JobAddress(url), group_path(cluster, group)
    story = explain_by_url(url, cluster, group, since_ms)
    history = answer_of(job, _history_path(cluster, group, since_ms, now_ms), GroupHistory)
    asked = urlencode({"cluster": cluster, "group": group, "limit": 1_000})
    alerts = answer_of(job, f"/api/v1/alerts?{asked}", AlertList)
    detail: GroupDetail | None = None
    notes = []
    try:
        detail = answer_of(job, path, GroupDetail)
    except ExplainError as error:
        notes.append(f"Nothing is known of its present state: {error}")
    open_ids = {one.id for one in alerts.alerts}
    every = [*alerts.alerts, *(one for one in history.alerts if one.id not in open_ids)]
    told = msgspec.structs.replace(alerts, alerts=listed(every, history.at_ms).alerts, total=len(every))
    return Captured(
        made_at_ms=now_ms,
        until_ms=history.at_ms,
        source=f"the job at {job.shown}",
        groups=[
            CapturedGroup(
                cluster=cluster, group=group, detail=detail, alerts=told, history=history, story=story
            )
        ],
        notes=notes,
    )


def captured_by_config(
    config: Config, cluster: ClusterConfig, group: str, *, since_ms: int, now_ms: int
) -> Captured:
    """Return what the topics remember of a group, with lag and members as a running job kept them.

    Raises:
        ExplainError: Kafka does not answer, or nobody knows the group.
    """
    known = known_by_config(config, cluster, group, since_ms)
    past = Past(transitions=tuple(known.past.transitions), alerts=tuple(known.past.alerts))
    history = history_from(
        past,
        known.detail,
        known.detail.alerts if known.detail else [],
        Window(_from_ms(since_ms, now_ms), now_ms, now_ms),
        cluster=cluster.name,
        group=group,
    )
    if history is None:
        raise ExplainError(f"nothing is known of group {group!r} since then; ask for a longer time.")
    kept = _kept_by(job_of(config), cluster.name, group, since_ms, now_ms) if known.detail else None
    if kept is None:
        history = msgspec.structs.replace(history, notes=[*history.notes, _TOPICS_ONLY])
    else:
        history = msgspec.structs.replace(
            history,
            lag=kept.lag,
            gaps=kept.gaps,
            step_ms=kept.step_ms,
            members=kept.members,
            owners=kept.owners,
        )
    return Captured(
        made_at_ms=now_ms,
        until_ms=now_ms,
        source=f"the topics of {cluster.name}",
        groups=[
            CapturedGroup(
                cluster=cluster.name,
                group=group,
                detail=known.detail,
                alerts=listed(history.alerts, now_ms),
                history=history,
                story=explain_known(config, cluster.name, group, known, since_ms=since_ms, now_ms=now_ms),
            )
        ],
    )


def _kept_by(job: JobAddress, cluster: str, group: str, since_ms: int, now_ms: int) -> GroupHistory | None:
    try:
        return answer_of(job, _history_path(cluster, group, since_ms, now_ms), GroupHistory)
    except ExplainError:
        return None


def _from_ms(since_ms: int, now_ms: int) -> int:
    """Return where the picture begins: not more than the API draws, nor less."""
    return min(max(since_ms, now_ms - WINDOW_MAX_MS), now_ms - WINDOW_MIN_MS)


def _history_path(cluster: str, group: str, since_ms: int, now_ms: int) -> str:
    window = {"from": str(_from_ms(since_ms, now_ms)), "to": str(now_ms)}
    return group_path(cluster, group, "/history", window)
