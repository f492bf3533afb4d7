"""What a saved shard is made of: every struct in it with its fields in order, every enum with its values.

Array-like structs are saved without names: swap two neighbours of one type, and every checkpoint out
there is misread in silence.  So the list in ``tests/golden/state/fields.txt`` may only grow.
"""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from alerts.rules.engine.cluster_memory import ClusterMemory
from alerts.rules.engine.situation import GroupMemory
from coordinator_model.observations.seen import Seen
from coordinator_model.shard.slots import ChunkIndex
from coordinator_model.shard.snapshot import _Frame, _Head, _Snapshot
from coordinator_model.state.group import Group

LIST = Path(__file__).parents[1] / "golden" / "state" / "fields.txt"
PACKED: dict[tuple[str, str], Any] = {
    ("Slot", "raw"): Group,
    ("Slot", "memory"): GroupMemory,
    ("Header", "cluster_memory"): ClusterMemory,
    ("Group", "held_record"): list[Seen],
    ("Modern", "waiting"): list[Seen],
    ("RecentFailure", "packed"): list[Seen],
}
"""Fields of bytes that hold something packed, and what that is."""
FRAMES = (_Snapshot, _Frame, _Head, ChunkIndex)
"""What a shard's header and slots are wrapped in, by version."""
_ROOTS = (*FRAMES, *PACKED.values())
_ALTERNATIVES_MAX = 4
"""A union of more structs is told apart by tags; each of them has an entry of its own."""
_PLAIN = {
    inspect.AnyType: "any",
    inspect.NoneType: "None",
    inspect.BoolType: "bool",
    inspect.IntType: "int",
    inspect.FloatType: "float",
    inspect.StrType: "str",
    inspect.BytesType: "bytes",
    inspect.RawType: "raw",
}


class Field(NamedTuple):
    """One field: its name, its type in words, and its default ("" if it has none)."""

    name: str
    type: str
    default: str


class Entry(NamedTuple):
    """One struct (``how``: array or object, and its tag) or one enum, whose fields are its values."""

    how: str
    fields: tuple[Field, ...]


Entries = dict[str, Entry]


def collected() -> Entries:
    """Return all that can be in a saved shard today.

    Raises:
        ValueError: two of them have one name.
    """
    found: dict[str, type] = {}
    entries: Entries = {}
    for one in _walked():
        if found.setdefault(one.cls.__name__, one.cls) is not one.cls:
            raise ValueError(f"two saved classes are called {one.cls.__name__}: rename the newer one")
        entries[one.cls.__name__] = _entry(one)
    return dict(sorted(entries.items()))


def structs() -> Iterator[type[msgspec.Struct]]:
    """Yield every struct that can be in a saved shard."""
    return (one.cls for one in _walked() if isinstance(one, inspect.StructType))


def _walked() -> Iterator[inspect.StructType | inspect.EnumType]:
    waiting: list[inspect.Type] = list(inspect.multi_type_info(_ROOTS))
    known: set[type] = set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, inspect.StructType | inspect.EnumType):
            if one.cls in known:
                continue
            known.add(one.cls)
            yield one
        waiting += parts(one)


def parts(one: inspect.Type) -> list[inspect.Type]:
    """Return the types that a type is made of."""
    match one:
        case inspect.StructType():
            return [field.type for field in one.fields]
        case inspect.UnionType():
            return list(one.types)
        case inspect.DictType():
            return [one.key_type, one.value_type]
        case inspect.TupleType():
            return list(one.item_types)
        case inspect.CollectionType():
            return [one.item_type]
    return []


def _entry(one: inspect.StructType | inspect.EnumType) -> Entry:
    if isinstance(one, inspect.EnumType):
        kind = "int" if issubclass(one.cls, int) else "str"
        return Entry(f"enum of {kind}", tuple(Field(str(value.value), "", "") for value in one.cls))
    how = "array" if one.array_like else "object"
    tag = f", tag {one.tag}" if one.tag is not None else ""
    return Entry(how + tag, tuple(_field(field) for field in one.fields))


def _field(field: inspect.Field) -> Field:
    default = "" if field.required else _default(field)
    return Field(field.encode_name, _named(field.type), default)


def _default(field: inspect.Field) -> str:
    if field.default is not msgspec.NODEFAULT:
        return _default_value(field.default)
    factory = field.default_factory
    return f"{getattr(factory, '__name__', factory)}()"


