"""The shapes of the lines of the request log that say nothing new, and who sends them.

A busy cluster logs little else: accepted heartbeats (also refused ones of classic groups), accepted commits,
and heartbeats of consumer groups (KIP-848) in which the member keeps its epoch.  The expressions match these
lines in exactly the field order that brokers write (Kafka 2.8 and later), without escapes, and repeated texts
are read once.  ``request_log`` reads every line that does not match in full, with the same result.
"""

import re
from typing import NamedTuple

from coordinator_model import decoding
from coordinator_model.observations import Client, CommitsAnswered, Heartbeats
from streaming.decoders.known_shards import known_shard

_PLAIN = rb'[^"\\\x00-\x1f]*+'
_SKIPPED = rb'"' + _PLAIN + rb'"'
_TEXT = rb'"(' + _PLAIN + rb')"'
_MILLIS = rb"\d++\.\d++"
_NUMBER = rb"-?(?:0|[1-9]\d{0,8})"
_IDENTITY_SHAPE = (
    rb'\{"groupId":%(text)s,"generationId":%(generation)s,"memberId":%(text)s'
    rb'(?:,"groupInstanceId":(?:null|%(text)s))?\},"response":'
    rb'\{(?:"throttleTimeMs":\d{1,9},)?"errorCode":%(error)s\}'
)
_COMMITTER_SHAPE = (
    rb'\{"groupId":%(text)s,"generationId(?:OrMemberEpoch)?":%(generation)s,"memberId":%(text)s'
    rb'(?:,"groupInstanceId":(?:null|%(text)s))?'
)
_MODERN_SHAPE = (
    rb'\{"groupId":%(text)s,"memberId":%(text)s,"memberEpoch":%(epoch)s,"instanceId":(?:null|%(text)s)'
)
_GROUPS = {b"text": _TEXT, b"generation": rb"(-?\d{1,9})", b"error": rb"(-?\d{1,4})"}
_IDENTITY = re.compile(_IDENTITY_SHAPE % _GROUPS)
_COMMITTER = re.compile(_COMMITTER_SHAPE % _GROUPS)
_MODERN = re.compile(_MODERN_SHAPE % (_GROUPS | {b"epoch": rb"(\d{1,9})"}))

BEGIN, END = b"Completed request:{", b'"}}'
"""How a message begins and ends."""
# A message is its head, then WHO, TIMES and FROM between these words, which stand once in a plain one.
WHO_AFTER = b',"clientId":'
TIMES_AFTER = b',"totalTimeMs":'
FROM_AFTER = b',"securityProtocol":'
SECOND = rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
LEVEL = rb"\] (?:DEBUG|INFO) "
_HEAD = (
    rb'Completed request:\{"isForwarded":(?:false|true),"requestHeader":\{"requestApiKey":%s,'
    rb'"requestApiVersion":\d{1,2},"correlationId":-?'
)
"""As far as the digits of the correlation id, of which there are 1 to 10."""
HEARTBEAT, COMMIT, MODERN = 12, 8, 68
"""The APIs, by their keys."""
KINDS = {HEARTBEAT: "heartbeat", COMMIT: "offset_commit", MODERN: "consumer_group_heartbeat"}
"""The names under which their lines are counted."""
HEAD = _HEAD % rb"(12|8|68)"
"""Groups: the key of the API."""
WHO = (
    _TEXT
    + rb',"requestApiKeyName":"HEARTBEAT"\},"request":('
    + _IDENTITY_SHAPE % {b"text": _SKIPPED, b"generation": rb"-?\d{1,9}", b"error": rb"-?\d{1,4}"}
    + rb'),"connection":'
    + _TEXT
)
"""Groups: client id, what identifies the member and its answer, connection."""
_NULL_OR_TEXT = rb"(?:null|" + _SKIPPED + rb")"
MODERN_WHO = (
    _TEXT
    + rb',"requestApiKeyName":"CONSUMER_GROUP_HEARTBEAT"\},"request":('
    + _MODERN_SHAPE % {b"text": _SKIPPED, b"epoch": rb"(?P<epoch>[1-9]\d{0,8})"}
    + rb'),"rackId":'
    + _NULL_OR_TEXT
    + rb',"rebalanceTimeoutMs":'
    + _NUMBER
    + rb',"subscribedTopicNames":(?:null|\[(?:'
    + _SKIPPED
    + rb"(?:,"
    + _SKIPPED
    + rb')*+)?\])(?:,"subscribedTopicRegex":'
    + _NULL_OR_TEXT
    + rb')?,"serverAssignor":'
    + _NULL_OR_TEXT
    + rb',"topicPartitions":null\},"response":\{(?:"throttleTimeMs":'
    + _NUMBER
    + rb',)?"errorCode":0,"errorMessage":null,"memberId":'
    + _NULL_OR_TEXT
    + rb',"memberEpoch":(?P=epoch),"heartbeatIntervalMs":'
    + _NUMBER
    + rb',"assignment":null\},"connection":'
    + _TEXT
)
"""Groups: client id, what identifies the member and its epoch, that epoch, connection."""

