"""The picture that metrics and the API read."""

import logging
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from alerts.alert.alert import AlertStatus, Severity
from alerts.delivery.silences import LiveQuiet, Match, Quiet, Silence
from coordinator_model.groups.modern.progress import GroupProgress, HoldUp, Why
from coordinator_model.groups.reconciling import KINDS
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState
from coordinator_model.state.group import Basis, Cause, Transition
from streaming.serving.choosing import Wanted
from tests.unit.streaming.fed_view import FedView

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Rows

NOW_MS = 1_700_000_100_000


@pytest.fixture
def view() -> FedView:
    return FedView(["eu"], clock_ms=lambda: NOW_MS)


def transition(to: GroupState, at_ms: int, **changes: Any) -> tuple[str, str, bytes]:
    made = Transition(
        id=f"{to}-{at_ms}",
        cluster="eu",
        group="g",
        group_type="classic",
        from_state=GroupState.STABLE,
        to_state=to,
        generation=1,
        at_ms=at_ms,
        recorded_at_ms=at_ms,
        cause=Cause(kind=CauseKind.MEMBER_LEFT),
        basis=Basis.OBSERVED,
        source="coordinator_log",
    )
    made = msgspec.structs.replace(made, **changes)
    return "transition", made.group, msgspec.json.encode(made)


def test_a_report_is_shown_and_replaced_by_the_next(view: FedView, rows: "Rows") -> None:
    """The last word about a group counts."""
    view.apply("eu", [rows.report("g"), rows.report("g", GroupState.EMPTY, generation=8)])
    (group,) = view.groups().groups
    assert (group.state, group.generation, group.members, group.rebalances) == ("Empty", 8, 1, 7)


def test_a_removed_group_is_gone_at_once(view: FedView, rows: "Rows") -> None:
    """Deleted, denied, forgotten: no series, no row."""
    view.apply("eu", [rows.report("g"), transition(GroupState.STABLE, 1), rows.report("g", removed=True)])
    assert view.groups().total == 0
    assert view.group_samples(10) == []
    assert view.group("eu", "g") is None


def hold_up(client_id: str, why: Why, *partitions: int) -> HoldUp:
    return HoldUp(
        member_id=f"{client_id}-id",
        client_id=client_id,
        client_host="/10.0.0.7",
        instance_id=None,
        why=why,
        partitions={"orders": partitions},
        held_by={},
        since_ms=NOW_MS,
        until_ms=-1,
    )


def test_who_holds_up_a_consumer_group_is_listed(view: FedView, rows: "Rows") -> None:
    """Those that others wait for, with what they have to give up; of a group that is calm nobody."""
    waiting, revoking = hold_up("new", Why.WAITING, 3), hold_up("old", Why.REVOKING, 3, 4)
    progress = GroupProgress(epoch=7, assignment_epoch=6, topology_epoch=-1, held_up_by=(revoking, waiting))
    known: dict[str, Any] = {"group_type": "consumer", "progress": progress}
    view.apply("eu", [rows.report("a", GroupState.RECONCILING, **known), rows.report("b", **known)])

    assert [(one.group, one.assignment_epoch, one.held_up_by) for one in view.groups().groups] == [
        ("a", 6, ["old revoking orders-3, orders-4"]),
        ("b", 6, []),
    ]


def test_the_troubled_come_first(view: FedView, rows: "Rows") -> None:
    """Loud alerts, then other alerts, then those on their way, then Empty, then Stable; by name within."""
    view.apply(
        "eu",
        [
            rows.report("a-stable"),
            rows.report("b-stable"),
            rows.report("c-empty", GroupState.EMPTY),
            rows.report("d-preparing", GroupState.PREPARING_REBALANCE),
            rows.report("e-warning"),
            rows.report("f-critical"),
            rows.alert("e-warning", id="w"),
            rows.alert("f-critical", id="c", severity=Severity.CRITICAL),
        ],
    )
    expected = ["f-critical", "e-warning", "d-preparing", "c-empty", "a-stable", "b-stable"]
    assert [group.group for group in view.groups().groups] == expected
    assert [sample.group for sample in view.group_samples(2)] == expected[:2]


def test_an_alert_opens_gains_revisions_and_ends(view: FedView, rows: "Rows") -> None:
    """What was said before changes nothing, whenever it comes again."""
    view.apply("eu", [rows.alert(), rows.alert(revision=1, severity=Severity.CRITICAL), rows.alert()])
    assert [alert.severity for alert in view.alerts().alerts] == ["critical"]
    assert view.firing(10) == [("eu", "payments", "RebalanceStorm", "critical", "false")]
    view.apply("eu", [rows.alert(revision=2, status=AlertStatus.RESOLVED, ends_at_ms=NOW_MS), rows.alert()])
    assert view.alerts().total == 0
    assert view.firing(10) == []
    assert [alert.revision for alert in view.alerts(status="resolved").alerts] == [2]
    assert view.groups().groups == []


