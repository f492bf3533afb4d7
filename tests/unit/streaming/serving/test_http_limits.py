"""The HTTP server under clients that ask too much, or too slowly; real sockets."""

import gzip
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from alerts.metrics.exporter import SnapshotCollector
from streaming.config.server import HttpConfig
from streaming.serving import http_limits
from streaming.serving.history import History
from streaming.serving.http import HttpServer
from tests.unit.streaming.fed_view import FedView

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Rows

NOW_MS = 1_700_000_100_000
_LONG_S = 50


class Ready:
    """A job that is well."""

    def clusters(self) -> list[dict[str, Any]]:
        """Return the clusters."""
        return [{"cluster": "eu", "ready": True}]

    def problems(self) -> list[str]:
        """Return the problems."""
        return []


class Topics:
    """Topics whose reading takes until somebody lets it go on."""

    def __init__(self) -> None:
        self.readers = threading.Semaphore(0)
        self.go_on = threading.Event()

    def __call__(self, cluster: str, group: str, since_ms: int) -> History:
        """Read nothing, slowly."""
        self.readers.release()
        self.go_on.wait(_LONG_S)
        return History([], [], [])


@pytest.fixture
def view(rows: "Rows") -> FedView:
    made = FedView(["eu"], clock_ms=lambda: NOW_MS)
    made.apply("eu", [rows.report("g")])
    return made


@pytest.fixture
def topics() -> Iterator[Topics]:
    made = Topics()
    yield made
    made.go_on.set()


@pytest.fixture
def port(view: FedView, topics: Topics) -> Iterator[int]:
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(view, groups_max=100, clock_ms=lambda: NOW_MS))
    server = HttpServer(HttpConfig(port=0), view, Ready(), registry, topics)
    yield server.start()
    topics.go_on.set()
    server.stop()


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=_LONG_S)


def _get(port: int, path: str, **headers: str) -> httpx.Response:
    with httpx.Client(timeout=_LONG_S, trust_env=False) as client:
        return client.get(f"http://127.0.0.1:{port}{path}", headers=headers)


def _get_long(port: int, path: str) -> tuple[int, bytes]:
    """As ``_get``, for paths longer than httpx has them."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=_LONG_S)) as client:
        client.request("GET", path)
        answer = client.getresponse()
        return answer.status, answer.read()


def _files() -> int:
    """Return how many files this process has open, the clients' sides included."""
    return len(os.listdir("/proc/self/fd"))


def _drip(client: socket.socket, byte: bytes) -> None:
    """Send a byte a hundredth of a second, until the other side has had enough."""
    until = time.monotonic() + _LONG_S
    while time.monotonic() < until:
        client.sendall(byte)
        time.sleep(0.01)


