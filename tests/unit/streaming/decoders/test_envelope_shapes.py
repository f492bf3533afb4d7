"""Lines are read where they stand in their envelopes, and count for the broker that these name."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streaming.decoders import quiet_columns
from streaming.decoders.envelope_shapes import Inside
from streaming.devkit.bench.material import Population, heartbeat_line

AT_MS = 1_795_218_710_925
LINE = heartbeat_line(Population(groups=10), 1, 1, AT_MS, 1).decode()


def inside(
    *envelopes: dict[str, Any] | str, named: int = -1, reader: quiet_columns.Reader | None = None
) -> Inside:
    """Return what is read inside these envelopes, whose keys name this broker."""
    texts = [one if isinstance(one, str) else json.dumps(one) for one in envelopes]
    values = pa.chunked_array([pa.array([text.encode() for text in texts], pa.binary())])
    return (reader or quiet_columns.Reader()).inside(values, np.full(len(texts), named))


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
        {"text": LINE},
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


def test_shapes_that_are_new_in_each_row_are_given_up() -> None:
    """They would be learned for ever."""
    rows = [
        {"id": "".join(chr(97 + n // 26**place % 26) for place in range(4)), "log": LINE}
        for n in range(20_000)
    ]
    reader = quiet_columns.Reader()
    assert len(inside(*rows, reader=reader).row) < len(rows)
    assert not len(inside({"log": LINE}, reader=reader).row)
