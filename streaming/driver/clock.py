"""Writes clock records: the driver's time and facts about the inputs, written where the query reads.

A shard believes that it has seen everything up to some time only if a clock record says so *and* everything
before that record was read.  So the driver's time goes into the control topic, with the ends of the offsets
partitions at that time, and a copy of it into every partition of the events topic.

It looks twice a trigger, once just before a batch may begin, and writes only what the shards need
(``quiet.py``): each record makes a batch.
"""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import msgspec

from coordinator_model.observations import CLUSTER_SHARD
from coordinator_model.ordering import SKEW_MAX_MS, fastest, slowest
from streaming.config import ClusterPlan
from streaming.control import ClockRecord, JobState, encode_record, sealed
from streaming.driver.corrections import Corrections
from streaming.driver.driver_time import STEP_MS, DriverTime
from streaming.driver.input_ends import InputEnds
from streaming.driver.quiet import TICK_S, Need, Quiet, settled_s
from streaming.driver.skews import Skews
from streaming.kafka_clients import KafkaError, KafkaProducer, KafkaTimeoutError
from streaming.pipeline import Reading

EVENTS_CLOCK_KEY = b"groupwatch-clock"
_STOP_S = 20.0
_OVERDUE_S = 20.0
"""KRaft gives a lost broker up after 9 s, ZooKeeper after 18 s."""
_PROMPT_S = 0.5
"""An acknowledgement takes some milliseconds; a slower one waits for a broker that is gone."""
_WATCHFUL_S = 0.2
"""Time between two ticks while a broker is gone: these clocks date everything else that waits for it."""
_CONFIRMED_S = 1.0
"""What waits for a clock and is younger waits for the next one, since this one may not prove it read."""
_LEAD_S = 0.1
"""From a tick to the batch that should read its clock, at least: looking and writing take hundredths."""
_LEAD_MAX = 0.6
"""The most of it, of the pause between two ticks; where they take longer, clocks are old anyhow."""
_LAST_WRITES = 5
"""So many last ticks that wrote say how long the next one takes."""
_LEAD_SAMPLES = 5
"""How soon clocks are believed again after a partition moved to a broker with another clock."""
_CONTROL = -1
"""The control topic's number among the partitions of the events topic."""

_log = logging.getLogger(__name__)


def interval_s(trigger_ms: int) -> float:
    """Return the time between two ticks: two or more per trigger, at most half a second apart."""
    return trigger_ms / max(2, math.ceil(trigger_ms / (1000 * TICK_S))) / 1000


def until_tick_s(trigger_ms: int, now_s: float, takes_s: float = 0.0) -> float:
    """Return the time until the next tick.

    Spark begins batches at multiples of the trigger since the epoch (``ProcessingTimeExecutor``), and a batch
    reaches as far as the newest clock that it finds.  So one tick in each trigger comes shortly before that.

    Args:
        trigger_ms: the trigger.
        now_s: now, by the machine's clock (epoch seconds).
        takes_s: how long a tick takes that writes a clock: more on a busy machine, and to distant brokers.
    """
    pause_s = interval_s(trigger_ms)
    lead_s = min(max(_LEAD_S, takes_s), _LEAD_MAX * pause_s)
    return pause_s - (now_s + lead_s) % pause_s


def stepped(off_ms: int) -> str:
    """Return the sentence that the driver's wall clock is not believed."""
    ahead = "ahead of" if off_ms > 0 else "behind"
    return (
        f"The clock of groupwatch's machine is {abs(off_ms) / 1000:.0f} s {ahead} the brokers' append times. "
        "Groups are judged by the brokers' time; correct the machine's clock (NTP)."
    )


def _reach_ms(record: ClockRecord) -> int:
    """Return the latest deadline that a clock meets, as the shards see it (``streaming/workers``)."""
    return record.at_ms + fastest(record.skew_ms)


class Reports(Protocol):
    """Takes the clock's reports; the clock reads nothing from it, so health cannot influence time."""

    def notice(self, topic: str, sentence: str) -> None:
        """Take a notice about ``topic`` for the operator; "": it is over."""
        ...

    def clock_told(self, at_ms: int, ends: Sequence[int]) -> None:
        """A record for ``at_ms`` with these end offsets was made."""
        ...

    def clock_idle(self, at_ms: int) -> None:
        """Nothing was written until ``at_ms``, and there was nothing to read."""
        ...

    def clock_failed(self, why: str) -> None:
        """No record can be written; "": they can be again."""
        ...

    def ends_silent(self, sentence: str) -> None:
        """Some partitions' ends are unknown; "": all are known."""
        ...


