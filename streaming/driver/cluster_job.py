"""Runs one cluster's query with its clock and probes, until it is stopped.

The file is long because one class holds every part of a job and the order in which they start and stop.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack, closing, suppress

import msgspec
from pyspark.sql import SparkSession

from alerts.alert import Alert
from streaming import pipeline
from streaming.config import ClusterPlan
from streaming.control import ClocksRead, LostRecord
from streaming.driver.adoption import adoptions, announce, write
from streaming.driver.alerts_topic import AlertsTopicKeeper
from streaming.driver.clock import Clock
from streaming.driver.cluster_probe import ClusterProbe
from streaming.driver.control_writer import ControlWriter
from streaming.driver.corrections import Corrections
from streaming.driver.evidence import EvidenceKeeper
from streaming.driver.lease import Lease, Turn
from streaming.driver.mark_keeper import ClaimStoppedError
from streaming.driver.outlets import Counts, Outlets
from streaming.driver.probing import ENDS_EVERY_S, ClusterView, EndsTeller, GroupProbe, TopicEnds
from streaming.driver.query_watch import (
    QueryWatch,
    StartAgainError,
    gist,
    notice_topics,
    stop_gently,
    targets_of,
)
from streaming.driver.quiet import Quiet
from streaming.driver.refilling import Refilling
from streaming.driver.report_turns import Asking
from streaming.health import LATE_S, LATE_TRIGGERS, Limits, Progress
from streaming.kafka_clients import (
    ClientPropertyError,
    FencedProducer,
    KafkaAdminClient,
    KafkaError,
    KafkaProducer,
    admin_client,
    producer,
)
from streaming.pipeline import BatchSink, Beginning, CheckpointRefusedError, Reading, Row, TopicsRefusedError

_BACKOFF_MAX_S = 15.0
_STEADY_S = 120.0
"""A query that ran this long is restarted quickly."""
_FIRST_TICK_S = 5.0
"""Long enough for a healthy cluster; with another, reading starts without a first clock."""
_CLOCK_FAILS_S = 120.0
"""What Kafka refuses for longer than a producer tries may be the producer's fault: new ones are opened."""

_log = logging.getLogger(__name__)

_REFUSALS = (CheckpointRefusedError, TopicsRefusedError, ClientPropertyError)


