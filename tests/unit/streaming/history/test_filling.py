"""What a file that begins anew is filled with, and when."""

import sqlite3
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from coordinator_model.kafka.states import GroupState
from streaming.history import filling, intake
from streaming.history.file import HistoryFile
from streaming.history.past import Past
from tests.unit.streaming.history.stage import STEP_MS, T0, Stage

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Row, Rows

DAY_MS = 86_400_000
_PATIENCE_S = 20.0


class Topics:
    """What the topics have; remembers who asked, and how far they were read."""

    def __init__(self, *portions: "Sequence[Row]") -> None:
        self.portions = portions
        self.asked: list[tuple[str, int]] = []
        self.given = 0
        self.closed = threading.Event()
        self.trouble: Exception | None = None

    def __call__(self, cluster: str, since_ms: int) -> "Generator[Sequence[Row]]":
        """Give the portions."""
        self.asked.append((cluster, since_ms))
        try:
            for one in self.portions:
                if self.trouble is not None:
                    raise self.trouble
                self.given += 1
                yield one
        finally:
            self.closed.set()


def until(stage: Stage, holds: Callable[[], bool]) -> None:
    """Let the keeper take what comes, as it does each second."""
    waits = threading.Event()
    for _ in range(round(_PATIENCE_S / 0.01)):
        stage.keeper.take()
        if holds():
            return
        waits.wait(0.01)
    raise AssertionError("it was not filled")


def is_filled(stage: Stage) -> bool:
    """Say whether nothing is lacked."""
    return stage.keeper._file is not None and stage.keeper._file.unfilled(["eu"]) == []


def week(stage: Stage) -> Past:
    """What the file has of a week."""
    return stage.past(back_ms=7 * DAY_MS)


def begun(path: Path, topics: Topics, rows: "Rows", **more: Any) -> Stage:
    """A stage with one group, after its first look."""
    stage = Stage(path, read_past=topics, **more)
    stage.batch(rows.report("g"))
    stage.look()
    return stage


def test_a_file_that_begins_anew_gets_the_rebalances_and_alerts_of_a_week(
    tmp_path: Path, rows: "Rows"
) -> None:
    """What no topic has stays a gap: lag, members, owners."""
    old = T0 - 3 * DAY_MS
    topics = Topics(
        [rows.alert("g", cluster="eu", starts_at_ms=old, detected_at_ms=old)],
        [rows.transition(GroupState.PREPARING_REBALANCE, old), rows.transition(GroupState.STABLE, old + 9)],
        [rows.transition(GroupState.PREPARING_REBALANCE, old - DAY_MS)],
    )
    stage = begun(tmp_path / "history.db", topics, rows)
    until(stage, lambda: is_filled(stage))

    past = week(stage)
    assert [one.at_ms for one in past.transitions] == [old - DAY_MS, old, old + 9]
    assert [one.starts_at_ms for one in past.alerts] == [old]
    assert past.gaps[0][1] == T0 + STEP_MS
    assert [one.seen_at_ms for one in past.lanes] == [-1]
    assert topics.asked == [("eu", T0 + STEP_MS - 7 * DAY_MS)]


def test_a_file_is_filled_once(tmp_path: Path, rows: "Rows") -> None:
    """Neither at the next look nor after a restart are the topics read again."""
    topics = Topics([rows.transition(GroupState.STABLE, T0 - DAY_MS)])
    stage = begun(tmp_path / "history.db", topics, rows)
    until(stage, lambda: is_filled(stage))
    stage.look(3)
    after = stage.restarted(read_past=topics)
    after.look(3)
    assert len(topics.asked) == 1


def test_the_time_in_which_another_process_watched_is_read(tmp_path: Path, rows: "Rows") -> None:
    """Only that time, and a little before it."""
    topics = Topics([rows.transition(GroupState.STABLE, T0 - DAY_MS)])
    stage = begun(tmp_path / "history.db", topics, rows)
    until(stage, lambda: is_filled(stage))
    left_ms = stage.now_ms
    after = stage.restarted(read_past=topics)
    after.now_ms += DAY_MS
    topics.portions = ([rows.transition(GroupState.STABLE, left_ms + 1_000)],)
    after.batch(rows.report("g"))
    after.look()
    until(after, lambda: is_filled(after))
    assert topics.asked[1:] == [("eu", left_ms - 300_000)]
    assert len(week(after).transitions) == 2


def test_lost_rows_are_read_again(tmp_path: Path, rows: "Rows", monkeypatch: pytest.MonkeyPatch) -> None:
    """Once no more are lost for a minute, from a little before the first of them; each loss once."""
    topics = Topics()
    stage = begun(tmp_path / "history.db", topics, rows)
    until(stage, lambda: is_filled(stage))
    monkeypatch.setattr(intake, "ROWS_MAX", 1)
    moves = [rows.transition(GroupState.STABLE, stage.now_ms + n) for n in range(3)]
    topics.portions = (moves,)
    lost_ms = stage.now_ms
    for _ in range(2):
        stage.batch(*moves)
        stage.look()
    stage.look(4)
    assert len(topics.asked) == 1
    stage.look()
    until(stage, lambda: is_filled(stage))
    stage.look(9)

    assert topics.asked[1:] == [("eu", lost_ms - 300_000)]
    assert len(week(stage).transitions) == 3


