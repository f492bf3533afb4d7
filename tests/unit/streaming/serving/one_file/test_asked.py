"""What a running job answers, and what the topics remember, as a file holds it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from alerts.alert.alert import AlertStatus
from alerts.delivery import wall_clock_ms
from coordinator_model.kafka.states import GroupState
from coordinator_model.state.group import Transition
from streaming.config.config import parse_config
from streaming.config.server import HttpConfig
from streaming.history.past import Past, Point
from streaming.serving import explaining
from streaming.serving.explaining import ExplainError
from streaming.serving.history import History
from streaming.serving.http import HttpServer
from streaming.serving.one_file.asked import captured_by_config, captured_by_url
from tests.unit.made_alerts import an_alert
from tests.unit.streaming.fed_view import FedView

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Rows

HOUR_MS = 3_600_000


class _Health:
    def clusters(self) -> list[dict[str, Any]]:
        return [{"cluster": "eu", "ready": True}]

    def problems(self) -> list[str]:
        return []


class Site(NamedTuple):
    """A server, and the time at which it was started."""

    url: str
    now_ms: int
    view: FedView


@pytest.fixture
def site(rows: "Rows") -> Iterator[Site]:
    now_ms = wall_clock_ms()
    view = FedView(["eu"], clock_ms=wall_clock_ms)
    view.apply("eu", [rows.report("a/b"), rows.transition(GroupState.STABLE, now_ms - 60_000, group="a/b")])

    def past(_cluster: str, _group: str, _from_ms: int, _to_ms: int) -> Past:
        return Past(points=(Point(now_ms - 30_000, 7, 1.0, 2.0),))

    server = HttpServer(HttpConfig(host="127.0.0.1", port=0), view, _Health(), CollectorRegistry(), past=past)
    yield Site(f"http://127.0.0.1:{server.start()}", now_ms, view)
    server.stop()


def test_a_running_job_answers_all_that_the_page_asks(site: Site) -> None:
    """State, history with lag, story, and the alerts that fire: for one group, whatever its name."""
    alert = an_alert(group="a/b", cluster="eu", starts_at_ms=site.now_ms - 50_000)
    site.view.shown.remember(alert)
    found = captured_by_url(site.url, "eu", "a/b", since_ms=site.now_ms - HOUR_MS, now_ms=wall_clock_ms())
    one = found.groups[0]
    assert (one.cluster, one.group, found.notes, found.left_out) == ("eu", "a/b", [], 0)
    assert one.detail is not None
    assert one.detail.report.group == "a/b"
    assert [point.records for point in one.history.lag] == [7]
    assert [told.id for told in one.alerts.alerts] == [alert.id]
    assert one.story.now.startswith("a/b is Stable")
    assert found.source == f"the job at {site.url}"


def test_a_password_in_the_address_is_not_in_the_file(site: Site) -> None:
    """Files are sent on."""
    url = site.url.replace("http://", "http://alice:secret@")
    found = captured_by_url(url, "eu", "a/b", since_ms=site.now_ms - HOUR_MS, now_ms=wall_clock_ms())
    assert "secret" not in found.source


def test_a_group_that_the_job_does_not_know_is_said(site: Site) -> None:
    """In the job's own words."""
    with pytest.raises(ExplainError, match="there is no group 'x'"):
        captured_by_url(site.url, "eu", "x", since_ms=site.now_ms - HOUR_MS, now_ms=site.now_ms)


def test_the_topics_alone_give_states_and_alerts(rows: "Rows", monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a job; the file says what is missing."""
    now_ms = wall_clock_ms()
    moved = msgspec.json.decode(rows.transition(GroupState.EMPTY, now_ms - 60_000)[2], type=Transition)
    ended = an_alert(
        group="g",
        cluster="eu",
        starts_at_ms=now_ms - 50_000,
        status=AlertStatus.RESOLVED,
        ends_at_ms=now_ms - 20_000,
    )
    monkeypatch.setattr(explaining, "read_history", lambda *_: History([moved], [ended], []))
    config = parse_config("clusters: [{name: eu, bootstrap_servers: [127.0.0.1:1]}]\nhttp: {port: 1}\n")
    found = captured_by_config(config, config.clusters[0], "g", since_ms=now_ms - HOUR_MS, now_ms=now_ms)
    one = found.groups[0]
    assert [span.state for span in one.history.states][-1] == "Empty"
    assert [told.id for told in one.alerts.alerts] == [ended.id]
    assert (one.detail, found.source) == (None, "the topics of eu")
    assert any("not in the topics" in note for note in one.history.notes)
    assert any("No running groupwatch answers" in note for note in one.story.notes)


def test_lag_and_members_are_the_jobs_where_it_runs(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside what the topics remember."""
    monkeypatch.setattr(explaining, "read_history", lambda *_: History([], [], []))
    port = site.url.rpartition(":")[2]
    config = parse_config(
        f"clusters: [{{name: eu, bootstrap_servers: [127.0.0.1:1]}}]\nhttp: {{port: {port}}}\n"
    )
    found = captured_by_config(
        config, config.clusters[0], "a/b", since_ms=site.now_ms - HOUR_MS, now_ms=wall_clock_ms()
    )
    history = found.groups[0].history
    assert ([point.records for point in history.lag], history.notes) == ([7], [])
    assert len(history.members) > 0
