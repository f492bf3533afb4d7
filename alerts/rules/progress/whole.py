"""Members that read several partitions: in turns, and all of them together.

A slow consumer processes its partitions one after the other, as they lie in its buffer.  While it works on
one, the others stand still, and the lag of that one may even fall.  So a partition that waits for its turn is
neither stalled nor stopped, and the topic as a whole shows whether the group keeps up.
"""

from collections.abc import Mapping
from typing import Final

from alerts.rules.engine import ENDS_TOLD_LATE_MS, Situation, Whole
from alerts.rules.progress.verdicts import GroupPace, PartitionProgress, is_at_rest, is_growing
from coordinator_model.groups.core import partitions_of
from coordinator_model.groups.offsets import ended
from coordinator_model.state import WINDOW, Group, Growth, Tracks

PARTS_MIN: Final = 2
"""From this many partitions on a topic is taken as a whole; a single one has its own track."""
TURN_MAX_MS: Final = 15 * 60_000
"""Fifty partitions of 1 MB each at 60 kB/s; a partition that waits longer gets no turn at all."""


def out_of_turn(
    group: Group,
    known: list[PartitionProgress],
    at_rest: list[PartitionProgress],
    pace: GroupPace,
    within_ms: int,
) -> list[PartitionProgress]:
    """Return the partitions at rest whose owner is not merely busy with others.

    An owner is busy if it advanced on another partition within ``within_ms``, and has been behind there for
    as long as these rest, or is not known ever to have read that one to its end (which is reported up to a
    minute after the first commit).  No partition waits longer than ``TURN_MAX_MS``.
    """
    if not at_rest:
        return []
    owner = _owners(group)
    resting = {(part.topic, part.partition) for part in at_rest}
    busy: dict[str, int] = {}
    for part in known:
        track = part.track
        is_new = pace.now - track.moved < within_ms
        waits = track.fresh or (track.behind >= 0 and part.lag != 0)
        if (part.topic, part.partition) in resting or not waits or not is_new:
            continue
        whose = owner.get((part.topic, part.partition), "")
        since = 0 if track.fresh else track.behind
        busy[whose] = min(busy.get(whose, since), since)
    return [part for part in at_rest if not _is_in_turn(part, busy, owner, pace.now)]


def _is_in_turn(
    part: PartitionProgress, busy: dict[str, int], owner: Mapping[tuple[str, int], str], now: int
) -> bool:
    since = busy.get(owner.get((part.topic, part.partition), ""))
    rests = max(part.track.moved, part.track.behind)
    return since is not None and since <= rests and now - rests < TURN_MAX_MS


def _owners(group: Group) -> Mapping[tuple[str, int], str]:
    return {
        one: member_id
        for member_id, member in group.members.items()
        for one in partitions_of(member.assigned or {})
    }


def note(situation: Situation, tracks: Tracks, known: list[PartitionProgress]) -> None:
    """Update the lag of each topic as a whole, if the group is behind on one of its several partitions."""
    memory = situation.memory.wholes
    if not memory and not any(_is_late(part) for part in known):
        return
    topics = _topics(situation.group, known)
    for topic in [topic for topic in memory if topic not in topics]:
        del memory[topic]
    for topic, parts in topics.items():
        whole = memory.get(topic)
        if whole is None and not any(_is_late(part) for part in parts):
            continue
        if whole is None or whole.base_ms != tracks.base_ms or not _goes_on(whole, parts):
            whole = memory[topic] = Whole(base_ms=tracks.base_ms, partitions=len(parts))
        lag, end = sum(part.lag for part in parts), sum(part.track.end for part in parts)
        told = max(part.track.told for part in parts)
        if _has_met(whole, parts):
            _take_in(whole, lag=lag, end=end, told=told)
        elif told > whole.track.told:
            commit = (end - lag, max(part.last for part in parts))
            ended(whole.track, end=end, at=told, commit=commit)
        whole.lag = lag
        whole.track.commits = WINDOW  # each of its lags is made of commits


