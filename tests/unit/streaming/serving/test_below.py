"""The server below a path, for proxies that leave their path in what they pass on."""

from collections.abc import Callable
from urllib.parse import urljoin

import httpx
import pytest
from prometheus_client import CollectorRegistry

from streaming.config.server import HttpConfig, UserConfig
from streaming.serving.http import HttpServer
from tests.unit.streaming.fed_view import FedView
from tests.unit.streaming.healthy import Healthy
from tests.unit.streaming.serving.conftest import Asking

Open = Callable[..., httpx.Client]


@pytest.fixture
def serve(asking: Asking) -> Open:
    """Start a server whose address for people is this; return a client."""

    def start(external_url: str, users: tuple[UserConfig, ...] = ()) -> httpx.Client:
        config = HttpConfig(host="127.0.0.1", port=0, external_url=external_url, users=list(users))
        view = FedView(["eu"], clock_ms=lambda: 1)
        return asking(HttpServer(config, view, Healthy(), CollectorRegistry()))

    return start


@pytest.mark.parametrize("path", ["/", "/groups/eu/a%2Fb", "/api/v1/groups", "/metrics", "/healthz"])
def test_everything_is_answered_with_and_without_the_path(serve: Open, path: str) -> None:
    """A proxy may take its path away or leave it."""
    client = serve("https://ops.example/kafka/groupwatch/")
    bare, below = client.get(path), client.get(f"/kafka/groupwatch{path}")
    assert (bare.status_code, below.status_code) == (200, 200)
    assert bare.headers["content-type"] == below.headers["content-type"]


@pytest.mark.parametrize("place", ["", "/kafka/groupwatch"])
def test_the_description_leads_to_where_it_is(serve: Open, place: str) -> None:
    """A client that is made of it asks below the same path."""
    client = serve("https://ops.example/kafka/groupwatch/")
    address = f"{place}/api/openapi.json"
    described = client.get(address).json()
    (server,) = described["servers"]
    root = urljoin(address, server["url"]).rstrip("/")
    assert root == place
    assert client.get(f"{root}/api/v1/groups").status_code == 200


def test_the_path_without_its_slash_leads_below_it(serve: Open) -> None:
    """Relative addresses would lead elsewhere otherwise."""
    answer = serve("https://ops.example/groupwatch").get("/groupwatch")
    assert (answer.status_code, answer.headers["location"]) == (308, "/groupwatch/")


def test_another_path_is_not_there(serve: Open) -> None:
    """Nor one that only begins alike."""
    client = serve("https://ops.example/groupwatch/")
    assert client.get("/groupwatcher/").status_code == 404
    assert client.get("/other/groupwatch/").status_code == 404


def test_a_path_of_the_servers_own_is_left_alone(serve: Open) -> None:
    """Below /groups nobody could tell a group from the page."""
    client = serve("https://ops.example/groups/")
    assert client.get("/groups/eu/g").headers["content-type"].startswith("text/html")
    assert client.get("/groups/api/v1/groups").headers["content-type"].startswith("text/html")


def test_logins_are_asked_for_below_the_path_as_well(serve: Open) -> None:
    """And health is for everybody."""
    user = UserConfig(name="ada", password="look-here")  # noqa: S106 - a test's own
    client = serve("https://ops.example/groupwatch/", (user,))
    assert client.get("/groupwatch/api/v1/groups").status_code == 401
    assert client.get("/groupwatch/api/v1/groups", auth=("ada", "look-here")).status_code == 200
    assert client.get("/groupwatch/healthz").status_code == 200
