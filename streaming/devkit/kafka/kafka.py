"""A real KRaft cluster of one or three brokers on 127.0.0.1, with its logs shipped to the events topic."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from streaming import kafka_clients
from streaming.devkit.kafka.log4j1 import log4j1_properties
from streaming.devkit.kafka.log4j2 import EVENT_BYTES_MAX, Logging, log4j2_yaml
from streaming.devkit.kafka.plan import (
    EmbeddedKafkaError,
    EmbeddedKafkaUsageError,
    broker_folder,
    broker_properties,
    is_open,
    log_files,
    new_plan,
    planned,
)
from streaming.devkit.kafka.process import Tracked, start_tracked, stop_tracked, tracked_by
from streaming.devkit.kafka.shipping import is_shipping, start_shipping, stop_shipping
from streaming.jars import (
    DEFAULT_VERSIONS,
    QUICK_COMPILER,
    Tell,
    broker_archive_file,
    ensure_jars,
    java_command,
    locked_versions,
    taking,
    tell_stderr,
)
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import KafkaConnectionError, KafkaError, UnknownBrokerIdError

START_SECONDS_MAX = 180.0
"""A broker needs 4 s alone; on a small, busy machine one needed 31 s."""


class EmbeddedKafka:
    """One cluster in one folder; brokers are numbered from 1.

    Lines that the brokers of Kafka 4 log before the events topic exists (the first seconds of the
    first start) are in the files ``broker-<n>/logs/`` only; files of older brokers are shipped whole.
    """

    def __init__(
        self,
        data_dir: Path | str,
        *,
        brokers: int = 1,
        version: str = DEFAULT_VERSIONS["broker"],
        port: int | None = None,
        request_log: bool = True,
        coordinator_log: bool = True,
        events_partitions: int = 4,
        offsets_partitions: int = 50,
        rebalance_delay_ms: int = 3000,
        heap: str = "512m",
        properties: Mapping[str, str] | None = None,
        tell: Tell = tell_stderr,
    ) -> None:
        """Plans a cluster; nothing runs before ``start``.

        Args:
            data_dir: made if missing; a folder that holds a cluster already keeps that one's plan.
            brokers: 1 or 3.
            version: of Kafka, one of the lock's.
            port: of the first broker, the others follow; None takes free ones.
            request_log: ``kafka.request.logger`` at DEBUG; it can be changed at run time.
            coordinator_log: ship the coordinator's INFO lines.
            events_partitions: of the events topic.
            offsets_partitions: of ``__consumer_offsets``.
            rebalance_delay_ms: how long an empty group waits for more members.
            heap: of each broker, as Java spells it.
            properties: more broker settings; they win over ours.
            tell: where progress goes, a line at a time.

        Raises:
            EmbeddedKafkaUsageError: for a number of brokers or a version that cannot be had.
        """
        if brokers not in (1, 3):
            raise EmbeddedKafkaUsageError(f"An embedded cluster has 1 or 3 brokers, not {brokers}.")
        if version not in locked_versions("broker"):
            known = ", ".join(locked_versions("broker"))
            raise EmbeddedKafkaUsageError(f"There is no embedded Kafka {version}; known versions: {known}.")
        self.data_dir = Path(data_dir).resolve()
        self._tell = tell
        self.plan = planned(self.data_dir) or new_plan(
            brokers,
            port,
            version=version,
            request_log=request_log,
            coordinator_log=coordinator_log,
            events_partitions=events_partitions,
            offsets_partitions=offsets_partitions,
            rebalance_delay_ms=rebalance_delay_ms,
            heap=heap,
            properties=dict(properties or {}),
        )

    @classmethod
    def existing(cls, data_dir: Path | str, *, tell: Tell = tell_stderr) -> "EmbeddedKafka | None":
        """The cluster whose data lies in ``data_dir``, or None."""
        if planned(Path(data_dir).resolve()) is None:
            return None
        return cls(data_dir, tell=tell)

    @property
    def bootstrap_servers(self) -> str:
        """All brokers' addresses, as clients want them."""
        return ",".join(f"127.0.0.1:{port}" for port in self.plan.ports)

    @property
    def broker_ids(self) -> list[int]:
        """1, or 1 to 3."""
        return list(range(1, len(self.plan.ports) + 1))

    @property
    def address(self) -> KafkaAddress:
        """The same for ``streaming.kafka_clients``."""
        return KafkaAddress(tuple(self.bootstrap_servers.split(",")))

    def folder(self, broker: int) -> Path:
        """Where one broker's configuration, data and logs are."""
        return broker_folder(self.data_dir, broker)

    def log_files(self, broker: int) -> list[Path]:
        """``server.log`` and ``kafka-request.log`` of one broker."""
        return log_files(self.data_dir, broker)

    def pid(self, broker: int) -> int | None:
        """The process id of a broker, or None if it does not run."""
        tracked = self._tracked(broker)
        return tracked.pid if tracked else None

    @property
    def lacks_shipper(self) -> bool:
        """Whether its log files should be shipped by a process of ours that does not run."""
        return self.plan.release.log4j == 1 and not is_shipping(self.data_dir)

    def start(self) -> None:
        """Starts what is not running, and returns when all brokers answer and the topics exist.

        Raises:
            EmbeddedKafkaError: a broker ended or did not get ready; the message names its log.
            JarError: the jars cannot be had.
        """
        self.data_dir.mkdir(parents=True, exist_ok=True)
        (self.data_dir / "cluster.json").write_bytes(msgspec.json.encode(self.plan))
        with ExitStack() as undo:
            missing = [broker for broker in self.broker_ids if self._tracked(broker) is None]
            for broker in missing:
                undo.callback(self.stop_broker, broker, hard=True)
            self._launch(missing)
            self._await_ready()
            if self.plan.release.log4j == 1:
                start_shipping(self.data_dir)
            undo.pop_all()

    def stop(self) -> None:
        """Stops every broker, the data stays; safe to call twice."""
        stop_shipping(self.data_dir)
        # All at once and hard: the last controllers of a quorum cannot stop gently anyway.
        for broker in self.broker_ids:
            stop_tracked(self._pid_file(broker), hard=len(self.broker_ids) > 1)

    def start_broker(self, broker: int) -> None:
        """Starts one broker again, after ``stop_broker``."""
        if self._tracked(broker) is None:
            self._launch([broker])
        self._await(lambda: broker in self._live_brokers(), f"broker {broker} did not come back")

    def stop_broker(self, broker: int, *, hard: bool = False) -> None:
        """Stops one broker: gently, so that leaders move first, or as a power cut would."""
        stop_tracked(self._pid_file(broker), hard=hard, grace_seconds=30.0)

    def create_topic(
        self, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        """Creates a topic on all brokers and waits for it; one that exists is left as it is."""
        spec: dict[str, Any] = {
            "num_partitions": partitions,
            "replication_factor": len(self.broker_ids),
            "configs": dict(configs or {}),
        }
        self._await(lambda: self._has_made(name, spec), f"the topic {name} was not created")

    def _has_made(self, name: str, spec: Mapping[str, Any]) -> bool:
        admin = kafka_clients.admin_client(self.address)
        try:
            if name not in set(admin.list_topics()):
                admin.create_topics({name: dict(spec)}, timeout_ms=20_000, wait_for_metadata=True)
        except (UnknownBrokerIdError, KafkaConnectionError):
            return False  # brokers that have just come do not tell of one another yet, or before they listen
        finally:
            admin.close()
        return True

    def group_states(self, groups: Sequence[str]) -> dict[str, tuple[str, int]]:
        """What the coordinator itself says of each group: its state and the number of its members.

        Raises:
            KafkaError: it does not answer.
        """
        admin = kafka_clients.admin_client(self.address)
        try:
            answers: dict[str, dict[str, Any]] = admin.describe_groups(list(groups))
        finally:
            admin.close()
        return {name: (str(one["group_state"]), len(one["members"])) for name, one in answers.items()}

    def __enter__(self) -> Self:
        """Starts the cluster."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops it."""
        self.stop()

    # --- one broker -------------------------------------------------------------------------------

    def _pid_file(self, broker: int) -> Path:
        return self.folder(broker) / "broker.pid"

    def _tracked(self, broker: int) -> Tracked | None:
        return tracked_by(self._pid_file(broker))

    def _launch(self, brokers: Sequence[int]) -> None:
        jars = ensure_jars("broker", self.plan.version, tell=self._tell)
        java = [java_command(), "-Duser.timezone=UTC", QUICK_COMPILER, *taking(broker_archive_file(jars))]
        java += ["-cp", ":".join(map(str, jars))]
        for broker in brokers:
            self._write_files(broker)
        self._format([broker for broker in brokers if not self._is_formatted(broker)], java)
        for broker in brokers:
            options = [f"-Xmx{self.plan.heap}", "-Xms128m", *self._write_logging(broker)]
            command = [*java, *options, *self.broker_options(), "kafka.Kafka"]
            self._run(command, broker, self._pid_file(broker))

    def broker_options(self) -> list[str]:
        """What else Java is told that runs a broker; whoever needs something overrides this."""
        return []

    def _write_files(self, broker: int) -> None:
        folder = self.folder(broker)
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        properties = broker_properties(self.plan, broker, folder)
        (folder / "server.properties").write_text(properties, encoding="utf-8")

    def _write_logging(self, broker: int) -> list[str]:
        """Writes what the broker's log4j reads, and returns the options that name it."""
        logging, folder = self._logging(broker), self.folder(broker)
        if self.plan.release.log4j == 1:
            path = folder / "log4j.properties"
            path.write_text(self.log4j1_text(logging), encoding="utf-8")
            return [f"-Dkafka.logs.dir={folder / 'logs'}", f"-Dlog4j.configuration=file:{path}"]
        path = folder / "log4j2.yaml"
        path.write_text(self.log4j2_text(logging), encoding="utf-8")
        return [f"-Dlog4j2.configurationFile={path}"]

    def _is_formatted(self, broker: int) -> bool:
        return (self.folder(broker) / "data" / "meta.properties").exists()

    def _format(self, brokers: Sequence[int], java: Sequence[str]) -> None:
        """Writes the cluster's id into empty data folders, as KRaft demands before the first start."""
        tool = [*java, "kafka.tools.StorageTool", "format", "-t", self.plan.cluster_id, "-c"]
        pid_files = [self.folder(broker) / "format.pid" for broker in brokers]
        for broker, pid_file in zip(brokers, pid_files, strict=True):
            self._run(tool, broker, pid_file)
        self._await(lambda: not any(map(tracked_by, pid_files)), "the storage tool did not end")
        for broker in brokers:
            if not self._is_formatted(broker):
                logs = self.folder(broker) / "logs"
                raise EmbeddedKafkaError(f"The data folder could not be formatted: {last_error(logs)}")

    def _run(self, java: Sequence[str], broker: int, pid_file: Path) -> None:
        """Starts Java for a broker; its settings file is the last argument, and the mark of the process."""
        folder = self.folder(broker)
        properties = str(folder / "server.properties")
        output = folder / "logs" / "output.txt"
        start_tracked([*java, properties], mark=properties, pid_file=pid_file, output=output, cwd=folder)

    def _logging(self, broker: int) -> Logging:
        return Logging(
            broker_id=broker,
            folder=self.folder(broker) / "logs",
            bootstrap_servers=self.bootstrap_servers,
            events_topic=self.plan.events_topic,
            request_log=self.plan.request_log,
            coordinator_log=self.plan.coordinator_log,
        )

    def log4j2_text(self, logging: Logging) -> str:
        """The log4j2.yaml of one broker; a test that tries another one overrides this."""
        return log4j2_yaml(logging)

    def log4j1_text(self, logging: Logging) -> str:
        """The log4j.properties of one broker before Kafka 4; to be overridden as well."""
        return log4j1_properties(logging)

    # --- readiness --------------------------------------------------------------------------------

    def _await_ready(self) -> None:
        everyone = set(self.broker_ids)
        self._await(lambda: self._live_brokers() == everyone, "the brokers did not get ready")
        events = {
            "max.message.bytes": str(EVENT_BYTES_MAX),
            "retention.ms": str(24 * 3600 * 1000),
            "message.timestamp.type": "LogAppendTime",
        }
        self.create_topic(self.plan.events_topic, partitions=self.plan.events_partitions, configs=events)
        self._await(self._offsets_exist, "__consumer_offsets was not created")

    def _live_brokers(self) -> set[int]:
        """The brokers in the metadata; empty while none answers."""
        self._fail_if_one_ended()
        # Ask first whether any port is open, since the client's own patience is much longer.
        if not any(is_open(port) for port in self.plan.ports):
            return set()
        try:
            admin = kafka_clients.admin_client(self.address)
        except KafkaError:
            return set()
        try:
            brokers = admin.describe_cluster()["brokers"]
            return {int(broker["broker_id"]) for broker in brokers if not broker.get("is_fenced")}
        except KafkaError:
            return set()
        finally:
            admin.close()

    def _fail_if_one_ended(self) -> None:
        for broker in self.broker_ids:
            if self._pid_file(broker).exists() and self._tracked(broker) is None:
                logs = self.folder(broker) / "logs"
                raise EmbeddedKafkaError(
                    f"Broker {broker} ended by itself; {logs} says why: {last_error(logs)}"
                )

    def _offsets_exist(self) -> bool:
        """Asks for a coordinator, which makes Kafka create the topic that the monitor reads."""
        admin = kafka_clients.admin_client(self.address)
        try:
            admin.describe_groups(["groupwatch-embedded-probe"])
        except KafkaError:
            return False
        finally:
            admin.close()
        return True

    def _await(self, condition: Callable[[], bool], complaint: str) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not condition():
            if time.monotonic() > deadline:
                raise EmbeddedKafkaError(f"After {START_SECONDS_MAX:.0f} s {complaint}; see {self.data_dir}.")
            time.sleep(0.1)


def last_error(logs: Path) -> str:
    """The last line of a broker's logs that looks like a reason, cut to 300 characters."""
    for name in ("server.log", "output.txt"):
        try:
            lines = (logs / name).read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            continue
        for line in reversed(lines):
            if "ERROR" in line or "Exception" in line or "error" in line:
                return line[:300]
    return "no error was logged"
