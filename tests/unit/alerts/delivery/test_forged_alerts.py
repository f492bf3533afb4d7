"""What strangers write into the alerts topic: it pauses no receiver and mutes no alert."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import pytest

from alerts.alert.alert import Alert, AlertStatus, Culprit
from alerts.alert.newest_record import JUMP_MAX
from alerts.alert.records import AHEAD_MAX_MS, REVISION_MAX, Refused, read_alert
from alerts.delivery.log_reader import Reader
from alerts.delivery.outbox import Outbox
from alerts.delivery.receivers.receiver import Delivery, Outcome
from alerts.delivery.receivers.webhook import webhook_body
from alerts.delivery.routing import Route
from alerts.rules.wide_causes import WideCauses

if TYPE_CHECKING:
    from tests.unit.alerts.conftest import MemoryTopic

MakeAlert = Callable[..., Alert]
T0 = 1_700_000_002_000
YEAR_10000_MS = 253_402_300_800_000


class Desk:
    """One receiver that reads the topic and takes whatever it is sent."""

    def __init__(self, topic: "MemoryTopic") -> None:
        self.outbox = Outbox("oncall", (Route(receivers=("oncall",)),), max_age_ms=86_400_000)
        self.reader = Reader("main", topic.open, self.outbox, clock_ms=lambda: T0)
        self.log = topic.open("oncall")
        self.reader.begin(self.log)

    def sent(self) -> list[tuple[str, int, str]]:
        """Read what there is; return (id, revision, status) of what is sent."""
        self.reader.step(self.log)
        found = []
        while work := self.outbox.next_work(T0):
            webhook_body(work.notification, receiver="oncall")
            last = work.notification.alerts[-1]
            found.append((last.id, last.revision, str(last.status)))
            self.outbox.settle(work, Delivery(outcome=Outcome.DELIVERED), T0)
        self.reader.commit(self.log)
        return found


FORGED: list[dict[str, object]] = [
    {"starts_at_ms": YEAR_10000_MS},
    {"starts_at_ms": T0 + 3 * AHEAD_MAX_MS},
    {"ends_at_ms": YEAR_10000_MS, "status": AlertStatus.RESOLVED},
    {"detected_at_ms": 2**62},
    {"starts_at_ms": -(2**62)},
    {"revision": 2**62},
    {"revision": REVISION_MAX + 1},
    {"revision": -1},
    {"id": ""},
    {"id": "x" * 300},
    {"name": ""},
    {"name": "x" * 300},
    {"name": "ClusterUnreachable", "group": ""},
    {"name": "MonitorStalled", "group": ""},
    {"cluster": "x" * 300},
    {"group": "x" * 40_000},
    {"culprits": (Culprit(member_id="m", share=-1e308),)},
    {"culprits": (Culprit(member_id="m", share=7.0),)},
    {"culprits": tuple(Culprit(member_id="m") for _ in range(5_000))},
    {"evidence": ("x",) * 5_000},
    {"summary": "x" * 2_000_000},
]


@pytest.mark.parametrize("changes", FORGED, ids=lambda changes: next(iter(changes)))
def test_a_record_that_no_rule_can_have_written_is_set_aside(
    changes: dict[str, object], topic: "MemoryTopic", make_alert: MakeAlert
) -> None:
    """It is counted with a reason and not sent, and what stands behind it is."""
    desk = Desk(topic)
    forged = make_alert(**({"id": "forged"} | changes))
    topic.write_raw(msgspec.json.encode(forged), forged.id.encode(), timestamp_ms=T0)
    topic.write(make_alert())
    assert desk.sent() == [("a1", 0, "firing")]
    assert desk.reader.refused == {"out_of_range": 1}
    assert topic.cursors["oncall"][0].offset == 2


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{}",
        b"null",
        b"7",
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"id":"a1","revision":1e999}',
        b'{"id":"a1","revision":99999999999999999999999}',
    ],
)
def test_rubbish_is_set_aside(value: bytes, topic: "MemoryTopic", make_alert: MakeAlert) -> None:
    """Whatever the bytes are."""
    desk = Desk(topic)
    topic.write_raw(value, b"a1", timestamp_ms=T0)
    topic.write(make_alert())
    assert desk.sent() == [("a1", 0, "firing")]
    assert desk.reader.refused == {"not_an_alert": 1}


@pytest.mark.parametrize("change", ["severity", "status"])
def test_an_unknown_word_is_set_aside(change: str, topic: "MemoryTopic", make_alert: MakeAlert) -> None:
    """A severity or a status that there is not."""
    desk = Desk(topic)
    fields = msgspec.to_builtins(make_alert()) | {change: "apocalyptic"}
    topic.write_raw(msgspec.json.encode(fields), b"a1", timestamp_ms=T0)
    assert desk.sent() == []
    assert desk.reader.refused == {"not_an_alert": 1}


def test_a_record_under_another_key_is_set_aside(topic: "MemoryTopic", make_alert: MakeAlert) -> None:
    """Compaction goes by the key, so such a record would outlive its alert."""
    desk = Desk(topic)
    topic.write_raw(msgspec.json.encode(make_alert()), b"another", timestamp_ms=T0)
    topic.write_raw(msgspec.json.encode(make_alert()), b"", timestamp_ms=T0)
    assert desk.sent() == []
    assert desk.reader.refused == {"wrong_key": 2}


def test_a_high_revision_mutes_nothing_that_follows(topic: "MemoryTopic", make_alert: MakeAlert) -> None:
    """The last word counts, whatever its number."""
    desk = Desk(topic)
    topic.write(make_alert())
    assert desk.sent() == [("a1", 0, "firing")]
    topic.write(make_alert(revision=JUMP_MAX, summary="forged", status=AlertStatus.RESOLVED, ends_at_ms=T0))
    desk.sent()
    topic.write(make_alert(revision=1, summary="real"))
    assert desk.sent() == [("a1", 1, "firing")]
    topic.write(make_alert(revision=2, status=AlertStatus.RESOLVED, ends_at_ms=T0))
    assert desk.sent() == [("a1", 2, "resolved")]


def test_a_revision_that_leaves_many_out_is_set_aside(topic: "MemoryTopic", make_alert: MakeAlert) -> None:
    """Of an alert that is known; it does not even reach the receivers."""
    desk = Desk(topic)
    topic.write(make_alert())
    desk.sent()
    topic.write(make_alert(revision=JUMP_MAX + 1, status=AlertStatus.RESOLVED, ends_at_ms=T0))
    assert desk.sent() == []
    assert desk.reader.refused == {"revision_jump": 1}


def test_a_flood_of_new_alerts_fills_no_memory(
    topic: "MemoryTopic", make_alert: MakeAlert, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond a bound new ones are set aside, and those that are known go on."""
    monkeypatch.setattr("alerts.delivery.outbox.OPEN_MAX", 3)
    desk = Desk(topic)
    topic.write(*(make_alert(id=f"f{n}") for n in range(5)))
    topic.write(make_alert(id="f1", revision=1, status=AlertStatus.RESOLVED, ends_at_ms=T0))
    assert {one for one, *_ in desk.sent()} == {"f0", "f2"}
    assert desk.reader.refused == {"too_many": 2}
    topic.write(make_alert(id="f9"))
    assert desk.sent() == [("f9", 0, "firing")]


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_start_believes_the_last_word_too(
    is_compacted: bool, topic: "MemoryTopic", make_alert: MakeAlert
) -> None:
    """A forged revision that was overtaken in the log is not what a new process begins with."""
    topic.write(make_alert(revision=90, status=AlertStatus.RESOLVED, ends_at_ms=T0))
    topic.write(make_alert(revision=1))
    if is_compacted:
        topic.compact()
    assert Desk(topic).sent() == [("a1", 1, "firing")]


