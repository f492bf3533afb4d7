"""``groupwatch replay``: the model over captured files, without Spark or Kafka.

Reads ``server.log`` and ``kafka-request.log`` (plain or .gz, also the JSON of shippers) and JSON Lines
of captured rows, merges them by time, and feeds them to the same shards that run in the stream.  It ends
at the last line: what is firing then stays firing.

Each file is one partition of log lines of its own.  Two things that the stream is told are found in
the files themselves: how many partitions the offsets topic has, and which broker wrote a request log
(the one whose ``server.log`` lies beside it).
"""

import gzip
import heapq
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import msgspec
from rich.console import Console
from rich.table import Table

from alerts.alert import Alert
from alerts.rules import RuleJudge
from coordinator_model import capture, coordinator_log
from coordinator_model.group import Transition
from coordinator_model.hashing import shard_of
from coordinator_model.judging import Judge
from coordinator_model.log_envelope import EnvelopeError, open_record
from coordinator_model.observations import OffsetsCommitted, Seen, Source
from coordinator_model.records import observe
from coordinator_model.wire import DecodeError
from streaming.captured_ends import CapturedEnds
from streaming.decoding_events import CLOCK_KEY, decode_rows

CLUSTER = "replay"
CHUNK = 2_000
"""Lines between two readings of the clock."""
CHUNK_MS = 60_000
_SNIFFED_LINES = 20
_HOMES_MAX = 2_000


class ReplayError(Exception):
    """A file that cannot be read; the message names it."""


class Piece(NamedTuple):
    """One line of one file, with the time by which files are merged."""

    at_ms: int
    file: int
    number: int
    row: capture.CapturedRow | bytes


@dataclass
class _File:
    path: Path
    captured: bool = False
    broker: int = -1
    has_lines: bool = False
    has_offsets: bool = False


@dataclass
class Material:
    """What a first look at the files told."""

    files: list[_File] = field(default_factory=list)
    homes: dict[str, int] = field(default_factory=dict)
    """Group -> partition of the offsets topic."""

    @property
    def has_offsets(self) -> bool:
        """Say whether records of the offsets topic are among it."""
        return any(one.has_offsets for one in self.files)


@dataclass
class Skipped:
    """How many lines could not be used, by reason."""

    counts: dict[str, int] = field(default_factory=dict)
    last_ms: int = -1
    """Time of the newest line that was read."""

    def add(self, reason: str, count: int = 1) -> None:
        """Count lines."""
        self.counts[reason] = self.counts.get(reason, 0) + count


def replay(
    paths: Iterable[str | Path],
    *,
    config_rules: bytes | None,
    timezone: str,
    judge: Judge | None = None,
    skipped: Skipped | None = None,
    strict: bool = False,
) -> Iterator[Transition | Alert]:
    """Yield the transitions and alerts that the files tell, in the order of time.

    Args:
        paths: files; also several brokers', and logs beside captured rows.
        config_rules: the settings as the executors get them (JSON), None for the defaults.
        timezone: of times in log lines, e.g. "Europe/Paris".
        judge: the rules; the built-in ones by default.
        skipped: counts what could not be read.
        strict: raise where our own code fails, for tests.

    Raises:
        ReplayError: a file is missing or damaged, or holds nothing that groupwatch can read.
    """
    material = look([Path(path) for path in paths], timezone)
    mirror = capture.Mirror(
        cluster=CLUSTER,
        shard_count=capture.shard_count_of(material.homes),
        settings=_settings(config_rules, material),
        judge=RuleJudge() if judge is None else judge,
        feeds=len(material.files),
        offsets=material.has_offsets,
        strict=strict,
    )
    yield from _Feeding(material, mirror, timezone, skipped or Skipped()).run()


def _settings(config_rules: bytes | None, material: Material) -> bytes:
    settings: dict[str, Any] = msgspec.json.decode(config_rules or b"{}")
    # Without the topic, Stable follows from "Assignment received" alone.
    settings["offsets_enabled"] = material.has_offsets
    return msgspec.json.encode(settings, order="sorted")


