"""One shard of the coordinator: its groups, its sources, and the order in which events happen to them.

``step`` is the loop of the whole model.  It buffers observations in any order, releases those before the
watermark (``ordering``), cuts them into segments (``segments.py``), runs each group through each segment
(``timeline.py``) and applies between two segments what concerns all groups (``boundaries.py``).  The result
depends on the observations, not on the batches they came in.
"""

from coordinator_model.observations import CLUSTER_SHARD, NEVER, Counted, LogSeconds, Seen, drop_oldest
from coordinator_model.ordering import Buffered, Order, Run
from coordinator_model.shard import live_sources, quarantine, strangers
from coordinator_model.shard.awake_groups import AwakeGroups
from coordinator_model.shard.boundaries import Boundaries
from coordinator_model.shard.cluster_shard import ClusterShard
from coordinator_model.shard.failures import Failures
from coordinator_model.shard.judging import Judge, Outputs
from coordinator_model.shard.segments import Segments, first_live_ms
from coordinator_model.shard.settings import read_settings
from coordinator_model.shard.slots import ZLIB, Codec, Slots
from coordinator_model.shard.snapshot import (
    DamagedError,
    Header,
    SnapshotError,
    encode_apart,
    load,
    save,
)
from coordinator_model.shard.timeline import Timeline
from coordinator_model.shard.verdicts import Verdicts


