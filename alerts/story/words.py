"""The wording of one transition, and of one rebalance with its phases."""

from alerts.alert import clock_time, span, what_began, who
from alerts.story.costs import is_unseen
from coordinator_model.kafka import NOT_PROVIDED, SETTLED, CauseKind, GroupState
from coordinator_model.state import Basis, Cause, Transition

_LONG_MS = 5_000
"""A rebalance shorter than this needs no second clock time."""
_SHORT_MS = 1_000
_REASON = "; client reason: "
_NO_REASON = ("", NOT_PROVIDED)

_NOUNS = {
    CauseKind.MEMBER_JOINED: "member joined",
    CauseKind.MEMBER_LEFT: "member left",
    CauseKind.UNKNOWN: "cause not known",
}


def noun(kind: CauseKind) -> str:
    """Return a cause as a countable noun: ``3 x session timeout``."""
    return _NOUNS.get(kind, str(kind).replace("_", " "))


def _who(cause: Cause) -> str:
    if not (cause.member_id or cause.client_id):
        return "a member"
    return who(member_id=cause.member_id, client_id=cause.client_id, client_host=cause.client_host)


def began(step: Transition) -> str:
    """Return why a rebalance started, without a full stop."""
    text = what_began(step.cause.kind, _who(step.cause))
    return (
        f"{text[0].upper() if text.startswith('a member') else text[0]}{text[1:]}{_said(step)}{_sure(step)}"
    )


def _said(step: Transition) -> str:
    """Return the client's own reason, if it adds anything."""
    _, found, reason = step.cause.detail.partition(_REASON)
    reason = reason.rstrip(". )")
    if not found or reason in _NO_REASON or step.cause.kind is CauseKind.POLL_TIMEOUT:
        return ""
    return f' (it said: "{reason}")'


def _sure(step: Transition) -> str:
    return "" if step.basis is Basis.OBSERVED else " (inferred)"


def ended(step: Transition) -> str:
    """Return a change of state outside a rebalance, without a full stop."""
    if step.to_state is GroupState.DEAD:
        return began(step)
    if step.from_state is GroupState.DEAD and step.cause.kind is CauseKind.GROUP_CREATED:
        return began(step)
    if step.from_state is GroupState.DEAD:
        return f"Known from here on: {step.to_state} at generation {step.generation}{_sure(step)}"
    return f"{began(step)}; {step.to_state} at generation {step.generation}"


def how_it_went(steps: list[Transition], now_ms: int) -> str:
    """Return the phases of a rebalance with their durations, and how it ended or where it hangs."""
    told = []
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        if step.to_state not in SETTLED:
            until_ms = now_ms if after is None else after.at_ms
            told.append(_phase(step, after, max(0, until_ms - step.at_ms)))
    text, last = ", ".join(told), steps[-1]
    text = text[:1].upper() + text[1:]
    if last.to_state not in SETTLED:
        return f"{text}."
    total_ms = max(0, last.at_ms - steps[0].at_ms)
    if last.to_state is GroupState.EMPTY and total_ms < _SHORT_MS:
        return f"Nobody is left: Empty at generation {last.generation}."
    at = f" ({clock_time(last.at_ms)})" if total_ms >= _LONG_MS else ""
    # If no source showed the start, the rebalance took longer than is known.
    least = "at least " if any(map(is_unseen, steps, steps[1:])) else ""
    return f"{text}: {_outcome(last)} after {least}{span(total_ms)}{at}."


def _outcome(last: Transition) -> str:
    if last.to_state is GroupState.STABLE:
        return f"Stable at generation {last.generation}"
    return "Empty, nobody is left," if last.to_state is GroupState.EMPTY else f"{began(last)}"


def _phase(step: Transition, after: Transition | None, lasted_ms: int) -> str:
    name = _PHASES.get(step.to_state, str(step.to_state))
    if is_unseen(step, after):
        return f"{name} of unknown length"
    if after is None:
        return f"{name} for {span(lasted_ms)}, and it goes on"
    failed = (step.to_state, after.to_state) == (
        GroupState.COMPLETING_REBALANCE,
        GroupState.PREPARING_REBALANCE,
    )
    without = f" in vain (generation {step.generation} never got one)" if failed else ""
    return f"{name} {span(lasted_ms)}{without}"


_PHASES = {
    GroupState.PREPARING_REBALANCE: "join phase",
    GroupState.COMPLETING_REBALANCE: "assignment",
    GroupState.ASSIGNING: "computing the assignment",
    GroupState.RECONCILING: "handing partitions over",
    GroupState.NOT_READY: "waiting for topics",
}
