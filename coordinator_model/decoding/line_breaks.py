r"""Restores line breaks that a layout has encoded.

A line break in a client's or a group's name makes several lines of one where logs are shipped line by line,
and the client controls the later ones.  So the layouts in ``deploy/log4j2`` write the message as log4j2's
``%enc{%m}{CRLF}`` does: ``\r`` and ``\n``, two characters each, in place of the control characters, and end
with a mark that says so.  log4j2 does not escape a backslash in the text: a name that contains ``\n`` as two
characters looks the same.  Where a line names a group and its partition of the offsets topic, Kafka's own
formula decides between the two; elsewhere the mark decides.
"""

import re
from typing import Final

from coordinator_model.decoding import coordinator_log
from coordinator_model.decoding.coordinator_log import Parsed
from coordinator_model.kafka import shard_of

_ENCODED: Final = re.compile(r"\\([rn])")
_BREAKS: Final = {"r": "\r", "n": "\n"}


def restored(message: str) -> str:
    """Return a message with its line breaks as they were."""
    return _ENCODED.sub(lambda found: _BREAKS[found[1]], message)


def parse_broken_line(message: str, *, breaks_encoded: bool, shard_count: int) -> Parsed:
    """Return what a coordinator's message says, its line breaks undone if they were encoded.

    Args:
        message: the message alone.
        breaks_encoded: the layout says that it encodes them.
        shard_count: partitions of the offsets topic.
    """
    as_written = coordinator_log.parse_coordinator_line(message, shard_count=shard_count)
    if not _ENCODED.search(message):
        return as_written
    undone = coordinator_log.parse_coordinator_line(restored(message), shard_count=shard_count)
    first, second = (undone, as_written) if breaks_encoded else (as_written, undone)
    is_second = _lives_at_home(first, shard_count) is False and _lives_at_home(second, shard_count)
    return second if is_second else first


def _lives_at_home(parsed: Parsed, shard_count: int) -> bool | None:
    """Return whether the group fits the partition in the line; None if the line names no partition."""
    group = getattr(parsed.observation, "group", None)
    if not isinstance(group, str) or parsed.partition is None:
        return None
    return shard_of(group, shard_count) == parsed.partition
