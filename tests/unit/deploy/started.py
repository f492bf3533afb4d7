"""A groupwatch that a test has started: where it listens, and its first answer."""

import socket
import subprocess
import time

import httpx

STARTED_WITHIN_S = 120


def free_port() -> int:
    """Return a port that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def first_answer(url: str, process: subprocess.Popen[bytes]) -> httpx.Response:
    """Return the first answer of a server that is starting.

    Raises:
        httpx.TransportError: its process ended, or took too long.
    """
    until = time.monotonic() + STARTED_WITHIN_S
    while True:
        try:
            return httpx.get(url)
        except httpx.TransportError:
            if process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.2)
