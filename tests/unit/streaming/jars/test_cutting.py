"""Lines that the JVM cuts are those that Python finds, and say the same; it forgets what is too much."""

import json
import random
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streaming.decoders import CUT, Decoded, LineReader, decode_lines, quiet_columns
from streaming.decoders.decoding_events import decode_rows
from streaming.devkit.bench.material import heartbeat_line
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
from tests.unit.streaming.jars.packing import Record, packed

_NOTHING = b"\xff" * 60
_ENVELOPE = {"@timestamp": "2026-11-21T06:28:00.123Z", "host": "kafka-1"}


def _tables(java: Any, values: Sequence[bytes | None]) -> list[pa.Table]:
    records: list[Record] = [(1, 0, offset, STAMP_MS, b"1", value) for offset, value in enumerate(values)]
    return [pa.Table.from_batches([one]) for one in packed(java, records)]


def _table(java: Any, values: Sequence[bytes | None]) -> pa.Table:
    [table] = _tables(java, values)
    return table


def _in_json(line: bytes) -> bytes:
    return json.dumps({**_ENVELOPE, "message": line.decode(errors="replace")}).encode()


def _values(seed: int) -> list[bytes | None]:
    """Return whole lines and damaged ones, bare and in one and two envelopes, and what is no line."""
    chance = random.Random(seed)
    whole = [any_line(chance, n) for n in range(120)] + beat_lines(40)
    lines = [one for one in whole if chance.random() < 0.9]
    lines += [damaged(chance.choice(whole), chance) for _ in range(60)]
    lines += [damaged(_in_json(chance.choice(whole)), chance) for _ in range(20)]
    lines += [_in_json(chance.choice(whole)) for _ in range(30)]
    lines += [_in_json(_in_json(chance.choice(whole))) for _ in range(30)]
    values: list[bytes | None] = [one for one in lines if not NO_JSON_NUMBER.search(one)]
    values += [
        None,
        b"",
        b"[",
        b"Completed request:{",
        b'Completed request:{"',
        b'x,"clientId":"}}',
        b"\\" * 9,
    ]
    chance.shuffle(values)
    return values


def _decoded(table: pa.Table) -> Decoded:
    return decode_lines(LineReader({}, "UTC").lines(table), shard_count=4, timezone="UTC")


@pytest.mark.parametrize("seed", range(4))
def test_lines_say_the_same_cut_and_whole(java: Any, seed: int) -> None:
    """In whatever envelope, however damaged, one after another in batches."""
    for batch in range(2):
        values = _values(2 * seed + batch)
        table = _table(java, values)
        assert CUT in table.column_names
        rows = [(0, offset, STAMP_MS, b"1", value) for offset, value in enumerate(values)]
        one_by_one = decode_rows(rows, shard_count=4, backlog_ends={}, timezone="UTC")
        assert told(_decoded(table)) == told(_decoded(table.drop_columns([CUT])))
        assert _decoded(table).counts == one_by_one.counts


@pytest.mark.parametrize("seed", range(4))
def test_the_same_lines_are_found_cut_and_whole(java: Any, seed: int) -> None:
    """A line that one of the two ways leaves to be read by itself costs ten times as much."""
    values = [one for one in _values(seed) if one]
    table = _table(java, values)
    stamp, named = np.full(len(values), STAMP_MS), np.full(len(values), -1)
    reader = quiet_columns.Reader("UTC")
    rows = table.column("value"), stamp, named
    cut, whole = reader.found(*rows, table.column(CUT)), reader.found(*rows)
    assert len(whole.row) > 60
    for one, other in zip(cut, whole, strict=True):
        assert one.tolist() == other.tolist()


def test_a_word_is_not_taken_for_the_one_that_stood_there_before(java: Any) -> None:
    """Topics stand twice in a commit: the second where those of another commit stood first."""
    chance = random.Random(1)
    short = next(
        line for line in (any_line(chance, n) for n in range(999)) if b'"topics":[]},"response' in line
    )
    first, second = (place.start() for place in re.finditer(b'"topics":', short))
    long = short.replace(b'"clientId":"', b'"clientId":"' + b"x" * (second - first))
    table = _table(java, [long, short, long, short])
    assert {one == _NOTHING for one in table.column(CUT).to_pylist()} == {False}


def test_a_part_of_a_block_is_read_by_itself(java: Any) -> None:
    """Rows of other feeds are left out of it, and where a row fails, the others are read in halves."""
    table = _table(java, [*_values(5)])
    for start, end in ((0, 90), (90, 91), (91, table.num_rows)):
        part = table.slice(start, end - start)
        assert told(_decoded(part)) == told(_decoded(part.drop_columns([CUT])))


def test_lines_of_no_request_tell_nothing(java: Any) -> None:
    """A block in which none was cut is as small as it was."""
    assert CUT not in _table(java, [b"[2026-11-21 06:28:53,001] INFO a line", None]).column_names


