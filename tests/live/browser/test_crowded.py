"""A timeline with more in it than there is room for."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import ViewportSize, expect

from tests.live.browser.conftest import Seen, counted_by, devtools_of
from tests.live.browser.crowded import DAY, crowded
from tests.live.browser.world import World

pytestmark = pytest.mark.browser

CROWD = "crowd-" * 40
DESK, PHONE, NARROW = (1440, 900), (390, 844), (320, 640)
_COLLISIONS = """
() => {
  const svg = document.querySelector(".stage > svg.timeline"), whole = svg.getBoundingClientRect();
  const boxes = (what) => [...svg.querySelectorAll(what)]
    .map(one => [one.textContent, one.getBoundingClientRect()]);
  const found = [];
  const touch = (a, b) => a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  // A mark at the very end of the time may reach into the margin by its half.
  for (const [list, margin] of [[boxes("text:not(.mark-count)"), 1], [boxes(".mark-sign"), 10]]) {
    list.forEach(([text, box], i) => {
      const leaves = box.left < whole.left - margin || box.right > whole.right + margin;
      if (leaves) found.push(`${text} leaves the picture`);
      for (const [other, its] of list.slice(i + 1)) if (touch(box, its)) found.push(`${text} over ${other}`);
    });
  }
  return found;
}
"""


@pytest.fixture(scope="module")
def crowd() -> Iterator[World]:
    """A group with a rebalance each 20 seconds of an hour, and one with 5,000 in a week and 500 members."""
    world, apart = World({"prod-eu": True}), 7 * DAY // 5_000
    world.pasts[CROWD] = lambda now: crowded(now, CROWD, rebalances=180, every_ms=20_000)
    world.pasts["week"] = lambda now: crowded(now, "week", rebalances=5_000, every_ms=apart, members=500)
    world.group(CROWD)
    world.group("week")
    yield world.start()
    world.stop()


@pytest.mark.parametrize("size", [DESK, PHONE, NARROW], ids=["desk", "phone", "narrow"])
@pytest.mark.parametrize("window", ["5m", "15m", "1h", "7d"])
def test_no_name_runs_into_another(crowd: World, tab: Seen, window: str, size: tuple[int, int]) -> None:
    """Short alerts, dense marks, long names, names from right to left and wide ones: each has its room."""
    tab.page.set_viewport_size(ViewportSize(width=size[0], height=size[1]))
    tab.page.goto(f"{crowd.url}groups/prod-eu/{CROWD}?window={window}")
    tab.page.locator("svg.timeline[role=group]").wait_for()

    assert tab.page.evaluate(_COLLISIONS) == []
    assert tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_a_cut_name_is_whole_for_pointers_and_screen_readers(crowd: World, tab: Seen) -> None:
    """An alert's row tells its times; a cut member's name is its tip."""
    tab.page.goto(f"{crowd.url}groups/prod-eu/{CROWD}?window=15m")
    row = tab.page.locator(".alert-row").first
    row.wait_for()
    name = row.locator(".alert-label title").text_content() or "?"
    assert (row.get_attribute("aria-label") or "").startswith(name)
    assert name in (row.locator(".alert-bar title").last.text_content() or "")
    cut = tab.page.locator(".lane-label", has_text="…").first
    assert "…" not in (cut.locator("title").text_content() or "…")


def test_a_week_of_five_thousand_rebalances_is_drawn(crowd: World, tab: Seen) -> None:
    """With 500 members; what would lie over one another is drawn once."""
    tab.page.goto(f"{crowd.url}groups/prod-eu/week")
    tab.page.locator("svg.timeline[role=group]").wait_for()
    tab.page.evaluate("window.clicked = performance.now()")
    tab.page.get_by_role("button", name="7 d").click()
    expect(tab.page.locator(".axis-label", has_text="-")).not_to_have_count(0)  # days
    expect(tab.page.locator(".note", has_text="newest 2000 of 5000 rebalances")).to_be_visible()
    drawn = tab.page.evaluate("performance.now() - window.clicked")
    nodes = tab.page.evaluate("document.querySelectorAll('.stage > svg *').length")
    print(json.dumps({"drawn_ms": round(drawn), "nodes": nodes}))  # noqa: T201
    assert nodes < 30_000  # 85,000 if everything were drawn
    assert _busy_share(tab) < 0.5  # all the time, when each event of the server drew it again


def _busy_share(tab: Seen, window_ms: int = 10_000) -> float:
    """Return the part of some seconds in which the page's own thread works while nothing happens."""
    devtools = devtools_of(tab.page)
    before = counted_by(devtools)
    tab.page.wait_for_timeout(window_ms)
    after = counted_by(devtools)
    return (after["TaskDuration"] - before["TaskDuration"]) / (after["Timestamp"] - before["Timestamp"])


def test_a_count_beyond_its_room_says_so(crowd: World, tab: Seen) -> None:
    """Not that it is smaller."""
    tab.page.goto(f"{crowd.url}groups/prod-eu/week?window=7d")
    first = tab.page.locator(".mark").first
    first.wait_for()
    counts = [int(one.rstrip("+")) for one in tab.page.locator(".mark-count").all_text_contents()]
    assert max(counts) <= 99
    assert "rebalances close together" in (first.get_attribute("aria-label") or "")


def test_a_loss_is_told_of_rebalances_that_stand_as_one_mark(crowd: World, tab: Seen) -> None:
    """By pointer, screen reader and click: not the join that followed it."""
    tab.page.goto(f"{crowd.url}groups/prod-eu/{CROWD}?window=1h")
    mark = tab.page.locator(".mark.is-loss").first
    mark.wait_for()
    assert "close together. The last loss: " in (mark.get_attribute("aria-label") or "")
    assert "timeout" in (mark.get_attribute("aria-label") or "")
    mark.locator(".mark-touch").click()
    expect(tab.page.locator("section", has=tab.page.locator("#rebalance-title"))).to_contain_text("timeout")
