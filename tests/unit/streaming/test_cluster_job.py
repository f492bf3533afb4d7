"""When a query may be stopped without leaving a batch half done."""

from typing import Any, cast

import pytest
from pyspark.sql.streaming import StreamingQuery

from streaming import cluster_job

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
