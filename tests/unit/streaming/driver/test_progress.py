"""The facts about a job, and the two alerts that are made of them."""

from typing import Any

import pytest

from alerts.alert.alert import Alert, AlertStatus, Severity
from streaming.control.clocks_read import ClocksRead
from streaming.driver.supervisor import Limits, Watched, limits_of
from streaming.health.query_progress import Progress, positions_in


class Now:
    """A clock that goes when told."""

    def __init__(self) -> None:
        self.s = 1_000.0

    def __call__(self) -> float:
        """Return the time it was set to."""
        return self.s


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def progress(now: Now) -> Progress:
    return Progress("prod", clock=now)


@pytest.fixture
def said() -> list[Alert]:
    return []


@pytest.fixture
def watched(progress: Progress, said: list[Alert]) -> Watched:
    return Watched(progress, Limits(unreachable_s=30, stalled_s=60), said.append)


def _pass(now: Now, watched: Watched, seconds: float) -> None:
    now.s += seconds
    watched.look(round(now.s * 1000))


def _told(said: list[Alert]) -> list[tuple[str, AlertStatus]]:
    return [(alert.name, alert.status) for alert in said]


FIRING, RESOLVED = AlertStatus.FIRING, AlertStatus.RESOLVED


def test_a_lull_lasts_from_one_batch_to_the_next(progress: Progress) -> None:
    """Who can wait does not take a batch's cores; before the first batch nobody has them."""
    said = [progress.await_lull(0)]
    progress.batch_begun(0)
    said.append(progress.await_lull(0))
    progress.batch_done()
    said.append(progress.await_lull(0))

    assert said == [True, False, True]


def test_a_job_is_ready_when_every_shard_spoke_and_every_partition_was_read(progress: Progress) -> None:
    """Neither alone is enough, and the cluster's own shard counts as well."""
    progress.reading.begin(2, {"a": [10, 0], "b": [5]})
    progress.reading.reported([0, 1])
    progress.batch_done()
    progress.reading.reached({"a": [10, 3], "b": [5]})
    assert progress.reading.unreported == [-1]
    assert not progress.has_caught_up
    progress.reading.reported([-1])
    progress.batch_done()
    assert progress.has_caught_up
    progress.reading.reached({"a": [9, 3], "b": [5]})
    assert (progress.has_caught_up, progress.reading.behind) == (False, 1)


def test_trouble_names_partitions_without_a_leader_beside_what_stops_the_query(progress: Progress) -> None:
    """The query dies of a timeout; which partitions nobody leads is what a person has to know."""
    progress.silent_partitions = "2 of the partitions"
    assert progress.trouble == "2 of the partitions"
    progress.query_error = "TimeoutException"
    assert progress.trouble == "TimeoutException; 2 of the partitions"


def test_before_the_first_batch_nothing_is_ready(progress: Progress) -> None:
    """An unknown position is not a reached one, even of empty topics."""
    assert not progress.is_ready
    progress.reading.begin(0, {"a": [0]})
    progress.reading.reported([-1])
    progress.batch_done()
    assert (progress.is_ready, progress.reading.behind) == (False, -1)


def test_a_restart_of_the_query_keeps_what_was_reached(progress: Progress) -> None:
    """The targets are those of the process's start, so a restart does not move them away."""
    progress.reading.begin(1, {"a": [1]})
    progress.reading.reported([-1, 0])
    progress.batch_done()
    progress.reading.reached({"a": [1]})
    progress.reading.begin(1, {"a": [99]})
    assert progress.has_caught_up


def _caught_up(progress: Progress) -> Progress:
    progress.reading.begin(1, {"a": [1]})
    progress.reading.reported([-1, 0])
    progress.batch_done()
    progress.reading.reached({"a": [1]})
    return progress


def test_readiness_waits_for_lag_or_says_why_it_is_not_known(progress: Progress) -> None:
    """Ends count that were asked for with all groups known; a refusal ends the waiting with a sentence."""
    progress.ends_told(whole=False)
    _caught_up(progress)
    assert (progress.is_ready, progress.end_offsets) == (False, "waiting")
    progress.ends_refused("PermissionError: no DESCRIBE", whole=True)
    assert progress.is_ready
    assert progress.describe()["end_offsets"].endswith("PermissionError: no DESCRIBE")
    assert progress.notices == [progress.end_offsets]
    progress.ends_told(whole=True)
    assert (progress.end_offsets, progress.notices) == ("known", [])


def test_readiness_ends_when_the_query_dies_and_comes_back_with_a_batch(progress: Progress) -> None:
    """A query that is being started again shows old states, however quickly it comes up."""
    _caught_up(progress).ends_told(whole=True)
    assert progress.is_ready
    progress.query_ended("SparkException: no space left")
    told = progress.describe()
    assert (told["ready"], told["query"], told["error"]) == (False, "down", "SparkException: no space left")
    progress.batch_done()
    assert progress.is_ready
    progress.query_ended()
    assert not progress.is_ready


