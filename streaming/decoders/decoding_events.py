"""Turns rows of the events topic (brokers' log lines, copies of the clock) into observations.

Nearly all rows are heartbeats and accepted commits, which were read as columns (``quiet_columns.py``) when
they were buffered.  Those of one member with one answer are coalesced into one observation, but never across
a copy of the clock: a line before the copy must not seem to come after it.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import groupby
from operator import attrgetter

import msgspec

from coordinator_model import decoding
from coordinator_model import observations as on
from coordinator_model.decoding import BREAKS_ENCODED, Opened
from coordinator_model.kafka import shard_of, shards_of_runs
from coordinator_model.observations import BROKERS_MAX
from streaming.decoders import quiet_columns, quiet_lines
from streaming.decoders.binary_column import Ints
from streaming.decoders.buffered_lines import BufferedLines, RowBlock
from streaming.decoders.clock_copies import CLOCK_KEY, ClockCopyError, read_copy
from streaming.decoders.decoded import Decoded
from streaming.decoders.line_parts import LineParts
from streaming.decoders.line_times import LineTimes, not_ahead, of_beats
from streaming.decoders.packing import plain
from streaming.decoders.quiet_columns import Beats
from streaming.decoders.stretches import Coalesced, RowPlace, Stretch, heard_in
from streaming.decoders.together import Lines, put_together, spans

SAMPLE_BYTES_MAX = 512
UNKNOWN_LAYOUT = "unknown_layout"
"""The reason under which a line with an unknown header is counted."""
_NOT_UNDERSTOOD = {"unrecognized": "unknown_sentence", "too_long": "too_long"}
"""Kinds of coordinator lines that carry no information, and the reasons under which a sample is kept."""
NAMES_MAX = 64
"""Names in a DeleteGroups line of 3.x; a name may contain ", ", so any neighbours may be one name: all their
shards get the line.  With more names every shard gets it."""

Row = tuple[int, int, int, bytes | None, bytes | None]
"""Partition, offset, timestamp_ms, key, value."""


def decode_lines(
    lines: BufferedLines,
    *,
    shard_count: int,
    timezone: str,
    run: str = "",
    secret: str = "",
    puts_together: bool = False,
) -> Decoded:
    """Decode the rows that one ``LineReader`` has read.

    Args:
        lines: in the order of their partitions.
        shard_count: partitions of ``__consumer_offsets``.
        timezone: of times in lines that give none.
        run: whose copies of the clock to take; "" takes all.
        secret: seals the copies; "": copies have no seal.
        puts_together: whether the members of a group get one observation (``together.py``), not one each.

    The content of a row never raises: an unreadable row is counted in ``bad``.
    """
    work = _Decoding(shard_count, timezone, run, secret, puts_together=puts_together)
    for block in lines.blocks:
        work.read(block)
    return work.finish()


def decode_rows(
    rows: Iterable[Row],
    *,
    shard_count: int,
    backlog_ends: Mapping[int, int],
    timezone: str,
    run: str = "",
    secret: str = "",
) -> Decoded:
    """Decode rows that are not in Arrow; see ``decode_lines``.

    Rows before a partition's ``backlog_ends`` (its end offset at the first start) are backlog.
    """
    work = _Decoding(shard_count, timezone, run, secret)

    def same(row: Row) -> tuple[int, bytes | None, bool]:
        return row[0], row[3], row[1] < backlog_ends.get(row[0], 0)

    for (partition, key, backlog), neighbours in groupby(rows, same):
        _, offsets, stamps, _, values = map(list, zip(*neighbours, strict=True))
        work.read(RowBlock(partition, key, backlog, offsets, stamps, values))
    return work.finish()


def kind_of(what: on.Observation) -> str:
    """Return the name under which a coordinator line is counted."""
    return what.kind if isinstance(what, on.LogNoted) else _snake(type(what).__name__)


@lru_cache(maxsize=64)
def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


_StretchKey = tuple[int, int, bool, int]
_BY_PLACE = attrgetter("partition", "offset", "index")


class _Decoding:
    """The work on one batch."""

    def __init__(
        self, shard_count: int, timezone: str, run: str = "", secret: str = "", *, puts_together: bool = False
    ) -> None:
        self._puts_together = puts_together
        self._shard_count = shard_count
        self._timezone = timezone
        self._times = LineTimes(timezone)
        self._run = run
        self._secret = secret
        self._decoded = Decoded()
        self._stretches: dict[_StretchKey, Stretch] = {}
        self._copies: dict[int, list[on.Seen]] = {}
        """Partition -> the clock copies so far: between two of them is a stretch."""
        self._everywhere: list[on.Seen] = []
        """Copies of the clock, and later what else is for all shards."""
        self._narrow: list[tuple[frozenset[int], on.Seen]] = []
        """Copies of the clock, and what else is for some shards only, with those."""
        self._fresh: dict[int, bool] = {}
        """Partition -> whether its last row was a clock copy."""
        self._bad: dict[str, tuple[int, bytes, str]] = {}
        self._brokers: set[int] = set()
        """The brokers whose lines were read."""
        self._parts = LineParts()

    # --- reading ---

    def read(self, block: RowBlock) -> None:
        """Read every row."""
        if block.key != CLOCK_KEY:
            self._read_lines(block)
            return
        for index, value in enumerate(block.values):
            self._clock(block.place(index), value)

    def _read_lines(self, block: RowBlock) -> None:
        if block.beats is not None and len(block.beats.row):
            self._stretch(block.partition, block.backlog, _broker_of(block.key)).columns.append(block.beats)
        for index, value in enumerate(block.values):
            found = quiet_lines.LINE.fullmatch(value) if value and quiet_lines.is_text(value) else None
            place = block.place(index)
            if found is None:
                self._read_other(place, block.key, value)
                continue
            stretch = self._stretch(place.partition, place.backlog, _broker_of(block.key))
            at_ms = self._times.of_line(found[1], found[2], place.timestamp_ms)
            stretch.beat_of(found, not_ahead(at_ms, place.timestamp_ms), place)

    def _read_other(self, place: RowPlace, key: bytes | None, value: bytes | None) -> None:
        """Read a row that is no bare heartbeat; the most frequent kinds come first."""
        if not value:
            self._read_one(place, key, value)
            return
        request = _REQUEST.match(value) if value.isascii() else None
        message = b"" if request is None else value[request.end() :].rstrip(b"\r\n")
        message = message.removesuffix(_BREAKS_ENCODED).removesuffix(_LOGGER_BEHIND)
        if request is None or not message.endswith(b"}"):
            self._read_one(place, key, value)
        else:
            at_ms = self._times.of_line(request[1], request[2], place.timestamp_ms)
            try:
                self._read_request(place, key, at_ms, message)
            except decoding.RequestLineError as error:
                self._reject(error.reason, value, error.detail)

    def _read_request(self, place: RowPlace, key: bytes | None, at_ms: int, message: bytes) -> None:
        """Read a line of the request log in Kafka's own pattern."""
        stretch = self._stretch(place.partition, place.backlog, _broker_of(key))
        heard_ms = not_ahead(at_ms, place.timestamp_ms)
        beat = quiet_lines.LINE.fullmatch(message)
        if beat:
            stretch.beat_of(beat, heard_ms, place)
            return
        stretch.hear(on.Source.REQUEST_LOG, heard_ms // 1000, place)
        self._request(stretch, place, at_ms, message)

    def _stretch(self, partition: int, backlog: bool, broker: int) -> Stretch:
        self._fresh[partition] = False
        key = (partition, len(self._copies.get(partition, ())), backlog, broker)
        stretch = self._stretches.get(key)
        if stretch is None:
            stretch = self._stretches[key] = Stretch(partition, backlog, broker)
        return stretch

    def _read_one(self, place: RowPlace, key: bytes | None, value: bytes | None) -> None:
        """Read a row that is no plain heartbeat; it may hold several lines."""
        lines = decoding.open_lines(value, key=key, timestamp_ms=place.timestamp_ms, timezone=self._timezone)
        index = 0
        for found in lines:
            if isinstance(found, decoding.EnvelopeError):
                self._reject(found.reason, value, found.detail)
                continue
            here = msgspec.structs.replace(place, index=index) if index else place
            index += self._read_opened(here, key, found)

    def _read_opened(self, place: RowPlace, key: bytes | None, opened: Opened) -> int:
        """Read one line, and return how many observations it made."""
        whole, parts = self._parts.whole(place.partition, key, opened)
        if whole is None:
            return 0
        if parts:
            self._decoded.count("events", "line_part", parts)
        try:
            return self._line(place, whole.line.at_ms, whole)
        except (decoding.LogLineError, decoding.RequestLineError) as error:
            self._reject(error.reason, _sample(whole), error.detail)
        except UnicodeError as error:
            self._reject("not_utf8", _sample(whole), str(error))
        return 0

    def _clock(self, place: RowPlace, value: bytes | None) -> None:
        try:
            copy = read_copy(value or b"", stamp_ms=place.timestamp_ms, run=self._run, secret=self._secret)
        except ClockCopyError as error:
            self._reject(error.reason, value, error.detail)
            return
        if copy is None:
            # It is another monitor's: its time is not ours, and none of our lines wait for it.
            self._decoded.count("control", "other_run")
            return
        self._decoded.count("control", "events_clock")
        clock = on.EventsClock(sequence=copy.sequence, skew_ms=copy.skew_ms, lead_ms=copy.lead_ms)
        seen = place.seen(copy.at_ms, on.Source.CONTROL, -1, clock)
        if copy.shards is None:
            self._tick(place, seen)
        else:
            self._narrow.append((frozenset(copy.shards), seen))
        self._copies.setdefault(place.partition, []).append(seen)

    def _tick(self, place: RowPlace, seen: on.Seen) -> None:
        """Keep a copy that is for all shards."""
        last = self._everywhere[-1] if self._everywhere else None
        idle = self._fresh.get(place.partition, False)
        # While a broker is silent only the newest copy matters; each copy costs one entry per shard.
        if idle and last and last.partition == place.partition and last.at_ms <= seen.at_ms:
            self._everywhere[-1] = seen
        else:
            self._everywhere.append(seen)
        self._fresh[place.partition] = True

    def _line(self, place: RowPlace, at_ms: int, opened: Opened) -> int:
        line = opened.line
        if line.message.startswith("Completed request:"):
            return self._request_line(place, at_ms, line)
        parsed = decoding.parse_broken_line(
            line.message, breaks_encoded=opened.breaks_encoded, shard_count=self._shard_count
        )
        if parsed.observation is None:
            self._not_ours(opened)
            return 0
        broker = line.broker if line.broker >= 0 or parsed.broker is None else parsed.broker
        stretch = self._stretch(place.partition, place.backlog, broker)
        stretch.hear(on.Source.COORDINATOR_LOG, not_ahead(at_ms, place.timestamp_ms) // 1000, place)
        shards = self._shards(parsed.observation, parsed.partition)
        what = parsed.observation
        seen = place.seen(at_ms, on.Source.COORDINATOR_LOG, broker, what, is_whole=line.is_whole)
        for shard in shards:
            self._decoded.add(shard, seen)
        reason = _NOT_UNDERSTOOD.get(getattr(parsed.observation, "kind", ""))
        routed = shards or isinstance(parsed.observation, on.LogNoted)
        if reason is not None:
            self._reject(reason, _sample(opened), "not a known sentence of the coordinator")
        else:
            self._decoded.count("coordinator_log", kind_of(parsed.observation) if routed else "unroutable")
        return 1

    def _not_ours(self, opened: Opened) -> None:
        """Count a line that is no coordinator's: from another logger, of a stack trace, or not understood."""
        line = opened.line
        is_other = line.logger is not None and "coordinator" not in line.logger.lower()
        has_header = opened.has_header or line.level is not None or line.logger is not None
        if line.level is None and not opened.has_marks and decoding.is_continuation(line.message):
            self._decoded.count("coordinator_log", "continuation")
        elif is_other or (has_header and not opened.has_marks):
            self._decoded.count("coordinator_log", "other")
        else:
            self._reject(UNKNOWN_LAYOUT, _sample(opened), "the text before the message has no known layout")

    def _shards(self, what: on.AnyObservation, partition: int | None) -> list[int]:
        if partition is not None and partition < self._shard_count:
            is_for_cluster = on.Concerns.CLUSTER in on.TRAITS[type(what)].concerns
            return [partition, on.CLUSTER_SHARD] if is_for_cluster else [partition]
        group = getattr(what, "group", None)
        if group is not None:
            return [shard_of(group, self._shard_count)]
        if isinstance(what, on.GroupsDeleted):
            names = what.names.split(", ")
            if len(names) > NAMES_MAX:
                return list(range(self._shard_count))
            return sorted(shards_of_runs(names, ", ", self._shard_count))
        return []

    def _request_line(self, place: RowPlace, at_ms: int, line: decoding.Line) -> int:
        stretch = self._stretch(place.partition, place.backlog, line.broker)
        message = line.message.encode()
        beat = quiet_lines.LINE.fullmatch(message)
        heard_ms = not_ahead(at_ms, place.timestamp_ms)
        if beat:
            stretch.beat_of(beat, heard_ms, place)
            return 1
        stretch.hear(on.Source.REQUEST_LOG, heard_ms // 1000, place)
        return self._request(stretch, place, at_ms, message, is_whole=line.is_whole)

    def _request(
        self, stretch: Stretch, place: RowPlace, at_ms: int, message: bytes, *, is_whole: bool = False
    ) -> int:
        kind, observations = decoding.parse_request_line(message, at_ms)
        self._decoded.count("request_log", kind)
        for index, what in enumerate(observations):
            if isinstance(what, Coalesced):
                stretch.coalesce(what, place)
                continue
            if isinstance(what, on.GroupObservation | on.ShardStalled):
                shard = shard_of(what.group, self._shard_count)
            elif isinstance(what, on.TransactionEnded) and what.partition < self._shard_count:
                shard = what.partition
            else:
                continue
            source, broker = on.Source.REQUEST_LOG, stretch.broker
            self._decoded.add(shard, place.seen(at_ms, source, broker, what, index, is_whole=is_whole))
        return len(observations)

    def _reject(self, reason: str, value: bytes | None, detail: str, rows: int = 1) -> None:
        unknown = (0, (value or b"")[:SAMPLE_BYTES_MAX], plain(detail[:200]))
        count, sample, first_detail = self._bad.get(reason, unknown)
        self._bad[reason] = (count + rows, sample, first_detail)

    # --- finishing ---

    def finish(self) -> Decoded:
        """Return everything read; each cell is in the order of its partitions."""
        for part in self._parts.left():
            self._reject("partial_line", _sample(part), "the rest of the line did not arrive")
        self._read_columns()
        for stretch in self._stretches.values():
            self._add_quiet(stretch)
            for shard, seen in stretch.answers(self._shard_count):
                self._decoded.add(shard, seen)
            self._tell_heard(stretch)
        self._tell_everywhere()
        for cell in self._decoded.cells.values():
            cell.sort(key=_BY_PLACE)
        self._decoded.bad.extend(
            on.Undecodable(origin="events", reason=reason, count=count, sample=sample, detail=detail)
            for reason, (count, sample, detail) in self._bad.items()
        )
        return self._decoded

    def _read_columns(self) -> None:
        """Hand each stretch its lines that were read as columns, but those that are put together."""
        found: dict[tuple[int, bool, int], list[tuple[int, Stretch, Beats, Ints]]] = {}
        for (partition, ordinal, backlog, broker), stretch in self._stretches.items():
            if stretch.columns:
                beats = quiet_columns.joined(stretch.columns)
                at_ms, heard_ms = of_beats(beats)
                stretch.hear_columns(heard_ms)
                of_broker = found.setdefault((partition, backlog, broker), [])
                of_broker.append((ordinal, stretch, beats, at_ms))
        for (partition, backlog, broker), parts in found.items():
            if self._puts_together and not backlog:
                self._put_together(partition, broker, parts)
                continue
            for _, stretch, beats, at_ms in parts:
                stretch.take_columns(beats, at_ms)

    def _put_together(
        self, partition: int, broker: int, parts: list[tuple[int, Stretch, Beats, Ints]]
    ) -> None:
        copies = self._copies.get(partition, [])
        allowed = spans([(one.at_ms, one.what) for one in copies if isinstance(one.what, on.EventsClock)])
        told = put_together(
            [Lines(beats, at_ms, allowed[ordinal]) for ordinal, _, beats, at_ms in parts],
            partition=partition,
            broker=broker,
            shard_count=self._shard_count,
        )
        for shard, seen in told.seen:
            self._decoded.add(shard, seen)
        for (_, stretch, beats, at_ms), used in zip(parts, told.used, strict=True):
            if used.any():
                stretch.leave_out(beats, used)
                self._count(beats.counts(used))
            stretch.take_columns(beats.those(~used), at_ms[~used])

    def _tell_heard(self, stretch: Stretch) -> None:
        """Tell in which seconds a broker was heard: to a shard only its request log's silence is a proof."""
        for seen in self._heard_in(stretch):
            if isinstance(seen.what, on.LogSeconds) and seen.what.heard is on.Source.REQUEST_LOG:
                self._everywhere.append(seen)
            else:
                self._narrow.append((_CLUSTER, seen))

    def _tell_everywhere(self) -> None:
        """Tell each shard the clocks, and what else concerns more than one."""
        for shard in (*range(self._shard_count), on.CLUSTER_SHARD):
            told = [*self._everywhere, *(seen for shards, seen in self._narrow if shard in shards)]
            if told:
                self._decoded.cells.setdefault(shard, []).extend(told)

    def _heard_in(self, stretch: Stretch) -> Iterable[on.Seen]:
        """Yield when a broker was heard; every shard gets this, so implausibly many brokers are cut."""
        self._brokers.add(stretch.broker)
        if len(self._brokers) <= BROKERS_MAX:
            return heard_in(stretch)
        self._brokers.discard(stretch.broker)
        self._reject(
            "too_many_brokers", b"%d" % stretch.broker, "the batch names more brokers than a cluster can have"
        )
        return ()

    def _add_quiet(self, stretch: Stretch) -> None:
        """Add the coalesced lines of every member."""
        counts: dict[int, int] = {}
        for shard, seen, api, count in stretch.quiet(self._shard_count):
            self._decoded.add(shard, seen)
            counts[api] = counts.get(api, 0) + count
        self._count(counts)

    def _count(self, counts: Mapping[int, int]) -> None:
        """Count lines that say nothing new, by the keys of their APIs."""
        for api, count in counts.items():
            self._decoded.count("request_log", quiet_lines.KINDS[api], count)


_CLUSTER = frozenset({on.CLUSTER_SHARD})
_REQUEST = re.compile(
    rb"\[(" + quiet_lines.SECOND + rb"),(\d{3})" + quiet_lines.LEVEL + rb"(?=Completed request:)"
)
_BREAKS_ENCODED = BREAKS_ENCODED.encode()
_LOGGER_BEHIND = b" (kafka.request.logger)"
_broker_of = lru_cache(maxsize=4096)(decoding.key_broker)


def _sample(opened: Opened) -> bytes:
    return opened.text[:SAMPLE_BYTES_MAX].encode(errors="replace")
