"""Raises and restores one broker's request log, in an order in which a crash at any point is harmless.

First the journal, then the raise; first the restore, then the journal.  An entry without a raised level costs
one question at the next start; a raised level without an entry would stay for ever.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from coordinator_model.shard import REQUEST_LOGGER
from streaming.config import EvidenceConfig
from streaming.driver.evidence.deciding import (
    REQUEST_LEVEL,
    SETTABLE,
    TALKING,
    JournalEntry,
    WantedRaise,
    parent_level,
    resumed,
)
from streaming.driver.probing import NotAllowedError


class Switches(Protocol):
    """See ``switching.Switch``."""

    def coordinators(self, groups: Iterable[str]) -> dict[str, int]: ...  # noqa: D102
    def brokers(self) -> frozenset[int]: ...  # noqa: D102
    def levels(self, broker: int) -> dict[str, str]: ...  # noqa: D102
    def set(self, broker: int, level: str) -> None: ...  # noqa: D102
    def unset(self, broker: int) -> None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


class Journals(Protocol):
    """See ``journal.Journal``."""

    def ensure(self) -> None: ...  # noqa: D102
    def read(self) -> dict[int, JournalEntry]: ...  # noqa: D102
    def write(self, entry: JournalEntry) -> None: ...  # noqa: D102


class Raising:
    """The request loggers of one cluster, and the journal's entries about them."""

    def __init__(
        self, switch: Switches, journal: Journals, *, cluster: str, holder: str, now_ms: Callable[[], int]
    ) -> None:
        self._switch = switch
        self._journal = journal
        self._cluster = cluster
        self._holder = holder
        self._now_ms = now_ms
        self.entries: dict[int, JournalEntry] = {}
        """Broker -> its last raise."""

    def load(self) -> None:
        """Read the journal; the time of our own raises is over.

        Raises:
            Exception: the journal cannot be read.
        """
        self.entries = resumed(self._journal.read(), holder=self._holder, now_ms=self._now_ms())

    def raised(self, holder: str | None = None) -> list[JournalEntry]:
        """Return what is raised, as far as we know; with ``holder``, only what that one raised."""
        raised = [one for one in self.entries.values() if one.back_at_ms is None]
        return [one for one in raised if holder in (None, one.holder)]

    def raise_one(self, want: WantedRaise, limits: EvidenceConfig) -> JournalEntry | None:
        """Raise a broker's request log; None: an operator has it on already.

        Raises:
            NotAllowedError: the broker does not let us.
            Exception: it failed; a level that may have been raised is restored soon.
        """
        levels = self._switch.levels(want.broker)
        before = levels.get(REQUEST_LOGGER)
        if before in TALKING:
            return None
        inherited = before is not None and before == parent_level(levels, REQUEST_LOGGER)
        if before is None or not (inherited or before in SETTABLE):
            raise OSError(f"its level is {before}, which could not be restored")
        now_ms = self._now_ms()
        entry = JournalEntry(
            cluster=self._cluster,
            broker=want.broker,
            holder=self._holder,
            before=before,
            inherited=inherited,
            raised_at_ms=now_ms,
            until_ms=now_ms + limits.for_ms,
            groups=want.groups,
        )
        # A raise that fails half way may have worked: its time is over at once, and it counts as no raise.
        self.entries[want.broker] = msgspec.structs.replace(entry, until_ms=now_ms, raised_at_ms=0)
        self._journal.write(entry)
        try:
            self._switch.set(want.broker, REQUEST_LEVEL)
        except NotAllowedError:
            self.note_back(self.entries[want.broker])
            raise
        self.entries[want.broker] = entry
        return entry

    def put_back(self, entry: JournalEntry) -> bool:
        """Restore the previous level; False: the level is no longer ours, so it was left unchanged.

        Raises:
            NotAllowedError: the broker does not let us.
            Exception: the broker or the journal does not answer.
        """
        level = self._switch.levels(entry.broker).get(REQUEST_LOGGER)
        if level == REQUEST_LEVEL:
            self._restore(entry)
        self.note_back(entry)
        return level == REQUEST_LEVEL

    def _restore(self, entry: JournalEntry) -> None:
        if entry.inherited:
            self._switch.unset(entry.broker)
            levels = self._switch.levels(entry.broker)
            if levels.get(REQUEST_LOGGER) in (entry.before, parent_level(levels, REQUEST_LOGGER)):
                return
        self._switch.set(entry.broker, entry.before)

    def note_back(self, entry: JournalEntry) -> None:
        """Write that a broker is no longer raised.

        Raises:
            Exception: the journal did not acknowledge.
        """
        back = msgspec.structs.replace(entry, back_at_ms=self._now_ms())
        self._journal.write(back)
        self.entries[entry.broker] = back
