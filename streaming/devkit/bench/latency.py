"""The row about latency: from the broker's log time of an incident to the webhook's receipt of its alert.

A real broker ships its logs, the job runs as operators run it, and a hundred groups are active.  In one group
after another a member falls silent, and later one leaves because it polled too late.  The broker logs a line
about each; the measurement starts at that line's time.
"""

import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from coordinator_model.kafka import POLL_TIMEOUT_REASON
from streaming.devkit.bench.material import Population
from streaming.devkit.bench.members import LightMember
from streaming.devkit.bench.processes import cpu_by_kind
from streaming.devkit.bench.real_job import RealJob, Stage, await_that, fill, running
from streaming.devkit.bench.rig import BenchError, say
from streaming.devkit.bench.targets import percentile
from streaming.devkit.kafka import EmbeddedKafka, ReceivedAlert, WebhookProbe

TOPICS = 20
"""Of the groups beside."""
GROUPS = 100
SESSION_MS = 6_000
HEARTBEAT_S = 2.0
PAUSE_S = 0.4
"""Between two incidents."""
_LAST_WORD_S = 30.0
"""How long an alert may be on its way before it counts as missing."""
_LINE = re.compile(r"^\[(\S+ \S+),(\d{3})\] INFO .*?\b[Mm]ember (\S+) (?:in group|has left group)(.*)$")
Moments = dict[tuple[str, str], int]
"""Alert name and group -> log time of the line that caused it, in milliseconds."""


def latency(folder: Path, *, scale: float, cores: int, beside: int = 0) -> dict[str, Any]:
    """Measure, with so many quiet groups beside those that have incidents; returns the row.

    Raises:
        BenchError: members did not join, the job did not get ready, or no alert came.
    """
    count = max(5, int(GROUPS * min(1.0, scale)))
    others = Population(beside, topics=TOPICS)
    with EmbeddedKafka(folder / "kafka", rebalance_delay_ms=500) as kafka, WebhookProbe() as probe:
        if beside:
            fill(kafka, others, "latency")
        job = RealJob(Stage(kafka, folder, cores, others), "latency", webhook=probe.url)
        with running(job):
            began, spent, before = time.monotonic(), _cpu_s(job), job.batches()
            moments = _incidents(kafka, probe, count)
            took_s = time.monotonic() - began
            batches, cpu_s = max(1, job.batches() - before), _cpu_s(job) - spent
            return _row(moments, probe.firing(), count) | {
                "groups_beside": beside,
                "batch_s_mean": round(took_s / batches, 3),
                "cpu_s_a_minute": round(60 * cpu_s / took_s, 1),
            }


def latency_beside(folder: Path, *, scale: float, cores: int) -> dict[str, Any]:
    """The same beside 10,000 other groups."""
    return latency(folder, scale=scale, cores=cores, beside=max(100, int(10_000 * min(1.0, scale))))


def _cpu_s(job: RealJob) -> float:
    return sum(cpu_by_kind(job.pid).values())


def _incidents(kafka: EmbeddedKafka, probe: WebhookProbe, count: int) -> Moments:
    """Let groups live and members fail; returns when each did, once all alerts are there or overdue."""
    say(f"{count} groups join")
    crew = Crew(kafka.bootstrap_servers, count)
    crew.start()
    try:
        say("members fall silent, one group after another")
        silent = crew.each(LightMember.die)
        time.sleep(SESSION_MS / 1000)
        say("members leave because they polled too late")
        late = crew.each(LightMember.leave_late)
        moments = _await_lines(
            kafka.log_files(1)[0], {"SessionTimeout": silent, "PollIntervalExceeded": late}
        )
        _await_alerts(probe, moments)
    finally:
        crew.end()
    return moments


