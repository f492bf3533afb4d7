"""RebalanceStorm: what is counted, what is explained, whom it names and when it is over."""

from typing import TYPE_CHECKING

import msgspec
import pytest

from alerts.alert.alert import AlertStatus, Severity
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.observations.log import StaticMemberReplaced
from coordinator_model.state.group import Basis, Step

if TYPE_CHECKING:
    from tests.unit.alerts.rules.conftest import NewStage, Stage

T0 = 1_700_000_000_000
MINUTE = 60_000
STORM = "RebalanceStorm"


def second_step(stage: "Stage", member: str) -> None:
    """A cooperative member gives up partitions and joins again."""
    stage.wait(100)
    reason = "need to revoke partitions and re-join"
    stage.rejoin(
        member,
        CauseKind.SUBSCRIPTION_CHANGED,
        f"Updating metadata for member {member} during Stable; client reason: {reason}",
    )
    stage.rebalance()


def look_again(stage: "Stage", leader: str, turns: int) -> None:
    """kafka-python's leader finds topics other than it had assigned, and joins again."""
    for _ in range(turns):
        stage.wait(200)
        stage.rejoin(leader, CauseKind.LEADER_REJOINED, "Leader re-joining group during Stable")
        stage.rebalance()


def restart(stage: "Stage", member: str, new: str, host: str, *, cooperative: bool, away_ms: int) -> None:
    """A member is closed and comes back under a new id."""
    stage.leave(member)
    if stage.members:
        stage.rebalance()
    else:
        stage.end_join_phase()
    stage.wait(away_ms)
    stage.join(new, client="app", host=host)
    stage.rebalance()
    if cooperative and len(stage.members) > 1:
        second_step(stage, next(iter(stage.members)))


def replace_static(stage: "Stage", instance: str, old: str, new: str) -> None:
    """A static member comes back under a new id, and its new protocol list makes the group rebalance."""
    stage.members[new] = stage.members.pop(old)
    stage.log(StaticMemberReplaced(group="orders", instance_id=instance, old_member_id=old))
    text = f"Updating metadata for static member {new} with instance id {instance}; client reason: rejoin"
    stage.rejoin(new, CauseKind.STATIC_MEMBER_REPLACED, text)
    stage.rebalance()
    stage.wait(10_000)


def generated(client: str, number: int) -> str:
    """A member id as the coordinator makes them."""
    return f"{client}-00000000-0000-4000-8000-{number:012d}"


def crash_loop(stage: "Stage", rounds: int) -> None:
    """One member is killed again and again; its session times out, and it comes back."""
    name = generated("bad", 0)
    stage.join(name, client="bad", host="/10.0.0.66")
    stage.rebalance()
    for index in range(rounds):
        stage.wait(20_000)
        stage.time_out(name)
        stage.rebalance()
        stage.wait(5_000)
        name = generated("bad", index + 1)
        stage.join(name, client="bad", host="/10.0.0.66")
        stage.rebalance()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 20])
@pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])
@pytest.mark.parametrize("new_hosts", [False, True], ids=["same-hosts", "new-hosts"])
def test_a_rolling_restart_is_no_storm(
    new_stage: "NewStage", size: int, cooperative: bool, new_hosts: bool
) -> None:
    """Each member leaves and comes back once, all with one client id: twice as many rebalances, no alert."""
    stage = new_stage(protocol="cooperative-sticky" if cooperative else "range")
    names = stage.start(size)
    stage.wait(60 * MINUTE)
    for index, name in enumerate(names):
        host = f"/10.9.9.{index}" if new_hosts else f"/10.0.0.{index}"
        restart(stage, name, f"n{index}", host, cooperative=cooperative, away_ms=4_000)
        stage.wait(2_000)
    stage.wait(30 * MINUTE)
    rebalances = sum(stage.group.rebalances.values())

    assert rebalances >= 2 * size
    assert stage.alerts == []


@pytest.mark.parametrize("away_s", [30, 90, 240])
def test_a_slow_rolling_restart_is_no_storm_though_it_outlasts_the_window(
    new_stage: "NewStage", away_s: int
) -> None:
    """A departure that has left the window still explains the arrival in its place."""
    stage = new_stage()
    names = stage.start(12)
    stage.wait(60 * MINUTE)
    for index, name in enumerate(names):
        restart(stage, name, f"n{index}", f"/10.9.9.{index}", cooperative=False, away_ms=away_s * 1_000)

    assert stage.alerts == []