def test_a_batch_that_is_written_again_does_not_count_as_ended(progress: Progress) -> None:
    """Where the checkpoint cannot be written the same batch ends in our sink each time."""
    progress.kafka_answered()
    for _ in range(3):
        progress.batch_begun(7)
        progress.batch_done()
        progress.query_ended("IOException: read-only file system")
    progress.kafka_answered()
    assert progress.is_dying
    progress.batch_begun(8)
    progress.batch_done()
    assert (progress.deaths, progress.is_dying) == (0, False)


def test_a_query_that_dies_three_times_at_one_batch_is_a_stalled_monitor(
    now: Now, progress: Progress, watched: Watched, said: list[Alert]
) -> None:
    """It is told at once, with batch and error, and over when a batch has ended."""
    for _ in range(3):
        assert not said
        progress.batch_begun(17)
        progress.query_ended("ValueError: year 10000 is out of range")
        progress.kafka_answered()
        _pass(now, watched, 2)
    assert _told(said) == [("MonitorStalled", FIRING)]
    assert "died 3 times in a row at batch 17: ValueError: year 10000" in said[0].cause
    progress.batch_done()
    _pass(now, watched, 1)
    assert _told(said)[1:] == [("MonitorStalled", RESOLVED)]


def test_deaths_in_an_outage_of_kafka_are_not_the_jobs(
    now: Now, progress: Progress, watched: Watched, said: list[Alert]
) -> None:
    """A query cannot run without Kafka; its deaths count from Kafka's return on."""
    progress.kafka_answered()
    for _ in range(4):
        progress.query_ended("NoBrokersAvailable")
        _pass(now, watched, 6)
    progress.kafka_answered()
    _pass(now, watched, 1)
    assert (said, progress.deaths) == ([], 0)


def test_positions_are_read_from_sparks_progress() -> None:
    """Offsets come as text or as objects, for one source or several; a gap is unknown."""
    told = {
        "sources": [
            {"endOffset": '{"offsets": {"1": 7, "0": 5}}'},
            {"endOffset": {"control": {"0": 3}, "events": {"2": 9}}},
            {"endOffset": None},
        ]
    }
    assert positions_in(told) == {"offsets": [5, 7], "control": [3], "events": [-1, -1, 9]}


def test_an_unreachable_cluster_is_told_once_and_taken_back(
    now: Now, progress: Progress, watched: Watched, said: list[Alert]
) -> None:
    """After 30 s without an answer the alert fires, with the last error; the first answer ends it."""
    progress.kafka_answered()
    progress.kafka_failed(TimeoutError("no route"))
    _pass(now, watched, 30)
    assert not said
    _pass(now, watched, 1)
    _pass(now, watched, 60)
    assert _told(said) == [("ClusterUnreachable", FIRING)]
    assert said[0].starts_at_ms == 1_000_000
    assert "no route" in said[0].cause
    progress.kafka_answered()
    _pass(now, watched, 1)
    assert _told(said)[1:] == [("ClusterUnreachable", RESOLVED)]
    assert (said[1].id, said[1].revision) == (said[0].id, said[0].revision + 1)


def test_an_outage_of_kafka_is_not_a_stalled_monitor(
    now: Now, progress: Progress, watched: Watched, said: list[Alert]
) -> None:
    """Minutes without a batch while nobody answers are Kafka's, and are not counted when it is back."""
    progress.kafka_answered()
    _pass(now, watched, 300)
    progress.kafka_answered()
    _pass(now, watched, 1)
    assert {alert.name for alert in said} == {"ClusterUnreachable"}


def test_a_job_that_ends_no_batch_while_kafka_answers_is_stalled(
    now: Now, progress: Progress, watched: Watched, said: list[Alert]
) -> None:
    """A minute without a batch fires, with what stands in the way; the next batch ends it."""
    progress.query_error = "SparkException: no space left"
    for _ in range(13):
        progress.kafka_answered()
        _pass(now, watched, 5)
    assert _told(said) == [("MonitorStalled", FIRING)]
    assert "no space left" in said[0].cause
    progress.batch_done()
    _pass(now, watched, 1)
    assert _told(said)[1:] == [("MonitorStalled", RESOLVED)]


def test_a_clock_that_fails_counts_while_kafka_answers(now: Now, progress: Progress) -> None:
    """In an outage it is Kafka's failure; what lasts after it may be that of our own producers."""
    counted = []
    for second in range(300):
        now.s += 1
        if not 50 <= second < 100:
            progress.kafka_answered()
        progress.clock_failed("no acknowledgement" if 40 <= second < 250 else "")
        counted.append(round(progress.seconds_without_clock()))
    assert counted[45] == 5
    assert counted[70] == 0
    assert (counted[100], counted[249]) == (0, 149)
    assert counted[250:] == [0] * 50
    progress.clock_failed("no acknowledgement")
    now.s += 10
    progress.query_ended()
    now.s += 5
    assert progress.seconds_without_clock() == 5


