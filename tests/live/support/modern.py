"""Groups of the modern protocols on a real broker, and what the broker answers about them.

Members that do as they are told, and the Admin client's answers, come from ``ModernDriver.java``; librdkafka
joins in through ``members.py``.  What was recorded is judged without Spark: the topic as it was written
and the broker's own log files go through ``replay``, and each answer is held against the picture that the
records made at that time.
"""

import json
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec
from kafka.structs import TopicPartition

from coordinator_model.decoding.records import observe
from coordinator_model.decoding.wire import DecodeError
from coordinator_model.groups import table as classic
from coordinator_model.groups.core.turn import Context
from coordinator_model.observations.base import Source
from coordinator_model.observations.seen import Seen
from coordinator_model.ordering.buffered import Buffered
from coordinator_model.shard.report import GroupReport, report_of
from coordinator_model.shard.writes import gather
from streaming.jars.jars import ensure_jars
from streaming.jars.java import java_command
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients.clients import consumer
from streaming.replay.run import replay
from tests.live.support.stage import await_that

DRIVER = Path(__file__).with_name("ModernDriver.java")
PROPERTIES = {
    name.format(kind=kind): value
    for kind in ("consumer", "share", "streams")
    for name, value in {
        "group.{kind}.session.timeout.ms": "6000",
        "group.{kind}.min.session.timeout.ms": "3000",
        "group.{kind}.heartbeat.interval.ms": "1000",
        "group.{kind}.min.heartbeat.interval.ms": "500",
    }.items()
} | {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "2",
}
"""Short sessions, so that crashes are found quickly."""
SLACK_MS = 40
"""An answer holds some milliseconds before it is asked for, until the record is committed and readable."""

Poll = dict[str, Any]


