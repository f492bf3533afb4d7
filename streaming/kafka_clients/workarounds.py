"""What kafka-python 3.0 gets wrong or does not offer, worked around by way of its private parts.

Nobody else touches those, and ``pyproject.toml`` pins the minor version that has them.  Each workaround has a
test (``test_workarounds.py``) that fails once the library no longer needs it: then delete both.
"""

from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.protocol.api_header import ResponseClassRegistry

_END_S = 10
"""So long the thread of a producer may take to end."""


def settle_answers() -> None:
    """Have kafka-python make every version of every kind of answer that it knows now; 14 ms for 262.

    kafka-python 3.0.12 makes the class of a version when the first such answer comes, and its registry holds
    what was made last by a weak reference.  Two threads whose first answers come at once make it twice; the
    one that is not kept may be what the registry holds, and when it is gone no client of the process can
    read such an answer again (ReferenceError), or find a broker.
    """
    for answer in list(ResponseClassRegistry._response_class_registry.values()):
        for version in range(answer.max_version + 1):
            answer[version]


settle_answers()  # whoever makes a client has imported this


def end_failed(failed: Any) -> None:
    """End a consumer or admin client whose constructor failed.

    kafka-python 3.0.12 leaves its thread running, which looks for brokers for ever: one more for each
    attempt during an outage.
    """
    failed._closed = True
    if hasattr(failed, "_net"):  # else it was refused before it had any
        failed._client.close()
        failed._net.stop()


class _EndsWhenItFails:
    """Mixin: ends a client of kafka-python whose constructor raised."""

    def __init__(self, **options: Any) -> None:
        try:
            super().__init__(**options)
        except KafkaError:
            end_failed(self)
            raise


class Consumer(_EndsWhenItFails, KafkaConsumer):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python's own, which outlives its own failure."""


class Admin(_EndsWhenItFails, KafkaAdminClient):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python's own, which fails on brokers before Kafka 3.7 and outlives its own failure."""

    def describe_cluster(self) -> dict[str, Any]:
        """Return what is known of the brokers.

        kafka-python 3.0.12 takes ``endpoint_type`` out of every answer, and older brokers put none in;
        so those are asked for their metadata, as kafka-python itself does with brokers before 2.8.
        """
        try:
            return dict(super().describe_cluster())
        except KeyError:
            found = dict(self._manager.run(self._get_cluster_metadata, []))
        brokers = [{**broker, "broker_id": broker["node_id"]} for broker in found["brokers"]]
        return found | {"brokers": brokers}


class Producer(KafkaProducer):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python's own, which outlives a close that leaves records behind."""

    def close(self, timeout: float | None = None, null_logger: bool = False) -> None:
        """End it within ``timeout`` seconds; what Kafka has not acknowledged by then fails.

        kafka-python 3.0.12 raises instead and leaves its thread running, which looks for brokers for ever:
        one more for each start of the job during an outage.
        """
        try:
            super().close(timeout=timeout, null_logger=null_logger)
        except KafkaError:
            self._sender.force_close()
            self._sender.join(_END_S)
            self._closed = True


def send(admin: KafkaAdminClient, request: Any, broker: int | None = None) -> Any:
    """Return the answer of ``broker`` (None: any) to a protocol request; error codes in it are the caller's.

    kafka-python 3.0.12 has no method for a request of one's own.

    Raises:
        kafka.errors.KafkaError: it does not answer, or is too old for the request.
    """
    connections = connections_of(admin)
    return connections.run(connections.send, request, broker)


def connections_of(admin: KafkaAdminClient) -> Any:
    """Return the client's connections, for requests that several brokers answer at the same time.

    kafka-python 3.0.12 offers neither those nor a request of one's own.
    """
    return admin._manager


def say_why_like_java(member: KafkaConsumer) -> None:
    """Have a consumer give the reasons that Java's client gives when it leaves.

    kafka-python 3.0.12 leaves as well when max.poll.interval.ms has passed, but does not say why, and then
    nobody could know.
    """
    coordinator: Any = member._coordinator
    leave = coordinator.maybe_leave_group_async

    async def leave_with_reason(reason: str | None = None, timeout_ms: float | None = None) -> None:
        late = coordinator.heartbeat.poll_timeout_expired()
        why = "consumer poll timeout has expired." if late else "the consumer is being closed"
        await leave(reason or why, timeout_ms)

    coordinator.maybe_leave_group_async = leave_with_reason
