"""The demo's consumers, each a process of its own: ``python -m streaming.devkit.demo.clients …``.

``member`` is a kafka-python consumer that behaves, or is slow; the demo kills or freezes it from outside.
``silent-leader`` speaks the protocol by hand, since no library lets a leader join and then withhold the
assignment.  All of them end with the demo that started them, however it ends.
"""

import argparse
import ctypes
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from types import FrameType

from streaming.kafka_clients import KafkaConsumer, say_why_like_java

_SET_PARENT_DEATH_SIGNAL = 1
"""prctl's option: the kernel ends even a frozen process when its parent is gone."""

_JOIN_GROUP, _HEARTBEAT = 11, 12
_MEMBER_ID_REQUIRED, _REBALANCE_IN_PROGRESS, _NO_ERROR = 79, 27, 0


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
    parser = argparse.ArgumentParser(prog="demo_clients")
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


# --- a leader that joins and never syncs ----------------------------------------------------------


def _play_silent_leader(options: argparse.Namespace, orders: Orders) -> None:
    """Joins whenever asked to, heartbeats, and never sends SyncGroup."""
    with Connection(options.bootstrap, options.client_id) as connection:
        leader = SilentLeader(connection, options.group, options.topic, options.session_ms)
        while not orders.end:
            leader.join()
            while not orders.end and leader.heartbeat():
                time.sleep(1.0)


class SilentLeader:
    """The first member of a group, hence its leader, which makes all others wait."""

    REBALANCE_MS = 300_000

    def __init__(self, connection: "Connection", group: str, topic: str, session_ms: int) -> None:
        self._connection = connection
        self._group = group
        self._topic = topic
        self._session_ms = session_ms
        self._member_id = ""
        self._generation = -1

    def join(self) -> None:
        """Joins, in two steps the first time (the broker hands out a member id, error 79)."""
        error = _MEMBER_ID_REQUIRED
        while error == _MEMBER_ID_REQUIRED:
            answer = self._connection.ask(_JOIN_GROUP, 5, self._join_body())
            error, self._generation, self._member_id = _read_join(answer)
        if error != _NO_ERROR:
            raise ConnectionError(f"JoinGroup was answered with error {error}")

    def heartbeat(self) -> bool:
        """Heartbeats; False when the group rebalances and wants us to join again."""
        body = _text(self._group) + struct.pack(">i", self._generation) + _text(self._member_id) + _text(None)
        answer = self._connection.ask(_HEARTBEAT, 3, body)
        (error,) = struct.unpack_from(">h", answer, 4)  # after throttle_time_ms
        if error not in (_NO_ERROR, _REBALANCE_IN_PROGRESS):
            raise ConnectionError(f"Heartbeat was answered with error {error}")
        return bool(error == _NO_ERROR)

    def _join_body(self) -> bytes:
        # Subscription, version 0: the topics, and no user data.
        subscription = struct.pack(">hi", 0, 1) + _text(self._topic) + struct.pack(">i", -1)
        metadata = struct.pack(">i", len(subscription)) + subscription
        protocols = [_text(name) + metadata for name in ("range", "roundrobin")]
        return b"".join(
            [
                _text(self._group),
                struct.pack(">ii", self._session_ms, self.REBALANCE_MS),
                _text(self._member_id),
                _text(None),  # group.instance.id
                _text("consumer"),
                struct.pack(">i", len(protocols)),
                *protocols,
            ]
        )


def _read_join(answer: bytes) -> tuple[int, int, str]:
    """Error, generation and our member id of a JoinGroup response, version 5."""
    error, generation = struct.unpack_from(">hi", answer, 4)  # after throttle_time_ms
    texts = _texts(answer, 10)
    next(texts)  # the chosen protocol
    next(texts)  # the leader's member id
    return error, generation, next(texts)


def _text(value: str | None) -> bytes:
    """Kafka's (nullable) string: two bytes of length, -1 for null."""
    if value is None:
        return struct.pack(">h", -1)
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded


def _texts(answer: bytes, at: int) -> Iterator[str]:
    """The strings that follow one another from ``at`` on."""
    while True:
        (length,) = struct.unpack_from(">h", answer, at)
        at += 2
        yield answer[at : at + max(length, 0)].decode()
        at += max(length, 0)


class Connection:
    """One plain connection to one broker, one request at a time."""

    def __init__(self, bootstrap: str, client_id: str) -> None:
        host, port = bootstrap.split(",", maxsplit=1)[0].rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)))
        self._client_id = client_id
        self._correlation = 0

    def ask(self, api: int, version: int, body: bytes) -> bytes:
        """Sends a request (header version 1) and returns the response after its correlation id."""
        self._correlation += 1
        request = struct.pack(">hhi", api, version, self._correlation) + _text(self._client_id) + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        (length,) = struct.unpack(">i", self._read(4))
        return self._read(length)[4:]

    def _read(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            part = self._socket.recv(count - len(parts))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts += part
        return bytes(parts)

    def __enter__(self) -> "Connection":
        """Is open already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self._socket.close()


if __name__ == "__main__":
    sys.exit(main())
