"""What rebalances cost, and how groups end, on a real cluster: churn, a deletion, offsets that expire."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from kafka.structs import OffsetAndMetadata, TopicPartition

from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.kafka_clients.clients import producer
from tests.live.support.members import CALM_SESSION_MS
from tests.live.support.scene import Scene
from tests.live.support.stage import Job, Pager, Told, alerts_of, await_that, need_jars

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

WINDOW_S = 8
RULES: dict[str, Any] = {"rebalance_storm": {"window": f"{WINDOW_S}s", "rebalances": 20}}
BROKER = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"}
WAITING = 5
SCALED: dict[str, Any] = {
    "client": "confluent",
    "topic": "wide",
    "session_timeout_ms": CALM_SESSION_MS,
    "max_poll_interval_ms": 60_000,
}


@dataclass
class Story(Told):
    """What was seen of it."""

    expires_ms: int = 0
    """When the offsets of "abandoned" must go: a minute after they were committed."""


def _commit(scene: Scene, group: str, offset: int) -> None:
    where = {TopicPartition("orders", 0): OffsetAndMetadata(offset, "", -1)}
    scene.admin.alter_group_offsets(group, where)


def _grow(scene: Scene) -> None:
    """An eager group grows one by one, each newcomer before all others in the order of ids."""
    for number, client_id in enumerate(("c-3", "b-4", "a-5")):
        time.sleep(WINDOW_S + 1 if number == 0 else 1.0)  # the first is alone in its window
        scene.member("scaled", client_id, **SCALED)
        await_that(scene.is_stable("scaled", 3 + number), f"{client_id} is in")


def _play(scene: Scene, story: Story) -> None:
    _commit(scene, "abandoned", 10 - WAITING)
    story.expires_ms = time.time_ns() // 1_000_000 + 60_000
    _commit(scene, "console-consumer-4711", 3)
    for client_id in ("x-1", "y-2"):
        scene.member("scaled", client_id, **SCALED)
    retired = scene.member("retired", "retired-0", session_timeout_ms=CALM_SESSION_MS)
    await_that(scene.is_stable("scaled", 2), "scaled is Stable")
    await_that(scene.is_stable("retired", 1), "retired is Stable")
    _grow(scene)
    retired.close()
    await_that(scene.is_in("retired", "Empty"), "retired is Empty")
    _commit(scene, "retired", 10)
    scene.admin.delete_groups(["retired"])
    for group, name in (
        ("scaled", "AssignmentChurn"),
        ("retired", "GroupDeleted"),
        ("abandoned", "OffsetsExpiring"),
        ("abandoned", "GroupDeleted"),
    ):
        await_that(scene.is_told(group, name), f"{name} of {group} is told")
    await_that(lambda: _is_over(scene, "abandoned", "OffsetsExpiring"), "what was announced has happened")
    scene.await_judgement("cost-marker")  # what would be told falsely has been told by then


def _is_over(scene: Scene, group: str, name: str) -> bool:
    told = [one for one in alerts_of(scene.kafka.address) if (one["group"], one["name"]) == (group, name)]
    return bool(told) and told[-1]["status"] == "resolved"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    need_jars()
    folder = tmp_path_factory.mktemp("cost")
    with (
        EmbeddedKafka(
            folder / "kafka", offsets_partitions=8, heap="384m", rebalance_delay_ms=500, properties=BROKER
        ) as kafka,
        Pager() as pager,
    ):
        kafka.create_topic("orders", partitions=1)
        kafka.create_topic("wide", partitions=60)
        out = producer(kafka.address)
        for number in range(10):
            out.send("orders", value=b"%d" % number)
        out.close()
        job = Job(kafka.bootstrap_servers, folder, pager, RULES)
        scene, seen = Scene(kafka, job, "full"), Story()
        try:
            job.start()
            job.await_ready()
            _play(scene, seen)
            seen.alerts = alerts_of(kafka.address)
            yield seen
        finally:
            scene.end()
            job.stop()


def test_an_eager_group_that_grows_moves_too_much(story: Story) -> None:
    """Told once, with what a sticky assignor would have moved on the same members."""
    assert set(story.of("scaled")) == {"AssignmentChurn"}
    alert = story.of("scaled")["AssignmentChurn"][0]

    assert alert["severity"] == "info"
    # 60 partitions, from 2 members to 5: 20, 15 and 12 must move.
    assert alert["summary"].endswith("; 47 moves would have been enough.")
    assert "sticky 12." in alert["evidence"][-1]
    assert "partition-seconds without an owner" in alert["cost"]


def test_a_group_that_was_deleted(story: Story) -> None:
    """By whom is not to be had; how, is."""
    (alert,) = story.of("retired")["GroupDeleted"]

    assert set(story.of("retired")) == {"GroupDeleted"}
    assert alert["summary"].startswith("Group retired was deleted while it was empty")


def test_offsets_that_expire(story: Story) -> None:
    """Announced with the broker's own retention and what waits, and told when it happened."""
    found = story.of("abandoned")
    first, last = found["OffsetsExpiring"][0], found["OffsetsExpiring"][-1]

    assert set(found) == {"OffsetsExpiring", "GroupDeleted"}
    assert first["severity"] == "warning"
    assert f"; {WAITING} records wait to be read" in first["summary"]
    assert "offsets.retention.minutes is 1 min" in first["cause"]
    assert abs(first["detected_at_ms"] - (story.expires_ms - 20_000)) < 5_000
    assert (last["status"], last["summary"]) == ("resolved", "The offsets of group abandoned are gone.")
    assert found["GroupDeleted"][0]["summary"].startswith("Group abandoned expired")


def test_nothing_else_is_said(story: Story) -> None:
    """A console consumer's group may go, and the cluster is well."""
    assert {one["group"] for one in story.alerts} == {"scaled", "retired", "abandoned"}
