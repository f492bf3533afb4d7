"""``groupwatch explain``: reads a group's story for a terminal, over HTTP, and from captured logs.

``alerts.story`` words it.  A running job knows the present.  The past is in the topics, so a story reaches
back before the job's own memory, and across its restarts.
"""

import re
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from alerts.alert import Alert, Refused, read_alert, span, times
from alerts.delivery import wall_clock_ms
from alerts.story import Explanation, Present, as_text, explain, transition_refusal
from coordinator_model.observations import is_time_ms
from coordinator_model.shard import GroupReport
from coordinator_model.state import Transition
from streaming.config import ClusterConfig, ClusterPlan, Config, parse_duration_ms, plan_of
from streaming.kafka_clients import READ_COMMITTED, KafkaConsumer, KafkaError, TopicPartition, consumer
from streaming.serving.api import GroupDetail, Problem
from streaming.serving.view import View

DEFAULT_BACK_MS = 3_600_000
READ_S = 20.0
"""How long a search through a cluster's topics may take from the command line …"""
READ_HTTP_S = 5.0
"""… and over HTTP, where one search runs at a time."""
_HTTP_TIMEOUT_S = 15.0
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_ALERTS_MAX = 1_000
RECORDS_MAX = 50_000
"""Most records of one group and topic in a story: what a storm makes in days."""
_SIZE_MAX = 64 << 20
"""Most bytes of those: forged records are long."""
_EPOCH_DIGITS = re.compile(r"[0-9]{10,16}")
_SINCE_MAX = 64
"""Longest time or span in characters; numbers of hundreds of digits are slow to read."""


class ExplainError(Exception):
    """The story cannot be told; the message is for the user."""


class History(NamedTuple):
    """The topics' records of one group."""

    transitions: list[Transition]
    alerts: list[Alert]
    notes: list[str]
    """What could not be read, as sentences."""


ReadHistory = Callable[[str, str, int], History]
"""(cluster, group, since in epoch ms) → the topics' records."""


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


# --- the topics --------------------------------------------------------------------------------------


def read_history(plan: ClusterPlan, group: str, since_ms: int, within_s: float) -> History:
    """Return the records of one group in a cluster's transitions and alerts topics.

    Raises:
        kafka.errors.KafkaError: Kafka does not answer.
    """
    search = _Search(plan.cluster, group, time.monotonic() + within_s)
    reader = consumer(plan.output, isolation_level=READ_COMMITTED)
    try:
        moves = search.topic(reader, plan.transitions_topic, since_ms, Transition, _refused_transition)
        told = search.topic(reader, plan.alerts_topic, -1, Alert, _refused_alert)
    finally:
        reader.close()
    notes = []
    if not search.is_whole:
        notes.append(
            f"The topics could not be searched to their ends within {span(within_s * 1_000)}, so the newest "
            "events may be missing; ask for a shorter time."
        )
    return History(moves, told, [*notes, *search.notes])


T = TypeVar("T", Transition, Alert)


def _refused_transition(one: Transition, record: Any, now_ms: int) -> Refused | None:
    return transition_refusal(one, record.key, timestamp_ms=record.timestamp, now_ms=now_ms)


def _refused_alert(_: Alert, record: Any, now_ms: int) -> Refused | None:
    found = read_alert(record.key, record.value, timestamp_ms=record.timestamp, now_ms=now_ms)
    return found if isinstance(found, Refused) else None


class _Newest(Generic[T]):
    """The newest records, up to the limits of a story."""

    def __init__(self) -> None:
        self._kept: deque[tuple[T, int]] = deque()
        self._size = 0
        self.dropped = 0
        """How many older ones were dropped."""

    def add(self, one: T, size: int) -> None:
        """Add one record of ``size`` bytes."""
        self._kept.append((one, size))
        self._size += size
        while len(self._kept) > RECORDS_MAX or self._size > _SIZE_MAX:
            self._size -= self._kept.popleft()[1]
            self.dropped += 1

    def all(self) -> list[T]:
        """Return the records in their order."""
        return [one for one, _ in self._kept]


