"""Workarounds of kafka-python: what they achieve, and whether the library still needs them."""

import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient
from kafka.coordinator.base import BaseCoordinator, Generation, MemberState
from kafka.errors import KafkaConnectionError, KafkaError, TopicAuthorizationFailedError
from kafka.producer.transaction_manager import ProducerIdAndEpoch, TransactionManager, TransactionState
from kafka.protocol.api_header import ResponseClassRegistry
from kafka.protocol.metadata import MetadataResponse
from kafka.structs import TopicPartition

from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients import clients as kafka_io
from streaming.kafka_clients import group_messages as messages
from streaming.kafka_clients import workarounds

NOWHERE = "127.0.0.1:1"
MENDED = "kafka-python has been mended: delete {} from workarounds.py, and this test"

# --- what they achieve ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "connect",
    [
        kafka_io.admin_client,
        lambda address: kafka_io.consumer(address, group_id="g", bootstrap_timeout_ms=200),
    ],
    ids=["admin", "consumer"],
)
def test_who_finds_no_broker_leaves_nothing_running(
    monkeypatch: pytest.MonkeyPatch, connect: Callable[[KafkaAddress], object]
) -> None:
    """An outage of an hour must not leave a thread for each attempt."""
    monkeypatch.setattr(kafka_io, "_REQUEST_TIMEOUT_MS", 1_000)
    before = set(threading.enumerate())
    with pytest.raises(KafkaError):
        connect(KafkaAddress((NOWHERE,)))
    assert set(threading.enumerate()) <= before


def test_a_producer_that_cannot_deliver_ends_all_the_same() -> None:
    """A job that is started again during an outage must not leave its producer's thread behind."""
    before = set(threading.enumerate())
    out = kafka_io.producer(KafkaAddress((NOWHERE,)), api_version=(3, 0))
    waiting, *_ = out._accumulator.append(TopicPartition("t", 0), None, None, b"never acknowledged", [])
    out.close(timeout=0.1)
    assert waiting.failed()
    assert set(threading.enumerate()) <= before


def test_no_thread_makes_the_class_of_an_answer_anew() -> None:
    """Two that did at once would leave one of a kind that no client of the process can read again."""
    known = ResponseClassRegistry._response_class_registry
    assert messages.ShareGroupDescribeResponse.API_KEY in known
    for answer in known.values():
        made = answer[None]._VERSIONS
        assert sorted(made) == list(range(answer.max_version + 1)), answer.name


def _asks_anew(ids: Any) -> bool:
    """Return whether a producer that has dropped its producer id asks for another one when it next can."""
    ids._current_state = TransactionState.READY
    ids.set_producer_id_and_epoch(ProducerIdAndEpoch(7, 0))
    ids.reset_producer_id()
    ids.init_producer_id()
    return bool(ids._current_state is TransactionState.INITIALIZING)


def test_a_producer_asks_anew_for_the_id_that_it_dropped() -> None:
    """It drops it where a replica was away for half a minute, and sends nothing without one."""
    out = kafka_io.producer(KafkaAddress((NOWHERE,)), api_version=(3, 0))
    try:
        assert _asks_anew(out._transaction_manager)
    finally:
        out.close(timeout=0.1)


def test_a_producer_says_that_it_was_given_up() -> None:
    """Whoever has one that takes no record any more needs another."""
    out = kafka_io.producer(KafkaAddress((NOWHERE,)), api_version=(3, 0))
    try:
        assert not out.is_given_up
        _refuse(out)
        assert out.is_given_up
    finally:
        out.close(timeout=0.1)


def _refuse(out: Any) -> None:
    """Let a broker refuse a record of a topic that may not be written just now."""
    partition = TopicPartition("t", 0)
    out._accumulator.append(partition, None, None, b"refused", [])
    (batch,) = out._accumulator._batches[partition]
    told = SimpleNamespace(log_start_offset=-1, record_errors=(), error_message=None, base_offset=-1)
    out._sender._dispatch_error(batch, TopicAuthorizationFailedError("t"), told)


