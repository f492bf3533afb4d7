"""Order times and *now*: from the contents of the partitions alone."""

import msgspec
import pytest

from coordinator_model import observations as on
from coordinator_model.observations.answers import ShardLed
from coordinator_model.observations.base import Source
from coordinator_model.observations.bounds import NEVER
from coordinator_model.observations.control import Clock, EventsClock, PartitionAnew
from coordinator_model.observations.log import MemberFailed
from coordinator_model.observations.records import Commit, GroupRecorded, ModernRecord, OffsetsCommitted
from coordinator_model.observations.requests import Heartbeats
from coordinator_model.observations.seen import Seen
from coordinator_model.ordering import order as ordering
from coordinator_model.ordering.buffered import Run, cut
from coordinator_model.ordering.order import END_UNKNOWN, Order
from tests.unit.made_seen import seen

BEAT = Heartbeats(group="g", member_id="m", generation=1, error_code=0, times=(100, 200, 300))
LINE = MemberFailed(group="g", member_id="m")
COMMIT = OffsetsCommitted(group="g", commits=(Commit("t", 0, 1, 1),))


def clock(at_ms: int, *, end: int = -1, position: int = -1, feeds: int = 0, skew: int | None = None) -> Seen:
    what = Clock(
        sequence=at_ms,
        end_offset=end,
        position=position,
        events_partitions=feeds,
        skew_ms={} if skew is None else {1: skew},
    )
    return seen(at_ms, what, Source.CONTROL, offset=at_ms)


def copy(at_ms: int, *, partition: int = 0, offset: int = 0, skew: int | None = None) -> Seen:
    what = EventsClock(sequence=at_ms, skew_ms={} if skew is None else {1: skew})
    return seen(at_ms, what, Source.CONTROL, partition=partition, offset=offset)


def released(order: Order) -> list[tuple[int, int]]:
    """Return (order time, own time) of what is applied now."""
    order.advance()
    held, _ = order.release()
    return [(one.order_ms, one.seen.at_ms) for one in held]


def test_nothing_is_applied_before_a_clock_was_seen() -> None:
    """Without any clock the shard does not know how late it is, so everything waits."""
    order = Order()
    order.take([seen(1_000, LINE), seen(500_000, LINE, offset=1)])

    assert released(order) == []
    assert order.now_ms == -1


def test_now_is_the_least_that_any_partition_has_reached() -> None:
    """One partition of the events topic that is behind holds back the whole shard."""
    order = Order()
    order.take([clock(10_000, feeds=2), copy(9_000), copy(4_000, partition=1)])

    assert order.advance() == 4_000 - ordering.SETTLE_MS


def test_a_partition_without_a_clock_copy_holds_everything_back() -> None:
    """A partition of which nothing was read yet may still hold anything."""
    order = Order()
    order.take([clock(10_000, feeds=2), copy(9_000)])

    assert order.advance() == -1


def test_now_never_goes_back() -> None:
    """A clock that was corrected backwards changes nothing that has been applied."""
    order = Order()
    order.take([clock(10_000)])
    order.advance()
    order.take([clock(7_000)])

    assert order.advance() == 10_000


def test_the_slowest_brokers_clock_counts() -> None:
    """Skew delays now, so that no broker's lines are taken for late; it changes no event's time."""
    order = Order()
    order.take([clock(10_000, feeds=1, skew=-200), copy(10_000, skew=-200, offset=1), seen(9_450, LINE)])

    assert order.advance() == 10_000 - 200 - ordering.SETTLE_MS
    assert released(order) == [(9_450, 9_450)]


def test_a_clock_far_off_delays_nobody_else() -> None:
    """A broker whose clock is wrong by minutes costs nothing: what it says is dated by the driver's."""
    order = Order()
    order.take([clock(100_000, skew=-90_000)])

    assert order.advance() == 100_000


def test_a_late_line_takes_the_time_its_partition_had_reached() -> None:
    """A line that stands behind a clock copy cannot happen before what that copy proved."""
    order = Order()
    order.take([copy(10_000), seen(2_000, LINE, offset=1), clock(20_000, feeds=1), copy(20_000, offset=2)])

    assert released(order) == [(9_700, 2_000)]