class ClusterJob:
    """One cluster's query with its clock; restarted from the checkpoint whenever it dies."""

    spark_lost = ""
    """A sentence, once this process can run no further query."""
    _outputs: FencedProducer | None = None
    _quiet: Quiet | None = None

    def __init__(
        self,
        spark: Callable[[], SparkSession],
        plan: ClusterPlan,
        outlets: Outlets,
        *,
        groups: ClusterView | None = None,
        counts: Counts | None = None,
        turn: Turn = lambda: None,
    ) -> None:
        """Prepare; ``start`` opens connections.

        Args:
            spark: returns the session, once it has started.
            plan: the cluster.
            outlets: takes what the job learns.
            groups: the cluster's known groups, whose state and end offsets are queried; None: no queries.
            counts: counts what happens outside the batches.
            turn: says whether this job may try to watch its cluster.
        """
        counts = Counts() if counts is None else counts
        self.plan = plan
        self._reading = Reading()
        self.progress = Progress(plan.cluster, reading=self._reading)
        self._corrections = Corrections(self.progress.notice, counts.corrected)
        self.progress.late_after_s = max(LATE_S, LATE_TRIGGERS * plan.trigger_ms / 1000)
        self._probe = ClusterProbe(
            plan.kafka, self.progress, topics=self._topics_to_ask, found=self._found_ends
        )
        self._groups = groups
        self._ends: EndsTeller | None = None
        self._stopping = threading.Event()
        self.lease = Lease(spark, plan, self.progress, self._stopping, turn)
        self._evidence = EvidenceKeeper(
            plan,
            self.progress,
            count=counts.raise_tried,
            show=counts.brokers_raised,
            changed=self._settings_changed,
            may_act=self.lease.may_speak,
        )
        self._spark = spark
        self._outlets = outlets
        self._watch = QueryWatch(plan, self._reading, self.progress.watermark, self.lease, self._stopping)
        self._thread = threading.Thread(target=self._keep_running, name=f"job-{plan.cluster}", daemon=True)
        self._alerts_keeper = AlertsTopicKeeper(
            plan, self.progress, outputs=lambda: self._outputs, adopt=self._adopt_late
        )
        self._adopts: str | None = None
        """The run whose start adopts open alerts; None: its checkpoint has them."""
        self._clock: Clock | None = None
        self._missed: list[pipeline.Missed] = []
        self._counts = counts
        self._mirror = groups if plan.probe is not None else None
        self._asking: GroupProbe | None = None
        self._refilling: Refilling | None = None
        self._limits = Limits(self.progress)
        if self._mirror is None:
            self.progress.reconciliation = self.progress.broker_settings = "off"

    def start(self) -> None:
        """Start to run, in threads of its own."""
        self._probe.start()
        self._alerts_keeper.start()
        self._thread.start()

    def change(self, plan: ClusterPlan) -> None:
        """Take another plan, of which only settings and receivers may differ.

        With other settings the query starts again, and tells them to the shards.
        """
        is_same = plan.settings == self.plan.settings
        self.plan = plan
        self._alerts_keeper.receivers = plan.receivers
        if not is_same:
            self._watch.start_again()

    def ask_to_stop(self) -> None:
        """Request the stop; ``stop`` waits for it."""
        self._stopping.set()
        self._evidence.ask_to_stop(puts_back=not self.lease.taken)

    def stop(self) -> None:
        """Let the running batch finish, then stop."""
        self.ask_to_stop()
        self._thread.join()
        self.lease.drop()
        self._evidence.stop()
        self._alerts_keeper.stop()
        self._probe.stop()

    def dead_threads(self) -> list[str]:
        """Return the names of threads that have died."""
        clock, asking = self._clock, self._asking
        alive = {
            self._thread.name: self._thread.is_alive(),
            f"probe-{self.plan.cluster}": self._probe.is_alive,
            f"alerts-topic-{self.plan.cluster}": self._alerts_keeper.is_alive,
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
            except StartAgainError as change:
                self.progress.query_ended()
                _log.info("%s: %s; starting again", self.plan.cluster, change)
                continue
            except (ClaimStoppedError, pipeline.NoSessionError):
                return
            except Exception as error:
                self._attempt_failed(error)
            if self.lease.taken:
                self._refuse(self.lease.taken)
                return
            # A query that dies of the same batch, each time after minutes, is not steady.
            is_steady = time.monotonic() - began > _STEADY_S and self.progress.batches > batches
            failures = 1 if is_steady else failures + 1
            self.progress.restarts += 1
            self._stopping.wait(min(2.0 ** (failures - 1), _BACKOFF_MAX_S))

    def _attempt_failed(self, error: Exception) -> None:
        """Record why the query does not run; what Spark makes of a lost lease is not what happened."""
        if self.lease.attempt_failed(error):
            self.progress.query_ended()
        elif isinstance(error, _REFUSALS):
            self._refuse(str(error))
        else:
            self.spark_lost = pipeline.session_stopped(self._spark())
            self.progress.query_ended(gist(error))
            _log.warning("%s: the query died: %s", self.plan.cluster, self.progress.query_error)

    def _refuse(self, sentence: str) -> None:
        """Record why this cluster cannot be watched."""
        self.progress.query_ended()
        is_known, self.progress.refused = self.progress.refused == sentence, sentence
        _log.log(logging.DEBUG if is_known else logging.ERROR, "%s: %s", self.plan.cluster, sentence)

    def _run_once(self) -> None:
        pipeline.ensure_topics(self.plan)
        notice_topics(self.plan, self.progress.notice)
        mark = self.lease.claim()
        self._evidence.start()
        files = pipeline.folder_of(self._spark, self.plan.checkpoint)
        began, has_run = pipeline.load_or_capture(files, self.plan)
        mark.named(began.run)
        found = pipeline.find_losses(self.plan, began, files)
        with ExitStack() as clients:  # the first of them ends as well if the second finds no broker
            admin = clients.enter_context(closing(admin_client(self.plan.kafka)))
            out = events_out = producer(self.plan.output)
            clients.callback(out.close, timeout=5)
            if self.plan.has_own_output:
                events_out = producer(self.plan.kafka)
                clients.callback(events_out.close, timeout=5)
            outputs = clients.enter_context(closing(self.lease.open_outputs()))
            self.progress.refused = ""
            self._tell_missed(found, began.run, out)
            pipeline.settle_losses(found, began, files)
            began = found.began
            self._run_query(began, has_run, admin, out=out, events_out=events_out, outputs=outputs)

    def _adopt_late(self, alerts: list[Alert]) -> None:
        """Adopt alerts that the start had no time to read.

        Raises:
            kafka.errors.KafkaError: the control topic did not acknowledge.
        """
        for alert in alerts:
            self._outlets.remember(alert)
        if self._adopts is None or not alerts:
            return
        out = producer(self.plan.output)
        try:
            for record in adoptions(self._adopts, alerts, time.time_ns() // 1_000_000):
                write(self.plan, out, record)
            if self._quiet is not None:
                self._quiet.moved()
        finally:
            out.close(timeout=5)

    def _tell_missed(self, found: pipeline.Found, run: str, out: KafkaProducer) -> None:
        """Count lost records, and report them to the shards before the checkpoint is corrected.

        Raises:
            kafka.errors.KafkaError: the control topic did not acknowledge; the next start finds the loss
            again.
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
            self._counts.missed(one.topic, one.records)
            self.progress.notice(f"lost {one.topic}", one.sentence)
        for topic, now in found.anew.items():
            self.progress.watermark.topic_recreated()
            self._reading.topic_recreated(topic, [now.ends[n] for n in sorted(now.ends)])

    def _take_over(self, began: Beginning, has_run: bool, out: KafkaProducer) -> None:
        """Write the settings, and alerts of an earlier job that the checkpoint does not contain."""
        owes = self._alerts_keeper.owes
        left_open = self._alerts_keeper.at_start()
        for alert in left_open:
            self._outlets.remember(alert)
            self._evidence.remember(alert)
        announce(self.plan, began, out, adopt=[] if has_run else left_open)
        if not has_run:
            self._adopts = began.run
        elif not owes:
            self._adopts = None

    def _run_query(
        self,
        began: Beginning,
        has_run: bool,
        admin: KafkaAdminClient,
        *,
        out: KafkaProducer,
        events_out: KafkaProducer,
        outputs: FencedProducer,
    ) -> None:
        self._reading.begin(began.shard_count, targets_of(self.plan, admin))
        self._take_over(began, has_run, out)
        events_partitions = pipeline.partition_count(admin, self.plan.events_topic or "")
        spark = self._started_spark()  # all before it is done while Spark starts
        quiet = self._quiet = Quiet(began.shard_count + 1)
        control = ControlWriter(out, quiet)
        clock = Clock(
            self.plan,
            run=began.run,
            secret=began.secret,
            corrections=self._corrections,
            shard_count=began.shard_count,
            events_partitions=events_partitions,
            producer=out,
            events_producer=events_out,
            ask=Asking(began.shard_count, self._reading, groups=self._group_count),
            reading=self._reading,
            reports=self.progress,
            job=self.progress.state,
            quiet=quiet,
            along=lambda older_s: self._write_along(control, older_s),
        )
        self._refilling = Refilling(
            self.plan,
            began,
            control,
            self.progress,
            listing=self._listing,
            known=self._groups_known,
            tell_again=self._tell_brokers_again,
            alerts=lambda _plan: self._alerts_keeper.open_now(),
        )
        sink = BatchSink(
            self.plan,
            began.run,
            producer=control,
            outputs=outputs,
            apply=self._take,
            done=self._batch_done,
            begun=self._batch_begun,
            ensure=self.lease.ensure,
        )
        # The clock starts first: without a time, the first batch could only apply what it read.
        self._clock, self._outputs = clock, outputs
        clock.start()
        self._ask_brokers(began, control, clock)
        if self._groups is not None:
            topic = self.plan.control_topic
            self._ends = EndsTeller(
                run=began.run,
                topic=topic,
                shard_count=began.shard_count,
                producer=control,
                later=control.later,
                readers=self._groups,
                stable=self._probe.last_stable,
                transaction_ms=self._transaction_ms,
            )
        try:
            clock.await_tick(_FIRST_TICK_S)
            running = pipeline.start_query(spark, self.plan, began, events_partitions, sink)
            try:
                self._watch.follow(
                    running, lambda: self._check(admin, began, events_partitions, out, events_out)
                )
            finally:
                stop_gently(running)
        finally:
            asking, self._asking, self._clock, self._ends = self._asking, None, None, None
            self._outputs = None
            if asking is not None:
                asking.stop()
            clock.stop()

    def _check(
        self, admin: KafkaAdminClient, began: Beginning, events_partitions: int, *producers: KafkaProducer
    ) -> None:
        """Look for what only a new start mends, and give up ends that are no more.

        Raises:
            StartAgainError: topics have changed, or our producers have failed for good.
        """
        self._watch.check_partitions(admin, began, events_partitions)
        failing_s = self.progress.seconds_without_clock()
        if failing_s > _CLOCK_FAILS_S:
            raise StartAgainError(f"no clock could be written for {failing_s:.0f} s, though Kafka answers")
        if any(one.is_given_up for one in producers):
            raise StartAgainError("Kafka refused a record, and our producer takes no other any more")
        if not self._reading.has_caught_up:
            with suppress(KafkaError):
                self._reading.ends_at(targets_of(self.plan, admin))

    def _started_spark(self) -> SparkSession:
        """Wait for Spark.

        Raises:
            CheckpointRefusedError: Spark looks for the checkpoint elsewhere than we do.
        """
        spark = self._spark()
        pipeline.refuse_misread(spark, self.plan.checkpoint)
        return spark

    def _write_along(self, control: ControlWriter, older_s: float) -> set[int]:
        """Write what waits for the next clock, since it is about to be written; return for which shards."""
        self.lease.renew_along()
        return control.write_waiting(older_s)

    def _batch_begun(self, batch_id: int) -> None:
        self.progress.batch_begun(batch_id)
        if self._quiet is not None:
            self._quiet.batch_begun()

    def _batch_done(self, reported: Iterable[int]) -> None:
        self._reading.reported(reported)
        if self._clock is not None and self._reading.unreported:
            self._clock.wake()  # the next portion of shards is asked before the next batch is planned
        took_s = self.progress.batch_done()
        if took_s is not None:
            self._counts.batch_took(took_s)

    def _take(self, cluster: str, rows: Iterable[Row]) -> None:
        """Take a batch's rows, and give its alerts to the evidence keeper if there is one."""
        kept = list(rows)
        for kind, key, value in kept:
            if kind == "zone":
                self._corrections.found(int(key), msgspec.json.decode(value)["ahead_ms"])
            elif kind == "due" and self._quiet is not None:
                self._quiet.due(int(key), msgspec.json.decode(value, type=int))
            elif kind == "clocks_read":
                self.progress.watermark.take_clocks(msgspec.json.decode(value, type=ClocksRead))
        self._outlets.apply(cluster, kept)
        self._evidence.take(kept)
        self._limits.take(kept)
        if self._refilling is not None:
            self._refilling.take(kept)

    def _ask_brokers(self, began: Beginning, control: ControlWriter, clock: Clock) -> None:
        if self._mirror is None or self.plan.probe is None:
            return
        asking = GroupProbe(
            self.plan,
            self.plan.probe,
            run=began.run,
            shard_count=began.shard_count,
            producer=control,
            later=control.later,
            progress=self.progress,
            mirror=self._mirror,
            skew_ms=clock.skew_ms,
            doubts_everyone=bool(self._missed),
        )
        asking.start()
        self._asking = asking

    def _topics_to_ask(self, whole: bool) -> Iterable[str]:
        """Return the topics whose ends the next round needs; those of all groups if ``whole``."""
        if self._groups is None:
            return ()
        teller = self._ends
        return self._groups.topics() if teller is None else teller.topics(whole=whole)

    def _found_ends(self, ends: TopicEnds) -> float:
        """Take where topics end; return after how many seconds it is to be asked again."""
        if self._groups is not None:
            self._groups.take_ends(ends)
        teller = self._ends
        if teller is None:
            return ENDS_EVERY_S
        teller.tell(ends)
        return teller.every_s

    def _listing(self) -> tuple[float, Collection[str]] | None:
        asking = self._asking
        return None if asking is None else asking.listing()

    def _group_count(self) -> int:
        return 0 if self._groups is None else len(self._groups.groups())

    def _groups_known(self) -> Collection[str]:
        return () if self._mirror is None else self._mirror.groups().keys()

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