class Driver:
    """The Java side: give it orders, read its answers."""

    def __init__(self, bootstrap: str, log: Path) -> None:
        """Start it; the first answers come some seconds later."""
        jars = ":".join(str(path) for path in ensure_jars("broker"))
        self.polls: list[Poll] = []
        self.failed: list[str] = []
        self._done = 0
        self._log = log.open("wb")
        self._process = subprocess.Popen(
            [java_command(), "-Xmx256m", "-cp", jars, str(DRIVER), bootstrap],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            if "group" in said:
                self.polls.append(said)
            elif "failed" in said:
                self.failed.append(said["failed"])
            elif "done" in said:
                self._done += 1

    def order(self, text: str) -> None:
        """Give an order and wait until it is obeyed."""
        before = self._done
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n".encode())
        self._process.stdin.flush()
        await_that(lambda: self._done > before or self._process.poll() is not None, text)
        assert self._process.poll() is None, "the driver ended"

    def latest(self, group: str) -> Poll:
        """Return the newest answer about a group."""
        return next((poll for poll in reversed(self.polls) if poll["group"] == group), {})

    def await_state(self, group: str, state: str, members: int | None = None, kind: str = "") -> None:
        """Wait until the broker answers so."""

        def is_so() -> bool:
            poll = self.latest(group)
            fits = members is None or len(poll.get("members", ())) == members
            return poll.get("state") == state and fits and kind in {"", poll.get("type")}

        try:
            await_that(is_so, f"{group} is {state} with {members} members")
        except AssertionError as error:
            error.add_note(f"the newest answer: {self.latest(group)}")
            raise

    def __enter__(self) -> Self:
        """It is started already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it and all its members."""
        self._process.kill()
        self._process.wait()
        self._reader.join(5)
        self._log.close()


# --- what was recorded ------------------------------------------------------------------------------------


@dataclass
class Row:
    """One record of the offsets topic."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None


@dataclass
class Recorded:
    """Everything that is judged."""

    rows: list[Row] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    logs: dict[str, list[Path]] = field(default_factory=dict)
    """Mode -> the files beside the rows."""
    failed: list[str] = field(default_factory=list)
    """What did not work on the Java side."""

    def save(self, path: Path) -> Path:
        """Write the rows as captured material."""
        with path.open("w") as out:
            for row in sorted(self.rows, key=lambda one: (one.timestamp_ms, one.partition, one.offset)):
                captured = {
                    "source": "offsets",
                    "partition": row.partition,
                    "timestamp_ms": row.timestamp_ms,
                    "key": row.key.hex(),
                    "value": None if row.value is None else row.value.hex(),
                }
                out.write(json.dumps(captured) + "\n")
        return path


def read_rows(address: KafkaAddress, topic: str = "__consumer_offsets") -> list[Row]:
    """Return every record of the offsets topic."""
    reader = consumer(address)
    try:
        partitions = [TopicPartition(topic, n) for n in sorted(reader.partitions_for_topic(topic) or ())]
        reader.assign(partitions)
        reader.seek_to_beginning()
        ends = reader.end_offsets(partitions)
        found: list[Row] = []
        while any(reader.position(one) < ends[one] for one in partitions):
            for records in reader.poll(timeout_ms=200).values():
                found += [Row(r.partition, r.offset, r.timestamp, r.key, r.value) for r in records]
        return found
    finally:
        reader.close()


# --- judging ----------------------------------------------------------------------------------------------


def pictures(rows: list[Row]) -> dict[str, list[GroupReport]]:
    """Return each group's picture after each write, from the topic alone, in order."""
    context = Context("c", info_live=False, offsets_enabled=True, backlog=False)
    of_group: dict[str, list[Buffered]] = {}
    for row in sorted(rows, key=lambda one: (one.partition, one.offset)):
        try:
            what = observe(row.key, row.value, recorded_at_ms=row.timestamp_ms)
        except DecodeError:
            continue
        seen = Seen(
            at_ms=row.timestamp_ms,
            source=Source.OFFSETS,
            partition=row.partition,
            offset=row.offset,
            index=0,
            broker=-1,
            recorded_at_ms=row.timestamp_ms,
            backlog=False,
            what=what,
        )
        of_group.setdefault(what.group, []).append(Buffered(row.timestamp_ms, seen))
    found: dict[str, list[GroupReport]] = {}
    for name, held in of_group.items():
        group = classic.new_group(name)
        for one in gather(held):
            classic.apply(group, one.seen, context)
            found.setdefault(name, []).append(report_of(group, at_ms=one.seen.at_ms))
    return found


def wrong_polls(
    polls: list[Poll], reports: dict[str, list[GroupReport]]
) -> tuple[int, list[tuple[Poll, Any]]]:
    """Return how many answers about modern groups were judged, and which fit no picture of their time."""
    judged, wrong = 0, []
    for poll in polls:
        history = [one for one in reports.get(poll["group"], []) if one.at_ms <= poll["answered_at_ms"]]
        if poll["type"] not in {"consumer", "share", "streams"} or not history:
            continue
        first = poll["asked_at_ms"] - SLACK_MS
        before = [one for one in history if one.at_ms < first][-1:]
        fitting = [*before, *(one for one in history if one.at_ms >= first)]
        judged += 1
        if not any(_answer_of(one, poll) == _told(poll) for one in fitting):
            wrong.append((poll, _answer_of(fitting[-1], poll)))
    return judged, wrong


def _told(poll: Poll) -> dict[str, Any]:
    told = {name: poll[name] for name in ("type", "state", "epoch", "assignment_epoch")}
    told["members"] = sorted(
        ({name: value for name, value in one.items() if value is not None} for one in poll["members"]),
        key=lambda one: one["member_id"],
    )
    return told


def _answer_of(report: GroupReport, poll: Poll) -> dict[str, Any]:
    """Return the answer that a broker would give of this picture, as far as it was asked."""
    progress = report.progress
    has_target = poll["type"] != "share"  # nobody asks a share group for it
    members = []
    for one in report.members:
        known = one.progress
        if known is None:
            continue
        member: dict[str, Any] = {
            "member_id": one.member_id,
            "client_id": one.client_id,
            "client_host": one.client_host,
            "instance_id": one.instance_id or "",
            "epoch": known.epoch,
            "assigned": {topic: list(numbers) for topic, numbers in (one.assigned or {}).items()},
            "protocol": known.protocol,
        }
        if has_target:
            member["target"] = {topic: list(numbers) for topic, numbers in known.target.items()}
        members.append(member)
    return {
        "type": report.group_type,
        "state": str(report.state),
        "epoch": -1 if progress is None else progress.epoch,
        "assignment_epoch": -1 if progress is None else progress.assignment_epoch,
        "members": sorted(members, key=lambda one: str(one["member_id"])),
    }


class Cost(NamedTuple):
    """What a rebalance cost, counted here from the pictures alone."""

    partition_ms: int
    moved: int


def recounted(history: list[GroupReport]) -> dict[int, Cost]:
    """Return what each rebalance of a consumer group cost, by when it ended.

    Counted the slow way: from each picture to the next, which of the partitions that all have at the end
    did nobody have?  Left out are rebalances after which the group reads other partitions than before.
    """
    found: dict[int, Cost] = {}
    for first, last in _spans(history):
        before, after = _owners(history[first]), _owners(history[last])
        if before.keys() != after.keys():
            continue
        lost = sum(
            len(after.keys() - _owners(one).keys()) * (following.at_ms - one.at_ms)
            for one, following in pairwise(history[first + 1 : last + 1])
        )
        moved = sum(owner != before[partition] for partition, owner in after.items())
        found[history[last].at_ms] = Cost(lost, moved)
    return found


def _spans(history: list[GroupReport]) -> Iterator[tuple[int, int]]:
    """Yield where a consumer group was Stable before and after it was not for a while."""
    stable = -1
    for index, one in enumerate(history):
        if one.group_type != "consumer" or one.state not in {"Stable", "Assigning", "Reconciling"}:
            stable = -1
        elif one.state == "Stable":
            if 0 <= stable < index - 1:
                yield stable, index
            stable = index


def _owners(report: GroupReport) -> dict[tuple[str, int], str]:
    """Return who has each partition: a static member by its instance, nobody who is away."""
    return {
        (topic, number): one.instance_id or one.member_id
        for one in report.members
        if one.progress is not None and one.progress.epoch >= 0
        for topic, numbers in (one.assigned or {}).items()
        for number in numbers
    }


def told(recorded: Recorded, folder: Path, mode: str) -> list[dict[str, Any]]:
    """Return the transitions that ``replay`` tells in a mode, those that were replaced left out."""
    rows = recorded.save(folder / "offsets.jsonl")
    files = [rows, *recorded.logs.get(mode, ())]
    found = [
        json.loads(msgspec.json.encode(one))
        for one in replay(files, config_rules=None, timezone="UTC", strict=True)
        if hasattr(one, "to_state")
    ]
    replaced = {one["replaces"] for one in found}
    return [one for one in found if one["id"] not in replaced]