# A commit's line has at the place of WHO: WHO_AFTER with COMMITTER, OFFSETS, ANSWERS, CONNECTION.
TOPICS_AFTER = b'"topics":['
"""Stands twice in it: before the offsets and before their answers."""
CONNECTION_AFTER = b',"connection":'
COMMITTER = (
    _TEXT
    + rb',"requestApiKeyName":"OFFSET_COMMIT"\},"request":('
    + _COMMITTER_SHAPE % {b"text": _SKIPPED, b"generation": _NUMBER}
    + rb'),(?:"retentionTimeMs":-?\d{1,19},)?'
    + re.escape(TOPICS_AFTER)
)
"""Groups: client id, what identifies the member."""


def _topics(partition: bytes) -> bytes:
    """Return the shape of topics with such partitions, from behind the bracket to before the next."""
    topic = (
        rb'\{"(?:name|topicId)":'
        + _SKIPPED
        + rb',"partitions":\[(?:'
        + partition
        + rb"(?:,"
        + partition
        + rb")*+)?\]\}"
    )
    return rb"(?:" + topic + rb"(?:," + topic + rb")*+)?\]\}"


OFFSETS = (
    _topics(
        rb'\{"partitionIndex":\d++,"committedOffset":-?\d++(?:,"committedLeaderEpoch":-?\d++)?'
        rb'(?:,"commitTimestamp":-?\d++)?,"committedMetadata":' + _NULL_OR_TEXT + rb"\}"
    )
    + rb',"response":\{(?:"throttleTimeMs":\d++,)?'
    + re.escape(TOPICS_AFTER)
)
"""Its numbers mean nothing here; all their digits may differ."""
ANSWERS = _topics(rb'\{"partitionIndex":\d++,"errorCode":0\}')
CONNECTION = CONNECTION_AFTER + _TEXT
"""Groups: the connection."""
_TIMED = ("requestQueueTimeMs", "localTimeMs", "remoteTimeMs", None, "responseQueueTimeMs", "sendTimeMs")
_AT_ONCE = rb"\d{1,3}\.\d++"
"""Less than a second: with a late answer a heartbeat counts from its arrival; ``request_log`` reads that."""
TIMES = _AT_ONCE + b"".join(
    rb',"throttleTimeMs":\d++' if name is None else rb',"%s":' % name.encode() + _MILLIS for name in _TIMED
)
FROM = (
    _SKIPPED
    + rb',"principal":'
    + _TEXT
    + rb',"listener":'
    + _SKIPPED
    + rb',"clientInformation":\{"softwareName":'
    + _TEXT
    + rb',"softwareVersion":'
    + _SKIPPED
    + rb"\}\}"
)
"""As far as the end of the message. Groups: principal, software."""
_TAIL = rb"(?: \(kafka\.request\.logger\)(?: \[CRLF\])?)?\n?"

