"""Claims a checkpoint and a set of outputs for this process, and keeps the claim alive."""

import logging
import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from streaming.control import Mark, MarkHeldError, is_dead
from streaming.driver.mark_places import Place

RENEW_S = 3.0
ABANDONED_S = 9.0
"""A mark that nobody renewed for this long while we watched it is abandoned."""
FRESH_S = 6.0
"""If we have not looked at the marks for longer than this, we write nothing: we may have been frozen."""
PATIENCE_S = 30.0
_LOOK_S = 0.5
_STOP_S = 5.0

_log = logging.getLogger(__name__)


class ClaimStoppedError(Exception):
    """The job was asked to stop before it had its claim."""


def boot_time_s() -> float:
    """Return the seconds of a clock that never goes back and continues while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class MarkKeeper:
    """One process's claim on one cluster's checkpoint and outputs."""

    def __init__(
        self,
        mine: Mark,
        places: Sequence[Place],
        *,
        now: Callable[[], float] = boot_time_s,
        dead: Callable[[Mark], bool] = is_dead,
    ) -> None:
        """Prepare; the places are asked in their order, and closed with the claim."""
        self._mine = mine
        self._places = places
        self._now = now
        self._dead = dead
        self._displaced: frozenset[str] = frozenset()
        self._looked_at = float("-inf")
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._renew_on, name=f"mark-{mine.cluster}", daemon=True)
        self.taken = ""
        """A sentence, once another process has the checkpoint or the outputs."""

    def claim(self, wait: Callable[[float], object] = time.sleep) -> None:
        """Claim every place, and renew the claim from then on.

        Returns at once if there is no mark, or if its process is known to be gone; otherwise after
        ``ABANDONED_S`` at the latest.

        Raises:
            MarkHeldError: another process renews its mark.
            ClaimStoppedError: ``wait`` asked to stop.
        """
        began = self._now()
        known = self._look_around({}, is_first=True)
        while any(not is_gone for _, is_gone in known.values()) and self._now() - began < ABANDONED_S:
            if wait(_LOOK_S):
                raise ClaimStoppedError
            known = self._look_around(known, is_first=False)
        self._displaced = frozenset(known)
        mine = msgspec.structs.replace(self._mine, displaces=tuple(sorted(known)))
        for place in self._places:
            place.write(mine)
            intruder = place.intruder(self._displaced)
            if intruder is not None:
                self.release()
                raise MarkHeldError(intruder.sentence(place.what))
        self._looked_at = self._now()
        self._thread.start()

    def _look_around(
        self, known: dict[str, tuple[int, bool]], *, is_first: bool
    ) -> dict[str, tuple[int, bool]]:
        """Return token -> (beat, whether its process is gone) for all marks of others."""
        found: dict[str, tuple[int, bool]] = {}
        for place in self._places:
            for mark in place.others():
                beat, _ = known.get(mark.token, (mark.beat, False))
                is_gone = self._dead(mark)
                if not is_gone and (mark.beat > beat or not (is_first or mark.token in known)):
                    raise MarkHeldError(mark.sentence(place.what))
                before = found.get(mark.token, (beat, is_gone))
                found[mark.token] = (min(beat, before[0]), is_gone)
        return found

    def named(self, run: str) -> None:
        """Put the run into our mark."""
        with self._lock:
            self._mine = msgspec.structs.replace(self._mine, run=run)

    def _renew_on(self) -> None:
        while not self._stopped.wait(RENEW_S):
            try:
                self.renew()
            except MarkHeldError as error:
                _log.error("%s", error)
                return
            except Exception as error:
                # Kafka or the checkpoint is away; a process that waits for our mark finds it away as well.
                _log.debug("%s: renewing the mark: %r", self._mine.cluster, error)

    def renew(self) -> None:
        """Check that the places are still ours, and renew our mark there.

        Raises:
            MarkHeldError: another process has one now.
        """
        with self._lock:
            self._look()
            self._mine = msgspec.structs.replace(self._mine, beat=self._mine.beat + 1)
            for place in self._places:
                place.write(self._mine)

    def _look(self) -> None:
        if self.taken:
            raise MarkHeldError(self.taken)
        at = self._now()
        for place in self._places:
            intruder = place.intruder(self._displaced)
            if intruder is not None:
                self.taken = intruder.sentence(place.what)
                raise MarkHeldError(self.taken)
        self._looked_at = at

    def ensure(self, wait: Callable[[float], object] = time.sleep) -> None:
        """Check, before something is written, that no process took over while we were frozen.

        It waits for a place that does not answer: a lost broker is given up after some seconds.

        Raises:
            MarkHeldError: one did.
            Exception: a place did not answer for half a minute.
        """
        began = self._now()
        while self.taken or self._now() - self._looked_at >= FRESH_S:
            try:
                with self._lock:
                    self._look()
                return
            except MarkHeldError:
                raise
            except Exception as error:
                if self._now() - began > PATIENCE_S:
                    raise
                _log.debug("%s: looking at the marks: %r", self._mine.cluster, error)
                wait(_LOOK_S)

    def release(self) -> None:
        """Stop renewing, and remove the mark where it is still ours."""
        self._stopped.set()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=_STOP_S)
        for place in self._places:
            try:
                if not self.taken:
                    place.remove(self._mine)
            except Exception as error:
                _log.debug("%s: taking the mark away: %r", self._mine.cluster, error)
            place.close()
