"""A real consumer process for live tests: ``python consumer.py '{"client": "confluent", …}'``.

SIGTERM closes it properly (it leaves the group), SIGKILL and SIGSTOP are the test's own doing.
"""

import json
import signal
import sys
import time
from types import FrameType
from typing import Any

_stopping = False


def _stop(_signal: int, _frame: FrameType | None) -> None:
    global _stopping  # noqa: PLW0603 - a signal handler has nowhere else to put it
    _stopping = True


def run_confluent(options: dict[str, Any]) -> None:
    """Poll with librdkafka until told to stop."""
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": options["bootstrap"],
            "group.id": options["group"],
            "client.id": options["client_id"],
            "session.timeout.ms": options["session_timeout_ms"],
            "heartbeat.interval.ms": options["heartbeat_interval_ms"],
            "max.poll.interval.ms": options["max_poll_interval_ms"],
            "partition.assignment.strategy": options.get("assignor", "range"),
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 1000,
            **({"group.instance.id": options["instance_id"]} if options.get("instance_id") else {}),
        }
    )
    consumer.subscribe([options["topic"]])
    while not _stopping:
        message = consumer.poll(0.2)
        if message is not None and not message.error() and options.get("process_s"):
            time.sleep(options["process_s"])
    consumer.close()


def run_kafka_python(options: dict[str, Any]) -> None:
    """Poll with kafka-python until told to stop."""
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        options["topic"],
        bootstrap_servers=options["bootstrap"],
        group_id=options["group"],
        client_id=options["client_id"],
        session_timeout_ms=options["session_timeout_ms"],
        heartbeat_interval_ms=options["heartbeat_interval_ms"],
        max_poll_interval_ms=options["max_poll_interval_ms"],
        auto_offset_reset="earliest",
        auto_commit_interval_ms=1000,
        max_poll_records=10,
        **({"group_instance_id": options["instance_id"]} if options.get("instance_id") else {}),
    )
    while not _stopping:
        batch = consumer.poll(timeout_ms=200)
        if batch and options.get("process_s"):
            time.sleep(options["process_s"])
    consumer.close()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    chosen = json.loads(sys.argv[1])
    {"confluent": run_confluent, "kafka-python": run_kafka_python}[chosen["client"]](chosen)
