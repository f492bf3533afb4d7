"""Builds the metadata of one receiver's cursors, alert by alert.

Rebuilding it at each commit would cost time for every open alert, several times a second.
"""

from bisect import bisect_left, insort

from alerts.alert import Severity
from alerts.delivery.cursor_notes import MARK_LENGTH, ROOM, CursorNotes, LastDelivery, text_of, words_of
from alerts.delivery.waiting import Place


class CursorText:
    """The metadata of one partition's cursor, updated alert by alert."""

    def __init__(self) -> None:
        self._told: list[str] = []
        self._maybe: list[str] = []
        self._of: dict[str, tuple[str, ...]] = {}

    def put(self, alert_id: str, told: LastDelivery | None, maybe: frozenset[Severity]) -> None:
        """Replace what is remembered of one alert."""
        memory = CursorNotes()
        memory.add(alert_id, told, maybe)
        doubtful, certain = words_of(memory)
        words = (*doubtful, *certain)
        before = self._of.get(alert_id, ())
        if before == words:
            return
        for word in before:
            found = self._maybe if word[MARK_LENGTH].isupper() else self._told
            del found[bisect_left(found, word)]
        for word in words:
            insort(self._maybe if word[MARK_LENGTH].isupper() else self._told, word)
        if words:
            self._of[alert_id] = words
        else:
            self._of.pop(alert_id, None)

    def text(self) -> str:
        """Return the metadata to commit with the cursor."""
        return text_of([*self._maybe[: ROOM + 1], *self._told[: ROOM + 1]])


class CursorTexts:
    """The metadata of all cursors; each alert belongs to the partition that its record is in."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, int], CursorText] = {}
        self._home_of: dict[str, tuple[str, int]] = {}

    def put(
        self, alert_id: str, place: Place | None, told: LastDelivery | None, maybe: frozenset[Severity]
    ) -> None:
        """Replace what is remembered of one alert; an alert without a record is not remembered."""
        is_known = place is not None and (told is not None or bool(maybe))
        home = (place.log, place.partition) if place is not None and is_known else None
        before = self._home_of.pop(alert_id, None)
        if before is not None and before != home:
            self._texts[before].put(alert_id, None, frozenset())
        if home is not None:
            self._home_of[alert_id] = home
            self._texts.setdefault(home, CursorText()).put(alert_id, told, maybe)

    def text(self, log: str, partition: int) -> str:
        """Return the metadata to commit with the cursor of a partition."""
        return self._texts.get((log, partition), _EMPTY).text()


_EMPTY = CursorText()
