"""A recorded minute of a real broker with groups of the modern protocols, judged by its own answers."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from streaming.replay.run import replay
from tests.live.support.modern import Cost, Row, pictures, recounted, wrong_polls

GOLDEN = Path(__file__).parents[3] / "golden" / "modern"
RECORDS, LINES = GOLDEN / "records.jsonl", GOLDEN / "coordinator.log"
TOLD = GOLDEN / "transitions.txt"


def rows() -> list[Row]:
    found = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    return [
        Row(
            one["partition"],
            offset,
            one["timestamp_ms"],
            bytes.fromhex(one["key"]),
            None if one["value"] is None else bytes.fromhex(one["value"]),
        )
        for offset, one in enumerate(found)
    ]


def answers() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOLDEN / "answers.jsonl").read_text().splitlines()]


def told(*files: Path) -> list[Any]:
    """Return the transitions that are told, without those that were replaced, group by group."""
    found: list[Any] = list(replay(files, config_rules=None, timezone="UTC", strict=True))
    moves = [one for one in found if hasattr(one, "to_state")]
    replaced = {one.replaces for one in moves}
    return sorted((one for one in moves if one.id not in replaced), key=lambda one: (one.group, one.at_ms))


def sentences() -> str:
    """Return what is told of records and lines, a transition a line."""
    names = {one["member_id"]: one["client_id"] for poll in answers() for one in poll["members"]}
    begun = min(row.timestamp_ms for row in rows())
    lines = []
    for one in told(RECORDS, LINES):
        who = names.get(one.cause.member_id, one.cause.client_id)
        by = f" by {who}" if who else ""
        lines.append(
            f"{one.group} {one.at_ms - begun} {one.group_type} {one.from_state} -> {one.to_state} "
            f"{one.generation} {one.cause.kind}{by}\n"
        )
    return "".join(lines)


def test_every_answer_is_the_picture_from_the_topic_alone() -> None:
    """State, epochs, members with theirs, assignments and targets."""
    judged, wrong = wrong_polls(answers(), pictures(rows()))

    assert judged > 100
    assert wrong == []


def test_the_transitions_are_the_ones_reviewed() -> None:
    """Each with its cause and who it was."""
    assert sentences() == TOLD.read_text()


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_the_topic_alone_tells_the_same_moves(kind: str) -> None:
    """The lines add how members went, and nothing else."""

    def moves(*files: Path) -> list[tuple[Any, ...]]:
        return [
            (one.group, one.from_state, one.to_state, one.generation)
            for one in told(*files)
            if one.group_type == kind and one.to_state != "Dead"
        ]

    assert moves(RECORDS) == moves(RECORDS, LINES) != []


if __name__ == "__main__":
    sys.stdout.write("writing transitions.txt\n")
    TOLD.write_text(sentences())


def test_what_each_rebalance_cost_is_what_the_pictures_show() -> None:
    """Time without an owner and moves, counted the slow way from picture to picture."""
    histories, compared = pictures(rows()), []
    for one in told(RECORDS):
        if one.cost is UNSET or one.group_type != "consumer":
            continue
        expected = recounted(histories[one.group]).get(one.at_ms)
        if expected is not None:
            assert Cost(one.cost.partition_ms, one.cost.moved) == expected, (one.group, one.at_ms)
            compared.append((one.group, *expected))

    # Static x1 was away for 1,344 ms with three partitions and took them back: nothing moved.
    assert ("sta", 3 * 1_344, 0) in compared
    # What rd-0 had given up nobody had for 89 ms.
    assert ("lib", 3 * 89, 3) in compared
    assert len(compared) >= 8
