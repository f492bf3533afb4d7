"""A shard as bytes: ``[version, header, slots, checksum]`` in msgpack, readable after an upgrade.

Each slot keeps its group undecoded (``msgspec.Raw``) beside the fields that are needed without decoding it,
so that a step pays only for the groups it uses.  Rules for changes of a struct that is saved here (this file,
``state/``, ``ordering/``, ``cluster.py``, ``observations/``): new fields go to the end with a default, and no
field changes its meaning.  Where that is not enough, raise ``VERSION`` and add a reader for the older one to
``_READERS``.  ``make state`` notes new fields in ``tests/golden/state``.
"""

from collections.abc import Callable
from zlib import crc32

import msgspec

from coordinator_model.observations import NEVER
from coordinator_model.ordering import Buffered, Order
from coordinator_model.shard import quarantine
from coordinator_model.shard.cluster import ClusterState
from coordinator_model.shard.quarantine import Quarantined
from coordinator_model.state import Doubt, Group, LastFailover

VERSION = 1


class SnapshotError(Exception):
    """A blob that this version cannot read; the message names the remedy."""


class DamagedError(SnapshotError):
    """A blob that no version wrote like this: some of its bytes were changed or lost."""


class Slot(msgspec.Struct, array_like=True, kw_only=True):
    """One encoded group."""

    name: str
    due_ms: int = NEVER
    """When the group must be looked at without an observation."""
    judge_due_ms: int = NEVER
    memory: bytes | None = None
    """The memory of the rules; only they can read it."""
    report_ms: int = NEVER
    """When a waiting report (commits only) may be sent."""
    raw: msgspec.Raw = msgspec.Raw(b"")


class RecentFailure(msgspec.Struct, array_like=True, kw_only=True):
    """An observation that our own code failed on, set aside for debugging."""

    group: str
    error: str
    packed: bytes


