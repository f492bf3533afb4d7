"""A group's leader that joins and never sends the assignment, so that its group waits for it."""

import struct

from coordinator_model.kafka import Error
from streaming.devkit.consumers.wire import Connection, blob, text, texts

_JOIN_GROUP, _HEARTBEAT = 11, 12


class SilentLeader:
    """The first member of a group, hence its leader, which makes all others wait."""

    REBALANCE_MS = 300_000

    def __init__(self, connection: Connection, group: str, topic: str, session_ms: int) -> None:
        self._connection = connection
        self._group = group
        self._topic = topic
        self._session_ms = session_ms
        self._member_id = ""
        self._generation = -1

    def join(self) -> None:
        """Joins, in two steps the first time (the broker hands out a member id, error 79)."""
        error: int = Error.MEMBER_ID_REQUIRED
        while error == Error.MEMBER_ID_REQUIRED:
            answer = self._connection.ask(_JOIN_GROUP, 5, self._join_body())
            error, self._generation, self._member_id = _read_join(answer)
        if error != Error.NONE:
            raise ConnectionError(f"JoinGroup was answered with error {error}")

    def heartbeat(self) -> bool:
        """Heartbeats; False when the group rebalances and wants us to join again."""
        body = text(self._group) + struct.pack(">i", self._generation) + text(self._member_id) + text(None)
        answer = self._connection.ask(_HEARTBEAT, 3, body)
        (error,) = struct.unpack_from(">h", answer, 4)  # after throttle_time_ms
        if error not in (Error.NONE, Error.REBALANCE_IN_PROGRESS):
            raise ConnectionError(f"Heartbeat was answered with error {error}")
        return bool(error == Error.NONE)

    def _join_body(self) -> bytes:
        # Subscription, version 0: the topics, and no user data.
        subscription = struct.pack(">hi", 0, 1) + text(self._topic) + struct.pack(">i", -1)
        protocols = [text(name) + blob(subscription) for name in ("range", "roundrobin")]
        return b"".join(
            [
                text(self._group),
                struct.pack(">ii", self._session_ms, self.REBALANCE_MS),
                text(self._member_id),
                text(None),  # group.instance.id
                text("consumer"),
                struct.pack(">i", len(protocols)),
                *protocols,
            ]
        )


def _read_join(answer: bytes) -> tuple[int, int, str]:
    """Return error, generation and our member id of a JoinGroup response, version 5."""
    error, generation = struct.unpack_from(">hi", answer, 4)  # after throttle_time_ms
    found = texts(answer, 10)
    next(found)  # the chosen protocol
    next(found)  # the leader's member id
    return error, generation, next(found)