def test_a_repeat_after_a_crash_is_no_last_word(topic: "MemoryTopic", make_alert: MakeAlert) -> None:
    """It is equal byte for byte to what was there."""
    story = [make_alert(), make_alert(revision=1, status=AlertStatus.RESOLVED, ends_at_ms=T0)]
    desk = Desk(topic)
    topic.write(story[0])
    assert desk.sent() == [("a1", 0, "firing")]
    topic.write(story[1], story[0])
    assert desk.sent() == [("a1", 1, "resolved")]
    topic.write(*story)
    assert desk.sent() == []
    assert Desk(topic).sent() == []


def test_a_record_from_the_future_cannot_vouch_for_its_own_times(make_alert: MakeAlert) -> None:
    """Who forges an alert forges the record's time as well, so that is held against our clock."""
    value = msgspec.json.encode(make_alert(starts_at_ms=T0 + 10 * AHEAD_MAX_MS))
    found = read_alert(b"a1", value, timestamp_ms=2**62, now_ms=T0)
    assert isinstance(found, Refused)
    assert found.reason == "out_of_range"


def test_bounds_let_every_real_alert_through(make_alert: MakeAlert) -> None:
    """A group's name as long as Kafka allows, in every sentence."""
    group = "g" * 32_767
    alert = make_alert(group=group, summary=group, cause=group, evidence=(group,) * 10)
    assert read_alert(b"a1", msgspec.json.encode(alert), timestamp_ms=T0, now_ms=T0) == alert


def test_a_cause_that_its_topic_forgot_holds_nothing_back(make_alert: MakeAlert) -> None:
    """A tombstone ends what an alert about the whole cluster excused."""
    causes = WideCauses()
    causes.note(make_alert(id="wide", name="SourceSilent", group=""))
    causes.forget("wide")

    assert not any(causes._open.values())
