"""Decides which values of lag and commit rate are written down: those that changed.  Pure.

A value holds until the next one of its group.  Its seconds grow by themselves while records wait, so a group
that stands still is one row.
"""

from collections.abc import Iterable, Iterator, Mapping

from streaming.group_store import Lag
from streaming.history.pages import UNKNOWN, Value

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
COARSE_MS = 300_000
FINE_WHOLE_MS, COARSE_WHOLE_MS = 1_800_000, 4 * HOUR_MS
"""So often every group is written, changed or not: no reader looks further back for a value."""
_SLACK_S = 2.0
_SLACK_PART = 0.02


class Track:
    """What is known of one group: the last value of each table, and what came since."""

    __slots__ = (
        "coarse",
        "coarse_at_ms",
        "coarse_committed",
        "coarse_committed_ms",
        "committed",
        "fine",
        "fine_at_ms",
        "number",
        "owners_generation",
        "peak",
        "report",
        "valued",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.report = b""
        """The report whose members were looked at last …"""
        self.valued = b""
        """… and the one whose commits were."""
        self.committed = -1
        self.fine: Value | None = None
        """The last value that was written; None: none, since this process began to watch."""
        self.fine_at_ms = -1
        self.coarse: Value | None = None
        self.coarse_at_ms = -1
        self.coarse_committed = -1
        self.coarse_committed_ms = -1
        self.peak = UNKNOWN
        """The largest lag since the last coarse value."""
        self.owners_generation = -1

    def forget(self) -> None:
        """Begin anew: nobody watched for a while, so rates over that time would be wrong."""
        self.committed = self.coarse_committed = -1
        self.fine = self.coarse = None
        self.peak = UNKNOWN

    def take(self, lags: Mapping[str, Lag], committed: int, now_ms: int, before_ms: int) -> Value:
        """Return the value of now.

        Args:
            lags: topic -> lag; a topic whose end is unknown is left out.
            committed: sum of committed offsets; -1: it commits nothing.
            now_ms: the time of this look.
            before_ms: the time of the look before: what changed since then changed after it.
        """
        rate = per_second(self.committed, committed, now_ms - before_ms)
        self.committed = committed
        value = Value(
            sum(one.records for one in lags.values()) if lags else -1,
            max((one.seconds for one in lags.values()), default=-1.0),
            rate if committed >= 0 else -1.0,
        )
        if value.records >= self.peak.records:
            self.peak = value
        return value


def per_second(before: int, now: int, ms: int) -> float:
    """Return how fast committed offsets grew; -1: unknown, as nobody looked before or they went back."""
    return (now - before) * 1000 / ms if 0 <= before <= now and ms > 0 else -1.0


def grown(value: Value, ms: int) -> Value:
    """Return what a value has become after so long, if nothing else changed."""
    return value._replace(seconds=value.seconds + ms / 1000) if value.records > 0 else value


def is_same(before: Value | None, before_ms: int, now: Value, now_ms: int) -> bool:
    """Return whether a value holds on."""
    if before is None or before.records != now.records or abs(before.rate - now.rate) >= 0.005:
        return False
    expected = grown(before, now_ms - before_ms).seconds
    return abs(expected - now.seconds) <= max(_SLACK_S, _SLACK_PART * expected)


def fine_changes(
    values: Iterable[tuple[Track, Value]], now_ms: int, *, whole: bool
) -> Iterator[tuple[int, Value]]:
    """Yield (group's number, value) for what is written now, and note it as written.

    Args:
        values: track and present value of groups.
        now_ms: the time.
        whole: write everything, so that no reader has to look further back.
    """
    for track, value in values:
        if whole or not is_same(track.fine, track.fine_at_ms, value, now_ms):
            track.fine, track.fine_at_ms = value, now_ms
            yield track.number, value


def coarse_changes(tracks: Iterable[Track], now_ms: int, *, whole: bool) -> Iterator[tuple[int, Value]]:
    """Yield the same for the coarse table: the peak of the lag, and the rate over the whole time."""
    for track in tracks:
        if track.fine is None:
            continue
        present = grown(track.fine, now_ms - track.fine_at_ms)
        value = track.peak if track.peak.records > present.records else present
        over_ms = now_ms - track.coarse_committed_ms
        value = value._replace(rate=per_second(track.coarse_committed, track.committed, over_ms))
        track.peak, track.coarse_committed, track.coarse_committed_ms = present, track.committed, now_ms
        if whole or not is_same(track.coarse, track.coarse_at_ms, value, now_ms):
            track.coarse, track.coarse_at_ms = value, now_ms
            yield track.number, value
