"""A shard as bytes: ``[version, codec, size, head, chunks, checksum]`` in msgpack, readable after an upgrade.

The head, compressed, has the shard's header and an index of its chunks of groups.  Each chunk (``slots.py``)
is compressed by itself, and each slot in it keeps its group undecoded (``msgspec.Raw``) beside the fields
that are needed without decoding it, so that a step pays only for the groups it uses.

Version 1, of groupwatch up to 0.2.0, was ``[version, header, slots, checksum]`` without compression.

Rules for changes of a struct that is saved here (this file, ``slots.py``, ``state/``, ``ordering/``,
``cluster.py``, ``observations/``): new fields go to the end with a default, and no field changes its
meaning.  Where that is not enough, raise ``VERSION`` and add a reader for the older one to ``_READERS``.
``make state`` notes new fields in ``tests/golden/state``.
"""

from collections.abc import Callable, Iterable
from zlib import crc32

import msgspec

from coordinator_model.observations import NEVER
from coordinator_model.ordering import Buffered, Order
from coordinator_model.shard import quarantine
from coordinator_model.shard.cluster import ClusterState
from coordinator_model.shard.quarantine import Quarantined
from coordinator_model.shard.slots import ZLIB, ChunkIndex, Codec, Slot, Slots
from coordinator_model.state import Doubt, Group, LastFailover

VERSION = 2


class SnapshotError(Exception):
    """A blob that this version cannot read; the message names the remedy."""


class DamagedError(SnapshotError):
    """A blob that no version wrote like this: some of its bytes were changed or lost."""


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
    """The frame of version 1."""

    version: int
    header: Header
    slots: list[Slot]


class _Head(msgspec.Struct, array_like=True):
    header: Header
    index: list[ChunkIndex]


class _Frame(msgspec.Struct, array_like=True):
    """The frame of version 2."""

    version: int
    codec: str
    size: int
    """Of the head before it was compressed."""
    head: bytes
    chunks: list[bytes]


class _Version(msgspec.Struct, array_like=True):
    version: int


_WITH_CHECKSUM = (b"\x94", b"\x96")
"""msgpack: an array of four (version 1) or six (version 2) parts, the last of which is the checksum."""
_CHECKSUM = b"\xce"
"""msgpack: an unsigned number of 32 bits."""
_ENCODER = msgspec.msgpack.Encoder()
_VERSION_DECODER = msgspec.msgpack.Decoder(_Version)
_DECODER_1 = msgspec.msgpack.Decoder(_Snapshot)
_DECODER = msgspec.msgpack.Decoder(_Frame)
_HEAD_DECODER = msgspec.msgpack.Decoder(_Head)
_GROUP_DECODER = msgspec.msgpack.Decoder(Group)


def encode(header: Header, slots: Iterable[Slot], codec: Codec = ZLIB) -> bytes:
    """Return a shard of these slots as bytes."""
    return save(header, Slots.of(slots), codec)


def save(header: Header, slots: Slots, codec: Codec) -> bytes:
    """Return a shard as bytes, with a checksum of everything before it."""
    index, chunks = slots.pack(codec)
    head = _ENCODER.encode(_Head(header, index))
    frame = _Frame(VERSION, codec.name, len(head), codec.pack(head), chunks)
    # An array of six whose first five were written as an array of five: nothing is encoded twice.
    body = memoryview(_ENCODER.encode(frame))[1:]
    return b"".join((_WITH_CHECKSUM[-1], body, _CHECKSUM, crc32(body).to_bytes(4, "big")))


def decode(blob: bytes, codec: Codec = ZLIB) -> tuple[Header, list[Slot]]:
    """Return the shard in ``blob`` with all its slots; for tests and tools."""
    header, slots = load(blob, codec)
    return header, list(slots.values())


def load(blob: bytes, codec: Codec = ZLIB) -> tuple[Header, Slots]:
    """Return the shard in ``blob``, its chunks closed.

    Raises:
        DamagedError: its bytes were changed after they were written.
        SnapshotError: a newer groupwatch wrote it, or it is compressed by a codec that is not given.
    """
    _check_sum(blob)
    try:
        version = _VERSION_DECODER.decode(blob).version
        reader = _READERS.get(version)
        if reader is not None:
            return reader(blob, codec)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamagedError(f"the saved shard is damaged ({error}); restore the checkpoint") from error
    raise SnapshotError(
        f"the saved shard has version {version}, this groupwatch reads up to {VERSION}: "
        "start the newer groupwatch that wrote this checkpoint, or begin a new checkpoint"
    )


def encode_apart(header: Header, slots: Iterable[Slot], codec: Codec = ZLIB) -> bytes:
    """Return a shard as bytes without the parts that cannot be encoded, which begin again.

    No such part is known; it would be a number that no source may send.
    """
    every = list(slots)
    good = [slot for slot in every if _failure_of(slot) is None]
    for name in {slot.name for slot in every} - {slot.name for slot in good}:
        quarantine.note(header.quarantined, name, header.done_ms, "its state cannot be saved", lost=True)
    fresh = Header(shard=header.shard, shard_count=header.shard_count, order=Order())
    for field in header.__struct_fields__:
        failure = _failure_of(getattr(header, field))
        if failure is not None:
            setattr(header, field, getattr(fresh, field))
            why = f"{field} cannot be saved: {failure}"
            quarantine.note(header.quarantined, quarantine.WHOLE_SHARD, header.done_ms, why, lost=True)
    return encode(header, good, codec)


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
    if blob[:1] not in _WITH_CHECKSUM:
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


def _read_version_1(blob: bytes, _: Codec) -> tuple[Header, Slots]:
    snapshot = _DECODER_1.decode(blob)
    return snapshot.header, Slots.of(snapshot.slots)


def _read_version_2(blob: bytes, given: Codec) -> tuple[Header, Slots]:
    if not blob.startswith(_WITH_CHECKSUM[-1]):
        raise DamagedError("the saved shard is damaged (it has no checksum); restore the checkpoint")
    frame = _DECODER.decode(blob)
    codec = given if frame.codec == given.name else ZLIB
    if frame.codec != codec.name:
        raise SnapshotError(
            f"the saved shard is compressed by {frame.codec}, which only the job itself reads: "
            "start the groupwatch that wrote this checkpoint"
        )
    head = _HEAD_DECODER.decode(codec.unpack(frame.head, frame.size))
    return head.header, Slots(head.index, frame.chunks, codec)


_READERS: dict[int, Callable[[bytes, Codec], tuple[Header, Slots]]] = {1: _read_version_1, 2: _read_version_2}
