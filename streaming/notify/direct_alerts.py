"""Delivers ClusterUnreachable and MonitorStalled, and remembers them across restarts of this process.

They are in no topic, so a small file records which are open and which receivers were told.  A process that
restarts during an outage continues them under the same id, and sends the end to receivers of the beginning.
"""

import hashlib
import logging
import os
import re
import tempfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from alerts.alert import DIRECT, Alert, AlertStatus, is_credible
from alerts.delivery import LastDelivery, wall_clock_ms
from alerts.rules.engine import Closing, resolve
from coordinator_model.observations import is_time_ms
from streaming.config import Config

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_FORMAT = 1
_BYTES_MAX = 4 * 1024 * 1024
_ENDED_KEPT_MS = 2 * 86_400_000
"""After this long, the end of an alert that no receiver could be told is given up."""

_log = logging.getLogger("groupwatch.notifier")


class KeptAlert(msgspec.Struct, frozen=True, kw_only=True):
    """One alert, and the receivers that see it firing."""

    alert: Alert
    told: dict[str, LastDelivery] = {}


class _Content(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    alerts: list[KeptAlert]


class AlertSender(Protocol):
    """The part of the notifier that is needed here."""

    def direct(self, alert: Alert) -> None:
        """Send an alert to its receivers."""
        ...

    def restore(self, alert: Alert, told: Mapping[str, LastDelivery]) -> None:
        """Continue an alert of an earlier process."""
        ...

    def last_deliveries(self, alert_id: str) -> dict[str, LastDelivery]:
        """Return the receivers that see the alert firing."""
        ...


def state_file(config: Config, process: str) -> Path:
    """Return the file of ``run`` or ``notify``: one each, because both may run side by side.

    As configured, else beside a local checkpoint, else in the home directory.  If other jobs may use the same
    place, the checkpoint's name is part of the file name: no two jobs share a checkpoint, and no restart
    changes it.
    """
    checkpoint = _checkpoint(config)
    if isinstance(checkpoint, Path) and not config.state_dir:
        return checkpoint / f"open-alerts-{process}.json"
    whose = os.path.abspath(checkpoint) if isinstance(checkpoint, Path) else checkpoint
    digest = hashlib.sha256(whose.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    folder = Path(config.state_dir) if config.state_dir else _home()
    return folder / f"open-alerts-{process}-{digest}.json"


def history_file(config: Config) -> Path:
    """Return the file of history: as configured, else beside that of ``run``, never on a shared folder."""
    if config.history.path:
        return Path(config.history.path)
    beside = state_file(config, "run")
    if config.checkpoint_is_shared and not config.state_dir:
        beside = state_file(config.model_copy(update={"state_dir": str(_home())}), "run")
    return beside.with_name(beside.name.replace("open-alerts-run", "history").replace(".json", ".db"))


def _home() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "groupwatch"


def _checkpoint(config: Config) -> Path | str:
    """Return the checkpoint's local folder, or a remote one's address in one spelling."""
    scheme = _SCHEME.fullmatch(config.checkpoint)
    if scheme is None:
        return Path(config.checkpoint)
    if scheme[1].lower() == "file":
        return Path("/" + scheme[2].lstrip("/"))
    return f"{scheme[1].lower()}:{scheme[2].rstrip('/')}"


class DirectAlerts:
    """Sends these alerts, and remembers those that are open, or whose end not every receiver was told."""

    def __init__(self, path: Path, *, clock_ms: Callable[[], int] = wall_clock_ms) -> None:
        self._path = path
        self._clock_ms = clock_ms
        self._kept = {one.alert.id: one for one in _read(path, clock_ms())}
        self._written = b""
        self.error = ""
        """Why the file cannot be written; "" if it can."""
        self.notifier: AlertSender | None = None

    def open_alerts(self) -> list[Alert]:
        """Return the firing alerts."""
        return [one.alert for one in self._kept.values() if one.alert.status is AlertStatus.FIRING]

    @property
    def is_empty(self) -> bool:
        """No alert is open, and every receiver of a beginning was told the end."""
        return not self._kept

    def speak_through(self, notifier: AlertSender) -> None:
        """Send through ``notifier`` from now on; it continues the open alerts."""
        self.notifier = notifier
        for one in self._kept.values():
            notifier.restore(one.alert, one.told)

    def end_all_but(self, clusters: Collection[str]) -> None:
        """End alerts that nobody will judge again: those of other clusters, and all but one of each kind."""
        judged: set[tuple[str, str]] = set()
        for alert in sorted(self.open_alerts(), key=lambda one: one.detected_at_ms, reverse=True):
            kind = (alert.cluster, alert.name)
            if alert.cluster not in clusters:
                why = f"Kafka cluster {alert.cluster} is no longer configured, so it is not checked."
            elif kind in judged:
                why = f"Another {alert.name} of Kafka cluster {alert.cluster} continues in its place."
            else:
                judged.add(kind)
                continue
            self.deliver(resolve(alert, Closing(ends_at_ms=self._clock_ms(), summary=why)))

    def deliver(self, alert: Alert) -> None:
        """Remember a revision, then send it: a process killed in between sends it again."""
        before = self._kept.get(alert.id)
        self._kept[alert.id] = KeptAlert(alert=alert, told=before.told if before else {})
        self._write()
        if self.notifier is not None:
            self.notifier.direct(alert)
        self.save()

    def save(self) -> None:
        """Write the file, if it changed."""
        if self.notifier is not None:
            last_deliveries = self.notifier.last_deliveries
            self._kept = {
                i: KeptAlert(alert=one.alert, told=last_deliveries(i)) for i, one in self._kept.items()
            }
        over_ms = self._clock_ms() - _ENDED_KEPT_MS
        self._kept = {i: one for i, one in self._kept.items() if not _is_done(one, over_ms)}
        self._write()

    def _write(self) -> None:
        content = msgspec.json.encode(_Content(format=_FORMAT, alerts=list(self._kept.values())))
        if content == self._written or (not self._written and not self._kept and not self._path.exists()):
            return
        try:
            _replace(self._path, content)
        except OSError as error:
            sentence = f"{self._path} cannot be written: {error.strerror or error}"
            if sentence != self.error:
                _log.warning("%s; after a restart, an outage may be reported again", sentence)
            self.error = sentence
        else:
            self._written, self.error = content, ""


def _is_done(one: KeptAlert, over_ms: int) -> bool:
    alert = one.alert
    if alert.status is AlertStatus.FIRING:
        return False
    return not one.told or (alert.ends_at_ms or 0) < over_ms


def _read(path: Path, now_ms: int) -> list[KeptAlert]:
    try:
        with path.open("rb") as file:
            found = msgspec.json.decode(file.read(_BYTES_MAX), type=_Content).alerts
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        _log.warning("%s cannot be read, so the open alerts in it are lost: %s", path, error)
        return []
    kept = [one for one in found if _is_ours(one, now_ms)]
    if len(kept) < len(found):
        _log.warning("%s: ignored %d alerts that are not ours", path, len(found) - len(kept))
    return kept


def _is_ours(one: KeptAlert, now_ms: int) -> bool:
    """Say whether an earlier process can have written it; nobody else would end a forged alert."""
    return (
        one.alert.name in DIRECT
        and is_credible(one.alert, now_ms)
        and all(is_time_ms(told.at_ms) for told in one.told.values())
    )


def _replace(path: Path, content: bytes) -> None:
    """Replace a file in one step: a reader finds the old content or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
