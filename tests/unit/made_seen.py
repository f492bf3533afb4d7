"""An observation for tests to which its place in the partition says little."""

from coordinator_model.observations.base import Source
from coordinator_model.observations.seen import AnyObservation, Seen

_LOGS = frozenset({Source.COORDINATOR_LOG, Source.REQUEST_LOG})


def seen(
    at_ms: int,
    what: AnyObservation,
    source: Source = Source.COORDINATOR_LOG,
    *,
    broker: int | None = None,
    partition: int = 0,
    offset: int = 0,
    backlog: bool = False,
) -> Seen:
    """Return what was seen when it happened; logs are those of broker 1 unless another is named."""
    if broker is None:
        broker = 1 if source in _LOGS else -1
    return Seen(
        at_ms=at_ms,
        source=source,
        partition=partition,
        offset=offset,
        index=0,
        broker=broker,
        recorded_at_ms=at_ms,
        backlog=backlog,
        what=what,
    )
