"""Silences and maintenance: when they hold, what they are about, and that they lose nothing."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from alerts.alert.alert import Alert, AlertStatus, Severity
from alerts.delivery.log_reader import Reader
from alerts.delivery.outbox import Outbox
from alerts.delivery.receivers.receiver import Delivery, Outcome
from alerts.delivery.routing import Route
from alerts.delivery.silences import DAYS, FOREVER_MS, LiveQuiet, Maintenance, Match, Quiet, Silence
from alerts.delivery.waiting import HeldBack
from alerts.rules.wide_causes import WIDE_HOLD_MAX_MS

if TYPE_CHECKING:
    from tests.unit.alerts.conftest import MemoryTopic

MakeAlert = Callable[..., Alert]
T0 = 1_700_000_002_000
MINUTE, HOUR = 60_000, 3_600_000
DELIVERED = Delivery(outcome=Outcome.DELIVERED)
RESOLVED = AlertStatus.RESOLVED
EVERYTHING = Match()


def at(text: str) -> int:
    """A moment as epoch ms."""
    return round(datetime.fromisoformat(text).timestamp() * 1_000)


# --- windows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        pytest.param(Match(), True, id="everything"),
        pytest.param(Match(groups=("pay.*",)), True, id="group"),
        pytest.param(Match(groups=("pay",)), False, id="part-of-the-name"),
        pytest.param(Match(alerts=("RebalanceStorm",)), True, id="alert"),
        pytest.param(Match(alerts=("GroupDeleted",)), False, id="other-alert"),
        pytest.param(Match(clusters=("eu",), groups=("payments",)), True, id="cluster"),
        pytest.param(Match(clusters=("us",)), False, id="other-cluster"),
    ],
)
def test_a_match_is_of_what_it_names(make_alert: MakeAlert, match: Match, expected: bool) -> None:
    """Every key that is given must fit; groups by their whole names."""
    assert match.is_of(make_alert()) is expected


def test_silenced_groups_do_not_silence_the_cluster(make_alert: MakeAlert) -> None:
    """That nobody answers is told, whatever pattern is silenced; unless no group is named."""
    unreachable = make_alert(name="ClusterUnreachable", group="")

    assert not Match(groups=(".*",)).is_of(unreachable)
    assert Match(clusters=("eu",)).is_of(unreachable)


@pytest.mark.parametrize(
    ("now", "until"),
    [
        pytest.param("2026-11-20T21:59:59Z", None, id="friday-before"),
        pytest.param("2026-11-20T22:00:00Z", "2026-11-21T02:00:00Z", id="it-begins"),
        pytest.param("2026-11-21T01:59:59Z", "2026-11-21T02:00:00Z", id="past-midnight"),
        pytest.param("2026-11-21T02:00:00Z", None, id="it-ends"),
        pytest.param("2026-11-21T23:00:00Z", None, id="saturday"),
    ],
)
def test_maintenance_lasts_past_midnight(now: str, until: str | None) -> None:
    """The day is that on which it begins."""
    window = Maintenance(match=EVERYTHING, days=(4,), from_minute=22 * 60, to_minute=2 * 60)

    assert window.until(at(now)) == (at(until) if until else None)


@pytest.mark.parametrize(
    ("now", "until"),
    [
        pytest.param("2026-07-01T00:30:00Z", "2026-07-01T02:00:00Z", id="summer"),
        pytest.param("2026-12-01T00:30:00Z", None, id="winter-not-yet"),
        pytest.param("2026-12-01T01:30:00Z", "2026-12-01T03:00:00Z", id="winter"),
        pytest.param("2026-10-25T00:30:00Z", "2026-10-25T03:00:00Z", id="the-longer-night"),
    ],
)
def test_maintenance_goes_by_the_clock_on_the_wall(now: str, until: str | None) -> None:
    """Two to four in Berlin, summer and winter."""
    window = Maintenance(match=EVERYTHING, from_minute=120, to_minute=240, timezone="Europe/Berlin")

    assert window.until(at(now)) == (at(until) if until else None)


def test_a_whole_day_is_quiet_until_midnight() -> None:
    """00:00 to 24:00."""
    window = Maintenance(match=EVERYTHING, days=(DAYS.index("sun"),))

    assert window.until(at("2026-11-22T12:00:00Z")) == at("2026-11-23T00:00:00Z")
    assert window.until(at("2026-11-23T00:00:00Z")) is None


def test_windows_that_meet_are_one_quiet(make_alert: MakeAlert) -> None:
    """Saturday and Sunday, and a silence that begins before they are over."""
    quiet = Quiet(
        [Silence(match=EVERYTHING, from_ms=at("2026-11-22T20:00Z"), until_ms=at("2026-11-23T06:00Z"))],
        [Maintenance(match=EVERYTHING, days=(5, 6))],
    )

    assert quiet.until_ms(make_alert(), at("2026-11-21T12:00:00Z")) == at("2026-11-23T06:00:00Z")
    assert quiet.until_ms(make_alert(), at("2026-11-23T06:00:00Z")) is None


def test_every_day_without_an_end_is_bounded(make_alert: MakeAlert) -> None:
    """Windows without a gap are followed for a while, not for ever."""
    quiet = Quiet(maintenance=[Maintenance(match=EVERYTHING)])
    until_ms = quiet.until_ms(make_alert(), T0)

    assert until_ms is not None
    assert T0 + 10 * 24 * HOUR < until_ms < T0 + 30 * 24 * HOUR


# --- what the outbox makes of it ---------------------------------------------------------------------


class Desk:
    """An outbox with its reader, a clock, and a receiver that takes everything."""

    def __init__(self, topic: "MemoryTopic", quiet: Quiet | LiveQuiet, now_ms: int = T0) -> None:
        self.now_ms = now_ms
        routes = (Route(receivers=("oncall",), repeat_interval_ms=4 * HOUR),)
        self.outbox = Outbox("oncall", routes, max_age_ms=24 * HOUR, caught_up=lambda _: True, quiet=quiet)
        self.reader = Reader("main", topic.open, self.outbox, clock_ms=lambda: self.now_ms)
        self.log = topic.open("oncall")
        self.reader.begin(self.log)

    def send(self, at_ms: int | None = None) -> list[tuple[str, int, list[tuple[str, str]]]]:
        """Read and deliver all that is due; return (id, revision, [(status, severity)]) of each."""
        self.now_ms = self.now_ms if at_ms is None else at_ms
        sent = []
        for _ in range(2):  # what was let go is announced by a cursor first
            self.reader.step(self.log)
            while work := self.outbox.next_work(self.now_ms):
                told = [(str(one.status), str(one.severity)) for one in work.notification.alerts]
                sent.append((work.notification.id, work.notification.revision, told))
                self.outbox.settle(work, DELIVERED, self.now_ms)
        self.reader.commit(self.log)
        return sent


@pytest.fixture
def make_desk(topic: "MemoryTopic") -> Callable[..., Desk]:
    def make(until_ms: int = T0 + HOUR, *, from_ms: int = 0, now_ms: int = T0, **match: Any) -> Desk:
        silence = Silence(match=Match(**match), from_ms=from_ms, until_ms=until_ms)
        return Desk(topic, Quiet([silence]), now_ms)

    return make


MakeDesk = Callable[..., Desk]


def test_what_still_fires_when_the_quiet_ends_is_told(
    make_desk: MakeDesk, topic: "MemoryTopic", make_alert: MakeAlert
) -> None:
    """Once, and at once."""
    desk = make_desk(groups=("payments",))
    topic.write(make_alert())

    assert desk.send() == []
    assert desk.send(T0 + HOUR - 1) == []
    assert desk.send(T0 + HOUR) == [("a1", 0, [("firing", "warning")])]
    assert desk.send() == []


def test_what_ended_in_the_quiet_is_not_told(
    make_desk: MakeDesk, topic: "MemoryTopic", make_alert: MakeAlert
) -> None:
    """Neither its beginning nor its end, whose beginning nobody was told."""
    desk = make_desk()
    topic.write(make_alert())
    assert desk.send() == []
    topic.write(make_alert(revision=1, status=RESOLVED, ends_at_ms=T0 + 5))

    assert desk.send(T0 + 10) == []
    assert desk.send(T0 + 2 * HOUR) == []


def test_others_are_told_meanwhile(make_desk: MakeDesk, topic: "MemoryTopic", make_alert: MakeAlert) -> None:
    """A silence is about what it names, and holds up nothing else."""
    desk = make_desk(alerts=("RebalanceStorm",))
    topic.write(make_alert(), make_alert(id="a2", name="SessionTimeout"))

    assert [told[0] for told in desk.send()] == ["a2"]


def test_the_end_of_what_was_told_is_told(
    make_desk: MakeDesk, topic: "MemoryTopic", make_alert: MakeAlert
) -> None:
    """Whoever heard of it before the quiet began must not hold it for firing for days."""
    desk = make_desk(from_ms=T0 + MINUTE)
    topic.write(make_alert())
    assert len(desk.send()) == 1
    topic.write(make_alert(revision=1, status=RESOLVED, ends_at_ms=T0 + 2 * MINUTE))

    assert desk.send(T0 + 2 * MINUTE) == [("a1", 1, [("resolved", "warning")])]


def test_louder_and_repeated_words_wait_too(
    make_desk: MakeDesk, topic: "MemoryTopic", make_alert: MakeAlert
) -> None:
    """And are told when the quiet ends, the newest alone."""
    desk = make_desk(T0 + 10 * HOUR, from_ms=T0 + MINUTE)
    topic.write(make_alert())
    assert len(desk.send()) == 1
    topic.write(make_alert(revision=1, severity=Severity.CRITICAL))

    assert desk.send(T0 + 2 * MINUTE) == []
    assert desk.send(T0 + 5 * HOUR) == []
    assert desk.send(T0 + 10 * HOUR) == [("a1", 1, [("resolved", "warning"), ("firing", "critical")])]


def test_a_restart_within_the_quiet_forgets_nothing(
    make_desk: MakeDesk, topic: "MemoryTopic", make_alert: MakeAlert
) -> None:
    """The cursor has passed what is silenced, which is found open and not told; what was told stays told."""
    first = make_desk(groups=("payments",))
    topic.write(make_alert(), make_alert(id="a2", group="other"))
    assert [told[0] for told in first.send()] == ["a2"]
    assert topic.cursors["oncall"][0].offset == 2
    second = make_desk(groups=("payments",), now_ms=T0 + MINUTE)

    assert second.send() == []
    assert second.send(T0 + HOUR) == [("a1", 0, [("firing", "warning")])]


def test_a_silenced_alert_leaves_no_doubt_for_the_next_start(
    make_desk: MakeDesk, topic: "MemoryTopic", make_alert: MakeAlert
) -> None:
    """Nobody may have been told, so its end after a restart is nobody's news."""
    first = make_desk()
    topic.write(make_alert())
    assert first.send() == []
    topic.write(make_alert(revision=1, status=RESOLVED, ends_at_ms=T0 + 5))
    second = make_desk(now_ms=T0 + MINUTE)

    assert second.send() == []
    assert second.send(T0 + 2 * HOUR) == []


