"""``POST /mcp``: refuses what it must, and loads the SDK when somebody asks for the first time.

The package is optional, and its import costs memory and a second, so that a job that no assistant asks
shall not have it.
"""

import importlib
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from streaming.serving.mcp.tool import Told, Tool

PATH = "/mcp"
MISSING = (
    "assistants need the package mcp, which is not installed here: "
    "install groupwatch with its extra mcp (pip install 'groupwatch[mcp]'), and start it again"
)
_JSON = "application/json"

App = Callable[[Scope, Receive, Send], Awaitable[None]]


class McpEndpoint:
    """The endpoint (ASGI)."""

    def __init__(
        self,
        tools: Sequence[Tool],
        instructions: str,
        run: Callable[[Callable[[], Told]], Awaitable[Told]],
        *,
        refused: Callable[[Request], str],
        announces_json: Callable[[Request], bool],
        read_body: Callable[[Request], Awaitable[bytes | None]],
    ) -> None:
        """Prepare.

        Args:
            tools: what can be called.
            instructions: what an assistant is told of all of them.
            run: runs a call in a thread.
            refused: returns why a request is refused, "" if it is not; who asks is known by then.
            announces_json: says whether the body is said to be JSON.
            read_body: returns a request's body; None if it is too long.
        """
        self._prepared = (tools, instructions, run)
        self._refused = refused
        self._announces_json = announces_json
        self._read_body = read_body
        self._loading = threading.Lock()
        self._loaded: App | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one POST."""
        request = Request(scope, receive)
        answer = self._problem_of(request)
        if answer is None:
            body = await self._read_body(request)
            if body is None:
                answer = _problem(413, "the body is too long")
            else:
                await self._pass_on(scope, body, receive, send)
                return
        await answer(scope, receive, send)

    def _problem_of(self, request: Request) -> Response | None:
        refused = self._refused(request)
        if refused:
            return _problem(403, refused)
        if not self._announces_json(request):
            return _problem(415, f"send the message as Content-Type: {_JSON}")
        return None

    async def _pass_on(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        try:
            app = await anyio.to_thread.run_sync(self._load) if self._loaded is None else self._loaded
        except ImportError as error:
            await _problem(501, f"{MISSING} ({error})")(scope, receive, send)
            return
        unread = [body]

        async def replayed() -> Message:
            if unread:
                return {"type": "http.request", "body": unread.pop(), "more_body": False}
            return await receive()

        await app(scope, replayed, send)

    def _load(self) -> App:
        """Return what answers; raises ImportError where the package is missing or another than we know."""
        with self._loading:
            if self._loaded is None:
                sdk: Any = importlib.import_module("streaming.serving.mcp.sdk")
                loaded: App = sdk.Assistants(*self._prepared)
                self._loaded = loaded
            return self._loaded


def _problem(status: int, sentence: str) -> Response:
    return Response(msgspec.json.encode({"error": sentence}), status_code=status, media_type=_JSON)
