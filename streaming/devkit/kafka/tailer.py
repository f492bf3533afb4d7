"""A small shipper: follows brokers' log files and writes each event to the events topic as JSON.

For tests, and for brokers before Kafka 4 on one machine.  Like its big relatives it delivers at least
once: what was not acknowledged is read again, also after a restart if it was given a file for its
positions.  In production use Vector, Fluent Bit or Filebeat.
"""

import json
import os
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from streaming import kafka_clients
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import KafkaError

_DATED = re.compile(rb"\[\d{4}-\d\d-\d\d")
"""How an event begins; a line that does not is the rest of the one above (a stack trace)."""

_PAUSE_SECONDS = 0.05
_RETRY_SECONDS = 0.5
_CHUNK_BYTES = 4 << 20
"""What is read at once, so that a long file is shipped in pieces."""

Keep = Callable[[str], bool]


class Position(msgspec.Struct, frozen=True):
    """Up to where a file has been shipped: the file's inode, since rotation changes names, and a byte."""

    inode: int
    offset: int


class Follower:
    """Reads what was added to one file since the last call, across rotation."""

    def __init__(self, path: Path, *, from_start: bool, position: Position | None = None) -> None:
        """``from_start`` decides whether lines that are there count, unless ``position`` says more."""
        self._path = path
        self._file: IO[bytes] | None = None
        self._rest = b""
        self._event: list[bytes] = []
        self._given = 0
        self._first: Position | None = None
        self._skip = not from_start and position is None
        if position is not None:
            self.rewind(position)

    def events(self) -> list[str]:
        """Whole events added since the last call; the newest is held until no line follows it at once."""
        lines = self._new_lines()
        events: list[str] = []
        for line in lines:
            if self._event and _DATED.match(line):
                events.append(self._give())
            self._event.append(line)
        if not lines and self._event:
            events.append(self._give())
        return events

    def position(self) -> Position | None:
        """The end of what was given out; None before the file was opened."""
        if self._file is None:
            return None
        return Position(os.fstat(self._file.fileno()).st_ino, self._given)

    def rewind(self, position: Position | None) -> None:
        """Goes back to ``position``, in whichever file it is now; None: to where it began."""
        position = position or self._first
        self.close()
        if position is None:
            return
        for path in sorted(self._path.parent.glob(f"{self._path.name}*")):
            if path.stat().st_ino == position.inode:
                self._open(path, position.offset)
                return

    def _give(self) -> str:
        event = b"\n".join(self._event)
        self._event = []
        self._given += len(event) + 1
        return event.decode(errors="replace")

    def _new_lines(self) -> list[bytes]:
        added = self._read() or self._read_rotated()
        *lines, self._rest = (self._rest + added).split(b"\n")
        return lines

    def _read(self) -> bytes:
        if self._file is None:
            if not self._path.exists():
                self._skip = False  # a file that comes later is new from its first line on
                return b""
            self._open(self._path, self._path.stat().st_size if self._skip else 0)
            self._skip = False
        assert self._file is not None  # noqa: S101 - just opened
        return self._file.read(_CHUNK_BYTES)

    def _open(self, path: Path, offset: int) -> None:
        self._file = path.open("rb")
        self._file.seek(offset)
        self._given = offset
        self._first = self._first or self.position()

    def _read_rotated(self) -> bytes:
        """Once the old file is read to its end, goes on with the one that has its name now."""
        # What is held of the old file is given out first, or its position would be counted in the new one.
        if self._file is None or self._event or not self._was_replaced():
            return b""
        self.close()
        return self._read()

    def _was_replaced(self) -> bool:
        assert self._file is not None  # noqa: S101 - the caller asked
        try:
            now = self._path.stat()
        except FileNotFoundError:
            return False
        opened = os.fstat(self._file.fileno())
        return now.st_ino != opened.st_ino or now.st_size < self._file.tell()

    def close(self) -> None:
        """Closes the file; a later call opens it again from its start."""
        if self._file is not None:
            self._file.close()
        self._file, self._rest, self._event, self._given = None, b"", [], 0


class Tailer:
    """A thread that ships files until it is stopped."""

    def __init__(
        self,
        files: Mapping[Path, int],
        address: KafkaAddress,
        topic: str,
        *,
        from_start: bool = True,
        positions: Path | None = None,
        keep: Keep = lambda _: True,
    ) -> None:
        """Plans the shipping.

        Args:
            files: each file with the id of the broker that writes it; one may not exist yet.
            address: where the events topic is.
            topic: its name.
            from_start: ship what is in the files already.
            positions: where it is kept what has been shipped, over a restart.
            keep: which events are shipped.
        """
        self._positions = positions
        self._shipped = _load(positions)
        self._followers = [
            (Follower(path, from_start=from_start, position=self._shipped.get(str(path))), path, files[path])
            for path in files
        ]
        self._address = address
        self._topic = topic
        self._keep = keep
        self._producer = kafka_clients.producer(address)
        self._failed = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-tailer", daemon=True)

    def start(self) -> None:
        """Starts shipping."""
        self._thread.start()

    def stop(self) -> None:
        """Ships what is in the files now, waits for Kafka's acknowledgement, and ends."""
        self._stopping.set()
        self._thread.join()
        for follower, _, _ in self._followers:
            follower.close()
        self._producer.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            pause = _PAUSE_SECONDS
            try:
                pause = 0.0 if self._ship_safely() else pause
            except KafkaError:
                self._failed, pause = True, _RETRY_SECONDS
            self._stopping.wait(pause)
        try:
            while self._ship_safely():
                pass
            self._ship()  # the last round gives out what was held back
        except KafkaError:
            return  # whoever has the positions begins there

    def _ship_safely(self) -> int:
        """Ships what is new; after a failure from what was acknowledged, with a producer without a past."""
        if self._failed:
            self._producer.close(timeout=0)
            self._producer = kafka_clients.producer(self._address)
            for follower, path, _ in self._followers:
                follower.rewind(self._shipped.get(str(path)))
            self._failed = False
        return self._ship()

    def _ship(self) -> int:
        """Ships what is new, and returns how much that was when all of it is acknowledged."""
        read = [(path, broker, follower.events()) for follower, path, broker in self._followers]
        sent = [
            self._producer.send(self._topic, key=str(broker).encode(), value=envelope(event, path, broker))
            for path, broker, events in read
            for event in events
            if self._keep(event)
        ]
        self._producer.flush()
        for future in sent:
            future.get()
        count = sum(len(events) for _, _, events in read)
        if count:
            self._remember()
        return count

    def _remember(self) -> None:
        for follower, path, _ in self._followers:
            position = follower.position()
            if position is not None:
                self._shipped[str(path)] = position
        if self._positions is not None:
            fresh = self._positions.with_suffix(".new")
            fresh.write_bytes(msgspec.json.encode(self._shipped))
            fresh.replace(self._positions)

    def __enter__(self) -> Self:
        """Starts shipping."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops it."""
        self.stop()


def _load(positions: Path | None) -> dict[str, Position]:
    if positions is None or not positions.exists():
        return {}
    return msgspec.json.decode(positions.read_bytes(), type=dict[str, Position])


def envelope(event: str, path: Path, broker: int) -> bytes:
    """The JSON that common shippers write: the line as it is, its file and the broker, no time of reading."""
    return json.dumps({"message": event, "file": str(path), "broker": broker}).encode()
