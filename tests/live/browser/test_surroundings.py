"""What a browser may find around the page: another clock, fewer rights, a proxy, names that no path holds."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Browser, Page, expect

from streaming.config.server import HttpConfig, UserConfig
from tests.live.browser.conftest import Seen
from tests.live.browser.incidents import fleet, storm
from tests.live.browser.proxy import PathProxy
from tests.live.browser.world import MINUTE, World, now_ms

pytestmark = pytest.mark.browser

HOUR_MS = 3_600_000
READER = UserConfig(name="reader", password="only-looking")  # noqa: S106 - a test's own
ONCALL = UserConfig(name="oncall", password="may-silence", role="operate")  # noqa: S106 - a test's own
_OTHER_CLOCK = """
(() => {
  const Real = Date, shift = %d;
  globalThis.Date = class extends Real {
    constructor(...given) { given.length ? super(...given) : super(Real.now() + shift); }
    static now() { return Real.now() + shift; }
  };
})()
"""


def set_clock(page: Page, shift_ms: int) -> None:
    """Let the browser's clock be wrong."""
    page.add_init_script(_OTHER_CLOCK % shift_ms)


@pytest.mark.parametrize("hours", [-5, 5])
def test_a_wrong_clock_of_the_browser_changes_nothing(night: World, tab: Seen, hours: int) -> None:
    """Ages and windows are told by the server's clock."""
    set_clock(tab.page, hours * HOUR_MS)
    tab.page.goto(night.url)
    card = tab.page.locator(".alert", has_text="invoices-1")
    expect(card.locator(".since")).to_have_text(re.compile(r"for 1\d min"))
    tab.page.goto(f"{night.url}groups/prod-eu/payments?window=15m")
    expect(tab.page.locator(".stage > svg .lost")).to_have_count(10)
    tab.page.get_by_role("button", name="Earlier", exact=True).click()
    expect(tab.page).to_have_url(re.compile("from="))
    until = re.search(r"to=(\d+)", tab.page.url)
    assert until is not None
    assert abs(now_ms() - int(until[1])) < 12 * MINUTE


def test_a_long_window_does_not_wait_for_its_next_turn(night: World, tab: Seen) -> None:
    """A week is asked for each minute, and from the first answer on by the server's clock."""
    set_clock(tab.page, 5 * HOUR_MS)

    def ends_now(url: str) -> bool:
        until = re.search(r"/history\?from=\d+&to=(\d+)", url)
        return until is not None and abs(now_ms() - int(until[1])) < MINUTE

    with tab.page.expect_response(lambda one: one.ok and ends_now(one.url)):
        tab.page.goto(f"{night.url}groups/prod-eu/payments?window=7d")


def test_the_time_of_a_loss_is_the_servers(tab: Seen) -> None:
    """Whoever compares it with a log finds the moment."""
    world = World({"prod-eu": True})
    world.group("payments")
    world.start()
    set_clock(tab.page, -5 * HOUR_MS)
    tab.page.goto(f"{world.url}groups/prod-eu/payments")
    expect(tab.page.locator(".connection")).to_contain_text("live")
    world.stop()
    expect(tab.page.locator(".connection")).to_contain_text("Connection lost at", timeout=15_000)
    told = re.search(r"lost at (\d\d:\d\d):", tab.page.locator(".connection").inner_text())
    assert told is not None
    now = now_ms() / 1000
    around = {f"{datetime.fromtimestamp(now - back, UTC):%H:%M}" for back in (0, 60)}
    assert told[1] in around
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("payments")


@pytest.fixture
def guarded() -> Iterator[World]:
    """The fleet, with a login."""
    world = fleet(HttpConfig(host="127.0.0.1", port=0, users=[READER, ONCALL])).start()
    yield world
    world.stop()


_POST = """
async (url) => (await fetch(url, {
  method: "POST", headers: {"Content-Type": "application/json"},
  body: JSON.stringify({author: "eve", end: "1h", groups: ["payments"]}),
})).status
"""


@pytest.mark.parametrize("user", [READER, ONCALL], ids=["read", "operate"])
def test_who_may_not_silence_is_told_why(browser: Browser, guarded: World, user: UserConfig) -> None:
    """The buttons are there, disabled, with the reason beside them; the server refuses as well."""
    may = user.role == "operate"
    context = browser.new_context(http_credentials={"username": user.name, "password": user.password})
    try:
        page = context.new_page()
        for path in ("", "groups/prod-eu/payments"):
            page.goto(guarded.url + path)
            card = page.locator(".alert").first
            for name in ("Acknowledge", "Silence"):
                button = card.get_by_role("button", name=name)
                expect(button).to_be_enabled() if may else expect(button).to_be_disabled()
            reason = card.get_by_text("only users with the role operate may change something")
            expect(reason).to_have_count(0 if may else 1)
        assert page.evaluate(_POST, f"{guarded.url}api/v1/silences") == (201 if may else 403)
        assert len(guarded.desk.silences("active").silences) == may
    finally:
        context.close()


@pytest.mark.parametrize("strips", [True, False], ids=["path-taken-away", "path-left"])
def test_the_page_lives_below_a_path_of_a_proxy(tab: Seen, *, strips: bool) -> None:
    """Views, events, requests and buttons, whether or not the proxy takes its path away."""
    with PathProxy(strips=strips) as proxy:
        world = World({"prod-eu": True}, config=HttpConfig(host="127.0.0.1", port=0, external_url=proxy.url))
        storm(world)
        world.start()
        proxy.target = int(world.url.rsplit(":", 1)[1].strip("/"))
        asked: list[str] = []
        tab.page.on("request", lambda one: asked.append(one.url))
        try:
            tab.page.goto(proxy.url)
            expect(tab.page.locator(".connection")).to_contain_text("live")
            card = tab.page.locator(".alert").first
            card.get_by_role("button", name="Acknowledge").click()
            dialog = tab.page.get_by_role("dialog")
            dialog.get_by_label("Your name").fill("ada")
            dialog.get_by_role("button", name="Acknowledge").click()
            expect(card).to_contain_text("by ada")
            tab.page.get_by_role("row").get_by_role("link", name="payments").click()
            tab.page.locator("svg.timeline[role=group]").wait_for()
            tab.page.get_by_role("link", name="Groups").click()
            expect(tab.page.locator("tbody tr")).to_have_count(1)
            assert [one for one in asked if not one.startswith((proxy.url, "data:", "blob:"))] == []
        finally:
            world.stop()


@pytest.mark.parametrize("name", [".", ".."])
def test_a_group_named_like_a_folder_has_a_page(tab: Seen, name: str) -> None:
    """Browsers fold such a name in a path, so it stands in the query: reached, reloaded, linked."""
    world = World({"prod-eu": True})
    world.group(name)
    world.start()
    try:
        tab.page.goto(world.url)
        tab.page.get_by_role("link", name=name, exact=True).click()
        expect(tab.page.get_by_role("heading", level=1)).to_have_text(name)
        tab.page.locator("svg.timeline[role=group]").wait_for()
        tab.page.get_by_role("button", name="6 h").click()
        expect(tab.page).to_have_url(re.compile(r"/group\?cluster=prod-eu&group=\.+&window=6h"))
        tab.page.reload()
        expect(tab.page.get_by_role("heading", level=1)).to_have_text(name)
        expect(tab.page.get_by_role("button", name="6 h")).to_have_attribute("aria-pressed", "true")
    finally:
        world.stop()
