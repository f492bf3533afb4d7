"""The long-running job: every cluster's query, the notifier, the server and the supervisor."""

import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from alerts.alert import Alert
from alerts.delivery import DeliveryState, LiveQuiet, Owners, wall_clock_ms
from alerts.metrics import (
    DeliveryCollector,
    HealthCollector,
    HealthSample,
    HistoryCollector,
    OwnMetrics,
    SilenceCollector,
    SnapshotCollector,
)
from streaming import pipeline
from streaming.config import (
    DELIVERY,
    Changes,
    ClusterConfig,
    ClusterPlan,
    Config,
    Reloads,
    changes,
    plan_of,
    quiet_of,
)
from streaming.driver import (
    ANSWERING_S,
    ClusterJob,
    Counts,
    Limits,
    Outlets,
    limits_from,
)
from streaming.driver.probing import ClusterView
from streaming.group_store import GroupStore
from streaming.health import LULL_S, Progress
from streaming.history import Keeper
from streaming.notify import history_file, make_notifier
from streaming.pipeline import JvmLostError, topics_of
from streaming.service_manager import ServiceManager
from streaming.serving import HttpServer, Hub, PastReader, ShownAlerts, TopicReader, View
from streaming.silences import Follower, SilenceDesk
from streaming.silences import topics_of as silence_topics_of
from streaming.speaker import MakeNotifier, Speaker
from streaming.version import version

_log = logging.getLogger("groupwatch.job")

_COLLECTOR = (50_000, 5, 100)
"""When Python looks for cycles among its youngest, younger and all objects.

Each batch replaces most of what is known of busy groups, and Python takes that for growth: by its own values
it looked through all objects every five seconds, 0.2 to 0.5 s for 10,000 groups, a third of the driver's CPU.
"""
_LOOK_S = 1.0
_LOST_STOP_S = 7.0
"""How long a process without its JVM may take to notify receivers and to restore what it changed."""
_STOP_S = 90.0
"""A running batch may take up to 30 s to finish, receivers less."""


class JobRefusedError(RuntimeError):
    """No cluster can be watched: topics, checkpoint or client properties are wrong; the text says which."""


class Health:
    """The facts for ``/ready`` and ``/healthz``."""

    def __init__(
        self,
        jobs: Mapping[str, ClusterJob],
        dead: Callable[[], Sequence[str]],
        limits: Limits,
        deliveries: Callable[[], Sequence[DeliveryState]] = tuple,
    ) -> None:
        self._deliveries = deliveries
        self._jobs = jobs
        self._dead = dead
        self._limits = limits

    def clusters(self) -> list[Mapping[str, Any]]:
        """Return the health of each cluster's job."""
        return [job.progress.describe() for job in self._jobs.values()]

    def deliveries(self) -> list[Mapping[str, Any]]:
        """Return the state of delivery to each receiver."""
        return [one.describe() for one in self._deliveries()]

    def problems(self) -> list[str]:
        """Return what is broken in this process; an outage of Kafka or of a receiver does not count."""
        found = [f"thread {name} is dead" for name in self._dead()]
        found += [one.problem for one in self._deliveries() if one.problem]
        for job in self._jobs.values():
            found += [f"thread {name} is dead" for name in job.dead_threads()]
            progress = job.progress
            if progress.is_dying:
                found.append(f"{progress.cluster}: {progress.dying}")
                continue
            stuck_s = progress.seconds_stuck()
            if stuck_s > self._limits.stalled_s and progress.seconds_since_kafka() <= ANSWERING_S:
                why = f": {progress.trouble}" if progress.trouble else ""
                found.append(f"{progress.cluster}: no batch has ended for {stuck_s:.0f} s{why}")
            elif progress.seconds_losing() > self._limits.stalled_s:
                found.append(f"{progress.cluster}: {progress.lagging}")
        return found


