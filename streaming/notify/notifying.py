"""Builds the notifier from the configuration, over Kafka's alerts topics."""

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry

from alerts.delivery import (
    GROUP_PREFIX,
    AlertLog,
    DeliveryState,
    LiveQuiet,
    Notifier,
    OpenLog,
    Owners,
    Route,
    wall_clock_ms,
)
from alerts.delivery.receivers import KINDS, Receiver, ReceiverContext
from alerts.metrics import DeliveryCollector, NotifierMetrics, SilenceCollector
from streaming.config import (
    DELIVERY,
    Changes,
    ClusterPlan,
    Config,
    ReceiverConfig,
    Reloads,
    RouteConfig,
    changes,
    plan_of,
    quiet_of,
)
from streaming.driver import ClusterProbe, Watched, limits_from
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import READ_COMMITTED, consumer
from streaming.notify.direct_alerts import DirectAlerts, state_file
from streaming.notify.job_metrics import JobCollector
from streaming.notify.kafka_alert_log import KafkaAlertLog
from streaming.notify.watching import FRESH_S, JobReader, RemoteProgress
from streaming.serving import Server, health_application
from streaming.silences import Follower, topics_of
from streaming.version import version

_LOOK_S = 1.0
_STOP_S = 2.0
"""After this long, a thread that waits for an unavailable cluster is abandoned."""
_LISTEN_S = 5.0
"""How long a start listens for a job that delivers alerts itself."""
_NOT_NEEDED = (
    "the job delivers alerts itself, so this process waits, and takes over if the job dies; "
    "start the job with --no-notify to let this process deliver"
)

_log = logging.getLogger("groupwatch.notifier")


def make_notifier(
    config: Config,
    metrics: NotifierMetrics,
    caught_up: Callable[[str], bool | None] = lambda _cluster: None,
    *,
    reads_topics: bool = True,
    may_speak: Callable[[], bool] = lambda: True,
    quiet: LiveQuiet | None = None,
) -> Notifier:
    """Return the notifier with all receivers and routes of ``config``.

    Args:
        config: the configuration.
        metrics: counts the attempts.
        caught_up: whether the job has caught up with a cluster; None if nobody knows.
        reads_topics: whether it reads the alerts topics.
        may_speak: asked before each attempt; false while another process may deliver as well.
        quiet: silences and maintenance, as they are now; None: those of ``config``.
    """
    owners = Owners([one.owned() for one in config.owners])
    heeded = quiet or quiet_of(config.silences, config.maintenance)
    context = ReceiverContext(config.http.external_url, owners.of, heeded)
    return Notifier(
        [receiver_of(one, context) for one in config.receivers],
        [route_of(one) for one in config.routes],
        alert_logs(config) if reads_topics else {},
        count=metrics.notified,
        caught_up=caught_up,
        quiet=heeded,
        owner_of=owners.of,
        may_speak=may_speak,
    )


def receiver_of(config: ReceiverConfig, context: ReceiverContext) -> Receiver:
    """Return the receiver that one entry of ``receivers`` describes."""
    return KINDS[config.kind](config.name, context, **config.options)


def route_of(config: RouteConfig) -> Route:
    """Return the route that one entry of ``routes`` describes."""
    return Route(
        receivers=tuple(config.receivers),
        severity=tuple(config.match.severity),
        alertname=tuple(config.match.alertname),
        cluster=tuple(config.match.cluster),
        group=tuple(config.match.group),
        repeat_interval_ms=config.repeat_interval_ms,
        goes_on=config.goes_on,
        owner=tuple(config.match.owner),
        group_by=tuple(config.group_by),
        group_wait_ms=config.group_wait_ms,
        group_interval_ms=config.group_interval_ms,
    )


def alert_logs(config: Config) -> dict[str, OpenLog]:
    """Return how to open each alerts topic: one for all clusters, or one on each cluster."""
    output, topic = config.output, config.output.alerts_topic
    if output.bootstrap_servers:
        return {"output": _opener(KafkaAddress(tuple(output.bootstrap_servers), output.client), topic)}
    return {
        cluster.name: _opener(KafkaAddress(tuple(cluster.bootstrap_servers), cluster.client), topic)
        for cluster in config.clusters
    }


