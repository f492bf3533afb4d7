"""Who is told where partitions end: what is news, at a bounded rate, and nobody whom it does not concern."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import pytest
from kafka.errors import KafkaError
from kafka.structs import TopicPartition

from coordinator_model.kafka import shard_of
from streaming.control.records import ControlRecord, EndsRecord
from streaming.driver.probing import ends as module
from streaming.driver.probing.ends import ENDS_EVERY_S, EndsTeller

_DECODER = msgspec.json.Decoder(ControlRecord)


class Acknowledged:
    """What a producer gives back."""

    def get(self, timeout: float) -> None:
        """Say that it was written."""


class Stage:
    """A control topic, a mirror, and brokers that are asked every ten seconds."""

    def __init__(self, shard_count: int = 1) -> None:
        self.committed: dict[str, dict[str, dict[int, tuple[int, int]]]] = {}
        self.records: list[EndsRecord] = []
        self.decoded: list[str] = []
        self.now_ms = 1_000_000
        self.stable: dict[TopicPartition, int] = {}
        """Where open transactions begin; elsewhere all is stable."""
        self.asked: list[list[TopicPartition]] = []
        """Of which partitions the last stable offset was asked for."""
        self.is_refused = False
        self.known: dict[str, dict[int, tuple[int, int]]] = {}
        producer: Any = self
        self.teller = EndsTeller(
            run="r",
            topic="control",
            producer=producer,
            readers=self,
            stable=self.last_stable,
            transaction_ms=lambda: 7,
            shard_count=shard_count,
        )

    def last_stable(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Answer as the leaders do."""
        self.asked.append(list(partitions))
        if self.is_refused:
            raise KafkaError("a leader is gone")
        return {one: self.stable.get(one, self.known[one.topic][one.partition][0]) for one in self.asked[-1]}

    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """Show who commits to what."""
        return {group: tuple(topics) for group, topics in self.committed.items()}

    def commits(self, group: str) -> Mapping[str, Mapping[int, tuple[int, int]]]:
        """Show what, and note that it was asked for."""
        self.decoded.append(group)
        return self.committed[group]

    def send(self, topic: str, *, value: bytes, partition: int) -> Acknowledged:
        """Take a record."""
        record = _DECODER.decode(value)
        assert (topic, partition) == ("control", 0)
        assert isinstance(record, EndsRecord)
        self.records.append(record)
        return Acknowledged()

    def commit(self, group: str, topic: str, *offsets: int) -> None:
        """A group commits partitions from 0 on."""
        self.committed.setdefault(group, {})[topic] = {n: (offset, 0) for n, offset in enumerate(offsets)}

    def ask(self, **ends: tuple[int, ...]) -> dict[str, dict[str, dict[int, int]]]:
        """Return what groups are told when topics end there, ten seconds later."""
        self.now_ms += 10_000
        self.records.clear()
        told = {
            topic: {n: (end, self.now_ms) for n, end in enumerate(offsets)} for topic, offsets in ends.items()
        }
        self.known = told
        self.teller.tell(told)
        assert {record.at_ms for record in self.records} <= {self.now_ms}
        assert {record.run for record in self.records} <= {"r"}
        assert {record.transaction_ms for record in self.records} <= {7}
        return {one.group: one.ends for record in self.records for one in record.groups if one.ends}

    def waits(self, **ends: tuple[int, ...]) -> dict[str, dict[str, dict[int, int]]]:
        """Return the last stable offsets that groups are told when topics end there, ten seconds later."""
        self.asked.clear()
        self.ask(**ends)
        return {one.group: one.stable for record in self.records for one in record.groups if one.stable}


def test_a_group_that_is_behind_is_told_all_at_first_and_then_what_changed() -> None:
    """Only partitions that it commits to."""
    stage = Stage()
    stage.commit("g", "t", 5, 5)
    assert stage.ask(t=(9, 5, 7)) == {"g": {"t": {0: 9, 1: 5}}}
    assert stage.ask(t=(9, 6, 8)) == {"g": {"t": {1: 6}}}
    assert stage.ask(t=(9, 6, 9)) == {}


