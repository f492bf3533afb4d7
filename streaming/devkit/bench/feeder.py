"""Sends what a population's members cause, at their pace: a process of its own, so that its CPU stands apart.

``python -m streaming.devkit.bench.feeder JSON`` with a ``Pace``.  Lines are made beforehand; only their time
is written when they are sent.  The client is librdkafka, which an installation without the developers' tools
lacks.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple

import msgspec

from streaming.devkit.bench.material import (
    Population,
    commit_key,
    commit_value,
    failure_line,
    group_key,
    group_value,
    heartbeat_line,
)
from streaming.devkit.bench.mixed_lines import commit_line

OFFSETS_TOPIC = "__consumer_offsets"
ADMIN_CLIENT_ID = "__admin_client"
"""The only client id that a broker lets produce to internal topics."""
FIRST_OFFSET = 100
"""What each group has committed of each partition at the start; so many records stand there."""
COMMIT_MS = 5_000
_TICK_S = 0.25
"""What became due is sent so often.  A broker pays for each batch; a shipper sends seconds at once."""
_STAMP = slice(1, 24)
"""Where a line has its time."""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent, how often, and for how long; 0 ms: never."""

    bootstrap: str
    events_topic: str
    events_partitions: int
    seconds: float
    groups: int
    members: int = 5
    partitions: int = 8
    topics: int = 20
    every_group: int = 1
    """One group of so many says anything."""
    beat_ms: int = 0
    """Each member's heartbeat, as a line of the request log."""
    commit_ms: int = 0
    """Each member's commit of one of its partitions, as a record of the offsets topic."""
    has_commit_lines: bool = False
    """Each commit is a line of the request log as well."""
    failure_ms: int = 0
    """One member after the other fails, each of another group: a line of the coordinator's log."""

    @property
    def population(self) -> Population:
        """The groups."""
        return Population(self.groups, self.members, self.partitions, topics=self.topics)


class Record(NamedTuple):
    """One record for one partition of a topic."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None


class Stream(NamedTuple):
    """Things that follow one another evenly, ``size`` of them in each interval, for ever."""

    interval_ms: int
    size: int
    records: Callable[[int, int, int], Sequence[Record]]
    """Place in the interval, number of the interval, epoch ms -> what is sent."""

    def due(self, number: int) -> int:
        """Return when the n-th is sent, in ms since the start."""
        return number * self.interval_ms // self.size

    def next_after(self, elapsed_ms: int) -> int:
        """Return the number of the first that is due later."""
        return -(-(elapsed_ms + 1) * self.size // self.interval_ms)


def standing(population: Population, at_ms: int, rounds: int = 1) -> Iterator[Record]:
    """Yield what stands in the topics before anybody is active: records of groups, commits, and data.

    Args:
        population: the groups.
        at_ms: when the last round of commits was made.
        rounds: of commits of all partitions of all groups.
    """
    for number in range(population.groups):
        value = group_value(population, number, 1, at_ms)
        yield Record(OFFSETS_TOPIC, population.shard(number), group_key(population.group(number)), value)
    for left in reversed(range(rounds)):
        value = commit_value(FIRST_OFFSET - left, at_ms - left * COMMIT_MS)
        for number in range(population.groups):
            name, topic, shard = population.group(number), population.topic(number), population.shard(number)
            for partition in range(population.partitions):
                yield Record(OFFSETS_TOPIC, shard, commit_key(name, topic, partition), value)
    for topic in population.topic_names():
        for partition in range(population.partitions):
            yield from [Record(topic, partition, None, b"")] * FIRST_OFFSET


def streams(pace: Pace) -> list[Stream]:
    """Return everything that the pace asks for."""
    population = pace.population
    active = range(0, pace.groups, pace.every_group)
    slots = [(group, member) for member in range(pace.members) for group in active]
    made: list[Stream] = []
    if pace.beat_ms:
        made.append(Stream(pace.beat_ms, len(slots), _beats(pace, population, slots)))
    if pace.commit_ms:
        made.append(Stream(pace.commit_ms, len(slots), _commits(pace, population, slots)))
        made.append(_data(pace.commit_ms, population))
    if pace.failure_ms:
        made.append(Stream(pace.failure_ms, 1, _failures(pace, population)))
    return made


Make = Callable[[int, int, int], Sequence[Record]]
_Slots = Sequence[tuple[int, int]]


def _beats(pace: Pace, population: Population, slots: _Slots) -> Make:
    tails = [heartbeat_line(population, *slot, 0, n)[_STAMP.stop :] for n, slot in enumerate(slots)]
    places = [_place(pace, population, group) for group, _ in slots]

    def records(index: int, _turn: int, at_ms: int) -> Sequence[Record]:
        partition, key = places[index]
        return (Record(pace.events_topic, partition, key, _dated(tails[index], at_ms)),)

    return records


def _commits(pace: Pace, population: Population, slots: _Slots) -> Make:
    """Each member commits its partitions in turn; an offset grows by one with each interval."""
    owned = [range(member, population.partitions, population.members) for _, member in slots]
    keys = [
        [commit_key(population.group(group), population.topic(group), partition) for partition in mine]
        for (group, _), mine in zip(slots, owned, strict=True)
    ]
    shards = [population.shard(group) for group, _ in slots]
    places = [_place(pace, population, group) for group, _ in slots]
    tails = [
        [commit_line(population, *slot, 0, n, partitions=(p,))[_STAMP.stop :] for p in mine]
        if pace.has_commit_lines
        else []
        for n, (slot, mine) in enumerate(zip(slots, owned, strict=True))
    ]

    def records(index: int, turn: int, at_ms: int) -> Sequence[Record]:
        place = turn % len(keys[index])
        value = commit_value(FIRST_OFFSET + turn, at_ms)
        commit = Record(OFFSETS_TOPIC, shards[index], keys[index][place], value)
        if not tails[index]:
            return (commit,)
        partition, key = places[index]
        return commit, Record(pace.events_topic, partition, key, _dated(tails[index][place], at_ms))

    return records


def _data(interval_ms: int, population: Population) -> Stream:
    """Let each partition grow by one record in each interval, so that nobody commits beyond its end."""
    places = [(topic, p) for topic in population.topic_names() for p in range(population.partitions)]

    def records(index: int, _turn: int, _at_ms: int) -> Sequence[Record]:
        topic, partition = places[index]
        return (Record(topic, partition, None, b""),)

    return Stream(interval_ms, len(places), records)


def _failures(pace: Pace, population: Population) -> Make:
    def records(_index: int, turn: int, at_ms: int) -> Sequence[Record]:
        group = turn % population.groups
        partition, key = _place(pace, population, group)
        return (Record(pace.events_topic, partition, key, failure_line(population, group, at_ms)),)

    return records


def _place(pace: Pace, population: Population, group: int) -> tuple[int, bytes]:
    """Return where the lines of the only broker go, spread over all partitions so that each is read."""
    return population.shard(group) % pace.events_partitions, b"1"


def _dated(tail: bytes, at_ms: int) -> bytes:
    return _stamp(at_ms) + tail


@lru_cache(maxsize=8)
def _stamp(at_ms: int) -> bytes:
    """Return how a line of that time begins; thousands of lines share a millisecond's."""
    second = datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return b"[%s,%03d" % (second.encode(), at_ms % 1000)


