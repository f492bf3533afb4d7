"""A shard in which nothing has its default: made, told as JSON, and held against what was told before."""

import hashlib
import itertools
import json
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from alerts.rules import memories
from alerts.rules.engine.situation import GroupMemory
from coordinator_model.observations.seen import Seen, pack, unpack
from coordinator_model.shard import snapshot
from coordinator_model.shard.slots import Slot
from coordinator_model.shard.snapshot import Header
from coordinator_model.state.group import Group
from tests.saved.fields import FRAMES, LIST, PACKED, Entries, parts, structs, written

FOLDER = LIST.parent
Json = Any
RELEASED = frozenset({"v1-0b8d5239", "v1-31c071bb"})
"""Golden shards of structs as a release had them: checkpoints out there are saved like that, so they stay."""


class Blob(NamedTuple):
    """One golden shard: its bytes, and what they say."""

    path: Path

    @property
    def bytes(self) -> bytes:
        """Return the shard as it was saved."""
        return self.path.read_bytes()

    @property
    def told(self) -> Json:
        """Return what it was made of."""
        return json.loads(self.path.with_suffix(".json").read_text())


def blobs() -> list[Blob]:
    """Return all golden shards that have an account of what they say."""
    return [Blob(path) for path in sorted(FOLDER.glob("*.bin")) if path.with_suffix(".json").exists()]


def between_releases() -> list[Blob]:
    """Return the golden shards that no release saved."""
    return [blob for blob in blobs() if blob.path.stem not in RELEASED]


def make(entries: Entries) -> Blob:
    """Write a golden shard of today's structs, named by the list of their fields, and return it.

    It has all that those since the last release have, which therefore go.
    """
    digest = hashlib.blake2b(written(entries).encode(), digest_size=4).hexdigest()
    path = FOLDER / f"v{snapshot.VERSION}-{digest}.bin"
    packed = Filler().shard()
    for blob in between_releases():
        blob.path.unlink()
        blob.path.with_suffix(".json").unlink()
    path.write_bytes(packed)
    path.with_suffix(".json").write_text(json.dumps(told(*snapshot.decode(packed)), indent=1) + "\n")
    return Blob(path)


# --- values ----------------------------------------------------------------------------------------------


class Filler:
    """Makes values of any type: each one another, and none the default of its field."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1_001)
        self._bools = itertools.count(1)
        self._met: set[type] = set()

    def shard(self) -> bytes:
        """Return a whole shard."""
        header: Header = self.of(inspect.type_info(Header), "")
        slots: list[Slot] = self.of(inspect.type_info(list[Slot]), "")
        return snapshot.encode(header, slots)

    def of(self, one: inspect.Type, name: str, *, varied: bool = False) -> Any:
        """Return a value for the field ``name``; ``varied``: booleans may be as they are by default."""
        match one:
            case inspect.StructType():
                return self._struct(one, varied=varied)
            case inspect.UnionType():
                return self.of(self._alternative(one), name, varied=varied)
            case inspect.DictType():
                keys = [self.of(one.key_type, name) for _ in range(2)]
                return {key: self.of(one.value_type, name, varied=bool(n)) for n, key in enumerate(keys)}
            case inspect.TupleType():
                return tuple(self.of(item, name) for item in one.item_types)
            case inspect.CollectionType():
                return self._collection(one, name)
        return self._plain(one, name, varied=varied)

    def _struct(self, one: inspect.StructType, *, varied: bool) -> msgspec.Struct:
        self._met.add(one.cls)
        values = {field.name: self._field(one, field, varied=varied) for field in one.fields}
        made: msgspec.Struct = one.cls(**values)
        return made

    def _field(self, one: inspect.StructType, field: inspect.Field, *, varied: bool) -> Any:
        packed = PACKED.get((one.cls.__name__, field.name))
        if packed is not None:
            return _packed(self.of(inspect.type_info(packed), field.name), field.type)
        if isinstance(field.type, inspect.BoolType):
            return next(self._bools) % 2 == 0 if varied else field.default is not True
        while True:
            value = self.of(field.type, field.name)
            if value != field.default:
                return value

    def _alternative(self, one: inspect.UnionType) -> inspect.Type:
        """Return one type of a union: never None, and if possible one with a struct that was not made yet."""
        types = [part for part in one.types if not isinstance(part, inspect.NoneType)]
        fresh = [part for part in types if self._has_fresh(part)]
        return fresh[0] if fresh else types[-1]

    def _collection(self, one: inspect.CollectionType, name: str) -> Any:
        """Return two values, or as many as bring up every alternative that the items have."""
        made = [self.of(one.item_type, name), self.of(one.item_type, name, varied=True)]
        while self._has_fresh(one.item_type):
            made.append(self.of(one.item_type, name))
        makers = {inspect.ListType: list, inspect.VarTupleType: tuple, inspect.FrozenSetType: frozenset}
        return makers.get(type(one), set)(made)

    def _has_fresh(self, one: inspect.Type) -> bool:
        """Say whether values of that type, but for what they hold in collections, can be of a new struct."""
        if isinstance(one, inspect.CollectionType | inspect.DictType):
            return False
        if isinstance(one, inspect.StructType) and one.cls not in self._met:
            return True
        return any(self._has_fresh(part) for part in parts(one) if part is not one)

    def _plain(self, one: inspect.Type, name: str, *, varied: bool) -> Any:
        number = next(self._numbers)
        match one:
            case inspect.IntType():
                return number
            case inspect.FloatType():
                return number + 0.5
            case inspect.StrType():
                return f"{name}-{number}"
            case inspect.BytesType():
                return f"{name}-{number}".encode()
            case inspect.EnumType():
                return list(one.cls)[number % len(one.cls)]
            case inspect.BoolType():
                return not varied
        raise TypeError(f"no value for {one}: add one here")


def _packed(value: Any, to: inspect.Type) -> Any:
    """Return what the product keeps of ``value`` in a field of bytes."""
    if isinstance(value, Group):
        return snapshot.encode_group(value)
    if isinstance(value, list):
        return pack(value)
    packed = memories.HEADER.pack(memories.MEMORY_VERSION, 1, 2, 3) + msgspec.msgpack.encode(value)
    assert not isinstance(to, inspect.RawType)
    return packed


# --- what a shard says -----------------------------------------------------------------------------------


def told(header: Header, slots: list[Slot]) -> Json:
    """Return all that a decoded shard says, by the names of its fields."""
    return {"header": _told(header), "slots": _told(slots)}


def _told(value: Any) -> Json:
    match value:
        case msgspec.Struct():
            is_one_of_many = value.__struct_config__.tag is not None
            tag = {"": type(value).__name__} if is_one_of_many else {}
            return tag | {name: _told(held(value, name)) for name in value.__struct_fields__}
        case Enum():
            return value.value
        case dict():
            if all(type(key) is str for key in value):
                return {key: _told(one) for key, one in value.items()}
            return [[_told(key), _told(one)] for key, one in value.items()]
        case list() | tuple():
            return [_told(one) for one in value]
        case set() | frozenset():
            return sorted((_told(one) for one in value), key=str)
        case bytes():
            return value.decode("latin-1")
    return value


def held(owner: msgspec.Struct, name: str) -> Any:
    """Return a field's value as the product reads it: what is packed, unpacked."""
    value = getattr(owner, name)
    kind = PACKED.get((type(owner).__name__, name))
    if kind is None or value is None:
        return value
    if isinstance(value, msgspec.Raw):
        return snapshot.decode_group(value)
    if kind == list[Seen]:
        return unpack(value)
    return (memories.load_group if kind is GroupMemory else memories.load_cluster)(value)


