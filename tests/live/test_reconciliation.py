"""The mirror made wrong for real, and healed by the brokers' own answers: counted once, both sides told."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)

from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.devkit.kafka.log4j2 import COORDINATOR_LOGGERS
from streaming.devkit.kafka.plan import EVENTS_TOPIC
from streaming.kafka_clients.clients import producer
from tests.live.support.members import CALM_SESSION_MS
from tests.live.support.stage import (
    Job,
    Pager,
    alerts_of,
    await_that,
    group_ids,
    need_jars,
    now_ms,
    records_of,
)
from tests.live.support.staged import Staged

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
ANYBODY = "User:ANONYMOUS"
MEASURED_S = 19.0


@dataclass
class Story:
    """What was seen of it."""

    agreement: dict[str, float] = field(default_factory=dict)
    """Share of agreeing answers, after each act."""
    divergences: dict[str, dict[str, int]] = field(default_factory=dict)
    """Count by kind, after each act."""
    states: dict[str, str] = field(default_factory=dict)
    """The state of the group that the act was about, as we told it after healing."""
    transitions: list[dict[str, Any]] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    cluster: dict[str, Any] = field(default_factory=dict)
    reconciliation: dict[str, str] = field(default_factory=dict)
    health: int = 0
    silenced_ms: int = 0
    """From when on the coordinator's log was off."""
    requests: dict[str, int] = field(default_factory=dict)
    """What was asked in ``MEASURED_S`` seconds, by kind."""
    groups: tuple[set[str], set[str]] = (set(), set())
    log: str = ""


class Stage(Staged[Story]):
    """The cluster with its job while it is played."""

    def counter(self, name: str, label: str) -> dict[str, int]:
        """Return a counter by one of its labels."""
        found = re.findall(rf'^{name}{{.*?{label}="([^"]*)".*?}} (\S+)$', self.job.metrics(), re.MULTILINE)
        return {key: round(float(value)) for key, value in found}

    def await_answers(self, more: int) -> None:
        """Return when ``more`` further answers agreed with the mirror."""
        before = self.counter("groupwatch_answers_total", "outcome").get("agreeing", 0)
        await_that(
            lambda: self.counter("groupwatch_answers_total", "outcome").get("agreeing", 0) >= before + more,
            f"{more} more answers agree",
        )

    def note(self, act: str) -> None:
        """Keep what is told by now."""
        counted = self.counter("groupwatch_divergence_total", "kind")
        self.story.divergences[act] = {kind: count for kind, count in counted.items() if count}
        ratio = re.search(r"^groupwatch_agreement_ratio{.*?} (\S+)$", self.job.metrics(), re.MULTILINE)
        self.story.agreement[act] = float(ratio[1]) if ratio else -1.0

    def await_reconciliation(self, is_it: Callable[[str], bool]) -> str:
        """Return what /ready says of reconciliation once it is what is awaited."""

        def said() -> str:
            answer = self.job.get("/ready")
            found = "" if answer is None else str(answer.json()["clusters"][0]["reconciliation"])
            return found if is_it(found) else ""

        return str(await_that(said, "/ready says what is awaited of reconciliation"))


def _generation(stage: Stage, group: str) -> int:
    answer = stage.job.get(f"/api/v1/groups/live/{group}")
    assert answer is not None
    return int(answer.json()["report"]["generation"])


def _forge(stage: Stage) -> None:
    """A line that no coordinator wrote: the mirror goes into a rebalance that never was."""
    text = (
        "[GroupCoordinator id=1] Preparing to rebalance group forged in state PreparingRebalance with old "
        f"generation {_generation(stage, 'forged')} (reason: a line that nobody wrote)."
    )
    out = producer(stage.kafka.address)
    out.send(EVENTS_TOPIC, key=b"1", value=text.encode(), partition=0).get(timeout=60)
    out.close()
    await_that(
        lambda: stage.counter("groupwatch_divergence_total", "kind").get("state_differs"),
        "the line is believed, and the broker contradicts it",
    )
    await_that(lambda: stage.job.states().get("forged") != "PreparingRebalance", "the mirror is healed")
    stage.story.states["forged"] = stage.job.states()["forged"]
    stage.await_answers(2)
    stage.note("forged")


