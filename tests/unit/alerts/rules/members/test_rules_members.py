"""The alerts about single members: timeouts that happened, and one that is about to."""

from typing import TYPE_CHECKING

import pytest

from alerts.alert.alert import AlertStatus, Severity
from coordinator_model.observations.base import Source
from coordinator_model.observations.requests import CommitsAnswered
from coordinator_model.state.group import Basis

if TYPE_CHECKING:
    from tests.unit.alerts.rules.conftest import NewStage, Stage

T0 = 1_700_000_000_000
MINUTE = 60_000
TIMEOUT = "SessionTimeout"
IMMINENT = "SessionTimeoutImminent"
POLL = "PollIntervalExceeded"


def beating(new_stage: "NewStage", count: int = 3, **options: object) -> "Stage":
    """Return a healthy group whose members have just sent a heartbeat, and one before."""
    stage = new_stage(requests=True)
    names = stage.start(count, **options)
    for _ in range(2):
        stage.wait(1_500)
        for name in names:
            stage.beat(name)
    return stage


def test_a_session_timeout_fires_at_the_departure(new_stage: "NewStage") -> None:
    """It says who, how long it was silent, and against which timeout."""
    stage = beating(new_stage, session_ms=10_000)
    stage.heard_ms = 0
    stage.wait(12_300)
    stage.time_out("m1")
    (fired,) = stage.told(TIMEOUT)

    assert (fired.starts_at_ms, fired.detected_at_ms) == (T0 + stage.now_ms, T0 + stage.now_ms)
    assert fired.severity is Severity.WARNING
    assert [(c.member_id, c.client_id, c.client_host, c.basis) for c in fired.culprits] == [
        ("m1", "app", "/10.0.0.1", Basis.OBSERVED)
    ]
    assert fired.summary == (
        "Group orders lost app on 10.0.0.1: no heartbeat for 12 s, session timeout 10 s."
    )


def test_without_heartbeats_the_silence_is_at_least_the_timeout(new_stage: "NewStage") -> None:
    """In quiet mode nobody knows when it spoke last."""
    stage = new_stage()
    stage.start(2)
    stage.wait(MINUTE)
    stage.time_out("m1")

    assert "no heartbeat for at least 45 s, its session timeout" in stage.told(TIMEOUT)[0].summary


def test_an_inferred_session_timeout_says_so(new_stage: "NewStage") -> None:
    """Without the INFO log the model's timer speaks, and the culprit is inferred."""
    stage = new_stage(requests=True, info=False)
    stage.start(2)
    stage.beat("m0")
    stage.beat("m1")
    for _ in range(20):
        stage.wait(3_000)
        stage.beat("m0")
    (fired,) = stage.told(TIMEOUT)

    assert [(c.member_id, c.basis) for c in fired.culprits] == [("m1", Basis.INFERRED)]
    assert "inferred" in fired.cause


def test_further_timeouts_join_the_open_alert(new_stage: "NewStage") -> None:
    """A host that goes down takes three members: one alert, three revisions."""
    stage = new_stage()
    stage.start(5)
    stage.wait(MINUTE)
    for name in ("m1", "m2", "m3"):
        stage.time_out(name)
        stage.wait(10)
    told = stage.told(TIMEOUT)

    assert [(alert.id, alert.revision) for alert in told] == [(told[0].id, n) for n in range(3)]
    assert [c.member_id for c in told[2].culprits] == ["m1", "m2", "m3"]
    assert told[2].summary.startswith("3 members of group orders were removed after their session timeout")


def test_one_client_that_is_lost_again_and_again_is_one(new_stage: "NewStage") -> None:
    """Each life has its own member id; whoever reads it looks for one process."""
    stage = new_stage()
    stage.start(2)
    for life in range(3):
        stage.wait(10_000)
        stage.join(f"bad-{life}", client="bad", host="/10.0.0.9")
        stage.rebalance()
        stage.wait(10_000)
        stage.time_out(f"bad-{life}")
        stage.rebalance()

    newest = stage.told(TIMEOUT)[-1]
    assert newest.summary == "Group orders lost bad on 10.0.0.9 3 times to a session timeout."


def test_several_of_one_name_that_go_together_are_several(new_stage: "NewStage") -> None:
    """Processes that nobody named, on one host that goes down."""
    stage = new_stage()
    for number in range(4):
        stage.join(f"m{number}", client="rdkafka", host="/10.0.0.9")
    stage.rebalance(join_ms=3_000)
    stage.wait(MINUTE)
    for number in range(3):
        stage.time_out(f"m{number}")
        stage.wait(1_000)

    assert stage.told(TIMEOUT)[-1].summary.startswith(
        "3 members of group orders were removed after their session timeout"
    )


