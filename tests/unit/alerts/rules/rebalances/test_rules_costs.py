"""What rebalances cost, as RebalanceStorm and the stuck alerts tell it, and AssignmentChurn."""

from typing import TYPE_CHECKING

import msgspec
import pytest

from alerts.alert.alert import AlertStatus, Severity
from alerts.rules.engine.options import Thresholds
from alerts.rules.engine.situation import GroupMemory, Situation
from alerts.rules.rebalances.rebalance_costs import note, partition_time, since
from coordinator_model.kafka.assignors import ASSIGNORS, Partition, Subscriber
from coordinator_model.observations.base import Source
from coordinator_model.observations.records import Commit, OffsetsCommitted
from coordinator_model.shard.judging import LiveSources
from coordinator_model.state.costs import RebalanceCost, StepCost
from coordinator_model.state.group import Group, Step
from coordinator_model.state.last_failover import LastFailover

if TYPE_CHECKING:
    from tests.unit.alerts.rules.conftest import NewStage, Stage

T0 = 1_700_000_000_000
MINUTE = 60_000
STORM, CHURN = "RebalanceStorm", "AssignmentChurn"


def spread(stage: "Stage", partitions: int) -> None:
    """Assign a topic's partitions as the group's assignor does."""
    owned = {name: one.get("assigned", {}).get("t", ()) for name, one in stage.members.items()}
    members = [
        Subscriber(member_id=name, topics=("t",), owned=tuple(Partition("t", n) for n in owned[name]))
        for name in stage.members
    ]
    for name, got in ASSIGNORS[stage.protocol](members, {"t": partitions}).items():
        stage.members[name]["assigned"] = {"t": tuple(one.number for one in got)}


def rebalance(stage: "Stage", partitions: int = 60) -> None:
    """Finish a rebalance in 2.5 s."""
    spread(stage, partitions)
    stage.rebalance(join_ms=2_000, sync_ms=500)


def start(stage: "Stage", count: int, partitions: int = 60) -> None:
    """Bring up a group that reads 60 partitions."""
    for index in range(count):
        stage.join(f"m{index}", host=f"/10.0.0.{index}")
    spread(stage, partitions)
    stage.rebalance(join_ms=3_000)
    stage.wait(15 * MINUTE)


def commit(stage: "Stage", offset: int, partitions: int = 2) -> None:
    """Commit the same offset for some partitions."""
    at_ms = T0 + stage.now_ms
    commits = tuple(Commit("t", number, offset, at_ms) for number in range(partitions))
    stage.see(OffsetsCommitted(group="orders", commits=commits), Source.OFFSETS)


def kill(stage: "Stage", times: int, *, name: str = "m0") -> None:
    """Let a member die again and again, and come back."""
    for index in range(times):
        stage.wait(10_000)
        stage.time_out(name)
        rebalance(stage)
        stage.wait(10_000)
        name = f"{name.split('.', maxsplit=1)[0]}.{index}"
        stage.join(name, host="/10.0.0.0")
        rebalance(stage)


def grow(stage: "Stage", first: int, count: int) -> None:
    """Members come one by one, two minutes apart, before all others by name: an autoscaler."""
    for index in range(first, first + count):
        stage.wait(2 * MINUTE)
        stage.join(f"a{99 - index}", host=f"/10.0.1.{index}")
        rebalance(stage)


def test_a_storm_tells_what_it_cost(new_stage: "NewStage") -> None:
    """Phases, partitions without an owner, moves, records read again and throughput, where they are known."""
    stage = new_stage()
    start(stage, 3)
    for offset in (1_000, 2_000, 3_000):
        commit(stage, offset)
        stage.wait(5_000)
    kill(stage, 2)
    stage.wait(1_000)
    commit(stage, 2_900)
    stage.wait(1_000)
    commit(stage, 3_500)
    kill(stage, 1, name="m0.1")

    cost = stage.told(STORM)[0].cost
    assert "5 rebalances; not Stable for 10 s in total, which stops 3 members each time." in cost
    assert "Join phases: 8 s, sync phases: 2 s." in cost
    assert (
        "Without an owner: 600 partition-seconds over 60 partitions (eager: all of them stop each time)."
        in cost
    )
    assert "200 records read again afterwards." in cost
    assert "Offsets committed: 400/s before, " in cost


