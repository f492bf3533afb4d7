"""The groups of a shard in chunks, each compressed by itself until one of its groups is used.

A batch uses few of many groups, so most chunks are saved as they were loaded.
"""

import zlib
from collections.abc import Iterable, Iterator, MutableMapping
from typing import Protocol

import msgspec

from coordinator_model.observations import NEVER

CHUNK_BYTES = 32_768
"""About so much of encoded groups is compressed together: larger chunks become hardly smaller, and more of
them is compressed again for each group that is used."""
_OVERHEAD_BYTES = 40
"""Of a slot, without what varies much."""
_UNREADABLE = msgspec.Raw(b"\xc0")


class Codec(Protocol):
    """Compresses parts of a saved shard; its name is saved beside them."""

    @property
    def name(self) -> str:
        """The name of the format."""

    def pack(self, raw: bytes) -> bytes:
        """Return ``raw`` compressed."""

    def unpack(self, packed: bytes, size: int) -> bytes:
        """Return the ``size`` bytes that were packed.

        Raises:
            ValueError: these bytes were never packed like this.
        """


class Zlib:
    """The codec of the standard library, which every version of groupwatch reads."""

    name = "zlib"

    def pack(self, raw: bytes) -> bytes:
        """Return ``raw`` compressed."""
        return zlib.compress(raw, 1)

    def unpack(self, packed: bytes, size: int) -> bytes:
        """Return the ``size`` bytes that were packed.

        Raises:
            ValueError: these bytes were never packed like this.
        """
        try:
            raw = zlib.decompress(packed, bufsize=max(size, 1))
        except zlib.error as error:
            raise ValueError(str(error)) from error
        if len(raw) != size:
            raise ValueError(f"{len(raw)} bytes in place of {size}")
        return raw


ZLIB = Zlib()


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


class ChunkIndex(msgspec.Struct, array_like=True, kw_only=True):
    """What must be known of a chunk without opening it."""

    names: list[str] = []
    due_ms: int = NEVER
    """The least of its groups' times."""
    report_ms: int = NEVER
    size: int = 0
    """Of its bytes before they were compressed."""


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Slot])


class _Chunk:
    """Some groups, as they were saved and, once one of them was used, as slots."""

    __slots__ = ("index", "packed", "raw", "slots")

    def __init__(self, index: ChunkIndex, packed: bytes) -> None:
        self.index = index
        self.packed = packed
        self.raw = b""
        self.slots: list[Slot] = []

    def open(self, codec: Codec) -> list[Slot]:
        """Return its groups; if they cannot be read, slots that are due at once and that nobody can read."""
        try:
            self.raw = codec.unpack(self.packed, self.index.size)
            self.slots = _DECODER.decode(self.raw)
        except (ValueError, msgspec.MsgspecError):
            pass
        if [slot.name for slot in self.slots] != self.index.names:
            self.slots = [Slot(name=name, due_ms=0, raw=_UNREADABLE) for name in self.index.names]
        return self.slots


