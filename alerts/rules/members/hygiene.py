"""What the rules about membership share: collect sightings, choose those that count, end after quiet."""

from collections.abc import Callable, Iterable

import msgspec

from alerts.alert import Culprit
from alerts.rules.engine import (
    CULPRITS_MAX,
    Finding,
    HygieneMemory,
    Sighting,
    Situation,
    Verdict,
    until_quiet,
)
from coordinator_model.state import Basis, Refused


def memory_of(situation: Situation) -> HygieneMemory:
    """Return the group's memory for writing; it is not saved while it is empty."""
    if situation.memory.hygiene is None:
        situation.memory.hygiene = HygieneMemory()
    return situation.memory.hygiene


def has_anything(situation: Situation, name: str) -> bool:
    """Say whether a rule remembers anything or has its alert open."""
    known = situation.memory.hygiene
    return (known is not None and bool(known.of(name))) or situation.opened(name) is not None


def ended(situation: Situation, condition: str) -> None:
    """Record that a condition does not hold; a group without memory, as most are, needs none for it."""
    known = situation.memory.hygiene
    if known is not None:
        known.ends(condition)


def forget(situation: Situation, name: str, keep_ms: Callable[[Sighting], int]) -> int | None:
    """Drop sightings older than ``keep_ms`` says; return when the next one will be."""
    memory = memory_of(situation)
    ends = [(one, one.last_ms + keep_ms(one)) for one in memory.of(name)]
    kept = [(one, at_ms) for one, at_ms in ends if at_ms > situation.now_ms]
    if len(kept) < len(ends):
        memory.keep(name, [one for one, _ in kept])
    return min((at_ms for _, at_ms in kept), default=None)


def conclude(
    situation: Situation,
    name: str,
    *,
    told: list[Sighting],
    is_news: bool,
    forget_ms: int | None,
    finding: Callable[[list[Sighting]], Finding],
    closing: str,
) -> Verdict:
    """Return an event rule's verdict; ``told`` are the sightings that count, the newest starts quiet time."""
    is_told = bool(told) and is_news
    if situation.opened(name) is None and not is_told:
        return Verdict(due_ms=forget_ms)
    return until_quiet(
        situation,
        name,
        last_ms=max((one.last_ms for one in told), default=-1),
        finding=(lambda: finding(told)) if is_told else None,
        closing=closing,
        again_ms=forget_ms,
    )


def culprits_of(told: Iterable[Sighting]) -> tuple[Culprit, ...]:
    """Return all culprits of the sightings, newest first, each once, with equal shares."""
    found: dict[tuple[str, str, str, str | None], Culprit] = {}
    for one in sorted(told, key=lambda one: one.last_ms, reverse=True):
        for culprit in one.culprits:
            key = (culprit.member_id, culprit.client_id, culprit.client_host, culprit.instance_id)
            found.setdefault(key, culprit)
    chosen = list(found.values())[:CULPRITS_MAX]
    share = round(1 / len(chosen), 4) if chosen else 0
    return tuple(msgspec.structs.replace(one, share=share) for one in chosen)


def sender(refused: Refused, basis: Basis = Basis.OBSERVED) -> Culprit:
    """Return the sender of a refused request."""
    return Culprit(
        member_id=refused.member_id,
        client_id=refused.client_id,
        client_host=refused.client_host,
        instance_id=refused.instance_id,
        basis=basis,
    )