def _halves(monkeypatch: pytest.MonkeyPatch) -> tuple[Stage, str, str]:
    """A stage on which one group is many, and a group of each half."""
    monkeypatch.setattr(module, "HALVES_FROM", 1)
    stage = Stage(shard_count=2)
    odd = next(name for name in "abcdefgh" if shard_of(name, 2) == 1)
    even = next(name for name in "abcdefgh" if shard_of(name, 2) == 0)
    return stage, odd, even


def test_many_groups_are_told_in_two_halves_by_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each as often as before, of all its topics, and only those of the half are asked for."""
    stage, odd, even = _halves(monkeypatch)
    stage.commit(odd, "t", 5)
    stage.commit(odd, "both", 5)
    stage.commit(even, "u", 5)
    stage.commit(even, "both", 5)
    assert stage.teller.every_s == ENDS_EVERY_S
    assert stage.teller.topics(whole=False) == {"t", "u", "both"}
    assert sorted(stage.ask(t=(9,), u=(9,), both=(9,))) == sorted([odd, even])

    assert stage.teller.every_s == ENDS_EVERY_S / 2
    assert stage.teller.topics(whole=False) == {"t", "both"}
    assert stage.ask(t=(10,), both=(10,)) == {odd: {"t": {0: 10}, "both": {0: 10}}}
    assert stage.teller.topics(whole=False) == {"u", "both"}
    assert stage.ask(u=(9,), both=(11,)) == {even: {"both": {0: 11}}}
    assert stage.teller.topics(whole=False) == {"t", "both"}
    assert stage.ask(t=(10,), both=(11,)) == {odd: {"both": {0: 11}}}
    assert stage.teller.topics(whole=True) == {"t", "u", "both"}, "a start waits for all"


def test_no_group_is_told_ends_of_the_round_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that is gone leaves its topic out; the end of five seconds ago may lie before the commits."""
    stage, odd, even = _halves(monkeypatch)
    stage.commit(odd, "t", 5)
    stage.commit(odd, "both", 5)
    stage.commit(even, "both", 5)
    stage.teller.topics(whole=False)
    stage.ask(t=(9,), both=(9,))
    for ends in ({"t": (9,), "both": (9,)}, {"both": (12,)}):
        stage.teller.topics(whole=False)
        stage.ask(**ends)
    stage.teller.topics(whole=False)
    assert stage.ask(t=(10,)) == {odd: {"t": {0: 10}}}


def test_few_groups_are_told_all_at_once_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once neither half has told anybody anything."""
    stage, odd, even = _halves(monkeypatch)
    stage.commit(odd, "t", 5)
    stage.commit(even, "t", 5)
    for every_s in (ENDS_EVERY_S / 2, ENDS_EVERY_S / 2, ENDS_EVERY_S):
        assert stage.teller.topics(whole=False) == {"t"}
        stage.ask(t=(9,))
        assert stage.teller.every_s == every_s
    assert stage.teller.topics(whole=False) == {"t"}
    assert sorted(stage.ask(t=(10,))) == sorted([odd, even])


def test_a_group_at_the_end_is_told_nothing_until_it_falls_behind() -> None:
    """Most groups of a large cluster are idle."""
    stage = Stage()
    stage.commit("g", "t", 5)
    assert stage.ask(t=(5,)) == {}
    assert stage.ask(t=(5,)) == {}
    assert stage.decoded == ["g"]  # and they are not looked at again
    assert stage.ask(t=(6,)) == {"g": {"t": {0: 6}}}
    stage.commit("g", "t", 7)
    assert stage.ask(t=(7,)) == {"g": {"t": {0: 7}}}


def test_a_commit_beyond_the_end_is_told_of_once_it_is_sure() -> None:
    """A tool's, to an empty topic; a commit after the question may only be newer than the answer."""
    stage = Stage()
    stage.committed["g"] = {"t": {0: (5, 1_015_000)}}
    assert stage.ask(t=(0,)) == {}
    assert stage.ask(t=(0,)) == {"g": {"t": {0: 0}}}
    assert stage.ask(t=(0,)) == {}


