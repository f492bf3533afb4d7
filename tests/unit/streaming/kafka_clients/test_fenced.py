"""One writer for the outputs: what it asks of the broker, and what it does where it may not ask."""

from typing import Any, cast

import pytest
from kafka.errors import (
    InvalidProducerEpochError,
    KafkaTimeoutError,
    ProducerFencedError,
    TransactionalIdAuthorizationFailedError,
)

from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients.fenced import FencedError, FencedProducer, Output
from tests.unit.streaming.fakes import FakeProducer, NotAcknowledgedError

ADDRESS = KafkaAddress(("b:9092",))
RECORDS = [Output("alerts", b"a1", b"{}"), Output("alerts", b"a2", None, 3)]


class Refusing(FakeProducer):
    """A producer whose transactions end in an error."""

    def __init__(self, *, init: Exception | None = None, begin: Exception | None = None) -> None:
        super().__init__()
        self._errors = {"init": init, "begin": begin}

    def init_transactions(self) -> None:
        """Fail, or note it."""
        super().init_transactions()
        self._fail("init")

    def begin_transaction(self) -> None:
        """Fail, or note it."""
        super().begin_transaction()
        self._fail("begin")

    def _fail(self, what: str) -> None:
        error = self._errors[what]
        if error is not None:
            raise error


def _open(
    *producers: FakeProducer, topics: tuple[str, ...] = (), waits: bool = True
) -> tuple[FencedProducer, list[dict[str, Any]]]:
    """Return a writer over these producers, one after the other, and the options of each."""
    options: list[dict[str, Any]] = []
    left = list(producers)

    def open_producer(_: KafkaAddress, **more: Any) -> Any:
        options.append(more)
        return left.pop(0)

    return FencedProducer(
        ADDRESS,
        "groupwatch-prod",
        open_producer=cast("Any", open_producer),
        topics_of=lambda _: topics,
        waits=waits,
    ), options


def test_all_records_of_a_batch_are_one_transaction() -> None:
    """Each to its place; an empty batch asks nothing of the broker."""
    out = FakeProducer()
    writer, options = _open(out)
    writer.write(RECORDS)
    writer.write([])
    assert options[0]["transactional_id"] == "groupwatch-prod"
    assert [(one["key"], one["value"], one["partition"]) for one in out.sent] == [
        (b"a1", b"{}", None),
        (b"a2", None, 3),
    ]
    assert out.transactions == ["init", "begin", "commit"]
    assert writer.unfenced == ""


def test_a_record_that_is_not_acknowledged_aborts_the_transaction() -> None:
    """The batch is written again, whole."""
    out = FakeProducer(failing=frozenset({"alerts"}))
    writer, _ = _open(out)
    with pytest.raises(NotAcknowledgedError):
        writer.write(RECORDS)
    assert out.transactions == ["init", "begin", "abort"]


@pytest.mark.parametrize("error", [ProducerFencedError(), InvalidProducerEpochError()])
def test_who_was_fenced_is_told_so(error: Exception) -> None:
    """Both names that brokers have for it."""
    out = Refusing(begin=error)
    writer, _ = _open(out)
    with pytest.raises(FencedError):
        writer.write(RECORDS)
    assert out.sent == []


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TransactionalIdAuthorizationFailedError(), "do not allow the transactional id 'groupwatch-prod'"),
        (KafkaTimeoutError(), "transaction.state.log.replication.factor"),
    ],
)
def test_a_cluster_without_transactions_is_written_to_all_the_same(error: Exception, said: str) -> None:
    """What that costs is said."""
    refusing, plain = Refusing(init=error), FakeProducer()
    writer, options = _open(refusing, plain)
    writer.write(RECORDS)
    assert said in writer.unfenced
    assert "may still add a batch" in writer.unfenced
    assert options[1] == {}
    assert (len(plain.sent), plain.transactions, refusing.transactions) == (2, [], ["init", "close"])


def test_a_coordinator_that_is_away_just_now_is_waited_for() -> None:
    """Without its answer an earlier writer would not be fenced."""
    out = Refusing(init=KafkaTimeoutError())
    with pytest.raises(KafkaTimeoutError):
        _open(out, topics=("__transaction_state",))
    assert out.transactions == ["init", "close"]


def test_a_coordinator_that_never_answers_stops_nobody_for_ever() -> None:
    """Who has waited long enough writes without a fence, and says so."""
    refusing, plain = Refusing(init=KafkaTimeoutError()), FakeProducer()
    writer, _ = _open(refusing, plain, topics=("__transaction_state",), waits=False)
    writer.write(RECORDS)
    assert "an earlier transaction cannot be ended" in writer.unfenced
    assert len(plain.sent) == 2


def test_another_failure_to_open_is_the_callers() -> None:
    """A broker that is away is no cluster without transactions."""
    out = Refusing(init=ConnectionError("away"))
    with pytest.raises(ConnectionError):
        _open(out)
    assert out.transactions == ["init", "close"]