@pytest.mark.parametrize(
    ("late", "reason"),
    [(True, "consumer poll timeout has expired."), (False, "the consumer is being closed")],
)
def test_a_consumer_leaves_with_the_reason_that_java_gives(*, late: bool, reason: str) -> None:
    """The broker writes it into its log, and only it tells a poll timeout from a close."""
    member = _Member()
    workarounds.say_why_like_java(member)

    assert member.reasons(late=late) == [reason]


# --- whether they are still needed ---------------------------------------------------------------------


@pytest.mark.parametrize("library", [KafkaAdminClient, KafkaConsumer])
def test_a_client_that_fails_still_leaves_its_thread(library: Any) -> None:
    """Why ``_EndsWhenItFails`` stands before both."""
    client: Any = library.__new__(library)
    before = set(threading.enumerate())
    try:
        with pytest.raises(KafkaError):
            client.__init__(bootstrap_servers=[NOWHERE], bootstrap_timeout_ms=200)
        left = set(threading.enumerate()) - before
    finally:
        workarounds.end_failed(client)

    assert left, MENDED.format("_EndsWhenItFails")


def test_a_producer_that_cannot_deliver_still_outlives_its_close() -> None:
    """Why ``Producer.close`` ends the thread itself."""
    out = KafkaProducer(bootstrap_servers=[NOWHERE], api_version=(3, 0))
    out._accumulator.append(TopicPartition("t", 0), None, None, b"never acknowledged", [])
    try:
        with suppress(KafkaError):
            out.close(timeout=0.1)
        goes_on = out._sender.is_alive()
    finally:
        out._sender.force_close()
        out._sender.join(10)

    assert goes_on, MENDED.format("Producer")


def test_a_producer_still_does_not_ask_anew() -> None:
    """Why ``Producer`` changes what happens when an id is dropped."""
    ids = TransactionManager(transactional_id=None, api_version=(3, 0))

    assert not _asks_anew(ids), MENDED.format("ask_anew")


def test_a_producer_is_still_given_up_for_one_refused_record() -> None:
    """Why ``Producer.is_given_up`` looks; Java's producer only fails the record."""
    out = KafkaProducer(bootstrap_servers=[NOWHERE], api_version=(3, 0))
    try:
        _refuse(out)
        goes_on = not out._transaction_manager.has_fatal_error()
    finally:
        out._sender.force_close()
        out._sender.join(10)

    assert not goes_on, MENDED.format("Producer.is_given_up")


class _OldBroker:
    """Stands for the connections of an admin client: a broker before Kafka 3.7 tells no endpoint type."""

    def run(self, ask: Callable[..., Any], *args: Any) -> Any:
        """Drive one coroutine of the library's, which only awaits this."""
        try:
            ask(*args).send(None)
        except StopIteration as end:
            return end.value
        raise AssertionError("it waits for something else")

    async def send(self, _: Any) -> Any:
        """Answer without the field."""
        return _Told()


class _Told:
    error_code = 0

    def to_dict(self) -> dict[str, Any]:
        return {"error_code": 0, "error_message": None, "brokers": [], "cluster_authorized_operations": 0}


def test_an_admin_client_still_fails_on_older_brokers() -> None:
    """Why ``Admin.describe_cluster`` asks for the metadata instead."""
    client: Any = KafkaAdminClient.__new__(KafkaAdminClient)
    client._manager = _OldBroker()
    client._closed = True
    failed = ""
    try:
        client.describe_cluster()
    except KeyError as error:
        failed = str(error)

    assert failed == "'endpoint_type'", MENDED.format("Admin.describe_cluster")


def test_an_admin_client_still_has_no_method_for_any_request() -> None:
    """Why ``Admin.ask`` goes through the client's connections."""
    public = [name for name in dir(KafkaAdminClient) if not name.startswith("_") and "send" in name]

    assert public == [], MENDED.format("Admin.ask")


def test_an_admin_client_still_keeps_its_connections_to_itself() -> None:
    """Why ``Admin.connections`` takes them from a private attribute."""
    client: Any = KafkaAdminClient.__new__(KafkaAdminClient)
    try:
        with pytest.raises(KafkaError):
            client.__init__(bootstrap_servers=[NOWHERE], bootstrap_timeout_ms=200)
        offered = [name for name in dir(client) if getattr(client, name, None) is client._manager]
    finally:
        workarounds.end_failed(client)

    assert offered == ["_manager"], MENDED.format("Connections")


