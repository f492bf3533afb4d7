"""A groupwatch that a test has started: where it listens, and its first answer."""

import subprocess
import time

import httpx

STARTED_WITHIN_S = 120


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
