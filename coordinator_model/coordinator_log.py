"""Reads one line of the group coordinator's INFO log, of Kafka 4.x (Java) and 3.x (Scala).

Group ids, client ids, member ids and reasons are free text that may contain any of the coordinator's
own words.  So a sentence is matched over the whole message, and where it can be cut in two ways, the
group that belongs to the partition in the line's prefix wins, if the caller knows how many there are.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from coordinator_model import observations as on
from coordinator_model.coordinator_reasons import is_known_start, reason_of
from coordinator_model.coordinator_shapes import SHAPES, Shape
from coordinator_model.hashing import shard_of

LENGTH_MAX = 1 << 20
"""Characters; the longest honest line lists every member that was kicked, about 60 each."""

_PREFIX = re.compile(
    r"\[GroupCoordinator id=(?P<java>\d{1,10})(?: topic=\S+ partition=(?P<partition>\d{1,10}))?\] "
    r"|\[GroupCoordinator (?P<scala>\d{1,10})\]: "
    r"|\[GroupMetadataManager brokerId=(?P<manager>\d{1,10})\] "
)
_PREPARING = "Preparing to rebalance group "
_PREPARING_CUT = re.compile(
    r" in state \w+ with old generation (?P<n>-?\d{1,10}) "
    r"(?:\(__consumer_offsets-(?P<partition>\d{1,10})\) )?\(reason: "
)
_PREPARING_CUTS_MAX = 64
_UNPREFIXED = ("Group leader [member.id: ", "Loaded member MemberMetadata(")
"""3.x: what ``kafka.coordinator.group.GroupMetadata`` logs has no prefix."""
_TOO_BIG = 2**31


class Parsed(NamedTuple):
    """What one line says, and which offsets partition and broker it names."""

    observation: on.AnyObservation | None
    """None: not a line of the group coordinator."""
    partition: int | None
    broker: int | None


_NOT_OURS = Parsed(None, None, None)


def parse(message: str, *, shard_count: int | None = None) -> Parsed:
    """Return what a log message says about groups.

    Args:
        message: the message alone, without date, level and logger.
        shard_count: partitions of ``__consumer_offsets``, to tell a group from a text that imitates one.

    A coordinator line of no known shape gives ``LogNoted(kind="unrecognized")``; nothing raises.
    """
    prefix = _PREFIX.match(message)
    if prefix is None:
        return _body(message, None, None, shard_count) if message.startswith(_UNPREFIXED) else _NOT_OURS
    words = prefix.groupdict()
    broker = int(words["java"] or words["scala"] or words["manager"])
    partition = int(words["partition"]) if words["partition"] else None
    return _body(message[prefix.end() :], partition, broker, shard_count)


def _body(text: str, partition: int | None, broker: int | None, shard_count: int | None) -> Parsed:
    if len(text) > LENGTH_MAX:
        return Parsed(on.LogNoted(kind="too_long"), partition, broker)
    # A stack trace may follow an ERROR in one message; a group id with a line break is tried first.
    for candidate in (text, text.partition("\n")[0]):
        found = _sentence(candidate, partition, shard_count)
        if found:
            observation, told = found
            return Parsed(observation, partition if partition is not None else told, broker)
    return Parsed(on.LogNoted(kind="unrecognized"), partition, broker)


_Found = tuple[on.AnyObservation, int | None]


def _sentence(text: str, partition: int | None, shard_count: int | None) -> _Found | None:
    if text.startswith(_PREPARING):
        return _preparing(text, partition, shard_count)
    for shape in SHAPES:
        found = _fits(shape, text, partition, shard_count) if text.startswith(shape.start) else None
        if found:
            return _built(shape, found)
    return None


def _built(shape: Shape, found: re.Match[str]) -> _Found | None:
    words = found.groupdict()
    numbers = [int(words[name]) for name in ("n", "k", "partition") if words.get(name)]
    if any(not -_TOO_BIG <= number < _TOO_BIG for number in numbers):
        return None
    partition = words.get("partition")
    return shape.build(words), None if partition is None else int(partition)


def _fits(shape: Shape, text: str, partition: int | None, shard_count: int | None) -> re.Match[str] | None:
    """Return the match with the longest group, or with the shortest if only that one lives here."""
    longest = shape.greedy.fullmatch(text)
    group = longest.groupdict().get("g") if longest else None
    if group is None or _lives_here(group, partition, shard_count):
        return longest
    shortest = shape.lazy.fullmatch(text)
    if shortest and _lives_here(shortest["g"], partition, shard_count):
        return shortest
    return longest


def _lives_here(group: str, partition: int | None, shard_count: int | None) -> bool:
    """Say whether ``group`` can be in ``partition``; True where we cannot tell."""
    return not shard_count or partition is None or shard_of(group, shard_count) == partition


def _preparing(text: str, partition: int | None, shard_count: int | None) -> _Found | None:
    """Read "Preparing to rebalance": group and reason are both free text, with a middle to be found.

    Of several cuts, the best has its group in this partition and a reason that the coordinator
    knows; of equals the last, because a strange group id is likelier than a strange client reason.
    """
    end = len(text) - 2 if text.endswith(").") else len(text) - 1
    if not text.endswith((").", ")")):
        return None
    best: tuple[bool, bool, int] | None = None
    cut = None
    for candidate in _cuts(text):
        told = candidate["partition"]
        home = partition if told is None else int(told)
        group = text[len(_PREPARING) : candidate.start()]
        score = (
            _lives_here(group, home, shard_count),
            is_known_start(text[candidate.end() : end]),
            candidate.start(),
        )
        if best is None or score > best:
            best, cut = score, candidate
    return _started(text, cut, end) if cut else None


def _cuts(text: str) -> Iterator[re.Match[str]]:
    """Yield the places where the group may end: the first ones and the very last."""
    last = None
    for count, cut in enumerate(_PREPARING_CUT.finditer(text, len(_PREPARING))):
        last = cut
        if count < _PREPARING_CUTS_MAX:
            yield cut
    if last is not None:
        yield last


def _started(text: str, cut: re.Match[str], end: int) -> _Found | None:
    generation = int(cut["n"])
    if not -_TOO_BIG <= generation < _TOO_BIG:
        return None
    group = text[len(_PREPARING) : cut.start()]
    observation = on.RebalanceStarted(
        group=group, generation=generation, reason=reason_of(text[cut.end() : end])
    )
    return observation, None if cut["partition"] is None else int(cut["partition"])
