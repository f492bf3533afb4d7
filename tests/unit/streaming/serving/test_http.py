"""The HTTP server, asked over a real socket."""

import json
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pytest
from prometheus_client import CollectorRegistry

from alerts.alert.alert import AlertStatus
from alerts.delivery.silences import LiveQuiet
from alerts.metrics.exporter import SnapshotCollector
from coordinator_model.kafka.states import GroupState
from streaming.config.server import HttpConfig
from streaming.serving.choosing import Wanted
from streaming.serving.http import HttpServer
from streaming.silences.desk import SilenceDesk
from streaming.silences.following import Follower
from tests.unit.streaming.fed_view import FedView

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Rows

NOW_MS = 1_700_000_100_000
ODD_NAMES = ["a/b", "../x", "a b", "ü\U0001f680", "100%", "a?b=c#d", '"><script>', "a\\b", "%2F", "a//b", "."]


class FakeHealth:
    """Says what the test wants."""

    def __init__(self) -> None:
        self.ready: list[dict[str, Any]] = [{"cluster": "eu", "ready": True}]
        self.broken: list[str] = []

    def clusters(self) -> list[dict[str, Any]]:
        """Return the clusters."""
        return self.ready

    def problems(self) -> list[str]:
        """Return the problems."""
        return self.broken


@pytest.fixture(scope="module")
def health() -> FakeHealth:
    return FakeHealth()


@pytest.fixture(scope="module")
def view() -> FedView:
    return FedView(["eu"], clock_ms=lambda: NOW_MS)


@pytest.fixture(scope="module")
def client(view: FedView, health: FakeHealth) -> Iterator[httpx.Client]:
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(view, groups_max=100, clock_ms=lambda: NOW_MS))
    desk = SilenceDesk(Follower([], LiveQuiet()), clusters=["eu"])
    server = HttpServer(HttpConfig(host="127.0.0.1", port=0), view, health, registry, silencing=desk)
    port = server.start()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20, trust_env=False) as made:
        yield made
    server.stop()
    assert not server.is_alive


@pytest.fixture(autouse=True)
def _picture(view: FedView, rows: "Rows") -> Iterator[None]:
    names = [group.group for group in view.groups(Wanted(limit=1000)).groups]
    view.apply("eu", [rows.report(name, removed=True) for name in names])
    yield
    names = [group.group for group in view.groups(Wanted(limit=1000)).groups]
    view.apply("eu", [rows.report(name, removed=True) for name in names])


def test_metrics_are_prometheus_text(client: httpx.Client, view: FedView, rows: "Rows") -> None:
    """With the content type that Prometheus wants."""
    view.apply("eu", [rows.report("g")])
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert 'groupwatch_group_members{cluster="eu",group="g"} 1.0' in answer.text


def test_ready_is_503_with_reasons_until_every_cluster_is(client: httpx.Client, health: FakeHealth) -> None:
    """Half a picture is not shown as the whole."""
    health.ready = [{"cluster": "a", "ready": True}, {"cluster": "b", "ready": False, "unreported_shards": 3}]
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()["ready"]) == (503, False)
    assert answer.json()["clusters"][1]["unreported_shards"] == 3
    health.ready = [{"cluster": "a", "ready": True}]
    assert client.get("/ready").status_code == 200
    health.ready = []
    assert client.get("/ready").status_code == 503


def test_healthz_fails_with_the_problem(client: httpx.Client, health: FakeHealth) -> None:
    """A dead thread is named."""
    assert client.get("/healthz").json() == {"healthy": True, "problems": []}
    health.broken = ["thread clock-eu is dead"]
    answer = client.get("/healthz")
    health.broken = []
    assert (answer.status_code, answer.json()["problems"]) == (503, ["thread clock-eu is dead"])


def test_groups_are_filtered_and_paged(client: httpx.Client, view: FedView, rows: "Rows") -> None:
    """By cluster, state and part of the name."""
    view.apply("eu", [rows.report(f"app-{n}") for n in range(3)])
    view.apply("eu", [rows.report("other", GroupState.EMPTY)])
    found = client.get(
        "/api/v1/groups", params={"q": "APP", "state": "Stable", "offset": 1, "limit": 1}
    ).json()
    assert (found["total"], [group["group"] for group in found["groups"]]) == (3, ["app-1"])
    assert client.get("/api/v1/groups", params={"state": "Empty"}).json()["groups"][0]["group"] == "other"


