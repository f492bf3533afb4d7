"""Kafka's assignors against what Kafka's own classes answered (``tests/golden/assignors``)."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator_model.kafka.assignors import (
    ASSIGNORS,
    Assignment,
    Partition,
    Subscriber,
    kept,
    subscribe_alike,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "assignors" / "assignments.jsonl.gz"


def rows(assignor: str) -> Iterator[tuple[list[Subscriber], dict[str, int], Assignment]]:
    """Yield members, partition counts, and what Kafka made of them."""
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if row["assignor"] == assignor:
                told = {name: _partitions(got) for name, got in row["assignment"].items()}
                yield [_member(one) for one in row["members"]], row["counts"], told


def _partitions(pairs: list[list[Any]]) -> list[Partition]:
    return [Partition(topic, number) for topic, number in pairs]


def _member(one: dict[str, Any]) -> Subscriber:
    owned = tuple(_partitions(one.pop("owned")))
    return Subscriber(owned=owned, topics=tuple(one.pop("topics")), **one)


def in_order(assignment: Assignment) -> Assignment:
    """Return an assignment with each member's partitions sorted: Kafka walks over topics by their hashes."""
    return {name: sorted(got) for name, got in assignment.items()}


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_range_and_round_robin_are_exact(assignor: str) -> None:
    """Each member gets just the partitions that Kafka's class gives it."""
    for members, counts, told in rows(assignor):
        ours = ASSIGNORS[assignor](members, counts)

        assert in_order(ours) == in_order(told)


@pytest.mark.parametrize("alike", [True, False], ids=["alike", "different"])
@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_sticky_is_exact(assignor: str, alike: bool) -> None:
    """Owners, new owners and what is held back for the next step are Kafka's own."""
    seen = 0
    for members, counts, told in rows(assignor):
        if subscribe_alike(members) is alike:
            seen += 1
            assert in_order(ASSIGNORS[assignor](members, counts)) == in_order(told)

    assert seen > 20


def test_sticky_moves_no_more_than_it_must() -> None:
    """One of five members goes: only its partitions move."""
    names = ["a", "b", "c", "d", "e"]
    first = ASSIGNORS["sticky"]([Subscriber(member_id=name, topics=("t",)) for name in names], {"t": 20})
    rest = [Subscriber(member_id=name, topics=("t",), owned=tuple(first[name])) for name in names[:4]]

    assert kept(rest, ASSIGNORS["sticky"](rest, {"t": 20})) == 16
    assert kept(rest, ASSIGNORS["range"](rest, {"t": 20})) < 16


def test_two_owners_of_one_partition_lose_it() -> None:
    """A partition that two members of one generation claim belongs to neither, and waits a step."""
    both = (Partition("t", 0),)
    members = [Subscriber(member_id=name, topics=("t",), owned=both, generation=3) for name in "ab"]

    assert ASSIGNORS["cooperative-sticky"](members, {"t": 2}) == {"a": [], "b": [Partition("t", 1)]}