# --- sending ------------------------------------------------------------------------------------------


class Sender:
    """A producer that counts what it sent and fails if anything was refused."""

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka import Producer  # noqa: PLC0415 - of the developers' tools

        self.sent = 0
        self._error = ""
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": ADMIN_CLIENT_ID,
                "acks": 1,
                "linger.ms": 100,
                "batch.size": 1_000_000,
                "compression.type": "lz4",
                "queue.buffering.max.messages": 1_000_000,
                "queue.buffering.max.kbytes": 1_000_000,
                "delivery.report.only.error": True,
                "enable.metrics.push": False,
                "on_delivery": self._refused,
            }
        )

    def _refused(self, error: object, _message: object) -> None:
        self._error = self._error or str(error)

    def send(self, records: Iterable[Record]) -> None:
        """Send; waits while too much is under way.

        Raises:
            RuntimeError: a record was refused.
        """
        produce = self._producer.produce
        for topic, partition, key, value in records:
            while True:
                try:
                    produce(topic, value, key, partition)
                    break
                except BufferError:
                    self._producer.poll(0.1)
            self.sent += 1
        self.poll()

    def poll(self) -> None:
        """Let go of what was delivered."""
        self._producer.poll(0)
        if self._error:
            raise RuntimeError(f"Kafka refused a record: {self._error}")

    def end(self) -> None:
        """Return when all was delivered; nothing can be sent any more."""
        left = self._producer.flush(120)
        self.poll()
        del self._producer  # or it looks for its broker as long as we live
        if left:
            raise RuntimeError(f"{left} records were not delivered within 120 s")


def send_all(bootstrap: str, records: Iterator[Record]) -> int:
    """Send everything at once; return how many."""
    sender = Sender(bootstrap)
    sender.send(records)
    sender.end()
    return sender.sent


def feed(pace: Pace) -> Mapping[str, Any]:
    """Send at the given pace; return how many were sent, and by how much the latest was late."""
    sender, made = Sender(pace.bootstrap), streams(pace)
    numbers = [0] * len(made)
    began, began_ms = time.monotonic(), time.time_ns() // 1_000_000
    late_ms = 0
    for tick in count(1):
        elapsed_ms = int((time.monotonic() - began) * 1000)
        for index, stream in enumerate(made):
            late_ms = max(late_ms, elapsed_ms - stream.due(numbers[index]))
            numbers[index] = _catch_up(sender, stream, numbers[index], began_ms, elapsed_ms)
        if elapsed_ms >= pace.seconds * 1000:
            break
        time.sleep(max(0.0, began + tick * _TICK_S - time.monotonic()))
    sender.end()
    return {"sent": sender.sent, "late_s_max": round(late_ms / 1000, 3)}


def _catch_up(sender: Sender, stream: Stream, number: int, began_ms: int, elapsed_ms: int) -> int:
    """Send what is due; return the number of the next."""
    end = stream.next_after(elapsed_ms)
    sender.send(
        record
        for one in range(number, end)
        for record in stream.records(one % stream.size, one // stream.size, began_ms + stream.due(one))
    )
    return end


if __name__ == "__main__":
    told = feed(msgspec.json.decode(sys.argv[1], type=Pace))
    sys.stdout.write(msgspec.json.encode(told).decode() + "\n")