def _silence(stage: Stage) -> None:
    """The coordinator's log switched off: a rebalance that hangs, and nobody tells."""
    patient: dict[str, Any] = {"session_timeout_ms": CALM_SESSION_MS, "max_poll_interval_ms": 120_000}
    stalling = stage.scene.member("silenced", "stalling", **patient)
    await_that(stage.scene.is_stable("silenced", 1), "silenced is Stable")
    await_that(lambda: stage.job.states().get("silenced") == "Stable", "it is so in the mirror")
    stage.scene.set_level("FATAL", *COORDINATOR_LOGGERS)
    stage.story.silenced_ms = now_ms()
    stalling.stall()
    stage.scene.member("silenced", "second", **patient)
    await_that(stage.scene.is_in("silenced", "PreparingRebalance"), "it hangs")
    await_that(lambda: stage.job.states().get("silenced") == "PreparingRebalance", "the mirror is healed")
    stage.story.states["silenced"] = stage.job.states()["silenced"]
    stage.scene.set_level("INFO", *COORDINATOR_LOGGERS)
    stalling.go_on()
    await_that(stage.scene.is_stable("silenced", 2), "it has come through")
    await_that(lambda: stage.job.states().get("silenced") == "Stable", "the mirror follows the log again")
    stage.await_answers(2)
    stage.note("silenced")


def _measure(stage: Stage) -> None:
    before = stage.counter("groupwatch_probe_requests_total", "request")
    time.sleep(MEASURED_S)
    after = stage.counter("groupwatch_probe_requests_total", "request")
    stage.story.requests = {kind: count - before.get(kind, 0) for kind, count in after.items()}


def _acl(permission: ACLPermissionType, operation: ACLOperation, kind: ResourceType, name: str) -> ACL:
    return ACL(ANYBODY, "*", operation, permission, ResourcePattern(kind, name))


def _forbid(stage: Stage) -> None:
    """No DESCRIBE on groups any more; what is allowed besides must be said then."""
    allow, deny = ACLPermissionType.ALLOW, ACLPermissionType.DENY
    stage.scene.admin.create_acls([_acl(allow, ACLOperation.ALL, ResourceType.GROUP, "*")])
    stage.scene.admin.create_acls([_acl(deny, ACLOperation.DESCRIBE, ResourceType.GROUP, "*")])
    stage.story.reconciliation["forbidden"] = stage.await_reconciliation(lambda said: "DESCRIBE" in said)
    answer = stage.job.get("/healthz")
    stage.story.health = 0 if answer is None else answer.status_code
    stage.scene.admin.delete_acls(
        [
            ACLFilter(
                ANYBODY,
                "*",
                ACLOperation.DESCRIBE,
                deny,
                ResourcePatternFilter(ResourceType.GROUP, "*", ACLResourcePatternType.LITERAL),
            )
        ]
    )
    stage.story.reconciliation["allowed"] = stage.await_reconciliation(lambda said: said == "on")
    stage.note("allowed again")


def _play(stage: Stage) -> Story:
    for group in ("forged", "calm"):
        stage.scene.member(group, f"{group}-member", session_timeout_ms=CALM_SESSION_MS)
        await_that(stage.scene.is_stable(group, 1), f"{group} is Stable")
    before = group_ids(stage.kafka.address)
    stage.job.start()
    stage.job.await_ready()
    stage.await_answers(2)
    stage.note("calm")
    _forge(stage)
    _silence(stage)
    _measure(stage)
    answer = stage.job.get("/api/v1/clusters")
    assert answer is not None
    (stage.story.cluster,) = answer.json()["clusters"]
    _forbid(stage)
    stage.story.groups = before, group_ids(stage.kafka.address)
    stage.story.transitions = [one for _, one in records_of(stage.kafka.address, "groupwatch-transitions")]
    stage.story.alerts = alerts_of(stage.kafka.address)
    stage.story.log = stage.job.log.read_text()
    return stage.story


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    need_jars()
    folder: Path = tmp_path_factory.mktemp("reconciliation")
    with (
        EmbeddedKafka(folder / "kafka", rebalance_delay_ms=500, heap="384m", properties=ACLS) as kafka,
        Pager() as pager,
    ):
        kafka.create_topic("orders", partitions=2)
        stage = Stage(kafka, Job(kafka.bootstrap_servers, folder, pager), Story())
        try:
            yield _play(stage)
        finally:
            stage.end()


