"""One incident is one alert: flapping is damped, effects wait for causes, half evidence is quieter."""

import dataclasses
from typing import TYPE_CHECKING

import msgspec
import pytest

from alerts.alert.alert import Alert, AlertStatus, Severity
from alerts.rules import judge, memories
from alerts.rules import registry as order
from alerts.rules.engine import damping
from alerts.rules.engine.inhibition import GRACE_MS
from alerts.rules.engine.lifecycle import Finding, OpenAlert
from alerts.rules.engine.situation import Situation, Verdict
from coordinator_model.shard.judging import LiveSources

if TYPE_CHECKING:
    from tests.unit.alerts.rules.conftest import NewStage, Stage

T0 = 1_700_000_000_000
MINUTE = 60_000
STUCK = "StuckPreparingRebalance"


def get_stuck(stage: "Stage", number: int) -> None:
    """A join phase that lasts for a minute and a half, and a minute of peace."""
    stage.join(f"x{number}", host="/10.0.0.9")
    stage.wait(90_000)
    stage.rebalance()
    stage.wait(MINUTE)


def told(stage: "Stage", name: str = STUCK) -> list[Alert]:
    """All revisions but those of other alerts."""
    return stage.told(name)


def flap(stage: "Stage", rounds: int) -> None:
    """The same trouble comes and goes, without members that come and go."""
    stage.start(3)
    stage.wait(60 * MINUTE)
    for number in range(rounds):
        get_stuck(stage, number)


@pytest.fixture
def stage(new_stage: "NewStage") -> "Stage":
    return new_stage({"rebalance_storm": {"enabled": False}})


def test_what_comes_once_or_twice_ends_at_once(stage: "Stage") -> None:
    """Nobody waits for the end of an ordinary alert."""
    flap(stage, 2)

    assert [one.status for one in told(stage)] == [
        AlertStatus.FIRING,
        AlertStatus.RESOLVED,
        AlertStatus.FIRING,
        AlertStatus.RESOLVED,
    ]


def test_what_comes_and_goes_is_one_alert_with_a_history(stage: "Stage") -> None:
    """From the third time on it stays open; its end says how often it came, and when it really ended."""
    flap(stage, 9)
    ended_ms = T0 + stage.now_ms - MINUTE - 50
    ids = list(dict.fromkeys(one.id for one in told(stage)))
    assert len(ids) == 3
    assert told(stage)[-1].status is AlertStatus.FIRING
    assert "It comes and goes, so this alert stays open" in told(stage)[-1].summary
    stage.wait(30 * MINUTE)
    last = told(stage)[-1]

    assert (last.id, last.status, last.ends_at_ms) == (ids[2], AlertStatus.RESOLVED, ended_ms)
    assert "The condition held 7 times since 2023-11-14 " in last.summary


def test_one_client_that_comes_and_goes_is_told_of_once(new_stage: "NewStage") -> None:
    """Under ever new member ids: after the third time nothing more until the end; another client is news."""
    stage = new_stage(
        {"rebalance_storm": {"enabled": False}, "session_timeout": {"enabled": False}}, requests=True
    )
    name = "SessionTimeoutImminent"
    stage.start(2, session_ms=10_000)
    for turn in range(7):
        lapse(stage, f"bad-{turn}", "bad")
    told_of_bad = len(stage.told(name))
    assert told_of_bad == 6
    assert stage.told(name)[-1].summary.endswith("until the condition has been away for 5 min to 15 min.")
    lapse(stage, "other", "other")
    news = stage.told(name)[told_of_bad:]

    assert [culprit.client_id for culprit in news[0].culprits] == ["other"]
    assert len({alert.id for alert in stage.told(name)}) == 3


def lapse(stage: "Stage", member: str, client: str) -> None:
    """A member comes, beats, falls silent and is removed, while the others go on."""
    stage.join(member, client=client, host="/10.0.0.66", session_ms=10_000)
    stage.rebalance()
    for second in range(14):
        for other in stage.members:
            if other != member or second < 3:
                stage.beat(other)
        stage.wait(1_000)
    stage.time_out(member)
    stage.rebalance()
    for _ in range(30):
        for other in stage.members:
            stage.beat(other)
        stage.wait(1_000)


def test_an_end_is_held_for_a_quarter_of_an_hour_at_most(stage: "Stage") -> None:
    """However often it came before."""
    flap(stage, 12)
    stage.wait(damping.HOLD_MAX_MS - MINUTE - 100)
    assert told(stage)[-1].status is AlertStatus.FIRING
    stage.wait(100)

    assert told(stage)[-1].status is AlertStatus.RESOLVED


def test_what_comes_every_hour_is_news_every_hour(stage: "Stage") -> None:
    """Half an hour later earlier ends do not count."""
    stage.start(3)
    for number in range(5):
        stage.wait(60 * MINUTE)
        get_stuck(stage, number)

    assert len({one.id for one in told(stage)}) == 5
    assert told(stage)[-1].status is AlertStatus.RESOLVED


def test_a_group_that_is_gone_keeps_nothing_open(stage: "Stage") -> None:
    """A held alert ends with its group."""
    flap(stage, 4)
    assert told(stage)[-1].status is AlertStatus.FIRING
    stage.ask(removed=True)

    assert told(stage)[-1].status is AlertStatus.RESOLVED


def test_what_is_remembered_of_flapping_is_forgotten(stage: "Stage") -> None:
    """And was little."""
    flap(stage, 6)
    small = len(stage.memory or b"")
    flap(stage, 0)
    stage.wait(120 * MINUTE)

    assert len(stage.memory or b"") < small


