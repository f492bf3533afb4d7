"""Captures the groups of a replay: it is watched as the job is, by the same store, view and history."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from alerts.alert import Alert
from alerts.delivery import wall_clock_ms
from coordinator_model.state import Transition
from streaming.group_store import GroupStore
from streaming.history import Keeper, Past
from streaming.replay import CLUSTER, Passed, Skipped, replay
from streaming.serving import (
    RANK,
    WINDOW_MAX_MS,
    ExplainError,
    ShownAlerts,
    View,
    Window,
    explain_replay,
    history_of,
    replayed_groups,
)
from streaming.serving.one_file.captured import Captured, CapturedGroup, listed

GROUPS_MAX = 200
SIZE_MAX = 48_000_000
"""Most bytes of answers in a file: a browser still opens it at once."""
_NAMED_MAX = 3


def captured_replay(
    paths: Sequence[Path],
    *,
    config_rules: bytes | None,
    timezone: str,
    group: str | None,
    skipped: Skipped,
) -> Captured:
    """Return the groups of captured files, those in most trouble first.

    Args:
        paths: as for ``replay``.
        config_rules: as for ``replay``.
        timezone: as for ``replay``.
        group: this group only; None: all, up to ``GROUPS_MAX`` and ``SIZE_MAX``.
        skipped: counts what could not be read.

    Raises:
        ReplayError: a file is missing or damaged, or holds nothing that groupwatch can read.
        ExplainError: there is no such group in it, or none at all.
    """
    with TemporaryDirectory(prefix="groupwatch-") as folder:
        watched = _Watched(Path(folder))
        happened = list(
            replay(paths, config_rules=config_rules, timezone=timezone, skipped=skipped, watch=watched.take)
        )
        try:
            return _captured(watched, happened, group, skipped, _source(paths))
        finally:
            watched.close()


class _Watched:
    """What a job would know at each time of a replay."""

    def __init__(self, folder: Path) -> None:
        self._now_ms = -1
        self._store = GroupStore([CLUSTER], clock_ms=self._clock_ms)
        self._shown = ShownAlerts(self._clock_ms)
        self.view = View(self._store, self._shown, clock_ms=self._clock_ms)
        path = folder / "history.db"
        self._keeper = Keeper(path, self._store, [CLUSTER], clock_ms=self._clock_ms, is_replayed=True)

    def _clock_ms(self) -> int:
        return self._now_ms

    def take(self, passed: Passed) -> None:
        """Take one stretch."""
        is_later, self._now_ms = passed.at_ms > self._now_ms, max(passed.at_ms, self._now_ms)
        rows = [(*_place(one), msgspec.json.encode(one)) for one in passed.happened]
        rows += [("report", one.group, msgspec.json.encode(one)) for one in passed.reports]
        self._store.set_end_offsets(CLUSTER, passed.ends)
        self._store.apply(CLUSTER, rows)
        self._shown.apply(CLUSTER, rows)
        self._keeper.offer(CLUSTER, rows)
        if is_later:
            self._keeper.look()
        else:
            self._keeper.take()  # a rate over no time would be nonsense

    def past(self, cluster: str, group: str, from_ms: int, to_ms: int) -> Past:
        """Return one group over a window; a log that is silent has been watched all the same."""
        return self._keeper.read(cluster, group, from_ms, to_ms)._replace(gaps=())

    def close(self) -> None:
        """Close the history."""
        self._keeper.stop()


def _place(one: Transition | Alert) -> tuple[str, str]:
    return ("transition", one.group) if isinstance(one, Transition) else ("alert", one.id)


def _captured(
    watched: _Watched, happened: list[Transition | Alert], group: str | None, skipped: Skipped, source: str
) -> Captured:
    of_group: dict[str, list[Transition | Alert]] = defaultdict(list)
    for one in happened:
        of_group[one.group].append(one)
    names = sorted(replayed_groups(happened, group), key=lambda name: (_trouble(of_group[name]), name))
    if not names:
        raise ExplainError("no group did anything in what was replayed, so there is nothing to show.")
    until_ms = max(skipped.last_ms, *(one.at_ms for one in happened if isinstance(one, Transition)), 0)
    seen = Window(max(skipped.first_ms, until_ms - WINDOW_MAX_MS), until_ms, until_ms)
    found: list[CapturedGroup] = []
    size = 0
    for name in names:
        made = _group(watched, name, of_group[name], skipped=skipped, seen=seen)
        if made is None:
            continue  # it was gone before the last days
        size += len(msgspec.json.encode(made))
        if found and size > SIZE_MAX:
            break
        found.append(made)
        if len(found) == GROUPS_MAX:
            break
    if not found:
        what = "any group" if group is None else f"group {group!r}"
        raise ExplainError(f"nothing is known of {what} in the last days of what was replayed.")
    return Captured(
        made_at_ms=wall_clock_ms(),
        until_ms=until_ms,
        source=source,
        groups=found,
        left_out=len(names) - len(found),
    )


def _group(
    watched: _Watched,
    name: str,
    happened: list[Transition | Alert],
    *,
    skipped: Skipped,
    seen: Window,
) -> CapturedGroup | None:
    history = history_of(watched.view, watched.past, CLUSTER, name, seen)
    if history is None:
        return None
    return CapturedGroup(
        cluster=CLUSTER,
        group=name,
        detail=watched.view.group(CLUSTER, name),
        alerts=listed(history.alerts, seen.now_ms),
        history=history,
        story=explain_replay(happened, CLUSTER, name, skipped.last_ms, skipped.reports)[0],
    )


def _trouble(happened: Sequence[Transition | Alert]) -> tuple[int, int]:
    """Return where a group stands: those with the loudest alert first, then those that moved most."""
    loudest = min((RANK[one.severity] for one in happened if isinstance(one, Alert)), default=len(RANK))
    return loudest, -len(happened)


def _source(paths: Sequence[Path]) -> str:
    """Return the files' names for people, without their folders."""
    names = [one.name for one in paths]
    more = f" and {len(names) - _NAMED_MAX} more files" if len(names) > _NAMED_MAX else ""
    return ", ".join(names[:_NAMED_MAX]) + more
