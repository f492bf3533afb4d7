"""The HTTP server: metrics, health, the API and the page.

One uvicorn in a thread of the driver.  ``access`` lets users in; only silences and the configuration can be
changed, and ``silencing`` says by whom.  Group names come from outside and can hold any character: in paths
they are percent-encoded, and only the encoded path distinguishes a slash in a name from a separator.
Browsers and proxies fold ``.`` and ``..`` in paths, however they are encoded, and some proxies decode
slashes, so each group has an address with its names in the query as well.  All routes stand here, hence the
length.

A client that asks too much waits or is refused, without delaying others: health has threads of its own, two
stories are told at a time, and ``http_limits`` bounds the connections.
"""

import gzip
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread
import msgspec
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from alerts.alert import AlertStatus, Severity
from alerts.delivery import wall_clock_ms
from alerts.metrics import render
from alerts.story import Explanation, as_text
from coordinator_model.kafka import GroupState
from streaming.config import HttpConfig, Reloads
from streaming.serving.api import Healthy, Problem, Ready, schema
from streaming.serving.choosing import ORDERS, SORTS, Wanted
from streaming.serving.events import PATH as EVENTS_PATH
from streaming.serving.events import Hub
from streaming.serving.explaining import (
    DEFAULT_BACK_MS,
    explain_of_view,
    no_group,
    parse_since,
)
from streaming.serving.group_history import ReadPast, history_of, window
from streaming.serving.history import READ_HTTP_S, ReadHistory
from streaming.serving.mcp import PATH as MCP_PATH
from streaming.serving.mcp import McpEndpoint, ToolError
from streaming.serving.mcp_tools import INSTRUCTIONS, AssistantTools
from streaming.serving.openapi import PATH as OPENAPI_PATH
from streaming.serving.openapi import openapi
from streaming.serving.page_files import HEADERS, PageFiles
from streaming.serving.reload_route import reload_route
from streaming.serving.runbooks import runbook_routes
from streaming.serving.server import Server
from streaming.serving.silencing import Silencing, announces_json, body_of, foreign, me_route, silence_routes
from streaming.serving.view import View
from streaming.version import version

_EXPLAIN = "/explain"
"""Suffix of a group's path for its story.  A group whose own name ends like this takes precedence."""
_HISTORY = "/history"
"""The same for its history."""
_ONE = "/api/v1/group"
"""The same three for names in the query."""
_TIME_MAX_MS = 9_999_999_999_999
_PAGE_MAX = 1_000
_PAGE_DEFAULT = 100
_STORIES_MAX = 2
"""Stories at a time: one reads the topics, which takes 5 s at most, and one waits."""
_THREADS = 8
"""Threads for everything but health."""
_HEALTH_THREADS = 4
_SCRAPES_MAX = 2
_WAITING_MAX = 16
"""Most requests of one kind that wait for a thread."""
_GZIP_LEVEL = 1
"""It compresses metrics to some 6 % in a tenth of the best level's time."""


class Health(Protocol):
    """The job's health, as the server needs it."""

    def clusters(self) -> Sequence[Mapping[str, Any]]:
        """Return for each cluster ``cluster`` (its name), ``ready`` (bool) and explanations."""
        ...

    def problems(self) -> Sequence[str]:
        """Return what is broken in this process: dead threads, stuck batches; not Kafka's outages."""
        ...


@runtime_checkable
class DeliveryHealth(Protocol):
    """The same for a process that delivers alerts."""

    def deliveries(self) -> Sequence[Mapping[str, Any]]:
        """Return the state of delivery to each receiver."""
        ...


class BadRequestError(ValueError):
    """A query makes no sense; the text is for the caller."""


class BusyError(Exception):
    """Too much is asked at once; the text is for the caller."""


_Found = TypeVar("_Found")


