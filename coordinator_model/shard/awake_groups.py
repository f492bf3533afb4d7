"""The groups of a shard during a step: decoded when first used, encoded at the end of the step.

If our own code fails in one group, the other groups lose nothing.
"""

from collections.abc import Callable
from contextlib import suppress

from coordinator_model import groups
from coordinator_model import observations as on
from coordinator_model.observations import NEVER, Seen
from coordinator_model.ordering import Buffered, Run, rest_of, taken_apart
from coordinator_model.shard import strangers
from coordinator_model.shard.failures import Failures
from coordinator_model.shard.live_group import Live
from coordinator_model.shard.report import GroupReport, report_of
from coordinator_model.shard.settings import ShardSettings, read_settings
from coordinator_model.shard.slots import Slot, Slots
from coordinator_model.shard.snapshot import Header
from coordinator_model.shard.timeline import Timeline
from coordinator_model.shard.verdicts import Verdicts
from coordinator_model.state import Step

_LOST = "The saved state of group {} could not be read: it is begun anew, and what still holds is told again."


class AwakeGroups:
    """The groups of one shard in one step."""

    def __init__(
        self,
        *,
        header: Header,
        slots: Slots,
        timeline: Timeline,
        verdicts: Verdicts,
        failures: Failures,
    ) -> None:
        self.header = header
        self.slots = slots
        self.timeline = timeline
        self.verdicts = verdicts
        self.failures = failures
        self.lives: dict[str, Live] = {}
        self.runs: dict[str, list[Run]] = {}
        """Coalesced observations that are due, by group."""
        self.reached_ms = -1
        """How far the groups have been run."""
        self._room: int | None = None
        """How many more groups the shard may keep; None: not counted in this step."""

    def configure(self, settings: ShardSettings) -> None:
        """Use new settings from here on."""
        self.timeline.forget_after_ms = settings.forget_after_ms

    def take(self, runs: list[Run]) -> None:
        """Add coalesced observations that are due."""
        for run in runs:
            self.runs.setdefault(_group_of(run.seen), []).append(run)

    def next_ms(self, now_ms: int) -> int:
        """Return when the next deadline or coalesced observation comes; ``now_ms`` if there is none."""
        next_ms = self.slots.next_due_ms() if self.slots else now_ms
        for runs in self.runs.values():
            for run in runs:
                next_ms = min(next_ms, run.first_ms())
        return next_ms

    def due_before(self, until_ms: int) -> set[str]:
        """Return the groups with a coalesced observation or a deadline before ``until_ms``."""
        names = {name for name, runs in self.runs.items() if any(run.first_ms() < until_ms for run in runs)}
        names.update(self.slots.due_before(until_ms))
        return names

    def run(self, name: str, singles: list[Buffered], until_ms: int) -> None:
        """Bring one group forward to just before ``until_ms``."""
        try:
            self._run_group(name, singles, until_ms)
        except Exception as error:  # its observations up to here are lost; the other groups go on
            self.failures.contain(name, None, until_ms, error)
            slot = self.slots.get(name)
            if slot is not None:
                slot.due_ms = slot.judge_due_ms = NEVER

    def _run_group(self, name: str, singles: list[Buffered], until_ms: int) -> None:
        runs = self._current_runs(name, until_ms)
        if name in self.slots or (
            read_settings(self.header.settings).watches(name) and self._has_room(name, until_ms)
        ):
            live = self.wake(name)
            is_new = name not in self.slots
            rest = self.timeline.run(live, singles, runs, until_ms)
            self.keep_or_drop(live)
            if is_new and self._room is not None and not live.absent:
                self._room -= strangers.weight(name)
        else:
            rest = rest_of(runs, until_ms)
        if rest:
            self.runs[name] = rest

    def _has_room(self, name: str, at_ms: int) -> bool:
        """Return whether a group that is not known yet can be added."""
        if self._room is None:
            used = sum(map(strangers.weight, self.slots))
            self._room = strangers.groups_max(self.header.shard_count) - used
        if strangers.weight(name) <= self._room:
            return True
        self.failures.diverge(strangers.TOO_MANY_GROUPS, "", -1, at_ms, f"{len(self.slots)} groups")
        return False

    def _current_runs(self, name: str, until_ms: int) -> list[Run]:
        """Return a group's runs, without those of a broker that has lost the shard in this segment."""
        runs = self.runs.pop(name, [])
        lost = self.header.lost
        if not lost:
            return runs
        kept: list[Run] = []
        for run in runs:
            lost_ms = lost.get(run.seen.broker, NEVER)
            for one in [run] if lost_ms == NEVER else taken_apart([run]):
                kept += [one] if one.first_ms() < lost_ms else rest_of([one], until_ms)
        return kept

    def wake(self, name: str) -> Live:
        """Return a group, which may be new."""
        live = self.lives.get(name)
        if live is None:
            slot = self.slots.get(name)
            if slot is None:
                live = Live(Slot(name=name), self.timeline.new_group(name), absent=True)
            else:
                live = self._awake(slot)
            self.lives[name] = live
        return live

    def _awake(self, slot: Slot) -> Live:
        """Return a known group; one whose bytes cannot be read begins again, and its open alerts end."""
        try:
            return Live.decode(slot)
        except Exception as error:
            at_ms = max(self.reached_ms, self.header.done_ms)
            self.failures.contain(slot.name, None, at_ms, error, what="its saved state", lost=True)
            live = Live(slot, groups.new_group(slot.name), absent=True)
            self.timeline.drop(live, at_ms, _LOST.format(slot.name))
            self.slots.pop(slot.name, None)
            return live

    def keep_or_drop(self, live: Live) -> None:
        """Keep a group that exists; drop one that does not."""
        name = live.slot.name
        if live.absent:
            self.slots.pop(name, None)
            self.lives.pop(name, None)
        else:
            self.slots[name] = live.slot

    def drop(self, live: Live, at_ms: int) -> None:
        """Drop a group; the rules resolve its open alerts."""
        self.timeline.drop(live, at_ms)
        self.keep_or_drop(live)

    def reschedule(self, live: Live, at_ms: int) -> None:
        """Note when the group must be looked at next."""
        self.timeline.reschedule(live, at_ms)

    def each(self, at_ms: int, act: Callable[[Live], None]) -> None:
        """Call ``act`` for every group; a failure in one stops none of the others."""
        for name in sorted(self.slots):
            try:
                live = self.wake(name)
                if not live.absent:
                    act(live)
            except Exception as error:
                self.failures.contain(name, None, at_ms, error)

    def judge_anew(self, live: Live, at_ms: int) -> None:
        """Run the rules for a group whose own state has not changed."""
        if self.header.live_since_ms >= 0:
            self.verdicts.ask_judge(live, Step(met=True), at_ms)
        self.timeline.reschedule(live, at_ms)

    def reports(self, now_ms: int) -> list[GroupReport]:
        """Return the reports at the end of a step: of changed or due groups, or all if a clock asked."""
        found = [self._report(name, now_ms) for name in sorted(self._to_report(now_ms))]
        gone = sorted(name for name in self.timeline.removed if name not in self.slots)
        removed = [report_of(groups.new_group(name), at_ms=now_ms, removed=True) for name in gone]
        return [one for one in found if one is not None] + removed

    def _report(self, name: str, now_ms: int) -> GroupReport | None:
        try:
            live = self.wake(name)
            if live.absent:  # it was lost in this step
                return None
            live.slot.report_ms = NEVER
            context = self.verdicts.context(live, now_ms, backlog=False)
            return report_of(live.group, at_ms=now_ms, context=context)
        except Exception as error:
            self.failures.contain(name, None, now_ms, error)
            return None

    def _to_report(self, now_ms: int) -> set[str]:
        if self.header.order.asked:
            return set(self.slots)
        if self.header.live_since_ms < 0:
            return set()
        names = {name for name, live in self.lives.items() if live.visible}
        names.update(self.slots.reports_due(now_ms))
        return names

    def encode(self, now_ms: int) -> None:
        """Encode the groups that were decoded in this step."""
        for live in self.lives.values():
            self._encode(live, now_ms)
        self.lives.clear()

    def rest(self, name: str, now_ms: int) -> None:
        """Encode a group that this step will hardly use again, while the processor still has it at hand.

        One that cannot be encoded goes on, and fails when the step ends.
        """
        live = self.lives.get(name)
        if live is None or live.visible or self.header.order.asked or name in self.runs:
            return
        if min(live.slot.report_ms - 1, live.slot.due_ms) >= now_ms:
            with suppress(Exception):
                live.encode()
                del self.lives[name]

    def _encode(self, live: Live, now_ms: int) -> None:
        """Encode a group; one that cannot be encoded goes on as it was before this step."""
        try:
            live.encode()
        except Exception as error:
            self.failures.contain(live.slot.name, None, now_ms, error)
            if not bytes(live.slot.raw):  # the group did not exist before this step
                self.slots.pop(live.slot.name, None)


def _group_of(seen: Seen) -> str:
    what = seen.what
    assert isinstance(what, on.GroupObservation)  # noqa: S101 - runs are about one group
    return what.group
