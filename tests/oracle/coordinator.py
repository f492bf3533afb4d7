"""The door: a coordinator that is fed with requests and time, and tells what it does.

Deterministic: the same calls give the same outcomes.  It holds no clock; time is what callers say it is.
"""

import functools
from collections.abc import Callable
from itertools import count

from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState
from tests.oracle import endings, loading, log_lines, refusals, serving
from tests.oracle.due import Due
from tests.oracle.group import Group
from tests.oracle.log_lines import Line
from tests.oracle.partition import Partition, PartitionState, Write
from tests.oracle.shard import Result, Shard
from tests.oracle.timers import Timers
from tests.oracle.values.config import Config
from tests.oracle.values.errors import Errors, RefusedError
from tests.oracle.values.outcomes import (
    Answered,
    Appended,
    Committed,
    LastFailover,
    Logged,
    Outcome,
    Ticket,
    Truncated,
)
from tests.oracle.values.requests import (
    Commit,
    Configure,
    Event,
    FailAppends,
    Failover,
    FailPending,
    Load,
    MarkDead,
    Request,
    Start,
    Stop,
    TopicsDeleted,
    Unload,
)
from tests.oracle.values.responses import Response
from tests.oracle.values.stored import Record, TransactionMarker

MemberIds = Callable[[str, int], str]
"""Makes a member id from its prefix (client or instance id) and a number that counts from 1."""


def numbered(prefix: str, number: int) -> str:
    """Return an id in Kafka's form: the prefix, a dash and a UUID that is only a number."""
    return f"{prefix}-00000000-0000-0000-0000-{number:012d}"


