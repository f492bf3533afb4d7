"""The OpenAPI description of every public route, made from the types of the answers."""

from typing import Any, NamedTuple

import msgspec
from pydantic import BaseModel

from alerts.alert import Alert, Severity
from alerts.delivery import KeptSilence
from alerts.story import Explanation
from coordinator_model.state import Transition
from streaming.config import Reloaded, SilenceRequest
from streaming.serving.api import (
    EVENTS,
    AlertList,
    ClusterList,
    GroupDetail,
    GroupHistory,
    GroupList,
    Healthy,
    Me,
    Problem,
    Ready,
    SourceList,
    Undecodable,
)
from streaming.serving.choosing import ORDERS, SORTS
from streaming.serving.mcp import PATH as MCP_PATH
from streaming.silences import ShownSilence, SilenceList

PATH = "/api/openapi.json"
_REF = "#/components/schemas/{name}"
_JSON, _TEXT, _HTML, _EVENTS = "application/json", "text/plain", "text/html", "text/event-stream"
_SENTENCES = {
    200: "The answer.",
    201: "It was added.",
    400: "The request makes no sense.",
    401: "A login is needed.",
    403: "This user may change nothing.",
    404: "There is no such thing.",
    409: "There are too many already.",
    413: "The body is too long.",
    415: "The body is not announced as JSON.",
    429: "Too much is asked at once.",
    501: "The package that this needs is not installed.",
    503: "Not now.",
}
_REFUSED = "The configuration cannot be used, and nothing has changed."


class Parameter(NamedTuple):
    """One parameter of the query or the path."""

    name: str
    meaning: str
    kind: str = "string"
    values: tuple[str, ...] = ()
    place: str = "query"
    required: bool = False
    """What stands in a path always is."""


class Operation(NamedTuple):
    """What one method of one path does."""

    path: str
    summary: str
    answer: type | None = None
    """None: no JSON."""
    method: str = "get"
    parameters: tuple[Parameter, ...] = ()
    media_type: str = _JSON
    problems: tuple[int, ...] = ()
    body: type[BaseModel] | None = None
    status: int = 200
    unwell: type | None = None
    """The answer under 503, if that is no ``Problem``."""
    refused: type | None = None
    """The answer under 400, if that is no ``Problem``."""
    is_text_too: bool = False
    """Whoever asks for it gets text for people."""


_CLUSTER = Parameter("cluster", "Name of a Kafka cluster.")
_PAGING = (
    Parameter("offset", "How many are passed over.", "integer"),
    Parameter("limit", "How many are returned: 1 to 1,000.", "integer"),
)
_GROUP = (
    Parameter("cluster", "Name of the Kafka cluster, percent-encoded.", place="path"),
    Parameter("group", "Name of the group, percent-encoded.", place="path"),
)

_NAMED = (
    Parameter("cluster", "Name of the Kafka cluster.", required=True),
    Parameter("group", "Name of the group.", required=True),
)
_STORY = (
    Parameter("since", 'A span such as "2h", or a time.'),
    Parameter("format", "json, or text for people.", values=("json", "text")),
)
_WINDOW = (
    Parameter("from", "Epoch milliseconds; an hour before the end, unless given.", "integer"),
    Parameter("to", "Epoch milliseconds; now, unless given.", "integer"),
)
_ANY_NAME = ", whatever its name: browsers fold . and .. in paths"

