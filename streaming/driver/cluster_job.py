"""One cluster's query with its clock and probes, kept alive until somebody stops it."""

import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack, closing
from typing import Any

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from alerts.alert import Alert
from streaming import pipeline
from streaming.config import ClusterPlan
from streaming.control import Clocked, LostRecord, MarkHeldError, mark_of
from streaming.driver.adoption import adoptions, announce, write
from streaming.driver.alerts_topic import Caretaker
from streaming.driver.clock import Clock
from streaming.driver.corrections import Corrections
from streaming.driver.evidence import EvidenceKeeper
from streaming.driver.mark_keeper import ClaimStoppedError, MarkKeeper
from streaming.driver.mark_places import FilePlace, Place, TopicPlace
from streaming.driver.probes import Ends, Probe
from streaming.driver.probing import EndsTeller, GroupProbe, Picture, Readers
from streaming.driver.refilling import Refilling
from streaming.health import LATE_S, LATE_TRIGGERS, Limits, Progress, positions_in
from streaming.kafka_clients import (
    ClientPropertyError,
    KafkaAdminClient,
    KafkaError,
    KafkaProducer,
    admin_client,
    producer,
)
from streaming.pipeline import (
    Apply,
    BatchSink,
    Beginning,
    CheckpointRefusedError,
    Reading,
    Row,
    TopicsRefusedError,
)

_WATCH_S = 0.25
_PARTITIONS_LOOK_S = 30.0
_BACKOFF_MAX_S = 15.0
_STEADY_S = 120.0
"""A query that ran this long has earned a quick restart."""
_STOP_WAIT_S = 30.0
_STOP_LOOK_S = 0.005
"""Far less than it takes to ask a broker for its newest offsets."""
_FIRST_TICK_S = 5.0
"""Long enough for a cluster that is well; with one that is not, reading begins without a time."""
_ASK_EVERY_S = 3.0
_ASK_AT_ONCE = 17
"""A third of the usual shards: the reports of 100,000 groups should not come in one batch."""
_REFRESH_EVERY_S = 2.0

_NAMES_ERROR = re.compile(r"(?!Caused by)[\w.]*(Error|Exception)\b: \S")

_log = logging.getLogger(__name__)


_REFUSALS = (CheckpointRefusedError, TopicsRefusedError, ClientPropertyError, MarkHeldError)


class TopicsChangedError(RuntimeError):
    """A topic got more partitions, or was made anew; the query must start anew to read them."""


class Asking:
    """Whom each clock record asks for a report: those that owe one, later one shard after another.

    A report of all groups of all shards at once would be a burst of hundreds of megabytes on a large
    cluster, so after the start the shards take turns.
    """

    def __init__(self, shard_count: int, reading: Reading, now: Callable[[], float] = time.monotonic) -> None:
        self._shards = list(range(-1, shard_count))
        self._reading = reading
        self._now = now
        self._turn = 0
        self._asked_at = float("-inf")
        self._asked: frozenset[int] = frozenset()

    def __call__(self) -> bool | list[int]:
        """Return whom to ask in the record that is written now."""
        owing = self._reading.unreported
        pause_s = _ASK_EVERY_S if owing else _REFRESH_EVERY_S
        answered = bool(owing) and not self._asked.intersection(owing)
        if not answered and self._now() - self._asked_at < pause_s:
            return False
        self._asked_at = self._now()
        if owing:
            self._asked = frozenset(owing[:_ASK_AT_ONCE])
            return sorted(self._asked)
        self._turn = (self._turn + 1) % len(self._shards)
        return [self._shards[self._turn]]


