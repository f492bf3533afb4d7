"""How commands ask a running job: with a login, over TLS, and without a word of the password."""

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry
from typer.testing import CliRunner

from alerts.delivery.silences import LiveQuiet
from streaming import cli
from streaming.asking import JobAddress, ask, job_of
from streaming.config.config import parse_config
from streaming.serving.http import HttpServer
from streaming.silences.desk import SilenceDesk
from streaming.silences.following import Follower
from tests.unit.alerts.delivery.receivers.twins import certificates
from tests.unit.streaming.fed_view import FedView
from tests.unit.streaming.memory_silences import MemorySilences

CLUSTERS = "clusters: [{name: eu, bootstrap_servers: ['127.0.0.1:1']}]\n"
PASSWORD = "".join(["s3cret", "-word"])
Serve = Callable[[str], int]


class _Health:
    def clusters(self) -> list[dict[str, Any]]:
        return []

    def problems(self) -> list[str]:
        return []


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start the server of a configuration; return its port."""
    ends = []

    def start(text: str) -> int:
        quiet, topic = LiveQuiet(), MemorySilences()
        follower = Follower([topic], quiet)
        follower.begin(topic.name, [])
        view = FedView(["eu"], clock_ms=lambda: 1, quiet=quiet)
        desk = SilenceDesk(follower, clusters=["eu"], alert_of=view.shown.known)
        http = parse_config(text).http.model_copy(update={"port": 0})
        server = HttpServer(http, view, _Health(), CollectorRegistry(), silencing=desk)
        ends.append(server.stop)
        return server.start()

    yield start
    for end in ends:
        end()


@pytest.fixture
def signed(tmp_path: Path) -> tuple[Path, Path]:
    """The authority, and the server's certificate with its key."""
    return certificates(tmp_path, "localhost")


def _users(**user: str) -> str:
    said = ", ".join(f"{name}: {value}" for name, value in user.items())
    return f"users: [{{{said}}}]"


def test_silences_by_an_address_with_a_login(
    serve: Serve, signed: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Added, listed and ended over TLS; a wrong password is one sentence, which does not repeat it."""
    ca, certificate = signed
    user = _users(name="ada", password=PASSWORD, role="operate")
    port = serve(f"{CLUSTERS}http: {{certificate: {certificate}, {user}}}\n")
    monkeypatch.setenv("SSL_CERT_FILE", str(ca))

    def run(*arguments: str, password: str = PASSWORD) -> tuple[int, str]:
        url = f"https://ada:{password}@localhost:{port}"
        given = ["silence", *arguments, "--url", url]
        done = CliRunner().invoke(cli.application(given), given)
        return done.exit_code, f"{done.output}{done.exception or ''}"

    code, added = run("add", "--group", "payments", "--end", "2h", "--author", "ada")
    assert (code, "group payments" in added) == (0, True), added
    assert run("list") == (0, added)
    assert run("expire", added.split()[0])[0] == 0
    code, refused = run("list", password="wrong-" + PASSWORD)
    assert (code, PASSWORD in refused) == (1, False)
    assert "login" in refused
    monkeypatch.delenv("SSL_CERT_FILE")
    code, untrusted = run("list")
    assert (code, PASSWORD in untrusted) == (1, False)
    assert f"no groupwatch answers at https://localhost:{port}: " in untrusted


@pytest.mark.parametrize("secret", ["password", "token"])
def test_the_configurations_own_job_is_asked_with_its_login(
    serve: Serve, signed: tuple[Path, Path], secret: str
) -> None:
    """By the first user, whoever signed the certificate."""
    given = f"certificate: {signed[1]}, {_users(name='ada', **{secret: PASSWORD})}"
    port = serve(f"{CLUSTERS}http: {{{given}}}\n")
    job = job_of(parse_config(f"{CLUSTERS}http: {{port: {port}, {given}}}\n"))
    assert job.shown == f"https://127.0.0.1:{port}"
    assert ask(job, "/api/v1/groups", timeout_s=20).status_code == 200
    with pytest.raises(httpx.ConnectError):
        ask(job._replace(tls=ssl.create_default_context()), "/api/v1/groups", timeout_s=20)


@pytest.mark.parametrize(
    ("http", "url"),
    [
        ("{host: 0.0.0.0, port: 9}", "http://127.0.0.1:9"),
        ("{host: '::', port: 9}", "http://[::1]:9"),
        ("{external_url: 'https://gw.example/kafka/'}", "https://gw.example/kafka"),
    ],
)
def test_where_a_job_is(http: str, url: str) -> None:
    """What listens everywhere is asked here; what people use goes first."""
    assert job_of(parse_config(f"{CLUSTERS}http: {http}\n")) == JobAddress(url)
