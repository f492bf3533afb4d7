"""What the live tests stand on: the job as a process, a webhook receiver, and looks into Kafka."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import pytest
from kafka.structs import TopicPartition

from coordinator_model.decoding.line_text import Line
from coordinator_model.decoding.log_envelope import open_record
from streaming.devkit.kafka import free_ports
from streaming.jars.jars import JarError, Kind, Tell, ensure_jars, tell_stderr
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients.clients import admin_client, consumer

PATIENCE_S = 240.0
"""Spark needs 15 s to start on an idle machine, and minutes on a busy one."""


def now_ms() -> int:
    """The time of this machine, which is also the brokers'."""
    return time.time_ns() // 1_000_000


def await_that(holds: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """Wait until ``holds`` returns something true and return that; fails with ``what``.

    Who asks rests for as long as the question took: reading a topic from its beginning, again and again,
    would take the processors from those who are asked.
    """
    asked = time.monotonic()
    deadline = asked + patience_s
    while not (found := holds()):
        now = time.monotonic()
        assert now < deadline, f"not within {patience_s:.0f} s: {what}"
        time.sleep(max(0.1, now - asked))
        asked = time.monotonic()
    return found


def need_jars(*kinds: Kind, version: str | None = None, tell: Tell = tell_stderr) -> None:
    """Have the jars of these kinds (none named: all); where they are not to be had, skip and say why.

    Args:
        kinds: broker, connector.
        version: of the broker, if not the usual one.
        tell: hears of the progress of a download.
    """
    wanted: tuple[Kind, ...] = kinds or ("broker", "connector")
    for kind in wanted:
        try:
            ensure_jars(kind, version if kind == "broker" else None, tell=tell)
        except JarError as error:
            pytest.skip(f"no jars: {error}")


# --- who is paged -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Page:
    """One alert of one webhook call."""

    received_at_ms: int
    key: str
    status: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Pager:
    """A webhook receiver on one port for all its life, which can be away for a while."""

    def __init__(self) -> None:
        """Take a port; answers after ``open``."""
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}/hook"
        self.pages: list[Page] = []
        self._server: ThreadingHTTPServer | None = None

    def open(self) -> None:
        """Begin to answer."""
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self.pages))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Go away: connections are refused from here on."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def keys(self) -> list[str]:
        """Return ``id/revision`` of all pages, in the order they came."""
        return [page.key for page in list(self.pages)]

    def __enter__(self) -> Self:
        """Open it."""
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


def _handler(pages: list[Page]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key = self.headers.get("Idempotency-Key", "")
            pages.extend(
                Page(now_ms(), key, one["status"], one["labels"], one["annotations"])
                for one in body["alerts"]
            )
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            """Say nothing."""

    return Handler


# --- the job ------------------------------------------------------------------------------------------


class Job:
    """``groupwatch run`` as operators run it, in a process group of its own."""

    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        pager: Pager,
        rules: Mapping[str, Any] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """Write its configuration: the defaults, one receiver, ``rules``, and ``more`` as it is."""
        (self.port,) = free_ports(1)
        self.log = folder / "job.log"
        self.checkpoint = folder / "checkpoint"
        self.config = folder / "groupwatch.yaml"
        self._process: subprocess.Popen[bytes] | None = None
        settings = {
            "clusters": [{"name": "live", "bootstrap_servers": bootstrap.split(",")}],
            "checkpoint": str(self.checkpoint),
            "http": {"host": "127.0.0.1", "port": self.port},
            "rules": dict(rules or {}),
            "receivers": [{"name": "pager", "webhook": {"url": pager.url}}],
            "routes": [{"match": {}, "receivers": ["pager"]}],
            **(more or {}),
        }
        self.config.write_text(json.dumps(settings))

    def start(self, *flags: str, command: str = "run") -> None:
        """Start it; ``await_ready`` says when it is up."""
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "streaming", command, *flags, "--config", str(self.config)],
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def await_ready(self) -> None:
        """Return when ``/ready`` says yes."""
        await_that(self._is_ready, f"the job is ready (see {self.log})")

    def _is_ready(self) -> bool:
        assert self._process is not None
        code = self._process.poll()
        assert code is None, f"the job ended with {code}: {self.log.read_text()[-2000:]}"
        answer = self.get("/ready")
        return answer is not None and answer.status_code == 200

    def get(self, path: str) -> httpx.Response | None:
        """Ask its server; None while it does not answer."""
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=60)
        return None

    def states(self) -> dict[str, str]:
        """Return the state of each group as the API tells it."""
        answer = self.get("/api/v1/groups")
        if answer is None or answer.status_code != 200:
            return {}
        return {one["group"]: one["state"] for one in answer.json()["groups"]}

    def metrics(self) -> str:
        """Return ``/metrics``."""
        answer = self.get("/metrics")
        return "" if answer is None else answer.text

    def counted(self, name: str, source: str, by: str = "reason") -> dict[str, int]:
        """Return a counter of one source by one more of its labels."""
        found = {}
        for line in self.metrics().splitlines():
            if line.startswith(f"{name}{{") and f'source="{source}"' in line:
                key = line.split(f'{by}="', 1)[1].split('"', 1)[0]
                found[key] = int(float(line.rsplit(" ", 1)[1]))
        return found

    def kill(self) -> None:
        """Everything of it at once, as a power cut would."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def freeze_spark(self) -> None:
        """Stop the clock of its JVM: no batch ends, while Python goes on."""
        self._signal_spark(signal.SIGSTOP)

    def thaw_spark(self) -> None:
        """Let the JVM go on."""
        self._signal_spark(signal.SIGCONT)

    def _signal_spark(self, what: signal.Signals) -> None:
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        (jvm,) = [pid for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() == "java"]
        os.kill(int(jvm), what)

    def reload(self) -> None:
        """Let it read its configuration again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    def stop(self) -> int:
        """As an orchestrator would; return the exit code."""
        if self._process is None:
            return 0
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(180)
        except subprocess.TimeoutExpired:
            self.kill()
            return -1


