"""A group over a window of time, over HTTP and from memory."""

from typing import TYPE_CHECKING

import msgspec
import pytest

from alerts.alert.alert import AlertStatus
from alerts.story import figures
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState
from coordinator_model.state.group import Cause
from streaming.history.past import Lane, Owned, Past, Point
from streaming.serving.api import GroupHistory
from streaming.serving.group_history import NOT_KEPT, ReadPast, Window, history_of, window
from tests.unit.streaming.fed_view import FedView

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Rows

NOW_MS = 1_700_000_100_000
HOUR_MS = 3_600_000
LANE = Lane("m-9", "app-9", "/10.0.0.9", None, NOW_MS - 50_000, NOW_MS - 20_000, 45_000, 300_000, ())


@pytest.fixture
def view() -> FedView:
    return FedView(["eu"], clock_ms=lambda: NOW_MS)


def asked(view: FedView, past: ReadPast | None = None, *, from_ms: int = NOW_MS - HOUR_MS) -> GroupHistory:
    """The last hour of group g."""
    found = history_of(view, past, "eu", "g", Window(from_ms, NOW_MS, NOW_MS))
    assert found is not None
    return found


def reading(past: Past) -> ReadPast:
    """A store that has one thing."""
    return lambda _cluster, _group, _from_ms, _to_ms: past


def test_a_window_is_the_last_hour_unless_asked_otherwise() -> None:
    """Five minutes to seven days, and not in the future."""
    assert window(None, None, NOW_MS) == (NOW_MS - HOUR_MS, NOW_MS, NOW_MS)
    assert window(None, NOW_MS - HOUR_MS, NOW_MS) == (NOW_MS - 2 * HOUR_MS, NOW_MS - HOUR_MS, NOW_MS)
    assert window(NOW_MS - 300_000, None, NOW_MS) == (NOW_MS - 300_000, NOW_MS, NOW_MS)
    for since, until in [(NOW_MS - 299_999, None), (1, 605_000_000_000), (NOW_MS + 1, NOW_MS + 400_000)]:
        with pytest.raises(ValueError, match="from"):
            window(since, until, NOW_MS)


def test_an_unknown_group_has_no_history(view: FedView) -> None:
    """Neither now nor in the store."""
    assert history_of(view, None, "eu", "g", Window(0, NOW_MS, NOW_MS)) is None


def test_without_a_store_the_jobs_memory_is_shown_and_it_is_said(view: FedView, rows: "Rows") -> None:
    """States of the last transitions, the members that are there, who has what now."""
    view.apply("eu", [rows.report("g"), rows.transition(GroupState.STABLE, NOW_MS - 60_000)])
    found = asked(view)
    assert found.problem == NOT_KEPT
    assert found.states[-1].state == "Stable"
    assert [(one.member_id, one.joined_at_ms, one.left_at_ms) for one in found.members] == [("m-1", -1, -1)]
    assert found.owners[-1].assignment == {"m-1": {"orders": [0, 1]}}


def test_the_present_lag_is_the_last_point(view: FedView, rows: "Rows") -> None:
    """After those of the store, if the window reaches until now."""
    view.apply("eu", [rows.report("g", commits={"t": {0: (90, NOW_MS)}})])
    view.store.set_end_offsets("eu", {"t": {0: (100, NOW_MS)}})
    past = reading(Past(points=(Point(NOW_MS - 10_000, 7, 1.0, 2.5),)))
    assert [(one.at_ms, one.records) for one in asked(view, past).lag] == [(NOW_MS - 10_000, 7), (NOW_MS, 10)]
    old = history_of(view, past, "eu", "g", Window(0, NOW_MS - 1, NOW_MS))
    assert old is not None
    assert len(old.lag) == 1


