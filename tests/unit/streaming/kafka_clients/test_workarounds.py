"""Workarounds of kafka-python: what they achieve, and whether the library still needs them."""

import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient
from kafka.coordinator.base import BaseCoordinator
from kafka.errors import KafkaError
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
    """Why ``send`` goes through the client's connections."""
    public = [name for name in dir(KafkaAdminClient) if not name.startswith("_") and "send" in name]

    assert public == [], MENDED.format("send")


def test_the_class_of_an_answer_is_still_made_without_a_lock() -> None:
    """Why ``settle_answers`` makes them all beforehand: two threads that ask at once make it twice."""
    made = inspect.getsource(type(MetadataResponse).__getitem__)

    assert "lock" not in made, MENDED.format("settle_answers")
    assert "weakref.proxy" in inspect.getsource(inspect.getmodule(type(MetadataResponse)))  # type: ignore[arg-type]


def test_a_consumer_still_leaves_without_a_reason() -> None:
    """Why ``say_why_like_java`` gives one."""
    source = inspect.getsource(BaseCoordinator)

    assert "await self.maybe_leave_group_async()" in source, MENDED.format("say_why_like_java")
