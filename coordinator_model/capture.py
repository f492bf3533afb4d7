"""Captured material: its rows, and a mirror of a whole cluster that the caller feeds, without Spark.

Used by ``groupwatch replay`` and by tests.  The shards are the same as in the stream; the caller advances the
time.
"""

import binascii
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec

from coordinator_model import observations as on
from coordinator_model.kafka import hash_of, shard_of_hash
from coordinator_model.observations import CLUSTER_SHARD, INT32_MAX, Seen, Source
from coordinator_model.ordering import SETTLE_MS
from coordinator_model.shard import Divergence, GroupReport, Judge, Outputs, Shard
from coordinator_model.state import Transition

SHARDS = 50
"""Kafka's default for ``offsets.topic.num.partitions``."""
_SHARDS_MAX = 1_000
_HOMES_COMPARED = 100


class CaptureError(Exception):
    """A captured row that cannot be read; the message says why."""


class OffsetsRow(msgspec.Struct, frozen=True, kw_only=True, tag_field="source", tag="offsets"):
    """One record of ``__consumer_offsets``; key and value in hex, a tombstone's value is null."""

    partition: Annotated[int, msgspec.Meta(ge=0, le=INT32_MAX)]
    timestamp_ms: int
    key: str
    value: str | None = None

    def key_bytes(self) -> bytes:
        """Return the key.

        Raises:
            CaptureError: it is not hex.
        """
        return _unhex(self.key)

    def value_bytes(self) -> bytes | None:
        """Return the value, None for a tombstone.

        Raises:
            CaptureError: it is not hex.
        """
        return None if self.value is None else _unhex(self.value)


class LogRow(msgspec.Struct, frozen=True, kw_only=True, tag_field="source", tag="log"):
    """One line of a broker's log."""

    broker: int
    timestamp_ms: int
    text: str