class Monitor:
    """All parts of one process, started and stopped in order."""

    def __init__(
        self, config: Config, make_notifier: MakeNotifier | None, reloads: Reloads | None = None
    ) -> None:
        """Build the parts; with ``make_notifier`` None another process delivers alerts."""
        self._config = config
        self._quiet = LiveQuiet(quiet_of(config.silences, config.maintenance))
        names = [cluster.name for cluster in config.clusters]
        registry = CollectorRegistry()
        receivers = [receiver.name for receiver in config.receivers] if make_notifier else []
        own = OwnMetrics(
            registry,
            clusters=names,
            receivers=receivers,
            version=version(),
            external_url=config.http.external_url,
        )
        self._store = GroupStore(names, clock_ms=wall_clock_ms, rebalanced=own.rebalanced)
        self._alerts = ShownAlerts(wall_clock_ms, own.detected)
        self._silences = Follower(silence_topics_of(config), self._quiet)
        self._silence_desk = SilenceDesk(self._silences, clusters=names, alert_of=self._alerts.known)
        self._history = self._keeper(config, names)
        self._hub = Hub(self._store, clock_ms=wall_clock_ms, version=version())
        self._owners = owners_of(config)
        view = View(
            self._store,
            self._alerts,
            clock_ms=wall_clock_ms,
            quiet=self._quiet,
            held_back=self._held_back,
            partition_lag=config.http.partition_lag,
            owner_of=self._owner_of,
            recent=self._history,
        )
        registry.register(
            SnapshotCollector(
                view,
                groups_max=config.http.max_groups,
                clock_ms=wall_clock_ms,
                cluster_label=config.http.cluster_label,
            )
        )
        self._own = own
        self._session = pipeline.LateSession()
        self._spark: SparkSession | None = None
        self.jobs: dict[str, ClusterJob] = {}
        self.jobs |= {cluster.name: self._job(config, cluster) for cluster in config.clusters}
        self._speaker = Speaker(
            config, self.jobs, own, make_notifier, remember=self._remember, quiet=self._quiet
        )
        for name, job in self.jobs.items():
            own.leader(name, partial(_leads, job))
            job.progress.speaks = self._speaker.delivers
        for collector in (
            DeliveryCollector(self._speaker.deliveries),
            SilenceCollector(self._silences),
            HealthCollector(lambda: [_sample(job.progress) for job in self.jobs.values()]),
            HistoryCollector(lambda: self._history.dropped() if self._history else {}),
        ):
            registry.register(collector)
        self._health = Health(self.jobs, self._dead_threads, limits_from(config), self._speaker.deliveries)
        self._server = HttpServer(
            config.http,
            view,
            self._health,
            registry,
            TopicReader(config),
            silencing=self._silence_desk,
            reloads=reloads,
            hub=self._hub,
            past=self._history.read if self._history else None,
        )

    def _job(self, config: Config, cluster: ClusterConfig) -> ClusterJob:
        plan: ClusterPlan = plan_of(config, cluster)
        own, name = self._own, plan.cluster
        for topic in topics_of(plan):
            own.missed(name, topic, 0)
        return ClusterJob(
            self._session,
            plan,
            Outlets(apply=self._apply, remember=self._remember),
            groups=ClusterView(self._store, name),
            counts=Counts(
                raise_tried=lambda outcome: own.sought(name, outcome),
                brokers_raised=lambda brokers: own.raised(name, brokers),
                batch_took=lambda seconds: own.batch(name, seconds),
                missed=lambda topic, records: own.missed(name, topic, records),
                corrected=lambda broker, seconds: own.corrected(name, broker, seconds),
            ),
            turn=lambda: self._turn(name),
        )

    def _apply(self, cluster: str, rows: Iterable[tuple[str, str, bytes]]) -> None:
        rows = list(rows)
        self._store.apply(cluster, rows)
        self._alerts.apply(cluster, rows)
        self._hub.apply(cluster, rows)
        if self._history is not None:
            self._history.offer(cluster, rows)

    def _keeper(self, config: Config, names: Sequence[str]) -> Keeper | None:
        if not config.history.enabled:
            return None
        return Keeper(
            history_file(config),
            self._store,
            names,
            clock_ms=wall_clock_ms,
            watching=lambda name: self.jobs[name].progress.is_ready,
            notice=self._history_notice,
            read_past=PastReader(config),
            size_max_mb=config.history.max_size_mb,
            await_lull=self._await_lull,
        )

    def _await_lull(self) -> None:
        """Return when each cluster has had a lull, or after ``LULL_S`` in all."""
        until_s = time.monotonic() + LULL_S
        for job in self.jobs.values():
            job.progress.await_lull(max(0.0, until_s - time.monotonic()))

    def _history_notice(self, sentence: str) -> None:
        for job in self.jobs.values():
            job.progress.notice("history", sentence)

    def _remember(self, alert: Alert) -> None:
        self._alerts.remember(alert)
        self._hub.alerts_changed()
        if self._history is not None:
            self._history.remember(alert)

    def _owner_of(self, cluster: str, group: str) -> str:
        return self._owners.of_group(cluster, group)

    def _dead_threads(self) -> list[str]:
        return [*self._speaker.dead_threads(), *self._silences.dead_threads()]

    def _held_back(self, alert_id: str) -> Mapping[str, str]:
        return self._speaker.held_back(alert_id)

    def start(self) -> int:
        """Start everything but Spark, for which the jobs wait; return the server's port.

        Raises:
            OSError: the server's address is not available.
        """
        port = self._server.start()
        self._silences.start()
        self._silence_desk.start(may_write=lambda: self._speaker.has_begun and self._speaker.may_speak())
        for job in self.jobs.values():
            job.start()
        if self._history is not None:
            self._history.start()
        return port

    def start_spark(self) -> None:
        """Start Spark.

        Raises:
            streaming.jars.JarError: the Kafka connector is not available.
            streaming.pipeline.CheckpointRefusedError: the executors cannot reach the checkpoint.
        """
        config = self._config
        self._spark = self._session.start(
            lambda: pipeline.start_session(
                config.spark,
                checkpoint=config.checkpoint,
                checkpoint_is_shared=config.checkpoint_is_shared,
            )
        )

    def _turn(self, name: str) -> str | None:
        """Let jobs claim their clusters in the order of names, so that two processes never share them out."""
        for earlier in sorted(self.jobs):
            if earlier == name:
                return None
            job = self.jobs[earlier]
            if job.progress.standing_by or not job.lease.is_decided:
                return job.progress.standing_by
        return None

    def check(self) -> None:
        """Begin to deliver once this process has its leases, and check that something is left to run.

        What an earlier process delivered is read then, not before.

        Raises:
            JobRefusedError: no cluster can be watched at present, or another process took one over.
            JvmLostError: Spark has ended, and all queries with it.
        """
        lost = ("" if self._spark is None else pipeline.is_session_lost(self._spark)) or next(
            filter(None, (job.spark_lost for job in self.jobs.values())), ""
        )
        if lost:
            raise JvmLostError(lost)
        refusals = [job.progress.refused for job in self.jobs.values()]
        losses = [job.lease.taken or self._late(job) for job in self.jobs.values()]
        if all(refusals) or any(losses):
            raise JobRefusedError("; ".join(filter(None, losses)) or "; ".join(refusals))
        if not self._speaker.has_begun and self._silences.is_settled and self._speaker.may_speak():
            for name, job in self.jobs.items():
                self._own.watermark(name, job.progress.watermark_behind_s)
            self._speaker.begin()

    def _late(self, job: ClusterJob) -> str:
        """Return the sentence that a process spoke before it found, after an outage, another that does."""
        return job.progress.standing_by if self._speaker.has_begun else ""

    def change(self, config: Config) -> Changes:
        """Take over what can change while the process runs, and return what has changed."""
        found = changes(self._config, config)
        self._config = found.config
        self._quiet.configure(quiet_of(found.config.silences, found.config.maintenance))
        for cluster in found.config.clusters:
            self.jobs[cluster.name].change(plan_of(found.config, cluster))
        self._owners = owners_of(found.config)
        if DELIVERY & set(found.made):
            self._speaker.change(found.config)
        return found

    def reloaded(self, *, is_good: bool) -> None:
        """Show whether the configuration could be read again."""
        self._own.reloaded(is_good=is_good)

    def clusters(self) -> list[Mapping[str, Any]]:
        """Return the health of each cluster's job, as ``/ready`` has it."""
        return self._health.clusters()

    def stop(self) -> None:
        """Stop the queries after their running batch, then the parts they feed."""
        self._session.give_up()
        self._speaker.stop_judging()
        for job in self.jobs.values():
            job.ask_to_stop()
        for job in self.jobs.values():
            job.stop()
        self._speaker.stop()
        self._silence_desk.stop()
        self._silences.stop()
        self._server.stop()
        if self._history is not None:
            self._history.stop()
        try:
            if self._spark is not None:
                self._spark.stop()
        except (Py4JError, OSError) as error:
            # A service manager sends SIGTERM to the whole process group: the JVM may end before us.
            _log.info("Spark had ended already (%s)", type(error).__name__)