def test_all_leave_at_once_and_return_one_by_one_is_no_storm(new_stage: "NewStage") -> None:
    """A deployment that stops everything first ends in an empty group that fills again."""
    stage = new_stage()
    names = stage.start(9)
    stage.wait(60 * MINUTE)
    for name in names:
        stage.leave(name)
    stage.end_join_phase()
    for index in range(9):
        stage.wait(70_000)
        stage.join(f"n{index}")
        stage.rebalance()

    assert stage.alerts == []


def test_restarts_hours_apart_are_no_storm(new_stage: "NewStage") -> None:
    """Several deployments a day are several rolling restarts."""
    stage = new_stage()
    names = stage.start(6)
    for day in range(3):
        stage.wait(60 * MINUTE)
        for index, name in enumerate(names):
            restart(stage, name, f"d{day}-{index}", f"/10.{day}.0.{index}", cooperative=False, away_ms=3_000)
        names = list(stage.members)

    assert stage.alerts == []


def test_static_members_restarting_in_time_are_no_storm(new_stage: "NewStage") -> None:
    """Each instance may be replaced once in the window, even where that costs a rebalance."""
    stage = new_stage()
    for index in range(8):
        stage.join(f"i{index}-a", instance=f"i{index}")
    stage.rebalance()
    stage.wait(60 * MINUTE)
    for index in range(8):
        replace_static(stage, f"i{index}", f"i{index}-a", f"i{index}-b")

    assert sum(stage.group.rebalances.values()) == 9
    assert stage.alerts == []


def test_a_static_member_replaced_again_and_again_is_a_storm(new_stage: "NewStage") -> None:
    """Two processes with one instance id throw each other out without end."""
    stage = new_stage()
    for index in range(3):
        stage.join(f"i{index}-0", instance=f"i{index}", client=f"app-{index}", host=f"/10.0.0.{index}")
    stage.rebalance()
    stage.wait(60 * MINUTE)
    for turn in range(1, 7):
        replace_static(stage, "i0", f"i0-{turn - 1}", f"i0-{turn}")
    fired = stage.told(STORM)

    assert [alert.status for alert in fired] == [AlertStatus.FIRING]
    assert [(c.client_id, c.client_host, c.instance_id) for c in fired[0].culprits] == [
        ("app-0", "/10.0.0.0", "i0")
    ]


def test_a_first_deployment_is_no_storm(new_stage: "NewStage") -> None:
    """Arrivals that stay, into a group that was unknown when the window opened, are a start."""
    stage = new_stage()
    for index in range(12):
        stage.join(f"m{index}", host=f"/10.0.0.{index}")
        stage.rebalance()
        stage.wait(20_000)

    assert sum(stage.group.rebalances.values()) == 12
    assert stage.alerts == []


@pytest.mark.parametrize("size", [3, 6, 10])
@pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])
@pytest.mark.parametrize("one_by_one", [False, True], ids=["at-once", "one-by-one"])
def test_a_rolling_restart_of_a_young_group_is_no_storm(
    new_stage: "NewStage", size: int, cooperative: bool, one_by_one: bool
) -> None:
    """A service deployed a minute ago may be deployed again: each member leaves and returns once."""
    stage = new_stage(protocol="cooperative-sticky" if cooperative else "range")
    names = [f"m{index}" for index in range(size)]
    for index, name in enumerate(names):
        stage.join(name, host=f"/10.0.0.{index}")
        if one_by_one:
            stage.rebalance()
            stage.wait(3_000)
    if not one_by_one:
        stage.rebalance()
    stage.wait(60_000)
    for index, name in enumerate(names):
        restart(stage, name, f"n{index}", f"/10.0.0.{index}", cooperative=cooperative, away_ms=4_000)
        stage.wait(2_000)

    assert sum(stage.group.rebalances.values()) >= 2 * size
    assert stage.alerts == []


def test_a_flapping_member_of_a_young_group_is_a_storm(new_stage: "NewStage") -> None:
    """Only the first departure is explained by the deployment; who leaves again and again is not."""
    stage = new_stage()
    for index in range(3):
        stage.join(f"m{index}", host=f"/10.0.0.{index}", client="bad" if index == 2 else "good")
    stage.rebalance()
    stage.wait(30_000)
    name = "m2"
    for index in range(5):
        stage.leave(name)
        stage.rebalance()
        stage.wait(4_000)
        name = f"again-{index}"
        stage.join(name, host="/10.0.0.2", client="bad")
        stage.rebalance()
        stage.wait(4_000)

    assert [(c.client_id, c.share) for c in stage.told(STORM)[0].culprits] == [("bad", 1.0)]


