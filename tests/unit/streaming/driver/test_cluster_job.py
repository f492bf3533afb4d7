"""When a query may be stopped without leaving a batch half done, and who is called with what."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from alerts.alert.alert import Alert
from streaming.driver import cluster_job, query_watch
from streaming.driver.cluster_job import ClusterJob
from streaming.driver.outlets import Counts, Outlets
from streaming.driver.probing.cluster_view import ClusterView
from streaming.group_store.store import GroupStore
from streaming.pipeline.losses import Found, Missed
from tests.unit.made_alerts import an_alert
from tests.unit.streaming.fakes import FakeProducer
from tests.unit.streaming.made_plans import plan

if TYPE_CHECKING:
    from tests.unit.streaming.conftest import Rows

NOW_MS = 1_700_000_100_000

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
    query_watch.stop_gently(cast("StreamingQuery", running))

    assert running.is_stopped
    assert running.stopped_at is pause


def test_a_query_that_ends_by_itself_is_not_waited_for() -> None:
    """It makes no batch any more."""
    running = Query(WORKING, ended_after=3)
    query_watch.stop_gently(cast("StreamingQuery", running))

    assert running.is_stopped


def test_a_batch_without_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up."""
    monkeypatch.setattr(query_watch, "_STOP_WAIT_S", 0.0)
    running = Query(WORKING)
    query_watch.stop_gently(cast("StreamingQuery", running))

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
    spark = cast("SparkSession", SimpleNamespace(sparkContext=context))
    job = ClusterJob(lambda: spark, plan(), Outlets(apply=lambda *_: None))
    stopping = Stopping(turns)
    job._stopping = job.lease._stopping = cast("Any", stopping)
    job._run_once = run_once  # type: ignore[method-assign]
    return job, stopping


def test_the_next_shards_are_asked_before_the_next_batch_is_planned() -> None:
    """While shards owe a report, the clock ticks at the end of each batch; afterwards in its own time."""
    job, _ = _job(0, lambda: None)
    ticks: list[bool] = []
    job._clock = cast("Any", SimpleNamespace(wake=lambda: ticks.append(True)))
    job._reading.begin(1, {})
    job._batch_done([-1])
    assert ticks == [True]
    job._batch_done([0])
    job._batch_done([0])
    assert ticks == [True]


def test_a_query_that_keeps_dying_is_started_again_with_bounded_pauses() -> None:
    """Also if it works for minutes each time before it dies of the same batch."""

    def die() -> None:
        raise OSError("disk full")

    job, stopping = _job(7, die)
    job._keep_running()
    assert stopping.waits == [1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0]
    assert (job.progress.deaths, job.progress.restarts) == (7, 7)
    assert job.progress.describe()["error"] == "OSError: disk full"


def test_a_clock_that_fails_for_long_gets_new_producers() -> None:
    """Where Kafka answers: a producer may have failed for good, as after a topic that it may not write."""
    job, _ = _job(0, lambda: None)
    job._watch = cast("Any", SimpleNamespace(check_partitions=lambda *_: None))
    failing_s = [0.0, 119.0, 121.0]
    job.progress.seconds_without_clock = lambda: failing_s.pop(0)  # type: ignore[method-assign]
    job._reading = cast("Any", SimpleNamespace(has_caught_up=True))
    look = partial(job._check, cast("Any", None), cast("Any", None), 1)
    look()
    look()
    with pytest.raises(query_watch.StartAgainError, match="for 121 s, though Kafka answers"):
        look()


def test_a_producer_that_was_given_up_is_replaced() -> None:
    """One of the control topic, or one of the events topic."""
    job, _ = _job(0, lambda: None)
    job._watch = cast("Any", SimpleNamespace(check_partitions=lambda *_: None))
    job._reading = cast("Any", SimpleNamespace(has_caught_up=True))
    out, events_out = SimpleNamespace(is_given_up=False), SimpleNamespace(is_given_up=False)
    look = partial(job._check, cast("Any", None), cast("Any", None), 1, out, events_out)
    look()
    events_out.is_given_up = True
    with pytest.raises(query_watch.StartAgainError, match="refused a record"):
        look()