def test_alerts_remembered_from_the_topic_do_not_undo_newer_ones(view: FedView, rows: "Rows") -> None:
    """Reading the topic at start and the first batches may overlap."""
    view.apply("eu", [rows.alert(revision=1, status=AlertStatus.RESOLVED, ends_at_ms=NOW_MS)])
    view.shown.remember(rows.make_alert())
    view.shown.remember(rows.make_alert(id="a2", name="SessionTimeout"))
    assert [alert.id for alert in view.alerts().alerts] == ["a2"]


def test_a_forged_revision_from_the_topic_mutes_nothing_that_the_job_says(
    view: FedView, rows: "Rows"
) -> None:
    """The job's next word wins, whatever its number, and nothing of the forged one is left."""
    view.shown.remember(rows.make_alert(revision=90, group="another", summary="forged"))
    view.apply("eu", [rows.alert(revision=1)])
    assert [(alert.revision, alert.group) for alert in view.alerts().alerts] == [(1, "payments")]
    view.shown.remember(rows.make_alert(revision=100, status=AlertStatus.RESOLVED, ends_at_ms=NOW_MS))
    view.apply("eu", [rows.alert(revision=2)])
    assert [alert.revision for alert in view.alerts().alerts] == [2]
    assert view.firing(10) == [("eu", "payments", "RebalanceStorm", "warning", "false")]
    view.apply("eu", [rows.alert(revision=3, status=AlertStatus.RESOLVED, ends_at_ms=NOW_MS)])
    assert [alert.revision for alert in view.alerts(status="").alerts] == [3]


def test_filters_and_pages(view: FedView, rows: "Rows") -> None:
    """Filters are combined; total counts the matches, not the page."""
    view.apply("eu", [rows.report(f"App-{n}") for n in range(5)])
    view.apply("us", [rows.report("app-9", GroupState.EMPTY)])
    assert view.groups(Wanted(text="app")).total == 6
    assert view.groups(Wanted(text="APP-1")).total == 1
    assert view.groups(Wanted(cluster="us")).total == 1
    assert view.groups(Wanted(cluster="us", state="Stable")).total == 0
    page = view.groups(Wanted(cluster="eu", offset=3, limit=10))
    assert (page.total, [group.group for group in page.groups]) == (5, ["App-3", "App-4"])


def test_a_group_in_detail_has_its_report_lag_alerts_and_history(view: FedView, rows: "Rows") -> None:
    """Everything known of one group in one answer."""
    view.apply(
        "eu",
        [
            rows.report("g", commits={"t": {0: (90, NOW_MS)}}),
            rows.alert("g"),
            transition(GroupState.PREPARING_REBALANCE, 1),
        ],
    )
    view.store.set_end_offsets("eu", {"t": {0: (100, NOW_MS)}})
    detail = view.group("eu", "g")
    assert detail is not None
    assert detail.report.members[0].client_id == "app"
    assert [(lag.topic, lag.records) for lag in detail.lag] == [("t", 10)]
    assert [alert.id for alert in detail.alerts] == ["a1"]
    assert [one.to_state for one in detail.transitions] == ["PreparingRebalance"]
    assert view.group("eu", "other") is None
    assert view.group("other", "g") is None


def test_a_replaced_transition_does_not_stay_beside_the_right_one(view: FedView, rows: "Rows") -> None:
    """An inference found wrong is gone from the history."""
    guess = transition(GroupState.PREPARING_REBALANCE, 1, id="guess", basis=Basis.INFERRED)
    right = transition(GroupState.EMPTY, 2, id="right", replaces="guess")
    view.apply("eu", [rows.report("g"), guess, right, right])
    detail = view.group("eu", "g")
    assert detail is not None
    assert [one.id for one in detail.transitions] == ["right"]


def test_a_rebalance_is_timed_from_its_start_to_its_end() -> None:
    """From the first unsettled state to Stable, once, whatever comes in between."""
    seconds: list[tuple[str, float]] = []
    view = FedView(clock_ms=lambda: NOW_MS, rebalanced=lambda *told: seconds.append(told))
    story = [
        transition(GroupState.PREPARING_REBALANCE, 1_000),
        transition(GroupState.COMPLETING_REBALANCE, 3_000),
        transition(GroupState.PREPARING_REBALANCE, 4_000),
        transition(GroupState.COMPLETING_REBALANCE, 5_000),
        transition(GroupState.STABLE, 6_500),
    ]
    view.apply("eu", story)
    view.apply("eu", story)
    assert seconds == [("eu", 5.5)]