def test_a_single_member_that_restarts_over_and_over_is_a_storm(new_stage: "NewStage") -> None:
    """A group that it empties each time has no deployment to explain anything."""
    stage = new_stage()
    for index in range(5):
        stage.join(f"m{index}", host="/10.0.0.0", client="bad")
        stage.rebalance()
        stage.wait(8_000)
        stage.leave(f"m{index}")
        stage.end_join_phase()
        stage.wait(2_000)

    assert [c.client_id for c in stage.told(STORM)[0].culprits] == ["bad"]


def test_one_rebalance_with_three_state_changes_is_no_storm(new_stage: "NewStage") -> None:
    """A threshold of two is not reached by one rebalance, however many states it passes."""
    stage = new_stage({"rebalance_storm": {"rebalances": 2}})
    stage.start(3)
    stage.wait(60 * MINUTE)
    stage.time_out("m2")
    stage.rebalance()

    assert stage.told(STORM) == []


def test_a_crash_loop_is_a_storm_and_names_the_client(new_stage: "NewStage") -> None:
    """Session timeouts count, and so does each return; one culprit under many member ids."""
    stage = new_stage()
    stage.start(3)
    stage.wait(60 * MINUTE)
    began_ms = stage.now_ms
    crash_loop(stage, 1)
    stage.wait(20_000)
    stage.time_out(generated("bad", 1))
    stage.rebalance()
    assert stage.told(STORM) == []
    stage.join(generated("bad", 2), client="bad", host="/10.0.0.66")
    fired = stage.told(STORM)

    assert len(fired) == 1
    assert fired[0].revision == 0
    assert fired[0].severity is Severity.WARNING
    assert fired[0].detected_at_ms == T0 + stage.now_ms
    assert fired[0].starts_at_ms == T0 + began_ms
    assert [(c.client_id, c.client_host, c.share, c.basis) for c in fired[0].culprits] == [
        ("bad", "/10.0.0.66", 1.0, Basis.OBSERVED)
    ]
    assert fired[0].culprits[0].member_id == generated("bad", 2)
    assert "session timeouts" in fired[0].summary
    assert "OOM" in fired[0].advice


def test_the_cost_counts_the_members_it_stops(new_stage: "NewStage") -> None:
    """A group that is empty when it is judged had members all the same."""
    stage = new_stage()
    stage.wait(MINUTE)
    for index in range(5):
        stage.join(generated("bad", index), client="bad", host="/10.0.0.66")
        stage.wait(200)
        stage.end_join_phase()
        stage.wait(10_000)
        stage.time_out(generated("bad", index))
        stage.wait(200)
        stage.end_join_phase()

    assert "which stops 1 member each time" in stage.told(STORM)[0].cost


def test_a_leader_that_looks_again_after_each_assignment_is_no_storm(new_stage: "NewStage") -> None:
    """kafka-python's leader joins again right after Stable: one rebalance more for each of a restart."""
    stage = new_stage()
    members = stage.start(6)
    stage.wait(60 * MINUTE)
    leader = members[-1]
    for index, member in enumerate(members[:-1]):
        restart(stage, member, generated("app", index), f"/10.0.1.{index}", cooperative=False, away_ms=1_000)
        look_again(stage, leader, 1)

    assert stage.told(STORM) == []


@pytest.mark.parametrize("looks", [1, 2, 3])
def test_a_leader_that_looks_several_times_is_no_culprit(new_stage: "NewStage", looks: int) -> None:
    """On a busy machine it was seen to join again three times in a row; the storm is another's."""
    stage = new_stage()
    leader, *others = stage.start(6)
    stage.wait(60 * MINUTE)
    for _ in range(4):
        stage.time_out(others.pop())
        stage.rebalance()
        look_again(stage, leader, looks)

    assert stage.told(STORM) == []
    stage.time_out(others.pop())
    (alert,) = stage.told(STORM)
    assert not any(culprit.member_id == leader for culprit in alert.culprits)


