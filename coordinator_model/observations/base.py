"""What every observation is: about one group, or about more than one."""

from enum import IntEnum

import msgspec


class Source(IntEnum):
    """Where an observation was seen.

    The number is its rank among observations of one millisecond: the coordinator logs before it
    appends, and appends before it answers.
    """

    COORDINATOR_LOG = 0
    OFFSETS = 1
    REQUEST_LOG = 2
    CONTROL = 3


CLUSTER_SHARD = -1
"""The shard of what concerns the whole cluster (source loss, decode counts, coordinator moves)."""


class Observation(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """Base of everything that can be seen."""


class GroupObservation(Observation, frozen=True, array_like=True, kw_only=True):
    """An observation about one group."""

    group: str
