"""The lease: who waits for whom, and what a process without it does."""

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka.errors import KafkaTimeoutError

from streaming.control.marks import MarkHeldError
from streaming.driver.lease import Lease, Turn
from streaming.health.query_progress import Progress
from tests.unit.streaming.made_plans import plan


def _lease(turn: Turn = lambda: None) -> tuple[Lease, Progress]:
    progress = Progress("prod")
    lease = Lease(cast("Any", None), plan(), progress, threading.Event(), turn)
    return lease, progress


def _keeper(*, taken: str = "", looks: Exception | None = None) -> Any:
    def look() -> None:
        if looks is not None:
            raise looks

    return SimpleNamespace(
        taken=taken, look=look, try_to_look=lambda: looks, release=lambda: None, may_speak=lambda: True
    )


def test_a_job_claims_after_the_jobs_before_it() -> None:
    """While they try, it says nothing; while one of them stands by, so does this one."""
    answers = ["", "another one watches 'a'", None]
    lease, progress = _lease(lambda: answers.pop(0))
    assert (lease._may_claim(), progress.standing_by) == (False, "")
    assert (lease._may_claim(), progress.standing_by) == (False, "another one watches 'a'")
    assert lease._may_claim()


def test_nobody_is_paged_before_it_is_known_who_leads() -> None:
    """Another process may be delivering; an outage of Kafka leaves nobody to ask, so it is reported."""
    lease, _ = _lease()
    assert not lease.may_speak()
    assert not lease.attempt_failed(ConnectionError("away"))
    assert lease.may_speak()


def test_whoever_stands_by_is_silent_also_in_an_outage() -> None:
    """The one that leads reports it."""
    lease, progress = _lease()
    assert lease.attempt_failed(MarkHeldError("another one"))
    assert progress.standing_by == "another one"
    assert not lease.attempt_failed(ConnectionError("away"))
    assert not lease.may_speak()


def test_a_lease_that_was_taken_explains_whatever_the_query_died_of() -> None:
    """The process has to end, and is silent from then on."""
    lease, _ = _lease()
    lease.is_decided = True
    lease._keeper = _keeper()
    assert lease.may_speak()
    lease._keeper = _keeper(taken="another one")
    assert (lease.is_ours, lease.is_lost) == (False, True)
    assert lease.attempt_failed(RuntimeError("stream failed"))
    assert (lease.taken, lease._keeper, lease.may_speak()) == ("another one", None, False)


@pytest.mark.parametrize("looks", [None, ConnectionError("away")])
def test_a_query_that_dies_under_our_lease_has_its_own_reason(looks: Exception | None) -> None:
    """Also while the places of marks do not answer."""
    lease, _ = _lease()
    lease._keeper = _keeper(looks=looks)
    assert not lease.attempt_failed(RuntimeError("disk full"))
    assert (lease.taken, lease.is_ours) == ("", True)


def test_whoever_lost_the_lease_does_not_fence_its_successor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that is started again looks before it opens the outputs."""
    opened: list[str] = []
    monkeypatch.setattr("streaming.driver.lease.FencedProducer", lambda _, name, **_more: opened.append(name))
    lease, _ = _lease()
    lease._keeper = _keeper(looks=MarkHeldError("another one"))
    with pytest.raises(MarkHeldError):
        lease.open_outputs()
    assert opened == []


def test_an_unanswered_fence_is_waited_for_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the outputs are opened without it."""
    now_s, waited = [100.0], []
    monkeypatch.setattr("streaming.driver.lease.time", SimpleNamespace(monotonic=lambda: now_s[0]))

    def opened(_: Any, _name: str, *, waits: bool) -> Any:
        waited.append(waits)
        if waits:
            raise KafkaTimeoutError
        return SimpleNamespace(unfenced="nobody answers", close=lambda: None)

    monkeypatch.setattr("streaming.driver.lease.FencedProducer", opened)
    lease, _ = _lease()
    for _ in range(3):
        with pytest.raises(KafkaTimeoutError):
            lease.open_outputs()
        now_s[0] += 12
    assert lease.open_outputs().unfenced
    assert waited == [True, True, True, False]


def test_who_has_fenced_the_others_waits_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its query that starts again writes, fenced or not, and says what it fails of."""
    waited = []

    def opened(_: Any, _name: str, *, waits: bool) -> Any:
        waited.append(waits)
        return SimpleNamespace(unfenced="" if waits else "nobody answers", close=lambda: None)

    monkeypatch.setattr("streaming.driver.lease.FencedProducer", opened)
    lease, _ = _lease()
    assert [bool(lease.open_outputs().unfenced) for _ in range(3)] == [False, True, True]
    assert waited == [True, False, False]


def test_who_takes_over_counts_from_then() -> None:
    """The time of standing by is no time without a batch."""
    now = [0.0]
    progress = Progress("prod", lambda: now[0])
    progress.standing_by = "another one"
    progress.kafka_answered()
    now[0] = 500.0
    progress.kafka_answered()
    assert (progress.seconds_stuck(), progress.seconds_losing()) == (0.0, 0.0)
    assert progress.describe()["query"] == "standing by"
    progress.leads()
    assert progress.describe()["query"] == "starting"
    assert progress.seconds_since_batch() == progress.watermark_behind_s() == progress.seconds_stuck() == 0.0
