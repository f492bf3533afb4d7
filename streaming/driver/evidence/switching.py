"""Reads and sets the level of a broker's request logger (KIP-412), and finds groups' coordinators.

Kafka reports a logger's level, but not whether it is inherited; ``deciding.parent_level`` infers that from
the loggers above it.  A restart of the broker undoes everything.
"""

from collections.abc import Callable, Iterable
from typing import Any

from coordinator_model.kafka import NOT_AUTHORIZED, Error
from coordinator_model.shard import REQUEST_LOGGER
from streaming.driver.evidence.deciding import ROOT_LOGGER
from streaming.driver.probing import NotAllowedError
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import (
    Admin,
    ConfigResourceType,
    DescribeConfigsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
    admin_client,
)

NO_DESCRIBE = (
    "groupwatch may not read the brokers' log levels: grant its user DESCRIBE_CONFIGS on the cluster"
)
NO_ALTER = (
    f"the brokers do not let us change the level of {REQUEST_LOGGER}: give groupwatch's user ALTER_CONFIGS "
    "on the cluster, or switch clusters[].evidence off"
)
NO_GROUPS = "groupwatch may not look up groups' coordinators: grant its user DESCRIBE on groups"

_SET, _DELETE = 0, 1
_GROUP = 0


def _with_parents(logger: str) -> list[str]:
    parts = logger.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)] + [ROOT_LOGGER]


class Switch:
    """One cluster's request loggers; connects at first use, and again after a failure."""

    def __init__(
        self, address: KafkaAddress, connect: Callable[[KafkaAddress], Admin] = admin_client
    ) -> None:
        self._address = address
        self._connect = connect
        self._admin: Admin | None = None

    def coordinators(self, groups: Iterable[str]) -> dict[str, int]:
        """Return group -> coordinator, without groups whose coordinator is unknown at present.

        Raises:
            NotAllowedError: we may not ask; the message names the missing permission.
            kafka.errors.KafkaError: no broker answers.
        """
        found = {}
        for group in groups:
            # Version 3 asks for one group at a time; every broker since Kafka 2.4 knows it.
            told = self._send(FindCoordinatorRequest(key=group, key_type=_GROUP, max_version=3), None)
            if told.error_code in NOT_AUTHORIZED:
                raise NotAllowedError(NO_GROUPS)
            if told.error_code == Error.NONE:
                found[group] = told.node_id
        return found

    def brokers(self) -> frozenset[int]:
        """Return the brokers in the cluster.

        Raises:
            kafka.errors.KafkaError: no broker answers.
        """
        told = self._send(MetadataRequest(topics=[], allow_auto_topic_creation=False), None)
        return frozenset(broker.node_id for broker in told.brokers)

    def levels(self, broker: int) -> dict[str, str]:
        """Return the levels of the request logger and of its existing ancestors.

        Raises:
            NotAllowedError: we lack DESCRIBE_CONFIGS.
            OSError: the broker refuses for another reason.
            kafka.errors.KafkaError: it does not answer.
        """
        resource = (ConfigResourceType.BROKER_LOGGER.value, str(broker), _with_parents(REQUEST_LOGGER))
        (told,) = self._send(DescribeConfigsRequest(resources=[resource]), broker).results
        _fail_on(told, NO_DESCRIBE)
        return {one.name: one.value for one in told.configs if one.value}

    def set(self, broker: int, level: str) -> None:
        """Set the level of a broker's request logger; raises like ``levels``."""
        self._alter(broker, _SET, level)

    def unset(self, broker: int) -> None:
        """Let a broker's request logger inherit its level; raises like ``levels``."""
        self._alter(broker, _DELETE, None)

    def close(self) -> None:
        """Close the connections."""
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()

    def _alter(self, broker: int, operation: int, level: str | None) -> None:
        resource = (
            ConfigResourceType.BROKER_LOGGER.value,
            str(broker),
            [(REQUEST_LOGGER, operation, level)],
        )
        # The request goes to the broker itself: the level is its own, and no controller knows it.
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        (told,) = self._send(request, broker).responses
        _fail_on(told, NO_ALTER)

    def _send(self, request: Any, broker: int | None) -> Any:
        if self._admin is None:
            self._admin = self._connect(self._address)
        return self._admin.ask(request, broker)


def _fail_on(told: Any, not_allowed: str) -> None:
    if told.error_code in NOT_AUTHORIZED:
        raise NotAllowedError(not_allowed)
    if told.error_code != Error.NONE:
        raise OSError(f"error {told.error_code}: {told.error_message}")
