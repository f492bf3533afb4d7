"""The stuck alerts: when they fire, how loud, whom they name, and which of the two."""

from typing import TYPE_CHECKING

import pytest

from alerts.alert.alert import AlertStatus, Severity
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.observations.base import Source
from coordinator_model.observations.log import AssignmentReceived, MembersKicked, Reason, RebalanceStarted
from coordinator_model.observations.requests import JoinAnswered
from coordinator_model.state.group import Basis

if TYPE_CHECKING:
    from tests.unit.alerts.rules.conftest import NewStage, Stage

T0 = 1_700_000_000_000
MINUTE = 60_000
COMPLETING = "StuckCompletingRebalance"
PREPARING = "StuckPreparingRebalance"
QUIET_RULES = {"session_timeout": {"enabled": False}, "rebalance_storm": {"enabled": False}}


def completing(stage: "Stage", count: int = 3, **options: object) -> int:
    """Bring a healthy group into CompletingRebalance by a leave; return when."""
    stage.start(count, **options)
    stage.wait(10 * MINUTE)
    stage.leave(f"m{count - 1}")
    stage.wait(500)
    stage.end_join_phase()
    return stage.now_ms


def sync_timeout(stage: "Stage", members: list[str]) -> None:
    """The coordinator removes members that did not sync."""
    for member in members:
        stage.members.pop(member)
    stage.preparing = True
    reason = Reason(
        kind="sync_timeout", text="Removing [] on pending sync request expiration", member_ids=tuple(members)
    )
    stage.log(RebalanceStarted(group="orders", generation=stage.generation, reason=reason))


def test_completing_fires_at_exactly_its_time(new_stage: "NewStage") -> None:
    """30 s after the join phase ended, not a millisecond before."""
    stage = new_stage()
    since_ms = completing(stage)
    stage.wait(29_999)
    assert stage.told(COMPLETING) == []
    stage.wait(1)
    (fired,) = stage.told(COMPLETING)

    assert (fired.starts_at_ms, fired.detected_at_ms) == (T0 + since_ms, T0 + since_ms + 30_000)
    assert (fired.severity, fired.status) == (Severity.WARNING, AlertStatus.FIRING)
    assert fired.runbook == ""


def test_a_rebalance_that_is_just_slow_does_not_fire(new_stage: "NewStage") -> None:
    """An assignment after 29.9 s is late, but it came."""
    stage = new_stage()
    completing(stage)
    stage.wait(29_900)
    stage.assign()
    stage.wait(MINUTE)

    assert stage.alerts == []


def test_completing_is_critical_at_its_share_of_the_rebalance_timeout(new_stage: "NewStage") -> None:
    """With max.poll.interval.ms of two minutes: 96 s; the same alert, one revision louder."""
    stage = new_stage()
    since_ms = completing(stage, poll_ms=120_000)
    stage.wait(95_999)
    assert [alert.severity for alert in stage.told(COMPLETING)] == [Severity.WARNING]
    stage.wait(1)
    first, second = stage.told(COMPLETING)

    assert (second.id, second.revision, second.severity) == (first.id, 1, Severity.CRITICAL)
    assert second.detected_at_ms == first.detected_at_ms == T0 + since_ms + 30_000


@pytest.mark.parametrize(
    ("poll_ms", "critical_ms"),
    [
        pytest.param(10_000, 30_000, id="never-before-after"),
        pytest.param(300_000, 240_000, id="share-of-the-default"),
        pytest.param(3_600_000, 300_000, id="five-minutes-at-most"),
        pytest.param(-1, 300_000, id="five-minutes-if-unknown"),
    ],
)
def test_when_a_stay_turns_critical(new_stage: "NewStage", poll_ms: int, critical_ms: int) -> None:
    """The smaller of five minutes and 0.8 of the rebalance timeout, but never before `after`."""
    stage = new_stage()
    completing(stage, poll_ms=poll_ms, session_ms=-1)
    stage.wait(critical_ms - 1)
    before = [alert.severity for alert in stage.told(COMPLETING)]
    stage.wait(1)

    assert before == [Severity.WARNING][: critical_ms > 30_000]
    assert stage.told(COMPLETING)[-1].severity is Severity.CRITICAL


