"""What assistants are told of groups, alerts and stories."""

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from alerts.alert.alert import AlertStatus, Severity
from alerts.delivery.silences.quiet import Match, Quiet, Silence
from alerts.story.narrative import Entry, Explanation
from coordinator_model.kafka.states import GroupState
from streaming.serving.mcp.tool import ToolError
from streaming.serving.mcp_tools import (
    AlertsAsked,
    AlertsFound,
    AssistantTools,
    GroupsAsked,
    GroupsFound,
    StoryAsked,
)
from tests.unit.streaming.fed_view import FedView

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Rows

NOW_MS = 1_700_000_100_000
HOUR_MS = 3_600_000


class Stories:
    """Tells one story, and notes what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, int]] = []
        self.entries = [
            Entry(at_ms=at, until_ms=at, kind="state", text=f"At {at}.") for at in (1_000, 2_000, 3_000)
        ]

    def __call__(self, cluster: str, group: str, since_ms: int, now_ms: int) -> Explanation | None:
        """Tell it of the group orders, in whatever cluster."""
        self.asked.append((cluster, group, since_ms))
        if group != "orders":
            return None
        return Explanation(
            cluster=cluster,
            group=group,
            since_ms=since_ms,
            until_ms=now_ms,
            now="orders is Stable.",
            summary="Nothing.",
            advice=[],
            entries=self.entries,
            left_out=4,
        )


@pytest.fixture
def view() -> FedView:
    return FedView(["eu", "us"], clock_ms=lambda: NOW_MS)


@pytest.fixture
def stories() -> Stories:
    return Stories()


def tools_of(view: FedView, stories: Stories, *not_ready: str) -> AssistantTools:
    return AssistantTools(view, stories, lambda: not_ready, clock_ms=lambda: NOW_MS)


def test_groups_are_listed_with_a_hint_how_to_read_on(view: FedView, stories: Stories, rows: "Rows") -> None:
    """The troubled one first, with the number of all that match."""
    view.apply("eu", [rows.report(f"app-{n}") for n in range(3)])
    view.apply("us", [rows.report("app-9", GroupState.PREPARING_REBALANCE), rows.report("other")])
    tools = tools_of(view, stories)

    first = tools.groups(GroupsAsked(text="APP", limit=2)).answer
    assert isinstance(first, GroupsFound)
    assert (first.total, [one.group for one in first.groups]) == (4, ["app-9", "app-0"])
    assert (first.next_offset, first.notes) == (2, ["There are more: ask again with offset 2, or for fewer."])
    assert (first.at, first.groups[0].state_since) == ("2023-11-14T22:15:00.000Z", "2023-11-14T22:14:00.000Z")

    rest = tools.groups(GroupsAsked(text="app", limit=2, offset=2)).answer
    assert isinstance(rest, GroupsFound)
    assert ([one.group for one in rest.groups], rest.next_offset) == (["app-1", "app-2"], None)
    assert rest.notes == []

    chosen = tools.groups(GroupsAsked(cluster="us", state=GroupState.STABLE)).answer
    assert isinstance(chosen, GroupsFound)
    assert [one.group for one in chosen.groups] == ["other"]


def test_what_an_answer_lacks_is_said(view: FedView, stories: Stories) -> None:
    """A cluster that was not read to its end, and one that nobody watches."""
    tools = tools_of(view, stories, "us")
    late = "Cluster us is not ready: what is shown may be old, and may lack groups and causes."
    unknown = "There is no cluster 'eu-1'; there are eu, us."
    answers = [tools.groups(GroupsAsked(cluster=name)).answer for name in ("", "us", "eu", "eu-1")]
    assert [one.notes for one in answers if isinstance(one, GroupsFound)] == [[late], [late], [], [unknown]]


def test_alerts_are_listed_by_status_group_and_severity(
    view: FedView, stories: Stories, rows: "Rows"
) -> None:
    """Open ones unless something else is asked for."""
    over = {"status": AlertStatus.RESOLVED, "ends_at_ms": NOW_MS - 5_000, "revision": 1}
    view.apply("eu", [rows.alert("a", id="1", severity=Severity.CRITICAL), rows.alert("a", id="2")])
    view.apply("eu", [rows.alert("b", id="3", **over)])
    tools = tools_of(view, stories)

    def found(**asked: str) -> list[str]:
        answer = tools.alerts(msgspec.convert(asked, AlertsAsked)).answer
        assert isinstance(answer, AlertsFound)
        return [one.id for one in answer.alerts]

    assert found() == ["1", "2"]
    assert found(severity="critical") == ["1"]
    assert found(group="b") == []
    assert (found(status="ended"), found(status="all")) == (["3"], ["1", "2", "3"])
    ended = tools.alerts(AlertsAsked(status="ended")).answer
    assert isinstance(ended, AlertsFound)
    assert (ended.alerts[0].open, ended.alerts[0].ended) == (False, "2023-11-14T22:14:55.000Z")


def test_a_silenced_alert_says_who_silenced_it(stories: Stories, rows: "Rows") -> None:
    """And until when."""
    silence = Silence(
        match=Match(groups=("a",)), until_ms=NOW_MS + HOUR_MS, id="1", author="ada", comment="deploy"
    )
    view = FedView(["eu"], clock_ms=lambda: NOW_MS, quiet=Quiet([silence]))
    view.apply("eu", [rows.alert("a", id="1")])
    answer = tools_of(view, stories).alerts(AlertsAsked()).answer
    assert isinstance(answer, AlertsFound)
    assert answer.alerts[0].silenced == "2023-11-14T23:15:00.000Z, by ada, deploy"


def test_a_story_is_cut_to_the_newest_entries_in_time(view: FedView, stories: Stories) -> None:
    """What is left out is counted; the text is of what is left."""
    tools = tools_of(view, stories)
    told = tools.explain(StoryAsked(cluster="eu", group="orders", since="30m", limit=1))
    assert isinstance(told.answer, Explanation)
    assert ([one.text for one in told.answer.entries], told.answer.left_out) == (["At 3000."], 6)
    assert "At 3000." in told.text
    assert "At 2000." not in told.text
    assert stories.asked == [("eu", "orders", NOW_MS - HOUR_MS // 2)]

    until = tools.explain(StoryAsked(cluster="eu", group="orders", until="1970-01-01T00:00:02")).answer
    assert isinstance(until, Explanation)
    assert ([one.text for one in until.entries], until.left_out) == (["At 1000.", "At 2000."], 4)


def test_the_cluster_is_found_where_only_one_has_the_group(
    view: FedView, stories: Stories, rows: "Rows"
) -> None:
    """Else the assistant is told which there are."""
    view.apply("us", [rows.report("orders"), rows.report("both")])
    view.apply("eu", [rows.report("both")])
    tools = tools_of(view, stories)
    tools.explain(StoryAsked(group="orders"))
    assert stories.asked[0][:2] == ("us", "orders")
    with pytest.raises(ToolError, match="say which cluster: the clusters eu, us have it"):
        tools.explain(StoryAsked(group="both"))
    with pytest.raises(ToolError, match="say which cluster: there are eu, us"):
        tools.explain(StoryAsked(group="nobody"))


def test_of_one_cluster_alone_a_group_may_be_gone(stories: Stories) -> None:
    """The topics may remember it."""
    tools_of(FedView(["eu"], clock_ms=lambda: NOW_MS), stories).explain(StoryAsked(group="orders"))
    assert stories.asked[0][:2] == ("eu", "orders")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        pytest.param({}, "there is no group 'x' in cluster 'eu'", id="group"),
        pytest.param({"cluster": "us-1"}, "There is no cluster 'us-1'; there are eu, us", id="cluster"),
        pytest.param({"since": "noon"}, "since: 'noon' is neither", id="since"),
        pytest.param({"until": "-1h"}, "until: '-1h' is neither", id="until"),
    ],
)
def test_what_has_no_story_is_said_in_words(
    view: FedView, stories: Stories, asked: dict[str, Any], why: str
) -> None:
    """So that the assistant can ask again."""
    with pytest.raises(ToolError, match=why):
        tools_of(view, stories).explain(StoryAsked(**{"cluster": "eu", "group": "x"} | asked))