def test_who_commits_before_the_brokers_are_asked_again_is_at_the_end() -> None:
    """Its next commit, too, comes before the answer that has its offset."""
    stage = Stage()
    stage.committed["g"] = {"t": {0: (5, 1_015_000)}}
    assert stage.ask(t=(0,)) == {}
    assert stage.ask(t=(5,)) == {}
    assert stage.ask(t=(5,)) == {}


def test_who_is_behind_is_told_each_minute_that_nothing_changed() -> None:
    """Of the partitions in which it is."""
    stage = Stage()
    stage.commit("g", "t", 5, 5)
    stage.ask(t=(9, 5))
    told = [stage.ask(t=(9, 5)) for _ in range(12)]
    assert [index for index, one in enumerate(told) if one] == [5, 11]
    assert told[5] == {"g": {"t": {0: 9}}}


def test_an_end_that_falls_is_news() -> None:
    """The topic was made anew."""
    stage = Stage()
    stage.commit("g", "t", 5)
    stage.ask(t=(9,))
    assert stage.ask(t=(2,)) == {"g": {"t": {0: 2}}}


def test_a_round_is_bounded_and_everybody_gets_a_turn(monkeypatch: Any) -> None:
    """Who was not told is the first in the next round."""
    monkeypatch.setattr(module, "PARTITIONS_MAX", 6)
    monkeypatch.setattr(module, "RECORD_PARTITIONS_MAX", 4)
    stage = Stage()
    for n in range(5):
        stage.commit(f"g{n}", "t", 1, 1)
    assert list(stage.ask(t=(10, 10))) == ["g0", "g1", "g2"]
    assert [len(record.groups) for record in stage.records] == [2, 1]
    assert list(stage.ask(t=(11, 11))) == ["g3", "g4", "g0"]


def test_what_is_gone_is_forgotten() -> None:
    """Groups that come back are new, topics too; no ends are no round."""
    stage = Stage()
    stage.commit("g", "t", 5)
    stage.ask(t=(9,))
    before = stage.committed.pop("g")
    assert stage.ask(t=(9,)) == {}
    stage.committed["g"] = before
    assert stage.ask(t=(9,)) == {"g": {"t": {0: 9}}}
    assert stage.ask() == {}


