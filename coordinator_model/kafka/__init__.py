"""Facts of Kafka that need no mirror: states and their moves, kinds of cause, timeouts, hashing."""

from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.errors import NOT_AUTHORIZED, NOT_IN_CHARGE, Error
from coordinator_model.kafka.hashing import (
    hash_of,
    java_string_hash,
    shard_of,
    shard_of_hash,
    shards_of_prefixes,
    shards_of_runs,
)
from coordinator_model.kafka.java_order import put_in_order
from coordinator_model.kafka.states import MOVES, SETTLED, WITHOUT_MEMBERS, GroupState
from coordinator_model.kafka.timeouts import WRITE_TIMEOUT_MS

__all__ = [
    "MOVES",
    "NOT_AUTHORIZED",
    "NOT_IN_CHARGE",
    "SETTLED",
    "WITHOUT_MEMBERS",
    "WRITE_TIMEOUT_MS",
    "CauseKind",
    "Error",
    "GroupState",
    "hash_of",
    "java_string_hash",
    "put_in_order",
    "shard_of",
    "shard_of_hash",
    "shards_of_prefixes",
    "shards_of_runs",
]
