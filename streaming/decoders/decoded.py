"""The decoders' result for the decode stage: observations by shard, counts, and unreadable rows."""

from dataclasses import dataclass, field

from coordinator_model.observations import Seen, Undecodable


@dataclass
class Decoded:
    """The result of decoding one Arrow batch of one source."""

    cells: dict[int, list[Seen]] = field(default_factory=dict)
    """Shard -> observations, in the order of their Kafka partition."""
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    """(source name, kind) -> rows read; source names are offsets, events, control."""
    bad: list[Undecodable] = field(default_factory=list)
    """Unreadable rows, merged by (origin, reason): every such row counts once."""
    committed_ms: dict[int, int] = field(default_factory=dict)
    """Offsets partition -> newest record time (epoch ms) of a client's commit."""

    def add(self, shard: int, seen: Seen) -> None:
        """Append ``seen`` to a shard's cell."""
        self.cells.setdefault(shard, []).append(seen)

    def count(self, origin: str, kind: str, rows: int = 1) -> None:
        """Count rows that were read."""
        self.counts[origin, kind] = self.counts.get((origin, kind), 0) + rows
