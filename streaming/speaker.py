"""Everything by which this process speaks to receivers: the notifier, the direct alerts and the supervisor.

It begins once this process has the leases of its clusters, and reads only then what an earlier process
delivered and which direct alerts that one left open.  Before, another process speaks.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from alerts.alert import Alert
from alerts.delivery import DeliveryState, LiveQuiet, Notifier
from alerts.metrics import NotifierMetrics
from streaming.config import Config
from streaming.driver import ClusterJob, Supervisor, Watched, limits_from
from streaming.notify import DirectAlerts, state_file


class MakeNotifier(Protocol):
    """Makes the notifier: ``streaming.notify.make_notifier``."""

    def __call__(
        self,
        config: Config,
        metrics: NotifierMetrics,
        caught_up: Callable[[str], bool | None],
        *,
        may_speak: Callable[[], bool],
        quiet: LiveQuiet,
    ) -> Notifier:
        """Return it; ``start`` opens its connections."""
        ...


class Speaker:
    """Silent until ``begin``."""

    def __init__(
        self,
        config: Config,
        jobs: Mapping[str, ClusterJob],
        metrics: NotifierMetrics,
        make_notifier: MakeNotifier | None,
        *,
        remember: Callable[[Alert], None],
        quiet: LiveQuiet,
    ) -> None:
        """Prepare.

        Args:
            config: the configuration.
            jobs: the job of each cluster.
            metrics: counts the attempts.
            make_notifier: makes the notifier; None: another process delivers alerts.
            remember: takes each direct alert for the page.
            quiet: silences and maintenance, as they are now.
        """
        self._config = config
        self._jobs = jobs
        self._remember = remember
        self._quiet = quiet
        self._metrics = metrics
        self._make_notifier = make_notifier
        self._notifier = self._made()
        self._direct: DirectAlerts | None = None
        self._supervisor: Supervisor | None = None

    def _made(self) -> Notifier | None:
        if self._make_notifier is None:
            return None
        return self._make_notifier(
            self._config, self._metrics, self._caught_up, may_speak=self.may_speak, quiet=self._quiet
        )

    def change(self, config: Config) -> None:
        """Deliver as another configuration says, from where the receivers have come."""
        self._config = config
        before, direct = self._notifier, self._direct
        if before is None:
            return
        if direct is None:
            self._notifier = self._made()
            return
        before.stop()
        direct.save()
        after = self._notifier = self._made()
        if after is not None:
            after.start()
            direct.speak_through(after)

    @property
    def delivers(self) -> bool:
        """This process, once it has begun, delivers alerts to at least one receiver."""
        return self._notifier is not None and bool(self._config.receivers)

    @property
    def has_begun(self) -> bool:
        """This process speaks."""
        return self._supervisor is not None

    def may_speak(self) -> bool:
        """Say whether nobody else watches one of the clusters with the same outputs."""
        return all(job.lease.may_speak() for job in self._jobs.values())

    def begin(self) -> None:
        """Continue what an earlier process left open, and start every thread."""
        direct = self._direct = DirectAlerts(state_file(self._config, "run"))
        direct.end_all_but(self._jobs)
        opened = direct.open_alerts()
        for alert in opened:
            self._remember(alert)
        limits = limits_from(self._config)
        self._supervisor = Supervisor(
            [Watched(job.progress, limits, self._deliver, opened) for job in self._jobs.values()],
            after=self._save,
            opens=self.may_speak,
        )
        if self._notifier is not None:
            self._notifier.start()
            direct.speak_through(self._notifier)
        self._supervisor.start()

    def _deliver(self, alert: Alert) -> None:
        self._remember(alert)
        if self._direct is not None:
            self._direct.deliver(alert)

    def _save(self) -> None:
        if self._direct is not None:
            self._direct.save()
            for job in self._jobs.values():
                job.progress.notice("state_file", self._direct.error)

    def _caught_up(self, cluster: str) -> bool | None:
        job = self._jobs.get(cluster)
        return None if job is None else job.progress.has_caught_up

    def held_back(self, alert_id: str) -> Mapping[str, str]:
        """Return receiver -> why it does not get an open alert now."""
        return {} if self._notifier is None else self._notifier.held_back(alert_id)

    def deliveries(self) -> Sequence[DeliveryState]:
        """Return the state of delivery to each receiver."""
        return [] if self._notifier is None else self._notifier.deliveries()

    def dead_threads(self) -> list[str]:
        """Return the names of threads that have died."""
        dead = [] if self._notifier is None else self._notifier.dead_threads()
        if self._supervisor is not None and not self._supervisor.is_alive:
            dead.append("supervisor")
        return dead

    def stop_judging(self) -> None:
        """Stop the supervisor: from now on the jobs end on purpose."""
        if self._supervisor is not None:
            self._supervisor.stop()

    def stop(self) -> None:
        """Finish the current attempts, and write down what is open."""
        if self._notifier is not None and self.has_begun:
            self._notifier.stop()
            self._save()
