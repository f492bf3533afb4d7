"""A file of history that was damaged: kept aside, and begun anew, whenever it shows."""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from coordinator_model.kafka.states import GroupState
from streaming.history.file import HistoryFile
from tests.unit.streaming.history.stage import T0, Stage

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Rows


def looked(stage: Stage, rows: "Rows") -> None:
    """Have a row in each table that is read at the start."""
    stage.ends(100)
    stage.batch(
        rows.report("g", commits={"t": {0: (90, T0)}}),
        rows.transition(GroupState.PREPARING_REBALANCE, T0 + 1_000),
    )
    stage.look(2)


def spoil(path: Path, table: str) -> None:
    """Overwrite the first page of a table, as a loss of power may."""
    with sqlite3.connect(path) as file:
        root = file.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()[0]
        size = file.execute("PRAGMA page_size").fetchone()[0]
    file.close()
    with path.open("r+b") as raw:
        raw.seek((root - 1) * size)
        raw.write(b"\xff" * size)


def change(path: Path, statement: str) -> None:
    """Change what stands in a closed file."""
    file = sqlite3.connect(path)
    file.execute(statement)
    file.commit()
    file.close()


def assert_begun_anew(stage: Stage, rows: "Rows") -> None:
    """The first look replaces the file, says so, and keeps what is told from then on."""
    looked(stage, rows)
    assert stage.keeper.problem == ""
    assert stage.path.with_name("history.db.damaged").exists()
    assert "begun anew" in stage.notices[-1]
    assert stage.past().points
    assert stage.past().transitions


@pytest.mark.parametrize("table", ["fine", "transitions", "watched"])
def test_damage_from_before_the_start_is_replaced(stage: Stage, rows: "Rows", table: str) -> None:
    """It shows only when the last hour is read."""
    looked(stage, rows)
    after = stage.restarted()
    spoil(stage.path, table)
    assert_begun_anew(after, rows)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE fine SET packed = x'0102'",
        "UPDATE fine SET packed = NULL",
        "UPDATE lanes SET beats = x'5b'",
        "UPDATE transitions SET value = x'7b226964223a22ff227d'",
    ],
)
def test_a_damaged_value_from_before_the_start_is_damage(stage: Stage, rows: "Rows", statement: str) -> None:
    """What cannot be decoded is no better than a page that cannot be read."""
    looked(stage, rows)
    after = stage.restarted()
    change(stage.path, statement)
    after.now_ms += 1_000
    after.batch(rows.report("g"))
    after.look(2)
    assert_begun_anew(after, rows)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE fine SET packed = x'0102'",
        "UPDATE owners SET packed = x'0102'",
        "UPDATE owners SET packed = x'789c030000000001'",
        "UPDATE lanes SET about = x'22ff22'",
        "UPDATE transitions SET value = x'7b226964223a22ff227d'",
    ],
)
def test_a_damaged_value_is_said_to_who_reads(stage: Stage, rows: "Rows", statement: str) -> None:
    """A sentence, and no error."""
    looked(stage, rows)
    assert stage.keeper._file is not None
    assert stage.keeper._file._file.execute(statement).rowcount > 0
    assert "cannot be read" in stage.past().problem


@pytest.mark.parametrize("error", [RuntimeError("of ours"), sqlite3.OperationalError("disk I/O error")])
def test_a_start_that_fails_lets_go_of_the_file(
    stage: Stage, rows: "Rows", monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The next look has it, and nothing was moved aside."""
    looked(stage, rows)
    after = stage.restarted()

    def failing(_self: HistoryFile, _since_ms: int) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(HistoryFile, "all_pages", failing)
        after.look()
    assert after.keeper.problem
    after.look()
    assert after.keeper.problem == ""
    assert after.past().points
    assert not stage.path.with_name("history.db.damaged").exists()


def test_the_last_hour_begins_anew_with_the_file(stage: Stage, rows: "Rows") -> None:
    """The new file numbers groups anew, so another group would get what was of this one."""
    looked(stage, rows)
    assert stage.keeper._file is not None
    stage.keeper._file._file.executescript(
        "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET rootpage=999 WHERE name='lanes';"
        "PRAGMA writable_schema=RESET;"
    )
    stage.store.apply("eu", [("report", "g", rows.report("g", removed=True)[2])])
    stage.batch(rows.report("other"))
    stage.look(2)
    assert stage.keeper.problem == ""
    spark = stage.keeper.spark("eu", "other")
    assert spark is not None
    assert sum(spark[2]) == 0
    assert set(spark[1]) == {None}