def test_a_query_that_starts_again_adopts_what_the_first_start_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a new checkpoint, and an alerts topic too long for the start: its checkpoint has a run by then."""
    job, _ = _job(0, lambda: None)
    adopted: list[str] = []

    def adoptions(_run: str, alerts: list[Alert], _at_ms: int) -> list[Any]:
        adopted.extend(one.id for one in alerts)
        return []

    monkeypatch.setattr(cluster_job, "announce", lambda *_, adopt: adopted.extend(one.id for one in adopt))
    monkeypatch.setattr(cluster_job, "adoptions", adoptions)
    monkeypatch.setattr(cluster_job, "producer", lambda _: SimpleNamespace(close=lambda timeout: None))
    left = [1, 0, 0]
    left_open = [SimpleNamespace(alert=an_alert(id="left open"), at_ms=0)]
    job._alerts_keeper.topic = cast(
        "Any",
        SimpleNamespace(
            read=lambda _: left.pop(0), open_alerts=lambda: [] if len(left) == 2 else left_open, ended=dict
        ),
    )
    began, out = cast("Any", SimpleNamespace(run="r")), cast("Any", None)
    job._take_over(began, False, out)
    job._take_over(began, True, out)
    job._alerts_keeper.look()
    assert adopted == ["left open"]


def test_a_query_that_dies_as_another_took_over_is_refused_with_the_sentence() -> None:
    """What Spark wraps around it is not what happened; and the other one's mark is left alone."""
    released: list[str] = []
    mark = SimpleNamespace(
        taken="another groupwatch watches",
        release=lambda: released.append("ours"),
        look=lambda: None,
        try_to_look=lambda: None,
    )

    def die() -> None:
        job.lease._keeper = cast("Any", mark)
        raise RuntimeError("[STREAM_FAILED] pages of it")

    job, _ = _job(1, die)
    job._keep_running()
    assert job.progress.refused == "another groupwatch watches"
    assert (job.progress.deaths, job.lease._keeper, released) == (0, None, ["ours"])


# --- who is called with what ---------------------------------------------------------------------------


class Everybody:
    """Takes all that a job has to say, and a store whose groups it asks about."""

    def __init__(self, rows: "Rows") -> None:
        self.heard: list[tuple[str, Any]] = []
        self.store = GroupStore(["prod"], clock_ms=lambda: NOW_MS)
        self.store.apply("prod", [rows.report("g", commits={"t": {0: (1, 1)}})])
        self.job = ClusterJob(
            lambda: cast("SparkSession", SimpleNamespace()),
            plan(),
            Outlets(
                apply=lambda cluster, found: self._note("rows", (cluster, list(found))),
                remember=lambda alert: self._note("alert", alert.id),
            ),
            groups=ClusterView(self.store, "prod"),
            counts=Counts(
                raise_tried=lambda outcome: self._note("raise", outcome),
                brokers_raised=lambda brokers: self._note("raised", brokers),
                missed=lambda topic, records: self._note("missed", (topic, records)),
                corrected=lambda broker, seconds: self._note("corrected", (broker, seconds)),
            ),
        )

    def _note(self, what: str, told: Any) -> None:
        self.heard.append((what, told))


@pytest.fixture
def everybody(rows: "Rows") -> Everybody:
    return Everybody(rows)


def test_a_batchs_rows_reach_the_store_and_what_the_clock_tells(everybody: Everybody) -> None:
    """A broker that logs in another zone is counted, and every clock record tells the shards of it."""
    batch = [("zone", "2", b'{"ahead_ms":3600000}'), ("other", "", b"{}")]
    everybody.job._take("prod", batch)

    assert everybody.heard == [("corrected", (2, -3600.0)), ("rows", ("prod", batch))]
    assert everybody.job._corrections.zones_ms() == {2: 3_600_000}


def test_the_probe_asks_for_the_ends_of_what_groups_read_and_the_store_keeps_them(
    everybody: Everybody,
) -> None:
    """So lag is known of the groups that are."""
    assert set(everybody.job._probe._topics(True)) == {"t"}
    everybody.job._found_ends({"t": {0: (11, NOW_MS)}})
    (_, group), *_ = everybody.store.groups()

    assert everybody.store.lags("prod", group, NOW_MS)["t"].records == 10


def test_shards_that_reported_owe_the_clock_no_report(everybody: Everybody) -> None:
    """What a batch says once it is written; health counts it, and the clock asks by it."""
    everybody.job.progress.reading.begin(1, {})
    everybody.job._batch_done([-1])

    assert (everybody.job.progress.reading.unreported, everybody.job.progress.batches) == ([0], 1)


def test_lost_records_are_counted_once_and_noticed(everybody: Everybody) -> None:
    """A query that dies before its first batch finds them again."""
    missed = Missed("events", (0,), 7, is_anew=False)
    out = FakeProducer()
    for _ in range(2):
        everybody.job._tell_missed(Found([missed], cast("Any", None), {}), "r", cast("Any", out))

    assert everybody.heard == [("missed", ("events", 7))]
    assert everybody.job.progress.notices == [missed.sentence]
    assert [one["topic"] for one in out.sent] == ["control"] * 2


def test_raised_request_logs_are_counted(everybody: Everybody) -> None:
    """Each attempt with its outcome, and how many brokers' logs are raised."""
    everybody.job._evidence._count("raised")
    everybody.job._evidence._show(2)

    assert everybody.heard[-2:] == [("raise", "raised"), ("raised", 2)]


def test_without_groups_nobody_is_asked(rows: "Rows") -> None:
    """A bench runs a job that way."""
    job = ClusterJob(lambda: cast("SparkSession", SimpleNamespace()), plan(), Outlets(apply=lambda *_: None))
    job._found_ends({"t": {0: (11, NOW_MS)}})

    assert (list(job._probe._topics(True)), job._mirror, job.progress.reconciliation) == ([], None, "off")