def test_a_leader_that_never_stops_joining_is_a_storm(new_stage: "NewStage") -> None:
    """Three rejoins after another rebalance are explained, and from then on none."""
    stage = new_stage()
    leader = stage.start(3)[0]
    stage.wait(60 * MINUTE)
    look_again(stage, leader, 3 + 4)
    assert stage.told(STORM) == []

    look_again(stage, leader, 1)
    assert "leader" in stage.told(STORM)[0].advice


def test_a_known_cause_is_named_before_those_nobody_told(new_stage: "NewStage") -> None:
    """Causes may be learned late; meanwhile the alert keeps to what is known."""
    stage = new_stage()
    stage.start(3)
    stage.wait(60 * MINUTE)
    crash_loop(stage, 2)
    for _ in range(6):
        stage.wait(20_000)
        stage.rejoin("m0", CauseKind.UNKNOWN, "")
        stage.rebalance()

    assert "because of session timeouts" in stage.told(STORM)[-1].summary


def test_with_the_log_alone_one_client_is_one_culprit(new_stage: "NewStage") -> None:
    """No record, so no host is known: the client id in the member ids is what there is."""
    stage = new_stage()
    stage.start(3)
    stage.wait(60 * MINUTE)
    for index in range(5):
        stage.join(generated("bad", index), client="", host="")
        stage.wait(200)
        stage.end_join_phase()
        stage.wait(10_000)
        stage.time_out(generated("bad", index))
        stage.wait(200)
        stage.end_join_phase()

    assert [(c.member_id, c.client_id, c.share) for c in stage.told(STORM)[0].culprits] == [
        (generated("bad", 2), "bad", 1.0)
    ]


def test_starts_at_is_the_first_counted_rebalance(new_stage: "NewStage") -> None:
    """The arrival of a member that goes again is where the storm began, not an unrelated restart before."""
    stage = new_stage()
    stage.start(3)
    stage.wait(60 * MINUTE)
    restart(stage, "m1", "n1", "/10.0.0.1", cooperative=False, away_ms=3_000)
    began_ms = stage.now_ms
    crash_loop(stage, 3)

    assert stage.told(STORM)[0].starts_at_ms == T0 + began_ms


def test_a_crash_loop_within_a_rolling_restart_is_counted_alone(new_stage: "NewStage") -> None:
    """Restarts explain their own rebalances only; the one that loops is named with all of the blame."""
    stage = new_stage()
    names = stage.start(5)
    stage.wait(60 * MINUTE)
    for index, name in enumerate(names[1:4]):
        restart(stage, name, f"n{index}", f"/10.9.9.{index}", cooperative=False, away_ms=3_000)
    assert stage.alerts == []
    crash_loop(stage, 3)

    assert {c.client_id for alert in stage.told(STORM) for c in alert.culprits} == {"bad"}


def test_a_client_that_closes_and_returns_in_a_loop_is_a_storm(new_stage: "NewStage") -> None:
    """Members that come and go within the window count, though each leaves politely."""
    stage = new_stage()
    stage.start(3, client="app")
    stage.wait(60 * MINUTE)
    name = "m2"
    for turn in range(5):
        restart(stage, name, f"m2-{turn}", "/10.0.0.2", cooperative=False, away_ms=2_000)
        name = f"m2-{turn}"
    fired = stage.told(STORM)

    assert [(c.client_id, c.client_host) for c in fired[0].culprits] == [("app", "/10.0.0.2")]
    assert "Static membership" in fired[0].advice or "group.instance.id" in fired[0].advice


def test_just_below_the_threshold_nothing_fires(new_stage: "NewStage") -> None:
    """Four counted rebalances of five are no storm; the fifth is."""
    stage = new_stage()
    stage.start(8)
    stage.wait(60 * MINUTE)
    for index in range(4):
        stage.time_out(f"m{index}")
        stage.rebalance()
        stage.wait(30_000)
    assert stage.told(STORM) == []
    stage.time_out("m4")

    assert len(stage.told(STORM)) == 1


def test_rebalances_spread_wider_than_the_window_are_no_storm(new_stage: "NewStage") -> None:
    """The first leaves the window at the very moment the fifth comes."""
    stage = new_stage()
    stage.start(8)
    stage.wait(60 * MINUTE)
    for index in range(6):
        stage.time_out(f"m{index}")
        stage.rebalance(join_ms=100, sync_ms=50)
        stage.wait(150_000 - 150)

    assert stage.told(STORM) == []


