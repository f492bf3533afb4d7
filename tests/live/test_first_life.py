"""One life of the job: first start on a cluster with a past, damaged inputs, a receiver that is away."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from prometheus_client.parser import text_string_to_metric_families

from coordinator_model.kafka.hashing import shard_of
from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.kafka_clients.clients import admin_client
from tests.live.support import damage
from tests.live.support.members import CALM_SESSION_MS, Member
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
)

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

PARTITIONS = 8
STORMY, PAGED = "stormy", "paged"
DAMAGED = next(
    n for n in range(PARTITIONS) if n not in {shard_of(name, PARTITIONS) for name in (STORMY, PAGED)}
)
"""A partition of ``__consumer_offsets`` without a real group: its coordinator may stumble as well."""
STORM = 8
"""Members that come and go one after the other; five of them make a storm."""
PIECES = 1_000
OF_ALL_TYPES = 600


@dataclass
class Life:
    """What was seen of it."""

    users: set[str] = field(default_factory=set)
    history: list[str] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)
    watched: set[str] = field(default_factory=set)
    first_alerts: list[dict[str, Any]] = field(default_factory=list)
    first_pages: list[Page] = field(default_factory=list)
    written: dict[str, list[damage.Piece]] = field(default_factory=dict)
    undecodable: dict[str, dict[str, int]] = field(default_factory=dict)
    metrics: str = ""
    health: int = 0
    states: dict[str, str] = field(default_factory=dict)
    stable_generations: list[int] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)


class Cluster:
    """The cluster with its users' groups."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        self.kafka = kafka
        self.admin = admin_client(kafka.address)
        self._members: list[Member] = []

    def member(self, group: str, client_id: str, **options: Any) -> Member:
        """Start a consumer."""
        made = Member(self.kafka.bootstrap_servers, group, client_id, **options)
        self._members.append(made)
        made.start()
        return made

    def await_state(self, group: str, state: str) -> None:
        """Return when the broker says so."""
        await_that(lambda: states_of(self.admin, [group]).get(group) == state, f"{group} is {state}")

    def await_members(self, group: str, count: int) -> None:
        """Return when the broker says that a group is Stable with so many members."""

        def there() -> bool:
            one = self.admin.describe_groups([group])[group]
            return (one["group_state"], len(one["members"])) == ("Stable", count)

        await_that(there, f"{group} is Stable with {count}")

    def come_and_go(self, group: str, client_id: str) -> None:
        """A member joins, gets its assignment and leaves: two rebalances."""
        assigned: list[object] = []
        guest = Consumer(
            {
                "bootstrap.servers": self.kafka.bootstrap_servers,
                "group.id": group,
                "client.id": client_id,
                "session.timeout.ms": 10_000,
            }
        )
        guest.subscribe(["orders"], on_assign=lambda *_: assigned.append(True))
        await_that(lambda: (guest.poll(0.1), assigned)[1], f"{client_id} is in {group}")
        guest.close()

    def generations(self, group: str) -> list[int]:
        """Return the generations that the job says became Stable, in order."""
        told = [one for _, one in records_of(self.kafka.address, "groupwatch-transitions")]
        return [one["generation"] for one in told if (one["group"], one["to"]) == (group, "Stable")]

    def write(self, topic: str, partition: int, pieces: list[damage.Piece]) -> None:
        """Write records as they are; Kafka lets this client id alone write to internal topics."""
        out = Producer(
            {
                "bootstrap.servers": self.kafka.bootstrap_servers,
                "client.id": "__admin_client",
                "message.max.bytes": 40_000_000,
                "compression.type": "gzip",
            }
        )
        failures: list[object] = []

        def told(error: object, _message: object) -> None:
            if error is not None:
                failures.append(error)

        for piece in pieces:
            out.produce(topic, piece.value, piece.key, partition=partition, on_delivery=told)
            out.poll(0)
        assert out.flush(60) == 0
        assert failures == []

    def end(self) -> None:
        """End every process."""
        for member in self._members:
            member.crash()
        self.admin.close()


def _history(cluster: Cluster, life: Life) -> None:
    cluster.member(STORMY, "resident", session_timeout_ms=CALM_SESSION_MS)
    victim = cluster.member(PAGED, "paged-0")
    cluster.await_members(STORMY, 1)
    cluster.await_members(PAGED, 1)
    victim.crash()
    for number in range(STORM):
        cluster.come_and_go(STORMY, f"past-{number}")
    cluster.await_state(PAGED, "Empty")
    life.users = group_ids(cluster.kafka.address)
    log, _ = cluster.kafka.log_files(1)
    life.history = [line for line in log.read_text().splitlines() if "Preparing to rebalance" in line]


def _first_start(cluster: Cluster, job: Job, pager: Pager, life: Life) -> None:
    job.start()
    job.await_ready()
    cluster.come_and_go(STORMY, "after-start")
    await_that(lambda: cluster.generations(STORMY), "what happens now is written")
    life.groups = group_ids(cluster.kafka.address)
    life.watched = set(job.states())
    life.first_alerts = alerts_of(cluster.kafka.address)
    life.first_pages = list(pager.pages)


