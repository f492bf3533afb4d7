"""The decode stage: rows to their decoders, cells to their shards, and no row stops it."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from coordinator_model.observations.base import CLUSTER_SHARD
from coordinator_model.observations.control import Counted, Undecodable
from coordinator_model.observations.seen import Seen, unpack
from coordinator_model.ordering.buffered import apart
from streaming.control.records import ClockRecord, encode_record
from streaming.decoders import quiet_columns
from streaming.decoders.buffered_lines import BufferedLines
from streaming.decoders.decoded import Decoded
from streaming.devkit.bench.material import Population, heartbeat_line
from streaming.workers import decode_stage
from streaming.workers.decode_stage import CONTROL, EVENTS, OFFSETS, DecodeStage

CLOCK = encode_record(ClockRecord(at_ms=1, sequence=1))


def _batch(*rows: tuple[int, int, bytes | None]) -> pa.RecordBatch:
    """Rows of (feed, offset, value)."""
    return pa.RecordBatch.from_pydict(
        {
            "feed": pa.array([row[0] for row in rows], pa.int8()),
            "partition": pa.array([3] * len(rows), pa.int32()),
            "offset": pa.array([row[1] for row in rows], pa.int64()),
            "timestamp_ms": pa.array([1_000 + row[1] for row in rows], pa.int64()),
            "key": pa.array([None] * len(rows), pa.binary()),
            "value": pa.array([row[2] for row in rows], pa.binary()),
        }
    )


def _run(*batches: pa.RecordBatch) -> dict[int, list[Seen]]:
    cells: dict[int, list[Seen]] = {}
    for out in DecodeStage(shard_count=2)(batches):
        for shard, payload in zip(*(column.to_pylist() for column in out.columns), strict=True):
            cells.setdefault(shard, []).extend(unpack(payload))
    return cells


def _offsets(rows: pa.Table | BufferedLines) -> list[int]:
    if isinstance(rows, pa.Table):
        return [int(offset) for offset in rows.column("offset").to_pylist()]
    beats = [offset for block in rows.blocks if block.beats for offset in block.beats.offset.tolist()]
    return sorted([*beats, *(offset for block in rows.blocks for offset in block.offsets)])


def _recording(seen: list[list[int]], fail_on: int | None = None) -> Callable[..., Decoded]:
    def decode(rows: pa.Table | BufferedLines, **_: object) -> Decoded:
        offsets = _offsets(rows)
        if fail_on in offsets:
            raise ZeroDivisionError("a bug")
        seen.append(offsets)
        return Decoded(counts={("offsets", "row"): len(offsets)})

    return decode


def test_rows_reach_the_decoder_of_their_feed_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that mixes feeds is split, and each part keeps the order of its rows."""
    offsets: list[list[int]] = []
    events: list[list[int]] = []
    monkeypatch.setattr(decode_stage, "decode_offsets", _recording(offsets))
    monkeypatch.setattr(decode_stage, "decode_lines", _recording(events))
    _run(_batch((EVENTS, 5, b"e"), (OFFSETS, 1, b"o"), (EVENTS, 6, b"e"), (OFFSETS, 2, b"o")))
    assert offsets == [[1, 2]]
    assert events == [[5, 6]]


def test_every_shard_gets_what_concerns_it() -> None:
    """A clock makes a cell for each shard, and the count of what was read one for the cluster."""
    cells = _run(_batch((CONTROL, 1, CLOCK)))
    assert set(cells) == {CLUSTER_SHARD, 0, 1}
    (counted,) = [seen for seen in cells[CLUSTER_SHARD] if isinstance(seen.what, Counted)]
    assert counted.what == Counted(counts=(("control", "clock", 1),))
    assert counted.at_ms == 1_001


