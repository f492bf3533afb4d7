"""A real standalone Spark cluster through kills, beside a local run on the same topics.

Two workers of another user share nothing with who submits but the checkpoint's folder.  An executor, a worker
and the driver are killed, each during an incident; a second job in local mode, which nothing happens to,
writes to topics of its own what the first must have written as well.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from streaming.devkit.kafka import EmbeddedKafka
from tests.live.support.members import Member
from tests.live.support.scene import Scene
from tests.live.support.spark_cluster import (
    USER,
    SparkCluster,
    need_another_user,
    own_python,
    tasks_by_host,
    worker_python,
)
from tests.live.support.stage import (
    Job,
    Pager,
    await_that,
    need_jars,
    records_of,
    told_in_two_ways,
)
from tests.live.support.submitted import Submitted

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

FIRST, SECOND = "127.0.0.3", "127.0.0.4"
STORMY, LOST, STUCK = "stormy", "lost", "stuck"
VICTIM, SILENT = "lost-victim", "stuck-leader"
GUESTS = 8
SAME_OF_TRANSITIONS = ("id", "group", "from", "to", "generation", "at_ms", "cause", "basis", "replaces")
SAME_OF_ALERTS = ("id", "name", "group", "status", "severity", "starts_at_ms", "ends_at_ms")


RULES = {"stuck_completing_rebalance": {"after": "5s"}}


@dataclass
class Seen:
    """What was seen of it."""

    settings: dict[str, str] = field(default_factory=dict)
    jars: set[str] = field(default_factory=set)
    workers: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    tasks: dict[str, dict[str, int]] = field(default_factory=dict)
    tasks_after: dict[str, dict[str, int]] = field(default_factory=dict)
    pythons: set[tuple[int, str]] = field(default_factory=set)
    commands: list[str] = field(default_factory=list)
    """Of executors, and of what runs under them."""
    transitions: tuple[list[Any], list[Any]] = ([], [])
    """Of the cluster's run, and of the local one."""
    alerts: tuple[list[Any], list[Any]] = ([], [])
    twofold: list[tuple[str, int]] = field(default_factory=list)
    log: str = ""
    exit_codes: tuple[int, int] = (-1, -1)


