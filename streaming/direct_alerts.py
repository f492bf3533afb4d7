"""ClusterUnreachable and MonitorStalled on their way to the receivers, and over a restart of this process.

They are in no topic, so a small file beside the process remembers which are open and who was told: whoever
starts again during an outage goes on under the same id, and tells the end to those who know the beginning.
"""

import logging
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from alerts.alert import Alert, AlertStatus
from alerts.notifier import wall_clock_ms
from alerts.told import Told
from streaming.config import Config

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_FORMAT = 1
_BYTES_MAX = 4 * 1024 * 1024
_ENDED_KEPT_MS = 2 * 86_400_000
"""The end of an alert that nobody could be told for so long is given up."""

_log = logging.getLogger("groupwatch.notifier")


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """One alert, and which receivers hold it for firing."""

    alert: Alert
    told: dict[str, Told] = {}


class _Content(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    alerts: list[Kept]


class Speaks(Protocol):
    """What is needed of the notifier."""

    def direct(self, alert: Alert) -> None:
        """Send it to its receivers."""
        ...

    def restore(self, alert: Alert, told: Mapping[str, Told]) -> None:
        """Go on with it."""
        ...

    def told_of(self, alert_id: str) -> dict[str, Told]:
        """Return who holds it for firing."""
        ...


def state_folder(config: Config) -> Path:
    """Return where a process keeps its file: as configured, else beside a local checkpoint, else at home."""
    if config.state_dir:
        return Path(config.state_dir)
    scheme = _SCHEME.fullmatch(config.checkpoint)
    if scheme is None:
        return Path(config.checkpoint)
    if scheme[1].lower() == "file":
        return Path("/" + scheme[2].lstrip("/"))
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "groupwatch"


def state_file(config: Config, process: str) -> Path:
    """Return the file of ``run`` or ``notify``: one each, for both may run side by side."""
    return state_folder(config) / f"open-alerts-{process}.json"


class DirectAlerts:
    """Sends them, and remembers those that are open, or whose end not everybody was told."""

    def __init__(self, path: Path, *, clock_ms: Callable[[], int] = wall_clock_ms) -> None:
        self._path = path
        self._clock_ms = clock_ms
        self._kept = {one.alert.id: one for one in _read(path)}
        self._written = b""
        self.error = ""
        """Why the file cannot be written; "" if it can."""
        self.notifier: Speaks | None = None

    def open_alerts(self) -> list[Alert]:
        """Return those that fire."""
        return [one.alert for one in self._kept.values() if one.alert.status is AlertStatus.FIRING]

    @property
    def is_empty(self) -> bool:
        """Nothing is open, and whoever was told a beginning was told its end."""
        return not self._kept

    def speak_through(self, notifier: Speaks) -> None:
        """Send through ``notifier`` from now on, and let it go on with what is open."""
        self.notifier = notifier
        for one in self._kept.values():
            notifier.restore(one.alert, one.told)

    def deliver(self, alert: Alert) -> None:
        """Send a revision, and remember it first: a process that is killed now sends it again."""
        before = self._kept.get(alert.id)
        self._kept[alert.id] = Kept(alert=alert, told=before.told if before else {})
        self._write()
        if self.notifier is not None:
            self.notifier.direct(alert)
        self.save()

    def save(self) -> None:
        """Write down who has been told what, if that has changed."""
        if self.notifier is not None:
            told_of = self.notifier.told_of
            self._kept = {i: Kept(alert=one.alert, told=told_of(i)) for i, one in self._kept.items()}
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
                _log.warning("%s; a restart forgets which outage was told", sentence)
            self.error = sentence
        else:
            self._written, self.error = content, ""


def _is_done(one: Kept, over_ms: int) -> bool:
    alert = one.alert
    if alert.status is AlertStatus.FIRING:
        return False
    return not one.told or (alert.ends_at_ms or 0) < over_ms


def _read(path: Path) -> list[Kept]:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_BYTES_MAX), type=_Content).alerts
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        _log.warning("%s cannot be read, so what it says of open alerts is lost: %s", path, error)
        return []


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that whoever reads it finds the old content or the new."""
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
