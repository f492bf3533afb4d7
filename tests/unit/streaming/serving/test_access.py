"""Who may read, who may change something, and what the log says of it, over real sockets."""

import logging
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from alerts.delivery.silences import LiveQuiet
from alerts.metrics.exporter import SnapshotCollector
from alerts.rules.registry import ALL_RULES
from streaming.config.config import ConfigError, parse_config
from streaming.config.server import HttpConfig, UserConfig
from streaming.serving.http import HttpServer
from streaming.silences.desk import SilenceDesk
from streaming.silences.following import Follower
from tests.unit.alerts.delivery.receivers.twins import certificates
from tests.unit.streaming.fed_view import FedView
from tests.unit.streaming.memory_silences import MemorySilences

PATHS = ("/", "/metrics", "/api/v1/groups", "/api/v1/silences", "/api/v1/schema", "/runbooks/", "/nothing")
READER = UserConfig(name="prometheus", token="scrape-me-please")  # noqa: S106 - a test's own
ONCALL = UserConfig(name="oncall", password="püñk:tlich", role="operate")  # noqa: S106 - a test's own
ASKED = {"groups": ["payments"], "author": "ada", "comment": "deploy", "end": "2h"}

Open = Callable[..., httpx.Client]


class _Health:
    def clusters(self) -> list[dict[str, Any]]:
        return [{"cluster": "eu", "ready": True}]

    def problems(self) -> list[str]:
        return []


@pytest.fixture
def serve() -> Iterator[Open]:
    """Start a server; return a client."""
    ends: list[Callable[[], None]] = []

    def start(verify: ssl.SSLContext | None = None, **options: Any) -> httpx.Client:
        quiet, topic = LiveQuiet(), MemorySilences()
        follower = Follower([topic], quiet)
        follower.begin(topic.name, [])
        view, registry = FedView(["eu"], clock_ms=lambda: 1, quiet=quiet), CollectorRegistry()
        registry.register(SnapshotCollector(view, groups_max=100, clock_ms=lambda: 1))
        desk = SilenceDesk(follower, clusters=["eu"], alert_of=view.shown.known)
        config = HttpConfig(**({"port": 0} | options))
        server = HttpServer(config, view, _Health(), registry, silencing=desk)
        port = server.start()
        scheme = "https" if config.certificate else "http"
        client = httpx.Client(
            base_url=f"{scheme}://localhost:{port}", timeout=20, trust_env=False, verify=verify or True
        )
        ends.extend((client.close, server.stop))
        return client

    yield start
    for end in ends:
        end()


def test_with_users_only_health_is_for_everybody(serve: Open) -> None:
    """And what does not exist is hidden as well."""
    client = serve(users=[READER, ONCALL])
    assert [client.get(path).status_code for path in PATHS] == [401] * len(PATHS)
    assert client.get("/").headers["www-authenticate"].startswith("Basic realm=")
    assert [client.get(path).status_code for path in ("/healthz", "/ready")] == [200, 200]
    assert client.post("/api/v1/silences", json=ASKED).status_code == 401


@pytest.mark.parametrize(
    "header",
    [
        "Bearer scrape-me-pleasE",
        "Bearer",
        "Bearer püñk:tlich",
        "Basic !!!",
        "Basic b25jYWxsOg==",
        "Basic cHJvbWV0aGV1czpzY3JhcGUtbWUtcGxlYXNl",  # the reader's token as a password
        "Basic OnDDvMOxazp0bGljaA==",  # the right password without the name
        "Digest x",
        "",
    ],
)
def test_what_proves_nobody_is_refused(serve: Open, header: str) -> None:
    """Wrong secrets, the right secret in the wrong way, and nonsense."""
    client = serve(users=[READER, ONCALL])
    answer = client.get("/metrics", headers=[(b"Authorization", header.encode())])
    assert answer.status_code == 401


def test_users_read_and_operators_change(serve: Open) -> None:
    """By token or by password; a reader who wants to silence is told what he lacks."""
    client = serve(users=[READER, ONCALL])
    token, login = {"Authorization": f"Bearer {READER.token}"}, ("oncall", ONCALL.password)
    assert [client.get(path, headers=token).status_code for path in PATHS] == [200] * 6 + [404]
    assert [client.get(path, auth=login).status_code for path in PATHS] == [200] * 6 + [404]
    refused = client.post("/api/v1/silences", json=ASKED, headers=token)
    assert (refused.status_code, "operate" in refused.json()["error"]) == (403, True)
    added = client.post("/api/v1/silences", json=ASKED, auth=login)
    assert added.status_code == 201
    gone = f"/api/v1/silences/{added.json()['id']}"
    assert client.delete(gone, headers=token).status_code == 403
    assert client.delete(gone, auth=login, headers={"Origin": "https://evil.example"}).status_code == 403
    assert client.delete(gone, auth=login).status_code == 200


def test_operators_change_it_from_elsewhere(serve: Open) -> None:
    """With users, the server need not be on a loopback address."""
    client = serve(host="0.0.0.0", users=[ONCALL])  # noqa: S104 - the point of it
    assert client.post("/api/v1/silences", json=ASKED, auth=("oncall", ONCALL.password)).status_code == 201


