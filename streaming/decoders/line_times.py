"""The times of request-log lines: a line's own time, unless it cannot be right."""

import numpy as np

from coordinator_model.decoding import local_ms
from streaming.decoders.binary_column import Ints
from streaming.decoders.quiet_columns import Beats

AHEAD_MAX_MS = 60_000
"""A heartbeat dated further than this after its record has a wrong zone or clock, and the record's time
counts. For other lines the shard decides; it learns zones and clocks."""


def not_ahead(at_ms: int, stamp: int) -> int:
    """Return a line's time, or its record's ``stamp`` if the line's is impossible."""
    return stamp if at_ms > stamp + AHEAD_MAX_MS else at_ms


class LineTimes:
    """Reads times in lines; a time without a zone is in ``timezone``."""

    def __init__(self, timezone: str) -> None:
        self._timezone = timezone

    def of_line(self, second: bytes | None, millis: bytes, stamp: int) -> int:
        """Return a line's time in epoch ms; its record's ``stamp`` if the line has none."""
        if second is None:
            return stamp
        at_ms = local_ms(second.decode(), int(millis), self._timezone, stamp)
        return stamp if at_ms < 0 else at_ms


def of_beats(beats: Beats) -> tuple[Ints, Ints]:
    """Return the time of each line, and when its broker was heard by it, both in epoch ms."""
    heard_ms = np.where(beats.at_ms - AHEAD_MAX_MS > beats.stamp, beats.stamp, beats.at_ms)
    return np.where(beats.is_classic_beat, heard_ms, beats.at_ms), heard_ms
