"""Packs answers into control records of bounded size."""

from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec

from streaming.control import GroupAnswer

RECORD_BYTES_MAX = 200_000
"""Far below a topic's default limit of a megabyte."""


Later = Callable[[str, bytes, Collection[int]], None]
"""Takes a topic, a record that can wait for the next clock, and the shards that it is for."""


def slim(answer: GroupAnswer) -> GroupAnswer:
    """Return an answer that fits into a record: without assignments or members if necessary."""
    if _size(answer) <= RECORD_BYTES_MAX:
        return answer
    bare = tuple(msgspec.structs.replace(m, topics=None, assigned=None) for m in answer.members or ())
    answer = msgspec.structs.replace(answer, members=bare)
    return answer if _size(answer) <= RECORD_BYTES_MAX else msgspec.structs.replace(answer, members=None)


def packed(answers: Iterable[GroupAnswer], shard_of: Callable[[str], int]) -> Iterator[list[GroupAnswer]]:
    """Yield the answers in lists of bounded size, with those of one shard together."""
    pack: list[GroupAnswer] = []
    size = 0
    for answer in sorted(answers, key=lambda one: (shard_of(one.group), one.group)):
        one = slim(answer)
        more = _size(one)
        if pack and size + more > RECORD_BYTES_MAX:
            yield pack
            pack, size = [], 0
        pack.append(one)
        size += more
    if pack:
        yield pack


def _size(answer: GroupAnswer) -> int:
    return len(msgspec.json.encode(answer))
