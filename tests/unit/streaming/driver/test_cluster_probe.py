"""What the probe asks beside ends: up to where who reads only what is committed may read."""

from typing import Any, NamedTuple

import pytest
from kafka.admin import OffsetSpec
from kafka.errors import NodeNotReadyError, TopicAuthorizationFailedError, UnknownTopicOrPartitionError
from kafka.protocol.consumer import IsolationLevel
from kafka.structs import TopicPartition

from streaming.driver.cluster_probe import STABLE_PATIENCE_MS, ClusterProbe, end_offsets
from streaming.health.query_progress import Progress
from streaming.kafka_address import KafkaAddress


class Refusing:
    """A cluster that is there and tells no ends, until it is told to."""

    is_refusing = True

    def describe_cluster(self) -> dict[str, Any]:
        """Answer."""
        return {}

    def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
        """Refuse, or know of none."""
        if self.is_refusing:
            raise TopicAuthorizationFailedError(topics[0])
        return []


def test_end_offsets_are_asked_for_at_once_when_all_groups_are_known() -> None:
    """Not after ten seconds more; what Kafka says to it is in ``/ready``, once, until it says otherwise."""
    progress = Progress("c")
    probe = ClusterProbe(KafkaAddress(("b:9092",)), progress, topics=lambda _: ["orders"])
    admin: Any = Refusing()
    probe._admin = admin
    probe.ask()
    assert progress.end_offsets == "waiting"
    progress.reading.begin(0, {"a": [0]})
    progress.reading.reported([-1])
    progress.batch_done()
    progress.reading.reached({"a": [0]})

    probe.ask()
    assert "asking for end offsets failed: TopicAuthorizationFailedError" in progress.end_offsets
    assert progress.is_ready
    admin.is_refusing = False
    probe._ends_at = float("-inf")
    probe.ask()
    assert (progress.end_offsets, progress.notices) == ("known", [])


def test_routine_questions_wait_for_a_lull(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers are told to thousands of groups, which costs a core that a running batch needs."""
    progress = Progress("c")
    probe = ClusterProbe(KafkaAddress(("b:9092",)), progress)
    admin: Any = Refusing()
    probe._admin = admin
    waits: list[float] = []
    monkeypatch.setattr(progress, "await_lull", lambda: waits.append(probe._ends_at))
    probe.ask()
    probe.ask()

    assert waits == [float("-inf")]


class Awaited:
    """An event that nobody sets; while the second wait lasts, all groups become known."""

    def __init__(self, progress: Progress) -> None:
        self.waits = 0
        self._progress = progress

    def wait(self, _seconds: float) -> bool:
        """Wait for nothing."""
        self.waits += 1
        if self.waits == 2:
            self._progress.reading.begin(0, {"a": [0]})
            self._progress.reading.reported([-1])
            self._progress.reading.reached({"a": [0]})
        return False


def test_a_start_does_not_wait_for_the_turn_of_the_probe() -> None:
    """The rest between two looks ends when all groups are known and only the ends of topics are missing."""
    progress = Progress("c")
    probe = ClusterProbe(KafkaAddress(("b:9092",)), progress)
    stopped: Any = Awaited(progress)
    probe._stopped = stopped

    probe._rest()
    assert stopped.waits == 2
    progress.ends_told(whole=True)
    probe._rest()
    assert stopped.waits > 10


class TopicAnswers(NamedTuple):
    """A leader's answer."""

    offset: int


class Admin:
    """Leaders that answer with the partition's number, and keep the question."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Any, Any]] = []

    def list_partition_offsets(
        self, wanted: dict[TopicPartition, Any], *, isolation_level: Any, timeout_ms: int
    ) -> dict[TopicPartition, TopicAnswers]:
        """Answer."""
        self.asked.append((wanted, isolation_level, timeout_ms))
        return {one: TopicAnswers(one.partition) for one in wanted}


def test_last_stable_offsets_are_asked_for_as_a_reader_of_committed_records_would() -> None:
    """All in one question; nothing is asked for nothing, or before there is a connection."""
    places = [TopicPartition("t", 3), TopicPartition("u", 0)]
    probe = ClusterProbe(KafkaAddress(("b:9092",)), Progress("c"))
    assert probe.last_stable(places) == {}
    admin: Any = Admin()
    probe._admin = admin
    assert probe.last_stable([]) == {}

    assert probe.last_stable(places) == {places[0]: 3, places[1]: 0}
    wanted = dict.fromkeys(places, OffsetSpec.LATEST)
    assert admin.asked == [(wanted, IsolationLevel.READ_COMMITTED, STABLE_PATIENCE_MS)]


class Leaders:
    """A cluster of which one broker is gone, one topic is refused, and one partition has no leader."""

    def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
        """Return who leads what."""
        led = {"well": [1, 1], "half": [1, 2], "headless": [-1], "deleted": [], "secret": []}
        codes = {"deleted": UnknownTopicOrPartitionError.errno, "secret": TopicAuthorizationFailedError.errno}
        return [
            {
                "name": topic,
                "error_code": codes.get(topic, 0),
                "partitions": [{"partition_index": n, "leader_id": one} for n, one in enumerate(led[topic])],
            }
            for topic in topics
        ]

    def list_partition_offsets(
        self, wanted: dict[TopicPartition, Any], *, timeout_ms: int
    ) -> dict[TopicPartition, TopicAnswers]:
        """Answer for broker 1 only."""
        if TopicPartition("half", 1) in wanted:
            raise NodeNotReadyError("broker 2")
        return {one: TopicAnswers(5) for one in wanted}


def test_a_leader_that_is_gone_hides_no_other_topics_lag() -> None:
    """What is not known is named with its reason, and so never shown as 0."""
    admin: Any = Leaders()
    told = end_offsets(admin, ["well", "half", "headless", "deleted", "secret"])
    assert {topic: sorted(ends) for topic, ends in told.ends.items()} == {"well": [0, 1], "half": [0]}
    assert told.unknown == {
        "half": "broker 2: NodeNotReadyError",
        "headless": "[Error 5] LeaderNotAvailableError: a partition has no leader",
        "secret": "TopicAuthorizationFailedError",
    }
    progress = Progress("c")
    probe = ClusterProbe(KafkaAddress(("b:9092",)), progress)
    probe._note_unknown(told.unknown, whole=True)
    assert "failed: of half, headless, secret: " in progress.end_offsets


def test_what_is_unknown_of_one_half_stays_said_in_the_round_of_the_other() -> None:
    """A round that does not ask for a topic says nothing of it; the probe rests as long as it is told."""
    progress = Progress("c")
    rounds = iter([["half", "well"], ["headless"], ["half"], ["well"], ["well"]])
    probe = ClusterProbe(
        KafkaAddress(("b:9092",)), progress, topics=lambda _whole: next(rounds), found=lambda _ends: 5.0
    )
    admin: Any = Leaders()
    said = [sorted(probe._ask_for_ends(admin, whole=False)) for _ in range(5)]
    assert said == [["half"], ["half", "headless"], ["half", "headless"], ["half"], []]
    assert probe._every_s == 5.0