class _Names(Convertor[str]):
    """Cluster and group: all that follows, even line breaks, at which Starlette's own ``path`` stops."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("names", _Names())


class _Stories:
    """Tells a few stories at a time: each reads topics, and its caller waits for that."""

    def __init__(self, view: View, read_history: ReadHistory | None) -> None:
        self._view = view
        self._read_history = read_history
        self._free = threading.BoundedSemaphore(_STORIES_MAX)

    def answer(self, request: Request, cluster: str, name: str) -> Response:
        """Return a group's story as JSON or text, or 429 if too many are being told."""
        now_ms = wall_clock_ms()
        style = _one_of(request.query_params, "format", ["json", "text"], "json")
        try:
            since_ms = parse_since(request.query_params.get("since", f"{DEFAULT_BACK_MS}ms"), now_ms)
        except ValueError as error:
            raise BadRequestError(f"since: {error}") from error
        try:
            told = self.told(cluster, name, since_ms, now_ms)
        except BusyError as busy:
            return _json(Problem(error=str(busy)), 429, {"Retry-After": f"{READ_HTTP_S:.0f}"})
        if told is None:
            return _json(Problem(error=no_group(name, cluster)), 404)
        if style == "text":
            return Response(as_text(told), media_type="text/plain", headers=HEADERS)
        return _json(told)

    def told(self, cluster: str, name: str, since_ms: int, now_ms: int) -> Explanation | None:
        """Return a group's story; None: no such group.  Raises ``BusyError`` if too many are being told."""
        if not self._free.acquire(blocking=False):
            raise BusyError(f"{_STORIES_MAX} stories are being read already; ask again in some seconds")
        try:
            return explain_of_view(
                self._view, self._read_history, cluster, name, since_ms=since_ms, now_ms=now_ms
            )
        finally:
            self._free.release()


def application(
    view: View,
    health: Health,
    registry: CollectorRegistry,
    read_history: ReadHistory | None = None,
    *,
    config: HttpConfig | None = None,
    silencing: Silencing | None = None,
    reloads: Reloads | None = None,
    past: ReadPast | None = None,
    hub: Hub | None = None,
) -> Starlette:
    """Return the ASGI application; without ``read_history`` stories come from ``view`` alone."""
    config = config or HttpConfig()
    published = msgspec.json.encode(schema())
    described = msgspec.json.encode(openapi(version()))
    page = PageFiles()

    stories = _Stories(view, read_history)
    answering = _InThreads(_THREADS)

    def groups(request: Request) -> Response:
        spark = _one_of(request.query_params, "spark", ["1h"])
        return _json(view.groups(_wanted(request.query_params), spark=bool(spark)))

    def group(request: Request) -> Response:
        return _group(view, stories, past, request)

    def one(request: Request) -> Response:
        cluster, name = _names_given(request)
        return _found(view, cluster, name)

    def one_story(request: Request) -> Response:
        return stories.answer(request, *_names_given(request))

    def one_history(request: Request) -> Response:
        return _history(view, past, *_names_given(request), request.query_params)

    def alerts(request: Request) -> Response:
        query = request.query_params
        offset, limit = _paging(query)
        severity = _one_of(query, "severity", tuple(Severity))
        status = _one_of(query, "status", [*(str(status) for status in AlertStatus), "all"], "firing")
        return _json(
            view.alerts(
                status="" if status == "all" else status,
                cluster=query.get("cluster", ""),
                group=query.get("group"),
                severity=severity,
                offset=offset,
                limit=limit,
            )
        )

    routes = [
        *_own_routes(health, registry, config.cluster_label),
        *runbook_routes(answering, page),
        Route("/api/v1/groups", answering(groups)),
        Route("/api/v1/groups/{names:names}", answering(group)),
        Route(_ONE, answering(one)),
        Route(_ONE + _EXPLAIN, answering(one_story)),
        Route(_ONE + _HISTORY, answering(one_history)),
        Route("/api/v1/alerts", answering(alerts)),
        *(silence_routes(silencing, config, answering) if silencing else ()),
        me_route(config, answering, is_desk=silencing is not None),
        *((reload_route(reloads, config, answering),) if reloads else ()),
        Route("/api/v1/undecodable", answering(lambda _: _json(view.undecodable()))),
        Route("/api/v1/clusters", answering(lambda _: _json(view.clusters()))),
        Route("/api/v1/sources", answering(lambda _: _json(view.sources(health.clusters())))),
        *((Route(EVENTS_PATH, hub.endpoint),) if hub else ()),
        Route(OPENAPI_PATH, answering(lambda _: Response(described, media_type="application/json"))),
        Route("/api/v1/schema", answering(lambda _: Response(published, media_type="application/json"))),
        Route(MCP_PATH, _assistants(view, stories, health, answering, config), methods=["POST"]),
        *page.routes(answering),
    ]
    return Starlette(routes=routes)