def test_a_bug_in_a_decoder_costs_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the row on which the decoder fails is set aside, as internal_error; the others are read."""
    read: list[list[int]] = []
    monkeypatch.setattr(decode_stage, "decode_offsets", _recording(read, fail_on=4))
    cells = _run(_batch(*[(OFFSETS, offset, b"v%d" % offset) for offset in range(7)]))
    bad = [seen.what for seen in cells[CLUSTER_SHARD] if isinstance(seen.what, Undecodable)]
    assert [(one.origin, one.reason, one.count, one.sample) for one in bad] == [
        ("offsets", "internal_error", 1, b"v4")
    ]
    assert bad[0].detail == "ZeroDivisionError: a bug"
    assert sorted(offset for part in read for offset in part) == [0, 1, 2, 3, 5, 6]
    counts = [seen.what.counts for seen in cells[CLUSTER_SHARD] if isinstance(seen.what, Counted)]
    assert counts == [(("offsets", "row", 6),)]


@pytest.mark.parametrize("fails", range(9))
def test_a_bug_about_a_line_costs_one_row(monkeypatch: pytest.MonkeyPatch, fails: int) -> None:
    """The same for lines, be it a heartbeat or not, whatever batch it came in."""
    read: list[list[int]] = []
    monkeypatch.setattr(decode_stage, "decode_lines", _recording(read, fail_on=fails))
    beats = [heartbeat_line(Population(groups=2), 0, number % 5, 1_000, number) for number in range(9)]
    rows = [(EVENTS, offset, b"else" if offset % 4 == 1 else beats[offset]) for offset in range(9)]
    cells = _run(_batch(*rows[:5]), _batch(*rows[5:]))
    bad = [seen.what for seen in cells[CLUSTER_SHARD] if isinstance(seen.what, Undecodable)]
    assert [(one.origin, one.reason, one.count) for one in bad] == [("events", "internal_error", 1)]
    assert sorted(offset for part in read for offset in part) == [n for n in range(9) if n != fails]


def test_lines_that_cannot_be_read_as_a_column_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats are told all the same."""
    rows = [(EVENTS, n, heartbeat_line(Population(groups=2), 0, n, 1_000, n)) for n in range(3)]
    expected = _told(_run(_batch(*rows)))
    monkeypatch.setattr(quiet_columns, "_split_up", _failing)
    assert _told(_run(_batch(*rows))) == expected


def _told(cells: dict[int, list[Seen]]) -> dict[int, list[Any]]:
    """Return what is told of each member by itself, and everything else."""
    return {
        shard: sorted((one.what for whole in cell for one in apart(whole)), key=repr)
        for shard, cell in cells.items()
    }


def _failing(*_: object) -> None:
    raise ZeroDivisionError("a bug")


def test_garbage_in_every_feed_is_counted_and_stops_nothing() -> None:
    """Random bytes in any topic end as counts in the cluster's shard."""
    rows = [(feed, offset, b"\x00\xff garbage") for offset, feed in enumerate((OFFSETS, EVENTS, CONTROL))]
    cells = _run(_batch(*rows, (CONTROL, 9, CLOCK)))
    assert {seen.what.origin for seen in cells[CLUSTER_SHARD] if isinstance(seen.what, Undecodable)} >= {
        "events",
        "control",
    }
    assert 0 in cells
    assert 1 in cells


def test_no_rows_make_no_cells() -> None:
    """An empty batch yields nothing."""
    assert _run(_batch()) == {}


def test_a_row_that_cannot_even_be_held_costs_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails before any decoder sees it is counted like what fails there."""
    holds = decode_stage._Tables._hold

    def hold(self: decode_stage._Tables, rows: pa.Table) -> None:
        if 4 in rows.column("offset").to_pylist():
            raise ZeroDivisionError("a bug")
        holds(self, rows)

    monkeypatch.setattr(decode_stage._Tables, "_hold", hold)
    read: list[list[int]] = []
    monkeypatch.setattr(decode_stage, "decode_offsets", _recording(read))
    cells = _run(_batch(*[(OFFSETS, offset, b"v%d" % offset) for offset in range(7)]))
    (bad,) = [seen.what for seen in cells[CLUSTER_SHARD] if isinstance(seen.what, Undecodable)]

    assert (bad.origin, bad.reason, bad.count, bad.sample) == ("offsets", "internal_error", 1, b"v4")
    assert sorted(offset for part in read for offset in part) == [0, 1, 2, 3, 5, 6]


def test_thousands_of_bad_rows_are_one_sample() -> None:
    """Every one is counted; what travels to the cluster's shard is small."""
    cells = _run(_batch(*[(CONTROL, offset, b"?") for offset in range(2_000)]))
    bad = [seen.what for seen in cells[CLUSTER_SHARD] if isinstance(seen.what, Undecodable)]

    assert [(one.reason, one.count) for one in bad] == [("not_a_control_record", 2_000)]
