"""Adding, listing and ending silences, over topics in memory."""

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError

from alerts.alert.alert import Alert, AlertStatus, Severity
from alerts.delivery.silences import LiveQuiet
from streaming.silences.desk import SilenceDesk, SilenceRefusedError
from streaming.silences.following import PATIENCE_S, Follower
from tests.unit.streaming.memory_silences import MemorySilences

NOW = 1_700_000_000_000
HOUR, DAY = 3_600_000, 86_400_000
Change = Callable[..., Any]


def an_alert(status: AlertStatus = AlertStatus.FIRING) -> Alert:
    """An alert of one group."""
    return Alert(
        id="a1",
        revision=0,
        name="RebalanceStorm",
        cluster="eu",
        group="payments",
        status=status,
        severity=Severity.WARNING,
        starts_at_ms=NOW - 1,
        ends_at_ms=None if status is AlertStatus.FIRING else NOW,
        detected_at_ms=NOW,
        summary="",
        cause="",
    )


class Office:
    """A desk with two topics, a clock, and the alerts it knows."""

    def __init__(self, topics: tuple[MemorySilences, ...] | None = None) -> None:
        self.topics = (MemorySilences("one"), MemorySilences("two")) if topics is None else topics
        self.now_ms, self.now_s = NOW, 0.0
        self.alerts = {"a1": an_alert()}
        self.quiet = LiveQuiet()
        self.follower = Follower(
            self.topics, self.quiet, clock_ms=lambda: self.now_ms, now_s=lambda: self.now_s
        )
        self.read()
        self.desk = SilenceDesk(
            self.follower, clusters=["eu"], alert_of=self.alerts.get, clock_ms=lambda: self.now_ms
        )

    def read(self) -> None:
        """Read all topics that answer from their beginning."""
        for topic in self.topics:
            if not topic.is_away:
                self.follower.begin(topic.name, topic.read())

    def add(self, **request: Any) -> str:
        """Add a silence of the group for an hour, but for ``request``; return its id."""
        return self.desk.add({"groups": "payments", "author": "ada", "end": "1h"} | request).id


@pytest.fixture
def office() -> Office:
    return Office()


def test_a_silence_holds_at_once_and_after_a_restart(office: Office) -> None:
    """It stands in each topic."""
    silence_id = office.add(comment="deploy")

    for one in (office, Office(office.topics)):
        why = one.quiet.silenced(an_alert(), NOW)
        assert why is not None
        assert (why.id, why.author, why.comment, why.until_ms) == (silence_id, "ada", "deploy", NOW + HOUR)


def test_an_ended_silence_is_over_and_stays_listed(office: Office) -> None:
    """Ending it again changes nothing."""
    silence_id = office.add()
    office.now_ms += 5

    assert office.desk.expire(silence_id).ends_at_ms == NOW + 5
    assert office.quiet.silenced(an_alert(), NOW + 5) is None
    office.now_ms += 5
    assert office.desk.expire(silence_id).ends_at_ms == NOW + 5
    assert [one.id for one in office.desk.silences("expired").silences] == [silence_id]
    assert office.desk.silences("active").silences == []


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        pytest.param({"groups": []}, "say what to silence", id="everything"),
        pytest.param({"groups": "("}, "groups", id="no-pattern"),
        pytest.param({"groups": r"(?=a)b"}, "look-ahead", id="look-around"),
        pytest.param({"alerts": "RebalanceStrom"}, "did you mean 'RebalanceStorm'", id="no-such-alert"),
        pytest.param({"clusters": "us"}, "there is no cluster 'us'", id="no-such-cluster"),
        pytest.param({"alert_id": "a9", "end": None}, "no alert 'a9' fires", id="no-such-alert-id"),
        pytest.param({"end": None}, "end: only the silence of one alert_id", id="no-end"),
        pytest.param({"end": "soon"}, "neither a span nor a time", id="no-time"),
        pytest.param({"end": "2020-01-01"}, "end: must be later", id="over-already"),
        pytest.param({"end": "20000h"}, "366 days", id="for-years"),
        pytest.param({"author": ""}, "author", id="nobody"),
        pytest.param({"untill": "1h"}, "unknown key", id="unknown-key"),
        pytest.param({"groups": 5}, "groups: expected a list", id="wrong-type"),
    ],
)
def test_what_makes_no_sense_is_refused(office: Office, request_: dict[str, Any], sentence: str) -> None:
    """With a sentence, and nothing is written."""
    with pytest.raises(SilenceRefusedError, match=re.escape(sentence)):
        office.add(**request_)
    assert office.topics[0].records == []


