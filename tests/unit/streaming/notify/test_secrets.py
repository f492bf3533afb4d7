"""No password, token or address with a token in it is said anywhere, whatever receivers answer."""

import json
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from streaming.devkit.kafka import free_ports
from tests.live.support.stage import await_that

SECRETS = {
    name: f"hush-{name}-4f1c9a"
    for name in (
        *(
            "kafka",
            "hmac",
            "path",
            "query",
            "url-password",
            "header",
            "am-password",
            "am-header",
            "json-password",
        ),
        *("json-path", "mail-password", "proxy-password", "page-password", "page-token"),
    )
}
RECEIVERS = {"hook", "am", "json", "mail", "behind-proxy"}


class Echo:
    """A service that refuses everything, and repeats all that it was sent in its answer."""

    def __init__(self, status: int) -> None:
        echo = self
        self.heard: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                sent = f"{self.path} {self.headers}".encode()
                body = sent + self.rfile.read(size)
                echo.heard.append(sent.decode())
                self.send_response(status)
                self.send_header("Location", self.path)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST  # noqa: N815 - the base's name

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()


def _config(refuses: int, redirects: int, health: int, kafka: int) -> dict[str, Any]:
    s = SECRETS
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
    jaas = f'{plain} required username="u" password="{s["kafka"]}";'
    here = f"127.0.0.1:{refuses}"
    return {
        "clusters": [
            {
                "name": "away",
                "bootstrap_servers": [f"127.0.0.1:{kafka}"],
                "client": {
                    "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas
                },
            }
        ],
        "http": {
            "users": [
                {"name": "anna", "password": s["page-password"], "role": "operate"},
                {"name": "robot", "token": s["page-token"]},
            ]
        },
        "notify_http": {"port": health},
        "rules": {"cluster_unreachable": {"after": "1s"}},
        "receivers": [
            {
                "name": "hook",
                "webhook": {
                    "url": f"http://me:{s['url-password']}@{here}/{s['path']}?key={s['query']}",
                    "secret": s["hmac"],
                    "headers": {"Authorization": f"Bearer {s['header']}"},
                },
            },
            {
                "name": "am",
                "alertmanager": {
                    "urls": [f"http://me:{s['am-password']}@{here}/", f"http://127.0.0.1:{redirects}/"],
                    "headers": {"X-Key": s["am-header"]},
                },
            },
            {"name": "json", "apprise": {"url": f"json://me:{s['json-password']}@{here}/{s['json-path']}"}},
            {"name": "mail", "apprise": {"url": f"mailto://me:{s['mail-password']}@127.0.0.1:{kafka}?from=a@b.example"}},
            {
                "name": "behind-proxy",
                "webhook": {
                    "url": f"http://elsewhere.example/{s['path']}",
                    "proxy": f"http://me:{s['proxy-password']}@{here}",
                },
            },
        ],
    }  # fmt: skip


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Where it was said -> what, of a process that tries every receiver."""
    folder = tmp_path_factory.mktemp("secrets")
    refuses, redirects = Echo(400), Echo(302)
    health, kafka = free_ports(2)
    config = folder / "groupwatch.yaml"
    config.write_text(json.dumps(_config(refuses.port, redirects.port, health, kafka)))
    groupwatch = [sys.executable, "-m", "streaming", "--log-level", "debug"]
    checked = _output([*groupwatch, "check-config", str(config)], folder)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*groupwatch, "notify", "--config", str(config)], cwd=folder, stdout=log, stderr=log
        )
    try:
        await_that(lambda: _tried(health) >= RECEIVERS, "every receiver is tried")
        pages = {path: _get(health, path) for path in ("/metrics", "/healthz", "/ready")}
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):  # it waits for a Kafka that never comes; its words are said
            process.wait(2)
        process.kill()
        process.wait()
    found = {"check-config": checked, "log": (folder / "log").read_text()} | pages
    page = [*groupwatch, "alerts", "test", "--config", str(config), "--receiver"]
    with ThreadPoolExecutor() as pool:
        names = ("hook", "json")
        found |= zip(names, pool.map(lambda name: _output([*page, name], folder), names), strict=True)
    kept = [file for file in folder.rglob("*") if file.is_file() and file not in (config, folder / "log")]
    yield found | {file.name: file.read_text(errors="replace") for file in kept}
    assert refuses.heard
    refuses.close()
    redirects.close()


def _output(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def _get(port: int, path: str) -> str:
    with suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}{path}", timeout=60).text
    return ""


def _tried(port: int) -> set[str]:
    """Return the receivers of which an attempt has been counted."""
    lines = _get(port, "/metrics").splitlines()
    counted = [one for one in lines if one.startswith("groupwatch_notifications_total{")]
    return {one.split('receiver="')[1].split('"')[0] for one in counted if not one.endswith(" 0.0")}


def test_every_receiver_was_tried_and_its_trouble_is_told(said: dict[str, str]) -> None:
    """What is looked for was there to be said: refusals that repeat what they refuse."""
    assert "HTTP 400" in said["log"]
    for name in RECEIVERS:
        assert f"receiver {name}, alert" in said["log"]
    assert "***" in said["log"]


@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_is_said(said: dict[str, str], secret: str) -> None:
    """In no log, metric, answer or file that the process keeps; nor as a header has it."""
    forms = {SECRETS[secret], b64encode(f"me:{SECRETS[secret]}".encode()).decode()}
    assert [where for where, text in said.items() if any(form in text for form in forms)] == []
