"""What a job says while it cannot work: a batch that fails again and again, and a JVM that is gone."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients.clients import admin_client
from tests.live.support.plain_job import JobProcess, ThreadedConsumer
from tests.live.support.stage import await_that

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

TRANSITIONS = "groupwatch-transitions"


@dataclass
class Story:
    """What the job said."""

    before: dict[str, Any] = field(default_factory=dict)
    failing: dict[str, Any] = field(default_factory=dict)
    health: tuple[int, str] = (0, "")
    alerts: list[dict[str, Any]] = field(default_factory=list)
    after: list[dict[str, Any]] = field(default_factory=list)
    lasted_s: float = 0.0
    code: int = 0
    log: str = ""


def _limit(address: KafkaAddress, largest: str) -> None:
    """Let the transitions topic take records of at most so many bytes."""
    admin = admin_client(address)
    try:
        wanted = ConfigResource(ConfigResourceType.TOPIC, TRANSITIONS, configs={"max.message.bytes": largest})
        admin.alter_configs([wanted])
    finally:
        admin.close()


def _ready(job: JobProcess) -> tuple[int, dict[str, Any]]:
    answer = job.get("/ready")
    return (0, {}) if answer is None else (answer.status_code, answer.json()["clusters"][0])


def _stalled(job: JobProcess, status: str) -> list[dict[str, Any]]:
    answer = job.get(f"/api/v1/alerts?status={status}")
    alerts = [] if answer is None else answer.json()["alerts"]
    return [one for one in alerts if one["name"] == "MonitorStalled"]


def _live(kafka: EmbeddedKafka, job: JobProcess) -> Story:
    story = Story()
    job.start()
    story.before = _ready(job)[1]
    _limit(kafka.address, "20")
    member = ThreadedConsumer(kafka.address, "busy", "steady")
    await_that(lambda: _ready(job)[0] == 503, "the job is not ready any more")
    await_that(lambda: bool(_stalled(job, "firing")), "MonitorStalled is told")
    story.alerts = _stalled(job, "firing")
    await_that(lambda: _ready(job)[1].get("deaths_in_a_row", 0) >= 3, "it has died three times")
    story.failing = _ready(job)[1]
    health = job.get("/healthz")
    story.health = (0, "") if health is None else (health.status_code, health.text)
    _limit(kafka.address, "1048588")
    await_that(lambda: _ready(job)[0] == 200, "the job is ready again")
    await_that(lambda: not _stalled(job, "firing"), "MonitorStalled is over")
    story.after = _stalled(job, "resolved")
    story.lasted_s, story.code = job.kill_spark()
    story.log = job.log.read_text()
    member.close()
    return story


@pytest.fixture(scope="module")
def story(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    job = JobProcess(kafka.address, tmp_path_factory.mktemp("failing"))
    try:
        yield _live(kafka, job)
    finally:
        job.close()


def test_a_ready_job_knows_where_topics_end(story: Story) -> None:
    """It was asked for, with all groups known, before anybody was told that the job is ready."""
    assert (story.before["query"], story.before["end_offsets"]) == ("running", "known")


def test_a_batch_that_fails_again_and_again_is_told(story: Story) -> None:
    """In ``/ready``, in ``/healthz`` and as MonitorStalled, with the error, until a batch ends."""
    assert story.failing["ready"] is False
    assert story.failing["deaths_in_a_row"] >= 3
    assert "MessageSizeTooLarge" in story.failing["error"]
    assert story.health[0] == 503
    assert "times in a row" in story.health[1]
    assert "MessageSizeTooLarge" in story.alerts[0]["cause"]
    assert [one["id"] for one in story.after] == [one["id"] for one in story.alerts]


def test_a_job_without_its_jvm_ends_with_a_sentence(story: Story) -> None:
    """Within ten seconds, with code 1, so that whoever runs it starts it again."""
    assert story.lasted_s < 10
    assert story.code == 1
    assert "Spark's JVM was killed by signal 9" in story.log
