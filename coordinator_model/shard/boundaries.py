"""Applies observations that concern all groups of a shard, between two segments: ``BOUNDARIES``.

Time alone brings two more boundaries: the end of the backlog, and the loss of the INFO log.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from coordinator_model import observations as on
from coordinator_model.groups.core import restart_all_sessions, went_silent
from coordinator_model.groups.offsets import retention_of
from coordinator_model.observations import NEVER
from coordinator_model.ordering import Buffered
from coordinator_model.shard import live_sources, loads, quarantine, routing
from coordinator_model.shard.failures import Failures
from coordinator_model.shard.judging import Judge
from coordinator_model.shard.live_group import Live
from coordinator_model.shard.segments import CUTS, SLICE_MS, Segment, is_outdated
from coordinator_model.shard.settings import ShardSettings, read_settings
from coordinator_model.shard.slots import Slots
from coordinator_model.shard.snapshot import Header
from coordinator_model.shard.verdicts import Verdicts


class Groups(Protocol):
    """All groups of the shard, as far as a boundary uses them."""

    slots: Slots
    lives: dict[str, Live]

    def configure(self, settings: ShardSettings) -> None:
        """Use new settings from here on."""

    def each(self, at_ms: int, act: Callable[[Live], None]) -> None:
        """Call ``act`` for every group."""

    def wake(self, name: str) -> Live:
        """Return a group, which may be new."""

    def run(self, name: str, singles: list[Buffered], until_ms: int) -> None:
        """Bring one group forward to just before ``until_ms``."""

    def keep_or_drop(self, live: Live) -> None:
        """Keep a group that exists; drop one that does not."""

    def drop(self, live: Live, at_ms: int) -> None:
        """Drop a group; the rules resolve its open alerts."""

    def judge_anew(self, live: Live, at_ms: int) -> None:
        """Run the rules for a group whose own state has not changed."""

    def reschedule(self, live: Live, at_ms: int) -> None:
        """Note when the group must be looked at next."""


class Boundaries:
    """Applies observations and boundaries that concern all groups of one shard."""

    def __init__(
        self, *, header: Header, groups: Groups, verdicts: Verdicts, failures: Failures, judge: Judge | None
    ) -> None:
        self.header = header
        self.groups = groups
        self.verdicts = verdicts
        self.failures = failures
        self.judge = judge
        self.live_ms = NEVER
        """When the backlog ends, if it has not ended yet."""

    def end(self, segment: Segment, now_ms: int) -> None:
        """Apply the boundary at the end of a segment, which every group has reached."""
        self._note_contradiction()
        if segment.boundary is None:
            self.cross(min(segment.until_ms, now_ms - 1))
        else:
            self._apply_safely(segment.boundary)

    def cross(self, at_ms: int) -> bool:
        """Apply what takes effect for the whole shard by ``at_ms``; True if there was anything."""
        header = self.header
        lost = header.info_lost_ms <= at_ms
        if lost:
            lost_ms, header.info_lost_ms = header.info_lost_ms, NEVER
            header.info_live = False
            self.groups.each(lost_ms, lambda live: self.groups.reschedule(live, lost_ms))
        begins = header.live_since_ms < 0 and self.live_ms <= at_ms
        if begins:
            self._go_live(self.live_ms)
        return lost or begins

    def _apply_safely(self, cut: Buffered) -> None:
        try:
            apply = BOUNDARIES.get(type(cut.seen.what), Boundaries.line)
            apply(self, cut, cut.seen.what)
        except Exception as error:
            self.failures.set_aside(cut.seen, error)

    def settings(self, cut: Buffered, what: on.Settings) -> None:
        """Use new settings, drop groups that they exclude, and run the rules for all others."""
        at_ms = cut.order_ms
        if self._take_settings(what):
            self._drop_unwatched(at_ms)
            self.groups.each(at_ms, lambda live: self.groups.judge_anew(live, at_ms))

    def adopted(self, cut: Buffered, what: on.Adopted) -> None:
        """Give the rules an alert that an earlier job left open."""
        self._adopt(what, cut.order_ms)

    def retention_reported(self, cut: Buffered, what: on.RetentionReported) -> None:
        """Apply the brokers' retention of offsets; a value other than the assumed one concerns all groups."""
        at_ms = cut.order_ms
        before = retention_of(self.header.retention_ms, self.header.coordinator)
        self.header.retention_ms |= what.retention_ms
        if retention_of(self.header.retention_ms, self.header.coordinator) != before:
            self.groups.each(at_ms, lambda live: self.groups.judge_anew(live, at_ms))

    def shard_refilled(self, cut: Buffered, what: on.ShardRefilled) -> None:
        """Note that the shard has its groups again after its saved bytes were lost."""
        self.header.rebuilt_since_ms = -1
        quarantine.refilled(self.header.quarantined)
        self.failures.quarantined.add(quarantine.WHOLE_SHARD)

    def shard_moved(self, cut: Buffered, what: on.Observation) -> None:
        """Apply that a broker loads, has loaded or unloaded the shard."""
        wrong = loads.take_line(self.header, cut.seen, cut.order_ms)
        if wrong is not None:
            self.failures.diverge_at(wrong, cut)
        self.header.info_live = True

    def shard_led(self, cut: Buffered, what: on.ShardLed) -> None:
        """Apply the leader in the metadata; a line that the metadata contradict is undone."""
        header = self.header
        before = header.moved
        kept = loads.take_leader(header, what, cut.order_ms)
        if header.moved != before or kept is not None:
            self._begin_sessions_anew(cut.order_ms)
        if kept is not None:
            self.failures.diverge_at(loads.CONTRADICTED, cut)
            self._restore(kept, cut.order_ms)

    def partition_anew(self, cut: Buffered, what: on.PartitionAnew) -> None:
        """Forget who led the shard's partition: that of the new topic begins again with epoch 0."""
        header = self.header
        header.coordinator = header.epoch = header.loaded_ms = -1
        header.led = header.unproved = None
        header.lost = {}

    def writes_stalled(self, cut: Buffered, what: on.ShardStalled | on.ReplicaMissed) -> None:
        """Note since when writes to the shard's partition have waited for a replica."""
        header = self.header
        broker = cut.seen.broker if isinstance(what, on.ShardStalled) else header.coordinator
        if live_sources.note_stall(header, what.since_ms, broker, cut.order_ms):
            self._begin_sessions_anew(cut.order_ms)

    def line(self, cut: Buffered, what: on.AnyObservation) -> None:
        """Apply a line to the groups that it concerns; the first line shows that the log is live."""
        if type(what) in CUTS and is_outdated(self.header, self.failures, cut):
            return
        if live_sources.is_first_word(self.header, cut.seen):
            self.header.info_live = True
            if cut.seen.broker >= 0:
                live_sources.note_coordinator(self.header, cut.seen)
        for name in routing.groups_meant(what, self.groups.slots, self.groups.lives):
            self.groups.run(name, [cut], cut.order_ms)

    def _go_live(self, at_ms: int) -> None:
        """Leave the backlog: from here on the rules judge, and first every group as it is."""
        announced = [one.seen.what for one in self.header.order.announced]
        self.header.order.announced.clear()
        for settings in (what for what in announced if isinstance(what, on.Settings)):
            if self._take_settings(settings):
                self._drop_unwatched(at_ms)
        adopted = [what for what in announced if isinstance(what, on.Adopted)]
        # Before any group is judged, or alerts that an earlier job left open would be sent again.
        for what in adopted:
            if what.group in self.groups.slots:
                self._adopt(what, at_ms)
        self.header.live_since_ms = at_ms
        for what in adopted:
            if what.group not in self.groups.slots:
                self._adopt(what, at_ms)
        self.groups.each(at_ms, lambda live: self._meet(live, at_ms))

    def _meet(self, live: Live, at_ms: int) -> None:
        """Let the rules see a group as it is at the end of the backlog."""
        # A driver that starts asks for all groups, some shards at a time; the backlog adds no news to that.
        live.visible, live.slot.report_ms = False, NEVER
        self.groups.judge_anew(live, at_ms)

    def _adopt(self, what: on.Adopted, at_ms: int) -> None:
        known = what.group in self.groups.slots
        live = self.groups.wake(what.group)
        if not self.verdicts.adopt(live, what.alert, at_ms):
            return
        if known:
            self.groups.judge_anew(live, at_ms)
        else:
            self.groups.drop(live, at_ms)

    def _take_settings(self, what: on.Settings) -> bool:
        """Use new settings; False if they are in use already."""
        if what.settings == self.header.settings:
            return False
        self.header.settings = what.settings
        settings = read_settings(what.settings)
        self.verdicts.offsets_enabled = settings.offsets_enabled
        self.groups.configure(settings)
        if self.judge is not None:
            self.judge.configure(what.settings)
        return True

    def _drop_unwatched(self, at_ms: int) -> None:
        settings = read_settings(self.header.settings)
        for name in sorted(self.groups.slots):
            if not settings.watches(name):
                live = self.groups.wake(name)
                self.groups.drop(live, at_ms)

    def _restore(self, kept: list[Buffered], at_ms: int) -> None:
        """Apply observations that were set aside because of a failover that did not happen."""
        for one in kept:
            late = loads.restored(one, at_ms)
            if type(late.seen.what) in CUTS:
                self._apply_safely(late)
                continue
            for name in routing.groups_named(late.seen.what, self.header):
                self.groups.run(name, [late], late.order_ms)

    def _begin_sessions_anew(self, at_ms: int) -> None:
        is_judged = self.judge is not None and self.header.live_since_ms >= 0

        def begin(live: Live) -> None:
            is_over = any(went_silent(member, at_ms) for member in live.group.members.values())
            restart_all_sessions(live.group, at_ms)
            if is_over and is_judged:
                # The rules foretell no end of a session that is over, and nothing else would ask them now.
                live.slot.judge_due_ms = min(live.slot.judge_due_ms, at_ms)
            self.groups.reschedule(live, at_ms)

        self.groups.each(at_ms, begin)

    def _note_contradiction(self) -> None:
        at_ms, self.verdicts.contradicted_ms = self.verdicts.contradicted_ms, NEVER
        if at_ms != NEVER and self.header.info_live:
            lost_ms = (at_ms // SLICE_MS + 1) * SLICE_MS
            self.header.info_lost_ms = min(self.header.info_lost_ms, lost_ms)


BOUNDARIES: Mapping[type[on.Observation], Callable[[Boundaries, Buffered, Any], None]] = {
    on.Settings: Boundaries.settings,
    on.Adopted: Boundaries.adopted,
    on.RetentionReported: Boundaries.retention_reported,
    on.ShardRefilled: Boundaries.shard_refilled,
    on.ShardLoading: Boundaries.shard_moved,
    on.ShardLoaded: Boundaries.shard_moved,
    on.ShardUnloaded: Boundaries.shard_moved,
    on.ShardLed: Boundaries.shard_led,
    on.PartitionAnew: Boundaries.partition_anew,
    on.ShardStalled: Boundaries.writes_stalled,
    on.ReplicaMissed: Boundaries.writes_stalled,
    on.GroupsDeleted: Boundaries.line,
    on.LeaderReplaced: Boundaries.line,
    on.InstanceFenced: Boundaries.line,
}
"""One line for each observation that cuts time; any other line cuts it if it shows that the log is live."""