class Play:
    """Both jobs, and what happens to the first."""

    def __init__(self, kafka: EmbeddedKafka, spark: SparkCluster, folder: Path, pager: Pager) -> None:
        """Nothing runs yet."""
        self.kafka, self.spark = kafka, spark
        self.submitted = Submitted(kafka, folder / "submitted", pager, spark, RULES)
        (folder / "local").mkdir()
        topics = {f"{one}_topic": f"local-{one}" for one in ("transitions", "alerts", "control", "evidence")}
        more = {"output": topics, "spark": {"spark.master": "local[2]"}, "receivers": [], "routes": []}
        self.local = Job(kafka.bootstrap_servers, folder / "local", pager, RULES, more)
        self.scene = Scene(kafka, self.local, "full")
        self._beside = Scene(kafka, self.submitted, "full")
        self._members: list[Member] = []

    def play(self) -> Seen:
        """Play it all."""
        seen = Seen()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self.spark.start_worker, (FIRST, SECOND)))
            self.submitted.start()
            self.local.start()
            for ready in [pool.submit(job.await_ready) for job in (self.submitted, self.local)]:
                ready.result()
        seen.settings, seen.jars = self.submitted.settings(), self.submitted.jars()
        seen.workers = self.spark.alive()
        victim = self._groups()
        self._storm(seen)
        self._lose(victim)
        self._get_stuck()
        seen.tasks_after = tasks_by_host(self.submitted.ui)
        for member in self._members:
            member.crash()
        for group in (STORMY, LOST):
            await_that(self.scene.is_in(group, "Empty"), f"the last session of {group} has ended")
        await_that(partial(self._is_same, seen), "both runs have told the same, to the end")
        seen.twofold = told_in_two_ways(self.kafka.address)
        seen.exit_codes = self.submitted.stop(), self.local.stop()
        seen.log = self.submitted.log.read_text()
        return seen

    def _groups(self) -> Member:
        wanted = ((STORMY, "stormy-steady"), (LOST, "lost-steady"), (LOST, VICTIM))
        self._members = [self.scene.member(group, client_id) for group, client_id in wanted]
        await_that(self.scene.is_stable(STORMY, 1), "one is in the stormy group")
        await_that(self.scene.is_stable(LOST, 2), "two are in the other")
        return self._members[-1]

    def _storm(self, seen: Seen) -> None:
        """Members come and go; an executor is killed half way."""
        for number in range(GUESTS):
            self._come_and_go(f"guest-{number}")
            if number == GUESTS // 2:
                seen.tasks, seen.pythons = tasks_by_host(self.submitted.ui), self.spark.pythons()
                seen.commands = self.spark.commands()
                self.spark.kill_executor(FIRST)
        self._await_told(STORMY, "RebalanceStorm")

    def _lose(self, victim: Member) -> None:
        """A member dies, and a worker with all that it runs before the silence is noticed."""
        victim.crash()
        self.spark.kill_worker(SECOND)
        self._await_told(LOST, "SessionTimeout")
        self.spark.start_worker(SECOND)

    def _get_stuck(self) -> None:
        """A leader never sends its assignment, and the driver is killed meanwhile."""
        self.scene.silent_leader(STUCK, SILENT, session_ms=10_000)
        await_that(self.scene.is_in(STUCK, "CompletingRebalance"), "the group waits for its leader")
        self.submitted.kill()
        await_that(self.scene.is_told(STUCK, "StuckCompletingRebalance"), "the local run tells who is stuck")
        self.scene.end_process(SILENT)
        self.submitted.start()
        self.submitted.await_ready()
        await_that(self.scene.is_in(STUCK, "Empty"), "the leader's session has ended")

    def _come_and_go(self, client_id: str) -> None:
        assigned: list[object] = []
        options = {"group.id": STORMY, "client.id": client_id, "session.timeout.ms": 10_000}
        guest = Consumer({"bootstrap.servers": self.kafka.bootstrap_servers, **options})
        guest.subscribe(["orders"], on_assign=lambda *_: assigned.append(True))
        await_that(lambda: (guest.poll(0.1), assigned)[1], f"{client_id} is in the group")
        guest.close()

    def _await_told(self, group: str, name: str) -> None:
        for scene in (self._beside, self.scene):
            await_that(scene.is_told(group, name), f"{name} of {group} is told (see {scene.job.log})")

    def _transitions(self) -> tuple[list[Any], list[Any]]:
        topics = ("groupwatch-transitions", "local-transitions")
        ours, theirs = (
            {one["id"]: {name: one[name] for name in SAME_OF_TRANSITIONS} for _, one in self._records(topic)}
            for topic in topics
        )
        return _in_order(ours), _in_order(theirs)

    def _alerts(self) -> tuple[list[Any], list[Any]]:
        ours, theirs = (
            {f"{one['id']}/{one['revision']}": _what_counts(one) for _, one in self._records(topic)}
            for topic in ("groupwatch-alerts", "local-alerts")
        )
        return _in_order(ours), _in_order(theirs)

    def _records(self, topic: str) -> list[tuple[bytes, Any]]:
        return records_of(self.kafka.address, topic)

    def _is_same(self, seen: Seen) -> bool:
        """Compare what both have told; what was compared is kept, since a moment later one may say more."""
        seen.transitions, seen.alerts = self._transitions(), self._alerts()
        ours, theirs = seen.transitions
        alerts, of_local = seen.alerts
        return all(_has_ended(ours, group) for group in (STORMY, LOST, STUCK)) and (ours, alerts) == (
            theirs,
            of_local,
        )

    def end(self) -> None:
        """End every process."""
        self.scene.end()
        self._beside.end()
        self.submitted.stop()
        self.local.stop()