def test_the_shard_of_a_group_that_is_gone_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups with random names come and go for months."""
    stage, odd, even = _halves(monkeypatch)
    for name in (odd, even):
        stage.commit(name, "t", 5)
    stage.ask(t=(9,))
    stage.teller.topics(whole=False)
    assert stage.teller._shards == {odd: 1, even: 0}
    del stage.committed[odd]
    stage.teller.topics(whole=False)
    assert stage.teller._shards == {even: 0}


def test_a_pause_is_told() -> None:
    """While the brokers are away nobody can commit."""
    stage = Stage()
    stage.commit("g", "t", 5)
    stage.ask(t=(9,))
    first_ms = stage.now_ms
    stage.ask(t=(10,))
    assert [record.since_ms for record in stage.records] == [first_ms]
    stage.now_ms += 60_000
    stage.ask(t=(11,))
    assert [record.since_ms for record in stage.records] == [stage.now_ms]


PLACE = TopicPartition("t", 0)


def test_who_stands_where_a_transaction_begins_is_told_so_and_when_it_has_ended() -> None:
    """As soon as the commit has stood still from one round to the next, and then each round is looked at."""
    stage = Stage()
    stage.commit("g", "t", 5, 9)
    stage.stable[PLACE] = 5
    assert stage.waits(t=(9, 9)) == {}
    assert stage.asked == []
    assert stage.waits(t=(9, 9)) == {"g": {"t": {0: 5}}}
    assert stage.asked == [[PLACE]]
    assert stage.waits(t=(12, 9)) == {}
    del stage.stable[PLACE]
    assert stage.waits(t=(12, 9)) == {"g": {"t": {0: 12}}}
    assert stage.waits(t=(12, 9)) == {}


def test_it_is_told_again_each_minute_that_it_waits_still() -> None:
    """Whether or not anything is written meanwhile."""
    stage = Stage()
    stage.commit("g", "t", 5)
    stage.stable[PLACE] = 5
    told = [stage.waits(t=(9 + turn % 2 * turn,)) for turn in range(20)]

    assert [turn for turn, one in enumerate(told) if one] == [1, 7, 13, 19]


def test_who_goes_on_after_a_wait_is_told_nothing() -> None:
    """Its commit says that it waits no more."""
    stage = Stage()
    stage.commit("g", "t", 5)
    stage.stable[PLACE] = 5
    for _ in range(2):
        stage.waits(t=(9,))
    stage.commit("g", "t", 8)
    del stage.stable[PLACE]
    assert stage.waits(t=(9,)) == {}
    assert stage.asked == []
    stage.stable[PLACE] = 8
    assert stage.waits(t=(9,)) == {"g": {"t": {0: 8}}}


@pytest.mark.parametrize("stable", [9, 4, 11])
def test_who_stands_elsewhere_waits_for_no_transaction(stable: int) -> None:
    """At the end, or within what it has read already, or far before: it is asked about, and told nothing."""
    stage = Stage()
    stage.commit("g", "t", 5)
    stage.stable[PLACE] = stable
    told = [stage.waits(t=(9 if stable == 9 else 30,)) for _ in range(8)]

    assert told == [{}] * 8


def test_who_stands_still_for_another_reason_is_asked_about_once_a_minute() -> None:
    """A group that was given up years ago costs a question now and then."""
    stage = Stage()
    stage.commit("g", "t", 5)
    asked = []
    for turn in range(20):
        stage.waits(t=(90,))
        asked += [turn] * len(stage.asked)

    assert asked == [1, 6, 12, 18]


def test_who_moves_is_not_asked_about() -> None:
    """Though it is behind all the time."""
    stage = Stage()
    for turn in range(20):
        stage.commit("g", "t", turn)
        assert stage.waits(t=(90,)) == {}
        assert stage.asked == []


def test_a_question_is_bounded_and_prefers_who_waits(monkeypatch: Any) -> None:
    """And then who committed last; one partition is asked for once, however many groups read it."""
    monkeypatch.setattr(module, "STABLE_MAX", 2)
    stage = Stage()
    for n in range(4):
        stage.committed[f"g{n}"] = {"t": {n: (5, n)}}
    stage.committed["twin"] = {"t": {3: (5, 1)}}
    stage.stable[TopicPartition("t", 2)] = 5
    stage.waits(t=(9, 9, 9, 9))
    assert stage.waits(t=(9, 9, 9, 9)) == {"g2": {"t": {2: 5}}}
    assert stage.asked == [[TopicPartition("t", 3), TopicPartition("t", 2)]]
    stage.waits(t=(10, 10, 10, 10))
    assert stage.asked == [[TopicPartition("t", 2), TopicPartition("t", 3)]]


def test_an_answer_that_does_not_come_changes_nothing() -> None:
    """TopicEnds are told all the same; what was told holds until the brokers say otherwise."""
    stage = Stage()
    stage.commit("g", "t", 5)
    stage.stable[PLACE] = 5
    stage.waits(t=(9,))
    stage.is_refused = True
    assert stage.waits(t=(10,)) == {}
    assert stage.records[0].groups[0].ends == {"t": {0: 10}}
    stage.is_refused = False
    assert stage.waits(t=(10,)) == {"g": {"t": {0: 5}}}
    stage.is_refused = True
    assert stage.waits(t=(10,)) == {}
    stage.is_refused = False
    del stage.stable[PLACE]
    assert stage.waits(t=(10,)) == {"g": {"t": {0: 10}}}


def test_where_nobody_can_ask_nobody_is_looked_at_more_often() -> None:
    """As before there were last stable offsets."""
    stage = Stage()
    producer: Any = stage
    stage.teller = EndsTeller(run="r", topic="control", producer=producer, readers=stage)
    stage.commit("g", "t", 5)
    for _ in range(5):
        stage.teller.tell({"t": {0: (9, stage.now_ms)}})

    assert stage.decoded == ["g"]
