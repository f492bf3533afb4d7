"""Compares what groupwatch wrote with what the brokers answered and logged; pure."""

import bisect
import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

TOLERANCE_MS = 300


@dataclass(frozen=True)
class Poll:
    """One DescribeGroups answer; true somewhere between the two times (epoch milliseconds)."""

    group: str
    state: str
    asked_at_ms: int
    answered_at_ms: int


@dataclass
class Agreement:
    """Polls that could be judged, how many agreed, and the ones that did not."""

    judged: int = 0
    agreed: int = 0
    unknown: int = 0
    wrong: list[tuple[Poll, str]] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Agreed of judged; 1.0 if nothing was judged."""
        return self.agreed / self.judged if self.judged else 1.0


def effective(transitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return transitions without repeats and without those that were replaced, in order of ``at_ms``."""
    by_id = {t["id"]: t for t in transitions}
    replaced = {t["replaces"] for t in by_id.values() if t.get("replaces")}
    kept = [t for t in by_id.values() if t["id"] not in replaced]
    return sorted(kept, key=lambda t: t["at_ms"])


def compare(polls: list[Poll], transitions: list[dict[str, Any]], initial: dict[str, str]) -> Agreement:
    """Judge each poll outside the tolerance around our transitions against the state we claim for then."""
    timeline: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for transition in effective(transitions):
        timeline[transition["group"]].append(transition)
    result = Agreement()
    for poll in polls:
        moves = timeline.get(poll.group, [])
        times = [t["at_ms"] for t in moves]
        near = bisect.bisect_left(times, poll.asked_at_ms - TOLERANCE_MS)
        if near < len(times) and times[near] <= poll.answered_at_ms + TOLERANCE_MS:
            continue
        index = bisect.bisect_right(times, poll.asked_at_ms) - 1
        claimed = moves[index]["to"] if index >= 0 else initial.get(poll.group, "Dead")
        result.judged += 1
        if claimed == poll.state:
            result.agreed += 1
        else:
            result.wrong.append((poll, claimed))
    return result


_LINE = re.compile(r"^\[(?P<at>[^\]]+)\] (?P<level>\w+) (?:\[GroupCoordinator [^\]]*\]:? )(?P<text>.*)$")
_GROUP, _GENERATION = r"[gG]roup (?P<g>.+)", r"generation (?P<n>\d+)"
_SHAPES = (
    (
        "PreparingRebalance",
        re.compile(
            rf"Preparing to rebalance {_GROUP} in state \S+ with old {_GENERATION} .*\(reason: (?P<r>.*)\)\.?"
        ),
    ),
    ("CompletingRebalance", re.compile(rf"Stabilized {_GROUP} {_GENERATION} .*with \d+ members")),
    ("Stable", re.compile(rf"Assignment received from leader .+ for {_GROUP} for {_GENERATION}\.")),
    ("Empty", re.compile(rf"{_GROUP} with {_GENERATION} is now empty")),
)


class Logged(NamedTuple):
    """A transition that a line of ``server.log`` tells."""

    group: str
    state: str
    generation: int
    reason: str
    """"" where the line gives none."""
    at_ms: int

    @property
    def what(self) -> tuple[str, str, int]:
        """Without its reason and its time."""
        return self[:3]


def logged(lines: list[str], until_ms: int = 2**62) -> list[Logged]:
    """Return the transitions that the lines of a server.log tell, in order.

    An assignment that the coordinator gave up storing made nothing Stable, and is left out.  So was one that
    was not replicated yet when a member joined, which begins the next rebalance: ``UNSEEN`` is its reason.
    """
    found: list[Logged] = []
    for line in lines:
        match = _LINE.match(line)
        at_ms = _at_ms(match["at"]) if match else 0
        if not match or at_ms > until_ms:
            continue
        joined = _JOINED_BEFORE_STABLE.search(match["text"])
        if joined:
            newest = next((one for one in reversed(found) if one.group == joined["g"]), None)
            if newest is not None and newest.state == "Stable":
                found[found.index(newest)] = newest._replace(reason=UNSEEN)
        for state, shape in _SHAPES:
            hit = shape.search(match["text"])
            if hit:
                reason = hit.groupdict().get("r") or ""
                one = Logged(hit["g"], state, int(hit["n"]), reason, at_ms)
                if _GIVEN_UP in reason:
                    _take_back(found, one._replace(state="Stable").what)
                found.append(one)
    return found


