"""What one process plays: ``python -m streaming.devkit.consumers member|silent-leader|producer …``.

``member`` is a kafka-python consumer that behaves, or is slow; the demo kills or freezes it from outside.
``silent-leader`` speaks the protocol by hand, since no library lets a leader join and then withhold the
assignment.  ``producer`` writes what they read.  Each process ends with the process that started it,
however that one ends.
"""

import argparse
import ctypes
import os
import signal
import sys
import time
from types import FrameType

from streaming.devkit.consumers.silent_leader import SilentLeader
from streaming.devkit.consumers.wire import Connection
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import KafkaConsumer, admin_client, producer, say_why_like_java

_SET_PARENT_DEATH_SIGNAL = 1
"""prctl's option: the kernel ends even a frozen process when its parent is gone."""
_BURST_S = 0.1


def main(arguments: list[str] | None = None) -> int:
    """Plays the requested client until SIGTERM."""
    options = parser().parse_args(arguments)
    _die_with_parent()
    orders = Orders()
    _PLAYS[options.play](options, orders)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return what is understood on the command line."""
    made = argparse.ArgumentParser(prog="streaming.devkit.consumers")
    plays = made.add_subparsers(dest="play", required=True)
    for name in _PLAYS:
        play = plays.add_parser(name)
        play.add_argument("--bootstrap", required=True)
        play.add_argument("--topic", required=True)
        if name == "producer":
            play.add_argument("--rate", type=int, default=10, help="records a second")
            play.add_argument("--partitions", type=int, default=6, help="of the topic, if it is not there")
            continue
        play.add_argument("--group", required=True)
        play.add_argument("--client-id", required=True)
        play.add_argument("--session-ms", type=int, default=45_000)
        play.add_argument("--poll-interval-ms", type=int, default=300_000)
        play.add_argument("--record-ms", type=float, default=0.0, help="how long a member works on a record")
    return made


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


class Orders:
    """The demo's orders to this process, given by signals."""

    def __init__(self) -> None:
        """Listens: SIGTERM ends, SIGUSR1 makes one record take for ever; the demo handles Ctrl-C."""
        self._end = False
        self.be_slow = False
        self._parent = os.getppid()
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.signal(signal.SIGUSR1, self._on_sigusr1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    @property
    def end(self) -> bool:
        """Whether to end: after SIGTERM, or when the demo is gone."""
        return self._end or os.getppid() != self._parent

    def _on_sigterm(self, _signal: int, _frame: FrameType | None) -> None:
        self._end = True

    def _on_sigusr1(self, _signal: int, _frame: FrameType | None) -> None:
        self.be_slow = True


# --- a consumer -----------------------------------------------------------------------------------


def _play_member(options: argparse.Namespace, orders: Orders) -> None:
    """Consumes and commits; leaves the group properly at SIGTERM."""
    consumer = KafkaConsumer(
        options.topic,
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        client_id=options.client_id,
        session_timeout_ms=options.session_ms,
        heartbeat_interval_ms=1000,
        max_poll_interval_ms=options.poll_interval_ms,
        auto_commit_interval_ms=1000,
        auto_offset_reset="earliest",
        metrics_enabled=False,
    )
    say_why_like_java(consumer)
    while not orders.end:
        found = consumer.poll(timeout_ms=500)
        if found and orders.be_slow:
            _process_for_ever(orders)
            return  # without a farewell: the poll interval has taken it out of the group long ago
        _process(sum(map(len, found.values())), options.record_ms / 1000, orders)
    consumer.close()


def _process(records: int, record_s: float, orders: Orders) -> None:
    """Work on so many records, each as long as the one before."""
    due = time.monotonic()
    for _ in range(records if record_s else 0):
        due += record_s
        time.sleep(max(0.0, due - time.monotonic()))
        if orders.end:
            return


def _process_for_ever(orders: Orders) -> None:
    deadline = time.monotonic() + 600
    while not orders.end and time.monotonic() < deadline:
        time.sleep(0.2)


def _play_silent_leader(options: argparse.Namespace, orders: Orders) -> None:
    """Joins whenever asked to, heartbeats, and never sends SyncGroup."""
    with Connection(options.bootstrap, options.client_id) as connection:
        leader = SilentLeader(connection, options.group, options.topic, options.session_ms)
        while not orders.end:
            leader.join()
            while not orders.end and leader.heartbeat():
                time.sleep(1.0)


# --- what they read -------------------------------------------------------------------------------


def _play_producer(options: argparse.Namespace, orders: Orders) -> None:
    """Writes at a steady rate; makes the topic if it is not there."""
    address = KafkaAddress(tuple(options.bootstrap.split(",")))
    _make_topic(address, options.topic, options.partitions)
    sender, began, sent = producer(address), time.monotonic(), 0
    while not orders.end:
        due = int((time.monotonic() - began) * options.rate)
        for sequence in range(sent, due):
            sender.send(options.topic, key=str(sequence).encode(), value=b"demo")
        sent = max(sent, due)
        time.sleep(_BURST_S)
    sender.close()


def _make_topic(address: KafkaAddress, topic: str, partitions: int) -> None:
    admin = admin_client(address)
    try:
        if topic not in admin.list_topics():
            spec = {"num_partitions": partitions, "replication_factor": 1, "configs": {}}
            admin.create_topics({topic: spec}, timeout_ms=20_000, wait_for_metadata=True)
    finally:
        admin.close()


_PLAYS = {"member": _play_member, "silent-leader": _play_silent_leader, "producer": _play_producer}
