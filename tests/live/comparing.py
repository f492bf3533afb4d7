"""Compares what groupwatch wrote with what the brokers answered and logged; pure."""

import bisect
import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

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


def logged(lines: list[str], until_ms: int = 2**62) -> list[tuple[str, str, int, str]]:
    """Return (group, state, generation, reason) for each transition line of a server.log, in order.

    An assignment that the coordinator gave up storing made nothing Stable, and is left out.  So was one that
    was not replicated yet when a member joined, which begins the next rebalance: ``UNSEEN`` is its reason.
    """
    found: list[tuple[str, str, int, str]] = []
    for line in lines:
        match = _LINE.match(line)
        if not match or _at_ms(match["at"]) > until_ms:
            continue
        joined = _JOINED_BEFORE_STABLE.search(match["text"])
        if joined:
            newest = next((one for one in reversed(found) if one[0] == joined["g"]), None)
            if newest is not None and newest[1] == "Stable":
                found[found.index(newest)] = (*newest[:3], UNSEEN)
        for state, shape in _SHAPES:
            hit = shape.search(match["text"])
            if hit:
                reason = hit.groupdict().get("r") or ""
                one = (hit["g"], state, int(hit["n"]), reason)
                stored = (one[0], "Stable", one[2], "")
                if _GIVEN_UP in reason and stored in found:
                    found.remove(stored)
                found.append(one)
    return found


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
    transitions: list[dict[str, Any]], expected: list[tuple[str, str, int, str]]
) -> tuple[list[tuple[str, str, int]], list[tuple[str, str, int]]]:
    """Return transitions that the coordinator logged and we lack, and ours that it never logged.

    Creation and death (Dead -> Empty, -> Dead) and what a new coordinator resumes from have no line of
    their own and are left out.
    """
    ours: dict[tuple[str, str, int], int] = defaultdict(int)
    for t in effective(transitions):
        if t["to"] != "Dead" and not (t["from"] == "Dead" and t["to"] == "Empty") and not _is_resumed(t):
            ours[(t["group"], t["to"], t["generation"])] += 1
    theirs: dict[tuple[str, str, int], int] = defaultdict(int)
    for group, state, generation, _ in expected:
        theirs[(group, state, generation)] += 1
    unseen = {one[:3] for one in expected if one[3] == UNSEEN}
    missing = [key for key, n in theirs.items() for _ in range(max(n - ours[key], 0)) if key not in unseen]
    extra = [key for key, n in list(ours.items()) for _ in range(max(n - theirs[key], 0))]
    return missing, extra


def recall_and_precision(expected: int, missing: int, extra: int) -> tuple[float, float]:
    """Return which share of the coordinator's transitions is ours too, and which share of ours is its own."""
    both = expected - missing
    return (both / expected if expected else 1.0), (both / (both + extra) if both + extra else 1.0)


def _is_resumed(transition: dict[str, Any]) -> bool:
    return bool(transition.get("cause", {}).get("kind") == "coordinator_moved")


_REASONS = (
    ("Adding new member", {"member_joined"}),
    ("explicit `LeaveGroup`", {"member_left", "poll_timeout"}),
    ("on LeaveGroup", {"member_left", "poll_timeout"}),  # Kafka 3
    ("heartbeat expiration", {"session_timeout"}),
    ("re-joining group during Stable", {"leader_rejoined", "partitions_changed"}),
    ("pending sync request expiration", {"sync_timeout"}),
    (" joining group during", {"member_joined"}),
    ("static member", {"static_member_replaced", "subscription_changed"}),
    ("Updating metadata for member", {"subscription_changed", "protocol_changed"}),
)


def wrong_causes(
    transitions: list[dict[str, Any]], expected: list[tuple[str, str, int, str]]
) -> tuple[int, list[tuple[str, int, str, str]]]:
    """Return how many starts of rebalances were compared, and (group, generation, ours, reason) that differ.

    A generation can begin to rebalance twice after a failover; those are left out.
    """
    ours: dict[tuple[str, int], list[str]] = defaultdict(list)
    for t in effective(transitions):
        if t["to"] == "PreparingRebalance":
            ours[(t["group"], t["generation"])].append(t["cause"]["kind"])
    compared, wrong = 0, []
    for group, state, generation, reason in expected:
        kinds = ours.get((group, generation), [])
        allowed = next((found for part, found in _REASONS if part in reason), None)
        if state != "PreparingRebalance" or len(kinds) != 1 or allowed is None:
            continue
        compared += 1
        if kinds[0] not in allowed:
            wrong.append((group, generation, kinds[0], reason))
    return compared, wrong
