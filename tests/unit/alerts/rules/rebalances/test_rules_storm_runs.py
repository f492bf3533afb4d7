"""RebalanceStorm and batch jobs: who comes, reads all there is and goes is no crash loop."""

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
STORM = "RebalanceStorm"


def commit(stage: "Stage", offset: int) -> None:
    """The group commits."""
    one = Commit("t", 0, offset, T0 + stage.now_ms)
    stage.see(OffsetsCommitted(group="orders", commits=(one,)), Source.OFFSETS)


def tell(stage: "Stage", end: int) -> None:
    """The brokers tell where the partition ends."""
    note_ends(
        stage.group, EndOffsetsReported(group="orders", ends={"t": {0: end}}, since_ms=T0), T0 + stage.now_ms
    )
    stage.ask(Step(progressed=True))


def run(
    stage: "Stage",
    number: int,
    *,
    read: int,
    end: int | None,
    members: int = 1,
    commits: bool = True,
    dies: bool = False,
) -> None:
    """One run: members come, read from the offset before it to ``read``, and go."""
    names = [f"job-{number}-{index}" for index in range(members)]
    for name in names:
        stage.join(name, client="job", host="/10.0.0.1")
    stage.rebalance()
    for offset in (read - 50, read) if commits else ():
        stage.wait(5_000)
        commit(stage, offset)
        if end is not None:
            tell(stage, end)
    stage.wait(5_000)
    for name in names:
        if dies:
            stage.time_out(name)
        else:
            stage.leave(name)
    stage.end_join_phase()


def runs(
    stage: "Stage", *, left: int = 0, ends: bool = True, every_ms: int = 2 * MINUTE, members: int = 1
) -> None:
    """Ten runs, after each of which ``left`` records still wait; more are written in between."""
    for number in range(1, 11):
        run(stage, number, read=100 * number, end=100 * number + left if ends else None, members=members)
        stage.wait(MINUTE)
        if ends:
            tell(stage, 100 * number + 90)
        stage.wait(MINUTE)


@pytest.mark.parametrize(("pause_ms", "is_storm"), [(29_000, True), (31_000, False)])
def test_who_is_back_at_once_was_not_scheduled(new_stage: "NewStage", pause_ms: int, is_storm: bool) -> None:
    """A service that ends politely and is restarted reads all there is, too."""
    stage = new_stage()
    for number in range(1, 11):
        run(stage, number, read=100 * number, end=100 * number)
        stage.wait(pause_ms)

    assert bool(stage.told(STORM)) is is_storm


@pytest.mark.parametrize("members", [1, 3])
def test_a_batch_job_every_other_minute_is_no_storm(new_stage: "NewStage", members: int) -> None:
    """Each run reads all there is; what is written later is the next one's."""
    stage = new_stage()
    runs(stage, members=members)

    assert stage.told(STORM) == []


@pytest.mark.parametrize(("late_ms", "is_storm"), [(14_000, False), (16_000, True)])
def test_what_is_written_while_a_run_ends_is_the_next_ones(
    new_stage: "NewStage", late_ms: int, is_storm: bool
) -> None:
    """The topic is written to all the time, so that some end is told after the last commit but one."""
    stage = new_stage()
    for number in range(1, 11):
        stage.join(f"job-{number}", client="job", host="/10.0.0.1")
        stage.rebalance()
        commit(stage, 100 * number)
        tell(stage, 100 * number)
        stage.wait(5_000)
        tell(stage, 100 * number + 20)
        stage.wait(late_ms)
        commit(stage, 100 * number + 15)
        stage.leave(f"job-{number}")
        stage.end_join_phase()
        stage.wait(MINUTE)

    assert bool(stage.told(STORM)) is is_storm


def test_runs_that_find_nothing_are_runs(new_stage: "NewStage") -> None:
    """At night nothing is written, and the job looks all the same."""
    stage = new_stage()
    for number in range(1, 3):
        run(stage, number, read=100 * number, end=100 * number)
        stage.wait(MINUTE)
    for number in range(3, 20):
        run(stage, number, read=200, end=200, commits=False)
        stage.wait(MINUTE)

    assert stage.told(STORM) == []


def test_who_closes_politely_and_leaves_records_behind_is_a_storm(new_stage: "NewStage") -> None:
    """One record stays: the one that it crashes at."""
    stage = new_stage()
    runs(stage, left=1)

    assert [one.client_id for one in stage.told(STORM)[0].culprits] == ["job"]


def test_a_client_that_never_gets_on_is_a_storm(new_stage: "NewStage") -> None:
    """Nothing waits, but nothing was ever read either."""
    stage = new_stage()
    for number in range(10):
        run(stage, number, read=50, end=0, commits=False)
        stage.wait(MINUTE)

    assert stage.told(STORM) != []


def test_without_end_offsets_nobody_knows_whether_it_was_done(new_stage: "NewStage") -> None:
    """Then it counts as before."""
    stage = new_stage()
    runs(stage, ends=False)

    assert stage.told(STORM) != []


def test_who_dies_has_not_ended_a_run(new_stage: "NewStage") -> None:
    """A session timeout is no end of a job."""
    stage = new_stage()
    for number in range(1, 8):
        run(stage, number, read=100 * number, end=100 * number, dies=True)
        stage.wait(MINUTE)

    assert stage.told(STORM) != []


def test_a_loop_beside_members_that_stay_is_a_storm(new_stage: "NewStage") -> None:
    """However much it reads: it disturbs the others."""
    stage = new_stage()
    stage.start(2)
    stage.wait(20 * MINUTE)
    for number in range(1, 8):
        stage.join(f"bad-{number}", client="bad", host="/10.0.0.9")
        stage.rebalance()
        stage.wait(5_000)
        commit(stage, 100 * number)
        tell(stage, 100 * number)
        stage.leave(f"bad-{number}")
        stage.rebalance()
        stage.wait(MINUTE)

    assert stage.told(STORM)[0].culprits[0].client_id == "bad"
