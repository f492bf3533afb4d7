"""The view of one group, and its pictures."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

from tests.live.browser.conftest import Seen
from tests.live.browser.world import World

pytestmark = pytest.mark.browser


def opened(night: World, tab: Seen, query: str = "") -> None:
    """Open payments."""
    tab.page.goto(f"{night.url}groups/prod-eu/payments{query}")
    tab.page.locator("svg.timeline[role=group]").wait_for()


def test_the_culprit_is_named_beside_what_to_do(night: World, tab: Seen) -> None:
    """Above the timeline, which has a lane for it with its losses."""
    opened(night, tab, "?window=15m")
    expect(tab.page.locator(".alert dd").first).to_have_text("payments-3 on 10.0.4.16 (2 members)")
    expect(tab.page.locator(".alert")).to_contain_text("Stop this client")
    lanes = [one for one in tab.page.locator(".lane-label").all_text_contents() if "payments-3" in one]
    assert len(lanes) == 1
    assert "payments-3 on" in lanes[0]
    assert tab.page.locator(".stage > svg .lost").count() == 10
    expect(tab.page.locator(".story")).to_contain_text("rebalances")


def test_each_rebalance_is_reached_by_keyboard(night: World, tab: Seen) -> None:
    """Tab leads to the last mark, arrows from one to the next, Enter shows its cause, owners and cost."""
    opened(night, tab, "?window=15m")
    marks = tab.page.locator(".mark")
    assert tab.page.locator(".mark[tabindex='0']").count() == 1
    tab.page.locator(".mark[tabindex='0']").focus()
    tab.page.keyboard.press("Home")
    expect(marks.first).to_be_focused()
    tab.page.keyboard.press("ArrowRight")
    expect(marks.nth(1)).to_be_focused()
    assert re.search(
        "session timeout payments-3|member joined payments-3", marks.nth(1).get_attribute("aria-label") or ""
    )
    tab.page.keyboard.press("Enter")
    panel = tab.page.get_by_role("region", name=re.compile("^Rebalance"))
    expect(panel).to_contain_text("payments-3 on 10.0.4.16")
    expect(panel).to_contain_text("partition-seconds")
    expect(panel.get_by_role("table")).to_contain_text("payments.requests-")


def test_hovering_a_mark_shows_its_cause(night: World, tab: Seen) -> None:
    """In a tip, without a click."""
    opened(night, tab, "?window=15m")
    tab.page.locator(".mark").nth(2).hover()
    expect(tab.page.locator(".tip")).to_contain_text("payments-3")


def test_a_window_is_chosen_moved_and_linked(night: World, tab: Seen) -> None:
    """By buttons, keys and dragging; the address names it."""
    opened(night, tab)
    tab.page.get_by_role("button", name="6 h").click()
    expect(tab.page).to_have_url(re.compile("window=6h"))
    tab.page.get_by_role("button", name="Earlier", exact=True).click()
    expect(tab.page).to_have_url(re.compile("from="))
    first = re.search(r"from=(\d+)&to=(\d+)", tab.page.url)
    assert first is not None
    assert int(first[2]) - int(first[1]) == 6 * 3_600_000
    tab.page.locator(".stage").dispatch_event("keydown", {"key": "+", "bubbles": True})
    expect(tab.page).not_to_have_url(re.compile(first[0]))
    zoomed = re.search(r"from=(\d+)&to=(\d+)", tab.page.url)
    assert zoomed is not None
    assert int(zoomed[2]) - int(zoomed[1]) == 3 * 3_600_000
    box = tab.page.locator(".stage > svg").bounding_box()
    assert box is not None
    tab.page.mouse.move(box["x"] + 600, box["y"] + box["height"] - 60)
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + 800, box["y"] + box["height"] - 60, steps=4)
    tab.page.mouse.up()
    expect(tab.page).not_to_have_url(re.compile(zoomed[0]))
    dragged = re.search(r"from=(\d+)", tab.page.url)
    assert dragged is not None
    assert int(dragged[1]) < int(zoomed[1])
    tab.page.reload()
    expect(tab.page).to_have_url(re.compile(f"from={dragged[1]}"))


def test_pictures_need_nothing_else(night: World, tab: Seen, tmp_path: Path) -> None:
    """The SVG has its rules inside and asks for nothing; the PNG is one."""
    opened(night, tab, "?window=15m")
    with tab.page.expect_download() as waiting:
        tab.page.get_by_role("button", name="SVG").click()
    waiting.value.save_as(tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    ElementTree.fromstring(text)  # noqa: S314 - our own
    assert ".band" in text
    assert "payments" in text
    assert not re.search(r"(?:href|src)=|url\((?!#)", text)
    with tab.page.expect_download() as waiting:
        tab.page.get_by_role("button", name="PNG").click()
    waiting.value.save_as(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_group_that_is_not_there_is_said(night: World, tab: Seen) -> None:
    """With the way to the others."""
    tab.page.goto(f"{night.url}groups/prod-eu/nobody")
    expect(tab.page.locator("main")).to_contain_text("no group")
    expect(tab.page.get_by_role("link", name="All groups")).to_be_visible()
