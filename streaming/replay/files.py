"""The input of ``groupwatch replay``: log files, plain or compressed, and captured rows, with their times.

A first look through all files finds what must be known before the first line; after that each file is a
sequence of lines in its own order.
"""

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from coordinator_model import capture, decoding
from coordinator_model.decoding import LENGTH_MAX, DecodeError, EnvelopeError, Opened, observe, open_lines
from coordinator_model.observations import is_time_ms
from coordinator_model.shard import GroupReport

_SNIFFED_LINES = 20
_SNIFFED_BYTES = 4_096
_NO_LOGS = (
    (b"BZh", "compressed by bzip2"),
    (b"\xfd7zXZ", "compressed by xz"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd"),
    (b"\x04\x22\x4d\x18", "compressed by lz4"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_EXPANSION_MAX = 400
"""Logs shrink 10 to 100 times, zeros 1,000 times; more expansion than this is refused."""
_EXPANDED_BYTES = 64 << 20
"""This much may be expanded in any case."""
_BLOCK_BYTES = 1 << 20
FAR_MS = 7 * 86_400_000
"""A line dated this far from the previous one is believed only if the next one agrees."""
_SAYING_NOTHING = frozenset({"other", "continuation", "unrecognized", "unroutable", "other_api", "too_long"})
_HOMES_MAX = 2_000


class ReplayError(Exception):
    """A file that cannot be read; the message names it."""


class TimedLine(NamedTuple):
    """One line of one file, with the time by which files are merged."""

    at_ms: int
    file: int
    number: int
    row: capture.CapturedRow | bytes


@dataclass
class ReplayFile:
    """One file; ``broker`` is the writer of its log, -1 if unknown."""

    path: Path
    captured: bool = False
    broker: int = -1
    has_lines: bool = False
    has_offsets: bool = False


@dataclass
class Material:
    """The findings of a first look at the files."""

    files: list[ReplayFile] = field(default_factory=list)
    homes: dict[str, int] = field(default_factory=dict)
    """Group -> partition of the offsets topic."""

    @property
    def has_offsets(self) -> bool:
        """Say whether the files contain records of the offsets topic."""
        return any(one.has_offsets for one in self.files)


@dataclass
class Skipped:
    """Numbers of lines that could not be used, by reason."""

    counts: dict[str, int] = field(default_factory=dict)
    used: int = 0
    """Lines that carried information."""
    silent: dict[str, int] = field(default_factory=dict)
    """Lines that were understood but do not concern groups, by kind: of other loggers, of stack traces."""
    first_ms: int = -1
    """Time of the first line that was read …"""
    last_ms: int = -1
    """… and of the newest."""
    reports: dict[str, GroupReport] = field(default_factory=dict)
    """Each group's final report."""

    def add(self, reason: str, count: int = 1) -> None:
        """Count unusable lines."""
        self.counts[reason] = self.counts.get(reason, 0) + count

    def read(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Count readable lines, by source and kind."""
        for (_, kind), count in counts.items():
            if kind in _SAYING_NOTHING:
                self.silent[kind] = self.silent.get(kind, 0) + count
            else:
                self.used += count

    def sentence(self) -> str:
        """Return how many lines were used, how many were not, and why."""
        unused = {**self.silent, **self.counts}
        count = sum(unused.values())
        why = ", ".join(f"{number:,} {reason}" for reason, number in sorted(unused.items()))
        return f"{self.used:,} lines used, {count:,} not used{f': {why}' if why else ''}"


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield a file's lines without their ends; of a line that is too long, only the beginning.

    Raises:
        ReplayError: it is missing or damaged, is no text, or expands beyond all measure.
    """
    try:
        with _opened(path) as stream:
            for line in _bounded_lines(stream, path):
                text = line.rstrip(b"\r\n")
                if text:
                    yield text
    except (OSError, EOFError) as error:
        raise ReplayError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _opened(path: Path) -> BinaryIO:
    stream = path.open("rb")
    first = stream.read(_SNIFFED_BYTES)
    stream.seek(0)
    # Decided by the first bytes: a rotated log may be compressed under any name.
    if first.startswith(b"\x1f\x8b"):
        return cast("BinaryIO", gzip.open(stream))
    other = next((name for magic, name in _NO_LOGS if first.startswith(magic)), None)
    if other is None and b"\0" in first:
        other = "binary"
    if other is not None:
        stream.close()
        raise ReplayError(f"{path} is {other}; replay reads text in UTF-8, plain or gzipped (.gz)")
    return stream


def _bounded_lines(stream: BinaryIO, path: Path) -> Iterator[bytes]:
    """Yield non-empty lines; a line that is too long is cut after ``LENGTH_MAX`` + 1 bytes."""
    size_max = max(_EXPANDED_BYTES, _EXPANSION_MAX * path.stat().st_size)
    size, rest = 0, b""
    while block := stream.read(_BLOCK_BYTES):
        size += len(block)
        if size > size_max:
            raise ReplayError(
                f"{path} expands to more than {_EXPANSION_MAX} times its size, which no log does"
            )
        first, *lines = block.split(b"\n")
        rest += first[: max(0, LENGTH_MAX + 1 - len(rest))]
        if lines:
            if rest:
                yield rest
            *whole, rest = lines
            yield from filter(None, whole)
    if rest:
        yield rest


def look(paths: list[Path], timezone: str) -> Material:
    """Look through the files once for what must be known before the first line.

    Raises:
        ReplayError: a file is missing or damaged, or there is nothing in them.
    """
    material = Material()
    for path in paths:
        one = ReplayFile(path, captured=_is_captured(path))
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


def _look_at_rows(one: ReplayFile, material: Material) -> None:
    for line in lines_of(one.path):
        one.has_lines = True
        if b'"log"' in line and len(material.homes) < _HOMES_MAX:
            _learn_home(line, one, material)
        elif b'"offsets"' in line:
            _learn_partition(line, one, material)


def _learn_partition(line: bytes, one: ReplayFile, material: Material) -> None:
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


def _look_at_lines(one: ReplayFile, material: Material) -> None:
    for line in lines_of(one.path):
        one.has_lines = True
        if one.broker >= 0 and len(material.homes) >= _HOMES_MAX:
            return
        if b"[GroupCoordinator " in line:
            _learn_home(line, one, material)


def _learn_home(line: bytes, one: ReplayFile, material: Material) -> None:
    start = line.find(b"[GroupCoordinator ")
    if start < 0:
        return
    text = line[start:].decode(errors="replace").partition(" (org.apache.kafka.")[0]
    try:
        parsed = decoding.parse_coordinator_line(text)
    except decoding.LogLineError:  # counted when it is decoded
        return
    if parsed.broker is not None and one.broker < 0:
        one.broker = parsed.broker
    group = getattr(parsed.observation, "group", None)
    if group and parsed.partition is not None and not one.captured:
        material.homes[group] = parsed.partition


def _name_brokers(files: list[ReplayFile]) -> None:
    """Give a file whose lines name no broker the broker of the log beside it, or the only broker."""
    known = {one.broker for one in files if one.broker >= 0}
    for one in files:
        beside = {other.broker for other in files if other.path.parent == one.path.parent} - {-1}
        for candidates in (beside, known):
            if one.broker < 0 and len(candidates) == 1:
                one.broker = next(iter(candidates))


def timed_lines(one: ReplayFile, index: int, timezone: str, skipped: Skipped) -> Iterator[TimedLine]:
    """Yield a file's lines with their times; a line without a time gets that of the previous one."""
    if one.captured:
        return _rows_of(one, index, skipped)
    return _without_far(_dated(one, index, timezone, skipped), skipped)


def _rows_of(one: ReplayFile, index: int, skipped: Skipped) -> Iterator[TimedLine]:
    for number, line in enumerate(lines_of(one.path)):
        try:
            row = capture.read_row(line)
        except capture.CaptureError:
            skipped.add("not_a_captured_row")
            continue
        if is_time_ms(row.timestamp_ms):
            yield TimedLine(row.timestamp_ms, index, number, row)
        else:
            skipped.add("out_of_range")


def _dated(one: ReplayFile, index: int, timezone: str, skipped: Skipped) -> Iterator[TimedLine]:
    at_ms = _first_ms(one, timezone)
    has_headers = False
    for number, line in enumerate(lines_of(one.path)):
        opened = _first_line(line, at_ms, timezone)
        if isinstance(opened, EnvelopeError):
            skipped.add(opened.reason)
            continue
        has_headers |= opened.has_header
        if has_headers and opened.is_known and not opened.has_header and not line.startswith(b"{"):
            # This file's lines have headers: a line break in a name split this one off the event above it.
            skipped.add("headerless")
            continue
        at_ms = max(opened.line.at_ms, 0) if at_ms < 0 else opened.line.at_ms
        yield TimedLine(at_ms, index, number, line)


def _first_line(line: bytes, at_ms: int, timezone: str) -> Opened | EnvelopeError:
    return next(iter(open_lines(line, key=None, timestamp_ms=at_ms, timezone=timezone)))


def _without_far(lines: Iterator[TimedLine], skipped: Skipped) -> Iterator[TimedLine]:
    """Drop lines dated far from their neighbours: a single one would carry the clock along.

    A time far from the previous one waits until the next line agrees.
    """
    at_ms = -1
    waiting: list[TimedLine] = []
    for line in lines:
        if waiting and line.at_ms != waiting[0].at_ms:
            if abs(line.at_ms - waiting[0].at_ms) <= FAR_MS:
                yield from waiting
                at_ms = line.at_ms
            else:
                skipped.add("far_away", len(waiting))
            waiting = []
        if waiting or at_ms < 0 or abs(line.at_ms - at_ms) > FAR_MS:
            waiting.append(line)
        else:
            at_ms = line.at_ms
            yield line
    if at_ms < 0:
        yield from waiting
    elif waiting:
        skipped.add("far_away", len(waiting))


def _first_ms(one: ReplayFile, timezone: str) -> int:
    """Return the first time in any line of the file, -1 if there is none; it dates the lines before."""
    for line in lines_of(one.path):
        opened = _first_line(line, -1, timezone)
        if isinstance(opened, Opened) and opened.line.at_ms >= 0:
            return opened.line.at_ms
    return -1
