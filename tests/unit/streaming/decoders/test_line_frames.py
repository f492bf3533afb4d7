"""Lines are read where they stand in their envelopes, and count for the broker that these name."""

import json
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streaming.decoders import LineReader, line_frames, quiet_columns
from streaming.devkit.bench.material import Population, heartbeat_line

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
    assert found.broker.tolist() == ([] if named < 0 else [3, 3])


def test_other_digits_do_not_matter() -> None:
    """Times and offsets of a shipper differ in each row."""
    rows = [{"@timestamp": f"2026-11-21T06:28:5{n}Z", "offset": n * 7919, "log": LINE} for n in range(9)]
    found = inside(*rows)
    assert (found.row.tolist(), found.broker.tolist()) == (list(range(9)), [-1] * 9)


@pytest.mark.parametrize(
    "envelope",
    [
        {"message": LINE, "stream": "stdout", "logtag": "P"},
        {"message": LINE, "partial_message": 1},
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


def test_only_lines_alone_are_read_beside_a_part_of_another() -> None:
    """A container runtime's next line may be the rest; a bare line is never one."""
    part = f"2026-11-20T23:51:50.9Z stdout P [2026-11-20 23:51:50,925] DEBUG {MESSAGE[:90]}"
    values = [LAYOUTS[name].encode() for name in ("kafka", "cri", "ecs", "strimzi")]
    for before, count in ((b"", 4), (part.encode(), 2)):
        rows = [before, *values]
        table = pa.table(
            {
                "partition": pa.array([0] * 5, pa.int32()),
                "offset": pa.array(range(5), pa.int64()),
                "timestamp_ms": pa.array([AT_MS] * 5, pa.int64()),
                "key": pa.array([None] * 5, pa.binary()),
                "value": pa.array(rows, pa.binary()),
            }
        )
        blocks = LineReader({}, "UTC").lines(table).blocks
        assert sum(len(block.beats.row) for block in blocks if block.beats is not None) == count


def test_frames_that_are_new_in_each_row_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would be learned for ever; each reader learns few of them, and others are known again."""
    monkeypatch.setattr(line_frames, "_known", line_frames.Frames())
    rows = [
        {"id": "".join(chr(97 + n // 26**place % 26) for place in range(4)), "log": LINE}
        for n in range(5_000)
    ]
    assert [len(inside(*rows).row) for _ in range(3)] == [200, 20, 20]
    assert len(inside({"log": LINE}).row) == 1
