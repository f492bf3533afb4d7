"""Silences over HTTP, asked over a real socket: added, listed, ended, and who may not."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from alerts.delivery.silences import LiveQuiet
from streaming.config.server import HttpConfig
from streaming.serving.http import HttpServer
from streaming.silences.desk import SilenceDesk
from streaming.silences.following import Follower
from tests.unit.streaming.fed_view import FedView
from tests.unit.streaming.memory_silences import MemorySilences
from tests.unit.streaming.serving.conftest import Asking

PATH = "/api/v1/silences"
ASKED = {"groups": ["payments"], "author": "ada", "comment": "deploy", "end": "2h"}
Opened = Callable[..., httpx.Client]


class _Health:
    def clusters(self) -> list[dict[str, Any]]:
        return []

    def problems(self) -> list[str]:
        return []


@pytest.fixture
def opened(asking: Asking) -> Opened:
    """Open a server with a desk of its own; return a client."""

    def open_(config: HttpConfig | None = None) -> httpx.Client:
        quiet, topic = LiveQuiet(), MemorySilences()
        follower = Follower([topic], quiet)
        follower.begin(topic.name, [])
        view = FedView(["eu"], clock_ms=lambda: 1, quiet=quiet)
        server = HttpServer(
            config or HttpConfig(host="127.0.0.1", port=0),
            view,
            _Health(),
            CollectorRegistry(),
            silencing=SilenceDesk(follower, clusters=["eu"], alert_of=view.shown.known),
        )
        return asking(server)

    return open_


def test_a_silence_is_added_listed_and_ended(opened: Opened) -> None:
    """With who, why and until when."""
    client = opened()
    added = client.post(PATH, json=ASKED)
    assert added.status_code == 201
    one = added.json()
    assert (one["state"], one["groups"], one["author"], one["comment"]) == (
        "active",
        ["payments"],
        "ada",
        "deploy",
    )
    assert one["ends_at_ms"] - one["starts_at_ms"] == 7_200_000
    assert client.get(PATH, params={"state": "active"}).json()["silences"] == [one]

    ended = client.delete(f"{PATH}/{one['id']}")
    assert (ended.status_code, ended.json()["state"]) == (200, "expired")
    assert client.get(PATH, params={"state": "active"}).json()["silences"] == []


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        pytest.param(b"{", "application/json", 400, id="no-json"),
        pytest.param(b"[" * 60_000, "application/json", 400, id="deep"),
        pytest.param(b"[]", "application/json", 400, id="no-object"),
        pytest.param(b'{"author": "x"}', "application/json; charset=utf-8", 400, id="incomplete"),
        pytest.param(b" " * 70_000, "application/json", 413, id="long"),
        pytest.param(b'{"end": "2h"}', "text/plain", 415, id="a-form-of-another-site"),
        pytest.param(b"", "", 415, id="no-type"),
    ],
)
def test_a_wrong_request_is_refused(opened: Opened, content: bytes, kind: str, status: int) -> None:
    """With a sentence, and nothing is added."""
    client = opened()
    answer = client.post(PATH, content=content, headers={"Content-Type": kind} if kind else {})

    assert answer.status_code == status
    assert answer.json()["error"]
    assert client.get(PATH).json()["silences"] == []


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Origin": "https://evil.example"}, id="another-site"),
        pytest.param({"Origin": "null"}, id="a-file"),
        pytest.param({"Origin": "http://evil.example:9464", "Host": "evil.example:9464"}, id="rebound-name"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, id="cross-site"),
    ],
)
def test_no_other_sites_page_silences_anything(opened: Opened, headers: dict[str, str]) -> None:
    """A browser says for whose page it asks."""
    client = opened()
    one = client.post(PATH, json=ASKED).json()

    assert client.post(PATH, json=ASKED, headers=headers).status_code == 403
    assert client.delete(f"{PATH}/{one['id']}", headers=headers).status_code == 403
    assert len(client.get(PATH, params={"state": "active"}).json()["silences"]) == 1


def test_our_own_page_may(opened: Opened) -> None:
    """By its address, or by ``http.external_url``."""
    client = opened(HttpConfig(host="127.0.0.1", port=0, external_url="https://gw.example/base/"))
    own = str(client.base_url).rstrip("/")

    for origin in (own, "https://gw.example"):
        assert client.post(PATH, json=ASKED, headers={"Origin": origin}).status_code == 201


def test_a_server_for_others_takes_no_silence_without_a_login(opened: Opened) -> None:
    """Reading is as before."""
    client = opened(HttpConfig(host="0.0.0.0", port=0))  # noqa: S104 - the point of it
    answer = client.post(PATH, json=ASKED)

    assert answer.status_code == 403
    assert "loopback" in answer.json()["error"]
    assert client.delete(f"{PATH}/x").status_code == 403
    assert client.get(PATH).status_code == 200


def test_unknown_ids_methods_and_states_are_named(opened: Opened) -> None:
    """As elsewhere in the API."""
    client = opened()

    assert client.delete(f"{PATH}/none").status_code == 404
    assert client.put(PATH, json=ASKED).status_code == 405
    assert client.get(PATH, params={"state": "old"}).status_code == 400
