"""The OpenAPI description: sound, complete, and true of what is answered."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.routing import Match, Route

from alerts.delivery.silences import LiveQuiet
from streaming.config.reloading import Reloaded, Reloads
from streaming.config.server import HttpConfig
from streaming.serving.events import Hub
from streaming.serving.http import application
from streaming.serving.openapi import OPERATIONS, PATH, openapi
from streaming.serving.reload_route import reload_route
from streaming.serving.server import Server
from streaming.silences.desk import SilenceDesk
from streaming.silences.following import Follower
from tests.unit.streaming.fed_view import FedView
from tests.unit.streaming.healthy import Healthy

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Rows

NOW_MS = 1_700_000_100_000
PAGE_FILES = "/page/{digest}/{name:path}"
"""Style and scripts of the page, under addresses that change with each version."""
DESCRIBED = openapi("1.2.3")


@pytest.fixture
def view() -> FedView:
    return FedView(["eu"], clock_ms=lambda: NOW_MS)


@pytest.fixture
def asked(view: FedView) -> Any:
    """The whole application, on a loopback address and so open to changes."""
    desk = SilenceDesk(Follower([], LiveQuiet()), clusters=["eu"])
    return application(
        view,
        Healthy(),
        CollectorRegistry(),
        config=HttpConfig(),
        silencing=desk,
        reloads=Reloads(None),
        hub=Hub(view.store, clock_ms=lambda: NOW_MS),
    )


@pytest.fixture
def client(asked: Any) -> Iterator[httpx.Client]:
    server = Server(HttpConfig(host="127.0.0.1", port=0), asked)
    with httpx.Client(base_url=f"http://127.0.0.1:{server.start()}", timeout=20, trust_env=False) as made:
        yield made
    server.stop()


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for one in value.values():
            yield from _refs(one)
    elif isinstance(value, list):
        for one in value:
            yield from _refs(one)


def test_every_route_is_described_and_every_description_is_a_route(asked: Any) -> None:
    """By path and method; only the page's own files are left out."""
    routes = [one for one in asked.routes if isinstance(one, Route) and one.path != PAGE_FILES]
    met = set()
    for op in OPERATIONS:
        address = op.path.replace("{cluster}", "eu").replace("{group}", "g").replace("{id}", "1")
        scope = {"type": "http", "method": op.method.upper(), "path": address.replace("{name}", "x")}
        found = [one for one in routes if one.matches(scope)[0] is Match.FULL]
        assert found, op.path
        met.add(id(found[0]))
    assert [one.path for one in routes if id(one) not in met] == []


def test_the_description_is_sound() -> None:
    """Each reference leads somewhere, each schema is one, each operation has a name of its own."""
    schemas = DESCRIBED["components"]["schemas"]
    for one in schemas.values():
        Draft202012Validator.check_schema(one)
    assert {ref.rsplit("/", 1)[1] for ref in _refs(DESCRIBED["paths"])} <= schemas.keys()
    operations = [one for path in DESCRIBED["paths"].values() for one in path.values()]
    assert len({one["operationId"] for one in operations}) == len(operations) == len(OPERATIONS)
    for path, methods in DESCRIBED["paths"].items():
        for one in methods.values():
            assert one["responses"]
            in_path = {p["name"] for p in one.get("parameters", ()) if p["in"] == "path"}
            assert in_path == {part[1:-1] for part in path.split("/") if part.startswith("{")}


def test_answers_are_as_described(client: httpx.Client, view: FedView, rows: "Rows") -> None:
    """Of every GET that answers with JSON, and of a refusal."""
    view.apply("eu", [rows.report("g", commits={"t": {0: (1, 1)}}), rows.alert("g", id="s")])
    checked = 0
    for op in OPERATIONS:
        if op.method != "get" or op.answer is None:
            continue
        answer = client.get(op.path.replace("{cluster}", "eu").replace("{group}", "g"))
        told = DESCRIBED["paths"][op.path]["get"]["responses"][str(answer.status_code)]
        _check(answer.json(), told["content"]["application/json"]["schema"])
        checked += 1
    assert checked > 10
    refused = client.get("/api/v1/groups", params={"sort": "beauty"})
    assert refused.status_code == 400
    _check(refused.json(), {"$ref": "#/components/schemas/Problem"})


def test_a_story_is_described_as_text_too(client: httpx.Client, view: FedView, rows: "Rows") -> None:
    """Under both of its addresses."""
    view.apply("eu", [rows.report("g")])
    for path in ("/api/v1/groups/{cluster}/{group}/explain", "/api/v1/group/explain"):
        address = path.replace("{cluster}", "eu").replace("{group}", "g")
        answer = client.get(address, params={"cluster": "eu", "group": "g", "format": "text"})
        told = DESCRIBED["paths"][path]["get"]["responses"][str(answer.status_code)]["content"]
        kind = answer.headers["content-type"].split(";")[0]
        assert (kind, set(told)) == ("text/plain", {"application/json", "text/plain"})
        _check(answer.text, told[kind]["schema"])


def test_a_configuration_that_cannot_be_used_is_described() -> None:
    """With the answer that a good one gets, and in words of its own."""

    class Refusing(Reloads):
        def ask_and_wait(self, _timeout_s: float) -> Reloaded:
            return Reloaded(error="receivers: no list")

    route = reload_route(Refusing(None), HttpConfig(), lambda answer: answer)
    scope = {"type": "http", "method": "POST", "headers": [], "client": ("127.0.0.1", 1)}
    answer = route.endpoint(Request(scope))
    told = DESCRIBED["paths"]["/-/reload"]["post"]["responses"][str(answer.status_code)]
    assert answer.status_code == 400
    _check(json.loads(answer.body), told["content"]["application/json"]["schema"])
    assert told["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Reloaded"}
    assert "nothing has changed" in told["description"]


def test_the_order_of_alerts_is_told() -> None:
    """Who pages through them knows what comes last."""
    assert "silenced" in DESCRIBED["paths"]["/api/v1/alerts"]["get"]["summary"]


def _check(value: Any, schema: dict[str, Any]) -> None:
    whole = {**schema, "components": DESCRIBED["components"]}
    assert [error.message for error in Draft202012Validator(whole).iter_errors(value)] == []


def test_it_is_served_beside_the_api(client: httpx.Client) -> None:
    """At an address that does not change with the API's version."""
    told = client.get(PATH).json()
    assert told["openapi"].startswith("3.1")
    assert told["paths"].keys() == DESCRIBED["paths"].keys()
