"""The clock records: what they say, where they go, and what is learnt from writing them."""

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, cast

import msgspec
import pyarrow as pa
import pytest
from kafka.errors import KafkaError, KafkaTimeoutError

from coordinator_model.observations.control import EventsClock
from coordinator_model.ordering.order import END_UNKNOWN
from streaming.decoders.buffered_lines import LineReader
from streaming.decoders.decoding_events import decode_lines
from streaming.driver.clock import Clock, interval_s, until_tick_s
from streaming.driver.driver_time import DriverTime
from streaming.driver.quiet import Quiet
from streaming.driver.report_turns import Asking
from streaming.driver.skews import Skews
from streaming.health.query_progress import Progress
from tests.unit.streaming.fakes import FakeConnections, FakeProducer, Written
from tests.unit.streaming.made_plans import plan


class FakeAdmin:
    """Knows the ends of partitions and who leads them: broker 1 the first, broker 2 the others."""

    def __init__(self, ends: list[int]) -> None:
        leaders = {n: 1 if n == 0 else 2 for n in range(len(ends))}
        self.connections = FakeConnections(leaders, dict(enumerate(ends)))

    def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
        """Return topics of two partitions, led by brokers 10 and 11."""
        partitions = [{"partition_index": n, "leader_id": 10 + n} for n in range(2)]
        return [{"name": name, "partitions": partitions} for name in topics]

    def close(self) -> None:
        """Nothing is open."""


def _clock(
    out: FakeProducer,
    progress: Progress,
    admin: FakeAdmin,
    *,
    told: DriverTime | None = None,
    events_partitions: int = 2,
    quiet: Quiet | None = None,
    along: Callable[[float], Collection[int]] = lambda _older_s: (),
    **changes: Any,
) -> Clock:
    clock = Clock(
        plan(**changes),
        run="r",
        secret="hush",  # noqa: S106 - of a test
        told=told,
        shard_count=3,
        events_partitions=events_partitions,
        producer=cast("Any", out),
        events_producer=cast("Any", out),
        ask=lambda: [1],
        reading=progress.reading,
        reports=progress,
        job=progress.state,
        quiet=quiet,
        along=along,
    )
    clock._inputs._admin = cast("Any", admin)
    return clock


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the monotonic clock, to be set."""
    now = [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def _values(out: FakeProducer, topic: str) -> list[dict[str, Any]]:
    return [msgspec.json.decode(one["value"]) for one in out.sent if one["topic"] == topic]


def test_a_tick_tells_the_time_the_ends_and_where_the_query_stands() -> None:
    """One record to the control topic; the time is not later than the ends it comes with."""
    out, progress = FakeProducer(), Progress("prod")
    progress.reading.reached({"__consumer_offsets": [4, 5, 6]})
    before_ms = time.time_ns() // 1_000_000
    _clock(out, progress, FakeAdmin([7, 8, 9])).tick()
    (record,) = _values(out, "control")
    assert before_ms <= record["at_ms"] <= time.time_ns() // 1_000_000
    assert record["kind"] == "clock"
    assert (record["ends"], record["positions"]) == ([7, 8, 9], [4, 5, 6])
    assert (record["events_partitions"], record["ask"], record["run"]) == (2, [1], "r")


def test_every_events_partition_gets_a_copy_of_the_same_tick() -> None:
    """What reads a copy has read all that stood before it in that partition."""
    out = FakeProducer()
    _clock(out, Progress("prod"), FakeAdmin([0, 0, 0])).tick()
    copies = [one for one in out.sent if one["topic"] == "events"]
    assert [one["partition"] for one in copies] == [0, 1]
    assert {one["key"] for one in copies} == {b"groupwatch-clock"}
    (record,) = _values(out, "control")
    assert {copy["at_ms"] for copy in _values(out, "events")} == {record["at_ms"]}


def test_disabled_sources_are_neither_asked_nor_written() -> None:
    """Without the events topic there is nobody to wait for; without offsets no end."""
    out = FakeProducer()
    _clock(out, Progress("prod"), FakeAdmin([]), events_topic=None, offsets_topic=None).tick()
    (record,) = _values(out, "control")
    assert (record["ends"], record["positions"], record["events_partitions"]) == ([], [], 0)
    assert {one["topic"] for one in out.sent} == {"control"}


class Machine:
    """The clocks of the machine that the driver runs on, and of two brokers; in ms, set by hand."""

    def __init__(self) -> None:
        self.wall_ms, self.mono_ms = 5_000_000.0, 70_000.0
        self.brokers_ms = [5_000_002.0, 5_000_002.0]

    def told(self) -> DriverTime:
        """Return what reads these clocks."""
        return DriverTime(lambda: self.wall_ms, lambda: self.mono_ms)

    def passes(self, ms: float) -> None:
        """Let time pass, as all clocks see it."""
        self.mono_ms += ms
        self.wall_ms += ms
        self.brokers_ms = [one + ms for one in self.brokers_ms if one >= 0]

    def sleeps(self, ms: float) -> None:
        """Let time pass that the monotonic clock does not count."""
        self.passes(ms)
        self.mono_ms -= ms


@pytest.fixture
def machine() -> Machine:
    return Machine()


def _ticks(machine: Machine, clock: Clock, out: FakeProducer, count: int) -> list[int]:
    """Tick each half second; returns the times told."""
    before = len(_values(out, "control"))
    for _ in range(count):
        out.appended = {("events", n): round(one) for n, one in enumerate(machine.brokers_ms)}
        clock.tick()
        machine.passes(500)
    return [record["at_ms"] for record in _values(out, "control")[before:]]


def test_time_never_stands_still_or_goes_back(machine: Machine) -> None:
    """A driver's clock that is set back a little still gives ascending records."""
    out = FakeProducer()
    clock = _clock(out, Progress("prod"), FakeAdmin([0, 0, 0]), told=machine.told())
    for back_ms in (0, 0, 900):
        machine.wall_ms -= back_ms
        clock.tick()
    assert [record["at_ms"] for record in _values(out, "control")] == [5_000_000, 5_000_001, 5_000_002]


