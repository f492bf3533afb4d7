"""Lines of several members become one observation, which says what one of each would."""

import json
import random
from collections import Counter
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from coordinator_model import observations as on
from coordinator_model.observations.base import Source
from coordinator_model.observations.requests import Client, CommitsAnswered, GroupHeard, Heartbeats
from coordinator_model.observations.seen import Seen
from coordinator_model.ordering.buffered import apart
from coordinator_model.ordering.lanes import BEYOND_MS
from coordinator_model.ordering.order import Order
from streaming.decoders.buffered_lines import LineReader
from streaming.decoders.clock_copies import CLOCK_KEY
from streaming.decoders.decoded import Decoded
from streaming.decoders.decoding_events import Row, decode_lines
from streaming.decoders.together import Span, spans
from streaming.devkit.bench.material import Population, heartbeat_line
from streaming.devkit.bench.mixed_lines import commit_line, modern_line
from tests.unit.made_seen import seen

POPULATION = Population(groups=6)
AT_MS = 1_760_000_000_000
SHARDS = 3


def clock(offset: int, at_ms: int, partition: int = 0, skew_ms: int = 0) -> Row:
    value = {"at_ms": at_ms, "sequence": at_ms, "skew_ms": {"1": skew_ms}}
    return partition, offset, at_ms, CLOCK_KEY, json.dumps(value).encode()


def decoded(rows: list[Row], *, puts_together: bool, backlog_ends: dict[int, int] | None = None) -> Decoded:
    names = ("partition", "offset", "timestamp_ms", "key", "value")
    types = (pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.binary())
    columns = zip(*rows, strict=True)
    table = pa.table({n: pa.array(list(one), t) for n, t, one in zip(names, types, columns, strict=True)})
    lines = LineReader(backlog_ends or {}, "UTC").lines(table)
    return decode_lines(lines, shard_count=SHARDS, timezone="UTC", puts_together=puts_together)


def heard(result: Decoded) -> list[Seen]:
    return [one for cell in result.cells.values() for one in cell if type(one.what) is GroupHeard]


def one_by_one(result: Decoded) -> Counter[Any]:
    """Return each line of a member with its time, however they were coalesced, and everything else."""
    found: Counter[Any] = Counter()
    for shard, cell in result.cells.items():
        for one in (each for whole in cell for each in apart(whole)):
            what = one.what
            if isinstance(what, Heartbeats | CommitsAnswered):
                # Of two clients of one member, the last in a stretch counts for all its lines.
                said = msgspec.structs.replace(what, times=(), client=Client())
                place = shard, one.partition, one.broker, one.backlog
                found.update((place, said, time) for time in what.times)
            else:
                found[shard, msgspec.msgpack.encode(one)] += 1
    return found


def effects(result: Decoded, shard: int) -> Counter[Any]:
    """Return when each line of a member takes effect, and what else a shard's buffer holds of the rows."""
    order = Order()
    at_ms = AT_MS - 60_000
    order.take([seen(at_ms, on.Clock(sequence=1, events_partitions=2), Source.CONTROL)])
    for partition in range(2):
        copy = on.EventsClock(sequence=1)
        order.take([seen(at_ms, copy, Source.CONTROL, partition=partition, offset=-1)])
    order.take(result.cells.get(shard, []))
    found: Counter[Any] = Counter()
    for run in order.runs:
        for one in apart(run.seen):
            what: Any = one.what
            said = msgspec.structs.replace(what, times=(), client=Client())
            found.update((said, one.broker, max(run.floor_ms, time)) for time in what.times)
    found.update((one.order_ms, one.seen) for one in order.held)
    found.update((number, lane.reached_ms, lane.clock_ms) for number, lane in order.events.items())
    return found


def some_rows(chance: random.Random, *, impossible: bool) -> list[Row]:
    """Return lines in two partitions with clock copies between them, some of them late or odd.

    ``impossible``: some have times that a broker with a right clock in this zone cannot have written.
    """
    rows: list[Row] = []
    lates: tuple[int, ...] = (0, 0, 5, 5, 5, 100, 290, 310, 2_000, 50_000, -100, -4_000)
    lates += (70_000, 3_600_000, -6_000, -3_600_000) if impossible else ()
    for partition in range(2):
        now_ms, skew_ms = AT_MS, chance.choice((0, 0, 0, 40, -900, 7_000))
        for offset in range(chance.randint(1, 90)):
            now_ms += chance.choice((1, 20, 20, 150, 900))
            if chance.random() < 0.15:
                rows.append(clock(offset, now_ms, partition, skew_ms))
                continue
            late_ms = chance.choice(lates)
            make = chance.choice((heartbeat_line,) * 5 + (commit_line,) * 4 + (modern_line,))
            line = make(POPULATION, chance.randrange(6), chance.randrange(3), now_ms - late_ms, offset)
            if chance.random() < 0.1:
                line = line.replace(b'"errorCode":0', b'"errorCode":27')
            if chance.random() < 0.1:
                line = line.replace(b'"connection":"', b'"connection":"x')
            if chance.random() < 0.05:
                line = line.replace(b'"groupId":"t', b'"groupId":"\xff')
            key = b"%d" % chance.choice((1, 1, 1, 2))
            rows.append((partition, offset, now_ms, key, line))
    return rows


