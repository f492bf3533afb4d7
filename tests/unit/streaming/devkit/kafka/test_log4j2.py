"""Brokers ship the right lines and are never held up by it; what deploy/ shows is the same."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from streaming.devkit.kafka.log4j1 import log4j1_properties
from streaming.devkit.kafka.log4j2 import (
    COORDINATOR_LOGGERS,
    GROUP_APIS,
    Logging,
    log4j2_yaml,
    request_filter,
)
from streaming.devkit.kafka.shipping import is_ours

DEPLOY = Path(__file__).parents[5] / "deploy" / "log4j2"


def _configuration(*, request_log: bool = True, coordinator_log: bool = True) -> dict[str, Any]:
    text = log4j2_yaml(
        Logging(
            broker_id=2,
            folder=Path("/logs"),
            bootstrap_servers="127.0.0.1:1",
            events_topic="events",
            request_log=request_log,
            coordinator_log=coordinator_log,
        )
    )
    found: dict[str, Any] = yaml.safe_load(text)["Configuration"]
    return found


def _log4j1(*, request_log: bool = True) -> str:
    return log4j1_properties(
        Logging(
            broker_id=2,
            folder=Path("/logs"),
            bootstrap_servers="127.0.0.1:1",
            events_topic="events",
            request_log=request_log,
            coordinator_log=True,
        )
    )


def _logger(configuration: dict[str, Any], name: str) -> dict[str, Any]:
    return next(logger for logger in configuration["Loggers"]["Logger"] if logger["name"] == name)


def _line(api: str) -> str:
    header = f'"requestHeader":{{"requestApiKey":1,"clientId":"c","requestApiKeyName":"{api}"}}'
    return f'Completed request:{{"isForwarded":false,{header},"request":{{}}}}'


@pytest.mark.parametrize("api", GROUP_APIS)
def test_requests_about_groups_pass_the_filter(api: str) -> None:
    """Every API that the monitor reads is shipped."""
    assert re.fullmatch(request_filter(), _line(api))


@pytest.mark.parametrize("api", ["FETCH", "PRODUCE", "METADATA", "FIND_COORDINATOR", "BROKER_HEARTBEAT"])
def test_other_requests_do_not(api: str) -> None:
    """What would be hundreds of times as much stays in the broker."""
    assert not re.fullmatch(request_filter(), _line(api))


def test_nothing_here_may_hold_up_a_broker() -> None:
    """Sends are asynchronous, short of patience, and what does not fit is dropped."""
    appenders = _configuration()["Appenders"]
    properties = {one["name"]: one["value"] for one in appenders["Kafka"]["Property"]}

    assert appenders["Kafka"]["syncSend"] == "false"
    assert int(properties["max.block.ms"]) <= 200
    assert {one["blocking"] for one in appenders["Async"]} == {"false"}


def test_the_file_has_no_yaml_aliases() -> None:
    """log4j2 reads none, and a broker with a layout that it cannot read does not start."""
    logging = Logging(
        broker_id=2,
        folder=Path("/logs"),
        bootstrap_servers="127.0.0.1:1",
        events_topic="events",
        request_log=True,
        coordinator_log=True,
    )
    assert not re.search(r"[&*]id\d+", log4j2_yaml(logging))


def test_a_broker_signs_with_its_id() -> None:
    """The record's key says who speaks."""
    assert _configuration()["Appenders"]["Kafka"]["key"] == "2"


def test_without_the_request_log_it_can_still_be_switched_on() -> None:
    """Kafka changes levels at run time, but no appenders."""
    logger = _logger(_configuration(request_log=False), "kafka.request.logger")

    assert logger["level"] == "WARN"
    assert {"ref": "RequestsToKafka"} in logger["AppenderRef"]


def test_without_the_coordinator_log_its_lines_stay_in_the_file() -> None:
    """They fall to the root logger, which ships nothing."""
    configuration = _configuration(coordinator_log=False)

    assert not {one["name"] for one in configuration["Loggers"]["Logger"]} & set(COORDINATOR_LOGGERS)
    assert configuration["Loggers"]["Root"]["AppenderRef"] == [{"ref": "ServerLog"}]


@pytest.mark.parametrize("name", ["log4j2-to-kafka.yaml", "log4j2-to-file.yaml"])
def test_operators_get_the_same_filter(name: str) -> None:
    """What was tested here is what is copied from deploy/."""
    configuration = yaml.safe_load((DEPLOY / name).read_text())["Configuration"]

    assert _logger(configuration, "kafka.request.logger")["RegexFilter"]["regex"] == request_filter()


