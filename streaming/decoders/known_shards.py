"""The shard of a group, remembered: each member names its group, and a hash reads the name unit by unit.

A client may name a group in 32,767 characters, so long names are not kept: they would cost gigabytes.
"""

from functools import lru_cache

from coordinator_model.kafka import shard_of

_KEPT_MAX = 256
_kept = lru_cache(maxsize=65_536)(shard_of)


def known_shard(group: str, shards: int) -> int:
    """Return the shard of a group among so many."""
    return _kept(group, shards) if len(group) <= _KEPT_MAX else shard_of(group, shards)
