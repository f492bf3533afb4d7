"""A real HTTP server for the receivers to post to, and alerts to post."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest

from alerts.alert.alert import Alert, AlertStatus, Culprit, Severity
from alerts.delivery.alert_log import AlertRecord, Cursor


class Web:
    """A webhook endpoint: answers with ``answers`` in turn (then 200) and keeps what was posted."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.text = "body"
        """What each answer says."""
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.arrived = threading.Condition()
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                with web.arrived:
                    web.bodies.append(json.loads(raw))
                    web.headers.append(dict(self.headers.items()))
                    web.paths.append(self.path)
                    web.arrived.notify_all()
                status, headers = web.answers.pop(0) if web.answers else (200, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                text = web.text.encode()
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
                """Keep the test output clean."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    @property
    def url(self) -> str:
        """Where to post."""
        return f"http://127.0.0.1:{self.server.server_address[1]}/hook"

    def wait_for(self, count: int) -> list[dict[str, Any]]:
        """Return the bodies once ``count`` have come."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.bodies) >= count, timeout=20), self.bodies
            return list(self.bodies)

    def close(self) -> None:
        """Stop listening."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def web() -> Iterator[Web]:
    server = Web()
    yield server
    server.close()


BASE = Alert(
    id="a1",
    revision=0,
    name="RebalanceStorm",
    cluster="eu",
    group="payments",
    status=AlertStatus.FIRING,
    severity=Severity.WARNING,
    starts_at_ms=1_700_000_000_123,
    ends_at_ms=None,
    detected_at_ms=1_700_000_001_000,
    summary="payments rebalanced 7 times in 10 minutes",
    cause="one member leaves and joins again and again",
    culprits=(Culprit(member_id="m-1", client_id="app", client_host="/10.0.0.7", share=0.8),),
    cost="3 minutes without consumption",
    advice="look at the restarts of 10.0.0.7",
    runbook="https://runbooks.example/rebalancestorm",
)


@pytest.fixture
def make_alert() -> Callable[..., Alert]:
    def make(**changes: Any) -> Alert:
        return msgspec.structs.replace(BASE, **changes)

    return make


class MemoryTopic:
    """The alerts topic in memory: partitions of records, cursors by receiver, and a switch for outages."""

    def __init__(self, partitions: int = 1, idle_ms: int = 20) -> None:
        self.idle_ms = idle_ms
        """How long a poll waits for news at most; 0 where no other thread brings any."""
        self.partitions: list[list[AlertRecord]] = [[] for _ in range(partitions)]
        self.ends = [0] * partitions
        self.cursors: dict[str, dict[int, Cursor]] = {}
        self.changed = threading.Condition()
        self.is_away = False

    def write(self, *alerts: Alert, partition: int = 0, delay_ms: int = 500) -> None:
        """Append alerts as a producer would, ``delay_ms`` after they were detected."""
        for alert in alerts:
            self.write_raw(
                msgspec.json.encode(alert), alert.id.encode(), partition, alert.detected_at_ms + delay_ms
            )

    def write_raw(self, value: bytes | None, key: bytes, partition: int = 0, timestamp_ms: int = 0) -> None:
        """Append any bytes."""
        with self.changed:
            record = AlertRecord(partition, self.ends[partition], timestamp_ms, key, value)
            self.partitions[partition].append(record)
            self.ends[partition] += 1
            self.changed.notify_all()

    def compact(self) -> None:
        """Keep the newest record of each key, as Kafka's cleaner does."""
        for n, records in enumerate(self.partitions):
            last = {record.key: record for record in records}
            self.partitions[n] = [record for record in records if last[record.key] is record]

    def wait_for_cursor(self, receiver: str, offset: int, partition: int = 0) -> None:
        """Return once that receiver has committed ``offset``."""

        def reached() -> bool:
            cursor = self.cursors.get(receiver, {}).get(partition)
            return cursor is not None and cursor.offset == offset

        with self.changed:
            assert self.changed.wait_for(reached, timeout=20), self.cursors

    def open(self, receiver: str) -> "MemoryLog":
        """Open the topic as one receiver."""
        return MemoryLog(self, receiver)


class MemoryLog:
    """One receiver's view of a ``MemoryTopic``."""

    def __init__(self, topic: MemoryTopic, receiver: str) -> None:
        self.topic = topic
        self.receiver = receiver
        self.at = dict.fromkeys(range(len(topic.partitions)), 0)

    def _check(self) -> None:
        if self.topic.is_away:
            raise ConnectionError("Kafka is away")

    def committed(self) -> dict[int, Cursor]:
        """What this receiver committed."""
        self._check()
        return dict(self.topic.cursors.get(self.receiver, {}))

    def ends(self) -> dict[int, int]:
        """The end offsets."""
        return dict(enumerate(self.topic.ends))

    def positions(self) -> dict[int, int]:
        """Where we are."""
        return dict(self.at)

    def seek(self, positions: Mapping[int, int]) -> None:
        """Go there."""
        self.at = {n: positions.get(n, 0) for n in self.at}

    def poll(self, timeout_ms: int) -> list[AlertRecord]:
        """Everything since; waits a little if there is nothing."""
        self._check()
        with self.topic.changed:
            wait_ms = min(timeout_ms, self.topic.idle_ms)
            if wait_ms and self.at == dict(enumerate(self.topic.ends)):
                self.topic.changed.wait(wait_ms / 1000)
            found = [r for n, rs in enumerate(self.topic.partitions) for r in rs if r.offset >= self.at[n]]
            self.at = dict(enumerate(self.topic.ends))
        return found

    def commit(self, cursors: Mapping[int, Cursor]) -> None:
        """Keep cursors."""
        self._check()
        with self.topic.changed:
            self.topic.cursors.setdefault(self.receiver, {}).update(cursors)
            self.topic.changed.notify_all()

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
def topic() -> MemoryTopic:
    return MemoryTopic()
