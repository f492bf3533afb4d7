"""How far the watermark is behind the wall clock, and when that is more than being late."""

import pytest

from coordinator_model.ordering import END_UNKNOWN
from streaming.control.clocks_read import ClocksRead
from streaming.health.watermark import TICKS_MAX, Watermark


class Now:
    """A monotonic clock that goes when told."""

    def __init__(self) -> None:
        self.s = 500.0

    def __call__(self) -> float:
        """Return the time it was set to."""
        return self.s

    @property
    def ms(self) -> int:
        """Return the wall clock, which goes along."""
        return 10_000_000 + round(self.s * 1000)


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def watermark(now: Now) -> Watermark:
    return Watermark(now)


def _second(now: Now, watermark: Watermark, **lacking: bool) -> None:
    """Let a second pass in which all clocks are written, and read but for what is lacking."""
    now.s += 1
    watermark.told(now.ms, [10, 20])
    if not lacking.get("offsets"):
        watermark.reached([10, 20])
    control_ms = -1 if lacking.get("control") else now.ms
    events = {0: now.ms} if lacking.get("events") else {0: now.ms, 1: now.ms}
    watermark.take_clocks(ClocksRead(control_ms=control_ms, events=events, partitions=2))


def test_whatever_is_read_no_more_holds_the_watermark_back(now: Now, watermark: Watermark) -> None:
    """Control, each partition of the events topic, the offsets topic: the least counts, and is named."""
    for lacking, slowest in (
        ("control", "the control topic"),
        ("events", "partition 1 of the events topic"),
        ("offsets", "the offsets topic"),
    ):
        _second(now, watermark)
        assert watermark.behind_s() == 0
        for _ in range(40):
            _second(now, watermark, **{lacking: True})
        assert (watermark.behind_s(), watermark.slowest()) == (40, slowest)


def test_who_has_read_the_newest_clock_is_not_behind_while_nothing_comes(
    now: Now, watermark: Watermark
) -> None:
    """No clock is written then; and the first one after it tells nothing of what came before."""
    _second(now, watermark)
    for _ in range(9):
        now.s += 1
        watermark.idle(now.ms)
    assert (watermark.behind_s(), watermark.delays_s()) == (0, {"offsets": 0, "events": 0})
    now.s += 1
    watermark.told(now.ms, [10, 21])
    assert (watermark.behind_s(), watermark.delays_s()) == (1, {"offsets": 1, "events": 1})
    now.s += 40
    assert watermark.behind_s() == 41


def test_each_source_is_behind_by_its_own(now: Now, watermark: Watermark) -> None:
    """A source that is read to its end is not late, however silent it is; an unknown one says nothing."""
    assert watermark.delays_s() == {}
    _second(now, watermark)
    assert watermark.delays_s() == {"offsets": 0, "events": 0}
    for _ in range(3):
        _second(now, watermark, events=True)
    assert watermark.delays_s() == {"offsets": 0, "events": 3}


def test_before_anything_was_read_it_is_behind_since_we_wait(now: Now, watermark: Watermark) -> None:
    """A job whose clocks are all refused is not ahead of itself."""
    now.s += 7
    assert watermark.behind_s() == 7
    watermark.told(now.ms, [])
    now.s += 3
    assert watermark.behind_s() == 10
    watermark.take_clocks(ClocksRead(control_ms=now.ms - 3_000, partitions=0))
    assert watermark.behind_s() == 3


def test_a_shard_that_does_not_follow_its_clocks_is_behind(now: Now, watermark: Watermark) -> None:
    """The clocks are read, yet the cluster's own shard stands."""
    _second(now, watermark)
    watermark.take_clocks(ClocksRead(control_ms=now.ms, partitions=2, now_ms=now.ms - 90_000))
    assert watermark.behind_s() == 90


def test_an_end_that_nobody_told_is_not_reached(now: Now, watermark: Watermark) -> None:
    """The groups of a partition without a leader stand still."""
    _second(now, watermark)
    now.s += 5
    watermark.told(now.ms, [10, -2])
    watermark.reached([10, 20])
    assert watermark.behind_s() == 5


def test_catching_up_is_not_losing(now: Now, watermark: Watermark) -> None:
    """After an hour away the job is late and gains; only one that gains nothing is stalled."""
    watermark.told(now.ms, [])
    read_ms = now.ms - 3_600_000
    for _ in range(100):
        now.s += 1
        read_ms += 20_000
        watermark.told(now.ms, [])
        watermark.take_clocks(ClocksRead(control_ms=read_ms, partitions=0))
        assert watermark.losing_s() < 2
    for _ in range(90):
        now.s += 1
        watermark.told(now.ms, [])
        watermark.losing_s()
    assert 65 < watermark.losing_s() <= 90
    watermark.take_clocks(ClocksRead(control_ms=now.ms, partitions=0))
    assert watermark.losing_s() == 0


def test_clocks_that_wait_for_their_ends_are_bounded(now: Now, watermark: Watermark) -> None:
    """Hours behind, the newest clock is kept and some before it."""
    for _ in range(5 * TICKS_MAX):
        now.s += 1
        watermark.told(now.ms, [10])
    assert len(watermark._ticks) <= TICKS_MAX
    watermark.reached([10])
    watermark.take_clocks(ClocksRead(control_ms=now.ms, partitions=0))
    assert watermark.behind_s() == 0


@pytest.mark.parametrize("ends", [[10, END_UNKNOWN], [10, 25]], ids=["not told", "taken back"])
def test_an_end_that_is_never_reached_holds_no_later_clock_back(
    now: Now, watermark: Watermark, ends: list[int]
) -> None:
    """A partition had no leader for a moment, or its new leader has less than the old one told."""
    _second(now, watermark)
    now.s += 1
    watermark.told(now.ms, ends)
    watermark.reached([10, 20])
    assert watermark.behind_s() == 1
    _second(now, watermark)
    assert watermark.behind_s() == 0
