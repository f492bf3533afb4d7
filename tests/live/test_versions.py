"""Brokers before Kafka 4 (Scala coordinator, log4j 1): they start, and the mirror agrees with them."""

import pytest

from streaming.embedded.jars import JarError, ensure_jars
from tests.live.schedule import Outcome, Schedule, run

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(Schedule("full", seed=4, seconds=20, groups=3, version="3.4.1"), id="3.4.1-full"),
        pytest.param(Schedule("quiet", seed=6, seconds=20, groups=3, version="3.9.2"), id="3.9.2-quiet"),
    ],
)
def outcome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A short schedule on a real broker of each version; its jars are fetched when first asked for."""
    schedule: Schedule = request.param
    reporter = request.config.pluginmanager.getplugin("terminalreporter")

    def tell(line: str) -> None:
        """Past pytest's capture: a download of half a minute must not look like a hang."""
        if reporter is not None:
            reporter.write_line(line)

    try:
        ensure_jars("broker", schedule.version, tell=tell)
        ensure_jars("connector", tell=tell)
    except JarError as error:
        pytest.skip(f"no jars of Kafka {schedule.version}: {error}")
    return run(schedule, tmp_path_factory.mktemp(schedule.version))


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