def test_a_silence_without_an_end_never_tells(
    make_desk: MakeDesk, topic: "MemoryTopic", make_alert: MakeAlert
) -> None:
    """Until somebody takes it out of the configuration."""
    desk = make_desk(FOREVER_MS, groups=("payments",))
    topic.write(make_alert())

    assert desk.send(T0 + 10_000 * HOUR) == []


# --- silences that change while alerts wait ----------------------------------------------------------


def a_silence(until_ms: int = T0 + HOUR, **match: Any) -> Silence:
    return Silence(match=Match(**match), until_ms=until_ms)


def test_a_new_silence_holds_back_what_was_not_sent(topic: "MemoryTopic", make_alert: MakeAlert) -> None:
    """At the next look, and nothing else."""
    quiet = LiveQuiet()
    desk = Desk(topic, quiet)
    topic.write(make_alert(), make_alert(id="a2", group="other"))
    quiet.add_all([a_silence(groups=("payments",))])

    assert [told[0] for told in desk.send()] == ["a2"]
    assert desk.outbox.held_back("a1", T0) is HeldBack.SILENCED


def test_a_silence_that_was_ended_lets_go_at_once(topic: "MemoryTopic", make_alert: MakeAlert) -> None:
    """What still fires is sent, once; what another silence is about goes on waiting."""
    quiet = LiveQuiet()
    other = a_silence(groups=("other",))
    quiet.add_all([a_silence(groups=("payments",)), other])
    desk = Desk(topic, quiet)
    topic.write(make_alert(), make_alert(id="a2", group="other"))
    assert desk.send() == []
    quiet.add_all([other])

    assert desk.send(T0 + 1) == [("a1", 0, [("firing", "warning")])]
    assert desk.send(T0 + 2) == []
    assert desk.send(T0 + HOUR) == [("a2", 0, [("firing", "warning")])]


