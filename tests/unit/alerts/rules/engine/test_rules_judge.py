"""RuleJudge: what it remembers, when it wants to be called, and how alerts end by other means."""

import json
from typing import TYPE_CHECKING

import msgspec
import pytest

from alerts.alert.alert import Alert, AlertStatus, Culprit, Severity
from alerts.rules import RuleJudge, judge
from alerts.rules.engine import Finding, GroupMemory, GroupRule, RuleOptions, Situation, Verdict
from alerts.rules.monitor.cluster_unreachable import cluster_reachable, find_unreachable
from alerts.rules.monitor.monitor_stalled import find_stalled, monitor_running
from alerts.rules.registry import ALL_RULES, RULES
from coordinator_model.shard.judging import Judge
from coordinator_model.state.group import Basis
from tests.unit.made_alerts import an_alert

if TYPE_CHECKING:
    from tests.unit.alerts.rules.conftest import NewStage, Stage

T0 = 1_700_000_000_000
MINUTE = 60_000


def stuck(stage: "Stage") -> None:
    """Leave the group in CompletingRebalance with its alert firing."""
    stage.start(3)
    stage.wait(10 * MINUTE)
    stage.leave("m2")
    stage.wait(500)
    stage.end_join_phase()
    stage.wait(31_000)
    assert stage.names() == {"StuckCompletingRebalance"}


def left_open(name: str, **changes: object) -> Alert:
    """Return an alert as a job of the past left it."""
    past = {"starts_at_ms": T0 - 5 * MINUTE, "detected_at_ms": T0 - 4 * MINUTE}
    made = an_alert(id="0" * 32, revision=4, name=name, culprits=(Culprit(member_id="m1"),), **past)
    return msgspec.structs.replace(made, **changes)


def adopt(stage: "Stage", alert: Alert) -> None:
    stage.memory = stage.judge.adopt(alert=msgspec.json.encode(alert), memory=stage.memory)


def test_it_is_a_judge() -> None:
    """Shards accept it."""
    judge: Judge = RuleJudge()

    assert callable(judge.judge_cluster)


def test_the_share_of_a_session_is_the_groups_own() -> None:
    """So that the first look at a member comes when the rule for its group would have a finding."""
    rule = {"at": 0.5, "overrides": [{"groups": ["slow-.*"], "at": 0.8}]}
    judge = RuleJudge(json.dumps({"rules": {"session_timeout_imminent": rule}}).encode())

    assert (judge.silent_share("g"), judge.silent_share("slow-g")) == (0.5, 0.8)


def test_every_rule_is_declared_once() -> None:
    """With a name and a class of options of its own, which its settings are found by."""
    assert len({rule.name for rule in ALL_RULES}) == len(ALL_RULES)
    assert len({rule.options for rule in ALL_RULES}) == len(ALL_RULES)
    assert len({rule.key for rule in ALL_RULES}) == len(ALL_RULES)


def test_what_a_rule_keeps_has_a_place_in_the_memory() -> None:
    """And each place has a rule that says so, but for those of the alerts themselves."""
    of_alerts = {"open", "used", "surplus", "ends", "graces"}
    fields = set(GroupMemory.__struct_fields__) - of_alerts

    assert {rule.remembers for rule in RULES} - {""} == fields


