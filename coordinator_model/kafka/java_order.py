"""The order in which Java's ``HashMap`` iterates over strings.

The coordinator elects ``members.keySet().iterator().next()`` and lists members in that order, so the hashes
of member ids decide the leader.  Not mirrored: the trees into which Java turns buckets with eight or more
keys; their iteration order is the same.
"""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from coordinator_model.kafka.hashing import java_string_hash

V = TypeVar("V")
_CAPACITY_MIN = 16


def _spread(key: str) -> int:
    code = java_string_hash(key) & 0xFFFFFFFF
    return code ^ (code >> 16)


def _grown(size: int, capacity: int) -> int:
    while size > capacity * 3 // 4:
        capacity *= 2
    return capacity


class JavaMap(Generic[V]):
    """A dictionary with the iteration order of a ``HashMap``; its table grows and never shrinks."""

    def __init__(self) -> None:
        """Empty, with Java's default table."""
        self._values: dict[str, V] = {}
        self._capacity = _CAPACITY_MIN

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __getitem__(self, key: str) -> V:
        return self._values[key]

    def __setitem__(self, key: str, value: V) -> None:
        self._values[key] = value
        self._capacity = _grown(len(self._values), self._capacity)

    def get(self, key: str) -> V | None:
        """Return the value, or None."""
        return self._values.get(key)

    def pop(self, key: str) -> V | None:
        """Remove and return the value, or None."""
        return self._values.pop(key, None)

    def clear(self) -> None:
        """Remove everything; the table keeps its size."""
        self._values.clear()

    def keys(self) -> list[str]:
        """Return the keys, by bucket, and within a bucket in the order of insertion."""
        mask = self._capacity - 1
        return sorted(self._values, key=lambda key: _spread(key) & mask)

    def values(self) -> list[V]:
        """Return the values in the order of ``keys``."""
        return [self._values[key] for key in self.keys()]


def put_in_order(keys: Iterable[str]) -> list[str]:
    """Return ``keys`` in the order of a map into which they were put one by one."""
    order: JavaMap[None] = JavaMap()
    for key in keys:
        order[key] = None
    return order.keys()


def copied_order(keys: Iterable[str]) -> list[str]:
    """Return ``keys`` in the order of ``new HashSet<>(collection)``, which is sized at once."""
    unique = list(dict.fromkeys(keys))
    wanted = max(int(len(unique) / 0.75) + 1, _CAPACITY_MIN)
    mask = (1 << (wanted - 1).bit_length()) - 1
    return sorted(unique, key=lambda key: _spread(key) & mask)


def printed(keys: Iterable[str]) -> str:
    """Return a list as Java prints it."""
    return f"[{', '.join(keys)}]"
