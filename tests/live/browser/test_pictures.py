"""The pictures of README and tutorial, taken of a real incident; ``make pictures`` writes them.

Otherwise the same is played for two minutes, and the pictures go into the test's folder.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.live.browser import real_incident as real
from tests.live.browser.lag_only import LAG
from tests.live.browser.small_png import smaller
from tests.live.support.stage import now_ms

pytestmark = [pytest.mark.browser, pytest.mark.kafka, pytest.mark.spark, pytest.mark.promtool]

KEPT = Path(__file__).parents[3] / "docs" / "pictures"
IS_KEPT = bool(os.environ.get("GROUPWATCH_PICTURES"))
DESK, TALL, PHONE = (1200, 1000), (1200, 1560), (360, 780)


@dataclass
class Album:
    """The pictures, and what stood on them."""

    folder: Path
    incident: real.Incident
    blank: Page
    """An empty tab."""
    texts: dict[str, str] = field(default_factory=dict)
    """Picture -> the text of what was photographed."""
    series: set[str] = field(default_factory=set)
    """Names of all that the lag-only Prometheus had."""

    def keep(self, name: str, seen: Page | Locator) -> None:
        """Take a picture."""
        picture = seen.screenshot(animations="disabled")
        (self.folder / f"{name}.png").write_bytes(smaller(picture, self.blank))
        part = seen.locator("body") if isinstance(seen, Page) else seen
        self.texts[name] = part.text_content() or ""


def _opened(browser: Browser, size: tuple[int, int], address: str, *, is_dark: bool = False) -> Page:
    page = browser.new_page(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if is_dark else "light",
        reduced_motion="reduce",
        timezone_id="UTC",
    )
    page.goto(address)
    return page


def _fleet(browser: Browser, album: Album) -> None:
    page = _opened(browser, TALL, album.incident.page)
    page.locator(".alert").first.wait_for()
    page.locator("tbody tr").first.wait_for()
    album.keep("fleet", page)
    page.close()


def _phone(browser: Browser, album: Album) -> None:
    """The alert that a link led to."""
    page = _opened(browser, PHONE, f"{album.incident.page}groups/{real.CLUSTER}/{real.GROUP}")
    alert = page.locator(".alert", has_text="RebalanceStorm")
    alert.wait_for()
    alert.evaluate("one => scrollTo(0, one.offsetTop - 12)")
    album.keep("phone", page)
    page.close()


def _group(browser: Browser, album: Album, until_ms: int) -> None:
    incident = album.incident
    address = f"{incident.page}groups/{real.CLUSTER}/{real.GROUP}?from={incident.began_ms}&to={until_ms}"
    for name, is_dark in (("incident", False), ("incident-dark", True)):
        page = _opened(browser, DESK, address, is_dark=is_dark)
        page.locator(".story li").first.wait_for()
        # The first loss of the culprit, with its owners before and after.
        page.locator(".mark[aria-label*='session timeout'] .mark-touch").first.click()
        page.mouse.move(0, 0)
        panel = page.locator("section", has=page.locator("#rebalance-title"))
        expect(panel).to_contain_text("partition-seconds")
        page.locator(".timeline-panel").evaluate("one => scrollTo(0, one.offsetTop - 12)")
        album.keep(name, page)
        if not is_dark:
            album.keep("rebalance", panel)
            album.keep("timeline", page.locator(".stage"))
        page.close()


def _lag_only(browser: Browser, album: Album, until_ms: int) -> None:
    incident = album.incident
    seconds = max(60, round((until_ms - incident.began_ms) / 1000))
    expr = f'sum by (group, topic) ({LAG}{{group="{real.GROUP}"}})'
    page = _opened(browser, (1200, 800), incident.lag.graph(expr, seconds))
    page.locator(".rickshaw_graph path").first.wait_for()
    page.mouse.move(0, 0)
    album.keep("lag-only", page)
    album.series = incident.lag.kept()
    page.close()


def _repaired(browser: Browser, album: Album, until_ms: int) -> None:
    incident = album.incident
    address = f"{incident.page}groups/{real.CLUSTER}/{real.GROUP}?from={incident.began_ms}&to={until_ms}"
    page = _opened(browser, DESK, address)
    page.locator(".mark").first.wait_for()
    album.keep("repaired", page.locator(".stage"))
    page.close()


@pytest.fixture(scope="module")
def album(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Album]:
    """Play it, and take every picture at its time."""
    folder = KEPT if IS_KEPT else tmp_path_factory.mktemp("pictures")
    tempo = real.FOR_PICTURES if IS_KEPT else real.FOR_TESTS
    with real.begun(tmp_path_factory.mktemp("incident"), tempo) as play:
        album = Album(folder, play.incident, browser.new_page())
        play.calm()
        play.trouble()
        until_ms = now_ms()
        _lag_only(browser, album, until_ms)
        _group(browser, album, until_ms)
        _fleet(browser, album)
        _phone(browser, album)
        play.repair()
        _repaired(browser, album, now_ms())
        (folder / "run.txt").write_text(_told(play.incident))
        yield album


def _told(incident: real.Incident) -> str:
    """What the webhook received, and the story in words."""
    lines = ["What one run of `make pictures` told in words, all times in UTC.", "", "To the webhook:", ""]
    for page in incident.pager.pages:
        lines.append(f"{_clock(page.received_at_ms)}  {page.status} {page.labels['alertname']}")
        lines += [f"    {name:9}{text}" for name, text in page.annotations.items()]
    return "\n".join([*lines, "", "groupwatch explain:", "", incident.explained().rstrip(), ""])


def _clock(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%M:%S")


def test_lag_alone_says_neither_who_nor_why(album: Album) -> None:
    """The other tool has the lag of each partition, and nothing else."""
    assert album.series == {LAG}
    assert real.CULPRIT.client_id not in album.texts["lag-only"]


@pytest.mark.parametrize("name", ["incident", "incident-dark", "fleet", "phone"])
def test_who_broke_the_group_is_on_the_picture(album: Album, name: str) -> None:
    """Without a click."""
    assert f"{real.CULPRIT.client_id} on 127.0.0.1" in album.texts[name]


def test_a_lost_member_cost_something(album: Album) -> None:
    """The rebalance of its loss has its cause, its cost and who owned what."""
    assert "session timeout" in album.texts["rebalance"]
    assert real.CULPRIT.client_id in album.texts["rebalance"]
    assert "partition-seconds without an owner" in album.texts["rebalance"]
