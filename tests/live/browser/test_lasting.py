"""A page that stays open: in a tab that nobody sees, through a storm, at a window that lies partly ahead."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.live.browser.conftest import Seen
from tests.live.browser.world import MINUTE, World, now_ms

pytestmark = pytest.mark.browser

_SLOW_ANSWERS = """
const real = globalThis.fetch;
globalThis.fetch = async (url, options) => {
  if (String(url).includes("api/v1/groups")) await new Promise((go) => setTimeout(go, 1_500));
  return real(url, options);
};
"""
_HIDDEN = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture
def world() -> Iterator[World]:
    """Return a cluster with one group, served."""
    world = World({"prod-eu": True})
    rebalance(world, 1)
    world.start()
    yield world
    world.stop()


def rebalance(world: World, times: int) -> None:
    """Let the group have rebalanced so often."""
    world.group("payments", rebalances={"member_left": 1_000 + times})


def is_live(page: Page) -> None:
    """Wait until events arrive."""
    expect(page.locator(".connection")).to_have_text(re.compile("live"))


def test_a_tab_that_nobody_sees_holds_no_connection(world: World, tab: Seen) -> None:
    """A browser has six for one server, so seven tabs of a wall would wait for one another."""
    tab.page.goto(world.url)
    is_live(tab.page)
    with tab.page.expect_event("requestfailed", lambda one: one.url.endswith("/api/v1/events")):
        tab.page.evaluate(_HIDDEN, True)
    rebalance(world, 7)
    tab.page.evaluate(_HIDDEN, False)
    expect(tab.page.locator("tbody tr").first).to_contain_text("1\u202f007")
    is_live(tab.page)


def test_answers_arrive_while_a_storm_lasts(world: World, tab: Seen) -> None:
    """News come faster than answers: each answer is shown, and none is given up for the next."""
    tab.page.add_init_script(_SLOW_ANSWERS)
    tab.page.goto(world.url)
    is_live(tab.page)
    row = tab.page.locator("tbody tr").first
    expect(row).to_contain_text("1\u202f001")
    shown = set()
    for times in range(2, 26):
        rebalance(world, times)
        tab.page.wait_for_timeout(400)
        shown.add(row.inner_text())
    assert len(shown) >= 3


def test_a_fixed_window_follows_its_part_of_the_present(world: World, tab: Seen) -> None:
    """What happens within it is drawn when it happens, and not the state of when it was opened."""
    begin, end = now_ms() - 30 * MINUTE, now_ms() + 30 * MINUTE
    with tab.page.expect_response(lambda one: "/history?" in one.url):
        tab.page.goto(f"{world.url}groups/prod-eu/payments?from={begin}&to={end}")
    is_live(tab.page)
    with tab.page.expect_response(lambda one: "/history?" in one.url, timeout=20_000):
        rebalance(world, 2)


def test_focus_returns_when_a_dialog_is_left(night: World, tab: Seen) -> None:
    """Who uses the keyboard goes on where they were."""
    tab.page.goto(night.url)
    button = tab.page.get_by_role("button", name=re.compile("Acknowledge")).first
    button.focus()
    tab.page.keyboard.press("Enter")
    tab.page.get_by_role("button", name="Cancel").click()
    expect(tab.page.locator("dialog")).to_have_count(0)
    expect(button).to_be_focused()