def test_the_end_of_a_storm_sums_it_up(new_stage: "NewStage") -> None:
    """All rebalances that ended, and the throughput before the first and after the last."""
    stage = new_stage()
    start(stage, 3)
    for offset in (1_000, 2_000, 3_000):
        commit(stage, offset)
        stage.wait(5_000)
    kill(stage, 3)
    for offset in (4_000, 5_000):
        stage.wait(5_000)
        commit(stage, offset)
    stage.wait(20 * MINUTE)

    ended = stage.told(STORM)[-1]
    assert ended.status is AlertStatus.RESOLVED
    assert ended.cost.startswith("6 rebalances ended. Join phases: 12 s, sync phases: 3 s. Without an ")
    assert ended.cost.endswith(" Offsets committed: 400/s before, 400/s after.")


def test_a_storm_says_nothing_of_what_it_does_not_know(new_stage: "NewStage") -> None:
    """Without the topic there are phases at most; no zero stands for an unknown number."""
    stage = new_stage(protocol="my-own")
    start_ms = stage.now_ms
    for name in ("m0", "m1"):
        stage.join(name)
    stage.rebalance()
    assert stage.now_ms > start_ms
    for index in range(3):
        stage.wait(10_000)
        stage.time_out(f"m{index}" if index else "m0")
        stage.rebalance()
        stage.join(f"m{index + 2}")
        stage.rebalance()

    cost = stage.told(STORM)[0].cost
    assert "owner" not in cost
    assert "committed" not in cost
    assert "read again" not in cost


def test_a_stuck_group_tells_how_many_partitions_wait(new_stage: "NewStage") -> None:
    """An eager group's partitions have no owner for as long as it lasts."""
    stage = new_stage()
    start(stage, 3)
    stage.join("m9")
    stage.wait(500)
    stage.end_join_phase()
    stage.wait(40_000)

    (alert,) = stage.told("StuckCompletingRebalance")
    assert alert.cost.endswith(" Up to 60 partitions without an owner: 1,800 partition-seconds.")


def test_a_storm_after_a_move_names_the_coordinator(new_stage: "NewStage") -> None:
    """The move is told with its time and brokers; one of last week is not."""
    stage = new_stage()
    start(stage, 3)
    stage.evidence = {"moved": LastFailover(at_ms=T0 + stage.now_ms - 1_000, came_from=1, went_to=2)}
    kill(stage, 3)
    other = new_stage()
    start(other, 3)
    other.evidence = {"moved": LastFailover(at_ms=T0 - 7 * 24 * 60 * MINUTE, came_from=1, went_to=2)}
    kill(other, 3)

    assert "The group's coordinator moved from broker 1 to broker 2 at " in stage.told(STORM)[0].cause
    assert "coordinator" not in other.told(STORM)[0].cause


# --- AssignmentChurn -----------------------------------------------------------------------------------


def test_an_eager_group_that_grows_churns(new_stage: "NewStage") -> None:
    """Range moves nearly everything for each new member; the alert says what the others would have moved."""
    stage = new_stage()
    start(stage, 5)
    grow(stage, 0, 3)

    (alert,) = stage.told(CHURN)
    assert (alert.severity, alert.status, alert.group) == (Severity.INFO, AlertStatus.FIRING, "orders")
    assert alert.summary == (
        "3 rebalances of group orders in 4 min 8 s moved 98 partitions; 25 moves would have been enough."
    )
    assert "by range" in alert.cause
    assert alert.evidence[-1].startswith(
        "In the last rebalance Kafka's own assignors would have moved: range 32, roundrobin 53, sticky 7."
    )
    assert alert.cost.startswith("73 partitions moved for nothing; 450 partition-seconds without an owner")
    assert "cooperative-sticky" in alert.advice


def test_two_such_rebalances_are_not_enough(new_stage: "NewStage") -> None:
    """One below the threshold."""
    stage = new_stage()
    start(stage, 5)
    grow(stage, 0, 2)

    assert CHURN not in stage.names()


@pytest.mark.parametrize("protocol", ["sticky", "cooperative-sticky"])
def test_sticky_assignors_do_not_churn(new_stage: "NewStage", protocol: str) -> None:
    """However often the group grows, nothing moves that need not."""
    stage = new_stage(protocol=protocol)
    start(stage, 5)
    grow(stage, 0, 4)

    assert CHURN not in stage.names()


