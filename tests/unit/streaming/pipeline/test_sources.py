"""What is read, from where, and with which settings."""

from typing import Any

import msgspec
import pytest

from streaming.config.config import parse_config
from streaming.config.plan import folder_of, plan_of
from streaming.kafka_address import KafkaAddress
from streaming.pipeline.beginning import Beginning, check
from streaming.pipeline.folders import CheckpointRefusedError
from streaming.pipeline.sources import EARLIEST, READ_OPTIONS, assignments
from streaming.pipeline.topics import specs
from tests.unit.streaming.made_plans import plan

BEGAN = Beginning(
    format=1,
    cluster="prod",
    run="r",
    shard_count=2,
    started_at_ms=1,
    own_output=False,
    offsets_topic="__consumer_offsets",
    events_topic="events",
    offsets_ends=[10, 11],
    events_ends=[5, 6],
    events_starts=[3, 4],
    control_end=77,
)


def test_one_cluster_is_read_by_one_source() -> None:
    """Offsets from their beginning, events from where the look back ends, control from its end."""
    ((address, assigned),) = assignments(plan(), BEGAN, events_partitions=3)
    assert address == plan().kafka
    assert assigned == {
        "__consumer_offsets": {0: EARLIEST, 1: EARLIEST},
        "events": {0: 3, 1: 4, 2: EARLIEST},
        "control": {0: 77},
    }


def test_outputs_elsewhere_make_a_second_source() -> None:
    """The control topic is read where it is written."""
    elsewhere = plan(output=KafkaAddress(("127.0.0.1:2",)))
    watched, control = assignments(elsewhere, BEGAN, events_partitions=2)
    assert set(watched[1]) == {"__consumer_offsets", "events"}
    assert control == (elsewhere.output, {"control": {0: 77}})


def test_a_disabled_source_is_not_read() -> None:
    """Neither its partitions nor its name reach Spark."""
    ((_, assigned),) = assignments(plan(events_topic=None), BEGAN, events_partitions=0)
    assert set(assigned) == {"__consumer_offsets", "control"}


def test_the_topic_is_read_uncommitted_and_without_waiting() -> None:
    """A hanging transaction hides no group, and an idle partition costs no half second."""
    assert READ_OPTIONS["kafka.isolation.level"] == "read_uncommitted"
    assert int(READ_OPTIONS["kafka.fetch.max.wait.ms"]) <= 10
    assert READ_OPTIONS["groupIdPrefix"].startswith("groupwatch-")


@pytest.mark.parametrize(
    ("name", "now"),
    [
        ("shard_count", {"shard_count": 3}),
        ("cluster", {"cluster": "staging"}),
        ("own_output", {"own_output": True}),
        ("events_topic", {"events_topic": None}),
        ("format", {"format": 2}),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused_with_the_way_to_rebuild(
    name: str, now: dict[str, Any]
) -> None:
    """A changed number of offsets partitions would put groups on other shards."""
    with pytest.raises(CheckpointRefusedError, match=rf"{name} = .*new folder"):
        check(BEGAN, msgspec.structs.replace(BEGAN, **now), "/checkpoint")


def test_a_checkpoint_that_fits_is_accepted_whatever_the_ends_are_now() -> None:
    """Ends, starts and times belong to the first start."""
    later = msgspec.structs.replace(BEGAN, run="x", started_at_ms=9, offsets_ends=[99, 99], control_end=0)
    check(BEGAN, later, "/checkpoint")


def test_two_clusters_never_share_a_checkpoint_folder() -> None:
    """Names that differ only in what a path cannot hold still differ."""
    names = ["a/b", "a%2fb", "a_b", "a b", "ä", "a"]
    assert len({folder_of(name) for name in names}) == len(names)
    assert all("/" not in folder_of(name) for name in names)


def test_the_plan_follows_the_configuration() -> None:
    """Own outputs, disabled sources and the checkpoint's folder come from the file."""
    config = parse_config(
        "clusters:\n  - {name: a, bootstrap_servers: ['x:1'], events: {enabled: false}}\n"
        "checkpoint: s3a://bucket/gw/\noutput: {bootstrap_servers: ['y:2'], alerts_topic: mine}\n"
    )
    made = plan_of(config, config.clusters[0])
    assert (made.events_topic, made.offsets_topic) == (None, "__consumer_offsets")
    assert made.has_own_output
    assert made.output.bootstrap_servers == ("y:2",)
    assert (made.checkpoint, made.alerts_topic) == ("s3a://bucket/gw/a", "mine")


def test_topics_are_created_where_they_belong() -> None:
    """Events on the watched cluster, one partition for control and alerts, alerts compacted."""
    inputs, outputs = specs(plan(), brokers=12)
    assert [(one.name, one.partitions) for one in inputs] == [("events", 12)]
    assert [(one.name, one.partitions) for one in outputs] == [
        ("control", 1),
        ("transitions", 6),
        ("alerts", 1),
    ]
    assert outputs[2].configs["cleanup.policy"] == "compact"
    assert outputs[2].configs["message.timestamp.type"] == "LogAppendTime"
    assert inputs[0].configs["message.timestamp.type"] == "LogAppendTime"
    assert [one.partitions for one in specs(plan(), brokers=1)[0]] == [4]
