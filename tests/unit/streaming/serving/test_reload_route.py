"""POST /-/reload: who may ask, and what is answered."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from streaming.config.config import Config, parse_config
from streaming.config.reloading import Changes, Reloads, changes
from streaming.config.server import HttpConfig
from streaming.serving.http import HttpServer
from tests.unit.streaming.fed_view import FedView

OLD = "clusters: [{name: a, bootstrap_servers: ['127.0.0.1:1']}]\n"


class Process:
    """A process that takes every configuration."""

    def __init__(self) -> None:
        self.config = parse_config(OLD)
        self.is_good: list[bool] = []

    def change(self, config: Config) -> Changes:
        """Take it."""
        found = changes(self.config, config)
        self.config = found.config
        return found

    def reloaded(self, *, is_good: bool) -> None:
        """Note it."""
        self.is_good.append(is_good)


class Health:
    """All is well."""

    def clusters(self) -> list[dict[str, Any]]:
        """Return none."""
        return []

    def problems(self) -> list[str]:
        """Return none."""
        return []


@pytest.fixture
def text() -> list[str]:
    return [OLD]


@pytest.fixture
def process() -> Process:
    return Process()


@pytest.fixture
def post(text: list[str], process: Process) -> Iterator[Callable[..., httpx.Response]]:
    reloads = Reloads(lambda: parse_config(text[0]))
    view = FedView(["a"], clock_ms=lambda: 0)
    server = HttpServer(HttpConfig(port=0), view, Health(), CollectorRegistry(), reloads=reloads)
    port = server.start()
    over = threading.Event()

    def serve() -> None:
        while not over.wait(0.01):
            reloads.serve(process)

    thread = threading.Thread(target=serve)
    thread.start()

    def ask(**headers: str) -> httpx.Response:
        return httpx.post(f"http://127.0.0.1:{port}/-/reload", headers=headers, timeout=20)

    yield ask
    over.set()
    thread.join()
    server.stop()


def test_what_changed_and_what_waits_is_answered(
    post: Callable[..., httpx.Response], text: list[str], process: Process
) -> None:
    """The paths, as the file spells them."""
    text[0] = f"{OLD}receivers: [{{name: r, log: {{}}}}]\ncheckpoint: /elsewhere\n"
    answer = post()
    assert (answer.status_code, answer.json()) == (
        200,
        {"error": "", "changed": ["receivers"], "needs_restart": ["checkpoint"]},
    )
    assert process.is_good == [True]


def test_a_wrong_file_is_refused_with_every_mistake(
    post: Callable[..., httpx.Response], text: list[str], process: Process
) -> None:
    """And changes nothing."""
    text[0] = "clusters: []\nnonsense: 1\n"
    answer = post()
    assert answer.status_code == 400
    assert "nonsense" in answer.json()["error"]
    assert (process.is_good, process.config) == ([False], parse_config(OLD))


def test_a_page_of_another_site_may_not_ask(post: Callable[..., httpx.Response], process: Process) -> None:
    """A browser would send it without anybody's knowledge."""
    assert post(Origin="https://elsewhere.example").status_code == 403
    assert process.is_good == []