def test_lines_of_one_broker_keep_their_order() -> None:
    """A broker's clock that steps back does not turn its lines round."""
    order = Order()
    order.take(
        [seen(5_000, LINE), seen(4_000, LINE, offset=1), clock(20_000, feeds=1), copy(20_000, offset=2)]
    )

    assert released(order) == [(5_000, 5_000), (5_000, 4_000)]


def test_a_line_from_the_future_counts_at_its_records_time() -> None:
    """A line with a wrong time zone does not wait for hours, nor make others wait."""
    order = Order()
    wrong = msgspec.structs.replace(seen(7_200_000, LINE), recorded_at_ms=3_000)
    order.take([wrong, seen(4_000, LINE, offset=1), clock(20_000, feeds=1), copy(20_000, offset=2)])

    assert released(order) == [(3_000, 3_000), (4_000, 4_000)]


def created(at_ms: int, *, offset: int) -> Seen:
    """Return what its producer dated, in the line and in the record alike: CreateTime."""
    return seen(at_ms, LINE, offset=offset)


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_a_line_of_the_future_in_a_topic_of_create_time_holds_up_nobody(batches: int) -> None:
    """The clock copy behind it proves that its time has not come: it and the lines after it count there."""
    order = Order()
    parts = [
        copy(1_000, offset=0),
        created(10**9, offset=1),
        seen(1_400, LINE, offset=2),
        copy(1_500, offset=3),
        seen(1_700, LINE, offset=4),
        copy(20_000, offset=5),
    ]
    size = len(parts) // batches
    for start in range(0, len(parts), size):
        order.take(parts[start : start + size])
        order.advance()
    order.take([clock(20_000, feeds=1)])

    assert released(order) == [(1_500, 1_500), (1_500, 1_400), (1_700, 1_700)]


def test_a_record_of_the_future_holds_up_no_other() -> None:
    """A broker whose clock was wrong once: its record counts at the clock whose end stands behind it."""
    order, other = Order(), Order()
    records = [seen(at, COMMIT, Source.OFFSETS, offset=n) for n, at in enumerate((900, 10**9, 1_100, 1_600))]
    ticks = [clock(1_000, end=1), clock(1_500, end=3), clock(2_000, end=4), clock(30_000, end=4)]
    order.take([*ticks, *records])
    for one in (records[:2], ticks[:1], records[2:3], ticks[1:2], records[3:], ticks[2:]):
        other.take(one)
        other.advance()

    expected = [(900, 900), (1_500, 10**9), (1_500, 1_100), (1_600, 1_600)]
    assert released(order) == expected
    assert released(other) == expected


def test_beats_of_the_future_count_at_the_clock_behind_them() -> None:
    """In a topic of CreateTime a heartbeat may be dated as its producer likes."""
    order = Order()
    beats = Heartbeats(group="g", member_id="m", generation=1, error_code=0, times=(1_100, 10**9))
    order.take([copy(1_000), seen(10**9, beats, Source.REQUEST_LOG, offset=1), copy(1_500, offset=2)])
    order.take([clock(20_000, feeds=1), copy(20_000, offset=3)])
    order.advance()
    _, runs = order.release()

    assert [run.times for run in runs] == [(1_100, 1_500)]


def test_lanes_come_back_to_proved_time() -> None:
    """Clocks of our own that told an hour too much, saved even, are disproved by the next ones."""
    order = Order()
    order.take([clock(3_610_000, end=1, feeds=1), copy(3_610_000)])
    order.take([seen(9_000, COMMIT, Source.OFFSETS), seen(9_500, LINE, offset=1)])
    assert order.advance() == 3_610_000 - ordering.SETTLE_MS
    order.take([clock(20_000, end=1, feeds=1), copy(20_000, offset=2), seen(20_100, LINE, offset=3)])

    assert order.advance() == 20_000 - ordering.SETTLE_MS
    assert order.regressed_ms == 3_590_000
    order.take([clock(21_000, end=1, feeds=1), copy(21_000, offset=4)])
    assert released(order) == [(9_000, 9_000), (9_500, 9_500), (20_100, 20_100)]


