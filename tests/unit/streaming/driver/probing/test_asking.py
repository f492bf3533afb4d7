"""The asking thread's rounds against brokers made of paper: what is asked, what is written, what is said."""

import logging
from collections.abc import Iterable, Mapping
from types import SimpleNamespace as Bag
from typing import Any, cast

import msgspec
import pytest
from kafka.errors import IncompatibleBrokerVersion, KafkaConnectionError

from coordinator_model.kafka.hashing import shard_of
from streaming.config.config import ProbeConfig
from streaming.config.plan import ClusterPlan
from streaming.driver.probing.asking import NO_GROUPS, NO_SETTINGS, REFUSED_S, GroupProbe
from streaming.driver.probing.choosing import AGAIN_S, ROUTINE_S, TypeAndState
from streaming.health.query_progress import Progress
from streaming.kafka_address import KafkaAddress
from tests.unit.streaming.fakes import FakeProducer

SHARDS = 4


class Paper:
    """An admin client of a cluster made of paper."""

    def __init__(self) -> None:
        self.groups: dict[str, tuple[str, str, tuple[str, ...]]] = {}
        """Group -> (type, state, member ids)."""
        self.leaders = dict.fromkeys(range(SHARDS), 1)
        self.in_sync = {shard: [1, 2] for shard in range(SHARDS)}
        self.brokers: tuple[int, ...] = (1, 2)
        self.listing_errors: dict[int, int] = {}
        self.group_errors: dict[str, int] = {}
        self.settings_error = 0
        self.transactions: list[str] = []
        """How long brokers let transactions last, one after the other."""
        self.unsupported: set[str] = set()
        self.away = False
        self.dead_brokers: set[int] = set()
        self.asked: list[tuple[str, Any, Any]] = []

    def ask(self, request: Any, broker: int | None = None) -> Any:
        """Answer a request."""
        kind = type(request).__name__.removesuffix("Request")
        self.asked.append((kind, broker, request))
        if self.away or broker in self.dead_brokers:
            raise KafkaConnectionError("nobody")
        if kind in self.unsupported:
            raise IncompatibleBrokerVersion(kind)
        return getattr(self, f"_{kind}")(request, broker)

    def _Metadata(self, request: Any, _: Any) -> Any:  # noqa: N802 - Kafka's name
        topics = []
        for topic in request.topics:
            count = SHARDS if topic.name == "__consumer_offsets" else 3
            partitions = [
                Bag(
                    partition_index=n,
                    leader_id=self.leaders.get(n, -1),
                    leader_epoch=7,
                    isr_nodes=self.in_sync.get(n, []),
                )
                for n in range(count)
            ]
            topics.append(Bag(name=topic.name, error_code=0, partitions=partitions))
        return Bag(brokers=[Bag(node_id=n) for n in self.brokers], topics=topics)

    def _ListGroups(self, _: Any, broker: int) -> Any:  # noqa: N802 - Kafka's name
        found = [
            Bag(group_id=g, protocol_type="consumer", group_state=state, group_type=kind.capitalize())
            for g, (kind, state, _members) in self.groups.items()
            if self.leaders[shard_of(g, SHARDS)] == broker
        ]
        return Bag(error_code=self.listing_errors.get(broker, 0), groups=found)

    def _DescribeGroups(self, request: Any, _: Any) -> Any:  # noqa: N802 - Kafka's name
        return Bag(groups=[self._described(group, "classic") for group in request.groups])

    def _ConsumerGroupDescribe(self, request: Any, _: Any) -> Any:  # noqa: N802 - Kafka's name
        return Bag(groups=[self._described(group, "consumer") for group in request.group_ids])

    def _described(self, group: str, kind: str) -> Any:
        known = self.groups.get(group)
        error = self.group_errors.get(group, 0)
        if known is None or known[0] != kind:
            error = error or 69
        _, state, members = known or ("", "Dead", ())
        return Bag(
            group_id=group,
            error_code=error,
            group_state="" if error else state,
            protocol_type="consumer",
            protocol_data="range",
            group_epoch=5,
            assignment_epoch=5,
            assignor_name="uniform",
            members=[
                Bag(
                    member_id=member,
                    client_id=f"client-{member}",
                    client_host="/10.0.0.1",
                    group_instance_id=None,
                    member_metadata=b"",
                    member_assignment=b"",
                    subscribed_topic_names=["t"],
                    assignment=Bag(topic_partitions=[Bag(topic_name="t", partitions=[0])]),
                )
                for member in members
            ],
        )

    def _DescribeConfigs(self, request: Any, _: Any) -> Any:  # noqa: N802 - Kafka's name
        configs = [
            Bag(name="group.max.size", value="9"),
            Bag(name="broker.id", value="1"),
            *(Bag(name="transaction.max.timeout.ms", value=value) for value in self.transactions[:1]),
        ]
        del self.transactions[:1]
        loggers = [Bag(name="kafka.request.logger", value="DEBUG")]
        results = [
            Bag(error_code=self.settings_error, configs=configs),
            Bag(error_code=self.settings_error, configs=[] if self.settings_error else loggers),
        ]
        return Bag(results=results)

    def close(self) -> None:
        """Nothing is open."""

    def count(self, kind: str) -> int:
        """Return how many requests of a kind were sent."""
        return sum(1 for one in self.asked if one[0] == kind)


