"""Watches a job in another process for ``groupwatch notify``: whether it lives, and whether it progresses.

The job's clock records, written twice a second, name the job and say how long no batch has ended, what
hinders it, and whether it delivers alerts itself.  ``notify`` itself asks whether the watched cluster answers
(``streaming/driver/cluster_probe.py``).
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from coordinator_model.observations import is_time_ms
from streaming.control import JobState, Mark
from streaming.health import DEATHS_MAX, Progress
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import KafkaConsumer, TopicPartition, consumer

FRESH_S = 15.0
"""A job that delivers alerts itself, with a record this young, is left to deliver them."""
PATIENCE_S = 60.0
"""The same, if an outage of Kafka may hide the job: twice ClusterUnreachable's wait."""
_LOOK_BACK = 500
"""How many last records of the control topic are searched at start for the newest one of each job."""
_POLL_MS = 500
_REOPEN_S = (0.5, 1.0, 2.0, 5.0)
_TROUBLE_MAX = 500

_log = logging.getLogger(__name__)


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A control record's facts about the job that wrote it."""

    kind: str
    run: str = ""
    job: JobState | None = None
    mark: Mark | None = None


_NOTHING = JobState(cluster="")
_UNSAID = JobState(cluster="", batches=1)
"""The state of a job of an older version, which does not report any: it lives, since its clock continues."""
_DECODER = msgspec.json.Decoder(JobRecord)


class RemoteProgress(Progress):
    """The health of one cluster's job, according to its records."""

    def __init__(
        self, cluster: str, clock: Callable[[], float] = time.monotonic, *, patience_s: float = PATIENCE_S
    ) -> None:
        """Start; a job whose records cannot be read counts as alive for ``patience_s``."""
        super().__init__(cluster, clock)
        self._patience_s = patience_s
        self._heard_at: float | None = None
        self._reported, self._run = _NOTHING, ""
        self._has_stopped = False
        self.reading_error = ""
        """Why the job's records cannot be read; "" if they can."""

    def heard(self, told: JobRecord, age_s: float = 0.0) -> None:
        """Take a record that was written ``age_s`` ago."""
        if told.mark is not None:
            self._has_stopped = told.mark.released
            return
        self._has_stopped = False
        self._reported, self._run = told.job or _UNSAID, told.run
        self._heard_at = self._now() - age_s
        # A job that reports an impossible number counts as one without a finished batch.
        stuck_ms = self._reported.stuck_ms
        stuck_s = stuck_ms / 1000 if stuck_ms >= 0 and is_time_ms(stuck_ms) else float("inf")
        self.batch_done_at = self._heard_at - stuck_s

    def seconds_since_heard(self) -> float:
        """Seconds since the job's last record was written, or since the start."""
        return self._now() - (self.started_at if self._heard_at is None else self._heard_at)

    @property
    def has_batch_since_answer(self) -> bool:
        """True once the job reports a finished batch and Kafka has answered since."""
        return super().has_batch_since_answer and self._reported.batches > 0

    @property
    def job_speaks(self) -> bool:
        """The job delivers alerts itself, and is alive as far as is known."""
        if self._heard_at is None or not self._reported.speaks:
            return False
        unheard_s = self.seconds_since_heard()
        # While Kafka is away no record of the job can arrive, which is no sign of its death.  But it may have
        # died at the same time: an outage reported twice is better than one that nobody reports.
        is_hidden = self.seconds_since_kafka() > FRESH_S / 2 or self._now() - self._answering_since < FRESH_S
        return unheard_s < (max(FRESH_S, self._patience_s) if is_hidden else FRESH_S)

    def seconds_losing(self) -> float:
        """Seconds for which the job's watermark has been behind without gaining, by its own report."""
        if self.seconds_since_heard() > FRESH_S or not is_time_ms(self._reported.losing_ms):
            return 0.0
        return min(max(0, self._reported.losing_ms) / 1000, self._now() - self._answering_since)

    @property
    def lagging(self) -> str:
        """The job's sentence about that."""
        return self._reported.lagging[:_TROUBLE_MAX]

    @property
    def is_dying(self) -> bool:
        """The job's query dies repeatedly of one batch."""
        return self._reported.is_dying and self.seconds_since_heard() < FRESH_S

    @property
    def deaths(self) -> int:
        """How often it has died, by the job's report."""
        return DEATHS_MAX if self.is_dying else 0

    @property
    def dying(self) -> str:
        """The job's sentence about that."""
        return self._reported.trouble[:_TROUBLE_MAX] if self.is_dying else ""

    @property
    def trouble(self) -> str:
        """The known reason why no batch ends."""
        silent_s = self.seconds_since_heard()
        if silent_s < FRESH_S:
            return self._reported.trouble[:_TROUBLE_MAX]
        if self.reading_error:
            return f"it is unknown whether the job runs: its records cannot be read: {self.reading_error}"
        if self._heard_at is None:
            return "the job has written no record since this process started: it does not run"
        if self._has_stopped:
            return f"the job was stopped {silent_s:.0f} s ago in good order, and was not started again"
        return f"the job has written no record for {silent_s:.0f} s: it is dead, hangs, or cannot reach Kafka"

    def describe(self) -> dict[str, Any]:
        """Return the facts for ``/ready``."""
        return {
            "cluster": self.cluster,
            "seconds_since_kafka_answered": round(self.seconds_since_kafka(), 1),
            "seconds_since_job_record": round(self.seconds_since_heard(), 1) if self._heard_at else None,
            "seconds_since_batch": round(self.seconds_since_batch(), 1),
            "run": self._run,
            "job_speaks": self.job_speaks,
            "error": self.kafka_error or self.trouble,
            "notices": self.notices,
        }


