"""The pictures of README and documents; ``make pictures`` writes them."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.live.browser.world import World

pytestmark = pytest.mark.browser

FOLDER = Path(__file__).parents[3] / "docs" / "pictures"
PICTURES = {
    "fleet": ("", "light", 1200, 860),
    "incident": ("groups/prod-eu/payments?window=15m", "light", 1200, 1000),
    "incident-dark": ("groups/prod-eu/payments?window=15m", "dark", 1200, 1000),
    "phone": ("", "light", 360, 780),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_can_be_taken(night: World, browser: Browser, tmp_path: Path, name: str) -> None:
    """Small enough for a repository; kept only if GROUPWATCH_PICTURES is set."""
    path, scheme, width, height = PICTURES[name]
    folder = FOLDER if os.environ.get("GROUPWATCH_PICTURES") else tmp_path
    folder.mkdir(exist_ok=True)
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page.goto(night.url + path)
    if path:
        page.locator(".mark").nth(4).click()
        page.mouse.move(0, 0)
        page.locator(".story li").first.wait_for()
    else:
        page.locator("tbody tr").first.wait_for()
    page.screenshot(path=folder / f"{name}.png", full_page=False)
    page.close()
    assert (folder / f"{name}.png").stat().st_size < 300_000
