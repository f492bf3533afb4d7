"""Updates the tracks of a group's partitions from commits and end offsets."""

from typing import TYPE_CHECKING, Final

from coordinator_model.groups.offsets.open_transactions import after_waiting

if TYPE_CHECKING:
    from coordinator_model.state import Track
from coordinator_model.state import MARKERS, UNKNOWN, WINDOW, Growth, Rewind, Track, Tracks

FAR: Final = 3
"""An offset that goes back by more than so many usual steps was reset; by less, a commit came late."""

REWIND_KEPT_MS: Final = 600_000

GROWTH_PERCENT: Final = 2
"""Lag grows if the group reads at least this share less than is written.  Under a rising load the lag of a

group that keeps up grows as well, by less than that.
"""

OUTLIER: Final = 3
"""A gap between commits counts as so many usual ones at most: a night without data makes no group slow."""

LEFT_MAX: Final = MARKERS
"""Limit of records that may never be read: each transaction ends with a marker that no consumer gets."""

ENDS_LATE_MS: Final = 60_000
"""An end offset may be reported so long after it was reached."""

FLAT_MAX: Final = 6
"""Number of lags in a row without growth after which growth is over: one jump is no growth."""


def committed(
    tracks: Tracks,
    track: Track,
    *,
    offset: int,
    at: int,
    before: tuple[int, int] | None,
    steady: int,
    may_abort: bool = False,
) -> bool:
    """Add a commit; True if it set the offset back, or proves that an earlier one did.

    Args:
        tracks: the group's, with its usual pace.
        track: the partition's.
        offset: what was committed.
        at: when, since the base of the tracks.
        before: the commit before it (offset, when), also one of the backlog; None: there was none.
        steady: since when the group has not rebalanced; earlier waits do not count as its usual pace.
        may_abort: whether it may be transactional, so that the next one may be lower.
    """
    before = _count(tracks, track, (offset, at), before, steady)
    if before is None or offset == before[0]:
        return False
    track.moved, track.repeats, track.transaction = at, 0, None
    if 0 <= track.end <= offset:
        # It reached the known end; the next end offset shows whether it reached the present one (growth).
        track.behind, track.fresh = UNKNOWN, False
    if offset > before[0]:
        return _make_good(track, offset)
    track.growth = None
    if track.behind < 0 and track.end > offset:
        track.behind = at
    if not may_abort:
        open_ = track.rewind is not None and not track.rewind.regained
        highest = max(before[0], track.rewind.before) if open_ and track.rewind else before[0]
        track.rewind = Rewind(highest, offset, at, track.end < 0)
    return not may_abort


def _count(
    tracks: Tracks, track: Track, commit: tuple[int, int], before: tuple[int, int] | None, steady: int
) -> tuple[int, int] | None:
    """Count a commit, and return the one before it, if that was of the same partition."""
    if before is not None and before[1] < track.anew:
        before = None
    if before is None or track.moved < 0:
        track.moved = commit[1]
    if before is None:
        track.fresh = True
    else:
        _measure(tracks, track, commit, before, steady)
    if track.commits < WINDOW and (before is None or not track.commits or _is_whole(commit, before, steady)):
        track.commits += 1
    return before


def _is_whole(commit: tuple[int, int], before: tuple[int, int], steady: int) -> bool:
    """Return whether no rebalance lies between two commits.

    A commit that a member makes before it joins again does not show how often it commits by itself.
    """
    return not before[1] < steady <= commit[1]


def _make_good(track: Track, offset: int) -> bool:
    """Note a commit that goes forward again after a rewind; True if it proves the rewind."""
    rewind = track.rewind
    if rewind is None or rewind.regained:
        return False
    rewind.commits = min(WINDOW, rewind.commits + 1)
    if offset < rewind.before:
        return False
    if is_far(track, rewind):
        # That it could be reached again proves that the partition is the same one.
        rewind.regained = rewind.confirmed = True
        return True
    track.rewind = None
    return False


def is_far(track: Track, rewind: Rewind) -> bool:
    """Return whether an offset was set back by more than a late commit could."""
    return rewind.before - rewind.offset > FAR * track.records // max(1, track.commits - 1)


