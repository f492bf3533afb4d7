"""Who may ask the server, and the log of who asked."""

import base64
import binascii
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

import msgspec

from alerts.alert import printable
from streaming.config import ServerConfig, UserConfig
from streaming.serving.api import Problem

_LOGGER = logging.getLogger("groupwatch.http.access")

OPEN = ("/healthz", "/ready")
"""What load balancers and kubelets ask, who have no login."""
_ROUTINE = (*OPEN, "/metrics")
_PATH_MAX = 500
_REFUSED = 400

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Guard:
    """Lets users in, tells the application who asks, and logs each request."""

    def __init__(self, app: App, config: ServerConfig) -> None:
        self._app = app
        self._users = config.users
        self._logs = config.access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        user = known_user(self._users, _authorization(scope))
        scope.setdefault("state", {})["user"] = user
        try:
            if self._users and user is None and scope["path"] not in OPEN:
                await _ask_for_login(watched)
            else:
                await self._app(scope, receive, watched)
        finally:
            self._log(scope, user, status, time.monotonic() - began)

    def _log(self, scope: Scope, user: UserConfig | None, status: int, seconds: float) -> None:
        if not self._logs or (scope["path"] in _ROUTINE and 0 < status < _REFUSED):
            return
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        _LOGGER.info(
            "%s %s %s %s %s %.0f ms",
            (scope.get("client") or ("-",))[0],
            printable(user.name) if user else "-",
            scope["method"],
            printable(raw.decode("ascii", "backslashreplace"))[:_PATH_MAX],
            status or "closed",
            seconds * 1000,
        )


def known_user(users: Sequence[UserConfig], authorization: str) -> UserConfig | None:
    """Return the user whom the header ``Authorization`` proves; None if it proves nobody.

    Every secret is compared, in constant time, so that the answer's delay tells nothing.
    """
    scheme, _, given = authorization.strip().partition(" ")
    found = None
    if scheme.lower() == "bearer":
        for user in users:
            if user.token and _same(user.token, given.strip()):
                found = user
    elif scheme.lower() == "basic":
        name, _, password = _decoded(given.strip()).partition(":")
        for user in users:
            if user.password and (_same(user.password, password) & _same(user.name, name)):
                found = user
    return found


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def _authorization(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"authorization":
            text: str = value.decode("latin-1")
            return text
    return ""


async def _ask_for_login(send: Send) -> None:
    body = msgspec.json.encode(Problem(error="a login is needed: a user's name and password, or a token"))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"www-authenticate", b'Basic realm="groupwatch", charset="UTF-8"'),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})