class Known(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The last leader of the shard's partition in the metadata with the highest epoch."""

    leader: int
    epoch: int = -1


class Unproved(msgspec.Struct, array_like=True, kw_only=True):
    """The state of a shard before a failover line that the metadata have not confirmed (``loads.py``)."""

    since_ms: int
    coordinator: int = -1
    epoch: int = -1
    lost: dict[int, int] = {}
    moved: LastFailover | None = None
    loaded_ms: int = -1
    kept: list[Buffered] = []
    """Observations of brokers that seem to have lost the shard."""


class Header(msgspec.Struct, array_like=True, kw_only=True):
    """The state of a shard without its groups."""

    shard: int
    shard_count: int
    order: Order
    settings: bytes | None = None
    live_since_ms: int = -1
    """Event time at which the backlog ended; -1: it has not ended."""
    done_ms: int = -1
    """Everything strictly before it has been applied."""
    info_live: bool = False
    info_lost_ms: int = NEVER
    """When a contradiction takes effect for all groups of the shard."""
    coordinator: int = -1
    """Broker that leads the shard, as far as its lines show."""
    epoch: int = -1
    lost: dict[int, int] = {}
    """Broker -> when it unloaded the shard."""
    heard: dict[int, list[tuple[int, int]]] = {}
    """Broker -> (from when it counts, second in ms) of its request log; ascending in both."""
    poisoned: list[RecentFailure] = []
    cluster: ClusterState | None = None
    """Only in the shard of the whole cluster."""
    cluster_memory: bytes | None = None
    cluster_due_ms: int = NEVER
    strangers: dict[str, Doubt] = {}
    """Groups that a broker described once and that the mirror does not have."""
    claimants: dict[int, list[str]] = {}
    """Producer -> groups for which its open transaction has committed offsets."""
    retention_ms: dict[int, int] = {}
    """Broker -> how long (ms) it keeps unused offsets."""
    moved: LastFailover | None = None
    quarantined: dict[str, Quarantined] = {}
    """Quarantined groups: those that our own code failed on lately; "" stands for the shard itself."""
    rebuilt_since_ms: int = -1
    """Since when the shard refills itself because its saved bytes could not be read; -1: they could."""
    ended_ms: dict[str, int] = {}
    """Group that ended and was dropped -> when it ended; older lines do not bring it back."""
    loaded_ms: int = -1
    """When its coordinator began to load the shard, on that broker's clock; -1: no line shows it."""
    led: Known | None = None
    unproved: Unproved | None = None


class _Snapshot(msgspec.Struct, array_like=True):
    version: int
    header: Header
    slots: list[Slot]


class _Version(msgspec.Struct, array_like=True):
    version: int


_WITH_CHECKSUM = b"\x94"
"""msgpack: an array of four."""
_CHECKSUM = b"\xce"
"""msgpack: an unsigned number of 32 bits."""
_ENCODER = msgspec.msgpack.Encoder()
_VERSION_DECODER = msgspec.msgpack.Decoder(_Version)
_DECODER = msgspec.msgpack.Decoder(_Snapshot)
_GROUP_DECODER = msgspec.msgpack.Decoder(Group)


def encode(header: Header, slots: list[Slot]) -> bytes:
    """Return a shard as bytes, with a checksum of everything before it."""
    # An array of four whose first three were written as an array of three: nothing is encoded twice.
    body = memoryview(_ENCODER.encode(_Snapshot(VERSION, header, slots)))[1:]
    return b"".join((_WITH_CHECKSUM, body, _CHECKSUM, crc32(body).to_bytes(4, "big")))


def decode(blob: bytes) -> tuple[Header, list[Slot]]:
    """Return the shard in ``blob``, its groups undecoded.

    Raises:
        DamagedError: its bytes were changed after they were written.
        SnapshotError: a newer groupwatch wrote it.
    """
    _check_sum(blob)
    try:
        version = _VERSION_DECODER.decode(blob).version
        reader = _READERS.get(version)
        if reader is not None:
            return reader(blob)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedError(f"the saved shard is damaged ({error}); restore the checkpoint") from error
    raise SnapshotError(
        f"the saved shard has version {version}, this groupwatch reads up to {VERSION}: "
        "start the newer groupwatch that wrote this checkpoint, or begin a new checkpoint"
    )


def encode_apart(header: Header, slots: list[Slot]) -> bytes:
    """Return a shard as bytes without the parts that cannot be encoded, which begin again.

    No such part is known; it would be a number that no source may send.
    """
    good = [slot for slot in slots if _failure_of(slot) is None]
    for name in {slot.name for slot in slots} - {slot.name for slot in good}:
        quarantine.note(header.quarantined, name, header.done_ms, "its state cannot be saved", lost=True)
    fresh = Header(shard=header.shard, shard_count=header.shard_count, order=Order())
    for field in header.__struct_fields__:
        failure = _failure_of(getattr(header, field))
        if failure is not None:
            setattr(header, field, getattr(fresh, field))
            why = f"{field} cannot be saved: {failure}"
            quarantine.note(header.quarantined, quarantine.WHOLE_SHARD, header.done_ms, why, lost=True)
    return encode(header, good)


def _failure_of(part: object) -> Exception | None:
    try:
        _ENCODER.encode(part)
    except Exception as error:
        return error
    return None


def _check_sum(blob: bytes) -> None:
    """Check a blob against its checksum; blobs of old versions have none.

    Raises:
        DamagedError: they differ.
    """
    if not blob.startswith(_WITH_CHECKSUM):
        return
    end = len(blob) - 5
    told = int.from_bytes(blob[-4:], "big")
    if end < 1 or blob[end : end + 1] != _CHECKSUM or crc32(memoryview(blob)[1:end]) != told:
        raise DamagedError("the saved shard is damaged (its checksum differs); restore the checkpoint")


def encode_group(group: Group) -> msgspec.Raw:
    """Return a group as it is stored in its slot."""
    return msgspec.Raw(_ENCODER.encode(group))


def decode_group(raw: msgspec.Raw) -> Group:
    """Return a group from its slot."""
    return _GROUP_DECODER.decode(raw)


def _read_version_1(blob: bytes) -> tuple[Header, list[Slot]]:
    snapshot = _DECODER.decode(blob)
    return snapshot.header, snapshot.slots


_READERS: dict[int, Callable[[bytes], tuple[Header, list[Slot]]]] = {1: _read_version_1}
