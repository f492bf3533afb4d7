"""The notifier on a real Kafka: cursors, compaction's memory, and an unclean death."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from alerts.alert.alert import Alert, AlertStatus, Severity
from alerts.delivery.alert_log import GROUP_PREFIX, Cursor
from streaming.config.config import parse_config
from streaming.config.plan import plan_of
from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.devkit.kafka.webhook_probe import WebhookProbe
from streaming.driver import alerts_topic
from streaming.driver.alerts_topic import AlertsTopicKeeper
from streaming.health.query_progress import Progress
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients.clients import consumer, producer
from streaming.kafka_clients.fenced import FencedProducer
from streaming.kafka_clients.whole_topics import read_whole
from streaming.notify.kafka_alert_log import KafkaAlertLog
from tests.live.support.stage import await_that, need_jars

pytestmark = pytest.mark.kafka

TOPIC = "groupwatch-alerts"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    need_jars("broker")
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka"), offsets_partitions=4, heap="384m") as cluster:
        cluster.create_topic(TOPIC, partitions=1)
        yield cluster


@pytest.fixture(scope="module")
def write(kafka: EmbeddedKafka) -> Iterator[Callable[..., None]]:
    out = producer(kafka.address)

    def one(alert_id: str, revision: int = 0, *, ended: bool = False) -> None:
        now_ms = time.time_ns() // 1_000_000
        alert = Alert(
            id=alert_id,
            revision=revision,
            name="RebalanceStorm",
            cluster="live",
            group="g",
            status=AlertStatus.RESOLVED if ended else AlertStatus.FIRING,
            severity=Severity.WARNING,
            starts_at_ms=now_ms,
            ends_at_ms=now_ms if ended else None,
            detected_at_ms=now_ms,
            summary="s",
            cause="c",
        )
        out.send(TOPIC, key=alert_id.encode(), value=msgspec.json.encode(alert)).get(timeout=60)

    yield one
    out.close()


@pytest.fixture
def probe() -> Iterator[WebhookProbe]:
    with WebhookProbe() as made:
        yield made


class Process:
    """``groupwatch notify`` as operators run it."""

    def __init__(self, kafka: EmbeddedKafka, probe: WebhookProbe, folder: Path, receiver: str) -> None:
        config = folder / f"{receiver}.yaml"
        config.write_text(
            json.dumps(
                {
                    "clusters": [{"name": "live", "bootstrap_servers": kafka.bootstrap_servers}],
                    "receivers": [{"name": receiver, "webhook": {"url": probe.url}}],
                }
            )
        )
        self.child = subprocess.Popen(
            [sys.executable, "-m", "streaming", "notify", "--config", str(config)],
            stderr=(folder / "notify.log").open("ab"),
        )

    def end(self, how: signal.Signals) -> int:
        """Send a signal and return the exit code."""
        os.kill(self.child.pid, how)
        return self.child.wait(30)


def cursor_of(kafka: EmbeddedKafka, receiver: str) -> Cursor | None:
    address = KafkaAddress((kafka.bootstrap_servers,))
    log = KafkaAlertLog(consumer(address, group_id=f"{GROUP_PREFIX}{receiver}"), TOPIC)
    try:
        return log.committed().get(0)
    finally:
        log.close()


def test_the_log_reads_seeks_and_commits_on_a_real_broker(
    kafka: EmbeddedKafka, write: Callable[..., None]
) -> None:
    """Every call of the protocol means the same in Kafka as in the tests' memory."""
    write("protocol")
    log = KafkaAlertLog(consumer(kafka.address, group_id=f"{GROUP_PREFIX}protocol"), TOPIC)
    assert log.committed() == {}
    log.seek({})
    end = log.ends()[0]
    records = []

    def read_all() -> bool:
        records.extend(log.poll(250))
        return log.positions()[0] >= end

    await_that(read_all, "the topic is read to its end")
    assert records[-1].key == b"protocol"
    log.commit({0: Cursor(end, "gw1=")})
    assert log.committed() == {0: Cursor(end, "gw1=")}
    log.seek({0: end - 1})
    again = await_that(lambda: log.poll(250), "the last record is read again")
    assert len(again) == 1
    log.close()


def test_kill_and_stop_lose_nothing_and_repeat_nothing_committed(
    kafka: EmbeddedKafka, write: Callable[..., None], probe: WebhookProbe, tmp_path: Path
) -> None:
    """Delivered and committed, then SIGKILL; news while it is dead; a clean stop; the end is still told."""
    first = Process(kafka, probe, tmp_path, "oncall")
    write("k1")
    await_that(lambda: "k1/0" in [told.idempotency_key for told in probe.told], "k1 is told")
    offset = cursor_of(kafka, "protocol")
    assert offset is not None
    await_that(
        lambda: (cursor_of(kafka, "oncall") or Cursor(0)).offset > offset.offset,
        "its cursor is committed",
    )
    first.end(signal.SIGKILL)
    seen = len(probe.told)
    write("k2")
    write("k3")
    write("k3", 1, ended=True)
    second = Process(kafka, probe, tmp_path, "oncall")
    await_that(lambda: len(probe.told) > seen, "k2 is told")
    write("k1", 1, ended=True)
    await_that(lambda: probe.told[-1].idempotency_key == "k1/1", "the end of k1 is told")
    assert [told.idempotency_key for told in probe.told[seen:]] == ["k2/0", "k1/1"]
    assert second.end(signal.SIGTERM) == 0
    third = Process(kafka, probe, tmp_path, "oncall")
    write("k4")
    await_that(lambda: probe.told[-1].idempotency_key == "k4/0", "k4 is told")
    assert [told.idempotency_key for told in probe.told[seen:]] == ["k2/0", "k1/1", "k4/0"]
    assert third.end(signal.SIGTERM) == 0


def test_an_alert_that_is_long_over_gets_a_tombstone_once_its_receivers_have_it(
    kafka: EmbeddedKafka, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not while a receiver's cursor stands before its last record; what fires stays."""
    monkeypatch.setattr(alerts_topic, "KEPT_MS", -60_000)
    config = parse_config(
        f"""
clusters: [{{name: live, bootstrap_servers: ["{kafka.bootstrap_servers}"]}}]
receivers: [{{name: slow, log: {{}}}}]
"""
    )
    write("open")
    write("over", 1, ended=True)
    log = KafkaAlertLog(consumer(kafka.address, group_id=f"{GROUP_PREFIX}slow"), TOPIC)
    end = log.ends()[0]
    log.commit({0: Cursor(end - 1, "")})
    adopted: list[str] = []
    outputs = FencedProducer(kafka.address, "groupwatch-live")
    caretaker = AlertsTopicKeeper(
        plan_of(config, config.clusters[0]),
        Progress("live"),
        outputs=lambda: outputs,
        adopt=lambda alerts: adopted.extend(alert.id for alert in alerts),
    )
    assert "open" in {alert.id for alert in caretaker.at_start()}
    caretaker.look()
    assert "over" not in tombstones(kafka)
    log.commit({0: Cursor(end, "")})
    log.close()
    caretaker.look()
    assert "over" in tombstones(kafka)
    assert "open" not in tombstones(kafka)
    before = len(tombstones(kafka))
    caretaker.look()
    assert len(tombstones(kafka)) == before
    outputs.close()
    assert adopted == []


def tombstones(kafka: EmbeddedKafka) -> list[str]:
    reader = consumer(kafka.address)
    try:
        return [key.decode() for key, value in read_whole(reader, TOPIC) if value is None]
    finally:
        reader.close()
