"""The thread that raises request logs and restores them; it neither stops the job nor waits for it.

It also runs if evidence is not configured, until everything that an earlier start raised is restored.
"""

import contextlib
import hashlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from alerts.alert import Alert
from coordinator_model.shard import REQUEST_LOGGER
from streaming.config import ClusterPlan, EvidenceConfig
from streaming.driver.evidence.deciding import (
    REQUEST_LEVEL,
    JournalEntry,
    TroublingAlert,
    TroublingAlerts,
    WantedRaise,
    WantedRestore,
    decide,
)
from streaming.driver.evidence.journal import Journal
from streaming.driver.evidence.raising import Journals, Raising, Switches
from streaming.driver.evidence.switching import Switch
from streaming.driver.probing import NotAllowedError
from streaming.health import Progress
from streaming.kafka_clients import close_quietly

ROUND_S = 0.5
COORDINATORS_MS = 10_000
"""How often coordinators are looked up: they may move."""
NEWCOMERS_MS = 1_000
"""How often if one is unknown."""
ASKED_MAX = 50
"""Most groups whose coordinator is looked up, the most urgent ones first."""
RETRY_MS = 5_000
FAILED_MS = 60_000
REFUSED_MS = 600_000
"""How long after a missing permission we try again."""
GONE_MS = 86_400_000
"""A broker that has been gone this long will not return with a level of ours."""
JOURNAL_RETRY_S = 15.0
UNUSED_RETRY_S = 120.0
"""The same if evidence is not configured."""
LAST_TRIES = 3
LAST_PAUSE_S = 1.0
_STOP_S = 12.0
"""What is not restored by then is left to the next start: service managers do not wait for ever."""

_log = logging.getLogger(__name__)


def _ignore(*_: object) -> None:
    """Do nothing."""


def steady_clock() -> Callable[[], int]:
    """Return a clock of epoch milliseconds that never jumps, or a level might stay raised for hours."""
    began_ms, began = time.time_ns() // 1_000_000, time.monotonic()
    return lambda: began_ms + round((time.monotonic() - began) * 1000)


def holder_of(plan: ClusterPlan) -> str:
    """Return our identity: it survives a restart on this host with this checkpoint, lost or not."""
    place = plan.checkpoint if "://" in plan.checkpoint else str(Path(plan.checkpoint).absolute())
    return hashlib.blake2b(f"{socket.gethostname()}\0{place}".encode(), digest_size=8).hexdigest()