class EndOffsetRow(msgspec.Struct, frozen=True, kw_only=True, tag_field="source", tag="end_offset"):
    """The end offset of one partition of a topic, from a broker; every group that commits to it gets it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class ClockRow(msgspec.Struct, frozen=True, kw_only=True, tag_field="source", tag="clock"):
    """The capture had reached this time; everything before has been captured."""

    timestamp_ms: int


CapturedRow = OffsetsRow | LogRow | EndOffsetRow | ClockRow

_ROW: msgspec.json.Decoder[CapturedRow] = msgspec.json.Decoder(CapturedRow)


def read_row(line: bytes | str) -> CapturedRow:
    """Return the captured row in one line of JSON.

    Raises:
        CaptureError: the line is no captured row.
    """
    try:
        return _ROW.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CaptureError(str(error)) from None


def _unhex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except (ValueError, binascii.Error) as error:
        raise CaptureError(f"not hex: {error}") from None


def shard_count_of(homes: Mapping[str, int]) -> int:
    """Return how many partitions the offsets topic has, from groups whose partition is known.

    Kafka's default if it fits, else the smallest number that does, else what fits most of them.
    """
    lowest: int = max(homes.values(), default=0) + 1
    candidates: list[int] = [SHARDS, *range(lowest, _SHARDS_MAX)]
    # Each name is read once: a thousand candidates times 32,767 characters would take seconds.
    hashed = [(hash_of(group), home) for group, home in homes.items()]
    for count in candidates:
        if all(shard_of_hash(one, count) == home for one, home in hashed):
            return count
    # A line was misread, or its group's name imitates one: use the number that fits most of the others.
    some = hashed[:_HOMES_COMPARED]
    return max(candidates, key=lambda count: sum(shard_of_hash(one, count) == home for one, home in some))


class Mirror:
    """All shards of one cluster, in memory."""

    def __init__(
        self,
        *,
        cluster: str,
        shard_count: int,
        settings: bytes,
        judge: Judge | None,
        feeds: int,
        offsets: bool,
        strict: bool = False,
    ) -> None:
        """Begin with empty shards.

        Args:
            cluster: its name in the outputs.
            shard_count: partitions of the offsets topic.
            settings: canonical JSON for shards and rules.
            judge: the rules; None for transitions only.
            feeds: how many partitions of log lines there are; numbered from 0.
            offsets: whether records of the offsets topic are fed.
            strict: raise failures of our own code.
        """
        self._cluster = cluster
        self._judge = judge
        self._feeds = feeds
        self._offsets = offsets
        self._settings = settings
        self._sequence = 0
        self._end_offset = 0
        self._zones_ms: dict[int, int] = {}
        self._waiting: dict[int, list[Seen]] = {}
        self.divergences: list[Divergence] = []
        self.reports: dict[str, GroupReport] = {}
        """The report of each group, after ``finish``."""
        self.shards = {
            shard: Shard.load(None, cluster=cluster, shard=shard, shard_count=shard_count, strict=strict)
            for shard in range(CLUSTER_SHARD, shard_count)
        }
        for one in self.shards.values():
            if offsets and feeds:
                one.header.order.clocked.exists()  # a line that asks for a zone's proof may wait for it
                one.header.order.events_partitions = feeds
            # In force from the beginning: a replay has no time before its configuration.
            one.header.settings = settings

    def feed(self, cells: Mapping[int, list[Seen]]) -> None:
        """Buffer observations by shard; ``advance`` applies them.

        Offsets must ascend over all calls: within each feed of lines, and over all offsets records.
        """
        for shard, seen in cells.items():
            self._waiting.setdefault(shard, []).extend(seen)
            self._end_offset = max(
                self._end_offset, *(one.offset + 1 for one in seen if one.source is Source.OFFSETS), 0
            )

    def advance(self, at_ms: int, *, ask: bool = False) -> Iterator[Transition | Any]:
        """Advance to ``at_ms`` and yield the outputs by time; lines may still come ``SETTLE_MS`` late.

        ``ask`` requests a report of every group.
        """
        self._sequence += 1
        happened: list[tuple[int, Transition | Any]] = []
        lost: list[Seen] = []
        for shard in sorted(self.shards, reverse=True):
            # Two steps: a clock says that everything fed before it has been read.
            waiting = self._waiting.pop(shard, [])
            clocks = [*self._clocks(at_ms, ask=ask), *(lost if shard == CLUSTER_SHARD else ())]
            for seen in (waiting, clocks) if waiting else (clocks,):
                outputs = self.shards[shard].step(seen, self._judge)
                self.divergences += outputs.divergences
                self._zones_ms.update(outputs.zones)
                self.reports.update((one.group, one) for one in outputs.reports)
                lost += self._contradictions(outputs)
                lost += [self._control(at_ms, 0, upset) for upset in outputs.upset]
                lost += [self._control(at_ms, 0, one) for one in outputs.quarantined]
                happened += [(one.at_ms, one) for one in outputs.transitions]
                happened += [(_alert_ms(one), one) for one in outputs.alerts]
        happened.sort(key=lambda one: one[0])
        yield from (one for _, one in happened)

    def finish(self, last_ms: int) -> Iterator[Transition | Any]:
        """Advance past the last line and yield the remaining outputs."""
        yield from self.advance(last_ms + SETTLE_MS + 1 if self._feeds else last_ms + 1, ask=True)

    def _clocks(self, at_ms: int, *, ask: bool) -> Iterator[Seen]:
        end_offset = self._end_offset if self._offsets else -1
        clock = on.Clock(
            sequence=self._sequence,
            end_offset=end_offset,
            position=end_offset,
            events_partitions=self._feeds,
            ask=ask,
            zones_ms=dict(self._zones_ms),
        )
        told = [self._control(at_ms, 0, clock)]
        for feed in range(self._feeds):
            told.append(self._control(at_ms, feed, on.EventsClock(sequence=self._sequence)))
        # They were appended to no topic: they prove nothing about later dates.
        yield from (msgspec.structs.replace(one, recorded_at_ms=-1) for one in told)

    def _control(self, at_ms: int, partition: int, what: on.AnyObservation) -> Seen:
        return Seen(
            at_ms=at_ms,
            source=Source.CONTROL,
            partition=partition,
            offset=2**60 + self._sequence,
            index=0,
            broker=-1,
            recorded_at_ms=at_ms,
            backlog=False,
            what=what,
        )

    def _contradictions(self, outputs: Outputs) -> list[Seen]:
        return [
            self._control(at_ms, 0, on.Contradicted(broker=broker, lost=Source[lost.upper()], group=group))
            for broker, lost, group, at_ms in outputs.contradictions
        ]


def _alert_ms(alert: Any) -> int:
    detected_ms: int = alert.detected_at_ms
    ended_ms: int | None = alert.ends_at_ms
    return detected_ms if ended_ms is None else max(detected_ms, ended_ms)
