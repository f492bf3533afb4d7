"""Records and log lines as brokers write them, made in bulk inside of Spark's workers.

Only what the bench's floor and ours both read: the bytes are real, the names are made up.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from coordinator_model.kafka import shard_of
from streaming.devkit.consumers import blob, text

FILL_SCHEMA = "key binary, value binary, partition int"
"""What Spark's Kafka sink wants."""

_ARROW = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("partition", pa.int32())])
_ROWS = 10_000
SESSION_MS = 1_800_000
"""So long, a broker's maximum, that no session runs out while the bench fills a topic."""
_SPREAD = 0x9E3779B97F4A7C15F39CC0605CEDC835
"""2**128 divided by the golden ratio: multiples of it lie far apart."""
_TOPIC_ID_TAG = b"\x01\x00\x10"
Row = tuple[bytes, bytes, int]


@dataclass(frozen=True)
class Population:
    """The groups that everything is about."""

    groups: int
    members: int = 5
    partitions: int = 8
    """Of the one topic that a group consumes."""
    shard_count: int = 50
    topics: int = 211
    """So many topics all groups share."""

    def group(self, number: int) -> str:
        """Return a group's name."""
        return f"team-{number % 97:02d}.service-{number:06d}"

    def topic(self, number: int) -> str:
        """Return the topic it consumes."""
        return f"shop.events-{number % self.topics:03d}.v1"

    def topic_names(self) -> list[str]:
        """Return all topics that any group consumes."""
        return [self.topic(number) for number in range(min(self.topics, self.groups))]

    def shard(self, number: int) -> int:
        """Return where the group lives."""
        return shard_of(self.group(number), self.shard_count)

    def member_ids(self, number: int) -> list[str]:
        """Return its members, with ids that resemble one another no more than random ones do."""
        return [f"consumer-{number}-{n}-{_uuid(number * 1_000 + n)}" for n in range(1, self.members + 1)]


def _uuid(number: int) -> str:
    digits = f"{(number + 1) * _SPREAD % 2**128:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def commit_key(group: str, topic: str, partition: int) -> bytes:
    """Return the key of an offset commit (record type 1)."""
    return struct.pack(">h", 1) + text(group) + text(topic) + struct.pack(">i", partition)


def commit_value(offset: int, at_ms: int) -> bytes:
    """Return a commit's value as Kafka 4.1 and later write it: version 4 with the topic's id."""
    head = struct.pack(">hqi", 4, offset, 7) + b"\x01"  # no metadata
    return head + struct.pack(">q", at_ms) + _TOPIC_ID_TAG + b"\x07" * 16


def group_key(group: str) -> bytes:
    """Return the key of a classic group's record (type 2)."""
    return struct.pack(">h", 2) + text(group)


def group_value(population: Population, number: int, generation: int, at_ms: int) -> bytes:
    """Return a classic group's record of version 3 with all its members and their assignment."""
    members = population.member_ids(number)
    topic = population.topic(number)
    subscribed = struct.pack(">hi", 1, 1) + text(topic) + struct.pack(">ii", -1, 0)
    out = struct.pack(">h", 3) + text("consumer") + struct.pack(">i", generation)
    out += text("range") + text(members[0]) + struct.pack(">qi", at_ms, len(members))
    for index, member in enumerate(members):
        owned = range(index, population.partitions, len(members))
        assigned = struct.pack(">hi", 1, 1) + text(topic)
        assigned += struct.pack(f">i{len(owned)}i", len(owned), *owned) + struct.pack(">i", -1)
        out += text(member) + text(None) + text(f"consumer-{number}-{index + 1}") + text("/10.1.2.3")
        out += struct.pack(">ii", 300_000, SESSION_MS) + blob(subscribed) + blob(assigned)
    return out


_LINE = (
    '[%s,%03d] DEBUG Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":12,'
    '"requestApiVersion":4,"correlationId":%d,"clientId":"consumer-%d-%d","requestApiKeyName":"HEARTBEAT"},'
    '"request":{"groupId":"%s","generationId":%d,"memberId":"%s","groupInstanceId":null},"response":'
    '{"throttleTimeMs":0,"errorCode":0},"connection":"10.0.0.1:9092-10.1.2.3:4%04d-0-%d","totalTimeMs":0.771,'
    '"requestQueueTimeMs":0.093,"localTimeMs":0.302,"remoteTimeMs":0.0,"throttleTimeMs":0,'
    '"responseQueueTimeMs":0.156,"sendTimeMs":0.064,"securityProtocol":"PLAINTEXT",'
    '"principal":"User:ANONYMOUS","listener":"PLAINTEXT","clientInformation":'
    '{"softwareName":"apache-kafka-java","softwareVersion":"3.9.2"}} '
    "(kafka.request.logger)"
)