def _damage(cluster: Cluster, job: Job, life: Life) -> None:
    rng = random.Random(7)
    offsets = damage.offsets(rng, PIECES - OF_ALL_TYPES) + damage.of_all_types(rng, OF_ALL_TYPES)
    life.written = {"offsets": offsets, "events": damage.events(rng, PIECES)}
    cluster.write("__consumer_offsets", DAMAGED, life.written["offsets"])
    cluster.write("groupwatch-events", 0, life.written["events"])
    for source, pieces in life.written.items():
        _await_counted(job, source, sum(damage.expected(pieces).values()))
    before = len(cluster.generations(STORMY))
    cluster.come_and_go(STORMY, "after-damage")
    await_that(lambda: len(cluster.generations(STORMY)) >= before + 2, "healthy groups go on")
    await_that(lambda: job.states().get(STORMY) == "Stable", f"{STORMY} is shown as Stable")
    life.undecodable = {source: _undecodable(job, source) for source in life.written}
    life.metrics = job.metrics()
    answer = job.get("/healthz")
    life.health = 0 if answer is None else answer.status_code
    life.states = job.states()
    life.stable_generations = cluster.generations(STORMY)


def _await_counted(job: Job, source: str, count: int) -> None:
    await_that(lambda: sum(_undecodable(job, source).values()) >= count, f"{source}: {count} are counted")


def _undecodable(job: Job, source: str) -> dict[str, int]:
    return job.counted("groupwatch_undecodable_total", source)


def _receiver_away(cluster: Cluster, job: Job, pager: Pager, life: Life) -> None:
    victims = [cluster.member(PAGED, f"paged-{number}") for number in (1, 2)]
    cluster.member(PAGED, "paged-3", session_timeout_ms=CALM_SESSION_MS)
    cluster.await_members(PAGED, 3)
    await_that(lambda: job.states().get(PAGED) == "Stable", "the group is seen")
    pager.close()
    for revision, victim in enumerate(victims):
        victim.crash()
        _await_revision(cluster, "SessionTimeout", revision)
    for number in range(STORM):
        cluster.come_and_go(STORMY, f"storm-{number}")
    _await_revision(cluster, "RebalanceStorm", 0)
    pager.open()
    for name in ("SessionTimeout", "RebalanceStorm"):
        _await_page(pager, name)
    life.alerts = alerts_of(cluster.kafka.address)
    life.pages = list(pager.pages)


def _await_revision(cluster: Cluster, name: str, revision: int) -> None:
    await_that(lambda: _newest(cluster, name) >= revision, f"{name}, revision {revision}, is written")


def _await_page(pager: Pager, name: str) -> None:
    await_that(lambda: name in {page.labels["alertname"] for page in list(pager.pages)}, f"{name} is told")


def _newest(cluster: Cluster, name: str) -> int:
    told = alerts_of(cluster.kafka.address)
    return max((one["revision"] for one in told if one["name"] == name), default=-1)


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    need_jars()
    folder: Path = tmp_path_factory.mktemp("life")
    kafka = EmbeddedKafka(
        folder / "kafka", offsets_partitions=PARTITIONS, rebalance_delay_ms=300, heap="512m"
    )
    with kafka, Pager() as pager:
        kafka.create_topic("orders", partitions=4)
        cluster, job, seen = Cluster(kafka), Job(kafka.bootstrap_servers, folder, pager), Life()
        try:
            _history(cluster, seen)
            _first_start(cluster, job, pager, seen)
            _damage(cluster, job, seen)
            _receiver_away(cluster, job, pager, seen)
            yield seen
        finally:
            cluster.end()
            job.stop()


def test_a_first_start_pages_nobody(life: Life) -> None:
    """Storms and timeouts of the time before the first start make no alert, nor do they count later."""
    assert len(life.history) >= STORM
    assert life.first_alerts == []
    assert life.first_pages == []


def test_the_monitor_is_no_group(life: Life) -> None:
    """The brokers know no group because of us but cursors of the notifier, and those are not watched."""
    assert life.users == {STORMY, PAGED}
    assert all(name.startswith("groupwatch-") for name in life.groups - life.users)
    assert life.watched == life.users


@pytest.mark.parametrize("source", ["offsets", "events"])
def test_damage_is_counted_exactly(life: Life, source: str) -> None:
    """Each record that cannot be read counts once, under its reason, and nothing else counts."""
    assert life.undecodable[source] == damage.expected(life.written[source])


def test_damage_stops_nothing(life: Life) -> None:
    """The query runs on, and the healthy groups stay right."""
    assert life.health == 200
    assert life.states[STORMY] == "Stable"
    first = life.stable_generations[0]
    assert life.stable_generations == list(range(first, first + len(life.stable_generations)))


def test_hostile_names_are_shown_as_they_are(life: Life) -> None:
    """Whatever a client calls its group is a label of the metrics, escaped, and a group of the API."""
    labels = {
        sample.labels["group"]
        for family in text_string_to_metric_families(life.metrics)
        for sample in family.samples
        if sample.name == "groupwatch_group_state"
    }
    assert set(damage.HOSTILE) <= labels
    assert set(damage.HOSTILE) <= set(life.states)


def test_after_an_outage_the_newest_is_told_once(life: Life) -> None:
    """While the receiver is away nothing is lost; when it is back it gets the newest revision only."""
    newest = {one["id"]: one for one in life.alerts}
    told = [page.key.rsplit("/", 1) for page in life.pages]
    assert {newest[alert_id]["name"] for alert_id, _ in told} >= {"SessionTimeout", "RebalanceStorm"}
    timeout = next(one for one in newest.values() if one["name"] == "SessionTimeout")
    revisions = [int(revision) for alert_id, revision in told if alert_id == timeout["id"]]
    assert revisions == [timeout["revision"]]
    assert {one["client_id"] for one in timeout["culprits"]} == {"paged-1", "paged-2"}