def _default_value(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, msgspec.Raw):
        return f"raw({bytes(value)!r})"
    # Of a struct only that it is one without anything told: its own fields have their own entry.
    if isinstance(value, msgspec.Struct) and value == type(value)():
        return f"{type(value).__name__}()"
    return repr(value)


def _named(one: inspect.Type) -> str:
    """Return a type in words."""
    plain = _PLAIN.get(type(one))
    if plain is not None:
        return plain
    match one:
        case inspect.StructType() | inspect.EnumType():
            return one.cls.__name__
        case inspect.UnionType():
            return _named_union(one)
        case inspect.DictType():
            return f"dict[{_named(one.key_type)}, {_named(one.value_type)}]"
        case inspect.TupleType():
            return f"tuple[{', '.join(map(_named, one.item_types))}]"
        case inspect.VarTupleType():
            return f"tuple[{_named(one.item_type)}, ...]"
        case inspect.CollectionType():
            return f"{type(one).__name__.removesuffix('Type').lower()}[{_named(one.item_type)}]"
    raise TypeError(f"no words for {one}: add them here")


def _named_union(one: inspect.UnionType) -> str:
    tagged = [part for part in one.types if isinstance(part, inspect.StructType) and part.tag is not None]
    names = [_named(part) for part in one.types if part not in tagged or len(tagged) <= _ALTERNATIVES_MAX]
    if len(tagged) > _ALTERNATIVES_MAX:
        names.append("tagged")
    return " | ".join(sorted(names, key=lambda name: (name == "None", name)))


# --- the list --------------------------------------------------------------------------------------------

_HEAD = """\
# Every struct and enum in a saved shard, with its fields in order.  This list may only grow, at the end of
# an entry or by whole entries: `make state` does that, and refuses the rest.  See README.md.
"""


def written(entries: Entries) -> str:
    """Return the list as text."""
    blocks = [
        "\n".join([f"{name} ({entry.how})", *(f"  {_line(field)}" for field in entry.fields)])
        for name, entry in entries.items()
    ]
    return "\n\n".join([_HEAD, *blocks]) + "\n"


def _line(field: Field) -> str:
    of_type = f": {field.type}" if field.type else ""
    return f"{field.name}{of_type}" + (f" = {field.default}" if field.default else "")


def read(text: str) -> Entries:
    """Return the list in ``text``."""
    entries: Entries = {}
    name = how = ""
    fields: list[Field] = []
    for line in [*text.splitlines(), "end ("]:
        if not line or line.startswith("#"):
            continue
        if line.startswith("  "):
            told, _, default = line.strip().partition(" = ")
            field_name, _, of_type = told.partition(": ")
            fields.append(Field(field_name, of_type, default))
            continue
        if name:
            entries[name] = Entry(how, tuple(fields))
        name, _, how = line.partition(" (")
        how, fields = how.removesuffix(")"), []
    return entries


# --- growth ----------------------------------------------------------------------------------------------


def breaches(old: Entries, new: Entries) -> list[str]:
    """Return what makes ``new`` more than a continuation of ``old``, in sentences."""
    found = []
    for name, entry in old.items():
        if name not in new:
            found.append(f"{name} is gone: shards that hold one can no longer be read")
        elif entry.how != new[name].how:
            found.append(f"{name} was saved as {entry.how} and is now {new[name].how}")
        elif entry.how.startswith("enum"):
            gone = [one.name for one in entry.fields if one not in new[name].fields]
            found += [f"{name} no longer knows the value {value}" for value in gone]
        else:
            found += _breaches_of(name, entry.fields, new[name].fields)
    return found


def _breaches_of(name: str, old: tuple[Field, ...], new: tuple[Field, ...]) -> Iterator[str]:
    for index, field in enumerate(old):
        place = f"{name}: place {index}"
        if index >= len(new):
            yield f"{place} was {field.name} and is gone"
            return
        now = new[index]
        if now.name != field.name:
            yield f"{place} was {field.name} and is now {now.name}: fields are added at the end only"
            return
        if not set(field.type.split(" | ")) <= set(now.type.split(" | ")):
            yield f"{name}.{field.name} was {field.type} and is now {now.type}"
        if field.default and now.default != field.default:
            yield f"{name}.{field.name} had the default {field.default} and has {now.default or 'none'} now"
    for field in new[len(old) :]:
        if not field.default:
            yield f"{name}.{field.name} is new and has no default: older shards lack it"
