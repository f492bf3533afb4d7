"""Debian's Chromium, and the worlds that it looks at."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect, sync_playwright

from tests.live.browser.incidents import fleet
from tests.live.browser.world import World

_SIZE = (1280, 900)
_PATIENCE_MS = 30_000
"""A busy machine draws a page ten times slower than an idle one."""
expect.set_options(timeout=_PATIENCE_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium of the module: its driver's event loop would disturb tests of other folders."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium here (Debian's package chromium), so nobody looks at the page")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=options)
        yield opened
        opened.close()


class Seen:
    """A tab, with what went wrong in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.wrong: list[str] = []
        page.on("pageerror", lambda error: self.wrong.append(f"exception: {error}"))
        page.on("console", lambda one: self.wrong.append(one.text) if one.type == "error" else None)

    @property
    def broken(self) -> list[str]:
        """Exceptions and breaches of the policy; answers of 404 are the server's word."""
        return [one for one in self.wrong if "Failed to load resource" not in one]


def devtools_of(page: Page) -> CDPSession:
    """Return a session with a page's DevTools, which counts from here on until it is detached."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    return devtools


def counted_by(devtools: CDPSession) -> dict[str, float]:
    """Return what a session has counted, by the names of DevTools; times in seconds."""
    return {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}


@pytest.fixture
def tab(browser: Browser) -> Iterator[Seen]:
    """A new tab on a desk, in UTC; the test fails if a script failed in it."""
    context = browser.new_context(
        viewport={"width": _SIZE[0], "height": _SIZE[1]}, reduced_motion="reduce", accept_downloads=True
    )
    context.set_default_timeout(_PATIENCE_MS)
    seen = Seen(context.new_page())
    yield seen
    context.close()
    assert seen.broken == []


@pytest.fixture(scope="module")
def night() -> Iterator[World]:
    """The fleet with its incidents."""
    world = fleet().start()
    yield world
    world.stop()
