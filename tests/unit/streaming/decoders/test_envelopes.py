"""A line that is taken out of its envelope means what it meant inside it."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streaming.decoders.buffered_lines import LineReader
from streaming.decoders.clock_copies import CLOCK_KEY
from streaming.decoders.decoded import Decoded
from streaming.decoders.decoding_events import decode_lines
from streaming.decoders.envelopes import Envelopes
from streaming.devkit.bench.material import Population, heartbeat_line

LOGS = Path(__file__).parents[3] / "golden" / "logs"
POPULATION = Population(groups=10)
AT_MS = 1_795_218_710_925
TIMEZONE = "Europe/Berlin"
Row = tuple[bytes | None, bytes | None]
"""Key and value."""


def _golden() -> list[str]:
    files = sorted(file for file in LOGS.rglob("*.log") if file.is_file())
    lines = [line for file in files for line in file.read_text(errors="replace").splitlines()[:150]]
    return [line for line in lines if line.startswith("[2")]


LINES = _golden()


def table(rows: Sequence[Row]) -> pa.Table:
    """Return rows as Spark hands them over."""
    keys, values = zip(*rows, strict=True)
    count = range(len(rows))
    return pa.table(
        {
            "partition": pa.array([n * 3 // len(rows) for n in count], pa.int32()),
            "offset": pa.array(list(count), pa.int64()),
            "timestamp_ms": pa.array([AT_MS + 50 * n for n in count], pa.int64()),
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )


def decoded(tables: Sequence[pa.Table], *, opens: bool) -> Decoded:
    """Decode, with envelopes opened at the column or line by line."""
    reader = LineReader({}, TIMEZONE)
    reader._envelopes.may_have_parts = not opens
    blocks = [block for rows in tables for block in reader.lines(rows).blocks]
    return decode_lines(type(reader.lines(tables[0].slice(0, 0)))(blocks), shard_count=5, timezone=TIMEZONE)


def _simple(line: str, chance: random.Random) -> dict[str, Any]:
    fields: dict[str, Any] = {"message": line}
    if chance.random() < 0.8:
        fields["broker"] = chance.choice([1, "2", "no", 2**40, {"id": 3}])
    if chance.random() < 0.3:
        fields |= {"timestamp": "2026-11-20T22:51:50Z", "host": "h1", "level": "WARN", "logger": "x.Y"}
    return fields


def _docker(line: str, _: random.Random) -> dict[str, Any]:
    return {"log": f"{line}\n", "stream": "stdout", "time": "2026-11-20T22:51:50.1Z"}


def _broken_date(line: str, _: random.Random) -> dict[str, Any]:
    return {"message": f"{line[:6]}13{line[8:]}", "@timestamp": "2026-11-20T22:51:50.1Z"}


def _nested(line: str, _: random.Random) -> dict[str, Any]:
    return {"message": json.dumps({"log": line, "stream": "stdout"}), "broker": 1}


def _elsewhere(line: str, _: random.Random) -> dict[str, Any]:
    return {"MESSAGE": line, "_HOSTNAME": "h", "fields": {"broker": 7}}


def _part(line: str, chance: random.Random) -> dict[str, Any]:
    middle = len(line) // 2
    part = line[:middle] if chance.random() < 0.5 else line[middle:]
    return {"message": part, "stream": "stdout", "logtag": chance.choice("PF")}


Wrap = Callable[[str, random.Random], dict[str, Any]]
CALM: tuple[Wrap, ...] = (_simple, _simple, _simple, _docker, _broken_date)
WILD: tuple[Wrap, ...] = (*CALM, _nested, _elsewhere, _part)


def _rows(chance: random.Random, wraps: Sequence[Wrap], count: int = 120) -> list[Row]:
    odd: list[bytes | None] = [None, b"", b"\tat java.lang.Thread.run"]
    odd += [b"{}", b"\xff", b"[]"] if wraps is WILD else []
    beats = [heartbeat_line(POPULATION, n % 10, n % 5, AT_MS + 700 * n, n) for n in range(count // 3)]
    lines = [*chance.choices(LINES, k=count), *(beat.decode() for beat in beats)]
    chance.shuffle(lines)
    rows: list[Row] = []
    for line in lines:
        key = chance.choice([b"1", b"1", b"2", None, b"host-7"])
        kind = chance.random()
        if kind < 0.2:
            rows.append((key, line.encode()))
        elif kind < 0.22:
            rows.append((CLOCK_KEY, b'{"at_ms": 1795218710925, "sequence": 7}'))
        elif kind < 0.24:
            rows.append((key, chance.choice(odd)))
        else:
            text = json.dumps(chance.choice(wraps)(line, chance), ensure_ascii=chance.random() < 0.5)
            rows.append((key, text.encode(errors="replace")))
    return rows


def plain(told: Decoded) -> tuple[Any, ...]:
    """Return what was decoded, in an order that does not depend on the way."""
    cells = {shard: sorted(map(repr, seen)) for shard, seen in told.cells.items()}
    bad = sorted((one.reason, one.count) for one in told.bad)
    return cells, dict(told.counts), bad, told.committed_ms


@pytest.mark.parametrize("wraps", [CALM, WILD], ids=["calm", "wild"])
@pytest.mark.parametrize("seed", range(25))
def test_both_ways_find_the_same(seed: int, wraps: Sequence[Wrap]) -> None:
    """Lines of real brokers, bare and in envelopes of every kind, in one table and in several."""
    chance = random.Random(seed)
    rows = _rows(chance, wraps)
    whole = table(rows)
    cut = chance.randrange(1, len(rows))
    for tables in ([whole], [whole.slice(0, cut), whole.slice(cut)]):
        assert plain(decoded(tables, opens=True)) == plain(decoded(tables, opens=False))


def test_envelopes_of_real_lines_are_opened() -> None:
    """Whatever else they name; so the test above compares two ways."""
    envelopes = Envelopes()
    values = envelopes.opened(table(_rows(random.Random(1), CALM)))[0].column("value").to_pylist()
    assert sum((value or b"")[:1] == b"{" for value in values) < len(values) / 3
    assert not envelopes.may_have_parts


def test_simple_envelopes_become_bare_lines() -> None:
    """With the broker as key where no key names one."""
    beat = heartbeat_line(POPULATION, 1, 1, AT_MS, 1).decode()
    rows = [
        (b"1", json.dumps({"message": beat, "broker": 2})),
        (None, json.dumps({"log": beat, "broker": 2})),
    ]
    opened, taken = Envelopes().opened(table([(key, text.encode()) for key, text in rows]))
    assert taken.tolist() == [0, 1]
    assert opened.column("value").to_pylist() == [beat.encode()] * 2
    assert opened.column("key").to_pylist() == [b"1", b"2"]


@pytest.mark.parametrize(
    "value",
    [
        b'{"message": "the first half", "stream": "stdout", "logtag": "P"}',
        b"2026-11-20T22:51:50.1Z stdout P the first half",
        b'{"streams": []}',
        b'{"message": "{\\"log\\": \\"x\\"}"}',
        b'[{"message": "x"}]',
        b'{"message"',
    ],
)
def test_after_what_may_be_a_part_nothing_is_taken_out(value: bytes) -> None:
    """Its rest may come at any time, and needs the envelopes between."""
    simple = json.dumps({"message": heartbeat_line(POPULATION, 1, 1, AT_MS, 1).decode()}).encode()
    envelopes = Envelopes()
    assert envelopes.opened(table([(b"1", value), (b"1", simple)]))[0].column("value").to_pylist() == [
        value,
        simple,
    ]
    assert envelopes.opened(table([(b"1", simple)]))[0].column("value").to_pylist() == [simple]