def test_a_silence_can_begin_later(office: Office) -> None:
    """Its span counts from its start; it can be ended before."""
    silence_id = office.add(start="2h", end="30m")
    (one,) = office.desk.silences("pending").silences

    assert (one.starts_at_ms, one.ends_at_ms) == (NOW + 2 * HOUR, NOW + 2 * HOUR + HOUR // 2)
    assert office.quiet.silenced(an_alert(), NOW) is None
    assert office.quiet.silenced(an_alert(), NOW + 2 * HOUR) is not None
    office.desk.expire(silence_id)
    assert office.quiet.silenced(an_alert(), NOW + 2 * HOUR) is None


def test_an_acknowledged_alert_is_silent_until_it_is_resolved(office: Office) -> None:
    """The desk ends the silence by itself."""
    office.add(groups=[], alert_id="a1", end=None)
    office.desk.tend()
    assert office.quiet.silenced(an_alert(), NOW + 9 * DAY) is not None

    office.alerts["a1"] = an_alert(AlertStatus.RESOLVED)
    office.desk.tend()
    assert office.quiet.silenced(an_alert(), NOW) is None
    assert len(office.desk.silences("expired").silences) == 1


def test_an_acknowledged_alert_that_nobody_knows_is_over_in_an_hour(office: Office) -> None:
    """Not at once: a start may read open alerts late."""
    office.add(groups=[], alert_id="a1", end=None)
    office.alerts.clear()
    office.now_ms += HOUR
    office.desk.tend()
    assert len(office.desk.silences("active").silences) == 1
    office.now_ms += 1
    office.desk.tend()
    assert office.desk.silences("active").silences == []


def test_one_cluster_that_answers_is_enough(office: Office) -> None:
    """The other gets the silence, and its end, later."""
    first, second = office.topics
    second.is_away = True
    silence_id = office.add()
    office.desk.tend()
    assert second.records == []
    office.desk.expire(silence_id)
    second.is_away = False
    office.desk.tend()

    assert second.records == first.records[-1:]
    assert Office((second,)).quiet.silenced(an_alert(), NOW) is None


def test_nothing_is_in_force_that_was_not_stored(office: Office) -> None:
    """Whoever asked is told."""
    for topic in office.topics:
        topic.is_away = True

    with pytest.raises(SilenceRefusedError, match="not stored") as refused:
        office.add()
    assert refused.value.status == 503
    assert office.quiet.silenced(an_alert(), NOW) is None


def test_an_older_copy_of_a_returning_cluster_does_not_revive_a_silence(office: Office) -> None:
    """The newest copy is valid."""
    silence_id = office.add()
    office.topics[1].is_away = True
    office.desk.expire(silence_id)
    office.topics[1].is_away = False
    office.read()

    assert office.quiet.silenced(an_alert(), NOW) is None


def test_silences_of_long_ago_leave_the_topic(office: Office) -> None:
    """Five days after their end."""
    office.add()
    office.now_ms += HOUR + 5 * DAY
    office.desk.tend()
    assert len(office.desk.silences().silences) == 1
    office.now_ms += 1
    office.desk.tend()

    assert office.desk.silences().silences == []
    assert [value for _, value in office.topics[0].records][-1] is None


def test_broken_records_are_counted_and_shown(office: Office) -> None:
    """Others stand as before."""
    office.add()
    office.follower.take("one:9092", (b"x", b"garbage"))

    found = office.desk.silences()
    assert len(found.silences) == 1
    assert found.refused == {"not_a_silence": 1}


def test_delivery_waits_for_the_silences_but_not_for_ever() -> None:
    """A page too many is better than none."""
    away = MemorySilences("away")
    away.is_away = True
    office = Office((MemorySilences("here"), away))

    assert not office.follower.is_settled
    office.now_s = PATIENCE_S + 1
    assert office.follower.is_settled
    assert Office((MemorySilences("here"),)).follower.is_settled


def test_a_topic_that_cannot_be_read_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two attempts fail, and alerts are delivered; the outage itself has to be told."""
    monkeypatch.setattr("streaming.silences.following._REOPEN_S", 0.0)
    away, tried = MemorySilences("away"), threading.Semaphore(0)

    def follow(*_: object) -> None:
        tried.release()
        raise KafkaTimeoutError("nobody answers")

    monkeypatch.setattr(away, "follow", follow)
    follower = Follower((away,), LiveQuiet())
    follower.start()
    assert not follower._read
    for _ in range(3):
        assert tried.acquire(timeout=20)
    assert follower.is_settled
    follower.stop()