def test_what_waited_for_a_time_that_was_disproved_is_applied() -> None:
    """Lines read behind a clock copy of the future wait for their own time only, once it is disproved."""
    order = Order()
    order.take([copy(3_610_000), seen(9_500, LINE, offset=1), clock(10_000, feeds=1)])
    assert released(order) == []
    order.take([copy(11_000, offset=2), clock(11_000, feeds=1)])

    assert released(order) == [(9_500, 9_500)]


@pytest.mark.parametrize("skew", [-300_000, 60_000])
def test_a_broker_with_a_wrong_clock_is_dated_by_the_drivers(skew: int) -> None:
    """Its lines, records and heartbeats tell when they happened, less what its clock is off."""
    order, base = Order(), 1_000_000
    wrong = Clock(sequence=1, end_offset=1, events_partitions=1, skew_ms={1: skew}, wrong_ms=skew)
    beats = Heartbeats(
        group="g", member_id="m", generation=1, error_code=0, times=(base + skew + 200, base + skew + 300)
    )
    record = msgspec.structs.replace(RECORD, state_since_ms=base + skew + 100)
    order.take([copy(base, skew=skew), seen(base, wrong, Source.CONTROL)])
    order.take(
        [
            msgspec.structs.replace(seen(base + skew + 50, LINE, offset=1), recorded_at_ms=base + 60),
            msgspec.structs.replace(
                seen(base + skew + 300, beats, Source.REQUEST_LOG, offset=2), recorded_at_ms=base + 310
            ),
            seen(base + skew + 100, record, Source.OFFSETS, offset=1),
            seen(base + 400, LINE, offset=3, broker=2),
        ]
    )
    later = msgspec.structs.replace(wrong, end_offset=2)
    order.take([seen(base + 60_000, later, Source.CONTROL), copy(base + 60_000, offset=4, skew=skew)])
    order.advance()
    held, runs = order.release()

    assert [one.seen.at_ms - base for one in held] == [50, 100, 400]
    assert held[1].seen.what.state_since_ms == base + 100  # type: ignore[union-attr]
    assert held[1].seen.recorded_at_ms == base + 100
    assert [run.times for run in runs] == [(base + 200, base + 300)]


def test_a_clock_that_was_set_right_is_corrected_no_more() -> None:
    """The skew that is told lags behind; what fits the driver's time as it is stays so."""
    order = Order()
    order.take([copy(1_000_000, skew=-300_000), seen(1_000_050, LINE, offset=1), clock(1_000_000, feeds=1)])
    order.take([clock(1_060_000, feeds=1), copy(1_060_000, offset=2)])

    assert released(order) == [(1_000_050, 1_000_050)]


def test_offsets_hold_now_back_until_they_are_read() -> None:
    """A clock counts for the offsets partition once its end offset has been read."""
    order = Order()
    order.take([clock(10_000, end=5, position=3)])
    assert order.advance() == -1
    order.take([seen(9_900, COMMIT, Source.OFFSETS, offset=4)])

    assert order.advance() == 10_000


def test_a_clock_without_an_end_proves_no_time() -> None:
    """Its leader is gone: what was written before may not have been read.  So it is at the very start."""
    order = Order()
    order.take([clock(10_000, end=END_UNKNOWN)])
    assert order.advance() == -1
    order.take([clock(11_000, end=5, position=5), clock(12_000, end=END_UNKNOWN, position=5)])
    assert order.advance() == 11_000
    order.take([seen(11_500, COMMIT, Source.OFFSETS, offset=5), clock(13_000, end=6, position=5)])

    assert order.advance() == 13_000


def test_a_clock_without_an_end_tells_nothing_of_replication() -> None:
    """Nobody answered, so nobody said that a record was not there yet."""
    record = seen(1_000, RECORD, Source.OFFSETS, offset=7)
    blind = clock(4_000, end=END_UNKNOWN)

    assert lags([answer(900, 7), record, answer(3_000, 7)], [blind, answer(6_500, 8)]) == [3_000]


