"""Bounds of the numbers that others send: every decoder holds what it reads against these.

A number beyond them is no observation: msgpack cannot carry more than 64 bits, and a time of the year
40000 would take the shard's watermark along.  Kafka's own types give the widths (INT32: generations,
epochs, partitions, broker ids; INT64: offsets, producer ids).
"""

from collections.abc import Callable, Collection, MutableMapping
from heapq import nsmallest
from typing import Any, Final, TypeVar

NEVER = 2**62
"""A deadline that is none."""


INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
TIME_MS_MAX: Final = 253_402_300_799_999
"""The last millisecond of the year 9999, which is as far as dates can be written."""
_DIGITS_MAX: Final = 20
"""More digits than any 64-bit number has; ``int`` takes quadratic time for long ones."""


def is_int32(number: int) -> bool:
    """Say whether ``number`` is a generation, epoch, partition or broker id as Kafka's protocol has them."""
    return -INT32_MAX - 1 <= number <= INT32_MAX


def is_int64(number: int) -> bool:
    """Say whether ``number`` is an offset or producer id as Kafka's protocol has them."""
    return -INT64_MAX - 1 <= number <= INT64_MAX


def is_time_ms(number: int) -> bool:
    """Say whether ``number`` is a time in epoch milliseconds that can be written as a date, or -1."""
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


# --- how much may be remembered of what strangers name (see ``strangers.py``) ---

BROKERS_MAX: Final = 4_096
"""Of whom one shard keeps what they said; the largest clusters have a thousand."""
TOPICS_MAX: Final = 20_000
"""Topics to which one group commits."""
PARTITIONS_MAX: Final = 100_000
"""Partitions of one topic to which one group commits."""
TOO_MANY_TOPICS: Final = "too_many_topics"
"""Kind of the divergence that counts commits to more."""
_KEPT = 0.9
"""Of a bound that is reached, so that not each further one costs a look at all of them."""
K = TypeVar("K")
V = TypeVar("V")


def drop_oldest(
    known: MutableMapping[K, V], most: int, age: Callable[[V], Any], kept: Collection[K] = ()
) -> int:
    """Take out what is oldest if there are more than ``most``; returns how many went.

    Args:
        known: of strangers.
        most: how many there may be.
        age: smaller is older.
        kept: keys that are never taken out.
    """
    if len(known) <= most:
        return 0
    others = [key for key in known if key not in kept]
    excess = min(len(others), len(known) - int(most * _KEPT))
    for key in nsmallest(excess, others, key=lambda one: (age(known[one]), one)):
        del known[key]
    return excess