def test_a_second_step_is_recognised_without_reasons(new_stage: "NewStage") -> None:
    """Clients that give no reason: a rejoin seconds after Stable, under a cooperative protocol."""
    stage = new_stage(
        {"rebalance_storm": {"rebalances": 4}, "session_timeout": {"enabled": False}},
        protocol="cooperative-sticky",
    )
    names = stage.start(8)
    stage.wait(60 * MINUTE)
    for index in range(3):
        stage.time_out(f"m{index}")
        stage.rebalance()
        stage.wait(500)
        stage.rejoin(names[-1], CauseKind.SUBSCRIPTION_CHANGED, "Updating metadata for member")
        stage.rebalance()
        stage.wait(20_000)
    assert stage.alerts == []
    stage.rejoin(names[-1], CauseKind.SUBSCRIPTION_CHANGED, "Updating metadata for member")

    assert len(stage.told(STORM)) == 1


def test_two_second_steps_in_a_row_count_as_one(new_stage: "NewStage") -> None:
    """A member that keeps revoking is trouble, whatever it says."""
    stage = new_stage(protocol="cooperative-sticky")
    stage.start(3)
    stage.wait(60 * MINUTE)
    for _ in range(11):
        second_step(stage, "m1")

    assert [alert.culprits[0].member_id for alert in stage.told(STORM)] == ["m1"]


def test_poll_timeouts_are_told_apart_from_leaves(new_stage: "NewStage") -> None:
    """A leave because of max.poll.interval.ms is no voluntary departure, and the advice is another."""
    stage = new_stage()
    stage.start(8)
    stage.wait(60 * MINUTE)
    for index in range(5):
        stage.leave(f"m{index}", "consumer poll timeout has expired.")
        stage.rebalance()
        stage.wait(10_000)

    assert "max.poll.records" in stage.told(STORM)[0].advice
    assert "poll_timeout" in stage.told(STORM)[0].cause


def test_an_arrival_that_goes_again_explains_nothing(new_stage: "NewStage") -> None:
    """Of a restart whose new member dies, only the old one's leave and the last arrival are explained."""
    stage = new_stage({"rebalance_storm": {"rebalances": 4}})
    stage.start(4)
    stage.wait(60 * MINUTE)
    restart(stage, "m3", "n0", "/10.0.0.3", cooperative=False, away_ms=2_000)
    stage.time_out("n0")
    stage.rebalance()
    stage.join("n1")
    stage.rebalance()
    assert stage.told(STORM) == []
    stage.time_out("n1")

    assert len(stage.told(STORM)) == 1


def test_arrivals_long_after_the_departures_count(new_stage: "NewStage") -> None:
    """More than a window later they are no restart but a scale-up."""
    stage = new_stage({"rebalance_storm": {"rebalances": 3}})
    stage.start(6)
    stage.wait(60 * MINUTE)
    for index in range(3):
        stage.leave(f"m{index}")
        stage.rebalance()
    stage.wait(15 * MINUTE)
    for index in range(3):
        stage.join(f"n{index}")
        stage.rebalance()

    assert len(stage.told(STORM)) == 1


def test_returns_after_timeouts_count(new_stage: "NewStage") -> None:
    """Three old members time out and come back once each: six rebalances, none of them explained."""
    stage = new_stage({"rebalance_storm": {"rebalances": 6}})
    stage.start(6)
    stage.wait(60 * MINUTE)
    for index in range(3):
        stage.time_out(f"m{index}")
        stage.rebalance()
        stage.join(f"n{index}")
        stage.rebalance()

    assert len(stage.told(STORM)) == 1


def test_who_came_and_went_leaves_no_place_for_another(new_stage: "NewStage") -> None:
    """Only the departure of a member that was there when the window opened explains an arrival."""
    stage = new_stage({"rebalance_storm": {"rebalances": 3}})
    stage.start(3)
    stage.wait(60 * MINUTE)
    stage.join("a")
    stage.rebalance()
    stage.leave("a")
    stage.rebalance()
    assert stage.told(STORM) == []
    stage.join("b")

    assert len(stage.told(STORM)) == 1


def test_a_leave_that_turns_out_to_be_a_poll_timeout_counts(new_stage: "NewStage") -> None:
    """Clients that give no reason are found out when they come back."""
    stage = new_stage({"rebalance_storm": {"rebalances": 2}})
    stage.start(3)
    stage.wait(60 * MINUTE)
    stage.leave("m2", None)
    stage.rebalance()
    left = stage.group.departures[-1]
    explained = msgspec.structs.replace(left, how=CauseKind.POLL_TIMEOUT, basis=Basis.INFERRED)
    stage.ask(Step(departures=[explained]))
    assert stage.told(STORM) == []
    stage.join("n2")

    assert "poll_timeout" in stage.told(STORM)[0].cause


