"""How each partition is consumed: the input of the rules about progress, in a few numbers each.

A track follows one partition that a group commits to, from the end of the backlog on.  Two inputs update it:
commits, from the topic (``committed``), and the partition's end offsets, from the driver's probe (``ended``).
Nothing is concluded here; ``alerts/rules/progress`` does that.

Saved with the group, so times are milliseconds since ``Tracks.base_ms`` (5 bytes instead of 9).  The structs
are array-like: **new fields go to the end with a default**, and none ever changes its meaning.
"""

from typing import Final

import msgspec

MARKERS: Final = 5
"""Up to so many transaction markers may lie between the last record that was read and the next one."""


class OpenTransaction(msgspec.Struct, array_like=True):
    """The open transaction that a group waits for at the last stable offset."""

    offset: int
    """The partition's last stable offset."""
    since: int
    """When the brokers first reported it, since the base of the group's tracks."""
    told: int
    """When they reported it last."""


WINDOW: Final = 10
"""Commits that make a window, as in Burrow's ``intervals``."""
TRACKS_MAX: Final = 2_000
"""Limit of partitions followed in one group; later ones are not judged."""
HABIT_MS: Final = 86_400_000
"""A habit is kept for one to two days, so that a daily pause is one."""
UNKNOWN: Final = -1


class Rewind(msgspec.Struct, array_like=True):
    """A commit below the one before, as long as the old offset has not been reached again."""

    before: int
    """The highest offset that had been committed."""
    offset: int
    at: int
    confirmed: bool = False
    """Whether a later end offset shows that the partition still reaches beyond ``before``, so it is

    the same one; without any end offset, True.
    """
    commits: int = 0
    """Commits further on since then, at most ``WINDOW``."""
    regained: bool = False
    """Whether the old offset has been reached again, after a far rewind."""


class Growth(msgspec.Struct, array_like=True):
    """A time in which the lag, taken at commits, never fell and was never 0."""

    at: int
    """Its first commit."""
    lag: int
    """Records behind at that commit."""
    end: int
    """End of the partition at that commit."""
    peak: int
    """Most records behind since."""
    until: int
    """Its newest commit."""
    top: int
    """End of the partition at its newest commit."""
    folds: int = 1
    """Lags in it, at most ``WINDOW``."""
    mark: int = 0
    """Records behind, and the end of the partition, when the lag last grew by more than the load explains."""
    mark_end: int = 0
    flat: int = 0
    """Lags since then."""
    rises: int = 0
    """How often it grew by so much, at most ``WINDOW``: a single jump is no growth, however long it took."""
    rose_from: int = UNKNOWN
    """The commit before the first of these."""
    rose_to: int = UNKNOWN
    """The commit of the last one."""


class Track(msgspec.Struct, array_like=True):
    """One partition; -1 means unknown."""

    commits: int = 0
    """Commits seen, at most ``WINDOW``."""
    span: int = 0
    """Time between the first and the last of these."""
    records: int = 0
    """By how much they moved the offset forward."""
    moved: int = UNKNOWN
    """When the present offset was first committed."""
    repeats: int = 0
    """How often it was committed again while records were waiting, at most ``WINDOW``."""
    end: int = UNKNOWN
    """Newest end offset."""
    told: int = UNKNOWN
    """When the brokers were asked for it."""
    grown: int = UNKNOWN
    """When that end was first reported."""
    behind: int = UNKNOWN
    """Since when no commit has reached the end known then; -1: one has, or unknown."""
    growth: Growth | None = None
    rewind: Rewind | None = None
    fresh: bool = False
    """From its first commit until one has reached the known end: all its records had been waiting."""
    anew: int = UNKNOWN
    """When it was found to be another partition of that name: earlier commits belong to the former one."""
    transaction: OpenTransaction | None = None
    """The transaction that the group waits for, if it has read all that is stable."""
    woken: int = UNKNOWN
    """When more was written after everything but markers had been read: the wait counts from then."""


class Habit(msgspec.Struct, array_like=True):
    """The longest time that something took lately: today, and the day before."""

    since: int = 0
    today: int = 0
    before: int = 0

    @property
    def longest(self) -> int:
        """Return the longest time; 0 if none was seen."""
        return max(self.today, self.before)

    def learn(self, duration: int, at: int) -> None:
        """Add one more time."""
        if at - self.since >= HABIT_MS:
            self.since, self.today, self.before = at, 0, self.today
        self.today = max(self.today, duration)


class Tracks(msgspec.Struct, array_like=True):
    """All tracks of one group."""

    base_ms: int
    partitions: dict[str, dict[int, Track]] = {}
    waits: Habit = msgspec.field(default_factory=Habit)
    """Time from one commit to the next while records were waiting."""
    stands: Habit = msgspec.field(default_factory=Habit)
    """Time that the offset stood still while records were waiting."""
    ids: dict[str, int] = {}
    """Topic -> first half of its id, where commits tell it."""
    asked: int = UNKNOWN
    """Since when the brokers have been asked without a pause; -1: the end offsets are from a capture."""
    anew: dict[str, int] = {}
    """Topic -> when its name was found to belong to another topic."""
    transaction_ms: int = UNKNOWN
    """Longest transaction that the brokers allow, in milliseconds."""

    def since_base(self, at_ms: int) -> int:
        """Return a time in the unit of tracks: ms since the base."""
        return at_ms - self.base_ms if at_ms > self.base_ms else 0

    def track(self, topic: str, partition: int) -> Track | None:
        """Return the track of a partition, a new one if needed; None if there are too many."""
        known = self.partitions.get(topic)
        found = None if known is None else known.get(partition)
        if found is None and sum(map(len, self.partitions.values())) < TRACKS_MAX:
            made = Track(anew=self.anew.get(topic, UNKNOWN))
            found = self.partitions.setdefault(topic, {})[partition] = made
        return found

    def forget(self, topic: str, partition: int) -> None:
        """Drop a partition whose offset was deleted."""
        known = self.partitions.get(topic)
        if known is not None and known.pop(partition, None) is not None and not known:
            del self.partitions[topic]

    def renew(self, topic: str, topic_id: int, at: int = 0) -> bool:
        """Apply a topic's id; True if it is another topic of that name, of which nothing is known.

        Commits before ``at`` belong to the former topic, in all its partitions.
        """
        if not topic_id or self.ids.get(topic) == topic_id:
            return False
        is_other = topic in self.ids
        self.ids[topic] = topic_id
        if is_other:
            self.partitions.pop(topic, None)
            self.anew[topic] = at
        return is_other
