"""What makes a clock record, or a copy of one, believable: whose it is, and when it was appended.

The run says whose it is.  Who may write into the topic can read that name there, so clocks of a checkpoint
that has a secret are sealed with it as well.
"""

import hmac
from collections.abc import Iterable, Mapping

from coordinator_model.observations import is_int32, is_int64, is_time_ms

FAR_MS = 60_000
"""A clock further from its record's append time than this is refused.  Ours are appended within milliseconds,
while a broker is missed within seconds; more comes from somebody else, or from a clock that stepped."""

EVENTS_PARTITIONS_MAX = 10_000
"""Each shard looks at each of them in each step; a topic with so many partitions has other troubles."""
NOT_SEALED = "it names our run, and is not sealed by it"
_SEAL = b',"seal":"'


def sealed(value: bytes, secret: str) -> bytes:
    """Return a JSON object with the seal of whoever knows ``secret``; "" seals nothing."""
    if not secret:
        return value
    return b'%s%s%s"}' % (value[:-1], _SEAL, _seal(value, secret))


def is_sealed(value: bytes, secret: str) -> bool:
    """Say whether ``value`` was sealed with ``secret``; without one everything is."""
    if not secret:
        return True
    body, found, seal = value.rpartition(_SEAL)
    return bool(found) and hmac.compare_digest(seal, _seal(body + b"}", secret) + b'"}')


def _seal(value: bytes, secret: str) -> bytes:
    return hmac.new(secret.encode(), value, "sha256").hexdigest()[:32].encode()


def fits(at_ms: int, numbers: Iterable[int], skew_ms: Mapping[int, int], events_partitions: int = 0) -> bool:
    """Say whether the numbers of a clock are such as a clock can tell.

    Args:
        at_ms: its time.
        numbers: its sequence, offsets and the like.
        skew_ms: broker -> how far its clock is ahead.
        events_partitions: how many partitions of log lines it tells of.
    """
    return (
        at_ms >= 0
        and is_time_ms(at_ms)
        and 0 <= events_partitions <= EVENTS_PARTITIONS_MAX
        and all(map(is_int64, numbers))
        and all(is_int32(broker) and is_time_ms(abs(skew)) for broker, skew in skew_ms.items())
    )


def clock_refusal(at_ms: int, lead_ms: int, appended_ms: int) -> str:
    """Return in words why a clock is not believed; "": it is.

    Args:
        at_ms: the time it tells.
        lead_ms: how far the appending broker's clock was ahead of the driver's then, as the clock tells.
        appended_ms: its record's time; negative: unknown.
    """
    if appended_ms < 0:
        return ""
    ahead_ms = at_ms + lead_ms - appended_ms
    if abs(ahead_ms) <= FAR_MS:
        return ""
    return f"{abs(ahead_ms)} ms {'after' if ahead_ms > 0 else 'before'} its record was appended"
