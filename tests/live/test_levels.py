"""Levels of loggers that change while the job runs.

The request log is switched off and on: nobody is paged for it.  The coordinator's own log is switched
off, which Kafka does not tell: that lines are missing shows by what the topic says without them.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.devkit.kafka.log4j2 import COORDINATOR_LOGGERS, REQUEST_LOGGER
from tests.live.support import comparing
from tests.live.support.members import CALM_SESSION_MS, Member
from tests.live.support.stage import Job, Pager, alerts_of, await_that, need_jars, now_ms, records_of
from tests.live.support.staged import Staged

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

SILENT_S = 25.0
"""More than the 20 s within which the probe learns the level."""
SESSION_S = 40.0
OFF_S = 0.8 * SESSION_S
"""So long that every member seems about to be expelled when the log is back, if one counted its silence."""
CALM: dict[str, Any] = {"session_timeout_ms": round(SESSION_S * 1000), "heartbeat_interval_ms": 5_000}


@dataclass
class Story:
    """What was seen of it."""

    alerts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """All alerts so far, after each act."""
    watched_ms: tuple[int, int] = (0, 0)
    """From when until when the moves were played (epoch ms)."""
    transitions: list[dict[str, Any]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


class Stage(Staged[Story]):
    """The cluster with its job while it is played."""

    def note(self, act: str) -> None:
        """Keep what is told by now."""
        self.story.alerts[act] = alerts_of(self.kafka.address)

    def joins(self, group: str, members: int) -> None:
        """One more member, and we are told.

        By the time: on a busy machine a group may have completed more generations than it had members.
        """
        since_ms = now_ms()
        self.scene.member(group, f"{group}-{members - 1}", **CALM)
        await_that(self.scene.is_stable(group, members), f"{group} is Stable with {members}")
        await_that(
            lambda: any(
                (one["group"], one["to"]) == (group, "Stable") and one["at_ms"] >= since_ms
                for _, one in records_of(self.kafka.address, "groupwatch-transitions")
            ),
            f"{group} is told as Stable with {members}",
        )


def _request_lines(job: Job) -> int:
    counts = [
        float(line.rsplit(" ", 1)[1])
        for line in job.metrics().splitlines()
        if line.startswith("groupwatch_events_total{") and 'source="request_log"' in line
    ]
    return round(sum(counts))


def _switch(stage: Stage) -> Member:
    """Off and on again; returns a member of a group that came when it was on again."""
    for number in range(2):
        stage.scene.member("calm", f"calm-{number}", **CALM)
    await_that(stage.scene.is_stable("calm", 2), "calm is Stable")
    stage.job.start()
    stage.job.await_ready()
    since_ms, heard_from = now_ms(), time.monotonic()
    stage.joins("calm", 3)
    # By then the log is known to be regular: it spoke for twice that time, every five seconds.
    time.sleep(max(0.0, heard_from + 2 * SILENT_S + 7 - time.monotonic()))
    stage.note("full")
    stage.scene.set_level("WARN", REQUEST_LOGGER)
    begun = time.monotonic()
    await_that(_stands_still(stage.job), "no more requests are counted")
    still = _request_lines(stage.job)
    stage.joins("calm", 4)
    time.sleep(max(0.0, begun + OFF_S - time.monotonic()))
    stage.note("quiet")
    stage.scene.set_level("DEBUG", REQUEST_LOGGER)
    await_that(lambda: _request_lines(stage.job) > still, "requests are counted again")
    spoken_by = time.monotonic() + SESSION_S / 3 + 3
    member = _two_of_them(stage)
    time.sleep(max(7.0, spoken_by - time.monotonic()))  # by then every member has spoken, the new ones too
    stage.note("full again")
    stage.story.watched_ms = (since_ms, now_ms())
    return member


def _stands_still(job: Job) -> Callable[[], bool]:
    known = [(-1, time.monotonic())]

    def still() -> bool:
        now = _request_lines(job)
        if now != known[0][0]:
            known[0] = (now, time.monotonic())
        return time.monotonic() - known[0][1] > 6.0  # the members beat every five seconds

    return still


def _two_of_them(stage: Stage) -> Member:
    members = [
        stage.scene.member(
            "frozen", f"frozen-{number}", session_timeout_ms=session_ms, heartbeat_interval_ms=3_000
        )
        for number, session_ms in enumerate((CALM_SESSION_MS, 15_000))
    ]
    await_that(stage.scene.is_stable("frozen", 2), "frozen is Stable")
    return members[1]


def _freeze(stage: Stage, member: Member) -> None:
    """What only the request log can tell is told again."""
    member.freeze()
    await_that(lambda: _alerts_about(stage, "frozen"), "its silence is told")
    stage.note("frozen")
    member.thaw()


def _lose_lines(stage: Stage) -> None:
    """A generation of which the broker's INFO log says nothing."""
    stage.scene.set_level("WARN", *COORDINATOR_LOGGERS)
    stage.scene.member("unheard", "unheard-0", **CALM)
    await_that(lambda: _alerts_about(stage, ""), "the missing lines are told")
    stage.note("lost")


