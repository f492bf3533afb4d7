"""Finds records that were lost while nobody read, by comparing the checkpoint with the topics at each start.

Spark is configured to ignore loss (``failOnDataLoss`` is false), so it continues silently: after what
retention has deleted, and in a recreated topic from wherever that one ends by now, since its offsets are the
old topic's.  This module counts the first, and for the second corrects the checkpoint, so that the new topic
is read from its beginning.

On the compacted offsets topic a gap is no loss: only a log that begins after our position is one, or a
recreated topic.
"""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID

import msgspec

from streaming.config import ClusterPlan
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import KafkaAdminClient, OffsetSpec, TopicPartition, admin_client
from streaming.pipeline.beginning import FILE, Beginning
from streaming.pipeline.folders import CheckpointRefusedError

Positions = Mapping[str, Mapping[int, int]]
"""Topic -> partition -> next offset."""

Feed = Literal["offsets", "events", "control"]
"""The role of an input."""

_QUERY = "query"
_OFFSETS = f"{_QUERY}/offsets"
_COMMITS = f"{_QUERY}/commits"
_VERSION = "v1"
_ASKED = ", and all groups are asked about again"
_AGAIN_S = 2.0
"""A newly elected leader may first report an end that is too low."""


class Missed(NamedTuple):
    """The loss in one topic."""

    topic: str
    partitions: tuple[int, ...]
    records: int
    """At least this many; nobody knows how many unread records a deleted topic held, so it counts as one."""
    is_anew: bool
    """The topic was recreated."""

    @property
    def sentence(self) -> str:
        """Return what was lost, and why."""
        if self.is_anew:
            return (
                f"topic {self.topic} was made anew: what stood in the old one and had not been read is lost, "
                "nobody knows how much; the new one is read from its beginning" + _ASKED
            )
        where = ", ".join(map(str, self.partitions[:10])) + (" and more" if len(self.partitions) > 10 else "")
        return (
            f"{self.records} offsets of topic {self.topic} (partitions {where}) were deleted before they "
            "were read: it keeps its records for less than the time in which nobody read them" + _ASKED
        )


class TopicNow(NamedTuple):
    """A topic's present state."""

    topic_id: str
    """"" if the brokers are too old to give it."""
    starts: Mapping[int, int]
    ends: Mapping[int, int]


class Files(Protocol):
    """The checkpoint's folder."""

    def read(self, name: str) -> bytes | None:
        """Return a file's content; None if there is none."""
        ...

    def names(self, name: str) -> Sequence[str]:
        """Return the names of the files in a sub-folder; none if there is none."""
        ...

    def replace(self, name: str, content: bytes) -> None:
        """Write a file, new or existing."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file, or a folder with its content."""
        ...


class Log:
    """Spark's own log of what each batch reads."""

    def __init__(self, files: Files) -> None:
        self._files = files
        batches = [int(name) for name in files.names(_COMMITS) if name.isdecimal()]
        self.last = max(batches, default=-1)
        """The newest batch that ended; -1: none has."""

    def positions(self) -> dict[str, dict[int, int]]:
        """Return where the next batch begins; {} if none has ended."""
        found: dict[str, dict[int, int]] = {}
        for source in self._sources()[1]:
            for topic, partitions in (source or {}).items():
                found[topic] = {int(partition): offset for partition, offset in partitions.items()}
        return found

    def _sources(self) -> tuple[list[str], list[dict[str, Any] | None]]:
        """Return the two lines before the sources, and each source's offsets."""
        text = None if self.last < 0 else self._files.read(f"{_OFFSETS}/{self.last}")
        if text is None:
            return [], []
        version, metadata, *sources = text.decode().splitlines()
        if version != _VERSION:
            raise CheckpointRefusedError(
                f"Spark's log of offsets is of version {version!r}, not {_VERSION!r}"
            )
        return [version, metadata], [None if line == "-" else json.loads(line) for line in sources]

    def put_right(self, changed: Positions) -> None:
        """Let the next batch start elsewhere in some topics; its plan is dropped.

        If anything interrupts this, the next start repeats it: ``groupwatch.json`` is changed last.
        """
        if self.last < 0:
            self._files.delete(_QUERY)  # nothing has ended: the first batch is planned anew
            return
        head, sources = self._sources()
        for name in self._files.names(_OFFSETS):
            if name.isdecimal() and int(name) > self.last:
                self._files.delete(f"{_OFFSETS}/{name}")
        for source in sources:
            for topic in source or ():
                if topic in changed and source is not None:
                    source[topic] = {str(partition): at for partition, at in sorted(changed[topic].items())}
        lines = [*head, *("-" if one is None else json.dumps(one, separators=(",", ":")) for one in sources)]
        self._files.replace(f"{_OFFSETS}/{self.last}", "\n".join(lines).encode())


def judge(topic: str, at: Mapping[int, int], known_id: str, now: TopicNow) -> Missed | None:
    """Return the loss in a topic, if there is one.

    Args:
        topic: its name.
        at: the position at which each of its partitions continues.
        known_id: the id of the topic that was read; "" if unknown.
        now: the topic's present state.
    """
    if is_anew(at, known_id, now):
        return Missed(topic, tuple(sorted(now.ends)), 1, is_anew=True)
    gaps = {partition: now.starts.get(partition, 0) - offset for partition, offset in at.items()}
    missed = {partition: gap for partition, gap in sorted(gaps.items()) if gap > 0}
    return Missed(topic, tuple(missed), sum(missed.values()), is_anew=False) if missed else None


