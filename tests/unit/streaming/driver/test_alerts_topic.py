"""The alerts topic as the job reads it: bounded, once, and with an end to what it keeps."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from kafka.errors import KafkaTimeoutError
from kafka.structs import TopicPartition

from alerts.alert.alert import Alert, AlertStatus
from alerts.delivery.notifier import wall_clock_ms
from streaming.config.config import parse_config
from streaming.config.plan import plan_of
from streaming.driver import alerts_topic
from streaming.driver.alerts_topic import KEPT_MS, AlertsTopic, AlertsTopicKeeper, Ended, due_for_removal
from streaming.health.query_progress import Progress
from streaming.kafka_clients.fenced import FencedProducer, Output
from tests.unit.made_alerts import BEGAN_MS, an_alert

TOPIC = "groupwatch-alerts"
PLACE = TopicPartition(TOPIC, 0)
RESOLVED = AlertStatus.RESOLVED


class Kafka:
    """One partition in memory; each poll gives at most ``portion`` records and takes a second."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.polled = 0
        self.portion = 1_000
        self.now_s = 0.0
        self.is_append_time = True

    def write(self, key: str, value: bytes | None, at_ms: int = BEGAN_MS) -> None:
        """Append a record."""
        record = SimpleNamespace(
            offset=len(self.records),
            key=key.encode(),
            value=value,
            timestamp=at_ms,
            timestamp_type=int(self.is_append_time),
        )
        self.records.append(record)

    def alert(self, alert_id: str, at_ms: int = BEGAN_MS, **changes: Any) -> None:
        """Append an alert's revision."""
        self.write(alert_id, msgspec.json.encode(an_alert(id=alert_id, cluster="prod", **changes)), at_ms)

    def consumer(self) -> Any:
        """Open a consumer."""
        return Consumer(self)