OPERATIONS = (
    Operation(
        "/api/v1/groups",
        "All groups: filtered, sorted, and a page of them",
        GroupList,
        parameters=(
            _CLUSTER,
            Parameter("state", "State as brokers spell it."),
            Parameter("type", "classic, consumer, share or streams."),
            Parameter("alert", "Name of an open alert."),
            Parameter("owner", "Who owns the group."),
            Parameter("q", "Part of the group's name, in whatever case."),
            Parameter("sort", "Order.", values=SORTS),
            Parameter("order", "Direction.", values=ORDERS),
            Parameter("spark", "Add the last hour of each group.", values=("1h",)),
            *_PAGING,
        ),
        problems=(400,),
    ),
    Operation(
        "/api/v1/groups/{cluster}/{group}", "One group", GroupDetail, parameters=_GROUP, problems=(404,)
    ),
    Operation(
        "/api/v1/groups/{cluster}/{group}/explain",
        "A group's story in words",
        Explanation,
        parameters=(*_GROUP, *_STORY),
        problems=(400, 404, 429),
        is_text_too=True,
    ),
    Operation(
        "/api/v1/groups/{cluster}/{group}/history",
        "A group over a window of 5 minutes to 7 days",
        GroupHistory,
        parameters=(*_GROUP, *_WINDOW),
        problems=(400, 404),
    ),
    Operation("/api/v1/group", f"One group{_ANY_NAME}", GroupDetail, parameters=_NAMED, problems=(400, 404)),
    Operation(
        "/api/v1/group/explain",
        f"A group's story in words{_ANY_NAME}",
        Explanation,
        parameters=(*_NAMED, *_STORY),
        problems=(400, 404, 429),
        is_text_too=True,
    ),
    Operation(
        "/api/v1/group/history",
        f"A group over a window of 5 minutes to 7 days{_ANY_NAME}",
        GroupHistory,
        parameters=(*_NAMED, *_WINDOW),
        problems=(400, 404),
    ),
    Operation(
        "/api/v1/alerts",
        "Open alerts, silenced ones after the others, and the last that ended",
        AlertList,
        parameters=(
            Parameter("status", "Which ones.", values=("firing", "resolved", "all")),
            _CLUSTER,
            Parameter("group", "Name of a group."),
            Parameter("severity", "How urgent.", values=tuple(Severity)),
            *_PAGING,
        ),
        problems=(400,),
    ),
    Operation(
        "/api/v1/silences",
        "Silences that were added at run time",
        SilenceList,
        parameters=(Parameter("state", "Which ones.", values=("pending", "active", "expired")),),
        problems=(400,),
    ),
    Operation(
        "/api/v1/silences",
        "Add a silence, or acknowledge one alert",
        ShownSilence,
        method="post",
        body=SilenceRequest,
        status=201,
        problems=(400, 403, 409, 413, 415),
    ),
    Operation(
        "/api/v1/silences/{id}",
        "End a silence",
        ShownSilence,
        method="delete",
        parameters=(Parameter("id", "The silence.", place="path"),),
        problems=(403, 404),
    ),
    Operation("/api/v1/me", "Who asks, and whether they may change something", Me),
    Operation("/api/v1/undecodable", "Samples of what could not be read", Undecodable),
    Operation("/api/v1/clusters", "Settings, coordinators, agreement with the brokers", ClusterList),
    Operation("/api/v1/sources", "What each cluster's job hears, and what it misses", SourceList),
    Operation(
        "/api/v1/events",
        "Server-sent events: hello, groups, alerts, beat",
        media_type=_EVENTS,
    ),
    Operation("/api/v1/schema", "JSON Schema of the answers and of the topics' records", dict),
    Operation(PATH, "This description", dict),
    Operation(
        "/-/reload",
        "Read the configuration again",
        Reloaded,
        method="post",
        problems=(400, 403),
        refused=Reloaded,
    ),
    Operation(
        MCP_PATH,
        "Model Context Protocol for assistants: one JSON-RPC message, answered as JSON",
        dict,
        method="post",
        problems=(403, 413, 415, 501),
    ),
    Operation("/ready", "Whether what is shown is whole and of now", Ready, unwell=Ready),
    Operation("/healthz", "Whether something in this process is broken", Healthy, unwell=Healthy),
    Operation("/metrics", "Metrics for Prometheus", media_type=_TEXT),
    Operation("/runbooks/", "The runbooks", media_type=_HTML),
    Operation(
        "/runbooks/{name}",
        "The runbook of an alert",
        media_type=_HTML,
        parameters=(Parameter("name", "The alert's name, with or without .md.", place="path"),),
    ),
    Operation("/", "The page", media_type=_HTML),
    Operation("/groups/{cluster}/{group}", "The page of one group", media_type=_HTML, parameters=_GROUP),
    Operation("/group", f"The page of one group{_ANY_NAME}", media_type=_HTML, parameters=_NAMED),
)
_OPEN = ("/healthz", "/ready")
"""What needs no login."""


