"""The shapes of the lines of the request log that say nothing new, and who sends them.

A busy cluster logs little else: accepted heartbeats (also refused ones of classic groups), accepted commits,
and heartbeats of consumer groups (KIP-848) in which the member keeps its epoch.  The expressions match these
lines in exactly the field order that brokers write (Kafka 2.8 and later), without escapes, and repeated texts
are read once.  ``request_log`` reads every line that does not match in full, with the same result.
"""

import re
from typing import Any, NamedTuple

from coordinator_model import decoding
from coordinator_model.observations import Client, CommitsAnswered, Heartbeats

_PLAIN = rb'[^"\\\x00-\x1f]*+'
_SKIPPED = rb'"' + _PLAIN + rb'"'
_TEXT = rb'"(' + _PLAIN + rb')"'
_MILLIS = rb"\d++\.\d++"
_NUMBER = rb"-?(?:0|[1-9]\d{0,8})"
_IDENTITY = (
    rb'(\{"groupId":%(text)s,"generationId":%(generation)s,"memberId":%(text)s'
    rb'(?:,"groupInstanceId":(?:null|%(text)s))?\},"response":'
    rb'\{(?:"throttleTimeMs":\d{1,9},)?"errorCode":(-?\d{1,4})\})'
) % {b"text": _TEXT, b"generation": rb"(-?\d{1,9})"}
"""Groups: all of it, group, generation, member, instance, error."""
_COMMITTER = (
    rb'(\{"groupId":%(text)s,"generationId(?:OrMemberEpoch)?":(%(number)s),"memberId":%(text)s'
    rb'(?:,"groupInstanceId":(?:null|%(text)s))?)'
) % {b"text": _TEXT, b"number": _NUMBER}
"""Groups: all of it, group, generation, member, instance."""
_MODERN = (
    rb'(\{"groupId":%(text)s,"memberId":%(text)s,"memberEpoch":(?P<epoch>[1-9]\d{0,8})'
    rb',"instanceId":(?:null|%(text)s))'
) % {b"text": _TEXT}
"""Groups: all of it, group, member, epoch, instance."""

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
WHO = _TEXT + rb',"requestApiKeyName":"HEARTBEAT"\},"request":' + _IDENTITY + rb',"connection":' + _TEXT
"""Groups: client id; what identifies the member and its answer, group, generation, member, instance, error;
connection."""
_NULL_OR_TEXT = rb"(?:null|" + _SKIPPED + rb")"
MODERN_WHO = (
    _TEXT
    + rb',"requestApiKeyName":"CONSUMER_GROUP_HEARTBEAT"\},"request":'
    + _MODERN
    + rb',"rackId":'
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
"""Groups: client id; what identifies the member and its epoch, group, member, epoch, instance; connection."""

# A commit's line has at the place of WHO: WHO_AFTER with COMMITTER, OFFSETS, ANSWERS, CONNECTION.
TOPICS_AFTER = b'"topics":['
"""Stands twice in it: before the offsets and before their answers."""
CONNECTION_AFTER = b',"connection":'
COMMITTER = (
    _TEXT
    + rb',"requestApiKeyName":"OFFSET_COMMIT"\},"request":'
    + _COMMITTER
    + rb',(?:"retentionTimeMs":-?\d{1,19},)?'
    + re.escape(TOPICS_AFTER)
)
"""Groups: client id; what identifies the member, group, generation, member, instance."""


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
"""A whole line about a classic heartbeat. Groups: the second and its milliseconds (both or neither), those
of ``WHO``, principal, software."""


def is_text(line: bytes) -> bool:
    """Say whether a line, or a part of one, is UTF-8; what ``LINE`` matches may be something else."""
    if line.isascii():
        return True
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


Texts = tuple[str | Any, ...]
"""The groups of an expression; only an instance's may be None."""


class Said(NamedTuple):
    """A member and its answer, as one line says it and all equal ones do."""

    identity: str
    """What identifies both, as the line has it."""
    api: int
    group: str
    member_id: str
    generation: int
    error_code: int
    instance_id: str | None
    client: Client

    def seen(self, times: tuple[int, ...]) -> Heartbeats | CommitsAnswered:
        """Return the observation of lines that say this at these times."""
        _, _, group, member_id, generation, error_code, instance_id, client = self
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


def said_in(line: re.Match[bytes]) -> Said:
    """Return what a ``LINE`` says, which is UTF-8."""
    texts: Texts = tuple(None if text is None else text.decode() for text in line.groups()[2:])
    return said_in_beat(texts[:-2], *texts[-2:])


def said_in_beat(who: Texts, principal: str, software: str) -> Said:
    """Return what a classic heartbeat says, by the groups of ``WHO`` and of ``FROM``."""
    client_id, identity, group, generation, member_id, instance_id, error_code, connection = who
    client = decoding.client_of(client_id, connection, principal, software)
    return Said(identity, HEARTBEAT, group, member_id, int(generation), int(error_code), instance_id, client)


def said_in_commit(who: Texts, connection: str, principal: str, software: str) -> Said:
    """Return what an accepted commit says, by the groups of ``COMMITTER``, ``CONNECTION`` and ``FROM``."""
    client_id, identity, group, generation, member_id, instance_id = who
    client = decoding.client_of(client_id, connection, principal, software)
    return Said(identity, COMMIT, group, member_id, int(generation), 0, instance_id, client)


def said_in_modern_beat(who: Texts, principal: str, software: str) -> Said:
    """Return what a heartbeat of a consumer group says, by the groups of ``MODERN_WHO`` and of ``FROM``."""
    client_id, identity, group, member_id, epoch, instance_id, connection = who
    client = decoding.client_of(client_id, connection, principal, software)
    return Said(identity, MODERN, group, member_id, int(epoch), 0, instance_id, client)