class Crew:
    """Two members per group: one that stays, and one that is made to fail."""

    def __init__(self, bootstrap: str, count: int) -> None:
        self._bootstrap = bootstrap
        self._stay = [self._member(number, "stays") for number in range(count)]
        self._suffer = [self._member(number, "suffers") for number in range(count)]

    def _member(self, number: int, role: str) -> LightMember:
        group = f"bench-{number:03d}"
        return LightMember(
            self._bootstrap, group, f"{role}-{number:03d}", session_ms=SESSION_MS, heartbeat_s=HEARTBEAT_S
        )

    def start(self) -> None:
        """Let all join, and return when each has its assignment."""
        for member in (*self._stay, *self._suffer):
            member.start()
        await_that(self._are_stable, "the members did not join")
        time.sleep(2 * HEARTBEAT_S)

    def _are_stable(self) -> bool:
        everyone = [*self._stay, *self._suffer]
        failures = [member.failure for member in everyone if member.failure]
        if failures:
            raise BenchError(f"a member failed: {failures[0]}")
        return all(member.is_stable.is_set() for member in everyone)

    def each(self, act: Callable[[LightMember], None]) -> dict[str, str]:
        """Apply ``act`` to one member after the other and replace each; return member id -> group."""
        done = {}
        for number, member in enumerate(self._suffer):
            done[member.member_id] = member.group
            act(member)
            time.sleep(PAUSE_S)
            self._suffer[number] = self._member(number, "suffers")
        time.sleep(SESSION_MS / 1000)
        for member in self._suffer:
            member.start()
        await_that(self._are_stable, "the members did not join again")
        return done

    def end(self) -> None:
        """End all members without leaving their groups."""
        for member in (*self._stay, *self._suffer):
            member.die()


# --- lines and alerts ---------------------------------------------------------------------------------


def moments_in(lines: Iterator[str], happened: dict[str, dict[str, str]]) -> Moments:
    """Return when the broker wrote that each member was removed.

    Args:
        lines: of ``server.log``.
        happened: alert name -> member id -> group.
    """
    alerts = {
        member_id: (alert, group)
        for alert, members in happened.items()
        for member_id, group in members.items()
    }
    found: Moments = {}
    for line in lines:
        match = _LINE.match(line)
        subject = alerts.get(match[3]) if match else None
        if match is None or subject is None or subject in found:
            continue
        sign = "has failed" if subject[0] == "SessionTimeout" else POLL_TIMEOUT_REASON
        if sign in match[4]:
            found[subject] = _line_ms(match[1], match[2])
    return found


def _line_ms(second: str, milli: str) -> int:
    moment = datetime.strptime(second, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1000 + int(milli)


def _await_lines(log: Path, happened: dict[str, dict[str, str]]) -> Moments:
    found: Moments = {}

    def are_there() -> bool:
        with log.open(encoding="utf-8", errors="replace") as lines:
            found.update(moments_in(lines, happened))
        return len(found) == sum(map(len, happened.values()))

    await_that(are_there, "the broker did not tell of every incident", 60)
    return found


def _await_alerts(probe: WebhookProbe, moments: Moments) -> None:
    deadline = time.monotonic() + _LAST_WORD_S
    while time.monotonic() < deadline and not moments.keys() <= {told.subject for told in probe.firing()}:
        time.sleep(0.1)


def seconds_to(moments: Moments, told: list[ReceivedAlert]) -> dict[tuple[str, str], float]:
    """Return for each incident how long it took until its alert was first received."""
    seconds: dict[tuple[str, str], float] = {}
    for one in told:
        moment = moments.get(one.subject)
        if moment is not None:
            seconds.setdefault(one.subject, (one.received_at_ms - moment) / 1000)
    return seconds


def _row(moments: Moments, told: list[ReceivedAlert], groups: int) -> dict[str, Any]:
    seconds = seconds_to(moments, told)
    if not seconds:
        raise BenchError("no alert arrived")
    values = list(seconds.values())
    row: dict[str, Any] = {
        "groups": groups,
        "incidents": len(moments),
        "alerts": len(values),
        "p50_s": round(percentile(values, 0.5), 3),
        "p99_s": round(percentile(values, 0.99), 3),
        "max_s": round(max(values), 3),
    }
    for name in sorted({name for name, _ in seconds}):
        row[f"p50_s_{name}"] = round(
            percentile([value for (alert, _), value in seconds.items() if alert == name], 0.5), 3
        )
    return row