def test_detection_is_timed_once_for_each_alert(rows: "Rows") -> None:
    """From when the condition held to here; revisions and repeats do not count."""
    seconds: list[float] = []
    view = FedView(clock_ms=lambda: NOW_MS, detected=seconds.append)
    view.apply("eu", [rows.alert(), rows.alert(), rows.alert(revision=1)])
    assert seconds == [1.5]


def test_the_clusters_own_report_feeds_the_totals(view: FedView) -> None:
    """Counts of the cluster's shard and divergences counted here come together."""
    report = {
        "events": [["offsets", "commit", 5]],
        "undecodable": [["events", "truncated", 2]],
        "samples": [
            {"at_ms": 1, "source": "events", "reason": "truncated", "detail": "d", "sample": "AA=="},
            {"at_ms": 2, "source": "events", "reason": "truncated", "detail": "d", "sample": "AQ=="},
        ],
        "divergences": {"log_line_missing": 3},
        "newest_ms": {"offsets": NOW_MS},
        "something_newer": 1,
    }
    view.apply(
        "eu",
        [
            ("cluster", "", msgspec.json.encode(report)),
            ("contradiction", "g", b'{"broker": 1, "lost": "coordinator_log", "group": "g"}'),
            ("divergence", "g", b'{"kind": "log_line_missing", "group": "g", "count": 1}'),
            ("divergence", "g", b'{"kind": "inferred_wrong", "group": "g", "count": 2}'),
            ("divergence", "h", b'{"kind": "inferred_wrong", "group": "h", "count": 1}'),
            ("reported", "3", b"{}"),
        ],
    )
    (sample,) = view.cluster_samples()
    assert sample.events == {("offsets", "commit"): 5}
    assert sample.undecodable == {("events", "truncated"): 2}
    counted = {kind: count for kind, count in sample.divergences.items() if count}
    assert counted == {"log_line_missing": 3, "inferred_wrong": 3}
    assert set(KINDS) <= sample.divergences.keys()  # at 0, so that the first one is seen to come
    assert sample.newest_ms == {"offsets": NOW_MS}
    assert [one.at_ms for one in view.undecodable().samples] == [2, 1]
    assert view.undecodable().counts[0].count == 2


def test_a_lost_line_counts_once_and_never_goes_back(view: FedView) -> None:
    """It comes as a contradiction, as a divergence, and later in the cluster's own report."""
    counted = []
    for row in (
        ("contradiction", "g", b'{"broker": 1, "lost": "coordinator_log", "group": "g"}'),
        ("divergence", "g", b'{"kind": "log_line_missing", "group": "g", "count": 1}'),
        ("cluster", "", b'{"divergences": {}}'),
        ("cluster", "", b'{"divergences": {"log_line_missing": 1}}'),
        ("cluster", "", b'{"divergences": {"log_line_missing": 2}}'),
    ):
        view.apply("eu", [row])
        (sample,) = view.cluster_samples()
        counted.append(sample.divergences.get("log_line_missing", 0))
    assert counted == [0, 1, 1, 1, 2]


def test_a_row_that_cannot_be_read_spoils_no_other(
    view: FedView, rows: "Rows", caplog: pytest.LogCaptureFixture
) -> None:
    """A bug in one report is logged, and the batch goes on."""
    with caplog.at_level(logging.ERROR, "groupwatch.group_store"):
        view.apply("eu", [("report", "x", b"{"), rows.report("g")])
    assert view.groups().total == 1
    assert "cannot be read" in caplog.text


def test_agreement_is_the_share_of_the_last_quarter_of_an_hour(rows: "Rows") -> None:
    """What is older counts in the totals only; without any answer there is no share."""
    now = [NOW_MS]
    view = FedView(["eu"], clock_ms=lambda: now[0])
    (before,) = view.cluster_samples()
    view.apply("eu", [("agreement", "", b'{"compared":4,"agreeing":1}')])
    now[0] += 16 * 60_000
    view.apply("eu", [("agreement", "", b'{"compared":4,"agreeing":3}')])
    (after,) = view.cluster_samples()
    assert (before.agreement, before.answers) == (None, {"agreeing": 0, "differing": 0})
    assert (after.agreement, after.answers) == (0.75, {"agreeing": 4, "differing": 4})


def test_a_difference_is_logged_with_both_sides_and_kept(
    view: FedView, caplog: pytest.LogCaptureFixture
) -> None:
    """The newest first; other divergences are kept in silence."""
    for kind in ("state_differs", "inferred_wrong"):
        one = {
            "kind": kind,
            "group": "g",
            "broker": 1,
            "at_ms": 5,
            "detail": "mirror: a; broker: b",
            "count": 1,
        }
        view.apply("eu", [("divergence", "g", msgspec.json.encode(one))])
    assert [r.message for r in caplog.records] == ["eu: state_differs: group g: mirror: a; broker: b"]
    (cluster,) = view.clusters().clusters
    assert [(d.kind, d.detail) for d in cluster.divergences] == [
        ("inferred_wrong", "mirror: a; broker: b"),
        ("state_differs", "mirror: a; broker: b"),
    ]


