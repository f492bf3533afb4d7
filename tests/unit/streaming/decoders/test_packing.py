"""Cells between the stages: what cannot be packed or read is counted, and the rest of its cell goes on."""

from typing import Any

import msgspec
import pytest

from coordinator_model.observations.base import CLUSTER_SHARD, Source
from coordinator_model.observations.control import Undecodable
from coordinator_model.observations.log import AssignmentReceived, GroupEmptied
from coordinator_model.observations.seen import Seen, unpack
from streaming.decoders import packing
from streaming.decoders.packing import pack_cells, plain, unpack_cell
from tests.unit.made_seen import seen

GOOD = [seen(5, GroupEmptied(group="g", generation=number), offset=number) for number in range(5)]


def odd(generation: Any = 1, leader: str = "m", offset: int = 77) -> Seen:
    return seen(5, AssignmentReceived(group="g", generation=generation, leader_id=leader), offset=offset)


def unpacked(cells: dict[int, list[Seen]]) -> dict[int, list[Seen]]:
    found: dict[int, list[Seen]] = {}
    for shard, part in pack_cells(cells):
        found.setdefault(shard, []).extend(unpack(part))
    return found


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(odd(generation=2**64), id="beyond-64-bits"),
        pytest.param(odd(generation=-(10**40)), id="far-beyond"),
        pytest.param(odd(leader="a\ud800b"), id="lone-surrogate"),
        pytest.param(odd(generation=object()), id="wrong-type"),
    ],
)
def test_what_cannot_be_packed_is_counted_and_set_aside(bad: Seen) -> None:
    """With a sample, once though several shards were to get it; everything else arrives, in its order."""
    cells = unpacked({0: [*GOOD[:2], bad, *GOOD[2:]], 1: [bad], CLUSTER_SHARD: [GOOD[0], bad]})

    assert cells[0] == GOOD
    assert 1 not in cells
    first, told = cells[CLUSTER_SHARD]
    assert first == GOOD[0]
    assert isinstance(told.what, Undecodable)
    assert (told.what.origin, told.what.reason, told.what.count) == ("events", "unpackable", 1)
    assert b"AssignmentReceived" in told.what.sample


def test_many_that_cannot_be_packed_are_one_count() -> None:
    """A thousand of them cost one observation of the cluster's shard."""
    cells = unpacked({0: [*GOOD, *(odd(2**70, offset=number) for number in range(1_000))]})

    assert cells[0] == GOOD
    (told,) = cells[CLUSTER_SHARD]
    assert isinstance(told.what, Undecodable)
    assert told.what.count == 1_000


def test_a_huge_cell_comes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow has no room for more than 2 GiB in a column."""
    monkeypatch.setattr(packing, "CELL_BYTES_MAX", 60)
    parts = [part for _, part in pack_cells({0: GOOD})]

    assert len(parts) > 1
    assert [one for part in parts for one in unpack(part)] == GOOD


def test_a_part_of_a_cell_that_cannot_be_read_hides_no_other() -> None:
    """A number where a text should be, as only a bug of ours writes it."""
    wrong = seen(5, GroupEmptied(group="g", generation="x"), offset=9)  # type: ignore[arg-type]
    cell = msgspec.msgpack.encode([*GOOD, wrong])

    found, unread, why = unpack_cell(cell)
    assert (found, unread) == (GOOD, 1)
    assert "Expected" in why
    assert unpack_cell(b"\xc1")[:2] == ([], 1)
    assert unpack_cell(msgspec.msgpack.encode(GOOD))[1:] == (0, "")


def test_texts_are_written_as_they_can_be() -> None:
    """Lone surrogates as their numbers; all else as it is."""
    assert plain("a\ud800b é") == "a\\ud800b é"
    assert Source.CONTROL in packing._ORIGINS
