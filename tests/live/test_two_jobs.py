"""Several jobs with the same outputs or the same checkpoint: one has the lease, the others stand by."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from kafka.structs import TopicPartition

from alerts.delivery import GROUP_PREFIX
from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.kafka_clients import consumer
from streaming.kafka_clients.fenced import FencedError, FencedProducer, Output
from tests.live.support.plain_job import JobProcess, ThreadedConsumer
from tests.live.support.stage import Pager, await_that, now_ms, records_of, told_in_two_ways

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

TAKEN_OVER_S = 30.0
CUT_OFF_MS = 2_000
"""What arrived so shortly before its leader's end may not have been noted: the cursor follows each 250 ms."""


@dataclass
class Story:
    """What was seen of the three jobs."""

    while_first_leads: list[dict[str, Any]] = field(default_factory=list)
    """``/ready`` of the two that stand by."""
    healthy: list[int] = field(default_factory=list)
    """The codes of their ``/healthz``."""
    taken_over_s: list[float] = field(default_factory=list)
    """How long each takeover took, until another process had the lease."""
    thawed: int = -1
    said_by_thawed: str = ""
    stopped_at_ms: list[int] = field(default_factory=list)
    """When a leader had been frozen or killed."""
    pages: dict[tuple[str, str, str], list[int]] = field(default_factory=dict)
    """Idempotency key, status and severity -> when they arrived."""
    paged_groups: set[str] = field(default_factory=set)
    told_in_two_ways: list[tuple[str, int]] = field(default_factory=list)


def _cluster(job: JobProcess) -> dict[str, Any]:
    answer = job.get("/ready")
    clusters: list[dict[str, Any]] = [] if answer is None else answer.json()["clusters"]
    return clusters[0] if clusters else {}


def _stands_by(job: JobProcess) -> bool:
    return bool(_cluster(job).get("standing_by"))


def _leads(job: JobProcess) -> bool:
    seen = _cluster(job)
    return bool(seen) and not seen["standing_by"] and seen["query"] != "starting"


def _take_over(waiting: list[JobProcess]) -> tuple[JobProcess, float]:
    """Return which of the jobs takes over, and after how many seconds."""
    began = time.monotonic()
    await_that(lambda: any(map(_leads, waiting)), "a job takes over")
    took_s = time.monotonic() - began
    (leader,) = [job for job in waiting if _leads(job)]
    await_that(leader.is_ready, "the new leader is ready")
    return leader, took_s


def _storm(kafka: EmbeddedKafka, group: str, pager: Pager) -> None:
    """Let members come and go until somebody is paged for the group."""
    await_that(lambda: _stir(kafka, group) or _is_paged(pager, group), f"a page for {group}")


def _stir(kafka: EmbeddedKafka, group: str) -> bool:
    stays = ThreadedConsumer(kafka.address, group, "stays")
    stays.await_assignment()
    goes = ThreadedConsumer(kafka.address, group, "goes")
    goes.await_assignment()
    goes.close()
    stays.close()
    return False


def _is_paged(pager: Pager, group: str) -> bool:
    return any(page.labels["group"] == group for page in list(pager.pages))


def _await_noted(kafka: EmbeddedKafka) -> None:
    """Return once the leader has noted all that was delivered."""
    await_that(partial(_has_noted_all, kafka), "the leader notes what it delivered")


def _has_noted_all(kafka: EmbeddedKafka) -> bool:
    """Say whether the receiver's cursor is at the end of the alerts."""
    reader = consumer(kafka.address, group_id=f"{GROUP_PREFIX}oncall")
    try:
        alerts = TopicPartition("groupwatch-alerts", 0)
        ends = reader.end_offsets([alerts])
        return bool(reader.committed(alerts) == ends[alerts])
    finally:
        reader.close()


def _is_cut_off(times: list[int], stopped_at_ms: list[int]) -> bool:
    """Say whether it arrived twice, the first time while a leader was being stopped."""
    return len(times) == 2 and any(0 <= at_ms - times[0] < CUT_OFF_MS for at_ms in stopped_at_ms)


