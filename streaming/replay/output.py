"""The output of ``groupwatch replay``: JSON Lines, or a table for people."""

import json
import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec
from rich.console import Console
from rich.table import Table

from alerts.alert import Alert, printable
from coordinator_model.state import Transition

_UNSAFE = re.compile("[^\x20-\x7e]")
"""Names may contain terminal control characters, and not every terminal accepts every character."""


def _escaped(found: re.Match[str]) -> str:
    """Return a character as JSON escapes it in ASCII; the value stays the same."""
    return json.dumps(found[0])[1:-1]


def print_replay(happened: Iterable[Transition | Alert], *, as_json: bool, alerts: bool) -> int:
    """Print what happened to stdout and return how many lines; alerts only if asked for."""
    wanted = (one for one in happened if alerts or isinstance(one, Transition))
    return _print_json(wanted) if as_json else _print_table(wanted)


def _print_json(happened: Iterable[Transition | Alert]) -> int:
    count = 0
    for one in happened:
        sys.stdout.write(_UNSAFE.sub(_escaped, msgspec.json.encode(one).decode()) + "\n")
        count += 1
    return count


def _print_table(happened: Iterable[Transition | Alert]) -> int:
    table = Table("time (UTC)", "group", "what", "generation", "cause", "who", "basis")
    count = 0
    for one in happened:
        cells = _transition_cells(one) if isinstance(one, Transition) else _alert_cells(one)
        table.add_row(*map(printable, cells))
        count += 1
    # A pipe has no width, and nothing may be cut off.
    console = Console(width=None if sys.stdout.isatty() else 240, markup=False, highlight=False)
    console.print(table)
    return count


def _time(at_ms: int) -> str:
    moment = datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{at_ms % 1000:03d}"


def _transition_cells(one: Transition) -> tuple[str, ...]:
    who = one.cause.client_id or one.cause.member_id
    host = f" {one.cause.client_host}" if one.cause.client_host else ""
    moved = f"{one.from_state} -> {one.to_state}" + (" (corrects an earlier line)" if one.replaces else "")
    return (
        _time(one.at_ms),
        one.group,
        moved,
        str(one.generation),
        str(one.cause.kind),
        who + host,
        f"{one.basis} ({one.source})",
    )


def _alert_cells(one: Alert) -> tuple[str, ...]:
    at_ms = one.detected_at_ms if one.ends_at_ms is None else one.ends_at_ms
    culprits = ", ".join(culprit.client_id or culprit.member_id for culprit in one.culprits)
    what = f"{one.name} {one.status} ({one.severity}): {one.summary}"
    return _time(at_ms), one.group, what, "", one.cause, culprits, ""
