"""A broker's answer on its way through a shard: held against the mirror, counted, logged, taken over."""

from typing import TYPE_CHECKING

from coordinator_model import reconciling
from coordinator_model.group import Doubt
from coordinator_model.observations import GroupDescribed
from coordinator_model.ordering import Held
from coordinator_model.reconciling import Finding, Verdict
from coordinator_model.states import GroupState

if TYPE_CHECKING:
    from coordinator_model.timeline import Live, Timeline


def take(timeline: "Timeline", live: "Live", held: Held) -> None:
    """Take in a ``GroupDescribed``.

    The backlog is over by then: it ends with the first clock, and answers stand behind it.
    """
    group = live.group
    before = group.doubt if not live.absent else timeline.header.strangers.pop(group.group, None)
    try:
        finding = _find(timeline, live, held, before)
    except Exception as error:
        if timeline.strict:
            raise
        timeline.poison(group.group, held.seen, held.order_ms, error)
        return
    if not live.absent:
        group.doubt = finding.doubt
        timeline.reschedule(live, held.order_ms)
    elif finding.doubt is not None:
        timeline.header.strangers[group.group] = finding.doubt


def _find(timeline: "Timeline", live: "Live", held: Held, before: Doubt | None) -> Finding:
    group, seen, what = live.group, held.seen, held.seen.what
    assert isinstance(what, GroupDescribed)  # noqa: S101 - the caller's branch
    context = timeline.context(live, held.order_ms, backlog=False)
    coordinator = timeline.header.coordinator
    finding = reconciling.find(
        group, seen, context, known=not live.absent, coordinator=coordinator, before=before
    )
    if live.absent and finding.verdict not in (Verdict.WRONG, Verdict.TAUGHT):
        return finding  # what is not there must not be touched: nobody would save it
    live.absent = False
    sides = reconciling.both_sides(group, what)
    step = reconciling.reconcile(group, seen, finding, context, before)
    if what.state != GroupState.DEAD:
        group.last_seen_ms = max(group.last_seen_ms, seen.at_ms)
    if finding.verdict is Verdict.AGREES:
        timeline.outputs.compared += 1
        timeline.outputs.agreeing += 1
    elif finding.verdict is Verdict.WRONG:
        timeline.outputs.compared += 2  # the doubt before it was no mistake either
        for kind in finding.kinds:
            timeline.diverge(kind, group.group, seen.broker, held.order_ms, sides)
    if finding.verdict in (Verdict.WRONG, Verdict.TAUGHT):
        live.visible = True
        timeline.account(live, step, seen, held.order_ms, backlog=False)
    return finding
