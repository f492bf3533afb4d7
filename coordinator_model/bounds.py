"""Bounds of the numbers that others send: every decoder holds what it reads against these.

A number beyond them is no observation: msgpack cannot carry more than 64 bits, and a time of the year
40000 would take the shard's watermark along.  Kafka's own types give the widths (INT32: generations,
epochs, partitions, broker ids; INT64: offsets, producer ids).
"""

from typing import Final

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
