"""One group over a window, out of the file."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from streaming.history.file import COARSE, FINE, HistoryFile
from streaming.history.pages import Value
from streaming.history.past import Past, Point
from streaming.history.samples import LOOK_MS
from streaming.history.series import COARSE_MS, COARSE_WHOLE_MS, FINE_WHOLE_MS, HOUR_MS, MINUTE_MS, grown

GAP_MS = 4 * LOOK_MS


def past_of(file: HistoryFile, cluster: str, group: str, *, from_ms: int, to_ms: int, now_ms: int) -> Past:
    """Return what the file has of one group in a window.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    until_ms = min(to_ms, now_ms)
    watched = file.stretches(cluster, from_ms, until_ms)
    gaps = tuple(gaps_between(watched, from_ms, until_ms))
    is_fine = from_ms >= now_ms - HOUR_MS - MINUTE_MS
    number = file.find(cluster, group)
    if number is None:
        return Past(step_ms=LOOK_MS if is_fine else COARSE_MS, gaps=gaps)
    points = _points(file, number, from_ms, until_ms, now_ms)
    return Past(
        step_ms=LOOK_MS if is_fine else COARSE_MS,
        points=tuple(spread(points, file.stretches(cluster, 0, until_ms), from_ms, until_ms)),
        gaps=gaps,
        lanes=tuple(file.lanes(number, from_ms, to_ms)),
        owners=tuple(file.owned(number, from_ms, to_ms)),
        transitions=tuple(file.transitions(number, from_ms, to_ms)),
        alerts=tuple(file.alerts(number, from_ms, to_ms)),
    )


def _points(file: HistoryFile, number: int, from_ms: int, to_ms: int, now_ms: int) -> list[tuple[int, Value]]:
    """Return the values for a window, and the last before it: the fine ones as far back as there are any."""
    fine_from_ms = max(from_ms, now_ms - HOUR_MS - MINUTE_MS)
    fine = file.series(FINE, number, fine_from_ms - FINE_WHOLE_MS - LOOK_MS, to_ms)
    if fine_from_ms == from_ms:
        return fine
    coarse = file.series(COARSE, number, from_ms - COARSE_WHOLE_MS - COARSE_MS, min(to_ms, fine_from_ms))
    return [*coarse, *((at_ms, value) for at_ms, value in fine if at_ms > fine_from_ms)]


def gaps_between(watched: Sequence[tuple[int, int]], from_ms: int, to_ms: int) -> Iterator[tuple[int, int]]:
    """Yield the times in a window in which nobody watched, without pauses between two looks."""
    edges = [(from_ms, from_ms), *watched, (to_ms, to_ms)]
    for (_, before), (after, _) in pairwise(edges):
        if after - before > GAP_MS:
            yield max(before, from_ms), min(after, to_ms)


def spread(
    values: Sequence[tuple[int, Value]], watched: Sequence[tuple[int, int]], from_ms: int, to_ms: int
) -> Iterator[Point]:
    """Yield the points of a window.

    A value holds until the next one, or until nobody watched any more; before a point that differs, and at
    the end, the one before is repeated as it had become by then.
    """
    if not values:
        return
    ends = [*(at_ms for at_ms, _ in values[1:]), to_ms + 1]
    for (at_ms, value), end_ms in zip(values, ends, strict=True):
        stop_ms = min(end_ms - 1, _watched_until(watched, at_ms), to_ms)
        if stop_ms < from_ms:
            continue
        begin_ms = max(at_ms, from_ms)
        yield _point(begin_ms, grown(value, begin_ms - at_ms))
        if stop_ms - begin_ms > LOOK_MS:
            yield _point(stop_ms, grown(value, stop_ms - at_ms))


def _watched_until(watched: Sequence[tuple[int, int]], at_ms: int) -> int:
    """Return until when a value holds that was written then, if no other follows."""
    for begin_ms, end_ms in watched:
        if begin_ms <= at_ms <= end_ms:
            return end_ms + LOOK_MS
    return at_ms


def _point(at_ms: int, value: Value) -> Point:
    return Point(
        at_ms,
        value.records if value.records >= 0 else None,
        round(value.seconds, 1) if value.seconds >= 0 else None,
        round(value.rate, 2) if value.rate >= 0 else None,
    )
