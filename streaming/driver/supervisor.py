"""Watches the job itself, for alerts that must not depend on what they are about.

ClusterUnreachable and MonitorStalled go straight to the receivers.  The driver decides them here, from facts
that need no batch.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from alerts.alert import Alert, AlertStatus, Severity
from alerts.rules.monitor import CLUSTER_UNREACHABLE as UNREACHABLE
from alerts.rules.monitor import MONITOR_STALLED as STALLED
from alerts.rules.monitor import cluster_reachable, find_stalled, find_unreachable, monitor_running
from streaming.config import Config
from streaming.driver.quiet import QUIET_S
from streaming.health import Progress

UNREACHABLE_S = 30.0
STALLED_MIN_S = 60.0
STALLED_TRIGGERS = 10
ANSWERING_S = 15.0
"""If Kafka answered this recently, it is available: a batch that does not end is then our fault."""
_LOOK_S = 1.0

_KINDS = {UNREACHABLE.name: "unreachable", STALLED.name: "stalled"}

Deliver = Callable[[Alert], None]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """When the two alerts fire, and their severity; from the rules' configuration."""

    unreachable_s: float = UNREACHABLE_S
    stalled_s: float = STALLED_MIN_S
    unreachable_severity: Severity | None = Severity.CRITICAL
    """None: the rule is disabled."""
    stalled_severity: Severity | None = Severity.CRITICAL
    runbook_base: str = ""


def limits_of(rules: Mapping[str, Mapping[str, Any]], trigger_ms: int, runbook_base: str = "") -> Limits:
    """Return the limits in rule options (rule name -> option -> value, durations in milliseconds)."""
    unreachable = rules.get(UNREACHABLE.key, {})
    stalled = rules.get(STALLED.key, {})
    # While nothing happens a batch comes each QUIET_S.
    least_s = max(STALLED_TRIGGERS * trigger_ms / 1000, 2 * QUIET_S)
    return Limits(
        unreachable_s=unreachable.get("after_ms", UNREACHABLE_S * 1000) / 1000,
        stalled_s=max(stalled.get("after_ms", STALLED_MIN_S * 1000) / 1000, least_s),
        unreachable_severity=_severity(unreachable),
        stalled_severity=_severity(stalled),
        runbook_base=runbook_base,
    )


def limits_from(config: Config) -> Limits:
    """Return the limits in ``config``."""
    rules = {name: config.rule(name) for name in (UNREACHABLE.key, STALLED.key)}
    return limits_of(rules, config.trigger_interval_ms, config.runbooks_url)


def _severity(rule: Mapping[str, Any]) -> Severity | None:
    return Severity(rule.get("severity", Severity.CRITICAL)) if rule.get("enabled", True) else None


class Watched:
    """One cluster's job under watch: decides, and remembers its alerts."""

    def __init__(
        self, progress: Progress, limits: Limits, deliver: Deliver, opened: Iterable[Alert] = ()
    ) -> None:
        """Start to watch; ``opened`` are the alerts that an earlier process left open."""
        self._progress = progress
        self._limits = limits
        self._deliver = deliver
        self._open = {
            _KINDS[alert.name]: alert
            for alert in opened
            if alert.cluster == progress.cluster and alert.name in _KINDS
        }

    def look(self, now_ms: int, *, opens: bool = True) -> None:
        """Fire or resolve alerts as the present facts require.

        Args:
            now_ms: the wall clock.
            opens: False: nothing fires, because another process reports it; open alerts are resolved here.
        """
        limits, progress = self._limits, self._progress
        away_s = progress.seconds_since_kafka()
        if limits.unreachable_severity is None:
            self._judge_disabled("unreachable", lambda alert: cluster_reachable(alert, now_ms))
        else:
            self._judge(
                "unreachable",
                opens and away_s > limits.unreachable_s,
                away_s <= limits.unreachable_s and progress.has_answered,
                lambda: find_unreachable(
                    progress.cluster,
                    now_ms - round(away_s * 1000),
                    now_ms,
                    progress.kafka_error or "no answer",
                    severity=limits.unreachable_severity or Severity.CRITICAL,
                    runbook_base=limits.runbook_base,
                ),
                lambda alert: cluster_reachable(alert, now_ms),
            )
        if limits.stalled_severity is None:
            self._judge_disabled("stalled", lambda alert: monitor_running(alert, now_ms))
        else:
            self._judge_stalled(now_ms, limits.stalled_severity, away_s, opens=opens)

    def _judge_stalled(self, now_ms: int, severity: Severity, away_s: float, *, opens: bool) -> None:
        limits, progress = self._limits, self._progress
        stuck_s, losing_s = progress.seconds_stuck(), progress.seconds_losing()
        is_late = losing_s > limits.stalled_s >= stuck_s
        why = progress.dying or progress.trouble or f"no batch has ended for {round(stuck_s)} s"
        if is_late and not progress.is_dying:
            why = "; ".join(filter(None, (progress.lagging, progress.trouble)))
        self._judge(
            "stalled",
            opens
            and (max(stuck_s, losing_s) > limits.stalled_s or progress.is_dying)
            and away_s <= ANSWERING_S,
            # While Kafka is away the job cannot be judged: an open alert stays open.
            max(stuck_s, losing_s) <= limits.stalled_s
            and progress.has_batch_since_answer
            and not progress.deaths,
            lambda: find_stalled(
                progress.cluster,
                now_ms - round(max(stuck_s, losing_s) * 1000),
                now_ms,
                why,
                severity=severity,
                runbook_base=limits.runbook_base,
                is_late=is_late,
            ),
            lambda alert: monitor_running(alert, now_ms),
        )

    def _judge_disabled(self, name: str, resolve: Callable[[Alert], Alert]) -> None:
        if name in self._open:
            self._say(resolve(self._open.pop(name)))

    def _judge(
        self,
        name: str,
        holds: bool,
        is_over: bool,
        fire: Callable[[], Alert],
        resolve: Callable[[Alert], Alert],
    ) -> None:
        if name not in self._open and holds:
            self._open[name] = fire()
            self._say(self._open[name])
        elif name in self._open and is_over:
            self._say(resolve(self._open.pop(name)))

    def _say(self, alert: Alert) -> None:
        level = logging.WARNING if alert.status is AlertStatus.FIRING else logging.INFO
        _log.log(level, "%s %s: %s", alert.name, alert.status, alert.summary)
        self._deliver(alert)


class Supervisor:
    """Judges every job once a second."""

    def __init__(
        self,
        watched: Sequence[Watched],
        after: Callable[[], None] = lambda: None,
        *,
        opens: Callable[[], bool] = lambda: True,
    ) -> None:
        """Prepare.

        Args:
            watched: the jobs.
            after: called after each look.
            opens: whether alerts may fire; false while another process reports them.
        """
        self._opens = opens
        self._watched = watched
        self._after = after
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="supervisor", daemon=True)

    def start(self) -> None:
        """Start, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Stop."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=5)

    @property
    def is_alive(self) -> bool:
        """False once the thread has ended."""
        return self._thread.is_alive()

    def _look_on(self) -> None:
        while not self._stopped.wait(_LOOK_S):
            self.look()

    def look(self) -> None:
        """Judge every job once."""
        opens = self._opens()
        for one in self._watched:
            try:
                one.look(time.time_ns() // 1_000_000, opens=opens)
            except Exception:
                _log.exception("the supervisor failed to judge a cluster")  # and must look again in any case
        try:
            self._after()
        except Exception:
            _log.exception("the supervisor failed to store its open alerts")
