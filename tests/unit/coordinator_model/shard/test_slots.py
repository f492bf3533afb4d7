"""Groups between two steps: which chunks are opened, which are saved as they were, and what damage costs."""

import msgspec
import pytest

from coordinator_model.observations import NEVER
from coordinator_model.shard.slots import CHUNK_BYTES, ZLIB, Slot, Slots


class Counting:
    """zlib that counts what it is asked for."""

    name = "zlib"

    def __init__(self) -> None:
        self.packed = 0
        self.unpacked = 0

    def pack(self, raw: bytes) -> bytes:
        """Count."""
        self.packed += 1
        return ZLIB.pack(raw)

    def unpack(self, packed: bytes, size: int) -> bytes:
        """Count."""
        self.unpacked += 1
        return ZLIB.unpack(packed, size)


def slot(number: int, due_ms: int = NEVER, report_ms: int = NEVER) -> Slot:
    raw = msgspec.msgpack.encode([f"group {number} ", "x" * 1_000])
    return Slot(name=f"g{number:03d}", due_ms=due_ms, report_ms=report_ms, raw=msgspec.Raw(raw))


def saved(slots: Slots) -> tuple[Slots, Counting]:
    """Return the slots after a save and a load, and what counts the work from there on."""
    counting = Counting()
    index, chunks = slots.pack(ZLIB)
    return Slots(index, chunks, counting), counting


MANY = 100


def test_only_the_chunks_of_groups_that_are_used_are_opened_and_packed_again() -> None:
    """What a batch does not touch costs neither decompression nor compression."""
    slots, counting = saved(Slots.of(slot(number) for number in range(MANY)))
    assert len(slots) == MANY
    assert "g050" in slots
    assert sorted(slots) == [f"g{number:03d}" for number in range(MANY)]
    assert (slots.next_due_ms(), slots.due_before(10), slots.reports_due(10)) == (NEVER, [], [])
    assert (counting.unpacked, counting.packed) == (0, 0)

    slots["g050"].memory = b"new"
    again, _ = saved(slots)

    assert counting.unpacked == 1
    assert again["g050"].memory == b"new"
    assert again["g051"].raw == slot(51).raw


def test_a_group_that_was_only_read_leaves_its_chunk_as_it_was() -> None:
    """A report of all groups changes none, so nothing is compressed again."""
    slots, counting = saved(Slots.of(slot(number) for number in range(MANY)))
    before = slots.pack(counting)
    for name in list(slots):
        assert slots[name].due_ms == NEVER

    assert sorted(slots.pack(counting)[1]) == sorted(before[1])
    assert counting.packed == 0


def test_due_groups_are_found_in_closed_chunks() -> None:
    """The index knows each chunk's first deadline and first report; only those chunks are opened."""
    made = [slot(number) for number in range(MANY)]
    made[3].due_ms, made[70].due_ms, made[50].report_ms = 20, 10, 5
    slots, counting = saved(Slots.of(made))

    assert (slots.next_due_ms(), slots.next_report_ms()) == (10, 5)
    assert slots.due_before(11) == ["g070"]
    assert slots.reports_due(5) == ["g050"]
    assert counting.unpacked == 2
    slots["g070"].due_ms = NEVER
    assert slots.next_due_ms() == 20


def test_groups_come_and_go() -> None:
    """A group that was dropped does not come back with its chunk, and one that came anew replaces it."""
    slots, _ = saved(Slots.of(slot(number) for number in range(MANY)))
    del slots["g001"]
    slots.pop("g002")
    slots["g003"] = Slot(name="g003", due_ms=7, raw=slot(3).raw)
    slots["new"] = Slot(name="new", raw=slot(3).raw)
    assert slots.pop("unknown", None) is None
    again, _ = saved(slots)

    assert sorted(again) == ["g000", *(f"g{number:03d}" for number in range(3, MANY)), "new"]
    assert (again["g003"].due_ms, again["g004"].due_ms, again.next_due_ms()) == (7, NEVER, 7)


def test_chunks_keep_their_size_when_groups_come_one_by_one() -> None:
    """What has changed is cut anew, so neither many small chunks nor large ones remain."""
    slots = Slots()
    for number in range(MANY):
        slots[f"g{number:03d}"] = slot(number)
        slots, _ = saved(slots)
    for name in list(slots):
        slots[name].due_ms = 9
    index, _ = slots.pack(ZLIB)

    assert all(CHUNK_BYTES / 2 < one.size < CHUNK_BYTES * 2 for one in index)


@pytest.mark.parametrize("chunk", [b"", b"no chunk", ZLIB.pack(b"\x90")], ids=["empty", "other", "no-slots"])
def test_a_chunk_that_cannot_be_read_costs_its_groups_alone(chunk: bytes) -> None:
    """They are due at once and unreadable, so the shard begins them anew; the others stay."""
    index, chunks = Slots.of(slot(number) for number in range(MANY)).pack(ZLIB)
    slots = Slots(index, [chunk, *chunks[1:]])
    lost = index[0].names

    assert slots[lost[0]].due_ms == 0
    assert sorted(slots.due_before(1)) == lost
    assert slots["g099"].raw == slot(99).raw


def test_another_codec_packs_everything_again() -> None:
    """A blob has one codec, so one that a tool saved is changed as a whole."""
    slots, counting = saved(Slots.of(slot(number) for number in range(MANY)))
    counting.name = "other"
    index, _ = slots.pack(ZLIB)

    assert counting.unpacked == len(index)
