"""One shard of the coordinator: its groups, its sources, and the order in which things happened to them.

A step takes observations in any order and works them off as a discrete-event simulation up to the
shard's *now* (``ordering.py``).  What concerns one group only is run group by group (``timeline.py``);
what concerns all of them cuts time into segments, and no group runs past a cut before every other has
reached it:

- the end of the backlog, at which the rules begin to judge;
- new settings, moves of the coordinator, lines that name no group;
- the INFO log found alive (its first line) or losing lines.  A contradiction is found within one
  group, so it takes effect for all at the next multiple of ``SLICE_MS``.

The result depends on what was seen, not on the batches it came in.
"""

from collections.abc import Callable

from coordinator_model import groups
from coordinator_model import observations as on
from coordinator_model.groups.core import begin_sessions_anew
from coordinator_model.groups.offsets import retention_of
from coordinator_model.observations import CLUSTER_SHARD, NEVER, Seen, Source, drop_oldest
from coordinator_model.ordering import Held, Order, Run, rest_of
from coordinator_model.shard import live_sources, loads, quarantine, routing, strangers
from coordinator_model.shard.cluster_shard import ClusterShard
from coordinator_model.shard.failures import Failures
from coordinator_model.shard.judging import Judge, Outputs
from coordinator_model.shard.live_group import Live
from coordinator_model.shard.report import report_of
from coordinator_model.shard.settings import ShardSettings, read_settings
from coordinator_model.shard.snapshot import (
    DamagedError,
    Header,
    Slot,
    SnapshotError,
    decode,
    encode,
    encode_apart,
)
from coordinator_model.shard.timeline import Timeline
from coordinator_model.shard.verdicts import Verdicts
from coordinator_model.state import Step

__all__ = ["Shard"]

SLICE_MS = 5_000
SEGMENTS_MAX = 200_000
"""Eleven days of slices in one step.  Where time itself is wrong there is no end of them: the rest is one."""
_CUTS = on.types_that(lambda one: one.cuts_time)
_OF_SHARD = on.types_that(lambda one: one.cuts_time and one.concerns & on.Concerns.SHARD)


