"""A quiet cluster: the request log is raised for groups in trouble, tells who it is, and is put back."""

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from kafka.structs import TopicPartition

from coordinator_model.kafka.hashing import shard_of
from coordinator_model.shard.cluster import REQUEST_LOGGER
from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.driver.evidence.journal import Journal
from streaming.driver.evidence.switching import Switch
from tests.live.support.stage import Job, Pager, alerts_of, await_that, lines_of, need_jars
from tests.live.support.staged import Staged

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

RAISED_S, EVERY_S, SILENT_S = 25, 45, 10
PARTITIONS = 8
STUCK, LATE = "stuck", "late"
CALM = next(
    name
    for name in map("calm-{}".format, range(PARTITIONS**2))
    if shard_of(name, PARTITIONS) not in {shard_of(STUCK, PARTITIONS), shard_of(LATE, PARTITIONS)}
)
"""A group of a shard of which no log has told anything since the monitor's start."""
AT_EASE: dict[str, Any] = {"session_timeout_ms": 10_000, "heartbeat_interval_ms": 3_000}
PATIENT: dict[str, Any] = {"session_timeout_ms": 30_000, "max_poll_interval_ms": 300_000}


@dataclass
class Story:
    """What was seen of it."""

    levels: list[str] = field(default_factory=list)
    """Of the request logger, after each act."""
    alerts: list[dict[str, Any]] = field(default_factory=list)
    """Of the first life."""
    raised_s: float = 0.0
    metrics: str = ""
    entries: list[bool] = field(default_factory=list)
    """Whether the journal says that the broker is raised: after the kill, and after the next start."""


class Stage(Staged[Story]):
    """The cluster with its job while it is played."""

    def __init__(self, kafka: EmbeddedKafka, job: Job) -> None:
        super().__init__(kafka, job, Story(), "quiet")
        self._switch = Switch(kafka.address)

    def end(self) -> None:
        """End every process and client."""
        super().end()
        self._switch.close()

    def level(self) -> str:
        """Return the request logger's level."""
        return self._switch.levels(1)[REQUEST_LOGGER]

    def await_level(self, name: str) -> None:
        """Return when it is so, and note it."""
        await_that(lambda: self.level() == name, f"the request log is at {name}")
        self.story.levels.append(name)

    def is_blamed(self, group: str, name: str, client_id: str, basis: str) -> Callable[[], bool]:
        """Return whether an open alert names this one alone, and how sure that is."""

        def blamed() -> bool:
            answer = self.job.get(f"/api/v1/alerts?cluster=live&group={group}")
            found = [] if answer is None else answer.json()["alerts"]
            return [
                (culprit["client_id"], culprit["basis"])
                for one in found
                if one["name"] == name
                for culprit in one["culprits"]
            ] == [(client_id, basis)]

        return blamed

    def is_in_journal(self) -> bool:
        """Return whether the journal says that the broker is raised."""
        entry = Journal(self.kafka.address, "groupwatch-evidence", "live").read()[1]
        return entry.back_at_ms is None


def _settle(stage: Stage) -> None:
    """A level that the operator chose, and a group at rest, of which the log that we read tells nothing."""
    stage.scene.set_level("INFO", REQUEST_LOGGER)
    for number in range(2):
        stage.scene.member(CALM, f"calm-{number}", **AT_EASE)
    await_that(stage.scene.is_stable(CALM, 2), f"{CALM} is Stable")
    await_that(
        lambda: any(
            "Assignment received from leader" in line.message and CALM in line.message
            for line, _ in lines_of(stage.kafka.address)
        ),
        f"the lines about {CALM} are shipped",
    )
    partitions = [TopicPartition("groupwatch-events", number) for number in range(4)]
    stage.scene.admin.delete_records(dict.fromkeys(partitions, -1))


def _get_into_trouble(stage: Stage) -> None:
    scene = stage.scene
    late = [scene.member(LATE, f"late-{number}", **PATIENT) for number in range(2)]
    scene.silent_leader(STUCK, "stuck-leader")
    await_that(scene.is_in(STUCK, "CompletingRebalance"), "stuck waits for its leader")
    await_that(scene.is_stable(LATE, 2), "late is Stable")
    for number in range(2):
        scene.member(STUCK, f"stuck-{number}", request_timeout_ms=6_000, **PATIENT)
    late[1].stall()
    scene.member(LATE, "late-2", **PATIENT)