def test_few_partitions_are_not_worth_a_word(new_stage: "NewStage") -> None:
    """Six partitions cannot move much."""
    stage = new_stage()
    start(stage, 3, partitions=6)
    for index in range(3):
        stage.wait(2 * MINUTE)
        stage.join(f"a{9 - index}")
        spread(stage, 6)
        stage.rebalance()

    assert CHURN not in stage.names()


def test_a_rolling_restart_is_no_churn(new_stage: "NewStage") -> None:
    """Each member goes and comes back once: what that moves is over with it."""
    stage = new_stage()
    start(stage, 5)
    for index in range(5):
        stage.wait(20_000)
        stage.leave(f"m{index}")
        rebalance(stage)
        stage.wait(20_000)
        stage.join(f"n{index}", host=f"/10.0.0.{index}")
        rebalance(stage)

    assert CHURN not in stage.names()


def test_a_deployment_that_starts_the_new_ones_first_is_no_churn(new_stage: "NewStage") -> None:
    """Each arrival is explained by the departure that follows it."""
    stage = new_stage()
    start(stage, 5)
    for index in range(5):
        stage.wait(20_000)
        stage.join(f"n{index}", host=f"/10.0.0.{index}")
        rebalance(stage)
        stage.wait(20_000)
        stage.leave(f"m{index}")
        rebalance(stage)

    assert CHURN not in stage.names()


def test_a_storm_silences_churn(new_stage: "NewStage") -> None:
    """One trouble, one alert: the storm tells the moves as well."""
    stage = new_stage({"rebalance_storm": {"rebalances": 2}})
    start(stage, 5)
    grow(stage, 0, 4)

    assert STORM in stage.names()
    assert CHURN not in stage.names()
    assert " partitions; 25 would have been enough." in stage.told(STORM)[-1].cost


def test_opaque_assignments_tell_nothing(new_stage: "NewStage") -> None:
    """What a custom client puts into its bytes is not known, so nothing is said."""
    stage = new_stage()
    start(stage, 5)
    for index in range(4):
        stage.wait(2 * MINUTE)
        stage.join(f"a{9 - index}")
        for one in stage.members.values():
            one["assigned"] = None
        stage.rebalance()

    assert CHURN not in stage.names()


def test_churn_resolves_when_the_window_has_passed(new_stage: "NewStage") -> None:
    """An hour without much of it."""
    stage = new_stage()
    start(stage, 5)
    grow(stage, 0, 3)
    stage.wait(59 * MINUTE)
    assert len(stage.told(CHURN)) == 1
    stage.wait(2 * MINUTE)

    assert [alert.status for alert in stage.told(CHURN)] == [AlertStatus.FIRING, AlertStatus.RESOLVED]
    assert stage.memory is None or stage.due_ms is None or stage.due_ms > T0 + stage.now_ms


def test_both_steps_of_a_cooperative_rebalance_are_one() -> None:
    """The second adds to the first; a step of which something is not known makes the sum unknown."""
    memory = GroupMemory()
    first = RebalanceCost(started_ms=0, ended_ms=2_000, join_ms=1_500, sync_ms=500, partition_ms=0, moved=2)
    second = msgspec.structs.replace(
        first, started_ms=3_000, ended_ms=3_600, join_ms=100, partition_ms=900, moved=1, second_step=True
    )
    for cost in (first, second):
        situation = Situation(
            group=Group(group="orders"),
            step=Step(cost=StepCost(finished=cost)),
            now_ms=cost.ended_ms,
            evidence=LiveSources(
                info_live=True,
                requests_live=False,
                offsets_enabled=True,
                requests_heard_ms=-1,
                live_since_ms=0,
            ),
            thresholds=Thresholds(),
            memory=memory,
        )
        note(situation)

    (entry,) = since(memory, 0)
    assert (entry.started_ms, entry.ended_ms, entry.join_ms, entry.partition_ms) == (0, 3_600, 1_600, 900)
    assert (entry.moved, entry.least) == (3, -1)


@pytest.mark.parametrize(
    ("partition_ms", "text"),
    [
        (1_500, "1.5 partition-seconds"),
        (15_000, "15 partition-seconds"),
        (999_000, "999 partition-seconds"),
        (1_800_000, "1,800 partition-seconds"),
        (36_000_000, "10.0 partition-hours"),
    ],
)
def test_partition_time(partition_ms: int, text: str) -> None:
    """Seconds up to an hour, then hours."""
    assert partition_time(partition_ms) == text
