"""What an embedded cluster is made of: its plan, its ports and each broker's ``server.properties``."""

import base64
import random
import socket
import uuid
from pathlib import Path
from typing import Any

import msgspec

from streaming.devkit.kafka.log4j2 import EVENT_BYTES_MAX
from streaming.devkit.kafka.versions import RELEASES, Release

EVENTS_TOPIC = "groupwatch-events"


class EmbeddedKafkaError(Exception):
    """The cluster cannot be started as asked; the message is one sentence with the way out."""


class EmbeddedKafkaUsageError(EmbeddedKafkaError):
    """What was asked for cannot be had, whatever the machine."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All that is fixed when a cluster is first started; kept beside its data as ``cluster.json``."""

    version: str
    cluster_id: str
    ports: tuple[int, ...]
    controller_ports: tuple[int, ...]
    request_log: bool = True
    coordinator_log: bool = True
    events_topic: str = EVENTS_TOPIC
    events_partitions: int = 4
    offsets_partitions: int = 50
    rebalance_delay_ms: int = 3000
    heap: str = "512m"
    properties: dict[str, str] = {}

    @property
    def release(self) -> Release:
        """What its version needs."""
        return RELEASES[self.version]


def broker_folder(data_dir: Path, broker: int) -> Path:
    """Where one broker's configuration, data and logs are."""
    return data_dir / f"broker-{broker}"


def log_files(data_dir: Path, broker: int) -> list[Path]:
    """``server.log`` and ``kafka-request.log`` of one broker."""
    logs = broker_folder(data_dir, broker) / "logs"
    return [logs / "server.log", logs / "kafka-request.log"]


def planned(data_dir: Path) -> Plan | None:
    """The plan of the cluster whose data lies in ``data_dir``, if there is one."""
    path = data_dir / "cluster.json"
    return msgspec.json.decode(path.read_bytes(), type=Plan) if path.exists() else None


def new_plan(brokers: int, port: int | None, **settings: Any) -> Plan:
    """A plan with ports and an id of its own; ``settings`` are the other fields of ``Plan``.

    Raises:
        EmbeddedKafkaError: a port from ``port`` on is taken.
    """
    if port is None:
        ports = free_ports(2 * brokers)
    else:
        ports = list(range(port, port + brokers)) + free_ports(brokers)
        _refuse_taken(ports)
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return Plan(
        cluster_id="g" + cluster_id[1:],  # an id must not begin with "-", or the tool takes it for an option
        ports=tuple(ports[:brokers]),
        controller_ports=tuple(ports[brokers:]),
        **settings,
    )


def _refuse_taken(ports: list[int]) -> None:
    for port in ports:
        if is_open(port):
            raise EmbeddedKafkaError(
                f"Port {port} of 127.0.0.1 is taken: stop what listens there, or choose --port."
            )


def is_open(port: int) -> bool:
    """Whether something listens on this port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Ports of a loopback address that were free a moment ago, all different.

    They lie below the range from which systems take ports for outgoing connections (32768 and up on
    Linux): one of those was seen to be taken before its broker bound it, and a stopped broker must find
    its port again.
    """
    free: list[int] = []
    for port in random.sample(range(15_000, 32_768), 2_000):
        if len(free) == count:
            break
        if _can_bind(host, port):
            free.append(port)
    return free


def _can_bind(host: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def broker_properties(plan: Plan, broker: int, folder: Path) -> str:
    """The text of ``server.properties`` of one broker, which is a controller too."""
    count = len(plan.ports)
    replicas = str(min(3, count))
    in_sync = str(min(2, count))
    voters = [f"{n}@127.0.0.1:{port}" for n, port in enumerate(plan.controller_ports, start=1)]
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(broker),
        "controller.quorum.voters": ",".join(voters),
        "listeners": (
            f"PLAINTEXT://127.0.0.1:{plan.ports[broker - 1]},"
            f"CONTROLLER://127.0.0.1:{plan.controller_ports[broker - 1]}"
        ),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(folder / "data"),
        # Otherwise the appender's first line creates the events topic with one partition.
        "auto.create.topics.enable": "false",
        "message.max.bytes": str(EVENT_BYTES_MAX),
        "offsets.topic.num.partitions": str(plan.offsets_partitions),
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "3",
        **_internal_topics(plan.release, replicas, in_sync),
        "group.initial.rebalance.delay.ms": str(plan.rebalance_delay_ms),
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
        "num.network.threads": "2",
        "num.io.threads": "4",
        **plan.release.settings,
        **plan.properties,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _internal_topics(release: Release, replicas: str, in_sync: str) -> dict[str, str]:
    settings = {}
    for prefix in release.replicated:
        settings[f"{prefix}.replication.factor"] = replicas
        settings[f"{prefix}.min.isr"] = in_sync
        settings[f"{prefix}.num.partitions"] = "3"
    return settings
