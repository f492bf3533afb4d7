"""Which offsets partition, and so which shard, a group belongs to."""

from collections.abc import Iterable, Sequence
from operator import mul
from sys import byteorder

_INT_MIN = -(2**31)
_MASK = 0xFFFFFFFF


def java_string_hash(text: str) -> int:
    """Return Java's ``String.hashCode``: 32-bit, over UTF-16 code units (so emoji count twice)."""
    value = _extended(0, text)
    return value - 2**32 if value >= 2**31 else value


def shard_of(group: str, shard_count: int) -> int:
    """Return the partition of ``__consumer_offsets`` that holds ``group`` (Kafka: ``Utils.abs``)."""
    return shard_of_hash(hash_of(group), shard_count)


def shard_of_hash(value: int, shard_count: int) -> int:
    """Return the shard of a group with this hash (``hash_of``)."""
    signed = value - 2**32 if value >= 2**31 else value
    return (0 if signed == _INT_MIN else abs(signed)) % shard_count


def hash_of(group: str) -> int:
    """Return a hash for ``shard_of_hash``, for callers that try one group with many counts."""
    return _extended(0, group)


def shards_of_prefixes(text: str, start: int, ends: Iterable[int], shard_count: int) -> list[int]:
    """Return the shard of ``text[start:end]`` for each of the ascending ``ends``, in one pass."""
    shards: list[int] = []
    value, place = 0, start
    for end in ends:
        value, place = _extended(value, text[place:end]), end
        shards.append(shard_of_hash(value, shard_count))
    return shards


def shards_of_runs(pieces: Sequence[str], separator: str, shard_count: int) -> set[int]:
    """Return the shards of all neighbouring ``pieces`` joined by ``separator``, each piece read twice."""
    alone = [_extended(0, piece) for piece in pieces]
    joined = [separator + piece for piece in pieces]
    added = [(_extended(0, text), pow(31, _size(text), 2**32)) for text in joined]
    shards: set[int] = set()
    for start, value in enumerate(alone):
        shards.add(shard_of_hash(value, shard_count))
        for more, factor in added[start + 1 :]:
            value = (value * factor + more) & _MASK  # noqa: PLW2901 - the run grows
            shards.add(shard_of_hash(value, shard_count))
    return shards


_PIECE = 64
_POWERS = tuple(pow(31, power, 2**32) for power in reversed(range(_PIECE + 1)))
_NATIVE = "utf-16-le" if byteorder == "little" else "utf-16-be"


def _units(text: str) -> bytes | memoryview:
    """Return the UTF-16 code units of a text."""
    return text.encode() if text.isascii() else memoryview(text.encode(_NATIVE, "surrogatepass")).cast("H")


def _size(text: str) -> int:
    return len(_units(text))


def _extended(value: int, text: str) -> int:
    """Return the hash, as 32 bits without sign, of a text with hash ``value`` followed by ``text``."""
    units = _units(text)
    for start in range(0, len(units), _PIECE):  # mostly once
        piece = units[start : start + _PIECE]
        factors = _POWERS[-len(piece) - 1 :]
        value = (value * factors[0] + sum(map(mul, piece, factors[1:]))) & _MASK
    return value
