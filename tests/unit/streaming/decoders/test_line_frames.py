"""Lines are read where they stand, whatever stands around them, and say what they say read one by one."""

import json
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streaming.decoders import LineReader, decode_lines, frame_times, line_frames, quiet_columns
from streaming.decoders.clock_copies import CLOCK_KEY
from streaming.decoders.decoding_events import Row, decode_rows
from streaming.devkit.bench.material import Population, heartbeat_line
from streaming.devkit.bench.mixed_lines import commit_line
from tests.unit.streaming.decoders.tables import events_table

AT_MS = 1_795_218_710_925
LINE = heartbeat_line(Population(groups=10), 1, 1, AT_MS, 1).decode()


def inside(
    *envelopes: dict[str, Any] | str, named: int = -1, reader: quiet_columns.Reader | None = None
) -> quiet_columns.Found:
    """Return what is read inside these envelopes, whose keys name this broker."""
    texts = [one if isinstance(one, str) else json.dumps(one) for one in envelopes]
    values = pa.chunked_array([pa.array([text.encode() for text in texts], pa.binary())])
    stamps = np.full(len(texts), AT_MS + 500)
    return (reader or quiet_columns.Reader("UTC")).found(values, stamps, np.full(len(texts), named))


@pytest.mark.parametrize("named", [-1, 3])
def test_a_broker_that_digits_name_needs_the_key(named: int) -> None:
    """A shape stands for all digits, so who has no key is opened by itself."""
    found = inside({"broker": "1", "message": LINE}, {"broker": "2", "message": LINE}, named=named)
    assert found.row.tolist() == ([] if named < 0 else [0, 1])


def test_other_digits_do_not_matter() -> None:
    """Times and offsets of a shipper differ in each row."""
    rows = [{"@timestamp": f"2026-11-21T06:28:5{n}Z", "offset": n * 7919, "log": LINE} for n in range(9)]
    found = inside(*rows)
    assert found.row.tolist() == list(range(9))


@pytest.mark.parametrize(
    "envelope",
    [
        {"message": LINE, "stream": "stdout", "logtag": "P"},
        {"message": LINE, "partial_message": "true"},
        {
            "log": LINE.replace('"clientId":"', '"clientId":"' + (16_384 - len(LINE)) * "x"),
            "stream": "stdout",
        },
        {"nested": {"message": LINE}},
        {"message": LINE + " "},
        {"message": LINE.replace("client", "cli\tent")},
        {"message": "x", "original": LINE},
        '{"message": "' + LINE + '"}',
        '{"message": ' + json.dumps(LINE) + ', "message": "the last one counts"}',
        '{"message": ' + json.dumps(LINE) + ", broken",
        '{"message": ' + json.dumps(LINE).replace('\\"', '\\\\"', 1) + "}",
        '{"message": ' + json.dumps(LINE) + ', "pad": "' + 16_384 * "x" + '"}',
    ],
)
def test_what_is_not_simple_is_opened_by_itself(envelope: dict[str, Any] | str) -> None:
    """Also beside a simple one."""
    assert inside(envelope, {"message": LINE}).row.tolist() == [1]


