"""Tells the groups, in band, where the partitions end that they commit to.

What a rule says depends on its input alone, so end offsets travel through the control topic like every
other answer of the brokers.  A group is told what changed since it was told last, when anything did; one
that is behind, or commits beyond the end, is told once a minute that nothing did; one that has always been
at the end is told nothing.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from kafka import KafkaProducer

from streaming.decoding_control import EndsRecord, GroupEnds, encode_record

PARTITIONS_MAX = 50_000
"""Told in one round; groups that do not get their turn are the first in the next."""
RECORD_PARTITIONS_MAX = 5_000
"""About 100 kB, a tenth of what topics take by default."""
STILL_BEHIND_MS = 60_000
PAUSE_MS = 45_000
"""Brokers that gave no answer for so long, or nobody asked them."""
_ANSWER_S = 10.0

Ends = Mapping[str, Mapping[int, tuple[int, int]]]
"""Topic -> partition -> (end offset, when asked, epoch ms)."""
Commits = Mapping[str, Mapping[int, tuple[int, int]]]


class Readers(Protocol):
    """Who commits to what, as the driver's picture has it."""

    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """Return every group with the topics that it commits to."""
        ...

    def commits(self, group: str) -> Commits:
        """Return topic -> partition -> (offset, epoch ms) of one group."""
        ...


class _Told(NamedTuple):
    """What a group knows."""

    round: int
    at_ms: int = -1
    """-1: it was never told anything."""
    behind: bool = False
    """Or beyond the end."""


_NOTHING = _Told(round=-1)


class EndsTeller:
    """Writes the end offsets of one cluster's topics for its groups."""

    def __init__(self, *, run: str, topic: str, producer: KafkaProducer, readers: Readers) -> None:
        """Begin with groups that know nothing.

        Args:
            run: marks our records.
            topic: the control topic.
            producer: writes into it.
            readers: knows who commits to what.
        """
        self._run = run
        self._topic = topic
        self._producer = producer
        self._readers = readers
        self._round = 0
        self._asked_ms = -1
        self._since_ms = -1
        self._ends: dict[str, dict[int, tuple[int, int]]] = {}
        """Topic -> partition -> (end offset, round in which it was found)."""
        self._grew: dict[str, int] = {}
        """Topic -> round in which any of its ends was found to be another."""
        self._told: dict[str, _Told] = {}

    def tell(self, ends: Ends) -> None:
        """Write what is news to a group.

        Raises:
            kafka.errors.KafkaError: the control topic did not acknowledge.
        """
        at_ms = max((at for known in ends.values() for _, at in known.values()), default=-1)
        if at_ms < 0:
            return
        self._round += 1
        if self._asked_ms < 0 or at_ms - self._asked_ms > PAUSE_MS:
            self._since_ms = at_ms
        self._asked_ms = at_ms
        self._note(ends)
        futures = [
            self._producer.send(self._topic, value=encode_record(record), partition=0)
            for record in self._records(at_ms)
        ]
        for future in futures:
            future.get(timeout=_ANSWER_S)

    def _note(self, ends: Ends) -> None:
        for topic, partitions in ends.items():
            known = self._ends.setdefault(topic, {})
            for partition, (offset, _) in partitions.items():
                if partition not in known or known[partition][0] != offset:
                    known[partition] = (offset, self._round)
                    self._grew[topic] = self._round
        for topic in self._ends.keys() - ends.keys():
            del self._ends[topic]

    def _records(self, at_ms: int) -> Iterator[EndsRecord]:
        pack: list[GroupEnds] = []
        size = 0
        for one in self._news(at_ms):
            pack.append(one)
            size += _size(one)
            if size >= RECORD_PARTITIONS_MAX:
                yield EndsRecord(at_ms=at_ms, run=self._run, groups=pack, since_ms=self._since_ms)
                pack, size = [], 0
        if pack:
            yield EndsRecord(at_ms=at_ms, run=self._run, groups=pack, since_ms=self._since_ms)

    def _news(self, at_ms: int) -> Iterator[GroupEnds]:
        """Yield what groups do not know yet, those first that have waited longest."""
        groups = self._readers.readers()
        for gone in self._told.keys() - groups.keys():
            del self._told[gone]
        waiting = sorted(
            (self._told.get(group, _NOTHING).round, group)
            for group, topics in groups.items()
            if self._is_due(group, topics, at_ms)
        )
        left = PARTITIONS_MAX
        for _, group in waiting:
            if left <= 0:
                return
            one = self._of_group(group, at_ms)
            if one is not None:
                left -= _size(one)
                yield one

    def _is_due(self, group: str, topics: tuple[str, ...], at_ms: int) -> bool:
        told = self._told.get(group, _NOTHING)
        if told.behind and at_ms - told.at_ms >= STILL_BEHIND_MS:
            return True
        return any(self._grew.get(topic, -1) > told.round for topic in topics)

    def _of_group(self, group: str, at_ms: int) -> GroupEnds | None:
        """Return what one group is to be told, and take it for told."""
        told = self._told.get(group, _NOTHING)
        again = told.behind and at_ms - told.at_ms >= STILL_BEHIND_MS
        ends: dict[str, dict[int, int]] = {}
        behind = is_off = False
        for topic, committed in self._readers.commits(group).items():
            known = self._ends.get(topic, {})
            for partition, (offset, committed_ms) in committed.items():
                end, found = known.get(partition, (-1, -1))
                # What is beyond the end was committed by a tool, or after we asked; the next answer tells.
                lags, leads = end > offset, 0 <= end < offset
                off = lags or (leads and committed_ms < at_ms)
                behind |= lags or leads
                is_off |= off
                if end >= 0 and (found > told.round or (again and off)):
                    ends.setdefault(topic, {})[partition] = end
        is_news = bool(ends) and (is_off or told.at_ms >= 0)
        self._told[group] = _Told(self._round, at_ms if is_news else told.at_ms, behind)
        return GroupEnds(group=group, ends=ends) if is_news else None


def _size(one: GroupEnds) -> int:
    return sum(map(len, one.ends.values()))
