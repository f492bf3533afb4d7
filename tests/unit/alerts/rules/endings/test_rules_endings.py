"""GroupDeleted and OffsetsExpiring: how a group ends, and when its offsets will."""

from typing import TYPE_CHECKING

import msgspec
import pytest

from alerts.alert.alert import Alert, AlertStatus, Severity
from alerts.rules import RuleJudge
from alerts.rules.endings.group_deleted import is_ephemeral
from coordinator_model import observations as on
from coordinator_model.capture import Mirror
from coordinator_model.groups.offsets.intake import note_ends
from coordinator_model.observations.answers import EndOffsetsReported, RetentionReported
from coordinator_model.observations.base import Source
from coordinator_model.observations.log import GroupsDeleted, GroupUnloaded
from coordinator_model.observations.records import Commit, GroupTombstone, OffsetsCommitted
from coordinator_model.state.group import Step
from tests.unit.made_seen import seen

if TYPE_CHECKING:
    from tests.unit.alerts.rules.conftest import NewStage, Stage

T0 = 1_700_000_000_000
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
DELETED, EXPIRING = "GroupDeleted", "OffsetsExpiring"
TOLD = {"retention_ms": {1: 7 * DAY}}


def commit(stage: "Stage", offset: int | None = 100, *partitions: int) -> None:
    """Commit partitions of t (default: 0 and 1); None deletes their offsets."""
    at_ms = T0 + stage.now_ms
    commits = tuple(Commit("t", number, offset, at_ms) for number in partitions or (0, 1))
    stage.see(OffsetsCommitted(group="orders", commits=commits), Source.OFFSETS)


def use_and_leave(stage: "Stage") -> None:
    """A consumer works for a minute and is closed."""
    stage.start(1)
    stage.wait(MINUTE)
    commit(stage)
    stage.leave("m0")
    stage.end_join_phase()


def delete_line(stage: "Stage") -> None:
    """The coordinator says that it deletes the group."""
    stage.log(GroupsDeleted(names="orders"))


def tombstone(stage: "Stage") -> None:
    """The group's record is deleted."""
    stage.see(GroupTombstone(group="orders"), Source.OFFSETS)


def delete(stage: "Stage", *, line_first: bool = True) -> None:
    """DeleteGroups: a line, then the tombstones."""
    if line_first:
        delete_line(stage)
    commit(stage, None)
    tombstone(stage)
    if not line_first:
        stage.wait(300)
        delete_line(stage)


def one(alerts: list[Alert]) -> Alert:
    (alert,) = alerts
    return alert


@pytest.mark.parametrize("line_first", [True, False])
def test_a_group_in_use_is_deleted(new_stage: "NewStage", line_first: bool) -> None:
    """Whichever source is read first, it is told once, and as deleted."""
    stage = new_stage()
    use_and_leave(stage)
    stage.wait(5 * MINUTE)
    delete(stage, line_first=line_first)
    stage.wait(20_000)

    alert = one(stage.told(DELETED))
    assert (alert.severity, alert.culprits, alert.group) == (Severity.INFO, (), "orders")
    assert (
        alert.summary
        == "Group orders was deleted while it was empty. The group was in use until 5 min before."
    )
    assert "DeleteGroups" in alert.cause


def test_a_group_whose_offsets_expired(new_stage: "NewStage") -> None:
    """A bare tombstone is expiry, once nothing has told of a deletion for 5 s."""
    stage = new_stage()
    use_and_leave(stage)
    stage.wait(10 * MINUTE)
    commit(stage, None)
    tombstone(stage)
    assert DELETED not in stage.names()
    stage.wait(6_000)

    alert = one(stage.told(DELETED))
    assert alert.summary.startswith("Group orders expired: ")
    assert "offsets.retention.minutes ran out" in alert.cause


@pytest.mark.parametrize(("retention_ms", "way"), [(HOUR, "was deleted"), (8 * MINUTE, "expired")])
def test_the_retention_tells_a_deletion_from_expiry(
    new_stage: "NewStage", retention_ms: int, way: str
) -> None:
    """Where only the topic is read: what is younger than the brokers keep it was deleted."""
    stage = new_stage(info=False)
    stage.evidence = {"retention_ms": {1: retention_ms}}
    use_and_leave(stage)
    stage.wait(10 * MINUTE)
    commit(stage, None)
    tombstone(stage)
    stage.wait(6_000)

    assert one(stage.told(DELETED)).summary.startswith(f"Group orders {way}")


