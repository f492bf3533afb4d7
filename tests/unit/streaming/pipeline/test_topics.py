"""Topics that are missing: made, provoked, or refused with a sentence that helps."""

from typing import Any, cast

import pytest
from kafka.errors import InvalidReplicationFactorError, TopicAlreadyExistsError, TopicAuthorizationFailedError

from streaming.pipeline import beginning
from streaming.pipeline.beginning import count_shards
from streaming.pipeline.folders import CheckpointRefusedError
from streaming.pipeline.topics import TopicsRefusedError, create_missing, faults, specs
from tests.unit.streaming.made_plans import plan


class FakeAdmin:
    """A cluster of three brokers with some topics; creating may fail."""

    def __init__(self, topics: dict[str, int], failure: Exception | None = None) -> None:
        self.topics = topics
        self.failure = failure
        self.configs: dict[str, dict[str, str]] = {}
        self.created: dict[str, Any] = {}
        self.awaited: list[str] = []
        self.asked_for_coordinators = 0

    def list_topics(self) -> list[str]:
        """Return the names of all topics."""
        return list(self.topics)

    def describe_cluster(self) -> dict[str, Any]:
        """Return three brokers."""
        return {"brokers": [1, 2, 3]}

    def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        """Return partitions; a missing topic has none."""
        return [{"name": name, "partitions": list(range(self.topics.get(name, 0)))} for name in names]

    def describe_configs(self, asked: list[Any], config_filter: str) -> dict[str, Any]:
        """Return the settings of topics as kafka-python does."""
        assert config_filter == "all"
        return {
            "topic": {
                one.name: {key: {"value": value} for key, value in self.configs[one.name].items()}
                for one in asked
            }
        }

    def create_topics(self, wanted: dict[str, Any]) -> None:
        """Keep what was asked for, or fail."""
        self.created = wanted
        if self.failure is not None:
            raise self.failure

    def wait_for_topics(self, names: list[str]) -> None:
        """Note who is waited for."""
        self.awaited = names

    def list_group_offsets(self, _: object) -> None:
        """Make the broker create the offsets topic, as asking for a coordinator does."""
        self.asked_for_coordinators += 1
        self.topics["__consumer_offsets"] = 50


def _create(admin: FakeAdmin) -> None:
    create_missing(cast("Any", admin), plan().kafka, specs(plan(), 3)[1])


def test_only_what_is_missing_is_created_and_awaited() -> None:
    """With three brokers, three replicas; topics that exist are left as they are."""
    admin = FakeAdmin({"control": 1})
    _create(admin)
    assert set(admin.created) == {"transitions", "alerts"} == set(admin.awaited)
    assert admin.created["alerts"] == {
        "num_partitions": 1,
        "replication_factor": 3,
        "configs": {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"},
    }


def test_nothing_missing_asks_for_nothing() -> None:
    """A start without the right to create topics works if they are there."""
    admin = FakeAdmin({"control": 1, "transitions": 6, "alerts": 1}, TopicAuthorizationFailedError())
    _create(admin)
    assert admin.created == {}


def test_another_monitor_that_was_quicker_is_fine() -> None:
    """Two that start at once both go on."""
    admin = FakeAdmin({}, TopicAlreadyExistsError())
    _create(admin)
    assert set(admin.awaited) == {"control", "transitions", "alerts"}


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (
            TopicAuthorizationFailedError(),
            r"not allowed .*CREATE.*alerts with 1 partitions.*cleanup\.policy=compact",
        ),
        (
            InvalidReplicationFactorError("2 brokers"),
            "cannot create control, transitions, alerts on 127.0.0.1:1",
        ),
    ],
)
def test_a_refusal_says_what_to_do(failure: Exception, words: str) -> None:
    """The sentence names the topics, and for a missing right how to make them by hand."""
    with pytest.raises(TopicsRefusedError, match=words):
        _create(FakeAdmin({}, failure))


def test_a_fresh_cluster_is_made_to_create_its_offsets_topic() -> None:
    """Before the first group there is none; asking for a coordinator brings it about."""
    admin = FakeAdmin({})
    assert count_shards(cast("Any", admin), plan()) == 50
    assert admin.asked_for_coordinators == 1


def test_a_mirrored_copy_that_is_not_there_is_refused() -> None:
    """Nobody creates a mirror for us."""
    with pytest.raises(CheckpointRefusedError, match="no topic 'copy'"):
        count_shards(cast("Any", FakeAdmin({})), plan(offsets_topic="copy"))


def test_without_the_offsets_source_kafkas_default_number_of_shards_is_taken() -> None:
    """And the real one, where the cluster tells."""
    without = plan(offsets_topic=None)
    assert count_shards(cast("Any", FakeAdmin({})), without) == beginning.DEFAULT_SHARDS
    assert count_shards(cast("Any", FakeAdmin({"__consumer_offsets": 7})), without) == 7


APPENDED = {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete"}
CREATED = {"message.timestamp.type": "CreateTime", "cleanup.policy": "delete"}
COMPACTED = {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "compact"}


def _faults(**changes: tuple[int, dict[str, str]]) -> dict[str, str]:
    whole = {
        "events": (4, APPENDED),
        "control": (1, APPENDED),
        "transitions": (6, CREATED),
        "alerts": (1, COMPACTED),
    } | changes
    admin = FakeAdmin({name: partitions for name, (partitions, _) in whole.items()})
    admin.configs = {name: configs for name, (_, configs) in whole.items()}
    return {name: told for name, told in faults(cast("Any", admin), plan(), list(whole)).items() if told}


def test_topics_as_we_make_them_have_no_fault() -> None:
    """Nothing is said of what is as documented."""
    assert _faults() == {}


@pytest.mark.parametrize(
    ("topic", "partitions", "configs", "said"),
    [
        ("events", 4, CREATED, "message.timestamp.type=CreateTime"),
        ("control", 1, CREATED, "bounded by the driver's clock"),
        ("events", 4, COMPACTED, "the newest lines of each broker"),
        ("control", 1, APPENDED | {"cleanup.policy": "compact,delete"}, "takes away clock records"),
        ("alerts", 1, CREATED, "Set it to compact"),
        ("alerts", 1, COMPACTED | {"message.timestamp.type": "CreateTime"}, "leaves it a week after"),
        ("alerts", 3, COMPACTED, "only partition 0 is used"),
        ("control", 3, APPENDED, "has 3 partitions where one is needed"),
    ],
)
def test_a_topic_that_is_set_up_otherwise_is_named_with_what_it_costs(
    topic: str, partitions: int, configs: dict[str, str], said: str
) -> None:
    """The job goes on with it; whoever looks at /ready reads what to change."""
    found = _faults(**{topic: (partitions, configs)})
    assert list(found) == [topic]
    assert said in found[topic]
