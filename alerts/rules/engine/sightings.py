"""The memory of the rules about membership: sightings of misuse, and since when a condition holds.

A sighting has one kind and one key (an instance id, a member, a client) and counts its occurrences.
Everything is bounded, and forgotten after a time that each rule gives.
"""

import msgspec

from alerts.alert import Culprit

SIGHTINGS_MAX = 32
"""Sightings of one rule in one group; the oldest are forgotten first."""


class Sighting(msgspec.Struct, array_like=True, kw_only=True):
    """One kind of misuse by one key; times in epoch ms."""

    kind: str
    key: str
    first_ms: int
    last_ms: int
    count: int = 1
    culprits: list[Culprit] = []
    sentence: str = ""
    """The sentence about its newest occurrence."""
    number: int = -1
    """A value that the rule keeps with it; for timeouts the configured value."""
    measured: int = -1
    """For timeouts the largest measured value."""


class HygieneMemory(msgspec.Struct, array_like=True, kw_only=True):
    """All sightings in one group; a group without any has no memory."""

    seen: dict[str, list[Sighting]] = {}
    """Alert name -> sightings, oldest first."""
    since: dict[str, int] = {}
    """Condition -> since when it has held without a break."""

    def of(self, name: str) -> list[Sighting]:
        """Return the sightings of one rule; the caller must not change them."""
        return self.seen.get(name, [])

    def find(self, name: str, kind: str, key: str) -> Sighting | None:
        """Return one sighting of a rule, if there is one."""
        return next((one for one in self.of(name) if one.kind == kind and one.key == key), None)

    def note(self, name: str, new: Sighting) -> Sighting:
        """Add a sighting, or count one more occurrence of a known one."""
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
        """Forget all sightings of a rule but these."""
        if kept:
            self.seen[name] = kept
        else:
            self.seen.pop(name, None)

    def holds(self, condition: str, at_ms: int) -> int:
        """Record that a condition holds at ``at_ms``; return since when it has."""
        return self.since.setdefault(condition, at_ms)

    def ends(self, condition: str) -> None:
        """Record that a condition does not hold."""
        self.since.pop(condition, None)

    def is_empty(self) -> bool:
        """Say whether the memory is empty."""
        return not (self.seen or self.since)