def _eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _LONG_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_half_open_connections_leave_files_for_the_rest_of_the_process(port: int) -> None:
    """400 of them hold at most 100 of our files, and a scraper still gets its answer."""
    before = _files()
    with ExitStack() as stack:
        for _ in range(400):
            stack.enter_context(closing(_connect(port)))
        assert _get(port, "/healthz").status_code == 200
        ours = 400
        _eventually(lambda: _files() - before - ours <= http_limits.CONNECTIONS_MAX + 5)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET /metrics HTTP/1.1\r\nHost: x\r\n", id="half-a-head"),
        pytest.param(b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n123", id="half-a-body"),
    ],
)
def test_a_request_that_is_never_whole_ends(port: int, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """Who connects has ten seconds to say what it wants."""
    monkeypatch.setattr(http_limits, "REQUEST_S", 0.2)
    with closing(_connect(port)) as client:
        client.sendall(sent)
        taken = b"".join(iter(lambda: client.recv(65_536), b""))
    assert taken == b"" or b"HTTP/1.1 405" in taken


def test_a_dripping_request_ends(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then buys no time."""
    monkeypatch.setattr(http_limits, "REQUEST_S", 0.3)
    with closing(_connect(port)) as client, pytest.raises(OSError, match=r"reset|[Bb]roken pipe"):
        _drip(client, b"x")


def test_an_endless_head_ends(port: int) -> None:
    """Memory is bounded as well."""
    with closing(_connect(port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\n")
        try:
            for _ in range(1_000):
                client.sendall(b"a: " + b"b" * 1_000 + b"\r\n")
            answer = client.recv(100)
        except OSError:
            answer = b""
    assert answer in (b"",) or answer.startswith(b"HTTP/1.1 4")


def test_an_answer_that_is_not_taken_ends(
    port: int, view: FedView, rows: "Rows", monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that reads nothing does not keep its answer in our memory for ever."""
    view.apply("eu", [rows.report("x" * 20_000 + str(number)) for number in range(1_000)])
    monkeypatch.setattr(http_limits, "ANSWER_S", 2.0)
    before = _files()
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    with closing(client):
        client.settimeout(_LONG_S)
        client.connect(("127.0.0.1", port))
        client.sendall(b"GET /api/v1/groups?limit=1000 HTTP/1.1\r\nHost: x\r\n\r\n")
        expected = int(client.recv(1_000).lower().partition(b"content-length: ")[2].split(b"\r", 1)[0])
        _eventually(lambda: _files() < before + 2)
        # What lies in the kernel's buffers still comes; the rest went with the connection.
        taken = len(b"".join(iter(lambda: client.recv(65_536), b"")))
    assert 0 < taken < expected


def test_health_is_answered_while_sixty_stories_are_asked_for(port: int, topics: Topics) -> None:
    """Two are told, the others are told to come back, and /healthz waits for none of them.

    Where they come faster than they are answered, the queue sends some away (503) before their turn.
    """
    codes: list[int] = []

    def ask() -> None:
        codes.append(_get(port, "/api/v1/groups/eu/g/explain").status_code)

    askers = [threading.Thread(target=ask) for _ in range(60)]
    for asker in askers:
        asker.start()
    for _ in range(2):
        assert topics.readers.acquire(timeout=_LONG_S)
    assert _get(port, "/healthz").status_code == 200
    _eventually(lambda: codes.count(429) + codes.count(503) == 58)
    topics.go_on.set()
    for asker in askers:
        asker.join(_LONG_S)

    assert codes.count(200) == 2


def test_who_asks_for_too_many_stories_is_told_when_to_ask_again(port: int, topics: Topics) -> None:
    """429 comes with Retry-After and a sentence."""
    askers = [
        threading.Thread(target=_get, args=(port, "/api/v1/groups/eu/g/explain"), daemon=True)
        for _ in range(2)
    ]
    for asker in askers:
        asker.start()
        assert topics.readers.acquire(timeout=_LONG_S)
    answer = _get(port, "/api/v1/groups/eu/g/explain")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "5")
    assert "ask again" in answer.json()["error"]


@pytest.mark.parametrize("name", ["a\nb", "\n", "a\r\nb\n", "x" * 32_767, "\N{PILE OF POO}" * 8_000])
def test_a_group_with_any_name_that_kafka_takes_has_a_page(
    port: int, view: FedView, rows: "Rows", name: str
) -> None:
    """Line breaks, and the longest names that there can be."""
    view.apply("eu", [rows.report(name)])
    status, body = _get_long(port, f"/api/v1/groups/eu/{quote(name, safe='')}")
    assert (status, json.loads(body)["report"]["group"]) == (200, name)


@pytest.mark.parametrize(
    "since", ["9" * 400, "9" * 400 + "d", "9" * 6_000 + "d", "0001-01-01T00:00", "1e400s", "-1d", "", "٣h"]
)
def test_a_number_of_hundreds_of_digits_is_400(port: int, since: str) -> None:
    """A sentence, and no traceback."""
    answer = _get(port, f"/api/v1/groups/eu/g/explain?since={quote(since)}")
    assert answer.status_code == 400
    assert "since: " in answer.json()["error"]
    assert len(answer.text) < 400


def test_metrics_are_compressed_for_who_asks(port: int) -> None:
    """As Prometheus does; who does not ask, or refuses, gets plain text."""
    with closing(_connect(port)) as client:
        client.sendall(
            b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip;q=1.0\r\nConnection: close\r\n\r\n"
        )
        head, _, body = b"".join(iter(lambda: client.recv(65_536), b"")).partition(b"\r\n\r\n")
    assert b"content-encoding: gzip" in head.lower()
    assert gzip.decompress(body) == _get(port, "/metrics", **{"Accept-Encoding": "identity"}).content
    for refused in ("identity", "gzip;q=0", "br"):
        assert "content-encoding" not in _get(port, "/metrics", **{"Accept-Encoding": refused}).headers


class SlowCollector(Collector):
    """Metrics that take until somebody lets them go on; counts how often they are made."""

    def __init__(self) -> None:
        self.made = 0
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Event()

    def collect(self) -> Iterator[Metric]:
        """Make nothing, slowly."""
        self.made += 1
        self.begun.release()
        self.go_on.wait(_LONG_S)
        yield from ()


def test_nothing_is_made_for_scrapers_that_have_gone(view: FedView) -> None:
    """A hundred that ask and close cost two scrapes, and the next one is answered."""
    slow, registry = SlowCollector(), CollectorRegistry(auto_describe=False)
    server = HttpServer(HttpConfig(port=0), view, Ready(), registry)
    port = server.start()
    registry.register(slow)
    made = slow.made  # by registering
    try:
        for _ in range(50):
            with closing(_connect(port)) as client:
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        for _ in range(2):
            assert slow.begun.acquire(timeout=_LONG_S)
        assert _get(port, "/healthz").status_code == 200
        slow.go_on.set()
        assert _get(port, "/metrics").status_code == 200
    finally:
        slow.go_on.set()
        server.stop()

    assert slow.made - made <= 4


def test_who_waits_in_a_long_queue_is_sent_away(view: FedView) -> None:
    """Sixteen may wait for a scrape; the others are told to come back."""
    slow, registry = SlowCollector(), CollectorRegistry(auto_describe=False)
    server = HttpServer(HttpConfig(port=0), view, Ready(), registry)
    port = server.start()
    registry.register(slow)
    codes: list[int] = []
    askers = [
        threading.Thread(target=lambda: codes.append(_get(port, "/metrics").status_code)) for _ in range(30)
    ]
    for asker in askers:
        asker.start()
    _eventually(lambda: codes.count(503) == 12)
    slow.go_on.set()
    for asker in askers:
        asker.join(_LONG_S)
    server.stop()

    assert sorted(codes) == [200] * 18 + [503] * 12


def test_answers_do_not_wait_for_the_acknowledgement_of_their_headers(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which a client sends after 40 ms: each answer is sent at once."""
    at_once: list[int] = []
    made = http_limits.BoundedProtocol.connection_made

    def noted(self: http_limits.BoundedProtocol, transport: Any) -> None:
        sock = transport.get_extra_info("socket")
        at_once.append(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        made(self, transport)

    monkeypatch.setattr(http_limits.BoundedProtocol, "connection_made", noted)
    assert _get(port, "/healthz").status_code == 200
    assert at_once == [1]


def test_the_server_listens_on_the_loopback_address_unless_told_otherwise() -> None:
    """Whoever reaches it reads everything."""
    assert HttpConfig().host == "127.0.0.1"
