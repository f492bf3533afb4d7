"""What is away for a while comes back to the truth: the job killed, its checkpoint lost, Kafka gone."""

import contextlib
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.kafka_clients.clients import producer
from tests.live.support import comparing
from tests.live.support.members import CALM_SESSION_MS
from tests.live.support.readers import Reader
from tests.live.support.scene import Scene
from tests.live.support.stage import (
    Job,
    Page,
    Pager,
    alerts_of,
    await_that,
    need_jars,
    records_of,
    states_of,
    told_in_two_ways,
)

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

KILLED_AFTER_S = (9.0, 6.5, 5.8, 3.0, 0.0)
"""Seconds between the crash of each group's member (session timeout 6 s) and the kill of the job: after, at
and before the coordinator acts."""
FRAIL = [f"frail-{number}" for number in range(len(KILLED_AFTER_S))]
COMING_UP_S = 4.0
"""So long a job runs that is killed before it is ready."""
STUCK, FREED = "stuck", "freed"
"""Two groups whose leader never syncs; one is freed while nobody watches."""
WAITING = [f"waiting-{number}" for number in range(3)]
"""Groups in the middle of a rebalance when the broker stops: it is lost with their coordinator."""
SESSION_MS = 10_000
UNREACHABLE_S = 10.0
RULES = {
    "stuck_completing_rebalance": {"after": "8s"},
    "stuck_preparing_rebalance": {"after": "5m"},
    "cluster_unreachable": {"after": f"{UNREACHABLE_S:.0f}s"},
    "monitor_stalled": {"after": "40s"},  # longer than a batch takes on a busy machine
}