def test_the_configured_severity_is_how_it_begins(new_stage: "NewStage") -> None:
    """A rule set to info begins quietly and still turns critical."""
    stage = new_stage({"stuck_completing_rebalance": {"severity": "info"}})
    completing(stage)
    stage.wait(10 * MINUTE)

    assert [alert.severity for alert in stage.told(COMPLETING)] == [Severity.INFO, Severity.CRITICAL]


def test_without_a_known_leader_all_members_are_candidates(new_stage: "NewStage") -> None:
    """In quiet mode nobody tells who leads a generation before its assignment."""
    stage = new_stage()
    completing(stage, 4)
    stage.group.leader_id = None
    stage.wait(30_000)
    (fired,) = stage.told(COMPLETING)

    assert [(c.member_id, c.share, c.basis) for c in fired.culprits] == [
        (f"m{index}", 0.3333, Basis.CANDIDATE) for index in range(3)
    ]


def test_the_leader_is_named_when_it_gets_known(new_stage: "NewStage") -> None:
    """The leader's JoinGroup answer turns candidates into one culprit, in a new revision."""
    stage = new_stage(requests=True)
    completing(stage, 4)
    stage.group.leader_id = None
    stage.wait(31_000)
    stage.see(
        JoinAnswered(
            group="orders",
            member_id="m1",
            error_code=0,
            generation=stage.generation,
            leader_id="m1",
            arrived_at_ms=T0 + stage.joined_at_ms - 100,
        ),
        Source.REQUEST_LOG,
        at_ms=stage.joined_at_ms,
    )
    first, second = stage.told(COMPLETING)

    assert len(first.culprits) == 3
    assert [(c.member_id, c.share, c.basis) for c in second.culprits] == [("m1", 1.0, Basis.OBSERVED)]
    assert second.revision == 1


def test_members_that_did_not_sync_are_named_once_the_coordinator_says_so(new_stage: "NewStage") -> None:
    """A burned generation tells who hung; the alert stays open through the next join phase."""
    stage = new_stage(QUIET_RULES)
    since_ms = completing(stage, 4, poll_ms=60_000)
    stage.wait(60_000)
    sync_timeout(stage, ["m0"])
    stage.rebalance(3_000, 10_000)
    told = stage.told(COMPLETING)

    assert {alert.id for alert in told} == {told[0].id}
    assert [(c.member_id, c.basis) for c in told[-2].culprits] == [("m0", Basis.OBSERVED)]
    assert told[-1].status is AlertStatus.RESOLVED
    assert told[-1].ends_at_ms == T0 + since_ms + 60_000 + 13_000


def test_a_loop_is_counted_from_its_beginning(new_stage: "NewStage") -> None:
    """Generations of 20 s each never last 30 s, and still nobody has an assignment."""
    stage = new_stage(QUIET_RULES)
    since_ms = completing(stage, 6)
    for _ in range(3):
        stage.wait(20_000)
        stage.rejoin("m1", CauseKind.LEADER_REJOINED, "Leader m1 re-joining group during CompletingRebalance")
        stage.wait(3_000)
        stage.end_join_phase()
    told = stage.told(COMPLETING)

    assert [alert.severity for alert in told] == [Severity.WARNING, Severity.CRITICAL]
    assert told[0].detected_at_ms == T0 + since_ms + 30_000
    assert stage.group.rebalance is not None
    assert stage.group.rebalance.burned == 3


def test_a_newcomer_that_cuts_the_sync_phase_short_is_no_loop(new_stage: "NewStage") -> None:
    """The join phase after it has its own limit."""
    stage = new_stage()
    completing(stage)
    stage.wait(500)
    stage.join("late")
    stage.wait(45_000)

    assert stage.alerts == []


def test_a_group_emptied_by_sync_timeouts_is_still_in_its_loop(new_stage: "NewStage") -> None:
    """The only member hangs, is removed, returns and hangs again: one alert, critical at the second time."""
    stage = new_stage(QUIET_RULES)
    stage.start(1, poll_ms=40_000)
    stage.wait(10 * MINUTE)
    stage.rejoin("m0", CauseKind.LEADER_REJOINED, "Leader m0 re-joining group during Stable")
    stage.end_join_phase()
    for turn in range(3):
        stage.wait(40_000)
        sync_timeout(stage, [next(iter(stage.members))])
        stage.end_join_phase()
        stage.wait(2_000)
        stage.join(f"n{turn}", poll_ms=40_000)
        stage.wait(3_000)
        stage.end_join_phase()
    told = stage.told(COMPLETING)

    assert {alert.id for alert in told} == {told[0].id}
    assert told[-1].status is AlertStatus.FIRING
    assert told[-1].severity is Severity.CRITICAL