def openapi(version: str) -> dict[str, Any]:
    """Return the description; ``version`` is that of this program."""
    types = [Problem, Alert, Transition, KeptSilence, *EVENTS.values()]
    types += [
        one for op in OPERATIONS for one in (op.answer, op.unwell, op.refused) if one not in (None, dict)
    ]
    _, schemas = msgspec.json.schema_components(types, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for op in OPERATIONS:
        paths.setdefault(op.path, {})[op.method] = _operation(op)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "groupwatch",
            "version": version or "0",
            "description": "What happens in Kafka consumer groups, who caused it, why, and what it costs.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        # Relative to where this description is, so that it is right below the path of a proxy, too.
        "servers": [{"url": ".."}],
        "security": [{"password": []}, {"token": []}, {}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "password": {"type": "http", "scheme": "basic"},
                "token": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _operation(op: Operation) -> dict[str, Any]:
    told: dict[str, Any] = {
        "operationId": _name(op),
        "summary": op.summary,
        "responses": {str(status): answer for status, answer in _answers(op)},
    }
    if op.parameters:
        told["parameters"] = [_parameter(one) for one in op.parameters]
    if op.body is not None:
        told["requestBody"] = {"required": True, "content": {_JSON: {"schema": _asked(op.body)}}}
    if op.path in _OPEN:
        told["security"] = []
    return told


def _name(op: Operation) -> str:
    """Return a name that is an identifier in any language."""
    words = op.path.replace("/api/v1/", "/").replace("{", "").replace("}", "")
    parts = ["".join(one for one in word if one.isalnum()) for word in words.split("/")]
    verb = "show" if op.media_type == _HTML else op.method
    return "_".join([verb, *(filter(None, parts) if any(parts) else ["page"])])


def _answers(op: Operation) -> list[tuple[int, dict[str, Any]]]:
    good: dict[str, Any] = {"description": _SENTENCES[op.status]}
    good["content"] = {op.media_type: {} if op.answer is None else {"schema": _schema(op.answer)}}
    if op.is_text_too:
        good["content"][_TEXT] = {"schema": {"type": "string"}}
    if op.media_type == _EVENTS:
        events = {name: _schema(kind) for name, kind in EVENTS.items()}
        good["content"] = {_EVENTS: {"schema": {"type": "string", "x-events": events}}}
    problems = [*op.problems, 503, *(() if op.path in _OPEN else (401,))]
    bad = [(status, _problem(status, op)) for status in sorted(set(problems))]
    return [(op.status, good), *bad]


def _problem(status: int, op: Operation) -> dict[str, Any]:
    kind = {503: op.unwell, 400: op.refused}.get(status) or Problem
    media_type = _JSON if op.media_type != _HTML or status in (401, 503) else _TEXT
    sentence = _REFUSED if kind is op.refused else _SENTENCES[status]
    return {"description": sentence, "content": {media_type: {"schema": _schema(kind)}}}


def _asked(kind: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a body."""
    return {one: value for one, value in kind.model_json_schema().items() if one != "title"}


def _schema(kind: type) -> dict[str, Any]:
    return {"type": "object"} if kind is dict else {"$ref": _REF.format(name=kind.__name__)}


def _parameter(one: Parameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": one.kind}
    if one.values:
        schema["enum"] = list(one.values)
    return {
        "name": one.name,
        "in": one.place,
        "required": one.required or one.place == "path",
        "description": one.meaning,
        "schema": schema,
    }