@dataclass
class Story:
    """What was seen of it."""

    states: list[tuple[dict[str, str], dict[str, str]]] = field(default_factory=list)
    """The brokers' states and ours, after each act."""
    metrics: str = ""
    before_loss: list[dict[str, Any]] = field(default_factory=list)
    pages_before_loss: int = 0
    after_loss: list[dict[str, Any]] = field(default_factory=list)
    pages_after_loss: list[Page] = field(default_factory=list)
    health: set[int] = field(default_factory=set)
    ready: list[dict[str, Any]] = field(default_factory=list)
    pages_of_outage: list[Page] = field(default_factory=list)
    outage_from: str = ""
    """When the broker was stopped, as it writes times."""
    health_when_stalled: set[int] = field(default_factory=set)
    pages_when_stalled: list[Page] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)
    transitions: list[dict[str, Any]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    twofold: list[tuple[str, int]] = field(default_factory=list)
    watched: list[tuple[str, str]] = field(default_factory=list)
    """From when until when a job watched, as brokers write it; a first start is a snapshot."""

    def firing(self, name: str) -> Counter[str]:
        """Return how often an alert of this name was paged as firing, by group."""
        return Counter(
            page.labels["group"]
            for page in self.pages
            if (page.labels["alertname"], page.status) == (name, "firing")
        )


class Stage:
    """Cluster, job and pager while the story is played."""

    def __init__(self, kafka: EmbeddedKafka, job: Job, pager: Pager) -> None:
        self.kafka = kafka
        self.job = job
        self.pager = pager
        self.scene = Scene(kafka, job, "full")
        self.groups = ["steady", *FRAIL]

    def await_agreement(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the brokers' states and ours, once they agree or patience ends."""

        def both() -> tuple[dict[str, str], dict[str, str]]:
            brokers = states_of(self.scene.admin, self.groups)
            ours = self.job.states()
            return brokers, {group: ours.get(group, "Dead") for group in brokers}

        def agree() -> bool:
            brokers, ours = both()
            return len(brokers) == len(self.groups) and brokers == ours

        with contextlib.suppress(AssertionError):  # in what they differ, the test says
            await_that(agree, "brokers and mirror agree", 60)
        return both()

    def is_stable(self, group: str) -> Callable[[], bool]:
        """Return whether the broker says that a group is Stable; one that does not answer says nothing."""
        return lambda: states_of(self.scene.admin, [group]).get(group) == "Stable"

    def await_page(self, name: str, group: str, status: str, *, since: int = 0) -> None:
        """Return when somebody was paged, after so many other pages."""
        await_that(
            lambda: any(
                (page.labels["alertname"], page.labels["group"], page.status) == (name, group, status)
                for page in self.pager.pages[since:]
            ),
            f"{name} of {group!r} is told {status}",
        )


def _now() -> str:
    """Return the time as brokers write it."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]


def _kills(stage: Stage, story: Story) -> None:
    """Five incidents at once, each at a moment of its own when the job dies; it dies again as it comes up."""
    stage.scene.member("steady", "steady-0", session_timeout_ms=CALM_SESSION_MS)
    victims = []
    for group in FRAIL:
        stage.scene.member(group, f"{group}-0", session_timeout_ms=CALM_SESSION_MS)
        victims.append(stage.scene.member(group, f"{group}-1"))
    for group in FRAIL:
        await_that(stage.scene.is_stable(group, 2), f"{group} is Stable")
    stage.job.start()
    stage.job.await_ready()
    story.watched.append((_now(), ""))
    killed_at = time.monotonic() + max(KILLED_AFTER_S)
    for victim, after_s in zip(victims, KILLED_AFTER_S, strict=True):
        time.sleep(max(0.0, killed_at - after_s - time.monotonic()))
        victim.crash()
    stage.job.kill()
    stage.job.start()
    time.sleep(COMING_UP_S)
    stage.job.kill()
    stage.job.start()
    stage.job.await_ready()
    for group in FRAIL:
        stage.await_page("SessionTimeout", group, "firing")
    story.states.append(stage.await_agreement())
    story.metrics = stage.job.metrics()


def _lost_checkpoint(stage: Stage, story: Story) -> None:
    """Alerts are open, and the job forgets everything; meanwhile one of the reasons goes away."""
    for group in (STUCK, FREED):
        stage.scene.silent_leader(group, f"{group}-leader", session_ms=SESSION_MS)
        stage.groups.append(group)
    for group in (STUCK, FREED):
        stage.await_page("StuckCompletingRebalance", group, "firing")
    story.watched[-1] = (story.watched[-1][0], _now())
    assert stage.job.stop() == 0
    shutil.rmtree(stage.job.checkpoint)
    story.before_loss = alerts_of(stage.kafka.address)
    story.pages_before_loss = len(stage.pager.pages)
    stage.scene.end_process(f"{FREED}-leader")
    await_that(stage.scene.is_in(FREED, "Empty"), "the leader's session runs out")
    stage.job.start()
    stage.job.await_ready()
    story.watched.append((_now(), "9"))
    stage.await_page("StuckCompletingRebalance", FREED, "resolved")
    story.states.append(stage.await_agreement())
    story.after_loss = alerts_of(stage.kafka.address)
    story.pages_after_loss = stage.pager.pages[story.pages_before_loss :]


def _begin_to_rebalance(stage: Stage) -> list[Reader]:
    """Leave groups waiting for a member that does not join again; return those members."""
    sender = producer(stage.kafka.address)
    for partition in range(4):
        sender.send("orders", b"takes for ever", partition=partition).get(timeout=60)
    sender.close()
    hanging = [
        stage.scene.reader(group, topics=("orders",), first_s=3_600.0, session_timeout_ms=CALM_SESSION_MS)
        for group in WAITING
    ]
    await_that(lambda: all(reader.is_hanging for reader in hanging), "nobody polls any more")
    for group in WAITING:
        stage.scene.reader(group, 1, topics=("orders",), session_timeout_ms=CALM_SESSION_MS)
        stage.groups.append(group)
    for group in WAITING:
        is_waiting = stage.scene.is_in(group, "PreparingRebalance")
        await_that(is_waiting, f"{group} waits for it")
    return hanging


def _outage(stage: Stage, story: Story) -> None:
    """The only broker stops, and comes back."""
    before = len(stage.pager.pages)
    hanging = _begin_to_rebalance(stage)
    story.outage_from = _now()
    stage.kafka.stop_broker(1)
    await_that(lambda: _is_away(_look(stage, story)), "/ready says that Kafka is away")
    stage.await_page("ClusterUnreachable", "", "firing")
    stage.kafka.start_broker(1)
    stage.await_page("ClusterUnreachable", "", "resolved")
    _look(stage, story)
    await_that(stage.is_stable("steady"), "the members are back")
    stage.await_page("CoordinatorMoved", "", "firing")
    for reader in hanging:
        reader.stop()
    survivor = stage.scene.member("late", "late-0")
    stage.groups.append("late")
    await_that(stage.is_stable("late"), "a new group forms")
    await_that(lambda: stage.job.states().get("late") == "Stable", "it is seen")
    survivor.crash()
    stage.await_page("SessionTimeout", "late", "firing")
    await_that(lambda: not _look(stage, story)["error"], "/ready has no complaint")
    story.states.append(stage.await_agreement())
    story.pages_of_outage = stage.pager.pages[before:]


def _stall(stage: Stage, story: Story) -> None:
    """Spark hangs, and goes on."""
    before = len(stage.pager.pages)
    stage.job.freeze_spark()
    stage.await_page("MonitorStalled", "", "firing", since=before)
    health = stage.job.get("/healthz")
    story.health_when_stalled.add(0 if health is None else health.status_code)
    stage.job.thaw_spark()
    stage.await_page("MonitorStalled", "", "resolved", since=before)
    story.pages_when_stalled = stage.pager.pages[before:]
    stage.scene.member("last", "last-0")
    await_that(lambda: stage.job.states().get("last") == "Stable", "what happened meanwhile has been read")


def _is_away(ready: dict[str, Any]) -> bool:
    return bool(ready["error"] and ready["seconds_since_kafka_answered"] > UNREACHABLE_S)


def _look(stage: Stage, story: Story) -> dict[str, Any]:
    """Note what the job says of itself, and return what it says of the cluster."""
    health, ready = stage.job.get("/healthz"), stage.job.get("/ready")
    story.health.add(0 if health is None else health.status_code)
    assert ready is not None, "the job does not answer"
    found: dict[str, Any] = ready.json()["clusters"][0]
    story.ready.append(found)
    return found


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    need_jars()
    folder: Path = tmp_path_factory.mktemp("outages")
    with EmbeddedKafka(folder / "kafka", offsets_partitions=8, heap="512m") as kafka, Pager() as pager:
        kafka.create_topic("orders", partitions=4)
        stage = Stage(kafka, Job(kafka.bootstrap_servers, folder, pager, RULES), pager)
        seen = Story()
        try:
            for act in (_kills, _lost_checkpoint, _outage, _stall):
                act(stage, seen)
            seen.pages = list(pager.pages)
            seen.alerts = alerts_of(kafka.address)
            seen.transitions = [one for _, one in records_of(kafka.address, "groupwatch-transitions")]
            seen.twofold = told_in_two_ways(kafka.address)
            seen.lines = kafka.log_files(1)[0].read_text(errors="replace").splitlines()
            yield seen
        finally:
            stage.scene.end()
            stage.job.stop()


def test_no_kill_loses_an_alert(story: Story) -> None:
    """Each incident is told with the right culprit, whenever in it the job dies, and as one alert."""
    for group in FRAIL:
        told = [one for one in story.before_loss if (one["name"], one["group"]) == ("SessionTimeout", group)]
        assert len({one["id"] for one in told}) == 1
        assert [one["client_id"] for one in told[-1]["culprits"]] == [f"{group}-1"]


def test_nothing_is_told_in_two_ways(story: Story) -> None:
    """Whatever is written again is the same, byte for byte."""
    assert story.twofold == []


def test_states_are_right_after_each_act(story: Story) -> None:
    """After the kills, after a lost checkpoint, and after Kafka's return."""
    for brokers, ours in story.states:
        assert ours == brokers


def test_all_groups_are_back_in_the_metrics(story: Story) -> None:
    """A restart shows every group, not only those that move."""
    for group, state in story.states[0][0].items():
        labels = f'cluster="live",group="{group}",group_type="classic",state="{state}"'
        assert f"groupwatch_group_state{{{labels}}} 1.0" in story.metrics


def test_a_lost_checkpoint_pages_nobody_again(story: Story) -> None:
    """Open alerts go on under their ids, or end; none is told as new."""
    known = {one["id"] for one in story.before_loss}
    assert {one["id"] for one in story.after_loss} == known
    assert [(page.labels["group"], page.status) for page in story.pages_after_loss] == [(FREED, "resolved")]
    newest = {one["id"]: one for one in story.after_loss}.values()
    still = {one["group"]: one["status"] for one in newest if one["name"] == "StuckCompletingRebalance"}
    assert still == {STUCK: "firing", FREED: "resolved"}


def test_an_outage_is_told_once(story: Story) -> None:
    """ClusterUnreachable comes, and goes when Kafka is back; nothing else is said of it."""
    told = [(page.labels["alertname"], page.status) for page in story.pages_of_outage]
    assert Counter(told)["ClusterUnreachable", "firing"] == 1
    assert Counter(told)["ClusterUnreachable", "resolved"] == 1
    whom = {(page.labels["group"], page.labels["alertname"]) for page in story.pages_of_outage}
    expected = {"ClusterUnreachable", "CoordinatorMoved"}
    # A client that finds its broker again after half a minute only, as kafka-python may, has been removed.
    removed = {(group, "SessionTimeout") for _, group in _removals(story.lines, story.outage_from)}
    assert {name for group, name in whom - removed if group not in ("late", STUCK)} == expected
    assert story.firing("SessionTimeout")["late"] == 1


def _removals(lines: list[str], since: str) -> list[tuple[str, str]]:
    """Return when the coordinator removed a silent member, from a time on, and from which group."""
    told = ((line, re.search(r"Member \S+ in group (\S+) has failed", line)) for line in lines)
    return [(line[1:24], found.group(1)) for line, found in told if found and line[1:24] >= since]


def test_rebalances_that_were_lost_with_their_coordinator_are_one_alert(story: Story) -> None:
    """One for the cluster, with the broker and with every group that had to begin again, and no other."""
    told = [one for one in story.alerts if one["name"] == "CoordinatorMoved"]
    assert {(one["id"], one["group"], one["status"]) for one in told} == {(told[0]["id"], "", "firing")}
    # Whoever looks for its broker for longer than its session rebalances its group as well, later on: that
    # is a revision, and one more page.  The one that came when all was over and died is nothing of it.
    gone = [at for at, group in _removals(story.lines, story.outage_from) if group != "late"]
    revisions = {one["revision"] for one in told}
    assert gone or revisions == {0}
    pages = story.firing("CoordinatorMoved")
    assert set(pages) == {""}
    assert 1 <= pages[""] <= len(revisions)
    assert not any(": late rebalanced" in line for one in told for line in one["evidence"])
    removed = min((at.replace(",", ".") for at in gone), default="9")
    first = [one for one in told if max(one["evidence"]) < removed]
    lines = " ".join(first[-1]["evidence"])
    begun = {
        group for group in (STUCK, *WAITING, *FRAIL, FREED, "steady") if f": {group} rebalanced" in lines
    }
    # Whether the job that lost its checkpoint knew already that one group had never been Stable, who knows.
    assert begun - {STUCK} == set(WAITING)
    assert re.fullmatch(
        rf"Coordinators moved from broker 1 at .*, and {len(begun)} groups rebalanced because of it\.",
        first[-1]["summary"],
    )


def test_an_outage_is_not_our_illness(story: Story) -> None:
    """/healthz stays well, and /ready says what is the matter."""
    assert story.health == {200}
    assert any(_is_away(one) for one in story.ready)
    assert story.ready[-1]["error"] == ""


def test_a_job_that_hangs_is_told_by_itself(story: Story) -> None:
    """MonitorStalled comes although no batch ends, once, and goes; /healthz says it too."""
    told = [
        (page.labels["group"], page.status)
        for page in story.pages_when_stalled
        if page.labels["alertname"] == "MonitorStalled"
    ]
    assert told == [("", "firing"), ("", "resolved")]
    assert story.health_when_stalled == {503}


def test_every_transition_is_there_once(story: Story) -> None:
    """What the coordinator logged over all of it, while the broker was there, is what was written."""
    watched = [
        line for line in story.lines if any(since <= line[1:24] < until for since, until in story.watched)
    ]
    assert comparing.missing_and_extra(story.transitions, comparing.logged(watched)) == ([], [])
