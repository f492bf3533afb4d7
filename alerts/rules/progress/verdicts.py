"""Judges one partition: is it consumed as it should be?

The basis of CommitsStopped, CommitsStalled, LagGrowing and OffsetRewind.  The verdicts are Burrow's (stopped,
stalled, rewind, warning) over a window of ten commits, without the false ones that its users report:

- A partition is measured by its own group's habit: silence counts from when records began to wait, and must
  exceed the width of the window, one and a half times the longest wait of the last day, and ``after``.  So
  hourly jobs, slow committers and idle partitions cause no verdict.
- Fewer than ``COMMITS_MIN`` commits cause none either.
- A few records left over while nothing new is written are transaction markers, not work.
- Lag that stays the same does not grow; the group must read less than is written.
- An offset that goes back and is made good at once is a late commit, as in rebalances.
- A recreated topic (its id or end offset shows that) starts a new history.
- A group that has read all stable records waits for an open transaction, not for itself; a transaction that
  hangs is reported as such.

Pure; the same code judges a stream of single commits (``coordinator_model/state/tracks.py``) and a whole
window (``verdict``).
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

from alerts.rules.engine import MINUTE_MS, DurationMs, RuleOptions, Thresholds
from coordinator_model.groups import offsets
from coordinator_model.groups.offsets import ENDS_LATE_MS, LEFT_MAX, committed, ended, grows, is_far
from coordinator_model.state import Habit, Track, Tracks

COMMITS_MIN: Final = 3
"""Fewest commits for a verdict; they give two gaps, since one gap is no habit."""
YOUNG_MS: Final = 600_000
FRESH_MS: Final = 15_000
"""Silence is judged only if the brokers have just answered: while they are away, nobody can commit."""
REPEATS_MIN: Final = 2
HABIT_PERCENT: Final = 150
REGAINED_MS: Final = 10_000
WAITS: Final = "it has read all committed records, and waits for an open transaction to end"
"""Why a group that seemed stuck is well again."""
HANGS_MS: Final = 900_000
"""The brokers' default for ``transaction.max.timeout.ms``."""
ENDING_MS: Final = 15_000
"""Brokers check every 10 s for transactions that have lasted too long."""
LATE_PERCENT: Final = 125
"""The next commit is due after this share of the usual gap."""


class CommitsStoppedOptions(RuleOptions, frozen=True, kw_only=True):
    """How long a group may commit nothing while records wait, whatever its habit."""

    after_ms: Annotated[DurationMs, "time without a commit while records wait, whatever is usual"] = 90_000


class CommitsStalledOptions(RuleOptions, frozen=True, kw_only=True):
    """How long a group may commit the same offset while records wait, whatever its habit."""

    after_ms: Annotated[DurationMs, "time at one offset while records wait, whatever is usual"] = MINUTE_MS


class LagGrowingOptions(RuleOptions, frozen=True, kw_only=True):
    """How long the lag must grow without a break."""

    window_ms: Annotated[DurationMs, "time in which the lag grows without a break"] = 4 * MINUTE_MS


class Status(StrEnum):
    """The verdict on one partition of one group."""

    OK = "ok"
    UNKNOWN = "unknown"
    """No end offset is known, or records wait and there are too few commits to know the group's habit."""
    STOPPED = "stopped"
    STALLED = "stalled"
    REWOUND = "rewound"
    GROWING = "growing"


class PartitionProgress(NamedTuple):
    """One partition at one moment; all times are relative to the base of its tracks."""

    topic: str
    partition: int
    track: Track
    offset: int
    """The last committed offset."""
    last: int
    """The time of that commit."""

    @property
    def name(self) -> str:
        """Return topic and partition as Kafka's tools write them."""
        return f"{self.topic}-{self.partition}"

    @property
    def lag(self) -> int:
        """Return how many records wait; never negative, 0 if the end offset is unknown."""
        return max(0, self.track.end - self.offset)

    @property
    def waits(self) -> bool:
        """Say whether the group has read all stable records, so that it waits for a transaction to end."""
        return offsets.waits(self.track, self.offset)


