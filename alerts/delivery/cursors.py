"""Computes one receiver's cursors: how far each log is delivered, and what it may have been told."""

from collections.abc import Callable, Iterator, Mapping, Set

from alerts.alert import Severity
from alerts.delivery.alert_log import Cursor
from alerts.delivery.cursor_notes import CursorNotes, pack_notes
from alerts.delivery.cursor_texts import CursorTexts
from alerts.delivery.delivery_ledger import DeliveryLedger
from alerts.delivery.queue_order import HeldPlaces
from alerts.delivery.waiting import Entry, Place

MaybeDelivered = Callable[[str], frozenset[Severity]]
"""Alert id -> severities that the receiver may have been told, besides the one it surely was."""


class Cursors:
    """One receiver's cursors; the caller holds the outbox's lock."""

    def __init__(self, known: DeliveryLedger) -> None:
        """Start before the first record of every log."""
        self._known = known
        self._held = HeldPlaces()
        self._texts = CursorTexts()
        self._positions: dict[str, dict[int, int]] = {}
        self._unannounced: dict[str, dict[str, Entry]] = {}
        self._announcing: dict[str, list[Entry]] = {}

    def advance(self, log: str, positions: Mapping[int, int]) -> None:
        """Record how far ``log`` has been read."""
        self._positions[log] = dict(positions)

    def hold(self, place: Place, entry: Entry) -> None:
        """Keep cursors from passing ``place`` while ``entry`` waits."""
        self._held.hold(place, entry)

    def hold_until_committed(self, entry: Entry) -> None:
        """Let ``entry`` wait until a committed cursor announces that it may be sent."""
        log = self._known.homes[entry.alert.id].log
        self._unannounced.setdefault(log, {})[entry.alert.id] = entry

    def withdraw(self, alert_id: str) -> None:
        """Remove an alert's entry from those that wait for a committed cursor."""
        for parked in self._unannounced.values():
            parked.pop(alert_id, None)

    def cursors_to_commit(
        self, log: str, pending: Mapping[str, Entry], maybe_delivered: MaybeDelivered
    ) -> dict[int, Cursor]:
        """Return the cursors to commit; once Kafka has them, held entries may be sent."""
        self._announcing[log] = list(self._unannounced.get(log, {}).values())
        changed, self._known.changed_ids = self._known.changed_ids, set()
        for alert_id in changed:
            home, told = self._known.homes.get(alert_id), self._known.told.get(alert_id)
            self._texts.put(alert_id, home, told, maybe_delivered(alert_id))
        offsets = self._offsets(log, pending)
        return {n: Cursor(offset, self._texts.text(log, n)) for n, offset in offsets.items()}

    def close(
        self, log: str, pending: Mapping[str, Entry], maybe_delivered: MaybeDelivered, going_out: Set[str]
    ) -> dict[int, Cursor]:
        """Return the last cursors when nothing more will be sent; ``going_out`` is being sent now."""
        self._announcing[log] = []
        offsets = self._offsets(log, pending)
        memories = {partition: CursorNotes() for partition in offsets}
        for alert_id in self._known.told.keys() | self._known.doubts.keys() | going_out:
            home = self._known.homes.get(alert_id)
            if home is not None and home.log == log and home.partition in memories:
                told = self._known.told.get(alert_id)
                memories[home.partition].add(alert_id, told, maybe_delivered(alert_id))
        return {n: Cursor(offsets[n], pack_notes(memory)) for n, memory in memories.items()}

    def announced(self, log: str) -> Iterator[Entry]:
        """Yield the entries that may be sent now: cursors are committed, or cannot be at present."""
        parked = self._unannounced.get(log, {})
        for entry in self._announcing.pop(log, []):
            entry.announced = True
            if parked.get(entry.alert.id) is entry:
                del parked[entry.alert.id]
            yield entry

    def _offsets(self, log: str, pending: Mapping[str, Entry]) -> dict[int, int]:
        offsets = dict(self._positions.get(log, {}))
        for partition, offset in offsets.items():
            first = self._held.first(log, partition, pending)
            offsets[partition] = offset if first is None else min(offset, first)
        return offsets