def test_a_cluster_shows_what_its_brokers_are_set_to(view: FedView) -> None:
    """As its own shard reported it, with what it cost to ask."""
    report = {"brokers": {"1": {"group.max.size": "9"}}, "leaders": {"3": [1, 7]}, "partitions": {"t": 2}}
    view.apply("eu", [("cluster", "", msgspec.json.encode(report))])
    view.store.probed("eu", {"ListGroups": 4})
    (cluster,) = view.clusters().clusters
    assert (cluster.brokers, cluster.offsets_leaders) == ({1: {"group.max.size": "9"}}, {3: 1})
    assert (cluster.partitions, cluster.probe_requests) == ({"t": 2}, {"ListGroups": 4})


def test_silenced_alerts_are_shown_and_marked(rows: "Rows") -> None:
    """Nothing is hidden: until when receivers are not told stands beside it."""
    until_ms = NOW_MS + 60_000
    quiet = Quiet([Silence(match=Match(groups=("night-.*",)), until_ms=until_ms)])
    view = FedView(["eu"], clock_ms=lambda: NOW_MS, quiet=quiet)
    view.apply("eu", [rows.alert("night-1", id="n", cluster="eu"), rows.alert("day", id="d", cluster="eu")])
    found = view.alerts()

    assert {alert.id for alert in found.alerts} == {"n", "d"}
    assert found.silenced == {"n": until_ms}


def test_silenced_alerts_do_not_push_loud_ones_off_the_page(rows: "Rows") -> None:
    """Open and loud, then open and silenced, then ended; inside of each as ever, on whatever page."""
    quiet = Quiet([Silence(match=Match(groups=("night-.*",))), Silence(match=Match(alert_id="acknowledged"))])
    view = FedView(["eu"], clock_ms=lambda: NOW_MS, quiet=quiet)
    critical, warning = Severity.CRITICAL, Severity.WARNING
    view.apply(
        "eu",
        [
            *(rows.alert(f"night-{n}", id=f"n{n}", severity=critical, starts_at_ms=9 - n) for n in range(3)),
            rows.alert("day", id="acknowledged", severity=warning, starts_at_ms=2),
            rows.alert("day", id="late", severity=warning, starts_at_ms=1),
            rows.alert("day", id="info", severity=Severity.INFO),
            rows.alert("day", id="ended", severity=critical, status=AlertStatus.RESOLVED),
            rows.alert("night-9", id="n9", severity=critical, status=AlertStatus.RESOLVED, starts_at_ms=9),
        ],
    )
    whole = ["late", "info", "n0", "n1", "n2", "acknowledged", "ended", "n9"]
    assert [one.id for one in view.alerts(status="").alerts] == whole
    for limit in (1, 2, 3, 7):
        pages = [view.alerts(status="", offset=n, limit=limit) for n in range(0, len(whole), limit)]
        assert [one.id for page in pages for one in page.alerts] == whole
        assert {page.total for page in pages} == {len(whole)}
    assert [one.id for one in view.alerts(status="resolved").alerts] == whole[-2:]
    assert view.alerts(limit=2).silenced_by == {}


def test_only_silences_in_force_move_alerts_back(rows: "Rows") -> None:
    """One that is over or has yet to begin leaves the order as it is."""
    old = Silence(match=Match(groups=("first",)), until_ms=NOW_MS)
    pending = Silence(match=Match(alert_id="a"), from_ms=NOW_MS + 1)
    live = LiveQuiet(Quiet([old, pending]))
    view = FedView(["eu"], clock_ms=lambda: NOW_MS, quiet=live)
    view.apply("eu", [rows.alert("first", id="a"), rows.alert("second", id="b")])
    assert [one.id for one in view.alerts().alerts] == ["a", "b"]
    live.add_all([Silence(match=Match(alert_id="a"))])
    assert [one.id for one in view.alerts().alerts] == ["b", "a"]


def test_alerts_say_why_who_is_not_told_of_them(rows: "Rows") -> None:
    """One value for each receiver; alerts that nobody holds back are left out."""
    reasons = {"n": {"pager": "silenced", "chat": "not_routed"}}
    view = FedView(["eu"], clock_ms=lambda: NOW_MS, held_back=lambda one: reasons.get(one, {}))
    view.apply("eu", [rows.alert("night-1", id="n"), rows.alert("day", id="d")])

    assert view.alerts().held_back == reasons
