"""The beginning of a checkpoint, and whether the checkpoint may go on.

The very first start captures the ends of all inputs **before** the first batch and writes them to the
checkpoint as ``groupwatch.json``.  Everything before those ends is a snapshot that sets states and fires
nothing.  Every later start reads the file, which also holds the settings that must not change under a
checkpoint.
"""

import logging
import secrets
import time
import uuid

import msgspec

from streaming.config import ClusterPlan
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import (
    KafkaAdminClient,
    OffsetSpec,
    TopicPartition,
    UnknownTopicOrPartitionError,
    admin_client,
)
from streaming.pipeline.folders import CheckpointRefusedError, Folder

FILE = "groupwatch.json"
FORMAT = 1
DEFAULT_SHARDS = 50
"""Kafka's default for ``offsets.topic.num.partitions``; used if no source gives the number."""
EVENTS_LOOK_BACK_MS = 600_000
"""How far back the first start reads the events topic: enough to see running rebalances."""

_FIXED = ("format", "cluster", "shard_count", "own_output", "offsets_topic", "events_topic")
_CREATION_WAIT_S = 30.0
_log = logging.getLogger(__name__)


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """The first start of a checkpoint; lists are indexed by partition."""

    format: int
    cluster: str
    run: str
    """The run, which marks the control records of this checkpoint."""
    shard_count: int
    started_at_ms: int
    own_output: bool
    offsets_topic: str | None
    events_topic: str | None
    offsets_ends: list[int]
    events_ends: list[int]
    events_starts: list[int]
    control_end: int
    topic_ids: dict[str, str] = {}
    """The ids of the input topics, if the brokers give them: a recreated topic has another id."""
    secret: str = ""
    """The seal of our clocks, so that other writers cannot set our time; "" in old checkpoints."""


def load_or_capture(folder: Folder, plan: ClusterPlan) -> tuple[Beginning, bool]:
    """Return the checkpoint's beginning, and whether any batch has been committed since.

    Raises:
        CheckpointRefusedError: the cluster or the configuration changed in a way no checkpoint survives.
        kafka.errors.KafkaError: the cluster does not answer.
    """
    text = folder.read(FILE)
    if text is not None:
        beginning = msgspec.json.decode(text, type=Beginning)
        check(beginning, _as_now(beginning, plan), plan.checkpoint)
        return beginning, folder.has_files("query/commits")
    beginning = capture(plan)
    folder.write(FILE, msgspec.json.format(msgspec.json.encode(beginning)))
    return beginning, False


def run_of(folder: Folder) -> str:
    """Return the run of the checkpoint in ``folder``; "" if it has none, or none that we can read."""
    try:
        return msgspec.json.decode(folder.read(FILE) or b"", type=Beginning).run
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def capture(plan: ClusterPlan) -> Beginning:
    """Return the inputs' present ends."""
    now_ms = time.time_ns() // 1_000_000
    admin = admin_client(plan.kafka)
    try:
        shard_count = count_shards(admin, plan)
        offsets = ends_of(admin, plan.offsets_topic)
        events = ends_of(admin, plan.events_topic)
        starts = _starts_by_time(admin, plan.events_topic, events, now_ms - EVENTS_LOOK_BACK_MS)
    finally:
        admin.close()
    return Beginning(
        format=FORMAT,
        cluster=plan.cluster,
        run=uuid.uuid4().hex[:12],
        shard_count=shard_count,
        started_at_ms=now_ms,
        own_output=plan.has_own_output,
        offsets_topic=plan.offsets_topic,
        events_topic=plan.events_topic,
        offsets_ends=offsets,
        events_ends=events,
        events_starts=starts,
        control_end=_control_end(plan.output, plan.control_topic),
        secret=secrets.token_hex(16),
    )


def partition_count(admin: KafkaAdminClient, topic: str) -> int:
    """Return the number of partitions of ``topic``; 0 if there is no such topic."""
    return max((len(found["partitions"]) for found in admin.describe_topics([topic])), default=0)


