"""Applies one observation, or one deadline, to one group."""

import msgspec

from coordinator_model.observations import Seen, Source
from coordinator_model.state import Group, Step

_SOURCES = {
    Source.COORDINATOR_LOG: "coordinator_log",
    Source.OFFSETS: "offsets",
    Source.REQUEST_LOG: "request_log",
    Source.CONTROL: "model",
}


class Context(msgspec.Struct, frozen=True):
    """The live sources of the shard while one observation is applied.

    ``info_live``: the coordinator's INFO log is being read, so only that log and records may make
    transitions.  ``requests_live``: the request log is being read, so silence proves something.
    """

    cluster: str
    info_live: bool
    offsets_enabled: bool
    backlog: bool
    requests_live: bool = False
    requests_steady: bool = True
    """False while the request log has only just come back: until members had the time to send a request,

    their silence proves nothing.
    """


class Turn(msgspec.Struct):
    """One observation, or one deadline, applied to one group."""

    group: Group
    context: Context
    step: Step
    at_ms: int
    recorded_at_ms: int
    source: str
    broker: int = -1

    @property
    def may_infer(self) -> bool:
        """Return whether the request log and timers may make transitions."""
        return not self.context.info_live and self.group.group_type == "classic"

    @property
    def reads_requests(self) -> bool:
        """Return whether members are known from requests; a live INFO log is the better source."""
        return self.context.requests_live and not self.context.info_live

    def diverged(self, kind: str) -> None:
        """Count one kind of divergence, once for each turn."""
        if kind not in self.step.divergences:
            self.step.divergences.append(kind)


def turn_of(group: Group, seen: Seen, context: Context, step: Step) -> Turn:
    """Return the turn that applies ``seen``."""
    return Turn(
        group=group,
        context=context,
        step=step,
        at_ms=seen.at_ms,
        recorded_at_ms=seen.recorded_at_ms,
        source=_SOURCES[seen.source],
        broker=seen.broker,
    )
