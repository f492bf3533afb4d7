"""How many tasks a Spark cluster gets, and how long its executors are awaited."""

import logging
from collections.abc import Mapping

import pytest

from streaming.pipeline.executors import (
    Size,
    await_executors,
    cores_of_each,
    declared,
    is_remote,
    state_tasks,
)


class Cluster:
    """Executors of one core that register at given times, and the clock to see them by."""

    def __init__(self, *register_at_s: float) -> None:
        self.register_at_s = register_at_s
        self.now_s = 0.0

    def clock(self) -> float:
        """Return the time."""
        return self.now_s

    def rest(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds

    def look(self) -> Size:
        """Return what has registered by now."""
        count = sum(at <= self.now_s for at in self.register_at_s)
        return Size(count, max(2, count))  # Spark says 2 as long as it knows no better

    def awaited(self, wanted: Size | None) -> Size:
        """Return what is there after the wait."""
        return await_executors(self.look, wanted, clock=self.clock, rest=self.rest)


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,3]"])
def test_a_local_master_runs_tasks_in_this_process(master: str) -> None:
    """With a number of threads, of failures, or without."""
    assert not is_remote(master)


@pytest.mark.parametrize("master", ["spark://m:7077", "yarn", "k8s://https://m", "local-cluster[2,1,1024]"])
def test_any_other_master_has_executors_elsewhere(master: str) -> None:
    """Those of ``local-cluster`` are on this machine, but have JVMs and workers of their own."""
    assert is_remote(master)


@pytest.mark.parametrize(
    ("master", "chosen", "cores"),
    [
        ("spark://m:7077", "2", 2),
        ("spark://m:7077", "", 0),
        ("yarn", "", 1),
        ("k8s://https://m", "3", 3),
        ("local-cluster[2,1,1024]", "", 1),
        ("local-cluster[1, 4, 1024]", "2", 4),
    ],
)
def test_cores_of_an_executor_are_its_masters_to_say(master: str, chosen: str, cores: int) -> None:
    """Spark's own defaults: one, but all that a standalone worker has."""
    assert cores_of_each({"spark.master": master, "spark.executor.cores": chosen}) == cores


def test_all_executors_that_were_asked_for_are_awaited() -> None:
    """Two cores are told from the start, and counted when both executors are there."""
    cluster = Cluster(3.0, 7.0)
    assert cluster.awaited(Size(2, 2)) == Size(2, 2)
    assert cluster.now_s == pytest.approx(7.0, abs=0.2)


def test_the_wait_is_bounded_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A cluster that is too small runs with what it has, and its log says so."""
    with caplog.at_level(logging.INFO):
        assert Cluster(3.0).awaited(Size(2, 2)) == Size(1, 2)
    assert [one.levelname for one in caplog.records] == ["WARNING"]
    assert "asked for: 2 with 2 cores" in caplog.text


def test_nothing_registered_counts_as_nothing() -> None:
    """Spark's two cores without an executor are no cores."""
    assert Cluster().awaited(Size(2, 2)) == Size(0, 0)


def test_without_a_declared_number_the_last_to_come_is_awaited() -> None:
    """Executors register within a moment of each other; then there are as many as there are."""
    cluster = Cluster(1.0, 3.0, 5.0, 25.0)
    assert cluster.awaited(None) == Size(3, 3)
    assert cluster.now_s < 9


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"spark.master": "spark://m:7077", "spark.cores.max": "4", "spark.executor.cores": "2"}, Size(2, 4)),
        ({"spark.master": "spark://m:7077", "spark.cores.max": "4"}, Size(1, 4)),
        ({"spark.master": "spark://m:7077", "spark.executor.instances": "4"}, None),
        (
            {"spark.master": "k8s://m", "spark.executor.instances": "3", "spark.executor.cores": "2"},
            Size(3, 6),
        ),
        ({"spark.master": "yarn", "spark.executor.instances": "3"}, Size(3, 3)),
        ({"spark.master": "yarn"}, None),
    ],
)
def test_what_was_asked_for_is_read_as_the_master_reads_it(
    settings: Mapping[str, str], expected: Size | None
) -> None:
    """A standalone master goes by the most cores, the others by executors."""
    assert declared(settings) == expected


@pytest.mark.parametrize(
    ("cores", "remote", "expected"), [(2, False, 2), (16, False, 8), (2, True, 2), (64, True, 16)]
)
def test_there_are_no_more_state_tasks_than_cores(cores: int, expected: int, *, remote: bool) -> None:
    """Each costs time whatever it holds."""
    assert state_tasks(cores, remote=remote) == expected
