"""What probes ask of the store of groups."""

from typing import TYPE_CHECKING

import pytest

from streaming.driver.probing.cluster_view import ClusterView
from streaming.group_store.store import GroupStore

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Rows

NOW_MS = 1_700_000_100_000


@pytest.fixture
def store() -> GroupStore:
    return GroupStore(["eu"], clock_ms=lambda: NOW_MS)


def test_topics_worth_asking_for(store: GroupStore, rows: "Rows") -> None:
    """The union of what all groups commit to, and no longer than they do."""
    one, two = {"t": {0: (1, 1)}}, {"t": {2: (1, 1)}, "u": {0: (1, 1)}}
    store.apply("eu", [rows.report("a", commits=one), rows.report("b", commits=two)])
    assert store.committed_topics("eu") == {"t", "u"}
    store.apply("eu", [rows.report("b", commits=one)])
    assert store.committed_topics("eu") == {"t"}
    store.apply("eu", [rows.report("a", removed=True), rows.report("b", removed=True)])
    assert store.committed_topics("eu") == set()
    assert store.committed_topics("nowhere") == set()


def test_who_commits_to_what(store: GroupStore, rows: "Rows") -> None:
    """Groups without commits are not among them."""
    commits = {"t": {0: (7, 1)}, "u": {3: (9, 2)}}
    store.apply("eu", [rows.report("a", commits=commits), rows.report("b", commits={})])
    assert store.readers("eu") == {"a": ("t", "u")}
    assert store.commits("eu", "a") == commits
    assert (store.readers("nowhere"), store.commits("eu", "x")) == ({}, {})


def test_the_asking_thread_sees_types_states_and_members(store: GroupStore, rows: "Rows") -> None:
    """Of one cluster; nothing of what is not there."""
    store.apply("eu", [rows.report("g")])
    view = ClusterView(store, "eu")
    assert view.groups() == {"g": ("classic", "Stable")}
    assert (view.group("g"), view.members("g")) == (("classic", "Stable"), frozenset({"m-1"}))
    assert (view.group("nobody"), view.members("nobody")) == (None, frozenset())
    assert ClusterView(store, "us").groups() == {}
