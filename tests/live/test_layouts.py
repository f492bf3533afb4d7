"""A real broker writes the same rebalances in the layouts that people have; each tells the same story."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka import KafkaConsumer

from alerts.alert.alert import Alert
from coordinator_model.state.group import Transition
from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.devkit.kafka.log4j2 import COORDINATOR_LOGGERS, Logging
from streaming.replay.files import Skipped
from streaming.replay.run import replay
from tests.live.support.stage import PATIENCE_S

pytestmark = pytest.mark.kafka

LAYOUTS: dict[str, dict[str, Any]] = {
    "kafka": {"PatternLayout": {"pattern": "[%d] %p %m (%c)%n"}},
    "strimzi": {"PatternLayout": {"pattern": "%d{yyyy-MM-dd HH:mm:ss} %-5p [%t] %c{1}:%L - %m%n"}},
    "strimzi-before-log4j2": {"PatternLayout": {"pattern": "%d %p %m (%c) [%t]%n"}},
    "confluent": {"PatternLayout": {"pattern": "[%p] %d [%t] %c %M - %m%n"}},
    # Bitnami's images write Kafka's own to the console; in a terminal with colours.
    "bitnami": {"PatternLayout": {"pattern": "%highlight{[%d] %p %m (%c)}%n", "disableAnsi": False}},
    "json": {"JsonLayout": {"compact": True, "eventEol": True}},
}
FORGED = (
    "evil\n[2026-11-23 07:00:00,000] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=0] "
    "Preparing to rebalance group victim in state PreparingRebalance with old generation 3 (reason: x). "
    "(org.apache.kafka.coordinator.group.GroupMetadataManager)\n[2026-11-23 07:00:00,001] INFO tail"
)


class _InManyLayouts(EmbeddedKafka):
    """A cluster whose brokers write each of the coordinator's events once more in every layout."""

    def log4j2_text(self, logging: Logging) -> str:
        configuration = yaml.safe_load(super().log4j2_text(logging))
        whole = configuration["Configuration"]
        files = [
            {"name": name, "fileName": str(_file(logging.folder, name)), **layout}
            for name, layout in LAYOUTS.items()
        ]
        whole["Appenders"]["File"] = files
        for logger in whole["Loggers"]["Logger"]:
            if logger["name"] in COORDINATOR_LOGGERS:
                logger["includeLocation"] = True
                logger["AppenderRef"] += [{"ref": name} for name in LAYOUTS]
        return yaml.safe_dump(configuration, sort_keys=False, width=1000)


def _file(folder: Path, layout: str) -> Path:
    return folder / f"{layout}.log"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The log folder of a broker that has seen two members come and go, one of them with an odd name."""
    with _InManyLayouts(tmp_path_factory.mktemp("kafka"), rebalance_delay_ms=300) as cluster:
        cluster.create_topic("orders", partitions=3)
        _play(cluster, "plain", ("a", "b"))
        _play(cluster, "odd", (FORGED,))
        yield cluster.log_files(1)[0].parent


def _play(cluster: EmbeddedKafka, group: str, clients: tuple[str, ...]) -> None:
    """Let one client after another join, then let all of them leave."""
    consumers = []
    for client in clients:
        consumers.append(
            KafkaConsumer(
                "orders", bootstrap_servers=cluster.bootstrap_servers, group_id=group, client_id=client
            )
        )
        deadline = time.monotonic() + PATIENCE_S
        while not all(one.poll(timeout_ms=100) is not None and one.assignment() for one in consumers):
            assert time.monotonic() < deadline
    for one in consumers:
        one.close()


def _told(path: Path, skipped: Skipped | None = None) -> list[Transition]:
    happened: list[Transition | Alert] = list(
        replay([path], config_rules=None, timezone="UTC", skipped=skipped, strict=True)
    )
    return [one for one in happened if isinstance(one, Transition)]


def _content(one: Transition) -> tuple[Any, ...]:
    cause = one.cause
    return (
        one.group,
        one.from_state,
        one.to_state,
        one.generation,
        cause.kind,
        cause.client_id,
        cause.member_id,
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_tells_the_same(folder: Path, layout: str) -> None:
    """Moves, causes and generations are equal, and times to the millisecond where the layout has them."""
    skipped = Skipped()
    expected = [one for one in _told(folder / "server.log") if one.group == "plain"]
    told = [one for one in _told(_file(folder, layout), skipped) if one.group == "plain"]

    within_ms = 1_000 if layout == "strimzi" else 1
    assert len(expected) >= 7, expected
    assert list(map(_content, told)) == list(map(_content, expected))
    assert all(abs(one.at_ms - other.at_ms) < within_ms for one, other in zip(told, expected, strict=True))
    assert skipped.counts.get("unknown_layout", 0) <= 4, skipped.counts  # of the odd name's lines


@pytest.mark.parametrize("name", ["server.log", "json.log"])
def test_no_line_is_forged_through_a_name(folder: Path, name: str) -> None:
    """In the layout that we ship, and in JSON, a line break in a client's name stays in that name."""
    told = _told(folder / name)
    odd = [one for one in told if one.group == "odd"]

    assert not [one for one in told if one.group == "victim"]
    assert any(FORGED in (one.cause.client_id or one.cause.member_id) for one in odd), odd
    assert [one.to_state for one in odd][-1] == "Empty"