def test_completing_resolves_at_stable(new_stage: "NewStage") -> None:
    """The last revision has its end and its cost, and the same culprits."""
    stage = new_stage()
    completing(stage)
    stage.wait(45_000)
    stage.assign()
    first, last = stage.told(COMPLETING)

    assert (last.id, last.revision, last.status) == (first.id, 1, AlertStatus.RESOLVED)
    assert last.ends_at_ms == T0 + stage.now_ms
    assert last.culprits == first.culprits
    assert "45 s" in last.cost


def test_an_assignment_that_is_not_stored_is_the_brokers_fault(new_stage: "NewStage") -> None:
    """The leader has delivered: no client is to blame."""
    stage = new_stage()
    completing(stage)
    stage.wait(1_000)
    stage.log(AssignmentReceived(group="orders", generation=stage.generation, leader_id="m0"))
    stage.wait(MINUTE)
    (fired,) = stage.told(COMPLETING)

    assert fired.culprits == ()
    assert "min.insync.replicas" in fired.advice


def test_preparing_fires_at_exactly_its_time(new_stage: "NewStage") -> None:
    """60 s after the rebalance began."""
    stage = new_stage()
    stage.start(3)
    stage.wait(10 * MINUTE)
    since_ms = stage.now_ms
    stage.leave("m2")
    stage.wait(59_999)
    assert stage.alerts == []
    stage.wait(1)
    (fired,) = stage.told(PREPARING)

    assert (fired.starts_at_ms, fired.detected_at_ms) == (T0 + since_ms, T0 + since_ms + 60_000)
    assert [(c.member_id, c.share, c.basis) for c in fired.culprits] == [
        ("m0", 0.5, Basis.CANDIDATE),
        ("m1", 0.5, Basis.CANDIDATE),
    ]


def test_the_member_whose_heartbeats_are_refused_is_inferred(new_stage: "NewStage") -> None:
    """Everybody is refused once before rejoining; the one that goes on beating has not rejoined."""
    stage = new_stage(requests=True)
    names = stage.start(5)
    stage.wait(10 * MINUTE)
    for name in names:
        stage.beat(name)
    stage.leave("m4")
    for name in names[:4]:
        stage.wait(500)
        stage.beat(name, 27)
    for _ in range(20):
        stage.wait(3_000)
        stage.beat("m2", 27)
    fired = stage.told(PREPARING)

    assert [[(c.member_id, c.basis) for c in alert.culprits] for alert in fired] == [[("m2", Basis.INFERRED)]]
    assert "20 heartbeats" in fired[0].evidence[-1] or "19 heartbeats" in fired[0].evidence[-1]


def test_a_silent_member_is_not_hidden_by_those_that_were_refused_once(new_stage: "NewStage") -> None:
    """If nobody goes on beating, the missing one may be dead: all are candidates."""
    stage = new_stage(requests=True)
    names = stage.start(3)
    stage.wait(10 * MINUTE)
    stage.leave("m2")
    for name in names[:2]:
        stage.wait(500)
        stage.beat(name, 27)
    stage.wait(MINUTE)
    (fired,) = stage.told(PREPARING)

    assert {c.basis for c in fired.culprits} == {Basis.CANDIDATE}


def test_preparing_resolves_when_the_group_goes_on(new_stage: "NewStage") -> None:
    """Members that were removed by the rebalance timeout free the group."""
    stage = new_stage()
    stage.start(3)
    stage.wait(10 * MINUTE)
    stage.leave("m2")
    stage.wait(5 * MINUTE)
    stage.members.pop("m1")
    stage.log(MembersKicked(group="orders", member_ids=("m1",)))
    stage.rebalance(0, 50)
    told = stage.told(PREPARING)

    assert [alert.severity for alert in told] == [Severity.WARNING, Severity.CRITICAL, Severity.CRITICAL]
    assert told[-1].status is AlertStatus.RESOLVED


