"""Lag in records and seconds, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.group_store.lag import SAMPLES_MAX, STALE_AFTER_MS, ClusterEnds, EndOffsets, Lag, compact


def ends(*samples: tuple[int, int]) -> EndOffsets:
    """End offsets from (seconds, offset)."""
    made = EndOffsets()
    for at_s, offset in samples:
        made.add(offset, at_s * 1000)
    return made


@pytest.mark.parametrize(
    ("committed", "expected"),
    [
        (200, Lag(0, 0.0)),
        (199, Lag(1, 0.0)),
        (149, Lag(51, 5.0)),
        (99, Lag(101, 10.0)),
        (49, Lag(151, 15.0)),
        (0, Lag(200, 19.9)),
        (250, Lag(0, 0.0)),
    ],
)
def test_seconds_are_read_off_the_past_ends(committed: int, expected: Lag) -> None:
    """100 records in 10 s: 51 behind is 5 s behind; a commit beyond a stale end is no lag."""
    assert ends((0, 0), (10, 100), (20, 200)).lag(committed, 20_000) == expected


def test_a_pause_of_the_producers_counts() -> None:
    """The next record came before the pause, so it is as old as that."""
    lag = ends((0, 0), (10, 100), (600, 100)).lag(99, 600_000)
    assert lag == Lag(1, 590.0)


def test_what_is_older_than_our_knowledge_is_at_least_as_old() -> None:
    """A lag from before the start grows with the time we watch."""
    assert ends((100, 5_000)).lag(10, 100_000) == Lag(4_990, 0.0)
    assert ends((100, 5_000), (160, 5_000)).lag(10, 160_000) == Lag(4_990, 60.0)


def test_nothing_known_or_nothing_fresh_is_unknown() -> None:
    """No number is better than a frozen one."""
    assert EndOffsets().lag(0, 0) is None
    assert ends((0, 5)).lag(0, STALE_AFTER_MS) is not None
    assert ends((0, 5)).lag(0, STALE_AFTER_MS + 1) is None


def test_a_recreated_topic_begins_anew() -> None:
    """An end that goes back is another topic; old times say nothing of it."""
    lag = ends((0, 1_000), (10, 2_000), (20, 5)).lag(0, 20_000)
    assert lag == Lag(5, 0.0)


def test_the_past_is_bounded_and_keeps_its_oldest_sample() -> None:
    """A week of samples fits, and the beginning is still known."""
    past = EndOffsets()
    for second in range(10_000):
        past.add(second, second * 1000)
    assert len(past._times_ms) <= SAMPLES_MAX
    assert past._times_ms[0] == 0
    lag = past.lag(9_989, 9_999_000)
    assert lag is not None
    assert lag.seconds == pytest.approx(9, abs=0.01)


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.integers(-50, 500)), min_size=1, max_size=100),
    st.integers(0, 60_000),
)
def test_lag_is_never_negative_nor_odd(steps: list[tuple[int, int]], committed: int) -> None:
    """Whatever the ends do, records and seconds are 0 or more and finite."""
    past, at_ms, offset = EndOffsets(), 0, 0
    for step_ms, step in steps:
        at_ms, offset = at_ms + step_ms, max(0, offset + step)
        past.add(offset, at_ms)
    lag = past.lag(committed, at_ms)
    assert lag is not None
    assert lag.records == max(0, offset - committed)
    assert 0 <= lag.seconds <= at_ms / 1000


def test_a_topic_sums_records_and_takes_the_worst_seconds() -> None:
    """A group is as late as its latest partition."""
    cluster = ClusterEnds()
    cluster.add({"t": {0: (0, 0), 1: (0, 0)}})
    cluster.add({"t": {0: (100, 10_000), 1: (100, 10_000)}})
    assert cluster.lags(compact({"t": {0: (49, 1), 1: (89, 1)}}), 10_000) == {"t": Lag(62, 5.0)}


def test_partitions_with_known_ends_have_lags_of_their_own() -> None:
    """One unknown end hides no other partition."""
    known = ClusterEnds()
    known.add({"t": {0: (100, 1_000), 1: (50, 1_000)}})
    commits = {"t": {0: (90, 0), 1: (60, 0), 2: (5, 0)}}
    assert known.partition_lags(compact(commits), 1_500) == {("t", 0): 10, ("t", 1): 0}


def test_a_topic_with_an_unknown_partition_has_no_lag_at_all() -> None:
    """The sum of the rest would look like good news."""
    cluster = ClusterEnds()
    cluster.add({"t": {0: (100, 0)}})
    commits = {"t": {0: (1, 1), 1: (1, 1)}, "gone": {0: (1, 1)}, "empty": {}}
    assert cluster.lags(compact(commits), 0) == {}


def test_a_partition_with_a_stale_end_hides_its_topics_lag_alone() -> None:
    """One leader that does not answer makes the sum unknown, not the other partitions."""
    cluster = ClusterEnds()
    cluster.add({"t": {0: (100, 0), 1: (100, 0)}, "u": {0: (100, 0)}})
    cluster.add({"t": {0: (110, STALE_AFTER_MS)}, "u": {0: (110, STALE_AFTER_MS)}})
    commits = compact({"t": {0: (105, 0), 1: (90, 0)}, "u": {0: (105, 0)}})
    assert set(cluster.lags(commits, STALE_AFTER_MS)) == {"t", "u"}
    assert set(cluster.lags(commits, STALE_AFTER_MS + 1)) == {"u"}
    assert cluster.partition_lags(commits, STALE_AFTER_MS + 1) == {("t", 0): 5, ("u", 0): 5}


def test_an_end_that_stands_still_costs_two_samples() -> None:
    """An idle topic needs no memory, and its lag is read off as before."""
    past = ends((0, 0), (10, 100), *((second, 100) for second in range(20, 20_000, 10)), (20_000, 110))
    assert len(past._times_ms) == 4
    assert past.lag(104, 20_000_000) == Lag(6, 5.0)
    assert past.lag(99, 20_000_000) == Lag(11, 19_990.0)


def test_topics_without_commits_are_forgotten() -> None:
    """Deleted topics do not stay in memory."""
    cluster = ClusterEnds()
    cluster.add({"a": {0: (1, 0)}, "b": {0: (1, 0)}})
    cluster.keep_only({"b"})
    assert cluster.lags(compact({"a": {0: (0, 0)}, "b": {0: (0, 0)}}), 0) == {"b": Lag(1, 0.0)}
