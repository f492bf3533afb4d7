"""Limits for each client of the HTTP server: connections, time for a request, time for an answer.

The server shares its process with the delivery of alerts.  So strangers' sockets must never use up the
process's files, and a client that sends or reads slowly must not stay connected for ever.
"""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS_MAX = 100
"""Most open connections; a scraper, some browsers and a load balancer's checks need a dozen."""
REQUEST_S = 10.0
"""Time until a request is complete, body included."""
ANSWER_S = 60.0
"""Time from the complete request until the answer was taken; the longest story needs some 10 s."""
STREAM_PATH = "/api/v1/events"
"""Its answer may last, as long as the client takes it."""
REQUEST_BYTES_MAX = 128 * 1024
"""Most bytes of a request line with headers; a group name of 32,767 bytes takes three times that."""


class BoundedProtocol(H11Protocol):
    """One connection with a deadline for each stage; at the limit the oldest idle one is closed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._answering = False
        self._request_bytes = 0

    @property
    def _streams(self) -> bool:
        """The answer is a stream of events, which has no end."""
        return self._answering and self.scope is not None and self.scope["path"] == STREAM_PATH

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection; at the limit close the oldest one without a request, else this one."""
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
        """A complete request was read, and its answer is not sent yet."""
        return self._answering

    @property
    def since_s(self) -> float:
        """The end of the present deadline on the loop's clock: the oldest connection has the smallest."""
        return self._deadline.when() if self._deadline else 0.0

    def end(self) -> None:
        """Close at once, even in the middle of an answer."""
        self._expect(None)
        self.connections.discard(self)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take bytes; a body, which no handler reads, is bounded as well."""
        self._request_bytes += len(data)
        if self._request_bytes > 2 * REQUEST_BYTES_MAX:
            self.end()
            return
        super().data_received(data)

    def handle_events(self) -> None:
        """Handle what was sent, and start the answer's deadline once the request is complete."""
        super().handle_events()
        is_whole = self.conn.their_state in (h11.DONE, h11.MUST_CLOSE)
        if is_whole and not self._answering and self.cycle is not None and not self.cycle.response_complete:
            self._answering = True
            self._expect(ANSWER_S)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the client to take the answer."""
        self._answering = False
        self._request_bytes = 0
        self._expect(REQUEST_S if self.transport.get_write_buffer_size() == 0 else ANSWER_S)
        super().on_response_complete()

    def _expect(self, seconds: float | None) -> None:
        """Close the connection unless the next stage is reached in time."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._overdue)

    def _overdue(self) -> None:
        """End, unless this is a stream whose client takes what it is sent."""
        if self._streams and not self.flow.write_paused:
            self._expect(ANSWER_S)
        else:
            self.end()


def _in_order(connections: set[Any]) -> list[BoundedProtocol]:
    known = [one for one in connections if isinstance(one, BoundedProtocol)]
    return sorted(known, key=lambda one: one.since_s)