class _SeenAtOnce(dict[Any, Any]):
    """The versions of an answer that are made; the first looks of two threads happen at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self._both = threading.Barrier(2)
        self._mine = threading.local()

    def __contains__(self, version: object) -> bool:
        found = super().__contains__(version)
        if not getattr(self._mine, "has_looked", False):
            self._mine.has_looked = True
            with suppress(threading.BrokenBarrierError):
                self._both.wait(1.0)  # in vain if a lock keeps the other thread out
        return found


@contextmanager
def _nothing_made(versions: dict[Any, Any]) -> Iterator[Any]:
    """Have no version of an answer made yet; afterwards all is as it was, and such answers can be read."""
    registry, key = ResponseClassRegistry._response_class_registry, MetadataResponse.API_KEY
    answer, registered = registry[key][None], registry[key]
    known, answer._VERSIONS = answer._VERSIONS, versions
    try:
        yield answer
    finally:
        answer._VERSIONS, registry[key] = known, registered


def test_the_class_of_an_answer_is_still_made_without_a_lock() -> None:
    """Why ``settle_answers`` makes them all beforehand: two threads that ask at once make it twice."""
    with _nothing_made(_SeenAtOnce()) as answer, ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: answer[1], range(2))

    assert first is not second, MENDED.format("settle_answers")


def test_the_class_of_an_answer_is_still_kept_by_a_weak_reference() -> None:
    """Why it matters which of two remains: the registry has the last one, and nobody may hold that."""
    with _nothing_made({}) as answer:
        assert answer[1].API_KEY == MetadataResponse.API_KEY
        answer._VERSIONS.clear()
        gc.collect()
        alive = ""
        with suppress(ReferenceError):
            alive = ResponseClassRegistry._response_class_registry[MetadataResponse.API_KEY].__name__

    assert alive == "", MENDED.format("settle_answers")


class _Member:
    """As much of kafka-python's member of a group as it needs to leave; keeps the request."""

    close = BaseCoordinator.close
    maybe_leave_group = BaseCoordinator.maybe_leave_group
    maybe_leave_group_async = BaseCoordinator.maybe_leave_group_async
    heartbeat_loop = BaseCoordinator._heartbeat_loop

    group_id, group_instance_id, coordinator_id, state = "g", None, 1, MemberState.STABLE
    _use_group_apis = _heartbeat_enabled = True
    _heartbeat_closed = False

    def __init__(self) -> None:
        self._generation = Generation(1, "m", "range")
        self._manager = self._net = self
        self._coordinator = self
        self.sent: list[Any] = []

    def run(self, ask: Callable[..., Any], *args: Any) -> None:
        """Drive one coroutine, which has nothing to wait for."""
        with suppress(StopIteration):
            ask(*args).send(None)

    def send(self, request: Any, **_: Any) -> None:
        """Keep the request."""
        self.sent.append(request)

    async def wait_for(self, *_: Any) -> Any:
        """Fail, which a member that leaves does not mind."""
        raise KafkaConnectionError("gone")

    def stable(self) -> bool:
        return True

    def is_dynamic_member(self) -> bool:
        return True

    def coordinator_unknown(self) -> bool:
        return False

    def _close_heartbeat(self) -> None:
        """None runs."""

    def reset_generation(self) -> None:
        """Let the loop of the heartbeats end."""
        self._heartbeat_closed = True

    def reasons(self, *, late: bool) -> list[str | None]:
        """Return the reasons with which it leaves: late for its poll, or closed in time."""
        self.heartbeat = SimpleNamespace(
            session_timeout_expired=lambda: False, poll_timeout_expired=lambda: late
        )
        if late:
            self.run(self.heartbeat_loop)
        else:
            self.close()
        (request,) = self.sent
        return [one.reason for one in request.members]


@pytest.mark.parametrize("late", [True, False])
def test_a_consumer_still_leaves_without_a_reason(*, late: bool) -> None:
    """Why ``say_why_like_java`` gives one."""
    assert _Member().reasons(late=late) == [None], MENDED.format("say_why_like_java")