class Shard:
    """One shard, loaded from its saved bytes."""

    def __init__(
        self, header: Header, slots: Slots, *, cluster: str, codec: Codec = ZLIB, strict: bool = False
    ) -> None:
        self.cluster = cluster
        self.codec = codec
        self.header = header
        self.strict = strict
        """Whether to raise a failure of our own code instead of counting it; for tests."""
        self.slots = slots
        self._judged_due_ms: int | None = None
        """When the cluster's rules have their next deadline, if they were judged in this step."""

    @classmethod
    def load(
        cls,
        blob: bytes | None,
        *,
        cluster: str,
        shard: int,
        shard_count: int,
        codec: Codec = ZLIB,
        strict: bool = False,
    ) -> "Shard":
        """Return the shard saved in ``blob``, or a new one; it is saved again by ``codec``.

        Raises:
            DamagedError: the blob cannot be read; ``anew`` goes on without it.
            SnapshotError: a newer version wrote it, or the number of shards has changed.
        """
        if blob is None:
            return cls(
                Header(shard=shard, shard_count=shard_count, order=Order()),
                Slots(),
                cluster=cluster,
                codec=codec,
                strict=strict,
            )
        header, slots = load(blob, codec)
        if header.shard != shard:
            raise DamagedError(f"shard {shard} has the saved bytes of shard {header.shard}")
        if header.shard_count != shard_count:
            raise SnapshotError(
                f"the checkpoint was made for {header.shard_count} partitions of the offsets topic, "
                f"and there are {shard_count} now: groups lie on other shards, so begin a new checkpoint"
            )
        return cls(header, slots, cluster=cluster, codec=codec, strict=strict)

    @classmethod
    def anew(cls, *, cluster: str, shard: int, shard_count: int, why: str, codec: Codec = ZLIB) -> "Shard":
        """Return an empty shard in place of one whose bytes cannot be read; it reports that until refilled.

        Settings, groups and open alerts are lost with those bytes: the driver sends them again.
        """
        header = Header(shard=shard, shard_count=shard_count, order=Order(), rebuilt_since_ms=0)
        quarantine.note(header.quarantined, quarantine.WHOLE_SHARD, 0, why, lost=True)
        return cls(header, Slots(), cluster=cluster, codec=codec)

    def save(self) -> bytes:
        """Return the shard as bytes for ``load``; parts that cannot be encoded are counted and left out."""
        try:
            return save(self.header, self.slots, self.codec)
        except Exception:
            if self.strict:
                raise
            return encode_apart(self.header, self.slots.values(), self.codec)

    @property
    def due_ms(self) -> int | None:
        """Return the driver's time (epoch ms) before which a step without observations changes nothing."""
        header = self.header
        dues = [header.cluster_due_ms, header.info_lost_ms, header.order.due_ms()]
        dues += (self.slots.next_due_ms(), self.slots.next_report_ms())
        dues.append(quarantine.due_ms(header.quarantined, header.done_ms, NEVER))
        due_ms = min(dues)
        return None if due_ms == NEVER else due_ms + 1 + header.order.settle_ms

    @property
    def wake_ms(self) -> int | None:
        """Return the driver's time (epoch ms) until which nothing need be told of this shard.

        The rules about the cluster run each second of its time, but have something to say only at their
        deadline: until then the seconds can come all at once.  Nobody waits for the counts of a batch, or for
        the second in which a log spoke once more.
        """
        header = self.header
        if self._judged_due_ms is None:
            return self.due_ms
        due_ms = min(self._judged_due_ms, header.order.due_ms(but=(Counted, LogSeconds)))
        return None if due_ms == NEVER else due_ms + 1 + header.order.settle_ms

    def step(self, seen: list[Seen], judge: Judge | None) -> Outputs:
        """Buffer observations, bring everything forward to the watermark, and return the outputs."""
        if self.header.shard == CLUSTER_SHARD:
            cluster = ClusterShard(cluster=self.cluster, header=self.header, strict=self.strict)
            outputs = cluster.step(seen, judge)
            self._judged_due_ms = cluster.judged_due_ms
            return outputs
        outputs = Outputs()
        self._begin(judge, outputs)
        now_ms = self._take(seen)
        outputs.zones = self.header.order.zones.take_news(whole=self.header.order.asked)
        if now_ms > self.header.done_ms:
            self._run_until(now_ms)
        self._finish(outputs, now_ms)
        return outputs

    def _take(self, seen: list[Seen]) -> int:
        """Buffer observations, and return the watermark, before which no observation can come any more."""
        header = self.header
        for floor_ms, heard in header.order.take(seen, self._failures.set_aside):
            live_sources.hear(header, floor_ms, heard)
        self._bound_strangers()
        now_ms = header.order.advance()
        self._date_rebuilding(now_ms)
        if header.order.overflowed:
            self._failures.diverge("held_overflow", "", -1, now_ms, str(header.order.overflowed))
            header.order.overflowed = 0
        self._come_back(now_ms)
        return now_ms

    def _run_until(self, now_ms: int) -> None:
        header = self.header
        held, runs = header.order.release()
        try:
            self._run_segments(held, runs, now_ms)
        except Exception as error:  # it concerns no single group: the work of this step up to here is lost
            self._failures.contain(quarantine.WHOLE_SHARD, None, now_ms, error)
            self._groups.runs.clear()
        header.done_ms = now_ms
        live_sources.forget_heard(header, now_ms - live_sources.HEARD_KEPT_MS)

    def _run_segments(self, held: list[Buffered], runs: list[Run], now_ms: int) -> None:
        """Apply the due observations, and fire deadlines, up to just before ``now_ms``.

        Within a segment each group is run by itself; observations that concern all groups are applied between
        two.
        """
        groups, boundaries = self._groups, self._boundaries
        groups.take(runs)
        boundaries.live_ms = first_live_ms(self.header, held, runs)
        segments = Segments(
            header=self.header, failures=self._failures, held=held, live_ms=boundaries.live_ms
        )
        for segment in segments.until(now_ms, groups.next_ms, boundaries.cross):
            for name in sorted({*segment.singles, *groups.due_before(segment.until_ms)}):
                groups.run(name, segment.singles.get(name, []), segment.until_ms)
                groups.rest(name, now_ms)
            groups.reached_ms = segment.until_ms
            boundaries.end(segment, now_ms)

    def _come_back(self, now_ms: int) -> None:
        """Go back to the watermark that a clock has corrected to an earlier time.

        Emitted transitions stay; deadlines are computed again, or they would wait for a time that has not
        come.
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
        self._groups.each(now_ms, lambda live: self._groups.judge_anew(live, now_ms))

    def _begin(self, judge: Judge | None, outputs: Outputs) -> None:
        settings = read_settings(self.header.settings)
        self._failures = Failures(header=self.header, outputs=outputs, strict=self.strict)
        self._verdicts = Verdicts(
            cluster=self.cluster,
            header=self.header,
            judge=judge,
            outputs=outputs,
            failures=self._failures,
            offsets_enabled=settings.offsets_enabled,
        )
        timeline = Timeline(
            header=self.header,
            verdicts=self._verdicts,
            failures=self._failures,
            forget_after_ms=settings.forget_after_ms,
        )
        self._groups = AwakeGroups(
            header=self.header,
            slots=self.slots,
            timeline=timeline,
            verdicts=self._verdicts,
            failures=self._failures,
        )
        self._boundaries = Boundaries(
            header=self.header,
            groups=self._groups,
            verdicts=self._verdicts,
            failures=self._failures,
            judge=judge,
        )
        if judge is not None:
            judge.configure(self.header.settings or b"{}")

    def _bound_strangers(self) -> None:
        """Drop the oldest entries that only lines have named, if there are far too many of them."""
        header, at_ms = self.header, max(self.header.done_ms, 0)
        brokers = strangers.bound_brokers(header)
        if brokers:
            self._failures.diverge(strangers.TOO_MANY_BROKERS, "", -1, at_ms, f"{brokers} brokers in lines")
        doubts = drop_oldest(header.strangers, strangers.STRANGERS_MAX, lambda doubt: doubt.answered_at_ms)
        if doubts:
            self._failures.diverge(strangers.TOO_MANY_STRANGERS, "", -1, at_ms, f"{doubts} groups unknown")

    def _date_rebuilding(self, now_ms: int) -> None:
        """Date the loss of the shard's bytes by the shard's own time, once it has one."""
        if self.header.rebuilt_since_ms == 0 < now_ms:
            self.header.rebuilt_since_ms = now_ms
            quarantine.date(self.header.quarantined, now_ms)
            self._failures.quarantined.add(quarantine.WHOLE_SHARD)

    def _finish(self, outputs: Outputs, now_ms: int) -> None:
        """Collect the outputs of the step, and encode the groups that it used."""
        outputs.transitions = [one for _, one in sorted(self._verdicts.transitions, key=_at)]
        outputs.alerts = [one for _, one in sorted(self._verdicts.alerts, key=_at)]
        outputs.reports = self._groups.reports(now_ms)
        self._groups.encode(now_ms)
        outputs.quarantined = self._failures.quarantine_news(self.slots, now_ms)
        outputs.rebuilding = self.header.rebuilt_since_ms
        order = self.header.order
        outputs.reported, order.asked = order.asked, False


def _at(one: tuple[int, object]) -> int:
    return one[0]