@pytest.mark.parametrize("step_ms", [3_600_000, -3_600_000])
def test_a_wall_clock_that_is_set_wrongly_takes_no_group_along(machine: Machine, step_ms: int) -> None:
    """The brokers' append times do not confirm the step: time goes on evenly, and an operator is told."""
    out, progress = FakeProducer(), Progress("prod")
    clock = _clock(out, progress, FakeAdmin([0, 0, 0]), told=machine.told())
    assert _ticks(machine, clock, out, 5)[-1] == 5_002_000
    machine.wall_ms += step_ms
    assert _ticks(machine, clock, out, 200)[-1] == 5_102_000
    assert "3600 s " + ("ahead of" if step_ms > 0 else "behind") in progress.notices[0]
    machine.wall_ms -= step_ms
    _ticks(machine, clock, out, 1)
    assert progress.notices == []


def test_after_a_sleep_the_clock_tells_the_time_that_passed(machine: Machine) -> None:
    """A virtual machine resumed: the brokers' clocks went on as well, so the step is followed."""
    out, progress = FakeProducer(), Progress("prod")
    clock = _clock(out, progress, FakeAdmin([0, 0, 0]), told=machine.told())
    _ticks(machine, clock, out, 5)
    machine.sleeps(600_000)
    assert _ticks(machine, clock, out, 5)[-1] == round(machine.wall_ms) - 500
    assert progress.notices == []


def test_a_step_that_no_broker_can_confirm_is_believed_after_a_while(machine: Machine) -> None:
    """With CreateTime everywhere nobody stamps our records: half a minute later the wall clock counts."""
    out = FakeProducer()
    clock = _clock(out, Progress("prod"), FakeAdmin([0, 0, 0]), told=machine.told())
    machine.brokers_ms = []
    _ticks(machine, clock, out, 2)
    machine.wall_ms += 600_000
    assert _ticks(machine, clock, out, 20)[-1] < 5_100_000
    assert _ticks(machine, clock, out, 60)[-1] == round(machine.wall_ms) - 500


def test_a_clock_that_was_wrong_comes_back_when_it_is_corrected(machine: Machine) -> None:
    """It told an hour too much; set right, it tells less, in a sequence that goes on."""
    out = FakeProducer()
    machine.wall_ms += 3_600_000
    machine.brokers_ms = [machine.brokers_ms[0]] * 2
    clock = _clock(out, Progress("prod"), FakeAdmin([0, 0, 0]), told=machine.told(), events_partitions=1)
    assert _ticks(machine, clock, out, 5)[-1] == 8_602_000
    machine.wall_ms -= 3_600_000
    assert _ticks(machine, clock, out, 5)[-1] == 5_004_500
    sequences = [record["sequence"] for record in _values(out, "control")]
    assert sequences == sorted(set(sequences))


