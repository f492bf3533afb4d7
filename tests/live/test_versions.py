"""Brokers before Kafka 4 (Scala coordinator, log4j 1): they start, and the mirror agrees with them."""

import re
from pathlib import Path
from typing import Any

import pytest

from streaming.devkit.kafka.kafka import EmbeddedKafka
from streaming.devkit.kafka.log4j2 import Logging
from tests.live.support.members import Member
from tests.live.support.schedule import Outcome, Schedule, run_together
from tests.live.support.stage import await_that, lines_of, need_jars

DEPLOY = Path(__file__).parents[2] / "deploy" / "log4j2"

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def _fetch(version: str, config: pytest.Config) -> None:
    """Have the jars, or skip and say why; a download must not look like a hang behind pytest's capture."""
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    need_jars(version=version, tell=reporter.write_line)


SCHEDULES = {
    "3.4.1-full": Schedule("full", seed=4, seconds=16, groups=3, version="3.4.1"),
    "3.9.2-quiet": Schedule("quiet", seed=6, seconds=16, groups=3, version="3.9.2"),
}


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """A short schedule on a real broker of each version."""
    for schedule in SCHEDULES.values():
        _fetch(schedule.version, request.config)
    return run_together(SCHEDULES, tmp_path_factory.mktemp("versions"))


@pytest.fixture(params=SCHEDULES)
def outcome(request: pytest.FixtureRequest, outcomes: dict[str, Outcome]) -> Outcome:
    return outcomes[request.param]


def test_the_mirror_agrees_with_an_older_coordinator(outcome: Outcome) -> None:
    """Every state that the broker told, every move and every cause in its log are ours too."""
    result = outcome.agreement()

    assert result.judged > 50
    assert result.share >= 0.9995, result.wrong[:5]
    assert outcome.missing_and_extra() == ([], [])
    assert outcome.wrong_causes()[1] == []
    assert outcome.states == outcome.brokers_states
    assert outcome.twofold == []
    assert outcome.exit_code == 0


def test_every_line_of_an_older_coordinator_is_known(outcome: Outcome) -> None:
    """Nothing of its log is counted as strange or broken."""
    strange = [line for line in outcome.metrics.splitlines() if 'kind="unrecognized"' in line]
    broken = [line for line in outcome.metrics.splitlines() if line.startswith("groupwatch_undecodable")]

    assert (strange, broken) == ([], [])


class FromDeploy(EmbeddedKafka):
    """A cluster whose brokers log as operators are told to."""

    def log4j1_text(self, logging: Logging) -> str:
        """Return the file from deploy/."""
        return (DEPLOY / "log4j-kafka3-to-file.properties").read_text()


def test_the_file_from_deploy_writes_what_shippers_need(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Three brokers of Kafka 3 with the file that operators copy: each line arrives under its broker's id."""
    _fetch("3.9.2", request.config)
    with FromDeploy(tmp_path, brokers=3, version="3.9.2", offsets_partitions=3, heap="256m") as kafka:
        kafka.create_topic("orders", partitions=3)
        member = Member(kafka.bootstrap_servers, "deployed", "deployed-1")
        member.start()
        try:
            await_that(lambda: _told(kafka, "Stabilized group deployed generation 1"), "the log's line")
            await_that(lambda: _told(kafka, '"requestApiKeyName":"HEARTBEAT"'), "a heartbeat's line")
        finally:
            member.close()
        # Which generation that is: one more for each time that it saw the topic change.
        await_that(lambda: _told(kafka, r"Group deployed with generation \d+ is now empty"), "the last line")
        brokers = {line.broker for line, _ in lines_of(kafka.address)}

    assert brokers == {1, 2, 3}


def _told(kafka: EmbeddedKafka, pattern: str) -> bool:
    """Say whether a line is there, under a broker's id and with the time at which it was written."""
    return any(
        re.search(pattern, line.message) and line.broker > 0 and 0 < line.at_ms <= recorded_at_ms
        for line, recorded_at_ms in lines_of(kafka.address)
    )
