"""The lines of one broker in one partition of the events topic between two copies of the clock.

Observations are coalesced only within such a stretch: a run's last offset stands for all of it.
"""

import re
from collections.abc import Iterator

import msgspec
import numpy as np

from coordinator_model import observations as on
from coordinator_model.kafka import shard_of
from streaming.decoders import quiet_lines
from streaming.decoders.binary_column import Bools, Ints
from streaming.decoders.known_shards import known_shard
from streaming.decoders.quiet_columns import Beats, by_sender
from streaming.decoders.quiet_lines import Said

Coalesced = on.Heartbeats | on.CommitsAnswered
"""The types that the model's traits let coalesce (a test compares them)."""
AnswerKey = tuple[type[object], str, str, int, int, on.Observation | None]


class RowPlace(msgspec.Struct, frozen=True):
    """The place of a row."""

    partition: int
    offset: int
    timestamp_ms: int
    backlog: bool
    index: int = 0
    """How many observations of the row precede: a row may hold several lines."""

    def seen(
        self,
        at_ms: int,
        source: on.Source,
        broker: int,
        what: on.AnyObservation,
        index: int = 0,
        *,
        is_whole: bool = False,
    ) -> on.Seen:
        """Return ``what`` as seen here; a negative index means the row as a whole."""
        return on.Seen(
            at_ms=at_ms,
            source=source,
            partition=self.partition,
            offset=self.offset,
            index=self.index + index if index >= 0 else index,
            broker=broker,
            recorded_at_ms=self.timestamp_ms,
            backlog=self.backlog,
            what=what,
            is_whole=is_whole,
        )


class AnswerRun:
    """Coalesced heartbeats or commits of one member with one answer."""

    __slots__ = ("last", "place", "times")

    def __init__(self) -> None:
        self.times: list[int] = []
        self.last: Coalesced | None = None
        self.place: RowPlace | None = None


class BeatRun(msgspec.Struct):
    """Lines of one member with one answer, and the place of the last."""

    times: list[int]
    said: Said
    offset: int
    stamp: int
    index: int = 0


class Stretch:
    """The lines of one broker in one partition between two copies of the clock."""

    __slots__ = (
        "answer_runs",
        "backlog",
        "broker",
        "columns",
        "heard",
        "newest",
        "partition",
        "places",
        "request_seconds",
        "runs",
    )

    def __init__(self, partition: int, backlog: bool, broker: int) -> None:
        self.partition = partition
        self.backlog = backlog
        self.broker = broker
        self.columns: list[Beats] = []
        """Lines read as columns."""
        self.runs: dict[str, BeatRun] = {}
        """Lines that say nothing new by their identity (``quiet_lines``)."""
        self.answer_runs: dict[AnswerKey, AnswerRun] = {}
        self.newest: tuple[int, int] | None = None
        """Offset and timestamp of the newest line that needs no run of its own."""
        self.request_seconds: set[int] = set()
        self.heard: dict[on.Source, set[int]] = {}
        self.places: dict[on.Source, RowPlace] = {}
        """Where each source was last heard."""

    def hear(self, source: on.Source, second: int, place: RowPlace) -> None:
        """Record that the broker spoke in this second."""
        self.heard.setdefault(source, set()).add(second)
        known = self.places.get(source)
        if known is None or place.offset >= known.offset:
            self.places[source] = place

    def beat(self, said: Said, times: list[int], offset: int, stamp: int, *, index: int = 0) -> None:
        """Record equal lines, the last of them at ``offset``; they are read at the end."""
        run = self.runs.get(said.identity)
        if run is None:
            self.runs[said.identity] = BeatRun(times, said, offset, stamp, index)
        else:
            run.times += times
            if offset > run.offset:
                run.said, run.offset, run.stamp, run.index = said, offset, stamp, index

    def beat_of(self, line: re.Match[bytes], at_ms: int, place: RowPlace) -> None:
        """Record one heartbeat."""
        self.request_seconds.add(at_ms // 1000)
        said = quiet_lines.said_in(line)
        self.beat(said, [at_ms], place.offset, place.timestamp_ms, index=place.index)

    def coalesce(self, what: Coalesced, place: RowPlace) -> None:
        """Add to the run of the same member with the same answer."""
        refused = what if what.error_code and type(what) is on.CommitsAnswered else None
        if refused is not None:  # what it says beside the answer is told, so only equals are one run
            refused = msgspec.structs.replace(refused, times=())
        key = (type(what), what.group, what.member_id, what.generation, what.error_code, refused)
        run = self.answer_runs.setdefault(key, AnswerRun())
        run.times.extend(what.times)
        run.last, run.place = what, place

    def hear_columns(self, heard_ms: Ints) -> None:
        """Record when the broker was heard by lines that were read as columns."""
        self.request_seconds.update(np.unique(heard_ms // 1000).tolist())

    def leave_out(self, beats: Beats, used: Bools) -> None:
        """Record lines, at least one, that are told otherwise; they show only that the broker was heard."""
        last = int(np.argmax(np.where(used, beats.offset, -1)))
        self.newest = int(beats.offset[last]), int(beats.stamp[last])

    def take_columns(self, beats: Beats, at_ms: Ints) -> None:
        """Record lines that were read as columns, sender by sender.

        Args:
            beats: the lines.
            at_ms: the time of each.
        """
        offset, stamp = beats.offset.tolist(), beats.stamp.tolist()
        for sender, _, newest, times in by_sender(beats.sender, at_ms):
            self.beat(beats.names.texts.said(sender), times, offset[newest], stamp[newest])

    def quiet(self, shard_count: int) -> Iterator[tuple[int, on.Seen, int, int]]:
        """Yield shard, coalesced lines, their API and number by member; hear the broker at their times."""
        partition, backlog, broker, source = self.partition, self.backlog, self.broker, on.Source.REQUEST_LOG
        newest = self.newest
        for run in self.runs.values():
            times = run.times
            if len(times) > 1:
                times.sort()
            said = run.said
            yield (
                known_shard(said.group, shard_count),
                on.Seen(
                    at_ms=times[-1],
                    source=source,
                    partition=partition,
                    offset=run.offset,
                    index=run.index,
                    broker=broker,
                    recorded_at_ms=run.stamp,
                    backlog=backlog,
                    what=said.seen(tuple(times)),
                ),
                said.api,
                len(times),
            )
            if newest is None or run.offset > newest[0]:
                newest = run.offset, run.stamp
        if newest is not None:
            place = RowPlace(partition, *newest, backlog)
            for second in self.request_seconds:
                self.hear(source, second, place)

    def answers(self, shard_count: int) -> Iterator[tuple[int, on.Seen]]:
        """Yield the other coalesced answers with their shards."""
        for run in self.answer_runs.values():
            if run.last is None or run.place is None:
                continue
            times = tuple(sorted(run.times))
            what = msgspec.structs.replace(run.last, times=times)
            seen = run.place.seen(times[-1], on.Source.REQUEST_LOG, self.broker, what)
            yield shard_of(what.group, shard_count), seen


def heard_in(stretch: Stretch) -> Iterator[on.Seen]:
    """Yield, for each source, in which seconds the broker spoke."""
    for source, heard in stretch.heard.items():
        seconds = tuple(sorted(heard))
        what = on.LogSeconds(broker=stretch.broker, heard=source, seconds=seconds)
        place = stretch.places[source]
        yield place.seen(seconds[-1] * 1000 + 999, on.Source.CONTROL, stretch.broker, what, index=-1)