def _take_back(found: list[Logged], what: tuple[str, str, int]) -> None:
    first = next((one for one in found if one.what == what and not one.reason), None)
    if first is not None:
        found.remove(first)


_GIVEN_UP = "when storing group assignment"
UNSEEN = "was not replicated in time"
"""Of a Stable that never was, and that may be told for some milliseconds: no clock came between."""
_JOINED_BEFORE_STABLE = re.compile(
    rf"joins {_GROUP} in CompletingRebalance state\. .*\b[Aa]dd(?:ing|ed)\b.* to the group"
)


def _at_ms(text: str) -> int:
    moment = datetime.strptime(text, "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def missing_and_extra(
    transitions: list[dict[str, Any]], expected: list[Logged]
) -> tuple[list[tuple[str, str, int]], list[tuple[str, str, int]]]:
    """Return transitions that the coordinator logged and we lack, and ours that it never logged.

    Creation and death (Dead -> Empty, -> Dead) and what a new coordinator resumes from have no line of
    their own and are left out; so are moves of groups of the modern types, whose states no line tells.
    """
    ours: dict[tuple[str, str, int], int] = defaultdict(int)
    for t in effective(transitions):
        if t["group_type"] == "classic" and t["to"] != "Dead" and not _is_unlogged(t):
            ours[(t["group"], t["to"], t["generation"])] += 1
    theirs: dict[tuple[str, str, int], int] = defaultdict(int)
    for one in expected:
        theirs[one.what] += 1
    unseen = {one.what for one in expected if one.reason == UNSEEN}
    missing = [key for key, n in theirs.items() for _ in range(max(n - ours[key], 0)) if key not in unseen]
    extra = [key for key, n in list(ours.items()) for _ in range(max(n - theirs[key], 0))]
    return missing, extra


def recall_and_precision(expected: int, missing: int, extra: int) -> tuple[float, float]:
    """Return which share of the coordinator's transitions is ours too, and which share of ours is its own."""
    both = expected - missing
    return (both / expected if expected else 1.0), (both / (both + extra) if both + extra else 1.0)


def _is_unlogged(transition: dict[str, Any]) -> bool:
    """Births have no line of their own, nor has what a new coordinator resumes from.

    Born is also a classic group that was one of a modern type, and empty, before it.
    """
    kind = transition.get("cause", {}).get("kind")
    if transition["to"] == "Empty" and transition["from"] in {"Dead", "Empty"}:
        return bool(transition["from"] == "Dead" or kind == "protocol_changed")
    return bool(kind == "coordinator_moved")


_REASONS = (
    ("Adding new member", {"member_joined"}),
    ("explicit `LeaveGroup`", {"member_left", "poll_timeout"}),
    ("on LeaveGroup", {"member_left", "poll_timeout"}),  # Kafka 3
    ("heartbeat expiration", {"session_timeout"}),
    ("re-joining group during Stable", {"leader_rejoined", "partitions_changed"}),
    ("pending sync request expiration", {"sync_timeout"}),
    (" joining group during", {"member_joined"}),
    ("selectedProtocol will change", {"protocol_changed"}),
    ("static member", {"static_member_replaced", "subscription_changed"}),
    ("Downgrade group", {"protocol_changed"}),
    ("Updating metadata for member", {"subscription_changed", "protocol_changed"}),
)


def wrong_causes(
    transitions: list[dict[str, Any]], expected: list[Logged]
) -> tuple[int, list[tuple[str, int, str, str]]]:
    """Return how many starts of rebalances were compared, and (group, generation, ours, reason) that differ.

    A generation can begin to rebalance twice after a failover; those are left out.
    """
    ours: dict[tuple[str, int], list[str]] = defaultdict(list)
    for t in effective(transitions):
        if t["to"] == "PreparingRebalance":
            ours[(t["group"], t["generation"])].append(t["cause"]["kind"])
    compared, wrong = 0, []
    for one in expected:
        kinds = ours.get((one.group, one.generation), [])
        allowed = next((found for part, found in _REASONS if part in one.reason), None)
        if one.state != "PreparingRebalance" or len(kinds) != 1 or allowed is None:
            continue
        compared += 1
        if kinds[0] not in allowed:
            wrong.append((one.group, one.generation, kinds[0], one.reason))
    return compared, wrong
