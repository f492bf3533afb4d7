"""Alerts that one receiver is told together, as Alertmanager groups them; under the outbox's lock.

A route with ``group_by`` bundles its alerts by the values of these labels.  The first change waits
``group_wait`` for others; once a bundle was sent, it waits at least until ``group_interval`` has passed since
then.  A bundle ends with its last alert.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from alerts.alert import Alert, AlertStatus
from alerts.delivery.routing import Route
from alerts.delivery.waiting import Entry

_AT_ONCE = 0


class _Key(NamedTuple):
    route: Route
    labels: tuple[tuple[str, str], ...]


class _Bundle(msgspec.Struct, kw_only=True):
    since_ms: int = -1
    """Since when something waits; -1: nothing does."""
    sent_ms: int = -1
    waiting: dict[str, Entry] = {}
    told: set[str] = set()
    """Alerts that the receiver sees firing."""


class Bundles:
    """One receiver's bundles."""

    def __init__(
        self, route_of: Callable[[Alert], Route | None], label_of: Callable[[Alert, str], str]
    ) -> None:
        """Start empty.

        Args:
            route_of: returns the route by which an alert comes to this receiver; None if none does.
            label_of: returns the value of an alert's label.
        """
        self._route_of = route_of
        self._label_of = label_of
        self._bundles: dict[_Key, _Bundle] = {}
        self._waits_in: dict[str, _Key] = {}
        self._told_in: dict[str, _Key] = {}

    def _key_of(self, alert: Alert) -> _Key | None:
        route = self._route_of(alert)
        if route is None or not route.group_by:
            return None
        return _Key(route, tuple((name, self._label_of(alert, name)) for name in route.group_by))

    def join(self, entry: Entry, now_ms: int) -> None:
        """Let ``entry`` wait in its alert's bundle, if that has one, in place of an earlier entry."""
        key = self._key_of(entry.alert)
        before = self._waits_in.get(entry.alert.id)
        if before is not None and before != key:
            self._leave(entry.alert.id)
        if key is None:
            return
        bundle = self._bundles.get(key)
        if bundle is None:
            bundle = self._bundles[key] = _Bundle()
        if not bundle.waiting:
            bundle.since_ms = now_ms
        bundle.waiting[entry.alert.id] = entry
        self._waits_in[entry.alert.id] = key

    def leave(self, entry: Entry) -> None:
        """Take ``entry`` out, unless a newer one has replaced it."""
        key = self._waits_in.get(entry.alert.id)
        if key is not None and self._bundles[key].waiting.get(entry.alert.id) is entry:
            self._leave(entry.alert.id)

    def _leave(self, alert_id: str) -> None:
        key = self._waits_in.pop(alert_id)
        del self._bundles[key].waiting[alert_id]
        self._drop_if_over(key)

    def forget(self, alert_id: str) -> None:
        """Drop an alert."""
        if alert_id in self._waits_in:
            self._leave(alert_id)
        self._no_longer_told(alert_id)

    def told(self, alert: Alert, at_ms: int) -> None:
        """Note that the receiver was told an alert, alone or with others."""
        self._no_longer_told(alert.id)
        key = self._key_of(alert)
        if key is None or alert.status is AlertStatus.RESOLVED:
            return
        bundle = self._bundles.setdefault(key, _Bundle())
        bundle.told.add(alert.id)
        bundle.sent_ms = max(bundle.sent_ms, at_ms)
        self._told_in[alert.id] = key

    def _no_longer_told(self, alert_id: str) -> None:
        key = self._told_in.pop(alert_id, None)
        if key is not None:
            self._bundles[key].told.discard(alert_id)
            self._drop_if_over(key)

    def _drop_if_over(self, key: _Key) -> None:
        bundle = self._bundles[key]
        if not bundle.waiting and not bundle.told:
            del self._bundles[key]

    def sent(self, entry: Entry, now_ms: int) -> None:
        """Note that the bundle of an entry goes out now."""
        key = self._waits_in.get(entry.alert.id)
        if key is not None:
            self._bundles[key].sent_ms = now_ms

    def shift(self, by_ms: int) -> None:
        """Move all times: the clock was set by so much."""
        for bundle in self._bundles.values():
            bundle.since_ms += by_ms
            bundle.sent_ms += by_ms

    def due_ms(self, entry: Entry) -> int:
        """Return when the bundle of ``entry`` may be sent; a time in the past if it has none."""
        key = self._waits_in.get(entry.alert.id)
        if key is None:
            return _AT_ONCE
        bundle = self._bundles[key]
        together_ms = bundle.since_ms + key.route.group_wait_ms
        if not bundle.told:
            return together_ms
        return max(together_ms, bundle.sent_ms + key.route.group_interval_ms)

    def labels_of(self, entry: Entry) -> Mapping[str, str] | None:
        """Return what the alerts of its bundle have in common; None if it has none."""
        key = self._waits_in.get(entry.alert.id)
        return None if key is None else dict(key.labels)

    def others(self, entry: Entry) -> Iterator[Entry]:
        """Yield what else waits in its bundle, as it came."""
        key = self._waits_in.get(entry.alert.id)
        for other in () if key is None else list(self._bundles[key].waiting.values()):
            if other is not entry:
                yield other

    def still_told(self, entry: Entry) -> Iterable[str]:
        """Return the alerts of its bundle that the receiver sees firing and that do not wait."""
        key = self._waits_in.get(entry.alert.id)
        return () if key is None else sorted(self._bundles[key].told - self._waits_in.keys())
