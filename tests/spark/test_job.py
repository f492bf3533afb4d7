"""One life of the job against a real broker: started, cut off, started again, stopped.

The life is lived once; each test asks one thing of what it left behind.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from streaming.embedded.kafka import EmbeddedKafka
from streaming.kafka_io import KafkaAddress, producer
from tests.live.stage import await_that
from tests.spark.conftest import JobProcess, Member, groups_of, records_of

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

RULES = "rules: {rebalance_storm: {rebalances: 3, window: 10m}}"
GARBAGE = [b"\x00\x01", b"\xff" * 300, b"no line of any broker", b'{"message": 7}', b""]


@dataclass
class Life:
    """What was seen of the job, and what it wrote."""

    exit_codes: list[int] = field(default_factory=list)
    groups_before: set[str] = field(default_factory=set)
    groups_after: set[str] = field(default_factory=set)
    undecodable: dict[str, float] = field(default_factory=dict)
    transitions: list[dict[str, Any]] = field(default_factory=list)
    raw_transitions: list[bytes] = field(default_factory=list)
    raw_alerts: list[bytes] = field(default_factory=list)
    shown_after_restart: set[str] = field(default_factory=set)
    health_after_garbage: int = 0


def _rebalance(address: KafkaAddress, group: str, client_id: str) -> None:
    """Let a second member come and go: two rebalances of ``group``."""
    member = Member(address, group, client_id)
    member.await_assignment()
    member.close()


def _transitions(address: KafkaAddress) -> list[dict[str, Any]]:
    return [json.loads(value) for _, value in records_of(address, "groupwatch-transitions") if value]


def _count(address: KafkaAddress, group: str, to: str) -> int:
    return len({one["id"] for one in _transitions(address) if one["group"] == group and one["to"] == to})


def _live(kafka: EmbeddedKafka, job: JobProcess) -> Life:
    life, address = Life(), kafka.address
    first = Member(address, "snapshot", "old-hand")  # there before the job: part of the snapshot
    first.await_assignment()
    life.groups_before = set(groups_of(address)) | {"busy"}

    job.start()
    busy = Member(address, "busy", "steady")
    busy.await_assignment()
    _rebalance(address, "busy", "guest-1")
    await_that(lambda: _count(address, "busy", "Stable") >= 2, "the first transitions are written")

    job.kill()
    _rebalance(address, "busy", "guest-2")  # nobody watches
    job.start()
    _rebalance(address, "busy", "guest-3")
    await_that(lambda: _count(address, "busy", "Stable") >= 6, "what happened meanwhile is written")

    _write_garbage(address)
    topics = ("events", "control")
    await_that(
        lambda: _undecodable(job, "control") >= 5 and _undecodable(job, "events") >= 3,
        "the garbage is counted",
    )
    life.undecodable = {source: _undecodable(job, source) for source in topics}
    answer = job.get("/healthz")
    life.health_after_garbage = 0 if answer is None else answer.status_code
    life.exit_codes.append(job.terminate())

    job.start()
    shown = job.get("/api/v1/groups")
    life.shown_after_restart = {one["group"] for one in shown.json()["groups"]} if shown else set()
    busy.close()
    await_that(lambda: _count(address, "busy", "Empty") >= 1, "the last one leaving is written")
    life.exit_codes.append(job.terminate())

    life.groups_after = set(groups_of(address))
    life.raw_transitions = [value for _, value in records_of(address, "groupwatch-transitions") if value]
    life.raw_alerts = [value for _, value in records_of(address, "groupwatch-alerts") if value]
    life.transitions = [json.loads(value) for value in life.raw_transitions]
    first.close()
    return life


def _write_garbage(address: KafkaAddress) -> None:
    out = producer(address)
    try:
        for topic in ("groupwatch-events", "groupwatch-control"):
            for value in GARBAGE:
                out.send(topic, key=b"\xfe", value=value, partition=0).get(timeout=10)
    finally:
        out.close()


def _undecodable(job: JobProcess, source: str) -> float:
    answer = job.get("/metrics")
    lines = answer.text.splitlines() if answer is not None else []
    wanted = [
        line
        for line in lines
        if line.startswith("groupwatch_undecodable_total{") and f'source="{source}"' in line
    ]
    return sum(float(line.rsplit(" ", 1)[1]) for line in wanted)


@pytest.fixture(scope="module")
def life(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    folder: Path = tmp_path_factory.mktemp("job")
    job = JobProcess(kafka.address, folder, RULES)
    try:
        yield _live(kafka, job)
    finally:
        job.close()


def test_one_id_has_one_content(life: Life) -> None:
    """A crash may repeat a transition or a revision of an alert, but byte for byte."""
    transitions: dict[str, set[bytes]] = defaultdict(set)
    alerts: dict[tuple[str, int], set[bytes]] = defaultdict(set)
    for value in life.raw_transitions:
        transitions[json.loads(value)["id"]].add(value)
    for value in life.raw_alerts:
        alert = json.loads(value)
        alerts[alert["id"], alert["revision"]].add(value)
    assert {len(contents) for contents in transitions.values()} == {1}
    assert {len(contents) for contents in alerts.values()} <= {1}


def test_nothing_is_missing_where_the_job_was_cut_off(life: Life) -> None:
    """Each transition of the group begins where the one before it ended, and no generation is left out."""
    seen: dict[str, dict[str, Any]] = {}
    for one in life.transitions:
        if one["group"] == "busy":
            seen.setdefault(one["id"], one)
    chain = list(seen.values())
    assert [one["from"] for one in chain[1:]] == [one["to"] for one in chain[:-1]]
    generations = [one["generation"] for one in chain if one["to"] == "Stable"]
    assert generations == list(range(generations[0], generations[0] + len(generations)))
    assert len(generations) >= 6


def test_the_log_is_believed(life: Life) -> None:
    """With the coordinator's log shipped, every transition is observed and none was replaced."""
    assert {one["basis"] for one in life.transitions if one["group"] == "busy"} == {"observed"}
    assert {one["replaces"] for one in life.transitions} == {None}


def test_what_was_there_before_makes_no_transition(life: Life) -> None:
    """A group that was stable at the first start is known and silent."""
    assert not [one for one in life.transitions if one["group"] == "snapshot"]
    assert "snapshot" in life.shown_after_restart


def test_a_restart_shows_all_groups(life: Life) -> None:
    """When ``/ready`` says yes after a restart, the quiet groups are there as well as the busy ones."""
    assert life.shown_after_restart == {"snapshot", "busy"}


def test_garbage_is_counted_and_the_job_runs_on(life: Life) -> None:
    """Foreign bytes in the events and the control topic end as counts; health stays good."""
    assert life.undecodable["events"] == 3  # two of them are lines, only not of a coordinator
    assert life.undecodable["control"] == len(GARBAGE)
    assert life.health_after_garbage == 200


def test_sigterm_is_a_clean_end(life: Life) -> None:
    """Both times the job was asked to stop, it said 0."""
    assert life.exit_codes == [0, 0]


def test_the_monitor_leaves_no_group_behind(life: Life) -> None:
    """The broker knows no group that is not a user's."""
    assert life.groups_after <= life.groups_before