def test_rebalances_that_are_too_many_are_counted(
    view: FedView, rows: "Rows", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest are there, and a sentence: a window that looks calm at its beginning may not have been."""
    monkeypatch.setattr(figures, "REBALANCES_MAX", 2)
    moves = [
        rows.transition(to, NOW_MS - 60_000 + 1_000 * n)
        for n in range(0, 6, 2)
        for n, to in ((n, GroupState.PREPARING_REBALANCE), (n + 1, GroupState.STABLE))
    ]
    view.apply("eu", [rows.report("g"), *moves])
    found = asked(view)

    assert len(found.rebalances) == 2
    assert found.notes == [
        "The newest 2 of 3 rebalances of this window are drawn; a shorter window shows the others."
    ]


def test_a_member_that_went_is_told_with_its_cause(view: FedView, rows: "Rows") -> None:
    """Its lane comes from reports; when and why it went from the transition, which is exact."""
    went = Cause(kind=CauseKind.SESSION_TIMEOUT, member_id="m-9", client_id="app-9")
    view.apply(
        "eu", [rows.report("g"), rows.transition(GroupState.PREPARING_REBALANCE, NOW_MS - 21_000, cause=went)]
    )
    lane = next(one for one in asked(view, reading(Past(lanes=(LANE,)))).members if one.member_id == "m-9")
    assert (lane.joined_at_ms, lane.left_at_ms, lane.end_cause) == (
        NOW_MS - 50_000,
        NOW_MS - 21_000,
        "session_timeout",
    )


def test_a_member_between_two_reports_is_known_by_its_transitions(view: FedView, rows: "Rows") -> None:
    """A crash loop that is quicker than the store looks."""
    who = {"member_id": "m-7", "client_id": "app-7", "client_host": "/10.0.0.7"}
    view.apply(
        "eu",
        [
            rows.report("g"),
            rows.transition(
                GroupState.PREPARING_REBALANCE,
                NOW_MS - 9_000,
                cause=Cause(kind=CauseKind.MEMBER_JOINED, **who),
            ),
            rows.transition(
                GroupState.PREPARING_REBALANCE,
                NOW_MS - 5_000,
                cause=Cause(kind=CauseKind.MEMBER_LEFT, **who),
            ),
        ],
    )
    lane = next(one for one in asked(view).members if one.member_id == "m-7")
    assert (lane.joined_at_ms, lane.left_at_ms, lane.end_cause) == (
        NOW_MS - 9_000,
        NOW_MS - 5_000,
        "member_left",
    )
    assert not lane.heartbeats_known


def test_the_last_member_that_was_lost_did_not_just_leave(view: FedView, rows: "Rows") -> None:
    """The group is Empty a moment later because of it, which is no second departure."""
    who = {"member_id": "m-7", "client_id": "app-7", "client_host": "/10.0.0.7"}
    moves = [
        (GroupState.PREPARING_REBALANCE, CauseKind.SESSION_TIMEOUT, NOW_MS - 5_000),
        (GroupState.EMPTY, CauseKind.ALL_MEMBERS_LEFT, NOW_MS - 4_000),
    ]
    told = [rows.transition(state, at_ms, cause=Cause(kind=kind, **who)) for state, kind, at_ms in moves]
    view.apply("eu", [rows.report("g"), *told])
    lane = next(one for one in asked(view).members if one.member_id == "m-7")
    assert (lane.left_at_ms, lane.end_cause) == (NOW_MS - 5_000, "session_timeout")


def test_heartbeats_grow_to_the_newest_one(view: FedView, rows: "Rows") -> None:
    """The store writes down where a stretch broke; the report has its present end."""
    beats = ((NOW_MS - 90_000, NOW_MS - 60_000), (NOW_MS - 30_000, NOW_MS - 20_000))
    lane = LANE._replace(member_id="m-1", gone_at_ms=-1, beats=beats)
    report = rows.report("g")
    told = msgspec.json.decode(report[2])
    told["members"][0]["last_heartbeat_ms"] = NOW_MS - 2_000
    view.apply("eu", [(*report[:2], msgspec.json.encode(told))])
    (found,) = asked(view, reading(Past(lanes=(lane,)))).members
    assert found.heartbeats == [beats[0], (NOW_MS - 30_000, NOW_MS - 2_000)]
    assert found.heartbeats_known


def test_alerts_that_were_open_in_the_window_are_told_once(view: FedView, rows: "Rows") -> None:
    """By their newest revision, whoever knows it."""
    began = rows.make_alert(group="g", starts_at_ms=NOW_MS - 100_000)
    over = msgspec.structs.replace(began, revision=1, status=AlertStatus.RESOLVED, ends_at_ms=NOW_MS - 50_000)
    early = msgspec.structs.replace(over, id="early", ends_at_ms=NOW_MS - 2 * HOUR_MS)
    view.apply("eu", [rows.report("g")])
    assert asked(view, reading(Past(alerts=(over, began, early)))).alerts == [over]


def test_owners_of_the_store_are_followed_by_those_of_now(view: FedView, rows: "Rows") -> None:
    """Unless the store has this generation already; while it rebalances nobody is said to own anything."""
    had = Owned(NOW_MS - 100_000, 6, {"m-0": {"orders": [0, 1]}})
    view.apply("eu", [rows.report("g")])
    assert [one.generation for one in asked(view, reading(Past(owners=(had,)))).owners] == [6, 7]
    same = had._replace(generation=7)
    assert [one.generation for one in asked(view, reading(Past(owners=(same,)))).owners] == [7]
    view.apply("eu", [rows.report("g", GroupState.PREPARING_REBALANCE)])
    assert asked(view, reading(Past(owners=(had,)))).owners[-1].generation == 6
