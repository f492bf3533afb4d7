"""The embedded cluster is a real one, and its logs arrive where the monitor reads them."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition

from coordinator_model.decoding.line_text import Line
from coordinator_model.decoding.log_envelope import open_record
from streaming.config.config import load_config
from streaming.devkit.kafka.commands import down, status, up
from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.devkit.kafka.log4j2 import Logging
from streaming.devkit.kafka.plan import free_ports
from streaming.devkit.kafka.tailer import Tailer
from streaming.jars import broker_archive_file, ensure_jars
from streaming.kafka_clients import clients as kafka_io
from tests.live.support.stage import await_that

pytestmark = pytest.mark.kafka

DEPLOY = Path(__file__).parents[2] / "deploy" / "log4j2"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """One broker with both loggers shipped."""
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka"), rebalance_delay_ms=500) as cluster:
        cluster.create_topic("orders", partitions=3)
        yield cluster


def _consume_once(cluster: EmbeddedKafka, group: str) -> None:
    """Join, get an assignment, commit and leave."""
    consumer = KafkaConsumer(
        "orders", bootstrap_servers=cluster.bootstrap_servers, group_id=group, client_id=f"{group}-client"
    )
    await_that(
        lambda: bool(consumer.poll(timeout_ms=200) or consumer.assignment()),
        "the consumer has its partitions",
    )
    consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(0)})
    consumer.close()


def _shipped(cluster: EmbeddedKafka, topic: str = "groupwatch-events") -> list[Line]:
    """Every line of an events topic, opened as the monitor does it."""
    consumer = kafka_io.consumer(cluster.address)
    try:
        partitions = [TopicPartition(topic, n) for n in consumer.partitions_for_topic(topic) or ()]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        lines = []
        while any(consumer.position(one) < ends[one] for one in partitions):
            for records in consumer.poll(timeout_ms=200).values():
                lines += [
                    open_record(one.value, key=one.key, timestamp_ms=one.timestamp, timezone="UTC")
                    for one in records
                ]
        return lines
    finally:
        consumer.close()


def _told_of(cluster: EmbeddedKafka, *texts: str, topic: str = "groupwatch-events") -> list[Line]:
    return [line for line in _shipped(cluster, topic) if all(text in line.message for text in texts)]


def test_both_logs_arrive_with_broker_time_and_level(kafka: EmbeddedKafka) -> None:
    """A rebalance and a commit are read from the topic as they happened."""
    before_ms = time.time_ns() // 1_000_000
    _consume_once(kafka, "both")

    await_that(
        lambda: bool(_told_of(kafka, "Group both with generation ", "is now empty.")),
        "the end of the group is shipped",
    )
    await_that(
        lambda: bool(_told_of(kafka, '"groupId":"both"', '"OFFSET_COMMIT"')),
        "its commit is shipped",
    )
    (stabilized,) = _told_of(kafka, "Stabilized group both generation 1 with 1 members.")
    commits = _told_of(kafka, '"groupId":"both"', '"OFFSET_COMMIT"')
    assert (stabilized.broker, stabilized.level) == (1, "INFO")
    assert stabilized.logger == "org.apache.kafka.coordinator.group.GroupMetadataManager"
    assert before_ms <= stabilized.at_ms <= time.time_ns() // 1_000_000
    assert {(line.broker, line.level) for line in commits} == {(1, "DEBUG")}


def test_java_takes_the_archive_of_a_brokers_classes(kafka: EmbeddedKafka) -> None:
    """One that does not fit it leaves aside, without a word that anybody reads."""
    archive = broker_archive_file(ensure_jars("broker"))
    if not archive.exists():
        pytest.skip("make setup could not archive the classes of brokers")

    assert str(archive) in Path(f"/proc/{kafka.pid(1)}/maps").read_text()


def test_no_other_request_is_shipped(kafka: EmbeddedKafka) -> None:
    """Fetches and metadata requests, the appender's own among them, stay in the broker."""
    _consume_once(kafka, "filtered")
    await_that(
        lambda: bool(_told_of(kafka, '"groupId":"filtered"', '"LEAVE_GROUP"')),
        "its leave is shipped",
    )

    names = {
        found.group(1)
        for line in _shipped(kafka)
        if (found := re.search(r'"requestApiKeyName":"(\w+)"', line.message))
    }
    assert names >= {"JOIN_GROUP", "SYNC_GROUP", "OFFSET_COMMIT"}
    assert not names & {"FETCH", "PRODUCE", "METADATA", "API_VERSIONS", "FIND_COORDINATOR"}


def test_the_files_hold_the_same_lines(kafka: EmbeddedKafka) -> None:
    """``replay`` and shippers find in the files what the topic has."""
    _consume_once(kafka, "filed")
    server, requests = kafka.log_files(1)

    await_that(
        lambda: "Stabilized group filed generation 1" in server.read_text(),
        "the line is in the file",
    )
    await_that(lambda: '"groupId":"filed"' in requests.read_text(), "the request is in the file")


def test_the_tailer_ships_what_the_appender_ships(kafka: EmbeddedKafka) -> None:
    """A file shipper gives the same line, of the same broker, at the same time."""
    kafka.create_topic("tailed")
    with Tailer({kafka.log_files(1)[0]: 1}, kafka.address, "tailed"):
        _consume_once(kafka, "tail")
        wanted = "Stabilized group tail generation 1"
        await_that(
            lambda: bool(_told_of(kafka, wanted) and _told_of(kafka, wanted, topic="tailed")),
            "both have shipped the line",
        )

    assert _told_of(kafka, wanted, topic="tailed") == _told_of(kafka, wanted)