def test_rows_lost_to_a_full_disk_are_read_again(
    tmp_path: Path, rows: "Rows", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once there is room, however long it took, and even if nothing else was lost meanwhile."""
    topics, written = Topics(), HistoryFile.writing
    stage = begun(tmp_path / "history.db", topics, rows)
    until(stage, lambda: is_filled(stage))
    move = rows.transition(GroupState.STABLE, stage.now_ms)
    topics.portions = ([move],)

    @contextmanager
    def full(file: HistoryFile) -> Iterator[None]:
        with written(file):
            yield
            raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(HistoryFile, "writing", full)
    stage.batch(move)
    stage.look(11)  # more than the minute without a loss
    monkeypatch.setattr(HistoryFile, "writing", written)
    stage.look(7)
    until(stage, lambda: is_filled(stage))
    stage.look()

    assert len(topics.asked) == 2
    assert len(week(stage).transitions) == 1


def test_rows_that_are_lost_while_the_past_is_read_are_read_again(
    tmp_path: Path, rows: "Rows", monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the beginning: nobody knows how far the reader had come."""
    topics = Topics([], [])
    stage = begun(tmp_path / "history.db", topics, rows)
    monkeypatch.setattr(intake, "ROWS_MAX", 1)
    stage.batch(*(rows.transition(GroupState.STABLE, stage.now_ms + n) for n in range(2)))
    stage.now_ms += 60_000
    stage.look()

    def is_asked_again() -> bool:
        stage.look()
        return len(topics.asked) > 1

    until(stage, is_asked_again)
    until(stage, lambda: is_filled(stage))

    assert [since_ms < T0 - 6 * DAY_MS for _, since_ms in topics.asked] == [True, True]


def test_rows_of_batches_count_more_than_those_of_topics(tmp_path: Path, rows: "Rows") -> None:
    """A repeat changes nothing, and an older revision of an alert neither."""
    began = rows.make_alert(group="g", cluster="eu", starts_at_ms=T0 - DAY_MS)
    move = rows.transition(GroupState.STABLE, T0 - DAY_MS)
    newest = rows.alert("g", cluster="eu", starts_at_ms=began.starts_at_ms, revision=2)
    topics = Topics([rows.alert("g", cluster="eu", starts_at_ms=began.starts_at_ms, revision=1), move])
    stage = Stage(tmp_path / "history.db", read_past=topics)
    stage.batch(rows.report("g"), newest, move)
    stage.look()
    until(stage, lambda: is_filled(stage))
    assert [one.revision for one in week(stage).alerts] == [2]
    assert len(week(stage).transitions) == 1


def test_no_more_than_a_portion_is_read_ahead(tmp_path: Path, rows: "Rows") -> None:
    """Memory and rate are bounded by the keeper, which takes a portion each second."""
    topics = Topics(*([rows.transition(GroupState.STABLE, T0 - n)] for n in range(50)))
    stage = begun(tmp_path / "history.db", topics, rows)
    for taken in range(1, 6):
        until(stage, lambda: len(week(stage).transitions) >= taken)  # noqa: B023 - called at once
        assert topics.given <= taken + 2


def test_topics_that_cannot_be_read_are_asked_again(
    tmp_path: Path, rows: "Rows", monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged once, and nothing else suffers from it."""
    monkeypatch.setattr(filling, "_RETRY_S", 0.0)
    topics = Topics([rows.transition(GroupState.STABLE, T0 - DAY_MS)])
    topics.trouble = ConnectionError("no broker")
    stage = begun(tmp_path / "history.db", topics, rows)
    for _ in range(2):
        assert topics.closed.wait(_PATIENCE_S)
        topics.closed.clear()
        assert stage.keeper._filling._thread is not None
        stage.keeper._filling._thread.join(_PATIENCE_S)
        stage.look()
    assert [one.getMessage() for one in caplog.records if "no broker" in one.getMessage()] == [
        "the topics cannot be read to fill the history, tried again: ConnectionError: no broker"
    ]
    assert stage.keeper.problem == ""
    topics.trouble = None
    assert stage.keeper._filling._thread is not None
    stage.keeper._filling._thread.join(_PATIENCE_S)
    stage.look()
    until(stage, lambda: is_filled(stage))


def test_a_file_that_is_lost_meanwhile_is_filled_from_the_beginning(tmp_path: Path, rows: "Rows") -> None:
    """What the damaged one had been given is not lost."""
    topics = Topics(*([rows.transition(GroupState.STABLE, T0 - n)] for n in range(4)))
    stage = begun(tmp_path / "history.db", topics, rows)
    until(stage, lambda: len(week(stage).transitions) >= 2)
    assert stage.keeper._file is not None
    stage.keeper._file._file.executescript(
        "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET rootpage=999 WHERE name='transitions';"
        "PRAGMA writable_schema=RESET;"
    )
    stage.batch(rows.transition(GroupState.STABLE, T0 + 1))
    stage.look(2)

    def is_whole() -> bool:
        stage.look()
        return is_filled(stage)

    until(stage, is_whole)
    assert {one.at_ms for one in week(stage).transitions} >= {T0 - n for n in range(4)}


def test_nothing_is_read_before_the_job_is_ready(tmp_path: Path, rows: "Rows") -> None:
    """Nor by a process that stands by."""
    topics = Topics()
    stage = Stage(tmp_path / "history.db", read_past=topics)
    stage.is_ready = False
    stage.batch(rows.report("g"))
    stage.look(3)
    assert topics.asked == []