# --- held against what was told --------------------------------------------------------------------------


def differences(blob: Blob) -> list[str]:
    """Return what a golden shard says today that it did not say when it was made, and the reverse."""
    header, slots = snapshot.decode(blob.bytes)
    expected = blob.told
    return [*_differing(header, expected["header"], "header"), *_differing(slots, expected["slots"], "slots")]


def _differing(value: Any, expected: Json, place: str) -> Iterator[str]:
    if isinstance(value, msgspec.Struct) and isinstance(expected, dict):
        yield from _differing_struct(value, expected, place)
    elif isinstance(value, list | tuple) and isinstance(expected, list) and len(value) == len(expected):
        for index, (one, its) in enumerate(zip(value, expected, strict=True)):
            yield from _differing(one, its, f"{place}[{index}]")
    elif isinstance(value, dict) and len(value) == len(expected):
        pairs = expected.items() if isinstance(expected, dict) else expected
        for (key, one), (its_key, its) in zip(value.items(), pairs, strict=True):
            yield from _differing(one, its, f"{place}[{key!r}]")
            if _told(key) != its_key:
                yield f"{place}: the key {its_key!r} is now {key!r}"
    elif _told(value) != expected:
        yield f"{place} was {expected!r} and is now {_told(value)!r}"


def _differing_struct(value: msgspec.Struct, expected: Json, place: str) -> Iterator[str]:
    if expected.get("", type(value).__name__) != type(value).__name__:
        yield f"{place} was a {expected['']} and is now a {type(value).__name__}"
        return
    for name in value.__struct_fields__:
        if name in expected:
            yield from _differing(held(value, name), expected[name], f"{place}.{name}")
        elif not is_default(value, name):
            yield f"{place}.{name} is younger than this shard and has {getattr(value, name)!r}, no default"
    yield from (f"{place}.{name} is gone" for name in expected if name and not hasattr(value, name))


def is_default(value: msgspec.Struct, name: str) -> bool:
    """Say whether a field is as it is where nothing was told."""
    default, make_default = _defaults(type(value))[name]
    if default is not msgspec.NODEFAULT:
        return bool(getattr(value, name) == default)
    return callable(make_default) and bool(getattr(value, name) == make_default())


@cache
def _defaults(struct: type[msgspec.Struct]) -> dict[str, tuple[Any, Any]]:
    return {one.name: (one.default, one.default_factory) for one in msgspec.structs.fields(struct)}


def uncovered() -> set[tuple[str, str]]:
    """Return (struct, field) of all that has its default wherever a golden shard holds one."""
    return {(one.__name__, name) for one in structs() for name in one.__struct_fields__} - _covered()


def _covered() -> set[tuple[str, str]]:
    # The frame of a shard is taken off by the one function that reads it.
    found = {(frame.__name__, name) for frame in FRAMES for name in frame.__struct_fields__}
    for blob in blobs():
        header, slots = snapshot.decode(blob.bytes)
        waiting: list[Any] = [header, slots]
        while waiting:
            waiting += _within(waiting.pop(), found)
    return found


def _within(value: Any, found: set[tuple[str, str]]) -> list[Any]:
    if isinstance(value, msgspec.Struct):
        names = [name for name in value.__struct_fields__ if not is_default(value, name)]
        found.update((type(value).__name__, name) for name in names)
        return [held(value, name) for name in names]
    if isinstance(value, dict):
        return [*value, *value.values()]
    return list(value) if isinstance(value, list | tuple | set | frozenset) else []
