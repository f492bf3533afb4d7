"""What a new configuration file changes in a process that runs, and what has to wait for a restart."""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

import msgspec

from streaming.config.config import Config, ConfigError

_log = logging.getLogger("groupwatch.config")

LIVE = ("receivers", "routes", "owners", "owners_file", "silences", "maintenance", "rules", "runbook_base")
"""Blocks that can change while the process runs."""
DELIVERY = frozenset({"receivers", "routes", "owners"})
"""Those for which the notifier is made anew."""
LIVE_OF_CLUSTERS = ("groups", "forget_after_ms")


class Changes(NamedTuple):
    """The configuration that holds from now on, and what became of the differences."""

    config: Config
    made: tuple[str, ...]
    """Paths that changed."""
    waiting: tuple[str, ...]
    """Paths that differ in the file and need a restart."""


class Changing(Protocol):
    """A process that can take another configuration."""

    def change(self, config: Config) -> Changes:
        """Take over what can change while the process runs, and return what has changed."""
        ...

    def reloaded(self, *, is_good: bool) -> None:
        """Show whether the configuration could be read again."""
        ...


class Reloaded(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a wish to read the configuration again."""

    error: str = ""
    """Why the file cannot be used: everything is as it was; "" if it can."""
    changed: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()


def read_again(load: Callable[[], Config], process: Changing) -> Reloaded:
    """Read the configuration again, and log what follows; a wrong file changes nothing."""
    try:
        new = load()
    except (ConfigError, OSError) as error:
        process.reloaded(is_good=False)
        why = "; ".join(str(error).splitlines())
        _log.error("the configuration is as it was, for the file cannot be used: %s", why)
        return Reloaded(error=why)
    found = process.change(new)
    process.reloaded(is_good=True)
    _log.info("the configuration was read again; changed: %s", ", ".join(found.made) or "nothing")
    if found.waiting:
        _log.warning("these changes of the configuration need a restart: %s", ", ".join(found.waiting))
    return Reloaded(changed=found.made, needs_restart=found.waiting)


class Reloads:
    """Wishes to read the configuration again, from signals and requests; the main thread does it."""

    def __init__(self, load: Callable[[], Config] | None, owners_file: str = "") -> None:
        """Take what reads the file; None: the configuration never changes.

        Whenever ``owners_file`` changes, all is read again.
        """
        self._load = load
        self._owners_file = owners_file
        self._owners_stamp = _stamp(owners_file)
        self._asked = threading.Event()
        self._lock = threading.Lock()
        self._waiting: list[Future[Reloaded]] = []

    def ask(self) -> None:
        """Ask, without waiting; safe in a signal handler."""
        self._asked.set()

    def ask_and_wait(self, timeout_s: float) -> Reloaded:
        """Ask, and return what became of it.

        Raises:
            TimeoutError: nobody did it in time; it is done when there is time.
        """
        mine: Future[Reloaded] = Future()
        with self._lock:
            self._waiting.append(mine)
        self._asked.set()
        return mine.result(timeout_s)

    def serve(self, process: Changing) -> None:
        """Do what was asked for, if anything was."""
        if self._load is None or not (self._asked.is_set() or self._has_new_owners()):
            return
        self._asked.clear()
        with self._lock:
            waiting, self._waiting = self._waiting, []
        found = read_again(self._load, process)
        for one in waiting:
            one.set_result(found)

    def _has_new_owners(self) -> bool:
        before, self._owners_stamp = self._owners_stamp, _stamp(self._owners_file)
        return before != self._owners_stamp


def _stamp(path: str) -> tuple[int, int, int] | None:
    """Return what differs once a file was written again; None if there is none."""
    try:
        found = os.stat(path) if path else None
    except OSError:
        return None
    return None if found is None else (found.st_ino, found.st_mtime_ns, found.st_size)


def changes(old: Config, new: Config) -> Changes:
    """Return what of ``new`` can hold now; the rest stays as in ``old``."""
    known = {cluster.name: cluster for cluster in new.clusters}
    clusters = [
        one.model_copy(update={name: getattr(known[one.name], name) for name in LIVE_OF_CLUSTERS})
        if one.name in known
        else one
        for one in old.clusters
    ]
    now = old.model_copy(update={name: getattr(new, name) for name in LIVE} | {"clusters": clusters})
    return Changes(now, tuple(_different(old, now)), tuple(_different(now, new)))


def _different(one: Config, other: Config) -> Iterator[str]:
    """Yield the paths of what differs: blocks that can change as a whole, each option of the others."""
    for name in type(one).model_fields:
        before, after = getattr(one, name), getattr(other, name)
        if name == "clusters":
            yield from _clusters(before, after)
        elif before != after:
            yield from [_spelled(name)] if name in LIVE else _options(name, before, after)


def _clusters(before: list[Any], after: list[Any]) -> Iterator[str]:
    old, new = ({one.name: one for one in clusters} for clusters in (before, after))
    for name in {**old, **new}:
        if name in old and name in new:
            yield from _options(f"clusters ({name})", old[name], new[name])
        else:
            yield f"clusters ({name})"


def _options(name: str, before: Any, after: Any) -> Iterator[str]:
    """Yield the options of a block that differ, or its name if it has none."""
    options = getattr(type(before), "model_fields", None)
    if options is None:
        yield _spelled(name)
        return
    for option in options:
        if getattr(before, option) != getattr(after, option):
            yield f"{name}.{_spelled(option)}"


def _spelled(name: str) -> str:
    """Return an option as the file spells it."""
    return name.removesuffix("_ms").removesuffix("_")