class FakeMirror:
    """Our mirror of the cluster."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[str, str, tuple[str, ...]]] = {}
        self.requests: dict[str, int] = {}
        self.last_move: object = None

    def groups(self) -> Mapping[str, TypeAndState]:
        """Return type and state."""
        return {name: TypeAndState(*one[:2]) for name, one in self.known.items()}

    def group(self, group: str) -> TypeAndState | None:
        """Return one's."""
        return TypeAndState(*self.known[group][:2]) if group in self.known else None

    def members(self, group: str) -> frozenset[str]:
        """Return its members."""
        return frozenset(self.known[group][2])

    def topics(self) -> Iterable[str]:
        """Return one topic."""
        return ["orders"]

    def last_failover(self) -> object:
        """Tell of the last line about a shard."""
        return self.last_move

    def asked(self, requests: Mapping[str, int]) -> None:
        """Keep the count."""
        self.requests = dict(requests)


class Round:
    """A probe and all that it touches; ``at`` is its clock."""

    def __init__(self, per_second: float = 10.0, settings: bytes = b"{}") -> None:
        self.paper, self.mirror, self.out = Paper(), FakeMirror(), FakeProducer()
        self.progress = Progress("prod")
        self.progress.reading.begin(0, {"t": [0]})
        self.progress.reading.reported([-1])
        self.progress.batch_done()
        self.progress.reading.reached({"t": [0]})
        self.now = 0.0
        address = KafkaAddress(("127.0.0.1:1",))
        self.probe = GroupProbe(
            ClusterPlan(
                cluster="prod",
                kafka=address,
                output=address,
                offsets_topic="__consumer_offsets",
                events_topic="events",
                timezone="UTC",
                control_topic="control",
                transitions_topic="transitions",
                alerts_topic="alerts",
                checkpoint="/nowhere",
                trigger_ms=1_000,
                settings=settings,
            ),
            ProbeConfig.model_construct(groups_per_second=per_second),
            run="r",
            shard_count=SHARDS,
            producer=cast("Any", self.out),
            progress=self.progress,
            mirror=self.mirror,
            skew_ms=lambda: {1: 40},
            connect=lambda _address: cast("Any", self.paper),
            now=lambda: self.now,
        )

    def there(self, group: str, kind: str = "classic", state: str = "Stable", *members: str) -> None:
        """Let a group be there, for the brokers and for us."""
        self.paper.groups[group] = self.mirror.known[group] = (kind, state, members)

    def at(self, second: float) -> None:
        """Let a round be at a time."""
        self.now = second
        self.probe.ask()

    def written(self, kind: str) -> list[dict[str, Any]]:
        """Return the records of a kind."""
        values = [msgspec.json.decode(one["value"]) for one in self.out.sent]
        return [one for one in values if one["kind"] == kind]

    def answered(self) -> list[str]:
        """Return the groups that were written about."""
        return [answer["group"] for one in self.written("groups") for answer in one["groups"]]


def test_answers_are_written_with_both_times_and_the_skew() -> None:
    """Of the broker that leads the group's partition, asked by the group's type."""
    one = Round()
    one.there("a", "classic", "Stable", "m")
    one.there("b", "consumer", "Assigning", "n")
    one.at(0.0)
    one.at(1.0)
    records = one.written("groups")
    assert {(r["broker"], r["skew_ms"], r["run"]) for r in records} == {(1, 40, "r")}
    assert all(0 <= r["at_ms"] - r["asked_at_ms"] < 5_000 for r in records)
    answers = {answer["group"]: answer for r in records for answer in r["groups"]}
    assert (answers["a"]["state"], answers["a"]["group_type"], answers["a"]["protocol"]) == (
        "Stable",
        "classic",
        "range",
    )
    assert (answers["b"]["state"], answers["b"]["epoch"]) == ("Assigning", 5)
    assert answers["b"]["members"][0]["assigned"] == {"t": [0]}