def _goes_on(whole: Whole, parts: list[PartitionProgress]) -> bool:
    """Say whether all partitions in the sums still exist."""
    return len(whole.known) == whole.partitions and {part.partition for part in parts}.issuperset(whole.known)


def _has_met(whole: Whole, parts: list[PartitionProgress]) -> bool:
    """Say whether new partitions are being read, and remember all of them."""
    before = len(whole.known)
    whole.partitions, whole.known = len(parts), sorted(part.partition for part in parts)
    return 0 < before < len(parts)


def _take_in(whole: Whole, *, lag: int, end: int, told: int) -> None:
    """Treat the sums with a new partition as if it had always been in them: no growth, and no end of it.

    Its waiting records are the backlog of a new group.  Nobody knows how many were read before its end was
    reported, so what happened on the other partitions meanwhile does not count either.
    """
    more, further, growth = lag - whole.lag, end - whole.track.end, whole.track.growth
    whole.track.end, whole.track.told = end, told
    if growth is not None:
        growth.lag, growth.peak, growth.mark = growth.lag + more, growth.peak + more, growth.mark + more
        growth.end, growth.top = growth.end + further, growth.top + further
        growth.mark_end += further


def _is_late(part: PartitionProgress) -> bool:
    """Say whether a partition has been behind for longer than a healthy group is between two commits.

    Most groups never are, and need no memory.
    """
    return part.track.told - part.track.behind >= ENDS_TOLD_LATE_MS and part.track.behind >= 0


def _topics(group: Group, known: list[PartitionProgress]) -> dict[str, list[PartitionProgress]]:
    """Return the topics with several known (or expected) partitions, of which one is not caught up."""
    found: dict[str, list[PartitionProgress]] = {}
    for part in known:
        if part.track.end >= 0:
            found.setdefault(part.topic, []).append(part)
    return {
        topic: parts
        for topic, parts in found.items()
        if any(part.track.behind >= 0 for part in parts)
        and (len(parts) >= PARTS_MIN or _has_more(group, topic, parts[0]))
    }


def _has_more(group: Group, topic: str, first: PartitionProgress) -> bool:
    """Say whether a new group has begun with the first of several partitions, and will come to the others."""
    assigned = ((member.assigned or {}).get(topic, ()) for member in group.members.values())
    return first.track.fresh and any(len(numbers) >= PARTS_MIN for numbers in assigned)


def growing(
    situation: Situation, known: list[PartitionProgress], pace: GroupPace
) -> list[tuple[Growth, list[PartitionProgress]]]:
    """Return for each topic that falls behind as a whole its growth, and the partitions that matter."""
    found = []
    for topic, whole in situation.memory.wholes.items():
        growth = whole.track.growth
        if growth is None or not is_growing(PartitionProgress(topic, -1, whole.track, 0, 0), pace):
            continue
        parts = [part for part in known if part.topic == topic and _lasts(part, growth)]
        if any(not is_at_rest(part, pace) for part in parts):
            found.append((growth, parts))
    return found


def without_turns(
    group: Group, known: list[PartitionProgress], growing: list[PartitionProgress]
) -> list[PartitionProgress]:
    """Drop partitions whose owner lags on several; LagGrowing reports those per topic."""
    owner = _owners(group) if growing else {}

    def is_alone(part: PartitionProgress) -> bool:
        growth, whose = part.track.growth, owner.get((part.topic, part.partition))
        return growth is None or not any(
            other.topic == part.topic
            and other.partition != part.partition
            and owner.get((other.topic, other.partition)) == whose
            and _lasts(other, growth)
            for other in known
        )

    return [part for part in growing if is_alone(part)]


def _lasts(part: PartitionProgress, growth: Growth) -> bool:
    """Say whether a partition was not caught up during the later half of the growth.

    A partition that was never read to its end had records waiting all the time, even if it became known late.
    """
    since = 0 if part.track.fresh else part.track.behind
    return part.lag > 0 and 0 <= since <= (growth.at + growth.until) // 2
