"""The alerts about progress in the life of a group: when they fire, hold back, and end."""

from typing import TYPE_CHECKING

import msgspec
import pytest

from alerts.alert.alert import AlertStatus, Severity
from coordinator_model.groups.offsets.intake import note_ends
from coordinator_model.observations.answers import EndOffsetsReported
from coordinator_model.observations.base import Source
from coordinator_model.observations.records import Commit, OffsetsCommitted
from coordinator_model.state.group import Basis, Step

if TYPE_CHECKING:
    from tests.unit.alerts.rules.conftest import NewStage, Stage

T0 = 1_700_000_000_000
MINUTE = 60_000
STOPPED, STALLED, GROWING, REWIND = "CommitsStopped", "CommitsStalled", "LagGrowing", "OffsetRewind"
PROGRESS = {STOPPED, STALLED, GROWING, REWIND}


def commit(stage: "Stage", offset: int | None, partition: int = 0, topic_id: int = 0) -> None:
    """The group commits, or its offset is deleted."""
    at_ms = T0 + stage.now_ms
    one = Commit("t", partition, offset, at_ms, topic_id=topic_id)
    stage.see(OffsetsCommitted(group="orders", commits=(one,)), Source.OFFSETS)


def tell(stage: "Stage", end: int, partition: int = 0) -> None:
    """The brokers tell where the partition ends."""
    told = EndOffsetsReported(group="orders", ends={"t": {partition: end}}, since_ms=T0)
    note_ends(stage.group, told, T0 + stage.now_ms)
    stage.ask(Step(progressed=True))