def owners_of(config: Config) -> Owners:
    """Return who owns which groups."""
    return Owners([one.owned() for one in config.owners])


def _sample(progress: Progress) -> HealthSample:
    ended_s = None if progress.batch_done_at is None else time.time() - progress.seconds_since_batch()
    return HealthSample(progress.cluster, progress.is_ready, progress.watermark.delays_s(), ended_s)


def _leads(job: ClusterJob) -> bool:
    return job.lease.is_ours


def run(config: Config, *, notify: bool = True, load: Callable[[], Config] | None = None) -> int:
    """Run until SIGTERM or SIGINT; SIGHUP reads the configuration again.  Return the exit code.

    Args:
        config: the configuration.
        notify: deliver alerts.
        load: reads the configuration again; None: it never changes.

    Raises:
        JobRefusedError: no cluster can be watched; if one can, the others keep trying.
        OSError: the server's address is not available.
        JvmLostError: Spark's JVM has ended.
        streaming.jars.JarError: the Kafka connector is not available.
    """
    gc.set_threshold(*_COLLECTOR)
    stopping, reloads = threading.Event(), Reloads(load, config.owners_file)
    signal.signal(signal.SIGHUP, lambda *_: reloads.ask())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    service = ServiceManager()
    monitor = Monitor(config, make_notifier if notify else None, reloads)
    monitor.start()
    try:
        monitor.start_spark()
        while not stopping.wait(_LOOK_S):
            monitor.check()
            reloads.serve(monitor)
            service.update(monitor.clusters())
        _log.info("stopping after the running batches")
    except JvmLostError as error:
        _log.error("%s", error)
        _end_within(_LOST_STOP_S)
        raise
    finally:
        service.stopping()
        _end_within(_STOP_S)
        monitor.stop()
    return 0


def _end_within(seconds: float) -> None:
    """End the process with code 1 if it has not ended within ``seconds``.

    A thread may wait for a JVM that hangs, and Python waits for its threads.
    """

    def end() -> None:
        _log.error("not everything stopped within %.0f s; exiting anyway", seconds)
        logging.shutdown()
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