def test_nothing_is_asked_about_groups_before_the_picture_is_whole() -> None:
    """After a start every group would look unknown."""
    one = Round()
    one.there("a")
    one.progress.reading.reached({"t": [-1]})
    one.at(0.0)
    assert one.paper.count("DescribeGroups") == 0
    assert one.written("leaders")


def test_leaders_are_told_again_when_a_line_says_that_a_shard_moved() -> None:
    """A line proves no move by itself, and metadata that stay as they are would be told by nobody."""
    one = Round()
    one.at(0.0)
    one.mirror.last_move = (5, "unloaded 1 1")
    for look in range(1, 7):
        one.at(look * 5.0)

    told = [record["leaders"] for record in one.written("leaders")]
    assert told == [{str(n): [1, 7] for n in range(SHARDS)}] * 4


def test_leaders_settings_and_partition_counts_are_written_when_they_change() -> None:
    """Everything at the start, then only what is new."""
    one = Round()
    one.at(0.0)
    one.at(10.0)
    assert [r["leaders"] for r in one.written("leaders")] == [{str(n): [1, 7] for n in range(SHARDS)}]
    assert [r["partitions"] for r in one.written("topics")] == [{"orders": 3}]
    assert [r["brokers"] for r in one.written("brokers")] == [
        {broker: {"group.max.size": "9", "kafka.request.logger": "DEBUG"} for broker in ("1", "2")}
    ]
    one.paper.leaders[2] = 2
    one.at(20.0)
    assert one.written("leaders")[1]["leaders"] == {"2": [2, 7]}


def test_a_replica_whose_broker_has_gone_is_told_once() -> None:
    """Not what was so at the start, not of a broker that is only slow, and not that it is back."""
    one = Round()
    one.paper.in_sync[0] = [1]
    one.at(0.0)
    one.paper.in_sync[1] = [1]
    one.at(10.0)
    one.paper.in_sync[3], one.paper.brokers = [1], (1,)
    one.at(20.0)
    one.at(30.0)
    one.paper.in_sync[3], one.paper.brokers = [2, 1], (1, 2)
    one.at(40.0)
    assert [(r["leaders"], r["shrunk"]) for r in one.written("leaders")[1:]] == [({}, [3])]


def test_how_long_a_transaction_may_last_is_the_most_that_any_broker_allows() -> None:
    """And not known where none tells."""
    one = Round()
    one.at(0.0)
    assert one.probe.transaction_ms == -1
    one = Round()
    one.paper.transactions = ["900000", "60000"]
    one.at(0.0)
    assert one.probe.transaction_ms == 900_000


def test_a_group_whose_leader_is_not_known_is_asked_where_it_is_listed() -> None:
    """Who may not see the offsets topic sees the lists all the same."""
    one = Round()
    one.there("a")
    one.paper.leaders[shard_of("a", SHARDS)] = 2
    one.probe._look(one.probe._brokers(), 0.0)
    one.probe._layout = one.probe._layout._replace(leaders={}, shards=0)
    assert one.probe._broker_of("a") == 2
    assert one.probe._broker_of("nobody") is None


def test_an_unknown_group_is_believed_only_when_every_list_is_without_it() -> None:
    """A group of a new type is answered as an unknown one until the list says so."""
    one = Round()
    one.mirror.known["gone"] = ("classic", "Stable", ())
    one.paper.listing_errors[2] = 15
    one.at(0.0)
    assert one.answered() == []
    one.paper.listing_errors.clear()
    one.at(AGAIN_S)
    one.at(2 * AGAIN_S)
    assert one.answered()[-1:] == ["gone"]
    assert one.written("groups")[-1]["groups"][0]["state"] == "Dead"


def test_a_group_that_was_converted_between_list_and_question_is_asked_again() -> None:
    """With the right question."""
    one = Round()
    one.there("a", "classic", "Stable", "m")
    one.probe._look(one.probe._brokers(), 0.0)
    one.there("a", "consumer", "Stable", "m")
    one.at(0.0)
    one.at(AGAIN_S)
    assert {r["groups"][0]["group_type"] for r in one.written("groups")} == {"consumer"}


def test_a_doubtful_answer_is_followed_by_another() -> None:
    """The brokers list it as we do; only its members are others."""
    one = Round()
    one.there("a", "classic", "Stable", "m")
    one.paper.groups["a"] = ("classic", "Stable", ("other",))
    for second in (0.0, 1.0, AGAIN_S, AGAIN_S + 1):
        one.at(second)
    assert one.answered() == ["a", "a"]


