"""Which ticks of the clock are written: those that the shards need, and one each ten seconds."""

import pytest

from streaming.driver.control_writer import ControlWriter
from streaming.driver.quiet import QUIET_S, Need, Quiet
from tests.unit.streaming.fakes import FakeProducer

NEVER_MS = 2**62


class Night:
    """A query of two shards, a clock that ticks each half second, and batches that take what it wrote."""

    def __init__(self) -> None:
        self.s = 1_000.0
        self.quiet = Quiet(2, now=lambda: self.s)
        self.has_read = True
        self.need = Need(is_there=False)

    def ms(self) -> int:
        """Return the driver's time."""
        return round(self.s * 1000)

    def dues(self, *due_ms: int) -> None:
        """Let a batch end in which the shards were looked at."""
        for shard, one in enumerate(due_ms):
            self.quiet.due(shard, one)

    def tick(self) -> bool:
        """Let half a second pass; return whether the clock was written."""
        self.s += 0.5
        self.need = self.quiet.need(self.ms(), slowest_ms=0, has_read=self.has_read)
        if self.need.is_there:
            self.quiet.written(self.ms(), self.need.shards)
        return self.need.is_there

    def ticks(self, count: int) -> list[bool]:
        """Tick so often."""
        return [self.tick() for _ in range(count)]

    def batch(self) -> None:
        """Let a batch begin that takes all that was written."""
        self.s += 0.1
        self.quiet.batch_begun()


def _told(night: Night) -> frozenset[int] | None:
    """Return whom the clock of the next tick is for."""
    assert night.tick()
    return night.need.shards


@pytest.fixture
def night() -> Night:
    """Return a query that has been at rest for a while."""
    night = Night()
    night.ticks(3)
    night.batch()
    night.dues(NEVER_MS, NEVER_MS)
    return night


def test_while_nothing_happens_a_clock_comes_each_ten_seconds(night: Night) -> None:
    """Whatever waits for a batch waits no longer than that."""
    assert sum(night.ticks(100)) == 100 * 0.5 // QUIET_S


def test_until_every_shard_has_told_its_deadline_each_tick_is_written() -> None:
    """After a start nobody knows who waits for what."""
    night = Night()
    night.quiet.due(0, NEVER_MS)
    night.ticks(4)
    night.batch()
    assert all(night.ticks(10))
    night.quiet.due(1, NEVER_MS)
    assert not any(night.ticks(5))


def test_what_moved_gets_a_clock_at_once_and_one_after_it_is_settled(night: Night) -> None:
    """A log line may come 300 ms after its time, so the clock of the same tick may be too early for it."""
    night.quiet.moved()
    assert night.ticks(2) == [True, True]
    night.batch()
    assert not any(night.ticks(5))


def test_until_a_batch_takes_what_moved_the_clock_goes_on(night: Night) -> None:
    """It may have a deadline that falls before the batch; afterwards the shard has told it."""
    night.quiet.moved()
    assert all(night.ticks(8))
    night.batch()
    assert not night.tick()


def test_lines_of_a_broker_with_a_slow_clock_are_waited_for(night: Night) -> None:
    """Its lines count as read only once its own clock has passed them."""
    night.quiet.moved()
    night.ticks(2)
    night.batch()
    assert night.quiet.need(night.ms(), slowest_ms=-2_000, has_read=True).is_there
    assert not night.quiet.need(night.ms(), slowest_ms=0, has_read=True).is_there


def test_a_deadline_is_met_on_time_by_one_clock(night: Night) -> None:
    """Not up to ten seconds later; and the shard has told its next one when it has read that clock."""
    night.dues(NEVER_MS, night.ms() + 2_000)
    assert night.ticks(3) == [False, False, False]
    night.has_read = False
    assert night.ticks(4) == [True, False, False, False]
    night.has_read = True
    night.dues(NEVER_MS, NEVER_MS)
    assert not night.tick()


def test_a_deadline_after_the_first_is_met_as_well_while_no_batch_ends(night: Night) -> None:
    """Each deadline needs a clock that reaches it."""
    night.dues(night.ms() + 500, night.ms() + 1_500)
    night.has_read = False
    assert night.ticks(4) == [True, False, True, False]


def test_a_clock_that_nothing_moved_for_is_for_those_that_are_due(night: Night) -> None:
    """Nobody else has a use for it, and each shard that gets it costs a call and the moving of its bytes."""
    night.dues(night.ms() + 500, NEVER_MS)
    assert _told(night) == frozenset({0})
    night.dues(NEVER_MS, NEVER_MS)
    while not night.tick():
        pass
    assert night.need.shards == frozenset()
    night.quiet.moved()
    assert _told(night) is None


def test_a_deadline_that_is_learnt_late_is_met_although_others_had_a_clock_since(night: Night) -> None:
    """That clock was not for this shard."""
    night.has_read = False
    night.dues(night.ms() + 500, NEVER_MS)
    assert night.tick()
    night.dues(NEVER_MS, night.ms() - 100)
    assert _told(night) == frozenset({1})


def test_a_shard_that_still_waits_when_it_has_read_the_clock_gets_the_next(night: Night) -> None:
    """A broker with a slow clock, or a partition without a leader, holds its time back."""
    night.dues(NEVER_MS, night.ms() + 500)
    assert night.ticks(4) == [True] * 4


def test_what_only_confirms_waits_for_the_next_clock(night: Night) -> None:
    """And comes before it, so that it takes effect at its own time; what is news wakes the clock."""
    out = FakeProducer()
    writer = ControlWriter(out, night.quiet, now=lambda: night.s)
    writer.later("control", b"first", {3})
    night.ticks(3)
    writer.later("control", b"second", {4, 5})
    assert writer.write_waiting(older_s=1.0) == {3}
    assert [one["value"] for one in out.sent] == [b"first"]
    assert writer.write_waiting() == {4, 5}
    assert [one["value"] for one in out.sent] == [b"first", b"second"]
    assert not night.tick()
    writer.later("control", b"third", {6})
    writer.send("control", value=b"news")
    assert night.tick()
    # What was told before the news must not be read behind it: the end of a topic seems to have come back.
    assert [one["value"] for one in out.sent] == [b"first", b"second", b"third", b"news"]


def test_too_much_of_what_can_wait_wakes_the_clock(night: Night) -> None:
    """The memory for it is bounded."""
    writer = ControlWriter(FakeProducer(), night.quiet, now=lambda: night.s)
    for number in range(2_000):
        assert number < 1_999 or not night.tick()
        writer.later("control", b"", ())
    assert night.tick()