def test_a_second_step_is_believed_to_who_says_so(new_stage: "NewStage") -> None:
    """Under an assignor of one's own, the client's reason is all there is."""
    stage = new_stage({"rebalance_storm": {"rebalances": 2}}, protocol="our-own")
    stage.start(4)
    stage.wait(60 * MINUTE)
    stage.time_out("m3")
    stage.rebalance()
    second_step(stage, "m0")

    assert stage.told(STORM) == []


def test_a_rejoin_long_after_stable_is_no_second_step(new_stage: "NewStage") -> None:
    """A metadata update eleven seconds later has a reason of its own."""
    stage = new_stage({"rebalance_storm": {"rebalances": 2}}, protocol="cooperative-sticky")
    stage.start(4)
    stage.wait(60 * MINUTE)
    stage.time_out("m3")
    stage.rebalance()
    stage.wait(11_000)
    stage.rejoin("m0", CauseKind.SUBSCRIPTION_CHANGED, "Updating metadata for member")

    assert len(stage.told(STORM)) == 1


def test_it_is_over_when_the_window_has_emptied(new_stage: "NewStage") -> None:
    """Five at once: over when the first of them leaves the window, at that very time."""
    stage = new_stage()
    stage.start(8)
    stage.wait(60 * MINUTE)
    times_ms = []
    for index in range(5):
        times_ms.append(stage.now_ms)
        stage.time_out(f"m{index}")
        stage.rebalance()
        stage.wait(1_000)
    stage.wait(20 * MINUTE)
    first, last = stage.told(STORM)

    assert (last.id, last.revision, last.status) == (first.id, 1, AlertStatus.RESOLVED)
    assert last.ends_at_ms == T0 + times_ms[0] + 10 * MINUTE


def test_a_storm_at_the_pace_of_the_threshold_does_not_flap(new_stage: "NewStage") -> None:
    """A rebalance every 130 s is five in ten minutes now and four then: one alert, until it stops."""
    stage = new_stage()
    stage.start(40)
    stage.wait(60 * MINUTE)
    for index in range(20):
        stage.time_out(f"m{index}")
        stage.rebalance()
        stage.wait(119_000 if index < 5 else 140_000)
    stage.wait(60 * MINUTE)
    told = stage.told(STORM)

    assert len({alert.id for alert in told}) == 1
    assert [alert.status for alert in told].count(AlertStatus.RESOLVED) == 1


def test_more_culprits_make_a_revision_and_more_of_the_same_does_not(new_stage: "NewStage") -> None:
    """Another client that joins the storm is news; the same one again is not."""
    stage = new_stage()
    stage.start(3)
    stage.wait(60 * MINUTE)
    crash_loop(stage, 5)
    assert [alert.revision for alert in stage.told(STORM)] == [0]
    stage.time_out("m1")
    told = stage.told(STORM)

    assert [alert.revision for alert in told] == [0, 1]
    assert [c.client_id for c in told[1].culprits] == ["bad", "app"]
    assert sum(c.share for c in told[1].culprits) == pytest.approx(1, abs=0.001)


def test_the_topic_alone_does_not_take_a_rolling_restart_for_a_storm(new_stage: "NewStage") -> None:
    """Without any log, records tell who came and went but not how: the benefit of the doubt."""
    stage = new_stage(info=False)
    names = stage.start(6)
    stage.wait(60 * MINUTE)
    for index, name in enumerate(names):
        restart(stage, name, f"n{index}", f"/10.9.9.{index}", cooperative=False, away_ms=3_000)

    assert stage.alerts == []


def test_the_memory_of_a_storm_is_bounded(new_stage: "NewStage") -> None:
    """A group that rebalances without end does not grow without end."""
    stage = new_stage()
    stage.start(3)
    stage.wait(60 * MINUTE)
    crash_loop(stage, 60)
    small = len(stage.memory or b"")
    for _ in range(600):
        stage.time_out(generated("bad", 60))
        stage.rebalance(10, 10)
        stage.join(generated("bad", 60), client="bad", host="/10.0.0.66")
        stage.rebalance(10, 10)

    assert 0 < len(stage.memory or b"") < max(2 * small, 6_000)
