"""Which groups a list shows, in which order."""

from typing import TYPE_CHECKING, Any

import pytest

from alerts.alert.alert import Culprit, Severity
from coordinator_model.kafka.states import GroupState
from streaming.serving.choosing import Wanted
from streaming.serving.view import View
from tests.unit.streaming.fed_view import FedView

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Rows

NOW_MS = 1_700_000_100_000


@pytest.fixture
def view(rows: "Rows") -> FedView:
    """Three groups: ``a`` is behind, ``b`` rebalances, ``c`` has an alert."""
    made = FedView(["eu"], clock_ms=lambda: NOW_MS)
    made.apply(
        "eu",
        [
            rows.report("a", commits={"t": {0: (10, NOW_MS)}}, rebalances={"member_left": 1}),
            rows.report("b", GroupState.PREPARING_REBALANCE, members=(), group_type="consumer"),
            rows.report("c", commits={"t": {0: (90, NOW_MS)}}, rebalances={}),
            rows.alert("c", name="SessionTimeout", severity=Severity.CRITICAL),
        ],
    )
    made.store.set_end_offsets("eu", {"t": {0: (100, NOW_MS)}})
    return made


def names(view: View, **wanted: str) -> str:
    """The groups in the order asked for."""
    return "".join(one.group for one in view.groups(Wanted(**wanted)).groups)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sort", "order", "expected"),
    [
        ("trouble", "asc", "cba"),
        ("trouble", "desc", "abc"),
        ("name", "asc", "abc"),
        ("name", "desc", "cba"),
        ("lag", "desc", "acb"),
        ("lag", "asc", "bca"),
        ("members", "desc", "acb"),
        ("rebalances", "desc", "bac"),
        ("state", "asc", "bac"),
    ],
)
def test_groups_are_sorted_by_any_column(view: FedView, sort: str, order: str, expected: str) -> None:
    """Equal ones by name; a lag that is not known is the smallest."""
    assert names(view, sort=sort, order=order) == expected


def test_groups_are_filtered_by_type_alert_and_state(view: FedView) -> None:
    """Each filter alone, and together."""
    assert names(view, group_type="consumer") == "b"
    assert names(view, alert="SessionTimeout") == "c"
    assert names(view, state="Stable") == "ca"
    assert names(view, state="Stable", group_type="consumer") == ""


def test_pages_follow_one_another_in_descending_order(view: FedView) -> None:
    """No group twice, none left out."""
    pages = [
        view.groups(Wanted(sort="lag", order="desc", offset=n, limit=1)).groups[0].group for n in range(3)
    ]
    assert pages == ["a", "c", "b"]


def test_groups_have_their_owner_and_can_be_asked_for_by_it(view: FedView) -> None:
    """As the configuration names them."""
    owned = View(view.store, view.shown, clock_ms=lambda: NOW_MS, owner_of=lambda _, group: f"team-{group}")
    assert names(owned, owner="team-a") == "a"
    assert owned.groups(Wanted(text="b")).groups[0].owner == "team-b"


def test_the_lag_of_a_sorted_list_is_computed_once_in_a_while(
    view: FedView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand groups are sorted at each key press otherwise anew."""
    names(view, sort="lag")
    monkeypatch.setattr(view.store, "lags", lambda *_: pytest.fail("computed again"))
    assert len(view._lags.of(view.store.groups())) == 3


CULPRITS = tuple(Culprit(member_id=f"m-{n}") for n in range(3))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            {"name": "SessionTimeoutImminent", "severity": Severity.CRITICAL},
            {"name": "RebalanceStorm"},
            id="severity-before-what-stands-still",
        ),
        pytest.param({"name": "RebalanceStorm"}, {"name": "SessionTimeoutImminent"}, id="a-storm-first"),
        pytest.param({"name": "RebalanceStorm"}, {"name": "SessionTimeout"}, id="a-group-before-a-member"),
        pytest.param({"name": "SessionTimeout"}, {"name": "SessionTimeoutImminent"}, id="lost-before-silent"),
        pytest.param({"name": "SessionTimeout"}, {"name": "OfAnotherVersion"}, id="unknown-ones-last"),
        pytest.param(
            {"name": "SessionTimeout", "culprits": CULPRITS},
            {"name": "SessionTimeout", "culprits": CULPRITS[:1]},
            id="many-members-before-one",
        ),
    ],
)
def test_what_fires_is_ordered_by_trouble(
    rows: "Rows", first: dict[str, Any], second: dict[str, Any]
) -> None:
    """Severity, then how much stands still, then how many are blamed; alerts, groups and metrics alike."""
    view = FedView(["eu"], clock_ms=lambda: NOW_MS)
    view.apply("eu", [rows.report("a"), rows.report("b")])
    newer = {"starts_at_ms": NOW_MS}
    view.apply("eu", [rows.alert("a", id="y", **(second | newer)), rows.alert("b", id="z", **first)])

    assert [one.id for one in view.alerts().alerts] == ["z", "y"]
    assert [one.group for one in view.firing(2)] == ["b", "a"]
    assert names(view, sort="trouble") == "ba"


def test_of_equal_trouble_the_newest_alert_comes_first(rows: "Rows") -> None:
    """And of one moment, always the same."""
    view = FedView(["eu"], clock_ms=lambda: NOW_MS)
    ages = {"a": 20, "b": 10, "c": 20}
    view.apply("eu", [rows.alert(one, id=one, starts_at_ms=NOW_MS - age) for one, age in ages.items()])

    assert [one.id for one in view.alerts().alerts] == ["b", "a", "c"]
