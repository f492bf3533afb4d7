"""UnsafeTimeouts: advice from what is measured, once, and nothing about ordinary settings."""

from typing import Any

import pytest

from alerts.alert.alert import AlertStatus, Severity
from coordinator_model.groups.core.refusals import pause_before
from coordinator_model.observations.base import Source
from coordinator_model.observations.log import PendingMemberExpired
from coordinator_model.observations.requests import Client, Heartbeats, JoinAnswered
from coordinator_model.state.group import Group, Member, Step
from tests.unit.alerts.rules.conftest import T0, NewStage, Stage

NAME = "UnsafeTimeouts"
DAY_MS = 24 * 3_600_000


def beat(stage: Stage, member: str) -> None:
    """A heartbeat, with what the shard notes of the pause before it."""
    what = Heartbeats(
        group="orders",
        member_id=member,
        generation=stage.generation,
        error_code=0,
        times=(T0 + stage.now_ms,),
        client=Client(client_id=stage.members[member]["client_id"], host="/10.0.0.1"),
    )
    pause = pause_before(stage.group, what)
    stage.see(what, Source.REQUEST_LOG)
    if pause is not None:
        stage.ask(Step(notes=[pause]))


def beats(stage: Stage, interval_ms: int, count: int) -> None:
    for _ in range(count):
        stage.wait(interval_ms)
        for member in stage.members:
            beat(stage, member)


@pytest.mark.parametrize(
    ("session_ms", "interval_ms"), [(45_000, 3_000), (6_000, 2_000), (30_000, 10_000), (10_000, 3_000)]
)
def test_ordinary_settings_are_silent(new_stage: NewStage, session_ms: int, interval_ms: int) -> None:
    """Kafka's defaults, and everything that leaves room for three heartbeats."""
    stage = new_stage(requests=True)
    stage.start(3, session_ms=session_ms)
    beats(stage, interval_ms, 200)

    assert not stage.alerts


def test_a_session_of_two_heartbeats(new_stage: NewStage) -> None:
    """Told once, with the value that is set, what was measured, and what to set."""
    stage = new_stage({"session_timeout_imminent": {"enabled": False}}, requests=True)
    stage.start(2, session_ms=6_000)
    beats(stage, 3_000, 10)
    assert not stage.alerts
    beats(stage, 3_000, 200)

    (alert,) = stage.alerts
    assert alert.name == NAME
    assert alert.severity is Severity.INFO
    assert "session.timeout.ms 6000 leaves room for less than three heartbeats" in alert.summary
    assert "which come every 3 s" in alert.summary
    assert alert.advice == "Set heartbeat.interval.ms to 2000 at most, or session.timeout.ms to 9000 or more."


def test_it_ends_when_the_value_is_changed(new_stage: NewStage) -> None:
    """And only then: a restart with the same value is no change."""
    stage = new_stage({"session_timeout_imminent": {"enabled": False}}, requests=True)
    stage.start(1, session_ms=6_000)
    beats(stage, 3_000, 12)
    for session_ms in (6_000, 12_000):
        assert [alert.status for alert in stage.alerts] == [AlertStatus.FIRING]
        stage.leave("m0")
        stage.join("m0+", session_ms=session_ms)
        stage.members = {"m0": stage.members["m0+"]}
        stage.group.departures = ()
        stage.rebalance()

    assert [alert.status for alert in stage.alerts] == [AlertStatus.FIRING, AlertStatus.RESOLVED]


def test_one_long_pause_is_no_setting(new_stage: NewStage) -> None:
    """A GC pause now and then; the third within a day is advice."""
    stage = new_stage({"session_timeout_imminent": {"enabled": False}}, requests=True)
    stage.start(2, session_ms=10_000)
    told = []
    for _ in range(3):
        beats(stage, 2_000, 60)
        for _ in range(4):
            stage.wait(2_200)
            beat(stage, "m0")
        beat(stage, "m1")
        told.append(len(stage.alerts))

    assert told == [0, 0, 1]
    assert "of being removed, 3 times (longest pause 8.8 s)" in stage.alerts[0].summary
    assert "set session.timeout.ms to 18000" in stage.alerts[0].advice


def test_pauses_of_the_log_itself_prove_nothing(new_stage: NewStage) -> None:
    """Nobody was heard in that time."""
    stage = new_stage({"session_timeout_imminent": {"enabled": False}}, requests=True)
    stage.start(2, session_ms=10_000)
    for _ in range(5):
        beats(stage, 2_000, 60)
        stage.wait(8_800)
        stage.on_since_ms = stage.now_ms
        beat(stage, "m0")

    assert not stage.alerts


def poll_timeout(stage: Stage, member: str) -> None:
    stage.leave(member, reason="consumer poll timeout has expired.")
    stage.rebalance()
    stage.wait(2 * 60_000)


def test_poll_timeouts_that_repeat(new_stage: NewStage) -> None:
    """The third within a day proposes a value; the first two are PollIntervalExceeded alone."""
    stage = new_stage()
    stage.start(5, poll_ms=60_000)
    poll_timeout(stage, "m0")
    poll_timeout(stage, "m1")
    assert not stage.told(NAME)
    poll_timeout(stage, "m2")

    (alert,) = stage.told(NAME)
    assert "max.poll.interval.ms 60000 is too short" in alert.summary
    assert "Set max.poll.interval.ms to 90000 or more" in alert.advice


