"""Hostile rows in all topics of a real job: the query goes on, and the next incident is told."""

import logging
from itertools import islice
from pathlib import Path

import pytest
from confluent_kafka import Producer

from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.kafka_address import KafkaAddress
from streaming.workers.decode_stage import CONTROL, EVENTS, OFFSETS
from tests.live.support.plain_job import JobProcess, ThreadedConsumer
from tests.live.support.stage import alerts_of, await_that, records_of
from tests.unit.streaming.hostile import RUN, Row, hostile_rows

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

TOPICS = {OFFSETS: "__consumer_offsets", EVENTS: "groupwatch-events", CONTROL: "groupwatch-control"}
RULES = "rules: {rebalance_storm: {rebalances: 3, window: 10m}}"
EACH = 7
"""Of so many rows one is written: enough of each kind, in seconds."""
_log = logging.getLogger(__name__)


def _run_of(address: KafkaAddress) -> str:
    records = (one for _, one in records_of(address, "groupwatch-control"))
    return next(str(one["run"]) for one in records if one.get("kind") == "settings")


def _chosen() -> list[Row]:
    # The offsets topic is compacted, so brokers refuse records without a key, with all that come with them.
    rows = [row for row in hostile_rows().values() if row.feed != OFFSETS or row.key is not None]
    rows = [row for row in rows if len(row.value or b"") < 100_000]
    always = ('"rules":7', '"events_partitions":1000000000', "epoch 99999")
    told = [row for row in rows if any(word.encode() in (row.value or b"") for word in always)]
    return [*islice(rows, 0, None, EACH), *told]


def _write(address: KafkaAddress, run: str, rows: list[Row]) -> int:
    """Write rows as records of the job itself, and return how many the broker took."""
    # Only Kafka's own admin client may write into the offsets topic, and it is known by its name.
    out = Producer(
        {
            "bootstrap.servers": ",".join(address.bootstrap_servers),
            "client.id": "__admin_client",
            "acks": "all",
        }
    )
    taken: list[str] = []
    refused: set[str] = set()
    for row in rows:
        value = row.value and row.value.replace(f'"run":"{RUN}"'.encode(), f'"run":"{run}"'.encode())

        def note(error: object, message: object, topic: str = TOPICS[row.feed]) -> None:
            if error is None:
                taken.append(topic)
            else:
                refused.add(f"{topic}: {error}")

        out.produce(TOPICS[row.feed], value=value, key=row.key, partition=0, on_delivery=note)
        out.poll(0)
    out.flush(60)
    assert set(taken) == set(TOPICS.values()), refused
    return len(taken)


def _is_counted(job: JobProcess, source: str) -> bool:
    return job.metric("groupwatch_undecodable_total", source=source) > 0


def _alerts(address: KafkaAddress) -> set[tuple[str, str]]:
    return {(one["name"], one["group"]) for one in alerts_of(address)}


def test_hostile_rows_end_nothing_and_the_next_storm_is_told(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """Hundreds of rows that nobody should write are counted; no query died, and a real incident is told."""
    address, job = kafka.address, JobProcess(kafka.address, tmp_path, RULES)
    steady = ThreadedConsumer(address, "stormy", "steady")
    try:
        steady.await_assignment()
        job.start()
        written = _write(address, _run_of(address), _chosen())
        await_that(
            lambda: job.metric("groupwatch_undecodable_total", source="events") > 0, "lines are counted"
        )
        await_that(lambda: job.metric("groupwatch_undecodable_total", source="control") > 0, "and records")
        for number in range(4):
            guest = ThreadedConsumer(address, "stormy", f"guest-{number}")
            guest.await_assignment()
            guest.close()
        await_that(lambda: ("RebalanceStorm", "stormy") in _alerts(address), "the storm is told")
        ready = job.get("/ready")
        assert ready is not None
        (told,) = ready.json()["clusters"]
        _log.info("%d hostile rows: %s", written, told)
        assert told["restarts"] == 0
        assert ("GroupsQuarantined", "") not in _alerts(address)
        assert job.terminate() == 0
    finally:
        steady.close()
        job.close()
