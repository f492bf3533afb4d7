"""The topics groupwatch needs: existing, created as documented, or refused with a sentence.

| topic | partitions | retention | why |
|---|---|---|---|
| events | one for each broker, 4 to 32 | 1 day | keyed by broker: more than brokers help nobody |
| control | 1 | 1 day | one order for all clock records |
| transitions | 6 | 7 days | keyed by group |
| alerts | 1 | compacted | read whole at each start; one order over all alerts |
| silences | 1 | compacted | the same; a job watches without it, too |

Events, control and alerts use ``LogAppendTime``: it shows the clock how far each broker's clock is from ours,
and nobody can backdate an alert's end.  Topics created by others are used unchanged; ``faults`` reports a
setup that is not as it should be, and what that costs.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streaming.config import ClusterPlan
from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import (
    ClusterAuthorizationFailedError,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    KafkaError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    admin_client,
)

_DAY_MS = 86_400_000
_REPLICAS_MAX = 3

_log = logging.getLogger(__name__)


class TopicsRefusedError(RuntimeError):
    """A topic is missing and could not be created; the message says what to do."""


@dataclass(frozen=True)
class TopicSpec:
    """How a missing topic is created."""

    name: str
    partitions: int
    configs: Mapping[str, str]


def specs(plan: ClusterPlan, brokers: int) -> tuple[list[TopicSpec], list[TopicSpec]]:
    """Return the topics needed on the watched cluster, and those needed on the output cluster."""
    inputs = []
    if plan.events_topic is not None:
        partitions = min(max(brokers, 4), 32)
        inputs.append(TopicSpec(plan.events_topic, partitions, _appended(_DAY_MS)))
    outputs = [
        TopicSpec(plan.control_topic, 1, _appended(_DAY_MS)),
        TopicSpec(plan.transitions_topic, 6, {"retention.ms": str(7 * _DAY_MS)}),
        TopicSpec(
            plan.alerts_topic, 1, {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"}
        ),
    ]
    return inputs, outputs


def ensure_topics(plan: ClusterPlan) -> None:
    """Create the missing topics of ``plan``.

    Raises:
        TopicsRefusedError: the cluster does not let us, or has too few brokers.
        kafka.errors.KafkaError: the cluster does not answer.
    """
    admin = admin_client(plan.kafka)
    try:
        inputs, outputs = specs(plan, _broker_count(admin))
        create_missing(admin, plan.kafka, inputs if plan.has_own_output else inputs + outputs)
        if not plan.has_own_output:
            _ensure_silences(admin, plan)
    finally:
        admin.close()
    if plan.has_own_output:
        admin = admin_client(plan.output)
        try:
            create_missing(admin, plan.output, outputs)
            _ensure_silences(admin, plan)
        finally:
            admin.close()


def _ensure_silences(admin: KafkaAdminClient, plan: ClusterPlan) -> None:
    """Create the topic of the silences, without which only nobody can add any."""
    spec = TopicSpec(plan.silences_topic, 1, {"cleanup.policy": "compact"})
    try:
        create_missing(admin, plan.output, [spec])
    except TopicsRefusedError as error:
        _log.warning("%s: no silences can be added at run time: %s", plan.cluster, error)


_TIMES, _CLEANUP = "message.timestamp.type", "cleanup.policy"


def look_at_topics(plan: ClusterPlan) -> dict[str, str]:
    """Return topic -> what is wrong with its setup, in a sentence; "" if nothing is.

    Raises:
        kafka.errors.KafkaError: the cluster does not answer, or does not let us ask.
    """
    admin = admin_client(plan.kafka)
    try:
        of_inputs = [plan.events_topic] if plan.events_topic else []
        of_outputs = [plan.control_topic, plan.transitions_topic, plan.alerts_topic, plan.silences_topic]
        found = faults(admin, plan, of_inputs if plan.has_own_output else of_inputs + of_outputs)
    finally:
        admin.close()
    if plan.has_own_output:
        admin = admin_client(plan.output)
        try:
            found |= faults(admin, plan, of_outputs)
        finally:
            admin.close()
    return found


def faults(admin: KafkaAdminClient, plan: ClusterPlan, names: list[str]) -> dict[str, str]:
    """Return the same for ``names``, all on the cluster of ``admin``."""
    if plan.silences_topic in names and plan.silences_topic not in admin.list_topics():
        names = [name for name in names if name != plan.silences_topic]
    wanted = {_TIMES: None, _CLEANUP: None}
    asked = [ConfigResource(ConfigResourceType.TOPIC, name, wanted) for name in names]
    told = admin.describe_configs(asked, config_filter="all").get("topic", {})
    partitions = {one["name"]: len(one["partitions"]) for one in admin.describe_topics(names)}
    return {
        name: " ".join(_faults_of(name, plan, told.get(name, {}), partitions.get(name, 0))) for name in names
    }


def _faults_of(name: str, plan: ClusterPlan, told: Mapping[str, Any], partitions: int) -> Iterator[str]:
    times, cleanup = (str(told.get(key, {}).get("value") or "") for key in (_TIMES, _CLEANUP))
    is_ours = name in (plan.events_topic, plan.control_topic)
    if is_ours and times == "CreateTime":
        yield (
            f"{name} has message.timestamp.type=CreateTime: its records carry the times of whoever writes "
            "them, so brokers' clocks are not measured, and times are bounded by the driver's clock only. "
            "Set it to LogAppendTime."
        )
    if is_ours and "compact" in cleanup:
        lost = "all but the newest lines of each broker" if name == plan.events_topic else "clock records"
        yield f"{name} has cleanup.policy={cleanup}: compaction takes away {lost}. Set it to delete."
    if name == plan.alerts_topic and cleanup and "compact" not in cleanup:
        yield (
            f"{name} has cleanup.policy={cleanup}: alerts that stay open for longer than its retention are "
            "forgotten by the next start, which tells them anew. Set it to compact."
        )
    if name == plan.silences_topic and cleanup and "compact" not in cleanup:
        yield (
            f"{name} has cleanup.policy={cleanup}: silences that last longer than its retention are "
            "forgotten by the next start. Set it to compact."
        )
    if name == plan.alerts_topic and times == "CreateTime":
        yield (
            f"{name} has message.timestamp.type=CreateTime: its records carry the times of whoever writes "
            "them, so an alert that is over leaves it a week after this process has read its end, and never "
            "where restarts are more frequent. Set it to LogAppendTime."
        )
    if name in (plan.control_topic, plan.alerts_topic) and partitions > 1:
        yield f"{name} has {partitions} partitions where one is needed: only partition 0 is used."


def _appended(retention_ms: int) -> dict[str, str]:
    return {"retention.ms": str(retention_ms), "message.timestamp.type": "LogAppendTime"}


def _broker_count(admin: KafkaAdminClient) -> int:
    return len(admin.describe_cluster()["brokers"])


def create_missing(admin: KafkaAdminClient, address: KafkaAddress, wanted: list[TopicSpec]) -> None:
    """Create the ``wanted`` topics that a cluster does not have.

    Raises:
        TopicsRefusedError: it does not let us, or has too few brokers.
    """
    present = set(admin.list_topics())
    missing = {
        spec.name: _as_request(spec, _broker_count(admin)) for spec in wanted if spec.name not in present
    }
    if not missing:
        return
    _log.info("creating topics %s", ", ".join(missing))
    try:
        admin.create_topics(missing)
        admin.wait_for_topics(list(missing))
    except TopicAlreadyExistsError:
        admin.wait_for_topics(list(missing))  # another groupwatch was quicker
    except (TopicAuthorizationFailedError, ClusterAuthorizationFailedError) as error:
        raise TopicsRefusedError(_not_allowed(address, missing)) from error
    except KafkaError as error:
        raise TopicsRefusedError(
            f"cannot create {', '.join(missing)} on {','.join(address.bootstrap_servers)}: {error}"
        ) from error


def _as_request(spec: TopicSpec, brokers: int) -> dict[str, Any]:
    return {
        "num_partitions": spec.partitions,
        "replication_factor": max(1, min(_REPLICAS_MAX, brokers)),
        "configs": dict(spec.configs),
    }


def _not_allowed(address: KafkaAddress, missing: Mapping[str, Mapping[str, Any]]) -> str:
    commands = "; ".join(
        f"{name} with {request['num_partitions']} partitions and "
        + ", ".join(f"{key}={value}" for key, value in request["configs"].items())
        for name, request in missing.items()
    )
    return (
        f"not allowed to create topics on {','.join(address.bootstrap_servers)}: grant CREATE and DESCRIBE "
        f"on topics with the prefix 'groupwatch-', or create them yourself: {commands}"
    )
