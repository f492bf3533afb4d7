"""What one consumer process plays: ``python -m streaming.devkit.consumers member|silent-leader …``.

``member`` is a kafka-python consumer that behaves, or is slow; the demo kills or freezes it from outside.
``silent-leader`` speaks the protocol by hand, since no library lets a leader join and then withhold the
assignment.  Each process ends with the process that started it, however that one ends.
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
from streaming.kafka_clients import KafkaConsumer, say_why_like_java

_SET_PARENT_DEATH_SIGNAL = 1
"""prctl's option: the kernel ends even a frozen process when its parent is gone."""


def main(arguments: list[str] | None = None) -> int:
    """Plays the requested client until SIGTERM."""
    options = _parser().parse_args(arguments)
    _die_with_parent()
    orders = Orders()
    if options.play == "silent-leader":
        _play_silent_leader(options, orders)
    else:
        _play_member(options, orders)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="streaming.devkit.consumers")
    parser.add_argument("play", choices=["member", "silent-leader"])
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--client-id", required=True)
    parser.add_argument("--session-ms", type=int, default=45_000)
    parser.add_argument("--poll-interval-ms", type=int, default=300_000)
    return parser


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
        if consumer.poll(timeout_ms=500) and orders.be_slow:
            _process_for_ever(orders)
            return  # without a farewell: the poll interval has taken it out of the group long ago
    consumer.close()


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
