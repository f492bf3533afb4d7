"""``groupwatch explain``: reads a group's story for a terminal, over HTTP, and from captured logs.

``alerts.story`` words it.  A running job knows the present.  The past is in the topics (``history``), so a
story reaches back before the job's own memory, and across its restarts.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from alerts.alert import Alert, AlertStatus
from alerts.delivery import Silenced
from alerts.story import Explanation, Present, as_text, explain
from coordinator_model.observations import is_time_ms
from coordinator_model.shard import GroupReport
from coordinator_model.state import Transition
from streaming.asking import TROUBLE, JobAddress, ask, job_of
from streaming.config import ClusterConfig, Config, parse_duration_ms, plan_of
from streaming.kafka_clients import KafkaError
from streaming.serving.api import GroupDetail, Problem
from streaming.serving.history import READ_S, History, ReadHistory, read_history
from streaming.serving.view import View
from streaming.silences import quiet_at

DEFAULT_BACK_MS = 3_600_000
_HTTP_TIMEOUT_S = 15.0
_ALERTS_MAX = 1_000
_EPOCH_DIGITS = re.compile(r"[0-9]{10,16}")
_FOLDED = frozenset({".", ".."})
_SINCE_MAX = 64
"""Longest time or span in characters; numbers of hundreds of digits are slow to read."""

_Answer = TypeVar("_Answer")


class ExplainError(Exception):
    """The story cannot be told; the message is for the user."""


def parse_since(text: str, now_ms: int) -> int:
    """Return epoch ms for a time (ISO 8601, UTC unless given, or epoch ms) or for a span before now.

    Raises:
        ValueError: it is neither, or lies before 1970.
    """
    given = text.strip()
    if len(given) <= _SINCE_MAX:
        since_ms = _moment_ms(given, now_ms)
        if since_ms is not None and is_time_ms(since_ms):
            return since_ms
    raise ValueError(
        f"{text[:_SINCE_MAX]!r} is neither a time since 1970 nor a span back to one; "
        'write for example "2h", "30m" or "2026-11-21T03:00"'
    )


def _moment_ms(given: str, now_ms: int) -> int | None:
    if _EPOCH_DIGITS.fullmatch(given):
        return int(given)
    with suppress(ValueError):
        return now_ms - parse_duration_ms(given)
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(given)
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)
    return None


# --- over HTTP ---------------------------------------------------------------------------------------


def explain_of_view(
    view: View, read: ReadHistory | None, cluster: str, group: str, *, since_ms: int, now_ms: int
) -> Explanation | None:
    """Return the story of a group that the running job watches, or that the topics remember."""
    detail = view.group(cluster, group)
    past = read(cluster, group, since_ms) if read else History([], [], [])
    listed = view.alerts(status="", cluster=cluster, group=group, limit=_ALERTS_MAX)
    alerts = listed.alerts
    if detail is None and not past.transitions and not past.alerts and not alerts:
        return None
    return explain(
        cluster,
        group,
        [*past.transitions, *(detail.transitions if detail else ())],
        [*past.alerts, *alerts],
        since_ms=since_ms,
        until_ms=now_ms,
        present=_present(detail),
        notes=[*past.notes, *_silenced_notes(listed.alerts, listed.silenced_by)],
    )


def _silenced_notes(alerts: Sequence[Alert], silenced: Mapping[str, Silenced]) -> list[str]:
    """Return a sentence for each open alert that is silenced."""
    notes = []
    for alert in {one.id: one for one in sorted(alerts, key=lambda one: one.revision)}.values():
        why = silenced.get(alert.id)
        if why is not None and alert.status is AlertStatus.FIRING:
            who = f" by {why.author}" if why.author else " by the configuration"
            comment = f": {why.comment}" if why.comment else ""
            notes.append(f"{alert.name} is silenced{who}{comment}.")
    return notes


def _present(detail: GroupDetail | None) -> Present:
    if detail is None:
        return Present()
    lag = [(lag.topic, lag.records, lag.seconds) for lag in detail.lag]
    return Present(report=detail.report, lag=lag, reread=_reread(detail.report))


def _reread(report: GroupReport | None) -> tuple[int, int] | None:
    """Return when the last rebalance ended and how many records were read again; None if unknown."""
    last = None if report is None else report.last_rebalance
    if report is None or last is None or "reread" not in last:
        return None
    ended_ms = int(last["ended_at_ms"])
    return (ended_ms, int(last["reread"])) if report.last_commit_ms > ended_ms else None


# --- from the command line ---------------------------------------------------------------------------


def explain_by_url(url: str, cluster: str, group: str, since_ms: int) -> Explanation:
    """Ask a running groupwatch for the story.

    Raises:
        ExplainError: it does not answer, or knows no such group.
    """
    path = group_path(cluster, group, "/explain", {"since": str(since_ms)})
    return answer_of(JobAddress(url), path, Explanation)


def answer_of(job: JobAddress, path: str, kind: type[_Answer]) -> _Answer:
    """Return a running groupwatch's answer.

    Raises:
        ExplainError: it does not answer, or refuses; the message is its word.
    """
    try:
        answer = ask(job, path, timeout_s=_HTTP_TIMEOUT_S)
    except TROUBLE as error:
        raise ExplainError(
            f"no groupwatch answers at {job.shown}: {error or type(error).__name__}"
        ) from error
    try:
        if answer.status_code == 200:
            return msgspec.json.decode(answer.content, type=kind)
        problem = msgspec.json.decode(answer.content, type=Problem).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ExplainError(
            f"the server at {job.shown} is not groupwatch (HTTP {answer.status_code})"
        ) from None
    raise ExplainError(problem)


def explain_by_config(
    config: Config, cluster: ClusterConfig, group: str, *, since_ms: int, now_ms: int
) -> Explanation:
    """Read the story from the topics, and the present state from the running job if it answers.

    Raises:
        ExplainError: Kafka does not answer, or neither knows the group.
    """
    known = known_by_config(config, cluster, group, since_ms)
    return explain_known(config, cluster.name, group, known, since_ms=since_ms, now_ms=now_ms)


class Known(NamedTuple):
    """What the topics remember of a group, and what the running job knows."""

    past: History
    detail: GroupDetail | None
    note: str
    """Why the job says nothing; "": it does, or it knows no such group."""


def known_by_config(config: Config, cluster: ClusterConfig, group: str, since_ms: int) -> Known:
    """Read the topics, and ask the running job.

    Raises:
        ExplainError: Kafka does not answer, or neither knows the group.
    """
    try:
        past = read_history(plan_of(config, cluster), group, since_ms, READ_S)
    except KafkaError as error:
        raise ExplainError(f"the topics of {cluster.name} cannot be read: {error}") from error
    detail, note = _ask_detail(job_of(config), cluster.name, group)
    if detail is None and not past.transitions and not past.alerts:
        raise ExplainError(f"{no_group(group, cluster.name)}{f' {note}' if note else ''}")
    return Known(past, detail, note)


def explain_known(
    config: Config, cluster: str, group: str, known: Known, *, since_ms: int, now_ms: int
) -> Explanation:
    """Return the story of what is known."""
    past, detail, note = known
    return explain(
        cluster,
        group,
        [*past.transitions, *(detail.transitions if detail else ())],
        [*past.alerts, *(detail.alerts if detail else ())],
        since_ms=since_ms,
        until_ms=now_ms,
        present=_present(detail),
        notes=[*past.notes, *([note] if note else []), *_silenced_by(config, past.alerts, now_ms)],
    )


def _silenced_by(config: Config, alerts: Sequence[Alert], now_ms: int) -> list[str]:
    """Return a sentence for each open alert that the configuration or a silences topic silences."""
    if all(alert.status is AlertStatus.RESOLVED for alert in alerts):
        return []
    quiet = quiet_at(config)
    found = {alert.id: quiet.silenced(alert, now_ms) for alert in alerts}
    return _silenced_notes(alerts, {name: why for name, why in found.items() if why is not None})


def no_group(group: str, cluster: str) -> str:
    """Return the sentence about an unknown group."""
    return f"there is no group {group!r} in cluster {cluster!r}."


def _ask_detail(job: JobAddress, cluster: str, group: str) -> tuple[GroupDetail | None, str]:
    """Return the running job's facts about the group, or why there are none ("": it knows no such group)."""
    try:
        answer = ask(job, group_path(cluster, group), timeout_s=3.0)
        if answer.status_code == 404:
            return None, ""
        if answer.status_code in (401, 403):
            return (
                None,
                f"The job at {job.shown} wants another login, so this story comes from the topics only.",
            )
        return msgspec.json.decode(answer.content, type=GroupDetail), ""
    except (*TROUBLE, OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return (
            None,
            f"No running groupwatch answers at {job.shown}, so this story comes from the topics only.",
        )


def group_path(cluster: str, group: str, what: str = "", query: Mapping[str, str] | None = None) -> str:
    """Return the address of a group's facts; clients and proxies fold ``.`` and ``..`` in paths."""
    named, path = dict(query or {}), f"/api/v1/groups/{quote(cluster, safe='')}/{quote(group, safe='')}{what}"
    if {cluster, group} & _FOLDED:
        named, path = {"cluster": cluster, "group": group} | named, f"/api/v1/group{what}"
    return f"{path}?{urlencode(named)}" if named else path


# --- captured logs -----------------------------------------------------------------------------------


def explain_replay(
    happened: Sequence[Transition | Alert],
    cluster: str,
    group: str | None,
    last_ms: int,
    reports: Mapping[str, GroupReport],
) -> list[Explanation]:
    """Return the stories of all groups, or of one, in replayed material.

    ``reports`` are the groups' final reports.

    Raises:
        ExplainError: there is no such group in it.
    """
    groups = replayed_groups(happened, group)
    moves = [one for one in happened if isinstance(one, Transition)]
    alerts = [one for one in happened if isinstance(one, Alert)]
    until_ms = max([last_ms, *(one.at_ms for one in moves)])
    return [
        explain(
            cluster,
            name,
            moves,
            alerts,
            since_ms=-1,
            until_ms=until_ms,
            present=Present(reread=_reread(reports.get(name))),
        )
        for name in groups
    ]


def replayed_groups(happened: Sequence[Transition | Alert], group: str | None) -> list[str]:
    """Return the groups in replayed material, or the one that is asked for.

    Raises:
        ExplainError: there is no such group in it.
    """
    groups = list(dict.fromkeys(one.group for one in happened if one.group))
    if group is None:
        return groups
    if group not in groups:
        known = f"; there are {', '.join(sorted(groups)[:10])}" if groups else ""
        raise ExplainError(f"there is no group {group!r} in what was replayed{known}.")
    return [group]


def print_explanations(told: Sequence[Explanation], *, as_json: bool) -> None:
    """Print stories to stdout: text with an empty line between, or JSON Lines."""
    if as_json:
        for one in told:
            sys.stdout.write(msgspec.json.encode(one).decode() + "\n")
        return
    sys.stdout.write("\n".join(as_text(one) for one in told))
