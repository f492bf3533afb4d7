"""Writes end offsets into the control topic, for the groups that commit to those partitions.

A rule's answer depends on its input alone, so end offsets travel through the control topic like every other
answer of the brokers.  A group gets the changes since its last report, when there are any.  A group that is
behind, or commits beyond the end, gets a report once a minute even without changes; a group that has always
been at the end gets none.

If a commit stands still below the end, its group may be waiting for an open transaction.  Only then the
brokers are asked for the last stable offset.  If the commit stands there, the group gets that offset, and
again after it has moved.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeVar

from coordinator_model.groups.offsets import has_come_to
from coordinator_model.kafka import shard_of
from streaming.control import EndsRecord, GroupEnds, encode_record
from streaming.driver.probing.packing import Later
from streaming.kafka_clients import KafkaProducer, TopicPartition

PARTITIONS_MAX = 50_000
"""Most partitions reported in one round; groups left out come first in the next."""
RECORD_PARTITIONS_MAX = 5_000
"""About 100 kB, a tenth of a topic's default limit."""
ENDS_EVERY_S = 10.0
"""How often a group is told what has changed."""
HALVES_FROM = 1_000
"""Once a round tells so many groups, it concerns the groups of every second shard, and the next the others.

A batch in which all are told takes a fifth longer (10,000 groups, trigger 5 s: 4.1 s for 3.4).
"""
STILL_BEHIND_MS = 60_000
STABLE_MAX = 1_000
"""Most partitions whose last stable offset is asked for in one round, one question per leader."""
PAUSE_MS = 45_000
"""After this long without an answer (or a question) the brokers count as silent."""
_ANSWER_S = 10.0

TopicEnds = Mapping[str, Mapping[int, tuple[int, int]]]
"""Topic -> partition -> (end offset, when asked, epoch ms)."""
Commits = Mapping[str, Mapping[int, tuple[int, int]]]
Stable = Callable[[Iterable[TopicPartition]], Mapping[TopicPartition, int]]
"""Asks the brokers for last stable offsets."""

_log = logging.getLogger(__name__)


class Readers(Protocol):
    """Knows the groups' commits, from the driver's view of the mirror."""

    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """Return every group with the topics that it commits to."""
        ...

    def commits(self, group: str) -> Commits:
        """Return topic -> partition -> (offset, epoch ms) of one group."""
        ...


class _GroupReport(NamedTuple):
    """What a group has been told."""

    round: int
    at_ms: int = -1
    """-1: it was never told anything."""
    behind: bool = False
    """Or commits beyond the end."""
    suspect: bool = False
    """It may be about to stand still, or waits for a transaction: the next round looks at it."""


_NOTHING = _GroupReport(round=-1)


class _Standing(NamedTuple):
    """A commit that has not moved, below the end."""

    offset: int
    committed_ms: int
    end: int


class _Look(NamedTuple):
    """The result of looking at one group in one round."""

    group: str
    ends: dict[str, dict[int, int]]
    """The report for it."""
    standing: dict[TopicPartition, _Standing]
    is_new: bool
    """One of the ends has moved since its last report."""


class _Wait(NamedTuple):
    """What a group was told of a partition in which it seems to wait."""

    stable: int
    at_ms: int


_NO_WAIT = _Wait(-1, -1)