@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_group_name_can_be_asked_for(
    client: httpx.Client, view: FedView, rows: "Rows", name: str
) -> None:
    """Slashes, dots, percent signs and emoji, percent-encoded."""
    view.apply("eu", [rows.report(name)])
    encoded = quote(name, safe="").replace(".", "%2E")
    answer = client.get(f"/api/v1/groups/eu/{encoded}")
    assert answer.status_code == 200, answer.text
    assert answer.json()["report"]["group"] == name


@pytest.mark.parametrize("name", [".", "..", "a/b", "x/explain"])
def test_a_group_can_be_named_in_the_query(
    client: httpx.Client, view: FedView, rows: "Rows", name: str
) -> None:
    """Where browsers and proxies would fold or decode its path: facts, story, history and page."""
    view.apply("eu", [rows.report(name)])
    names = {"cluster": "eu", "group": name}
    assert client.get("/api/v1/group", params=names).json()["report"]["group"] == name
    assert client.get("/api/v1/group/explain", params=names).json()["group"] == name
    assert client.get("/api/v1/group/history", params=names).json()["group"] == name
    assert client.get("/group", params=names).headers["content-type"].startswith("text/html")


def test_a_query_without_names_is_refused(client: httpx.Client) -> None:
    """With a sentence, and a group that is not there is not found."""
    for path in ("/api/v1/group", "/api/v1/group/explain", "/api/v1/group/history"):
        answer = client.get(path, params={"cluster": "eu"})
        assert (answer.status_code, answer.json()["error"]) == (400, "cluster and group must be given")
    assert client.get("/api/v1/group", params={"cluster": "eu", "group": "no"}).status_code == 404


def test_slashes_that_were_not_encoded_belong_to_the_group(
    client: httpx.Client, view: FedView, rows: "Rows"
) -> None:
    """A person typing the address is understood."""
    view.apply("eu", [rows.report("a/b")])
    assert client.get("/api/v1/groups/eu/a/b").json()["report"]["group"] == "a/b"


def test_a_cluster_name_may_hold_a_slash(client: httpx.Client, view: FedView, rows: "Rows") -> None:
    """Only the encoded path tells it from the separator."""
    view.apply("eu/1", [rows.report("g")])
    assert client.get("/api/v1/groups/eu%2F1/g").json()["cluster"] == "eu/1"
    view.apply("eu/1", [rows.report("g", removed=True)])


def test_an_unknown_group_is_404(client: httpx.Client) -> None:
    """With a sentence."""
    answer = client.get("/api/v1/groups/eu/nobody")
    assert answer.status_code == 404
    assert "nobody" in answer.json()["error"]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=x",
        "offset=-1",
        "limit=1e3",
        "limit=٣",
        "state=Happy",
        "limit=" + "9" * 40,
    ],
)
def test_nonsense_in_a_query_is_400_with_a_sentence(client: httpx.Client, query: str) -> None:
    """Never a traceback, never a silent default."""
    answer = client.get(f"/api/v1/groups?{query}")
    assert answer.status_code == 400
    assert "must be" in answer.json()["error"]


def test_alerts_are_listed_open_first(client: httpx.Client, view: FedView, rows: "Rows") -> None:
    """Open ones by default, the last ended on request."""
    ended: dict[str, Any] = {"revision": 9, "status": AlertStatus.RESOLVED, "ends_at_ms": NOW_MS}
    view.apply("eu", [rows.alert(id="open"), rows.alert(id="over", **ended)])
    assert [alert["id"] for alert in client.get("/api/v1/alerts").json()["alerts"]] == ["open"]
    both = client.get("/api/v1/alerts?status=all").json()["alerts"]
    assert [alert["id"] for alert in both] == ["open", "over"]
    assert client.get("/api/v1/alerts?cluster=us").json()["total"] == 0
    assert client.get("/api/v1/alerts?status=loud").status_code == 400