class ClusterJob:
    """One cluster's query with its clock, started again from the checkpoint whenever it dies."""

    spark_lost = ""
    """A sentence, once no query can run in this process any more."""

    def __init__(
        self,
        spark: SparkSession,
        plan: ClusterPlan,
        apply: Apply,
        *,
        topics: Callable[[], Iterable[str]] = tuple,
        found: Callable[[Ends], None] = lambda _ends: None,
        remember: Callable[[Alert], None] = lambda _alert: None,
        picture: Picture | None = None,
        sought: Callable[[str], None] = lambda _outcome: None,
        raised: Callable[[int], None] = lambda _brokers: None,
        readers: Readers | None = None,
        missed: Callable[[str, int], None] = lambda _topic, _records: None,
        corrected: Callable[[int, float], None] = lambda _broker, _seconds: None,
    ) -> None:
        """Prepare; ``start`` opens connections.

        Args:
            spark: the session.
            plan: the cluster.
            apply: takes a batch's rows into the view.
            topics: which topics' ends to ask for.
            found: takes their ends.
            remember: takes the alerts that are open at the start.
            picture: what the brokers' own answers about groups are chosen by; None: they are not asked.
            sought: told the outcome of each attempt to raise a request log or to put it back.
            raised: told how many brokers' request logs are raised.
            readers: knows who commits to what, so that groups are told where it ends; None: they are not.
            corrected: told how many seconds are added to the times of which broker.
            missed: told how many records of which topic were gone before they were read.
        """
        self.plan = plan
        self._reading = Reading()
        self.progress = Progress(plan.cluster, reading=self._reading)
        self._corrections = Corrections(self.progress.notice, corrected)
        self.progress.late_after_s = max(LATE_S, LATE_TRIGGERS * plan.trigger_ms / 1000)
        self._probe = Probe(plan.kafka, self.progress, topics=topics, found=self._found_ends)
        self._found = found
        self._readers = readers
        self._ends: EndsTeller | None = None
        self._evidence = EvidenceKeeper(
            plan, self.progress, count=sought, show=raised, changed=self._settings_changed
        )
        self._spark = spark
        self._apply = apply
        self._remember = remember
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep_running, name=f"job-{plan.cluster}", daemon=True)
        self._caretaker = Caretaker(plan, self.progress, is_ours=self._is_ours, adopt=self._adopt_late)
        self._adopts: str | None = None
        """The run whose start adopts what is open; None: its checkpoint knows."""
        self._clock: Clock | None = None
        self._mark: MarkKeeper | None = None
        self._missed: list[pipeline.Missed] = []
        self._count_missed = missed
        self._picture = picture if plan.groups_per_second > 0 else None
        self._asking: GroupProbe | None = None
        self._refilling: Refilling | None = None
        self._limits = Limits(self.progress)
        if self._picture is None:
            self.progress.reconciliation = self.progress.broker_settings = "off"

    def start(self) -> None:
        """Begin to run in threads of its own."""
        self._probe.start()
        self._evidence.start()
        self._caretaker.start()
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Say that it is to stop; ``stop`` waits for it."""
        self._stopping.set()
        self._evidence.ask_to_stop()

    def stop(self) -> None:
        """Let the running batch finish, then stop."""
        self.ask_to_stop()
        self._thread.join()
        self._drop_mark()
        self._evidence.stop()
        self._caretaker.stop()
        self._probe.stop()

    def dead_threads(self) -> list[str]:
        """Return the names of threads that should run and do not."""
        clock, asking = self._clock, self._asking
        alive = {
            self._thread.name: self._thread.is_alive(),
            f"probe-{self.plan.cluster}": self._probe.is_alive,
            f"alerts-topic-{self.plan.cluster}": self._caretaker.is_alive,
            f"clock-{self.plan.cluster}": clock is None or clock.is_alive,
            f"asking-{self.plan.cluster}": asking is None or asking.is_alive,
            f"evidence-{self.plan.cluster}": self._evidence.is_alive,
        }
        return [name for name, is_alive in alive.items() if not is_alive]

    def _keep_running(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            began, batches = time.monotonic(), self.progress.batches
            try:
                self._run_once()
                return
            except TopicsChangedError as change:
                self.progress.query_ended()
                _log.info("%s: %s; starting again", self.plan.cluster, change)
                continue
            except ClaimStoppedError:
                return
            except _REFUSALS as error:
                self._refuse(str(error))
            except Exception as error:
                if self._taken:  # what Spark makes of it is not what happened
                    self._refuse(self._taken)
                else:
                    self.spark_lost = pipeline.session_stopped(self._spark)
                    self.progress.query_ended(gist(error))
                    _log.warning("%s: the query died: %s", self.plan.cluster, self.progress.query_error)
            # One that dies of the same batch after minutes each time is not steady.
            is_steady = time.monotonic() - began > _STEADY_S and self.progress.batches > batches
            failures = 1 if is_steady else failures + 1
            self.progress.restarts += 1
            self._stopping.wait(min(2.0 ** (failures - 1), _BACKOFF_MAX_S))

    def _refuse(self, sentence: str) -> None:
        """Note why this cluster cannot be watched; whoever has our mark keeps it."""
        self.progress.query_ended()
        is_known, self.progress.refused = self.progress.refused == sentence, sentence
        _log.log(logging.DEBUG if is_known else logging.ERROR, "%s: %s", self.plan.cluster, sentence)
        if self._taken:
            self._drop_mark()

    def _run_once(self) -> None:
        pipeline.ensure_topics(self.plan)
        self._look_at_topics()
        mark = self._claim()
        began, has_run = pipeline.load_or_capture(self._spark, self.plan)
        mark.named(began.run)
        files = pipeline.Folder(self._spark, self.plan.checkpoint)
        found = pipeline.find_losses(self.plan, began, files)
        with ExitStack() as clients:  # the first of them ends as well if the second finds no broker
            admin = clients.enter_context(closing(admin_client(self.plan.kafka)))
            out = events_out = producer(self.plan.output)
            clients.callback(out.close, timeout=5)
            if self.plan.has_own_output:
                events_out = producer(self.plan.kafka)
                clients.callback(events_out.close, timeout=5)
            self.progress.refused = ""
            self._tell_missed(found, began.run, out)
            pipeline.settle_losses(found, began, files)
            began = found.began
            self._run_query(began, has_run, admin, out, events_out)

    def _is_ours(self) -> bool:
        return self._mark is not None and not self._taken

    def _adopt_late(self, alerts: list[Alert]) -> None:
        """Go on with what the start had no time to read.

        Raises:
            kafka.errors.KafkaError: the control topic did not acknowledge.
        """
        for alert in alerts:
            self._remember(alert)
        if self._adopts is None or not alerts:
            return
        out = producer(self.plan.output)
        try:
            for record in adoptions(self._adopts, alerts, time.time_ns() // 1_000_000):
                write(self.plan, out, record)
        finally:
            out.close(timeout=5)

    def _tell_missed(self, found: pipeline.Found, run: str, out: KafkaProducer) -> None:
        """Count what was lost, and tell the shards before the checkpoint is put right.

        Raises:
            kafka.errors.KafkaError: the control topic did not acknowledge; then it is found again.
        """
        for one in found.missed:
            record = LostRecord(
                at_ms=time.time_ns() // 1_000_000,
                run=run,
                topic=one.topic,
                feed=pipeline.feed_of(self.plan, one.topic),
                partitions=list(one.partitions),
                records=one.records,
                is_anew=one.is_anew,
            )
            write(self.plan, out, record)
            if one in self._missed:
                continue  # found again, by a query that died before its first batch
            self._missed.append(one)
            self._count_missed(one.topic, one.records)
            self.progress.notice(f"lost {one.topic}", one.sentence)
        for topic, now in found.anew.items():
            self.progress.watermark.made_anew()
            self._reading.made_anew(topic, [now.ends[n] for n in sorted(now.ends)])

    def _claim(self) -> MarkKeeper:
        """See that nobody else has the checkpoint or the outputs, and that nobody takes them.

        Raises:
            MarkHeldError: somebody has them.
            kafka.errors.KafkaError: Kafka does not answer.
        """
        if self._mark is not None:
            return self._mark
        plan, folder = self.plan, pipeline.Folder(self._spark, self.plan.checkpoint)
        outputs = (plan.transitions_topic, plan.alerts_topic)
        mine = mark_of(plan.cluster, outputs, pipeline.run_of(folder))
        places: list[Place] = [TopicPlace(plan.output, plan.control_topic, mine)]
        places.append(FilePlace(folder, mine.token, plan.checkpoint))
        keeper = MarkKeeper(mine, places)
        try:
            keeper.claim(self._stopping.wait)
        except BaseException:
            keeper.release()
            raise
        self._mark = keeper
        return keeper

    def _drop_mark(self) -> None:
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.release()

    @property
    def _taken(self) -> str:
        return "" if self._mark is None else self._mark.taken

    def _look_at_topics(self) -> None:
        """Say how topics are set up otherwise than they should be; none of that stops the job."""
        try:
            for topic, sentence in pipeline.look_at_topics(self.plan).items():
                self.progress.notice(f"topic {topic}", sentence)
        except KafkaError as error:
            why = f"how the topics are set up is not known: {type(error).__name__}: {error}"[:300]
            self.progress.notice("topics", f"{why}; DESCRIBE_CONFIGS on them would tell")
        else:
            self.progress.notice("topics", "")

    def _take_over(self, began: Beginning, has_run: bool, out: KafkaProducer) -> None:
        """Tell the settings, and what an earlier job left open if the checkpoint does not know it."""
        left_open = self._caretaker.at_start()
        for alert in left_open:
            self._remember(alert)
            self._evidence.remember(alert)
        announce(self.plan, began, out, adopt=[] if has_run else left_open)
        self._adopts = None if has_run else began.run

    def _run_query(
        self,
        began: Beginning,
        has_run: bool,
        admin: KafkaAdminClient,
        out: KafkaProducer,
        events_out: KafkaProducer,
    ) -> None:
        self._reading.begin(began.shard_count, self._targets(admin))
        self._take_over(began, has_run, out)
        events_partitions = pipeline.partition_count(admin, self.plan.events_topic or "")
        clock = Clock(
            self.plan,
            run=began.run,
            secret=began.secret,
            corrections=self._corrections,
            shard_count=began.shard_count,
            events_partitions=events_partitions,
            producer=out,
            events_producer=events_out,
            ask=Asking(began.shard_count, self._reading),
            reading=self._reading,
            reports=self.progress,
            job=self.progress.state,
        )
        self._refilling = Refilling(
            self.plan,
            began,
            out,
            self.progress,
            listing=self._listing,
            known=self._groups_known,
            tell_again=self._tell_brokers_again,
            alerts=lambda _plan: self._caretaker.open_now(),
        )
        progress = self.progress
        sink = BatchSink(
            self.plan,
            began.run,
            out,
            self._take,
            self._batch_done,
            begun=progress.batch_begun,
            ensure=self._ensure_ours,
        )
        # The clock first: without a time in it, the first batch could only take in what it read.
        self._clock = clock
        clock.start()
        self._ask_brokers(began, out, clock)
        if self._readers is not None:
            topic = self.plan.control_topic
            self._ends = EndsTeller(
                run=began.run,
                topic=topic,
                producer=out,
                readers=self._readers,
                stable=self._probe.last_stable,
                transaction_ms=self._transaction_ms,
            )
        try:
            clock.await_tick(_FIRST_TICK_S)
            running = pipeline.start_query(self._spark, self.plan, began, events_partitions, sink)
            try:
                self._watch(running, lambda: self._check_partitions(admin, began, events_partitions))
            finally:
                _stop_gently(running)
        finally:
            asking, self._asking, self._clock, self._ends = self._asking, None, None, None
            if asking is not None:
                asking.stop()
            clock.stop()

    def _batch_done(self, reported: Iterable[int]) -> None:
        self._reading.reported(reported)
        self.progress.batch_done()

    def _ensure_ours(self) -> None:
        if self._mark is not None:
            self._mark.ensure()

    def _take(self, cluster: str, rows: Iterable[Row]) -> None:
        """Take a batch's rows; evidence wants its alerts, where it is configured."""
        kept = list(rows)
        for kind, key, value in kept:
            if kind == "zone":
                self._corrections.found(int(key), msgspec.json.decode(value)["ahead_ms"])
            elif kind == "clocked":
                self.progress.watermark.clocked(msgspec.json.decode(value, type=Clocked))
        self._apply(cluster, kept)
        self._evidence.take(kept)
        self._limits.take(kept)
        if self._refilling is not None:
            self._refilling.take(kept)

    def _ask_brokers(self, began: Beginning, out: KafkaProducer, clock: Clock) -> None:
        if self._picture is None:
            return
        asking = GroupProbe(
            self.plan,
            run=began.run,
            shard_count=began.shard_count,
            producer=out,
            progress=self.progress,
            picture=self._picture,
            skew_ms=clock.skew_ms,
            doubts_everyone=bool(self._missed),
        )
        asking.start()
        self._asking = asking

    def _found_ends(self, ends: Ends) -> None:
        self._found(ends)
        teller = self._ends
        if teller is not None:
            teller.tell(ends)

    def _listing(self) -> tuple[float, Collection[str]] | None:
        asking = self._asking
        return None if asking is None else asking.listing()

    def _groups_known(self) -> Collection[str]:
        return () if self._picture is None else self._picture.groups().keys()

    def _tell_brokers_again(self) -> None:
        asking = self._asking
        if asking is not None:
            asking.tell_all_again()

    def _transaction_ms(self) -> int:
        asking = self._asking
        return -1 if asking is None else asking.transaction_ms

    def _settings_changed(self) -> None:
        asking = self._asking
        if asking is not None:
            asking.ask_for_settings()

    def _watched_topics(self) -> list[str]:
        """Return the inputs on the watched cluster."""
        found = pipeline.topics_of(self.plan)
        return [topic for topic, address in found.items() if address.identity == self.plan.kafka.identity]

    def _targets(self, admin: KafkaAdminClient) -> dict[str, list[int]]:
        inputs = [topic for topic in (self.plan.offsets_topic, self.plan.events_topic) if topic]
        return {topic: pipeline.ends_of(admin, topic) for topic in inputs}

    def _watch(self, running: StreamingQuery, check: Callable[[], None]) -> None:
        """Follow the query until we are stopped; raises what it died of."""
        last_batch, before = -1, dict[str, list[int]]()
        checked_at = time.monotonic()
        while not self._stopping.is_set():
            running.awaitTermination(_WATCH_S)  # raises the query's own failure
            if not running.isActive:
                raise RuntimeError("the query ended by itself")
            if self._taken:
                raise MarkHeldError(self._taken)
            told: Any = running.lastProgress
            if told is not None and told["batchId"] != last_batch:
                last_batch = told["batchId"]
                positions = positions_in(told)
                topic = pipeline.went_back(before, positions)
                if topic:
                    raise TopicsChangedError(f"{topic} has smaller offsets than before")
                before = positions
                self._reading.reached(positions)
                self.progress.watermark.reached(self._reading.positions(self.plan.offsets_topic or ""))
            if time.monotonic() - checked_at > _PARTITIONS_LOOK_S:
                checked_at = time.monotonic()
                check()

    def _check_partitions(self, admin: KafkaAdminClient, began: Beginning, events_partitions: int) -> None:
        try:
            events = pipeline.partition_count(admin, self.plan.events_topic or "")
            shards = pipeline.count_shards(admin, self.plan)
            ids = pipeline.ids_of(admin, self._watched_topics())
        except Exception as error:
            _log.debug("looking for new partitions: %r", error)
            return
        if self.plan.offsets_topic and shards != began.shard_count:
            raise TopicsChangedError(f"{self.plan.offsets_topic} has {shards} partitions now")
        for topic, (topic_id, _) in ids.items():
            if topic_id and began.topic_ids.get(topic, topic_id) != topic_id:
                raise TopicsChangedError(f"{topic} was made anew")
        if events > events_partitions:
            raise TopicsChangedError(f"{self.plan.events_topic} has {events} partitions now")


def gist(error: Exception) -> str:
    """Return in one line what a failure is about.

    Spark wraps an exception of our own code in pages of its own and of Python's trace; the last line
    that names an exception is the one that says what happened.
    """
    lines = [line.strip() for line in str(error).splitlines()]
    named = [line for line in lines if _NAMES_ERROR.match(line)]
    return (named[-1] if named else f"{type(error).__name__}: {' '.join(lines)}")[:500]


def _stop_gently(running: StreamingQuery) -> None:
    """Stop between batches: ``stop`` would interrupt a running one, which costs a replay.

    Where one follows the other without a pause, what is between them is Spark asking for the newest offsets.
    """
    deadline = time.monotonic() + _STOP_WAIT_S
    while running.isActive and not _is_between_batches(running.status) and time.monotonic() < deadline:
        time.sleep(_STOP_LOOK_S)
    running.stop()


def _is_between_batches(status: Mapping[str, Any]) -> bool:
    return not status["isTriggerActive"] or status["message"].startswith("Getting offsets")