class _Sent(NamedTuple):
    """A record without an acknowledgement so far."""

    topic: str
    partition: int
    at_ms: int
    since_s: float
    future: Any


class Clock:
    """Writes clock records until stopped.

    It does not wait for acknowledgements: while a replica is missing they take seconds, and the clock must
    report just those seconds.  An events partition with a missing acknowledgement gets no further copy, since
    the copy would overtake log lines that wait at the brokers.
    """

    _error = ""
    _last_ms = _sequence = 0
    _kept: ClockRecord | None = None
    """The last tick's clock, if it was not written."""
    _last_offset = -1
    """Where the newest clock stands in the control topic; -1: not known yet."""

    def __init__(
        self,
        plan: ClusterPlan,
        *,
        run: str,
        shard_count: int,
        events_partitions: int,
        producer: KafkaProducer,
        events_producer: KafkaProducer,
        ask: Callable[[], bool | list[int]],
        reading: Reading,
        reports: Reports,
        job: Callable[[], JobState] | None = None,
        secret: str = "",
        told: DriverTime | None = None,
        corrections: Corrections | None = None,
        quiet: Quiet | None = None,
        along: Callable[[float], Collection[int]] = lambda _older_s: (),
    ) -> None:
        """Prepare; ``start`` begins to tick.

        Args:
            plan: the cluster.
            run: the run of its checkpoint.
            shard_count: how many partitions the offsets topic has.
            events_partitions: how many partitions the events topic has.
            producer: writes the control topic.
            events_producer: writes the events topic.
            ask: returns the shards to ask for a report now.
            reading: how far the query has read.
            reports: takes the clock's reports.
            job: returns the job's state for a notifier in another process; shards ignore it.
            secret: seals the records.
            told: the source of the time.
            corrections: brokers whose times are corrected.
            quiet: decides which ticks are written; None: for this clock alone.
            along: called before each record, to write what has waited for it for some seconds; returns the
                shards that it concerns.
        """
        self._plan = plan
        self._run = run
        self._events_partitions = events_partitions if plan.events_topic else 0
        self._shard_count = shard_count
        self._producer = producer
        self._events_producer = events_producer
        self._ask = ask
        self._reading = reading
        self._reports = reports
        self._job = job
        self._quiet = Quiet(shard_count + 1) if quiet is None else quiet
        self._along = along
        self._inputs = InputEnds(plan, shard_count, self._events_partitions, reports.ends_silent)
        self._secret = secret
        self._corrections = Corrections(reports.notice) if corrections is None else corrections
        self._time = DriverTime() if told is None else told
        self._base = self._time.base
        self._skews = Skews()
        self._leads = Skews(_LEAD_SAMPLES)
        """Events partition, or -1 for the control topic -> how far its leader's clock is ahead."""
        self._took_s: deque[float] = deque(maxlen=_LAST_WRITES)
        """How long the last ticks took that wrote a clock, until it was acknowledged."""
        self._told_skew_ms: dict[int, int] = {}
        self._unacknowledged: list[_Sent] = []
        self._ticked = threading.Event()
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run_forever, name=f"clock-{plan.cluster}", daemon=True)

    def start(self) -> None:
        """Start to tick, in a thread of its own."""
        self._thread.start()

    def await_tick(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for a clock record to be written; say whether one was."""
        return self._ticked.wait(seconds)

    def wake(self) -> None:
        """Tick now: the next batch should have a clock that asks for what the last one has made possible."""
        self._woken.set()

    def stop(self) -> None:
        """Stop ticking; return when the last tick is over."""
        self._stopped.set()
        self._woken.set()
        self._thread.join(timeout=_STOP_S)
        self._inputs.drop()

    def skew_ms(self) -> dict[int, int]:
        """Return broker -> its clock minus ours, as in the last tick; from any thread."""
        return self._told_skew_ms

    @property
    def is_alive(self) -> bool:
        """False once the thread has ended, which is an error while the job runs."""
        return self._thread.is_alive()

    def _run_forever(self) -> None:
        while not self._stopped.is_set():
            began = time.monotonic()
            self._woken.clear()
            try:
                self.tick()
            except Exception as error:
                self._failed(error)
            else:
                self._error = ""
                self._reports.clock_failed("")
            if not self._stopped.is_set():
                self._woken.wait(self._rest_s(time.monotonic() - began))

    def _rest_s(self, took_s: float) -> float:
        """Return the time to the next tick, after one that took so long; they begin a pause apart at most."""
        trigger_ms = self._plan.trigger_ms
        pause_s = interval_s(trigger_ms)
        if self._unacknowledged:
            return max(0.0, min(pause_s, _WATCHFUL_S) - took_s)
        takes_s = max(self._took_s, default=0.0)
        return min(until_tick_s(trigger_ms, time.time(), takes_s), max(0.0, pause_s - took_s))

    def _failed(self, error: Exception) -> None:
        if not self._error:
            _log.warning("%s: the clock cannot be written: %s", self._plan.cluster, error)
        self._error = f"the clock cannot be written: {type(error).__name__}: {error}"[:500]
        self._reports.clock_failed(self._error)
        self._inputs.drop()

    def tick(self) -> None:
        """Look at the inputs, and write a clock record and its copies if the shards need one.

        Raises:
            kafka.errors.KafkaError: no end offset is available, or earlier records are not acknowledged.
        """
        began_s = time.monotonic()
        self._settle()
        # Read the time before asking for the ends: everything up to that time lies before them.
        at_ms = self._now_ms()
        self._sequence = max(at_ms, self._sequence + 1)
        looked = self._inputs.look()
        record = self._record(at_ms, looked.offsets)
        self._last_ms = at_ms
        if looked.has_moved:
            self._quiet.moved()
        need = self._need(record)
        # A clock that may be wrong is judged by the brokers' answers to each tick; and after a start the
        # shards are asked for their reports one portion after the other.
        if self._unacknowledged or not self._time.is_wall or self._reading.unreported:
            need = Need(is_there=True)
        if need.is_there:
            self._write(record, need.shards, has_moved=looked.has_moved)
            self._took_s.append(time.monotonic() - began_s)
        else:
            self._kept = record
            self._reports.clock_idle(at_ms)

    def _record(self, at_ms: int, ends: list[int]) -> ClockRecord:
        skew_ms, leads_ms = self._skews.known(), self._leads.known()
        self._told_skew_ms = skew_ms
        self._corrections.measured(skew_ms)
        return ClockRecord(
            at_ms=at_ms,
            run=self._run,
            sequence=self._sequence,
            ends=ends,
            positions=self._positions(),
            events_partitions=self._events_partitions,
            skew_ms=skew_ms,
            lead_ms=leads_ms.get(_CONTROL, 0),
            wrong_ms=self._wrong_ms(skew_ms),
            zones_ms=self._corrections.zones_ms(),
        )

    def _need(self, record: ClockRecord) -> Need:
        at = self._reading.positions(self._plan.control_topic)
        return self._quiet.need(
            _reach_ms(record),
            slowest_ms=slowest(record.skew_ms),
            has_read=bool(at) and 0 <= self._last_offset < at[0],
        )

    def _write(self, record: ClockRecord, shards: Collection[int] | None, *, has_moved: bool) -> None:
        """Write a tick's record and its copies for some shards or all, and before it what has waited for it.

        If the offsets topic has moved since a tick that was not written, that is written as well: it proves
        until when the new records were not there.
        """
        is_waiting = bool(self._unacknowledged)
        kept, self._kept = self._kept, None
        # If nothing moves any more this may be the last clock for ten seconds.
        older_s = 0.0 if has_moved else settled_s(slowest(record.skew_ms))
        along = self._along(older_s if shards is None else _CONFIRMED_S)
        told = [kept] if kept is not None and kept.ends != record.ends else []
        record.ask, record.job = self._ask(), None if self._job is None else self._job()
        self._reports.clock_told(record.at_ms, record.ends)
        if shards is not None and record.ask is not True:
            record.shards = sorted({CLUSTER_SHARD, *shards, *along, *(record.ask or ())})
        self._quiet.written(_reach_ms(record), record.shards)
        sent_ms = self._time.peek_ms()
        sent = [self._send(one) for one in (*told, record)]
        self._last_offset = -1
        sent += self._send_copies(record, self._leads.known())
        self._unacknowledged += sent
        if not is_waiting:
            self._await(sent, sent_ms)
            self._settle()

    def _send(self, record: ClockRecord) -> _Sent:
        value = sealed(encode_record(record), self._secret)
        what = {"value": value, "timestamp_ms": record.at_ms}
        return self._sent(self._producer, self._plan.control_topic, 0, **what)

    def _wrong_ms(self, skew_ms: dict[int, int]) -> dict[int, int]:
        """Return how far the clocks of offsets partitions' leaders are wrong, beyond an ordinary skew."""
        wrong = {broker: skew for broker, skew in skew_ms.items() if abs(skew) > SKEW_MAX_MS}
        leaders = self._inputs.offsets_leaders if wrong else {}
        return {n: wrong[leader] for n, leader in leaders.items() if leader in wrong}

    def _now_ms(self) -> int:
        """Return the time to write: it ascends, unless the brokers prove that the earlier time was wrong."""
        self._time.agree()
        now_ms = int(self._time.now_ms())
        step_ms, self._base = self._time.base - self._base, self._time.base
        if abs(step_ms) > STEP_MS:
            self._skews.forget()
            self._leads.forget()
            _log.warning("%s: our time was corrected by %.1f s", self._plan.cluster, step_ms / 1000)
        self._reports.notice("driver_clock", "" if self._time.is_wall else stepped(self._time.off_ms()))
        is_back = now_ms < self._last_ms - STEP_MS and step_ms < 0
        return now_ms if is_back else max(now_ms, self._last_ms + 1)

    def _settle(self) -> None:
        """Forget acknowledged records."""
        settled = [one for one in self._unacknowledged if one.future.is_done]
        self._unacknowledged = [one for one in self._unacknowledged if not one.future.is_done]
        for one in settled:
            written = one.future.get(timeout=0)
            if one.topic == self._plan.control_topic:
                self._last_offset = max(self._last_offset, written.offset)
                self._ticked.set()
        for one in self._unacknowledged:
            if time.monotonic() - one.since_s > _OVERDUE_S:
                where = f"{one.topic}-{one.partition}"
                raise KafkaTimeoutError(f"{where} has not acknowledged for {_OVERDUE_S:.0f} s")

    def _await(self, sent: list[_Sent], sent_ms: float) -> None:
        until_s = time.monotonic() + _PROMPT_S
        for one in sent:
            with suppress(KafkaError):  # what has failed is told by _settle
                written = one.future.get(timeout=max(0.0, until_s - time.monotonic()))
                # Only a topic with LogAppendTime tells the broker's time; otherwise our own comes back.
                if 0 < written.timestamp != one.at_ms:
                    self._note_skew(written, sent_ms)

    def _sent(self, producer: KafkaProducer, topic: str | None, partition: int, **what: Any) -> _Sent:
        future = producer.send(topic, partition=partition, **what)
        return _Sent(topic or "", partition, what["timestamp_ms"], time.monotonic(), future)

    def _send_copies(self, record: ClockRecord, leads_ms: dict[int, int]) -> list[_Sent]:
        # The copy carries the skews: a line counts as read once its broker's clock, not ours, has passed it.
        copy = {"groupwatch": "clock", "at_ms": record.at_ms, "sequence": record.sequence, "run": self._run}
        copy |= {"skew_ms": record.skew_ms, "shards": record.shards}
        topic = self._plan.events_topic
        owing = {one.partition for one in self._unacknowledged if one.topic == topic}
        sent: list[_Sent] = []
        for partition in range(self._events_partitions):
            if partition in owing:
                continue
            value = msgspec.json.encode({**copy, "lead_ms": leads_ms.get(partition, 0)})
            what = {
                "key": EVENTS_CLOCK_KEY,
                "value": sealed(value, self._secret),
                "timestamp_ms": record.at_ms,
            }
            sent.append(self._sent(self._events_producer, topic, partition, **what))
            self._inputs.sent(partition)
        return sent

    def _positions(self) -> list[int]:
        if self._plan.offsets_topic is None:
            return []
        return self._reading.positions(self._plan.offsets_topic)

    def _note_skew(self, written: Any, sent_ms: float) -> None:
        acknowledged_ms = self._time.peek_ms()
        if written.topic == self._plan.control_topic:
            self._leads.add(_CONTROL, written.timestamp, sent_ms, acknowledged_ms)
            leader = None if self._events_partitions else _CONTROL
        else:
            self._leads.add(written.partition, written.timestamp, sent_ms, acknowledged_ms)
            leader = self._inputs.events_leaders.get(written.partition)
        if leader is None:
            return
        self._time.witness(leader, written.timestamp, (sent_ms + acknowledged_ms) / 2)
        if leader != _CONTROL:
            self._skews.add(leader, written.timestamp, sent_ms, acknowledged_ms)
