"""Topics that lost records, or were made anew, while nobody read, and while somebody did."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from kafka.structs import TopicPartition

from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients.clients import admin_client
from tests.live.support.plain_job import JobProcess, ThreadedConsumer
from tests.live.support.stage import await_that

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

EVENTS, CONTROL, OFFSETS = "groupwatch-events", "groupwatch-control", "__consumer_offsets"


@dataclass
class Story:
    """What the job said after each act."""

    deleted: float = 0.0
    silent: dict[str, Any] = field(default_factory=dict)
    anew: dict[str, float] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    seen: dict[str, str] = field(default_factory=dict)
    """Group -> state in our picture, of groups that began after each act."""
    causes: dict[str, set[str]] = field(default_factory=dict)
    """Group -> sources of its transitions."""


def _delete_records(address: KafkaAddress, topic: str) -> None:
    """Let a topic forget all that it holds, as retention does."""
    admin = admin_client(address)
    try:
        (told,) = admin.describe_topics([topic])
        admin.delete_records({TopicPartition(topic, n): -1 for n in range(len(told["partitions"]))})
    finally:
        admin.close()


def _make_anew(address: KafkaAddress, *topics: str) -> None:
    """Delete topics, and make those of ours again."""
    admin = admin_client(address)
    try:
        admin.delete_topics(list(topics))
        await_that(lambda: not set(topics) & set(admin.list_topics()), f"{topics} are gone")
        ours = {EVENTS: 4, CONTROL: 1}
        made = {
            topic: {
                "num_partitions": ours[topic],
                "replication_factor": 1,
                "configs": {"message.timestamp.type": "LogAppendTime"},
            }
            for topic in topics
            if topic in ours and topic not in admin.list_topics()
        }
        if made:
            admin.create_topics(made)
    finally:
        admin.close()


def _states(job: JobProcess) -> dict[str, str]:
    answer = job.get("/api/v1/groups")
    return {one["group"]: one["state"] for one in answer.json()["groups"]} if answer is not None else {}


def _sources(job: JobProcess, group: str) -> set[str]:
    answer = job.get(f"/api/v1/groups/test/{group}")
    transitions = answer.json().get("transitions", []) if answer is not None else []
    return {one["source"] for one in transitions}


def _cluster(job: JobProcess) -> dict[str, Any]:
    answer = job.get("/ready")
    return {} if answer is None else answer.json()["clusters"][0]


def _missed(job: JobProcess, topic: str) -> float:
    return job.metric("groupwatch_missed_records_total", topic=topic)


def _watch_one(job: JobProcess, address: KafkaAddress, story: Story, group: str) -> None:
    """Let a group come and be seen."""
    member = ThreadedConsumer(address, group, group)
    member.await_assignment()
    await_that(lambda: _states(job).get(group) == "Stable", f"{group} is seen ({_states(job)})")
    await_that(lambda: "coordinator_log" in _sources(job, group), f"{group} has its lines")
    story.seen[group], story.causes[group] = _states(job)[group], _sources(job, group)
    member.close()


def _silent(job: JobProcess) -> list[dict[str, Any]]:
    answer = job.get("/api/v1/alerts?status=firing")
    found = answer.json()["alerts"] if answer is not None else []
    return [one for one in found if one["name"] == "SourceSilent"]


def _live(kafka: EmbeddedKafka, job: JobProcess) -> Story:
    story, address = Story(), kafka.address
    job.start()
    _watch_one(job, address, story, "before")
    assert job.terminate() == 0

    member = ThreadedConsumer(address, "unseen", "unseen")
    member.await_assignment()
    member.close()
    _delete_records(address, EVENTS)
    job.start()
    story.deleted = _missed(job, EVENTS)
    await_that(lambda: bool(_silent(job)), "SourceSilent is told")
    (story.silent,) = _silent(job)
    _watch_one(job, address, story, "after-retention")

    _make_anew(address, EVENTS)
    await_that(lambda: _missed(job, EVENTS) > story.deleted, "the job has seen the new topic")
    _watch_one(job, address, story, "after-running")
    assert job.terminate() == 0

    _make_anew(address, EVENTS, CONTROL, OFFSETS)
    job.start()
    story.anew = {topic: _missed(job, topic) for topic in (EVENTS, CONTROL, OFFSETS)}
    story.notices = _cluster(job)["notices"]
    _watch_one(job, address, story, "after-all")
    assert job.terminate() == 0
    return story


@pytest.fixture(scope="module")
def story(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    job = JobProcess(kafka.address, tmp_path_factory.mktemp("losses"))
    try:
        yield _live(kafka, job)
    finally:
        job.close()


def test_records_that_were_deleted_unread_are_counted_and_told(story: Story) -> None:
    """As a metric, and as SourceSilent with the topic."""
    assert story.deleted > 0
    assert f"Records of {EVENTS} were lost" in story.silent["summary"]
    assert "were deleted before groupwatch read them" in story.silent["cause"]


def test_topics_that_were_made_anew_are_told_and_read_from_their_beginning(story: Story) -> None:
    """Each of the inputs, and the job goes on by itself."""
    assert all(count >= 1 for count in story.anew.values())
    assert sum("was made anew" in one for one in story.notices) == 3


def test_groups_are_seen_as_before_after_each_loss(story: Story) -> None:
    """With state and lines: neither time nor a lane stands still."""
    assert set(story.seen) == {"before", "after-retention", "after-running", "after-all"}
    assert set(story.seen.values()) == {"Stable"}
    assert all("coordinator_log" in sources for sources in story.causes.values())
