"""Reads copies of the driver's clock, which stand between the brokers' lines."""

import msgspec

from streaming.control import NOT_SEALED, Int32, Int64, SkewMs, TimeMs, clock_refusal, fits, is_sealed
from streaming.decoders.decoding_control import reason_of

CLOCK_KEY = b"groupwatch-clock"
"""The record key of the copies."""


class ClockCopy(msgspec.Struct):
    """A copy of the clock in one partition of the events topic."""

    at_ms: TimeMs
    sequence: Int64
    skew_ms: SkewMs = {}
    run: str = ""
    lead_ms: Int64 = 0
    shards: list[Int32] | None = None
    """The shards that it is for; None: for all."""


class ClockCopyError(ValueError):
    """A copy that must not be believed; ``reason`` is the name under which it is counted."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def read_copy(value: bytes, *, stamp_ms: int, run: str, secret: str) -> ClockCopy | None:
    """Return a copy of our clock; None if it belongs to another run.

    Args:
        value: the record.
        stamp_ms: the record's own time.
        run: whose copies to take; "" takes all.
        secret: seals the copies; "": copies have no seal.

    Raises:
        ClockCopyError: it cannot be read, or is not to be believed.
    """
    try:
        copy = _COPY.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ClockCopyError(reason_of(error, "clock_invalid"), str(error)) from error
    if run and copy.run != run:
        return None
    if not fits(copy.at_ms, (copy.sequence, copy.lead_ms), copy.skew_ms):
        raise ClockCopyError("out_of_range", "a number of a clock copy")
    refusal = clock_refusal(copy.at_ms, copy.lead_ms, stamp_ms)
    if not is_sealed(value, secret):
        refusal = NOT_SEALED
    if refusal:
        raise ClockCopyError("clock_refused", refusal)
    return copy


_COPY = msgspec.json.Decoder(ClockCopy)