def test_a_silence_that_was_made_longer_lasts_longer(topic: "MemoryTopic", make_alert: MakeAlert) -> None:
    """And one that was made shorter ends sooner."""
    quiet = LiveQuiet()
    quiet.add_all([a_silence()])
    desk = Desk(topic, quiet)
    topic.write(make_alert())
    assert desk.send() == []
    quiet.add_all([a_silence(T0 + 3 * HOUR)])
    assert desk.send(T0 + HOUR) == []
    quiet.add_all([a_silence(T0 + 2 * HOUR)])

    assert desk.send(T0 + 2 * HOUR - 1) == []
    assert desk.send(T0 + 2 * HOUR) == [("a1", 0, [("firing", "warning")])]


def test_what_was_told_and_is_silenced_is_not_repeated(topic: "MemoryTopic", make_alert: MakeAlert) -> None:
    """Until the silence ends."""
    quiet = LiveQuiet()
    desk = Desk(topic, quiet)
    topic.write(make_alert())
    assert len(desk.send()) == 1
    quiet.add_all([Silence(match=Match(alert_id="a1"))])

    assert desk.send(T0 + 5 * HOUR) == []
    quiet.add_all([])
    assert desk.send(T0 + 5 * HOUR + 1) == [("a1", 0, [("firing", "warning")])]


