"""Decides whether a clock record, or a copy of one, is believable: who wrote it, and when it was appended.

The run identifies the writer.  Anybody who may write to the topic can read that name there, so the clocks of
a checkpoint with a secret are sealed with the secret as well.
"""

import hmac
from collections.abc import Iterable, Mapping

from coordinator_model.observations import is_int32, is_int64, is_time_ms

FAR_MS = 60_000
"""A clock further than this from its record's append time is refused.  Ours are appended within milliseconds,
or seconds while a broker is gone; a larger difference comes from another writer, or from a clock that
stepped."""

EVENTS_PARTITIONS_MAX = 10_000
"""Most events partitions: each shard looks at each of them in each step."""
NOT_SEALED = "it names our run but does not carry its seal"
_SEAL = b',"seal":"'


def sealed(value: bytes, secret: str) -> bytes:
    """Return a JSON object sealed with ``secret``; "" seals nothing."""
    if not secret:
        return value
    return b'%s%s%s"}' % (value[:-1], _SEAL, _seal(value, secret))


def is_sealed(value: bytes, secret: str) -> bool:
    """Say whether ``value`` was sealed with ``secret``; without a secret everything was."""
    if not secret:
        return True
    body, found, seal = value.rpartition(_SEAL)
    return bool(found) and hmac.compare_digest(seal, _seal(body + b"}", secret) + b'"}')


def _seal(value: bytes, secret: str) -> bytes:
    return hmac.new(secret.encode(), value, "sha256").hexdigest()[:32].encode()


def fits(at_ms: int, numbers: Iterable[int], skew_ms: Mapping[int, int], events_partitions: int = 0) -> bool:
    """Say whether the numbers of a clock are possible.

    Args:
        at_ms: its time.
        numbers: its sequence, offsets and the like.
        skew_ms: broker -> how far its clock is ahead.
        events_partitions: how many partitions of log lines it covers.
    """
    return (
        at_ms >= 0
        and is_time_ms(at_ms)
        and 0 <= events_partitions <= EVENTS_PARTITIONS_MAX
        and all(map(is_int64, numbers))
        and all(is_int32(broker) and is_time_ms(abs(skew)) for broker, skew in skew_ms.items())
    )


def clock_refusal(at_ms: int, lead_ms: int, appended_ms: int) -> str:
    """Return why a clock is refused; "" if it is believed.

    Args:
        at_ms: the clock's time.
        lead_ms: how far the appending broker's clock was ahead of the driver's, according to the clock.
        appended_ms: its record's timestamp; negative: unknown.
    """
    if appended_ms < 0:
        return ""
    ahead_ms = at_ms + lead_ms - appended_ms
    if abs(ahead_ms) <= FAR_MS:
        return ""
    return f"{abs(ahead_ms)} ms {'after' if ahead_ms > 0 else 'before'} its record was appended"