MESSAGE = LINE[LINE.index("Completed") : LINE.rindex("}}") + 2]
QUOTED = json.dumps(MESSAGE)
COMMIT = commit_line(Population(groups=10), 1, 1, AT_MS, 1).decode().partition(" DEBUG ")[2]
TWICE = json.dumps(f'{{"timeMillis":1795218710925,"level":"DEBUG","message":{QUOTED}}}\n')
STARTED = ",".join(f'"{name}":"2026-11-0{day}T00:00:00Z"' for day, name in enumerate("abcdef", start=1))
STRIMZI = f"2026-11-20 23:51:50 DEBUG [data-plane-handler-3] logger:283 - {MESSAGE}"
LAYOUTS = {
    "kafka": f"[2026-11-20 23:51:50,925] DEBUG {MESSAGE} (kafka.request.logger)",
    "encoded": f"[2026-11-20 23:51:50,925] DEBUG {MESSAGE} (kafka.request.logger) [CRLF]",
    "windows": f"[2026-11-20 23:51:50,925] DEBUG {MESSAGE} (kafka.request.logger)\r\n",
    "strimzi": STRIMZI,
    "strimzi-3": f"2026-11-20 23:51:50,925 DEBUG {MESSAGE} (kafka.request.logger) [handler-3]",
    "zoned": f"2026-11-21T00:51:50.925+01:00 DEBUG {MESSAGE}",
    "message": MESSAGE,
    "cri": f"2026-11-20T23:51:50.9251Z stdout F [2026-11-20 23:51:50,925] DEBUG {MESSAGE}",
    "log4j2": f'{{"instant":{{"epochSecond":1795218710,"nanoOfSecond":925000000}},"message":{QUOTED}}}',
    "millis": f'{{"timeMillis":1795218710925,"level":"DEBUG","message":{QUOTED},"threadId":3}}',
    "ecs": f'{{"@timestamp":"2026-11-20T23:51:50.925Z","log.level":"DEBUG","message":{QUOTED}}}',
    "epoch": f'{{"date":1795218710.925,"log":{QUOTED}}}',
    "docker": f'{{"log":{TWICE},"stream":"stdout","time":"2026-11-20T23:51:50.9301Z"}}',
    "fluent-bit": f'{{"date":1795218710.93,"kubernetes":{{{STARTED}}},"log":{json.dumps(STRIMZI)}}}',
    "pairs": f"time=2026-11-20T23:51:50.925Z level=debug msg={QUOTED}",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_is_read(layout: str) -> None:
    """Its line has its time, or else its record's; one in whole seconds has the milliseconds of another."""
    found = inside(LAYOUTS[layout])
    others = {"message": AT_MS + 500, "strimzi": 1_795_218_710_999, "fluent-bit": 1_795_218_710_930}
    expected_ms = others.get(layout, AT_MS)
    assert (found.row.tolist(), found.at_ms.tolist()) == ([0], [expected_ms])
    assert found.is_alone.tolist() == [
        layout[:3] not in ("cri", "log", "mil", "ecs", "epo", "doc", "flu", "pai")
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"23:51:50,925 DEBUG {MESSAGE}",
        f"20 Nov 2026 23:51:50,925 DEBUG {MESSAGE}",
        f"20261120T235150,925 DEBUG {MESSAGE}",
        f'{{"time":"2026-11-20","message":{QUOTED}}}',
        f'{{"time":179521871092,"message":{QUOTED}}}',
        f'{{"timeUnixNano":1795218710925999999,"message":{QUOTED}}}',
        f'{{"timestamp":"0079521871092","message":{QUOTED}}}',
        f'{{"message":{QUOTED},"stream":"stdout","logtag":"\\u0050"}}',
    ],
)
def test_what_digits_may_change_is_not_read_here(text: str) -> None:
    """Times in other notations, and letters that are written as numbers; such lines are read one by one."""
    assert not len(inside(text).row)


@pytest.mark.parametrize(
    ("before", "count"), [("", 1), ('{"@timestamp":"2026-10-25T01:30:00.2Z","log":"', 0)]
)
def test_an_hour_that_comes_twice(before: str, count: int) -> None:
    """The record's time decides, unless an envelope tells one that is closer to the line."""
    line = f"2026-10-25 02:30:00,123 DEBUG {MESSAGE}"
    text = before + json.dumps(line)[1:] + "}" if before else line
    stamps = np.array([1_792_888_200_000])
    assert time.gmtime(stamps[0] / 1000)[:5] == (2026, 10, 25, 0, 30)
    values = pa.chunked_array([pa.array([text.encode()], pa.binary())])
    found = quiet_columns.Reader("Europe/Berlin").found(values, stamps, np.array([-1]))
    assert found.at_ms.tolist() == [1_792_888_200_123] * count


def _rows(*values: str, key: bytes | None = None, stamp: int = AT_MS + 500) -> list[Row]:
    return [(0, offset, stamp, key, value.encode()) for offset, value in enumerate(values)]


CRI = "2026-11-20T23:51:51.2Z stdout F " + STRIMZI
PODS = [
    f'{{"time":"2026-11-20T23:51:50.3Z","pod":"{n * "1"}","log":{json.dumps(CRI)}}}' for n in range(1, 40)
]
TWICE_LINE = f"[2026-10-25 02:30:00,123] DEBUG {MESSAGE}"
TWICE_MS = 1_792_893_600_123
LOKI = f'{{"streams":[{{"stream":{{}},"values":[["1792888200123000000",{json.dumps(TWICE_LINE)}]]}}]}}'


