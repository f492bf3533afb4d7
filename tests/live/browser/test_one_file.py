"""The page of groups as one file, opened from disk."""

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ViewportSize, expect

from streaming.replay import Skipped
from streaming.serving.one_file import captured_by_url, captured_replay, document
from tests.live.browser.conftest import Seen
from tests.live.browser.world import HOSTILE, MINUTE, World, now_ms
from tests.unit.streaming.serving.one_file.made_captures import upset

pytestmark = pytest.mark.browser

LOGS = Path(__file__).parents[2] / "golden" / "logs"
PHONE = ViewportSize(width=360, height=780)


def written(folder: Path, *logs: Path, group: str | None = None) -> str:
    """Write a file; return its address."""
    captured = captured_replay(list(logs), config_rules=None, timezone="UTC", group=group, skipped=Skipped())
    path = folder / "incident.html"
    path.write_bytes(document(captured))
    return path.as_uri()


@pytest.fixture
def slow(tmp_path: Path, tab: Seen) -> Seen:
    """A tab with the group that met a slow record; nothing but the file may be asked for."""
    asked: list[str] = []
    tab.page.on("request", lambda one: asked.append(one.url))
    address = written(
        tmp_path, *(LOGS / f"kafka-4.3.1-{log}.log" for log in ("server", "request")), group="slow"
    )
    tab.page.goto(address)
    tab.page.locator("svg.timeline[role=group]").wait_for()
    assert {one for one in asked if not one.startswith(("data:", "blob:"))} == {address}
    return tab


def test_the_culprit_the_bands_and_the_words_are_there(slow: Seen) -> None:
    """As on the page: what fired and what to do, states, marks, lanes, the story; and where it comes from."""
    page = slow.page
    expect(page.locator(".alert")).to_contain_text("slow-1 on 127.0.0.1")
    expect(page.locator(".alert")).to_contain_text("max.poll.records")
    assert page.locator(".stage .band.is-Stable").count() >= 2
    assert page.locator(".stage .mark").count() >= 1
    assert "slow-1" in (page.locator(".lane-label").first.text_content() or "")
    expect(page.locator(".story")).to_contain_text("no poll() within max.poll.interval.ms")
    expect(page.locator(".origin")).to_contain_text(re.compile("Captured .* from kafka-4.3.1-server.log"))
    assert page.get_by_role("button", name=re.compile("Silence|Acknowledge")).count() == 0


def test_a_running_jobs_group_is_as_on_its_page(night: World, tab: Seen, tmp_path: Path) -> None:
    """With lag, commits and owners, which a log alone does not have."""
    at = now_ms()
    captured = captured_by_url(night.url, "prod-eu", "payments", since_ms=at - 15 * MINUTE, now_ms=at)
    (tmp_path / "payments.html").write_bytes(document(captured))
    tab.page.goto((tmp_path / "payments.html").as_uri())
    expect(tab.page.locator(".alert").first).to_contain_text("payments-3 on 10.0.4.16")
    expect(tab.page.locator(".chart.is-lag")).to_have_attribute("aria-label", re.compile("up to"))
    tab.page.locator(".mark").nth(1).click()
    panel = tab.page.get_by_role("region", name=re.compile("^Rebalance"))
    expect(panel.get_by_role("table")).to_contain_text("payments.requests-")


def test_a_window_is_chosen_moved_and_kept_in_the_address(slow: Seen) -> None:
    """By buttons and keys; a mark tells cause and culprit."""
    page = slow.page
    page.get_by_role("button", name="5 min", exact=True).click()
    expect(page).to_have_url(re.compile("window=5m"))
    page.get_by_role("button", name="Earlier", exact=True).click()
    expect(page).to_have_url(re.compile(r"from=\d+&to=\d+"))
    page.reload()
    expect(page).to_have_url(re.compile(r"from=\d+&to=\d+"))
    page.get_by_role("button", name="All", exact=True).click()
    page.locator(".mark[tabindex='0']").focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name=re.compile("^Rebalance"))).to_contain_text("slow-1 on 127.0.0.1")


def test_pictures_can_be_taken_along(slow: Seen, tmp_path: Path) -> None:
    """The policy lets the file draw itself as SVG and PNG."""
    for kind, begin in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with slow.page.expect_download() as waiting:
            slow.page.get_by_role("button", name=kind).click()
        waiting.value.save_as(tmp_path / kind)
        assert (tmp_path / kind).read_bytes().startswith(begin)
    assert ".band" in (tmp_path / "SVG").read_text()


def test_a_script_of_somebody_else_does_not_run(slow: Seen) -> None:
    """The policy in the head holds, also from disk."""
    slow.page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.broken = 1";
          document.head.append(script);
        }"""
    )
    assert slow.page.evaluate("window.broken") is None
    assert any("Content Security Policy" in one for one in slow.wrong)
    slow.wrong.clear()


def test_on_paper_links_are_read_and_nothing_asks_for_a_click(
    night: World, tab: Seen, tmp_path: Path
) -> None:
    """The runbook's address stands beside its name; a panel that waits for a choice is left out."""
    at = now_ms()
    captured = captured_by_url(night.url, "prod-eu", "payments", since_ms=at - 15 * MINUTE, now_ms=at)
    (tmp_path / "payments.html").write_bytes(document(captured))
    tab.page.goto((tmp_path / "payments.html").as_uri())
    tab.page.locator("svg.timeline[role=group]").wait_for()
    tab.page.emulate_media(media="print", color_scheme="dark")
    shown = tab.page.get_by_role("link", name="Runbook").evaluate(
        "one => getComputedStyle(one, '::after').content"
    )
    assert "https://groupwatch.example/runbooks/RebalanceStorm" in shown.replace('" "', "")
    expect(tab.page.locator("#rebalance-title")).to_be_hidden()
    assert tab.page.evaluate("getComputedStyle(document.body).color") == "rgb(23, 26, 31)"
    assert tab.page.pdf().count(b"/Type /Page\n") <= 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(slow: Seen, scheme: str) -> None:
    """In both colours."""
    slow.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    found = Axe().run(slow.page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []


def test_groups_with_hostile_names_are_chosen_on_a_phone(tmp_path: Path, tab: Seen) -> None:
    """Their names are text, the address keeps the choice, and nothing is wider than the screen."""
    log = tmp_path / "server.log"
    names = [name for name in HOSTILE.values() if "\n" not in name] + [
        "</script><script>window.broken=1</script>"
    ]
    log.write_text("".join(upset(f"10:00:0{n}", name) for n, name in enumerate(names)))
    tab.page.set_viewport_size(PHONE)
    tab.page.goto(written(tmp_path, log))
    chooser = tab.page.get_by_label("Group")
    expect(chooser.locator("option")).to_have_count(len(names))
    headings = set()
    for n in range(len(names)):
        chooser.select_option(str(n))
        tab.page.locator("svg.timeline[role=group]").wait_for()
        expect(tab.page.get_by_role("heading", level=1)).to_be_visible()
        headings.add(tab.page.get_by_role("heading", level=1).inner_text())
        assert tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, names[n]
    assert len(headings) == len(names)
    last = tab.page.get_by_role("heading", level=1).inner_text()
    tab.page.reload()
    expect(tab.page.get_by_role("heading", level=1)).to_have_text(last)
    assert tab.page.evaluate("window.broken") is None