def _seek_evidence(stage: Stage) -> None:
    """Raised for a while, which tells who it is; silence after that alarms nobody."""
    stage.await_level("DEBUG")
    began = time.monotonic()
    await_that(
        stage.is_blamed(STUCK, "StuckCompletingRebalance", "stuck-leader", "observed"), "leader observed"
    )
    await_that(stage.is_blamed(LATE, "StuckPreparingRebalance", "late-1", "inferred"), "late-1 is awaited")
    stage.await_level("INFO")
    stage.story.raised_s = time.monotonic() - began
    time.sleep(SILENT_S + 3)  # SourceSilent would be told by then
    stage.story.metrics = stage.job.metrics()
    stage.story.alerts = alerts_of(stage.kafka.address)


def _die_while_raised(stage: Stage) -> None:
    """Power cut and lost checkpoint at once."""
    stage.scene.set_level("WARN", REQUEST_LOGGER)
    stage.await_level("DEBUG")
    stage.job.kill()
    shutil.rmtree(stage.job.checkpoint)
    stage.story.levels.append(stage.level())
    stage.story.entries.append(stage.is_in_journal())
    stage.job.start()
    stage.await_level("WARN")
    await_that(lambda: not stage.is_in_journal(), "the journal says so")
    stage.story.entries.append(stage.is_in_journal())


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    need_jars()
    folder = tmp_path_factory.mktemp("evidence")
    cluster = EmbeddedKafka(
        folder / "kafka",
        offsets_partitions=PARTITIONS,
        rebalance_delay_ms=500,
        request_log=False,
        heap="384m",
    )
    with cluster as kafka, Pager() as pager:
        kafka.create_topic("orders", partitions=4)
        rules = {
            "stuck_completing_rebalance": {"after": "8s"},
            "stuck_preparing_rebalance": {"after": "8s"},
            "source_silent": {"after": f"{SILENT_S}s"},
        }
        evidence = {"enabled": True, "for": f"{RAISED_S}s", "every": f"{EVERY_S}s"}
        watched = {
            "name": "live",
            "bootstrap_servers": kafka.bootstrap_servers.split(","),
            "evidence": evidence,
        }
        job = Job(kafka.bootstrap_servers, folder, pager, rules, {"clusters": [watched]})
        stage = Stage(kafka, job)
        try:
            _settle(stage)
            job.start()
            job.await_ready()
            _get_into_trouble(stage)
            _seek_evidence(stage)
            _die_while_raised(stage)
            yield stage.story
        finally:
            stage.end()


def _told(story: Story, group: str) -> list[dict[str, Any]]:
    return [one for one in story.alerts if one["group"] == group]


def test_the_level_goes_up_for_a_while_and_comes_back(story: Story) -> None:
    """By its time, and by the next start after a crash, whatever it was before."""
    assert story.levels == ["DEBUG", "INFO", "DEBUG", "DEBUG", "WARN"]
    assert RAISED_S - 5 <= story.raised_s <= RAISED_S + 5
    assert story.entries == [True, False]


def test_the_alert_is_told_again_with_the_culprit_that_was_found(story: Story) -> None:
    """What was a guess or a list of candidates in quiet mode is known now, under the same id."""
    known = []
    for group, name, basis in ((STUCK, "stuck-leader", "observed"), (LATE, "late-1", "inferred")):
        first, *later = _told(story, group)
        assert first["revision"] == 0
        assert {one["id"] for one in later} <= {first["id"]}
        told = [
            [(one["client_id"], one["basis"]) for one in alert["culprits"]] == [(name, basis)]
            for alert in (first, *later)
        ]
        assert any(told)
        known.append(told[0])
    # The level goes up for the first of them; the other may find it up already.
    assert not all(known)


def test_nobody_is_alarmed_by_the_switching(story: Story) -> None:
    """No source is silent and no member about to be expelled, on or off."""
    assert {(one["group"], one["name"]) for one in story.alerts} == {
        (STUCK, "StuckCompletingRebalance"),
        (LATE, "StuckPreparingRebalance"),
    }


def test_it_is_counted(story: Story) -> None:
    """As operators will look at it."""
    for sample in (
        'groupwatch_evidence_requests_total{cluster="live",outcome="raised"} 1.0',
        'groupwatch_evidence_requests_total{cluster="live",outcome="put_back"} 1.0',
        'groupwatch_evidence_brokers{cluster="live"} 0.0',
    ):
        assert sample in story.metrics
