"""A server over a real socket, and who asks it."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from streaming.serving.http import HttpServer

Asking = Callable[[HttpServer], httpx.Client]


@pytest.fixture
def asking() -> Iterator[Asking]:
    """Start a server; return a client.  Both end with the test."""
    ends: list[Callable[[], None]] = []

    def start(server: HttpServer) -> httpx.Client:
        client = httpx.Client(base_url=f"http://127.0.0.1:{server.start()}", timeout=20, trust_env=False)
        ends.extend((client.close, server.stop))
        return client

    yield start
    for end in ends:
        end()