class Shard:
    """One saved shard, awake."""

    def __init__(self, header: Header, slots: list[Slot], *, cluster: str, strict: bool = False) -> None:
        self.cluster = cluster
        self.header = header
        self.strict = strict
        """Raise on a failure of our own code instead of counting it; for tests."""
        self.slots = {slot.name: slot for slot in slots}
        self._lives: dict[str, Live] = {}
        self._runs: dict[str, list[Run]] = {}
        self._live_ms = NEVER
        self._cursor_ms = -1
        self._room: int | None = None
        """For how many more groups there is room; None: not counted in this step."""

    @classmethod
    def load(
        cls, blob: bytes | None, *, cluster: str, shard: int, shard_count: int, strict: bool = False
    ) -> "Shard":
        """Return the shard saved in ``blob``, or a new one.

        Raises:
            DamagedError: the blob cannot be read; ``anew`` goes on without it.
            SnapshotError: a newer version wrote it, or the number of shards is no longer the same.
        """
        if blob is None:
            return cls(
                Header(shard=shard, shard_count=shard_count, order=Order()),
                [],
                cluster=cluster,
                strict=strict,
            )
        header, slots = decode(blob)
        if header.shard != shard:
            raise DamagedError(f"shard {shard} has the saved bytes of shard {header.shard}")
        if header.shard_count != shard_count:
            raise SnapshotError(
                f"the checkpoint was made for {header.shard_count} partitions of the offsets topic, "
                f"and there are {shard_count} now: groups lie on other shards, so begin a new checkpoint"
            )
        return cls(header, slots, cluster=cluster, strict=strict)

    @classmethod
    def anew(cls, *, cluster: str, shard: int, shard_count: int, why: str) -> "Shard":
        """Return an empty shard in the place of one whose bytes cannot be read; it says so until it is full.

        Settings, groups and open alerts are gone with those bytes: who runs the shards tells them again.
        """
        header = Header(shard=shard, shard_count=shard_count, order=Order(), rebuilt_since_ms=0)
        quarantine.note(header.quarantined, quarantine.WHOLE_SHARD, 0, why, lost=True)
        return cls(header, [], cluster=cluster)

    def save(self) -> bytes:
        """Return the shard as bytes for ``load``; what cannot be written is left out, and counted before."""
        slots = list(self.slots.values())
        try:
            return encode(self.header, slots)
        except Exception:
            if self.strict:
                raise
            return encode_apart(self.header, slots)

    @property
    def due_ms(self) -> int | None:
        """Return the time on the driver's clock before which a step without news changes nothing."""
        header = self.header
        dues = [header.cluster_due_ms, header.info_lost_ms, header.order.due_ms()]
        dues.extend(min(slot.due_ms, slot.report_ms) for slot in self.slots.values())
        dues.append(quarantine.due_ms(header.quarantined, header.done_ms, NEVER))
        due_ms = min(dues)
        return None if due_ms == NEVER else due_ms + 1 + header.order.settle_ms

    def step(self, seen: list[Seen], judge: Judge | None) -> Outputs:
        """Take in observations, bring everything forward to *now*, and return what came of it."""
        if self.header.shard == CLUSTER_SHARD:
            return ClusterShard(cluster=self.cluster, header=self.header, strict=self.strict).step(
                seen, judge
            )
        header, outputs = self.header, Outputs()
        self._begin(judge, outputs)
        for floor_ms, heard in header.order.take(seen, self._set_aside):
            live_sources.hear(header, floor_ms, heard)
        self._bound_strangers()
        now_ms = header.order.advance()
        self._date_rebuilding(now_ms)
        if header.order.overflowed:
            self._failures.diverge("held_overflow", "", -1, now_ms, str(header.order.overflowed))
            header.order.overflowed = 0
        self._come_back(now_ms)
        outputs.zones = header.order.zones.take_news(whole=header.order.asked)
        if now_ms > header.done_ms:
            held, runs = header.order.release()
            for run in runs:
                self._runs.setdefault(_group_of(run.seen), []).append(run)
            try:
                self._work_off(held, now_ms)
            except Exception as error:  # not one group's: what was to be done till now is lost
                self._failures.contain(quarantine.WHOLE_SHARD, None, now_ms, error)
                self._runs.clear()
            header.done_ms = now_ms
            live_sources.forget_heard(header, now_ms - live_sources.HEARD_KEPT_MS)
        self._finish(outputs, now_ms)
        return outputs

    def _come_back(self, now_ms: int) -> None:
        """Go on from *now* where a clock has shown that it is less than was believed.

        What happened stays told; deadlines are counted anew, or they would wait for a time that has not come.
        """
        header = self.header
        back_ms, header.order.regressed_ms = header.order.regressed_ms, 0
        if not back_ms:
            return
        self._failures.diverge("time_regressed", "", -1, now_ms, f"{back_ms} ms")
        header.done_ms = min(header.done_ms, now_ms)
        for broker, known in header.heard.items():
            header.heard[broker] = [(min(counts_ms, now_ms), one) for counts_ms, one in known]
        header.lost = {broker: min(lost_ms, now_ms) for broker, lost_ms in header.lost.items()}
        self._each(now_ms, lambda live: self._judge_anew(live, now_ms))

    def _begin(self, judge: Judge | None, outputs: Outputs) -> None:
        self._room = None
        settings = self._settings
        self._judge = judge
        self._failures = Failures(header=self.header, outputs=outputs, strict=self.strict)
        self._verdicts = Verdicts(
            cluster=self.cluster,
            header=self.header,
            judge=judge,
            outputs=outputs,
            failures=self._failures,
            offsets_enabled=settings.offsets_enabled,
        )
        self._timeline = Timeline(
            header=self.header,
            verdicts=self._verdicts,
            failures=self._failures,
            forget_after_ms=settings.forget_after_ms,
        )
        if judge is not None:
            judge.configure(self.header.settings or b"{}")

    def _bound_strangers(self) -> None:
        """Forget the oldest of what nobody but lines told of, if there is far too much of it."""
        header, at_ms = self.header, max(self.header.done_ms, 0)
        brokers = strangers.bound_brokers(header)
        if brokers:
            self._failures.diverge(strangers.TOO_MANY_BROKERS, "", -1, at_ms, f"{brokers} brokers in lines")
        doubts = drop_oldest(header.strangers, strangers.STRANGERS_MAX, lambda doubt: doubt.answered_at_ms)
        if doubts:
            self._failures.diverge(strangers.TOO_MANY_STRANGERS, "", -1, at_ms, f"{doubts} groups unknown")

    def _has_room(self, name: str, at_ms: int) -> bool:
        """Say whether a group that is not known yet can be taken in."""
        if self._room is None:
            used = sum(map(strangers.weight, self.slots))
            self._room = strangers.groups_max(self.header.shard_count) - used
        if strangers.weight(name) <= self._room:
            return True
        self._failures.diverge(strangers.TOO_MANY_GROUPS, "", -1, at_ms, f"{len(self.slots)} groups")
        return False

    def _date_rebuilding(self, now_ms: int) -> None:
        """Date the loss of the shard's bytes by its own time, once there is one."""
        if self.header.rebuilt_since_ms == 0 < now_ms:
            self.header.rebuilt_since_ms = now_ms
            quarantine.date(self.header.quarantined, now_ms)
            self._failures.quarantined.add(quarantine.WHOLE_SHARD)

    def _set_aside(self, seen: Seen, error: Exception) -> None:
        """Note an observation that could not even be put in order."""
        group = seen.what.group if isinstance(seen.what, on.GroupObservation) else quarantine.WHOLE_SHARD
        self._failures.contain(group, seen, max(self.header.done_ms, 0), error)

    @property
    def _settings(self) -> ShardSettings:
        return read_settings(self.header.settings)

    # --- segments ----------------------------------------------------------------------------------

    def _work_off(self, held: list[Held], now_ms: int) -> None:
        """Apply ``held`` and the released runs, and fire deadlines, up to just before ``now_ms``."""
        index, segments = 0, 0
        if self.header.live_since_ms < 0:
            self._live_ms = self._first_live_ms(held, [run for runs in self._runs.values() for run in runs])
        self._cursor_ms = self.header.done_ms
        while True:
            next_ms = self._next_ms(held, index, now_ms)
            # Of what happens at *now* itself more may come.
            if self._cross(min(next_ms, now_ms - 1)):
                next_ms = self._next_ms(held, index, now_ms)
            segments += 1
            until_ms = self._cut_ms(next_ms, now_ms) if segments < SEGMENTS_MAX else now_ms
            singles, index, cut = self._collect(held, index, until_ms)
            if cut is not None:
                until_ms = cut.order_ms
            self._run_segment(singles, until_ms)
            self._cursor_ms = until_ms
            self._note_contradiction()
            if cut is not None:
                self._apply_cut(cut)
            elif until_ms >= now_ms:
                self._cross(now_ms - 1)
                return
            else:
                self._cross(until_ms)

    def _next_ms(self, held: list[Held], index: int, now_ms: int) -> int:
        """Return when the next thing happens, ``now_ms`` at most."""
        next_ms = min((slot.due_ms for slot in self.slots.values()), default=now_ms)
        if index < len(held):
            next_ms = min(next_ms, held[index].order_ms)
        for runs in self._runs.values():
            for run in runs:
                next_ms = min(next_ms, run.first_ms())
        return max(self._cursor_ms, min(now_ms, next_ms))

    def _cross(self, at_ms: int) -> bool:
        """Do what takes effect for the whole shard by ``at_ms``; True if there was anything."""
        header = self.header
        lost = header.info_lost_ms <= at_ms
        if lost:
            lost_ms, header.info_lost_ms = header.info_lost_ms, NEVER
            header.info_live = False
            self._each(lost_ms, lambda live: self._timeline.reschedule(live, lost_ms))
        begins = header.live_since_ms < 0 and self._live_ms <= at_ms
        if begins:
            self._go_live(self._live_ms)
        return lost or begins

    def _cut_ms(self, next_ms: int, now_ms: int) -> int:
        """Return until when the next segment, in which ``next_ms`` comes first, may run at most."""
        header = self.header
        until_ms = min(now_ms, header.info_lost_ms)
        if header.live_since_ms < 0:
            return min(until_ms, self._live_ms)
        if header.info_live:
            return min(until_ms, (next_ms // SLICE_MS + 1) * SLICE_MS)
        return until_ms

    def _first_live_ms(self, held: list[Held], runs: list[Run]) -> int:
        """Return when the backlog ends: at the first clock, or at what was seen live before it."""
        times = [one.order_ms for one in held if not one.seen.backlog]
        times += [run.first_ms() for run in runs if not run.seen.backlog]
        if self.header.order.first_clock_ms >= 0:
            times.append(self.header.order.first_clock_ms)
        return min(times, default=NEVER)

    def _collect(
        self, held: list[Held], index: int, until_ms: int
    ) -> tuple[dict[str, list[Held]], int, Held | None]:
        """Return the next observations by group, how far they go, and the one that cuts them off."""
        singles: dict[str, list[Held]] = {}
        while index < len(held) and held[index].order_ms < until_ms:
            one = held[index]
            index += 1
            if type(one.seen.what) in _CUTS:
                return singles, index, one
            try:
                if self._is_outdated(one):
                    continue
                if self._is_first_word(one.seen):
                    return singles, index, one
                for name in routing.groups_named(one.seen.what, self.header):
                    singles.setdefault(name, []).append(one)
            except Exception as error:
                self._set_aside(one.seen, error)
        return singles, index, None

    def _is_first_word(self, seen: Seen) -> bool:
        """Say whether a line changes what is known of the shard's sources, beside what it says."""
        if seen.source is not Source.COORDINATOR_LOG:
            return False
        return not self.header.info_live or live_sources.is_news_of_coordinator(self.header, seen)

    def _is_outdated(self, held: Held) -> bool:
        if not live_sources.is_outdated(self.header, held.seen, held.order_ms):
            return False
        loads.keep(self.header, held)
        self._diverge("outdated_coordinator", held)
        return True

    def _diverge(self, kind: str, held: Held) -> None:
        if self.header.live_since_ms >= 0:
            self._failures.diverge(kind, "", held.seen.broker, held.order_ms)

    def _run_segment(self, singles: dict[str, list[Held]], until_ms: int) -> None:
        names = {name for name, runs in self._runs.items() if any(run.first_ms() < until_ms for run in runs)}
        names.update(singles)
        names.update([slot.name for slot in self.slots.values() if slot.due_ms < until_ms])
        for name in sorted(names):
            self._run_safely(name, singles.get(name, []), until_ms)

    def _run_safely(self, name: str, singles: list[Held], until_ms: int) -> None:
        try:
            self._run_group(name, singles, until_ms)
        except Exception as error:  # what was seen of it till then is lost; the other groups go on
            self._failures.contain(name, None, until_ms, error)
            slot = self.slots.get(name)
            if slot is not None:
                slot.due_ms = slot.judge_due_ms = NEVER

    def _run_group(self, name: str, singles: list[Held], until_ms: int) -> None:
        runs = self._current_runs(name, until_ms)
        if name in self.slots or (self._settings.watches(name) and self._has_room(name, until_ms)):
            live = self._wake(name)
            is_new = name not in self.slots
            rest = self._timeline.run(live, singles, runs, until_ms)
            self._settle(live)
            if is_new and self._room is not None and not live.absent:
                self._room -= strangers.weight(name)
        else:
            rest = rest_of(runs, until_ms)
        if rest:
            self._runs[name] = rest

    def _settle(self, live: Live) -> None:
        """Keep a group that is there; let go of one that is not."""
        name = live.slot.name
        if live.absent:
            self.slots.pop(name, None)
            self._lives.pop(name, None)
        else:
            self.slots[name] = live.slot

    def _current_runs(self, name: str, until_ms: int) -> list[Run]:
        """Take a group's runs, without what a broker that has lost the shard says in this segment."""
        runs = self._runs.pop(name, [])
        lost = self.header.lost
        if not lost:
            return runs
        kept: list[Run] = []
        for run in runs:
            if run.first_ms() < lost.get(run.seen.broker, NEVER):
                kept.append(run)
            else:
                kept.extend(rest_of([run], until_ms))
        return kept

    def _wake(self, name: str) -> Live:
        live = self._lives.get(name)
        if live is None:
            slot = self.slots.get(name)
            if slot is None:
                live = Live(Slot(name=name), self._timeline.new_group(name), absent=True)
            else:
                live = self._awake(slot)
            self._lives[name] = live
        return live

    def _awake(self, slot: Slot) -> Live:
        """Return a known group; one whose bytes cannot be read begins anew, and what is open of it ends."""
        try:
            return Live.wake(slot)
        except Exception as error:
            if self.strict:
                raise
            at_ms = max(self._cursor_ms, self.header.done_ms)
            self._failures.poison(slot.name, None, at_ms, error, what="its saved state", lost=True)
            live = Live(slot, groups.new_group(slot.name), absent=True)
            self._timeline.drop(live, at_ms, _LOST.format(slot.name))
            self.slots.pop(slot.name, None)
            return live

    def _each(self, at_ms: int, act: Callable[[Live], None]) -> None:
        """Do something to every group; one on which it fails holds up none of the others."""
        for name in sorted(self.slots):
            try:
                live = self._wake(name)
                if not live.absent:
                    act(live)
            except Exception as error:
                self._failures.contain(name, None, at_ms, error)

    def _note_contradiction(self) -> None:
        at_ms, self._verdicts.contradicted_ms = self._verdicts.contradicted_ms, NEVER
        if at_ms != NEVER and self.header.info_live:
            lost_ms = (at_ms // SLICE_MS + 1) * SLICE_MS
            self.header.info_lost_ms = min(self.header.info_lost_ms, lost_ms)

    def _go_live(self, at_ms: int) -> None:
        """Leave the backlog: from here on the rules judge, and first every group as it was found."""
        announced = [one.seen.what for one in self.header.order.announced]
        self.header.order.announced.clear()
        for settings in (what for what in announced if isinstance(what, on.Settings)):
            if self._take_settings(settings):
                self._drop_unwatched(at_ms)
        adopted = [what for what in announced if isinstance(what, on.Adopted)]
        # All before any group is judged, or what an earlier job left open would be told anew.
        for what in adopted:
            if what.group in self.slots:
                self._adopt(what, at_ms)
        self.header.live_since_ms = at_ms
        for what in adopted:
            if what.group not in self.slots:
                self._adopt(what, at_ms)
        self._each(at_ms, lambda live: self._meet(live, at_ms))

    def _meet(self, live: Live, at_ms: int) -> None:
        """Let the rules see a group as it was found."""
        # Who starts asks for all groups, some shards at a time; the backlog is no news beside that.
        live.visible, live.slot.report_ms = False, NEVER
        self._judge_anew(live, at_ms)

    def _judge_anew(self, live: Live, at_ms: int) -> None:
        if self.header.live_since_ms >= 0:
            self._verdicts.ask_judge(live, Step(met=True), at_ms)
        self._timeline.reschedule(live, at_ms)

    # --- what cuts a segment -----------------------------------------------------------------------

    def _apply_cut(self, cut: Held) -> None:
        try:
            self._cut(cut)
        except Exception as error:
            self._set_aside(cut.seen, error)

    def _cut(self, cut: Held) -> None:
        what = cut.seen.what
        if isinstance(what, on.Settings | on.Adopted | on.RetentionTold | on.ShardRefilled):
            self._obey(what, cut.order_ms)
        elif type(what) in _OF_SHARD:
            self._move(cut)
        elif type(what) not in _CUTS or not self._is_outdated(cut):
            if self._is_first_word(cut.seen):
                self.header.info_live = True
                if cut.seen.broker >= 0:
                    live_sources.note_coordinator(self.header, cut.seen)
            for name in routing.groups_meant(what, self.slots, self._lives):
                self._run_safely(name, [cut], cut.order_ms)

    def _obey(self, what: on.Settings | on.Adopted | on.RetentionTold | on.ShardRefilled, at_ms: int) -> None:
        if isinstance(what, on.Settings):
            self._configure(what, at_ms)
        elif isinstance(what, on.Adopted):
            self._adopt(what, at_ms)
        elif isinstance(what, on.RetentionTold):
            self._retain(what, at_ms)
        else:
            self.header.rebuilt_since_ms = -1
            quarantine.refilled(self.header.quarantined)
            self._failures.quarantined.add(quarantine.WHOLE_SHARD)

    def _move(self, cut: Held) -> None:
        header, what = self.header, cut.seen.what
        if isinstance(what, on.ShardStalled | on.ReplicaMissed):
            broker = cut.seen.broker if isinstance(what, on.ShardStalled) else header.coordinator
            if live_sources.note_stall(header, what.since_ms, broker, cut.order_ms):
                self._begin_sessions_anew(cut.order_ms)
        elif isinstance(what, on.ShardLed):
            before = header.moved
            kept = loads.take_leader(header, what, cut.order_ms)
            if header.moved != before or kept is not None:
                self._begin_sessions_anew(cut.order_ms)
            if kept is not None:
                self._diverge(loads.CONTRADICTED, cut)
                self._restore(kept, cut.order_ms)
        else:
            wrong = loads.take_line(header, cut.seen, cut.order_ms)
            if wrong is not None:
                self._diverge(wrong, cut)
            header.info_live = True

    def _restore(self, kept: list[Held], at_ms: int) -> None:
        """Apply what was dropped for a move of the shard that never was."""
        for one in kept:
            late = loads.restored(one, at_ms)
            if type(late.seen.what) in _CUTS:
                self._apply_cut(late)
                continue
            for name in routing.groups_named(late.seen.what, self.header):
                self._run_safely(name, [late], late.order_ms)

    def _begin_sessions_anew(self, at_ms: int) -> None:
        def begin(live: Live) -> None:
            begin_sessions_anew(live.group, at_ms)
            self._timeline.reschedule(live, at_ms)

        self._each(at_ms, begin)

    def _retain(self, what: on.RetentionTold, at_ms: int) -> None:
        """Take in how long offsets are kept; one that is not as assumed concerns all groups at once."""
        before = retention_of(self.header.retention_ms, self.header.coordinator)
        self.header.retention_ms |= what.retention_ms
        if retention_of(self.header.retention_ms, self.header.coordinator) != before:
            self._each(at_ms, lambda live: self._judge_anew(live, at_ms))

    def _adopt(self, what: on.Adopted, at_ms: int) -> None:
        known = what.group in self.slots
        live = self._wake(what.group)
        if not self._verdicts.adopt(live, what.alert, at_ms):
            return
        if known:
            self._judge_anew(live, at_ms)
        else:
            self._timeline.drop(live, at_ms)
            self._settle(live)

    def _configure(self, what: on.Settings, at_ms: int) -> None:
        if self._take_settings(what):
            self._drop_unwatched(at_ms)
            self._each(at_ms, lambda live: self._judge_anew(live, at_ms))

    def _take_settings(self, what: on.Settings) -> bool:
        """Put settings into force; False if they are already."""
        if what.settings == self.header.settings:
            return False
        self.header.settings = what.settings
        settings = self._settings
        self._verdicts.offsets_enabled = settings.offsets_enabled
        self._timeline.forget_after_ms = settings.forget_after_ms
        if self._judge is not None:
            self._judge.configure(what.settings)
        return True

    def _drop_unwatched(self, at_ms: int) -> None:
        settings = self._settings
        for name in sorted(self.slots):
            if not settings.watches(name):
                live = self._wake(name)
                self._timeline.drop(live, at_ms)
                self._settle(live)

    # --- the end of a step -------------------------------------------------------------------------

    def _finish(self, outputs: Outputs, now_ms: int) -> None:
        outputs.transitions = [one for _, one in sorted(self._verdicts.transitions, key=_at)]
        outputs.alerts = [one for _, one in sorted(self._verdicts.alerts, key=_at)]
        order = self.header.order
        for name in sorted(self._to_report(now_ms)):
            self._report(name, outputs, now_ms)
        for name in sorted(self._timeline.removed.difference(self.slots)):
            outputs.reports.append(report_of(groups.new_group(name), at_ms=now_ms, removed=True))
        for live in self._lives.values():
            self._rest(live, now_ms)
        self._lives.clear()
        self._tell_quarantined(outputs, now_ms)
        outputs.rebuilding = self.header.rebuilt_since_ms
        outputs.reported, order.asked = order.asked, False

    def _report(self, name: str, outputs: Outputs, now_ms: int) -> None:
        try:
            live = self._wake(name)
            if live.absent:  # it was lost just now
                return
            live.slot.report_ms = NEVER
            context = self._verdicts.context(live, now_ms, backlog=False)
            outputs.reports.append(report_of(live.group, at_ms=now_ms, context=context))
        except Exception as error:
            self._failures.contain(name, None, now_ms, error)

    def _rest(self, live: Live, now_ms: int) -> None:
        """Encode a group; one that cannot be written goes on as it was before this step."""
        try:
            live.rest()
        except Exception as error:
            self._failures.contain(live.slot.name, None, now_ms, error)
            if not bytes(live.slot.raw):  # nor was it there before
                self.slots.pop(live.slot.name, None)

    def _tell_quarantined(self, outputs: Outputs, now_ms: int) -> None:
        """Tell the cluster's shard of groups that something failed on, and of those that work again."""
        header = self.header
        if not (header.quarantined or self._failures.quarantined):
            return
        sound = {*self.slots, *(() if header.rebuilt_since_ms >= 0 else (quarantine.WHOLE_SHARD,))}
        over = quarantine.release(header.quarantined, now_ms, sound)
        names = {*self._failures.quarantined, *over, *(header.quarantined if header.order.asked else ())}
        outputs.quarantined = [
            quarantine.told(header.quarantined, header.shard, one) for one in sorted(names)
        ]

    def _to_report(self, now_ms: int) -> set[str]:
        if self.header.order.asked:
            return set(self.slots)
        if self.header.live_since_ms < 0:
            return set()
        names = {name for name, live in self._lives.items() if live.visible}
        names.update(slot.name for slot in self.slots.values() if slot.report_ms <= now_ms)
        return names


_LOST = "The saved state of group {} could not be read: it is begun anew, and what still holds is told again."


def _group_of(seen: Seen) -> str:
    what = seen.what
    assert isinstance(what, on.GroupObservation)  # noqa: S101 - runs are about one group
    return what.group


def _at(one: tuple[int, object]) -> int:
    return one[0]
