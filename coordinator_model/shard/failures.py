"""Counts and names failures of our own code, and divergences between the mirror and the sources."""

from collections.abc import Mapping

from coordinator_model import observations as on
from coordinator_model.observations import Seen
from coordinator_model.ordering import Buffered
from coordinator_model.shard import quarantine
from coordinator_model.shard.judging import Divergence, Outputs
from coordinator_model.shard.snapshot import Header, RecentFailure

RECENT_FAILURES_MAX = 5
PACKED_MAX = 2_048


class Failures:
    """Counts divergences and failures of one step, and names the groups that our code failed on."""

    def __init__(self, *, header: Header, outputs: Outputs, strict: bool) -> None:
        self.header = header
        self.outputs = outputs
        self.strict = strict
        """Whether to raise a failure of our own code instead of counting it; for tests."""
        self.quarantined: set[str] = set()
        """Groups that our code failed on in this step."""
        self._diverged: dict[tuple[str, str, int], Divergence] = {}

    def set_aside(self, seen: Seen, error: Exception) -> None:
        """Count an observation that was applied to no group, or not even ordered."""
        group = seen.what.group if isinstance(seen.what, on.GroupObservation) else quarantine.WHOLE_SHARD
        self.contain(group, seen, max(self.header.done_ms, 0), error)

    def contain(
        self,
        group: str,
        seen: Seen | None,
        order_ms: int,
        error: Exception,
        *,
        what: str = "",
        lost: bool = False,
    ) -> None:
        """Count a failure of our own code, set its observation aside, quarantine its group.

        The query goes on.  In tests the failure is raised instead (``strict``).

        Args:
            group: the group concerned, "" for the shard itself.
            seen: the observation; None for a deadline, a rule, a report.
            order_ms: its order time.
            error: what was raised.
            what: what failed, where that is no observation.
            lost: whether the group's state could not be read.
        """
        if self.strict:
            raise error
        words = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode()
        text = (f"{what}: {words}" if what else words)[:500]
        kept = [*self.header.poisoned, RecentFailure(group=group, error=text, packed=_packed(seen))]
        self.header.poisoned = kept[-RECENT_FAILURES_MAX:]
        broker = -1 if seen is None else seen.broker
        self.diverge("internal_error", group, broker, order_ms, text)
        if quarantine.note(self.header.quarantined, group, order_ms, text, lost=lost):
            self.quarantined.add(group)

    def diverge(self, kind: str, group: str, broker: int, at_ms: int, detail: str = "") -> None:
        """Count one divergence; many of one kind are one entry, since there may be thousands."""
        key = (kind, group, broker)
        known = self._diverged.get(key)
        if known is not None:
            known.count += 1
            return
        self._diverged[key] = one = Divergence(
            kind=kind, group=group, broker=broker, at_ms=at_ms, detail=detail
        )
        self.outputs.divergences.append(one)

    def diverge_at(self, kind: str, held: Buffered) -> None:
        """Count a divergence that concerns the whole shard; in the backlog nothing is counted."""
        if self.header.live_since_ms >= 0:
            self.diverge(kind, "", held.seen.broker, held.order_ms)

    def quarantine_news(self, slots: Mapping[str, object], now_ms: int) -> list[on.GroupQuarantined]:
        """Return, for the cluster's shard, the groups that are quarantined and those that work again."""
        header = self.header
        if not (header.quarantined or self.quarantined):
            return []
        sound = {*slots, *(() if header.rebuilt_since_ms >= 0 else (quarantine.WHOLE_SHARD,))}
        over = quarantine.release(header.quarantined, now_ms, sound)
        names = {*self.quarantined, *over, *(header.quarantined if header.order.asked else ())}
        return [quarantine.told(header.quarantined, header.shard, one) for one in sorted(names)]


def _packed(seen: Seen | None) -> bytes:
    """Return the observation that was set aside, as far as it can be encoded."""
    try:
        return b"" if seen is None else on.pack([seen])[:PACKED_MAX]
    except Exception:  # an observation that makes our code fail may also be one that cannot be encoded
        return repr(seen).encode("utf-8", "backslashreplace")[:PACKED_MAX]