class Consumer:
    """What ``AlertsTopic`` needs of kafka-python's."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka, self.at = kafka, 0

    def partitions_for_topic(self, _topic: str) -> set[int]:
        """One."""
        return {0}

    def assign(self, _partitions: object) -> None:
        """There is only one."""

    def end_offsets(self, _partitions: object) -> dict[TopicPartition, int]:
        """The end."""
        return {PLACE: len(self.kafka.records)}

    def beginning_offsets(self, _partitions: object) -> dict[TopicPartition, int]:
        """The beginning."""
        return {PLACE: 0}

    def seek(self, _partition: object, offset: int) -> None:
        """Go there."""
        self.at = offset

    def position(self, _partition: object) -> int:
        """Where it stands."""
        return self.at

    def poll(self, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        """Return the next ones."""
        self.kafka.now_s += 1
        found = self.kafka.records[self.at : self.at + self.kafka.portion]
        self.at += len(found)
        self.kafka.polled += len(found)
        return {PLACE: found}

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
def kafka() -> Kafka:
    return Kafka()


@pytest.fixture
def topic(kafka: Kafka) -> AlertsTopic:
    return AlertsTopic(
        TOPIC, "prod", kafka.consumer, now_s=lambda: kafka.now_s, clock_ms=lambda: BEGAN_MS + KEPT_MS
    )


def ids(topic: AlertsTopic) -> list[tuple[str, int]]:
    return [(one.alert.id, one.alert.revision) for one in topic.open_alerts()]


def test_only_what_still_fires_in_this_cluster_is_taken_over(kafka: Kafka, topic: AlertsTopic) -> None:
    """The last word counts, and a repeat is none; tombstones, strangers and rubbish do not."""
    kafka.alert("a1")
    kafka.alert("a2")
    kafka.alert("a2", revision=1, status=RESOLVED, ends_at_ms=BEGAN_MS)
    kafka.alert("a2")
    kafka.write("a3", msgspec.json.encode(an_alert(id="a3", cluster="other")))
    kafka.alert("a4")
    kafka.write("a4", None)
    kafka.write("a5", b"rubbish")
    kafka.alert("a6", revision=2)
    assert topic.read(60) == 0
    assert ids(topic) == [("a1", 0), ("a6", 2)]
    assert topic.refused == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"starts_at_ms": 253_402_300_800_000},
        {"revision": 2**62},
        {"revision": 99_999, "status": RESOLVED, "ends_at_ms": BEGAN_MS},
    ],
)
def test_a_forged_record_hides_no_open_alert(
    changes: dict[str, Any], kafka: Kafka, topic: AlertsTopic
) -> None:
    """It is passed over, so the alert is gone on with, or ended, as it should."""
    kafka.alert("a1")
    kafka.alert("a1", **changes)
    topic.read(60)
    assert ids(topic) == [("a1", 0)]


def test_what_was_read_is_not_read_again(kafka: Kafka, topic: AlertsTopic) -> None:
    """The second reading begins where the first one ended."""
    for n in range(50):
        kafka.alert(f"a{n}")
    topic.read(60)
    kafka.alert("a0", revision=1, status=RESOLVED, ends_at_ms=BEGAN_MS)
    kafka.polled = 0
    topic.read(60)
    assert kafka.polled == 1
    assert len(topic.open_alerts()) == 49


def test_a_topic_too_long_for_the_start_is_read_in_parts(kafka: Kafka, topic: AlertsTopic) -> None:
    """No reading takes longer than it may; it says how much is left, and the next goes on."""
    kafka.portion = 10
    for n in range(100):
        kafka.alert(f"a{n}")
    left = topic.read(4)
    assert 0 < left < 100
    assert len(topic.open_alerts()) == 100 - left
    while topic.read(4):
        pass
    assert len(topic.open_alerts()) == 100


def test_a_topic_that_was_made_anew_is_read_from_its_beginning(kafka: Kafka, topic: AlertsTopic) -> None:
    """What stood in the old one is forgotten."""
    for n in range(5):
        kafka.alert(f"old{n}")
    topic.read(60)
    kafka.records.clear()
    kafka.alert("new")
    topic.read(60)
    assert ids(topic) == [("new", 0)]


@pytest.mark.parametrize(
    ("age_ms", "cursors", "goes"),
    [
        (KEPT_MS, [], True),
        (KEPT_MS - 1, [], False),
        (KEPT_MS, [{0: 8}], True),
        (KEPT_MS, [{0: 7}], False),
        (KEPT_MS, [{0: 8}, {0: 3}], False),
        (KEPT_MS, [{}, {0: 8}], True),
    ],
)
def test_an_alert_that_is_long_over_goes_when_every_receiver_has_its_end(
    age_ms: int, cursors: list[dict[int, int]], goes: bool
) -> None:
    """A week after its end, and never while a receiver waits for it."""
    ended = {"a": Ended(PLACE, 7, BEGAN_MS)}
    assert due_for_removal(ended, cursors, BEGAN_MS + age_ms) == ([("a", PLACE)] if goes else [])


def test_what_fires_is_never_buried(kafka: Kafka, topic: AlertsTopic) -> None:
    """However old it is; and an end that was written late counts from then."""
    kafka.alert("open")
    kafka.alert("over", revision=1, status=RESOLVED, ends_at_ms=BEGAN_MS)
    kafka.alert("late", BEGAN_MS + 5, revision=1, status=RESOLVED, ends_at_ms=BEGAN_MS)
    topic.read(60)
    assert due_for_removal(topic.ended(), [], BEGAN_MS + KEPT_MS) == [("over", PLACE)]


def test_a_forged_end_does_not_outlast_the_next_word_of_the_job(kafka: Kafka, topic: AlertsTopic) -> None:
    """Whatever its number: the alert fires again, and ends when the job says so."""
    kafka.alert("a1")
    kafka.alert("a1", revision=100, status=RESOLVED, ends_at_ms=BEGAN_MS)
    topic.read(60)
    assert list(topic.ended()) == ["a1"]
    kafka.alert("a1", revision=1)
    topic.read(60)
    assert (ids(topic), topic.ended()) == ([("a1", 1)], {})
    kafka.alert("a1", revision=2, status=RESOLVED, ends_at_ms=BEGAN_MS)
    topic.read(60)
    assert (ids(topic), list(topic.ended())) == ([], ["a1"])


def test_an_end_that_its_writer_dated_back_counts_from_when_it_was_read(
    kafka: Kafka, topic: AlertsTopic
) -> None:
    """Else whoever forges one has the alert buried while it fires."""
    kafka.is_append_time = False
    read_ms = BEGAN_MS + KEPT_MS
    began_ms = read_ms - 9 * 86_400_000
    times = {"starts_at_ms": began_ms, "detected_at_ms": began_ms}
    kafka.alert("a1", began_ms, **times)
    kafka.alert("a1", began_ms, revision=100, status=RESOLVED, ends_at_ms=began_ms, **times)
    topic.read(60)
    assert due_for_removal(topic.ended(), [], read_ms + KEPT_MS - 1) == []
    assert due_for_removal(topic.ended(), [], read_ms + KEPT_MS) == [("a1", PLACE)]


class Outputs:
    """The writer of the outputs, into the topic in memory."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka

    def write(self, records: Iterable[Output]) -> None:
        """Append them."""
        for one in records:
            assert (one.topic, one.partition) == (PLACE.topic, PLACE.partition)
            self.kafka.write(one.key.decode(), one.value)


