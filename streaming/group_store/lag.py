"""Computes how far a group is behind, in records and in seconds.

Lag in seconds is the age of the next record to be read.  No source gives that age; it follows from earlier
end offsets: the record at offset *n* came when the end of its partition passed *n*.  Pure; the caller gives
the end offsets.
"""

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

SAMPLES_MAX = 32
STALE_AFTER_MS = 40_000
"""Older end offsets count as unknown; they are asked for every ten seconds.

The lag is then unknown, not frozen: continuing commits would soon make it 0."""


class Lag(NamedTuple):
    """Records and seconds behind; never negative."""

    records: int
    seconds: float


class EndOffsets:
    """Past end offsets of one partition: dense for recent times, ever sparser further back."""

    __slots__ = ("_offsets", "_times_ms")

    def __init__(self) -> None:
        self._times_ms = array("q")
        self._offsets = array("q")

    def add(self, offset: int, at_ms: int) -> None:
        """Add the end offset at a time; a lower one starts a new history (the topic was recreated)."""
        if self._offsets and offset < self._offsets[-1]:
            del self._times_ms[:], self._offsets[:]
        elif self._times_ms and at_ms <= self._times_ms[-1]:
            return
        self._times_ms.append(at_ms)
        self._offsets.append(offset)
        if len(self._offsets) > SAMPLES_MAX:
            self._thin()

    def _thin(self) -> None:
        """Drop every second sample of the older half, but never the oldest."""
        half = SAMPLES_MAX // 2
        for samples in (self._times_ms, self._offsets):
            samples[:] = samples[:half:2] + samples[half:]

    @property
    def end(self) -> int:
        """The newest end offset; -1: none."""
        return self._offsets[-1] if self._offsets else -1

    def lag(self, committed: int, now_ms: int) -> Lag | None:
        """Return how far behind a commit is; None if the end offset is unknown or stale.

        If the record is older than our first sample of the partition, the seconds are the certain minimum:
        the time since that sample.
        """
        if not self._offsets or now_ms - self._times_ms[-1] > STALE_AFTER_MS:
            return None
        records = max(0, self._offsets[-1] - committed)
        if records == 0:
            return Lag(0, 0.0)
        return Lag(records, max(0, self._times_ms[-1] - self._arrived_ms(committed)) / 1000)

    def _arrived_ms(self, offset: int) -> int:
        """Return when the record at ``offset`` was appended, by interpolation."""
        end = offset + 1
        after = bisect_left(self._offsets, end)
        if after == 0:
            return self._times_ms[0]
        before = after - 1
        part = (end - self._offsets[before]) / (self._offsets[after] - self._offsets[before])
        span_ms = self._times_ms[after] - self._times_ms[before]
        return self._times_ms[before] + round(part * span_ms)


class ClusterEnds:
    """The end offsets of one cluster's topics."""

    def __init__(self) -> None:
        self._topics: dict[str, dict[int, EndOffsets]] = {}
        self.version = 0
        """How often end offsets came."""
        self._moved: dict[str, int] = {}
        """Topic -> version in which an end offset of it changed."""

    def add(self, ends: Mapping[str, Mapping[int, tuple[int, int]]]) -> None:
        """Add topic → partition → (end offset, epoch ms)."""
        self.version += 1
        for topic, partitions in ends.items():
            known = self._topics.setdefault(topic, {})
            for partition, (offset, at_ms) in partitions.items():
                one = known.setdefault(partition, EndOffsets())
                if one.end != offset:
                    self._moved[topic] = self.version
                one.add(offset, at_ms)

    def moved(self, since: int) -> set[str]:
        """Return the topics of which an end offset changed after that version."""
        return {topic for topic, version in self._moved.items() if version > since}

    def keep_only(self, topics: set[str]) -> None:
        """Forget topics without any commits."""
        for topic in self._topics.keys() - topics:
            del self._topics[topic]
            self._moved.pop(topic, None)

    def lags(self, commits: Mapping[str, Mapping[int, tuple[int, int]]], now_ms: int) -> dict[str, Lag]:
        """Return topic → lag: records summed, seconds of the worst partition.

        A topic with an unknown end is left out: the sum of its other partitions would understate the lag.
        """
        found = {topic: self._topic_lag(topic, commits[topic], now_ms) for topic in commits}
        return {topic: lag for topic, lag in found.items() if lag is not None}

    def partition_lags(
        self, commits: Mapping[str, Mapping[int, tuple[int, int]]], now_ms: int
    ) -> dict[tuple[str, int], int]:
        """Return (topic, partition) → records behind, without partitions whose end is unknown."""
        found = {}
        for topic, partitions in commits.items():
            known = self._topics.get(topic, {})
            for partition, (committed, _) in partitions.items():
                ends = known.get(partition)
                lag = ends.lag(committed, now_ms) if ends is not None else None
                if lag is not None:
                    found[topic, partition] = lag.records
        return found

    def _topic_lag(self, topic: str, commits: Mapping[int, tuple[int, int]], now_ms: int) -> Lag | None:
        known = self._topics.get(topic, {})
        records, seconds = 0, 0.0
        for partition, (committed, _) in commits.items():
            ends = known.get(partition)
            lag = ends.lag(committed, now_ms) if ends is not None else None
            if lag is None:
                return None
            records += lag.records
            seconds = max(seconds, lag.seconds)
        return Lag(records, seconds) if commits else None