def test_a_rule_is_timed_unless_it_says_otherwise(
    new_stage: "NewStage", monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that somebody writes fires when it said, though heartbeats that change nothing pass it over."""

    class Options(RuleOptions, frozen=True, kw_only=True):
        """None of its own."""

    def evaluate(situation: Situation) -> Verdict:
        at_ms = situation.group.state_since_ms + 20_000
        if situation.now_ms < at_ms or situation.opened("MadeUp") is not None:
            return Verdict(due_ms=at_ms)
        finding = Finding(
            starts_at_ms=at_ms,
            severity=Severity.INFO,
            summary="Group orders is made up.",
            cause="A test.",
            cost="None.",
            advice="None.",
        )
        return Verdict(finding=finding)

    made_up = GroupRule(name="MadeUp", options=Options, evaluate=evaluate)
    monkeypatch.setattr(judge, "RULES", (*RULES, made_up))
    stage = new_stage(requests=True)
    stage.start(3)
    for _ in range(8):
        stage.wait(3_000)
        for member in ("m0", "m1", "m2"):
            stage.beat(member)

    (alert,) = stage.told("MadeUp")
    assert alert.detected_at_ms == alert.starts_at_ms


def test_a_healthy_group_costs_nothing(new_stage: "NewStage") -> None:
    """No memory and no wish to be called: a Stable group without heartbeats sleeps for ever."""
    stage = new_stage()
    stage.group.state_since_ms = T0
    judgement_alerts = stage.ask()

    assert (judgement_alerts, stage.memory, stage.due_ms) == ([], None, None)


def test_a_group_forgets_its_rebalances_when_something_next_happens(new_stage: "NewStage") -> None:
    """What the window has left is dropped; nobody is woken for that."""
    stage = new_stage()
    stage.start(3)
    assert stage.memory is not None
    assert stage.due_ms is None
    stage.wait(60 * MINUTE)
    stage.leave("m2")
    stage.rebalance()
    small = len(stage.memory)

    assert small < 200


def test_a_heartbeat_that_changes_nothing_passes_the_memory_through(new_stage: "NewStage") -> None:
    """The very same bytes object comes back, and the deadline moves on."""
    stage = new_stage(requests=True)
    stage.start(3)
    stage.beat("m0")
    stage.wait(3_000)
    stage.beat("m0")
    memory, due_ms = stage.memory, stage.due_ms
    stage.wait(3_000)
    stage.beat("m0")

    assert stage.memory is memory
    assert due_ms is not None
    assert stage.due_ms == due_ms + 3_000


def test_heartbeats_do_not_wake_the_rules(new_stage: "NewStage") -> None:
    """As long as all beat, the rules are called for the beats and never in between."""
    stage = new_stage(requests=True)
    stage.start(2)
    stage.beat("m0")
    stage.beat("m1")
    before = stage.judged
    for _ in range(100):
        stage.wait(3_000)
        stage.beat("m0")
        stage.beat("m1")

    assert stage.judged - before == 200


def test_a_large_group_is_not_looked_through_at_each_heartbeat(new_stage: "NewStage") -> None:
    """Most heartbeats leave the remembered bound as it is, and no forecast comes late for that."""
    stage = new_stage(requests=True)
    names = stage.start(40)
    for _ in range(2):
        stage.wait(2_500)
        for name in names:
            stage.beat(name)
    last_ms, memories = stage.now_ms, set()
    for _ in range(14):
        stage.wait(2_500)
        memories.add(stage.memory)
        for name in names:
            if name != "m7":
                stage.beat(name)

    assert len(memories) < 5
    assert [alert.detected_at_ms for alert in stage.alerts] == [T0 + last_ms + 31_500]


def test_a_large_group_with_a_short_session_is_watched_from_its_first_heartbeat(
    new_stage: "NewStage",
) -> None:
    """A member that is heard for the first time may be the first to be missed."""
    stage = new_stage(requests=True)
    stage.join("short", session_ms=6_000)
    names = stage.start(40)
    for name in names:
        stage.beat(name)
    stage.wait(3_000)
    stage.beat("short")
    last_ms = stage.now_ms
    stage.wait(5_000)

    assert [alert.detected_at_ms for alert in stage.alerts] == [T0 + last_ms + 4_200]


def test_a_removed_group_resolves_everything(new_stage: "NewStage") -> None:
    """Deleted, denied or forgotten: nothing stays open, and nothing is remembered."""
    stage = new_stage()
    stuck(stage)
    stage.time_out("m1")
    stage.ask(removed=True)
    last = {alert.name: alert for alert in stage.alerts}

    assert {alert.status for alert in last.values()} == {AlertStatus.RESOLVED}
    assert last.keys() == {"StuckCompletingRebalance", "SessionTimeout"}
    assert stage.memory is None
    assert stage.due_ms is None


def test_a_disabled_rule_resolves_its_alert(new_stage: "NewStage") -> None:
    """At the next judgement after the settings changed."""
    stage = new_stage()
    stuck(stage)
    stage.judge.configure(json.dumps({"rules": {"stuck_completing_rebalance": {"enabled": False}}}).encode())
    stage.ask()
    stage.wait(60 * MINUTE)

    assert [alert.status for alert in stage.alerts] == [AlertStatus.FIRING, AlertStatus.RESOLVED]
    assert "switched off" in stage.alerts[-1].summary


def test_settings_that_cannot_be_read_leave_the_rules_in_force(new_stage: "NewStage") -> None:
    """A foreign record in the control topic must not stop the stream."""
    stage = new_stage({"stuck_completing_rebalance": {"after_ms": 31_000}})
    stage.judge.configure(b"{")
    stuck(stage)

    assert stage.alerts[0].detected_at_ms - stage.alerts[0].starts_at_ms == 31_000


def test_the_runbook_lies_under_the_configured_base(new_stage: "NewStage") -> None:
    """A company's wiki in place of our folder."""
    stage = new_stage(runbook_base="https://runbooks.example/kafka/")
    stuck(stage)

    assert stage.alerts[0].runbook == "https://runbooks.example/kafka/StuckCompletingRebalance.md"


def test_an_adopted_alert_goes_on_if_its_condition_holds(new_stage: "NewStage") -> None:
    """Same id, next revision at the next news, and its own end."""
    stage = new_stage()
    stage.start(3)
    stage.wait(10 * MINUTE)
    stage.leave("m2")
    stage.end_join_phase()
    stage.wait(10_000)
    adopt(stage, left_open("StuckCompletingRebalance"))
    stage.ask()
    stage.wait(10_000)
    stage.assign()

    assert [(alert.id, alert.revision, alert.status) for alert in stage.alerts] == [
        ("0" * 32, 5, AlertStatus.FIRING),
        ("0" * 32, 6, AlertStatus.RESOLVED),
    ]


@pytest.mark.parametrize(
    "name", ["StuckCompletingRebalance", "StuckPreparingRebalance", "SessionTimeoutImminent"]
)
def test_an_adopted_alert_about_a_state_ends_at_the_first_judgement(new_stage: "NewStage", name: str) -> None:
    """The group is well: the alert of the past is over."""
    stage = new_stage()
    stage.start(2)
    stage.wait(30 * MINUTE)
    adopt(stage, left_open(name))
    stage.ask()

    assert [(alert.id, alert.revision, alert.status) for alert in stage.alerts] == [
        ("0" * 32, 5, AlertStatus.RESOLVED)
    ]


@pytest.mark.parametrize(
    ("name", "quiet_ms"),
    [("SessionTimeout", 10 * MINUTE), ("PollIntervalExceeded", 10 * MINUTE), ("RebalanceStorm", 5 * MINUTE)],
)
def test_an_adopted_alert_without_history_gets_its_quiet_time(
    new_stage: "NewStage", name: str, quiet_ms: int
) -> None:
    """What happened before is not known, so the quiet time begins with the adoption."""
    stage = new_stage()
    stage.start(2)
    stage.wait(30 * MINUTE)
    adopt(stage, left_open(name))
    adopted_ms = stage.now_ms
    stage.ask()
    assert stage.alerts == []
    stage.wait(60 * MINUTE)

    assert [(alert.revision, alert.ends_at_ms) for alert in stage.alerts] == [(5, T0 + adopted_ms + quiet_ms)]


def test_an_adopted_alert_takes_up_what_happens_next(new_stage: "NewStage") -> None:
    """Another timeout within the quiet time belongs to it."""
    stage = new_stage()
    stage.start(4)
    stage.wait(30 * MINUTE)
    adopt(stage, left_open("SessionTimeout"))
    stage.ask()
    stage.wait(MINUTE)
    stage.time_out("m3")

    assert [(alert.id, alert.revision) for alert in stage.alerts] == [("0" * 32, 5)]
    assert [c.member_id for c in stage.alerts[0].culprits] == ["m3"]


def test_of_two_open_alerts_of_one_name_one_is_resolved(new_stage: "NewStage") -> None:
    """One open alert for each cluster, group and name."""
    stage = new_stage()
    stuck(stage)
    adopt(stage, left_open("StuckCompletingRebalance"))
    stage.ask()

    assert (stage.alerts[-1].id, stage.alerts[-1].revision) == ("0" * 32, 5)
    assert stage.alerts[-1].status is AlertStatus.RESOLVED


def test_an_adopted_alert_with_the_id_of_ours_goes_on_after_its_revision(new_stage: "NewStage") -> None:
    """What the topic holds under an id is never written again with another content."""
    stage = new_stage()
    stuck(stage)
    adopt(stage, msgspec.structs.replace(stage.alerts[0], revision=7))
    stage.assign()

    assert [alert.revision for alert in stage.alerts] == [0, 8]


def test_an_adopted_alert_of_an_unknown_rule_is_resolved(new_stage: "NewStage") -> None:
    """A rule that this version does not have cannot end its alerts otherwise."""
    stage = new_stage()
    adopt(stage, left_open("LagGrowing"))
    stage.ask()

    assert [alert.status for alert in stage.alerts] == [AlertStatus.RESOLVED]


def test_the_supervisors_alerts_are_not_adopted(new_stage: "NewStage") -> None:
    """The supervisor ends them itself."""
    stage = new_stage()
    adopt(stage, left_open("ClusterUnreachable", group=""))

    assert stage.memory is None


def test_memory_of_another_version_is_begun_anew(new_stage: "NewStage") -> None:
    """It cannot be read, and it must not stop the stream."""
    stage = new_stage()
    stage.memory = b"\xff" + bytes(20)
    stage.ask()

    assert stage.alerts == []


def test_the_supervisors_alerts_have_a_beginning_and_an_end() -> None:
    """Built from what the supervisor knows, resolved under the same id."""
    for name, alert, over in (
        ("ClusterUnreachable", find_unreachable("eu", T0, T0 + MINUTE, "timed out"), cluster_reachable),
        ("MonitorStalled", find_stalled("eu", T0, T0 + MINUTE, "batch 7 runs"), monitor_running),
    ):
        last = over(alert, T0 + 3 * MINUTE)

        assert (alert.name, alert.cluster, alert.group, alert.severity) == (name, "eu", "", Severity.CRITICAL)
        assert (alert.starts_at_ms, alert.detected_at_ms) == (T0, T0 + MINUTE)
        assert (last.id, last.revision, last.ends_at_ms) == (alert.id, 1, T0 + 3 * MINUTE)
        assert "3 min" in last.summary


def test_a_culprit_of_an_inferred_rebalance_is_inferred(new_stage: "NewStage") -> None:
    """Without the INFO log a storm is still seen, and says that it is concluded."""
    stage = new_stage(requests=True, info=False)
    stage.start(12)
    for _ in range(5):
        for name in list(stage.members):
            stage.beat(name)
        gone = list(stage.members)[-1]
        for _ in range(16):
            stage.wait(3_000)
            for name in list(stage.members):
                if name != gone:
                    stage.beat(name)
        stage.members.pop(gone)
        stage.rebalance()
    storms = [alert for alert in stage.alerts if alert.name == "RebalanceStorm"]

    assert {c.basis for alert in storms for c in alert.culprits} == {Basis.INFERRED}