def test_an_event_is_over_ten_minutes_after_the_last(new_stage: "NewStage") -> None:
    """Each occurrence begins the quiet time anew; a later one is another alert."""
    stage = new_stage()
    stage.start(5)
    stage.wait(MINUTE)
    stage.time_out("m1")
    stage.rebalance()
    stage.wait(9 * MINUTE)
    last_ms = stage.now_ms
    stage.time_out("m2")
    stage.rebalance()
    stage.wait(11 * MINUTE)
    told = stage.told(TIMEOUT)
    assert told[-1].status is AlertStatus.RESOLVED
    assert told[-1].ends_at_ms == T0 + last_ms + 10 * MINUTE
    stage.time_out("m3")

    assert stage.told(TIMEOUT)[-1].id != told[0].id
    assert stage.told(TIMEOUT)[-1].revision == 0


def test_a_clean_leave_is_no_timeout(new_stage: "NewStage") -> None:
    """Closing a consumer is not an event."""
    stage = new_stage()
    stage.start(3)
    stage.wait(MINUTE)
    stage.leave("m1")
    stage.rebalance()
    stage.wait(20 * MINUTE)

    assert stage.alerts == []


def test_the_memory_of_events_is_bounded(new_stage: "NewStage") -> None:
    """A thousand members that time out are told by number, the newest by name."""
    stage = new_stage({"rebalance_storm": {"enabled": False}})
    stage.start(120)
    stage.wait(MINUTE)
    for index in range(119):
        stage.time_out(f"m{index}")
        stage.wait(1)

    assert len(stage.memory or b"") < 16_000
    assert all(len(alert.culprits) <= 20 for alert in stage.alerts)
    assert "m118" in {c.member_id for c in stage.told(TIMEOUT)[-1].culprits}


def test_poll_interval_exceeded_is_told_from_the_leave_reason(new_stage: "NewStage") -> None:
    """The client itself says why it goes, and the rebalance timeout is its limit."""
    stage = new_stage()
    stage.start(3, poll_ms=300_000)
    stage.wait(MINUTE)
    stage.leave("m1", "consumer poll timeout has expired.")
    (fired,) = stage.told(POLL)

    assert [(c.member_id, c.basis) for c in fired.culprits] == [("m1", Basis.OBSERVED)]
    assert "max.poll.interval.ms of 5 min" in fired.summary
    assert fired.advice.endswith("It is 300000 now; for such batches set 480000 or more.")
    assert stage.told(TIMEOUT) == []


def test_poll_interval_exceeded_resolves(new_stage: "NewStage") -> None:
    """Ten minutes later, to the millisecond."""
    stage = new_stage()
    stage.start(3)
    stage.wait(MINUTE)
    at_ms = stage.now_ms
    stage.leave("m1", "consumer poll timeout has expired.")
    stage.rebalance()
    stage.wait(20 * MINUTE)

    assert [alert.ends_at_ms for alert in stage.told(POLL)] == [None, T0 + at_ms + 10 * MINUTE]


def test_imminent_fires_at_exactly_the_deadline(new_stage: "NewStage") -> None:
    """0.7 of 45 s after the last heartbeat, while the others go on."""
    stage = beating(new_stage)
    last_ms = stage.now_ms
    for _ in range(14):
        stage.wait(2_500)
        stage.beat("m0")
        stage.beat("m2")
    (fired,) = stage.told(IMMINENT)

    assert fired.detected_at_ms == T0 + last_ms + 31_500
    assert fired.starts_at_ms == T0 + last_ms
    assert [(c.member_id, c.basis) for c in fired.culprits] == [("m1", Basis.OBSERVED)]
    assert "removes it in 14 s (session timeout 45 s)" in fired.summary


def test_imminent_just_below_its_deadline_is_silent(new_stage: "NewStage") -> None:
    """A heartbeat one millisecond before is a heartbeat."""
    stage = beating(new_stage, 1)
    for _ in range(5):
        stage.wait(31_499)
        stage.beat("m0")

    assert stage.alerts == []


def test_imminent_resolves_with_the_next_heartbeat(new_stage: "NewStage") -> None:
    """A long pause that ended in time."""
    stage = beating(new_stage, 1)
    stage.wait(40_000)
    stage.beat("m0")
    _, last = stage.told(IMMINENT)

    assert (last.status, last.ends_at_ms) == (AlertStatus.RESOLVED, T0 + stage.now_ms)
    assert "heartbeats are back" in last.summary


def test_imminent_resolves_with_the_eviction_that_it_foretold(new_stage: "NewStage") -> None:
    """Then the event takes over, in the same judgement."""
    stage = beating(new_stage, 1)
    stage.wait(45_010)
    stage.time_out("m0")

    assert [alert.status for alert in stage.told(IMMINENT)] == [AlertStatus.FIRING, AlertStatus.RESOLVED]
    assert [alert.status for alert in stage.told(TIMEOUT)] == [AlertStatus.FIRING]