# --- reading -----------------------------------------------------------------------------------------


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield a file's lines without their ends.

    Raises:
        ReplayError: it is missing or damaged.
    """
    try:
        with _opened(path) as stream:
            for line in stream:
                text = line.rstrip(b"\r\n")
                if text:
                    yield text
    except (OSError, EOFError) as error:
        raise ReplayError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _opened(path: Path) -> BinaryIO:
    stream = path.open("rb")
    magic = stream.read(2)
    stream.seek(0)
    # By its first bytes: a rolled log may be compressed under any name.
    return cast("BinaryIO", gzip.open(stream)) if magic == b"\x1f\x8b" else stream


def look(paths: list[Path], timezone: str) -> Material:
    """Look through the files once for what must be known before the first line.

    Raises:
        ReplayError: a file is missing or damaged, or there is nothing in them.
    """
    material = Material()
    for path in paths:
        one = _File(path, captured=_is_captured(path))
        material.files.append(one)
        if one.captured:
            _look_at_rows(one, material)
        else:
            _look_at_lines(one, material)
    if not any(one.has_lines or one.has_offsets for one in material.files):
        raise ReplayError("there is nothing to replay in " + ", ".join(str(path) for path in paths))
    _name_brokers(material.files)
    return material


def _is_captured(path: Path) -> bool:
    for line in islice(lines_of(path), _SNIFFED_LINES):
        try:
            capture.read_row(line)
        except capture.CaptureError:
            continue
        return True
    return False


def _look_at_rows(one: _File, material: Material) -> None:
    for line in lines_of(one.path):
        one.has_lines = True
        if b'"log"' in line and len(material.homes) < _HOMES_MAX:
            _learn_home(line, one, material)
        elif b'"offsets"' in line:
            _learn_partition(line, one, material)


def _learn_partition(line: bytes, one: _File, material: Material) -> None:
    try:
        row = capture.read_row(line)
        if not isinstance(row, capture.OffsetsRow):
            return
        one.has_offsets = True
        if len(material.homes) < _HOMES_MAX:
            what = observe(row.key_bytes(), row.value_bytes(), recorded_at_ms=row.timestamp_ms)
            material.homes[what.group] = row.partition
    except (capture.CaptureError, DecodeError):
        return


def _look_at_lines(one: _File, material: Material) -> None:
    for line in lines_of(one.path):
        one.has_lines = True
        if one.broker >= 0 and len(material.homes) >= _HOMES_MAX:
            return
        if b"[GroupCoordinator " in line:
            _learn_home(line, one, material)


def _learn_home(line: bytes, one: _File, material: Material) -> None:
    start = line.find(b"[GroupCoordinator ")
    if start < 0:
        return
    parsed = coordinator_log.parse(line[start:].decode(errors="replace").partition(" (org.apache.kafka.")[0])
    if parsed.broker is not None and one.broker < 0:
        one.broker = parsed.broker
    group = getattr(parsed.observation, "group", None)
    if group and parsed.partition is not None and not one.captured:
        material.homes[group] = parsed.partition


def _name_brokers(files: list[_File]) -> None:
    """Give a file whose lines name no broker that of the log beside it, or of the only one there is."""
    known = {one.broker for one in files if one.broker >= 0}
    for one in files:
        beside = {other.broker for other in files if other.path.parent == one.path.parent} - {-1}
        for candidates in (beside, known):
            if one.broker < 0 and len(candidates) == 1:
                one.broker = next(iter(candidates))


def _pieces(one: _File, index: int, timezone: str, skipped: Skipped) -> Iterator[Piece]:
    """Yield a file's lines with their times; a line without one has its predecessor's."""
    at_ms = -1 if one.captured else _first_ms(one, timezone)
    for number, line in enumerate(lines_of(one.path)):
        if one.captured:
            try:
                row = capture.read_row(line)
            except capture.CaptureError:
                skipped.add("not_a_captured_row")
                continue
            yield Piece(row.timestamp_ms, index, number, row)
            continue
        try:
            told_ms = open_record(line, key=None, timestamp_ms=at_ms, timezone=timezone).at_ms
        except EnvelopeError as error:
            skipped.add(error.reason)
            continue
        at_ms = max(told_ms, 0) if at_ms < 0 else told_ms
        yield Piece(at_ms, index, number, line)


def _first_ms(one: _File, timezone: str) -> int:
    """Return the first time that any line of the file tells, -1 if none does: it dates what is above."""
    for line in lines_of(one.path):
        try:
            told_ms = open_record(line, key=None, timestamp_ms=-1, timezone=timezone).at_ms
        except EnvelopeError:
            continue
        if told_ms >= 0:
            return told_ms
    return -1


# --- feeding -----------------------------------------------------------------------------------------


class _Feeding:
    """Feeds merged lines to a mirror, chunk by chunk."""

    def __init__(self, material: Material, mirror: capture.Mirror, timezone: str, skipped: Skipped) -> None:
        self._files = material.files
        self._mirror = mirror
        self._timezone = timezone
        self._skipped = skipped
        self._shard_count = len(mirror.shards) - 1
        self._offset = 0
        self._last_ms = -1
        """Newest line."""
        self._clock_ms = -1
        """Newest clock row."""
        self._ends = CapturedEnds(self._shard_count)

    def run(self) -> Iterator[Transition | Alert]:
        files = enumerate(self._files)
        merged = heapq.merge(
            *(_pieces(one, index, self._timezone, self._skipped) for index, one in files),
            key=lambda piece: piece.at_ms,
        )
        for chunk in _chunks(merged):
            self._feed(chunk)
            yield from self._mirror.advance(max(self._last_ms, self._clock_ms))
        self._skipped.last_ms = max(self._last_ms, self._clock_ms)
        yield from self._mirror.finish(self._skipped.last_ms)

    def _feed(self, chunk: list[Piece]) -> None:
        rows: list[tuple[int, int, int, bytes | None, bytes | None]] = []
        for piece in chunk:
            self._offset += 1
            row = piece.row
            if isinstance(row, capture.ClockRow):
                self._clock_ms = max(self._clock_ms, piece.at_ms)
                continue
            self._last_ms = max(self._last_ms, piece.at_ms)
            if isinstance(row, capture.OffsetsRow):
                self._feed_record(row)
            elif isinstance(row, capture.EndOffsetRow):
                self._mirror.feed(self._ends.captured(row, self._offset))
            elif isinstance(row, capture.LogRow):
                rows.append(_line(piece, self._offset, row.broker, row.text.encode(), row.timestamp_ms))
            elif isinstance(row, bytes):
                rows.append(_line(piece, self._offset, self._files[piece.file].broker, row, piece.at_ms))
        rows.sort(key=lambda one: one[0])
        decoded = decode_rows(rows, shard_count=self._shard_count, backlog_ends={}, timezone=self._timezone)
        for bad in decoded.bad:
            self._skipped.add(bad.reason, bad.count)
        self._mirror.feed(decoded.cells)

    def _feed_record(self, row: capture.OffsetsRow) -> None:
        try:
            what = observe(row.key_bytes(), row.value_bytes(), recorded_at_ms=row.timestamp_ms)
        except (capture.CaptureError, DecodeError) as error:
            self._skipped.add(error.fault.value if isinstance(error, DecodeError) else "not_hex")
            return
        seen = Seen(
            at_ms=row.timestamp_ms,
            source=Source.OFFSETS,
            partition=row.partition,
            offset=self._offset,
            index=0,
            broker=-1,
            recorded_at_ms=row.timestamp_ms,
            backlog=False,
            what=what,
        )
        self._mirror.feed({shard_of(what.group, self._shard_count): [seen]})
        if isinstance(what, OffsetsCommitted):
            self._mirror.feed(self._ends.committed(what, row.timestamp_ms, self._offset))


def _line(
    piece: Piece, offset: int, broker: int, value: bytes, at_ms: int
) -> tuple[int, int, int, bytes | None, bytes | None]:
    key = str(broker).encode() if broker >= 0 else None
    assert key != CLOCK_KEY  # noqa: S101 - digits
    return piece.file, offset, at_ms, key, value


def _chunks(pieces: Iterator[Piece]) -> Iterator[list[Piece]]:
    """Cut at a number of lines, at a stretch of time, and behind a clock row."""
    chunk: list[Piece] = []
    for piece in pieces:
        if chunk and (len(chunk) >= CHUNK or piece.at_ms - chunk[0].at_ms > CHUNK_MS):
            yield chunk
            chunk = []
        chunk.append(piece)
        if isinstance(piece.row, capture.ClockRow):
            yield chunk
            chunk = []
    if chunk:
        yield chunk


# --- printing ----------------------------------------------------------------------------------------


def print_replay(happened: Iterable[Transition | Alert], *, as_json: bool, alerts: bool) -> int:
    """Print what happened to stdout and return how many lines; alerts only if asked for."""
    wanted = (one for one in happened if alerts or isinstance(one, Transition))
    return _print_json(wanted) if as_json else _print_table(wanted)


def _print_json(happened: Iterable[Transition | Alert]) -> int:
    count = 0
    for one in happened:
        sys.stdout.write(msgspec.json.encode(one).decode() + "\n")
        count += 1
    return count


def _print_table(happened: Iterable[Transition | Alert]) -> int:
    table = Table("time (UTC)", "group", "what", "generation", "cause", "who", "basis")
    count = 0
    for one in happened:
        table.add_row(*(_transition_cells(one) if isinstance(one, Transition) else _alert_cells(one)))
        count += 1
    # In a pipe there is no width to keep to, and nothing may be cut off.
    console = Console(width=None if sys.stdout.isatty() else 240, markup=False, highlight=False)
    console.print(table)
    return count


def _time(at_ms: int) -> str:
    moment = datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{at_ms % 1000:03d}"


def _transition_cells(one: Transition) -> tuple[str, ...]:
    who = one.cause.client_id or one.cause.member_id
    host = f" {one.cause.client_host}" if one.cause.client_host else ""
    moved = f"{one.from_state} -> {one.to_state}" + (" (corrects an earlier line)" if one.replaces else "")
    return (
        _time(one.at_ms),
        one.group,
        moved,
        str(one.generation),
        str(one.cause.kind),
        who + host,
        f"{one.basis} ({one.source})",
    )


def _alert_cells(one: Alert) -> tuple[str, ...]:
    at_ms = one.detected_at_ms if one.ends_at_ms is None else one.ends_at_ms
    culprits = ", ".join(culprit.client_id or culprit.member_id for culprit in one.culprits)
    what = f"{one.name} {one.status} ({one.severity}): {one.summary}"
    return _time(at_ms), one.group, what, "", one.cause, culprits, ""
