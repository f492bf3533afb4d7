"""Which records of one millisecond the coordinator wrote as one."""

from coordinator_model import observations as on
from coordinator_model.observations.base import Source
from coordinator_model.observations.modern_records import GroupEpoch
from coordinator_model.observations.records import GroupRecorded, GroupTombstone, ModernRecord, ModernWrite
from coordinator_model.ordering.buffered import Buffered
from coordinator_model.shard.writes import gather
from tests.unit.made_seen import seen

CLASSIC = GroupRecorded(
    group="g",
    generation=3,
    protocol_type="consumer",
    protocol=None,
    leader_id=None,
    state_since_ms=-1,
    members=(),
)
TOMBSTONE = GroupTombstone(group="g")
EPOCH = ModernRecord(
    group="g", group_type="consumer", record_type=3, name="", tombstone=False, part=GroupEpoch(epoch=4)
)
GONE = ModernRecord(group="g", group_type="consumer", record_type=3, name="", tombstone=True)


def gathered(*records: on.AnyObservation) -> list[object]:
    held = [Buffered(5, seen(5, one, Source.OFFSETS, offset=n)) for n, one in enumerate(records)]
    return [one.seen.what for one in gather(held)]


def test_a_classic_record_of_the_millisecond_of_the_conversion_is_a_write_of_its_own() -> None:
    """A group that becomes a KIP-848 one is not taken for one that becomes classic again."""
    converted = ModernWrite(group="g", records=(TOMBSTONE, EPOCH))

    assert gathered(CLASSIC, TOMBSTONE, EPOCH) == [CLASSIC, converted]


def test_a_conversion_to_classic_is_one_write() -> None:
    """The classic record stands behind the tombstones of what the group was."""
    assert gathered(GONE, CLASSIC) == [ModernWrite(group="g", records=(GONE, CLASSIC))]