def _opener(address: KafkaAddress, topic: str) -> OpenLog:
    def open_log(receiver: str) -> AlertLog:
        reader = consumer(address, group_id=f"{GROUP_PREFIX}{receiver}", isolation_level=READ_COMMITTED)
        try:
            return KafkaAlertLog(reader, topic)
        except BaseException:
            reader.close()
            raise

    return open_log


class NotifyProcess:
    """``groupwatch notify``: the notifier and the watch over the job, in one process.

    It delivers alerts unless a living job delivers them itself, so that no receiver is told twice.  If it has
    reported the job's absence, it reports the end of that in any case.
    """

    def __init__(
        self, config: Config, registry: CollectorRegistry, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Build the parts; ``start`` opens connections."""
        self._config = config
        self._clock = clock
        limits = limits_from(config)
        self._metrics = NotifierMetrics(
            registry,
            [one.name for one in config.receivers],
            version=version(),
            external_url=config.http.external_url,
        )
        patience_s = 2 * min(limits.unreachable_s, limits.stalled_s)
        self.jobs = {
            cluster.name: RemoteProgress(cluster.name, clock, patience_s=patience_s)
            for cluster in config.clusters
        }
        plans = [plan_of(config, cluster) for cluster in config.clusters]
        self._probes = [ClusterProbe(plan.kafka, self.jobs[plan.cluster]) for plan in plans]
        self._readers = [
            JobReader(address, config.output.control_topic, jobs) for address, jobs in self._by_output(plans)
        ]
        self._quiet = LiveQuiet(quiet_of(config.silences, config.maintenance))
        self._silences = Follower(topics_of(config), self._quiet)
        self._direct = DirectAlerts(state_file(config, "notify"))
        self._direct.end_all_but(self.jobs)
        opened = self._direct.open_alerts()
        self._watched = [Watched(job, limits, self._direct.deliver, opened) for job in self.jobs.values()]
        self._notifier: Notifier | None = None
        self._speaks = False
        """Alerts of the topics are delivered; otherwise a notifier, if any, only ends direct alerts."""
        self._began_s = clock()
        registry.register(DeliveryCollector(self._states))
        registry.register(SilenceCollector(self._silences))
        registry.register(JobCollector(self.jobs))

    def _by_output(
        self, plans: Sequence[ClusterPlan]
    ) -> Iterable[tuple[KafkaAddress, dict[str, RemoteProgress]]]:
        """Return each output cluster with the clusters whose jobs write to it."""
        found: dict[tuple[str, ...], tuple[KafkaAddress, dict[str, RemoteProgress]]] = {}
        for plan in plans:
            _, jobs = found.setdefault(plan.output.identity, (plan.output, {}))
            jobs[plan.cluster] = self.jobs[plan.cluster]
        return found.values()

    def start(self) -> None:
        """Start to look; some seconds later it is known who delivers alerts."""
        self._silences.start()
        for probe in self._probes:
            probe.start()
        for reader in self._readers:
            reader.start()

    def look(self) -> None:
        """Start or stop delivering, and judge every job once; to be called each second."""
        if any(job.job_speaks for job in self.jobs.values()):
            self._be_silent()
        elif not self._speaks and self._is_settled and self._silences.is_settled:
            self._speak()
        for one in self._watched:
            try:
                one.look(wall_clock_ms(), opens=self._speaks)
            except Exception:
                _log.exception("failed to judge the job")  # and must be looked at again in any case
        self._direct.save()
        for job in self.jobs.values():
            job.notice("state_file", self._direct.error)
            job.notice("speaker", _NOT_NEEDED if job.job_speaks else "")

    @property
    def _is_settled(self) -> bool:
        """Whether it is known, or will not be known soon, that a job delivers alerts itself."""
        heard = all(job.seconds_since_heard() < FRESH_S / 2 for job in self.jobs.values())
        waited_s = self._clock() - self._began_s
        return waited_s > _LISTEN_S or (heard and waited_s > 1.0)

    def _speak(self) -> None:
        notifier = make_notifier(self._config, self._metrics, quiet=self._quiet)
        self._deliver_through(notifier)
        self._speaks = True
        _log.info("delivering alerts to %s", ", ".join(notifier.outboxes))

    def _be_silent(self) -> None:
        """Leave delivery to the job, except for the ends of this process's own alerts."""
        has_ends = not self._direct.is_empty
        if self._speaks or (self._notifier is not None and not has_ends):
            self._speaks = False
            self._deliver_through(None)
        if self._notifier is None and has_ends:
            self._deliver_through(make_notifier(self._config, self._metrics, reads_topics=False))

    def _deliver_through(self, notifier: Notifier | None) -> None:
        before, self._notifier = self._notifier, None
        if before is not None:
            before.stop()
            self._direct.save()
            self._direct.notifier = None
        if notifier is not None:
            notifier.start()
            self._direct.speak_through(notifier)
            self._notifier = notifier

    def change(self, config: Config) -> Changes:
        """Take over what can change while the process runs, and return what has changed."""
        found = changes(self._config, config)
        self._config = found.config
        self._quiet.configure(quiet_of(self._config.silences, self._config.maintenance))
        if DELIVERY & set(found.made) and self._notifier is not None:
            self._deliver_through(
                make_notifier(self._config, self._metrics, reads_topics=self._speaks, quiet=self._quiet)
            )
        return found

    def reloaded(self, *, is_good: bool) -> None:
        """Show whether the configuration could be read again."""
        self._metrics.reloaded(is_good=is_good)

    def stop(self) -> None:
        """Finish the current attempts, write down which receivers were told, and end."""
        self._deliver_through(None)
        self._direct.save()
        self._silences.stop()
        for reader in self._readers:
            reader.stop(_STOP_S)
        for probe in self._probes:
            probe.stop(_STOP_S)

    # -- what the server asks -------------------------------------------------------------------

    def clusters(self) -> list[Mapping[str, Any]]:
        """Return the state of each cluster's job; ready: some process reads and delivers its alerts."""
        notifier = self._notifier
        has_read = self._speaks and notifier is not None and notifier.is_caught_up
        return [{**job.describe(), "ready": has_read or job.job_speaks} for job in self.jobs.values()]

    def problems(self) -> list[str]:
        """Return what is broken in this process; an outage of Kafka, the job or a receiver does not count."""
        dead = [] if self._notifier is None else self._notifier.dead_threads()
        dead += self._silences.dead_threads()
        dead += [reader.name for reader in self._readers if not reader.is_alive]
        dead += [f"probe-{name}" for name, p in zip(self.jobs, self._probes, strict=True) if not p.is_alive]
        found = [f"thread {name} is dead" for name in dead]
        return found + [state.problem for state in self._states() if state.problem]

    def deliveries(self) -> list[Mapping[str, Any]]:
        """Return the state of delivery to each receiver."""
        return [state.describe() for state in self._states()]

    def _states(self) -> list[DeliveryState]:
        return [] if self._notifier is None else self._notifier.deliveries()


def run(config: Config, *, load: Callable[[], Config] | None = None) -> int:
    """Deliver alerts until SIGTERM or SIGINT, in a process apart from the job; return the exit code.

    SIGHUP reads the configuration again by ``load``.

    Raises:
        OSError: the server's address is not available.
    """
    stopping, reloads = threading.Event(), Reloads(load, config.owners_file)
    signal.signal(signal.SIGHUP, lambda *_: reloads.ask())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    registry = CollectorRegistry()
    station = NotifyProcess(config, registry)
    server = Server(config.notify_http, health_application(station, registry, config.http.cluster_label))
    try:
        server.start()
    except OSError as error:
        if "notify_http" in config.model_fields_set:
            raise
        # This default port was not requested by anybody: alerts without health are better than none.
        _log.warning("no metrics and no health: %s; configure notify_http", error.strerror)
    station.start()
    try:
        while not stopping.wait(_LOOK_S):
            station.look()
            reloads.serve(station)
    finally:
        station.stop()
        server.stop()
    return 0
