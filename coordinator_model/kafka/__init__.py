"""Facts of Kafka that need no mirror: states and their transitions, kinds of cause, timeouts, hashing."""

from coordinator_model.kafka.cause_kinds import (
    DEPARTURES,
    MAY_FOLLOW_FAILOVER,
    MAYBE_LEAVES,
    RAISE_EPOCH,
    REJOINS,
    REMOVALS,
    TIMEOUTS,
    CauseKind,
)
from coordinator_model.kafka.client_reasons import (
    NOT_PROVIDED,
    POLL_TIMEOUT_REASON,
    follows_others,
    how_it_left,
    why_it_joined,
)
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
from coordinator_model.kafka.timeouts import (
    MAX_POLL_INTERVAL_MS,
    MODERN_INTERVAL_MS,
    NEW_MEMBER_MS,
    RETENTION_CHECK_MS,
    RETENTION_MIN_MS,
    RETENTION_MS,
    WRITE_TIMEOUT_MS,
)

__all__ = [
    "DEPARTURES",
    "MAX_POLL_INTERVAL_MS",
    "MAYBE_LEAVES",
    "MAY_FOLLOW_FAILOVER",
    "MODERN_INTERVAL_MS",
    "MOVES",
    "NEW_MEMBER_MS",
    "NOT_AUTHORIZED",
    "NOT_IN_CHARGE",
    "NOT_PROVIDED",
    "POLL_TIMEOUT_REASON",
    "RAISE_EPOCH",
    "REJOINS",
    "REMOVALS",
    "RETENTION_CHECK_MS",
    "RETENTION_MIN_MS",
    "RETENTION_MS",
    "SETTLED",
    "TIMEOUTS",
    "WITHOUT_MEMBERS",
    "WRITE_TIMEOUT_MS",
    "CauseKind",
    "Error",
    "GroupState",
    "follows_others",
    "hash_of",
    "how_it_left",
    "java_string_hash",
    "put_in_order",
    "shard_of",
    "shard_of_hash",
    "shards_of_prefixes",
    "shards_of_runs",
    "why_it_joined",
]