def wait(stage: "Stage", duration_ms: int) -> None:
    """Let time pass; each minute the brokers tell that nothing changed."""
    end = stage.group.tracks.partitions["t"][0].end  # type: ignore[union-attr]
    for _ in range(duration_ms // MINUTE):
        stage.wait(MINUTE)
        tell(stage, end)
    stage.wait(duration_ms % MINUTE)
    tell(stage, end)


def read(stage: "Stage", *, lag: int, times: int = 12, every: int = 5_000, step: int = 100) -> int:
    """The group commits steadily at some distance from the end; returns where it is."""
    offset = sum(committed[0] for committed in stage.group.commits.get("t", {}).values())
    for _ in range(times):
        stage.wait(every)
        offset += step
        commit(stage, offset)
        tell(stage, offset + lag)
    return offset


def stable(new_stage: "NewStage", **options: object) -> "Stage":
    """Return a group of two that reads, a little behind."""
    stage = new_stage(**options)
    stage.start(2)
    stage.wait(10 * MINUTE)
    read(stage, lag=50)
    return stage


def test_stopped_fires_names_the_owner_and_ends_with_a_commit(new_stage: "NewStage") -> None:
    """90 s without a commit while 500 records wait; over at the next commit, told at once."""
    stage = stable(new_stage)
    since_ms = stage.now_ms
    tell(stage, 99_999)
    wait(stage, 90_000)
    assert stage.told(STOPPED) == []
    stage.wait(1)
    (fired,) = stage.told(STOPPED)
    assert (fired.status, fired.severity) == (AlertStatus.FIRING, Severity.WARNING)
    assert fired.starts_at_ms == T0 + since_ms
    assert {culprit.basis for culprit in fired.culprits} == {Basis.INFERRED}
    assert "t-0" in fired.summary
    assert fired.runbook == ""

    stage.wait(30_000)
    commit(stage, 5_000)
    assert [alert.status for alert in stage.told(STOPPED)] == [AlertStatus.FIRING, AlertStatus.RESOLVED]
    assert stage.names() == {STOPPED}


def test_a_group_that_keeps_up_says_nothing(new_stage: "NewStage") -> None:
    """A little behind at each look, for an hour."""
    stage = stable(new_stage)
    for _ in range(6):
        read(stage, lag=80, times=100, every=6_000)
    stage.wait(80_000)
    assert stage.alerts == []


def test_nothing_waits_so_nothing_is_late(new_stage: "NewStage") -> None:
    """Idle for a day at the end of the log."""
    stage = stable(new_stage)
    read(stage, lag=0, times=3)
    stage.wait(1440 * MINUTE)
    assert stage.alerts == []


def test_without_end_offsets_only_rewinds_can_be_told(new_stage: "NewStage") -> None:
    """Nobody knows whether anything waits."""
    stage = new_stage()
    stage.start(2)
    for offset in range(100, 2_000, 100):
        stage.wait(5_000)
        commit(stage, offset)
    stage.wait(60 * MINUTE)
    assert stage.alerts == []
    commit(stage, 0)
    assert stage.names() == {REWIND}


def test_a_rebalance_is_no_stop_and_silence_counts_from_its_end(new_stage: "NewStage") -> None:
    """50 s in the join phase, then 80 s to read: late, and that is all."""
    stage = stable(new_stage, rules={"stuck_preparing_rebalance": {"enabled": False}})
    tell(stage, 99_999)
    stage.wait(60_000)
    stage.leave("m1")
    stage.wait(50_000)
    stage.end_join_phase()
    stage.assign()
    wait(stage, 80_000)
    assert not PROGRESS & stage.names()
    commit(stage, 5_000)
    tell(stage, 99_999)
    wait(stage, 80_000)
    assert not PROGRESS & stage.names()


def test_a_wait_in_a_rebalance_becomes_no_habit(new_stage: "NewStage") -> None:
    """Four minutes in the join phase, and then as attentive as before."""
    stage = stable(new_stage, rules={"stuck_preparing_rebalance": {"enabled": False}})
    tell(stage, 99_999)
    stage.leave("m1")
    stage.wait(4 * MINUTE)
    stage.end_join_phase()
    stage.assign()
    stage.wait(5_000)
    commit(stage, 5_000)
    tell(stage, 99_999)
    wait(stage, 91_000)
    assert stage.names() == {STOPPED}


def test_a_night_without_data_makes_nobody_slow(new_stage: "NewStage") -> None:
    """In the morning a hang is told as soon as ever."""
    stage = stable(new_stage)
    offset = read(stage, lag=0, times=3)
    stage.wait(8 * 60 * MINUTE)
    tell(stage, offset + 10)
    stage.wait(1_000)
    commit(stage, offset + 10)
    read(stage, lag=50, times=2)
    wait(stage, 91_000)
    assert stage.names() == {STOPPED}


def test_an_effect_is_held_back_while_its_cause_fires(new_stage: "NewStage") -> None:
    """A leader that never assigns is told, not that nobody commits."""
    stage = stable(new_stage)
    tell(stage, 99_999)
    stage.leave("m1")
    stage.wait(500)
    stage.end_join_phase()
    wait(stage, 10 * MINUTE)
    assert stage.names() == {"StuckCompletingRebalance"}


def test_after_a_session_timeout_that_is_told(new_stage: "NewStage") -> None:
    """Only once that alert is over, and still nobody reads: nobody is in the group."""
    stage = stable(new_stage)
    tell(stage, 99_999)
    stage.time_out("m0")
    stage.time_out("m1")
    stage.end_join_phase()
    wait(stage, 9 * MINUTE)
    assert stage.names() == {"SessionTimeout"}
    wait(stage, 2 * MINUTE)
    (fired,) = stage.told(STOPPED)
    assert fired.cause == (
        "The group has no members: the last member fell silent for its session timeout "
        "(app on 10.0.0.1, at 2023-11-14 22:24:23.250 UTC)."
    )
    assert fired.culprits == ()


def test_who_left_in_good_order_may_be_away_for_a_day(new_stage: "NewStage") -> None:
    """A batch job between two runs, or a consumer that was switched off."""
    stage = stable(new_stage)
    for member in ("m0", "m1"):
        stage.leave(member)
    stage.end_join_phase()
    tell(stage, 99_999)
    wait(stage, 25 * 60 * MINUTE)
    assert stage.alerts == []
    wait(stage, 2 * 60 * MINUTE)
    assert stage.names() == {STOPPED}


def test_where_no_log_is_read_a_rebalance_may_be_under_way(new_stage: "NewStage") -> None:
    """The topic alone: not before the rebalance timeout of five minutes."""
    stage = stable(new_stage, info=False)
    stage.wait(5_000)
    commit(stage, 4_000)
    tell(stage, 99_999)
    wait(stage, 300_000)
    assert stage.alerts == []
    wait(stage, 5_000)
    assert stage.names() == {STOPPED}


def test_while_the_brokers_are_away_nobody_can_commit(new_stage: "NewStage") -> None:
    """They were asked in vain for three minutes; the consumers get a while to find them again."""
    stage = stable(new_stage)
    tell(stage, 99_999)
    stage.wait(5_000)
    stage.wait(10 * MINUTE)
    assert stage.alerts == []
    since_ms = T0 + stage.now_ms
    for _ in range(8):
        told = EndOffsetsReported(group="orders", ends={"t": {0: 99_999}}, since_ms=since_ms)
        note_ends(stage.group, told, T0 + stage.now_ms)
        stage.ask(Step(progressed=True))
        stage.wait(10_000)
    assert stage.alerts == []
    stage.wait(4_000)
    assert stage.alerts == []
    note_ends(stage.group, told, T0 + stage.now_ms)
    stage.wait(7_000)
    assert stage.names() == {STOPPED}


def test_a_topic_nobody_subscribes_to_is_not_judged(new_stage: "NewStage") -> None:
    """Its offsets stay, and its lag grows for ever."""
    stage = new_stage()
    stage.start(2)
    for offset in range(100, 1_000, 100):
        stage.wait(5_000)
        one = Commit("old", 0, offset, T0 + stage.now_ms)
        stage.see(OffsetsCommitted(group="orders", commits=(one,)), Source.OFFSETS)
        note_ends(
            stage.group, EndOffsetsReported(group="orders", ends={"old": {0: 9_999}}), T0 + stage.now_ms
        )
        stage.ask(Step(progressed=True))
    stage.wait(60 * MINUTE)
    assert stage.alerts == []


def test_stalled_fires_and_ends_when_the_offset_moves(new_stage: "NewStage") -> None:
    """One record is tried again and again; others are fine."""
    stage = stable(new_stage)
    read(stage, lag=400, times=1)
    read(stage, lag=400, times=10, step=0)
    assert stage.alerts == []
    read(stage, lag=400, times=4, step=0)
    (fired,) = stage.told(STALLED)
    assert (fired.status, fired.severity) == (AlertStatus.FIRING, Severity.WARNING)
    read(stage, lag=400, times=20, step=0)
    assert len(stage.told(STALLED)) == 1
    read(stage, lag=300, times=1)
    assert [alert.status for alert in stage.told(STALLED)] == [AlertStatus.FIRING, AlertStatus.RESOLVED]
    assert stage.names() == {STALLED}


def stall(stage: "Stage", *, times: int = 14, partitions: tuple[int, ...] = (0,)) -> None:
    """The group commits the same offsets again and again while records wait."""
    for _ in range(times):
        stage.wait(5_000)
        for partition in partitions:
            offset = stage.group.commits["t"][partition][0]
            commit(stage, offset, partition)
            tell(stage, offset + 400, partition)


def test_a_partition_that_stalls_and_then_falls_silent_is_one_alert(new_stage: "NewStage") -> None:
    """The alert that told it first goes on, and says that commits have ceased."""
    stage = stable(new_stage)
    read(stage, lag=400, times=1)
    stall(stage)
    assert stage.names() == {STALLED}
    wait(stage, 10 * MINUTE)
    assert [(one.name, one.revision) for one in stage.alerts] == [(STALLED, 0), (STALLED, 1)]
    assert stage.alerts[-1].evidence[0].startswith("No commit on t-0 since")
    read(stage, lag=300, times=1)
    assert stage.told(STALLED)[-1].status is AlertStatus.RESOLVED
    assert stage.names() == {STALLED}


def test_one_partition_stalls_and_another_stops_are_two_alerts(new_stage: "NewStage") -> None:
    """Each tells its own partition, and keeps it when both are silent."""
    stage = new_stage()
    stage.start(2)
    stage.wait(10 * MINUTE)
    offsets = [0, 0]

    def turn(*partitions: int, step: int) -> None:
        stage.wait(5_000)
        for partition in partitions:
            offsets[partition] += step
            commit(stage, offsets[partition], partition)
        for partition in (0, 1):
            tell(stage, offsets[partition] + 400, partition)

    for _ in range(12):
        turn(0, 1, step=100)
    for _ in range(40):
        turn(0, step=0)
    assert {"t-0" in one.summary and "t-1" not in one.summary for one in stage.told(STALLED)} == {True}
    assert {"t-1" in one.summary and "t-0" not in one.summary for one in stage.told(STOPPED)} == {True}
    for _ in range(100):
        turn(step=0)
    assert {one.status for one in stage.told(STALLED) + stage.told(STOPPED)} == {AlertStatus.FIRING}
    assert len(stage.told(STOPPED)) == 1


def test_a_stopped_group_that_comes_back_to_the_same_offset_is_told_by_one_alert_at_a_time(
    new_stage: "NewStage",
) -> None:
    """A commit ends the first; that nothing moves is the second."""
    stage = stable(new_stage)
    tell(stage, 99_999)
    wait(stage, 2 * MINUTE)
    assert stage.names() == {STOPPED}
    stall(stage, times=60)
    assert [(one.name, str(one.status)) for one in stage.alerts][:2] == [
        (STOPPED, "firing"),
        (STOPPED, "resolved"),
    ]
    assert stage.told(STOPPED)[-1].status is AlertStatus.RESOLVED


def test_what_both_could_tell_in_the_same_moment_is_one_alert(new_stage: "NewStage") -> None:
    """While a cause was told both held back; when it is over only one of them speaks."""
    stage = stable(new_stage)
    read(stage, lag=400, times=1)
    stage.time_out("m1")
    stage.end_join_phase()
    stage.assign()
    stall(stage, times=40)
    wait(stage, 20 * MINUTE)
    assert [one.name for one in stage.alerts if one.name in PROGRESS and one.revision == 0] == [STALLED]


def test_the_same_offset_again_at_the_end_is_what_idle_consumers_commit(new_stage: "NewStage") -> None:
    """The Java client does each five seconds; an end marker of a transaction may be left."""
    stage = stable(new_stage)
    read(stage, lag=1, times=200, step=0)
    assert stage.alerts == []


def slow(stage: "Stage", *, minutes: int, read_of_100: int) -> None:
    """Each ten seconds 100 records are written, and so many read."""
    offset, end = stage.group.commits["t"][0][0], stage.group.tracks.partitions["t"][0].end  # type: ignore[union-attr]
    for _ in range(minutes * 6):
        stage.wait(10_000)
        offset, end = min(end + 100, offset + read_of_100), end + 100
        commit(stage, offset)
        tell(stage, end)


def test_growing_fires_after_its_window_and_ends_when_it_shrinks(new_stage: "NewStage") -> None:
    """80 of each 100 records are read."""
    stage = stable(new_stage)
    slow(stage, minutes=3, read_of_100=80)
    assert stage.alerts == []
    slow(stage, minutes=2, read_of_100=80)
    (fired,) = stage.told(GROWING)
    assert (fired.severity, fired.status) == (Severity.WARNING, AlertStatus.FIRING)
    assert "reads 8" in fired.summary
    assert ", up from 50 in 4 min 25 s; " in fired.summary
    slow(stage, minutes=20, read_of_100=80)
    assert len(stage.told(GROWING)) == 1
    slow(stage, minutes=1, read_of_100=160)
    assert [alert.status for alert in stage.told(GROWING)] == [AlertStatus.FIRING, AlertStatus.RESOLVED]
    assert stage.names() == {GROWING}


@pytest.mark.parametrize("read_of_100", [99, 100, 120])
def test_who_keeps_up_is_not_slow(new_stage: "NewStage", read_of_100: int) -> None:
    """At the edge for an hour."""
    stage = stable(new_stage)
    read(stage, lag=900, times=3)
    slow(stage, minutes=60, read_of_100=read_of_100)
    assert stage.alerts == []


def test_growing_gives_way_to_stopped(new_stage: "NewStage") -> None:
    """One trouble, one alert: who does not read at all is not slow."""
    stage = stable(new_stage)
    slow(stage, minutes=8, read_of_100=50)
    stage.wait(3 * MINUTE)
    tell(stage, 99_999)
    assert [alert.status for alert in stage.told(GROWING)] == [AlertStatus.FIRING, AlertStatus.RESOLVED]
    assert [alert.status for alert in stage.told(STOPPED)] == [AlertStatus.FIRING]


def test_a_rewind_is_told_when_the_end_proves_it(new_stage: "NewStage") -> None:
    """A seek to the beginning; once, and over after ten quiet minutes."""
    stage = stable(new_stage)
    stage.wait(5_000)
    commit(stage, 3)
    assert stage.alerts == []
    stage.wait(2_000)
    tell(stage, 5_000)
    (fired,) = stage.told(REWIND)
    assert fired.severity is Severity.WARNING
    assert "1,197 records" in fired.summary
    for _ in range(20):
        read(stage, lag=100, times=12)
    assert [alert.status for alert in stage.told(REWIND)] == [AlertStatus.FIRING, AlertStatus.RESOLVED]
    assert stage.names() == {REWIND}


def test_a_seek_that_was_made_good_before_anybody_looked(new_stage: "NewStage") -> None:
    """A small topic is read again within a second; it was read twice all the same."""
    stage = stable(new_stage)
    stage.wait(1_000)
    commit(stage, 0)
    stage.wait(1_000)
    commit(stage, 1_250)
    assert stage.names() == {REWIND}
    read(stage, lag=50, times=30)
    assert len(stage.told(REWIND)) == 1


def test_no_news_of_an_end_is_proof_as_well(new_stage: "NewStage") -> None:
    """A topic into which nothing is written: its end would be told if it had fallen."""
    stage = stable(new_stage)
    read(stage, lag=0, times=2)
    stage.wait(1_000)
    commit(stage, 0)
    stage.wait(59_999)
    assert stage.alerts == []
    stage.wait(1)
    assert stage.names() == {REWIND}


def test_a_rewind_that_is_never_made_good_is_told_once(new_stage: "NewStage") -> None:
    """A slow group, whose alert is over long before it is where it was."""
    stage = stable(new_stage)
    read(stage, lag=50, times=12, every=5 * MINUTE)
    commit(stage, 0)
    tell(stage, 5_000)
    for offset in range(1, 9):
        stage.wait(5 * MINUTE)
        commit(stage, offset)
        tell(stage, 5_000)
    assert [alert.status for alert in stage.told(REWIND)] == [AlertStatus.FIRING, AlertStatus.RESOLVED]


def test_a_late_commit_that_is_made_good_is_none(new_stage: "NewStage") -> None:
    """A member that lost the partition commits what it read before."""
    stage = stable(new_stage)
    stage.wait(1_000)
    commit(stage, 1_100)
    tell(stage, 1_300)
    read(stage, lag=50, times=30)
    assert stage.alerts == []


def test_a_late_commit_that_stays_is_one(new_stage: "NewStage") -> None:
    """Ten seconds later nobody has made it good."""
    stage = stable(new_stage)
    stage.wait(1_000)
    commit(stage, 1_100)
    tell(stage, 1_300)
    stage.wait(9_999)
    assert stage.alerts == []
    stage.wait(1)
    assert stage.names() == {REWIND}


def test_a_reset_while_nobody_is_there_is_quieter(new_stage: "NewStage") -> None:
    """Whoever ran kafka-consumer-groups --reset-offsets knows."""
    stage = stable(new_stage)
    for member in ("m0", "m1"):
        stage.leave(member)
    stage.end_join_phase()
    stage.wait(5_000)
    commit(stage, 0)
    tell(stage, 5_000)
    (fired,) = stage.told(REWIND)
    assert fired.severity is Severity.INFO
    assert "the group had no members" in fired.cause
    stage.wait(60 * MINUTE)
    assert stage.names() == {REWIND}


def simple(new_stage: "NewStage") -> "Stage":
    """Return a group without members, in which somebody went from 9 back to 2."""
    stage = new_stage()
    for offset in (5, 9, 2):
        stage.wait(2_000)
        commit(stage, offset)
    return stage


def test_offsets_beyond_the_end_repeat_nothing(new_stage: "NewStage") -> None:
    """An admin tool sets offsets of an empty topic, before the brokers have told its end."""
    stage = simple(new_stage)
    stage.wait(20_000)
    tell(stage, 0)
    stage.wait(60 * MINUTE)
    assert stage.alerts == []


def test_a_partition_new_to_us_is_asked_about_first(new_stage: "NewStage") -> None:
    """Its end shows that records are read again, and nobody is accused of being a member."""
    stage = simple(new_stage)
    stage.wait(20_000)
    assert stage.alerts == []
    tell(stage, 500)
    (fired,) = stage.told(REWIND)
    assert "no member of the group" in fired.cause


def test_where_nobody_tells_ends_a_new_partition_goes_back_all_the_same(new_stage: "NewStage") -> None:
    """A minute after its first commit, its end would have been told."""
    stage = simple(new_stage)
    stage.wait(55_999)
    assert stage.alerts == []
    stage.wait(1)
    assert stage.names() == {REWIND}


@pytest.mark.parametrize("how", ["deleted", "other id", "end fell"])
def test_a_recreated_topic_is_no_rewind(new_stage: "NewStage", how: str) -> None:
    """However it shows."""
    stage = stable(new_stage)
    commit(stage, 1_300, topic_id=7)
    stage.wait(5_000)
    if how == "deleted":
        commit(stage, None)
    commit(stage, 3, topic_id=8 if how == "other id" else 7)
    tell(stage, 9 if how == "end fell" else 5_000)
    stage.wait(60_000)
    assert stage.alerts == []


def test_a_job_without_checkpoint_adopts_what_is_open(new_stage: "NewStage") -> None:
    """Nothing is known of what was usual; the next commit ends it all the same."""
    stage = stable(new_stage)
    tell(stage, 99_999)
    wait(stage, 2 * MINUTE)
    (fired,) = stage.told(STOPPED)
    stage.memory = stage.judge.adopt(alert=msgspec.json.encode(fired), memory=None)
    stage.group.tracks = None
    stage.ask(Step(met=True))
    tell(stage, 99_999)
    assert stage.told(STOPPED) == [fired]
    commit(stage, 5_000)
    assert stage.told(STOPPED)[-1].status is AlertStatus.RESOLVED


def test_a_rule_that_is_switched_off_is_silent(new_stage: "NewStage") -> None:
    """For one group, by an override."""
    off = {"overrides": [{"groups": ["orders"], "enabled": False}]}
    stage = stable(new_stage, rules={"commits_stopped": off})
    tell(stage, 99_999)
    wait(stage, 60 * MINUTE)
    assert stage.alerts == []


def test_end_offsets_put_nothing_off(new_stage: "NewStage") -> None:
    """Rules about other things end their alerts at their own times, however often ends are told."""
    stages = [stable(new_stage), stable(new_stage)]
    for number, stage in enumerate(stages):
        stage.time_out("m1")
        stage.rebalance()
        for _ in range(60):
            stage.wait(10_000)
            if number:
                tell(stage, 10_000)
    quiet, told = ([one for one in stage.alerts if one.name == "SessionTimeout"] for stage in stages)

    assert [one.status for one in quiet] == [AlertStatus.FIRING, AlertStatus.RESOLVED]
    assert told == quiet
