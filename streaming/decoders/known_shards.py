"""The shard of a group, remembered: each member names its group, and a hash reads the name unit by unit."""

from functools import lru_cache

from coordinator_model.kafka import shard_of

known_shard = lru_cache(maxsize=65_536)(shard_of)
"""Group, number of shards -> shard."""
