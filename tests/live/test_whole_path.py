"""The whole path once: consumers, a broker and its logs, Spark, rules, the notifier, a receiver.

``make test`` plays this; everything else on real clusters is in ``make test-live``.  One life is lived, and
each test asks one thing of it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families

from streaming.config.config import load_config
from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.kafka_clients.clients import admin_client, producer
from streaming.notify.direct_alerts import history_file
from tests.live.support import comparing
from tests.live.support.members import CALM_SESSION_MS, SESSION_MS, Member
from tests.live.support.stage import (
    Job,
    Page,
    Pager,
    alerts_of,
    await_that,
    group_ids,
    need_jars,
    records_of,
    states_of,
    told_in_two_ways,
)

pytestmark = [pytest.mark.path, pytest.mark.spark, pytest.mark.kafka]

BEFORE, GROUP, CALM, LATE = "before", "orders (eu)", "calm", "late"
GARBAGE = [b"\x00\x01", b"\xff" * 300, b"no record of ours", b'{"message": 7}', b""]
VICTIM = "doomed"
TIMEOUT = ("SessionTimeout", GROUP, "firing")


def _told(page: Page) -> tuple[str, str, str]:
    return page.labels["alertname"], page.labels["group"], page.status


def _lane(told: dict[str, Any]) -> dict[str, Any]:
    """Return the life of the member that died; it has not ended if none is kept."""
    lanes = [one for one in told["members"] if one["client_id"] == VICTIM]
    return lanes[0] if lanes else {"left_at_ms": -1}


def _has_ended(told: dict[str, Any]) -> bool:
    """Say whether the incident's rebalance is over, its victim's life, and lag was sampled."""
    is_settled = bool(told["rebalances"]) and told["rebalances"][-1]["ended_at_ms"] > 0
    is_lag_known = any(one["records"] is not None for one in told["lag"])
    return is_settled and is_lag_known and _lane(told)["left_at_ms"] > 0


def _moves(told: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return when each rebalance began and ended, where it led, and who began it."""
    names = ("started_at_ms", "joined_at_ms", "ended_at_ms", "state", "generation")
    return [
        (*(one[name] for name in names), one["cause"]["kind"], one["cause"]["member_id"])
        for one in told["rebalances"]
    ]


def _causes(told: dict[str, Any]) -> list[tuple[str, str]]:
    """Return cause and culprit of each rebalance."""
    return [(one["cause"]["kind"], one["cause"]["client_id"]) for one in told["rebalances"]]


