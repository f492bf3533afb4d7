"""The mirror against the brokers: short random schedules in every mode, with the job killed on the way.

What was played is printed, so it stands beside a failure, as do the two histories of each group in doubt.
"""

import re

import pytest

from tests.live.support.schedule import Outcome, Schedule, run_together
from tests.live.support.stage import need_jars

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


PLAYED_AT_ONCE = {
    "quiet": Schedule("quiet", seed=5, seconds=20, groups=3),
    "requests": Schedule("requests", seed=8, seconds=20, groups=3),
    "offsets": Schedule("offsets", seed=11, seconds=20, groups=3),
}


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    need_jars()
    schedule = Schedule("full", seed=3, seconds=32, groups=3, kills=1)
    return run_together({"full": schedule}, tmp_path_factory.mktemp("conformance"))["full"]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    need_jars()
    return run_together(PLAYED_AT_ONCE, tmp_path_factory.mktemp("conformance"))


@pytest.fixture(scope="module")
def quiet(outcomes: dict[str, Outcome]) -> Outcome:
    return outcomes["quiet"]


@pytest.fixture(scope="module")
def requests(outcomes: dict[str, Outcome]) -> Outcome:
    return outcomes["requests"]


@pytest.fixture(scope="module")
def offsets(outcomes: dict[str, Outcome]) -> Outcome:
    return outcomes["offsets"]


def agrees(outcome: Outcome) -> None:
    result = outcome.agreement()
    assert result.judged > 50
    assert result.share >= 0.9995, result.wrong[:5]
    assert outcome.missing_and_extra() == ([], [])
    assert outcome.wrong_causes()[1] == []


def test_full_agrees_with_the_brokers_though_the_job_is_killed(full: Outcome) -> None:
    """Every state that a broker told is the one we claim, and every move is in the coordinator's log."""
    agrees(full)


def test_a_crash_repeats_nothing_in_other_words(full: Outcome) -> None:
    """An id of a transition, and a revision of an alert, has one content, byte for byte."""
    assert full.twofold == []


def test_after_a_crash_all_groups_are_back(full: Outcome) -> None:
    """The metrics show every group in the state that the broker tells."""
    assert len(full.states) == 3
    for group, state in full.brokers_states.items():
        labels = rf'cluster="live",group="{re.escape(group)}",group_type="\w+",state="{state}"'
        assert re.search(rf"^groupwatch_group_state{{{labels}}} 1\.0$", full.metrics, re.MULTILINE)


def test_the_job_ends_well(full: Outcome, quiet: Outcome, requests: Outcome, offsets: Outcome) -> None:
    """Asked to stop, it says 0 in every mode."""
    assert [one.exit_code for one in (full, quiet, requests, offsets)] == [0, 0, 0, 0]


def test_quiet_agrees_with_the_brokers(quiet: Outcome) -> None:
    """The topic and the INFO log alone tell every move."""
    agrees(quiet)
    assert quiet.twofold == []


def test_requests_ends_in_the_right_states(requests: Outcome) -> None:
    """The topic and the request log find the final states; in between they do what they can."""
    assert requests.states == requests.brokers_states
    assert requests.agreement().share >= 0.8  # joins that wait are in no request log until they are answered
    assert requests.twofold == []


def test_offsets_ends_in_the_right_states(offsets: Outcome) -> None:
    """The topic alone knows no phase of a rebalance, but each generation that one led to."""
    assert offsets.states == offsets.brokers_states
    assert {one["source"] for one in offsets.transitions} <= {"offsets", "model"}
    assert offsets.twofold == []
