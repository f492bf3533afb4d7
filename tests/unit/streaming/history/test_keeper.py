"""The history of groups: what is written at each look, and what is given back."""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from alerts.alert.alert import AlertStatus
from coordinator_model.kafka.states import GroupState
from streaming.history import intake
from streaming.history.keeper import NOT_YET
from tests.unit.streaming.history.stage import HOUR_MS, STEP_MS, T0, Stage

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Row, Rows


def committed(rows: "Rows", offset: int, **changes: Any) -> "Row":
    """A report of a group that has committed so far."""
    return rows.report("g", commits={"t": {0: (offset, T0)}}, **changes)


def with_members(rows: "Rows", at_ms: int, **members: int) -> "Row":
    """A report with these members and their last heartbeats."""
    kind, key, value = rows.report("g", at_ms=at_ms)
    told = msgspec.json.decode(value)
    (one,) = told["members"]
    told["members"] = [
        {**one, "member_id": name, "client_id": name, "last_heartbeat_ms": beat}
        for name, beat in members.items()
    ]
    return kind, key, msgspec.json.encode(told)


def test_lag_and_commit_rate_are_written_each_ten_seconds(stage: Stage, rows: "Rows") -> None:
    """Records, their age, and committed offsets a second."""
    stage.ends(100)
    stage.batch(committed(rows, 100))
    stage.look()
    stage.ends(300)
    stage.batch(committed(rows, 200))
    stage.look()
    found = stage.past().points
    assert [(one.at_ms - T0, one.records, one.commits_per_s) for one in found] == [
        (STEP_MS, 0, None),
        (2 * STEP_MS, 100, 10.0),
    ]


class Turns:
    """An event that somebody sets after so many waits."""

    def __init__(self, count: int) -> None:
        self.left = count

    def wait(self, _seconds: float) -> bool:
        """Wait for nothing."""
        self.left -= 1
        return self.left < 0


def test_a_look_waits_for_a_lull_and_rows_do_not(tmp_path: Path) -> None:
    """At all groups: ten thousand cost half a second of a core, which a running batch needs."""
    lulls: list[int] = []
    turns: Any = Turns(21)
    stage = Stage(tmp_path / "history.db", await_lull=lambda: lulls.append(turns.left))
    stage.keeper._stopping = turns
    stage.keeper._run()

    assert lulls == [20, 10, 0]


def test_a_group_that_stands_still_is_one_row(stage: Stage, rows: "Rows") -> None:
    """Its records wait ever longer, and nothing is written for that."""
    stage.ends(100)
    stage.batch(committed(rows, 100))
    stage.look()
    stage.ends(150)
    stage.look(3)
    assert stage.keeper._file is not None
    written = len(stage.keeper._file.all_pages(0))
    for _ in range(20):
        stage.ends(150)
        stage.look()
    assert len(stage.keeper._file.all_pages(0)) <= written + 1
    last = stage.past().points[-1]
    assert (last.at_ms, last.records, last.commits_per_s) == (stage.now_ms, 50, 0.0)
    assert last.seconds == pytest.approx(230, abs=15)


def test_the_time_in_which_nobody_watched_is_a_gap(stage: Stage, rows: "Rows") -> None:
    """A value does not hold over it, and no rate is computed over it."""
    stage.ends(100)
    stage.batch(committed(rows, 90))
    stage.look(2)
    stage.is_ready = False
    stage.look(30)
    stage.is_ready = True
    stage.ends(100)
    stage.batch(committed(rows, 95))
    stage.look(2)
    past = stage.past(back_ms=400_000)
    begin, end = T0 + 2 * STEP_MS, T0 + 33 * STEP_MS
    assert (begin, end) in past.gaps
    assert not [one for one in past.points if begin + STEP_MS < one.at_ms < end]
    assert [one.commits_per_s for one in past.points if one.at_ms == end] == [None]


def test_end_offsets_that_stop_coming_make_lag_unknown(stage: Stage, rows: "Rows") -> None:
    """It would look frozen otherwise."""
    stage.ends(100)
    stage.batch(committed(rows, 90))
    stage.look()
    assert stage.past().points[-1].records == 10
    stage.look(8)
    assert stage.past().points[-1].records is None
    stage.ends(100)
    stage.look()
    assert stage.past().points[-1].records == 10