# --- effects of what the whole cluster suffers from --------------------------------------------------


@pytest.fixture
def desk(topic: "MemoryTopic") -> Desk:
    return Desk(topic, Quiet())


def test_effects_wait_while_the_clusters_trouble_fires(
    desk: Desk, topic: "MemoryTopic", make_alert: MakeAlert
) -> None:
    """And are told, if they still fire, when it is over."""
    cause = make_alert(id="c", name="SourceSilent", group="")
    topic.write(
        cause, make_alert(name="CommitsStopped"), make_alert(id="us", name="LagGrowing", cluster="us")
    )

    assert {told[0] for told in desk.send()} == {"c", "us"}
    assert desk.send(T0 + MINUTE) == []
    topic.write(make_alert(id="c", name="SourceSilent", group="", revision=1, status=RESOLVED, ends_at_ms=T0))
    assert {told[0] for told in desk.send(T0 + 2 * MINUTE)} == {"c", "a1"}


def test_effects_that_were_told_are_not_taken_back(
    desk: Desk, topic: "MemoryTopic", make_alert: MakeAlert
) -> None:
    """A cause that comes later silences no one's news, such as that it got louder."""
    topic.write(make_alert(name="CommitsStopped"))
    assert len(desk.send()) == 1
    topic.write(make_alert(id="c", name="SourceSilent", group=""))
    topic.write(make_alert(name="CommitsStopped", revision=1, severity=Severity.CRITICAL))

    assert {told[0] for told in desk.send()} == {"c", "a1"}


def test_no_cause_holds_anything_back_for_ever(
    desk: Desk, topic: "MemoryTopic", make_alert: MakeAlert
) -> None:
    """Silence of a source for hours is no reason to keep quiet about stopped commits."""
    topic.write(make_alert(id="c", name="SourceSilent", group=""), make_alert(name="CommitsStopped"))
    assert [told[0] for told in desk.send()] == ["c"]

    assert [told[0] for told in desk.send(T0 + WIDE_HOLD_MAX_MS)] == ["a1"]


# --- receivers that silence by themselves -------------------------------------------------------------


def test_a_receiver_that_silences_by_itself_is_told_at_once(make_alert: MakeAlert) -> None:
    """And again when a silence of the alert comes, changes or goes, whatever the repeat interval."""
    quiet = LiveQuiet()
    outbox = Outbox(
        "oncall", [Route(receivers=("oncall",))], max_age_ms=HOUR, quiet=quiet, takes_silenced=True
    )
    outbox.direct(make_alert(group="payments"), now_ms=T0)
    outbox.direct(make_alert(id="a2", group="orders"), now_ms=T0)
    sent = []
    for silences in (
        [],
        [a_silence(groups=("payments",))],
        [a_silence(T0 + 2 * HOUR, groups=("payments",))],
        [],
    ):
        quiet.add_all(silences)
        now = []
        while work := outbox.next_work(T0):
            now.append(work.notification.id)
            outbox.settle(work, Delivery(outcome=Outcome.DELIVERED), T0)
        sent.append(now)
    assert sent == [["a1", "a2"], ["a1"], ["a1"], ["a1"]]
    assert outbox.held_back("a1", T0) is None