def test_memory_of_the_last_version_is_read(stage: "Stage") -> None:
    """A held alert has more fields than one of before."""
    flap(stage, 4)
    encoded = msgspec.msgpack.decode((stage.memory or b"")[memories.HEADER.size :])
    opened = encoded[0][STUCK]

    assert msgspec.convert(opened[:5], OpenAlert).firings == 1
    assert msgspec.convert(opened, OpenAlert).ended_ms > T0


# --- effects -----------------------------------------------------------------------------------------


def finding(situation: Situation) -> Finding:
    """What a rule would say now."""
    return Finding(
        starts_at_ms=situation.now_ms,
        severity=Severity.WARNING,
        summary=f"Group {situation.group.group} stopped.",
        cause="No commits.",
        cost="Work.",
        advice="Look.",
    )


@pytest.fixture
def always_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """CommitsStopped holds all the time."""
    rules = tuple(
        dataclasses.replace(rule, evaluate=lambda situation: Verdict(finding=finding(situation)))
        if rule.name == "CommitsStopped"
        else rule
        for rule in order.RULES
    )
    monkeypatch.setattr(judge, "RULES", rules)


@pytest.mark.usefixtures("always_stopped")
def test_an_effect_is_told_alone(stage: "Stage") -> None:
    """Without a cause it fires at once."""
    stage.start(3)

    assert "CommitsStopped" in stage.names()


@pytest.mark.usefixtures("always_stopped")
def test_an_effect_waits_while_its_cause_fires_and_a_minute_longer(
    stage: "Stage", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it is told if it still holds, without any further news."""
    monkeypatch.setattr(stage, "judge", type(stage.judge)(b'{"rules":{"commits_stopped":{"enabled":false}}}'))
    stage.start(3)
    stage.wait(60 * MINUTE)
    stage.join("x")
    stage.wait(61_000)
    assert stage.names() == {STUCK}
    stage.judge.configure(b"{}")
    stage.ask()
    stage.wait(MINUTE)
    assert stage.names() == {STUCK}
    stage.rebalance()
    stage.wait(GRACE_MS - 1_000)
    assert "CommitsStopped" not in stage.names()
    stage.wait(1_000)

    assert "CommitsStopped" in stage.names()


def test_causes_and_effects_are_alerts_and_no_circle() -> None:
    """A rule that is not asked would hold nothing back; two that wait for one another would never be told."""
    places = {rule.name: place for place, rule in enumerate(order.RULES)}

    for effect in order.ALL_RULES:
        assert set(effect.effect_of) <= set(order.ALL_RULES)
        assert all(effect not in cause.effect_of for cause in effect.effect_of)
    for effect in order.RULES:
        # The judge asks in this order: a cause must have spoken before its effect.
        causes = [cause.name for cause in (*effect.effect_of, *effect.excused_by) if cause.name in places]
        assert all(places[cause] < places[effect.name] for cause in causes)


# --- half evidence -----------------------------------------------------------------------------------


def watched_since(stage: "Stage", monkeypatch: pytest.MonkeyPatch, live_since_ms: int) -> None:
    """The monitor was started in the middle of things."""
    plain = stage.judge.judge

    def later(*, evidence: LiveSources, **given: object) -> object:
        since = msgspec.structs.replace(evidence, live_since_ms=T0 + live_since_ms)
        return plain(evidence=since, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(stage.judge, "judge", later)


def test_what_began_before_groupwatch_is_told_more_quietly_at_first(
    stage: "Stage", monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reason in its evidence; after a minute of watching it is as loud as any."""
    stage.start(3)
    stage.join("x")
    watched_since(stage, monkeypatch, stage.now_ms + 55_000)
    stage.wait(3 * MINUTE)
    first, second = told(stage)[:2]

    assert (first.severity, second.severity) == (Severity.INFO, Severity.WARNING)
    assert "Incomplete: groupwatch has watched this cluster for only 5 s" in first.evidence[-1]
    assert "Incomplete" not in "".join(second.evidence)
    assert second.revision == 1


def test_what_began_while_groupwatch_looked_on_is_told_in_full(
    stage: "Stage", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in its first minute."""
    watched_since(stage, monkeypatch, 3_000)
    stage.start(3)
    stage.join("x")
    stage.wait(61_000)

    assert [one.severity for one in told(stage)] == [Severity.WARNING]


def test_a_phase_whose_log_was_lost_is_told_more_quietly(
    stage: "Stage", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end may have been among the lost lines."""
    stage.start(3)
    stage.join("x")
    stage.info = False
    stage.wait(61_000)

    assert [one.severity for one in told(stage)] == [Severity.INFO]
    assert "lines of the coordinator's log are missing" in told(stage)[0].evidence[-1]


def test_a_phase_that_only_requests_told_of_is_as_loud_as_ever(new_stage: "NewStage") -> None:
    """No log was lost where none is read, though the only group is silent as it waits."""
    stage = new_stage({"rebalance_storm": {"enabled": False}}, requests=True, info=False)
    stage.start(3, session_ms=600_000)
    for name in stage.members:
        stage.beat(name)
    stage.wait(MINUTE)
    for name in stage.members:
        stage.beat(name, error_code=27)
    stage.requests = False
    stage.wait(61_000)

    assert [one.severity for one in told(stage)] == [Severity.WARNING]


def test_the_hold_grows_with_the_ends_of_the_last_half_hour() -> None:
    """Two are free."""
    assert damping.hold_ms([], T0) == 0
    assert damping.hold_ms([T0 - 1], T0) == 0
    assert damping.hold_ms([T0 - 2, T0 - 1], T0) == damping.HOLD_MS
    assert damping.hold_ms([T0 - 3, T0 - 2, T0 - 1], T0) == 2 * damping.HOLD_MS
    assert damping.hold_ms([T0 - 2, T0 - 1], T0 + damping.WINDOW_MS) == 0