def test_members_come_and_go_with_their_heartbeats(stage: Stage, rows: "Rows") -> None:
    """A pause that is longer than a session begins a new stretch."""
    stage.batch(with_members(rows, T0, a=T0))
    stage.look()
    stage.batch(with_members(rows, T0 + 60_000, a=T0 + 50_000, b=-1))
    stage.look()
    stage.batch(with_members(rows, T0 + 200_000, a=T0 + 190_000, b=-1))
    stage.look()
    stage.batch(with_members(rows, T0 + 210_000, a=T0 + 205_000))
    stage.look()
    stage.now_ms = T0 + 300_000
    lanes = {one.member_id: one for one in stage.past().lanes}
    assert lanes["a"].beats == ((T0, T0 + 50_000), (T0 + 190_000, T0 + 190_000))
    assert (lanes["a"].seen_at_ms, lanes["a"].gone_at_ms) == (-1, -1)
    assert (lanes["b"].seen_at_ms, lanes["b"].gone_at_ms) == (T0 + 60_000, T0 + 210_000)


def test_a_group_that_moves_is_seen_between_two_looks(stage: Stage, rows: "Rows") -> None:
    """The reports of one batch's rebalance are kept, though the next ones follow at once."""
    stage.look()
    for generation in (7, 8):
        stage.batch(
            rows.transition(GroupState.STABLE, T0 + generation, generation=generation, id=str(generation)),
            rows.report("g", generation=generation, state_since_ms=T0 + generation),
        )
    stage.look()
    past = stage.past()
    assert [(one.at_ms, one.generation) for one in past.owners] == [(T0 + 7, 7), (T0 + 8, 8)]
    assert past.owners[0].assignment == {"m-1": {"orders": [0, 1]}}
    assert [one.id for one in past.transitions] == ["7", "8"]


def test_what_batches_tell_is_written_between_two_looks(stage: Stage, rows: "Rows") -> None:
    """A process that is killed loses a second of it, not ten."""
    stage.batch(rows.report("g"))
    stage.look()
    stage.batch(rows.transition(GroupState.STABLE, stage.now_ms))
    stage.keeper.take()
    assert len(stage.past().transitions) == 1


def test_alerts_are_kept_by_their_newest_revision(stage: Stage, rows: "Rows") -> None:
    """Whatever comes last, and from the supervisor as well."""
    began = rows.make_alert(group="g", starts_at_ms=T0)
    over = msgspec.structs.replace(began, revision=1, status=AlertStatus.RESOLVED, ends_at_ms=T0 + 5)
    stage.keeper.remember(over)
    stage.batch(("alert", began.id, msgspec.json.encode(began)))
    stage.look()
    assert stage.past().alerts == (over,)
    assert stage.past(back_ms=1).alerts == ()


def test_what_was_written_is_there_after_a_restart(stage: Stage, rows: "Rows") -> None:
    """Points, members, sparks; a member that went meanwhile went when nobody watched."""
    stage.ends(100)
    stage.batch(
        committed(rows, 90),
        rows.transition(GroupState.PREPARING_REBALANCE, T0 + 1_000),
        with_members(rows, T0, a=T0, b=T0),
    )
    stage.batch(committed(rows, 90), with_members(rows, T0 + 1, a=T0, b=T0))
    stage.look(7)
    after = stage.restarted()
    after.now_ms += 300_000
    after.batch(with_members(rows, after.now_ms, a=after.now_ms - 1_000))
    after.look()
    lanes = {one.member_id: one for one in after.past().lanes}
    assert lanes["b"].gone_at_ms == stage.now_ms
    assert lanes["a"].beats[-1] == (after.now_ms - STEP_MS - 1_000,) * 2
    assert len(after.past().gaps) == 2
    spark = after.keeper.spark("eu", "g")
    assert spark is not None
    assert sum(spark[2]) == 1


def test_sparks_are_sixty_minutes(stage: Stage, rows: "Rows") -> None:
    """The last point is now; before the group was known nothing is."""
    assert stage.keeper.spark("eu", "g") is None
    stage.ends(100)
    stage.batch(committed(rows, 90))
    stage.look()
    stage.batch(rows.transition(GroupState.PREPARING_REBALANCE, stage.now_ms))
    for end in range(12):
        stage.ends(100 + end)
        stage.look()
    spark = stage.keeper.spark("eu", "g")
    assert spark is not None
    step_ms, lag, rebalances = spark
    assert (step_ms, len(lag), len(rebalances)) == (60_000, 60, 60)
    assert lag[-1] == 21
    assert lag[0] is None
    assert lag[-2] is not None
    assert sum(rebalances) == 1
    assert stage.keeper.lag("eu", "g") == 21


