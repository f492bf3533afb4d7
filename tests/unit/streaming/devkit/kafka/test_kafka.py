"""What an embedded cluster is planned to be; nothing is started here."""

import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kafka.errors import KafkaConnectionError, KafkaError, UnknownBrokerIdError

from streaming.devkit.kafka.commands import up
from streaming.devkit.kafka.kafka import EmbeddedKafka, last_error
from streaming.devkit.kafka.plan import EmbeddedKafkaUsageError, Plan, broker_properties, free_ports
from streaming.devkit.kafka.versions import RELEASES
from streaming.jars.jars import locked_versions


def _properties(plan: Plan, broker: int = 1) -> dict[str, str]:
    text = broker_properties(plan, broker, Path("/data/broker-1"))
    return dict(line.split("=", 1) for line in text.splitlines())


def _plan(brokers: int, **more: dict[str, str]) -> Plan:
    ports = tuple(range(1000, 1000 + brokers))
    return Plan(version="4.3.1", cluster_id="x", ports=ports, controller_ports=ports, **more)  # type: ignore[arg-type]


def _write_plan(folder: Path, plan: Plan) -> None:
    (folder / "cluster.json").write_bytes(msgspec.json.encode(plan))


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, "1", "1"), (3, "3", "2")])
def test_internal_topics_are_replicated_as_far_as_brokers_go(
    brokers: int, replicas: str, in_sync: str
) -> None:
    """One broker must not wait for three, and three must survive one."""
    settings = _properties(_plan(brokers))

    assert settings["offsets.topic.replication.factor"] == replicas
    assert settings["transaction.state.log.min.isr"] == in_sync


@pytest.mark.parametrize("version", locked_versions("broker"))
def test_every_locked_version_is_known_in_all_that_differs(version: str) -> None:
    """Jars without a row of what the version needs, or a row without jars, start nothing."""
    assert set(RELEASES) == set(locked_versions("broker"))
    assert msgspec.structs.replace(_plan(1), version=version).release is RELEASES[version]


def test_brokers_get_no_settings_of_later_versions() -> None:
    """Kafka 3 has no share groups to configure."""
    old = _properties(msgspec.structs.replace(_plan(1), version="3.4.1"))
    new = _properties(_plan(1))

    assert set(new) - set(old) == {
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.num.partitions",
    }


def test_given_properties_win() -> None:
    """A test may ask for anything."""
    plan = _plan(1, properties={"offsets.topic.replication.factor": "7", "group.max.size": "2"})

    settings = _properties(plan)

    assert (settings["offsets.topic.replication.factor"], settings["group.max.size"]) == ("7", "2")


def test_a_folder_keeps_its_cluster(tmp_path: Path) -> None:
    """Ports and id come from the folder, or clients and data would not fit any more."""
    _write_plan(tmp_path, _plan(3))

    again = EmbeddedKafka(tmp_path, brokers=1)

    assert again.plan == _plan(3)


def test_an_empty_folder_has_no_cluster(tmp_path: Path) -> None:
    """`down` and `status` do not invent one."""
    assert EmbeddedKafka.existing(tmp_path) is None


def test_two_brokers_are_refused(tmp_path: Path) -> None:
    """A quorum of two is worse than one."""
    with pytest.raises(EmbeddedKafkaUsageError, match="1 or 3 brokers, not 2"):
        EmbeddedKafka(tmp_path, brokers=2)


def test_an_unknown_version_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    """The lock decides what can be had."""
    with pytest.raises(EmbeddedKafkaUsageError, match=r"no embedded Kafka 2\.8\.0; .*: .*4\.3\.1"):
        EmbeddedKafka(tmp_path, version="2.8.0")


def test_another_cluster_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    """`up --brokers 1` over a cluster of three would break it."""
    _write_plan(tmp_path, _plan(3))

    with pytest.raises(EmbeddedKafkaUsageError, match=r"holds a cluster of 3 broker\(s\) of Kafka 4\.3\.1"):
        up(data=tmp_path, brokers=1)


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    """It is said before Kafka fails on it half a minute later."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(Exception, match=f"Port {port} of 127.0.0.1 is taken"):
            EmbeddedKafka(tmp_path, port=port)


def test_free_ports_are_all_different() -> None:
    """Six are needed for three brokers."""
    assert len(set(free_ports(6))) == 6


def test_the_last_error_of_a_log_is_told(tmp_path: Path) -> None:
    """Why a broker ended stands in its own words."""
    (tmp_path / "server.log").write_text("[x] INFO fine\n[x] ERROR no space left\n[x] INFO bye\n")

    assert last_error(tmp_path) == "[x] ERROR no space left"


class _Admin:
    """A client of brokers that have just come; each call fails as ``troubles`` say, until there are none."""

    def __init__(self, troubles: list[KafkaError]) -> None:
        self.made: list[str] = []
        self._troubles = troubles

    def list_topics(self) -> list[str]:
        if self._troubles:
            raise self._troubles.pop()
        return list(self.made)

    def create_topics(self, topics: dict[str, Any], **_: Any) -> None:
        self.made += topics

    def close(self) -> None:
        pass


def test_a_topic_is_asked_for_again_while_brokers_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is in the metadata may not listen yet, or be unknown to the one that is asked."""
    admin = _Admin([UnknownBrokerIdError(), KafkaConnectionError("111 ECONNREFUSED")])
    monkeypatch.setattr("streaming.devkit.kafka.kafka.kafka_clients.admin_client", lambda _: admin)

    EmbeddedKafka(tmp_path).create_topic("orders")

    assert admin.made == ["orders"]
