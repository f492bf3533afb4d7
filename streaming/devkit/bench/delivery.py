"""The row about delivery: from an alert's record to the receiver's word that it has the alert.

For each kind of receiver: alerts one after another, then a thousand at once.  One webhook is told by way of
a real alerts topic, as ``groupwatch notify`` reads it; the others get the same alerts without Kafka, which
shows what the receiver itself costs.  The services run on this machine, so no network is part of a figure.
"""

import contextlib
import logging
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from alerts.alert import Alert, AlertStatus, Severity
from alerts.delivery import Notifier, OpenLog
from alerts.delivery.receivers import Delivery, Notification, Outcome, Receiver, ReceiverContext
from streaming.config import Config
from streaming.devkit.bench.rig import BenchError, say
from streaming.devkit.bench.targets import percentile
from streaming.devkit.bench.twins import can_make_services, mail_server, services
from streaming.devkit.kafka import EmbeddedKafka, WebhookProbe, free_ports
from streaming.kafka_clients import producer
from streaming.notify import alert_logs, receiver_of

SINGLES = 50
AT_ONCE = 1_000
_PATIENCE_S = 120.0
_TOPIC = "groupwatch-alerts"

Fire = Callable[[Alert], None]
"""Records one alert, as the job does when it has detected it."""


class Timed:
    """A receiver around another: notes when each alert was taken."""

    def __init__(self, inner: Receiver) -> None:
        self.name = inner.name
        self.max_age_ms = inner.max_age_ms
        self.renew_ms = inner.renew_ms
        self.batch_max = inner.batch_max
        self.takes_silenced = inner.takes_silenced
        self.attempts = 0
        self.taken_s: dict[str, float] = {}
        self._inner = inner
        self._changed = threading.Condition()

    def deliver(self, notification: Notification) -> Delivery:
        """Let the other deliver, and note the time of its success."""
        delivery = self._inner.deliver(notification)
        now_s = time.monotonic()
        with self._changed:
            self.attempts += 1
            if delivery.outcome is Outcome.DELIVERED:
                for alert in notification.alerts:
                    self.taken_s.setdefault(alert.id, now_s)
            self._changed.notify_all()
        return delivery

    def await_all(self, ids: Mapping[str, float]) -> None:
        """Return when all of these alerts are taken.

        Raises:
            BenchError: it took too long.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: ids.keys() <= self.taken_s.keys(), _PATIENCE_S):
                missing = len(ids.keys() - self.taken_s.keys())
                raise BenchError(f"{self.name} did not take {missing} alerts within {_PATIENCE_S:.0f} s")

    def close(self) -> None:
        """Close the other."""
        self._inner.close()


def delivery(folder: Path, *, scale: float, cores: int = 0) -> dict[str, Any]:
    """Measure each kind; returns the row.

    Raises:
        BenchError: a service did not start, or took not all alerts.
    """
    singles, at_once = max(5, int(SINGLES * scale)), max(10, int(AT_ONCE * scale))
    kinds: dict[str, Any] = {}
    for name, measured in KINDS.items():
        say(f"delivery to {name}")
        kinds[name] = measured(folder, singles, at_once)
    told = kinds["webhook_by_topic"]
    return {"singles": singles, "at_once": at_once, "topic_p99_ms": told["p99_ms"], "kinds": kinds}


def _figures(
    receiver: Receiver, singles: int, at_once: int, logs: Mapping[str, OpenLog], fire: Fire | None
) -> dict[str, Any]:
    """Deliver to ``receiver``; ``fire`` records an alert, None: the notifier is handed it."""
    timed = Timed(receiver)
    notifier = Notifier([timed], (), logs)
    notifier.start()
    record = fire or notifier.direct
    try:
        _warm(timed, record)
        alone = [_seconds(timed, record, f"single-{number}", 1)[0] for number in range(singles)]
        attempts, cpu_s = timed.attempts, time.process_time()
        together = _seconds(timed, record, "burst", at_once)
        return {
            "p50_ms": _ms(percentile(alone, 0.5)),
            "p99_ms": _ms(percentile(alone, 0.99)),
            "at_once_p50_ms": _ms(percentile(together, 0.5)),
            "at_once_p99_ms": _ms(percentile(together, 0.99)),
            "at_once_last_ms": _ms(max(together)),
            "at_once_attempts": timed.attempts - attempts,
            "at_once_cpu_s": round(time.process_time() - cpu_s, 3),
        }
    finally:
        notifier.stop()


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


def _warm(timed: Timed, record: Fire) -> None:
    """Open connections and load what is loaded once."""
    _seconds(timed, record, "warm", 1)


def _seconds(timed: Timed, record: Fire, name: str, count: int) -> list[float]:
    """Record alerts, and return how long it took until each was taken."""
    began_s: dict[str, float] = {}
    for number in range(count):
        alert = _alert(f"{name}-{number}")
        began_s[alert.id] = time.monotonic()
        record(alert)
    timed.await_all(began_s)
    return [timed.taken_s[alert_id] - start_s for alert_id, start_s in began_s.items()]


def _alert(name: str) -> Alert:
    now_ms = time.time_ns() // 1_000_000
    return Alert(
        id=f"bench-{name}",
        revision=0,
        name="RebalanceStorm",
        cluster="bench",
        group=name,
        status=AlertStatus.FIRING,
        severity=Severity.WARNING,
        starts_at_ms=now_ms,
        ends_at_ms=None,
        detected_at_ms=now_ms,
        summary=f"group {name} rebalanced 6 times in 5 minutes",
        cause="A member joins and leaves again and again.",
        cost="12 partitions had no owner for 40 s.",
        advice="Look at the member's log.",
    )


# --- the kinds ----------------------------------------------------------------------------------------


def _config(kind: str, servers: list[str], **options: Any) -> Config:
    values = {
        "clusters": [{"name": "bench", "bootstrap_servers": servers}],
        "receivers": [{"name": kind, kind: options}],
    }
    return Config.model_validate(values)


def _receiver(kind: str, **options: Any) -> Receiver:
    """Return a receiver as a configuration describes it."""
    return receiver_of(_config(kind, ["nowhere:9092"], **options).receivers[0], ReceiverContext())


def _webhook_by_topic(folder: Path, singles: int, at_once: int) -> dict[str, Any]:
    with EmbeddedKafka(folder / "kafka-delivery") as kafka, WebhookProbe() as probe, ExitStack() as stack:
        kafka.create_topic(_TOPIC)
        writer = producer(kafka.address)
        stack.callback(writer.close, timeout=5)
        config = _config("webhook", kafka.bootstrap_servers.split(","), url=probe.url)

        def fire(alert: Alert) -> None:
            writer.send(_TOPIC, key=alert.id.encode(), value=msgspec.json.encode(alert))

        return _figures(
            _receiver("webhook", url=probe.url),
            singles,
            at_once,
            alert_logs(config),
            fire,
        )


def _webhook(_folder: Path, singles: int, at_once: int) -> dict[str, Any]:
    with WebhookProbe() as probe:
        return _figures(_receiver("webhook", url=probe.url), singles, at_once, {}, None)


def _alertmanager(folder: Path, singles: int, at_once: int) -> dict[str, Any]:
    if shutil.which("prometheus-alertmanager") is None:
        return {"skipped": "prometheus-alertmanager is not on the PATH"}
    with _alertmanager_process(folder / "alertmanager") as url:
        return _figures(_receiver("alertmanager", urls=[url]), singles, at_once, {}, None)


@contextmanager
def _alertmanager_process(folder: Path) -> Iterator[str]:
    """Run Debian's Alertmanager, which tells nobody; yields its address."""
    folder.mkdir(parents=True)
    (folder / "config.yml").write_text('{"route": {"receiver": "none"}, "receivers": [{"name": "none"}]}')
    (port,) = free_ports(1)
    command = ["prometheus-alertmanager", "--config.file=config.yml", "--storage.path=data"]
    command += ["--cluster.listen-address=", f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        _await_answer(f"{url}/-/ready")
        yield url
    finally:
        process.kill()
        process.wait()


def _await_answer(url: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(url, timeout=5).is_success:
                return
        time.sleep(0.05)
    raise BenchError(f"{url} did not answer within 30 s")


def _mail(_folder: Path, singles: int, at_once: int) -> dict[str, Any]:
    with mail_server() as port:
        url = f"mailto://127.0.0.1:{port}/?from=groupwatch@example.org&to=oncall@example.org"
        receiver = _receiver("apprise", url=url)
        return _figures(receiver, singles, at_once, {}, None)


def _chat(folder: Path, singles: int, at_once: int) -> dict[str, Any]:
    return _by_proxy("chat", f"slack://T{'A' * 8}/B{'B' * 8}/{'c' * 24}", folder, singles, at_once)


def _pager(folder: Path, singles: int, at_once: int) -> dict[str, Any]:
    return _by_proxy("pager", f"pagerduty://{'k' * 32}@{'a' * 20}/bench/kafka", folder, singles, at_once)


def _by_proxy(name: str, url: str, folder: Path, singles: int, at_once: int) -> dict[str, Any]:
    """Measure a service in the Internet, for which a twin on this machine answers."""
    if not can_make_services():
        return {"skipped": "openssl is not on the PATH"}
    with services(folder / name):
        return _figures(_receiver("apprise", url=url), singles, at_once, {}, None)


def _log(folder: Path, singles: int, at_once: int) -> dict[str, Any]:
    logger = logging.getLogger("groupwatch.alerts")
    handler = logging.FileHandler(folder / "delivery.log")
    logger.addHandler(handler)
    logger.propagate = False
    try:
        return _figures(_receiver("log"), singles, at_once, {}, None)
    finally:
        logger.removeHandler(handler)
        logger.propagate = True
        handler.close()


KINDS: Mapping[str, Callable[[Path, int, int], dict[str, Any]]] = {
    "webhook_by_topic": _webhook_by_topic,
    "webhook": _webhook,
    "alertmanager": _alertmanager,
    "mail": _mail,
    "chat": _chat,
    "pager": _pager,
    "log": _log,
}
