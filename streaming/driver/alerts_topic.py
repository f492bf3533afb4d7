"""The alerts topic as the job reads it: open alerts, and alerts that ended long ago and can be deleted.

The topic is compacted: it keeps one record of each alert until somebody writes a tombstone.  This process
reads no record twice, and each reading has a time limit: a start goes on without what it could not read in
time, and reports that.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from alerts.alert import (
    Alert,
    AlertStatus,
    RecentRecords,
    RecordPosition,
    Refused,
    is_jump,
    is_later,
    read_alert,
)
from alerts.delivery import GROUP_PREFIX, wall_clock_ms
from streaming.config import ClusterPlan
from streaming.health import Progress
from streaming.kafka_clients import (
    READ_COMMITTED,
    FencedProducer,
    KafkaConsumer,
    Output,
    TopicPartition,
    consumer,
)

KEPT_MS = 7 * 86_400_000
"""How long an ended alert stays in the topic."""
START_S = 20.0
"""How long a start reads; the rest is read in the background."""
_ROUND_S = 60.0
_FIRST_S = 30.0
_EVERY_S = 600.0
_REMOVED_MAX = 5_000
"""Most tombstones written in one round."""
_POLL_MS = 200
_OF_ITS_APPEND = 1
"""The timestamp type of a record that the broker stamped (``LogAppendTime``)."""

_log = logging.getLogger(__name__)


class Ended(NamedTuple):
    """The last record of an ended alert."""

    place: TopicPartition
    offset: int
    at_ms: int
    """The latest of: when it ended, was written, was first read here."""


class Opened(NamedTuple):
    """The last record of a firing alert."""

    alert: Alert
    at_ms: int
    """When it was written."""


class AlertsTopic:
    """One cluster's alerts topic; each reading continues where the previous one stopped."""

    def __init__(
        self,
        topic: str,
        cluster: str,
        open_consumer: Callable[[], KafkaConsumer],
        *,
        now_s: Callable[[], float] = time.monotonic,
        clock_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        """Prepare; ``read`` opens the connection.

        Args:
            topic: its name.
            cluster: the cluster whose alerts are wanted; others may write to the topic as well.
            open_consumer: opens a consumer of the cluster that has the topic.
            now_s: a clock for time limits.
            clock_ms: returns the current time.
        """
        self._topic = topic
        self._cluster = cluster
        self._open_consumer = open_consumer
        self._now_s = now_s
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._positions: dict[TopicPartition, int] = {}
        self._opened: dict[str, Opened] = {}
        self._ended: dict[str, Ended] = {}
        self._words: dict[str, RecordPosition] = {}
        """The newest record of each alert."""
        self._said = RecentRecords()
        self.refused = 0
        """Records that are no alerts, or that none of our processes can have written."""

    def read(self, patience_s: float) -> int:
        """Read on for at most ``patience_s``; return how many offsets are left.

        Raises:
            kafka.errors.KafkaError: Kafka does not answer.
        """
        until_s = self._now_s() + patience_s
        reader = self._open_consumer()
        try:
            with self._lock:
                return self._read(reader, until_s)
        finally:
            reader.close()

    def open_alerts(self) -> list[Opened]:
        """Return the alerts that fire, as far as the topic was read."""
        with self._lock:
            return list(self._opened.values())

    def ended(self) -> dict[str, Ended]:
        """Return the ended alerts still in the topic, as far as it was read."""
        with self._lock:
            return dict(self._ended)

    def _read(self, reader: KafkaConsumer, until_s: float) -> int:
        partitions = [
            TopicPartition(self._topic, n) for n in sorted(reader.partitions_for_topic(self._topic) or ())
        ]
        reader.assign(partitions)
        ends: Mapping[TopicPartition, int] = reader.end_offsets(partitions)
        if any(at > ends.get(partition, 0) for partition, at in self._positions.items()):
            self._forget_all()  # the topic was made anew
        begins = reader.beginning_offsets(partitions)
        for partition in partitions:
            reader.seek(partition, max(self._positions.get(partition, 0), begins[partition]))
        while left := self._left(reader, ends):
            if self._now_s() > until_s:
                return left
            for partition, records in reader.poll(timeout_ms=_POLL_MS).items():
                for record in records:
                    self._take(partition, record)
        return 0

    def _left(self, reader: KafkaConsumer, ends: Mapping[TopicPartition, int]) -> int:
        """Return how many offsets are still unread, and remember the position."""
        self._positions = {partition: reader.position(partition) for partition in ends}
        return sum(max(0, end - self._positions[partition]) for partition, end in ends.items())

    def _forget_all(self) -> None:
        for memory in (self._positions, self._opened, self._ended, self._words, self._said):
            memory.clear()

    def _take(self, partition: TopicPartition, record: Any) -> None:
        key: bytes = record.key or b""
        name = key.decode("utf-8", "replace")
        if record.value is None:
            for memory in (self._opened, self._ended, self._words):
                memory.pop(name, None)
            self._said.forget(name)
            return
        now_ms = self._clock_ms()
        found = read_alert(key, record.value, timestamp_ms=record.timestamp, now_ms=now_ms)
        if isinstance(found, Refused):
            self.refused += 1
        elif found.cluster == self._cluster:
            self._hear(found, partition, record)

    def _hear(self, alert: Alert, partition: TopicPartition, record: Any) -> None:
        before, word = self._words.get(alert.id), RecordPosition(alert.revision, partition.partition)
        if is_jump(word.revision, before.revision if before else -1):
            self.refused += 1
        elif not self._said.is_repeat(alert) and is_later(word, before):
            self._words[alert.id] = word
            self._note(alert, partition, record)

    def _note(self, alert: Alert, partition: TopicPartition, record: Any) -> None:
        if alert.status is AlertStatus.FIRING:
            self._ended.pop(alert.id, None)
            self._opened[alert.id] = Opened(alert, record.timestamp)
        else:
            self._opened.pop(alert.id, None)
            at_ms = max(self._written_ms(record), alert.ends_at_ms or 0)
            self._ended[alert.id] = Ended(partition, record.offset, at_ms)

    def _written_ms(self, record: Any) -> int:
        """Return since when a record has been in the topic, as far as nobody can forge that.

        A writer's own timestamp may lie far back; then a firing alert would be deleted at once.
        """
        return int(record.timestamp) if record.timestamp_type == _OF_ITS_APPEND else self._clock_ms()


def due_for_removal(
    ended: Mapping[str, Ended], cursors: Iterable[Mapping[int, int]], now_ms: int
) -> list[tuple[str, TopicPartition]]:
    """Return the alerts that can be deleted, with their partitions: long over, and no receiver needs them.

    Args:
        ended: alert id -> its last record.
        cursors: for each receiver partition -> offset; it has, or gave up, all records before that.  A
            receiver without a cursor was told no alert, so it need not be told any end.
        now_ms: the current time.
    """
    known = list(cursors)
    return [
        (alert_id, one.place)
        for alert_id, one in ended.items()
        if one.at_ms <= now_ms - KEPT_MS
        and all(cursor.get(one.place.partition, one.offset + 1) > one.offset for cursor in known)
    ]


class AlertsTopicKeeper:
    """Reads one cluster's alerts topic at the start and later, and deletes alerts that ended long ago."""

    def __init__(
        self,
        plan: ClusterPlan,
        progress: Progress,
        *,
        outputs: Callable[[], FencedProducer | None],
        adopt: "Adopt",
    ) -> None:
        """Prepare; ``start`` opens connections.

        Args:
            plan: the cluster.
            progress: takes notices for the operator.
            outputs: returns the writer of the outputs; None while this process may not write them.
            adopt: takes open alerts that the start could not read in time.
        """
        self._plan = plan
        self.receivers = plan.receivers
        """Whose cursors say what everybody has; it may be replaced."""
        self._progress = progress
        self._outputs = outputs
        self._adopt = adopt
        self.topic = AlertsTopic(plan.alerts_topic, plan.cluster, self._reader)
        self._adopted: set[str] | None = None
        self._began_ms = 0
        self._stopped = threading.Event()
        name = f"alerts-topic-{plan.cluster}"
        self._thread = threading.Thread(target=self._look_on, name=name, daemon=True)

    def _reader(self) -> KafkaConsumer:
        return consumer(self._plan.output, isolation_level=READ_COMMITTED)

    def start(self) -> None:
        """Start to watch the topic."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=15)

    @property
    def is_alive(self) -> bool:
        """False once the thread has ended."""
        return self._thread.ident is None or self._thread.is_alive()

    @property
    def owes(self) -> bool:
        """A start could not read the topic in time, and the rest is not handed over yet."""
        return self._adopted is not None

    def at_start(self) -> list[Alert]:
        """Return the open alerts, as far as they can be read in time.

        Raises:
            kafka.errors.KafkaError: Kafka does not answer.
        """
        if self._adopted is None:  # else an earlier query of this process still owes some
            self._began_ms = wall_clock_ms()
        left = self.topic.read(START_S)
        found = [one.alert for one in self.topic.open_alerts()]
        if left and self._adopted is None:
            self._adopted = {one.id for one in found}
        self._say(left)
        return found

    def open_now(self) -> list[Alert]:
        """Return the alerts that are open now, as far as they can be read in time.

        Raises:
            kafka.errors.KafkaError: Kafka does not answer.
        """
        self._say(self.topic.read(START_S))
        return [one.alert for one in self.topic.open_alerts()]

    def _say(self, left: int) -> None:
        self._progress.notice("alerts_topic", unread(self._plan.alerts_topic, left) if left else "")

    def _look_on(self) -> None:
        self._stopped.wait(_FIRST_S)
        while not self._stopped.is_set():
            pause_s = _EVERY_S
            try:
                if self.look():
                    pause_s = 1.0  # there is more to read, or to remove
            except Exception as error:
                _log.warning("%s: cleaning up the alerts topic failed: %s", self._plan.cluster, error)
            self._stopped.wait(pause_s)

    def look(self) -> bool:
        """Read on, adopt what a start missed, delete what is long over; say whether more remains to be done.

        Raises:
            kafka.errors.KafkaError: Kafka does not answer.
        """
        left = self.topic.read(_ROUND_S)
        self._say(left)
        if left:
            return True
        self._adopt_late()
        outputs = self._outputs()
        if outputs is None:
            return False
        due = due_for_removal(self.topic.ended(), self._cursors(), wall_clock_ms())
        if due:
            self._remove(outputs, due[:_REMOVED_MAX])
        return len(due) > _REMOVED_MAX

    def _adopt_late(self) -> None:
        """Hand over alerts that were open before the start and have been read only now."""
        if self._adopted is None:
            return
        late = [
            one.alert
            for one in self.topic.open_alerts()
            if one.alert.id not in self._adopted and one.at_ms < self._began_ms
        ]
        self._adopt(late)  # if that fails, the next look tries again
        self._adopted = None

    def _cursors(self) -> list[dict[int, int]]:
        """Return each receiver's cursor: partition -> offset."""
        return [self._cursor(receiver) for receiver in self.receivers]

    def _cursor(self, receiver: str) -> dict[int, int]:
        reader = consumer(self._plan.output, group_id=f"{GROUP_PREFIX}{receiver}")
        try:
            places = [
                TopicPartition(self._plan.alerts_topic, n)
                for n in reader.partitions_for_topic(self._plan.alerts_topic) or ()
            ]
            found = ((place.partition, reader.committed(place)) for place in places)
            return {n: offset for n, offset in found if offset is not None and offset >= 0}
        finally:
            reader.close()

    def _remove(self, outputs: FencedProducer, due: list[tuple[str, TopicPartition]]) -> None:
        outputs.write(
            Output(place.topic, alert_id.encode(), None, place.partition) for alert_id, place in due
        )
        _log.info("%s: removed %d alerts of long ago from the topic", self._plan.cluster, len(due))


Adopt = Callable[[list[Alert]], None]
"""Takes open alerts of the topic, to be continued or ended."""


def unread(topic: str, left: int) -> str:
    """Return the sentence that not all of the topic was read."""
    return (
        f"{left} offsets of {topic} are not read yet: alerts that an earlier job left open may be continued "
        "or resolved some minutes late; reading goes on in the background"
    )
