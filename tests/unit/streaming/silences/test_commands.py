"""``groupwatch silence`` against a server on a real socket, and against topics in memory."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from typer.testing import CliRunner, Result

from alerts.delivery.silences import LiveQuiet
from streaming import cli
from streaming.config.server import HttpConfig
from streaming.serving.http import HttpServer
from streaming.silences import topic as topic_module
from streaming.silences.commands import SilenceError
from streaming.silences.desk import SilenceDesk, SilenceRefusedError
from streaming.silences.following import Follower
from tests.unit.streaming.fed_view import FedView
from tests.unit.streaming.memory_silences import MemorySilences

Run = Callable[..., Result]


class _Health:
    def clusters(self) -> list[dict[str, object]]:
        return []

    def problems(self) -> list[str]:
        return []


def silence(*words: str) -> Result:
    """Run ``groupwatch silence``."""
    arguments = ["silence", *words]
    return CliRunner().invoke(cli.application(arguments), arguments)


@pytest.fixture
def url() -> Iterator[str]:
    """The address of a server whose silences are kept in memory."""
    topic = MemorySilences()
    follower = Follower([topic], LiveQuiet())
    follower.begin(topic.name, [])
    server = HttpServer(
        HttpConfig(host="127.0.0.1", port=0),
        FedView(["eu"], clock_ms=lambda: 1),
        _Health(),
        CollectorRegistry(),
        silencing=SilenceDesk(follower, clusters=["eu"]),
    )
    yield f"http://127.0.0.1:{server.start()}"
    server.stop()


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A configuration whose topic is kept in memory."""
    kept = MemorySilences()
    monkeypatch.setattr(topic_module, "topics_of", lambda _config: [kept])
    file = tmp_path / "groupwatch.yaml"
    file.write_text("clusters: [{name: eu, bootstrap_servers: [127.0.0.1:1]}]")
    return str(file)


@pytest.mark.parametrize("where", ["--url", "--config"])
def test_a_silence_is_added_listed_and_ended(where: str, request: pytest.FixtureRequest) -> None:
    """Over the API or in the topic: the same words, the same answers."""
    place = (where, request.getfixturevalue(where[2:]))
    added = silence("add", "--group", "pay.*", "--end", "2h", "--comment", "a\u202eb", "--json", *place)
    assert added.exit_code == 0
    silence_id = json.loads(added.stdout)["id"]

    listed = silence("list", *place).stdout
    assert listed.startswith(f"{silence_id}  active, from ")
    assert "group pay.*" in listed
    assert r"a\u202eb" in listed
    assert silence("expire", silence_id, *place).exit_code == 0
    assert silence("list", *place).stdout == ""
    assert silence_id in silence("list", "--state", "all", *place).stdout


def test_what_is_refused_is_said_in_a_sentence(url: str, config: str) -> None:
    """The same over the API and in the topic."""
    words = ("add", "--cluster", "us", "--end", "1h")

    assert isinstance(silence(*words, "--url", url).exception, SilenceError)
    assert isinstance(silence(*words, "--config", config).exception, SilenceRefusedError)
    assert isinstance(silence("list", "--url", "http://127.0.0.1:1").exception, SilenceError)


def test_one_place_is_named(url: str, config: str) -> None:
    """Neither both nor none."""
    assert silence("list").exit_code == 2
    assert silence("list", "--url", url, "--config", config).exit_code == 2
