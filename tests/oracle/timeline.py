"""Maps with two views: what was written, and what of it is committed.

Kafka: ``TimelineHashMap``.  Only the maps are versioned; a classic group that is in one is not, which
is why a group can be invisible to DescribeGroups while its state is read live.
"""

from typing import Any, Generic, NamedTuple, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Change(NamedTuple):
    """One write to one map; None stands for "not there"."""

    where: "TimelineMap[Any, Any]"
    key: Any
    before: Any
    after: Any


class Journal:
    """The changes since the last append."""

    def __init__(self) -> None:
        """No changes."""
        self._open: list[Change] = []

    def note(self, change: Change) -> None:
        """Remember a change."""
        self._open.append(change)

    def take(self) -> list[Change]:
        """Return the changes that the record just appended makes durable."""
        taken, self._open = self._open, []
        return taken

    def revert(self) -> list[Change]:
        """Undo the changes since the last append and return them, youngest first."""
        undone = self.take()[::-1]
        for change in undone:
            change.where.restore(change.key, change.before)
        return undone


def commit(changes: list[Change]) -> None:
    """Let the committed view have these changes."""
    for change in changes:
        change.where.commit(change.key, change.after)


class TimelineMap(Generic[K, V]):
    """A dictionary whose changes are noted in a journal."""

    def __init__(self, journal: Journal) -> None:
        """Empty in both views."""
        self._journal = journal
        self.live: dict[K, V] = {}
        self.committed: dict[K, V] = {}

    def put(self, key: K, value: V) -> None:
        """Set a value."""
        self._journal.note(Change(self, key, self.live.get(key), value))
        self.live[key] = value

    def pop(self, key: K) -> V | None:
        """Remove and return a value, or None."""
        if key not in self.live:
            return None
        self._journal.note(Change(self, key, self.live[key], None))
        return self.live.pop(key)

    def restore(self, key: K, value: V | None) -> None:
        """Set the live view back (for ``Journal``)."""
        _set(self.live, key, value)

    def commit(self, key: K, value: V | None) -> None:
        """Set the committed view (for ``commit``)."""
        _set(self.committed, key, value)


def _set(where: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        where.pop(key, None)
    else:
        where[key] = value