def test_a_healthy_initial_rebalance_is_not_stuck(new_stage: "NewStage") -> None:
    """Two hundred members that start one after the other extend the join phase beyond a minute."""
    stage = new_stage()
    for index in range(80):
        stage.join(f"m{index}")
        stage.wait(2_000)
    stage.rebalance(3_000)

    assert stage.now_ms > 2 * MINUTE
    assert stage.alerts == []


def test_an_initial_rebalance_is_stuck_when_nobody_arrives_any_more(new_stage: "NewStage") -> None:
    """A minute after the last arrival its delay must be over."""
    stage = new_stage()
    for index in range(20):
        stage.join(f"m{index}")
        stage.wait(2_000)
    last_ms = stage.now_ms - 2_000
    stage.wait(2 * MINUTE)

    assert [alert.detected_at_ms for alert in stage.told(PREPARING)] == [T0 + last_ms + MINUTE]


def test_an_initial_rebalance_has_a_legal_bound(new_stage: "NewStage") -> None:
    """Arrivals without end do not excuse it beyond the rebalance timeout."""
    stage = new_stage()
    for index in range(100):
        stage.join(f"m{index}", poll_ms=90_000)
        stage.group.members[f"m{index}"].rebalance_timeout_ms = 90_000
        stage.wait(2_000)

    assert stage.told(PREPARING)[0].detected_at_ms == T0 + 90_000


def test_a_loop_that_hangs_in_its_join_phase_is_handed_over(new_stage: "NewStage") -> None:
    """One trouble, one open alert: after a minute in the join phase those who do not rejoin are the story."""
    stage = new_stage(QUIET_RULES)
    completing(stage, 5)
    stage.wait(40_000)
    stage.rejoin("m1", CauseKind.LEADER_REJOINED, "Leader m1 re-joining group during CompletingRebalance")
    handover_ms = stage.now_ms + MINUTE
    stage.wait(2 * MINUTE)

    assert [alert.ends_at_ms for alert in stage.told(COMPLETING)][-1] == T0 + handover_ms
    assert [alert.detected_at_ms for alert in stage.told(PREPARING)] == [T0 + handover_ms]


def test_an_id_is_never_used_for_a_second_alert(new_stage: "NewStage") -> None:
    """A loop that comes back after a handover fires under a new id, though it began at the same time."""
    stage = new_stage(QUIET_RULES)
    completing(stage, 5)
    stage.wait(40_000)
    stage.rejoin("m1", CauseKind.LEADER_REJOINED, "Leader m1 re-joining group during CompletingRebalance")
    stage.wait(2 * MINUTE)
    stage.end_join_phase()
    stage.wait(MINUTE)
    seen = [(alert.id, alert.revision) for alert in stage.alerts]

    assert len(seen) == len(set(seen))
    assert len({alert.id for alert in stage.told(COMPLETING)}) == 2


def test_stuck_alerts_do_not_fire_for_a_group_that_went_empty(new_stage: "NewStage") -> None:
    """Everybody left in the middle of a rebalance: nobody waits."""
    stage = new_stage()
    stage.start(2)
    stage.wait(10 * MINUTE)
    stage.leave("m0")
    stage.leave("m1")
    stage.end_join_phase()
    stage.wait(60 * MINUTE)

    assert stage.alerts == []


def test_preparing_tells_how_long_the_coordinator_will_wait(new_stage: "NewStage") -> None:
    """Seconds left, and the time of day, for whoever reads it later; who is awaited, if that is known."""
    stage = new_stage(QUIET_RULES)
    stage.start(3, poll_ms=300_000)
    stage.wait(10 * MINUTE)
    stage.leave("m2")
    stage.wait(60_000)
    (fired,) = stage.told(PREPARING)

    assert fired.summary == (
        "Group orders has been in the join phase for 1 min; no source tells which of its 2 members has not "
        "rejoined; the coordinator removes the missing members in 4 min, at 22:28:23 UTC (rebalance timeout "
        "of 5 min)."
    )


def test_preparing_beyond_its_timeout_says_so(new_stage: "NewStage") -> None:
    """A rebalance timeout shorter than the threshold is over when the alert fires."""
    stage = new_stage(QUIET_RULES)
    stage.start(3, poll_ms=30_000)
    stage.wait(10 * MINUTE)
    stage.leave("m2")
    stage.wait(60_000)

    assert stage.told(PREPARING)[0].summary.endswith("; that is longer than its rebalance timeout of 30 s.")
