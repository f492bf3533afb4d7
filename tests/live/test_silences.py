"""Silences on a real Kafka: added in the topic, heeded by a notifier, kept over a restart, ended."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from alerts.alert.alert import Alert, AlertStatus, Severity
from streaming.config.config import load_config
from streaming.config.plan import plan_of
from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.devkit.kafka.webhook_probe import WebhookProbe
from streaming.kafka_clients.clients import producer
from streaming.pipeline.topics import ensure_topics
from tests.live.support.stage import await_that, need_jars

pytestmark = pytest.mark.kafka


class Scene:
    """A broker, a receiver, and the commands on one configuration."""

    def __init__(self, kafka: EmbeddedKafka, probe: WebhookProbe, folder: Path) -> None:
        self.kafka, self.probe = kafka, probe
        self.config = folder / "groupwatch.yaml"
        self._log = folder / "notify.log"
        settings = {
            "clusters": [{"name": "live", "bootstrap_servers": kafka.bootstrap_servers}],
            "checkpoint": str(folder),
            "notify_http": {"port": 0},
            "receivers": [{"name": "oncall", "webhook": {"url": probe.url}}],
        }
        self.config.write_text(json.dumps(settings))
        loaded = load_config(self.config)
        ensure_topics(plan_of(loaded, loaded.clusters[0]))
        self._child: subprocess.Popen[bytes] | None = None

    def silence(self, *words: str) -> str:
        """Run ``groupwatch silence``; return what it prints."""
        command = [sys.executable, "-m", "streaming", "silence", *words, "--config", str(self.config)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def start(self) -> None:
        """Start ``groupwatch notify``."""
        self._child = subprocess.Popen(
            [sys.executable, "-m", "streaming", "notify", "--config", str(self.config)],
            stderr=self._log.open("ab"),
        )

    def kill(self) -> None:
        """End it without a word."""
        if self._child is not None:
            os.kill(self._child.pid, signal.SIGKILL)
            self._child.wait(30)
            self._child = None

    def write(self, alert_id: str, group: str) -> None:
        """Let an alert fire."""
        now_ms = time.time_ns() // 1_000_000
        alert = Alert(
            id=alert_id,
            revision=0,
            name="RebalanceStorm",
            cluster="live",
            group=group,
            status=AlertStatus.FIRING,
            severity=Severity.WARNING,
            starts_at_ms=now_ms,
            ends_at_ms=None,
            detected_at_ms=now_ms,
            summary="s",
            cause="c",
        )
        out = producer(self.kafka.address)
        try:
            value = msgspec.json.encode(alert)
            out.send("groupwatch-alerts", key=alert_id.encode(), value=value).get(timeout=60)
        finally:
            out.close()

    def told(self) -> list[str]:
        """Return the groups that the receiver was told of, in order."""
        return [one.labels["group"] for one in self.probe.told]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    need_jars("broker")
    with (
        EmbeddedKafka(tmp_path / "kafka", offsets_partitions=4, heap="384m") as kafka,
        WebhookProbe() as probe,
    ):
        made = Scene(kafka, probe, tmp_path)
        try:
            yield made
        finally:
            made.kill()


def test_a_silence_holds_over_a_restart_until_it_is_ended(scene: Scene) -> None:
    """What is silenced waits, others are told; what still fires at the end is told once."""
    added = scene.silence("add", "--group", "quiet-.*", "--end", "2h", "--comment", "migration", "--json")
    silence_id = json.loads(added)["id"]
    scene.start()
    scene.write("a1", "quiet-1")
    scene.write("a2", "loud")
    await_that(lambda: scene.told() == ["loud"], "the other alert is told")

    assert silence_id in scene.silence("list")
    scene.kill()
    scene.start()
    scene.write("a3", "loud-too")
    await_that(lambda: "loud-too" in scene.told(), "the notifier is back")
    assert "quiet-1" not in scene.told()

    scene.silence("add", "--alert-id", "a4", "--comment", "known")
    scene.write("a4", "known")
    scene.silence("expire", silence_id)
    await_that(lambda: "quiet-1" in scene.told(), "what still fires is told")
    scene.write("a5", "last")
    await_that(lambda: "last" in scene.told(), "the last alert is told")
    assert scene.told().count("quiet-1") == 1
    assert "known" not in scene.told()