def test_where_the_brokers_agree_that_ours_is_wrong_theirs_counts(machine: Machine) -> None:
    """Groups live on the brokers' time; one broker alone against our clock is corrected instead."""
    out, progress = FakeProducer(), Progress("prod")
    machine.wall_ms += 60_000
    clock = _clock(out, progress, FakeAdmin([0, 0, 0]), told=machine.told())
    assert _ticks(machine, clock, out, 6)[-1] == round(machine.brokers_ms[0]) - 500
    assert "60 s ahead" in progress.notices[0]
    assert _values(out, "control")[-1]["skew_ms"] == {}
    machine.brokers_ms[1] -= 300_000
    for _ in range(20):
        _ticks(machine, clock, out, 1)
    assert _values(out, "control")[-1]["skew_ms"] == {"11": -300_000}


def test_while_nothing_is_acknowledged_the_clock_goes_on(now_s: list[float]) -> None:
    """A replica that is missed holds acknowledgements up; what happens meanwhile must be dated later."""
    out = FakeProducer(failing=frozenset({"control", "events"}))
    clock = _clock(out, Progress("prod"), FakeAdmin([0, 0, 0]))
    for _ in range(3):
        clock.tick()
        now_s[0] += 3
    assert len(_values(out, "control")) == 3
    assert not clock.await_tick(0)


def test_a_partition_that_owes_an_acknowledgement_gets_no_further_copy() -> None:
    """Lines of the brokers wait for the same partition, and copies must not come before them."""
    out = FakeProducer(failing=frozenset({"events"}))
    clock = _clock(out, Progress("prod"), FakeAdmin([0, 0, 0]))
    clock.tick()
    clock.tick()
    assert (len(_values(out, "control")), len(_values(out, "events"))) == (2, 2)
    clock._unacknowledged.clear()
    clock.tick()
    assert len(_values(out, "events")) == 4


def test_records_that_are_not_acknowledged_for_long_fail_the_tick(now_s: list[float]) -> None:
    """Nobody may believe that a clock was written which was not; and no more are piled up."""
    out = FakeProducer(failing=frozenset({"control"}))
    clock = _clock(out, Progress("prod"), FakeAdmin([0, 0, 0]))
    clock.tick()
    now_s[0] += 21
    with pytest.raises(KafkaTimeoutError, match="control-0"):
        clock.tick()
    assert (len(_values(out, "control")), clock.await_tick(0)) == (1, False)


def test_late_acknowledgements_are_taken_and_tell_nothing_of_skew(
    monkeypatch: pytest.MonkeyPatch, now_s: list[float]
) -> None:
    """When a broker stamped a record is known only if it answered at once."""
    monkeypatch.setattr(time, "time", lambda: 5_000.0)
    out = FakeProducer(failing=frozenset({"control", "events"}), appended_ms=9_000_000)
    clock = _clock(out, Progress("prod"), FakeAdmin([0, 0, 0]))
    clock.tick()
    for one in clock._unacknowledged:
        one.future.written = Written(one.topic, one.partition, 9_000_000)
    out.failing = frozenset()
    out.appended_ms = -1
    clock.tick()
    assert clock.await_tick(0)
    assert clock._skews.known() == {}


def test_a_leader_that_is_gone_hides_no_other_partitions_end() -> None:
    """Its own partitions' ends are unknown, and who looks for trouble is told which, until they are back."""
    out, progress, admin = FakeProducer(), Progress("prod"), FakeAdmin([7, 8, 9])
    clock = _clock(out, progress, admin)
    admin.connections.gone = {1}
    clock.tick()
    assert "__consumer_offsets (0)" in progress.trouble
    assert "broker 1" in progress.trouble
    admin.connections.gone = set()
    clock.tick()
    assert [record["ends"] for record in _values(out, "control")] == [[END_UNKNOWN, 8, 9], [7, 8, 9]]
    assert progress.trouble == ""


def test_a_clock_without_a_single_end_is_none() -> None:
    """A cluster that tells nothing is in trouble as a whole."""
    out, admin = FakeProducer(), FakeAdmin([7, 8, 9])
    admin.connections.gone = {1, 2}
    with pytest.raises(KafkaError, match="no end offset of __consumer_offsets"):
        _clock(out, Progress("prod"), admin).tick()
    assert out.sent == []