class EvidenceKeeper:
    """Raises and restores one cluster's request loggers; see the module."""

    def __init__(
        self,
        plan: ClusterPlan,
        progress: Progress,
        *,
        count: Callable[[str], None] = _ignore,
        show: Callable[[int], None] = _ignore,
        changed: Callable[[], None] = _ignore,
        switch: Switches | None = None,
        journal: Journals | None = None,
        now_ms: Callable[[], int] | None = None,
        may_act: Callable[[], bool] = lambda: True,
    ) -> None:
        """Prepare; nothing is asked before ``start``.

        Args:
            plan: the cluster, and the operator's limits.
            progress: says when the job has caught up; takes the reason that hinders us.
            count: takes the outcome of each request.
            show: takes the number of raised brokers.
            changed: called after a level changed, so that the stream learns it before it misses lines.
            switch: the brokers' loggers.
            journal: the record of what is raised.
            now_ms: epoch milliseconds of a clock that never goes back.
            may_act: whether this process may change levels now; false if another one may have taken over.
        """
        self._cluster = plan.cluster
        self._limits = plan.evidence
        self._progress = progress
        self._count = count
        self._show = show
        self._changed = changed
        self._switch = switch or Switch(plan.kafka)
        self._journal = journal or Journal(plan.output, plan.evidence_topic, plan.cluster)
        self._now_ms = now_ms or steady_clock()
        self._holder = holder_of(plan)
        self._raising = Raising(
            self._switch, self._journal, cluster=plan.cluster, holder=self._holder, now_ms=self._now_ms
        )
        self._is_loaded = False
        self._troubles = TroublingAlerts(frozenset(plan.evidence.alerts if plan.evidence else ()))
        self._lock = threading.Lock()
        self._coordinators: dict[str, int] = {}
        self._asked_ms = -COORDINATORS_MS
        self._not_before_ms: dict[int, int] = {}
        self._retry_ms: dict[int, int] = {}
        self._refused_until_ms = 0
        self._away: set[int] = set()
        self._complained: set[int] = set()
        self._stopping = threading.Event()
        self._is_done = False
        self._puts_back = True
        self._may_act = may_act
        self._thread = threading.Thread(target=self._keep_on, name=f"evidence-{plan.cluster}", daemon=True)
        progress.evidence = "waiting" if self._limits else "off"

    # --- from other threads --------------------------------------------------------------------------

    def take(self, rows: Iterable[tuple[str, str, bytes]]) -> None:
        """Take the alerts among a batch's rows."""
        if self._limits is None:
            return
        for kind, _, value in rows:
            if kind == "alert":
                with contextlib.suppress(msgspec.MsgspecError):  # the view has complained of it
                    alert = msgspec.json.decode(value, type=Alert)
                    with self._lock:
                        self._troubles.take(alert)

    def remember(self, alert: Alert) -> None:
        """Take one open alert of the alerts topic."""
        with self._lock:
            self._troubles.remember(alert)

    def start(self) -> None:
        """Start, in a thread of its own; the first call counts.

        It puts back what an earlier process left raised, so it must not start while that one works.
        """
        if self._thread.ident is None:
            self._thread.start()

    def ask_to_stop(self, *, puts_back: bool = True) -> None:
        """Request the end; ``stop`` waits for it.

        Args:
            puts_back: whether to restore everything we raised; not if another process has taken it over.
        """
        self._puts_back = puts_back
        self._stopping.set()

    def stop(self) -> None:
        """Return when everything possible is restored, or after 12 s."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=_STOP_S)

    @property
    def is_alive(self) -> bool:
        """False once the thread has ended without having done its work."""
        return self._is_done or self._thread.ident is None or self._thread.is_alive()

    # --- the thread ----------------------------------------------------------------------------------

    def _keep_on(self) -> None:
        try:
            while not self._stopping.is_set() and not self._is_done:
                self._stopping.wait(self._try())
            for attempt in range(LAST_TRIES):
                if self._is_done or not self._is_loaded or not self._puts_back:
                    break
                time.sleep(LAST_PAUSE_S * (attempt > 0))
                self._try(stopping=True)
        finally:
            close_quietly(self._switch)

    def _try(self, *, stopping: bool = False) -> float:
        """Look once, and return how long to wait next; no answer of Kafka ends the thread."""
        if not self._may_act():
            return ROUND_S
        try:
            self.look(stopping=stopping)
        except Exception as error:
            _log.debug("%s: evidence: %r", self._cluster, error)
            close_quietly(self._switch)
            if self._is_loaded:
                return RETRY_MS / 1000
            return JOURNAL_RETRY_S if self._limits else UNUSED_RETRY_S
        return ROUND_S

    def look(self, *, stopping: bool = False) -> None:
        """Find out what is to be done, and do it.

        Raises:
            Exception: the raised levels, or the groups' coordinators, cannot be found out now.
        """
        self._load()
        troubles = self._known_troubles()
        if troubles and not stopping:
            self._find_coordinators(troubles)
        decision = decide(
            self._limits,
            troubles=troubles,
            coordinators=self._coordinators,
            entries=self._raising.entries,
            holder=self._holder,
            not_before_ms=self._not_before_ms,
            away=self._away,
            now_ms=self._now_ms(),
            stopping=stopping,
        )
        for back in decision.back:
            if stopping or self._now_ms() >= self._retry_ms.get(back.entry.broker, 0):
                self._put_back(back)
        for want in decision.wanted:
            if self._limits is not None and self._now_ms() >= self._refused_until_ms:
                self._raise(want, self._limits)
        left = self._raising.raised(self._holder if stopping else None)
        self._is_done = not left and (stopping or self._limits is None)

    def _load(self) -> None:
        if self._is_loaded:
            return
        if self._limits is not None:
            self._journal.ensure()
            self._progress.evidence = "on"
        self._raising.load()
        self._is_loaded = True
        self._show(len(self._raising.raised()))

    def _known_troubles(self) -> list[TroublingAlert]:
        if not self._progress.has_caught_up:  # what is open in the backlog may be over long ago
            return []
        with self._lock:
            return self._troubles.sorted()

    def _find_coordinators(self, troubles: list[TroublingAlert]) -> None:
        groups = list(dict.fromkeys(one.group for one in troubles))[:ASKED_MAX]
        now_ms, is_known = self._now_ms(), all(group in self._coordinators for group in groups)
        pause_ms = COORDINATORS_MS if is_known else NEWCOMERS_MS
        if now_ms < max(self._asked_ms + pause_ms, self._refused_until_ms):
            return
        self._asked_ms = now_ms
        try:
            self._coordinators = self._switch.coordinators(groups)
        except NotAllowedError as error:
            self._refuse(error)

    # --- acts ----------------------------------------------------------------------------------------

    def _raise(self, want: WantedRaise, limits: EvidenceConfig) -> None:
        try:
            entry = self._raising.raise_one(want, limits)
        except NotAllowedError as error:
            self._refuse(error)
            return
        except Exception as error:
            self._not_before_ms[want.broker] = self._now_ms() + FAILED_MS
            self._count("failed")
            _log.warning("%s: the request log of broker %d: %s", self._cluster, want.broker, error)
            return
        self._progress.evidence = "on"
        if entry is None:
            self._not_before_ms[want.broker] = self._now_ms() + limits.every_ms
            self._count("already_on")
            return
        self._count("raised")
        self._tell()
        _log.info(
            "%s: raised the request log of broker %d to %s for %d s, because of %s of %s; it was at %s",
            *(self._cluster, want.broker, REQUEST_LEVEL, limits.for_ms // 1000),
            *(", ".join(want.names), ", ".join(want.groups), entry.before),
        )

    def _put_back(self, back: WantedRestore) -> None:
        entry = back.entry
        try:
            was_ours = self._raising.put_back(entry)
        except Exception as error:
            self._could_not_put_back(entry, error)
            return
        self._is_back(entry, back.why if was_ours else f"changed by others; {back.why}", was_ours=was_ours)

    def _is_back(self, entry: JournalEntry, why: str, *, was_ours: bool) -> None:
        self._retry_ms.pop(entry.broker, None)
        self._complained.discard(entry.broker)
        self._away.discard(entry.broker)
        self._count("put_back" if was_ours else "left")
        self._tell()
        what = f"is back at {entry.before}" if was_ours else "is left as it is"
        _log.info("%s: the request log of broker %d %s: %s", self._cluster, entry.broker, what, why)

    def _could_not_put_back(self, entry: JournalEntry, error: Exception) -> None:
        close_quietly(self._switch)
        is_refused = isinstance(error, NotAllowedError)
        self._retry_ms[entry.broker] = self._now_ms() + (FAILED_MS if is_refused else RETRY_MS)
        if entry.broker not in self._complained:
            self._complained.add(entry.broker)
            self._count("refused" if is_refused else "failed")
            _log.warning(
                "%s: the request log of broker %d cannot be restored to %s yet: %s. By hand: "
                "kafka-configs.sh --alter --entity-type broker-loggers --entity-name %d --add-config %s=%s",
                *(self._cluster, entry.broker, entry.before, error),
                *(entry.broker, REQUEST_LOGGER, entry.before),
            )
        self._look_for(entry)

    def _look_for(self, entry: JournalEntry) -> None:
        """Check whether the broker is in the cluster at all; forget one that is gone for good."""
        try:
            is_there = entry.broker in self._switch.brokers()
        except Exception as error:
            _log.debug("%s: evidence: %r", self._cluster, error)
            return
        if is_there:
            self._away.discard(entry.broker)
            return
        self._away.add(entry.broker)
        if self._now_ms() >= entry.until_ms + GONE_MS:
            self._raising.note_back(entry)
            self._is_back(entry, "the broker has left the cluster", was_ours=False)

    # --- what is said --------------------------------------------------------------------------------

    def _tell(self) -> None:
        self._show(len(self._raising.raised()))
        self._changed()

    def _refuse(self, error: NotAllowedError) -> None:
        """Report a missing permission once, and leave it for a while."""
        self._count("refused")
        self._refused_until_ms = self._now_ms() + REFUSED_MS
        if self._progress.evidence != str(error):
            _log.warning("%s: no evidence on demand: %s", self._cluster, error)
        self._progress.evidence = str(error)