def test_join_phases_that_nearly_run_out(new_stage: NewStage) -> None:
    """Twice a join phase took most of the rebalance timeout."""
    stage = new_stage({"stuck_preparing_rebalance": {"enabled": False}})
    stage.start(3, poll_ms=60_000)
    for turn in range(2):
        assert not stage.told(NAME)
        stage.join(f"n{turn}", poll_ms=60_000)
        stage.rebalance(join_ms=50_000)
        stage.wait(5 * 60_000)

    (alert,) = stage.told(NAME)
    assert "join phases took up to 50 s (2 times); members have 60000 ms" in alert.summary


def test_quick_join_phases_are_silent(new_stage: NewStage) -> None:
    """Members notice at their next heartbeat; the first join phase waits for others."""
    stage = new_stage()
    stage.start(3, poll_ms=6_000)
    for turn in range(4):
        stage.join(f"n{turn}", poll_ms=6_000)
        stage.rebalance(join_ms=3_000)
        stage.wait(20 * 60_000)

    assert not stage.alerts


def test_the_first_join_phase_waits_for_others(new_stage: NewStage) -> None:
    """The coordinator's initial delay is nobody's slowness."""
    stage = new_stage()
    for turn in range(3):
        stage.join(f"m{turn}", poll_ms=3_500)
        stage.rebalance(join_ms=3_000)
        stage.wait(20 * 60_000)
        stage.leave(f"m{turn}")
        stage.rebalance()
        stage.wait(20 * 60_000)

    assert not stage.told(NAME)


@pytest.mark.parametrize(
    ("changed", "name", "usual"),
    [
        ({"session_ms": 10_000}, "session", "session.timeout.ms 45000"),
        ({"poll_ms": 900_000}, "max.poll", "max.poll.interval.ms 300000"),
    ],
)
def test_mixed_settings(new_stage: NewStage, changed: dict[str, Any], name: str, usual: str) -> None:
    """For longer than a rolling change takes; what most have is proposed."""
    stage = new_stage()
    stage.start(2)
    stage.join("odd", client="odd", **changed)
    stage.rebalance()
    stage.wait(15 * 60_000 - 1)
    assert not stage.alerts
    stage.wait(1)

    (alert,) = stage.alerts
    assert name in alert.cause
    assert "odd" in alert.cause
    assert alert.advice == f"Give all members of the group the timeouts that most of them have: {usual}."
    stage.leave("odd")
    stage.rebalance()
    assert stage.alerts[-1].status is AlertStatus.RESOLVED


def test_small_differences_are_nobodys_business(new_stage: NewStage) -> None:
    """Less than a factor of two."""
    stage = new_stage()
    stage.start(2)
    stage.join("odd", session_ms=30_000, poll_ms=400_000)
    stage.rebalance()
    stage.wait(DAY_MS)

    assert not stage.alerts


def test_a_session_timeout_that_the_broker_refuses(new_stage: NewStage) -> None:
    """Error 26: the client cannot join; the setting and the broker's limits are named."""
    stage = new_stage(requests=True)
    stage.start(1)
    refused = JoinAnswered(
        group="orders",
        member_id="",
        error_code=26,
        generation=-1,
        leader_id="",
        arrived_at_ms=T0 + stage.now_ms,
        session_timeout_ms=1_000,
        client=Client(client_id="hasty", host="/10.0.0.9"),
    )
    stage.see(refused, Source.REQUEST_LOG)

    (alert,) = stage.alerts
    assert "the coordinator refuses session.timeout.ms 1000 of hasty on 10.0.0.9" in alert.summary
    assert "group.min.session.timeout.ms" in alert.advice


def test_ids_that_nobody_uses(new_stage: NewStage) -> None:
    """Clients that give up while they join: five ids within ten minutes."""
    stage = new_stage()
    stage.start(1)
    for index in range(5):
        assert not stage.alerts
        stage.wait(60_000)
        stage.log(PendingMemberExpired(group="orders", member_id=f"lost-{index}"))

    assert "the coordinator gave out 5 member ids, and no client used them" in stage.alerts[0].summary


def test_an_id_now_and_then_is_no_leak(new_stage: NewStage) -> None:
    """A client that was killed while it joined, every three minutes."""
    stage = new_stage()
    stage.start(1)
    for index in range(20):
        stage.wait(3 * 60_000)
        stage.log(PendingMemberExpired(group="orders", member_id=f"lost-{index}"))

    assert not stage.alerts


def test_notes_are_bounded() -> None:
    """A pause is noted when it is narrow, or when there are ten in a row, and not at each heartbeat."""
    member = Member(member_id="m", session_timeout_ms=6_000, last_heartbeat_ms=0)
    group = Group(group="g", members={"m": member})
    noted = []
    for turn in range(1, 40):
        what = Heartbeats(group="g", member_id="m", generation=1, error_code=0, times=(turn * 3_000,))
        noted.append(pause_before(group, what))
        member.last_heartbeat_ms = turn * 3_000

    assert [turn for turn, pause in enumerate(noted, 1) if pause] == [10]
