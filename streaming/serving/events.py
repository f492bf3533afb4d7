"""Server-sent events: browsers learn that something changed, and then ask the API for it.

Batches only leave names here and never wait.  One task of the server's loop passes them on once a second, as
long as anybody listens; a listener that does not take what it is sent is dropped.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from streaming.group_store import GroupStore, KeptGroup
from streaming.serving.api import (
    AlertsChanged,
    Beat,
    GroupsChanged,
    Hello,
    Problem,
)
from streaming.serving.http_limits import STREAM_PATH

PATH = STREAM_PATH
LISTENERS_MAX = 50
NAMES_MAX = 500
_WAITING_MAX = 32
"""Most messages that wait for one listener: half a minute of them."""
_FLUSH_S = 1.0
_BEAT_S = 10.0
_RETRY_MS = 2_000
"""After so long a browser connects again."""

Row = tuple[str, str, bytes]
Signature = tuple[str, int, int, int, int, tuple[str, ...]]


def signature(group: KeptGroup) -> Signature:
    """Return what of a group makes a change that people want to see at once."""
    return (
        str(group.state),
        group.state_since_ms,
        group.generation,
        group.members,
        sum(group.rebalances.values()),
        group.held_up_by,
    )


class _Listener:
    """One browser."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue(_WAITING_MAX)
        self.is_dropped = False

    def put(self, message: bytes | None) -> None:
        """Leave a message, or drop the listener if too many wait; None ends it."""
        try:
            self.queue.put_nowait(message)
        except asyncio.QueueFull:
            self.is_dropped = True


class Hub:
    """Between the batches and the browsers."""

    def __init__(
        self,
        store: GroupStore,
        *,
        clock_ms: Callable[[], int],
        version: str = "",
        flush_s: float = _FLUSH_S,
        beat_s: float = _BEAT_S,
    ) -> None:
        """Prepare.

        Args:
            store: the known groups.
            clock_ms: returns the time.
            version: of this program, for pages that were loaded from another one.
            flush_s: changes are passed on so often.
            beat_s: so often a sign of life is sent.
        """
        self._store = store
        self._clock_ms = clock_ms
        self._version = version
        self._flush_s, self._beat_s = flush_s, beat_s
        self._lock = threading.Lock()
        self._pending: dict[str, set[str]] = {}
        self._has_alerts = False
        self._listeners: set[_Listener] = set()
        self._known: dict[tuple[str, str], Signature] = {}
        self._pump: asyncio.Task[None] | None = None
        self._is_closed = False

    # --- from any thread -----------------------------------------------------------------------------

    def apply(self, cluster: str, rows: Iterable[Row]) -> None:
        """Take the rows of one batch."""
        if not self._listeners:
            return
        names, has_alerts = set(), False
        for kind, key, _ in rows:
            if kind == "report":
                names.add(key)
            elif kind == "alert":
                has_alerts = True
        with self._lock:
            self._has_alerts |= has_alerts
            if names:
                self._pending.setdefault(cluster, set()).update(names)

    def alerts_changed(self) -> None:
        """Take that an alert was raised or ended outside of the batches."""
        self._has_alerts = True

    def close(self) -> None:
        """End all listeners within a second, so that the server can stop."""
        self._is_closed = True

    # --- in the server's loop -------------------------------------------------------------------------

    async def endpoint(self, _: Request) -> Response:
        """Answer with a stream, or 503 if too many listen."""
        if len(self._listeners) >= LISTENERS_MAX or self._is_closed:
            busy = Problem(error=f"{LISTENERS_MAX} browsers listen already; ask for the groups in turns")
            return Response(
                msgspec.json.encode(busy), 503, {"Retry-After": "30"}, media_type="application/json"
            )
        listener = self._joined()
        return StreamingResponse(
            self._messages(listener),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    def _joined(self) -> _Listener:
        listener = _Listener()
        if not self._listeners:
            self._known = {(name, group.group): signature(group) for name, group in self._store.groups()}
        self._listeners.add(listener)
        hello = message("hello", Hello(at_ms=self._clock_ms(), version=self._version))
        listener.put(b"retry: %d\n%s" % (_RETRY_MS, hello))
        if self._pump is None or self._pump.done():
            self._pump = asyncio.get_running_loop().create_task(self._passes_on())
        return listener

    async def _messages(self, listener: _Listener) -> AsyncIterator[bytes]:
        try:
            while not listener.is_dropped:
                one = await listener.queue.get()
                if one is None:
                    return
                yield one
        finally:
            self._listeners.discard(listener)

    async def _passes_on(self) -> None:
        """Pass on what changed, and signs of life, until nobody listens."""
        loop = asyncio.get_running_loop()
        beat_at = loop.time() + self._beat_s
        while self._listeners:
            await asyncio.sleep(self._flush_s)
            if self._is_closed:
                self._tell([None])
                return
            messages: list[bytes | None] = list(self._flushed())
            if loop.time() >= beat_at:
                beat_at = loop.time() + self._beat_s
                messages.append(message("beat", Beat(at_ms=self._clock_ms())))
            self._tell(messages)
        with self._lock:
            self._pending.clear()

    def _tell(self, messages: list[bytes | None]) -> None:
        for listener in list(self._listeners):
            for one in messages:
                listener.put(one)
            if listener.is_dropped:
                self._listeners.discard(listener)

    def _flushed(self) -> Iterable[bytes]:
        with self._lock:
            pending, self._pending = self._pending, {}
            has_alerts, self._has_alerts = self._has_alerts, False
        at_ms = self._clock_ms()
        for cluster, names in pending.items():
            changed = sorted(name for name in names if self._has_changed(cluster, name))
            if changed:
                told = GroupsChanged(
                    at_ms=at_ms,
                    cluster=cluster,
                    changed=changed[:NAMES_MAX],
                    truncated=len(changed) > NAMES_MAX,
                )
                yield message("groups", told)
        if has_alerts:
            yield message("alerts", AlertsChanged(at_ms=at_ms))

    def _has_changed(self, cluster: str, name: str) -> bool:
        """Say whether a group differs from what was told: reports are repeated though nothing happened."""
        group, before = self._store.group(cluster, name), self._known.get((cluster, name))
        if group is None:
            return self._known.pop((cluster, name), None) is not None
        now = self._known[cluster, name] = signature(group)
        return now != before


def message(event: str, data: msgspec.Struct) -> bytes:
    """Return one message as browsers read it."""
    return b"event: %s\ndata: %s\n\n" % (event.encode(), msgspec.json.encode(data))