def test_a_group_whose_last_offsets_were_deleted(new_stage: "NewStage") -> None:
    """OffsetDelete empties it, and the next cleanup takes it."""
    stage = new_stage()
    use_and_leave(stage)
    stage.wait(MINUTE)
    commit(stage, None)
    stage.wait(4 * MINUTE)
    tombstone(stage)
    stage.wait(6_000)

    alert = one(stage.told(DELETED))
    assert alert.summary.startswith("Group orders was cleaned up after its last offsets had been deleted")
    assert alert.cost.startswith("Its offsets are gone")


def test_a_group_that_its_coordinator_gave_up_is_not_deleted(new_stage: "NewStage") -> None:
    """It lives on elsewhere."""
    stage = new_stage()
    use_and_leave(stage)
    stage.log(GroupUnloaded(group="orders", generation=stage.generation))
    stage.wait(HOUR)

    assert DELETED not in stage.names()


def test_a_group_without_offsets_is_no_loss(new_stage: "NewStage") -> None:
    """It never committed anything: the cleanup takes it some minutes after its members went."""
    stage = new_stage()
    stage.start(1)
    stage.leave("m0")
    stage.end_join_phase()
    stage.wait(10 * MINUTE)
    tombstone(stage)
    stage.wait(HOUR)

    assert DELETED not in stage.names()


def test_a_group_that_nobody_used_for_long_is_no_loss(new_stage: "NewStage") -> None:
    """Seven days of retention after the last member: OffsetsExpiring has told that before."""
    stage = new_stage()
    use_and_leave(stage)
    stage.wait(DAY + MINUTE)
    delete(stage)
    stage.wait(MINUTE)

    assert DELETED not in stage.names()


@pytest.mark.parametrize(
    ("name", "ephemeral"),
    [
        ("console-consumer-12345", True),
        ("anonymous.0d9b7a3e-52f2-4f0e-9f4d-1c2d3e4f5a6b", True),
        ("console-consumer-orders", False),
        ("payments", False),
    ],
)
def test_names_made_for_one_run(name: str, ephemeral: bool) -> None:
    """Nobody comes back to the offsets of a console consumer."""
    assert is_ephemeral(name) is ephemeral


def test_a_console_consumer_that_is_deleted_is_no_loss(new_stage: "NewStage") -> None:
    """Nobody will come back under that name."""
    stage = new_stage()
    use_and_leave(stage)
    stage.group = msgspec.structs.replace(stage.group, group="console-consumer-77")
    delete(stage)
    stage.wait(MINUTE)

    assert DELETED not in stage.names()


def test_a_deletion_resolves_after_ten_minutes(new_stage: "NewStage") -> None:
    """Even if it comes back meanwhile."""
    stage = new_stage()
    use_and_leave(stage)
    delete(stage)
    stage.wait(9 * MINUTE)
    stage.start(1)
    assert len(stage.told(DELETED)) == 1
    assert stage.told(DELETED)[0].summary.endswith("The group was in use until that moment.")
    stage.wait(2 * MINUTE)

    assert [alert.status for alert in stage.told(DELETED)] == [AlertStatus.FIRING, AlertStatus.RESOLVED]


def test_a_deletion_ends_what_else_is_told_of_the_group(new_stage: "NewStage") -> None:
    """A minute after the group is gone nothing but its deletion is open."""
    stage = new_stage()
    stage.start(2)
    commit(stage)
    for name in ("m0", "m1"):
        stage.time_out(name)
    stage.end_join_phase()
    delete(stage)
    stage.wait(MINUTE + 1_000)

    ended = one([alert for alert in stage.told("SessionTimeout") if alert.status is AlertStatus.RESOLVED])
    assert ended.ends_at_ms == T0 + stage.now_ms - 1_000
    assert [alert.status for alert in stage.told(DELETED)] == [AlertStatus.FIRING]


def test_so_does_the_end_of_a_group_that_is_not_told(new_stage: "NewStage") -> None:
    """One without offsets, or of which no source told any."""
    stage = new_stage()
    stage.start(2)
    for name in ("m0", "m1"):
        stage.time_out(name)
    stage.end_join_phase()
    delete(stage)
    gone_ms = stage.now_ms
    stage.wait(MINUTE - 1)
    assert AlertStatus.RESOLVED not in {alert.status for alert in stage.alerts}
    stage.wait(1)

    ended = one([alert for alert in stage.alerts if alert.status is AlertStatus.RESOLVED])
    assert (ended.name, ended.ends_at_ms) == ("SessionTimeout", T0 + gone_ms + MINUTE)
    assert stage.told(DELETED) == []


