"""How far somebody who was woken is from the name of who did it."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from alerts.alert.alert import Culprit
from streaming.devkit.demo.plan import INCIDENTS, Incident
from tests.live.browser.conftest import Seen
from tests.live.browser.world import HOSTILE, World, members, now_ms

pytestmark = pytest.mark.browser

SIZES = {"desk": ViewportSize(width=1440, height=900), "phone": ViewportSize(width=390, height=844)}


def happens(world: World, one: Incident, cluster: str = "prod-eu") -> None:
    """Let an incident of the demo fire, with sentences as long as real ones."""
    world.group(one.group, members=members(3, one.group), cluster=cluster)
    world.alert(
        one.alert,
        one.group,
        cluster=cluster,
        summary=f"Group {one.group} is in trouble, mostly because of one of its members on 10.0.4.16. " * 2,
        cause=f"{one.culprit}: {one.what}. " * 3,
        culprits=(Culprit(member_id=f"{one.culprit}-77", client_id=one.culprit, client_host="/10.0.4.16"),),
        cost="Without an owner: 592 partition-seconds over 8 partitions. Moved 95 partitions; 38 had to. "
        * 2,
        advice="Stop this client until it is fixed, and read its log just before each end. " * 3,
        starts_at_ms=now_ms() - 90_000,
    )


@pytest.fixture(scope="module")
def six() -> Iterator[World]:
    """The six incidents of ``make demo`` at once, among others."""
    world = World({"prod-eu": True})
    for n in range(40):
        world.group(f"calm-{n:02}")
    for one in INCIDENTS:
        happens(world, one)
    yield world.start()
    world.stop()


def steps_to(page: Page, group: str, culprit: str) -> int:
    """Return how many screens must be scrolled until a culprit's name is read beside its group's."""
    line = page.locator(".glance li, .alert").filter(has=page.get_by_text(group, exact=True))
    name = line.first.locator("bdi.name", has_text=culprit).first
    expect(name).to_be_visible()
    box, height = name.bounding_box(), int(page.evaluate("innerHeight"))
    assert box is not None
    return int((box["y"] + box["height"]) // height)


@pytest.mark.parametrize("size", SIZES)
def test_every_culprit_stands_on_the_first_screen(six: World, tab: Seen, size: str) -> None:
    """Of six incidents at once: nothing is clicked, nothing scrolled, on a desk and on a phone."""
    tab.page.set_viewport_size(SIZES[size])
    tab.page.goto(six.url)
    steps = {f"{one.alert} {one.group}": steps_to(tab.page, one.group, one.culprit) for one in INCIDENTS}
    named = tab.page.evaluate("performance.now()")
    print(json.dumps({size: steps, "named_ms": round(named)}))  # noqa: T201

    assert steps == dict.fromkeys(steps, 0)
    for one in INCIDENTS:
        expect(tab.page.locator(".glance li", has_text=one.group)).to_contain_text(one.alert)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("one", INCIDENTS, ids=lambda one: f"{one.alert}-{one.group}")
def test_a_single_incident_is_told_whole_on_the_first_screen(tab: Seen, one: Incident, size: str) -> None:
    """Who, what it costs and what to do; there is no list of one line above it."""
    world = World({"prod-eu": True})
    happens(world, one)
    world.start()
    try:
        tab.page.set_viewport_size(SIZES[size])
        tab.page.goto(world.url)
        assert steps_to(tab.page, one.group, one.culprit) == 0
        expect(tab.page.locator(".glance")).to_have_count(0)
        expect(tab.page.locator(".alert dt", has_text="Do")).to_be_in_viewport()
    finally:
        world.stop()


def test_more_groups_than_fit_are_counted(tab: Seen) -> None:
    """With names of 249 characters, in one line each; a group's culprits are named once."""
    world = World({"prod-eu": True, "prod-us": True})
    for n in range(12):
        name = HOSTILE["long"][:-2] + f"{n:02}"
        for alert in ("RebalanceStorm", "SessionTimeout"):
            happens(world, Incident(alert, name, HOSTILE["turned"], "it"), cluster="prod-us")
    world.start()
    try:
        tab.page.set_viewport_size(SIZES["phone"])
        tab.page.goto(world.url)
        lines = tab.page.locator(".glance li")
        expect(lines).to_have_count(8)
        expect(tab.page.locator(".glance")).to_contain_text("and 4 more groups below")
        expect(lines.first.locator(".who bdi")).to_have_count(1)
        heights = tab.page.evaluate(
            "[...document.querySelectorAll('.glance li')].map(one => one.offsetHeight)"
        )
        assert max(heights) < 100
        assert tab.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    finally:
        world.stop()


def test_a_silenced_group_is_not_at_a_glance(six: World, tab: Seen) -> None:
    """Somebody cares for it already; it stands below."""
    card = tab.page.locator(".alert", has_text="invoices")
    tab.page.goto(six.url)
    card.get_by_role("button", name="Acknowledge").click()
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_label("Your name").fill("ada")
    dialog.get_by_role("button", name="Acknowledge").click()
    expect(tab.page.locator(".glance li", has_text="invoices")).to_have_count(0)
    expect(tab.page.locator(".glance li", has_text="payments")).to_have_count(1)