def test_a_calm_cluster_agrees(story: Story) -> None:
    """Every answer, and nothing diverges."""
    assert story.agreement["calm"] == 1.0
    assert story.divergences["calm"] == {}


def test_a_rebalance_that_never_was_is_taken_back_and_counted_once(story: Story) -> None:
    """A forged line: the coordinator says Stable, twice."""
    assert story.states["forged"] == "Stable"
    assert story.divergences["forged"] == {"state_differs": 1}
    told = [one for one in story.transitions if one["group"] == "forged"]
    assert [(one["from"], one["to"], one["basis"], one["source"]) for one in told] == [
        ("Stable", "PreparingRebalance", "observed", "coordinator_log"),
        ("PreparingRebalance", "Stable", "inferred", "model"),
    ]


def test_a_rebalance_that_nobody_told_of_is_told_and_counted_once(story: Story) -> None:
    """Its lines were never written; once they are again, the mirror follows them."""
    assert story.states["silenced"] == "PreparingRebalance"
    assert story.divergences["silenced"].get("state_differs") == 2
    told = [
        one
        for one in story.transitions
        if one["group"] == "silenced" and one["at_ms"] >= story.silenced_ms  # it may have come in two steps
    ]
    hung = [one for one in told if one["to"] == "PreparingRebalance"]
    assert (hung[0]["basis"], hung[0]["source"], hung[0]["replaces"]) == ("inferred", "model", None)
    # The requests are logged once they are answered, and then tell who began it, and when.
    assert [one["replaces"] for one in hung[1:]] == [one["id"] for one in hung[:-1]]
    assert told[-1]["to"] == "Stable"


def test_both_sides_are_logged_and_shown(story: Story) -> None:
    """What the mirror said, and what the broker said."""
    mirror, broker = (
        r"classic PreparingRebalance \d+ \[forged-member[^]]*\]",
        r"classic Stable \[forged-member",
    )
    sides = f"mirror: {mirror}; broker: {broker}"
    assert re.search(f"state_differs: group forged: {sides}", story.log)
    assert any(re.search(sides, one["detail"]) for one in story.cluster["divergences"])


def test_the_brokers_settings_and_leaders_are_shown(story: Story) -> None:
    """As far as groups depend on them."""
    settings = story.cluster["brokers"]["1"]
    assert settings["group.initial.rebalance.delay.ms"] == "500"
    assert {"group.max.session.timeout.ms", "offsets.retention.minutes", "group.max.size"} <= settings.keys()
    assert set(story.cluster["offsets_leaders"].values()) == {1}
    assert len(story.cluster["offsets_leaders"]) == 50
    assert story.cluster["partitions"] == {"orders": 2}


def test_a_missing_acl_is_one_sentence_and_no_crash(story: Story) -> None:
    """In /ready and in the log, once; reconciliation goes on when the ACL is there."""
    assert "DESCRIBE on groups" in story.reconciliation["forbidden"]
    assert story.log.count("reconciliation is off") == 1
    assert (story.health, story.reconciliation["allowed"]) == (200, "on")


def test_the_probe_makes_no_group_and_pages_nobody(story: Story) -> None:
    """Only the groups that the members themselves made are there, and the notifier's own cursor."""
    before, after = story.groups
    assert after == before | {"silenced", "groupwatch-notifier-pager"}
    assert story.alerts == []


def test_a_small_cluster_is_asked_little(story: Story) -> None:
    """A look every five seconds, three groups at rest every 30 s, settings every 20 s."""
    asked = story.requests
    assert 2 <= asked["ListGroups"] <= MEASURED_S / 5 + 2
    assert asked["Metadata"] <= MEASURED_S / 5 + 2
    assert asked["DescribeGroups"] <= 5
    assert asked["DescribeConfigs"] <= 2