def test_it_speaks_tls(serve: Open, tmp_path: Path) -> None:
    """With a certificate of ours, and with nothing else on that port."""
    ca, signed = certificates(tmp_path, "localhost")
    client = serve(ssl.create_default_context(cafile=str(ca)), certificate=str(signed), users=[READER])
    assert client.get("/healthz").status_code == 200
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"Authorization": f"Bearer {READER.token}"}).status_code == 200
    with pytest.raises(httpx.HTTPError):
        httpx.get(str(client.base_url).replace("https", "http"), trust_env=False)


def test_each_request_is_logged_but_routine(serve: Open, caplog: pytest.LogCaptureFixture) -> None:
    """Who asked, what for and what came of it; no query and no secret, and no line can be forged."""
    caplog.set_level(logging.INFO, "groupwatch.http.access")
    client = serve(users=[READER])
    token = {"Authorization": f"Bearer {READER.token}"}
    client.get("/healthz")
    client.get("/metrics", headers=token)
    client.get("/metrics")
    client.get("/api/v1/groups/eu/a%0Ab?since=secret", headers=token)
    client.get("/healthz")  # the line of the one before is written behind its answer
    said = [record.getMessage().rsplit(" ", 2)[0] for record in caplog.records]
    assert said == [
        "127.0.0.1 - GET /metrics 401",
        "127.0.0.1 prometheus GET /api/v1/groups/eu/a%0Ab 404",
    ]
    assert READER.token not in caplog.text


def test_the_access_log_can_be_off(serve: Open, caplog: pytest.LogCaptureFixture) -> None:
    """For those whose proxy has one."""
    caplog.set_level(logging.INFO, "groupwatch.http.access")
    client = serve(access_log=False)
    for _ in range(2):  # the first one's line would be there before the second one's answer
        client.get("/")
    assert not [one for one in caplog.records if one.name == "groupwatch.http.access"]


def test_a_server_for_everybody_says_so(serve: Open, caplog: pytest.LogCaptureFixture) -> None:
    """At its start, and in ``check-config``; a login or a loopback address ends that."""
    serve(host="0.0.0.0")  # noqa: S104 - the point of it
    assert any("without users" in record.getMessage() for record in caplog.records)
    caplog.clear()
    serve(host="0.0.0.0", users=[READER])  # noqa: S104 - the point of it
    serve(host="127.0.0.5")
    assert "without users" not in caplog.text


@pytest.mark.parametrize(
    ("http", "path"),
    [
        ("users: [{name: a}]", "either a password or a token"),
        ("users: [{name: a, password: longenough, token: longenough}]", "either a password or a token"),
        ("users: [{name: a, password: short}]", "at least 8"),
        ("users: [{name: 'a:b', password: longenough}]", "http.users[0].name"),
        ("users: [{name: a, token: longenough, role: admin}]", "http.users[0].role"),
        ("users: [{name: a, token: longenough}, {name: a, token: longenough2}]", "name of its own"),
        ("certificate: /does/not/exist", "the file cannot be used"),
        ("key: /does/not/exist", "needs a certificate"),
        ("cluster_label: group", "no metric has yet"),
        ("cluster_label: 'a-b'", "no metric has yet"),
    ],
)
def test_mistakes_are_named_without_the_secret(http: str, path: str) -> None:
    """As everywhere in the configuration."""
    text = f"clusters: [{{name: eu, bootstrap_servers: ['h:1']}}]\nhttp: {{{http}}}\n"
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    assert path in str(caught.value)
    assert "longenough" not in str(caught.value)


def test_each_alert_has_its_runbook_here(serve: Open) -> None:
    """As a page, with or without ``.md``; the list names all."""
    client = serve()
    listed = client.get("/runbooks/").text
    for rule in ALL_RULES:
        page = client.get(f"/runbooks/{rule.name}.md")
        assert (page.status_code, page.text) == (200, client.get(f"/runbooks/{rule.name}").text)
        assert f"<h1>{rule.name}" in page.text
        assert '<a href=".' not in page.text
        assert f'href="{rule.name}.md"' in listed
    assert "script-src" in client.get("/runbooks/RebalanceStorm").headers["content-security-policy"]
    assert client.get("/runbooks/..%2Fsecrets").status_code == 404
    assert client.get("/runbooks/Nothing").status_code == 404


def test_scrapers_get_openmetrics_if_they_ask(serve: Open) -> None:
    """As Prometheus does; a version that is none gives the old text."""
    client = serve()
    asked = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    answer = client.get("/metrics", headers={"Accept": asked})
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    families = {family.name for family in text_string_to_metric_families(answer.text)}  # type: ignore[no-untyped-call]
    assert "groupwatch_groups" in families
    odd = client.get("/metrics", headers={"Accept": "application/openmetrics-text;version=x.y"})
    assert (odd.status_code, odd.headers["content-type"].split(";")[0]) == (200, "text/plain")