# --- OffsetsExpiring -----------------------------------------------------------------------------------


def test_a_simple_group_that_its_line_showed_before_its_commit(new_stage: "NewStage") -> None:
    """Its commit is no news then; the rules see it with the end offsets that are asked for because of it."""
    stage = new_stage()
    stage.evidence = {"retention_ms": {1: 9 * MINUTE}}
    stage.log(on.SimpleGroupCreated(group="orders"))
    commit(stage)
    stage.wait(5_000)
    ends = EndOffsetsReported(group="orders", ends={"t": {0: 100, 1: 100}})
    note_ends(stage.group, ends, T0 + stage.now_ms)
    stage.ask(Step(progressed=True))
    stage.wait(7 * MINUTE)

    assert one(stage.told(EXPIRING)).detected_at_ms == T0 + 6 * MINUTE


def test_offsets_of_an_empty_group_expire_a_week_after_its_last_member(new_stage: "NewStage") -> None:
    """Told a day before, with the time to the second; commits of an admin meanwhile change nothing."""
    stage = new_stage()
    stage.evidence = TOLD
    use_and_leave(stage)
    empty_ms = stage.now_ms
    stage.wait(3 * DAY)
    commit(stage)
    stage.wait(3 * DAY - MINUTE)
    assert EXPIRING not in stage.names()
    stage.wait(2 * MINUTE)

    alert = one(stage.told(EXPIRING))
    assert alert.severity is Severity.WARNING
    assert alert.detected_at_ms == T0 + empty_ms + 6 * DAY
    assert alert.summary == (
        "Group orders is empty, and its offsets will be deleted from 2023-11-21 22:14:23.150 UTC on."
    )
    assert alert.cause.endswith("offsets.retention.minutes is 7 days.")


def test_a_simple_group_expires_from_its_own_commits(new_stage: "NewStage") -> None:
    """Nobody ever joined it: each commit begins anew."""
    stage = new_stage()
    stage.evidence = TOLD
    commit(stage)
    stage.wait(6 * DAY - MINUTE)
    commit(stage)
    stage.wait(2 * MINUTE)
    assert EXPIRING not in stage.names()
    stage.wait(6 * DAY)

    assert "last commit" in one(stage.told(EXPIRING)).evidence[0]


def test_a_short_retention_is_told_in_its_last_third(new_stage: "NewStage") -> None:
    """Three minutes: one minute before, not a day."""
    stage = new_stage()
    stage.evidence = {"retention_ms": {1: 3 * MINUTE, 2: 7 * DAY}}
    use_and_leave(stage)
    stage.wait(2 * MINUTE - 1)
    assert EXPIRING not in stage.names()
    stage.wait(1)

    assert EXPIRING in stage.names()


def test_an_assumed_retention_is_only_an_info(new_stage: "NewStage") -> None:
    """No broker was asked: the default may be wrong."""
    stage = new_stage()
    use_and_leave(stage)
    stage.wait(6 * DAY)

    alert = one(stage.told(EXPIRING))
    assert alert.severity is Severity.INFO
    assert "assuming the default retention of 7 days" in alert.cause


@pytest.mark.parametrize(
    ("end", "severity", "words"),
    [
        (100, Severity.INFO, "; no record waits"),
        (350, Severity.WARNING, "; 500 records wait to be read"),
    ],
)
def test_what_waits_decides_how_loud_it_is(
    new_stage: "NewStage", end: int, severity: Severity, words: str
) -> None:
    """Where nothing waits to be read, nothing would be skipped today."""
    stage = new_stage()
    stage.evidence = TOLD
    use_and_leave(stage)
    group = stage.group
    note_ends(group, EndOffsetsReported(group="orders", ends={"t": {0: end, 1: end}}), T0 + stage.now_ms)
    stage.wait(6 * DAY)

    alert = one(stage.told(EXPIRING))
    assert (alert.severity, alert.summary.partition(" on")[2]) == (severity, f"{words}.")


def test_it_resolves_when_somebody_joins(new_stage: "NewStage") -> None:
    """Used again: the offsets stay."""
    stage = new_stage()
    stage.evidence = TOLD
    use_and_leave(stage)
    stage.wait(6 * DAY)
    stage.start(1)

    assert [alert.status for alert in stage.told(EXPIRING)] == [AlertStatus.FIRING, AlertStatus.RESOLVED]
    assert stage.told(EXPIRING)[-1].summary == "The offsets of group orders are in use again."