@pytest.mark.parametrize(
    ("value", "zone", "key", "stamp"),
    [
        (f'{{"timestamp":"2026/11/20 23:50:52","ts":1795218710123,"log":{QUOTED}}}', "UTC", None, AT_MS),
        (f'{{"@timestamp":"20261120T235052.1Z","date":1795218710.123,"log":{QUOTED}}}', "UTC", None, AT_MS),
        (f'{{"time":"20261120-235052","message":{QUOTED}}}', "UTC", None, AT_MS),
        (f'{{"time":" 2026-11-20T235052","message":{QUOTED}}}', "UTC", None, AT_MS),
        (f"date=2026-11-20 level=DEBUG msg={QUOTED}", "UTC", None, AT_MS),
        (f'{{"time":1795218710123e00,"message":{QUOTED}}}', "UTC", None, AT_MS),
        (f'{{"time":"2026-11-20T23:51:50.1234567890Z","log":{QUOTED}}}', "Europe/Berlin", None, AT_MS),
        (f'{{"_partial":1.0,"message":{QUOTED}}}', "UTC", None, AT_MS),
        (f"20261120 1028531230 DEBUG {MESSAGE}", "UTC", None, AT_MS),
        (f"[2026-03-29 02:30:00,123] DEBUG {COMMIT}", "Europe/Berlin", None, -1),
        (f"[2026-03-29 02:30:00,123] DEBUG {MESSAGE}", "Europe/Berlin", CLOCK_KEY, AT_MS),
        (LOKI, "Europe/Berlin", None, TWICE_MS),
        *((value, "UTC", None, AT_MS) for value in PODS),
    ],
)  # fmt: skip
def test_both_ways_find_the_same(value: str, zone: str, key: bytes | None, stamp: int) -> None:
    """Also where a time that is not read here counts, or a digit means more than others."""
    rows = _rows(*[value] * 3, key=key, stamp=stamp)
    by_line = decode_rows(rows, shard_count=4, backlog_ends={}, timezone=zone)
    by_column = decode_lines(LineReader({}, zone).lines(events_table(rows)), shard_count=4, timezone=zone)
    assert by_column.cells == by_line.cells
    assert (by_column.counts, len(by_column.bad)) == (by_line.counts, len(by_line.bad))


@pytest.mark.parametrize(
    "before",
    [
        b'{"a":"00:00","b":"0000-00-00T00:00:00.000Z","log":"',
        b'{"a":"00:00","log":"0000-00-00 00:00:00 DEBUG ',
        b"00000000 0000000000 DEBUG ",
    ],
)
def test_no_rule_beside_times_that_may_count(before: bytes) -> None:
    """Only a line's own time, with its milliseconds, counts whatever those tell."""
    assert not list(frame_times.rules_of(before, b'"}'))
    assert len(list(frame_times.rules_of(b'{"a":"00:00","log":"0000-00-00 00:00:00,000 ', b'"}'))) == 1


def test_only_lines_alone_are_read_beside_a_part_of_another() -> None:
    """A container runtime's next line may be the rest; a bare line is never one."""
    part = f"2026-11-20T23:51:50.9Z stdout P [2026-11-20 23:51:50,925] DEBUG {MESSAGE[:90]}"
    values = [LAYOUTS[name] for name in ("kafka", "cri", "ecs", "strimzi")]
    for before, count in (("", 4), (part, 2)):
        blocks = LineReader({}, "UTC").lines(events_table(_rows(before, *values))).blocks
        assert sum(len(block.beats.row) for block in blocks if block.beats is not None) == count


def test_frames_that_are_new_in_each_row_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would be learned for ever; each reader learns few of them, and those that recur are kept."""
    monkeypatch.setattr(line_frames, "_known", line_frames.Frames())
    rows = [
        {"id": "".join(chr(97 + n // 26**place % 26) for place in range(4)), "log": LINE}
        for n in range(5_000)
    ]
    assert len(inside({"log": LINE}).row) == 1
    counts = []
    for _ in range(3):
        counts.append(len(inside({"log": LINE}, *rows).row))
        quiet_columns.Reader("UTC")  # a task without lines
    assert counts == [201, 41, 41]
