"""The routes by which people add, list and end silences.

Whoever may write here can keep people from being told, so a request is refused unless ``may_write`` lets it
pass, and no page of another site can make a browser send one.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from streaming.config import HttpConfig, is_loopback
from streaming.serving.api import Me, Problem
from streaming.silences import ShownSilence, SilenceList, SilenceRefusedError

PATH = "/api/v1/silences"
_STATES = ("pending", "active", "expired")
_BODY_MAX = 64 * 1024

Answer = Callable[[Request], Response]
Answering = Callable[[Answer], Callable[[Request], Any]]
"""Makes an endpoint that runs a handler in a thread."""


class Silencing(Protocol):
    """What adds, lists and ends silences."""

    def silences(self, state: str = "") -> SilenceList:
        """Return the silences in ``state``; "" is all."""
        ...

    def add(self, request: Any) -> ShownSilence:
        """Add a silence."""
        ...

    def expire(self, silence_id: str) -> ShownSilence:
        """End a silence."""
        ...


def may_write(request: Request, config: HttpConfig) -> str:
    """Return why a request may change nothing here; "" if it may: the one guard of what writes."""
    if config.users:
        user = request.state.user
        if user is None or user.role != "operate":
            return "only users with the role operate may change something"
    elif not is_loopback(config.host):
        return (
            "without http.users, silences and the configuration can be changed only where http.host is a "
            "loopback address; use groupwatch silence with --config, and SIGHUP"
        )
    return foreign(request, config.external_url)


def me_route(config: HttpConfig, answering: Answering, *, is_desk: bool) -> Route:
    """Return the route that tells a page who asks, and which buttons would be refused."""

    def me(request: Request) -> Response:
        why_not = may_write(request, config) or _far_page(request, config.external_url)
        if not is_desk:
            why_not = "this process keeps no silences"
        user = request.state.user if config.users else None
        return _json(Me(user=user.name if user else "", may_change=not why_not, why_not=why_not))

    return Route("/api/v1/me", answering(me))


def _far_page(request: Request, external_url: str) -> str:
    """Return what a page would be told that posts from this host; its GET carries no Origin."""
    host = request.headers.get("host", "")
    is_ours = is_loopback(urlsplit(f"//{host}").hostname or "") or host == urlsplit(external_url).netloc
    is_page = "sec-fetch-site" in request.headers and not is_ours
    return "http.external_url does not name the address at which this page was opened" if is_page else ""


def foreign(request: Request, external_url: str) -> str:
    """Return that a browser sends the request for another site's page; "" if not.

    Programs that are no browsers send no Origin.
    """
    origin = request.headers.get("origin")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return "a page of another site sent this request"
    if origin is None or (external_url and origin == _origin(external_url)):
        return ""
    host = request.headers.get("host", "")
    # A name that its owner lets point here would make a foreign page look like ours; an address cannot.
    is_ours = urlsplit(origin).netloc == host and is_loopback(urlsplit(f"//{host}").hostname or "")
    return "" if is_ours else "a page of another site sent this request; http.external_url names ours"


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


class _Endpoints:
    """The endpoints of one server."""

    def __init__(self, desk: Silencing, config: HttpConfig, answering: Answering) -> None:
        self._desk = desk
        self._config = config
        self._adding = answering(self._add)
        self._ending = answering(self._expire)

    async def post(self, request: Request) -> Response:
        """Add a silence."""
        refused = may_write(request, self._config)
        if refused:
            return _problem(403, refused)
        if not announces_json(request):
            return _problem(415, "send the silence as Content-Type: application/json")
        body = await body_of(request)
        if body is None:
            return _problem(413, f"a silence has at most {_BODY_MAX} bytes")
        request.state.body = body
        answer: Response = await self._adding(request)
        return answer

    async def delete(self, request: Request) -> Response:
        """End a silence."""
        refused = may_write(request, self._config)
        if refused:
            return _problem(403, refused)
        answer: Response = await self._ending(request)
        return answer

    def listed(self, request: Request) -> Response:
        """List silences."""
        state = request.query_params.get("state", "")
        if state and state not in _STATES:
            return _problem(400, f"state must be one of {', '.join(_STATES)}")
        return _json(self._desk.silences(state))

    def _add(self, request: Request) -> Response:
        try:
            given = msgspec.json.decode(request.state.body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return _problem(400, f"the body is no JSON: {error}")
        return _changed(lambda: self._desk.add(given), 201)

    def _expire(self, request: Request) -> Response:
        return _changed(lambda: self._desk.expire(request.path_params["id"]), 200)


def silence_routes(desk: Silencing, config: HttpConfig, answering: Answering) -> list[Route]:
    """Return the routes."""
    endpoints = _Endpoints(desk, config, answering)
    return [
        Route(PATH, answering(endpoints.listed), methods=["GET"]),
        Route(PATH, endpoints.post, methods=["POST"]),
        Route(f"{PATH}/{{id}}", endpoints.delete, methods=["DELETE"]),
    ]


def announces_json(request: Request) -> bool:
    """Say whether the body is said to be JSON, which no page of another site can say unasked."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


async def body_of(request: Request) -> bytes | None:
    """Return the body, as far as it was sent; None if it is too long."""
    body = b""
    with suppress(ClientDisconnect):
        async for piece in request.stream():
            body += piece
            if len(body) > _BODY_MAX:
                return None
    return body


def _changed(change: Callable[[], ShownSilence], status: int) -> Response:
    try:
        return _json(change(), status)
    except SilenceRefusedError as error:
        return _problem(error.status, str(error))


def _problem(status: int, sentence: str) -> Response:
    return _json(Problem(error=sentence), status)


def _json(content: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status_code=status, media_type="application/json")
