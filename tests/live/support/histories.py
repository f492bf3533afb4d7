"""Two histories of one group side by side: what the brokers said and logged, and what the job told; pure."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tests.live.support.comparing import Logged, Poll, effective

_WIDTH = 88


class _Entry(NamedTuple):
    at_ms: int
    theirs: str
    ours: str


def side_by_side(
    group: str, polls: Sequence[Poll], logged: Iterable[Logged], transitions: list[dict[str, Any]]
) -> list[str]:
    """Return lines for people: time in seconds since the first entry, the brokers' side, our side.

    Of answers that are alike only the first one in a row is told.
    """
    entries = sorted(
        [
            *_answers([poll for poll in polls if poll.group == group]),
            *(_of_line(one) for one in logged if one.group == group),
            *(_of_ours(one) for one in effective(transitions) if one["group"] == group),
        ],
        key=lambda entry: entry.at_ms,
    )
    head = f"{'':>9}  {'brokers':<{_WIDTH}}  groupwatch"
    return [head, *(_line(entry, entries[0].at_ms) for entry in entries)]


def _answers(polls: Sequence[Poll]) -> list[_Entry]:
    before = [None, *(poll.state for poll in polls)]
    return [
        _Entry(poll.asked_at_ms, f"answered {poll.state}", "")
        for poll, last in zip(polls, before, strict=False)
        if poll.state != last
    ]


def _of_line(one: Logged) -> _Entry:
    return _Entry(one.at_ms, f"logged {one.state}/{one.generation} {one.reason}", "")


def _of_ours(one: dict[str, Any]) -> _Entry:
    cause = one.get("cause", {})
    who = cause.get("client_id") or cause.get("member_id") or ""
    told = (one["to"] + f"/{one['generation']}", cause.get("kind", ""), who, one.get("basis", ""))
    return _Entry(one["at_ms"], "", " ".join(part for part in told if part))


def _line(entry: _Entry, since_ms: int) -> str:
    text = f"{(entry.at_ms - since_ms) / 1000:9.3f}  {entry.theirs[:_WIDTH]:<{_WIDTH}}  {entry.ours}"
    return text.rstrip()