class EndsTeller:
    """Writes the end offsets of one cluster's topics for its groups."""

    def __init__(
        self,
        *,
        run: str,
        topic: str,
        producer: KafkaProducer,
        readers: Readers,
        stable: Stable | None = None,
        transaction_ms: Callable[[], int] = lambda: -1,
        later: Later | None = None,
        shard_count: int = 1,
    ) -> None:
        """Start; no group has been told anything.

        Args:
            run: marks our records.
            topic: the control topic.
            producer: writes to it.
            readers: knows the groups' commits.
            stable: asks for last stable offsets; None: nobody does, so no group is known to wait.
            transaction_ms: returns the brokers' longest transaction; -1: unknown.
            later: takes reports that only repeat what the groups know; None: they are written at once.
            shard_count: how many partitions the offsets topic has.
        """
        self._run = run
        self._topic = topic
        self._producer = producer
        self._readers = readers
        self._stable = stable
        self._transaction_ms = transaction_ms
        self._later = later
        self._shard_count = shard_count
        self._round = 0
        self._half: int | None = None
        """Which shards this round concerns: those with even numbers (0), with odd ones (1), all."""
        self._counts = [0, 0]
        """How many groups the last round of each half has told; of one about all: in sum."""
        self._asked: Collection[str] = ()
        """The topics whose ends this round knows."""
        self._asked_ms = -1
        self._since_ms = -1
        self._ends: dict[str, dict[int, tuple[int, int]]] = {}
        """Topic -> partition -> (end offset, round in which it was found)."""
        self._noted: dict[str, int] = {}
        """Topic -> last round that knew its ends."""
        self._grew: dict[str, int] = {}
        """Topic -> last round in which one of its ends changed."""
        self._shards: dict[str, int] = {}
        """Group -> its shard, which each round asks of each group."""
        self._told: dict[str, _GroupReport] = {}
        self._behind: dict[str, dict[TopicPartition, int]] = {}
        """Group -> partition in which it was behind at the last look -> its commit there."""
        self._waits: dict[str, dict[TopicPartition, _Wait]] = {}

    def topics(self, *, whole: bool) -> set[str]:
        """Begin a round; return the topics to ask for, those of the groups that it concerns.

        Args:
            whole: it concerns all groups.
        """
        last, self._half = self._half, None
        if self._are_many and not whole:
            self._half = 1 if last is None else 1 - last
        readers = self._readers.readers()
        for gone in self._shards.keys() - readers.keys():
            del self._shards[gone]
        return {topic for group, topics in readers.items() if self._concerns(group) for topic in topics}

    @property
    def every_s(self) -> float:
        """Seconds from round to round."""
        return ENDS_EVERY_S / 2 if self._are_many else ENDS_EVERY_S

    @property
    def _are_many(self) -> bool:
        return sum(self._counts) >= HALVES_FROM

    def _concerns(self, group: str) -> bool:
        return self._half is None or self._shard_of(group) % 2 == self._half

    def _shard_of(self, group: str) -> int:
        shard = self._shards.get(group)
        if shard is None:
            shard = self._shards[group] = shard_of(group, self._shard_count)
        return shard

    def tell(self, ends: TopicEnds) -> None:
        """Write the ends that are news to a group.

        Args:
            ends: of the topics that the round has asked for.

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
        told = list(self._news(at_ms))
        self._count(len(told))
        urgent = [one for one, is_new in told if is_new or self._later is None]
        futures = [
            self._producer.send(self._topic, value=encode_record(record), partition=0)
            for record in self._records(urgent, at_ms)
        ]
        for future in futures:
            future.get(timeout=_ANSWER_S)
        if self._later is not None:
            for record in self._records((one for one, is_new in told if not is_new), at_ms):
                shards = {self._shard_of(one.group) for one in record.groups}
                self._later(self._topic, encode_record(record), shards)

    def _count(self, told: int) -> None:
        if self._half is None:
            self._counts = [told, 0]
        else:
            self._counts[self._half] = told

    def _note(self, ends: TopicEnds) -> None:
        self._asked = ends.keys()
        for topic, partitions in ends.items():
            self._noted[topic] = self._round
            known = self._ends.setdefault(topic, {})
            for partition, (offset, _) in partitions.items():
                if partition not in known or known[partition][0] != offset:
                    known[partition] = (offset, self._round)
                    self._grew[topic] = self._round
        # A topic of the other half's groups alone was asked for in the round before.
        oldest = self._round if self._half is None else self._round - 1
        for topic in [one for one, noted in self._noted.items() if noted < oldest]:
            del self._ends[topic], self._noted[topic]

    def _records(self, reports: Iterable[GroupEnds], at_ms: int) -> Iterator[EndsRecord]:
        pack: list[GroupEnds] = []
        size = 0
        for one in reports:
            pack.append(one)
            size += _size(one)
            if size >= RECORD_PARTITIONS_MAX:
                yield self._record(at_ms, pack)
                pack, size = [], 0
        if pack:
            yield self._record(at_ms, pack)

    def _record(self, at_ms: int, groups: list[GroupEnds]) -> EndsRecord:
        return EndsRecord(
            at_ms=at_ms,
            run=self._run,
            groups=groups,
            since_ms=self._since_ms,
            transaction_ms=self._transaction_ms(),
        )

    def _news(self, at_ms: int) -> Iterator[tuple[GroupEnds, bool]]:
        """Yield the groups' reports, longest waiting first, and whether each is more than a repeat."""
        looks = list(self._looks(at_ms))
        stable = self._last_stable(looks)
        for look in looks:
            news = self._of_transactions(look, stable, at_ms)
            if look.ends or news:
                yield GroupEnds(group=look.group, ends=look.ends, stable=news), look.is_new or bool(news)

    def _looks(self, at_ms: int) -> Iterator[_Look]:
        groups = self._readers.readers()
        for gone in self._told.keys() - groups.keys():
            del self._told[gone]
            self._behind.pop(gone, None)
            self._waits.pop(gone, None)
        waiting = sorted(
            (self._told.get(group, _NOTHING).round, group)
            for group, topics in groups.items()
            if self._concerns(group) and self._is_due(group, topics, at_ms)
        )
        left = PARTITIONS_MAX
        for _, group in waiting:
            if left <= 0:
                return
            look = self._of_group(group, at_ms)
            left -= sum(map(len, look.ends.values()))
            yield look

    def _is_due(self, group: str, topics: tuple[str, ...], at_ms: int) -> bool:
        told = self._told.get(group, _NOTHING)
        if told.suspect or (told.behind and at_ms - told.at_ms >= STILL_BEHIND_MS):
            return True
        return any(self._grew.get(topic, -1) > told.round for topic in topics)

    def _of_group(self, group: str, at_ms: int) -> _Look:
        """Return one group's report, and count it as delivered."""
        told = self._told.get(group, _NOTHING)
        again = told.behind and at_ms - told.at_ms >= STILL_BEHIND_MS
        ends: dict[str, dict[int, int]] = {}
        behind = is_off = is_new = False
        standing: dict[TopicPartition, _Standing] = {}
        lagging: dict[TopicPartition, int] = {}
        for topic, committed in self._readers.commits(group).items():
            known = self._ends.get(topic, {}) if topic in self._asked else {}
            for partition, (offset, committed_ms) in committed.items():
                end, found = known.get(partition, (-1, -1))
                # A tool, or a commit after we asked, set an offset beyond the end.
                lags, leads = end > offset, 0 <= end < offset
                off = lags or (leads and committed_ms < at_ms)
                behind |= lags or leads
                is_off |= off
                if lags and self._stable is not None:
                    place = TopicPartition(topic, partition)
                    lagging[place] = offset
                    if self._behind.get(group, {}).get(place) == offset:
                        standing[place] = _Standing(offset, committed_ms, end)
                if end >= 0 and (found > told.round or (again and off)):
                    is_new |= found > told.round or not told.behind
                    ends.setdefault(topic, {})[partition] = end
        is_news = bool(ends) and (is_off or told.at_ms >= 0)
        _keep(self._behind, group, lagging)
        suspect = len(standing) < len(lagging)
        self._told[group] = _GroupReport(self._round, at_ms if is_news else told.at_ms, behind, suspect)
        return _Look(group, ends if is_news else {}, standing, is_new)

    # --- open transactions ---------------------------------------------------------------------------

    def _last_stable(self, looks: list[_Look]) -> Mapping[TopicPartition, int]:
        """Ask for the last stable offset of partitions in which a commit stands still.

        Partitions of waiting groups come first, then those with the newest commits.
        """
        wanted = sorted(
            (place not in self._waits.get(look.group, ()), -one.committed_ms, place)
            for look in looks
            for place, one in look.standing.items()
        )
        asked = list(dict.fromkeys(place for *_, place in wanted))[:STABLE_MAX]
        if self._stable is None or not asked:
            return {}
        try:
            return self._stable(asked)
        except Exception as error:
            _log.debug("last stable offsets are not to be had: %r", error)
            return {}

    def _of_transactions(
        self, look: _Look, stable: Mapping[TopicPartition, int], at_ms: int
    ) -> dict[str, dict[int, int]]:
        """Return last stable offsets that are news to a group that waits, or has waited, for them to move."""
        told = self._waits.get(look.group, {})
        waits: dict[TopicPartition, _Wait] = {}
        news: dict[str, dict[int, int]] = {}
        for place, one in look.standing.items():
            before = told.get(place, _NO_WAIT)
            offset = stable.get(place, before.stable)
            is_waiting = has_come_to(one.offset, stable=offset, end=one.end)
            if not is_waiting and place not in told:
                continue
            is_news = offset != before.stable or at_ms - before.at_ms >= STILL_BEHIND_MS
            if place in stable and is_news:
                news.setdefault(place.topic, {})[place.partition] = offset
            if is_waiting:
                waits[place] = _Wait(offset, at_ms) if place in stable and is_news else before
        _keep(self._waits, look.group, waits)
        if waits or (look.standing and not stable):
            self._told[look.group] = self._told[look.group]._replace(suspect=True)
        return news


_Kept = TypeVar("_Kept")


def _keep(
    of_groups: dict[str, dict[TopicPartition, _Kept]], group: str, found: dict[TopicPartition, _Kept]
) -> None:
    """Store the group's entry; delete it if ``found`` is empty."""
    if found:
        of_groups[group] = found
    else:
        of_groups.pop(group, None)


def _size(one: GroupEnds) -> int:
    return sum(map(len, (*one.ends.values(), *one.stable.values())))
