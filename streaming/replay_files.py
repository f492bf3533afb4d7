"""What ``groupwatch replay`` reads: log files, plain or compressed, and captured rows, with their times.

A first look through all files tells what must be known before the first line; then each file is a
sequence of pieces in its own order.
"""

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from coordinator_model import capture, coordinator_log
from coordinator_model.log_envelope import EnvelopeError, open_record
from coordinator_model.records import observe
from coordinator_model.report import GroupReport
from coordinator_model.wire import DecodeError

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
class ReplayFile:
    """One file; ``broker`` is whose log it is, -1 where nothing tells."""

    path: Path
    captured: bool = False
    broker: int = -1
    has_lines: bool = False
    has_offsets: bool = False


@dataclass
class Material:
    """What a first look at the files told."""

    files: list[ReplayFile] = field(default_factory=list)
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
    reports: dict[str, GroupReport] = field(default_factory=dict)
    """How each group stood at the end."""

    def add(self, reason: str, count: int = 1) -> None:
        """Count lines."""
        self.counts[reason] = self.counts.get(reason, 0) + count


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
        parsed = coordinator_log.parse(text)
    except coordinator_log.LogLineError:  # counted when it is decoded
        return
    if parsed.broker is not None and one.broker < 0:
        one.broker = parsed.broker
    group = getattr(parsed.observation, "group", None)
    if group and parsed.partition is not None and not one.captured:
        material.homes[group] = parsed.partition


def _name_brokers(files: list[ReplayFile]) -> None:
    """Give a file whose lines name no broker that of the log beside it, or of the only one there is."""
    known = {one.broker for one in files if one.broker >= 0}
    for one in files:
        beside = {other.broker for other in files if other.path.parent == one.path.parent} - {-1}
        for candidates in (beside, known):
            if one.broker < 0 and len(candidates) == 1:
                one.broker = next(iter(candidates))


def pieces_of(one: ReplayFile, index: int, timezone: str, skipped: Skipped) -> Iterator[Piece]:
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


def _first_ms(one: ReplayFile, timezone: str) -> int:
    """Return the first time that any line of the file tells, -1 if none does: it dates what is above."""
    for line in lines_of(one.path):
        try:
            told_ms = open_record(line, key=None, timestamp_ms=-1, timezone=timezone).at_ms
        except EnvelopeError:
            continue
        if told_ms >= 0:
            return told_ms
    return -1