LINE = re.compile(
    rb"(?:\[("
    + SECOND
    + rb"),(\d{3})"
    + LEVEL
    + rb")?"
    + _HEAD % b"12"
    + rb"\d{1,10}"
    + WHO_AFTER
    + WHO
    + TIMES_AFTER
    + TIMES
    + FROM_AFTER
    + FROM
    + _TAIL
)
"""A whole line about a classic heartbeat. Groups: the second and its milliseconds (both or neither), client
id, what identifies the member and its answer, connection, principal, software."""
IDENTITY = 4
CLIENT = (3, 5, 6, 7)


def is_text(line: bytes) -> bool:
    """Say whether a line, or a part of one, is UTF-8; what ``LINE`` matches may be something else."""
    if line.isascii():
        return True
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


ClientTexts = tuple[bytes, bytes, bytes, bytes]
"""Client id, connection, principal and software, as the line has them."""


class Said(NamedTuple):
    """A member and its answer, as one line says it and all equal ones do."""

    api: int
    group: str
    member_id: str
    generation: int
    error_code: int
    instance_id: str | None
    client: Client

    def seen(self, times: tuple[int, ...]) -> Heartbeats | CommitsAnswered:
        """Return the observation of lines that say this at these times."""
        _, group, member_id, generation, error_code, instance_id, client = self
        if self.api == COMMIT:
            return CommitsAnswered(
                group=group,
                member_id=member_id,
                generation=generation,
                error_code=0,
                times=times,
                client=client,
                instance_id=instance_id,
            )
        return Heartbeats(
            group=group,
            member_id=member_id,
            generation=generation,
            error_code=error_code,
            times=times,
            client=client,
            instance_id=instance_id,
            protocol="consumer" if self.api == MODERN else "classic",
        )


class Sender:
    """Who sent lines and what it said in them; read when first asked for."""

    __slots__ = ("_said", "client", "identity")

    def __init__(self, identity: bytes, client: ClientTexts) -> None:
        self.identity = identity
        self.client = client
        self._said: tuple[int, int, Said] | None = None

    def said(self, shard_count: int) -> tuple[int, Said]:
        """Return the shard of the group, and what was said."""
        known = self._said
        if known is None or known[0] != shard_count:
            said = said_by(self.identity, self.client)
            known = self._said = shard_count, known_shard(said.group, shard_count), said
        return known[1], known[2]


def said_by(identity: bytes, client: ClientTexts) -> Said:
    """Return what a line says with these texts, which are UTF-8."""
    api, (group, member_id, generation, error_code, instance_id) = _read_identity(identity)
    client_id, connection, principal, software = client
    return Said(
        api,
        group.decode(),
        member_id.decode(),
        int(generation),
        int(error_code),
        None if instance_id is None else instance_id.decode(),
        decoding.client_of(client_id.decode(), connection.decode(), principal.decode(), software.decode()),
    )


_Identity = tuple[bytes, bytes, bytes, bytes, bytes | None]
"""Group, member, generation, error, instance."""


def _read_identity(identity: bytes) -> tuple[int, _Identity]:
    found = _IDENTITY.fullmatch(identity)
    if found is not None:
        group, generation, member_id, instance_id, error_code = found.groups()
        return HEARTBEAT, (group, member_id, generation, error_code, instance_id)
    found = _COMMITTER.fullmatch(identity)
    if found is not None:
        group, generation, member_id, instance_id = found.groups()
        return COMMIT, (group, member_id, generation, b"0", instance_id)
    found = _MODERN.fullmatch(identity)
    if found is None:  # pragma: no cover - the line has matched one of these shapes
        raise ValueError(identity)
    group, member_id, epoch, instance_id = found.groups()
    return MODERN, (group, member_id, epoch, b"0", instance_id)
