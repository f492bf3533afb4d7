"""The health of one cluster's job: its threads write the facts, the supervisor and the server read them.

Plain attributes, each written by one thread; a reader may see them a moment apart, which is good enough for
health.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streaming.control import JobState
from streaming.health.watermark import Watermark
from streaming.pipeline import Reading

_log = logging.getLogger(__name__)

GAP_S = 15.0
"""A silence of Kafka that is longer than one slow answer."""
OUTAGE_S = 60.0
"""ClusterUnreachable's default wait.  No alert reports a shorter silence, so it excuses no job."""
DEATHS_MAX = 3
"""A query that died this often without finishing a batch dies of that batch, not by accident."""
LATE_S = 30.0
LATE_TRIGGERS = 3
"""The shown data is late after this time, and after this many triggers."""
LULL_S = 4.0
"""What is not urgent waits so long for the end of a batch."""
WAITING, KNOWN = "waiting", "known"
_DEATHS_KEPT = 1_000
_SENTENCE_MAX = 500


class Progress:
    """The known facts of one cluster's query since this process started."""

    kafka_error = ""
    clock_error = ""
    silent_partitions = ""
    """A sentence about offsets partitions with unknown ends, whose groups stand still."""
    batches = 0
    batch_id = -1
    """The last batch that began; -1: none since the process started."""
    query_error = ""
    end_offsets = WAITING
    """waiting until they were asked for with all groups known; known; or a sentence: why they are unknown."""
    refused = ""
    """A sentence for the operator if the job cannot run at all."""
    standing_by = ""
    """A sentence about the process that watches the cluster, while this one waits for its end."""
    restarts = 0
    speaks = False
    """This process delivers alerts to the receivers; otherwise another one must."""
    late_after_s = LATE_S
    """A watermark further behind than this is not current."""
    reconciliation = WAITING
    """on; off; waiting for the first answer; or a sentence: what the brokers do not let us ask."""
    broker_settings = WAITING
    """known, or a sentence."""
    evidence = "off"
    """on; off; waiting for the journal; or a sentence: what the brokers do not let us change."""

    def __init__(
        self,
        cluster: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        reading: Reading | None = None,
    ) -> None:
        """Start; ``reading`` is how far the query has read, None if this process reads nothing."""
        self.cluster = cluster
        self.reading = Reading() if reading is None else reading
        self._now = clock
        self._lock = threading.Lock()
        self._lull = threading.Event()
        """Set while no batch runs."""
        self._lull.set()
        self.started_at = clock()
        self.kafka_answered_at: float | None = None
        self._answering_since = clock()
        """Start of the period in which Kafka has answered without a longer gap."""
        self._clock_failed_at = clock()
        """When the clock could not be written for the first time since it last could."""
        self.batch_done_at: float | None = None
        self._begun_at = clock()
        self._present_s = 0.0
        """How long Kafka has been answering, with short gaps, since the last batch ended."""
        self._done_id = -1
        self._is_up = False
        self._deaths: list[float] = []
        """The query's deaths since the last batch ended."""
        self.watermark = Watermark(clock)
        self._notices: dict[str, str] = {}

    def await_lull(self, seconds: float = LULL_S) -> bool:
        """Return True when no batch runs, or False after so long: a batch needs all cores for itself."""
        return self._lull.wait(seconds)

    # --- written by the job ---------------------------------------------------------------------

    def kafka_answered(self) -> None:
        """Kafka has just answered the probe."""
        silent_s = self.seconds_since_kafka()
        if silent_s <= OUTAGE_S:
            self._present_s += silent_s
        if self.seconds_since_kafka() > GAP_S:
            self._answering_since = self._now()
        self.kafka_answered_at = self._now()
        self.kafka_error = ""

    def kafka_failed(self, error: BaseException) -> None:
        """Kafka did not answer the probe."""
        self.kafka_error = f"{type(error).__name__}: {error}"

    def batch_done(self) -> float | None:
        """A batch's outputs are written; return its seconds, None if it was written once more."""
        self._lull.set()
        if self._done_id == self.batch_id >= 0:
            return None  # the checkpoint did not take it, and may not do so now
        self._done_id = self.batch_id
        with self._lock:
            self._deaths.clear()
        self.batches += 1
        self.batch_done_at = self._now()
        self._present_s = 0.0
        self.query_error = ""
        self._is_up = True
        return self.batch_done_at - self._begun_at

    def batch_begun(self, batch_id: int) -> None:
        """A batch has begun; the one that killed the query begins again under its number."""
        self._lull.clear()
        self.batch_id = batch_id
        self._begun_at = self._now()

    def leads(self) -> None:
        """This process watches the cluster from now on; what it did not do before was not its fault."""
        if self.standing_by:
            self.standing_by = ""
            self.started_at = self._answering_since = self._now()
            self._present_s = 0.0
            self.watermark.begin()
            _log.warning("%s: this process takes over", self.cluster)

    def query_ended(self, error: str = "") -> None:
        """The query has ended; ``error`` in one line if it died, "" if it only restarts."""
        self._is_up = False
        self._clock_failed_at = self._now()  # the next one has a clock of its own
        if error:
            self.query_error = error
            with self._lock:
                self._deaths = [*self._deaths, self._now()][-_DEATHS_KEPT:]

    def clock_told(self, at_ms: int, ends: Sequence[int]) -> None:
        """A clock record for ``at_ms`` with these end offsets was made."""
        self.watermark.told(at_ms, ends)

    def clock_idle(self, at_ms: int) -> None:
        """Nothing was written until ``at_ms``, and there was nothing to read."""
        self.watermark.idle(at_ms)

    def clock_failed(self, why: str) -> None:
        """The clock cannot be written; "": it can be again."""
        if not self.clock_error:
            self._clock_failed_at = self._now()
        self.clock_error = why

    def ends_silent(self, sentence: str) -> None:
        """Some partitions' ends are unknown; "": all are known."""
        self.silent_partitions = sentence

    def ends_told(self, *, whole: bool) -> None:
        """The end offsets are known; ``whole``: of every topic of every group, since all have reported."""
        if whole or self.end_offsets != WAITING:
            self.end_offsets = KNOWN
            self.notice("end_offsets", "")

    def ends_refused(self, why: str, *, whole: bool) -> None:
        """Kafka answers, but does not give the ends of topics."""
        sentence = f"lag is unknown: asking for end offsets failed: {why}"[:500]
        self.notice("end_offsets", sentence)
        if whole or self.end_offsets != WAITING:
            self.end_offsets = sentence

    def notice(self, topic: str, sentence: str) -> None:
        """Show in ``/ready``, and once in the log, a notice about ``topic`` for the operator; "": it is over.

        For problems that do not stop the job: a topic with a wrong setup, a broker whose clock is corrected,
        lost records. From any thread.
        """
        with self._lock:
            before = self._notices.get(topic, "")
            if sentence:
                self._notices[topic] = sentence
            else:
                self._notices.pop(topic, None)
        if sentence and sentence != before:
            _log.warning("%s: %s", self.cluster, sentence)
        elif before and not sentence:
            _log.info("%s: over: %s", self.cluster, before)

    # --- read by others ---------------------------------------------------------------------------

    @property
    def notices(self) -> list[str]:
        """The notices for the operator, one sentence each, in the order of their topics."""
        with self._lock:
            return [sentence for _, sentence in sorted(self._notices.items())]

    @property
    def has_caught_up(self) -> bool:
        """Every shard has reported, and every partition was read to the end that it had at start."""
        return self.reading.has_caught_up

    @property
    def is_ready(self) -> bool:
        """The shown data is complete and current: caught up, running, on time, lag known or explained."""
        is_whole = self.has_caught_up and self.end_offsets != WAITING
        return is_whole and self._is_up and self.watermark_behind_s() <= self.late_after_s

    @property
    def deaths(self) -> int:
        """How often the query has died since the last batch ended, with Kafka answering all the time."""
        with self._lock:
            return sum(1 for at in self._deaths if at >= self._answering_since)

    @property
    def is_dying(self) -> bool:
        """The query dies repeatedly of one batch, while Kafka answers and so is not the reason."""
        with self._lock:
            last = self._deaths[-1] if self._deaths else float("inf")
        answered_at = self.kafka_answered_at
        return self.deaths >= DEATHS_MAX and answered_at is not None and answered_at >= last

    @property
    def dying(self) -> str:
        """A sentence about a query that dies of one batch; "" if it does not."""
        if not self.is_dying:
            return ""
        which = f"batch {self.batch_id}" if self.batch_id >= 0 else "its first batch"
        return f"the query has died {self.deaths} times in a row at {which}: {self.query_error}"

    def seconds_since_batch(self) -> float:
        """Seconds since the last batch ended, or since the start."""
        return self._now() - (self.batch_done_at or self.started_at)

    def seconds_stuck(self) -> float:
        """Seconds without a finished batch while Kafka was available: an outage is not the job's fault."""
        if self.standing_by:
            return 0.0
        answering_s = max(self._now() - self._answering_since, self._present_s)
        return min(self.seconds_since_batch(), answering_s)

    def watermark_behind_s(self) -> float:
        """How far the watermark is behind the wall clock."""
        return self.watermark.behind_s()

    def seconds_losing(self) -> float:
        """Seconds for which the watermark has been behind without gaining, while Kafka was available."""
        if self.standing_by:
            return 0.0
        return min(self.watermark.losing_s(), self._now() - self._answering_since)

    @property
    def lagging(self) -> str:
        """A sentence about a watermark that is behind."""
        behind_s, slowest = self.watermark.behind_s(), self.watermark.slowest()
        return f"the watermark is {behind_s:.0f} s behind the wall clock; {slowest} is furthest behind"

    @property
    def has_answered(self) -> bool:
        """Kafka has answered since this process started."""
        return self.kafka_answered_at is not None

    @property
    def _lateness(self) -> str:
        return self.lagging if self.has_caught_up and self.watermark_behind_s() > self.late_after_s else ""

    @property
    def has_batch_since_answer(self) -> bool:
        """True once a batch has ended since Kafka started to answer (again)."""
        return self.batch_done_at is not None and self.batch_done_at >= self._answering_since

    @property
    def trouble(self) -> str:
        """The known reason why the job does not progress; "" if there is none."""
        first = self.refused or self.query_error or self.clock_error
        return "; ".join(filter(None, (first, self.silent_partitions)))

    def seconds_without_clock(self) -> float:
        """Seconds for which Kafka has answered, and the clock could not be written all the same."""
        if not self.clock_error or self.seconds_since_kafka() > GAP_S:
            return 0.0
        return self._now() - max(self._clock_failed_at, self._answering_since)

    def seconds_since_kafka(self) -> float:
        """Seconds since Kafka last answered, or since the start."""
        return self._now() - (self.kafka_answered_at or self.started_at)

    def state(self) -> JobState:
        """Return the facts for a notifier in another process."""
        losing_s = self.seconds_losing()
        return JobState(
            cluster=self.cluster,
            batches=self.batches,
            stuck_ms=round(self.seconds_stuck() * 1000),
            losing_ms=round(losing_s * 1000),
            lagging=self.lagging[:_SENTENCE_MAX] if losing_s > 0 else "",
            trouble=(self.dying or self.trouble)[:_SENTENCE_MAX],
            is_dying=self.is_dying,
            speaks=self.speaks,
        )

    @property
    def _query_state(self) -> str:
        if self.standing_by:
            return "standing by"
        return "running" if self._is_up else ("down" if self._deaths else "starting")

    def describe(self) -> dict[str, Any]:
        """Return the facts for ``/ready`` and ``/healthz``."""
        return {
            "cluster": self.cluster,
            "ready": self.is_ready,
            "query": self._query_state,
            "unreported_shards": len(self.reading.unreported),
            "offsets_behind_start": self.reading.behind,
            "watermark_behind_s": round(self.watermark_behind_s(), 1),
            "batches": self.batches,
            "seconds_since_batch": round(self.seconds_since_batch(), 1),
            "seconds_since_kafka_answered": round(self.seconds_since_kafka(), 1),
            "error": self.kafka_error or self.trouble or self._lateness,
            "standing_by": self.standing_by,
            "restarts": self.restarts,
            "deaths_in_a_row": self.deaths,
            "end_offsets": self.end_offsets,
            "reconciliation": self.reconciliation,
            "broker_settings": self.broker_settings,
            "evidence": self.evidence,
            "notices": self.notices,
        }


def positions_in(progress: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return topic -> next offset of each partition, from the progress Spark gives after a batch."""
    found: dict[str, list[int]] = {}
    for source in progress.get("sources", ()):
        end = source["endOffset"]
        topics = json.loads(end) if isinstance(end, str) else end
        for topic, partitions in (topics or {}).items():
            at = {int(partition): offset for partition, offset in partitions.items()}
            found[topic] = [at.get(n, -1) for n in range(max(at, default=-1) + 1)]
    return found