def of_records(values: Iterable[bytes | None], clusters: Iterable[str]) -> dict[str, list[JobRecord]]:
    """Return the facts in ``values`` about the jobs of ``clusters``; other values are ignored."""
    wanted = list(clusters)
    found: dict[str, list[JobRecord]] = {}
    for value in values:
        try:
            told = _DECODER.decode(value or b"")
        except (ValueError, RecursionError):
            continue
        if told.kind == "clock":
            # Jobs of older versions do not name their cluster.
            cluster = told.job.cluster if told.job else wanted[0] if len(wanted) == 1 else ""
        elif told.kind == "mark" and told.mark is not None:
            cluster = told.mark.cluster
        else:
            continue
        if cluster in wanted:
            found.setdefault(cluster, []).append(told)
    return found


class JobReader:
    """Follows one control topic in a thread, and updates each cluster's progress."""

    def __init__(self, address: KafkaAddress, topic: str, progress: Mapping[str, RemoteProgress]) -> None:
        """Prepare; ``progress`` lists the clusters whose jobs write to the topic."""
        self._address = address
        self._topic = topic
        self._progress = progress
        self._ends: dict[TopicPartition, int] = {}
        self._stopped = threading.Event()
        name = f"jobs-{'-'.join(progress)}"[:60]
        self._thread = threading.Thread(target=self._read_on, name=name, daemon=True)

    def start(self) -> None:
        """Start to read."""
        self._thread.start()

    def stop(self, timeout_s: float = 15.0) -> None:
        """Stop."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    @property
    def name(self) -> str:
        """The thread's name."""
        return self._thread.name

    @property
    def is_alive(self) -> bool:
        """False once the thread has ended."""
        return self._thread.is_alive()

    def _read_on(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            try:
                reader = consumer(self._address)
                try:
                    self._begin(reader)
                    while not self._stopped.is_set():
                        self._step(reader)
                        failures = 0
                finally:
                    reader.close()
            except Exception as error:
                self._failed(f"{type(error).__name__}: {error}"[:_TROUBLE_MAX])
                self._stopped.wait(_REOPEN_S[min(failures, len(_REOPEN_S) - 1)])
                failures += 1

    def _failed(self, sentence: str) -> None:
        for progress in self._progress.values():
            if not progress.reading_error:
                _log.warning("%s: the job's records cannot be read: %s", progress.cluster, sentence)
            progress.reading_error = sentence

    def _begin(self, reader: KafkaConsumer) -> None:
        """Go back far enough to read the newest record of each job.

        Raises:
            LookupError: there is no such topic (yet).
        """
        partitions = [TopicPartition(self._topic, n) for n in reader.partitions_for_topic(self._topic) or ()]
        if not partitions:
            raise LookupError(f"there is no topic {self._topic}")
        reader.assign(partitions)
        begins, self._ends = reader.beginning_offsets(partitions), reader.end_offsets(partitions)
        for partition in partitions:
            reader.seek(partition, max(begins[partition], self._ends[partition] - _LOOK_BACK))

    def _step(self, reader: KafkaConsumer) -> None:
        now_ms = time.time() * 1000
        for partition, records in reader.poll(timeout_ms=_POLL_MS).items():
            for record in records:
                # The append time is a broker's: it dates only records from before we started to read.
                is_old = record.offset < self._ends.get(partition, 0)
                age_s = max(0.0, (now_ms - record.timestamp) / 1000) if is_old else 0.0
                self._take(record.value, age_s)
        for progress in self._progress.values():
            progress.reading_error = ""

    def _take(self, value: bytes | None, age_s: float) -> None:
        for cluster, said in of_records([value], self._progress).items():
            for told in said:
                self._progress[cluster].heard(told, age_s)