def test_imminent_gives_up_if_no_eviction_comes(new_stage: "NewStage") -> None:
    """Past the timeout and its grace the coordinator must have heard what we did not."""
    stage = beating(new_stage, 1)
    last_ms = stage.now_ms
    stage.wait(10 * MINUTE)

    assert [alert.ends_at_ms for alert in stage.told(IMMINENT)] == [None, T0 + last_ms + 55_000]


@pytest.mark.parametrize("heard_after_ms", [-1_000, 0, 2_000, 14_000])
def test_a_silent_log_proves_nothing(new_stage: "NewStage", heard_after_ms: int) -> None:
    """If nobody was heard while the member should have spoken, the log may have been switched off."""
    stage = beating(new_stage)
    stage.heard_ms = stage.now_ms + heard_after_ms
    stage.wait(10 * MINUTE)

    assert stage.alerts == []


def test_a_log_that_is_heard_again_in_time_proves_it_late(new_stage: "NewStage") -> None:
    """The forecast comes with the proof, at most a second after it."""
    stage = beating(new_stage, 1)
    last_ms = stage.now_ms
    stage.heard_ms = last_ms
    stage.wait(36_000)
    assert stage.alerts == []
    stage.heard_ms = last_ms + 35_000
    stage.wait(1_000)

    assert len(stage.told(IMMINENT)) == 1


@pytest.mark.parametrize(
    ("on_after_ms", "told_after_ms"), [(20_000, 35_000), (28_000, 43_000), (35_000, None)]
)
def test_a_log_just_switched_on_proves_nothing_yet(
    new_stage: "NewStage", on_after_ms: int, told_after_ms: int | None
) -> None:
    """First it must have been heard for as long as any client waits between two heartbeats."""
    stage = beating(new_stage, 1)
    last_ms = stage.now_ms
    stage.heard_ms = last_ms
    stage.wait(on_after_ms)
    stage.heard_ms, stage.on_since_ms = None, stage.now_ms
    stage.wait(10 * MINUTE)

    fired = [alert.detected_at_ms - T0 - last_ms for alert in stage.told(IMMINENT)[:1]]
    if told_after_ms is None:
        assert fired == []
    else:  # within the two seconds that evidence in whole seconds costs
        assert [told_after_ms <= at_ms <= told_after_ms + 2_000 for at_ms in fired] == [True]


def test_a_member_never_heard_is_not_missed(new_stage: "NewStage") -> None:
    """Silence is evidence only of one who spoke."""
    stage = new_stage(requests=True)
    stage.start(3)
    stage.wait(10 * MINUTE)

    assert stage.alerts == []


def test_members_of_a_group_that_rebalances_owe_no_heartbeat(new_stage: "NewStage") -> None:
    """A member whose join is parked is silent and well."""
    stage = beating(new_stage)
    stage.leave("m2")
    stage.wait(50_000)
    stage.end_join_phase()

    assert stage.alerts == []


def test_commits_keep_a_member_alive(new_stage: "NewStage") -> None:
    """A successful commit restarts the session as a heartbeat does."""
    stage = beating(new_stage, 1)
    for _ in range(6):
        stage.wait(20_000)
        at = T0 + stage.now_ms
        stage.see(
            CommitsAnswered(
                group="orders", member_id="m0", generation=stage.generation, error_code=0, times=(at,)
            ),
            Source.REQUEST_LOG,
        )

    assert stage.alerts == []


def test_the_share_is_configurable_for_some_groups(new_stage: "NewStage") -> None:
    """An override for the group's name wins over the rule's own value."""
    rules = {"session_timeout_imminent": {"at": 0.9, "overrides": [{"groups": ["ord.*"], "at": 0.5}]}}
    stage = new_stage(rules, requests=True)
    stage.start(1)
    stage.beat("m0")
    stage.wait(3_000)
    stage.beat("m0")
    last_ms = stage.now_ms
    stage.wait(30_000)

    assert [alert.detected_at_ms for alert in stage.told(IMMINENT)] == [T0 + last_ms + 22_500]


def rarely(new_stage: "NewStage", gap_ms: int, *, times: int, first_ms: int | None = None) -> "Stage":
    """Return a group of two, with a session of 10 s, whose heartbeats come every ``gap_ms``."""
    stage = new_stage(requests=True)
    names = stage.start(2, session_ms=10_000)
    for turn in range(times):
        stage.wait(gap_ms if turn or first_ms is None else first_ms)
        for name in names:
            stage.beat(name)
    return stage


