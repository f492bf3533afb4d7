"""Answers below a path as well: for a proxy that passes ``/groupwatch/...`` on as it is.

A proxy that takes its own path away needs nothing, as all addresses in the pages are relative.
"""

from streaming.serving.access import App, Receive, Scope, Send

_OWN = frozenset({"-", "api", "group", "groups", "healthz", "mcp", "metrics", "page", "ready", "runbooks"})
"""What the server's own paths begin with: below such a path nobody could tell one from the other."""


class Below:
    """Takes a path away from the beginning of requests that have it."""

    def __init__(self, app: App, path: str) -> None:
        """Prepare; ``path`` is that of the address for people ("" or "/": there is none)."""
        self._app = app
        bare = path.strip("/")
        self._path = f"/{bare}" if bare and bare.split("/")[0] not in _OWN else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        if scope["type"] == "http" and self._path:
            path, raw = scope["path"], scope.get("raw_path") or scope["path"].encode()
            if path == self._path:
                await _go_below(self._path, send)
                return
            if raw.startswith(f"{self._path}/".encode()):
                cut = len(self._path)
                scope = {**scope, "path": path[cut:], "raw_path": raw[cut:]}
        await self._app(scope, receive, send)


async def _go_below(path: str, send: Send) -> None:
    headers = [(b"location", f"{path}/".encode()), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 308, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
