"""How ``notify`` sees a job in another process, by what that writes into the control topic."""

import msgspec
import pytest

from alerts.alert.alert import Alert, AlertStatus
from streaming.control.job_state import JobState
from streaming.control.marks import mark_of
from streaming.control.records import ClockRecord, MarkRecord, encode_record
from streaming.driver.supervisor import Limits, Watched
from streaming.notify.watching import RemoteProgress, of_records

CLUSTER = "prod"


class Now:
    """A clock that goes when told."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        """Return the time it was set to."""
        return self.s


class Desk:
    """A job in another process, a cluster, and whoever watches both."""

    def __init__(self) -> None:
        self.now = Now()
        self.job = RemoteProgress(CLUSTER, clock=self.now)
        self.said: list[Alert] = []
        self.watched = Watched(self.job, Limits(), self.said.append)

    def live(self, seconds: int, *, kafka: bool = True, **record: object) -> None:
        """Let time pass; with ``record`` the job writes its clocks."""
        for _ in range(seconds):
            self.now.s += 1
            if kafka:
                self.job.kafka_answered()
                if record:
                    self.hear(clock(**record))
            self.watched.look(round(self.now.s * 1000))

    def hear(self, value: bytes | None) -> None:
        """Read one record."""
        for told in of_records([value], [CLUSTER]).get(CLUSTER, []):
            self.job.heard(told)

    def told(self) -> list[tuple[str, str]]:
        """Return what was told."""
        return [(one.name, str(one.status)) for one in self.said]


def clock(**changes: object) -> bytes:
    """Return a clock record of a job that is well, but for ``changes``."""
    state = JobState(**({"cluster": CLUSTER, "batches": 9, "stuck_ms": 300} | changes))  # type: ignore[arg-type]
    return encode_record(ClockRecord(at_ms=1, run="r", sequence=1, job=state))


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_dead_job_is_told_and_its_return_too(desk: Desk) -> None:
    """The age of its last record says it, while Kafka answers."""
    desk.live(100, trouble="")
    assert desk.told() == []
    desk.live(62)
    assert desk.told() == [("MonitorStalled", "firing")]
    assert "the job has written no record for" in desk.said[0].cause
    desk.live(2, batches=0)
    assert len(desk.said) == 1
    desk.live(2, batches=1)
    assert desk.told()[-1] == ("MonitorStalled", "resolved")


def test_a_job_that_never_wrote_is_told(desk: Desk) -> None:
    """Nobody watches, and that is what the alert is for."""
    desk.live(62)
    assert "it does not run" in desk.said[0].cause


def test_a_job_whose_batches_hang_is_told_with_its_own_words(desk: Desk) -> None:
    """Its clock goes on, and says for how long no batch has ended."""
    desk.live(30, trouble="")
    for second in range(70):
        desk.live(1, stuck_ms=second * 1000, trouble="disk full")
    assert (desk.told(), desk.said[0].cause) == ([("MonitorStalled", "firing")], "disk full")


def test_a_job_that_falls_behind_is_told_with_its_own_words(desk: Desk) -> None:
    """Its batches end, and what it judges lies further and further back."""
    desk.live(30, trouble="")
    for second in range(70):
        desk.live(1, losing_ms=second * 1000, lagging="broker 3 is furthest behind")
    assert desk.told() == [("MonitorStalled", "firing")]
    assert "broker 3 is furthest behind" in desk.said[0].cause


def test_a_job_that_dies_of_one_batch_is_told_at_once(desk: Desk) -> None:
    """As the job itself would tell it."""
    desk.live(5, is_dying=True, trouble="the query has died 3 times in a row")
    assert desk.told() == [("MonitorStalled", "firing")]


def test_an_outage_is_no_stalled_job(desk: Desk) -> None:
    """Nobody can hear of the job then: ClusterUnreachable says it, and afterwards the job has its time."""
    desk.live(100, trouble="")
    desk.live(300, kafka=False)
    desk.live(30, trouble="")
    assert desk.told() == [("ClusterUnreachable", "firing"), ("ClusterUnreachable", "resolved")]


def test_a_job_that_was_stopped_in_good_order_is_told_as_that(desk: Desk) -> None:
    """Whoever stopped it may have forgotten it; a restart within the limit says nothing."""
    desk.live(10, trouble="")
    mark = mark_of(CLUSTER, ("t", "a"))
    desk.hear(encode_record(MarkRecord(at_ms=1, mark=msgspec.structs.replace(mark, released=True))))
    desk.live(70)
    assert "was stopped" in desk.said[0].cause
    assert "in good order" in desk.said[0].cause
    assert desk.said[0].status is AlertStatus.FIRING


def test_a_job_that_speaks_itself_is_left_to_speak_while_it_lives(desk: Desk) -> None:
    """Also through a short outage of Kafka, in which nobody hears of it."""
    assert not desk.job.job_speaks
    desk.live(20, speaks=True)
    assert desk.job.job_speaks
    for _ in range(40):
        desk.live(1, kafka=False)
        assert desk.job.job_speaks
    desk.live(14)
    assert desk.job.job_speaks
    desk.live(2)
    assert not desk.job.job_speaks
    desk.live(1, speaks=False)
    assert not desk.job.job_speaks


def test_a_job_that_a_long_outage_hides_is_not_taken_to_live_for_ever(desk: Desk) -> None:
    """It may have died at the same time: after twice the patience of ClusterUnreachable somebody speaks."""
    desk.live(20, speaks=True)
    desk.live(59, kafka=False)
    assert desk.job.job_speaks
    desk.live(1, kafka=False)
    assert not desk.job.job_speaks
    desk.live(5)
    assert not desk.job.job_speaks, "Kafka is back, and nothing is heard of the job"
    desk.live(1, speaks=True)
    assert desk.job.job_speaks


def test_a_kafka_that_comes_and_goes_hides_no_death_for_ever(desk: Desk) -> None:
    """However short each outage is."""
    desk.live(20, speaks=True)
    for _ in range(3):
        desk.live(18, kafka=False)
        desk.live(5)
    assert not desk.job.job_speaks


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"{}",
        b"\xff\xfe",
        b'{"kind":"clock","job":7}',
        b'{"kind":"clock","job":{"cluster":7}}',
        b'{"kind":"clock","job":{"cluster":"prod","stuck_ms":1e400}}',
        b'{"kind":"clock","job":{"cluster":"prod","stuck_ms":"x"}}',
        b'{"kind":"clock","job":{"cluster":"other"}}',
        b'{"kind":"mark","mark":{}}',
        b'{"kind":"settings","cluster":"prod"}',
        b"[" * 10_000,
    ],
)
def test_what_is_no_record_of_the_job_says_nothing(value: bytes | None, desk: Desk) -> None:
    """Anybody may write into a topic."""
    desk.live(10, trouble="")
    for _ in range(70):
        desk.hear(value)
        desk.live(1)
    assert desk.told() == [("MonitorStalled", "firing")]


@pytest.mark.parametrize("stuck_ms", [-1, 2**63, 2**62, -(2**62), 10**15])
def test_numbers_that_no_job_tells_make_no_error(stuck_ms: int, desk: Desk) -> None:
    """They are not believed."""
    desk.live(70, stuck_ms=stuck_ms)
    assert {name for name, _ in desk.told()} <= {"MonitorStalled"}


def test_clocks_of_an_older_job_are_its_only_clusters() -> None:
    """They do not say whose they are; where several write to one topic nobody knows."""
    old = encode_record(ClockRecord(at_ms=1, run="r", sequence=1))
    assert list(of_records([old], ["one"])) == ["one"]
    assert of_records([old], ["one", "two"]) == {}
