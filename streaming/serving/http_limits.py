"""What one client of the HTTP server may take: connections, time for a request, time for an answer.

The server shares its process with the delivery of alerts, so sockets that strangers open must never use
up the files of the process, and a client that sends or reads slowly must not hold on for ever.
"""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS_MAX = 100
"""Open at once; a scraper, some browsers and a load balancer's health checks need a dozen."""
REQUEST_S = 10.0
"""From the first byte that may come until the request is whole, its body included."""
ANSWER_S = 60.0
"""From the whole request until the last byte of the answer was taken: the longest story takes some 10 s."""
REQUEST_BYTES_MAX = 128 * 1024
"""Of the request line with its headers: a group's name of 32,767 bytes takes three times that in a path."""


class BoundedProtocol(H11Protocol):
    """One connection with a deadline at each stage; the oldest idle one gives way to one too many."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._answering = False
        self._request_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or end one: the oldest that has not asked for anything, else this one."""
        super().connection_made(transport)
        self._expect(REQUEST_S)
        if len(self.connections) > CONNECTIONS_MAX:
            idle = (one for one in _in_order(self.connections) if not one.is_answering)
            next(idle, self).end()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._expect(None)
        super().connection_lost(exc)

    @property
    def is_answering(self) -> bool:
        """A whole request was read, and its answer is not out yet."""
        return self._answering

    @property
    def since_s(self) -> float:
        """When the present deadline ends, on the loop's clock: the smallest belongs to the oldest."""
        return self._deadline.when() if self._deadline else 0.0

    def end(self) -> None:
        """Close at once, whatever is under way."""
        self._expect(None)
        self.connections.discard(self)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take bytes; a body, which nothing here reads, is bounded as well."""
        self._request_bytes += len(data)
        if self._request_bytes > 2 * REQUEST_BYTES_MAX:
            self.end()
            return
        super().data_received(data)

    def handle_events(self) -> None:
        """Take in what was sent, and begin to count the answer's time once the request is whole."""
        super().handle_events()
        is_whole = self.conn.their_state in (h11.DONE, h11.MUST_CLOSE)
        if is_whole and not self._answering and self.cycle is not None and not self.cycle.response_complete:
            self._answering = True
            self._expect(ANSWER_S)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the answer to be taken."""
        self._answering = False
        self._request_bytes = 0
        self._expect(REQUEST_S if self.transport.get_write_buffer_size() == 0 else ANSWER_S)
        super().on_response_complete()

    def _expect(self, seconds: float | None) -> None:
        """End the connection unless the next stage is reached in time."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.end)


def _in_order(connections: set[Any]) -> list[BoundedProtocol]:
    known = [one for one in connections if isinstance(one, BoundedProtocol)]
    return sorted(known, key=lambda one: one.since_s)