def health_application(
    health: Health, registry: CollectorRegistry, cluster_label: str = "cluster"
) -> Starlette:
    """Return the ASGI application of a process that shows no groups: metrics and health."""
    return Starlette(routes=_own_routes(health, registry, cluster_label))


def _assistants(
    view: View, stories: _Stories, health: Health, answering: "_InThreads", config: HttpConfig
) -> McpEndpoint:
    """Return what assistants ask: the groups, the alerts and the stories, within the same limits."""

    async def run(call: Callable[[], _Found]) -> _Found:
        try:
            return await answering.run(call)
        except BusyError as busy:
            raise ToolError(str(busy)) from busy

    def not_ready() -> list[str]:
        return [str(one["cluster"]) for one in health.clusters() if not one["ready"]]

    return McpEndpoint(
        AssistantTools(view, stories.told, not_ready).tools,
        INSTRUCTIONS,
        run,
        refused=lambda request: foreign(request, config.external_url),
        announces_json=announces_json,
        read_body=body_of,
    )


def _own_routes(health: Health, registry: CollectorRegistry, cluster_label: str) -> list[Route]:
    """Return the routes about the process itself."""
    scrapes = _InThreads(_SCRAPES_MAX)
    health_only = _InThreads(_HEALTH_THREADS)

    def metrics(request: Request) -> Response:
        body, media_type = render(registry, request.headers.get("accept", ""), cluster_label)
        return _compressed(request, body, media_type)

    def ready(_: Request) -> Response:
        clusters = list(health.clusters())
        is_ready = bool(clusters) and all(cluster["ready"] for cluster in clusters)
        told = Ready(ready=is_ready, clusters=[dict(one) for one in clusters])
        return _json(told, 200 if is_ready else 503)

    def healthz(_: Request) -> Response:
        problems = list(health.problems())
        deliveries = health.deliveries() if isinstance(health, DeliveryHealth) else None
        told = Healthy(
            healthy=not problems,
            problems=problems,
            deliveries=msgspec.UNSET if deliveries is None else [dict(one) for one in deliveries],
        )
        return _json(told, 503 if problems else 200)

    return [
        Route("/metrics", scrapes(metrics)),
        Route("/healthz", health_only(healthz)),
        Route("/ready", health_only(ready)),
    ]


def _group(view: View, stories: _Stories, past: ReadPast | None, request: Request) -> Response:
    """Return the facts about a group, its story, or its history."""
    cluster, name = _names_in(request)
    is_there = view.group(cluster, name) is not None
    if not is_there and _encoded(request).endswith(_EXPLAIN):
        return stories.answer(request, cluster, name.removesuffix(_EXPLAIN))
    if not is_there and _encoded(request).endswith(_HISTORY):
        return _history(view, past, cluster, name.removesuffix(_HISTORY), request.query_params)
    return _found(view, cluster, name)


def _found(view: View, cluster: str, name: str) -> Response:
    """Return the facts about a group, or that there is none."""
    found = view.group(cluster, name)
    if found is None:
        return _json(Problem(error=f"no group {name!r} in cluster {cluster!r}"), 404)
    return _json(found)


def _history(
    view: View, past: ReadPast | None, cluster: str, group: str, query: Mapping[str, str]
) -> Response:
    now_ms = wall_clock_ms()
    since, until = (
        _number(query, name, 0, 0, _TIME_MAX_MS) if name in query else None for name in ("from", "to")
    )
    try:
        seen = window(since, until, now_ms)
    except ValueError as error:
        raise BadRequestError(str(error)) from error
    found = history_of(view, past, cluster, group, seen)
    return _json(Problem(error=no_group(group, cluster)), 404) if found is None else _json(found)


