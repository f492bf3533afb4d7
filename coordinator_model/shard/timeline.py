"""Runs one group forward: its observations and the deadlines in between, at their exact times.

Groups of a shard do not affect one another between two boundaries (``boundaries.py``), so each can be run by
itself.  So each is decoded only once, and coalesced heartbeats can stay coalesced.  Precedence at one
millisecond: deadlines come after all observations of their time, coalesced runs after single observations.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from coordinator_model import groups
from coordinator_model import observations as on
from coordinator_model.groups import NEWS, Finding, Verdict, both_sides, core, find, offsets, reconcile
from coordinator_model.groups.core import Context, gap_max_ms, pause_before
from coordinator_model.groups.offsets import EXPIRY_MARGIN_MS, retention_of
from coordinator_model.kafka import GroupState
from coordinator_model.observations import NEVER, Seen
from coordinator_model.ordering import Buffered, Run, part, rest_of, taken_apart
from coordinator_model.shard import live_sources
from coordinator_model.shard.coalescing import (
    FirstBeat,
    are_quiet,
    first_times,
    in_time,
    refusal_key,
    run_key,
    split,
)
from coordinator_model.shard.failures import Failures
from coordinator_model.shard.judging import ASKED_AGAIN_MS
from coordinator_model.shard.live_group import Live
from coordinator_model.shard.snapshot import Header
from coordinator_model.shard.strangers import remember_end
from coordinator_model.shard.verdicts import Verdicts
from coordinator_model.shard.writes import gather, tells_end
from coordinator_model.state import Doubt, Group, Step

DEAD_KEPT_MS = 60_000
"""A dead group is kept for so long: after a failover it comes back with its past."""
COMMIT_REPORT_MS = 5_000
STUCK_MAX = 8
FIRED_MAX = 200_000
"""Limit of deadlines of one group between two of its observations: days of one every few seconds."""

_SHOWS_LIFE = on.types_that(lambda one: one.shows_life)
_NO_STEP = Step()


class Timeline:
    """Runs groups forward; holds what is the same for all groups of a shard within a step."""

    def __init__(
        self, *, header: Header, verdicts: Verdicts, failures: Failures, forget_after_ms: int
    ) -> None:
        self.header = header
        self.verdicts = verdicts
        self.failures = failures
        self.forget_after_ms = forget_after_ms
        self.removed: set[str] = set()
        """Groups that were dropped in this step."""

    def run(self, live: Live, singles: list[Buffered], runs: list[Run], until_ms: int) -> list[Run]:
        """Bring a group forward to just before ``until_ms``; return the part of ``runs`` after that."""
        singles, runs = self._run_calmly(live, gather(singles), runs, until_ms)
        for held in singles:
            if runs:
                runs = self._pass_safely(live, runs, held.order_ms)
            self._take_safely(live, held)
        if runs:
            runs = self._pass_safely(live, runs, until_ms)
        if live.slot.due_ms < until_ms:
            self._fire_before(live, until_ms)
        return runs

    def _take_safely(self, live: Live, held: Buffered) -> None:
        try:
            self._take(live, held)
        except Exception as error:
            self.failures.contain(live.group.group, held.seen, held.order_ms, error)

    # --- calm groups ----------------------------------------------------------------------------------

    def _run_calmly(
        self, live: Live, singles: list[Buffered], runs: list[Run], until_ms: int
    ) -> tuple[list[Buffered], list[Run]]:
        """Run a group forward as long as it is calm; return the observations and runs that are left.

        It is calm while its runs are quiet, its other observations are plain commits and end offsets, and no
        deadline comes.  Then commits and runs do not affect one another, and the rules have nothing to say
        about either: runs wait, folded, until there is news.
        """
        waiting, later = split(runs, until_ms) if runs else (runs, runs)
        is_alive = not live.absent and self.header.live_since_ms >= 0
        is_worth_it = is_alive and _waits_for_nothing(live, until_ms) and (singles or _are_together(waiting))
        look_ms: int | None = None
        if is_worth_it:
            waiting = in_time(waiting)
            # Between commits the rules may choose another time to look at first heartbeats.
            look_ms = self._look_if_folded(live, waiting, until_ms, may_begin=not singles)
        if look_ms is None:
            return singles, waiting + later
        for index, held in enumerate(singles):
            if not _waits_for_nothing(live, until_ms) or not _is_calm(live.group, held.seen):
                return singles[index:], waiting + later
            if type(held.seen.what) is not on.OffsetsCommitted:
                waiting = self._fold(live, waiting, held.order_ms)
                self._take_safely(live, held)
            elif (step := self._commit(live, held)) is not None:
                waiting = self._fold(live, waiting, held.order_ms)
                self.verdicts.account(live, step, held.seen, held.order_ms, backlog=False)
                self.reschedule(live, held.order_ms)
        if not _waits_for_nothing(live, until_ms):
            return [], waiting + later
        self._fold(live, waiting, until_ms, look_ms)
        return [], later

    def _look_if_folded(
        self, live: Live, runs: list[Run], until_ms: int, *, may_begin: bool = True
    ) -> int | None:
        """Return when the rules must look at a group if its runs before ``until_ms`` are folded.

        Without first heartbeats that is never; None: the runs are not quiet, or a deadline may come between
        them.  A group's deadline is the one by the live sources of its newest observation.  Where a session
        timer could not run out then, it can as soon as the request log is live again, which one of the runs
        may show.

        Args:
            live: the group.
            runs: in the order of ``in_time``.
            until_ms: epoch ms.
            may_begin: whether first heartbeats are quiet.
        """
        if not runs:
            return NEVER
        firsts: list[FirstBeat] = []
        if not are_quiet(live.group, runs, firsts if may_begin else None):
            return None
        look_ms = self.verdicts.look_ms(live, firsts)
        if look_ms < until_ms:
            return None
        soonest_ms = None if self.header.info_live else core.soonest_deadline(live.group)
        is_sooner = soonest_ms is not None and soonest_ms < min(until_ms, live.slot.due_ms)
        return None if is_sooner else look_ms

    def _fold(self, live: Live, runs: list[Run], limit_ms: int, look_ms: int = NEVER) -> list[Run]:
        """Apply the part of quiet ``runs`` before ``limit_ms``, and return the rest."""
        heads, tails = split(runs, limit_ms) if runs else (runs, runs)
        if heads:
            try:
                self._apply_folded(live, heads, look_ms)
            except Exception as error:
                self.failures.contain(live.group.group, heads[0].seen, limit_ms, error)
        return tails

    def _commit(self, live: Live, held: Buffered) -> Step | None:
        """Apply a plain commit; return its effects if the rules may have something to say."""
        seen, order_ms, step = held.seen, held.order_ms, _NO_STEP
        context = self._context(live, seen, order_ms)
        try:
            step = groups.commit(live.group, seen, context)
        except Exception as error:
            self.failures.contain(live.group.group, seen, order_ms, error)
        self._report_later(live, order_ms)
        if context is not live.context or not live.group.commits:  # without offsets it is forgotten sooner
            self.reschedule(live, order_ms, context)
        return step if step != _NO_STEP or self.verdicts.is_watched(live, order_ms) else None

    def _take(self, live: Live, held: Buffered) -> None:
        if live.slot.due_ms < held.order_ms:
            self._fire_before(live, held.order_ms)
        answered = ANSWERS.get(type(held.seen.what))
        if answered is not None:
            answered(self, live, held, held.seen.what)
        elif not live.absent or _is_sign_of_life(held.seen):
            self._apply(live, held.seen, held.order_ms)

    # --- what the brokers answered -----------------------------------------------------------------

    def end_offsets_reported(self, live: Live, held: Buffered, what: on.EndOffsetsReported) -> None:
        """Apply end offsets; a group that does not exist ignores them."""
        if live.absent or live.group.state is GroupState.DEAD:
            return
        offsets.note_ends(live.group, what, held.seen.at_ms)
        self.verdicts.account(live, Step(progressed=True), held.seen, held.order_ms, backlog=False)
        self.reschedule(live, held.order_ms)

    def group_described(self, live: Live, held: Buffered, what: on.GroupDescribed) -> None:
        """Compare a group with a broker's answer, which always comes after the backlog."""
        name, strangers = live.group.group, self.header.strangers
        before = strangers.pop(name, None) if live.absent else live.group.doubt
        try:
            finding = self._find(live, held, what, before)
        except Exception as error:
            self.failures.contain(name, held.seen, held.order_ms, error)
            return
        if not live.absent:
            live.group.doubt = finding.doubt
            self.reschedule(live, held.order_ms)
        elif finding.doubt is not None:
            strangers[name] = finding.doubt

    def _find(self, live: Live, held: Buffered, what: on.GroupDescribed, before: Doubt | None) -> Finding:
        group, seen = live.group, held.seen
        context = self.verdicts.context(live, held.order_ms, backlog=False)
        known = not live.absent
        finding = find(group, seen, context, known=known, coordinator=self.header.coordinator, before=before)
        if not known and finding.verdict not in NEWS:
            return finding  # a group that does not exist must not be changed: it would not be saved
        live.absent = False
        sides = both_sides(group, what)
        step = reconcile(group, seen, finding, context, before)
        self.verdicts.outputs.compared += finding.compared
        self.verdicts.outputs.agreeing += finding.verdict is Verdict.AGREES
        if finding.verdict is Verdict.WRONG:
            for kind in finding.kinds:
                self.failures.diverge(kind, group.group, seen.broker, held.order_ms, sides)
        if finding.verdict in NEWS:
            live.visible = True
            self.verdicts.account(live, step, seen, held.order_ms, backlog=False)
        return finding

    # --- coalesced runs -------------------------------------------------------------------------------

    def _pass_safely(self, live: Live, runs: list[Run], limit_ms: int) -> list[Run]:
        """Do the same as ``_pass``; if our own code fails on runs, their part before ``limit_ms`` is lost."""
        try:
            return self._pass(live, runs, limit_ms)
        except Exception as error:
            self.failures.contain(live.group.group, runs[0].seen, limit_ms, error)
            return rest_of(runs, limit_ms)

    def _pass(self, live: Live, runs: list[Run], limit_ms: int) -> list[Run]:
        """Apply the part of ``runs`` before ``limit_ms``, coalesced as long as it has no other effect."""
        count = 0
        while True:
            stop_ms = min(limit_ms, live.slot.due_ms + 1)
            heads, tails = split(runs, stop_ms)
            heads = in_time(heads)
            look_ms = self._look_if_folded(live, heads, stop_ms)
            if heads and look_ms is not None:
                self._apply_folded(live, heads, look_ms)
            elif heads:
                # One by one until they are quiet again, which is checked ever more rarely.
                count = count * 2 or 1
                stop_ms = min(limit_ms, first_times(heads, count))
                heads, tails = split(runs, stop_ms)
                self._apply_singly(live, taken_apart(heads))
            runs = tails
            if stop_ms == limit_ms or not runs:
                return runs
            self._fire_before(live, min(limit_ms, stop_ms))

    def _apply_folded(self, live: Live, heads: list[Run], look_ms: int = NEVER) -> None:
        """Apply quiet runs as they are, in the order of ``in_time``; the rules look at ``look_ms``."""
        group, last_ms = live.group, -1
        context: Context | None = None
        for head in heads:
            seen = head.seen
            order_ms = max(head.floor_ms, seen.at_ms)
            last_ms = max(last_ms, order_ms)
            if groups.beat(group, seen):
                continue
            if type(seen.what) is on.GroupHeard:
                self._apply_folded(live, taken_apart([head]))
                continue
            if context is None or context.backlog is not seen.backlog:
                since_ms = heads[0].first_ms() if context is None else order_ms
                context = self.verdicts.context(live, since_ms, backlog=seen.backlog)
            try:
                step = groups.apply(group, seen, context)
            except Exception as error:
                self.failures.contain(group.group, seen, order_ms, error)
                continue
            if _says_something(step):
                self.verdicts.account(live, step, seen, order_ms, backlog=seen.backlog)
        live.slot.judge_due_ms = min(live.slot.judge_due_ms, look_ms)
        self.reschedule(live, last_ms)

    def _apply_singly(self, live: Live, runs: list[Run]) -> None:
        singles = [(max(run.floor_ms, time), run_key(run), time, run) for run in runs for time in run.times]
        singles.sort(key=lambda one: (*one[:3], refusal_key(one[3])))
        for order_ms, _, time, run in singles:
            if live.slot.due_ms < order_ms:
                self._fire_before(live, order_ms)
            one = run if len(run.times) == 1 else part(run, (time,))
            firsts: list[FirstBeat] = []
            quiet = are_quiet(live.group, [one], firsts)
            # A run's offset and record time depend on how it was read; each single time in it does not.
            seen = msgspec.structs.replace(one.seen, at_ms=time, recorded_at_ms=time, offset=-1, index=0)
            if quiet:
                self._apply_quietly(live, Run(run.floor_ms, seen), self.verdicts.look_ms(live, firsts))
            else:
                self._apply(live, seen, order_ms)

    def _apply_quietly(self, live: Live, run: Run, look_ms: int) -> None:
        seen = run.seen
        order_ms = max(run.floor_ms, seen.at_ms)
        step = self._step(live, seen, order_ms, self._context(live, seen, order_ms))
        if _says_something(step):
            self.verdicts.account(live, step, seen, order_ms, backlog=seen.backlog)
        live.slot.judge_due_ms = min(live.slot.judge_due_ms, look_ms)
        self.reschedule(live, order_ms)

    # --- single observations -----------------------------------------------------------------------

    def _apply(self, live: Live, seen: Seen, order_ms: int) -> None:
        before = len(live.group.members), live.group.generation
        pause = pause_before(live.group, seen.what) if type(seen.what) is on.Heartbeats else None
        context, broker = self._context(live, seen, order_ms), self.verdicts.broker(live)
        step = self._step(live, seen, order_ms, context)
        if live.absent:
            self.verdicts.count_divergences(live, step, order_ms, backlog=seen.backlog)
            return
        if pause is not None:
            step.notes.append(pause)
        commits = type(seen.what) is on.OffsetsCommitted
        folded = type(seen.what) in on.COALESCED
        if commits:
            self._report_later(live, order_ms)
        elif not folded or before != (len(live.group.members), live.group.generation):
            live.visible = True
        self.verdicts.account(live, step, seen, order_ms, backlog=seen.backlog)
        same = broker == self.verdicts.broker(live) and seen.backlog is (self.header.live_since_ms < 0)
        self.reschedule(live, order_ms, context if same else None)

    def _context(self, live: Live, seen: Seen, order_ms: int) -> Context:
        return self.verdicts.context(live, order_ms, backlog=seen.backlog)

    def _report_later(self, live: Live, order_ms: int) -> None:
        if live.slot.report_ms == NEVER:
            live.slot.report_ms = (order_ms // COMMIT_REPORT_MS + 1) * COMMIT_REPORT_MS

    def _step(self, live: Live, seen: Seen, order_ms: int, context: Context) -> Step:
        was_absent, live.absent = live.absent, False
        try:
            step = groups.apply(live.group, seen, context)
            live.absent = was_absent and groups.is_new(live.group)  # it was too old to begin a group
            return step
        except Exception as error:
            self.failures.contain(live.group.group, seen, order_ms, error)
            return Step()

    # --- deadlines ---------------------------------------------------------------------------------

    def _fire_before(self, live: Live, limit_ms: int) -> None:
        """Fire every deadline of the group before ``limit_ms``, in order."""
        try:
            self._fire_each(live, limit_ms)
        except Exception as error:
            self.failures.contain(live.group.group, None, limit_ms, error)
            live.slot.due_ms = live.slot.judge_due_ms = NEVER

    def _fire_each(self, live: Live, limit_ms: int) -> None:
        last_ms, stuck, fired = -1, 0, 0
        while live.slot.due_ms < limit_ms:
            due_ms = live.slot.due_ms
            fired += 1
            stuck = stuck + 1 if due_ms <= last_ms else 0
            last_ms = max(last_ms, due_ms)
            if stuck > STUCK_MAX or fired > FIRED_MAX:
                error = RuntimeError(f"a deadline at {due_ms} does not pass")
                self.failures.contain(live.group.group, None, due_ms, error)
                live.slot.due_ms = live.slot.judge_due_ms = NEVER
                return
            if not self._fire(live, due_ms):
                return

    def _fire(self, live: Live, due_ms: int) -> bool:
        """Fire the deadline at ``due_ms``; False: the group has ended."""
        if due_ms >= self._forget_ms(live):
            self.drop(live, due_ms)
            return False
        backlog = self.header.live_since_ms < 0
        context = self.verdicts.context(live, due_ms, backlog=backlog)
        step = _NO_STEP
        try:
            model_ms = groups.due_at(live.group, context)
            if model_ms is not None and model_ms <= due_ms:
                self._forgive(live, due_ms)
                step = groups.pass_time(live.group, due_ms, context)
        except Exception as error:
            self.failures.contain(live.group.group, None, due_ms, error)
            live.slot.due_ms = NEVER
            return True
        if step.transitions or step.departures or step.arrivals:
            live.visible = True
        if step is not _NO_STEP or live.slot.judge_due_ms <= due_ms:
            self.verdicts.account(live, step, None, due_ms, backlog=backlog)
        self.reschedule(live, due_ms)
        return True

    def _forgive(self, live: Live, at_ms: int) -> None:
        """Restart session timers of members that were silent only while the request log itself was."""
        if self.header.info_live:
            return
        known = self.verdicts.evidence(live, at_ms)
        for member in live.group.members.values():
            since_ms = known.requests_since_ms(gap_max_ms(member))
            if at_ms - since_ms < live_sources.PROOF_MS_MAX:
                core.restart_session(member, since_ms, may_set_back=False)

    def drop(self, live: Live, at_ms: int, why: str = "") -> None:
        """Resolve the group's open alerts and drop it; ``why`` is a sentence for the unusual case."""
        if self.header.live_since_ms >= 0:
            self.verdicts.ask_judge(live, Step(why_dropped=why), at_ms, removed=True)
        live.absent = True
        name = live.group.group
        self.removed.add(name)
        remember_end(self.header, live.group, at_ms)
        live.group = self.new_group(name)
        slot = live.slot
        slot.due_ms = slot.judge_due_ms = slot.report_ms = NEVER
        slot.memory = None

    def new_group(self, name: str) -> Group:
        """Return a new group, with what is stored of an ended group of the same name."""
        return groups.new_group(name, ended_ms=self.header.ended_ms.get(name, -1))

    def _forget_ms(self, live: Live) -> int:
        group = live.group
        if group.last_seen_ms < 0:
            return NEVER
        if _is_over(group) and live.slot.judge_due_ms == NEVER:
            return max(group.last_seen_ms, group.state_since_ms) + DEAD_KEPT_MS
        kept_ms = self.forget_after_ms
        if group.commits and self.header.retention_ms:
            # Until the broker has deleted its offsets: without the group, that deletion could not be
            # reported.
            told_ms = retention_of(self.header.retention_ms, self.header.coordinator)
            kept_ms = max(kept_ms, told_ms + EXPIRY_MARGIN_MS)
        return group.last_seen_ms + kept_ms

    def reschedule(self, live: Live, at_ms: int, context: Context | None = None) -> None:
        """Note when the group must be looked at next; ``context``: the live sources then, if known."""
        slot = live.slot
        if at_ms < live.at_ms:  # heartbeats that waited, folded, for what came after them
            at_ms, context = live.at_ms, None
        live.at_ms = at_ms
        if context is None:
            context = self.verdicts.context(live, at_ms, backlog=self.header.live_since_ms < 0)
        live.context = context
        model_ms = groups.due_at(live.group, context)
        due_ms = min(slot.judge_due_ms, self._forget_ms(live))
        due_ms = due_ms if model_ms is None or model_ms > due_ms else model_ms
        slot.due_ms = max(due_ms, at_ms)


ANSWERS: Mapping[type[on.Observation], Callable[[Timeline, Live, Buffered, Any], None]] = {
    on.GroupDescribed: Timeline.group_described,
    on.EndOffsetsReported: Timeline.end_offsets_reported,
}
"""Answers of brokers about a group; nothing happened to the group, so ``groups`` has no handler for them."""


def _are_together(runs: list[Run]) -> bool:
    """Return whether any of them is of several members, which are worth a look at all of them at once."""
    return any(type(run.seen.what) is on.GroupHeard for run in runs)


def _waits_for_nothing(live: Live, until_ms: int) -> bool:
    """Return whether no deadline of a group comes before ``until_ms``, and no rule waits for a proof."""
    return live.slot.due_ms >= until_ms and live.slot.judge_due_ms >= until_ms + ASKED_AGAIN_MS


def _is_calm(group: Group, seen: Seen) -> bool:
    """Return whether an observation leaves a living group as it is, but for its offsets."""
    if groups.is_plain_commit(group, seen):
        return not seen.backlog
    return type(seen.what) is on.EndOffsetsReported and group.state is not GroupState.DEAD


def _is_over(group: Group) -> bool:
    """Return whether a group is dead; a modern group of which no record was seen may be alive."""
    if group.state is not GroupState.DEAD or group.members:
        return False
    return group.group_type == "classic" or group.state_since_ms >= 0


def _says_something(step: Step) -> bool:
    told = step.transitions or step.arrivals or step.departures or step.divergences
    return bool(told) or step.contradicted


def _is_sign_of_life(seen: Seen) -> bool:
    """Return whether an observation shows that the group exists; the end of a group does not.

    Nor do log lines about a modern group, which exists for the mirror by its records alone.
    """
    what = seen.what
    if isinstance(what, on.OffsetsCommitted):
        return any(one.offset is not None for one in what.commits)
    if isinstance(what, on.ModernWrite):
        return any(not tells_end(one) for one in what.records)
    return type(what) in _SHOWS_LIFE
