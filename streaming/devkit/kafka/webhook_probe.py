"""A webhook receiver that remembers its notifications, for the demo, live tests and measurements."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import msgspec


class ReceivedAlert(msgspec.Struct, frozen=True):
    """One alert of one notification."""

    received_at_ms: int
    idempotency_key: str
    status: str
    labels: dict[str, str]
    annotations: dict[str, str]
    fingerprint: str

    @property
    def subject(self) -> tuple[str, str]:
        """Alert name and group."""
        return self.labels["alertname"], self.labels["group"]

    @property
    def first_culprit(self) -> str:
        """The text about the culprit that is named first."""
        return self.annotations.get("culprit", "").split("; ")[0]


class WebhookProbe:
    """An HTTP server on a free port of 127.0.0.1; every POST is an Alertmanager body."""

    def __init__(self) -> None:
        """Listens at once; answers from ``start`` on."""
        self._told: list[ReceivedAlert] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self._remember))
        self._thread = threading.Thread(target=self._server.serve_forever, name="webhook-probe", daemon=True)

    @property
    def url(self) -> str:
        """Where to post."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    @property
    def told(self) -> list[ReceivedAlert]:
        """All that was received so far, in order."""
        with self._lock:
            return list(self._told)

    def firing(self) -> list[ReceivedAlert]:
        """What was received as firing, in order."""
        return [told for told in self.told if told.status == "firing"]

    def _remember(self, body: dict[str, Any], key: str) -> None:
        now_ms = time.time_ns() // 1_000_000
        told = [
            ReceivedAlert(
                now_ms, key, alert["status"], alert["labels"], alert["annotations"], alert["fingerprint"]
            )
            for alert in body["alerts"]
        ]
        with self._lock:
            self._told += told

    def start(self) -> None:
        """Starts answering."""
        self._thread.start()

    def stop(self) -> None:
        """Stops, and frees the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        """Starts it."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops it."""
        self.stop()


def _handler(remember: Any) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Takes a notification; 400 for what is no Alertmanager body."""

        def do_POST(self) -> None:
            """Answers 200 once the notification is kept."""
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            try:
                remember(json.loads(body), self.headers.get("Idempotency-Key", ""))
                self.send_response(200)
            except (ValueError, KeyError, TypeError, RecursionError):
                self.send_response(400)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            """Says nothing."""

    return Handler
