"""Bounds of the numbers that others send: every decoder checks its numbers against these.

A number beyond them is no observation: msgpack cannot carry more than 64 bits, and a time of the year 40000
would advance the shard's watermark to it.  Kafka's own types give the widths (INT32: generations, epochs,
partitions, broker ids; INT64: offsets, producer ids).
"""

from collections.abc import Callable, Collection, MutableMapping
from heapq import nsmallest
from typing import Any, Final, TypeVar

NEVER = 2**62
"""A deadline that never comes."""


INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
TIME_MS_MAX: Final = 253_402_300_799_999
"""The last millisecond of the year 9999, the last that can be written as a date."""
_DIGITS_MAX: Final = 20
"""More digits than any 64-bit number has; ``int`` takes quadratic time for long ones."""


def is_int32(number: int) -> bool:
    """Return whether ``number`` is a generation, epoch, partition or broker id in Kafka's protocol."""
    return -INT32_MAX - 1 <= number <= INT32_MAX


def is_int64(number: int) -> bool:
    """Return whether ``number`` is an offset or producer id in Kafka's protocol."""
    return -INT64_MAX - 1 <= number <= INT64_MAX


def is_time_ms(number: int) -> bool:
    """Return whether ``number`` is a time in epoch milliseconds that can be written as a date, or -1."""
    return -1 <= number <= TIME_MS_MAX


def int32_of(digits: str) -> int | None:
    """Return the number written in ``digits``, None if it is no INT32."""
    number = int64_of(digits)
    return number if number is not None and is_int32(number) else None


def int64_of(digits: str) -> int | None:
    """Return the number written in ``digits`` (ASCII, perhaps with a sign), None if it is no INT64."""
    plain = digits[1:] if digits[:1] == "-" else digits
    if len(plain) > _DIGITS_MAX or not (plain.isascii() and plain.isdecimal()):
        return None
    number = int(digits)
    return number if is_int64(number) else None


# --- how much may be stored of names that others send (see ``strangers.py``) ---

BROKERS_MAX: Final = 4_096
"""Limit of brokers whose reports one shard stores; the largest clusters have a thousand."""
TOPICS_MAX: Final = 20_000
"""Limit of topics to which one group commits."""
PARTITIONS_MAX: Final = 100_000
"""Limit of partitions of one topic to which one group commits."""
TOO_MANY_TOPICS: Final = "too_many_topics"
"""The divergence that counts commits beyond that."""
_KEPT = 0.9
"""Share of a limit that is kept when it is reached, so that not each new entry costs a scan of all."""
K = TypeVar("K")
V = TypeVar("V")


def drop_oldest(
    known: MutableMapping[K, V], most: int, age: Callable[[V], Any], kept: Collection[K] = ()
) -> int:
    """Remove the oldest entries if there are more than ``most``; return how many were removed.

    Args:
        known: entries named by others.
        most: how many there may be.
        age: smaller is older.
        kept: keys that are never removed.
    """
    if len(known) <= most:
        return 0
    others = [key for key in known if key not in kept]
    excess = min(len(others), len(known) - int(most * _KEPT))
    for key in nsmallest(excess, others, key=lambda one: (age(known[one]), one)):
        del known[key]
    return excess
