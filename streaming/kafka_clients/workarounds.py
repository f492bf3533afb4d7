"""Works around errors and gaps of kafka-python 3.0 by using its private parts.

No other module uses those, and ``pyproject.toml`` pins the minor version that has them.  Each workaround has
a test (``test_workarounds.py``) that fails once the library no longer needs it: then delete both.
"""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.producer.transaction_manager import TransactionManager, TransactionState
from kafka.protocol.api_header import ResponseClassRegistry

Answer = TypeVar("Answer")

_END_S = 10
"""How long the thread of a producer may take to end."""


def settle_answers() -> None:
    """Make kafka-python build all versions of all answers that it knows now; 14 ms for 262.

    kafka-python 3.0.12 builds the class of a version when the first such answer comes, and its registry keeps
    the last one built by a weak reference.  Two threads whose first answers come at once build it twice; the
    registry may keep the one that is then dropped.  After that no client of the process can read such an
    answer again (ReferenceError), or find a broker.
    """
    for answer in list(ResponseClassRegistry._response_class_registry.values()):
        for version in range(answer.max_version + 1):
            answer[version]


settle_answers()  # whoever makes a client has imported this


def end_failed(failed: Any) -> None:
    """End a consumer or admin client whose constructor failed.

    kafka-python 3.0.12 leaves its thread running, which looks for brokers for ever: one more thread per
    attempt during an outage.
    """
    failed._closed = True
    if hasattr(failed, "_net"):  # else it was refused before it had any
        failed._client.close()
        failed._net.stop()


class _EndsWhenItFails:
    """Mixin: closes a kafka-python client whose constructor raised (3.0.12 leaks its thread)."""

    def __init__(self, **options: Any) -> None:
        try:
            super().__init__(**options)
        except KafkaError:
            end_failed(self)
            raise


class Consumer(_EndsWhenItFails, KafkaConsumer):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python's consumer, closed if its constructor raises."""


class Connections:
    """Sends requests of one's own and waits for their answers; kafka-python 3.0.12 offers neither."""

    def __init__(self, manager: Any) -> None:
        """Use the connections of a client."""
        self._manager = manager

    def run(self, asking: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        """Return what ``asking`` returns; it runs in the client's thread, and calls the other methods."""
        answer: Answer = self._manager.run(asking)
        return answer

    def send(self, request: Any, broker: int | None = None) -> Any:
        """Send a request to ``broker`` (None: any), and return its answer as a ``Future``."""
        return self._manager.send(request, broker)

    async def answer(self, future: Any, patience_s: float) -> Any:
        """Return the answer, or raise what stands for it."""
        return await self._manager.wait_for(future, max(0.0, patience_s) * 1000)

    def look_for_brokers(self) -> None:
        """Have the client ask which brokers there are."""
        self._manager.cluster.request_update()


class Admin(_EndsWhenItFails, KafkaAdminClient):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python's admin client; closed if its constructor raises, works with brokers before 3.7."""

    def describe_cluster(self) -> dict[str, Any]:
        """Return the known facts about the brokers.

        kafka-python 3.0.12 expects ``endpoint_type`` in every answer, and older brokers omit it.  Those are
        asked for their metadata, as kafka-python itself does with brokers before 2.8.
        """
        try:
            return dict(super().describe_cluster())
        except KeyError:
            found = dict(self._manager.run(self._get_cluster_metadata, []))
        brokers = [{**broker, "broker_id": broker["node_id"]} for broker in found["brokers"]]
        return found | {"brokers": brokers}

    def ask(self, request: Any, broker: int | None = None) -> Any:
        """Return the answer of ``broker`` (None: any) to a request; the caller checks its error codes.

        kafka-python 3.0.12 has no method for such requests.

        Raises:
            kafka.errors.KafkaError: the broker does not answer, or is too old for the request.
        """
        return self._manager.run(self._manager.send, request, broker)

    @property
    def connections(self) -> "Connections":
        """The client's connections, for requests that several brokers answer at the same time."""
        return Connections(self._manager)


def ask_anew(ids: TransactionManager) -> None:
    """Make an idempotent producer that has dropped its producer id ask for another one.

    It drops the id when a record that it had sent before expires: a replica was away for longer than
    ``delivery_timeout_ms``.  kafka-python 3.0.12 then thinks that it still has one, so it does not ask; and
    without an id it sends nothing and lets nothing expire, silently and for ever.
    """
    reset = ids.reset_producer_id

    def reset_and_ask() -> None:
        with ids._lock:
            reset()
            if ids._current_state is TransactionState.READY:
                ids._current_state = TransactionState.UNINITIALIZED

    ids.reset_producer_id = reset_and_ask


class Producer(KafkaProducer):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python's producer, which survives lost replicas, and whose thread ends with ``close``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if self._transaction_manager is not None and not self._transaction_manager.is_transactional():
            ask_anew(self._transaction_manager)

    @property
    def is_given_up(self) -> bool:
        """True once it takes no record any more.

        kafka-python 3.0.12 gives an idempotent producer up after one record that a broker refused, or one
        request for a producer id that was not answered; Java's only fails the record, or asks again.
        """
        manager = self._transaction_manager
        return manager is not None and bool(manager.has_fatal_error())

    def close(self, timeout: float | None = None, null_logger: bool = False) -> None:
        """Close within ``timeout`` seconds; records that Kafka has not acknowledged by then fail.

        kafka-python 3.0.12 raises instead and leaves its thread running, which looks for brokers for ever:
        one more thread per start of the job during an outage.
        """
        try:
            super().close(timeout=timeout, null_logger=null_logger)
        except KafkaError:
            self._sender.force_close()
            self._sender.join(_END_S)
            self._closed = True


def say_why_like_java(member: KafkaConsumer) -> None:
    """Make a consumer give the reasons that Java's client gives when it leaves.

    kafka-python 3.0.12 also leaves after max.poll.interval.ms, but gives no reason, so nobody could tell.
    """
    coordinator: Any = member._coordinator
    leave = coordinator.maybe_leave_group_async

    async def leave_with_reason(reason: str | None = None, timeout_ms: float | None = None) -> None:
        late = coordinator.heartbeat.poll_timeout_expired()
        why = "consumer poll timeout has expired." if late else "the consumer is being closed"
        await leave(reason or why, timeout_ms)

    coordinator.maybe_leave_group_async = leave_with_reason