def test_older_values_are_read_in_five_minutes_with_their_peak(stage: Stage, rows: "Rows") -> None:
    """A lag that came and went within them is not lost."""
    stage.ends(100)
    stage.batch(committed(rows, 100))
    stage.look(31)
    stage.ends(900)
    stage.look()
    stage.ends(900)
    stage.batch(committed(rows, 900))
    stage.look(60)
    stage.now_ms += 2 * HOUR_MS
    stage.ends(900)
    stage.look()
    past = stage.keeper.read("eu", "g", T0, stage.now_ms)
    assert past.step_ms == 300_000
    assert 800 in [one.records for one in past.points]
    assert past.points[-1].records == 0


def test_a_group_that_is_gone_is_unknown_from_then_on(stage: Stage, rows: "Rows") -> None:
    """Its members went, and its past stays."""
    stage.ends(100)
    stage.batch(committed(rows, 90))
    stage.look()
    stage.batch(rows.report("g", removed=True))
    stage.look()
    past = stage.past()
    assert [one.records for one in past.points] == [10, None]
    assert past.lanes[0].gone_at_ms == stage.now_ms


def test_what_does_not_fit_is_dropped_and_counted(
    stage: Stage, rows: "Rows", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches never wait for the disk."""
    monkeypatch.setattr(intake, "ROWS_MAX", 2)
    for number in range(5):
        stage.batch(rows.transition(GroupState.STABLE, T0 + number))
    stage.look()
    assert stage.keeper.dropped() == {"no_room": 3, "not_written": 0}
    assert len(stage.past().transitions) == 2


def test_lost_rows_are_said_for_an_hour(stage: Stage, rows: "Rows", monkeypatch: pytest.MonkeyPatch) -> None:
    """Where people look, and the same sentence as long as nothing more is lost; the rest is kept."""
    monkeypatch.setattr(intake, "ROWS_MAX", 1)
    stage.look()
    stage.batch(*(rows.transition(GroupState.STABLE, T0 + number) for number in range(2)))
    stage.look(3)
    assert [one[:56] for one in stage.notices] == [
        "Rows of history were lost, the last at 22:15 UTC: more ca"[:56]
    ]
    assert stage.keeper.problem == ""
    stage.now_ms += HOUR_MS
    stage.look()
    assert stage.notices[-1] == ""


def test_rows_that_could_not_be_written_are_said(stage: Stage, rows: "Rows") -> None:
    """Once the disk has room again: until then the trouble itself is said."""
    stage.look()
    assert stage.keeper._file is not None
    stage.keeper._file._file.execute("PRAGMA max_page_count=1")
    stage.batch(*(rows.transition(GroupState.STABLE, T0 + n, id="x" * 4_000 + str(n)) for n in range(20)))
    stage.look()
    assert "cannot be written" in stage.notices[-1]
    stage.keeper._file._file.execute("PRAGMA max_page_count=1000000")
    stage.look()
    assert "the file did not take them" in stage.notices[-1]
    assert stage.keeper.dropped() == {"no_room": 0, "not_written": 20}


def test_old_rows_go(stage: Stage, rows: "Rows") -> None:
    """After a week; the fine values after an hour."""
    stage.ends(100)
    stage.batch(committed(rows, 90), rows.transition(GroupState.STABLE, T0))
    stage.look(6)
    stage.now_ms += 9 * 86_400_000
    stage.ends(100)
    stage.look(372)
    assert stage.keeper._file is not None
    assert {at_ms > T0 + HOUR_MS for at_ms, _, _ in stage.keeper._file.all_pages(0)} == {True}
    assert stage.keeper.read("eu", "g", T0 - 1, stage.now_ms).transitions == ()


def test_a_damaged_file_is_moved_aside_and_begun_anew(stage: Stage, rows: "Rows") -> None:
    """What is no database at the start, and what is found damaged later."""
    stage.path.write_bytes(b"no database, but rather long " * 100)
    stage.batch(rows.report("g"))
    stage.look()
    assert stage.keeper.problem == ""
    assert stage.path.with_name("history.db.damaged").read_bytes().startswith(b"no database")
    assert "moved to" in stage.notices[-1]
    assert "begun anew" in stage.notices[-1]
    assert stage.keeper._file is not None
    stage.keeper._file._file.executescript(
        "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET rootpage=999 WHERE name='lanes';"
        "PRAGMA writable_schema=RESET;"
    )
    stage.batch(with_members(rows, T0, a=1, b=2))
    stage.look()
    assert "begun anew" in stage.keeper.problem or stage.keeper.problem == ""
    stage.look()
    assert stage.keeper.problem == ""
    assert {one.member_id for one in stage.past().lanes} == {"a", "b"}


def test_a_file_of_another_version_is_moved_aside(stage: Stage) -> None:
    """Nothing of it is understood."""
    with sqlite3.connect(stage.path) as file:
        file.executescript("CREATE TABLE other (x); PRAGMA user_version=99")
    stage.look()
    assert stage.keeper.problem == ""
    assert stage.path.with_name("history.db.damaged").exists()


def test_a_file_that_another_process_has_is_left_alone(stage: Stage, rows: "Rows") -> None:
    """It is said, and tried again."""
    other = Stage(stage.path)
    other.look()
    stage.batch(rows.report("g"))
    stage.look()
    assert stage.keeper.problem.startswith("another process keeps its history in")
    assert stage.past().problem == stage.keeper.problem == stage.notices[-1]
    assert other.keeper._file is not None
    other.keeper._file.close()
    stage.look()
    assert (stage.keeper.problem, stage.notices[-1]) == ("", "")
    assert stage.past().lanes[0].member_id == "m-1"


def test_a_full_disk_is_said_and_all_is_written_once_there_is_room(stage: Stage, rows: "Rows") -> None:
    """The job goes on meanwhile."""
    stage.look()
    assert stage.keeper._file is not None
    pages = stage.keeper._file._file.execute("PRAGMA page_count").fetchone()[0]
    stage.keeper._file._file.execute(f"PRAGMA max_page_count={pages}")
    stage.batch(*(rows.report("g" * 200 + str(n)) for n in range(100)), rows.report("g"))
    stage.look()
    assert "full" in stage.keeper.problem
    stage.keeper._file._file.execute("PRAGMA max_page_count=1000000")
    stage.look()
    assert stage.keeper.problem == ""
    assert stage.past().lanes[0].member_id == "m-1"


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """And nothing else happens."""
    (tmp_path / "file").write_text("in the way")
    stage = Stage(tmp_path / "file" / "history.db")
    stage.look()
    assert "cannot be written" in stage.keeper.problem


def test_nothing_is_opened_before_the_job_is_ready(stage: Stage) -> None:
    """A process that stands by leaves the file to the one that watches."""
    stage.is_ready = False
    stage.look()
    assert not stage.path.exists()
    assert stage.past().problem == NOT_YET


def test_a_file_that_grows_too_large_loses_its_oldest_rows(tmp_path: Path, rows: "Rows") -> None:
    """Before the week is over."""
    stage = Stage(tmp_path / "history.db", size_max_mb=1)
    stage.look()
    for number in range(2_000):
        one = rows.transition(GroupState.STABLE, stage.now_ms, id=f"{number}-" + "x" * 600)
        stage.keeper.offer("eu", [one])
        if number % 50 == 0:
            stage.now_ms += HOUR_MS - STEP_MS
            stage.look()
    stage.look(300)
    assert stage.keeper._file is not None
    assert stage.keeper._file.size() < 1_100_000
    assert stage.keeper.read("eu", "g", T0, stage.now_ms).transitions


def test_a_clock_that_is_a_month_ahead_for_a_minute_deletes_nothing(stage: Stage, rows: "Rows") -> None:
    """The lists go on as well once it is set back."""
    for step in range(60):
        stage.ends(100 + 10 * step)
        stage.batch(committed(rows, 100 + 5 * step))
        stage.look()
    before = len(stage.past().points)
    stage.now_ms += 720 * HOUR_MS
    stage.look(7)
    stage.now_ms -= 720 * HOUR_MS

    stage.ends(1_000)
    stage.batch(committed(rows, 900))
    stage.look(3)

    assert len(stage.past().points) >= before
    spark = stage.keeper.spark("eu", "g")
    assert spark is not None
    assert spark[1][-1] == 100


def test_a_week_in_which_nobody_looked_is_deleted_after_an_hour(stage: Stage, rows: "Rows") -> None:
    """As long as the clock may still be set back, nothing is."""
    stage.batch(rows.transition(GroupState.STABLE, T0))
    stage.look()
    stage.now_ms += 24 * 8 * HOUR_MS
    stage.look(300)
    assert stage.past(back_ms=24 * 9 * HOUR_MS).transitions
    stage.look(72)
    assert not stage.past(back_ms=24 * 9 * HOUR_MS).transitions
