"""Cheap consumer group members: the protocol by hand, one thread and one socket each.

They join, sync and heartbeat like a client, and end as asked: silently, or with the farewell of a Java client
whose application polled too late.
"""

import struct
import threading

from coordinator_model.kafka import POLL_TIMEOUT_REASON, Error
from streaming.devkit.consumers import Connection, blob, text, texts

_JOIN, _HEARTBEAT, _LEAVE, _SYNC = 11, 12, 13, 14
_AGAIN = frozenset({Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS})
_REBALANCE_MS = 60_000


class LightMember:
    """One member of one group, alive from ``start`` until ``die`` or ``leave_late``."""

    def __init__(
        self, bootstrap: str, group: str, client_id: str, *, session_ms: int, heartbeat_s: float
    ) -> None:
        self.group = group
        self.client_id = client_id
        self.member_id = ""
        self.failure = ""
        """Why it ended, if nobody asked it to."""
        self.is_stable = threading.Event()
        self._session_ms = session_ms
        self._heartbeat_s = heartbeat_s
        self._generation = -1
        self._leads = False
        self._end = threading.Event()
        self._leaves = False
        self._connection = Connection(bootstrap, client_id)
        self._thread = threading.Thread(target=self._live, name=client_id, daemon=True)

    def start(self) -> None:
        """Begin to join."""
        self._thread.start()

    def die(self) -> None:
        """Fall silent, like a killed process."""
        self._end.set()

    def leave_late(self) -> None:
        """Leave as Java's client does when ``max.poll.interval.ms`` has passed."""
        self._leaves = True
        self._end.set()

    def _live(self) -> None:
        try:
            with self._connection:
                self._join_and_sync()
                while not self._end.wait(self._heartbeat_s):
                    if self._heartbeat() in _AGAIN:
                        self._join_and_sync()
                if self._leaves:
                    self._ask(_LEAVE, 5, _leave_body(self.group, self.member_id))
        except (OSError, struct.error, ConnectionError) as error:
            self.failure = f"{type(error).__name__}: {error}"

    def _join_and_sync(self) -> None:
        error: int = Error.REBALANCE_IN_PROGRESS
        while error in _AGAIN and not self._end.is_set():
            self.is_stable.clear()
            self._join()
            error = self._sync()
        if error == Error.NONE:
            self.is_stable.set()

    def _join(self) -> None:
        error: int = Error.MEMBER_ID_REQUIRED
        while error == Error.MEMBER_ID_REQUIRED:
            answer = self._ask(_JOIN, 5, self._join_body())
            error, self._generation = struct.unpack_from(">hi", answer, 4)  # after throttle_time_ms
            found = texts(answer, 10)
            next(found)  # the protocol
            leader, self.member_id = next(found), next(found)
        if error != Error.NONE:
            raise ConnectionError(f"JoinGroup was answered with error {error}")
        self._leads = leader == self.member_id

    def _join_body(self) -> bytes:
        subscription = struct.pack(">hi", 0, 1) + text("events") + struct.pack(">i", -1)
        out = text(self.group) + struct.pack(">ii", self._session_ms, _REBALANCE_MS)
        out += text(self.member_id) + text(None) + text("consumer") + struct.pack(">i", 1)
        return out + text("range") + blob(subscription)

    def _sync(self) -> int:
        assignment = struct.pack(">hi", 0, 0) + struct.pack(">i", -1)
        assigned = [text(self.member_id) + blob(assignment)] if self._leads else []
        body = text(self.group) + struct.pack(">i", self._generation) + text(self.member_id) + text(None)
        answer = self._ask(_SYNC, 3, body + struct.pack(">i", len(assigned)) + b"".join(assigned))
        return _error_of(answer)

    def _heartbeat(self) -> int:
        body = text(self.group) + struct.pack(">i", self._generation) + text(self.member_id) + text(None)
        return _error_of(self._ask(_HEARTBEAT, 3, body))

    def _ask(self, api: int, version: int, body: bytes) -> bytes:
        return self._connection.ask(api, version, body)


def _error_of(answer: bytes) -> int:
    """Return the error code behind throttle_time_ms."""
    (error,) = struct.unpack_from(">h", answer, 4)
    return int(error)


def _leave_body(group: str, member_id: str) -> bytes:
    """Return a flexible LeaveGroup request, with the empty tags that end its header before it."""
    member = _compact(member_id) + b"\0" + _compact(f"{POLL_TIMEOUT_REASON}.") + b"\0"
    return b"\0" + _compact(group) + b"\x02" + member + b"\0"


def _compact(value: str) -> bytes:
    """Return a flexible string shorter than 127 bytes."""
    raw = value.encode()
    return bytes([len(raw) + 1]) + raw