def test_a_stalled_monitor_is_not_cured_by_an_outage(
    now: Now, progress: Progress, watched: Watched, said: list[Alert]
) -> None:
    """When Kafka comes back after an outage the alert stays open until a batch has ended."""
    for _ in range(13):
        progress.kafka_answered()
        _pass(now, watched, 5)
    _pass(now, watched, 100)
    progress.kafka_answered()
    _pass(now, watched, 1)
    assert ("MonitorStalled", RESOLVED) not in _told(said)
    progress.batch_done()
    _pass(now, watched, 1)
    assert ("MonitorStalled", RESOLVED) in _told(said)


def test_a_cluster_that_answers_only_now_and_then_excuses_no_job(
    now: Now, progress: Progress, watched: Watched, said: list[Alert]
) -> None:
    """An answer each twenty seconds is no outage, so a job that does nothing meanwhile is told."""
    for _ in range(30):
        progress.kafka_answered()
        for _ in range(20):
            _pass(now, watched, 1)

    assert _told(said) == [("MonitorStalled", FIRING)]


def test_a_disabled_rule_says_nothing(now: Now, progress: Progress, said: list[Alert]) -> None:
    """``enabled: false`` silences either alert."""
    off = {"cluster_unreachable": {"enabled": False}, "monitor_stalled": {"enabled": False}}
    watched = Watched(progress, limits_of(off, 1_000), said.append)
    _pass(now, watched, 1_000)
    assert not said


def test_limits_follow_the_configuration_and_the_trigger() -> None:
    """A slow trigger stretches what counts as stalled: ten of them must pass."""
    rules: dict[str, dict[str, Any]] = {
        "cluster_unreachable": {"after_ms": 5_000, "severity": "info"},
        "monitor_stalled": {"after_ms": 90_000},
    }
    limits = limits_of(rules, 20_000)
    assert (limits.unreachable_s, limits.unreachable_severity) == (5, Severity.INFO)
    assert (limits.stalled_s, limits.stalled_severity) == (200, Severity.CRITICAL)
    assert limits_of(rules, 1_000).stalled_s == 90
    assert (
        limits_of({"monitor_stalled": {"after_ms": 5_000}}, 1_000).stalled_s == 20
    )  # not within a quiet time


def test_batches_that_take_no_time_along_are_a_stalled_monitor(
    now: Now, progress: Progress, watched: Watched, said: list[Alert]
) -> None:
    """Clocks that nobody believes freeze the mirror while batches end happily, and that is told."""
    for second in range(200):
        progress.kafka_answered()
        progress.batch_begun(second)
        progress.batch_done()
        told_ms = round(now.s * 1000)
        progress.watermark.told(told_ms, [])
        if second < 5 or second > 150:
            progress.watermark.take_clocks(ClocksRead(control_ms=told_ms, partitions=0))
        _pass(now, watched, 1)
    assert _told(said) == [("MonitorStalled", FIRING), ("MonitorStalled", RESOLVED)]
    assert "falling behind" in said[0].summary
    assert "the control topic is furthest behind" in said[0].cause
    assert progress.describe()["watermark_behind_s"] == 1.0


def test_readiness_ends_when_what_is_judged_lies_far_behind(now: Now, progress: Progress) -> None:
    """More than 30 s, or three triggers of a slow job; ``/ready`` says what is furthest behind."""
    _caught_up(progress).ends_told(whole=True)
    progress.late_after_s = 60.0
    progress.watermark.told(1_000, [])
    progress.watermark.take_clocks(ClocksRead(control_ms=1_000, partitions=0))
    now.s += 60
    assert progress.is_ready
    now.s += 1
    assert not progress.is_ready
    assert "61 s behind the wall clock" in progress.describe()["error"]


def test_a_topic_that_was_made_anew_is_to_be_read_to_its_own_end(progress: Progress) -> None:
    """The old one's end would never be reached."""
    _caught_up(progress)
    progress.reading.topic_recreated("a", [0])
    assert not progress.has_caught_up
    progress.reading.reached({"a": [0]})
    assert progress.has_caught_up


def test_an_end_that_a_new_leader_took_back_is_waited_for_no_more(progress: Progress) -> None:
    """An unclean election, while the start reads or after it: nobody may ever write there again."""
    reading = progress.reading
    reading.begin(1, {"a": [100, 7]})
    reading.reported([-1, 0])
    reading.reached({"a": [95, 7]})
    assert reading.behind == 5
    reading.ends_at({"a": [-2, 9]})
    assert reading.behind == 5
    reading.ends_at({"a": [95, 9]})
    assert reading.has_caught_up
    reading.begin(1, {"a": [90, 9]})
    reading.reached({"a": [90, 7]})
    assert reading.has_caught_up
