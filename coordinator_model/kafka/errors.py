"""Kafka's error codes that the mirror, its rules and its probes distinguish; only here they are numbers.

Source: ``org.apache.kafka.common.protocol.Errors`` of Apache Kafka 4.3.1; names and numbers are Kafka's.
"""

from enum import IntEnum


class Error(IntEnum):
    """A broker's answer, by Kafka's number."""

    NONE = 0
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    """From a group's coordinator: its partition had too few replicas, or a write was not replicated in time.

    No member's silence proves anything then: heartbeats are answered, and logged, once older writes are
    replicated.  That lasts until a dead replica is removed (``broker.session.timeout.ms``, 9 s). Sources:
    ``CoordinatorOperationExceptionHelper`` (which errors of the log become this one), ``CoordinatorRuntime``
    (a write without records waits for those before it); measured on 4.3.1.
    """
    NOT_COORDINATOR = 16
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    STALE_MEMBER_EPOCH = 113


NOT_IN_CHARGE = frozenset(
    {Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR}
)
"""Answers of a broker that does not coordinate the group (yet); they prove nothing about the group."""
NOT_AUTHORIZED = frozenset(
    {Error.TOPIC_AUTHORIZATION_FAILED, Error.GROUP_AUTHORIZATION_FAILED, Error.CLUSTER_AUTHORIZATION_FAILED}
)