# --- looks into Kafka ---------------------------------------------------------------------------------


def records_of(address: KafkaAddress, topic: str) -> list[tuple[bytes, Any]]:
    """Return value and JSON of every record of a topic, in order within each partition."""
    reader = consumer(address)
    try:
        partitions = [TopicPartition(topic, n) for n in sorted(reader.partitions_for_topic(topic) or ())]
        reader.assign(partitions)
        reader.seek_to_beginning()
        ends = reader.end_offsets(partitions)
        found = []
        while any(reader.position(one) < ends[one] for one in partitions):
            for records in reader.poll(timeout_ms=200).values():
                found += [(record.value, json.loads(record.value)) for record in records if record.value]
        return found
    finally:
        reader.close()


def lines_of(address: KafkaAddress, topic: str = "groupwatch-events") -> list[tuple[Line, int]]:
    """Return every line that was shipped, opened as the monitor does it, with its record's timestamp."""
    reader = consumer(address)
    try:
        partitions = [TopicPartition(topic, n) for n in sorted(reader.partitions_for_topic(topic) or ())]
        reader.assign(partitions)
        reader.seek_to_beginning()
        ends = reader.end_offsets(partitions)
        found = []
        while any(reader.position(one) < ends[one] for one in partitions):
            for records in reader.poll(timeout_ms=200).values():
                found += [
                    (open_record(one.value, key=one.key, timestamp_ms=-1, timezone="UTC"), one.timestamp)
                    for one in records
                ]
        return found
    finally:
        reader.close()


def alerts_of(address: KafkaAddress) -> list[dict[str, Any]]:
    """Return every revision of every alert, repeats left out, in order."""
    found = {(one["id"], one["revision"]): one for _, one in records_of(address, "groupwatch-alerts")}
    return list(found.values())


@dataclass
class Told:
    """All that was told in the end."""

    alerts: list[dict[str, Any]] = field(default_factory=list)
    """Every revision of every alert."""

    def of(self, group: str) -> dict[str, list[dict[str, Any]]]:
        """Return the alerts of a group by name, a revision after the other."""
        found: dict[str, list[dict[str, Any]]] = {}
        for one in self.alerts:
            if one["group"] == group:
                found.setdefault(one["name"], []).append(one)
        return found


def told_in_two_ways(address: KafkaAddress) -> list[tuple[str, int]]:
    """Return (id, revision) of alerts, and (id, -1) of transitions, that have more than one content."""
    contents: dict[tuple[str, int], set[bytes]] = {}
    for topic in ("groupwatch-transitions", "groupwatch-alerts"):
        for raw, one in records_of(address, topic):
            contents.setdefault((one["id"], one.get("revision", -1)), set()).add(raw)
    return [key for key, found in contents.items() if len(found) > 1]


def group_ids(address: KafkaAddress) -> set[str]:
    """Return every group the brokers know."""
    admin = admin_client(address)
    try:
        return {one["group_id"] for one in admin.list_groups()}
    finally:
        admin.close()


def states_of(admin: Any, groups: Iterable[str]) -> dict[str, str]:
    """Return the brokers' own answer about each group's state; groups that gave none are left out."""
    found = {}
    for group in groups:
        try:
            answer = admin.describe_groups([group])
        except Exception:  # noqa: S112 - a question that failed is no evidence of anything
            continue
        state = _state_in(answer, group)
        if state:  # a broker that is not, or not yet, the coordinator answers with an error and no state
            found[group] = state
    return found


def _state_in(answer: Any, group: str) -> str:
    one = answer[group] if isinstance(answer, dict) else answer[0]
    state = one.get("group_state", one.get("state")) if isinstance(one, dict) else one.state
    return str(getattr(state, "value", state))
