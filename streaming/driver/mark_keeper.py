"""Claims a checkpoint and a set of outputs for this process, and keeps the claim alive."""

import logging
import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from streaming.control import Mark, MarkHeldError, is_dead
from streaming.driver.mark_places import MarkPlace

RENEW_S = 3.0
ABANDONED_S = 9.0
"""A mark that nobody renewed for this long while we watched it is abandoned."""
ABANDONED_RARE_S = 36.0
"""The same for one that stands only where marks are renewed rarely (``TopicMarkPlace``)."""
FRESH_S = 6.0
"""If we have not looked at the marks for longer than this, we write nothing: we may have been frozen."""
SLEPT_S = 6.0
"""If nothing ran in this process for this long, another one may have taken over."""
_TICK_S = 1.0
PATIENCE_S = 30.0
_LOOK_S = 1.0
_STOP_S = 5.0

_log = logging.getLogger(__name__)


class ClaimStoppedError(Exception):
    """The job was asked to stop before it had its claim."""


def boot_time_s() -> float:
    """Return the seconds of a clock that never goes back and continues while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Seen:
    """The marks of others, as a process that waits for its turn has seen them."""

    def __init__(self) -> None:
        self.beats: dict[str, int] = {}
        """Token -> renewals counted, at the last look."""
        self.since_s: float | None = None
        """Since when none was renewed; None: before the first look."""


class MarkKeeper:
    """One process's claim on one cluster's checkpoint and outputs."""

    def __init__(
        self,
        mine: Mark,
        places: Sequence[MarkPlace],
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
        self._written_at = dict.fromkeys(range(len(places)), float("-inf"))
        """Number of a place -> when our mark there was written."""
        self._looked_at = float("-inf")
        self._awake_at = float("-inf")
        """When this process was last seen to run."""
        self._may_have_slept_at: float | None = None
        """When this process noticed that it had been frozen, until it has looked at the places again."""
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._renew_on, name=f"mark-{mine.cluster}", daemon=True)
        self.taken = ""
        """A sentence, once another process has the checkpoint or the outputs."""

    def claim(
        self,
        wait: Callable[[float], object] = time.sleep,
        stand_by: Callable[[str], None] = lambda _sentence: None,
        may_claim: Callable[[], bool] = lambda: True,
    ) -> None:
        """Claim every place, and renew the claim from then on.

        Returns at once if there is no mark, or if its process is known to be gone; otherwise once nobody
        has renewed the mark for ``ABANDONED_S``, or ``ABANDONED_RARE_S`` where it is renewed rarely.

        Args:
            wait: waits some seconds; true if the job is to stop.
            stand_by: called with the sentence about another process whenever that renews its mark.
            may_claim: asked while nobody else holds a place; false: wait on, and look again.

        Raises:
            MarkHeldError: another process that waited as well was first.
            ClaimStoppedError: ``wait`` asked to stop.
        """
        seen = Seen()
        while not (self._is_free(seen, stand_by) and may_claim()):
            if wait(_LOOK_S):
                raise ClaimStoppedError
        self._displaced = frozenset(seen.beats)
        mine = msgspec.structs.replace(self._mine, displaces=tuple(sorted(self._displaced)))
        for place in self._places:
            place.write(mine)
            intruder = place.intruder(self._displaced)
            if intruder is not None:
                self.release()
                raise MarkHeldError(intruder.sentence(place.what))
        self._looked_at = self._awake_at = self._now()
        self._thread.start()
        threading.Thread(target=self._stay_awake, name=f"awake-{mine.cluster}", daemon=True).start()

    def _is_free(self, seen: "Seen", stand_by: Callable[[str], None]) -> bool:
        """Say whether nobody else holds a place; ``seen`` remembers the marks of others from look to look."""
        found: dict[str, int] = {}
        held: dict[str, float] = {}
        is_first = seen.since_s is None
        for place in self._places:
            patience_s = ABANDONED_S if place.renewed_s <= RENEW_S else ABANDONED_RARE_S
            for mark in place.others():
                found[mark.token] = max(mark.beat, found.get(mark.token, -1))
                if self._dead(mark):
                    continue
                held[mark.token] = min(patience_s, held.get(mark.token, patience_s))
                if mark.beat > seen.beats.get(mark.token, mark.beat if is_first else -1):
                    stand_by(mark.sentence(place.what))
                    seen.since_s = self._now()
        seen.beats = found
        if seen.since_s is None:
            seen.since_s = self._now()
        return not held or self._now() - seen.since_s >= max(held.values())

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
            self.look()
            self._mine = msgspec.structs.replace(self._mine, beat=self._mine.beat + 1)
            for number, place in enumerate(self._places):
                age_s = self._now() - self._written_at[number]
                if place.is_bare or age_s > place.renewed_s - RENEW_S / 2:
                    place.write(self._mine)
                    self._written_at[number] = self._now()

    def renew_along(self) -> None:
        """Renew our mark where that is rare, since something else is written there as well; never waits."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._mine = msgspec.structs.replace(self._mine, beat=self._mine.beat + 1)
            for number, place in enumerate(self._places):
                is_rare = place.renewed_s > RENEW_S
                if is_rare and not self.taken and self._now() - self._written_at[number] > RENEW_S:
                    place.write_along(self._mine)
                    self._written_at[number] = self._now()
        finally:
            self._lock.release()

    def look(self) -> None:
        """Look at every place now, also if one of them does not answer: another may name our successor.

        Raises:
            MarkHeldError: another process has one.
            Exception: a place did not answer.
        """
        with self._lock:
            at, silent = self._now(), self._ask_places()
            if self.taken:
                raise MarkHeldError(self.taken)
            if silent is not None:
                raise silent
            self._looked_at, self._may_have_slept_at = at, None

    def _ask_places(self) -> Exception | None:
        """Note in ``taken`` who has one; return why a place did not answer."""
        silent: Exception | None = None
        for place in () if self.taken else self._places:
            try:
                intruder = place.intruder(self._displaced)
            except Exception as error:
                silent = silent or error
                continue
            if intruder is not None:
                self.taken = intruder.sentence(place.what)
                return None
        return silent

    def try_to_look(self) -> Exception | None:
        """Look at the places now; return why one did not answer.

        Raises:
            MarkHeldError: another process has one.
        """
        try:
            self.look()
        except MarkHeldError:
            raise
        except Exception as error:
            _log.debug("%s: looking at the marks: %r", self._mine.cluster, error)
            return error
        return None

    def _stay_awake(self) -> None:
        while not self._stopped.wait(_TICK_S):
            self._notice_sleep()

    def _notice_sleep(self) -> None:
        """Note that this process has not run for some time: another one may have taken over meanwhile."""
        now = self._now()
        if self._may_have_slept_at is None and now - self._awake_at > SLEPT_S:
            self._may_have_slept_at = now
        self._awake_at = now

    def may_speak(self) -> bool:
        """Say whether this process may send notifications.

        It may while it was not frozen, also during an outage of Kafka, which it has to report.  After it was
        frozen it looks at the places first; if these do not answer for ``PATIENCE_S``, it may speak again.
        """
        if self.taken:
            return False
        self._notice_sleep()
        if self._may_have_slept_at is None:
            return True
        slept_at = self._may_have_slept_at
        try:
            return self.try_to_look() is None or self._now() - slept_at > PATIENCE_S
        except MarkHeldError:
            return False

    def ensure(self, wait: Callable[[float], object] = time.sleep) -> None:
        """Check, before something is written, that no process took over while we were frozen.

        It waits for a place that does not answer: a lost broker is given up after some seconds.

        Raises:
            MarkHeldError: one did.
            Exception: a place did not answer for half a minute.
        """
        began = self._now()
        while self.taken or self._now() - self._looked_at >= FRESH_S:
            silent = self.try_to_look()
            if silent is None:
                return
            if self._now() - began > PATIENCE_S:
                raise silent
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
