"""A real consumer process for live tests: ``python consumer.py '{"client": "confluent", …}'``.

SIGTERM closes it properly (it leaves the group); SIGUSR1 makes it busy for ``stall_s`` seconds, in
which it does not poll, and SIGUSR2 ends that early; SIGHUP lets it read ``other_topic`` as well, or no
more; SIGKILL and SIGSTOP are the test's own doing.
"""

import json
import signal
import sys
import time
from types import FrameType
from typing import Any

from confluent_kafka import Consumer
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
"""Of kafka-python, by the names that librdkafka takes."""


class Orders:
    """What the test asked for by signals."""

    def __init__(self, stall_s: float) -> None:
        """Listen; a stall lasts ``stall_s``."""
        self.stop = False
        self._reads_other = False
        self._is_other_topic_asked = False
        self._busy_until = 0.0
        self._stall_s = stall_s
        signal.signal(signal.SIGTERM, self._on_stop)
        signal.signal(signal.SIGINT, self._on_stop)
        signal.signal(signal.SIGUSR1, self._on_stall)
        signal.signal(signal.SIGUSR2, self._on_go_on)
        signal.signal(signal.SIGHUP, self._on_other_topics)

    def work(self) -> None:
        """Return when the work of this round is done: at once, unless a stall was asked for."""
        while time.monotonic() < self._busy_until and not self.stop:
            time.sleep(0.1)

    def topics(self, options: dict[str, Any]) -> list[str] | None:
        """Return what to subscribe to if that has changed since it was asked last, else None."""
        if not self._is_other_topic_asked:
            return None
        self._is_other_topic_asked, self._reads_other = False, not self._reads_other
        return [options["topic"], *([options["other_topic"]] if self._reads_other else [])]

    def _on_stop(self, _signal: int, _frame: FrameType | None) -> None:
        self.stop = True

    def _on_stall(self, _signal: int, _frame: FrameType | None) -> None:
        self._busy_until = time.monotonic() + self._stall_s

    def _on_go_on(self, _signal: int, _frame: FrameType | None) -> None:
        self._busy_until = 0.0

    def _on_other_topics(self, _signal: int, _frame: FrameType | None) -> None:
        self._is_other_topic_asked = True


def run_confluent(options: dict[str, Any], orders: Orders) -> None:
    """Poll with librdkafka until told to stop."""
    classic = {
        "session.timeout.ms": options["session_timeout_ms"],
        "heartbeat.interval.ms": options["heartbeat_interval_ms"],
        "partition.assignment.strategy": options.get("assignor", "range"),
    }
    consumer = Consumer(
        {
            "bootstrap.servers": options["bootstrap"],
            "group.id": options["group"],
            "client.id": options["client_id"],
            "max.poll.interval.ms": options["max_poll_interval_ms"],
            # KIP-848: the coordinator sets these.
            **({"group.protocol": "consumer"} if options.get("protocol") == "consumer" else classic),
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 1000,
            **({"group.instance.id": options["instance_id"]} if options.get("instance_id") else {}),
            **(
                {"topic.metadata.refresh.interval.ms": options["metadata_ms"]}
                if "metadata_ms" in options
                else {}
            ),
        }
    )
    consumer.subscribe([options["topic"]])
    while not orders.stop:
        consumer.poll(0.2)
        orders.work()
        topics = orders.topics(options)
        if topics is not None:
            consumer.subscribe(topics)
    consumer.close()


def run_kafka_python(options: dict[str, Any], orders: Orders) -> None:
    """Poll with kafka-python until told to stop."""
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
        **({"request_timeout_ms": options["request_timeout_ms"]} if "request_timeout_ms" in options else {}),
        **({"group_instance_id": options["instance_id"]} if options.get("instance_id") else {}),
        **({"metadata_max_age_ms": options["metadata_ms"]} if "metadata_ms" in options else {}),
        **(
            {"partition_assignment_strategy": [ASSIGNORS[one] for one in options["assignor"].split(",")]}
            if "assignor" in options
            else {}
        ),
    )
    while not orders.stop:
        consumer.poll(timeout_ms=200)
        orders.work()
        topics = orders.topics(options)
        if topics is not None:
            consumer.subscribe(topics)
    consumer.close()


if __name__ == "__main__":
    chosen = json.loads(sys.argv[1])
    run = {"confluent": run_confluent, "kafka-python": run_kafka_python}[chosen["client"]]
    run(chosen, Orders(chosen.get("stall_s", 3_600.0)))