class GroupPace(NamedTuple):
    """The facts that hold for all partitions of a group at one moment."""

    now: int
    thresholds: Thresholds
    waits: int = 0
    """Longest usual wait between commits in the group, in milliseconds."""
    stands: int = 0
    """Longest usual time without progress."""
    steady: int = 0
    """Since when the group is in its present state: earlier silence had other causes."""
    patience: int = 0
    """Silence that is tolerated whatever the habit."""
    is_live: bool = False
    """The job asks for end offsets; in a capture, each end offset holds until the next one."""
    transaction: int = HANGS_MS
    """How long a transaction may be open; brokers end longer ones."""


def habit(one: Habit) -> int:
    """Return how long something may take in a group with this habit."""
    return one.longest * HABIT_PERCENT // 100


# --- one partition ---------------------------------------------------------------------------------------


def _is_waiting(part: PartitionProgress) -> bool:
    is_behind = part.track.behind >= 0 and part.lag > 0
    return part.track.commits >= COMMITS_MIN and is_behind and not part.waits


def _is_leftover(part: PartitionProgress, since: int) -> bool:
    """Say whether all waiting records were there already when the group was last known to read."""
    return part.lag <= LEFT_MAX and part.track.grown <= since + ENDS_LATE_MS


def silence_bound(part: PartitionProgress, pace: GroupPace) -> int:
    """Return how long the group may leave this partition without a commit while records wait."""
    after_ms = pace.thresholds.of(CommitsStoppedOptions).after_ms
    return max(after_ms, part.track.span, pace.waits, pace.patience)


def is_young(part: PartitionProgress, pace: GroupPace) -> bool:
    """Say whether records wait, and the commits that will show the habit may still come."""
    is_waiting = part.track.behind >= 0 and part.lag > 0
    return part.track.commits < COMMITS_MIN and is_waiting and pace.now - part.last < YOUNG_MS


def stops_at(part: PartitionProgress, pace: GroupPace, *, is_open: bool = False) -> int | None:
    """Return from when on the partition counts as stopped; None if it does not.

    ``is_open``: an alert is open, so only a commit, or an end of the waiting records, ends it.
    """
    if not _is_waiting(part) or (not is_open and _is_leftover(part, part.last)):
        return None
    if not is_open and pace.is_live and pace.now - part.track.told > FRESH_MS:
        return None
    since = max(part.last, part.track.behind, part.track.woken)
    if not is_open:
        since = max(since, pace.steady)
    return since + silence_bound(part, pace) + 1


def stalls_at(part: PartitionProgress, pace: GroupPace, *, is_open: bool = False) -> int | None:
    """Return from when on the partition counts as stalled; None if it does not.

    Stalled: all commits of a window have the same offset, for longer than the group's habit.
    """
    track = part.track
    since = max(track.moved, track.behind, track.woken)
    if not _is_waiting(part) or track.repeats == 0:
        return None
    if not is_open:
        since = max(since, pace.steady)
        if track.repeats < max(REPEATS_MIN, track.commits - 1) or _is_leftover(part, track.moved):
            return None
    at = since + max(pace.thresholds.of(CommitsStalledOptions).after_ms, pace.stands)
    # Time without commits is silence, not stalling.
    return at if is_open or part.last >= at else None


def hangs_at(part: PartitionProgress, pace: GroupPace, *, is_open: bool = False) -> int | None:
    """Return from when on the transaction that a partition waits for counts as hanging; None without one.

    ``is_open``: an alert is open, so only an observed end ends it.
    """
    one = part.track.transaction
    if one is None or not part.waits:
        return None
    if not is_open and pace.now - one.told > ENDS_LATE_MS + FRESH_MS:
        return None
    return one.since + pace.transaction + ENDING_MS


def is_growing(part: PartitionProgress, pace: GroupPace) -> bool:
    """Say whether the lag, measured at each commit, has grown for a whole window without a break."""
    growth = part.track.growth
    if growth is None or growth.folds < max(COMMITS_MIN, part.track.commits) or growth.rises < COMMITS_MIN:
        return False
    if part.track.repeats >= REPEATS_MIN:
        return False  # that is to stall
    lasted = growth.rose_to - max(growth.rose_from, pace.steady)
    is_slow = grows(growth.lag, growth.peak, growth.top - growth.end)
    return lasted >= pace.thresholds.of(LagGrowingOptions).window_ms and growth.peak > LEFT_MAX and is_slow


