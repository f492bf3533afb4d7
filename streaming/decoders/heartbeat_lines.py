"""Reads heartbeat lines of the request log from their bytes.

A busy cluster logs little else.  So one expression recognises these lines in exactly the field order that
brokers write (Kafka 2.8 and later), without escapes, and repeated texts are read once.  ``request_log`` reads
every line that does not match in full.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from coordinator_model import decoding
from coordinator_model.kafka import shard_of
from coordinator_model.observations import Client, Heartbeats

_PLAIN = rb'[^"\\\x00-\x1f]*+'
_SKIPPED = rb'"' + _PLAIN + rb'"'
_TEXT = rb'"(' + _PLAIN + rb')"'
_MILLIS = rb"\d++\.\d++"
_IDENTITY_SHAPE = (
    rb'\{"groupId":%(text)s,"generationId":%(generation)s,"memberId":%(text)s'
    rb'(?:,"groupInstanceId":(?:null|%(text)s))?\},"response":'
    rb'\{(?:"throttleTimeMs":\d{1,9},)?"errorCode":%(error)s\}'
)
_IDENTITY = re.compile(
    _IDENTITY_SHAPE % {b"text": _TEXT, b"generation": rb"(-?\d{1,9})", b"error": rb"(-?\d{1,4})"}
)

# A line is its head, then WHO, TIMES and FROM between these words, which stand once in a plain line.
WHO_AFTER = b',"clientId":'
TIMES_AFTER = b',"totalTimeMs":'
FROM_AFTER = b',"securityProtocol":'
SECOND = rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
LEVEL = rb"\] (?:DEBUG|INFO) "
HEAD = (
    rb'Completed request:\{"isForwarded":(?:false|true),"requestHeader":\{"requestApiKey":12,'
    rb'"requestApiVersion":\d{1,2},"correlationId":-?'
)
"""As far as the digits of the correlation id, of which there are 1 to 10."""
WHO = (
    _TEXT
    + rb',"requestApiKeyName":"HEARTBEAT"\},"request":('
    + _IDENTITY_SHAPE % {b"text": _SKIPPED, b"generation": rb"-?\d{1,9}", b"error": rb"-?\d{1,4}"}
    + rb'),"connection":'
    + _TEXT
)
"""Groups: client id, what identifies the member and its answer, connection."""
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
    + rb"\}\}(?: \(kafka\.request\.logger\)(?: \[CRLF\])?)?\n?"
)
"""Groups: principal, software."""

LINE = re.compile(
    rb"(?:\[("
    + SECOND
    + rb"),(\d{3})"
    + LEVEL
    + rb")?"
    + HEAD
    + rb"\d{1,10}"
    + WHO_AFTER
    + WHO
    + TIMES_AFTER
    + TIMES
    + FROM_AFTER
    + FROM
)
"""A whole line. Groups: the second and its milliseconds (both or neither), client id, what identifies
the member and its answer, connection, principal, software."""
IDENTITY = 4
CLIENT = (3, 5, 6, 7)

ClientTexts = tuple[bytes, bytes, bytes, bytes]
"""Client id, connection, principal and software, as the line has them."""


class Beat(NamedTuple):
    """The sender of a heartbeat, and its answer."""

    shard: int
    group: str
    member_id: str
    generation: int
    error_code: int
    instance_id: str | None


# About 400 bytes each: 50,000 members are 20 MB in each worker.
@lru_cache(maxsize=1 << 16)
def _beat(identity: bytes, shard_count: int) -> Beat:
    found = _IDENTITY.fullmatch(identity)
    if found is None:  # pragma: no cover - LINE has matched the same shape
        raise ValueError(identity)
    group, generation, member, instance, error = found.groups()
    name = group.decode()
    return Beat(
        shard=shard_of(name, shard_count),
        group=name,
        member_id=member.decode(),
        generation=int(generation),
        error_code=int(error),
        instance_id=None if instance is None else instance.decode(),
    )


_KEPT_BYTES_MAX = 1_000
"""Longest cached texts of a sender: names of 32,767 characters would cost gigabytes."""


@lru_cache(maxsize=1 << 16)
def _client(client_id: bytes, connection: bytes, principal: bytes, software: bytes) -> Client:
    return decoding.client_of(client_id.decode(), connection.decode(), principal.decode(), software.decode())


def heartbeats(
    client: ClientTexts, identity: bytes, times: tuple[int, ...], shard_count: int
) -> tuple[int, Heartbeats]:
    """Return the shard and the observation of a run of heartbeats that say the same.

    Raises:
        UnicodeDecodeError: a text in the line is not UTF-8.
    """
    beat = (_beat if len(identity) <= _KEPT_BYTES_MAX else _beat.__wrapped__)(identity, shard_count)
    known = _client if sum(map(len, client)) <= _KEPT_BYTES_MAX else _client.__wrapped__
    return beat.shard, Heartbeats(
        group=beat.group,
        member_id=beat.member_id,
        generation=beat.generation,
        error_code=beat.error_code,
        times=times,
        client=known(*client),
        instance_id=beat.instance_id,
    )
