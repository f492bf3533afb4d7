"""The base of all observations: about one group, or about more than one."""

from enum import IntEnum

import msgspec


class Source(IntEnum):
    """Where an observation comes from.

    The number is its rank among observations of one millisecond: the coordinator logs before it appends, and
    appends before it answers.
    """

    COORDINATOR_LOG = 0
    OFFSETS = 1
    REQUEST_LOG = 2
    CONTROL = 3


CLUSTER_SHARD = -1
"""The shard of the whole cluster (source loss, decode counts, failovers)."""


class Observation(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """Base of all observations."""


class GroupObservation(Observation, frozen=True, array_like=True, kw_only=True):
    """An observation about one group."""

    group: str
