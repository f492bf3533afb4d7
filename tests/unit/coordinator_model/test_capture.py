"""Captured rows, and a mirror of a whole cluster that is fed by hand."""

import pytest

from coordinator_model.capture import (
    CaptureError,
    ClockRow,
    EndOffsetRow,
    LogRow,
    Mirror,
    OffsetsRow,
    read_row,
    shard_count_of,
)
from coordinator_model.kafka.hashing import shard_of
from coordinator_model.kafka.states import GroupState
from coordinator_model.observations.base import Source
from coordinator_model.observations.log import JoinPhaseEnded, MemberJoined, Reason, RebalanceStarted
from coordinator_model.observations.records import GroupRecorded, MemberRecord
from coordinator_model.state.group import Transition
from tests.unit.made_seen import seen


@pytest.mark.parametrize(
    ("line", "row"),
    [
        pytest.param(
            '{"source": "offsets", "partition": 3, "timestamp_ms": 5, "key": "0aff", "value": null}',
            OffsetsRow(partition=3, timestamp_ms=5, key="0aff"),
            id="offsets",
        ),
        pytest.param(
            '{"source": "log", "broker": 1, "timestamp_ms": 5, "text": "x"}',
            LogRow(broker=1, timestamp_ms=5, text="x"),
            id="log",
        ),
        pytest.param(
            '{"source": "end_offset", "topic": "t", "partition": 0, "offset": 9, "timestamp_ms": 5}',
            EndOffsetRow(topic="t", partition=0, offset=9, timestamp_ms=5),
            id="end-offset",
        ),
        pytest.param('{"source": "clock", "timestamp_ms": 5}', ClockRow(timestamp_ms=5), id="clock"),
    ],
)
def test_rows_of_every_source_are_read(line: str, row: object) -> None:
    """The four forms of a captured row are those of the contract."""
    assert read_row(line) == row


@pytest.mark.parametrize(
    "line",
    ["", "[]", '{"source": "else"}', '{"source": "clock"}', '{"source": "clock", "timestamp_ms": "5"}'],
)
def test_other_lines_are_refused(line: str) -> None:
    """A line that is no captured row says why, and nothing else raises."""
    with pytest.raises(CaptureError):
        read_row(line)


def test_keys_are_hex() -> None:
    """Key and value are bytes in hex; a tombstone has no value."""
    row = OffsetsRow(partition=0, timestamp_ms=1, key="0aff")

    assert (row.key_bytes(), row.value_bytes()) == (b"\x0a\xff", None)
    with pytest.raises(CaptureError, match="not hex"):
        OffsetsRow(partition=0, timestamp_ms=1, key="0x").key_bytes()


def test_the_number_of_partitions_follows_from_where_groups_live() -> None:
    """Kafka's default is taken if it fits what the lines say, else the smallest number that does."""
    names = [f"group-{n}" for n in range(40)]

    assert shard_count_of({}) == 50
    assert shard_count_of({name: shard_of(name, 50) for name in names}) == 50
    assert shard_count_of({name: shard_of(name, 12) for name in names}) == 12


def test_a_record_and_its_lines_make_one_story() -> None:
    """Lines and records that are fed together are told in the order of time, across shards."""
    mirror = Mirror(
        cluster="c", shard_count=2, settings=b"{}", judge=None, feeds=1, offsets=True, strict=True
    )
    shard = shard_of("g", 2)
    reason = Reason(kind="member_joined", text="Adding new member")
    record = GroupRecorded(
        group="g",
        generation=1,
        protocol_type="consumer",
        protocol="range",
        leader_id="m",
        state_since_ms=3_000,
        members=(MemberRecord(member_id="m", client_id="c", client_host="/h", session_timeout_ms=45_000),),
    )
    mirror.feed({shard: [seen(4_000, record, Source.OFFSETS)]})
    mirror.feed(
        {
            shard: [
                seen(1_000, MemberJoined(group="g", member_id="m")),
                seen(1_001, RebalanceStarted(group="g", generation=0, reason=reason), offset=1),
                seen(3_000, JoinPhaseEnded(group="g", generation=1, member_count=1), offset=2),
            ]
        }
    )
    told = [*mirror.advance(4_000), *mirror.finish(4_000)]

    assert all(isinstance(one, Transition) for one in told)
    assert [(one.to_state, one.at_ms, one.source) for one in told] == [
        (GroupState.EMPTY, 1_000, "coordinator_log"),
        (GroupState.PREPARING_REBALANCE, 1_001, "coordinator_log"),
        (GroupState.COMPLETING_REBALANCE, 3_000, "coordinator_log"),
        (GroupState.STABLE, 4_000, "offsets"),
    ]
    assert mirror.divergences == []


def test_a_partition_that_cannot_be_is_no_row() -> None:
    """A replay counts it and goes on."""
    for partition in (-1, 2**31):
        row = b'{"source": "offsets", "partition": %d, "timestamp_ms": 1, "key": "00"}' % partition
        with pytest.raises(CaptureError):
            read_row(row)