def test_a_backlog_is_judged_at_its_own_time() -> None:
    """While the offsets partition is being caught up, its newest record tells the time."""
    order = Order()
    order.take([clock(10_000, end=500, position=0), seen(2_000, COMMIT, Source.OFFSETS, offset=7)])

    assert order.advance() == 2_000


@pytest.mark.parametrize("first", ["clock", "record"])
def test_a_record_behind_a_clocks_end_comes_after_it(first: str) -> None:
    """A record that stands behind a clock's end comes after that clock, whichever was read first."""
    order = Order()
    ticks = [clock(10_000, end=5, position=5)]
    records = [seen(9_990, COMMIT, Source.OFFSETS, offset=5)]
    for batch in (ticks, records) if first == "clock" else (records, ticks):
        order.take(batch)
        order.advance()
    order.take([clock(20_000, end=6, position=6)])

    assert released(order) == [(10_000, 9_990)]


def test_a_record_behind_every_known_end_proves_no_time() -> None:
    """The next clock may say that it was not replicated until then, and another batch reads both at once."""
    order = Order()
    order.take([clock(5_000, end=1), clock(9_000, end=END_UNKNOWN)])
    records = [seen(at_ms, COMMIT, Source.OFFSETS, offset=n) for n, at_ms in enumerate((1_000, 6_000, 7_000))]
    order.take(records)
    before = released(order)

    order.take([clock(10_000, end=1), clock(11_000, end=3), clock(12_000, end=3)])

    assert (before, released(order)) == ([(1_000, 1_000)], [(10_000, 6_000), (10_000, 7_000)])


def test_a_run_is_cut_by_now() -> None:
    """Of folded heartbeats only those before now are applied; the rest waits."""
    order = Order()
    order.take([seen(300, BEAT, Source.REQUEST_LOG), clock(250)])
    order.advance()
    _, runs = order.release()

    assert [run.times for run in runs] == [(100, 200)]
    assert [run.times for run in order.runs] == [(300,)]
    assert runs[0].seen.at_ms == 200


def test_cut_keeps_a_late_run_together() -> None:
    """The times of a run that came late all count at the time its partition had reached."""
    late = Run(1_000, seen(300, BEAT, Source.REQUEST_LOG))

    assert cut(late, 1_000) == (None, late)
    assert cut(late, 1_001) == (late, None)