def _live(kafka: EmbeddedKafka, pager: Pager, jobs: list[JobProcess], story: Story) -> None:
    first, *waiting = jobs
    first.start()
    for job in waiting:
        job.launch()
    for job in waiting:
        await_that(partial(_stands_by, job), "a job stands by")
        story.while_first_leads.append(_cluster(job))
        health = job.get("/healthz")
        story.healthy.append(0 if health is None else health.status_code)
    _storm(kafka, "before", pager)
    _await_noted(kafka)
    first.freeze()
    story.stopped_at_ms.append(now_ms())
    second, took_s = _take_over(waiting)
    story.taken_over_s.append(took_s)
    _storm(kafka, "between", pager)
    first.thaw()
    story.thawed = first.await_end()
    story.said_by_thawed = first.log.read_text()
    waiting.remove(second)
    _await_noted(kafka)
    second.kill()
    story.stopped_at_ms.append(now_ms())
    _, took_s = _take_over(waiting)
    story.taken_over_s.append(took_s)
    _storm(kafka, "after", pager)
    for page in pager.pages:
        story.pages.setdefault((page.key, page.status, page.labels["severity"]), []).append(
            page.received_at_ms
        )
    story.paged_groups = {page.labels["group"] for page in pager.pages}
    story.told_in_two_ways = told_in_two_ways(kafka.address)


@pytest.fixture(scope="module")
def story(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    one, other = tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("rival")
    with Pager() as pager:
        options = (
            f"receivers: [{{name: oncall, webhook: {{url: '{pager.url}'}}}}]\n"
            "rules: {rebalance_storm: {rebalances: 2}}\n"
        )
        first = JobProcess(kafka.address, one, options)
        jobs = [first, first.twin(), JobProcess(kafka.address, other, options)]
        seen = Story()
        try:
            _live(kafka, pager, jobs, seen)
            yield seen
        finally:
            for job in jobs:
                job.close()


def test_whoever_has_no_lease_stands_by_and_says_so(story: Story) -> None:
    """Whether they share the checkpoint or only the outputs; it is healthy, and not ready."""
    for seen in story.while_first_leads:
        assert "another groupwatch watches cluster 'test' with the same" in seen["standing_by"]
        assert (seen["ready"], seen["query"], seen["batches"]) == (False, "standing by", 0)
    assert story.healthy == [200, 200]


def test_another_takes_over_within_half_a_minute(story: Story) -> None:
    """From a leader that is frozen, and from one that was killed."""
    assert max(story.taken_over_s) < TAKEN_OVER_S, story.taken_over_s


def test_a_leader_that_was_frozen_while_another_took_over_ends(story: Story) -> None:
    """It names the one that took over."""
    assert story.thawed == 1
    assert "JobRefusedError: another groupwatch watches cluster 'test'" in story.said_by_thawed


def test_each_incident_is_paged_once_whoever_leads(story: Story) -> None:
    """No revision has two contents, and none arrives twice.

    Only one that arrived just before its leader was stopped, which had no time to note it, is repeated.
    """
    assert {"before", "between", "after"} <= story.paged_groups
    repeated = {page: times for page, times in story.pages.items() if len(times) > 1}
    unnoted = {page for page, times in repeated.items() if _is_cut_off(times, story.stopped_at_ms)}
    assert {page: times for page, times in repeated.items() if page not in unnoted} == {}
    assert story.told_in_two_ways == []


def test_the_broker_refuses_who_opened_the_outputs_earlier(kafka: EmbeddedKafka) -> None:
    """A transaction that was open is aborted; readers of committed records see nothing of it."""
    record = [Output("orders", b"key", b'"from the frozen one"')]
    frozen, woken = (FencedProducer(kafka.address, "groupwatch-test") for _ in range(2))
    try:
        with pytest.raises(FencedError):
            frozen.write(record)
        woken.write([Output("orders", b"key", b'"from the new one"')])
    finally:
        frozen.close()
        woken.close()
    assert [value for value, _ in records_of(kafka.address, "orders")] == [b'"from the new one"']