class _Search:
    """A search for one group's records in several topics, within one time limit."""

    def __init__(self, cluster: str, group: str, deadline_s: float) -> None:
        self._cluster = cluster
        self._group = group
        # Looking for the name first saves decoding other groups' records; the decoded value decides.
        self._name = msgspec.json.encode(group)
        self._deadline_s = deadline_s
        self.is_whole = True
        """Every topic was read to its end."""
        self.notes: list[str] = []
        """What was left out, as sentences."""

    def topic(
        self,
        reader: KafkaConsumer,
        topic: str,
        since_ms: int,
        kind: type[T],
        refused: Callable[[T, Any, int], Refused | None],
    ) -> list[T]:
        """Return the group's records in one topic that were written since then (-1: all).

        Records that ``refused`` gives a reason against are counted and left out.
        """
        partitions = [TopicPartition(topic, n) for n in sorted(reader.partitions_for_topic(topic) or ())]
        found: _Newest[T] = _Newest()
        reasons: Counter[str] = Counter()
        now_ms = wall_clock_ms()
        for record in self._records(reader, partitions, since_ms):
            one = self._decoded(record.value, kind)
            why = refused(one, record, now_ms) if one else None
            if why is not None:
                reasons[why.reason] += 1
            elif one is not None:
                found.add(one, len(record.value))
        self._note(topic, reasons, found.dropped)
        return found.all()

    def _records(
        self, reader: KafkaConsumer, partitions: list[TopicPartition], since_ms: int
    ) -> Iterator[Any]:
        if not partitions:
            return
        reader.assign(partitions)
        _seek(reader, partitions, since_ms)
        ends = reader.end_offsets(partitions)
        while any(reader.position(partition) < ends[partition] for partition in partitions):
            if time.monotonic() > self._deadline_s:
                self.is_whole = False
                return
            for records in reader.poll(timeout_ms=200).values():
                yield from (one for one in records if one.value and self._name in one.value)

    def _decoded(self, value: bytes, kind: type[T]) -> T | None:
        try:
            one = msgspec.json.decode(value, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None  # anybody may write into a topic
        # Several clusters may write to the same topics.
        return one if (one.group, one.cluster) == (self._group, self._cluster) else None

    def _note(self, topic: str, reasons: Counter[str], dropped: int) -> None:
        if reasons:
            why = ", ".join(sorted(reasons))
            self.notes.append(
                f"Left out of the story: {times(reasons.total(), 'record')} of {topic} that no groupwatch "
                f"can have written ({why})."
            )
        if dropped:
            self.notes.append(f"Left out of the story: the oldest {times(dropped, 'record')} of {topic}.")


def _seek(reader: KafkaConsumer, partitions: list[TopicPartition], since_ms: int) -> None:
    if since_ms < 0:
        reader.seek_to_beginning(*partitions)
        return
    starts = reader.offsets_for_times(dict.fromkeys(partitions, since_ms))
    for partition in partitions:
        start = starts.get(partition)
        if start is None:
            reader.seek_to_end(partition)
        else:
            reader.seek(partition, start.offset)


# --- over HTTP ---------------------------------------------------------------------------------------


class TopicReader:
    """Reads the past for the HTTP server, one search at a time."""

    def __init__(self, config: Config) -> None:
        self._plans = {cluster.name: plan_of(config, cluster) for cluster in config.clusters}
        self._busy = threading.Lock()

    def __call__(self, cluster: str, group: str, since_ms: int) -> History:
        """Return the topics' records, or why they cannot be read."""
        plan = self._plans.get(cluster)
        if plan is None:
            return History([], [], [])
        if not self._busy.acquire(timeout=READ_HTTP_S):
            return History(
                [],
                [],
                ["Another story is being read; this one comes from the job's memory only."],
            )
        try:
            return read_history(plan, group, since_ms, READ_HTTP_S)
        except KafkaError as error:
            why = f"The topics could not be read ({type(error).__name__}); this is the job's memory only."
            return History([], [], [why])
        finally:
            self._busy.release()


def explain_of_view(
    view: View, read: ReadHistory | None, cluster: str, group: str, *, since_ms: int, now_ms: int
) -> Explanation | None:
    """Return the story of a group that the running job watches, or that the topics remember."""
    detail = view.group(cluster, group)
    past = read(cluster, group, since_ms) if read else History([], [], [])
    alerts = view.alerts(status="", cluster=cluster, group=group, limit=_ALERTS_MAX).alerts
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
        notes=past.notes,
    )


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
    path = f"/api/v1/groups/{quote(cluster, safe='')}/{quote(group, safe='')}/explain"
    try:
        answer = _get(f"{url.rstrip('/')}{path}?since={since_ms}", _HTTP_TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ExplainError(f"no groupwatch answers at {url}: {error or type(error).__name__}") from error
    try:
        if answer.status_code == 200:
            return msgspec.json.decode(answer.content, type=Explanation)
        problem = msgspec.json.decode(answer.content, type=Problem).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ExplainError(f"the server at {url} is not groupwatch (HTTP {answer.status_code})") from None
    raise ExplainError(problem)


def _get(url: str, timeout_s: float) -> httpx.Response:
    """Return an answer without any proxy, whatever the environment says.

    Raises:
        httpx.HTTPError: there is no answer.
        httpx.InvalidURL: the address is invalid.
    """
    is_here = httpx.URL(url).host in _HERE
    return httpx.get(url, timeout=timeout_s, trust_env=not is_here)


def explain_by_config(
    config: Config, cluster: ClusterConfig, group: str, *, since_ms: int, now_ms: int
) -> Explanation:
    """Read the story from the topics, and the present state from the running job if it answers.

    Raises:
        ExplainError: Kafka does not answer, or neither knows the group.
    """
    plan = plan_of(config, cluster)
    try:
        past = read_history(plan, group, since_ms, READ_S)
    except KafkaError as error:
        raise ExplainError(f"the topics of {cluster.name} cannot be read: {error}") from error
    detail, note = _ask_detail(config, cluster.name, group)
    if detail is None and not past.transitions and not past.alerts:
        raise ExplainError(f"{no_group(group, cluster.name)}{f' {note}' if note else ''}")
    return explain(
        cluster.name,
        group,
        [*past.transitions, *(detail.transitions if detail else ())],
        [*past.alerts, *(detail.alerts if detail else ())],
        since_ms=since_ms,
        until_ms=now_ms,
        present=_present(detail),
        notes=[*past.notes, *([note] if note else [])],
    )


def no_group(group: str, cluster: str) -> str:
    """Return the sentence about an unknown group."""
    return f"there is no group {group!r} in cluster {cluster!r}."


def _ask_detail(config: Config, cluster: str, group: str) -> tuple[GroupDetail | None, str]:
    """Return the running job's facts about the group, or why there are none ("": it knows no such group)."""
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(config.http.host, config.http.host)  # noqa: S104
    base = config.http.external_url.rstrip("/") or f"http://{host}:{config.http.port}"
    try:
        answer = _get(f"{base}/api/v1/groups/{quote(cluster, safe='')}/{quote(group, safe='')}", 3.0)
        if answer.status_code == 404:
            return None, ""
        return msgspec.json.decode(answer.content, type=GroupDetail), ""
    except (httpx.HTTPError, httpx.InvalidURL, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None, f"No running groupwatch answers at {base}, so this story comes from the topics only."


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
    groups = list(dict.fromkeys(one.group for one in happened if one.group))
    if group is not None and group not in groups:
        known = f"; there are {', '.join(sorted(groups)[:10])}" if groups else ""
        raise ExplainError(f"there is no group {group!r} in what was replayed{known}.")
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
        for name in ([group] if group is not None else groups)
    ]


def print_explanations(told: Sequence[Explanation], *, as_json: bool) -> None:
    """Print stories to stdout: text with an empty line between, or JSON Lines."""
    if as_json:
        for one in told:
            sys.stdout.write(msgspec.json.encode(one).decode() + "\n")
        return
    sys.stdout.write("\n".join(as_text(one) for one in told))
