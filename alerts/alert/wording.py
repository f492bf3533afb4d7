"""Spells times, durations and members in the same way for every rule."""

from datetime import UTC, datetime
from typing import Protocol

from coordinator_model.observations import TIME_MS_MAX


class Named(Protocol):
    """A member that ``who_is`` can put into words: present, gone, blamed or remembered."""

    @property
    def member_id(self) -> str:
        """The member's id; "" if no source gives it."""

    @property
    def client_id(self) -> str:
        """The client id."""

    @property
    def client_host(self) -> str:
        """The host that the client runs on."""

    @property
    def instance_id(self) -> str | None:
        """``group.instance.id`` of a static member."""


def printable(text: str) -> str:
    r"""Return ``text`` with invisible characters escaped as in Python: ``\n``, ``\u202e``.

    Names come from outside: control characters steer a terminal, a line break forges a log line, and
    direction marks reverse the text around them.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


_ROUND_MS = (1_000, 5_000, 15_000, 60_000)
_DAYS_FROM = 2
"""Up to this many days, a duration is given in hours."""


def span(duration_ms: float) -> str:
    """Return a duration as people say it: ``850 ms``, ``4.2 s``, ``2 min 30 s``, ``3 h``, ``7 days``."""
    if duration_ms < 1_000:
        return f"{round(duration_ms)} ms"
    if duration_ms < 10_000:
        return f"{duration_ms / 1_000:.1f} s".replace(".0 s", " s")
    seconds = round(duration_ms / 1_000)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3_600:
        return _two(seconds // 60, "min", seconds % 60, "s")
    if seconds < _DAYS_FROM * 86_400:
        return _two(seconds // 3_600, "h", seconds % 3_600 // 60, "min")
    return _two(seconds // 86_400, "days", seconds % 86_400 // 3_600, "h")


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit} {small} {small_unit}" if small else f"{large} {large_unit}"


def round_up(value_ms: int) -> int:
    """Return the next larger value that a person would choose for a timeout."""
    step_ms = next((step for step in reversed(_ROUND_MS) if value_ms >= 4 * step), _ROUND_MS[0])
    return -(-value_ms // step_ms) * step_ms


def clock(at_ms: int) -> str:
    """Return date and time in UTC, to the millisecond."""
    return (
        datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S.") + f"{at_ms % 1_000:03d} UTC"
    )


def clock_time(at_ms: int) -> str:
    """Return the time of day in UTC, to the second; for texts that already give the day."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%H:%M:%S")


def who(*, member_id: str, client_id: str, client_host: str, instance_id: str | None = None) -> str:
    """Return one member in words: its client and host, or its id if no source gives those."""
    name = client_id or member_id or "an unknown member"
    if instance_id:
        name = f"{name} (instance {instance_id})"
    return f"{name} on {client_host.lstrip('/')}" if client_host else name


def who_is(one: Named) -> str:
    """Return ``who`` of anything that has the four parts."""
    return who(
        member_id=one.member_id,
        client_id=one.client_id,
        client_host=one.client_host,
        instance_id=one.instance_id,
    )


def rfc3339(at_ms: int) -> str:
    """Return a time as Go's JSON has it, in UTC with milliseconds."""
    text = datetime.fromtimestamp(min(at_ms, TIME_MS_MAX) / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def some(names: list[str], *, at_most: int = 3) -> str:
    """Return the first names and the number of the others; equal names are listed once, with their count."""
    counted = dict.fromkeys(names, 0)
    for name in names:
        counted[name] += 1
    told = [name if times == 1 else f"{times} x {name}" for name, times in counted.items()]
    more = len(told) - at_most
    return ", ".join(told[:at_most]) + (f" and {more} more" if more > 0 else "")


def times(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 rebalance``, ``7 rebalances``, ``12,000 records``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
