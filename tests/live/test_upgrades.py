"""A job of today goes on with what earlier releases left: their checkpoints, topics and open alerts."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from streaming.kafka_clients import admin_client
from tests.live.support.kept_world import MODERN, STEADY, STORMY, transitions_of, unpack
from tests.live.support.members import Member
from tests.live.support.stage import (
    Job,
    Pager,
    alerts_of,
    await_that,
    need_jars,
    now_ms,
    states_of,
    told_in_two_ways,
)

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

FORGOTTEN_MS = (7 * 24 - 1) * 3_600_000
"""Nearly a week after its last sign of life, a group without commits may be forgotten (``forget_after``)."""
WORLDS = sorted((Path(__file__).parents[1] / "golden" / "checkpoints").glob("*.tar.xz"))


@dataclass
class Upgrade:
    """What stood in the topics before, and after."""

    transitions_before: list[dict[str, Any]] = field(default_factory=list)
    alerts_before: list[dict[str, Any]] = field(default_factory=list)
    transitions: list[dict[str, Any]] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    in_two_ways: list[tuple[str, int]] = field(default_factory=list)
    forgotten: frozenset[str] = frozenset()
    """Groups without commits, if the world is so old that they may be forgotten by now."""

    def after(self, group: str) -> list[dict[str, Any]]:
        """Return what happened to a group since."""
        return [one for one in self.transitions[len(self.transitions_before) :] if one["group"] == group]

    def before(self, group: str) -> list[dict[str, Any]]:
        """Return what had happened to a group."""
        return [one for one in self.transitions_before if one["group"] == group]


@pytest.fixture(scope="module", params=WORLDS, ids=[one.name for one in WORLDS])
def upgrade(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgrade]:
    need_jars()
    folder = tmp_path_factory.mktemp("upgrade")
    kafka = unpack(request.param, folder)
    seen = Upgrade()
    with kafka, Pager() as pager:
        seen.transitions_before, seen.alerts_before = transitions_of(kafka), alerts_of(kafka.address)
        seen.forgotten = _forgotten(seen.transitions_before)
        job, admin = Job(kafka.bootstrap_servers, folder, pager), admin_client(kafka.address)
        member = Member(kafka.bootstrap_servers, STEADY, "since-the-upgrade")
        try:
            job.start()
            job.await_ready()
            gone = dict.fromkeys((STEADY, MODERN, STORMY), "Empty")
            await_that(
                lambda: job.states() | dict.fromkeys(seen.forgotten, "Empty") == gone,
                "those who died with the old version are missed",
            )
            member.start()
            await_that(lambda: states_of(admin, [STEADY]) == {STEADY: "Stable"}, "the group lives again")
            await_that(lambda: job.states().get(STEADY) == "Stable", "and the mirror says so")
            newest = _storms(seen.alerts_before)[-1]["revision"]  # the brokers may have compacted older ones
            await_that(
                lambda: any(one["revision"] > newest for one in _storms(alerts_of(kafka.address))),
                "the storm's alert goes on",
            )
            seen.transitions, seen.alerts = transitions_of(kafka), alerts_of(kafka.address)
            seen.in_two_ways = told_in_two_ways(kafka.address)
            yield seen
        finally:
            member.crash()
            admin.close()
            job.stop()


def _forgotten(transitions: list[dict[str, Any]]) -> frozenset[str]:
    """Return the groups without commits, if the last of these transitions is long enough ago."""
    newest_ms = max(int(one["at_ms"]) for one in transitions)
    return frozenset({MODERN}) if now_ms() - newest_ms > FORGOTTEN_MS else frozenset()


def _storms(alerts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in alerts if (one["name"], one["group"]) == ("RebalanceStorm", STORMY)]


@pytest.mark.parametrize("group", [STEADY, STORMY, MODERN])
def test_a_group_goes_on_where_it_was(upgrade: Upgrade, group: str) -> None:
    """Its first transition leaves the state and the generation that the old version wrote last."""
    if group in upgrade.forgotten:
        pytest.skip("a group without commits is forgotten after a week, and this world is older")
    last, first = upgrade.before(group)[-1:], upgrade.after(group)[0]
    assert first["from"] == "Stable"
    assert first["cause"]["kind"] == "session_timeout"
    if last:  # those that were Stable when the old version first started have none
        assert (first["generation"], last[0]["to"]) == (last[0]["generation"], "Stable")


def test_members_of_the_old_state_are_known(upgrade: Upgrade) -> None:
    """Who joined before the upgrade is named when it is lost after it."""
    assert {one["cause"]["client_id"] for one in upgrade.after(STEADY)[:2]} == {"steady-1", "steady-2"}
    assert MODERN in upgrade.forgotten or upgrade.after(MODERN)[0]["cause"]["client_id"] == "modern-1"


def test_the_open_alert_goes_on(upgrade: Upgrade) -> None:
    """The storm that the old version told is one incident, with its next revision."""
    old, new = _storms(upgrade.alerts_before)[-1], _storms(upgrade.alerts)[-1]
    assert (new["id"], new["revision"] > old["revision"]) == (old["id"], True)


def test_nothing_is_told_in_two_ways(upgrade: Upgrade) -> None:
    """Of no transition and no revision are there two contents."""
    assert upgrade.in_two_ways == []
    assert upgrade.transitions[: len(upgrade.transitions_before)] == upgrade.transitions_before
