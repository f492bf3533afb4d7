"""Computes how far a group is behind, in records and in seconds.

Lag in seconds is the age of the next record to be read.  No source gives that age; it follows from earlier
end offsets: the record at offset *n* came when the end of its partition passed *n*.  Pure; the caller gives
the end offsets.
"""

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import NamedTuple

SAMPLES_MAX = 32
STALE_AFTER_MS = 40_000
"""Older end offsets count as unknown; they are asked for every ten seconds.

The lag is then unknown, not frozen: continuing commits would soon make it 0."""


class Lag(NamedTuple):
    """Records and seconds behind; never negative."""

    records: int
    seconds: float


class TopicCommits(NamedTuple):
    """The offsets that a group has committed to one topic, in a few hundred bytes."""

    topic: str
    partitions: "array[int]"
    offsets: "array[int]"


Commits = tuple[TopicCommits, ...]


def compact(commits: Mapping[str, Mapping[int, tuple[int, int]]]) -> Commits:
    """Return topic -> partition -> (offset, epoch ms) without the times."""
    return tuple(
        TopicCommits(
            intern(topic), _numbers(tuple(known)), array("q", [offset for offset, _ in known.values()])
        )
        for topic, known in commits.items()
    )


@lru_cache(maxsize=10_000)
def _numbers(partitions: tuple[int, ...]) -> "array[int]":
    """Return numbers of partitions; most groups read the same ones, so they share them."""
    return array("q", partitions)


class EndOffsets:
    """Past end offsets of one partition: dense for recent times, ever sparser further back.

    Of times at which the end stood still only the first and the last are kept.
    """

    __slots__ = ("_offsets", "_times_ms", "newest")

    def __init__(self) -> None:
        self.newest = -1
        """The last end offset."""
        self._times_ms = array("q")
        self._offsets = array("q")

    def add(self, offset: int, at_ms: int) -> None:
        """Add the end offset at a time; a lower one starts a new history (the topic was recreated)."""
        if self._offsets and offset < self._offsets[-1]:
            del self._times_ms[:], self._offsets[:]
        elif self._times_ms and at_ms <= self._times_ms[-1]:
            return
        elif len(self._offsets) > 1 and offset == self._offsets[-1] == self._offsets[-2]:
            self._times_ms[-1] = at_ms
            return
        self.newest = offset
        self._times_ms.append(at_ms)
        self._offsets.append(offset)
        if len(self._offsets) > SAMPLES_MAX:
            self._thin()

    def _thin(self) -> None:
        """Drop every second sample of the older half, but never the oldest."""
        half = SAMPLES_MAX // 2
        for samples in (self._times_ms, self._offsets):
            samples[:] = samples[:half:2] + samples[half:]

    def lag(self, committed: int, now_ms: int) -> Lag | None:
        """Return how far behind a commit is; None if the end offset is unknown or stale.

        If the record is older than our first sample of the partition, the seconds are the certain minimum:
        the time since that sample.
        """
        if not self._offsets or now_ms - self.asked_ms > STALE_AFTER_MS:
            return None
        records = max(0, self.newest - committed)
        return Lag(records, self.waits_ms(committed) / 1000 if records else 0.0)

    @property
    def asked_ms(self) -> int:
        """Return when the last end offset was told (epoch ms)."""
        return self._times_ms[-1]

    def waits_ms(self, committed: int) -> int:
        """Return how long the record at ``committed``, which is below the end, has waited for its reader."""
        return max(0, self._times_ms[-1] - self._arrived_ms(committed))

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


class _TopicEnds:
    """The end offsets of one topic."""

    __slots__ = ("asked_ms", "ends")

    def __init__(self) -> None:
        self.ends: dict[int, EndOffsets] = {}
        self.asked_ms = -1
        """No end is older (epoch ms)."""

    def add(self, partitions: Mapping[int, tuple[int, int]]) -> bool:
        """Add partition → (end offset, epoch ms); return whether any end is another than before."""
        has_moved = False
        for partition, (offset, at_ms) in partitions.items():
            ends = self.ends.get(partition)
            if ends is None:
                ends = self.ends[partition] = EndOffsets()
            has_moved |= ends.newest != offset
            ends.add(offset, at_ms)
        self.asked_ms = min(ends.asked_ms for ends in self.ends.values())
        return has_moved

    def fresh(self, now_ms: int) -> Mapping[int, EndOffsets]:
        """Return partition → ends that are not stale."""
        oldest_ms = now_ms - STALE_AFTER_MS
        if self.asked_ms >= oldest_ms:
            return self.ends
        return {partition: ends for partition, ends in self.ends.items() if ends.asked_ms >= oldest_ms}


class ClusterEnds:
    """The end offsets of one cluster's topics."""

    def __init__(self) -> None:
        self._topics: dict[str, _TopicEnds] = {}
        self.version = 0
        """How often end offsets came."""
        self._moved: dict[str, int] = {}
        """Topic -> version in which an end offset of it changed."""

    def add(self, ends: Mapping[str, Mapping[int, tuple[int, int]]]) -> None:
        """Add topic → partition → (end offset, epoch ms)."""
        self.version += 1
        for topic, partitions in ends.items():
            if partitions and self._topics.setdefault(topic, _TopicEnds()).add(partitions):
                self._moved[topic] = self.version

    def moved(self, since: int) -> set[str]:
        """Return the topics of which an end offset changed after that version."""
        return {topic for topic, version in self._moved.items() if version > since}

    def keep_only(self, topics: set[str]) -> None:
        """Forget topics without any commits."""
        for topic in self._topics.keys() - topics:
            del self._topics[topic]
            self._moved.pop(topic, None)

    def lags(self, commits: Commits, now_ms: int) -> dict[str, Lag]:
        """Return topic → lag: records summed, seconds of the worst partition.

        A topic with an unknown end is left out: the sum of its other partitions would understate the lag.
        """
        found = {one.topic: self._topic_lag(one, now_ms) for one in commits}
        return {topic: lag for topic, lag in found.items() if lag is not None}

    def partition_lags(self, commits: Commits, now_ms: int) -> dict[tuple[str, int], int]:
        """Return (topic, partition) → records behind, without partitions whose end is unknown."""
        found = {}
        for topic, partitions, offsets in commits:
            known = self._topics.get(topic)
            ends = known.fresh(now_ms) if known is not None else {}
            for partition, committed in zip(partitions, offsets, strict=True):
                one = ends.get(partition)
                if one is not None:
                    found[topic, partition] = max(0, one.newest - committed)
        return found

    def _topic_lag(self, commits: TopicCommits, now_ms: int) -> Lag | None:
        known = self._topics.get(commits.topic)
        if known is None or not commits.partitions:
            return None
        # Each scrape comes here for 10,000 groups of 32 partitions: nothing is called for one without lag.
        ends, records, waits_ms = known.fresh(now_ms), 0, 0
        for partition, committed in zip(commits.partitions, commits.offsets, strict=True):
            one = ends.get(partition)
            if one is None:
                return None
            if one.newest > committed:
                records += one.newest - committed
                waits_ms = max(waits_ms, one.waits_ms(committed))
        return Lag(records, waits_ms / 1000)