class Slots(MutableMapping[str, Slot]):
    """The groups of a shard by name; a group's chunk is opened when the group is asked for."""

    def __init__(
        self, index: Iterable[ChunkIndex] = (), chunks: Iterable[bytes] = (), codec: Codec = ZLIB
    ) -> None:
        """Take the saved chunks, without opening any of them."""
        self._codec = codec
        self._closed = {_Chunk(one, packed): None for one, packed in zip(index, chunks, strict=True)}
        self._open: list[_Chunk] = []
        self._where: dict[str, Slot | _Chunk] = {
            name: chunk for chunk in self._closed for name in chunk.index.names
        }
        self._loose: dict[str, Slot] = {}
        """Slots that are in no chunk yet."""

    @classmethod
    def of(cls, slots: Iterable[Slot]) -> "Slots":
        """Return slots that are in no chunk yet."""
        made = cls()
        for slot in slots:
            made[slot.name] = slot
        return made

    def __getitem__(self, name: str) -> Slot:
        found = self._where[name]
        if isinstance(found, Slot):
            return found
        self._open_chunks([found])
        return self[name]

    def __setitem__(self, name: str, slot: Slot) -> None:
        # A chunk that is still closed would be saved with what stood there before.
        if self.get(name) is not slot:
            self._where[name] = self._loose[name] = slot

    def __delitem__(self, name: str) -> None:
        self[name]  # opens its chunk, as above
        del self._where[name]
        self._loose.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._where

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)

    def next_due_ms(self) -> int:
        """Return when the first group is due."""
        return min(
            (
                *(chunk.index.due_ms for chunk in self._closed),
                *(slot.due_ms for slot in self._opened()),
            ),
            default=NEVER,
        )

    def next_report_ms(self) -> int:
        """Return when the first waiting report may be sent."""
        return min(
            (
                *(chunk.index.report_ms for chunk in self._closed),
                *(slot.report_ms for slot in self._opened()),
            ),
            default=NEVER,
        )

    def due_before(self, until_ms: int) -> list[str]:
        """Return the groups that are due before ``until_ms``."""
        self._open_chunks([chunk for chunk in self._closed if chunk.index.due_ms < until_ms])
        return [slot.name for slot in self._opened() if slot.due_ms < until_ms]

    def reports_due(self, now_ms: int) -> list[str]:
        """Return the groups whose waiting report may be sent."""
        self._open_chunks([chunk for chunk in self._closed if chunk.index.report_ms <= now_ms])
        return [slot.name for slot in self._opened() if slot.report_ms <= now_ms]

    def pack(self, codec: Codec) -> tuple[list[ChunkIndex], list[bytes]]:
        """Return all groups in chunks; those that are as they were loaded keep their bytes."""
        same_codec = codec.name == self._codec.name
        if not same_codec:
            self._open_chunks(list(self._closed))
        kept, changed = list(self._closed), list[Slot]()
        for chunk in self._open:
            slots = [slot for slot in chunk.slots if self._where.get(slot.name) is slot]
            if same_codec and _ENCODER.encode(slots) == chunk.raw:
                kept.append(chunk)
            else:
                changed += slots
        changed += self._loose.values()
        made = [_packed(slots, codec) for slots in _cut(changed)]
        return [one.index for one in (*kept, *made)], [one.packed for one in (*kept, *made)]

    def _opened(self) -> list[Slot]:
        if not self._closed:
            return [slot for slot in self._where.values() if isinstance(slot, Slot)]
        found = list(self._loose.values())
        for chunk in self._open:
            found += [slot for slot in chunk.slots if self._where.get(slot.name) is slot]
        return found

    def _open_chunks(self, chunks: list[_Chunk]) -> None:
        for chunk in chunks:
            del self._closed[chunk]
            self._open.append(chunk)
            self._where.update((slot.name, slot) for slot in chunk.open(self._codec))


def _cut(slots: list[Slot]) -> Iterator[list[Slot]]:
    """Cut slots into chunks of about the same size."""
    sizes = [_OVERHEAD_BYTES + len(slot.raw) + len(slot.memory or b"") for slot in slots]
    total = sum(sizes)
    aim = total / max(1, round(total / CHUNK_BYTES))
    chunk, filled, begun = list[Slot](), 0.0, 0.0
    for slot, size in zip(slots, sizes, strict=True):
        chunk.append(slot)
        filled += size
        if filled - begun >= aim:
            yield chunk
            chunk, begun = [], filled
    if chunk:
        yield chunk


def _packed(slots: list[Slot], codec: Codec) -> _Chunk:
    raw = _ENCODER.encode(slots)
    index = ChunkIndex(
        names=[slot.name for slot in slots],
        due_ms=min(slot.due_ms for slot in slots),
        report_ms=min(slot.report_ms for slot in slots),
        size=len(raw),
    )
    return _Chunk(index, codec.pack(raw))
