"""Checks records of the transitions topic, to which others may write as well.

A record that no groupwatch can have written is counted and skipped.  Decisions never depend on this topic:
only the story of a group is read from it.
"""

import math
from collections.abc import Iterator

import msgspec
from msgspec import UnsetType

from alerts.alert import AHEAD_MAX_MS, OUT_OF_RANGE, WRONG_KEY, Refused
from coordinator_model.groups.core import DETAIL_MAX
from coordinator_model.observations import is_int32, is_time_ms
from coordinator_model.state import ToldCost, Transition

_NAME_MAX = 2 * 32_767
"""Longest credible id: a member id contains the client id, which Kafka limits to half of this."""
_DETAIL_MAX = 4 * DETAIL_MAX
_WORD_MAX = 200
_NUMBER_MAX = 2**53
"""Largest credible number: JSON readers do not agree on larger ones."""


def transition_refusal(
    transition: Transition, key: bytes | None, *, timestamp_ms: int, now_ms: int
) -> Refused | None:
    """Return why no groupwatch can have written a transition; None if one can.

    Args:
        transition: the transition in the record.
        key: the record's key, which is the group.
        timestamp_ms: the record's timestamp.
        now_ms: our clock.
    """
    if (key or b"") != transition.group.encode("utf-8", "surrogatepass"):
        return Refused(WRONG_KEY, "a key that is not the group")
    latest_ms = min(timestamp_ms, now_ms + AHEAD_MAX_MS) + AHEAD_MAX_MS
    wrong = _out_of_range(transition, latest_ms)
    return Refused(OUT_OF_RANGE, wrong) if wrong else None


def _out_of_range(one: Transition, latest_ms: int) -> str:
    """Return which field of a transition has an impossible value; "" if none has."""
    if not all(is_time_ms(at_ms) and at_ms <= latest_ms for at_ms in _times(one)):
        return "a time"
    if not (is_int32(one.generation) and one.generation >= -1):
        return "the generation"
    if not one.id or max(map(len, _words(one))) > _WORD_MAX:
        return "a name"
    if max(map(len, _names(one))) > _NAME_MAX or len(one.cause.detail) > _DETAIL_MAX:
        return "the cause"
    if not all(_is_credible(number) for number in _numbers(one)):
        return "what it cost"
    return ""


def _times(one: Transition) -> tuple[int, ...]:
    times = (one.at_ms, one.recorded_at_ms)
    return (*times, one.cost.started_ms) if isinstance(one.cost, ToldCost) else times


def _words(one: Transition) -> tuple[str, ...]:
    return (one.id, one.cluster, one.group_type, one.source, one.replaces or "")


def _names(one: Transition) -> tuple[str, ...]:
    return (one.group, one.cause.member_id, one.cause.client_id, one.cause.client_host)


def _numbers(one: Transition) -> Iterator[int | float]:
    if not isinstance(one.reread, UnsetType):
        yield one.reread
    if isinstance(one.cost, ToldCost):
        values = msgspec.structs.astuple(one.cost)
        yield from (value for value in values if isinstance(value, int | float))


def _is_credible(number: float) -> bool:
    return math.isfinite(number) and abs(number) <= _NUMBER_MAX
