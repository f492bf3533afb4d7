"""Runs the shard of the whole cluster: the same order of time, but one state and no groups."""

from collections.abc import Iterator

import msgspec

from coordinator_model import observations as on
from coordinator_model.observations import NEVER
from coordinator_model.ordering import BEYOND_MS, Buffered
from coordinator_model.shard import quarantine
from coordinator_model.shard.cluster import ClusterState
from coordinator_model.shard.judging import Divergence, Judge, Judgement, Outputs
from coordinator_model.shard.snapshot import Header

TICK_MS = 1_000
"""The rules about the cluster run at least so often: most of them are about silence."""

NEWS_MAX_MS = 7 * 86_400_000
"""A shard that lost its bytes reports that until it is refilled, which takes less than a week."""
GAP_MAX_MS = 3_600_000
"""After a longer time without observations only the last hour is judged second by second."""

SECONDS_MAX = 900
"""Of a batch only the newest seconds are applied one by one: no rule looks further back."""


class ClusterShard:
    """One step of the cluster-wide shard."""

    def __init__(self, *, cluster: str, header: Header, strict: bool) -> None:
        self.cluster = cluster
        self.header = header
        self.strict = strict
        self.state = header.cluster if header.cluster is not None else ClusterState()
        header.cluster = self.state
        self.judged_due_ms: int | None = None
        """The next deadline of the rules as things stand after this step; None: they have news."""

    def step(self, seen: list[on.Seen], judge: Judge | None) -> Outputs:
        """Apply a batch and return what the rules made of it."""
        outputs = Outputs()
        order = self.header.order
        for floor_ms, heard in order.take(seen, lambda _, error: self._failed(error, order.now_ms, outputs)):
            for at_ms, one in _second_by_second(heard):
                order.held.append(Buffered(max(floor_ms, order.now_ms, at_ms), one))
        # Nothing is judged here before the first clock, so what a job wrote before it can wait for its time.
        order.held += order.announced
        order.announced.clear()
        if judge is not None:
            judge.configure(self.header.settings or b"{}")
        now_ms = order.advance()
        self._come_back(now_ms, outputs)
        ready, _ = order.release()
        self._go_live(now_ms)
        for held in ready:
            self._judge_before(held.order_ms, judge, outputs)
            self._apply_safely(held, judge, outputs)
        self._judge_before(now_ms, judge, outputs)
        if self.judged_due_ms is None and judge is not None and self.header.live_since_ms >= 0:
            self.judged_due_ms = self._foretold_ms(now_ms, judge)
        self.header.done_ms = max(self.header.done_ms, now_ms)
        self._tell_quarantined(outputs, now_ms)
        if ready or order.asked:
            outputs.cluster_report = self._reported(now_ms, outputs)
        outputs.reported, order.asked = order.asked, False
        return outputs

    def _come_back(self, now_ms: int, outputs: Outputs) -> None:
        """Go back to the watermark that a clock has corrected to an earlier time."""
        header = self.header
        back_ms, header.order.regressed_ms = header.order.regressed_ms, 0
        if not back_ms:
            return
        header.done_ms = min(header.done_ms, now_ms)
        if header.cluster_due_ms != NEVER:
            header.cluster_due_ms = min(header.cluster_due_ms, now_ms)
        self._diverged("time_regressed", now_ms, f"{back_ms} ms", outputs)

    def _reported(self, now_ms: int, outputs: Outputs) -> bytes | None:
        try:
            return self.state.report(now_ms=now_ms)
        except Exception as error:
            self._failed(error, now_ms, outputs)
            return None

    def _tell_quarantined(self, outputs: Outputs, now_ms: int) -> None:
        """Apply the quarantined groups of this shard itself, which nobody needs to send to it."""
        header = self.header
        if header.rebuilt_since_ms == 0 < now_ms:
            header.rebuilt_since_ms = now_ms
            quarantine.date(header.quarantined, now_ms)
        outputs.rebuilding = header.rebuilt_since_ms
        sound = () if header.rebuilt_since_ms >= 0 else (quarantine.WHOLE_SHARD,)
        names = {*header.quarantined, *quarantine.release(header.quarantined, now_ms, sound)}
        for name in sorted(names):
            self.state.note_quarantined(quarantine.told(header.quarantined, header.shard, name), now_ms)
        if names and header.live_since_ms >= 0:
            self.judged_due_ms = None
            header.cluster_due_ms = min(header.cluster_due_ms, (now_ms // TICK_MS + 1) * TICK_MS)

    def _go_live(self, now_ms: int) -> None:
        header = self.header
        if header.live_since_ms < 0 <= header.order.first_clock_ms < now_ms:
            header.live_since_ms = header.cluster_due_ms = header.order.first_clock_ms

    def _apply_safely(self, held: Buffered, judge: Judge | None, outputs: Outputs) -> None:
        try:
            self._apply(held, judge, outputs)
        except Exception as error:
            self._failed(error, held.order_ms, outputs)

    def _apply(self, held: Buffered, judge: Judge | None, outputs: Outputs) -> None:
        header, what = self.header, held.seen.what
        if isinstance(what, on.Settings):
            header.settings = what.settings
            if judge is not None:
                judge.configure(what.settings)
            self._ask(held.order_ms, judge, outputs)
        elif isinstance(what, on.ShardRefilled):
            header.rebuilt_since_ms = -1
            quarantine.refilled(header.quarantined)
            self.state.note_quarantined(
                quarantine.told(header.quarantined, header.shard, quarantine.WHOLE_SHARD), held.order_ms
            )
        elif isinstance(what, on.Adopted):
            if judge is not None:
                self._adopt(what.alert, held.order_ms, judge, outputs)
            self._ask(held.order_ms, judge, outputs)
        elif self.state.apply(_dated(held)):
            self._ask(held.order_ms, judge, outputs)
        elif header.live_since_ms >= 0:
            self.judged_due_ms = self.judged_due_ms if isinstance(what, on.Counted) else None
            header.cluster_due_ms = min(header.cluster_due_ms, (held.order_ms // TICK_MS + 1) * TICK_MS)

    def _judge_before(self, limit_ms: int, judge: Judge | None, outputs: Outputs) -> None:
        limit_ms = min(limit_ms, NEVER)  # beyond it, in a damaged shard, each deadline would be due
        if self.header.cluster_due_ms < limit_ms - GAP_MAX_MS:
            # No job ran, or a replay holds lines of two years: seconds without any observation prove nothing.
            self._ask(self.header.cluster_due_ms, judge, outputs)
            self.header.cluster_due_ms = limit_ms - GAP_MAX_MS
        while self.header.cluster_due_ms < limit_ms:
            self._ask(self.header.cluster_due_ms, judge, outputs)

    def _ask(self, at_ms: int, judge: Judge | None, outputs: Outputs) -> None:
        header = self.header
        if header.live_since_ms < 0:
            return
        tick_ms = (at_ms // TICK_MS + 1) * TICK_MS
        if judge is None:
            header.cluster_due_ms = tick_ms
            return
        judgement = self._judged(at_ms, judge, outputs)
        if judgement is None:
            header.cluster_due_ms, self.judged_due_ms = tick_ms, None
            return
        for rule, error in judgement.failures:
            self._failed(error, at_ms, outputs, rule)
        header.cluster_memory = judgement.memory
        outputs.alerts.extend(judgement.alerts)
        # No deadline means: ask again only on an observation.  Otherwise each tick of the quiet years between
        # an undated first line and the next line would be judged.
        self.judged_due_ms = _due_ms(at_ms, judgement)
        header.cluster_due_ms = NEVER if judgement.due_ms is None else min(tick_ms, self.judged_due_ms)

    def _foretold_ms(self, at_ms: int, judge: Judge) -> int | None:
        """Return when the rules have something to say if nothing happens; None: at their next judgement.

        What they were told in this step is judged when the second is over.  Mostly they will say nothing, as
        of a log that spoke once more, and then nobody needs to wait for that second.
        """
        try:
            judgement = self._judgement(at_ms, judge)
        except Exception:  # the judgement that counts tells it
            return None
        return None if judgement.alerts or judgement.failures else _due_ms(at_ms, judgement)

    def _judged(self, at_ms: int, judge: Judge, outputs: Outputs) -> Judgement | None:
        try:
            return self._judgement(at_ms, judge)
        except Exception as error:
            self._failed(error, at_ms, outputs)
            return None

    def _judgement(self, at_ms: int, judge: Judge) -> Judgement:
        return judge.judge_cluster(
            cluster=self.cluster, state=self.state, memory=self.header.cluster_memory, now_ms=at_ms
        )

    def _adopt(self, alert: bytes, at_ms: int, judge: Judge, outputs: Outputs) -> None:
        try:
            self.header.cluster_memory = judge.adopt(alert=alert, memory=self.header.cluster_memory)
        except Exception as error:
            self._failed(error, at_ms, outputs)

    def _failed(self, error: Exception, at_ms: int, outputs: Outputs, what: str = "") -> None:
        """Count a failure of our own code, or raise it in tests; the query goes on."""
        if self.strict:
            raise error
        words = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode()
        text = (f"{what}: {words}" if what else words)[:500]
        quarantine.note(self.header.quarantined, quarantine.WHOLE_SHARD, max(at_ms, 0), text)
        self._diverged("internal_error", at_ms, text, outputs)

    def _diverged(self, kind: str, at_ms: int, detail: str, outputs: Outputs) -> None:
        outputs.divergences.append(Divergence(kind=kind, group="", broker=-1, at_ms=at_ms, detail=detail))
        self.state.divergences[kind] = self.state.divergences.get(kind, 0) + 1


def _due_ms(at_ms: int, judgement: Judgement) -> int:
    """Return the next deadline by a judgement; from the next second on, only seconds are judged."""
    tick_ms = (at_ms // TICK_MS + 1) * TICK_MS
    if judgement.due_ms is None:
        return NEVER
    if at_ms < judgement.due_ms < tick_ms:
        return judgement.due_ms
    return max(tick_ms, -(-judgement.due_ms // TICK_MS) * TICK_MS)


def _second_by_second(heard: on.Seen) -> Iterator[tuple[int, on.Seen]]:
    """Yield the seconds in which a log had a line, each with the time at which it is over.

    If a minute is read at once, only its newest second would count otherwise, and the log would seem to have
    had no pause.
    """
    assert isinstance(heard.what, on.LogSeconds)  # noqa: S101 - nothing else is taken out of the order
    seconds = heard.what.seconds
    for part in (seconds[:-SECONDS_MAX], *((second,) for second in seconds[-SECONDS_MAX:])):
        if part:
            what = msgspec.structs.replace(heard.what, seconds=part)
            yield part[-1] * 1000 + 1000, msgspec.structs.replace(heard, what=what)


def _dated(held: Buffered) -> on.Seen:
    """Return an observation dated at the time at which this shard hears it.

    Shards repeat their reports of quarantined groups, and rules wait until no shard reports more of a
    failover: the time at which this shard hears of it counts, not the time at which it happened.  An
    observation from long ago keeps its time: no shard of this job sent it now.  Commits of the future are
    dated as the clock says that bounded them (``Order``).
    """
    seen, what = held.seen, held.seen.what
    if isinstance(what, on.GroupRebalancedByFailover | on.GroupQuarantined):
        is_news = held.order_ms - seen.at_ms < NEWS_MAX_MS
        return msgspec.structs.replace(seen, at_ms=held.order_ms) if is_news else seen
    if isinstance(what, on.Counted) and seen.at_ms > held.order_ms + BEYOND_MS:
        committed = tuple((partition, min(at_ms, held.order_ms)) for partition, at_ms in what.committed)
        what = msgspec.structs.replace(what, committed=committed)
        return msgspec.structs.replace(seen, at_ms=held.order_ms, what=what)
    return seen