@pytest.mark.parametrize("gap_ms", [6_900, 7_100, 8_500, 9_400])
@pytest.mark.parametrize("first_ms", [None, 50, 3_000])
def test_who_sends_few_heartbeats_is_not_missed_between_two(
    new_stage: "NewStage", gap_ms: int, first_ms: int | None
) -> None:
    """UnsafeTimeouts says so, once; librdkafka sends the first one as soon as it has joined."""
    stage = rarely(new_stage, gap_ms, times=200, first_ms=first_ms)

    (alert,) = stage.alerts
    assert (alert.name, alert.status) == ("UnsafeTimeouts", AlertStatus.FIRING)
    assert "leaves room for less than three heartbeats" in alert.summary


@pytest.mark.parametrize("every_ms", [2_000, 3_700])
def test_a_commit_now_and_then_does_not_hide_how_rarely_it_speaks(
    new_stage: "NewStage", every_ms: int
) -> None:
    """It restarts the session, and says nothing of the next heartbeat."""
    stage = rarely(new_stage, 8_000, times=3)
    for turn in range(60):
        stage.wait(every_ms)
        at = T0 + stage.now_ms
        if turn % 5 < 3:
            commit = CommitsAnswered(
                group="orders", member_id="m0", generation=stage.generation, error_code=0, times=(at,)
            )
            stage.see(commit, Source.REQUEST_LOG)
        stage.wait(8_000 - every_ms)
        for name in ("m0", "m1"):
            stage.beat(name)

    assert not stage.told(IMMINENT)


def test_rebalances_do_not_either(new_stage: "NewStage") -> None:
    """A member that comes and goes each minute; the others speak as rarely as before."""
    stage = rarely(new_stage, 8_500, times=4)
    for turn in range(6):
        stage.wait(2_000)
        stage.join(f"n{turn}", session_ms=10_000)
        stage.rebalance(join_ms=1_000)
        for _ in range(3):
            stage.wait(8_500)
            for name in tuple(stage.members):
                stage.beat(name)
        stage.leave(f"n{turn}")
        stage.rebalance(join_ms=1_000)
        for _ in range(3):
            stage.wait(8_500)
            for name in tuple(stage.members):
                stage.beat(name)

    assert not stage.told(IMMINENT)
    (unsafe,) = stage.told("UnsafeTimeouts")
    assert "leaves room for less than three heartbeats" in unsafe.summary


@pytest.mark.parametrize(("gap_ms", "told_after_ms"), [(6_700, 7_200), (8_000, 8_500), (9_400, 9_900)])
def test_who_sends_few_heartbeats_is_missed_when_it_is_later_than_usual(
    new_stage: "NewStage", gap_ms: int, told_after_ms: int
) -> None:
    """By a twentieth of its session."""
    stage = rarely(new_stage, gap_ms, times=20)
    last_ms = stage.now_ms
    stage.wait(gap_ms)
    stage.beat("m1")
    stage.wait(9_999 - gap_ms)

    (fired,) = stage.told(IMMINENT)
    assert fired.detected_at_ms - T0 - last_ms == told_after_ms
    assert [one.member_id for one in fired.culprits] == ["m0"]
    assert "It usually sends one every" in fired.evidence[0]


def test_one_pause_is_forgotten(new_stage: "NewStage") -> None:
    """A minute later the member is missed as soon as ever."""
    stage = beating(new_stage, 1, session_ms=10_000)
    stage.wait(6_900)
    stage.beat("m0")
    for _ in range(10):
        stage.wait(2_000)
        stage.beat("m0")
    last_ms = stage.now_ms
    stage.wait(9_000)

    assert [alert.detected_at_ms - T0 - last_ms for alert in stage.told(IMMINENT)] == [7_000]


def test_a_member_heard_once_is_missed_later(new_stage: "NewStage") -> None:
    """Nobody knows yet how often it speaks."""
    stage = new_stage(requests=True)
    stage.start(1, session_ms=10_000)
    stage.wait(2_000)
    stage.beat("m0")
    last_ms = stage.now_ms
    stage.wait(9_900)

    assert [alert.detected_at_ms - T0 - last_ms for alert in stage.told(IMMINENT)] == [9_500]


def test_the_second_heartbeat_needs_no_judgement(
    new_stage: "NewStage", monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shows the rhythm, so that less silence is allowed than after the first alone."""
    stage = new_stage(requests=True)
    stage.start(1)
    stage.wait(1_000)
    stage.beat("m0")
    stage.wait(3_000)
    with monkeypatch.context() as patch:  # a heartbeat that is no news is not shown to the rules
        patch.setattr(stage, "ask", lambda _step: [])
        stage.beat("m0")
    beat_ms = stage.now_ms
    stage.wait(40_000)
    (fired,) = stage.told(IMMINENT)

    assert fired.detected_at_ms == T0 + beat_ms + round(0.7 * 45_000)