def _has_ended(transitions: Sequence[Mapping[str, Any]], group: str) -> bool:
    """Say whether a group's last transition, or one of the same millisecond, leaves it without members."""
    of_group = [(one["at_ms"], one["to"]) for one in transitions if one["group"] == group]
    last_ms = max((at_ms for at_ms, _ in of_group), default=-1)
    return any(at_ms == last_ms and to in {"Empty", "Dead"} for at_ms, to in of_group)


def _in_order(found: Mapping[str, Any]) -> list[Any]:
    return [found[key] for key in sorted(found)]


def _what_counts(alert: Mapping[str, Any]) -> dict[str, Any]:
    culprits = sorted((who["member_id"], who["client_id"], who["basis"]) for who in alert["culprits"])
    return {name: alert[name] for name in SAME_OF_ALERTS} | {"culprits": culprits}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    need_jars()
    need_another_user()
    folder = tmp_path_factory.mktemp("spark")
    kafka = EmbeddedKafka(folder / "kafka", offsets_partitions=8, rebalance_delay_ms=300, heap="384m")
    with kafka, SparkCluster() as spark, Pager() as pager:
        kafka.create_topic("orders", partitions=4)
        play = Play(kafka, spark, folder, pager)
        try:
            yield play.play()
        finally:
            play.end()


def test_what_spark_was_given_counts(seen: Seen) -> None:
    """The command line and a properties file win over the configuration, and jars are added."""
    told = seen.settings
    assert told["spark.master"].startswith("spark://")
    assert (told["spark.executor.memory"], told["spark.ui.enabled"]) == ("512m", "true")
    assert "theirs.jar" in seen.jars
    assert [one for one in seen.jars if "spark-sql-kafka-0-10" in one]


def test_both_workers_work(seen: Seen) -> None:
    """The master says that both are used, and the driver that neither has much more to do."""
    assert {host: one["coresused"] for host, one in seen.workers.items()} == {FIRST: 1, SECOND: 1}
    spent = {host: one["ms"] for host, one in seen.tasks.items()}
    assert spent.keys() == {FIRST, SECOND}
    assert max(spent.values()) <= 0.6 * sum(spent.values()), spent
    assert seen.tasks_after.keys() == {FIRST, SECOND}, "after the kills both work again"


def test_workers_run_their_own_python_as_themselves(seen: Seen) -> None:
    """With the packages that came along: nothing of the submitter's can be read there."""
    assert seen.pythons == {(USER, os.path.realpath(worker_python() or own_python()))}


def test_executors_have_our_compiler_and_collector_and_our_daemon(seen: Seen) -> None:
    """They spare a third of what a cluster spends, if none gets lost on its way to the workers."""
    executors = [one for one in seen.commands if "CoarseGrainedExecutorBackend" in one]
    assert executors
    assert all("-XX:TieredStopAtLevel=1 -XX:+NeverActAsServerClassMachine" in one for one in executors)
    daemons = [one for one in seen.commands if " -m " in one and "daemon" in one]
    assert daemons
    assert all("-m streaming.workers.daemon" in one for one in daemons), daemons


def test_nothing_is_lost_and_nothing_is_told_in_two_ways(seen: Seen) -> None:
    """Through three kills the transitions are those of a run that nothing happened to."""
    ours, theirs = seen.transitions
    assert {one["group"] for one in ours} == {STORMY, LOST, STUCK}
    assert ours == theirs
    assert seen.twofold == []


def test_the_alerts_are_the_same(seen: Seen) -> None:
    """Names, groups, times and culprits do not depend on where a job runs, or on what dies there."""
    ours, theirs = seen.alerts
    assert {"RebalanceStorm", "SessionTimeout", "StuckCompletingRebalance"} <= {one["name"] for one in ours}
    assert ours == theirs


def test_tasks_are_counted_when_executors_are_there(seen: Seen) -> None:
    """Two cores make two tasks, in the second driver's life as well; SIGTERM ends both jobs well."""
    assert seen.log.count("live: 2 tasks read") >= 2
    assert seen.exit_codes == (0, 0)
