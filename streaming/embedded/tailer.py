"""A small shipper: follows brokers' log files and writes each event to the events topic as JSON.

For tests, and for brokers before Kafka 4 on one machine.  It keeps no position across restarts and
waits for no acknowledgement but at the end; in production use Vector, Fluent Bit or Filebeat.
"""

import json
import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from streaming import kafka_io

_DATED = re.compile(r"\[\d{4}-\d\d-\d\d")
"""How an event begins; a line that does not is the rest of the one above (a stack trace)."""

_PAUSE_SECONDS = 0.1


class Follower:
    """Reads what was added to one file since the last call, across rotation."""

    def __init__(self, path: Path, *, from_start: bool) -> None:
        """``from_start`` decides whether lines that are there already count."""
        self._path = path
        self._file: IO[str] | None = None
        self._rest = ""
        self._event: list[str] = []
        self._skip = not from_start

    def events(self) -> list[str]:
        """Whole events added since the last call; the newest is held until no line follows it at once."""
        lines = self._new_lines()
        events: list[str] = []
        for line in lines:
            if self._event and _DATED.match(line):
                events.append("\n".join(self._event))
                self._event = []
            self._event.append(line)
        if not lines and self._event:
            events.append("\n".join(self._event))
            self._event = []
        return events

    def _new_lines(self) -> list[str]:
        text = self._rest + (self._read() or self._read_rotated())
        *lines, self._rest = text.split("\n")
        return lines

    def _read(self) -> str:
        if self._file is None:
            try:
                self._file = self._path.open(encoding="utf-8", errors="replace", newline="\n")
            except FileNotFoundError:
                self._skip = False  # a file that comes later is new from its first line on
                return ""
            if self._skip:
                self._file.seek(0, 2)
                self._skip = False
        return self._file.read()

    def _read_rotated(self) -> str:
        """Once the old file is read to its end, goes on with the one that has its name now."""
        if self._file is None or not self._was_replaced():
            return ""
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
            self._file = None


class Tailer:
    """A thread that ships files until it is stopped."""

    def __init__(
        self,
        files: Mapping[Path, int],
        address: kafka_io.KafkaAddress,
        topic: str,
        *,
        from_start: bool = True,
    ) -> None:
        """Plans the shipping.

        Args:
            files: each file with the id of the broker that writes it; one may not exist yet.
            address: where the events topic is.
            topic: its name.
            from_start: ship what is in the files already.
        """
        self._followers = [(Follower(path, from_start=from_start), path, files[path]) for path in files]
        self._topic = topic
        self._producer = kafka_io.producer(address)
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
        self._producer.flush()
        self._producer.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            if not self._ship():
                self._stopping.wait(_PAUSE_SECONDS)
        while self._ship():  # the last round gives out what was held back
            pass
        self._ship()

    def _ship(self) -> int:
        shipped = 0
        for follower, path, broker in self._followers:
            for event in follower.events():
                self._producer.send(
                    self._topic, key=str(broker).encode(), value=envelope(event, path, broker)
                )
                shipped += 1
        return shipped

    def __enter__(self) -> Self:
        """Starts shipping."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops it."""
        self.stop()


def envelope(event: str, path: Path, broker: int) -> bytes:
    """The JSON that common shippers write: the line as it is, its file and the broker, no time of reading.

    A shipper's own time would win over the line's; the line carries the time of the event.
    """
    return json.dumps({"message": event, "file": str(path), "broker": broker}).encode()
