"""The mirror in requests mode beside the simulated coordinator whose answers and records it reads."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from coordinator_model.capture import Mirror
from coordinator_model.kafka.hashing import shard_of
from coordinator_model.observations import Seen, Source
from coordinator_model.state.group import Transition
from tests import oracle as ora
from tests.oracle.values import responses as res
from tests.oracle.watched.consumers import GROUP, START_MS, Play
from tests.oracle.watched.traces import SHARDS, answers_and_records, heard

TOLERANCE_MS = 300
STEP_MS = 5_000
SHARD = shard_of(GROUP, SHARDS)


class Deviation(NamedTuple):
    """One transition that the coordinator made and the mirror told otherwise, or one of them alone."""

    truth: ora.LastFailover | None
    told: Transition | None

    def __str__(self) -> str:
        ours, theirs = self.told, self.truth
        made = theirs and f"{theirs.at_ms - START_MS} {theirs.to_state} {theirs.generation} {theirs.cause}"
        told = ours and f"{ours.at_ms - START_MS} {ours.to_state} {ours.generation} {ours.cause.kind}"
        return f"made {made}, told {told}"


def told_of(play: Play) -> list[Transition]:
    """Return what the mirror tells without INFO lines, each correction in place of what it corrects."""
    mirror = Mirror(
        cluster="c", shard_count=SHARDS, settings=b"{}", judge=None, feeds=1, offsets=True, strict=True
    )
    told: list[object] = []
    for until_ms, batch in _batches(play):
        mirror.feed({SHARD: batch})
        told += mirror.advance(until_ms)
    told += mirror.finish(play.now_ms + 100_000)
    transitions = [one for one in told if isinstance(one, Transition)]
    replaced = {one.replaces for one in transitions}
    # Nobody beats beyond the end of the play.
    return [one for one in transitions if one.id not in replaced and one.at_ms <= play.now_ms]


def _batches(play: Play) -> Iterator[tuple[int, list[Seen]]]:
    """Yield some seconds at once, in each of which the broker logged something."""
    seen = list(answers_and_records(play.coordinator, play.tickets, SHARD))
    place = 0
    for from_ms in range(START_MS, play.now_ms + STEP_MS, STEP_MS):
        until_ms = from_ms + STEP_MS
        batch = [one for one in seen if from_ms <= one.at_ms < until_ms]
        place = max([place, *(one.offset for one in batch if one.source is Source.REQUEST_LOG)])
        spoke = heard(Source.REQUEST_LOG, range(from_ms, until_ms, 1_000))
        yield until_ms, [*batch, msgspec.structs.replace(spoke, offset=place, index=1_000)]


def compare(play: Play) -> tuple[int, list[Deviation]]:
    """Return how many transitions agree in state, generation, time and cause, and all that do not."""
    ours = told_of(play)
    agreeing, deviations = 0, []
    for made in (one for one in play.coordinator.outcomes if isinstance(one, ora.LastFailover)):
        near = [one for one in ours if _is_same(made, one)]
        if near:
            ours.remove(near[0])
        if near and near[0].cause.kind is made.cause:
            agreeing += 1
        else:
            deviations.append(Deviation(made, near[0] if near else None))
    return agreeing, deviations + [Deviation(None, one) for one in ours]


def _is_same(made: ora.LastFailover, told: Transition) -> bool:
    is_one = (made.to_state, made.generation) == (told.to_state, told.generation)
    return is_one and abs(made.at_ms - told.at_ms) <= TOLERANCE_MS


# --- why they deviate: each reason stands in tests/oracle/README.md ------------------------------------


def reason_of(play: Play, deviations: list[Deviation], one: Deviation) -> str:
    """Return the known reason of a deviation, "" if there is none."""
    made = one.truth or _made_instead(deviations, one)
    told = one.told or _told_instead(deviations, one)
    if made is None or told is None:
        return ""
    reasons = {
        "join refused while it waited": _is_refused(play, made),
        "id handed out and not used": _is_unused_id(play, told, made.at_ms),
        "static member that came back": _is_static(play, made, told),
        "kind of a corrected start": made.at_ms == told.at_ms and told.cause.kind == "member_joined",
        "who left last": made.to_state == "Empty" and made.at_ms == told.at_ms,
        "sync timeout without its members": made.cause == "sync_timeout" and told.at_ms >= made.at_ms,
        "silence cut short": _is_cut_short(play, made, told),
    }
    return next((name for name, holds in reasons.items() if holds), "")


def _made_instead(deviations: list[Deviation], one: Deviation) -> ora.LastFailover | None:
    told = one.told
    found = (
        other.truth
        for other in deviations
        if told and other.truth and (other.truth.to_state, other.truth.generation)
        == (told.to_state, told.generation)
    )  # fmt: skip
    return next(found, None)


def _told_instead(deviations: list[Deviation], one: Deviation) -> Transition | None:
    made = one.truth
    found = (
        other.told
        for other in deviations
        if made and other.told and (other.told.to_state, other.told.generation)
        == (made.to_state, made.generation)
    )  # fmt: skip
    return next(found, None)


def _joins(play: Play) -> Iterator[tuple[ora.Ticket, ora.JoinGroup]]:
    for ticket in play.tickets.values():
        if isinstance(ticket.request, ora.JoinGroup):
            yield ticket, ticket.request


def _is_refused(play: Play, made: ora.LastFailover) -> bool:
    """Say whether the join that began the rebalance was answered late with an error, or never."""
    for ticket, _ in _joins(play):
        answer = ticket.response
        if ticket.arrived_at_ms == made.at_ms and ticket.answered_at_ms != made.at_ms:
            return not isinstance(answer, res.JoinGroupResponse) or answer.error_code is not ora.Errors.NONE
    return False


def _is_unused_id(play: Play, told: Transition, until_ms: int) -> bool:
    """Say whether the mirror's start is when somebody got an id with which nobody joined before the start."""
    handed = {
        ticket.response.member_id
        for ticket, _ in _joins(play)
        if ticket.arrived_at_ms == told.at_ms
        and isinstance(ticket.response, res.JoinGroupResponse)
        and ticket.response.error_code is ora.Errors.MEMBER_ID_REQUIRED
    }
    used = {asked.member_id for ticket, asked in _joins(play) if ticket.arrived_at_ms <= until_ms}
    return bool(handed) and not handed & used


def _is_cut_short(play: Play, made: ora.LastFailover, told: Transition) -> bool:
    """Say whether a session ran out, and a record or refused syncs told of it before the mirror's grace."""
    emptied = {
        one.at_ms
        for one in play.coordinator.outcomes
        if isinstance(one, ora.LastFailover) and one.to_state == "Empty"
    }
    is_refused_sync = made.from_state == "CompletingRebalance" and told.cause.kind == "unknown"
    return made.cause == "session_timeout" and (is_refused_sync or told.at_ms in emptied)


def _is_static(play: Play, made: ora.LastFailover, told: Transition) -> bool:
    """Say whether a static member ran out of time, or is said to, that had come back under a new id."""
    given = {
        ticket.response.member_id
        for ticket, asked in _joins(play)
        if asked.group_instance_id and not asked.member_id
        if isinstance(ticket.response, res.JoinGroupResponse)
    }
    return (made.cause == "session_timeout" and made.member_id in given) or (
        told.cause.kind == "session_timeout" and told.cause.member_id in given
    )
