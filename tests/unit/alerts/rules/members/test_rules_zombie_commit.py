"""ZombieCommit: who was removed and goes on working, and whom a rebalance has merely overtaken."""

from typing import Any

import pytest

from alerts.alert.alert import AlertStatus
from alerts.rules.engine.repeated import QUIET_MS
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.observations.base import Source
from coordinator_model.observations.log import MembersKicked
from coordinator_model.observations.requests import Client, CommitsAnswered, TransactionalCommit
from tests.unit.alerts.rules.conftest import T0, NewStage, Stage

NAME = "ZombieCommit"
CLIENT = Client(client_id="app", host="/10.0.0.1", connection="c-1")


def commit(stage: Stage, member: str, generation: int, error_code: int, **more: Any) -> None:
    """A commit is answered."""
    what = CommitsAnswered(
        group="orders",
        member_id=member,
        generation=generation,
        error_code=error_code,
        times=(T0 + stage.now_ms,),
        client=CLIENT,
        claims=(("t", 0, 52),),
        **more,
    )
    stage.see(what, Source.REQUEST_LOG)


@pytest.fixture
def stage(new_stage: NewStage) -> Stage:
    """Three members, INFO and request log."""
    made = new_stage(requests=True)
    made.start(3)
    made.wait(60_000)
    return made


def test_a_member_that_was_removed_commits(stage: Stage) -> None:
    """One commit after the removal says it all: who, which generation, what, and how it went."""
    stage.time_out("m1")
    stage.rebalance()
    stage.wait(12_000)
    commit(stage, "m1", 1, 25)

    (alert,) = stage.told(NAME)

    assert [one.member_id for one in alert.culprits] == ["m1"]
    assert alert.culprits[0].basis == "observed"
    assert alert.summary == (
        "Group orders: app on 10.0.0.1 still works after losing its partitions; the coordinator "
        "refused 1 commit of generation 1."
    )
    assert "(member m1) with generation 1 (t-0 at 52) refused with UNKNOWN_MEMBER_ID" in alert.cause
    assert "removed 12 s before (its session timed out), the group is Stable at generation 2" in alert.cause


def test_it_ends_ten_minutes_after_the_last(stage: Stage) -> None:
    """One alert for all commits of one member."""
    stage.time_out("m1")
    stage.rebalance()
    for _ in range(5):
        stage.wait(5_000)
        commit(stage, "m1", 1, 25)
    assert len(stage.told(NAME)) == 1
    stage.wait(QUIET_MS)

    assert [alert.status for alert in stage.told(NAME)] == [AlertStatus.FIRING, AlertStatus.RESOLVED]


def test_the_request_log_alone_tells_it(new_stage: NewStage) -> None:
    """The refused commit is itself what shows that the session had run out."""
    stage = new_stage(info=False, requests=True)
    stage.start(2)
    for _ in range(3):
        stage.wait(3_000)
        stage.beat("m0")
        stage.beat("m1")
    stage.heard_ms = None
    for _ in range(18):
        stage.wait(3_000)
        stage.beat("m0")
    commit(stage, "m1", 1, 25)

    assert [alert.culprits[0].member_id for alert in stage.told(NAME)] == ["m1"]


@pytest.mark.parametrize("error_code", [22, 25, 27, 113, 16])
def test_a_late_commit_in_a_rebalance_is_ordinary(stage: Stage, error_code: int) -> None:
    """A member that is here commits once with the generation before, or in the join phase."""
    stage.join("m3")
    commit(stage, "m1", 1, 27)
    stage.rebalance()
    stage.wait(500)
    commit(stage, "m1", 1, error_code)
    stage.wait(60_000)

    assert not stage.told(NAME)


def test_two_late_commits_in_a_row_are_ordinary_too(stage: Stage) -> None:
    """Threads of one client that do not know of the new generation yet."""
    stage.join("m3")
    stage.rebalance()
    for _ in range(5):
        stage.wait(1_500)
        commit(stage, "m1", 1, 22)

    assert not stage.told(NAME)


def test_a_stale_generation_that_goes_on_is_a_zombie(stage: Stage) -> None:
    """A thread, or a producer of transactions, that never learns of the new generation."""
    stage.join("m3")
    stage.rebalance()
    for _ in range(5):
        stage.wait(5_000)
        commit(stage, "m1", 1, 22)

    (alert,) = stage.told(NAME)
    assert "refused with ILLEGAL_GENERATION" in alert.cause


def test_a_member_that_left_and_commits_once_is_ordinary(stage: Stage) -> None:
    """Its last commit crossed its LeaveGroup."""
    stage.leave("m1")
    commit(stage, "m1", 1, 25)
    stage.rebalance()
    stage.wait(60_000)

    assert not stage.told(NAME)


def test_an_unknown_member_proves_nothing_at_once(stage: Stage) -> None:
    """The monitor has not seen it go: a coordinator may have forgotten it."""
    commit(stage, "stranger", 7, 25)
    stage.wait(2_000)
    commit(stage, "stranger", 7, 25)
    assert not stage.told(NAME)

    stage.wait(20_000)
    commit(stage, "stranger", 7, 25)
    assert len(stage.told(NAME)) == 1


def test_after_a_poll_timeout(stage: Stage) -> None:
    """The client said itself why it left, and commits what it did meanwhile."""
    stage.leave("m1", reason="consumer poll timeout has expired.")
    stage.rebalance()
    stage.wait(3_000)
    commit(stage, "m1", 1, 25)

    assert "it did not poll in time" in stage.told(NAME)[0].cause


def test_a_transaction_of_a_removed_member(stage: Stage) -> None:
    """TxnOffsetCommit is a commit as well."""
    stage.time_out("m1")
    stage.rebalance()
    claimed = TransactionalCommit(
        group="orders", member_id="m1", generation=1, error_code=25, producer_id=9, client=CLIENT
    )
    stage.see(claimed, Source.REQUEST_LOG)

    assert len(stage.told(NAME)) == 1


def test_fenced_commits_belong_to_the_other_alert(stage: Stage) -> None:
    """Two processes under one instance id: one trouble, one alert."""
    for _ in range(6):
        stage.wait(5_000)
        commit(stage, "m1", 1, 82, instance_id="i1")

    assert stage.names() == {"StaticMemberFenced"}
    assert "commit of app (instance i1) on 10.0.0.1 refused" in stage.told("StaticMemberFenced")[0].cause


def test_the_rule_can_be_switched_off(new_stage: NewStage) -> None:
    """As every rule."""
    stage = new_stage({"zombie_commit": {"enabled": False}}, requests=True)
    stage.start(3)
    stage.time_out("m1")
    stage.rebalance()
    commit(stage, "m1", 1, 25)

    assert not stage.told(NAME)


def test_removed_for_not_rejoining(stage: Stage) -> None:
    """The join phase ended without it, and it works on."""
    stage.join("m3")
    stage.wait(300_000)
    stage.log(MembersKicked(group="orders", member_ids=("m1",)))
    stage.members.pop("m1")
    stage.rebalance()
    commit(stage, "m1", 1, 25)

    assert "it did not rejoin in time" in stage.told(NAME)[0].cause
    assert stage.group.departures[-1].how is CauseKind.REBALANCE_TIMEOUT
