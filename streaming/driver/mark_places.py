"""The places of marks: a file in the checkpoint's folder, and records in the control topic."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import msgspec

from streaming.control import Mark, MarkRecord, decode_mark, encode_record
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import (
    KafkaConsumer,
    KafkaProducer,
    TopicPartition,
    close_quietly,
    consumer,
    producer,
)

FILE = "groupwatch.mark"
LOOK_BACK_MS = 60_000
"""How far back the control topic is read, by its own time; the records of a live mark are seconds old."""
RECORDS_MIN, RECORDS_MAX = 200, 5_000
_READ_S = 3.0
_ANSWER_S = 10.0
_RELEASE_S = 3.0
_TOKENS_MAX = 1_000
_KIND = b'"kind":"mark"'
_HEAD = 64
"""A record's kind stands at its beginning."""
_RETRIES = 3
_RETRY_S = 0.1


class MarkPlace(Protocol):
    """A place for marks."""

    what: str
    """What two jobs that meet here share."""
    renewed_s: float
    """How long after it was written a mark is renewed here."""

    @property
    def is_bare(self) -> bool:
        """Our mark is known to be gone, and is to be written at once."""
        ...

    def others(self) -> list[Mark]:
        """Return the newest mark of every other process that has not removed it."""
        ...

    def write(self, mark: Mark) -> None:
        """Write or renew our mark."""
        ...

    def write_along(self, mark: Mark) -> None:
        """Renew our mark without waiting for it."""
        ...

    def intruder(self, displaced: frozenset[str]) -> Mark | None:
        """Return who holds the place although we left our mark; ``displaced`` are the tokens we succeeded."""
        ...

    def remove(self, mark: Mark) -> None:
        """Remove our mark."""
        ...

    def close(self) -> None:
        """Close the connections; the mark stays."""
        ...


class Files(Protocol):
    """Small files in the checkpoint's folder."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is none."""
        ...

    def replace(self, name: str, content: bytes) -> None:
        """Write a file, new or existing."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file, if it exists."""
        ...


class FileMarkPlace:
    """A file in the checkpoint's folder; the last writer has the place."""

    renewed_s = 3.0
    is_bare = False

    def __init__(self, files: Files, token: str, checkpoint: str) -> None:
        self.what = f"checkpoint ({checkpoint})"
        self._files = files
        self._token = token

    def others(self) -> list[Mark]:
        """Return the mark in the file, if it is another process's."""
        mark = self._read()
        return [] if mark is None or mark.token == self._token else [mark]

    def _read(self) -> Mark | None:
        for left in reversed(range(_RETRIES)):
            try:
                value = self._files.read(FILE)
            except Exception:
                if not left:
                    raise
                value = b""  # it is being written
            if value is None:
                return None
            mark = decode_mark(value)
            if mark is not None or not left:
                return mark
            time.sleep(_RETRY_S)
        return None

    def write(self, mark: Mark) -> None:
        """Write the file."""
        self._files.replace(FILE, msgspec.json.encode(mark))

    def write_along(self, mark: Mark) -> None:
        """Write the file."""
        self.write(mark)

    def intruder(self, displaced: frozenset[str]) -> Mark | None:
        """Return the mark that has replaced ours."""
        return next((one for one in self.others() if one.token not in displaced), None)

    def remove(self, mark: Mark) -> None:
        """Delete the file, unless it is another process's by now."""
        if not self.others():
            self._files.delete(FILE)

    def close(self) -> None:
        """Do nothing: nothing is open."""