def _measure(
    tracks: Tracks, track: Track, commit: tuple[int, int], before: tuple[int, int], steady: int
) -> None:
    """Note how long the group took from one commit to the next, and from one offset to the next."""
    before = after_waiting(track, before)
    offset, at = commit
    since = before[1] if before[1] > steady else steady
    gap = at - since if at > since else 0
    moved = offset - before[0] if offset > before[0] else 0
    is_whole = _is_whole(commit, before, steady)
    if is_whole and 0 < track.commits < WINDOW:
        track.span += gap
        track.records += moved
    elif is_whole and track.commits:
        # For each new gap, drops an average one of the window, whose gaps are not stored one by one.
        usual = track.span // (WINDOW - 1)
        track.span += min(gap, OUTLIER * max(usual, 1_000)) - usual
        track.records += moved - track.records // (WINDOW - 1)
    if track.behind < 0:
        return
    since, is_idle = max(track.behind, track.woken, steady), _has_read_all(track, before[0])
    if not is_idle:
        tracks.waits.learn(max(0, at - max(before[1], since)), at)
    if offset == before[0]:
        track.repeats = min(WINDOW, track.repeats + 1)
    elif offset > before[0] and not is_idle:
        tracks.stands.learn(max(0, at - max(track.moved, since)), at)


def ended(track: Track, *, end: int, at: int, commit: tuple[int, int] | None) -> None:
    """Add a partition's end offset.

    Args:
        track: the partition's.
        end: its end offset.
        at: when the brokers were asked.
        commit: the group's newest commit (offset, when); None: it has none.
    """
    if end < track.end:
        _begin_anew(track, at)
    if commit is not None and commit[1] < track.anew:
        commit = None
    earlier = (track.end, track.told)
    if end != track.end:
        track.woken = at if commit is not None and _has_read_all(track, commit[0]) else track.woken
        track.grown = at
    track.end, track.told = end, at
    if commit is None:
        return
    if track.rewind is not None:
        _confirm(track, track.rewind)
    if commit[0] >= end:
        track.behind, track.repeats, track.growth, track.fresh = UNKNOWN, 0, None, False
        return
    if track.behind < 0:
        track.behind = at
    _grow(track, earlier, commit)


def _has_read_all(track: Track, offset: int) -> bool:
    """Return whether only transaction markers are unread: the end did not grow after the last commit."""
    is_left = track.behind >= 0 and 0 < track.end - offset <= LEFT_MAX
    return is_left and 0 <= track.grown <= track.moved + ENDS_LATE_MS


def _begin_anew(track: Track, at: int) -> None:
    """Reset a partition whose end fell: its topic was created again, or cut by an unclean election."""
    track.anew = at
    track.commits = track.span = track.records = track.repeats = 0
    track.moved = track.end = track.told = track.grown = track.behind = UNKNOWN
    track.growth = track.rewind = track.transaction = None
    track.fresh, track.woken = False, UNKNOWN


def _confirm(track: Track, rewind: Rewind) -> None:
    if track.told < rewind.at:
        return
    if track.end < rewind.before or track.told - rewind.at > max(REWIND_KEPT_MS, track.span):
        track.rewind = None
    else:
        rewind.confirmed = True


def _grow(track: Track, earlier: tuple[int, int], commit: tuple[int, int]) -> None:
    """Set the lag at the newest commit, if that commit is newer than the previous end offset."""
    found = _end_at(track, earlier, commit[1])
    if found is None:
        return
    end, doubt = found
    lag, growth = end - commit[0], track.growth
    if lag <= 0:
        track.growth = None
    elif growth is None or lag < growth.peak - doubt:
        track.growth = _new_growth(commit[1], lag, end)
    else:
        before, growth.until = growth.until, commit[1]
        growth.peak, growth.top = max(growth.peak, lag), end
        growth.folds = min(WINDOW, growth.folds + 1)
        if grows(growth.mark, lag, end - growth.mark_end):
            growth.mark, growth.mark_end, growth.flat = lag, end, 0
            growth.rose_from = before if growth.rises == 0 else growth.rose_from
            growth.rises, growth.rose_to = min(WINDOW, growth.rises + 1), commit[1]
        elif growth.flat + 1 < FLAT_MAX:
            growth.flat += 1
        else:
            track.growth = _new_growth(commit[1], lag, end)


def _new_growth(at: int, lag: int, end: int) -> Growth:
    return Growth(at, lag, end, lag, at, end, mark=lag, mark_end=end)


def grows(before: int, lag: int, written: int) -> bool:
    """Return whether a lag has grown more than the load explains, while so many records were written."""
    return lag > before and (lag - before) * 100 >= written * GROWTH_PERCENT


def _end_at(track: Track, earlier: tuple[int, int], at: int) -> tuple[int, int] | None:
    """Return where the partition ended at a commit and the error of that figure; None: unknown.

    The figure lies on a line between the end offset asked for before the commit and the one after it.
    """
    end, told = earlier
    if at <= told:
        return None  # measured already
    if at == track.told:
        return track.end, 0
    if told < 0 or at > track.told:
        return None
    more = track.end - end
    return end + more * (at - told) // (track.told - told), more // 2