def test_it_resolves_when_they_are_gone(new_stage: "NewStage") -> None:
    """The cleanup came; that group was out of use for a week, so its end is no news."""
    stage = new_stage()
    stage.evidence = TOLD
    use_and_leave(stage)
    stage.wait(7 * DAY + 5 * MINUTE)
    commit(stage, None)
    tombstone(stage)
    stage.wait(MINUTE)

    assert [alert.status for alert in stage.told(EXPIRING)] == [AlertStatus.FIRING, AlertStatus.RESOLVED]
    assert stage.told(EXPIRING)[-1].summary == "The offsets of group orders are gone."
    assert DELETED not in stage.names()


def test_offsets_that_do_not_go_end_it(new_stage: "NewStage") -> None:
    """An hour after the time told we were wrong, and say no more."""
    stage = new_stage()
    stage.evidence = TOLD
    use_and_leave(stage)
    stage.wait(7 * DAY + 2 * HOUR)

    assert [alert.status for alert in stage.told(EXPIRING)] == [AlertStatus.FIRING, AlertStatus.RESOLVED]


def test_offsets_that_ought_to_be_gone_begin_no_alert(new_stage: "NewStage") -> None:
    """Found at the start, older than the retention that we assume: it is another one."""
    stage = new_stage()
    use_and_leave(stage)
    stage.memory, stage.due_ms = None, None
    stage.wait(7 * DAY + MINUTE)
    stage.ask(Step(met=True))
    stage.wait(HOUR)

    assert EXPIRING not in stage.names()


def test_groups_in_use_and_groups_without_offsets_expire_nothing(new_stage: "NewStage") -> None:
    """A member keeps everything; nothing committed is nothing to lose."""
    used = new_stage()
    used.evidence = TOLD
    used.start(1)
    commit(used)
    used.join("m9")
    used.rebalance()
    used.wait(8 * DAY)
    idle = new_stage()
    idle.evidence = TOLD
    idle.start(1)
    idle.leave("m0")
    idle.end_join_phase()
    idle.wait(8 * DAY)

    assert EXPIRING not in used.names() | idle.names()


def test_a_group_found_empty_at_the_start_is_told(new_stage: "NewStage") -> None:
    """It stood in the backlog; the rules see it when that ends."""
    stage = new_stage()
    stage.evidence = TOLD
    use_and_leave(stage)
    stage.memory, stage.due_ms = None, None
    stage.ask(Step(met=True))
    stage.wait(6 * DAY)

    assert EXPIRING in stage.names()


def test_the_retention_told_later_changes_the_time(new_stage: "NewStage") -> None:
    """Two days instead of a week: told at once, if that is nearly over."""
    stage = new_stage()
    use_and_leave(stage)
    stage.wait(DAY + 12 * HOUR)
    stage.evidence = {"retention_ms": {1: 2 * DAY}}
    stage.ask(Step(met=True))

    assert one(stage.told(EXPIRING)).severity is Severity.WARNING


def test_a_shard_that_learns_of_a_shorter_retention_looks_at_its_groups_again() -> None:
    """The probe's answer comes in band, after groups were judged by the default."""
    mirror = Mirror(
        cluster="eu", shard_count=1, settings=b"{}", judge=RuleJudge(), feeds=0, offsets=True, strict=True
    )
    told: list[Alert] = []

    def see(what: on.AnyObservation, source: Source, at_ms: int) -> None:
        mirror.feed({0: [seen(T0 + at_ms, what, source, offset=at_ms)]})

    def wait(until_ms: int) -> None:
        told.extend(one for one in mirror.advance(T0 + until_ms) if isinstance(one, Alert))

    wait(0)
    commits = (Commit("t", 0, 5, T0 + 1_000),)
    see(OffsetsCommitted(group="orders", commits=commits), Source.OFFSETS, 1_000)
    wait(2 * HOUR)
    see(RetentionReported(retention_ms={1: 3 * HOUR}), Source.CONTROL, 2 * HOUR + 1_000)
    assert told == []
    wait(2 * HOUR + 2_000)

    assert [(alert.name, alert.severity) for alert in told] == [(EXPIRING, Severity.WARNING)]


def test_names_for_one_run_are_left_alone(new_stage: "NewStage") -> None:
    """A console consumer's offsets may go."""
    stage = new_stage()
    stage.evidence = TOLD
    use_and_leave(stage)
    stage.group = msgspec.structs.replace(stage.group, group="console-consumer-77")
    stage.ask(Step(met=True))
    stage.wait(8 * DAY)

    assert EXPIRING not in stage.names()
