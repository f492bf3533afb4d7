"""Captures that tests write and read again."""

import json
from html.parser import HTMLParser
from typing import Any

from alerts.story import Explanation
from streaming.serving.api import GroupHistory
from streaming.serving.one_file.captured import Captured, CapturedGroup, listed

NOW_MS = 1_700_000_100_000
_LOGGER = "(org.apache.kafka.coordinator.group.GroupMetadataManager)"
_MEMBER = "app-5f1d7bd2-0000-4000-8000-000000000001"
_LIFE = (
    (
        "00,000",
        f"Dynamic member with unknown member id joins group <G> in Empty state. "
        f"Created a new member id {_MEMBER} and requesting the member to rejoin with this id.",
    ),
    (
        "00,500",
        f"Pending dynamic member with id {_MEMBER} joins group <G> in Empty state. Adding to the group now.",
    ),
    (
        "00,501",
        "Preparing to rebalance group <G> in state PreparingRebalance with old generation 0 "
        f"(reason: Adding new member {_MEMBER} with group instance id null; "
        f"client reason: need to re-join with the given member-id: {_MEMBER}).",
    ),
    ("03,510", "Stabilized group <G> generation 1 with 1 members."),
    (
        "04,300",
        f"Assignment received from leader {_MEMBER} for group <G> for generation 1. "
        "The group has 1 members, 0 of which are static.",
    ),
)


def life(at: str, group: str) -> str:
    """Return the log of a member that comes; the group is then Stable.  ``at``: hour and minute."""
    return "".join(_line(f"{at}:{second}", text, group) for second, text in _LIFE)


def upset(at: str, group: str) -> str:
    """Return the line of a rebalance that begins because of another member.  ``at``: hour, minute, second."""
    text = (
        "Preparing to rebalance group <G> in state PreparingRebalance with old generation 1 "
        "(reason: Adding new member b-5f1d7bd2-0000-4000-8000-000000000001 with group instance id null; "
        "client reason: not provided)."
    )
    return _line(f"{at},000", text, group)


def _line(at: str, text: str, group: str) -> str:
    return f"[2026-11-20 {at}] INFO [GroupCoordinator id=1] {text.replace('<G>', group)} {_LOGGER}\n"


def a_capture(*names: str, source: str = "server.log") -> Captured:
    """Return a capture of groups in which nothing happened."""
    return Captured(
        made_at_ms=NOW_MS, until_ms=NOW_MS, source=source, groups=[_group(name) for name in names]
    )


def _group(name: str) -> CapturedGroup:
    history = GroupHistory(
        cluster="eu",
        group=name,
        from_ms=NOW_MS - 600_000,
        to_ms=NOW_MS,
        at_ms=NOW_MS,
        step_ms=10_000,
        lag=[],
        gaps=[],
        states=[],
        rebalances=[],
        members=[],
        owners=[],
        alerts=[],
    )
    story = Explanation(
        cluster="eu", group=name, since_ms=-1, until_ms=NOW_MS, now="", summary="", advice=[], entries=[]
    )
    return CapturedGroup(
        cluster="eu", group=name, detail=None, alerts=listed([], NOW_MS), history=history, story=story
    )


class Document(HTMLParser):
    """What a parser of HTML finds in a file."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, dict[str, str], str]] = []
        """Scripts and styles, with their attributes and texts."""
        self.feed(content.decode())
        self.close()

    @property
    def policy(self) -> dict[str, list[str]]:
        """Return directive -> sources."""
        told = next(
            (one.get("content", "") for name, one in self.elements if name == "meta" and "http-equiv" in one),
            "",
        )
        return {words[0]: words[1:] for words in (one.split() for one in told.split(";")) if words}

    @property
    def captured(self) -> Any:
        """Return the answers in it."""
        return next(json.loads(text) for _, told, text in self.texts if told.get("id") == "captured")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag in ("script", "style"):
            self.texts.append((*self.elements[-1], ""))

    def handle_data(self, data: str) -> None:
        """Note the text of a script or style."""
        if self.elements and self.cdata_elem:
            tag, told, text = self.texts.pop()
            self.texts.append((tag, told, text + data))
