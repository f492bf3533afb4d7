"""From rows of the events topic to observations: brokers' log lines, and copies of the clock.

Nearly all rows are heartbeats, so there is a path for them that reads a line with one expression over
its bytes, in exactly the field order that brokers write, and looks no closer until a run of equal
heartbeats is complete.  Whatever it does not match in full takes the ordinary path.

Runs of heartbeats and commits of one member with one answer are folded into one observation.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec
import pyarrow as pa

from coordinator_model import coordinator_log, log_envelope, request_log
from coordinator_model import observations as on
from coordinator_model.hashing import shard_of
from streaming.decoded import Decoded

CLOCK_KEY = b"groupwatch-clock"
SAMPLE_BYTES_MAX = 512
_AHEAD_MAX_MS = 86_400_000
"""A line that claims to be later than a day after its record's time has a broken clock: it would drag
the whole shard's *now* along, so the record's time counts."""

Row = tuple[int, int, int, bytes | None, bytes | None]
"""Partition, offset, timestamp_ms, key, value."""


def decode_events(
    batch: pa.RecordBatch, *, shard_count: int, backlog_ends: Mapping[int, int], timezone: str
) -> Decoded:
    """Decode one Arrow batch with the columns partition, offset, timestamp_ms, key and value.

    Args:
        batch: rows in the order of their partitions.
        shard_count: partitions of ``__consumer_offsets``.
        backlog_ends: partition -> end offset at the first start; rows before it are backlog.
        timezone: of times that are written in the lines without one.

    What a row holds never raises: it is counted in ``bad``.
    """
    names = ("partition", "offset", "timestamp_ms", "key", "value")
    rows = zip(*(batch.column(name).to_pylist() for name in names), strict=True)
    return decode_rows(rows, shard_count=shard_count, backlog_ends=backlog_ends, timezone=timezone)


def decode_rows(
    rows: Iterable[Row], *, shard_count: int, backlog_ends: Mapping[int, int], timezone: str
) -> Decoded:
    """Decode rows that are not in Arrow; see ``decode_events``."""
    decoding = _Decoding(shard_count, backlog_ends, timezone)
    decoding.read(rows)
    return decoding.finish()


_TEXT = rb'"([^"\\\x00-\x1f]*+)"'
_SKIPPED = rb'"[^"\\\x00-\x1f]*+"'
_DOUBLE = rb"\d++\.\d++"
_HEARTBEAT = re.compile(
    rb"(?:\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\] (?:DEBUG|INFO) )?"
    rb'Completed request:\{"isForwarded":(?:false|true),"requestHeader":\{"requestApiKey":12,'
    rb'"requestApiVersion":\d{1,2},"correlationId":-?\d{1,10},"clientId":' + _TEXT + rb","
    rb'"requestApiKeyName":"HEARTBEAT"\},"request":('
    rb'\{"groupId":' + _TEXT + rb',"generationId":(-?\d{1,9}),"memberId":' + _TEXT + rb""
    rb'(?:,"groupInstanceId":(?:null|' + _TEXT + rb'))?\},"response":'
    rb'\{(?:"throttleTimeMs":\d{1,9},)?"errorCode":(-?\d{1,4})\}),"connection":' + _TEXT + rb","
    rb'"totalTimeMs":'
    + _DOUBLE
    + rb',"requestQueueTimeMs":'
    + _DOUBLE
    + rb',"localTimeMs":'
    + _DOUBLE
    + rb","
    rb'"remoteTimeMs":' + _DOUBLE + rb',"throttleTimeMs":\d++,"responseQueueTimeMs":' + _DOUBLE + rb","
    rb'"sendTimeMs":' + _DOUBLE + rb',"securityProtocol":' + _SKIPPED + rb',"principal":' + _TEXT + rb","
    rb'"listener":' + _SKIPPED + rb',"clientInformation":\{"softwareName":' + _TEXT + rb","
    rb'"softwareVersion":' + _SKIPPED + rb"\}\}(?: \(kafka\.request\.logger\))?\n?"
)
"""A heartbeat as Kafka 2.8 and later write it; no text in it may hold an escape."""

_KINDS: Mapping[type[object], str] = {
    on.MemberIdHandedOut: "member_id_handed_out",
    on.MemberJoined: "member_joined",
    on.StaticMemberReplaced: "static_member_replaced",
    on.RebalanceStarted: "rebalance_started",
    on.JoinPhaseEnded: "join_phase_ended",
    on.AssignmentReceived: "assignment_received",
    on.GroupEmptied: "group_emptied",
    on.MembersKicked: "members_kicked",
    on.MemberFailed: "member_failed",
    on.PendingMemberExpired: "pending_member_expired",
    on.MemberLeft: "member_left",
    on.NobodyRejoined: "nobody_rejoined",
    on.SimpleGroupCreated: "simple_group_created",
    on.GroupLoaded: "group_loaded",
    on.GroupUnloaded: "group_unloaded",
    on.LeaderReplaced: "leader_replaced",
    on.InstanceFenced: "instance_fenced",
    on.GroupsDeleted: "groups_deleted",
    on.ShardLoading: "shard_loading",
    on.ShardLoaded: "shard_loaded",
    on.ShardUnloaded: "shard_unloaded",
}

_FoldKey = tuple[int, bool, int, type[object], str, str, int, int]
_RunKey = tuple[int, bool, int, bytes]
_HeardKey = tuple[int, bool, int, on.Source]


class _ClockCopy(msgspec.Struct):
    at_ms: int
    sequence: int


class _Place:
    """Where the row being read stands."""

    __slots__ = ("backlog", "offset", "partition", "timestamp_ms")

    def __init__(self, partition: int, offset: int, timestamp_ms: int, backlog: bool) -> None:
        self.partition = partition
        self.offset = offset
        self.timestamp_ms = timestamp_ms
        self.backlog = backlog


class _Run:
    """Heartbeats that differ only in time, as bytes; read when the batch is complete."""

    __slots__ = ("last", "offset", "timestamp_ms", "times")

    def __init__(self) -> None:
        self.times: list[int] = []
        self.last: re.Match[bytes] | None = None
        self.offset = -1
        self.timestamp_ms = -1


class _Fold:
    """Heartbeats or commits of one member with one answer."""

    __slots__ = ("offset", "timestamp_ms", "times", "what")

    def __init__(self, what: on.Heartbeats | on.CommitsAnswered) -> None:
        self.what = what
        self.times: list[int] = []
        self.offset = -1
        self.timestamp_ms = -1

    def take(
        self, what: on.Heartbeats | on.CommitsAnswered, times: Iterable[int], offset: int, stamp: int
    ) -> None:
        self.times.extend(times)
        if offset >= self.offset:
            self.what, self.offset, self.timestamp_ms = what, offset, stamp


class _Decoding:
    """The work on one batch."""

    def __init__(self, shard_count: int, backlog_ends: Mapping[int, int], timezone: str) -> None:
        self._shard_count = shard_count
        self._backlog_ends = backlog_ends
        self._timezone = timezone
        self._decoded = Decoded()
        self._runs: dict[_RunKey, _Run] = {}
        self._folds: dict[_FoldKey, _Fold] = {}
        self._heard: dict[_HeardKey, tuple[set[int], _Place]] = {}
        self._clocks: dict[tuple[int, bool], on.Seen] = {}
        self._bad: dict[str, tuple[int, bytes, str]] = {}

    # --- reading ---

    def read(self, rows: Iterable[Row]) -> None:
        """Read every row; heartbeats in the form that brokers write them are only collected."""
        match, ends, runs = _HEARTBEAT.fullmatch, self._backlog_ends, self._runs
        for partition, offset, stamp, key, value in rows:
            found = match(value) if value else None
            if found is None or key == CLOCK_KEY:
                self._read_one(_Place(partition, offset, stamp, offset < ends.get(partition, 0)), key, value)
                continue
            second, millis, identity = found.group(1, 2, 4)
            at_ms = stamp if second is None else self._own_ms(second, millis, stamp)
            run_key = (partition, offset < ends.get(partition, 0), _broker_of(key), identity)
            run = runs.get(run_key)
            if run is None:
                run = runs[run_key] = _Run()
            run.times.append(at_ms)
            run.last, run.offset, run.timestamp_ms = found, offset, stamp

    def _own_ms(self, second: bytes, millis: bytes, stamp: int) -> int:
        first, other = _second_ms(second, self._timezone)
        if first != other:
            return self._sane(
                log_envelope.local_ms(second.decode(), int(millis), self._timezone, stamp), stamp
            )
        return self._sane(first + int(millis) if first >= 0 else stamp, stamp)

    @staticmethod
    def _sane(at_ms: int, stamp: int) -> int:
        return stamp if at_ms < 0 or at_ms > stamp + _AHEAD_MAX_MS else at_ms

    def _read_one(self, place: _Place, key: bytes | None, value: bytes | None) -> None:
        if key == CLOCK_KEY:
            self._clock(place, value)
            return
        try:
            line = log_envelope.open_record(
                value, key=key, timestamp_ms=place.timestamp_ms, timezone=self._timezone
            )
            at_ms = self._sane(line.at_ms, place.timestamp_ms)
            self._line(place, line.broker, at_ms, line.message)
        except (log_envelope.EnvelopeError, request_log.RequestLineError) as error:
            self._reject(error.reason, value, error.detail)
        except UnicodeError as error:
            self._reject("not_utf8", value, str(error)[:200])

    def _clock(self, place: _Place, value: bytes | None) -> None:
        try:
            copy = _CLOCK.decode(value or b"")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._reject("clock_invalid", value, str(error)[:200])
            return
        self._decoded.count("control", "events_clock")
        where = (place.partition, place.backlog)
        known = self._clocks.get(where)
        # Only the newest copy of a batch says anything: all before it has been read.
        if known is None or copy.at_ms >= known.at_ms:
            clock = on.EventsClock(sequence=copy.sequence)
            self._clocks[where] = _seen(place, copy.at_ms, on.Source.CONTROL, 0, -1, clock)

    def _line(self, place: _Place, broker: int, at_ms: int, message: str) -> None:
        if message.startswith("Completed request:"):
            self._hear(place, broker, on.Source.REQUEST_LOG, at_ms)
            self._request(place, broker, at_ms, message.encode())
            return
        parsed = coordinator_log.parse(message, shard_count=self._shard_count)
        if parsed.observation is None:
            kind = "continuation" if log_envelope.is_continuation(message) else "other"
            self._decoded.count("coordinator_log", kind)
            return
        broker = broker if broker >= 0 else -1 if parsed.broker is None else parsed.broker
        self._hear(place, broker, on.Source.COORDINATOR_LOG, at_ms)
        self._coordinator(place, broker, at_ms, parsed)

    def _coordinator(self, place: _Place, broker: int, at_ms: int, parsed: coordinator_log.Parsed) -> None:
        what = parsed.observation
        if what is None:
            return
        shards = self._shards(what, parsed.partition)
        is_note = isinstance(what, on.LogNoted)
        kind = what.kind if isinstance(what, on.LogNoted) else _KINDS[type(what)]
        self._decoded.count("coordinator_log", kind if shards or is_note else "unroutable")
        seen = _seen(place, at_ms, on.Source.COORDINATOR_LOG, 0, broker, what)
        for shard in shards:
            self._decoded.add(shard, seen)

    def _shards(self, what: on.AnyObservation, partition: int | None) -> Iterable[int]:
        if partition is not None and 0 <= partition < self._shard_count:
            return (partition,)
        group = getattr(what, "group", None)
        if group is not None:
            return (shard_of(group, self._shard_count),)
        if isinstance(what, on.GroupsDeleted):
            return sorted({shard_of(name, self._shard_count) for name in _possible_names(what.names)})
        return ()

    def _request(self, place: _Place, broker: int, at_ms: int, message: bytes) -> None:
        answered = request_log.parse(message, at_ms)
        self._decoded.count("request_log", answered.kind)
        for index, what in enumerate(answered.observations):
            if isinstance(what, on.Heartbeats | on.CommitsAnswered):
                self._fold(place, broker, what, what.times)
            elif isinstance(what, on.GroupObservation):
                seen = _seen(place, at_ms, on.Source.REQUEST_LOG, index, broker, what)
                self._decoded.add(shard_of(what.group, self._shard_count), seen)

    def _fold(
        self,
        place: _Place,
        broker: int,
        what: on.Heartbeats | on.CommitsAnswered,
        times: Iterable[int],
    ) -> None:
        key = (
            place.partition,
            place.backlog,
            broker,
            type(what),
            what.group,
            what.member_id,
            what.generation,
            what.error_code,
        )
        fold = self._folds.get(key)
        if fold is None:
            fold = self._folds[key] = _Fold(what)
        fold.take(what, times, place.offset, place.timestamp_ms)

    def _hear(self, place: _Place, broker: int, source: on.Source, at_ms: int) -> None:
        key = (place.partition, place.backlog, broker, source)
        known = self._heard.get(key)
        if known is None:
            self._heard[key] = ({at_ms // 1000}, place)
            return
        known[0].add(at_ms // 1000)
        if place.offset > known[1].offset:
            self._heard[key] = (known[0], place)

    def _reject(self, reason: str, value: bytes | None, detail: str, rows: int = 1) -> None:
        count, sample, first_detail = self._bad.get(reason, (0, (value or b"")[:SAMPLE_BYTES_MAX], detail))
        self._bad[reason] = (count + rows, sample, first_detail)

    # --- finishing ---

    def finish(self) -> Decoded:
        """Return everything read, each cell in the order of its partitions."""
        for key, run in self._runs.items():
            self._finish_run(key, run)
        for fold_key, fold in self._folds.items():
            self._finish_fold(fold_key, fold)
        everywhere = [*self._clocks.values(), *map(self._finish_heard, self._heard.items())]
        if everywhere:
            for shard in (*range(self._shard_count), on.CLUSTER_SHARD):
                self._decoded.cells.setdefault(shard, []).extend(everywhere)
        for cell in self._decoded.cells.values():
            cell.sort(key=_position)
        self._decoded.bad.extend(
            on.Undecodable(origin="events", reason=reason, count=count, sample=sample, detail=detail)
            for reason, (count, sample, detail) in self._bad.items()
        )
        return self._decoded

    def _finish_run(self, key: _RunKey, run: _Run) -> None:
        partition, backlog, broker, identity = key
        if run.last is None:
            return
        try:
            what = _heartbeats(run.last)
        except UnicodeDecodeError as error:
            self._reject("not_utf8", run.last[0], str(error)[:200], len(run.times))
            return
        place = _Place(partition, run.offset, run.timestamp_ms, backlog)
        self._decoded.count("request_log", "heartbeat", len(run.times))
        self._fold(place, broker, what, run.times)
        for second in {at_ms // 1000 for at_ms in run.times}:
            self._hear(place, broker, on.Source.REQUEST_LOG, second * 1000)

    def _finish_fold(self, key: _FoldKey, fold: _Fold) -> None:
        partition, backlog, broker = key[:3]
        times = tuple(sorted(fold.times))
        place = _Place(partition, fold.offset, fold.timestamp_ms, backlog)
        what = msgspec.structs.replace(fold.what, times=times)
        seen = _seen(place, times[-1], on.Source.REQUEST_LOG, 0, broker, what)
        self._decoded.add(shard_of(what.group, self._shard_count), seen)

    @staticmethod
    def _finish_heard(entry: tuple[_HeardKey, tuple[set[int], _Place]]) -> on.Seen:
        (_, _, broker, source), (heard, place) = entry
        seconds = tuple(sorted(heard))
        what = on.BrokerHeard(broker=broker, heard=source, seconds=seconds)
        # Its own stream: a time rounded up must not push the lines of the same second back.
        return _seen(place, seconds[-1] * 1000 + 999, on.Source.CONTROL, 1, broker, what)


_CLOCK = msgspec.json.Decoder(_ClockCopy)
_broker_of = lru_cache(maxsize=4096)(log_envelope.key_broker)


@lru_cache(maxsize=8192)
def _second_ms(second: bytes, timezone: str) -> tuple[int, int]:
    return log_envelope.local_second_ms(second.decode(), timezone)


def _heartbeats(found: re.Match[bytes]) -> on.Heartbeats:
    _, _, client_id, _, group, generation, member, instance, error, connection, principal, software = (
        found.groups()
    )
    client = request_log.client_of(
        client_id.decode(), connection.decode(), principal.decode(), software.decode()
    )
    return on.Heartbeats(
        group=group.decode(),
        member_id=member.decode(),
        generation=int(generation),
        error_code=int(error),
        times=(),
        client=client,
        instance_id=None if instance is None else instance.decode(),
    )


def _seen(
    place: _Place, at_ms: int, source: on.Source, index: int, broker: int, what: on.AnyObservation
) -> on.Seen:
    return on.Seen(
        at_ms=at_ms,
        source=source,
        partition=place.partition,
        offset=place.offset,
        index=index,
        broker=broker,
        recorded_at_ms=place.timestamp_ms,
        backlog=place.backlog,
        what=what,
    )


def _position(seen: on.Seen) -> tuple[int, int, int]:
    return seen.partition, seen.offset, seen.index


def _possible_names(names: str) -> Iterable[str]:
    """Return the groups that a printed list may name: ids may hold its ", " themselves."""
    pieces = names.split(", ")
    if len(pieces) > 64:
        return pieces
    return [
        ", ".join(pieces[start:end])
        for start in range(len(pieces))
        for end in range(start + 1, len(pieces) + 1)
    ]
