"""Follows the silences topics, so that ``LiveQuiet`` always holds what they say.

A thread for each topic: a cluster that is away keeps no other cluster's silences from being seen.  Silences
that were read stay in force while their topic cannot be read.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

from alerts.delivery import KeptSilence, LiveQuiet, Quiet, SilenceBook, silences_in, wall_clock_ms
from streaming.config import Config, quiet_of
from streaming.kafka_clients import KafkaError
from streaming.silences.topic import Record, SilencesTopic, topics_of

_REOPEN_S = 2.0
_MISSING_S = 5.0
PATIENCE_S = 20.0
"""How long delivery waits at a start for the silences: a page too many is better than none."""
_TRIES = 2
"""After so many failed attempts to read a topic nobody waits for it any more."""

_log = logging.getLogger("groupwatch.silences")


class Follower:
    """Reads every topic from its beginning, then what is new."""

    def __init__(
        self,
        topics: Sequence[SilencesTopic],
        quiet: LiveQuiet,
        *,
        clock_ms: Callable[[], int] = wall_clock_ms,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare; ``start`` opens connections."""
        self.topics = tuple(topics)
        self._quiet = quiet
        self._clock_ms = clock_ms
        self._now_s = now_s
        self._began_s = now_s()
        self._lock = threading.Lock()
        self._book = SilenceBook()
        self._read: set[str] = set()
        """Names of the topics that were read to their end."""
        self._failed: Counter[str] = Counter()
        self._told: dict[str, str] = {}
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(one,), name=f"silences-{one.name}", daemon=True)
            for one in self.topics
        ]

    def read_once(self) -> list[str]:
        """Read every topic to its end, for a command; return a sentence for each that cannot be read."""
        failures = []
        for topic in self.topics:
            try:
                self.begin(topic.name, topic.read())
            except (KafkaError, TimeoutError) as error:
                failures.append(f"{topic.topic} of {topic.name} cannot be read: {error}")
        return failures

    def start(self) -> None:
        """Start to read."""
        self._began_s = self._now_s()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop; threads that wait for an unavailable cluster are abandoned."""
        self._stopping.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(timeout=2)

    @property
    def is_settled(self) -> bool:
        """Every topic was read, or has been waited for long enough: alerts may be delivered."""
        is_waited_for = self._now_s() - self._began_s <= PATIENCE_S
        return not is_waited_for or all(
            one.name in self._read or self._failed[one.name] >= _TRIES for one in self.topics
        )

    def dead_threads(self) -> list[str]:
        """Return the names of threads that have died."""
        return [one.name for one in self._threads if one.ident is not None and not one.is_alive()]

    def newest(self) -> dict[str, KeptSilence]:
        """Return id -> silence."""
        with self._lock:
            return self._book.newest()

    def refused(self) -> dict[str, int]:
        """Return reason -> number of refused records."""
        with self._lock:
            return dict(self._book.refused)

    def due(self) -> dict[str, list[Record]]:
        """Return, for each topic that was read, the records that it still needs."""
        with self._lock:
            now_ms = self._clock_ms()
            return {name: self._book.due(name, now_ms) for name in self._read}

    def begin(self, name: str, records: Sequence[Record]) -> None:
        """Take all records of a topic."""
        with self._lock:
            self._book.replace(name, records, self._clock_ms())
            self._read.add(name)
            self._publish()
        self._told.pop(name, None)

    def take(self, name: str, record: Record) -> None:
        """Take one record of a topic."""
        key, value = record
        with self._lock:
            refused = self._book.take(name, key, value, self._clock_ms())
            self._publish()
        if refused is not None and refused.reason not in self._told:
            self._told[refused.reason] = refused.detail
            _log.warning("a silence of %s is set aside: %s: %s", name, refused.reason, refused.detail)

    def _publish(self) -> None:
        self._quiet.add_all(silences_in(self._book.newest(), self._clock_ms()))

    def _run(self, topic: SilencesTopic) -> None:
        while not self._stopping.is_set():
            pause_s = _MISSING_S
            try:
                topic.follow(
                    lambda records: self.begin(topic.name, records),
                    lambda record: self.take(topic.name, record),
                    self._stopping.is_set,
                )
            except Exception as error:
                # Kafka's client may raise anything here; silences that were read stay in force.
                self._tell(topic, f"{type(error).__name__}: {error}")
                self._failed[topic.name] += 1
                pause_s = _REOPEN_S
            self._stopping.wait(pause_s)

    def _tell(self, topic: SilencesTopic, trouble: str) -> None:
        if self._told.get(topic.name) != trouble:
            _log.warning("cannot read the silences of %s: %s", topic.name, trouble)
        self._told[topic.name] = trouble


def quiet_at(config: Config) -> Quiet:
    """Return what is silenced now: by the configuration, and by the topics that can be read."""
    live = LiveQuiet(quiet_of(config.silences, config.maintenance))
    Follower(topics_of(config), live).read_once()
    return live.now