def test_the_skew_of_a_leader_is_learnt_from_when_it_appends(machine: Machine) -> None:
    """A broker that stamps our records a minute ahead is a minute ahead, and says so in its partition."""
    out = FakeProducer()
    clock = _clock(out, Progress("prod"), FakeAdmin([0, 0, 0]), told=machine.told())
    machine.brokers_ms[1] += 60_000
    _ticks(machine, clock, out, 2)
    assert _values(out, "control")[1]["skew_ms"] == {"11": 60_000}
    assert [copy["lead_ms"] for copy in _values(out, "events")[2:]] == [0, 60_000]


def test_copies_tell_the_same_skews_and_are_read_back() -> None:
    """A shard needs them where it reads the broker's lines, in the events topic."""
    out = FakeProducer()
    clock = _clock(out, Progress("prod"), FakeAdmin([0, 0, 0]))
    clock._skews.add(10, 2_000, 1_000, 1_000)
    clock.tick()
    copies = [one for one in out.sent if one["topic"] == "events"]
    rows = pa.table(
        {
            "partition": pa.array([one["partition"] for one in copies], pa.int32()),
            "offset": pa.array([0 for _ in copies], pa.int64()),
            "timestamp_ms": pa.array([one["timestamp_ms"] for one in copies], pa.int64()),
            "key": pa.array([one["key"] for one in copies], pa.binary()),
            "value": pa.array([one["value"] for one in copies], pa.binary()),
        }
    )
    whose: dict[str, Any] = {"run": "r", "secret": "hush"}
    decoded = decode_lines(LineReader({}, "UTC").lines(rows), shard_count=1, timezone="UTC", **whose)
    clocks = [seen.what for seen in decoded.cells[0] if isinstance(seen.what, EventsClock)]
    assert [one.skew_ms for one in clocks] == [{10: 1_000}, {10: 1_000}]
    assert _values(out, "control")[0]["skew_ms"] == {"10": 1_000}


class Rest:
    """A clock whose query is at rest, and the topics that it looks at and writes."""

    def __init__(self, now_s: list[float]) -> None:
        self.now_s = now_s
        self.out, self.admin, self.progress = FakeProducer(), FakeAdmin([7, 8, 9]), Progress("prod")
        self.ends = {0: 0, 1: 0}
        self.admin.connections.other_ends["events"] = self.ends
        self.quiet = Quiet(4, now=lambda: now_s[0])
        self.along: list[float] = []
        self.clock = _clock(self.out, self.progress, self.admin, quiet=self.quiet, along=self._write_along)
        for shard in range(-1, 3):
            self.quiet.due(shard, 2**62)
        for _ in range(4):
            self.tick()
        self.quiet.batch_begun()

    def _write_along(self, older_s: float) -> set[int]:
        self.along.append(older_s)
        return {2}

    def tick(self) -> list[dict[str, Any]]:
        """Let half a second pass; return the clocks written into the control topic."""
        self.now_s[0] += 0.5
        before = len(self.out.sent)
        self.clock.tick()
        sent = self.out.sent[before:]
        for one in sent:
            if one["topic"] == "events":
                self.ends[one["partition"]] += 1
        return [msgspec.json.decode(one["value"]) for one in sent if one["topic"] == "control"]


@pytest.fixture
def rest(now_s: list[float]) -> Rest:
    return Rest(now_s)


def test_while_only_our_own_copies_move_the_ends_nothing_is_written(rest: Rest) -> None:
    """Each record would make a batch, and a batch costs as much with no group as with ten thousand."""
    assert [len(rest.tick()) for _ in range(10)] == [0] * 10
    assert rest.progress.watermark.behind_s() < 10


def test_a_line_of_a_log_wakes_the_clock_in_the_very_next_tick(rest: Rest) -> None:
    """It is told as soon as if the clock had been written all the time."""
    rest.tick()
    rest.ends[1] += 1
    assert [len(rest.tick()) for _ in range(2)] == [1, 1]
    rest.quiet.batch_begun()
    assert [len(rest.tick()) for _ in range(2)] == [0, 0]


def test_a_commit_wakes_it_with_the_last_end_at_which_it_was_not_there(rest: Rest) -> None:
    """A record that a missing replica held back is known by that: it was not replicated a tick ago."""
    rest.tick()
    rest.admin.connections.ends[2] += 1
    first, second = rest.tick()
    assert (first["ends"], second["ends"]) == ([7, 8, 9], [7, 8, 10])
    assert (first["ask"], second["ask"]) == (False, [1])
    assert first["sequence"] < second["sequence"]