@dataclass
class Life:
    """What was seen of it."""

    pages: list[Page] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    transitions: list[dict[str, Any]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    twofold: list[tuple[str, int]] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    brokers_states: dict[str, str] = field(default_factory=dict)
    shown_after_restart: dict[str, str] = field(default_factory=dict)
    firing_after_restart: set[tuple[str, str]] = field(default_factory=set)
    garbage: int = 0
    health: int = 0
    groups: set[str] = field(default_factory=set)
    """All that the broker knows in the end."""
    metrics: str = ""
    page: str = ""
    before: dict[str, Any] = field(default_factory=dict)
    """The history of the group whose member died, while the first process ran."""
    rebuilt: dict[str, Any] = field(default_factory=dict)
    """The same in the next process, which found no file."""
    exit_code: int = -1


class Play:
    """The cluster with its job and its consumers."""

    def __init__(self, kafka: EmbeddedKafka, folder: Path, pager: Pager) -> None:
        self.kafka = kafka
        self.pager = pager
        self.admin = admin_client(kafka.address)
        self.job = Job(kafka.bootstrap_servers, folder, pager)
        self._members: list[Member] = []

    def joins(self, group: str, client_id: str, members: int, **options: Any) -> Member:
        """One more consumer, and the broker says that all of them are in."""
        session_ms = SESSION_MS if client_id == VICTIM else CALM_SESSION_MS
        one = Member(self.kafka.bootstrap_servers, group, client_id, session_timeout_ms=session_ms, **options)
        self._members.append(one)
        one.start()
        self.await_members(group, members)
        return one

    def await_members(self, group: str, count: int) -> None:
        """Return when the broker says that a group is Stable with so many members."""

        def there() -> bool:
            said = self.admin.describe_groups([group])[group]
            return (said["group_state"], len(said["members"])) == ("Stable", count)

        await_that(there, f"{group} is Stable with {count}")

    def live(self) -> Life:
        """Play it: a member dies and is paged for, the job dies with its history, a group ends."""
        life, job = Life(), self.job
        self.joins(BEFORE, "old-hand", 1)
        job.start()
        job.await_ready()
        self.joins(CALM, "calm-0", 1)
        # kafka-python, as leader, may rejoin soon after: where the victim is dead by then, its session ends
        # within that rebalance and begins none of its own.  librdkafka knows its partitions when it joins.
        leaving = self.joins(GROUP, "steady", 1, client="confluent", max_poll_interval_ms=60_000)
        victim = self.joins(GROUP, VICTIM, 2)
        await_that(lambda: job.states().get(GROUP) == "Stable", "the group is seen")
        # Where nothing is to be read the leader commits nothing: without the victim's commit no lag is known.
        await_that(lambda: any(self.admin.list_group_offsets({GROUP: None}).values()), "the victim commits")
        victim.crash()
        await_that(lambda: TIMEOUT in [_told(page) for page in list(self.pager.pages)], "somebody is paged")
        self.await_members(GROUP, 1)
        life.before = self._history(_has_ended)
        job.kill()
        self._lose_history()
        leaving.close()
        await_that(lambda: states_of(self.admin, [GROUP]).get(GROUP) == "Empty", "the group is Empty")
        job.start()
        job.await_ready()
        life.shown_after_restart, life.firing_after_restart = job.states(), self._firing()
        self._write_garbage()
        self.joins(LATE, "late-0", 1)
        await_that(lambda: job.states().get(LATE) == "Stable", "what happens now is seen")
        self._look(life)
        life.exit_code = job.stop()
        life.transitions = [one for _, one in records_of(self.kafka.address, "groupwatch-transitions")]
        life.alerts = alerts_of(self.kafka.address)
        life.twofold = told_in_two_ways(self.kafka.address)
        return life

    def _firing(self) -> set[tuple[str, str]]:
        answer = self.job.get("/api/v1/alerts")
        assert answer is not None
        return {(one["group"], one["name"]) for one in answer.json()["alerts"]}

    def _write_garbage(self) -> None:
        """Write what no groupwatch has written to its own control topic."""
        out = producer(self.kafka.address)
        try:
            for value in GARBAGE:
                out.send("groupwatch-control", key=b"\xfe", value=value, partition=0).get(timeout=60)
        finally:
            out.close()
        await_that(lambda: self._garbage() >= len(GARBAGE), "the garbage is counted")

    def _garbage(self) -> int:
        return sum(self.job.counted("groupwatch_undecodable_total", "control").values())

    def _look(self, life: Life) -> None:
        groups = (BEFORE, GROUP, CALM, LATE)
        life.brokers_states = states_of(self.admin, groups)
        await_that(lambda: self.job.states() == life.brokers_states, "states agree")
        life.states, life.metrics = self.job.states(), self.job.metrics()
        answer = self.job.get("/")
        life.page = "" if answer is None else answer.text
        answer = self.job.get("/healthz")
        life.health = 0 if answer is None else answer.status_code
        life.garbage, life.groups = self._garbage(), group_ids(self.kafka.address)
        first = life.before["rebalances"][0]["started_at_ms"]
        life.rebuilt = self._history(
            lambda told: first in [one["started_at_ms"] for one in told["rebalances"]]
        )
        life.pages = list(self.pager.pages)
        life.lines = self.kafka.log_files(1)[0].read_text(errors="replace").splitlines()

    def _history(self, is_there: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Return what is kept of the group, once all that is waited for is there."""
        found: dict[str, Any] = {}

        def is_kept() -> bool:
            answer = self.job.get(f"/api/v1/groups/live/{quote(GROUP, safe='')}/history")
            found.update({} if answer is None else answer.json())
            return found.get("problem") == "" and bool(is_there(found))

        await_that(is_kept, "the history is kept")
        return found

    def _lose_history(self) -> None:
        kept = history_file(load_config(self.job.config))
        found = list(kept.parent.glob(f"{kept.name}*"))
        assert kept in found
        for one in found:
            one.unlink()

    def end(self) -> None:
        """End every process."""
        for member in self._members:
            member.crash()
        self.job.stop()
        self.admin.close()


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    need_jars()
    folder = tmp_path_factory.mktemp("path")
    kafka = EmbeddedKafka(folder / "kafka", offsets_partitions=4, rebalance_delay_ms=300, heap="384m")
    with kafka, Pager() as pager:
        kafka.create_topic("orders", partitions=4)
        play = Play(kafka, folder, pager)
        try:
            yield play.live()
        finally:
            play.end()


def test_every_move_of_the_coordinator_is_told_once(life: Life) -> None:
    """What its log says of groups that came later is what was written, though the job was killed."""
    logged = [one for one in comparing.logged(life.lines) if one.group != BEFORE]
    assert {one["group"] for one in life.transitions} == {GROUP, CALM, LATE}
    assert comparing.missing_and_extra(life.transitions, logged) == ([], [])
    assert comparing.wrong_causes(life.transitions, logged)[1] == []


def test_the_log_is_believed(life: Life) -> None:
    """With the coordinator's log shipped, every transition is observed and none is replaced."""
    assert {one["basis"] for one in life.transitions} == {"observed"}
    assert {one["replaces"] for one in life.transitions} == {None}


def test_who_died_is_paged_for_and_nobody_else(life: Life) -> None:
    """The receiver is told of the member that went without a word, by its name, once, and of nothing else."""
    told = {_told(page): page.key for page in life.pages}
    # A kill between a page and the note that it was sent repeats that page, under the same key.
    assert {page.key for page in life.pages if _told(page) == TIMEOUT} == {told[TIMEOUT]}
    # While the request log still counts the silence, that is told first, and ends with the session.
    imminent = {("SessionTimeoutImminent", GROUP, "firing"), ("SessionTimeoutImminent", GROUP, "resolved")}
    assert told.keys() <= {TIMEOUT, *imminent}
    assert {who["client_id"] for one in life.alerts for who in one["culprits"]} == {VICTIM}


def test_a_killed_job_goes_on_where_it_was(life: Life) -> None:
    """Ready again it shows all groups, quiet ones too, and what fires; it says nothing in other words."""
    assert life.shown_after_restart == {BEFORE: "Stable", GROUP: "Empty", CALM: "Stable"}
    assert life.firing_after_restart == {(GROUP, "SessionTimeout")}
    assert life.twofold == []
    assert life.states == life.brokers_states == {**life.shown_after_restart, LATE: "Stable"}


def test_garbage_is_counted_and_the_job_runs_on(life: Life) -> None:
    """Foreign bytes in the control topic end as counts; health stays good."""
    assert life.garbage == len(GARBAGE)
    assert life.health == 200


def test_the_monitor_is_no_group_of_a_user(life: Life) -> None:
    """The broker knows no group because of us but cursors of the notifier, and those are not watched."""
    users = {BEFORE, GROUP, CALM, LATE}
    assert life.groups >= users
    assert all(name.startswith("groupwatch-") for name in life.groups - users)
    assert life.states.keys() == users


def test_history_has_what_happened(life: Life) -> None:
    """The rebalances with their culprits, the life of the member that died, lag, and what fired."""
    told = life.before
    begun = [one for one in life.transitions if (one["group"], one["to"]) == (GROUP, "PreparingRebalance")]
    assert _causes(told) == _causes({"rebalances": begun})[: len(told["rebalances"])]
    joined, died = (_causes(told).index((kind, VICTIM)) for kind in ("member_joined", "session_timeout"))
    assert joined < died
    lane = _lane(told)
    # A life of some seconds may lie between two looks; then transitions alone tell it.
    assert lane["end_cause"] == "session_timeout"
    assert lane["session_timeout_ms"] in (SESSION_MS, -1)
    assert lane["left_at_ms"] > lane["joined_at_ms"] > 0
    (steady,) = [one for one in told["members"] if one["left_at_ms"] < 0]
    assert (steady["client_id"], steady["heartbeats_known"]) == ("steady", True)
    assert {one["records"] for one in told["lag"]} >= {0}
    assert "SessionTimeout" in [one["name"] for one in told["alerts"]]


def test_a_history_that_is_lost_is_rebuilt_from_the_topics(life: Life) -> None:
    """Rebalances with their culprits, and alerts; of lag and heartbeats a gap is left."""
    told, before = life.rebuilt, life.before
    assert _moves(told)[: len(_moves(before))] == _moves(before)
    assert told["states"][-1]["state"] == "Empty"
    assert {one["id"] for one in told["alerts"]} >= {one["id"] for one in before["alerts"]}
    assert (_lane(told)["end_cause"], _lane(told)["session_timeout_ms"]) == ("session_timeout", -1)
    (gap,) = [one for one in told["gaps"] if one[0] <= _lane(before)["joined_at_ms"]]
    assert gap[1] > _lane(before)["left_at_ms"]
    assert all(one["at_ms"] >= gap[1] for one in told["lag"])


def test_page_and_metrics_show_it(life: Life) -> None:
    """What people look at is there, and asked to stop, the job ends well."""
    firing = {
        (sample.labels["group"], sample.labels["alertname"])
        for family in text_string_to_metric_families(life.metrics)
        for sample in family.samples
        if sample.name == "groupwatch_alerts_firing" and sample.value > 0
    }
    assert firing == {(GROUP, "SessionTimeout")}
    assert "<title>groupwatch" in life.page
    assert life.exit_code == 0
