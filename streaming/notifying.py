"""The notifier as the configuration wants it, over the alerts topics of Kafka."""

import logging
import signal
import threading
from collections.abc import Callable

from prometheus_client import CollectorRegistry

from alerts.alert_log import GROUP_PREFIX, AlertLog, KafkaAlertLog
from alerts.metrics import OwnMetrics
from alerts.notifier import Notifier, OpenLog
from alerts.receivers import Receiver
from alerts.receivers.log import LogReceiver
from alerts.receivers.webhook import WebhookReceiver
from alerts.routing import Route
from streaming.config import Config, ReceiverConfig, RouteConfig
from streaming.config_quiet import quiet_of
from streaming.kafka_io import KafkaAddress, consumer

_log = logging.getLogger("groupwatch.notifier")


def make_notifier(
    config: Config, metrics: OwnMetrics, caught_up: Callable[[str], bool | None] = lambda _cluster: None
) -> Notifier:
    """Return the notifier with every receiver, route and alerts topic of ``config``."""
    return Notifier(
        [receiver_of(one, config.http.external_url) for one in config.receivers],
        [route_of(one) for one in config.routes],
        alert_logs(config),
        count=metrics.notified,
        caught_up=caught_up,
        quiet=quiet_of(config.silences, config.maintenance),
    )


def receiver_of(config: ReceiverConfig, external_url: str) -> Receiver:
    """Return the receiver that one entry of ``receivers`` describes."""
    if config.webhook is None:
        return LogReceiver(config.name)
    return WebhookReceiver(
        config.name,
        config.webhook.url,
        headers=config.webhook.headers,
        timeout_s=config.webhook.timeout_ms / 1000,
        max_age_ms=config.webhook.max_age_ms,
        external_url=external_url,
    )


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
    )


def alert_logs(config: Config) -> dict[str, OpenLog]:
    """Return how to open each alerts topic: one for all clusters, or one on each of them."""
    output, topic = config.output, config.output.alerts_topic
    if output.bootstrap_servers:
        return {"output": _opener(KafkaAddress(tuple(output.bootstrap_servers), output.client), topic)}
    return {
        cluster.name: _opener(KafkaAddress(tuple(cluster.bootstrap_servers), cluster.client), topic)
        for cluster in config.clusters
    }


def _opener(address: KafkaAddress, topic: str) -> OpenLog:
    def open_log(receiver: str) -> AlertLog:
        reader = consumer(address, group_id=f"{GROUP_PREFIX}{receiver}")
        try:
            return KafkaAlertLog(reader, topic)
        except BaseException:
            reader.close()
            raise

    return open_log


def run(config: Config) -> int:
    """Deliver alerts until SIGTERM or SIGINT, apart from the job; returns the exit code."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    metrics = OwnMetrics(CollectorRegistry(), receivers=[one.name for one in config.receivers])
    notifier = make_notifier(config, metrics)
    notifier.start()
    while not stopping.wait(1.0):
        for name in notifier.dead_threads():
            _log.error("thread %s is dead", name)
            return 1
    notifier.stop()
    return 0