class Coordinator:
    """Kafka's classic group coordinator for one partition of ``__consumer_offsets``.

    Time never goes back: every call names its instant, and what is due before it happens first.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        start_ms: int = 0,
        member_ids: MemberIds = numbered,
        loaded: bool = True,
    ) -> None:
        """Start with an empty log; ``loaded`` false is a broker that is not the coordinator."""
        self.config = config or Config()
        self.now_ms = start_ms
        self.outcomes: list[Outcome] = []
        self.made_ids: list[str] = []
        """Every member id that was made, in order, whether its client has been told or not."""
        self._epoch = 0
        self._runs = True
        self._timers = Timers()
        self._tickets = count(1)
        self._writes = count(1)
        self._member_ids = member_ids
        self._partition = Partition(appended=self._appended, skipped=self._end_transaction)
        if loaded:
            self._finish_load(start_ms, is_told=False)

    # --- what callers do ---

    def request(self, at_ms: int, request: Request) -> Ticket:
        """Let a request arrive and return its ticket, which may have its response already.

        Raises:
            ValueError: ``at_ms`` is in the past.
        """
        self.advance(at_ms)
        ticket = Ticket(next(self._tickets), at_ms, request)
        error = self._early_error(request)
        if error is not Errors.NONE:
            self.answer(ticket, refusals.early(request, error))
        elif serving.is_read(request):
            self._read(ticket)
        else:
            self._write(functools.partial(serving.serve, ticket), functools.partial(self._served, ticket))
        return ticket

    def event(self, at_ms: int, event: Event) -> None:
        """Let something happen to the coordinator.

        Raises:
            ValueError: ``at_ms`` is in the past.
        """
        self.advance(at_ms)
        match event:
            case Load():
                self._load(event)
            case Unload():
                self._unload(keep_uncommitted=event.keep_uncommitted)
            case Failover():
                self._unload(keep_uncommitted=event.keep_uncommitted)
                self._load(Load(load_ms=event.load_ms))
            case Stop() | Start():
                self._run(runs=isinstance(event, Start))
            case Configure():
                self.config = event.config
            case _:
                self._happen(event)

    def _happen(self, event: Commit | FailAppends | FailPending | TopicsDeleted | MarkDead) -> None:
        match event:
            case Commit():
                self._commit(len(self._partition.log) if event.offset is None else event.offset)
            case FailAppends():
                self._partition.failures.extend([event.error] * event.count)
            case FailPending():
                self._partition.fail_waiting(event.error)
            case TopicsDeleted():
                self._write(lambda shard: endings.topics_deleted(shard, event), _forgotten)
            case MarkDead():
                shard = self._partition.active()
                shard.move(shard.group(event.group_id), GroupState.DEAD, CauseKind.UNKNOWN)

    def advance(self, to_ms: int) -> None:
        """Let time pass, with everything that is due up to and including ``to_ms``.

        Raises:
            ValueError: ``to_ms`` is in the past.
        """
        if to_ms < self.now_ms:
            raise ValueError(f"{to_ms} is before {self.now_ms}")
        while (due_ms := self._timers.due_at()) is not None and due_ms <= to_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self._timers.pop()()
        self.now_ms = to_ms

    def due_at(self) -> int | None:
        """Return when something will happen without a request, or None."""
        return self._timers.due_at()

    # --- what callers see ---

    @property
    def records(self) -> list[Record]:
        """The records of the partition, by offset."""
        return list(self._partition.log)

    @property
    def committed(self) -> int:
        """How many records are replicated."""
        return self._partition.committed

    def group(self, group_id: str) -> Group | None:
        """Return a group as it is in memory (not to be changed), or None."""
        shard = self._partition.shard
        return shard.find(group_id) if shard is not None else None

    def state(self, group_id: str) -> GroupState:
        """Return a group's state; Dead if there is none."""
        group = self.group(group_id)
        return group.state if group is not None else GroupState.DEAD

    # --- requests ---

    def _early_error(self, request: Request) -> Errors:
        if not self._runs:
            return Errors.COORDINATOR_NOT_AVAILABLE
        return refusals.invalid(
            request,
            session_min_ms=self.config.group_min_session_timeout_ms,
            session_max_ms=self.config.group_max_session_timeout_ms,
        )

    def _read(self, ticket: Ticket) -> None:
        request = ticket.request
        try:
            self.answer(ticket, serving.look(self._partition.active(), request))
        except RefusedError as refused:
            self.answer(ticket, refusals.failed(request, refused.error))

    def _served(self, ticket: Ticket, result: Result, error: Errors) -> None:
        if error is not Errors.NONE:
            self.answer(ticket, refusals.failed(ticket.request, error))
        elif result.response is not None:
            self.answer(ticket, result.response)

    def answer(self, ticket: Ticket, response: Response) -> None:
        """Answer a request, unless it has its answer (for ``Shard``)."""
        if ticket.response is None:
            ticket.response = response
            ticket.answered_at_ms = self.now_ms
            self.outcomes.append(Answered(at_ms=self.now_ms, ticket=ticket.number, response=response))

    # --- writes ---

    def _write(self, operation: Callable[[Shard], Result], finish: Callable[[Result, Errors], None]) -> None:
        before = len(self._partition.log)
        write = self._partition.write(operation, finish)
        if len(self._partition.log) > before:
            self._replicate()
        if not write.is_done:
            key = f"timeout-{next(self._writes)}"
            due_ms = self.now_ms + self.config.offsets_commit_timeout_ms
            self._timers.schedule(key, due_ms, functools.partial(_time_out, write))

    def _replicate(self) -> None:
        delay_ms, offset = self.config.commit_delay_ms, len(self._partition.log)
        if delay_ms == 0:
            self._partition.commit(offset)
        elif delay_ms is not None:
            self._timers.schedule(f"commit-{offset}", self.now_ms + delay_ms, lambda: self._commit(offset))

    def _commit(self, offset: int) -> None:
        before = self._partition.committed
        self._partition.commit(offset)
        if self._partition.committed > before:
            self.outcomes.append(Committed(at_ms=self.now_ms, offset=self._partition.committed))

    def _appended(self, offset: int, record: Record) -> None:
        self.outcomes.append(Appended(at_ms=self.now_ms, offset=offset, record=record))

    def _end_transaction(self, shard: Shard, marker: TransactionMarker) -> None:
        for late in shard.offsets.end_transaction(marker.producer_id, committed=marker.committed):
            offsets = late.pending.record_offset, late.latest.record_offset
            self.log(log_lines.not_materialized(late.pending.value, marker.producer_id, *offsets))

    # --- life of the coordinator ---

    def _load(self, event: Load) -> None:
        if self._partition.state is not PartitionState.ABSENT:
            self._unload(keep_uncommitted=True)
        if event.records is not None:
            self._partition.replace_log(event.records)
        self._epoch += 1
        self.log(log_lines.loading(self.config.partition, self._epoch))
        self._partition.state = PartitionState.LOADING
        started_ms = self.now_ms
        if event.load_ms:
            due_ms = started_ms + event.load_ms
            self._timers.schedule("load", due_ms, lambda: self._finish_load(started_ms))
        else:
            self._finish_load(started_ms)

    def _finish_load(self, started_ms: int, *, is_told: bool = True) -> None:
        shard = Shard(self)
        self._partition.commit(len(self._partition.log))
        loading.read(shard, self._partition.log)
        self._partition.shard = shard
        self._partition.state = PartitionState.ACTIVE
        loading.on_loaded(shard)
        if is_told:
            took_ms, records = self.now_ms - started_ms, len(self._partition.log)
            self.log(log_lines.loaded(self.config.partition, self._epoch, took_ms, records))

    def _unload(self, *, keep_uncommitted: bool) -> None:
        partition = self._partition
        if partition.state is PartitionState.ABSENT:
            return
        self._epoch += 1
        for line in log_lines.unloading(self.config.partition, self._epoch):
            self.log(line)
        self._timers.cancel_all("")
        partition.give_up()
        if partition.shard is not None:
            loading.on_unloaded(partition.shard)
        self._timers.cancel_all("")
        partition.shard = None
        partition.state = PartitionState.ABSENT
        self.log(log_lines.unloaded(self.config.partition, self._epoch))
        if not keep_uncommitted and partition.truncate():
            self.outcomes.append(Truncated(at_ms=self.now_ms, offset=len(partition.log)))

    def _run(self, *, runs: bool) -> None:
        if self._runs and not runs:
            self._unload(keep_uncommitted=True)
        self._runs = runs

    # --- for Shard ---

    def log(self, line: Line) -> None:
        """Write a line of the coordinator's log."""
        self.outcomes.append(
            Logged(
                at_ms=self.now_ms,
                level=line.level,
                kind=line.kind,
                message=line.message,
                group_id=line.group_id,
            )
        )

    def moved(
        self,
        group: Group,
        from_state: GroupState,
        to_state: GroupState,
        cause: CauseKind,
        *,
        member_id: str = "",
        reason: str = "",
    ) -> None:
        """Tell that a group changed its state."""
        self.outcomes.append(
            LastFailover(
                at_ms=self.now_ms,
                group_id=group.group_id,
                from_state=from_state,
                to_state=to_state,
                generation=group.generation_id,
                cause=cause,
                member_id=member_id,
                reason=reason,
            )
        )

    def set_timer(self, due: Due, delay_ms: int) -> None:
        """Run an operation later; what has the same key is replaced."""
        self._timers.schedule(
            due.key,
            self.now_ms + delay_ms,
            lambda: self._write(functools.partial(serving.on_due, due), functools.partial(self._timed, due)),
        )

    def cancel_timer(self, key: str) -> None:
        """Forget a timer."""
        self._timers.cancel(key)

    def _timed(self, due: Due, _: Result, error: Errors) -> None:
        if error is not Errors.NONE and self._partition.state is PartitionState.ACTIVE:
            self.log(log_lines.timer_failed(due.key, error.name))

    def new_member_id(self, prefix: str) -> str:
        """Make a member id."""
        self.made_ids.append(self._member_ids(prefix, len(self.made_ids) + 1))
        return self.made_ids[-1]


def _forgotten(_: Result, __: Errors) -> None:
    """Nobody waits for this."""


def _time_out(write: Write) -> None:
    write.complete(Errors.REQUEST_TIMED_OUT)
