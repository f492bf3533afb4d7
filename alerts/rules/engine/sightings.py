"""What the rules about membership remember: sightings of misuse, and since when a condition holds.

A sighting is one thing seen of one kind about one key (an instance id, a member, a client); more of the
same is counted in it.  Everything is bounded, and forgotten after a time that each rule gives.
"""

import msgspec

from alerts.alert import Culprit

SIGHTINGS_MAX = 32
"""Of one rule in one group; the oldest are forgotten first."""


class Sighting(msgspec.Struct, array_like=True, kw_only=True):
    """One thing seen; times in epoch ms."""

    kind: str
    key: str
    first_ms: int
    last_ms: int
    count: int = 1
    culprits: list[Culprit] = []
    sentence: str = ""
    """Of its newest occurrence."""
    number: int = -1
    """What the rule wants to keep with it; for timeouts the value that is set."""
    measured: int = -1
    """For timeouts the largest that was measured."""


class HygieneMemory(msgspec.Struct, array_like=True, kw_only=True):
    """All of it for one group; nothing is kept for a group of which nothing was seen."""

    seen: dict[str, list[Sighting]] = {}
    """Alert name -> sightings, oldest first."""
    since: dict[str, int] = {}
    """Condition -> since when it holds without a break."""

    def of(self, name: str) -> list[Sighting]:
        """Return the sightings of one rule; not to be changed."""
        return self.seen.get(name, [])

    def find(self, name: str, kind: str, key: str) -> Sighting | None:
        """Return one sighting of a rule."""
        return next((one for one in self.of(name) if one.kind == kind and one.key == key), None)

    def note(self, name: str, new: Sighting) -> Sighting:
        """Take in a sighting: a new one, or one more of a known one."""
        known = self.find(name, new.kind, new.key)
        if known is None:
            self.seen[name] = [*self.of(name), new][-SIGHTINGS_MAX:]
            return new
        known.count += 1
        known.last_ms = max(known.last_ms, new.last_ms)
        known.culprits = new.culprits or known.culprits
        known.sentence = new.sentence or known.sentence
        known.number = new.number
        known.measured = max(known.measured, new.measured)
        return known

    def keep(self, name: str, kept: list[Sighting]) -> None:
        """Forget every sighting of a rule but these."""
        if kept:
            self.seen[name] = kept
        else:
            self.seen.pop(name, None)

    def holds(self, condition: str, at_ms: int) -> int:
        """Note that a condition holds at ``at_ms``; returns since when it does."""
        return self.since.setdefault(condition, at_ms)

    def ends(self, condition: str) -> None:
        """Note that a condition does not hold."""
        self.since.pop(condition, None)

    def is_empty(self) -> bool:
        """Say whether nothing is remembered."""
        return not (self.seen or self.since)
