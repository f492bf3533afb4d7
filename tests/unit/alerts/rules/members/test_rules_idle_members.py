"""IdleMembers: members without work, and when that is nobody's business."""

import msgspec

from alerts.alert.alert import AlertStatus, Severity
from coordinator_model.state.group import Step
from tests.unit.alerts.rules.conftest import NewStage, Stage

NAME = "IdleMembers"
AFTER_MS = 15 * 60_000


def crowded(stage: Stage, partitions: int = 2, count: int = 3) -> list[str]:
    """Bring up more members than partitions."""
    names = [f"m{index}" for index in range(count)]
    for index, name in enumerate(names):
        stage.join(name, client=f"app-{index}", host=f"/10.0.0.{index}")
    assign(stage, partitions)
    stage.rebalance(join_ms=3_000)
    return names


def assign(stage: Stage, partitions: int) -> None:
    for index, options in enumerate(stage.members.values()):
        options["assigned"] = {"t": (index,)} if index < partitions else {}


def test_more_members_than_partitions(new_stage: NewStage) -> None:
    """After a quarter of an hour, as information; never again while it stays so."""
    stage = new_stage()
    crowded(stage)
    stage.wait(AFTER_MS - 1)
    assert not stage.alerts
    stage.wait(1)

    (alert,) = stage.told(NAME)
    assert alert.severity is Severity.INFO
    assert (
        alert.summary == "1 member of 3 in group orders has had no partition for 15 min: app-2 on 10.0.0.2."
    )
    assert alert.cause == "3 members share 2 partitions."
    assert [one.member_id for one in alert.culprits] == ["m2"]

    stage.wait(24 * 3_600_000)
    assert len(stage.alerts) == 1


def test_it_ends_when_the_numbers_fit(new_stage: NewStage) -> None:
    """A member goes, and each has a partition."""
    stage = new_stage()
    crowded(stage)
    stage.wait(AFTER_MS)
    stage.leave("m0")
    assign(stage, 2)
    stage.wait(1_000)
    assert len(stage.told(NAME)) == 1
    stage.rebalance()

    assert stage.told(NAME)[-1].status is AlertStatus.RESOLVED
    assert stage.memory is not None


def test_rebalances_do_not_begin_the_time_anew(new_stage: NewStage) -> None:
    """Another member idles after each; the group has idle members all the time."""
    stage = new_stage()
    crowded(stage)
    for turn in range(3):
        stage.wait(5 * 60_000 - 300)
        stage.join(f"n{turn}")
        assign(stage, 2)
        stage.rebalance()
    stage.wait(1_000)

    assert len(stage.told(NAME)) == 1


def test_a_rolling_restart_with_a_surge_is_silent(new_stage: NewStage) -> None:
    """For some minutes there are more members than partitions."""
    stage = new_stage()
    names = crowded(stage, partitions=3)
    for index, name in enumerate(names):
        stage.join(f"n{index}")
        assign(stage, 3)
        stage.rebalance()
        stage.wait(60_000)
        stage.leave(name)
        assign(stage, 3)
        stage.rebalance()
        stage.wait(60_000)
    stage.wait(2 * AFTER_MS)

    assert not stage.told(NAME)


def test_a_group_whose_topic_does_not_exist_yet_is_silent(new_stage: NewStage) -> None:
    """Nobody has a partition: it waits."""
    stage = new_stage()
    crowded(stage, partitions=0)
    stage.wait(4 * AFTER_MS)

    assert not stage.alerts


def test_standby_tasks_of_kafka_streams_are_work(new_stage: NewStage) -> None:
    """They stand in user data, not in the assignment."""
    stage = new_stage(protocol="stream")
    crowded(stage)
    stage.wait(4 * AFTER_MS)

    assert not stage.alerts


def test_an_unknown_assignment_proves_nothing(new_stage: NewStage) -> None:
    """Its bytes cannot be read."""
    stage = new_stage()
    crowded(stage)
    stage.members["m2"]["assigned"] = None
    stage.store(leader="m0")
    stage.wait(4 * AFTER_MS)

    assert not stage.alerts


def test_a_group_that_was_there_before_the_monitor_is_judged_from_its_start(new_stage: NewStage) -> None:
    """How long it has been so before is not known."""
    stage = new_stage()
    crowded(stage)
    stage.memory, stage.due_ms = None, None
    stage.wait(2 * AFTER_MS)
    assert not stage.alerts
    stage.ask(Step(met=True))
    stage.wait(AFTER_MS)

    assert len(stage.told(NAME)) == 1


def test_an_alert_of_an_earlier_job_goes_on(new_stage: NewStage) -> None:
    """Under its id and from its start, or it ends at the first judgement."""
    stage = new_stage()
    crowded(stage)
    stage.wait(AFTER_MS)
    (alert,) = stage.told(NAME)
    for partitions, status in ((2, AlertStatus.FIRING), (3, AlertStatus.RESOLVED)):
        assign(stage, partitions)
        stage.store(leader="m0")
        stage.memory = stage.judge.adopt(alert=msgspec.json.encode(alert), memory=None)
        stage.wait(60_000)
        (*_, told) = stage.ask(Step(met=True))
        assert (told.id, told.status) == (alert.id, status)
        if partitions == 2:
            assert "no partition for 16 min" in told.summary
