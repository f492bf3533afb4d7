"""Heartbeats read as columns are exactly those that the expression for one line matches."""

import random

import numpy as np
import pyarrow as pa
import pytest

from streaming.decoders import heartbeat_columns, heartbeat_lines
from streaming.devkit.bench.material import Population, heartbeat_line

POPULATION = Population(groups=40)
AT_MS = 1_760_000_000_123
_BYTES = b'0123456789".,:{}[] \\abcxyzDEBUGINFO\x00\xff\xc3\xa9\n'


def _lines(count: int) -> list[bytes]:
    return [heartbeat_line(POPULATION, n % 40, n % 5, AT_MS + 700 * n, n * 37) for n in range(count)]


def _expected(values: list[bytes | None]) -> list[tuple[int, bytes, int, bytes, tuple[bytes, ...]]]:
    told = []
    for row, value in enumerate(values):
        line = heartbeat_lines.LINE.fullmatch(value or b"")
        if line is not None and line[1] is not None:
            told.append((row, line[1], int(line[2]), line[4], line.group(*heartbeat_lines.CLIENT)))
    return told


def _read(
    values: list[bytes | None], chunk: int = 7
) -> list[tuple[int, bytes, int, bytes, tuple[bytes, ...]]]:
    chunks = [pa.array(values[start : start + chunk], pa.binary()) for start in range(0, len(values), chunk)]
    places = np.arange(len(values))
    beats = heartbeat_columns.Reader().read(
        pa.chunked_array(chunks, pa.binary()), places + 1_000, places + 2_000
    )
    assert beats.offset.tolist() == [row + 1_000 for row in beats.row.tolist()]
    assert beats.stamp.tolist() == [row + 2_000 for row in beats.row.tolist()]
    columns = (beats.row.tolist(), beats.second.tolist(), beats.millis.tolist())
    return [
        (row, beats.names.seconds.values[second], millis, *beats.sender_at(index))
        for index, (row, second, millis) in enumerate(zip(*columns, strict=True))
    ]


def test_every_plain_line_is_read() -> None:
    """Lines as brokers write them are all found, with what they say."""
    values: list[bytes | None] = [*_lines(300)]
    assert len(_expected(values)) == 300
    assert _read(values) == _expected(values)


def _damaged(line: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(line))
    kind = chance.randrange(6)
    other = _BYTES[chance.randrange(len(_BYTES))]
    if kind == 0:
        return line[:place]
    if kind == 1:
        return line[:place] + line[place + chance.randrange(1, 9) :]
    if kind == 2:
        return line[:place] + bytes([other]) + line[place:]
    if kind == 3:
        return line[:place] + line[place:] * 2
    if kind == 4:
        digits = [at for at, byte in enumerate(line) if 48 <= byte <= 57]
        place = chance.choice(digits)
    return line[:place] + bytes([other]) + line[place + 1 :]


@pytest.mark.parametrize("seed", range(20))
def test_damaged_lines_are_told_apart_alike(seed: int) -> None:
    """What a flip, a cut or a repetition makes of a line is a heartbeat in both ways or in neither."""
    chance = random.Random(seed)
    values: list[bytes | None] = [_damaged(line, chance) for line in _lines(400)]
    values += [None, b"", b"[", b'[,"clientId":', *_lines(3)]
    chance.shuffle(values)
    assert _read(values, chunk=chance.randrange(1, 90)) == _expected(values)


def test_what_is_between() -> None:
    """A part of the rows is what was read of exactly those."""
    values: list[bytes | None] = [*_lines(9), b"else", *_lines(2)]
    places = np.arange(len(values))
    beats = heartbeat_columns.Reader().read(pa.chunked_array([pa.array(values, pa.binary())]), places, places)
    assert beats.between(4, 11).row.tolist() == [4, 5, 6, 7, 8, 10]
    assert beats.between(9, 10).row.tolist() == []
