"""The log of one offsets partition and the writes that wait for it (Kafka: ``CoordinatorRuntime``).

An operation runs at once; its records are appended at once; its answer waits until they are committed.
An operation without records waits for the writes before it.
"""

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

from coordinator_model.kafka.cause_kinds import CauseKind
from tests.oracle.offset_store import Place
from tests.oracle.shard import NOTHING, Ending, Result, Shard
from tests.oracle.timeline import Change, commit
from tests.oracle.values.errors import Errors, IllegalStateError, RefusedError
from tests.oracle.values.stored import (
    GroupTombstone,
    OffsetCommitted,
    OffsetTombstone,
    Record,
    TransactionMarker,
)

Finish = Callable[[Result, Errors], None]
"""Told once how a write ended."""


class PartitionState(Enum):
    """Whether this broker is the coordinator."""

    ABSENT = "absent"
    LOADING = "loading"
    ACTIVE = "active"


class Write:
    """One operation, until its answer is known."""

    def __init__(self, finish: Finish) -> None:
        """Not done."""
        self.result = NOTHING
        self.is_done = False
        self._finish = finish

    def complete(self, error: Errors) -> None:
        """End it, the first time."""
        if self.is_done:
            return
        self.is_done = True
        if self.result.after_append is not None:
            self.result.after_append(None if error is Errors.NONE else error)
        self._finish(self.result, error)


class _Waiting(NamedTuple):
    """Something that happens when the log is committed up to ``offset``."""

    offset: int
    write: Write
    changes: list[Change]


class Partition:
    """The log, and what is not yet committed of it."""

    def __init__(
        self,
        *,
        appended: Callable[[int, Record], None],
        skipped: Callable[[Shard, TransactionMarker], None],
    ) -> None:
        """An empty log; nobody coordinates it."""
        self.state = PartitionState.ABSENT
        self.shard: Shard | None = None
        self.log: list[Record] = []
        self.committed = 0
        self.failures: deque[Errors] = deque()
        self._waiting: deque[_Waiting] = deque()
        self._appended = appended
        self._end_transaction = skipped

    # --- operations ---

    def active(self) -> Shard:
        """Return what is in memory.

        Raises:
            RefusedError: COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR.
        """
        if self.state is PartitionState.LOADING:
            raise RefusedError(Errors.COORDINATOR_LOAD_IN_PROGRESS)
        if self.shard is None:
            raise RefusedError(Errors.NOT_COORDINATOR)
        return self.shard

    def write(self, operation: Callable[[Shard], Result], finish: Finish) -> Write:
        """Run an operation; what it cannot do becomes an error for ``finish``."""
        write = Write(finish)
        try:
            shard = self.active()
            write.result = operation(shard)
            self._append(shard, write)
        except RefusedError as refused:
            write.complete(refused.error)
        except IllegalStateError:
            write.complete(Errors.UNKNOWN_SERVER_ERROR)
        return write

    def _append(self, shard: Shard, write: Write) -> None:
        result = write.result
        if not result.records:
            if self.committed == len(self.log):
                write.complete(Errors.NONE)
            else:
                self._waiting.append(_Waiting(len(self.log), write, []))
            return
        if self.failures:
            shard.revert()
            raise RefusedError(self.failures.popleft())
        for record in result.records:
            if result.replay or isinstance(record, TransactionMarker):
                self._replay(shard, record, result)
            self._appended(len(self.log), record)
            self.log.append(record)
        self._waiting.append(_Waiting(len(self.log), write, shard.journal.take()))

    def _replay(self, shard: Shard, record: Record, result: Result) -> None:
        if isinstance(record, OffsetCommitted):
            shard.offsets.put(record, len(self.log))
        elif isinstance(record, OffsetTombstone):
            shard.offsets.forget(Place(record.group, record.topic, record.partition))
        elif isinstance(record, GroupTombstone):
            unknown = Ending(CauseKind.UNKNOWN, "")
            shard.remove(record.group, result.endings.get(record.group, unknown))
        elif isinstance(record, TransactionMarker):
            self._end_transaction(shard, record)

    # --- what is committed ---

    @property
    def is_behind(self) -> bool:
        """Whether records wait for replication."""
        return self.committed < len(self.log)

    def commit(self, offset: int) -> None:
        """Let the log be committed before ``offset``, and everybody know who waits for that."""
        self.committed = max(self.committed, min(offset, len(self.log)))
        while self._waiting and self._waiting[0].offset <= self.committed:
            waiting = self._waiting.popleft()
            commit(waiting.changes)
            waiting.write.complete(Errors.NONE)

    def fail_waiting(self, error: Errors) -> None:
        """Let the writes under way fail; their records stay."""
        for waiting in list(self._waiting):
            waiting.write.complete(error)

    def give_up(self) -> None:
        """Forget who waits; the shard goes."""
        self.fail_waiting(Errors.NOT_COORDINATOR)
        self._waiting.clear()

    def truncate(self) -> bool:
        """Forget what is not committed; False if there is nothing of that kind."""
        if not self.is_behind:
            return False
        del self.log[self.committed :]
        return True

    def replace_log(self, records: Iterable[Record]) -> None:
        """Begin with another log, all of it committed."""
        self.log = list(records)
        self.committed = len(self.log)
