"""One cluster's lease: one process at a time watches the cluster and writes its outputs.

A process without the lease stands by: it watches the marks of the one that has it, and takes over when that
one has removed its mark, or has not renewed it for ``ABANDONED_S`` (``mark_keeper.py``).  A process that
finds its lease taken has to end.  The broker itself fences what a former holder writes to the outputs
(``FencedProducer``); ``may_speak`` does the same for notifications.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from pyspark.sql import SparkSession

from streaming import pipeline
from streaming.config import ClusterPlan
from streaming.control import MarkHeldError, mark_of
from streaming.driver.mark_keeper import MarkKeeper
from streaming.driver.mark_places import FileMarkPlace, MarkPlace, TopicMarkPlace
from streaming.health import Progress
from streaming.kafka_clients import GROUP_PREFIX, FencedProducer, KafkaTimeoutError

_log = logging.getLogger(__name__)

_FENCE_PATIENCE_S = 30.0
"""After this long without an answer of the coordinator, outputs are written unfenced, and that is said.

A transaction whose markers a topic refused is never ended, so its id never answers again (seen with
``max.message.bytes`` of 20, Kafka 4.3.1)."""

Turn = Callable[[], str | None]
"""Returns None: this job may claim its lease; a sentence: why it stands by; "": it has to wait a little."""


class Lease:
    """Claimed before the first query, kept across restarts of the query, and dropped at the end."""

    taken = ""
    """A sentence, once another process has taken it: this process has to end."""
    is_decided = False
    """It is known that this process has it, or that Kafka does not let us know who does."""

    def __init__(
        self,
        spark: Callable[[], SparkSession],
        plan: ClusterPlan,
        progress: Progress,
        stopping: threading.Event,
        turn: Turn = lambda: None,
    ) -> None:
        """Claim nothing yet."""
        self._spark = spark
        self._plan = plan
        self._progress = progress
        self._stopping = stopping
        self._turn = turn
        self._keeper: MarkKeeper | None = None
        self._unfenced_since_s: float | None = None
        """Since when the outputs could not be opened with a fence."""
        self._has_fenced = False
        """Every earlier writer is fenced; since then, nobody but this process has opened the outputs."""

    @property
    def is_ours(self) -> bool:
        """This process has it."""
        return self._keeper is not None and not self.is_lost

    @property
    def is_lost(self) -> bool:
        """Another process was seen to have taken it."""
        return bool(self.taken or (self._keeper is not None and self._keeper.taken))

    def _may_claim(self) -> bool:
        """Say whether the other jobs of this process let this one claim."""
        sentence = self._turn()
        if sentence:
            self._stand_by(sentence)
        return sentence is None

    def claim(self) -> MarkKeeper:
        """Stand by until no other process has it, then claim it.

        Raises:
            MarkHeldError: another process that stood by as well was first.
            streaming.driver.mark_keeper.ClaimStoppedError: the job is to stop.
            kafka.errors.KafkaError: Kafka does not answer.
        """
        if self._keeper is not None:
            return self._keeper
        plan, folder = self._plan, pipeline.folder_of(self._spark, self._plan.checkpoint)
        outputs = (plan.transitions_topic, plan.alerts_topic)
        mine = mark_of(plan.cluster, outputs, pipeline.run_of(folder))
        places: list[MarkPlace] = [TopicMarkPlace(plan.output, plan.control_topic, mine)]
        places.append(FileMarkPlace(folder, mine.token, plan.checkpoint))
        keeper = MarkKeeper(mine, places)
        try:
            keeper.claim(self._stopping.wait, self._stand_by, self._may_claim)
        except BaseException:
            keeper.release()
            raise
        self._keeper = keeper
        self._progress.leads()
        self.is_decided = True
        return keeper

    def open_outputs(self) -> FencedProducer:
        """Fence every other writer of the outputs, and then make sure that the lease is still ours.

        Whoever claims it after this look fences us before it writes.  It looks before, too, so that one that
        was frozen does not fence its successor.  A coordinator that does not answer is waited for only until
        earlier writers are fenced: later it would hide what the query really dies of.

        Raises:
            MarkHeldError: another process has it.
            kafka.errors.KafkaError: Kafka does not answer.
        """
        plan = self._plan
        self._look()
        now_s = time.monotonic()
        is_early = now_s - (self._unfenced_since_s or now_s) < _FENCE_PATIENCE_S
        waits = is_early and not self._has_fenced
        name = f"{GROUP_PREFIX}{plan.cluster}-{plan.alerts_topic}"
        try:
            outputs = FencedProducer(plan.output, name, waits=waits)
        except KafkaTimeoutError:
            self._unfenced_since_s = self._unfenced_since_s or now_s
            raise
        self._has_fenced = self._has_fenced or not outputs.unfenced
        try:
            self._look()
        except BaseException:
            outputs.close()
            raise
        self._progress.notice("fence", outputs.unfenced)
        return outputs

    def _look(self) -> None:
        if self._keeper is not None:
            self._keeper.look()

    def ensure(self) -> None:
        """Check that we may still write.

        Raises:
            MarkHeldError: another process may by now.
        """
        if self._keeper is not None:
            self._keeper.ensure()

    def renew_along(self) -> None:
        """Renew the mark in the control topic, since a clock is about to be written there; never waits."""
        if self._keeper is not None:
            self._keeper.renew_along()

    def may_speak(self) -> bool:
        """Say whether this process may send notifications about the cluster."""
        if self.taken or self._progress.standing_by or not self.is_decided:
            return False
        return self._keeper is None or self._keeper.may_speak()

    def attempt_failed(self, error: Exception) -> bool:
        """Take the failure of an attempt to run the query; return whether the lease explains it."""
        if self._keeper is not None:
            with suppress(MarkHeldError):
                self._keeper.try_to_look()
            if self._keeper.taken:
                self.taken = self._keeper.taken
                self.drop()
                return True
        if isinstance(error, MarkHeldError):
            self._stand_by(str(error))
            return True
        self.is_decided = self.is_decided or not self._progress.standing_by
        return False

    def _stand_by(self, sentence: str) -> None:
        if not self._progress.standing_by:
            _log.info("%s: standing by: %s", self._plan.cluster, sentence)
        self._progress.standing_by = sentence

    def drop(self) -> None:
        """Release it."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.release()
