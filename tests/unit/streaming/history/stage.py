"""A keeper with its store and its clock, as the tests of history play it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from streaming.group_store.store import GroupStore
from streaming.history.keeper import Keeper
from streaming.history.past import Past

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Row

T0 = 1_700_000_100_000
STEP_MS = 10_000
HOUR_MS = 3_600_000


class Stage:
    """A keeper with its store and its clock; ``look`` is ten seconds later."""

    def __init__(self, path: Path, **more: Any) -> None:
        self.now_ms = T0
        self.path = path
        self.is_ready = True
        self.notices: list[str] = []
        self.store = GroupStore(["eu"], clock_ms=self.clock)
        self.keeper = Keeper(
            path,
            self.store,
            ["eu"],
            clock_ms=self.clock,
            watching=lambda _: self.is_ready,
            notice=self.notices.append,
            **more,
        )

    def clock(self) -> int:
        """The time."""
        return self.now_ms

    def batch(self, *rows: "Row") -> None:
        """One batch, as the job gives it."""
        self.store.apply("eu", rows)
        self.keeper.offer("eu", rows)

    def look(self, times: int = 1) -> None:
        """Go on, and look."""
        for _ in range(times):
            self.now_ms += STEP_MS
            self.keeper.look()

    def ends(self, offset: int) -> None:
        """The end of the topic's one partition, now."""
        self.store.set_end_offsets("eu", {"t": {0: (offset, self.now_ms)}})

    def past(self, group: str = "g", back_ms: int = HOUR_MS) -> Past:
        """What the file has of the last hour."""
        return self.keeper.read("eu", group, self.now_ms - back_ms, self.now_ms)

    def restarted(self, **more: Any) -> "Stage":
        """The next process, at the same time."""
        self.keeper.stop()
        assert self.keeper._file is not None
        self.keeper._file.close()
        other = Stage(self.path, **more)
        other.now_ms = self.now_ms
        return other