class TopicMarkPlace:
    """Records in the control topic; the order of the claims decides who was first.

    The query reads that topic, and each record makes a batch.  So a mark is renewed together with a clock,
    which is written every 10 s at the latest, and by itself only if no clock comes.
    """

    renewed_s = 15.0

    def __init__(
        self,
        address: KafkaAddress,
        topic: str,
        mine: Mark,
        *,
        open_reader: Callable[[KafkaAddress], KafkaConsumer] = consumer,
        open_writer: Callable[[KafkaAddress], KafkaProducer] = producer,
    ) -> None:
        self.what = f"outputs ({', '.join((topic, *mine.outputs))})"
        self._open_writer = partial(open_writer, address)
        self._topic = topic
        self._partition = TopicPartition(topic, 0)
        self._mine = mine
        self._claimed_at = -1
        self._newest: dict[str, Mark] = {}
        self._claims: dict[str, int] = {}
        """Token -> offset of its claim, as far as we saw it."""
        self._displaced_by: Mark | None = None
        self._succeeded: set[str] = set()
        """Tokens of processes that another one has succeeded; a late record of theirs means nothing."""
        self._writer: KafkaProducer | None = None
        self._reader = open_reader(address)
        try:
            self._writer = self._open_writer()
            self._reader.assign([self._partition])
            self._reader.seek(self._partition, self._start())
        except BaseException:
            self.close()
            raise

    @property
    def is_bare(self) -> bool:
        """The topic was recreated, and our claim is gone with the old one."""
        return self._claimed_at < 0

    def _start(self) -> int:
        first: int = self._reader.beginning_offsets([self._partition])[self._partition]
        end: int = self._reader.end_offsets([self._partition])[self._partition]
        start = max(first, end - RECORDS_MIN)
        self._reader.seek(self._partition, max(first, end - 1))
        last = [one for found in self._reader.poll(timeout_ms=1_000).values() for one in found]
        if last:
            when = {self._partition: max(0, last[0].timestamp - LOOK_BACK_MS)}
            found = self._reader.offsets_for_times(when).get(self._partition)
            start = min(start, found.offset) if found is not None else start
        return max(first, end - RECORDS_MAX, start)

    def _read(self) -> None:
        """Read to the present end.

        Raises:
            TimeoutError: the end was not reached.
            kafka.errors.KafkaError: Kafka does not answer.
        """
        end = self._reader.end_offsets([self._partition])[self._partition]
        if self._reader.position(self._partition) > end:
            self._begin_anew()
        deadline = time.monotonic() + _READ_S
        while self._reader.position(self._partition) < end:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._topic} could not be read to its end within {_READ_S:.0f} s")
            for found in self._reader.poll(timeout_ms=200).values():
                for record in found:
                    self._take(record.value or b"", record.offset)

    def _begin_anew(self) -> None:
        """Read as at a start: the topic was recreated or lost its end, and perhaps our claim with it.

        Not from the beginning: there stand marks of processes that ended long ago without removing them.
        """
        self._claimed_at = -1
        self._succeeded.clear()
        self._newest.clear()
        self._claims.clear()
        self._reader.seek(self._partition, self._start())

    def _take(self, value: bytes, offset: int) -> None:
        mark = _mark_in(value)
        if mark is None or mark.token == self._mine.token or not mark.concerns(self._mine):
            return
        for token in mark.displaces[: _TOKENS_MAX - len(self._succeeded)]:
            self._succeeded.add(token)
            self._newest.pop(token, None)
        if mark.token not in self._succeeded:
            self._note(mark, offset)

    def _note(self, mark: Mark, offset: int) -> None:
        """Remember the newest mark of a process, and where it claimed."""
        if mark.released:
            self._newest.pop(mark.token, None)
            return
        if mark.token in self._newest or len(self._newest) < _TOKENS_MAX:
            self._newest[mark.token] = mark
        if mark.beat == 0:
            self._claims[mark.token] = offset
        if self._mine.token in mark.displaces:
            self._displaced_by = mark

    def others(self) -> list[Mark]:
        """Return the marks that are not removed by their newest record."""
        self._read()
        return list(self._newest.values())

    def write(self, mark: Mark) -> None:
        """Write a record and wait for it; the first one is the claim."""
        written: Any = self._send(mark)
        if self._claimed_at < 0:
            self._claimed_at = written.offset

    def write_along(self, mark: Mark) -> None:
        """Write a record, and do not wait for it, only for a new producer if ours was given up."""
        self._future(mark)

    def _send(self, mark: Mark, patience_s: float = _ANSWER_S) -> Any:
        return self._future(mark).get(timeout=patience_s)

    def _future(self, mark: Mark) -> Any:
        record = MarkRecord(at_ms=time.time_ns() // 1_000_000, run=mark.run, mark=mark)
        if self._writer is None or self._writer.is_given_up:
            close_quietly(self._writer, timeout=_RELEASE_S)
            self._writer = self._open_writer()
        return self._writer.send(self._topic, value=encode_record(record), partition=0)

    def intruder(self, displaced: frozenset[str]) -> Mark | None:
        """Return who was first, or who found our mark abandoned."""
        self._read()
        if self._displaced_by is not None:
            return self._newest.get(self._displaced_by.token, self._displaced_by)
        return next((one for one in self._newest.values() if self._comes_first(one, displaced)), None)

    def _comes_first(self, mark: Mark, displaced: frozenset[str]) -> bool:
        if mark.token in displaced:
            return False  # it was frozen, and will see our claim
        claimed_at = self._claims.get(mark.token, -1)
        return claimed_at < self._claimed_at  # one whose claim we did not see is older than what we read

    def remove(self, mark: Mark) -> None:
        """Write that we are gone; during an outage nobody waits for the acknowledgement."""
        self._send(msgspec.structs.replace(mark, released=True), _RELEASE_S)

    def close(self) -> None:
        """Close both clients."""
        close_quietly(self._reader)
        close_quietly(self._writer, timeout=_RELEASE_S)


def _mark_in(value: bytes) -> Mark | None:
    """Return the mark in a control record; None if it has none.  What is damaged is counted elsewhere."""
    if _KIND not in value[:_HEAD]:
        return None
    try:
        mark = msgspec.json.decode(value, type=MarkRecord).mark
        mark.sentence("")
    except (ValueError, OverflowError, OSError, RecursionError):
        return None
    return mark