def test_answers_keep_to_the_published_schemas(client: httpx.Client, view: FedView, rows: "Rows") -> None:
    """Every field of an answer is in its schema, and every required one in the answer."""
    view.apply("eu", [rows.report("g", commits={"t": {0: (1, 1)}}), rows.alert("g", id="s")])
    view.store.set_end_offsets("eu", {"t": {0: (5, NOW_MS)}})
    published = client.get("/api/v1/schema").json()
    paths = {path: path for path in published["endpoints"]}
    paths["/api/v1/groups/{cluster}/{group}"] = "/api/v1/groups/eu/g"
    paths["/api/v1/groups/{cluster}/{group}/explain"] = "/api/v1/groups/eu/g/explain"
    paths["/api/v1/groups/{cluster}/{group}/history"] = "/api/v1/groups/eu/g/history"
    for path in ("/api/v1/group", "/api/v1/group/explain", "/api/v1/group/history"):
        paths[path] = f"{path}?cluster=eu&group=g"
    assert len(paths) == 13
    for path, address in paths.items():
        _check(client.get(address).json(), published["endpoints"][path], published["$defs"])


def _check(value: Any, schema: dict[str, Any], definitions: dict[str, Any]) -> None:
    """A small validator: references, objects, arrays, and the JSON types."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rsplit("/", 1)[1]]
    options = schema.get("anyOf")
    if options is not None:
        fitting = [option for option in options if value is not None or option.get("type") == "null"]
        _check(
            value,
            fitting[0] if value is None else fitting[-1] if len(fitting) > 1 else fitting[0],
            definitions,
        )
        return
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float)}
    kind = schema.get("type")
    if kind in kinds:
        assert isinstance(value, kinds[kind]), (value, schema)  # type: ignore[arg-type]
    if "properties" in schema:
        assert set(schema.get("required", ())) <= set(value) <= set(schema["properties"]), schema["title"]
        for name, item in value.items():
            _check(item, schema["properties"][name], definitions)
    elif isinstance(value, list) and "items" in schema and schema["items"]:
        for item in value:
            _check(item, schema["items"], definitions)


def test_undecodable_is_listed(client: httpx.Client, view: FedView) -> None:
    """Counts and the last samples."""
    sample = {"at_ms": 1, "source": "events", "reason": "x", "detail": "", "sample": "AA=="}
    report = {"undecodable": [["events", "x", 4]], "samples": [sample]}
    view.apply("eu", [("cluster", "", json.dumps(report).encode())])
    found = client.get("/api/v1/undecodable").json()
    assert found["counts"] == [{"cluster": "eu", "source": "events", "reason": "x", "count": 4}]
    assert found["samples"][0]["sample"] == "AA=="


def test_only_reading_is_possible(client: httpx.Client) -> None:
    """There is nothing to change."""
    assert client.post("/api/v1/groups").status_code == 405
    assert client.delete("/api/v1/groups/eu/g").status_code == 405


def test_a_taken_port_is_an_oserror_at_start(view: FedView, health: FakeHealth) -> None:
    """The command can say so in one sentence."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = HttpConfig(host="127.0.0.1", port=taken.getsockname()[1])
        with pytest.raises(OSError, match="in use"):
            HttpServer(config, view, health, CollectorRegistry()).start()


def test_history_has_an_address_of_its_own(client: httpx.Client, view: FedView, rows: "Rows") -> None:
    """Beside the group's; a window that makes no sense is refused with a sentence."""
    view.apply("eu", [rows.report("a/b")])
    told = client.get("/api/v1/groups/eu/a%2Fb/history")
    assert (told.status_code, told.json()["group"]) == (200, "a/b")
    assert told.json()["to_ms"] - told.json()["from_ms"] == 3_600_000
    bad = client.get("/api/v1/groups/eu/a%2Fb/history", params={"from": "9", "to": "10"})
    assert (bad.status_code, "5 minutes" in bad.json()["error"]) == (400, True)
    assert client.get("/api/v1/groups/eu/nobody/history").status_code == 404