def is_at_rest(part: PartitionProgress, pace: GroupPace) -> bool:
    """Say whether the partition is stopped or stalled, reported or excused."""
    times = (stops_at(part, pace, is_open=True), stalls_at(part, pace, is_open=True))
    return any(at is not None and at <= pace.now for at in times)


def rewinds_at(part: PartitionProgress) -> int | None:
    """Return from when on a commit below the one before counts as a rewind; None if there is none."""
    track, rewind = part.track, part.track.rewind
    if rewind is None:
        return None
    # Changed ends are reported soon: without news, the partition still has the end that it had.
    proof = 0 if rewind.confirmed else ENDS_LATE_MS
    if rewind.regained or is_far(track, rewind):
        return rewind.at + proof
    # The next commit may make it good; if that one is late itself, the one after it may.
    gap = track.span // max(1, track.commits - 1)
    patience = 0 if rewind.commits >= 2 else gap * LATE_PERCENT // 100
    return rewind.at + max(REGAINED_MS, patience, proof)


def status_of(part: PartitionProgress, pace: GroupPace) -> Status:
    """Return the worst verdict that holds for one partition, in Burrow's order."""
    rewound = rewinds_at(part)
    is_regained = part.track.rewind is not None and part.track.rewind.regained
    is_rewound = rewound is not None and rewound <= pace.now and not is_regained
    if part.track.end >= 0 and part.lag == 0:
        return Status.OK
    if part.track.end < 0 or part.track.commits == 0:
        return Status.REWOUND if is_rewound else Status.UNKNOWN
    stopped, stalled = stops_at(part, pace), stalls_at(part, pace)
    if stopped is not None and stopped <= pace.now:
        return Status.STOPPED
    if is_rewound:
        return Status.REWOUND
    if stalled is not None and stalled <= pace.now:
        return Status.STALLED
    if is_growing(part, pace):
        return Status.GROWING
    return Status.UNKNOWN if part.track.commits < COMMITS_MIN else Status.OK


# --- a whole window ----------------------------------------------------------------------------------------


def verdict(
    commits: Iterable[tuple[int, int]],
    end_offsets: Iterable[tuple[int, int]],
    now_ms: int,
    *,
    thresholds: Thresholds | None = None,
    steady_ms: int = 0,
    topic_ids: Iterable[int] = (),
) -> Status:
    """Return the verdict at ``now_ms`` on one partition with this history.

    Args:
        commits: (offset, epoch ms) of the group's commits, oldest first.
        end_offsets: (end offset, epoch ms), oldest first; in a commit's own millisecond they come after it.
        now_ms: the time of judgement.
        thresholds: the rules' as they hold for the group; None: the defaults.
        steady_ms: since when the group is Stable (0: ever since).
        topic_ids: for each commit the id of the topic (0 unknown), if any is known.
    """
    known = sorted(
        [(at_ms, 0, index, value) for index, (value, at_ms) in enumerate(commits)]
        + [(at_ms, 1, index, value) for index, (value, at_ms) in enumerate(end_offsets)]
    )
    ids, before = dict(enumerate(topic_ids)), None
    tracks = Tracks(base_ms=min((one[0] for one in known), default=now_ms) - ENDS_LATE_MS)
    steady = tracks.since_base(steady_ms)
    for at_ms, kind, index, value in known:
        at = tracks.since_base(at_ms)
        if kind == 0:
            before = None if tracks.renew("", ids.get(index, 0)) else before
            committed(tracks, _track(tracks), offset=value, at=at, before=before, steady=steady)
            before = (value, at)
        else:
            ended(_track(tracks), end=value, at=at, commit=before)
    offset, last = before or (0, 0)
    track = _track(tracks)
    pace = GroupPace(
        now=tracks.since_base(now_ms),
        thresholds=thresholds or Thresholds(),
        waits=habit(tracks.waits),
        stands=habit(tracks.stands),
        steady=steady,
    )
    return status_of(PartitionProgress("", 0, track, offset, last), pace)


def _track(tracks: Tracks) -> Track:
    found = tracks.track("", 0)
    assert found is not None  # noqa: S101 - there is one
    return found
