"""Progress of groups that are odd and well, as simulated lives of groups found them."""

from typing import TYPE_CHECKING

import pytest

from coordinator_model.groups.offsets.intake import note_ends
from coordinator_model.observations.answers import EndOffsetsReported
from coordinator_model.observations.base import Source
from coordinator_model.observations.records import Commit, OffsetsCommitted
from coordinator_model.state.group import Step

if TYPE_CHECKING:
    from tests.unit.alerts.rules.conftest import NewStage, Stage

T0 = 1_700_000_000_000
MINUTE = 60_000


def commit(stage: "Stage", offset: int, topic: str = "t", partition: int = 0, topic_id: int = 0) -> None:
    """The group commits."""
    one = Commit(topic, partition, offset, T0 + stage.now_ms, topic_id=topic_id)
    stage.see(OffsetsCommitted(group="orders", commits=(one,)), Source.OFFSETS)


def tell(stage: "Stage", **ends: dict[int, int]) -> None:
    """The brokers tell where partitions end."""
    note_ends(stage.group, EndOffsetsReported(group="orders", ends=ends, since_ms=T0), T0 + stage.now_ms)
    stage.ask(Step(progressed=True))


@pytest.mark.parametrize("info", [True, False])
def test_commits_that_rebalances_make_are_no_habit(new_stage: "NewStage", *, info: bool) -> None:
    """Members that commit each five minutes, and whenever they have to join again, as a service starts."""
    stage = new_stage(info=info, rules={"rebalance_storm": {"enabled": False}})
    stage.start(1)
    for number in range(8):
        stage.wait(4_000)
        stage.join(f"late-{number}")
        commit(stage, 100 * number)
        stage.rebalance()
        tell(stage, t={0: 100 * number + 50})
    for number in range(9, 13):
        stage.wait(5 * MINUTE)
        tell(stage, t={0: 100 * number})
        commit(stage, 100 * number)
    assert stage.alerts == []

    for _ in range(40):
        stage.wait(MINUTE)
        tell(stage, t={0: 9_999})
    assert "CommitsStopped" in stage.names()


def test_a_topic_made_anew_begins_anew_in_all_its_partitions(new_stage: "NewStage") -> None:
    """The id in the commit of one partition tells of the others, whose offsets nobody deleted."""
    stage = new_stage()
    stage.start(2)
    for partition in (0, 1):
        commit(stage, 5_000, partition=partition, topic_id=7)
    stage.wait(10_000)
    tell(stage, t={0: 5_000, 1: 5_000})
    stage.wait(MINUTE)
    commit(stage, 10, partition=0, topic_id=8)
    stage.wait(2 * MINUTE)
    commit(stage, 10, partition=1, topic_id=8)
    stage.wait(10_000)
    tell(stage, t={0: 6_000, 1: 6_000})
    stage.wait(10 * MINUTE)
    assert "OffsetRewind" not in stage.names()


def test_an_end_that_fell_is_believed_when_it_has_passed_the_old_offset(new_stage: "NewStage") -> None:
    """Brokers that tell no id: the end fell, and rose again before the group committed once."""
    stage = new_stage()
    stage.start(2)
    for offset in (4_000, 5_000):
        stage.wait(5_000)
        commit(stage, offset)
        tell(stage, t={0: offset})
    stage.wait(MINUTE)
    tell(stage, t={0: 20})
    stage.wait(MINUTE)
    tell(stage, t={0: 8_000})
    stage.wait(1_000)
    commit(stage, 300)
    stage.wait(10_000)
    tell(stage, t={0: 8_500})
    stage.wait(5 * MINUTE)
    assert "OffsetRewind" not in stage.names()


def test_a_newcomer_does_not_bring_back_what_nobody_subscribes_to(new_stage: "NewStage") -> None:
    """A topic was given up with records left in it; then somebody joins, whose topics no line tells."""
    stage = new_stage()
    stage.start(2)
    for offset in range(100, 1_300, 100):
        stage.wait(5_000)
        commit(stage, offset)
        commit(stage, offset, topic="given-up")
        tell(stage, t={0: offset}, **{"given-up": {0: offset}})
    for _ in range(20):
        stage.wait(MINUTE)
        tell(stage, **{"given-up": {0: 9_999}})
    stage.join("newcomer")
    stage.rebalance()
    assert stage.alerts == []


def test_one_that_stops_among_many_does_not_grow(new_stage: "NewStage") -> None:
    """With the topic alone a stop is told after the rebalance timeout; until then it is no lag that grows."""
    stage = new_stage(info=False)
    stage.start(4)
    for second in range(5, 1_500, 5):
        stage.wait(5_000)
        for partition in range(4):
            if partition or second < 600:
                commit(stage, 50 * second, partition=partition)
        if second % 10 == 0:
            tell(stage, t=dict.fromkeys(range(4), 50 * second + 20))
    assert stage.names() == {"CommitsStopped"}


@pytest.mark.parametrize(("share", "expected"), [(100, set()), (80, {"LagGrowing"})])
def test_bursts_beside_rare_commits_are_no_lag_that_grows(
    new_stage: "NewStage", *, share: int, expected: set[str]
) -> None:
    """A burst each minute, commits each 60.5 s: where one meets the other moves on by half a second a time.

    Where the partition ended at a commit is not known, only where it did up to 10 s before and after.
    """
    stage = new_stage()
    stage.start(2)
    begun, read = stage.now_ms, 0
    for half in range(1, 7_200):
        stage.wait(500)
        written = 25 * ((stage.now_ms - begun + 54_000) // MINUTE)
        if half % 121 == 0:
            read = max(read, written * share // 100)
            commit(stage, read)
        if half % 20 == 14:
            tell(stage, t={0: written})
    assert stage.names() == expected
