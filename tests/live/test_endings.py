"""Transactions and ends of groups on a real broker: what its records and logs say, the model understands."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from kafka.structs import TopicPartition

from coordinator_model import observations as on
from coordinator_model.decoding import coordinator_log, request_log
from coordinator_model.decoding.log_envelope import open_record
from coordinator_model.decoding.records import observe
from coordinator_model.decoding.wire import DecodeError
from coordinator_model.groups import table as classic
from coordinator_model.groups.core.turn import Context
from coordinator_model.observations.base import Source
from coordinator_model.observations.log import GroupsDeleted
from coordinator_model.observations.requests import TransactionEnded
from coordinator_model.observations.seen import Seen
from coordinator_model.shard.report import report_of
from coordinator_model.state.group import Group, Transition
from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.kafka_clients import clients as kafka_io
from tests.live.support.stage import PATIENCE_S, await_that

pytestmark = pytest.mark.kafka

FULL = Context("c", info_live=True, offsets_enabled=True, backlog=False, requests_live=True)
CLEANUP_MS = 1_000


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """One broker that cleans up every second."""
    properties = {"offsets.retention.check.interval.ms": str(CLEANUP_MS)}
    folder = tmp_path_factory.mktemp("kafka")
    with EmbeddedKafka(folder, rebalance_delay_ms=300, properties=properties) as cluster:
        for topic in ("orders", "doomed"):
            cluster.create_topic(topic, partitions=1)
        yield cluster


# --- what is seen ---------------------------------------------------------------------------------------


def rows(cluster: EmbeddedKafka, topic: str) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """Yield (timestamp, key, value) of everything that stands in a topic now, also in open transactions."""
    reader = kafka_io.consumer(cluster.address)
    try:
        partitions = [TopicPartition(topic, n) for n in reader.partitions_for_topic(topic) or ()]
        reader.assign(partitions)
        reader.seek_to_beginning()
        ends = reader.end_offsets(partitions)
        while any(reader.position(one) < ends[one] for one in partitions):
            for records in reader.poll(timeout_ms=200).values():
                yield from ((one.timestamp, one.key, one.value) for one in records)
    finally:
        reader.close()


def records(cluster: EmbeddedKafka) -> Iterator[tuple[int, Source, on.AnyObservation]]:
    for timestamp_ms, key, value in rows(cluster, "__consumer_offsets"):
        try:
            yield timestamp_ms, Source.OFFSETS, observe(key, value, recorded_at_ms=timestamp_ms)
        except DecodeError:
            continue


def lines(cluster: EmbeddedKafka) -> Iterator[tuple[int, Source, on.AnyObservation]]:
    for timestamp_ms, key, value in rows(cluster, "groupwatch-events"):
        line = open_record(value, key=key, timestamp_ms=timestamp_ms, timezone="UTC")
        if line.message.startswith("Completed request:"):
            for what in request_log.parse_request_line(line.message.encode(), line.at_ms).observations:
                yield line.at_ms, Source.REQUEST_LOG, what
        else:
            told = coordinator_log.parse_coordinator_line(line.message).observation
            if told is not None:
                yield line.at_ms, Source.COORDINATOR_LOG, told


def concerns(what: on.AnyObservation, group: str) -> bool:
    if isinstance(what, GroupsDeleted):
        return what.names == group
    return isinstance(what, TransactionEnded) or getattr(what, "group", None) == group


def mirror(cluster: EmbeddedKafka, name: str) -> tuple[Group, list[Transition]]:
    """Return what the model makes of all that stands in both topics about one group."""
    group, told = classic.new_group(name), []
    seen = [one for one in (*records(cluster), *lines(cluster)) if concerns(one[2], name)]
    for at_ms, source, what in sorted(seen, key=lambda one: one[:2]):
        told += classic.apply(
            group,
            Seen(
                at_ms=at_ms,
                source=source,
                partition=0,
                offset=0,
                index=0,
                broker=-1 if source is Source.OFFSETS else 1,
                recorded_at_ms=at_ms,
                backlog=False,
                what=what,
            ),
            FULL,
        ).transitions
    return group, told


def eventually(cluster: EmbeddedKafka, name: str, holds: Callable[[Group], bool], what: str) -> Group:
    """Wait for a picture of the group that is as it should be."""

    def look() -> Group | None:
        group = mirror(cluster, name)[0]
        return group if holds(group) else None

    found = await_that(look, what)
    assert isinstance(found, Group)
    return found


def offset_of(group: Group) -> int:
    return group.commits.get("orders", {}).get(0, (-1, -1))[0]


# --- transactions ---------------------------------------------------------------------------------------


def test_transactions_are_claims_until_their_markers(kafka: EmbeddedKafka) -> None:
    """Open, committed and aborted transactions of a real producer show as what they are."""
    member = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "exactly-once"})
    member.subscribe(["orders"])
    await_that(lambda: member.poll(0.2) is None and member.assignment(), "an assignment")
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "till"})
    producer.init_transactions(PATIENCE_S)

    def claim(offset: int) -> None:
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            [Place("orders", 0, offset)], member.consumer_group_metadata(), PATIENCE_S
        )

    def is_open(group: Group) -> bool:
        return bool(report_of(group, at_ms=0).claimed)

    claim(100)
    eventually(kafka, "exactly-once", lambda g: offset_of(g) == 100 and is_open(g), "an open claim")
    producer.commit_transaction(PATIENCE_S)
    eventually(kafka, "exactly-once", lambda g: offset_of(g) == 100 and not is_open(g), "a committed claim")

    claim(200)
    eventually(kafka, "exactly-once", lambda g: offset_of(g) == 200 and is_open(g), "a second open claim")
    producer.abort_transaction(PATIENCE_S)
    eventually(kafka, "exactly-once", lambda g: offset_of(g) == 100 and not is_open(g), "an aborted claim")
    member.close()


# --- ends -----------------------------------------------------------------------------------------------


def commit_by_hand(cluster: EmbeddedKafka, group: str, topic: str) -> None:
    """Make a simple group with one offset."""
    writer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    writer.commit(offsets=[Place(topic, 0, 5)], asynchronous=False)
    writer.close()


def how_it_ended(cluster: EmbeddedKafka, group: str) -> tuple[str, str]:
    def end() -> Transition | None:
        replaced = {one.replaces for one in mirror(cluster, group)[1]}
        last = [one for one in mirror(cluster, group)[1] if one.id not in replaced][-1:]
        return last[0] if last and last[0].to_state == "Dead" else None

    ended = await_that(end, f"the end of {group}")
    return str(ended.cause.kind), ended.cause.detail


def test_a_deleted_group(kafka: EmbeddedKafka) -> None:
    """DeleteGroups is told by the coordinator's log."""
    commit_by_hand(kafka, "unwanted", "orders")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for done in admin.delete_consumer_groups(["unwanted"]).values():
        done.result(PATIENCE_S)

    assert how_it_ended(kafka, "unwanted") == ("group_deleted", "")


def test_a_group_whose_topic_is_deleted(kafka: EmbeddedKafka) -> None:
    """Its offsets go with the topic, the empty group with the next cleanup."""
    commit_by_hand(kafka, "orphan", "doomed")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    eventually(kafka, "orphan", lambda group: bool(group.commits), "the commit")
    for done in admin.delete_topics(["doomed"]).values():
        done.result(PATIENCE_S)

    assert how_it_ended(kafka, "orphan") == ("group_deleted", "its last offsets had been deleted")


def test_a_group_that_never_committed(kafka: EmbeddedKafka) -> None:
    """An empty group without offsets goes with the next cleanup, however young it is."""
    member = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "idle", "client.id": "idle"})
    member.subscribe(["orders"])
    await_that(lambda: member.poll(0.2) is None and member.assignment(), "an assignment")
    member.close()

    assert how_it_ended(kafka, "idle") == ("offsets_expired", "it had no offsets")