def heartbeat_line(population: Population, group: int, member: int, at_ms: int, sequence: int) -> bytes:
    """Return the request log's line about one heartbeat of one member, in UTC; about 700 bytes."""
    second = datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    port = (group * 7 + member) % 10_000
    name, member_id = population.group(group), population.member_ids(group)[member]
    # A connection keeps its number: a member heartbeats over one for hours.
    filled = (second, at_ms % 1000, sequence, group, member + 1, name, 1, member_id, port, port % 40)
    return (_LINE % filled).encode()


_FAILURE = (
    "[%s,%03d] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=%d] Member %s in group %s has "
    "failed, removing it from the group. (org.apache.kafka.coordinator.group.GroupMetadataManager)"
)


def failure_line(population: Population, group: int, at_ms: int) -> bytes:
    """Return the coordinator's line about the first member of a group, whose session has run out, in UTC."""
    second = datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    member = population.member_ids(group)[0]
    return (
        _FAILURE % (second, at_ms % 1000, population.shard(group), member, population.group(group))
    ).encode()


# --- the functions for mapInArrow: a row of the input is one task's number ------------------------------


def nothing_made(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what comes, once the worker has all code of the job."""
    from streaming import workers  # noqa: F401, PLC0415 - asked to in the worker

    yield from batches


def nothing_kept(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take what comes, and yield nothing."""
    for _ in batches:
        yield from ()


@dataclass(frozen=True)
class Commits:
    """Each group's commits: one request of all partitions a round, all groups in each round."""

    population: Population
    tasks: int
    rounds: int
    from_ms: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows to be produced."""
        for task in task_numbers(batches):
            yield from batched(self._rows(task))

    def _rows(self, task: int) -> Iterator[Row]:
        population = self.population
        mine = range(task, population.groups, self.tasks)
        shards = {number: population.shard(number) for number in mine}
        keys = {
            number: [
                commit_key(population.group(number), population.topic(number), partition)
                for partition in range(population.partitions)
            ]
            for number in mine
        }
        for turn in range(self.rounds):
            value_at = self.from_ms + turn * 5_000
            for number in mine:
                value = commit_value(1_000_000 + turn * 100 + number % 100, value_at)
                for key in keys[number]:
                    yield key, value, shards[number]


@dataclass(frozen=True)
class Generations:
    """One record of each group."""

    population: Population
    tasks: int
    at_ms: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows to be produced."""
        for task in task_numbers(batches):
            yield from batched(self._rows(task))

    def _rows(self, task: int) -> Iterator[Row]:
        population = self.population
        for number in range(task, population.groups, self.tasks):
            value = group_value(population, number, 1, self.at_ms)
            yield group_key(population.group(number)), value, population.shard(number)


@dataclass(frozen=True)
class Beats:
    """A heartbeat of each member each interval; a group's coordinator is the broker of its shard.

    Each broker's lines are in a partition of their own, as where the broker's id is the record's key.
    """

    population: Population
    brokers: int
    rounds: int
    interval_ms: int
    from_ms: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows to be produced; a task is a broker."""
        for task in task_numbers(batches):
            yield from batched(self._rows(task))

    def _rows(self, broker: int) -> Iterator[Row]:
        population = self.population
        mine = [n for n in range(population.groups) if population.shard(n) % self.brokers == broker]
        # In the order of their time within the interval, spread evenly.
        slots = [(number, member) for member in range(population.members) for number in mine]
        key, sequence = b"%d" % (broker + 1), 0
        for turn in range(self.rounds):
            for index, (number, member) in enumerate(slots):
                at_ms = (
                    self.from_ms + turn * self.interval_ms + index * self.interval_ms // max(1, len(slots))
                )
                sequence += 1
                yield key, heartbeat_line(population, number, member, at_ms, sequence), broker


def task_numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    """Yield the numbers of the tasks in the only column."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def batched(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Yield rows in batches."""
    pending: list[Row] = []
    for row in rows:
        pending.append(row)
        if len(pending) == _ROWS:
            yield _packed(pending)
            pending = []
    if pending:
        yield _packed(pending)


def _packed(rows: list[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(list(one), field.type) for one, field in zip(columns, _ARROW, strict=True)], schema=_ARROW
    )