@pytest.fixture
def make_caretaker(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AlertsTopicKeeper]:
    plan_config = parse_config("clusters: [{name: prod, bootstrap_servers: ['127.0.0.1:1']}]")
    monkeypatch.setattr(alerts_topic, "consumer", lambda *_args, **_more: kafka.consumer())

    def make(*, is_ours: bool = True, adopted: list[str] | None = None) -> AlertsTopicKeeper:
        return AlertsTopicKeeper(
            plan_of(plan_config, plan_config.clusters[0]),
            Progress("prod"),
            outputs=lambda: cast("FencedProducer", Outputs(kafka)) if is_ours else None,
            adopt=lambda alerts: (adopted if adopted is not None else []).extend(a.id for a in alerts),
        )

    return make


def test_a_round_buries_what_is_long_over_and_nothing_twice(
    kafka: Kafka, make_caretaker: Callable[..., AlertsTopicKeeper]
) -> None:
    """A tombstone each, which the next round reads."""
    kafka.alert("open")
    kafka.alert("over", revision=1, status=RESOLVED, ends_at_ms=BEGAN_MS)
    caretaker = make_caretaker()
    for _ in range(3):
        assert not caretaker.look()
    assert [(one.key, one.value) for one in kafka.records[2:]] == [(b"over", None)]


def test_outputs_that_are_another_jobs_are_left_alone(
    kafka: Kafka, make_caretaker: Callable[..., AlertsTopicKeeper]
) -> None:
    """Who lost its mark writes nothing."""
    kafka.alert("over", revision=1, status=RESOLVED, ends_at_ms=BEGAN_MS)
    make_caretaker(is_ours=False).look()
    assert len(kafka.records) == 1


def test_a_start_goes_on_without_what_it_could_not_read_and_says_so(
    kafka: Kafka, make_caretaker: Callable[..., AlertsTopicKeeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is adopted when it has been read; what began meanwhile is this job's own."""
    monkeypatch.setattr(alerts_topic, "START_S", -1.0)
    kafka.alert("left open")
    adopted: list[str] = []
    caretaker = make_caretaker(adopted=adopted)
    assert caretaker.at_start() == []
    (notice,) = caretaker._progress.notices
    assert "1 offsets of groupwatch-alerts are not read yet" in notice
    kafka.alert("of this job", at_ms=wall_clock_ms() + 1_000)
    assert not caretaker.look()
    assert adopted == ["left open"]
    assert caretaker._progress.notices == []
    caretaker.look()
    assert adopted == ["left open"]


def test_what_a_start_owes_is_handed_over_at_the_next_look_if_kafka_is_away(
    kafka: Kafka, make_caretaker: Callable[..., AlertsTopicKeeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or at a look of the next query: an alert that nobody adopts stays open for ever."""
    monkeypatch.setattr(alerts_topic, "START_S", -1.0)
    kafka.alert("left open")
    caretaker = make_caretaker()
    caretaker.at_start()
    adopted: list[str] = []
    is_away = [True]

    def adopt(alerts: list[Alert]) -> None:
        if is_away:
            raise KafkaTimeoutError("the control topic has no leader")
        adopted.extend(one.id for one in alerts)

    caretaker._adopt = adopt
    with pytest.raises(KafkaTimeoutError):
        caretaker.look()
    is_away.clear()
    caretaker.at_start()
    assert caretaker.owes
    caretaker.look()
    assert adopted == ["left open"]
    assert not caretaker.owes