def test_while_shards_owe_a_report_each_tick_is_written(rest: Rest) -> None:
    """A start asks them one portion after the other, and is ready when the last has reported."""
    rest.progress.reading.begin(3, {"events": []})
    assert [len(rest.tick()) for _ in range(3)] == [1, 1, 1]
    rest.progress.reading.reported(range(-1, 3))
    rest.quiet.batch_begun()
    assert rest.tick() == []


def test_ends_that_are_unknown_wake_it(rest: Rest) -> None:
    """Nobody knows then whether something has moved."""
    rest.admin.connections.other_ends["events"] = {0: -5, 1: -5}
    assert [len(rest.tick()) for _ in range(3)] == [1, 1, 1]


def test_a_clock_that_nothing_moved_for_names_whom_it_is_for(rest: Rest) -> None:
    """The cluster's shard, who is asked or due, and whom the records beside it concern; so do the copies."""
    rest.quiet.due(0, rest.clock._last_ms + 1)
    (record,) = rest.tick()
    assert record["shards"] == [-1, 0, 1, 2]
    assert [copy["shards"] for copy in _values(rest.out, "events")[-2:]] == [[-1, 0, 1, 2]] * 2
    rest.ends[0] += 1
    (record,) = rest.tick()
    assert record["shards"] is None


def test_what_waits_is_written_just_before_a_clock(rest: Rest) -> None:
    """Nothing waits while more is written; then what this clock, maybe the last, would not prove read."""
    rest.along.clear()
    while not rest.tick():
        assert rest.along == []
    rest.ends[0] += 1
    rest.tick()
    rest.tick()
    assert rest.along == [1.0, 0.0, 0.3]
    for _ in range(20):
        rest.clock._skews.add(1, 0, 2_000, 2_000)  # this broker's clock is two seconds behind
    rest.tick()
    assert rest.along[3:] == [2.3]


def test_small_skews_are_noise() -> None:
    """What is less than the precision of the estimate is left out; one slow answer changes nothing."""
    skews = Skews()
    for _ in range(5):
        skews.add(1, 1_003, 1_000, 1_002)
        skews.add(2, 1_501, 1_000, 1_002)
    skews.add(2, 9_000, 1_000, 1_002)
    assert skews.known() == {2: 500}


def test_a_broker_that_leads_nothing_any_more_is_no_longer_measured() -> None:
    """It may have left, or somebody has set its clock: an hour later nothing is said of it."""
    skews = Skews()
    for second in range(20):
        skews.add(1, 300_000 + 1_000 * second, 1_000 * second, 1_000 * second)
    for minute in range(59):
        skews.add(2, 60_000 * minute, 60_000 * minute, 60_000 * minute)
    assert skews.known() == {1: 300_000}
    skews.add(2, 3_660_000, 3_660_000, 3_660_000)
    assert skews.known() == {}


@pytest.mark.parametrize(
    ("trigger_ms", "expected_s"), [(100, 0.05), (1_000, 0.5), (1_200, 0.4), (5_000, 0.5)]
)
def test_the_clock_ticks_twice_a_trigger(trigger_ms: int, expected_s: float) -> None:
    """Or more often: at least every half second."""
    assert interval_s(trigger_ms) == expected_s


@pytest.mark.parametrize(
    ("trigger_ms", "takes_s", "expected_s"),
    [(one, 0.0, 0.1) for one in (700, 1_000, 1_300, 2_000, 5_000)]
    + [(100, 0.0, 0.03), (1_000, 0.2, 0.2), (5_000, 0.9, 0.3), (100, 0.2, 0.03)],
)
def test_a_clock_is_written_shortly_before_each_batch(
    trigger_ms: int, takes_s: float, expected_s: float
) -> None:
    """Whenever the job began: the batch reaches as far as that clock, if it is written by then."""
    now_s, trigger_s = 1_795_000_000.123, trigger_ms / 1000
    ticks = []
    for _ in range(40):
        now_s += until_tick_s(trigger_ms, now_s, takes_s)
        ticks.append(now_s)
        now_s += 0.003  # a tick takes some time
    assert max(after - before for before, after in itertools.pairwise(ticks)) == pytest.approx(
        interval_s(trigger_ms), abs=1e-5
    )
    batches = (trigger_s * n for n in itertools.count(int(ticks[1] / trigger_s) + 1))
    for batch_s in itertools.takewhile(lambda one: one < ticks[-1], batches):
        lead_s = batch_s - max(one for one in ticks if one < batch_s)
        assert lead_s == pytest.approx(expected_s, abs=0.001)


