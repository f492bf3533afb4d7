"""The times of request-log lines: a line's own time, unless it cannot be right."""

import numpy as np

from coordinator_model.decoding import local_ms, local_second_ms
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

    def of_beats(self, beats: Beats) -> tuple[Ints, Ints]:
        """Return the time of each line, and when its broker was heard by it, both in epoch ms."""
        seconds = beats.names.seconds.values
        readings = [local_second_ms(one.decode(), self._timezone) for one in seconds]
        base_ms, other_ms = np.array(readings, np.int64).T
        at_ms = base_ms[beats.second] + beats.millis
        # A date that does not exist, or an hour that comes twice.
        for index in np.flatnonzero(((base_ms < 0) | (base_ms != other_ms))[beats.second]).tolist():
            text, stamp = seconds[beats.second[index]], int(beats.stamp[index])
            at_ms[index] = self.of_line(text, b"%d" % beats.millis[index], stamp)
        heard_ms = np.where(at_ms > beats.stamp + AHEAD_MAX_MS, beats.stamp, at_ms)
        return np.where(beats.is_classic_beat, heard_ms, at_ms), heard_ms
