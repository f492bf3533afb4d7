"""``groupwatch replay``: the model over captured files, without Spark or Kafka.

It reads ``server.log`` and ``kafka-request.log`` (plain or .gz, also shippers' JSON) and JSON Lines of
captured rows, merges them by time, and feeds them to the same shards as in the stream.  It ends at the last
line: alerts that fire then stay firing.

Each file is a partition of log lines of its own.  Two facts that the stream is told come from the files
themselves: the number of partitions of the offsets topic, and the broker that wrote a request log (the one
whose ``server.log`` lies beside it).
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from alerts.alert import Alert
from alerts.rules import RuleJudge
from coordinator_model import capture
from coordinator_model.decoding import DecodeError, observe
from coordinator_model.kafka import shard_of
from coordinator_model.observations import CLUSTER_SHARD, Counted, OffsetsCommitted, Seen, Source
from coordinator_model.shard import GroupReport, Judge
from coordinator_model.state import Transition
from streaming.decoders import CLOCK_KEY, decode_rows
from streaming.replay.captured_ends import CapturedEnds
from streaming.replay.files import Material, Skipped, TimedLine, look, timed_lines

CLUSTER = "replay"
CHUNK = 2_000
"""Lines between two readings of the clock."""
CHUNK_MS = 60_000
WATCHED_CHUNK_MS = 10_000
"""The same where somebody watches: as often as the job looks at its groups for the history."""


class Passed(NamedTuple):
    """What one stretch of a capture told."""

    at_ms: int
    """Its end."""
    happened: list[Transition | Alert]
    reports: list[GroupReport]
    """Of the groups that changed."""
    ends: dict[str, dict[int, tuple[int, int]]]
    """Topic -> partition -> (end offset, epoch ms), as far as captured in it."""


def replay(
    paths: Iterable[str | Path],
    *,
    config_rules: bytes | None,
    timezone: str,
    judge: Judge | None = None,
    skipped: Skipped | None = None,
    strict: bool = False,
    watch: Callable[[Passed], None] | None = None,
) -> Iterator[Transition | Alert]:
    """Yield the transitions and alerts that follow from the files, in order of time.

    Args:
        paths: files; also several brokers', and logs beside captured rows.
        config_rules: the settings as the executors get them (JSON), None for the defaults.
        timezone: of times in log lines, e.g. "Europe/Paris".
        judge: the rules; the built-in ones by default.
        skipped: counts what could not be read.
        strict: raise where our own code fails, for tests.
        watch: takes what each stretch of ten seconds told.

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
    yield from _Feeding(material, mirror, timezone, skipped or Skipped(), watch).run()


def _settings(config_rules: bytes | None, material: Material) -> bytes:
    settings: dict[str, Any] = msgspec.json.decode(config_rules or b"{}")
    # Without the topic, "Assignment received" alone means Stable.
    settings["offsets_enabled"] = material.has_offsets
    return msgspec.json.encode(settings, order="sorted")


class _Feeding:
    """Feeds merged lines to a mirror, chunk by chunk."""

    def __init__(
        self,
        material: Material,
        mirror: capture.Mirror,
        timezone: str,
        skipped: Skipped,
        watch: Callable[[Passed], None] | None,
    ) -> None:
        self._files = material.files
        self._mirror = mirror
        self._timezone = timezone
        self._skipped = skipped
        self._watch = watch
        self._shard_count = len(mirror.shards) - 1
        self._offset = 0
        self._last_ms = -1
        """Newest line."""
        self._clock_ms = -1
        """Newest clock row."""
        self._ends = CapturedEnds(self._shard_count)
        self._new_ends: dict[str, dict[int, tuple[int, int]]] = {}

    def run(self) -> Iterator[Transition | Alert]:
        files = enumerate(self._files)
        merged = heapq.merge(
            *(timed_lines(one, index, self._timezone, self._skipped) for index, one in files),
            key=lambda line: line.at_ms,
        )
        for chunk in _chunks(merged, CHUNK_MS if self._watch is None else WATCHED_CHUNK_MS):
            if self._skipped.first_ms < 0:
                self._skipped.first_ms = chunk[0].at_ms
            self._feed(chunk)
            at_ms = max(self._last_ms, self._clock_ms)
            yield from self._passed(self._mirror.advance(at_ms), at_ms)
        self._skipped.last_ms = max(self._last_ms, self._clock_ms)
        yield from self._passed(self._mirror.finish(self._skipped.last_ms), self._skipped.last_ms)

    def _passed(self, outputs: Iterator[Transition | Alert], at_ms: int) -> list[Transition | Alert]:
        """Return what happened in one stretch, after whoever watches has seen it."""
        happened = list(outputs)
        reports, self._mirror.reports = self._mirror.reports, {}
        ends, self._new_ends = self._new_ends, {}
        self._skipped.reports.update(reports)
        if self._watch is not None:
            self._watch(Passed(at_ms, happened, list(reports.values()), ends))
        return happened

    def _feed(self, chunk: list[TimedLine]) -> None:
        rows: list[tuple[int, int, int, bytes | None, bytes | None]] = []
        for line in chunk:
            self._offset += 1
            row = line.row
            if isinstance(row, capture.ClockRow):
                self._clock_ms = max(self._clock_ms, line.at_ms)
                continue
            self._last_ms = max(self._last_ms, line.at_ms)
            if isinstance(row, capture.OffsetsRow):
                self._feed_record(row)
            elif isinstance(row, capture.EndOffsetRow):
                self._mirror.feed(self._ends.captured(row, self._offset))
                self._new_ends.setdefault(row.topic, {})[row.partition] = (row.offset, row.timestamp_ms)
            elif isinstance(row, capture.LogRow):
                rows.append(_line(line, self._offset, row.broker, row.text.encode(), row.timestamp_ms))
            elif isinstance(row, bytes):
                rows.append(_line(line, self._offset, self._files[line.file].broker, row, line.at_ms))
        rows.sort(key=lambda one: one[0])
        decoded = decode_rows(rows, shard_count=self._shard_count, backlog_ends={}, timezone=self._timezone)
        for bad in decoded.bad:
            self._skipped.add(bad.reason, bad.count)
        self._skipped.read(decoded.counts)
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
        self._skipped.used += 1
        self._mirror.feed({shard_of(what.group, self._shard_count): [seen]})
        if isinstance(what, OffsetsCommitted):
            if any(commit.offset is not None for commit in what.commits):
                told = Counted(counts=(), committed=((row.partition, row.timestamp_ms),))
                self._mirror.feed({CLUSTER_SHARD: [msgspec.structs.replace(seen, what=told)]})
            self._mirror.feed(self._ends.committed(what, row.timestamp_ms, self._offset))


def _line(
    line: TimedLine, offset: int, broker: int, value: bytes, at_ms: int
) -> tuple[int, int, int, bytes | None, bytes | None]:
    key = str(broker).encode() if broker >= 0 else None
    assert key != CLOCK_KEY  # noqa: S101 - digits
    return line.file, offset, at_ms, key, value


def _chunks(lines: Iterator[TimedLine], most_ms: int) -> Iterator[list[TimedLine]]:
    """Cut at a number of lines, after a period of time, and after a clock row."""
    chunk: list[TimedLine] = []
    for line in lines:
        if chunk and (len(chunk) >= CHUNK or line.at_ms - chunk[0].at_ms > most_ms):
            yield chunk
            chunk = []
        chunk.append(line)
        if isinstance(line.row, capture.ClockRow):
            yield chunk
            chunk = []
    if chunk:
        yield chunk