def test_a_tick_comes_as_early_as_the_last_ones_took(
    now_s: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine Spark would miss the clock; after five quick ones all is as before."""
    monkeypatch.setattr(time, "time", lambda: 1_795_000_000.0)
    takes_s, leads_s = [0.25, *[0.01] * 5], []

    def take(_older_s: float) -> tuple[int, ...]:
        now_s[0] += takes_s.pop(0)
        return ()

    clock = _clock(FakeProducer(), Progress("prod"), FakeAdmin([7, 8, 9]), along=take, trigger_ms=1_000)
    while takes_s:
        clock.tick()
        leads_s.append(0.5 - clock._rest_s(0.0))
    assert leads_s == pytest.approx([*[0.25] * 5, 0.1])


class Impatient(threading.Event):
    """An event that nobody waits for: it notes whether it had been set, and how long it was to be awaited."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[bool] = []
        self.timeouts: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        """Note it."""
        assert timeout is not None
        self.found.append(self.is_set())
        self.timeouts.append(timeout)
        return self.is_set()


def _ticking(tick: Callable[[Clock], None], trigger_ms: int) -> tuple[Clock, Any]:
    """Return a clock whose ticks do only this, and what it waits with."""
    clock = Clock.__new__(Clock)
    clock._plan, clock._unacknowledged, clock._reports = plan(trigger_ms=trigger_ms), [], Progress("prod")
    clock._stopped, clock._woken, clock._took_s = threading.Event(), Impatient(), deque()
    clock.tick = lambda: tick(clock)  # type: ignore[method-assign]
    return clock, clock._woken


@pytest.mark.parametrize(
    ("past_s", "took_s", "expected_s"),
    [
        (0.4, 0.03, 0.47),
        (0.4, 0.495, 0.005),
        (0.4, 0.52, 0.0),
        (0.4, 1.2, 0.0),
        (0.5, 0.03, 0.37),
        (0.92, 0.495, 0.005),
    ],
)
def test_the_clock_waits_for_the_next_batch(
    past_s: float, took_s: float, expected_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But half a second after the last tick began at most, whenever that was and however long it took."""
    now_s = [1_795_000_000 + past_s]
    monkeypatch.setattr(time, "time", lambda: now_s[0])
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    left = [took_s, 0.01]

    def tick(clock: Clock) -> None:
        now_s[0] += left.pop(0)
        if not left:
            clock._stopped.set()

    clock, woken = _ticking(tick, 1_000)
    clock._run_forever()
    assert woken.timeouts == [pytest.approx(expected_s, abs=1e-5)]


def test_a_clock_that_is_woken_ticks_at_once() -> None:
    """It does not wait for its turn: a call while it ticks is kept until then, and once only."""
    things: list[Callable[[Clock], None]] = [
        Clock.wake,
        lambda _: None,
        Clock.wake,
        lambda clock: clock._stopped.set(),
    ]

    def tick(clock: Clock) -> None:
        things.pop(0)(clock)

    clock, woken = _ticking(tick, 60_000)
    clock._run_forever()
    assert woken.found == [True, False, True]


def test_shards_that_owe_a_report_are_asked_until_they_give_it() -> None:
    """At the start all, then the rest again after a while, then one after another."""
    now = [0.0]
    progress = Progress("prod")
    progress.reading.begin(2, {})
    asking = Asking(2, progress.reading, now=lambda: now[0])
    assert asking() == [-1, 0, 1]
    assert asking() is False
    progress.reading.reported([-1, 1])
    assert asking() is False  # its batch had perhaps begun before
    progress.reading.reported([])
    assert asking() == [0]
    progress.reading.reported([0])
    turns: list[object] = []
    for _ in range(4):
        now[0] += 2
        turns.append(asking())
    assert turns == [[0], [1], [-1], [0]]
    now[0] += 5
    assert asking() == [1, -1]  # while no clock was written, a turn was missed


@pytest.mark.parametrize(("groups", "second"), [(0, 17), (2_000, 33), (8_500, 20), (33_000, 17)])
def test_the_second_portion_of_reports_is_as_large_as_groups_are_few(groups: int, second: int) -> None:
    """The first tells how many groups a shard has; of 10,000 groups in all, two portions are enough."""
    progress = Progress("prod")
    progress.reading.begin(49, {})
    known = [0]
    asking = Asking(49, progress.reading, groups=lambda: known[0])
    first = asking()
    assert first == list(range(-1, 16))
    progress.reading.reported(first)
    known[0] = groups

    told = asking()
    assert isinstance(told, list)
    assert (told[0], len(told)) == (16, second)
