"""Bounds what others can make a shard store.

Anybody who may write to a topic, or commit an offset, can name brokers, groups, producers and topics that do
not exist.  Each collection that they can grow has a bound far above the size of real clusters.  Beyond it the
oldest entries are dropped, and counted as a divergence whose kind begins with ``too_many``. Brokers that the
driver has named are never dropped in favour of others.
"""

from typing import Final

from coordinator_model.observations import BROKERS_MAX, TOO_MANY_TOPICS, drop_oldest
from coordinator_model.shard.snapshot import Header
from coordinator_model.state import Group

ENDED_KEPT_MS = 7_200_000
"""For so long after a group is dropped, its lines are recognised as old."""

ENDED_MAX = 10_000
"""Limit of ended groups of one shard within that time; of more, the oldest are dropped."""


def remember_end(header: Header, group: Group, at_ms: int) -> None:
    """Store when a dropped group ended, for lines that come as late as shippers send them."""
    if group.ended_ms < 0:
        return
    known = header.ended_ms
    known.pop(group.group, None)
    known[group.group] = group.ended_ms
    oldest = next(iter(known))
    while len(known) > ENDED_MAX or known[oldest] < at_ms - ENDED_KEPT_MS:
        del known[oldest]
        if not known:
            return
        oldest = next(iter(known))


STRANGERS_MAX: Final = 20_000
"""Limit of groups that a broker described once and that the mirror does not have."""
GROUPS_MIN: Final = 20_000
GROUPS_MAX: Final = 400_000
"""Limit of groups of a whole cluster; each shard may keep its share, and ``GROUPS_MIN`` at least."""

NAME_LENGTH: Final = 256
"""Length of an ordinary name; a longer one counts as several groups."""

TOO_MANY_BROKERS = "too_many_brokers"
TOO_MANY_STRANGERS = "too_many_strangers"
TOO_MANY_GROUPS = "too_many_groups"
KINDS = (TOO_MANY_BROKERS, TOO_MANY_STRANGERS, TOO_MANY_GROUPS, TOO_MANY_TOPICS)


def brokers_told(header: Header) -> set[int]:
    """Return the brokers that the driver has named, and the one that leads the shard."""
    told = {header.coordinator, *header.retention_ms}
    for lane in header.order.events.values():
        told.update(lane.skew_ms)
    return told


def bound_brokers(header: Header) -> int:
    """Limit the brokers stored from lines; return how many were dropped."""
    lanes = list(header.order.events.values())
    sizes = (len(header.heard), len(header.lost), len(header.retention_ms))
    if max((*sizes, *(len(lane.spoken_ms) for lane in lanes))) <= BROKERS_MAX:
        return 0
    told = brokers_told(header)
    dropped = drop_oldest(header.heard, BROKERS_MAX, lambda heard: heard[-1] if heard else (-1, -1), told)
    dropped += drop_oldest(header.lost, BROKERS_MAX, int, told)
    dropped += drop_oldest(header.retention_ms, BROKERS_MAX, int)
    for lane in lanes:
        dropped += drop_oldest(lane.spoken_ms, BROKERS_MAX, int, told)
    return dropped


def weight(group: str) -> int:
    """Return how many ordinary groups a name counts as: Kafka allows names of 32,767 bytes."""
    return 1 + len(group) // NAME_LENGTH


def groups_max(shard_count: int) -> int:
    """Return how many groups each of so many shards keeps."""
    return max(GROUPS_MIN, GROUPS_MAX // max(1, shard_count))