def count_shards(admin: KafkaAdminClient, plan: ClusterPlan) -> int:
    """Return the number of shards: the partitions of the offsets topic.

    A cluster that never had a group has no such topic; a request for a group's coordinator makes the broker
    create it.

    Raises:
        CheckpointRefusedError: the topic is configured, is not the internal one, and does not exist.
    """
    topic = plan.offsets_topic or "__consumer_offsets"
    count = partition_count(admin, topic)
    deadline = time.monotonic() + _CREATION_WAIT_S
    while count == 0 and plan.offsets_topic is not None:
        if topic != "__consumer_offsets":
            raise CheckpointRefusedError(f"there is no topic {topic!r} on {plan.cluster}")
        if time.monotonic() > deadline:
            raise CheckpointRefusedError(
                f"{plan.cluster} has no __consumer_offsets and did not create it in 30 s"
            )
        _provoke_creation(admin)
        time.sleep(0.5)
        count = partition_count(admin, topic)
    return count or DEFAULT_SHARDS


def _provoke_creation(admin: KafkaAdminClient) -> None:
    try:
        admin.list_group_offsets({"groupwatch-nobody": None})
    except Exception as error:
        _log.debug("asking for a coordinator: %r", error)


def ends_of(admin: KafkaAdminClient, topic: str | None) -> list[int]:
    """Return the end offset of each partition of ``topic``; [] for None.

    Raises:
        kafka.errors.KafkaError: a leader does not answer.
    """
    if topic is None:
        return []
    wanted = [TopicPartition(topic, n) for n in range(partition_count(admin, topic))]
    found = admin.list_partition_offsets(dict.fromkeys(wanted, OffsetSpec.LATEST)) if wanted else {}
    return [found[partition].offset for partition in wanted]


def _starts_by_time(admin: KafkaAdminClient, topic: str | None, ends: list[int], since_ms: int) -> list[int]:
    if topic is None or not ends:
        return []
    wanted = [TopicPartition(topic, n) for n in range(len(ends))]
    found = admin.list_partition_offsets(dict.fromkeys(wanted, since_ms))
    # -1: no record is that young, so start at the end.
    return [found[p].offset if found[p].offset >= 0 else end for p, end in zip(wanted, ends, strict=True)]


def _control_end(address: KafkaAddress, topic: str) -> int:
    admin = admin_client(address)
    try:
        ends = ends_of(admin, topic)
    finally:
        admin.close()
    if not ends:
        raise UnknownTopicOrPartitionError(topic)
    return ends[0]


def _as_now(beginning: Beginning, plan: ClusterPlan) -> Beginning:
    """Return ``beginning`` with the present values of what must not change."""
    shard_count = beginning.shard_count
    if plan.offsets_topic is not None:
        admin = admin_client(plan.kafka)
        try:
            shard_count = count_shards(admin, plan)
        finally:
            admin.close()
    return msgspec.structs.replace(
        beginning,
        format=FORMAT,
        cluster=plan.cluster,
        shard_count=shard_count,
        own_output=plan.has_own_output,
        offsets_topic=plan.offsets_topic,
        events_topic=plan.events_topic,
    )


def check(beginning: Beginning, now: Beginning, checkpoint: str) -> None:
    """Check that a checkpoint may go on under present conditions.

    Raises:
        CheckpointRefusedError: it may not; the message says what changed and how to rebuild.
    """
    for name in _FIXED:
        was, is_now = getattr(beginning, name), getattr(now, name)
        if was != is_now:
            raise CheckpointRefusedError(
                f"the checkpoint {checkpoint} was begun with {name} = {was!r}, now it is {is_now!r}: groups "
                "would land in other shards, or inputs be mixed up. To rebuild, point 'checkpoint' to a "
                "new folder (or remove this one): the job takes a new snapshot of all groups and adopts "
                "the alerts that are still open in the alerts topic"
            )
