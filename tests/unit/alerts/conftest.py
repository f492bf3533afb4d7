"""A real HTTP server for the receivers to post to, and alerts to post."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest

from alerts.alert import Alert, AlertStatus, Culprit, Severity


class Web:
    """A webhook endpoint: answers with ``answers`` in turn (then 200) and keeps what was posted."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str]]] = []
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
                self.send_header("Content-Length", "4")
                self.end_headers()
                self.wfile.write(b"body")

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
