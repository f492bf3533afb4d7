"""Lines of the request log as a cluster really writes them: heartbeats, commits, and some of KIP-848.

Made in bulk inside of Spark's workers, like the rest of ``material``.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa

from streaming.devkit.bench.material import Population, Row, batched, heartbeat_line, task_numbers

COMMITTED_PARTITIONS = 4
_CYCLE = (True, False, True, True, False, True, False, True)
"""Five heartbeats to three commits."""
_EVERY_MODERN = 10
"""One group of so many is of KIP-848."""
_HEAD = (
    '[%s,%03d] DEBUG Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":%d,'
    '"requestApiVersion":%d,"correlationId":%d,"clientId":"consumer-%d-%d","requestApiKeyName":"%s"},'
)
_TAIL = (
    ',"connection":"10.0.0.1:9092-10.1.2.3:4%04d-0-%d","totalTimeMs":2.771,"requestQueueTimeMs":0.093,'
    '"localTimeMs":0.302,"remoteTimeMs":2.104,"throttleTimeMs":0,"responseQueueTimeMs":0.156,'
    '"sendTimeMs":0.064,"securityProtocol":"PLAINTEXT","principal":"User:ANONYMOUS","listener":"PLAINTEXT",'
    '"clientInformation":{"softwareName":"apache-kafka-java","softwareVersion":"4.3.1"}} '
    "(kafka.request.logger)"
)
Say = Callable[[Population, int, int, int], str]
"""What a line says between head and tail: of a member of a group, for the n-th time."""


def _line(
    population: Population,
    group: int,
    member: int,
    at_ms: int,
    sequence: int,
    *,
    api: tuple[int, int, str],
    say: Say,
) -> bytes:
    key, version, name = api
    second = datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    head = _HEAD % (second, at_ms % 1000, key, version, sequence, group, member + 1, name)
    port = (group * 7 + member) % 10_000
    return f"{head}{say(population, group, member, sequence)}{_TAIL % (port, port % 40)}".encode()


def _commit(
    population: Population,
    group: int,
    member: int,
    sequence: int,
    *,
    partitions: Sequence[int] = range(COMMITTED_PARTITIONS),
) -> str:
    asked = ",".join(
        f'{{"partitionIndex":{n},"committedOffset":{1_000_000 + 7 * sequence + n},"committedLeaderEpoch":7,'
        '"committedMetadata":""}'
        for n in partitions
    )
    answered = ",".join(f'{{"partitionIndex":{n},"errorCode":0}}' for n in partitions)
    topic, name = population.topic(group), population.group(group)
    return (
        f'"request":{{"groupId":"{name}","generationIdOrMemberEpoch":1,'
        f'"memberId":"{population.member_ids(group)[member]}","groupInstanceId":null,'
        f'"topics":[{{"name":"{topic}","partitions":[{asked}]}}]}},'
        f'"response":{{"throttleTimeMs":0,"topics":[{{"name":"{topic}","partitions":[{answered}]}}]}}'
    )


def _modern_beat(population: Population, group: int, member: int, _: int) -> str:
    member_id = population.member_ids(group)[member]
    return (
        f'"request":{{"groupId":"{population.group(group)}","memberId":"{member_id}","memberEpoch":1,'
        '"instanceId":null,"rackId":null,"rebalanceTimeoutMs":-1,"subscribedTopicNames":null,'
        '"subscribedTopicRegex":null,"serverAssignor":null,"topicPartitions":null},'
        f'"response":{{"throttleTimeMs":0,"errorCode":0,"errorMessage":null,"memberId":"{member_id}",'
        '"memberEpoch":1,"heartbeatIntervalMs":5000,"assignment":null}'
    )


def commit_line(
    population: Population,
    group: int,
    member: int,
    at_ms: int,
    sequence: int,
    *,
    partitions: Sequence[int] = range(COMMITTED_PARTITIONS),
) -> bytes:
    """Return the line about one OffsetCommit of these partitions; about 1,300 bytes with four."""
    say = partial(_commit, partitions=partitions)
    return _line(population, group, member, at_ms, sequence, api=(8, 9, "OFFSET_COMMIT"), say=say)


def modern_line(population: Population, group: int, member: int, at_ms: int, sequence: int) -> bytes:
    """Return the line about one ConsumerGroupHeartbeat that changes nothing; about 1,000 bytes."""
    api = (68, 1, "CONSUMER_GROUP_HEARTBEAT")
    return _line(population, group, member, at_ms, sequence, api=api, say=_modern_beat)


@dataclass(frozen=True)
class Mixed:
    """Lines of all members, round after round: each member says one thing in each."""

    population: Population
    brokers: int
    rounds: int
    interval_ms: int
    from_ms: int
    is_enveloped: bool = False
    """In the JSON that ``deploy/shippers/vector.yaml`` makes."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows to be produced; a task is a broker."""
        for task in task_numbers(batches):
            yield from batched(self._rows(task))

    def _rows(self, broker: int) -> Iterator[Row]:
        population, name, interval_ms = self.population, str(broker + 1), self.interval_ms
        mine = [n for n in range(population.groups) if population.shard(n) % self.brokers == broker]
        slots = [(number, member) for member in range(population.members) for number in mine]
        sequence = 0
        for turn in range(self.rounds):
            for index, (number, member) in enumerate(slots):
                at_ms = self.from_ms + turn * interval_ms + index * interval_ms // max(1, len(slots))
                sequence += 1
                line = self._one(number, member, at_ms, sequence, turn + number + member)
                if self.is_enveloped:
                    line = json.dumps({"broker": name, "key": name, "message": line.decode()}).encode()
                yield name.encode(), line, broker

    def _one(self, group: int, member: int, at_ms: int, sequence: int, place: int) -> bytes:
        if not _CYCLE[place % len(_CYCLE)]:
            return commit_line(self.population, group, member, at_ms, sequence)
        say = modern_line if group % _EVERY_MODERN == 0 else heartbeat_line
        return say(self.population, group, member, at_ms, sequence)
