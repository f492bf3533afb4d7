"""Adds, lists and ends silences for people, and ends those of alerts that are over."""

import logging
import secrets
import threading
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from alerts.alert import Alert, AlertStatus, printable
from alerts.delivery import SILENCES_MAX, KeptSilence, wall_clock_ms, wrong_in
from streaming.config import SilenceRequestError, kept_of_request
from streaming.silences.following import Follower
from streaming.silences.topic import write_to_all

_TEND_S = 5.0
_UNKNOWN_MS = 3_600_000
"""How long an acknowledged alert may be unknown before its silence ends: a start reads open alerts late."""

_log = logging.getLogger("groupwatch.silences")


class SilenceRefusedError(Exception):
    """A silence cannot be added or ended; the message is for people, ``status`` is HTTP's."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class ShownSilence(KeptSilence, frozen=True, kw_only=True):
    """One silence, with its state."""

    state: str
    """pending, active or expired."""


class SilenceList(msgspec.Struct, frozen=True, kw_only=True):
    """Silences that were added at run time, those that end first before the others."""

    at_ms: int
    silences: list[ShownSilence]
    refused: dict[str, int] = {}
    """Reason -> number of records of the topic that are no silences and were set aside."""


class SilenceDesk:
    """The silences of one process or command."""

    def __init__(
        self,
        follower: Follower,
        *,
        clusters: Collection[str],
        alert_of: Callable[[str], Alert | None] | None = None,
        clock_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        """Prepare.

        Args:
            follower: knows what stands in the topics.
            clusters: the names of the watched clusters.
            alert_of: returns the alert of an id, open or ended lately; None: nobody here knows alerts.
            clock_ms: returns the current time.
        """
        self._follower = follower
        self._clusters = clusters
        self._alert_of = alert_of
        self._clock_ms = clock_ms
        self._began_ms = clock_ms()
        self._writing = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def silences(self, state: str = "") -> SilenceList:
        """Return the silences in ``state``; "" is all."""
        now_ms = self._clock_ms()
        shown = [shown_silence(one, now_ms) for one in self._follower.newest().values()]
        chosen = [one for one in shown if not state or one.state == state]
        never_ms = max((one.ends_at_ms or 0 for one in chosen), default=0) + 1
        chosen.sort(key=lambda one: (one.ends_at_ms or never_ms, one.id))
        return SilenceList(at_ms=now_ms, silences=chosen, refused=self._follower.refused())

    def add(self, request: Any) -> ShownSilence:
        """Add the silence that ``request`` (plain values) describes.

        Raises:
            SilenceRefusedError: it makes no sense, or could not be stored.
        """
        now_ms = self._clock_ms()
        try:
            one = kept_of_request(request, secrets.token_hex(8), now_ms)
        except SilenceRequestError as error:
            raise SilenceRefusedError(str(error)) from error
        wrong = wrong_in(one, now_ms) or self._unknown(one)
        if wrong:
            raise SilenceRefusedError(wrong)
        with self._writing:
            if len(self._follower.newest()) >= SILENCES_MAX:
                raise SilenceRefusedError(
                    f"there are {SILENCES_MAX} silences already; ended ones leave later", 409
                )
            self._store(one)
        _log.info("silence %s added by %s: %s", one.id, printable(one.author), printable(one.comment))
        return shown_silence(one, now_ms)

    def expire(self, silence_id: str) -> ShownSilence:
        """End a silence now; one that has ended stays as it is.

        Raises:
            SilenceRefusedError: there is none, or its end could not be stored.
        """
        now_ms = self._clock_ms()
        with self._writing:
            one = self._follower.newest().get(silence_id)
            if one is None:
                raise SilenceRefusedError(f"there is no silence {silence_id[:80]!r}", 404)
            if one.state_at(now_ms) != "expired":
                one = one.ended(now_ms)
                self._store(one)
                _log.info("silence %s ended", one.id)
        return shown_silence(one, self._clock_ms())

    def _unknown(self, one: KeptSilence) -> str:
        """Return what the silence names that does not exist; "" if everything does."""
        unknown = [name for name in one.clusters if name not in self._clusters]
        if unknown:
            return f"clusters: there is no cluster {unknown[0][:80]!r}"
        if one.alert_id and self._alert_of is not None:
            alert = self._alert_of(one.alert_id)
            if alert is None or alert.status is not AlertStatus.FIRING:
                return f"alert_id: no alert {one.alert_id[:80]!r} fires"
        return ""

    def _store(self, one: KeptSilence) -> None:
        """Write to every topic, and heed it at once; one acknowledgement is enough, the others get it later.

        Raises:
            SilenceRefusedError: no topic took it.
        """
        topics, record = self._follower.topics, one.record()
        failed = write_to_all(topics, {topic.name: [record] for topic in topics})
        stored = [topic.name for topic in topics if topic.name not in failed]
        if not stored:
            raise SilenceRefusedError(
                f"not stored: {topics[0].topic} takes no record ({'; '.join(failed.values())[:300]})", 503
            )
        for name in stored:
            self._follower.take(name, record)

    # -- what the job that delivers does for all ------------------------------------------------

    def start(self, may_write: Callable[[], bool]) -> None:
        """Tend the silences in a thread while ``may_write``."""
        self._thread = threading.Thread(target=self._run, args=(may_write,), name="silences", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _run(self, may_write: Callable[[], bool]) -> None:
        while not self._stopping.wait(_TEND_S):
            try:
                if may_write():
                    self.tend()
            except Exception as error:
                _log.warning("tending the silences failed: %s", error)

    def tend(self) -> None:
        """End the silences of alerts that are over, and bring each topic what it lacks."""
        now_ms = self._clock_ms()
        with self._writing:
            for one in self._follower.newest().values():
                if one.alert_id and one.state_at(now_ms) == "active" and self._is_over(one, now_ms):
                    self._store(one.ended(now_ms))
                    _log.info("silence %s ended: its alert is resolved", one.id)
            due = self._follower.due()
            failed = write_to_all(self._follower.topics, due)
            for name in due.keys() - failed.keys():
                for record in due[name]:
                    self._follower.take(name, record)

    def _is_over(self, one: KeptSilence, now_ms: int) -> bool:
        """Say whether the acknowledged alert was resolved, or has been unknown for long."""
        if one.ends_at_ms is not None or self._alert_of is None:
            return False
        alert = self._alert_of(one.alert_id)
        if alert is not None:
            return alert.status is AlertStatus.RESOLVED
        return now_ms - max(self._began_ms, one.starts_at_ms) > _UNKNOWN_MS


def shown_silence(one: KeptSilence, now_ms: int) -> ShownSilence:
    """Return ``one`` as the API has it."""
    fields = {name: getattr(one, name) for name in KeptSilence.__struct_fields__}
    return ShownSilence(**fields, state=one.state_at(now_ms))
