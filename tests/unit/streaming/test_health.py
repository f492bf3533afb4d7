"""What ``/healthz`` and ``/ready`` say of the job."""

import os
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JNetworkError

from streaming import job as job_module
from streaming.driver.query_watch import gist
from streaming.driver.supervisor import Limits
from streaming.health.query_progress import Progress
from streaming.job import Health
from streaming.pipeline import session


class Now:
    """A clock that goes when told."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        """Return the time it was set to."""
        return self.s


class Job:
    """A cluster's job with its facts, and perhaps a thread that died."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.dead: list[str] = []

    def dead_threads(self) -> list[str]:
        """Return the names of threads that ended."""
        return self.dead


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def job(now: Now) -> Job:
    return Job(Progress("prod", clock=now))


def _health(job: Job, *dead: str) -> Health:
    return Health(cast("Any", {"prod": job}), lambda: list(dead), Limits(stalled_s=60))


def test_a_job_that_runs_has_no_problems(job: Job) -> None:
    """Nothing dead, nothing stuck."""
    job.progress.kafka_answered()
    assert _health(job).problems() == []


def test_dead_threads_are_named(job: Job) -> None:
    """Those of the process and those of a cluster's job."""
    job.dead.append("clock-prod")
    assert _health(job, "supervisor").problems() == ["thread supervisor is dead", "thread clock-prod is dead"]


def test_a_batch_that_does_not_end_is_a_problem_while_kafka_answers(now: Now, job: Job) -> None:
    """It is named with the reason; during an outage of Kafka it is not our problem."""
    job.progress.query_error = "IOException: disk full"
    for _ in range(8):
        now.s += 10
        job.progress.kafka_answered()
    (problem,) = _health(job).problems()
    assert problem == "prod: no batch has ended for 80 s: IOException: disk full"
    now.s += 100
    assert _health(job).problems() == []


def test_a_query_that_dies_of_one_batch_is_a_problem(job: Job) -> None:
    """Not the first death, which a restart may mend; the third one at the same batch."""
    for deaths in range(1, 4):
        job.progress.batch_begun(4)
        job.progress.query_ended("MessageSizeTooLargeError: 9 MB")
        job.progress.kafka_answered()
        assert bool(_health(job).problems()) == (deaths == 3)
    (problem,) = _health(job).problems()
    assert problem == "prod: the query has died 3 times in a row at batch 4: MessageSizeTooLargeError: 9 MB"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (None, ""),
        (-9, "was killed by signal 9 (out of memory"),
        (-15, "by signal 15:"),
        (3, "ended with code 3"),
    ],
)
def test_a_jvm_that_is_gone_is_seen_by_its_process(code: int | None, expected: str) -> None:
    """Nobody asks the JVM itself: it would not answer, and one that hangs may come back."""
    gateway = SimpleNamespace(proc=SimpleNamespace(poll=lambda: code))
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=gateway))
    assert expected in session.is_session_lost(spark)
    assert bool(session.is_session_lost(spark)) == (code is not None)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(lambda: True, "Spark has stopped itself"), (lambda: False, ""), (lambda: 1 // 0, None)],
)
def test_a_spark_that_stopped_itself_is_as_good_as_gone(
    answer: Callable[[], bool], expected: str | None
) -> None:
    """Its JVM may go on for ever without running anything; one that does not answer is seen otherwise."""

    def is_stopped() -> bool:
        try:
            return answer()
        except ZeroDivisionError as error:
            raise Py4JNetworkError from error

    context = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=is_stopped)))
    spark: Any = SimpleNamespace(sparkContext=context)
    assert session.session_stopped(spark).startswith(expected or "")
    assert bool(session.session_stopped(spark)) == bool(expected)


def test_a_process_that_cannot_stop_everything_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM that hangs keeps the thread that waits for it; whoever asked us to stop waits for us."""
    ended = threading.Event()
    monkeypatch.setattr(os, "_exit", lambda code: ended.set() if code == 1 else None)
    job_module._end_within(0.0)
    assert ended.wait(30)


def test_every_cluster_is_reported_with_what_is_missing(job: Job) -> None:
    """Readiness comes with the shards that owe a report and the offsets still to read."""
    job.progress.reading.begin(2, {"offsets": [10, 10]})
    job.progress.reading.reported([0])
    job.progress.batch_done()
    job.progress.reading.reached({"offsets": [10, 4]})
    (told,) = _health(job).clusters()
    assert (told["cluster"], told["ready"]) == ("prod", False)
    assert (told["unreported_shards"], told["offsets_behind_start"]) == (2, 6)


SPARK_SAYS = """[STREAM_FAILED] Query [id = 1] terminated: Reason: Traceback (most recent call last):
  File "x.py", line 1, in call
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "y.py", line 2, in <module>
ImportError: cannot import name 'x'

SQLSTATE: 39000"""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError(SPARK_SAYS), "ImportError: cannot import name 'x'"),
        (RuntimeError("the query ended by itself"), "RuntimeError: the query ended by itself"),
        (OSError("disk\nfull"), "OSError: disk full"),
    ],
)
def test_a_failure_is_told_in_the_line_that_says_what_happened(error: Exception, expected: str) -> None:
    """Not in the pages that Spark wraps around it."""
    assert gist(error) == expected