def test_too_many_waiting_are_applied_before_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits is bounded: the oldest beyond the limit are applied, and counted."""
    monkeypatch.setattr(ordering, "HELD_MAX", 2)
    order = Order()
    order.take([seen(1_000 * n, LINE, offset=n) for n in range(1, 5)])

    assert released(order) == [(1_000, 1_000), (2_000, 2_000)]
    assert order.overflowed == 2


def test_due_is_the_first_thing_that_waits() -> None:
    """A shard with nothing waiting is not due; else at its first order time."""
    order = Order()
    assert order.due_ms() == NEVER
    order.take([seen(300, BEAT, Source.REQUEST_LOG), seen(200, LINE, offset=1)])

    assert order.due_ms() == 100


RECORD = GroupRecorded(
    group="g",
    generation=1,
    protocol_type="consumer",
    protocol="range",
    leader_id="m",
    state_since_ms=-1,
    members=(),
)


EPOCH = ModernRecord(group="g", group_type="consumer", record_type=3, name="", tombstone=False)


def answer(at_ms: int, end: int) -> Seen:
    """Return a clock whose end a broker told."""
    what = Clock(sequence=at_ms, end_offset=end, is_answer=True)
    return seen(at_ms, what, Source.CONTROL, offset=at_ms)


def lags(*batches: list[Seen]) -> list[int]:
    """Return until when each released record was not replicated."""
    order = Order()
    found = []
    for batch in batches:
        order.take(batch)
        order.advance()
        found += [one.seen.what for one in order.release()[0]]
    return [what.uncommitted_ms for what in found if isinstance(what, GroupRecorded | ModernRecord)]


@pytest.mark.parametrize("what", [RECORD, EPOCH])
def test_a_record_behind_the_end_was_not_replicated_yet(what: on.AnyObservation) -> None:
    """While a replica is missed, a record stands in the log and counts for nobody: clocks show until when."""
    record = seen(1_000, what, Source.OFFSETS, offset=7)
    early, late = [answer(900, 7), answer(1_400, 7)], [answer(6_000, 7), answer(6_500, 8)]

    assert lags([*early, record, *late]) == [6_000]
    assert lags(early, [record], late) == [6_000]
    assert lags(early, late[:1], [record], late[1:]) == [6_000]


def test_a_record_that_was_replicated_at_once_has_no_lag() -> None:
    """A clock that falls between append and replication by chance changes no time."""
    record = seen(1_000, RECORD, Source.OFFSETS, offset=7)

    assert lags([answer(900, 7), record, answer(1_050, 7), answer(1_500, 8)]) == [-1]


def test_an_end_that_goes_back_says_nothing_of_replication() -> None:
    """A leader that does not know that it is none any more tells an old end."""
    record = seen(2_000, RECORD, Source.OFFSETS, offset=8)

    assert lags([answer(1_200, 8), record], [answer(6_000, 7), answer(6_500, 9)]) == [-1]


def test_an_end_that_nobody_was_asked_for_proves_no_lag() -> None:
    """A replay knows only what it has read so far."""
    record = seen(1_000, RECORD, Source.OFFSETS, offset=7)
    before, after = clock(6_000, end=7), clock(7_000, end=8)

    assert lags([before, record, after]) == [-1]


def test_time_goes_on_when_the_offsets_partition_was_made_anew() -> None:
    """An end of the old one, which nobody reached, would be waited for until the new one is as long."""
    order = Order()
    order.take([clock(1_000, end=5_000, position=10)])
    assert order.advance() == -1
    order.take([seen(2_000, PartitionAnew(), Source.CONTROL, offset=1_500), clock(2_000, end=3, position=0)])
    assert order.advance() == -1
    order.take([clock(3_000, end=3, position=3)])
    assert order.advance() == 3_000


def test_an_end_that_a_new_leader_took_back_holds_nothing_up_for_ever() -> None:
    """An unclean election: ten records that a clock had told are gone before anybody read them."""
    order = Order()
    order.take([clock(10_000, end=90, position=90), clock(11_000, end=100, position=90)])
    order.take([clock(at_ms, end=90, position=90) for at_ms in range(12_000, 42_000, 1_000)])
    assert order.advance() == 10_000
    order.take([clock(42_000, end=90, position=90)])
    assert order.advance() == 42_000


def test_an_end_that_is_lower_for_a_moment_proves_nothing() -> None:
    """A stale answer: what was told before it is still waited for."""
    order = Order()
    order.take([clock(10_000, end=90, position=90), clock(11_000, end=100, position=90)])
    for at_ms in range(12_000, 60_000, 10_000):
        order.take([clock(at_ms, end=90, position=90), clock(at_ms + 5_000, end=100, position=90)])
    assert order.advance() == 10_000


def test_a_line_of_the_future_before_the_first_copy_holds_no_run_up() -> None:
    """Its broker's clock, and so its record's time, were wrong for a moment when a first start read it."""
    order = Order()
    order.take([seen(10**9, LINE, offset=1), copy(1_500, offset=2), clock(1_500, feeds=1)])
    order.advance()
    beats = msgspec.structs.replace(BEAT, times=(1_700, 1_800))
    order.take([seen(1_800, beats, Source.REQUEST_LOG, offset=3)])
    order.take([copy(9_000, offset=4), clock(9_000, feeds=1)])
    order.advance()
    _, runs = order.release()
    assert [run.times for run in runs] == [(1_700, 1_800)]


def test_what_the_driver_dates_in_the_future_holds_up_no_other() -> None:
    """Its machine was an hour ahead for a moment, which its clocks did not believe."""
    order, led = Order(), ShardLed(leader=1, epoch=1)
    order.take([clock(10_000), seen(3_600_000, led, Source.CONTROL, offset=10_001)])
    order.take([clock(11_000), seen(11_500, led, Source.CONTROL, offset=11_001)])
    order.take([clock(12_000)])
    assert released(order) == [(11_000, 11_000), (11_500, 11_500)]
