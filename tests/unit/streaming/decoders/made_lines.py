"""Lines of the request log that say nothing new, and others that nearly do."""

import random
import re

from streaming.decoders import Decoded
from streaming.devkit.bench.material import Population, heartbeat_line

POPULATION = Population(groups=40)
AT_MS = 1_760_000_000_123
_BYTES = b'0123456789".,:{}[] \\abcxyzDEBUGINFO\x00\xff\xc3\xa9\n'


def beat_lines(count: int) -> list[bytes]:
    """Return heartbeats of 40 groups of five."""
    return [heartbeat_line(POPULATION, n % 40, n % 5, AT_MS + 700 * n, n * 37) for n in range(count)]


def damaged(line: bytes, chance: random.Random) -> bytes:
    """Return a line of which something is missing, doubled or changed."""
    place = chance.randrange(len(line))
    kind = chance.randrange(6)
    other = _BYTES[chance.randrange(len(_BYTES))]
    if kind == 0:
        return line[:place]
    if kind == 1:
        return line[:place] + line[place + chance.randrange(1, 9) :]
    if kind == 2:
        return line[:place] + bytes([other]) + line[place:]
    if kind == 3:
        return line[:place] + line[place:] * 2
    if kind == 4:
        digits = [at for at, byte in enumerate(line) if 48 <= byte <= 57]
        place = chance.choice(digits)
    return line[:place] + bytes([other]) + line[place + 1 :]


def _topics(chance: random.Random, partition: str) -> str:
    name = chance.choice(["orders", "b", "shop.events-017.v1", "ключи", "with, {odd} [signs]"])
    id_or_name = f'"name":"{name}"' if chance.random() < 0.8 else '"topicId":"__yd1-_zSp24lQbLFe8KOw"'
    parts = ",".join(partition.replace("%n", str(n)) for n in range(chance.choice([0, 1, 1, 4, 30])))
    topic = f'{{{id_or_name},"partitions":[{parts}]}}'
    return ",".join([topic] * chance.choice([0, 1, 1, 1, 2]))


def _said_in_commit(chance: random.Random) -> tuple[int, str, str]:
    offset, metadata = chance.choice([0, 7, 10**12]), chance.choice(['""', "null", '"at 17"', r'"\"x"'])
    epoch = chance.choice(['"committedLeaderEpoch":7,', '"committedLeaderEpoch":-1,', ""])
    asked = f'{{"partitionIndex":%n,"committedOffset":{offset},{epoch}"committedMetadata":{metadata}}}'
    error = chance.choice([0, 0, 0, 0, 22, 25])
    answered = _topics(chance, f'{{"partitionIndex":%n,"errorCode":{error}}}')
    generation = chance.choice(['"generationIdOrMemberEpoch":3', '"generationId":-1'])
    instance = chance.choice(['"groupInstanceId":null,', '"groupInstanceId":"i-1",', ""])
    retention = chance.choice(["", "", '"retentionTimeMs":-1,'])
    request = (
        f'{{"groupId":"g{chance.randrange(3)}",{generation},"memberId":"{chance.choice(["m-1", ""])}",'
        f'{instance}{retention}"topics":[{_topics(chance, asked)}]}}'
    )
    throttled = chance.choice(['"throttleTimeMs":0,', ""])
    return 8, "OFFSET_COMMIT", f'"request":{request},"response":{{{throttled}"topics":[{answered}]}}'


def _said_in_modern_beat(chance: random.Random) -> tuple[int, str, str]:
    epoch, instance = chance.choice([0, -1, 1, 12, 12]), chance.choice(["null", '"i-1"'])
    told = chance.choice([epoch, epoch, epoch, 13])
    topics = chance.choice(["null", '["orders"]', '["a","b"]', "[]"])
    regex = chance.choice(['"subscribedTopicRegex":null,', '"subscribedTopicRegex":"a.*",', ""])
    owned = chance.choice(["null", "null", "null", '[{"topicId":"x","partitions":[0]}]'])
    assigned = chance.choice(["null", "null", "null", '{"topicPartitions":[]}'])
    error = chance.choice([0, 0, 0, 25])
    return (
        68,
        "CONSUMER_GROUP_HEARTBEAT",
        f'"request":{{"groupId":"g{chance.randrange(3)}","memberId":"m","memberEpoch":{epoch},'
        f'"instanceId":{instance},"rackId":null,"rebalanceTimeoutMs":-1,"subscribedTopicNames":{topics},'
        f'{regex}"serverAssignor":null,"topicPartitions":{owned}}},"response":{{"throttleTimeMs":0,'
        f'"errorCode":{error},"errorMessage":null,"memberId":"m","memberEpoch":{told},'
        f'"heartbeatIntervalMs":5000,"assignment":{assigned}}}',
    )


def _said_in_beat(chance: random.Random) -> tuple[int, str, str]:
    return (
        12,
        "HEARTBEAT",
        f'"request":{{"groupId":"g","generationId":{chance.choice([1, -1])},"memberId":"m",'
        f'"groupInstanceId":null}},"response":{{"throttleTimeMs":0,"errorCode":{chance.choice([0, 27])}}}',
    )


def any_line(chance: random.Random, second: int) -> bytes:
    """Return a heartbeat or commit of any form that brokers write."""
    key, name, said = chance.choice([_said_in_commit, _said_in_modern_beat, _said_in_beat])(chance)
    took = chance.choice(["0.771", "2.104", "31.5", "1400.0"])
    host = chance.choice(["10.0.0.1:9092-10.1.2.3:45", "127.0.0.1:1-127.0.0.1:"])
    # One in eight is of tomorrow: such a line counts by its record's time only if it is a heartbeat.
    day = 22 if chance.random() < 0.125 else 21
    return (
        f"[2026-11-{day} 06:28:{second % 60:02},123] {chance.choice(['DEBUG', 'INFO'])} "
        f'Completed request:{{"isForwarded":false,"requestHeader":{{"requestApiKey":{key},'
        f'"requestApiVersion":9,"correlationId":{chance.randrange(10**6)},'
        f'"clientId":"{chance.choice(["c", "rdkafka", "консьюмер"])}","requestApiKeyName":"{name}"}},{said},'
        f'"connection":"{host}{chance.randrange(10**4)}-0-1","totalTimeMs":{took},"requestQueueTimeMs":0.093,'
        f'"localTimeMs":0.302,"remoteTimeMs":{took},"throttleTimeMs":0,"responseQueueTimeMs":0.156,'
        '"sendTimeMs":0.064,"securityProtocol":"PLAINTEXT","principal":"User:ANONYMOUS",'
        '"listener":"PLAINTEXT","clientInformation":{"softwareName":"apache-kafka-java",'
        '"softwareVersion":"4.3.1"}} (kafka.request.logger)'
    ).encode()


NO_JSON_NUMBER = re.compile(rb'":\s*-?0\d')
"""A number that begins with 0: the shapes do not look at measured digits one by one, and nobody writes it."""

STAMP_MS = 1_795_242_480_500
"""2026-11-21 06:28:00.5 UTC, in the minute of ``any_line``."""


def told(result: Decoded) -> tuple[object, ...]:
    """Return what rows say, however they were read."""
    return result.cells, result.counts, [(one.reason, one.count) for one in result.bad]
