"""Reads one line of the group coordinator's INFO log, of Kafka 4.x (Java) and 3.x (Scala).

Group ids, client ids, member ids and reasons are free text that may contain any of the coordinator's
own words.  So a sentence is matched over the whole message, and where it can be cut in two ways, the
group that belongs to the partition in the line's prefix wins, if the caller knows how many there are.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from coordinator_model import observations as on
from coordinator_model.decoding.coordinator_reasons import is_known_start, reason_of
from coordinator_model.decoding.coordinator_shapes import Values, int32, shapes_for
from coordinator_model.decoding.templates import Reading, Template
from coordinator_model.kafka import shard_of, shards_of_prefixes
from coordinator_model.observations import int32_of

LENGTH_MAX = 1 << 20
"""Characters; the longest honest line lists every member that was kicked, about 60 each."""

_PREFIX = re.compile(
    r"\[GroupCoordinator id=(?P<java>\d++)(?: topic=\S++ partition=(?P<partition>\d++))?\] "
    r"|\[GroupCoordinator (?P<scala>\d++)\]: "
    r"|\[GroupMetadataManager brokerId=(?P<manager>\d++)\] ",
    re.ASCII,
)
_PREPARING = "Preparing to rebalance group "
_PREPARING_CUT = re.compile(
    r" in state \w++ with old generation (?P<n>-?\d++) "
    r"(?:\(__consumer_offsets-(?P<partition>\d++)\) )?\(reason: ",
    re.ASCII,
)
_PREPARING_CUTS_MAX = 64
_READINGS_MAX = 4
"""Limit of possible ends of a group's name that are tried, among those that fit the line's partition."""
_UNPREFIXED = ("Group leader [member.id: ", "Loaded member MemberMetadata(")
"""3.x: what ``kafka.coordinator.group.GroupMetadata`` logs has no prefix."""


class Parsed(NamedTuple):
    """The content of one line, and its offsets partition and broker."""

    observation: on.AnyObservation | None
    """None: not a line of the group coordinator."""
    partition: int | None
    broker: int | None


_NOT_OURS = Parsed(None, None, None)
_Found = tuple[on.AnyObservation, int | None]
"""The content of a sentence, and its partition."""


def parse_coordinator_line(message: str, *, shard_count: int | None = None) -> Parsed:
    """Return the content of a log message about groups, in time linear in its length.

    Args:
        message: the message alone, without date, level and logger.
        shard_count: partitions of ``__consumer_offsets``, to tell a group from a text that imitates one.

    A coordinator line of unknown shape gives ``LogNoted(kind="unrecognized")``.

    Raises:
        LogLineError: a number in it is out of range.
    """
    prefix = _PREFIX.match(message)
    if prefix is None:
        return _body(message, None, None, shard_count) if message.startswith(_UNPREFIXED) else _NOT_OURS
    java, told, scala, manager = prefix.groups()
    broker = int32(java or scala or manager)
    return _body(message[prefix.end() :], int32(told) if told else None, broker, shard_count)


def _body(text: str, partition: int | None, broker: int | None, shard_count: int | None) -> Parsed:
    if len(text) > LENGTH_MAX:
        return Parsed(on.LogNoted(kind="too_long"), partition, broker)
    found = _sentence(text, partition, shard_count)
    if found is None and "\n" in text:
        # A stack trace may follow an ERROR in one message; a group id with a line break is tried first.
        found = _sentence(text.partition("\n")[0], partition, shard_count)
    if found is None:
        return Parsed(on.LogNoted(kind="unrecognized"), partition, broker)
    observation, told = found
    return Parsed(observation, partition if partition is not None else told, broker)


def _sentence(text: str, partition: int | None, shard_count: int | None) -> _Found | None:
    if text.startswith(_PREPARING):
        return _preparing(text, partition, shard_count)
    for shape in shapes_for(text):
        reading = shape.template.read(text)
        if reading:
            words = _at_home(shape.template, text, reading, partition, shard_count)
            told = words.get("partition")
            return shape.build(words), None if told is None else int32(told)
    return None


def _at_home(
    template: Template, text: str, reading: Reading, partition: int | None, shard_count: int | None
) -> Values:
    """Return the reading with the longest group name, or one whose group fits the line's partition.

    Of the fitting ones the shortest is tried first: a text that imitates the sentence mostly comes after the
    group's name.
    """
    words = reading.words
    if partition is None or not shard_count or reading.group_at < 0:
        return words
    if shard_of(words["g"], shard_count) == partition:
        return words
    ends = template.group_ends(text, reading.group_at)
    shards = shards_of_prefixes(text, reading.group_at, ends, shard_count)
    at_home = [end for end, shard in zip(ends, shards, strict=True) if shard == partition]
    for end in [*at_home[:1], *at_home[:0:-1]][:_READINGS_MAX]:
        other = template.read(text, group_end=end)
        if other:
            return other.words
    return words


def _preparing(text: str, partition: int | None, shard_count: int | None) -> _Found | None:
    """Read "Preparing to rebalance": group and reason are free text, so their boundary must be found.

    Of several cuts, the best has its group in this partition and a reason that the coordinator knows; of
    equal cuts the last, because a strange group id is likelier than a strange client reason.
    """
    if not text.endswith((").", ")")):
        return None
    end = len(text) - 2 if text.endswith(").") else len(text) - 1
    cuts = [cut for cut in _cuts(text) if cut.end() <= end]
    if len(cuts) > 1:
        homes = _homes(text, cuts, partition, shard_count)
        scores = [
            (home, is_known_start(text, cut.end()), cut.start())
            for home, cut in zip(homes, cuts, strict=True)
        ]
        return _started(text, cuts[scores.index(max(scores))], end)
    return _started(text, cuts[0], end) if cuts else None


def _homes(
    text: str, cuts: Sequence[re.Match[str]], partition: int | None, shard_count: int | None
) -> list[bool]:
    """Return for each cut whether its group fits the line's partition; True where that is unknown."""
    if not shard_count:
        return [True] * len(cuts)
    shards = shards_of_prefixes(text, len(_PREPARING), [cut.start() for cut in cuts], shard_count)
    homes = [partition if cut["partition"] is None else int32_of(cut["partition"]) for cut in cuts]
    return [home is None or home == shard for home, shard in zip(homes, shards, strict=True)]


def _cuts(text: str) -> list[re.Match[str]]:
    """Return the places where the group may end: the first ones and the very last."""
    found = list(_PREPARING_CUT.finditer(text, len(_PREPARING)))
    return [*found[:_PREPARING_CUTS_MAX], *found[_PREPARING_CUTS_MAX:][-1:]]


def _started(text: str, cut: re.Match[str], end: int) -> _Found:
    observation = on.RebalanceStarted(
        group=text[len(_PREPARING) : cut.start()],
        generation=int32(cut["n"]),
        reason=reason_of(text[cut.end() : end]),
    )
    return observation, None if cut["partition"] is None else int32(cut["partition"])