def is_anew(at: Mapping[int, int], known_id: str, now: TopicNow) -> bool:
    """Say whether the topic was recreated: by its id, else because it ends before our position."""
    if known_id and now.topic_id:
        return known_id != now.topic_id
    return any(partition not in now.ends or offset > now.ends[partition] for partition, offset in at.items())


def topics_of(plan: ClusterPlan) -> dict[str, KafkaAddress]:
    """Return the topics that the query reads, with their clusters."""
    found = {topic: plan.kafka for topic in (plan.offsets_topic, plan.events_topic) if topic}
    return found | {plan.control_topic: plan.output}


class Found(NamedTuple):
    """The findings of a start, before anything is changed."""

    missed: list[Missed]
    began: Beginning
    """The beginning that is valid from now on."""
    anew: dict[str, TopicNow]
    """The recreated topics, as they are now."""


def find_losses(plan: ClusterPlan, began: Beginning, files: Files) -> Found:
    """Return the losses since the checkpoint was last written; change nothing.

    Raises:
        CheckpointRefusedError: Spark's own log cannot be read.
        kafka.errors.KafkaError: the cluster does not answer.
    """
    topics, at, ids = topics_of(plan), Log(files).positions(), began.topic_ids
    now = ask(topics)
    if any(is_anew(at.get(topic, {}), ids.get(topic, ""), one) for topic, one in now.items()):
        time.sleep(_AGAIN_S)
        now = ask(topics)
    found = (judge(topic, at.get(topic, {}), ids.get(topic, ""), one) for topic, one in now.items())
    missed = [one for one in found if one is not None]
    anew = {one.topic: now[one.topic] for one in missed if one.is_anew}
    known = ids | {topic: one.topic_id for topic, one in now.items() if one.topic_id}
    return Found(missed, msgspec.structs.replace(renewed(began, plan, anew), topic_ids=known), anew)


def settle_losses(found: Found, began: Beginning, files: Files) -> None:
    """Correct the checkpoint for recreated topics, after the loss was reported."""
    if found.anew:
        Log(files).put_right({topic: one.starts for topic, one in found.anew.items()})
    if found.began != began:
        files.replace(FILE, msgspec.json.format(msgspec.json.encode(found.began)))


def feed_of(plan: ClusterPlan, topic: str) -> Feed:
    """Return the role of a topic."""
    if topic == plan.offsets_topic:
        return "offsets"
    return "events" if topic == plan.events_topic else "control"


def went_back(before: Mapping[str, Sequence[int]], after: Mapping[str, Sequence[int]]) -> str:
    """Return a topic in which the query's offsets went back; "" if there is none."""
    for topic, positions in after.items():
        earlier = before.get(topic, ())
        if any(0 <= at < was for was, at in zip(earlier, positions, strict=False)):
            return topic
    return ""


def renewed(began: Beginning, plan: ClusterPlan, anew: Mapping[str, TopicNow]) -> Beginning:
    """Return ``began`` for recreated topics: none of their records is from before the first start."""
    changes: dict[str, Any] = {}
    if plan.offsets_topic in anew:
        changes["offsets_ends"] = [0] * began.shard_count
    if plan.events_topic is not None and plan.events_topic in anew:
        starts = anew[plan.events_topic].starts
        changes["events_starts"] = [starts[n] for n in sorted(starts)]
        changes["events_ends"] = [0] * len(starts)
    if plan.control_topic in anew:
        changes["control_end"] = anew[plan.control_topic].starts.get(0, 0)
    return msgspec.structs.replace(began, **changes)


def ask(topics: Mapping[str, KafkaAddress]) -> dict[str, TopicNow]:
    """Return the present state of each topic; topics that do not exist are left out.

    Raises:
        kafka.errors.KafkaError: a cluster does not answer, or a leader.
    """
    found: dict[str, TopicNow] = {}
    for address in {address.identity: address for address in topics.values()}.values():
        admin = admin_client(address)
        try:
            found |= _asked(admin, [name for name, at in topics.items() if at.identity == address.identity])
        finally:
            admin.close()
    return found


def _asked(admin: KafkaAdminClient, topics: Sequence[str]) -> dict[str, TopicNow]:
    ids = ids_of(admin, topics)
    found = {}
    for topic, (topic_id, partitions) in ids.items():
        wanted = [TopicPartition(topic, n) for n in range(partitions)]
        starts = admin.list_partition_offsets(dict.fromkeys(wanted, OffsetSpec.EARLIEST))
        ends = admin.list_partition_offsets(dict.fromkeys(wanted, OffsetSpec.LATEST))
        found[topic] = TopicNow(
            topic_id,
            {one.partition: told.offset for one, told in starts.items()},
            {one.partition: told.offset for one, told in ends.items()},
        )
    return found


def ids_of(admin: KafkaAdminClient, topics: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Return topic -> (its id, its number of partitions), for existing topics.

    Raises:
        kafka.errors.KafkaError: the cluster does not answer.
    """
    return {
        str(one["name"]): (_text(one.get("topic_id")), len(one["partitions"]))
        for one in admin.describe_topics(list(topics))
        if one["partitions"]
    }


def _text(topic_id: Any) -> str:
    return "" if topic_id is None or str(topic_id) == str(UUID(int=0)) else str(topic_id)