class _InThreads:
    """Runs handlers outside the event loop, a few at a time: /metrics of 10,000 groups takes seconds.

    A request beyond the queue's length is refused, and a client that has gone gets nothing computed.
    """

    def __init__(self, threads: int) -> None:
        self._turns = anyio.CapacityLimiter(threads)
        self._threads = anyio.CapacityLimiter(threads)

    def __call__(self, answer: Callable[[Request], Response]) -> Callable[[Request], Any]:
        """Return the endpoint for a handler."""

        async def endpoint(request: Request) -> Response:
            try:
                self._refuse_beyond_limit()
            except BusyError as busy:
                return _json(Problem(error=str(busy)), 503, {"Retry-After": "1"})
            async with self._turns:
                if await request.is_disconnected():
                    return Response(status_code=503)
                return await self._answered(answer, request)

        return endpoint

    async def run(self, work: Callable[[], _Found]) -> _Found:
        """Return what ``work`` returns; raise ``BusyError`` if too much waits for a thread already."""
        self._refuse_beyond_limit()
        async with self._turns:
            return await anyio.to_thread.run_sync(work, limiter=self._threads)

    def _refuse_beyond_limit(self) -> None:
        if self._turns.statistics().tasks_waiting >= _WAITING_MAX:
            raise BusyError("too many requests are waiting already; ask again in some seconds")

    async def _answered(self, answer: Callable[[Request], Response], request: Request) -> Response:
        try:
            return await anyio.to_thread.run_sync(answer, request, limiter=self._threads)
        except BadRequestError as error:
            return _json(Problem(error=str(error)), 400)


def _compressed(request: Request, body: bytes, media_type: str) -> Response:
    """Return ``body`` as gzip if the caller accepts that, as Prometheus does."""
    headers = {"Vary": "Accept-Encoding"}
    offers = (one.partition(";") for one in request.headers.get("accept-encoding", "").lower().split(","))
    takes = {name.strip(): parameter.replace(" ", "") for name, _, parameter in offers}
    if takes.get("gzip", takes.get("*", "q=0")) not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
        headers["Content-Encoding"] = "gzip"
        body = gzip.compress(body, _GZIP_LEVEL)
    return Response(body, media_type=media_type, headers=headers)


def _json(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    encoded = msgspec.json.encode(content)
    return Response(encoded, status_code=status, media_type="application/json", headers=headers)


def _paging(query: Mapping[str, str]) -> tuple[int, int]:
    return _number(query, "offset", 0, 0, 10_000_000), _number(query, "limit", _PAGE_DEFAULT, 1, _PAGE_MAX)


def _wanted(query: Mapping[str, str]) -> Wanted:
    offset, limit = _paging(query)
    return Wanted(
        cluster=query.get("cluster", ""),
        state=_one_of(query, "state", [str(state) for state in GroupState]),
        group_type=query.get("type", ""),
        text=query.get("q", ""),
        alert=query.get("alert", ""),
        owner=query.get("owner", ""),
        sort=_one_of(query, "sort", SORTS, SORTS[0]) or SORTS[0],
        order=_one_of(query, "order", ORDERS, ORDERS[0]) or ORDERS[0],
        offset=offset,
        limit=limit,
    )


def _number(query: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = query.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 14 and least <= int(text) <= most):
        raise BadRequestError(f"{name} must be a whole number from {least} to {most}")
    return int(text)


def _one_of(query: Mapping[str, str], name: str, allowed: Sequence[str], default: str = "") -> str:
    value = query.get(name, default)
    if value and value not in allowed:
        raise BadRequestError(f"{name} must be one of {', '.join(allowed)}")
    return value


def _encoded(request: Request) -> str:
    """Return the rest of the path after /api/v1/groups/, as it was sent."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    return raw.split(b"?", 1)[0].decode("ascii", "replace").split("/api/v1/groups/", 1)[-1]


def _names_in(request: Request) -> tuple[str, str]:
    """Return cluster and group of the encoded path; unencoded slashes belong to the group."""
    cluster, _, group = _encoded(request).partition("/")
    return unquote(cluster), unquote(group)


def _names_given(request: Request) -> tuple[str, str]:
    """Return cluster and group of the query."""
    query = request.query_params
    if "cluster" not in query or "group" not in query:
        raise BadRequestError("cluster and group must be given")
    return query["cluster"], query["group"]


class HttpServer(Server):
    """The job's server, with all routes."""

    def __init__(
        self,
        config: HttpConfig,
        view: View,
        health: Health,
        registry: CollectorRegistry,
        read_history: ReadHistory | None = None,
        *,
        silencing: Silencing | None = None,
        reloads: Reloads | None = None,
        past: ReadPast | None = None,
        hub: Hub | None = None,
    ) -> None:
        made = application(
            view,
            health,
            registry,
            read_history,
            config=config,
            silencing=silencing,
            reloads=reloads,
            past=past,
            hub=hub,
        )
        self._hub = hub
        super().__init__(config, made, below=urlsplit(config.external_url).path)

    def stop(self) -> None:
        """Finish the current requests, end all streams of events, and end."""
        if self._hub is not None:
            self._hub.close()
        super().stop()
