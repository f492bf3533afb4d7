"""Lines read as columns say what they say read one by one, and no other line is taken for one of them."""

import random

import numpy as np
import pyarrow as pa
import pytest

from coordinator_model.decoding import local_ms
from coordinator_model.observations import LogSeconds
from streaming.decoders import Decoded, LineReader, decode_lines, quiet_columns, quiet_lines, quiet_texts
from streaming.decoders.decoding_events import decode_rows
from streaming.devkit.bench.mixed_lines import commit_line, modern_line
from tests.unit.streaming.decoders.made_lines import (
    AT_MS,
    NO_JSON_NUMBER,
    POPULATION,
    STAMP_MS,
    any_line,
    beat_lines,
    damaged,
    told,
)
from tests.unit.streaming.decoders.tables import events_table

_Told = list[tuple[int, int, quiet_lines.Said]]
"""Of each row that says nothing new: its number, its time, and what it says."""


def _expected(values: list[bytes | None]) -> _Told:
    told = []
    for row, value in enumerate(values):
        line = quiet_lines.LINE.fullmatch(value or b"")
        if line is not None:
            at_ms = row + 2_000 if line[1] is None else local_ms(line[1].decode(), int(line[2]), "UTC")
            told.append((row, at_ms, quiet_lines.said_in(line)))
    return [one for one in told if one[1] >= 0]


def _beats(values: list[bytes | None], chunk: int = 1_000) -> quiet_columns.Beats:
    chunks = [pa.array(values[start : start + chunk], pa.binary()) for start in range(0, len(values), chunk)]
    places, reader = np.arange(len(values)), quiet_columns.Reader("UTC")
    found = reader.found(pa.chunked_array(chunks, pa.binary()), places + 2_000, np.full(len(values), -1))
    return reader.beats(found, places + 1_000, places + 2_000)


def _said(beats: quiet_columns.Beats) -> list[quiet_lines.Said]:
    return [beats.names.texts.said(sender) for sender in beats.sender.tolist()]


def _read(values: list[bytes | None], chunk: int = 7) -> _Told:
    beats = _beats(values, chunk)
    assert beats.offset.tolist() == [row + 1_000 for row in beats.row.tolist()]
    assert beats.stamp.tolist() == [row + 2_000 for row in beats.row.tolist()]
    return list(zip(beats.row.tolist(), beats.at_ms.tolist(), _said(beats), strict=True))


def test_every_plain_line_is_read() -> None:
    """Lines as brokers write them are all found, with what they say."""
    values: list[bytes | None] = [*beat_lines(300)]
    assert len(_expected(values)) == 300
    assert _read(values) == _expected(values)


def test_what_is_between() -> None:
    """A part of the rows is what was read of exactly those."""
    values: list[bytes | None] = [*beat_lines(9), b"else", *beat_lines(2)]
    beats = _beats(values)
    assert beats.between(4, 11).row.tolist() == [4, 5, 6, 7, 8, 10]
    assert beats.between(9, 10).row.tolist() == []


def _rows(values: list[bytes | None]) -> list[tuple[int, int, int, bytes | None, bytes | None]]:
    return [(0, offset, STAMP_MS, b"1", value) for offset, value in enumerate(values)]


def _by_line(values: list[bytes | None]) -> Decoded:
    return decode_rows(_rows(values), shard_count=4, backlog_ends={}, timezone="UTC")


def _by_columns(values: list[bytes | None]) -> Decoded:
    return decode_lines(
        LineReader({}, "UTC").lines(events_table(_rows(values))), shard_count=4, timezone="UTC"
    )


@pytest.mark.parametrize("seed", range(20))
def test_damaged_lines_say_the_same_both_ways(seed: int) -> None:
    """What a flip, a cut or a repetition makes of a line means the same in a column and by itself."""
    chance = random.Random(seed)
    broken = (damaged(line, chance) for line in beat_lines(400))
    values: list[bytes | None] = [line for line in broken if not NO_JSON_NUMBER.search(line)]
    values += [None, b"", b"[", b'[,"clientId":', *beat_lines(3)]
    chance.shuffle(values)
    assert told(_by_columns(values)) == told(_by_line(values))


@pytest.mark.parametrize("seed", range(8))
def test_commits_and_heartbeats_say_the_same_both_ways(seed: int) -> None:
    """A line gives the same observation as a column's as it does read in full, whole or damaged."""
    chance = random.Random(seed)
    whole = [any_line(chance, n) for n in range(60)]
    broken = [damaged(line, chance) for line in whole]
    for value in [*whole, *(one for one in broken if not NO_JSON_NUMBER.search(one))]:
        assert told(_by_columns([value])) == told(_by_line([value])), value


def test_what_says_nothing_new_is_read_as_columns() -> None:
    """Accepted commits and heartbeats that keep their epoch need no parser, refused commits do."""
    chance = random.Random(1)
    values: list[bytes | None] = [any_line(chance, n) for n in range(600)]
    found = _beats(values)
    kinds = [said.api for said in _said(found)]
    assert min(map(kinds.count, (8, 12, 68))) > 10
    taken = [values[row] or b"" for row in found.row.tolist()]
    assert not any(b'"errorCode":2' in line and b'"OFFSET_COMMIT"' in line for line in taken)


def test_many_lines_of_a_member_are_one_observation() -> None:
    """Commits of one member are coalesced like heartbeats, with all their times and the last client."""
    lines: list[bytes | None] = [
        commit_line(POPULATION, n % 3, 0, AT_MS + 700 * n, n * 37)
        if n % 2
        else modern_line(POPULATION, n % 3, 0, AT_MS + 700 * n, n * 37)
        for n in range(60)
    ]
    result = _by_columns(lines)
    assert told(result) == told(_by_line(lines))
    runs = [seen.what for cell in result.cells.values() for seen in cell if type(seen.what) is not LogSeconds]
    assert len(runs) == 6
    assert result.counts == {
        ("request_log", "offset_commit"): 30,
        ("request_log", "consumer_group_heartbeat"): 30,
    }


def test_senders_are_known_again_in_the_next_batch() -> None:
    """The same clients send batch after batch, so another reader finds what was read, at no cost."""
    lines: list[bytes | None] = [*beat_lines(40)]
    first, again = _beats(lines), _beats(lines)
    assert _said(again)[7] is _said(first)[7]
    assert again.names.bytes < first.names.texts.bytes / 10


@pytest.mark.parametrize("head", ["[2026-11-21 06:28:00,123] DEBUG ", "2026-11-21 06:28:00 DEBUG logger - "])
def test_a_line_that_is_no_text_is_counted_and_costs_no_other(head: str) -> None:
    """Also where its member has said the same in good lines."""
    message = beat_lines(1)[0].partition(b"DEBUG ")[2].replace(b" (kafka.request.logger)", b"")
    bad = message.replace(b'"clientId":"', b'"clientId":"\xff')
    values: list[bytes | None] = [head.encode() + one for one in (message, bad, message)]
    for result in (_by_columns(values), _by_line(values)):
        assert result.counts["request_log", "heartbeat"] == 2
        assert [(one.reason, one.count) for one in result.bad] == [("not_utf8", 1)]


def test_too_many_known_senders_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that has met too many clients begins anew, and what was read before stays right."""
    lines: list[bytes | None] = [*beat_lines(40)]
    first = _beats(lines)
    expected = _said(first)[7].client
    monkeypatch.setattr(quiet_texts, "_KEPT_BYTES_MAX", 0)
    again = _beats(lines)
    assert again.names.texts is not first.names.texts
    assert _said(again)[7].client == _said(first)[7].client == expected