def test_operators_get_the_same_appender() -> None:
    """Settings of the producer inside the broker are those that were tried."""
    whole = yaml.safe_load((DEPLOY / "log4j2-to-kafka.yaml").read_text())["Configuration"]
    theirs = whole["Appenders"]["Kafka"]
    (pattern,) = (one["value"] for one in whole["Properties"]["Property"] if one["name"] == "pattern")
    ours = _configuration()["Appenders"]["Kafka"]
    own = {"bootstrap.servers", "client.id"}

    def settings(appender: dict[str, Any]) -> dict[str, str]:
        return {one["name"]: one["value"] for one in appender["Property"] if one["name"] not in own}

    assert settings(theirs) == settings(ours)
    assert theirs["PatternLayout"]["pattern"] == "${pattern}"
    assert {**theirs["PatternLayout"], "pattern": pattern} == ours["PatternLayout"]


@pytest.mark.parametrize("text", [_log4j1(), (DEPLOY / "log4j-kafka3-to-file.properties").read_text()])
def test_kafka_3_filters_the_same_requests(text: str) -> None:
    """The log4j 1 file names each API that a Kafka 3 broker has, and refuses the rest last."""
    kept = set(re.findall(r'StringToMatch="requestApiKeyName":"(\w+)"', text))
    filters = re.findall(r"filter\.(\d+)=(\S+)", text)

    assert kept == set(GROUP_APIS) - {"SHARE_GROUP_HEARTBEAT", "STREAMS_GROUP_HEARTBEAT"}
    assert max(filters)[1] == "org.apache.log4j.varia.DenyAllFilter"


@pytest.mark.parametrize(("request_log", "level"), [(True, "DEBUG"), (False, "WARN")])
def test_kafka_3_keeps_the_request_log_attached(request_log: bool, level: str) -> None:
    """The level is all that can be changed at run time."""
    assert f"log4j.logger.kafka.request.logger={level}, requestLog\n" in _log4j1(request_log=request_log)


SCALA = (
    "INFO [GroupCoordinator 1]: Stabilized group g generation 1 (__consumer_offsets-3) with 1 members "
    "(kafka.coordinator.group.GroupCoordinator)",
    "INFO [GroupMetadataManager brokerId=1] Loading group metadata for g with generation 3 "
    "(kafka.coordinator.group.GroupMetadataManager)",
    "INFO Group leader [member.id: a, group.instance.id: None] failed to join before rebalance timeout, "
    "while new leader b was elected. (kafka.coordinator.group.GroupMetadata)",
    f"DEBUG {_line('JOIN_GROUP')} (kafka.request.logger)",
)


@pytest.mark.parametrize("line", SCALA)
def test_every_line_about_groups_is_shipped(line: str) -> None:
    """Also those of the Scala coordinator that have another prefix, or none."""
    assert is_ours(line)


def test_operators_shippers_look_for_the_same_marks() -> None:
    """A line without the usual prefix passes there as well, by the name of its logger."""
    vector, fluent = (
        (DEPLOY.parent / "shippers" / f"{name}.yaml").read_text() for name in ("vector", "fluent-bit")
    )

    assert 'contains(line, "(kafka.coordinator.group.")' in vector
    assert r"- log \(kafka\.coordinator\.group\." in fluent


def test_everything_that_ships_lines_compresses_them() -> None:
    """Each shipper by the name that its own options have for it."""
    appender = _configuration()["Appenders"]["Kafka"]["Property"]
    vector, fluent = (
        yaml.safe_load((DEPLOY.parent / "shippers" / f"{name}.yaml").read_text())
        for name in ("vector", "fluent-bit")
    )

    assert {"name": "compression.type", "value": "gzip"} in appender
    assert vector["sinks"]["groupwatch"]["compression"] == "lz4"
    assert fluent["pipeline"]["outputs"][0]["rdkafka.compression.codec"] == "lz4"


def test_the_rest_of_the_brokers_log_is_not() -> None:
    """Nothing else leaves the host."""
    assert not is_ours("INFO [KafkaServer id=1] started (kafka.server.KafkaServer)")


@pytest.mark.parametrize("name", ["log4j2-to-kafka.yaml", "log4j2-to-file.yaml"])
def test_no_name_can_begin_a_line(name: str) -> None:
    """Every layout that we ship encodes line breaks, of messages and of exceptions, and says that it does."""
    text = re.sub(r"\n *#.*", "", (DEPLOY / name).read_text())
    layouts = re.findall(r"PatternLayout:\n +pattern: (.*)\n +(\w+): (\w+)", text)
    embedded = _configuration()["Appenders"]["Kafka"]["PatternLayout"]["pattern"]

    assert set(layouts) == {('"${pattern}"', "alwaysWriteExceptions", "false")}
    assert len(layouts) == text.count("PatternLayout:")
    for pattern in (embedded, *re.findall(r'value: "(\[%d.*)"', text)):
        assert "%enc{%m}{CRLF} (%c) [CRLF]%n" in pattern
        assert "%enc{%xEx}{CRLF}" in pattern