def test_lines_of_other_requests_are_not_cut(java: Any) -> None:
    """A broker that logs all requests logs mostly fetches, and their parts do not come back."""
    line = heartbeat_line(POPULATION, 1, 1, AT_MS, 7)
    fetch = line.replace(b'"requestApiKey":12,', b'"requestApiKey":1,')
    table = _table(java, [fetch, line, _in_json(fetch), _in_json(line)])
    assert [one == _NOTHING for one in table.column(CUT).to_pylist()] == [True, False, True, False]


def test_a_line_that_is_too_long_is_not_cut(java: Any) -> None:
    """Its places would not fit; it is read by itself."""
    line, long = heartbeat_line(POPULATION, 1, 1, AT_MS, 7), b" " * (1 << 16)
    table = _table(java, [line, line + long, long + line])
    assert table.column(CUT).to_pylist()[1:] == [_NOTHING] * 2
    assert told(_decoded(table)) == told(_decoded(table.drop_columns([CUT])))


def _found(table: pa.Table) -> int:
    """Return how many lines are found where they were cut."""
    dated = np.full(table.num_rows, STAMP_MS), np.full(table.num_rows, -1)
    return len(quiet_columns.Reader("UTC").found(table.column("value"), *dated, table.column(CUT)).row)


def test_a_long_line_is_cut(java: Any) -> None:
    """A commit of many partitions has more bytes than half of its places could tell."""
    chance = random.Random(1)
    # The last of thirty partitions, in a line that says nothing new.
    last = re.compile(rb'\{"partitionIndex":29,"committed[^}]*\}')
    lines = (any_line(chance, n) for n in range(9_999))
    line = next(line for line in lines if last.search(line) and _found(_table(java, [line])))
    table = _table(java, [last.sub(lambda one: b",".join([one[0]] * 400), line, count=1)])
    assert 1 << 15 < len(table.column("value")[0].as_py()) < 1 << 16
    assert _found(table) == 1


def test_texts_that_somebody_chose_cost_no_more_than_others(java: Any) -> None:
    """Pairs of words that differ in these bits have the same hash, whatever its factor is."""
    pairs = [
        (b"\x01" * 8 + b"\x02" * 8),
        (b"\x01" * 7 + b"\x81" + b"\x02" * 3 + b"\x82" + b"\x02" * 3 + b"\x82"),
    ]
    line = heartbeat_line(POPULATION, 1, 1, AT_MS, 7)
    place = line.index(b'"clientId":') - 1
    lines = []
    for n in range(300):
        noise = b"".join(pairs[n >> bit & 1] for bit in range(9))
        lines.append(line[:place] + b',"clientId":"abc' + noise + line[place + 12 :])
    table = _table(java, lines)
    numbers = [int.from_bytes(one[24:28], "little", signed=True) for one in table.column(CUT).to_pylist()]
    assert numbers == [*range(201), *[-1] * 99]
    assert told(_decoded(table)) == told(_decoded(table.drop_columns([CUT])))


def _whose(table: pa.Table) -> set[bytes]:
    return {one[-4:] for one in table.column(CUT).to_pylist() if one != _NOTHING}


def test_a_part_keeps_its_number_in_the_next_batch(java: Any) -> None:
    """So that Python need not read it again."""
    line = heartbeat_line(POPULATION, 1, 1, AT_MS, 7)
    first, second = _table(java, [line]), _table(java, [*beat_lines(5), line])
    assert first.column(CUT)[0] == second.column(CUT)[5]
    assert _whose(first) == _whose(second)


def test_texts_are_forgotten_when_they_are_too_many(java: Any) -> None:
    """Anybody may send a new client id with each request; who numbers them anew says so."""
    line = heartbeat_line(POPULATION, 1, 1, AT_MS, 7)
    client = b'"clientId":"%s' % (b"%05d" * 6_000)
    lines: list[bytes | None] = [line.replace(b'"clientId":"', client % ((n,) * 6_000)) for n in range(1_200)]
    before = _whose(_table(java, [line]))
    for table in _tables(java, lines):
        assert told(_decoded(table)) == told(_decoded(table.drop_columns([CUT])))
    after = _table(java, [*beat_lines(9), line])
    assert _whose(after).isdisjoint(before)
    assert told(_decoded(after)) == told(_decoded(after.drop_columns([CUT])))


def test_what_stands_around_lines_is_not_kept_without_end(java: Any) -> None:
    """Where more than digits differs in each row, rows are read one by one, but not for ever."""
    line = heartbeat_line(POPULATION, 1, 1, AT_MS, 7)
    names = ["".join("abcdefghij"[int(digit)] for digit in f"{n:04}") for n in range(4_010)]
    table = _table(java, [name.encode() + line for name in names] + [line])
    numbers = [int.from_bytes(one[48:52], "little", signed=True) for one in table.column(CUT).to_pylist()]
    assert numbers == [*range(4_000), *[-1] * 11]
    for _ in range(101):
        table = _table(java, [b"some other layout: " + line])
    assert table.column(CUT).to_pylist()[0][48:52] == bytes(4)
