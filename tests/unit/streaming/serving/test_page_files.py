"""The page's files, asked over a real socket, and what they may hold."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import pytest
from prometheus_client import CollectorRegistry

from coordinator_model.kafka.states import GroupState
from streaming.config.server import HttpConfig
from streaming.serving.http import HttpServer
from streaming.serving.page_files import PageFiles
from tests.unit.streaming.fed_view import FedView

PAGE = Path(__file__).parents[4] / "streaming" / "serving" / "page"
VENDORED = json.loads((PAGE / "vendor" / "vendored.json").read_text())["files"]
OURS = sorted(one for one in PAGE.rglob("*.js") if "vendor" not in one.parts)


class _Health:
    def clusters(self) -> list[dict[str, Any]]:
        return []

    def problems(self) -> list[str]:
        return []


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    view = FedView(["eu"], clock_ms=lambda: 0)
    server = HttpServer(HttpConfig(host="127.0.0.1", port=0), view, _Health(), CollectorRegistry())
    with httpx.Client(base_url=f"http://127.0.0.1:{server.start()}", timeout=20, trust_env=False) as made:
        yield made
    server.stop()


@pytest.mark.parametrize("path", ["/", "/groups/eu/payments", "/groups/eu/a%2Fb%20%25", "/groups/eu/a/b"])
def test_every_address_of_the_page_loads_all_its_files(client: httpx.Client, path: str) -> None:
    """The addresses in the shell are relative, and lead to files with their types."""
    shell = client.get(path)
    assert shell.headers["content-type"].startswith("text/html")
    wanted = re.findall(r'(?:src|href)="([^"]+)"', shell.text)
    assert len(wanted) > len(OURS)
    for one in wanted:
        assert not one.startswith(("/", "http:", "https:"))
        found = client.get(urljoin(str(shell.url), one))
        assert (found.status_code, found.headers["x-content-type-options"]) == (200, "nosniff")
        assert found.headers["content-type"].startswith(("text/javascript", "text/css", "image/svg+xml"))


def test_nothing_may_run_or_load_but_our_own_files(client: httpx.Client) -> None:
    """The policy has no hole for scripts or styles within a page, and a runbook has the same."""
    for path in ("/", "/groups/eu/x", "/runbooks/RebalanceStorm", "/api/v1/groups/eu/x/explain?format=text"):
        answer = client.get(path)
        if answer.status_code == 404:
            continue
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "style-src 'self';" in policy
        assert "unsafe" not in policy
        assert not re.search(r"<style|style=|<script(?! type=\"module\" src=)|\son\w+=", answer.text)


def test_files_are_kept_for_ever_and_the_shell_is_asked_for_again(client: httpx.Client) -> None:
    """A file's address changes with any file; an unchanged answer has no body."""
    shell = client.get("/")
    assert shell.headers["cache-control"] == "no-cache"
    script = client.get(re.findall(r'src="([^"]+)"', shell.text)[0])
    assert "immutable" in script.headers["cache-control"]
    again = client.get(shell.url, headers={"If-None-Match": shell.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    ["page/0000000000000000/app.js", "{files}/nothing.js", "{files}/%2e%2e/api.py"],
)
def test_other_files_are_not_served(client: httpx.Client, path: str) -> None:
    """Neither another version's nor what lies beside the page."""
    assert client.get("/" + path.format(files=PageFiles().address("")[:-1])).status_code == 404


@pytest.mark.parametrize("name", VENDORED)
def test_vendored_libraries_are_those_of_the_lock(name: str) -> None:
    """Each is the published file, with its licence beside it."""
    known = VENDORED[name]
    text = (PAGE / "vendor" / name).read_text()
    if "replaced" in known:
        published, ours = known["replaced"]
        assert text.count(ours) == 1
        text = text.replace(ours, published)
    assert hashlib.sha256(text.encode()).hexdigest() == known["sha256"]
    assert (PAGE / "vendor" / known["license_file"]).stat().st_size > 500


def test_nothing_is_vendored_without_the_lock() -> None:
    """A script that nobody can trace does not slip in."""
    assert {one.name for one in (PAGE / "vendor").glob("*.js")} == set(VENDORED)


@pytest.mark.parametrize("path", OURS, ids=lambda one: str(one.name))
def test_our_modules_stay_small_and_write_no_markup(path: Path) -> None:
    """Names of strangers only ever become text; nothing outside is asked."""
    text = path.read_text()
    assert len(text.splitlines()) < 400
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerously|eval\(|Function\(", text
    )
    assert not re.search(r"""(?:fetch|import|from)\s*\(?\s*["']https?:""", text)


def test_the_page_knows_every_state() -> None:
    """The list of the filter is the model's."""
    listed = re.search(r"STATES = (\[[^\]]*\])", (PAGE / "filters.js").read_text())
    assert listed is not None
    assert set(json.loads(listed[1])) == {str(state) for state in GroupState}


def test_the_page_is_told_who_asks_and_what_is_refused(client: httpx.Client) -> None:
    """So a button that would be refused is not offered."""
    assert client.get("/api/v1/me").json() == {
        "user": "",
        "may_change": False,
        "why_not": "this process keeps no silences",
    }
