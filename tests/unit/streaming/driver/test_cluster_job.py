"""When a query may be stopped without leaving a batch half done."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from streaming.driver import cluster_job
from streaming.driver.cluster_job import ClusterJob
from tests.unit.streaming.made_plans import plan

WORKING = {"message": "Processing new data", "isDataAvailable": True, "isTriggerActive": True}
ASKING = {
    "message": "Getting offsets from KafkaV2[Assign[a-0]]",
    "isDataAvailable": True,
    "isTriggerActive": True,
}
RESTING = {"message": "Waiting for next trigger", "isDataAvailable": False, "isTriggerActive": False}


class Query:
    """What Spark says of a query, one answer after the other; the last for ever."""

    def __init__(self, *told: dict[str, Any], ended_after: int = 1_000) -> None:
        self.told = list(told)
        self.left = ended_after
        self.stopped_at: dict[str, Any] = {}
        self.is_stopped = False

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """Say whether it runs."""
        self.left -= 1
        return self.left >= 0

    @property
    def status(self) -> dict[str, Any]:
        """Return the next answer."""
        self.stopped_at = self.told.pop(0) if len(self.told) > 1 else self.told[0]
        return self.stopped_at

    def stop(self) -> None:
        """Note it."""
        self.is_stopped = True


@pytest.mark.parametrize("pause", [ASKING, RESTING], ids=["back-to-back", "idle"])
def test_a_query_is_stopped_between_its_batches(pause: dict[str, Any]) -> None:
    """Where one follows the other, Spark asks for offsets in between; else it rests."""
    running = Query(WORKING, WORKING, pause, WORKING)
    cluster_job._stop_gently(cast("StreamingQuery", running))

    assert running.is_stopped
    assert running.stopped_at is pause


def test_a_query_that_ends_by_itself_is_not_waited_for() -> None:
    """It makes no batch any more."""
    running = Query(WORKING, ended_after=3)
    cluster_job._stop_gently(cast("StreamingQuery", running))

    assert running.is_stopped


def test_a_batch_without_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up."""
    monkeypatch.setattr(cluster_job, "_STOP_WAIT_S", 0.0)
    running = Query(WORKING)
    cluster_job._stop_gently(cast("StreamingQuery", running))

    assert running.is_stopped


class Stopping:
    """Stands for the event that ends the job: after some turns, and nobody waits."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.waits: list[float] = []

    def is_set(self) -> bool:
        """Say whether the job is to end."""
        self.turns -= 1
        return self.turns < 0

    def wait(self, seconds: float) -> bool:
        """Note how long the job would rest."""
        self.waits.append(seconds)
        return False


def _job(turns: int, run_once: Callable[[], None]) -> tuple[ClusterJob, Stopping]:
    """Return a job whose query does as told, so often."""
    context = SimpleNamespace(_jsc=None)
    job = ClusterJob(cast("SparkSession", SimpleNamespace(sparkContext=context)), plan(), lambda *_: None)
    stopping = Stopping(turns)
    job._stopping = cast("Any", stopping)
    job._run_once = run_once  # type: ignore[method-assign]
    return job, stopping


def test_a_query_that_keeps_dying_is_started_again_with_bounded_pauses() -> None:
    """Also if it works for minutes each time before it dies of the same batch."""

    def die() -> None:
        raise OSError("disk full")

    job, stopping = _job(7, die)
    job._keep_running()
    assert stopping.waits == [1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0]
    assert (job.progress.deaths, job.progress.restarts) == (7, 7)
    assert job.progress.describe()["error"] == "OSError: disk full"


def test_a_query_that_dies_as_another_took_over_is_refused_with_the_sentence() -> None:
    """What Spark wraps around it is not what happened; and the other one's mark is left alone."""
    released: list[str] = []
    mark = SimpleNamespace(taken="another groupwatch watches", release=lambda: released.append("ours"))

    def die() -> None:
        job._mark = cast("Any", mark)
        raise RuntimeError("[STREAM_FAILED] pages of it")

    job, _ = _job(1, die)
    job._keep_running()
    assert job.progress.refused == "another groupwatch watches"
    assert (job.progress.deaths, job._mark, released) == (0, None, ["ours"])