def test_the_silent_leader_keeps_its_group_waiting(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """The broker itself says CompletingRebalance, and goes on saying so."""
    command = [
        sys.executable, "-m", "streaming.devkit.consumers", "silent-leader",
        "--bootstrap", kafka.bootstrap_servers, "--group", "silent", "--topic", "orders",
        "--client-id", "silent-1",
    ]  # fmt: skip
    leader = subprocess.Popen(command)
    try:
        await_that(
            lambda: kafka.group_states(["silent"])["silent"] == ("CompletingRebalance", 1),
            "the leader keeps the group waiting",
        )
        beats = '"groupId":"silent"', '"HEARTBEAT"'
        await_that(lambda: len(_told_of(kafka, *beats)) >= 3, "it beats, and goes on waiting")
        assert leader.poll() is None
        assert kafka.group_states(["silent"])["silent"] == ("CompletingRebalance", 1)
    finally:
        leader.kill()
        leader.wait()


def test_up_and_down_keep_the_data_and_touch_nobody_else(tmp_path: Path, kafka: EmbeddedKafka) -> None:
    """A cluster comes back with its topics on its port; another one runs on all the while."""
    (port,) = free_ports(1)
    cluster = up(data=tmp_path / "data", port=port)
    try:
        cluster.create_topic("kept")
        assert down(data=tmp_path / "data")
        assert status(data=tmp_path / "data") == {1: None}
        # Logging outlives the signal: what a broker does while it stops is told to the end.
        assert "App info kafka.server for 1 unregistered" in cluster.log_files(1)[0].read_text()

        again = up(data=tmp_path / "data")

        admin = kafka_io.admin_client(again.address)
        assert "kept" in set(admin.list_topics())
        admin.close()
        assert again.bootstrap_servers == f"127.0.0.1:{port}"
        assert kafka.pid(1) is not None
    finally:
        down(data=tmp_path / "data")


def test_a_broker_that_dies_at_start_is_told_at_once(tmp_path: Path) -> None:
    """A setting that Kafka refuses ends in a sentence with Kafka's own reason."""
    cluster = EmbeddedKafka(tmp_path, properties={"offsets.topic.num.partitions": "0"})

    with pytest.raises(Exception, match=r"(Broker 1 ended by itself|could not be formatted)"):
        cluster.start()
    assert cluster.pid(1) is None


def test_the_file_from_deploy_ships_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What operators copy works in a real broker."""

    class FromDeploy(EmbeddedKafka):
        def log4j2_text(self, logging: Logging) -> str:
            monkeypatch.setenv("GROUPWATCH_BROKER_ID", str(logging.broker_id))
            monkeypatch.setenv("GROUPWATCH_BOOTSTRAP", logging.bootstrap_servers)
            return (DEPLOY / "log4j2-to-kafka.yaml").read_text()

    with FromDeploy(tmp_path, rebalance_delay_ms=500) as cluster:
        cluster.create_topic("orders", partitions=3)
        _consume_once(cluster, "deployed")

        await_that(
            lambda: bool(_told_of(cluster, "Group deployed with generation ", "is now empty.")),
            "the end of the group is shipped",
        )
        await_that(
            lambda: bool(_told_of(cluster, '"groupId":"deployed"', '"OFFSET_COMMIT"')),
            "its commit is shipped",
        )
        assert {line.broker for line in _shipped(cluster)} == {1}


def test_a_killed_broker_comes_back_alone(tmp_path: Path) -> None:
    """With three brokers one can die and be started again, while the others run on."""
    with EmbeddedKafka(tmp_path, brokers=3, rebalance_delay_ms=500, offsets_partitions=3) as cluster:
        cluster.create_topic("orders", partitions=3)
        _consume_once(cluster, "before")
        pid = cluster.pid(2)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await_that(lambda: cluster.pid(2) is None, "the killed broker has ended")
        cluster.start_broker(2)

        assert cluster.pid(2) not in (None, pid)
        assert all(cluster.pid(broker) for broker in (1, 3))


def _start_demo(tmp_path: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "streaming", "demo", "--config-out", str(tmp_path / "demo.yaml")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )


@pytest.mark.spark
def test_the_demo_tells_each_incident_and_nothing_else(tmp_path: Path) -> None:
    """Everything at once, as a newcomer runs it: exit 0, a configuration that can be used, no litter."""
    demo = _start_demo(tmp_path)
    said, _ = demo.communicate(timeout=600)

    assert demo.returncode == 0, said
    assert load_config(tmp_path / "demo.yaml").clusters[0].name == "demo"
    assert list(tmp_path.glob("groupwatch-demo-*")) == []


@pytest.mark.spark
def test_an_interrupted_demo_leaves_nothing_running(tmp_path: Path) -> None:
    """SIGTERM in the middle ends Kafka, the consumers and the job with the demo."""
    demo = _start_demo(tmp_path)
    assert demo.stdout is not None
    for line in demo.stdout:
        if "starting the job" in line:
            break
    started = psutil.Process(demo.pid).children(recursive=True)
    demo.terminate()
    demo.communicate(timeout=120)

    assert len(started) >= 15  # Kafka, fourteen consumers, and the job if it was that quick
    assert demo.returncode == 1
    _, alive = psutil.wait_procs(started, timeout=10)
    assert alive == []
