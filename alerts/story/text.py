"""The story of a group as plain text, for a terminal or a browser."""

import textwrap
from datetime import UTC, datetime

from alerts.alert import printable
from alerts.story.narrative import Entry, Explanation

WIDTH = 110
_INDENT = " " * 10


def as_text(told: Explanation) -> str:
    """Return ``told`` as lines of at most 110 characters, with a line feed at the end."""
    lines = [_title(told), ""]
    lines += _paragraph("Now: ", told.now)
    lines += _paragraph("In this time: ", told.summary)
    for advice in told.advice:
        lines += _paragraph("Do: ", advice)
    for note in told.notes:
        lines += _paragraph("Note: ", note)
    if told.entries:
        lines.append("")
    if told.left_out:
        lines.append(f"({told.left_out} older entries are left out; ask for a shorter time.)")
    day = ""
    for entry in told.entries:
        today = _day(entry.at_ms)
        if today != day:
            lines.append(f"{today} (UTC)")
            day = today
        lines += _entry(entry)
    return "\n".join(lines) + "\n"


def _title(told: Explanation) -> str:
    if told.since_ms < 0:
        until = "" if told.until_ms < 0 else f" until {_moment(told.until_ms)}"
        return printable(f"Group {told.group} of cluster {told.cluster}{until}")
    return printable(
        f"Group {told.group} of cluster {told.cluster}, {_moment(told.since_ms)} to {_moment(told.until_ms)}"
    )


def _paragraph(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        printable(f"{head}{text}"),
        WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _entry(entry: Entry) -> list[str]:
    lines = _wrapped(f"{_time(entry.at_ms)}  ", entry.text)
    for detail in entry.details:
        lines += _wrapped(_INDENT, detail)
    return lines


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent=head,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d")


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%H:%M:%S")