@pytest.mark.parametrize("seed", range(60))
def test_lines_together_say_what_each_says(seed: int) -> None:
    """Nothing is lost or told twice, and each line takes effect when it would by itself.

    Of a line with an impossible time that depends on the lines beside it, as ever.
    """
    chance = random.Random(seed)
    impossible = seed % 2 == 0
    rows = some_rows(chance, impossible=impossible)
    ends = {0: chance.choice((0, 0, 5))}
    together = decoded(rows, puts_together=True, backlog_ends=ends)
    singly = decoded(rows, puts_together=False, backlog_ends=ends)

    assert one_by_one(together) == one_by_one(singly)
    assert together.counts == singly.counts
    assert together.bad == singly.bad
    for shard in range(0 if impossible else SHARDS):
        assert effects(together, shard) == effects(singly, shard)


def test_most_lines_are_put_together() -> None:
    """Or the test above compares little."""
    results = [
        decoded(some_rows(random.Random(seed), impossible=False), puts_together=True) for seed in range(60)
    ]
    told = [one.what for result in results for one in heard(result) if isinstance(one.what, GroupHeard)]

    assert sum(len(one.members) for one in told) > 500
    assert sum(any(len(member.beats) > 1 for member in one.members) for one in told) > 50


def test_members_of_a_group_are_one_observation_across_clocks() -> None:
    """It has the first line's place, and all times of each member in their order."""
    rows: list[Row] = [
        (0, 10, AT_MS + 7, b"1", heartbeat_line(POPULATION, 0, 0, AT_MS, 1)),
        clock(11, AT_MS + 50),
        (0, 12, AT_MS + 107, b"1", heartbeat_line(POPULATION, 0, 1, AT_MS + 100, 2)),
        (0, 13, AT_MS + 207, b"1", commit_line(POPULATION, 0, 0, AT_MS + 200, 3)),
        clock(14, AT_MS + 250),
        (0, 15, AT_MS + 307, b"1", heartbeat_line(POPULATION, 0, 0, AT_MS + 300, 4)),
    ]
    result = decoded(rows, puts_together=True)
    (one,) = heard(result)

    assert (one.offset, one.at_ms, one.recorded_at_ms, one.broker) == (10, AT_MS + 300, AT_MS + 307, 1)
    assert isinstance(one.what, GroupHeard)
    assert one.what.since_ms == AT_MS
    first, second = POPULATION.member_ids(0)[:2]
    assert {heard.member_id: (heard.beats, heard.commits) for heard in one.what.members} == {
        first: ((AT_MS, AT_MS + 300), (AT_MS + 200,)),
        second: ((AT_MS + 100,), ()),
    }


def test_a_member_with_two_clients_stands_by_itself() -> None:
    """Which of them it has now shows in the order of its lines."""
    lines = [heartbeat_line(POPULATION, 0, n % 2, AT_MS + 10 * n, n) for n in range(6)]
    lines[2] = lines[2].replace(b'"connection":"', b'"connection":"x')
    rows: list[Row] = [(0, n, AT_MS + 10 * n, b"1", line) for n, line in enumerate(lines)]
    result = decoded(rows, puts_together=True)
    (one,) = heard(result)

    assert isinstance(one.what, GroupHeard)
    first, second = POPULATION.member_ids(0)[:2]
    assert [member.member_id for member in one.what.members] == [second]
    singly = [one.what for cell in result.cells.values() for one in cell if isinstance(one.what, Heartbeats)]
    assert [(what.member_id, len(what.times)) for what in singly] == [(first, 3)]


def test_what_is_late_stands_by_itself() -> None:
    """A line that comes after a clock, and is dated long before it, counts from that clock on."""
    rows: list[Row] = [
        clock(11, AT_MS + 5_000),
        (0, 12, AT_MS + 5_007, b"1", heartbeat_line(POPULATION, 0, 1, AT_MS, 2)),
    ]
    assert heard(decoded(rows, puts_together=True)) == []


def test_what_is_dated_after_its_record_stands_by_itself() -> None:
    """Only the shard knows whether a line's zone or clock is wrong."""
    rows: list[Row] = [(0, 12, AT_MS, b"1", heartbeat_line(POPULATION, 0, 1, AT_MS + 6_000, 2))]
    assert heard(decoded(rows, puts_together=True)) == []


def test_times_ascend_whatever_the_order_of_lines() -> None:
    """A broker's threads write their lines when they come to it."""
    times = (AT_MS + 20, AT_MS, AT_MS + 10)
    rows: list[Row] = [
        (0, n, AT_MS + 30, b"1", heartbeat_line(POPULATION, 0, 0, time, n)) for n, time in enumerate(times)
    ]
    (one,) = heard(decoded(rows, puts_together=True))

    assert isinstance(one.what, GroupHeard)
    assert one.what.members[0].beats == (AT_MS, AT_MS + 10, AT_MS + 20)
    assert (one.what.since_ms, one.at_ms) == (AT_MS, AT_MS + 20)


def test_a_wrong_clock_leaves_every_line_by_itself() -> None:
    """The buffer corrects the times of such a broker's lines, each by the clock next to it."""
    assert set(spans([(AT_MS, on.EventsClock(sequence=1, skew_ms={2: 7_000}))])) == {Span(until_ms=-1)}
    assert set(spans([(AT_MS, on.EventsClock(sequence=1, lead_ms=-7_000))])) == {Span(until_ms=-1)}


def test_no_line_is_dated_so_that_a_later_clock_bounds_it() -> None:
    """Such a time is no true one, and the buffer replaces it."""
    (before, after) = spans([(AT_MS, on.EventsClock(sequence=1, skew_ms={1: 100}))])

    assert before.until_ms <= AT_MS + BEYOND_MS
    assert after.since_ms == AT_MS - 300 + 100