def test_denied_groups_and_our_own_are_not_asked_about() -> None:
    """They are nobody's business."""
    one = Round(settings=b'{"groups":{"allow":[".*"],"deny":["secret-.*"]}}')
    for group in ("secret-1", "groupwatch-x", "open"):
        one.paper.groups[group] = ("classic", "Stable", ())
    for second in (0.0, 1.0, 2.0, 40.0, 41.0, 42.0):
        one.at(second)
    assert set(one.answered()) == {"open"}


def test_without_acls_one_sentence_is_said_and_nothing_breaks(caplog: pytest.LogCaptureFixture) -> None:
    """Again after a while; when the ACL is there, reconciliation is on."""
    one = Round()
    one.there("a")
    one.paper.group_errors["a"] = 30
    one.paper.settings_error = 31
    with caplog.at_level(logging.INFO):
        for second in (0.0, 1.0, 10.0, REFUSED_S, 2 * REFUSED_S + 5):
            one.at(second)
    assert (one.progress.reconciliation, one.progress.broker_settings) == (NO_GROUPS, NO_SETTINGS)
    assert [r.message for r in caplog.records if r.levelno == logging.WARNING] == [
        f"prod: {NO_SETTINGS}",
        f"prod: {NO_GROUPS}; reconciliation is off",
    ]
    assert one.paper.count("DescribeGroups") == 3
    assert one.answered() == []
    one.paper.group_errors.clear()
    one.at(4 * REFUSED_S)
    assert one.progress.reconciliation == "on"
    assert one.progress.describe()["reconciliation"] == "on"


def test_some_groups_that_are_refused_stop_no_other() -> None:
    """It is said how many."""
    one = Round()
    names = [name for name in "abcdefgh" if shard_of(name, SHARDS) == 0][:2]
    for name in names:
        one.there(name)
    one.paper.group_errors[names[0]] = 30
    one.at(0.0)
    assert one.answered() == [names[1]]
    assert "1 of the last 2" in one.progress.reconciliation


def test_brokers_too_old_for_a_type_are_not_asked_about_it_again(caplog: pytest.LogCaptureFixture) -> None:
    """Said once."""
    one = Round()
    one.there("a", "consumer")
    one.paper.unsupported.add("ConsumerGroupDescribe")
    for second in (0.0, ROUTINE_S, 2 * ROUTINE_S):
        one.at(second)
    assert one.paper.count("ConsumerGroupDescribe") == 1
    assert len([r for r in caplog.records if "too old" in r.message]) == 1


def test_a_type_that_a_broker_did_not_know_is_asked_for_after_its_upgrade() -> None:
    """A rolling upgrade: for an hour that broker is left alone."""
    one = Round()
    one.there("a", "consumer")
    one.paper.unsupported.add("ConsumerGroupDescribe")
    one.at(0.0)
    one.paper.unsupported.clear()
    asked = one.paper.count("ConsumerGroupDescribe")
    one.at(3_500.0)
    assert one.paper.count("ConsumerGroupDescribe") == asked
    one.at(3_700.0)
    assert one.paper.count("ConsumerGroupDescribe") > asked


def test_the_rate_is_kept_and_counted() -> None:
    """Two groups a second of a hundred, and every request is seen in the mirror's view."""
    one = Round(per_second=2.0)
    for n in range(100):
        one.there(f"g{n}")
    for second in range(20):
        one.at(float(second))
    assert 20 <= len(one.answered()) <= 42
    assert one.mirror.requests["DescribeGroups"] == one.paper.count("DescribeGroups") <= 20
    assert one.mirror.requests["ListGroups"] == 2 * 4


def test_a_broker_that_does_not_answer_holds_up_no_other() -> None:
    """It is given a rest, and nobody is missing from the list meanwhile."""
    one = Round()
    names = {shard_of(name, SHARDS): name for name in "abcdefgh"}
    for name in names.values():
        one.there(name)
    one.paper.leaders[0] = 2
    one.paper.dead_brokers.add(2)
    for second in range(10):
        one.at(float(second))
    assert set(one.answered()) == set(names.values()) - {names[0]}
    assert sum(1 for _, broker, _ in one.paper.asked if broker == 2) == 1
    one.paper.dead_brokers.clear()
    for second in range(16, 60):
        one.at(float(second))
    assert names[0] in one.answered()


def test_an_outage_raises_for_the_thread_to_try_again() -> None:
    """Nothing is told of it here: the other probe does."""
    one = Round()
    one.paper.away = True
    with pytest.raises(KafkaConnectionError):
        one.at(0.0)
    assert one.out.sent == []
