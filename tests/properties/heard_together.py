"""Puts what members were heard to do together, as the decoders do, from observations in place of columns."""

from typing import Any

import msgspec

from coordinator_model import observations as on
from coordinator_model.observations.requests import GroupHeard, MemberHeard
from coordinator_model.observations.seen import Seen
from coordinator_model.ordering.zones import AHEAD_MS, DELAY_MS
from streaming.decoders.together import Span, spans


def put_together(records: list[Seen]) -> list[Seen]:
    """Return the observations of one partition in one batch, with one for all members of a group."""
    allowed = spans([(one.at_ms, one.what) for one in records if isinstance(one.what, on.EventsClock)])
    groups: dict[Any, list[Seen]] = {}
    kept: list[Seen] = []
    copies = 0
    for seen in records:
        what = seen.what
        copies += isinstance(what, on.EventsClock)
        if isinstance(what, on.Heartbeats | on.CommitsAnswered) and _is_plain(seen, what, allowed[copies]):
            groups.setdefault((what.group, what.generation, seen.broker), []).append(seen)
        else:
            kept.append(seen)
    for some in groups.values():
        kept += _together(some)
    return kept


def _is_plain(seen: Seen, what: on.Heartbeats | on.CommitsAnswered, span: Span) -> bool:
    is_dated = -DELAY_MS <= seen.at_ms - seen.recorded_at_ms <= AHEAD_MS
    is_allowed = span.since_ms <= what.times[0] and seen.at_ms <= span.until_ms
    return is_dated and is_allowed and not what.error_code and not seen.backlog


def _together(some: list[Seen]) -> list[Seen]:
    """Return the observations of one group as one, and those of members that changed their client."""
    members: dict[str, MemberHeard] = {}
    left: list[Seen] = []
    for seen in some:
        what: Any = seen.what
        fresh = MemberHeard(what.member_id, what.client, (), (), what.instance_id)
        known = members.get(what.member_id, fresh)
        if known.client != what.client:
            left.append(seen)
            continue
        is_beat = isinstance(what, on.Heartbeats)
        members[what.member_id] = MemberHeard(
            known.member_id,
            known.client,
            tuple(sorted(known.beats + what.times)) if is_beat else known.beats,
            known.commits if is_beat else tuple(sorted(known.commits + what.times)),
            known.instance_id,
        )
    first: Any = min(some, key=lambda one: one.offset)
    times = [time for one in members.values() for time in one.beats + one.commits]
    what = GroupHeard(
        group=first.what.group,
        generation=first.what.generation,
        since_ms=min(times),
        members=tuple(members.values()),
    )
    late_ms = first.recorded_at_ms - first.at_ms
    told = msgspec.structs.replace(first, at_ms=max(times), recorded_at_ms=max(times) + late_ms, what=what)
    return [*left, told]