def _alerts_about(stage: Stage, group: str) -> list[dict[str, Any]]:
    return [one for one in alerts_of(stage.kafka.address) if one["group"] == group]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    need_jars()
    folder = tmp_path_factory.mktemp("levels")
    with EmbeddedKafka(folder / "kafka", offsets_partitions=8, heap="384m") as kafka, Pager() as pager:
        kafka.create_topic("orders", partitions=4)
        rules = {"source_silent": {"after": f"{SILENT_S:.0f}s"}}
        stage = Stage(kafka, Job(kafka.bootstrap_servers, folder, pager, rules), Story())
        try:
            _freeze(stage, _switch(stage))
            _lose_lines(stage)
            seen = stage.story
            seen.transitions = [one for _, one in records_of(kafka.address, "groupwatch-transitions")]
            seen.lines = kafka.log_files(1)[0].read_text(errors="replace").splitlines()
            yield seen
        finally:
            stage.end()


def test_switching_the_request_log_alarms_nobody(story: Story) -> None:
    """Off is no silence of a source or a member, and on again proves no silence before it."""
    for act, alerts in story.alerts.items():
        if act not in {"frozen", "lost"}:
            assert [(one["name"], one["group"], one["summary"]) for one in alerts] == [], act


def test_heartbeats_count_while_they_are_logged(story: Story) -> None:
    """The frozen member is announced, by its own silence."""
    (alert,) = [one for one in story.alerts["frozen"] if one["revision"] == 0]
    assert (alert["name"], alert["group"]) == ("SessionTimeoutImminent", "frozen")
    assert [(one["client_id"], one["basis"]) for one in alert["culprits"]] == [("frozen-1", "observed")]


def test_lines_that_are_missing_are_told(story: Story) -> None:
    """Which broker's log cannot be relied on any more, once."""
    (alert,) = [one for one in story.alerts["lost"] if not one["group"]]
    assert (alert["name"], alert["status"]) == ("SourceSilent", "firing")
    assert "coordinator's INFO log of broker 1" in alert["summary"]


def test_no_move_is_lost_or_made_up(story: Story) -> None:
    """In both modes every transition of the coordinator's log is told, once, with its cause."""
    since_ms, until_ms = story.watched_ms
    moves = [one for one in story.transitions if since_ms <= one["at_ms"] < until_ms]
    lines = comparing.logged([line for line in story.lines if since_ms <= _at_ms(line) < until_ms])
    assert len(lines) >= 6
    assert comparing.missing_and_extra(moves, lines) == ([], [])
    assert comparing.wrong_causes(moves, lines)[1] == []
    assert {one["basis"] for one in moves} == {"observed"}


def _at_ms(line: str) -> int:
    """Return a line's time, 0 for the rest of a stack trace."""
    try:
        at = datetime.strptime(line[1:24], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
    except ValueError:
        return 0
    return round(at.timestamp() * 1000)
