"""Small worlds, and what a shard says that reads them in batches cut at random.

A world is two brokers' logs in two events partitions, one offsets partition, the control partition, each
a list of records in their order.  Each partition is read at its own speed.
"""

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import msgspec

from coordinator_model import observations as on
from coordinator_model.observations.base import Source
from coordinator_model.observations.modern_records import (
    Current,
    GroupEpoch,
    MemberMetadata,
    MemberState,
    Target,
    TargetEpoch,
)
from coordinator_model.observations.seen import Seen
from coordinator_model.ordering.order import END_UNKNOWN
from coordinator_model.shard.cluster import ClusterState
from coordinator_model.shard.judging import Judge, Judgement, LiveSources, Outputs
from coordinator_model.shard.shard import Shard
from coordinator_model.state.group import Group, Step

START_MS = 1_700_000_000_000
GROUPS = ("orders", "payments, eu", "groupwatch-notifier")
MEMBERS = ("a", "b", "c")
OFFSETS, CONTROL = "offsets", "control"
EVENTS = ("events-0", "events-1")
Parts = dict[str, list[Seen]]
ADOPTED = (
    b'{"id":"x","revision":3,"name":"StuckPreparingRebalance","cluster":"c","group":"%s",'
    b'"status":"firing","severity":"warning","starts_at_ms":1,"ends_at_ms":null,"detected_at_ms":2,'
    b'"summary":"","cause":""}'
)


class Recorder:
    """A judge that tells everything it was shown, and asks to be called again."""

    def __init__(self) -> None:
        self.settings = b""

    def configure(self, settings: bytes) -> None:
        """Remember the settings, to show that they were in force."""
        self.settings = settings

    def judge(
        self,
        *,
        cluster: str,
        group: Group,
        step: Step,
        memory: bytes | None,
        now_ms: int,
        evidence: LiveSources,
        removed: bool,
    ) -> Judgement:
        """Tell all that was shown."""
        count = int(memory or b"0") + 1
        shown = (cluster, msgspec.to_builtins(group), msgspec.to_builtins(step), count, now_ms)
        told = (group.group, shown, msgspec.to_builtins(evidence), removed, self.settings)
        return Judgement(memory=str(count).encode(), alerts=[told], due_ms=(now_ms // 7_000 + 1) * 7_000)

    def silent_share(self, group: str) -> float:
        """Look at silent members early, and not when they are asked for anyway."""
        return 0.05

    def is_watching(self, memory: bytes | None) -> bool:
        """Ask to be shown everything."""
        return True

    def adopt(self, *, alert: bytes, memory: bytes | None) -> bytes | None:
        """Show that an alert was adopted by a count nobody else reaches."""
        return b"1000"

    def judge_cluster(
        self, *, cluster: str, state: ClusterState, memory: bytes | None, now_ms: int
    ) -> Judgement:
        """Say nothing: there is no cluster-wide shard here."""
        return Judgement(memory=memory, alerts=[], due_ms=None)


# --- a world -----------------------------------------------------------------------------------------


class World:
    """Contents of the partitions, made record by record."""

    session_ms = 6_000

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.parts: Parts = {OFFSETS: [], CONTROL: [], **{name: [] for name in EVENTS}}
        self.generation: dict[str, int] = defaultdict(int)
        self.now_ms = START_MS
        self.backlog = True
        self.sequence = 0

    def add(self, part: str, what: Any, source: Source, broker: int = -1, late_ms: int = 0) -> None:
        """Append a record to a partition."""
        records = self.parts[part]
        at_ms = self.now_ms - late_ms
        records.append(
            Seen(
                at_ms=at_ms,
                source=source,
                partition=int(part[-1]) if part in EVENTS else 0,
                offset=len(records),
                index=0,
                broker=broker,
                recorded_at_ms=self.now_ms,
                backlog=self.backlog and part != CONTROL,
                what=what,
            )
        )

    def line(self, what: Any, *, request: bool = False) -> None:
        """Append a log line of one of two brokers, often late."""
        source = Source.REQUEST_LOG if request else Source.COORDINATOR_LOG
        late_ms = self.chance.choice((0, 0, 0, 40, 200, 900, 4_000))
        broker = self.chance.choice((1, 1, 1, 2))
        self.add(EVENTS[broker - 1], what, source, broker=broker, late_ms=late_ms)

    def clocks(self, *, whole: bool = False) -> None:
        """Append a clock to every partition that has clocks; a ``whole`` one knows the end in any case."""
        self.sequence += 1
        skew = {1: 0, 2: -30}
        clock = on.Clock(
            sequence=self.sequence,
            end_offset=len(self.parts[OFFSETS]) if whole else self.end(),
            events_partitions=2,
            skew_ms=skew,
            is_answer=True,
        )
        self.add(CONTROL, clock, Source.CONTROL)
        for name in EVENTS:
            self.add(name, on.EventsClock(sequence=self.sequence, skew_ms=skew), Source.CONTROL)

    def end(self) -> int:
        """Return what the offsets partition's leader tells: at times it is gone, or misses a replica."""
        records = self.parts[OFFSETS]
        end = max(0, len(records) - self.chance.choice((0, 0, 0, 0, 1, 3)))
        while 0 < end < len(records) and records[end - 1].at_ms == records[end].at_ms:
            end -= 1  # what was written as one is there or not
        return END_UNKNOWN if self.chance.random() < 0.1 else end

    def record(self, group: str) -> None:
        """Append a record of the group's generation."""
        members = tuple(
            on.MemberRecord(
                member_id=f"{group}-{name}",
                client_id=name,
                client_host="/10.0.0.1",
                session_timeout_ms=self.session_ms,
                rebalance_timeout_ms=20_000,
                topics=("t",),
                assigned={"t": (0,)},
            )
            for name in self.present()
        )
        recorded = on.GroupRecorded(
            group=group,
            generation=self.generation[group],
            protocol_type="consumer",
            protocol="range" if members else None,
            leader_id=members[0].member_id if members else None,
            state_since_ms=self.now_ms - self.chance.randint(0, 900),
            members=members,
        )
        self.add(OFFSETS, recorded, Source.OFFSETS)

    def present(self) -> tuple[str, ...]:
        """Return the members that a generation has."""
        return MEMBERS[: self.chance.randint(0, 3)]

    def heartbeats(self, group: str) -> None:
        """Append heartbeats of some members with any answer."""
        for name in MEMBERS[: self.chance.randint(1, 3)]:
            error = self.chance.choice((0, 0, 0, 0, 27, 25, 82))
            beat = on.Heartbeats(
                group=group,
                member_id=f"{group}-{name}",
                generation=self.generation[group],
                error_code=error,
                times=(),
            )
            self.line(beat, request=True)
            if self.chance.random() < 0.3:
                self.line(self.commit_answer(group, name), request=True)

    def commit_answer(self, group: str, name: str) -> on.CommitsAnswered:
        """Return the answer to a commit, mostly a refusal, sometimes of somebody who is no member."""
        error = self.chance.choice((0, 22, 25, 25, 82))
        is_stranger = error == 25 and self.chance.random() < 0.3
        return on.CommitsAnswered(
            group=group,
            member_id="" if is_stranger else f"{group}-{name}",
            generation=-1 if is_stranger else self.generation[group],
            error_code=error,
            times=(),
            client=on.Client(client_id=name, host="/h", connection=name),
            claims=(("t", 0, self.chance.randint(0, 1)),) if error else (),
        )

    def commit(self, group: str) -> None:
        """Append a commit or its tombstone."""
        offset = self.chance.choice((None, self.sequence, self.sequence + 1))
        commit = on.Commit("t", self.chance.randint(0, 2), offset, self.now_ms)
        self.add(OFFSETS, on.OffsetsCommitted(group=group, commits=(commit,)), Source.OFFSETS)

    def ends(self, group: str) -> None:
        """Append where partitions ended, mostly a little further on."""
        ends = {n: self.sequence + self.chance.choice((-9, 0, 0, 1, 7, 50)) for n in range(3)}
        stable = {n: self.sequence + self.chance.choice((0, 1)) for n in range(self.chance.choice((0, 0, 3)))}
        told = on.EndOffsetsReported(group=group, ends={"t": ends}, stable={"t": stable})
        self.add(CONTROL, told, Source.CONTROL)

    def rebalance(self, group: str) -> None:
        """Append the lines that start a rebalance."""
        member_id = f"{group}-{self.chance.choice(MEMBERS)}"
        kind = self.chance.choice(("member_joined", "member_left", "session_timeout"))
        if kind == "session_timeout":
            self.line(on.MemberFailed(group=group, member_id=member_id))
        reason = on.Reason(kind=kind, text=kind, member_ids=(member_id,))
        self.line(on.RebalanceStarted(group=group, generation=self.generation[group], reason=reason))

    def settle(self, group: str) -> None:
        """Append the line that ends a join phase, and mostly its record."""
        self.generation[group] += 1
        self.line(on.JoinPhaseEnded(group=group, generation=self.generation[group], member_count=2))
        self.now_ms += self.chance.randint(0, 30)
        if self.chance.random() < 0.8:
            self.record(group)

    def answer(self, group: str) -> None:
        """Append a broker's own answer about a group, or two that are far enough apart to prove something."""
        state = self.chance.choice(("Stable", "PreparingRebalance", "CompletingRebalance", "Empty", "Dead"))
        names = MEMBERS[: self.chance.randint(0, 3)]
        for _ in range(self.chance.choice((1, 2))):
            described = on.GroupDescribed(
                group=group,
                asked_at_ms=self.now_ms - self.chance.choice((3, 900)),
                group_type=self.chance.choice(("classic",) * 5 + ("consumer",)),
                state=state,
                protocol=self.chance.choice(("", "range", "sticky")),
                members=tuple(on.DescribedMember(member_id=f"{group}-{name}") for name in names),
            )
            self.add(CONTROL, described, Source.CONTROL, broker=self.chance.choice((1, 1, 2)))
            self.now_ms += 6_000

    def modern(self, group: str) -> None:
        """Append what a coordinator of a modern protocol writes as one: several records of one time."""
        name = f"{group}-{self.chance.choice(MEMBERS)}"
        self.generation[group] += 1
        if self.chance.random() < 0.2:
            self.line(on.ModernMemberGone(group=group, member_id=name, kind="session_timeout", text=""))
        acts = (self.joining, self.joining, self.reaching, self.leaving, self.ending, self.converting)
        self.chance.choice(acts)(group, name)

    def leaving(self, group: str, name: str) -> None:
        """Append what the coordinator writes of a member that goes."""
        for kind in (8, 7, 5):
            self.written(group, kind, member_id=name)
        self.epoch(group)

    def ending(self, group: str, _: str) -> None:
        """Append the group's end, or its conversion to a classic one."""
        self.written(group, 6)
        self.written(group, 3)
        if self.chance.random() < 0.5:
            self.record(group)

    def converting(self, group: str, name: str) -> None:
        """Append the conversion of a classic group."""
        self.add(OFFSETS, on.GroupTombstone(group=group), Source.OFFSETS)
        self.joining(group, name)

    def written(self, group: str, kind: int, part: Any = None, member_id: str = "") -> None:
        """Append a record of a consumer group; without ``part`` its tombstone."""
        what = on.ModernRecord(
            group=group,
            group_type="consumer",
            record_type=kind,
            name="",
            tombstone=part is None,
            member_id=member_id,
            part=part,
        )
        self.add(OFFSETS, what, Source.OFFSETS)

    def epoch(self, group: str) -> None:
        """Append the group's own record."""
        self.written(group, 3, GroupEpoch(epoch=self.generation[group]))

    def joining(self, group: str, name: str) -> None:
        """Append what a member writes that joins."""
        self.written(group, 5, MemberMetadata(client_id=name, client_host="/1", topics=("t",)), name)
        self.epoch(group)
        if self.chance.random() < 0.5:
            self.reaching(group, name)

    def reaching(self, group: str, name: str) -> None:
        """Append a target assignment, and what one member has of it."""
        epoch = self.generation[group]
        state = self.chance.choice((MemberState.STABLE, MemberState.UNREVOKED))
        wanted = {"T": tuple(sorted(self.chance.sample(range(3), 2)))}
        self.written(group, 7, Target(assigned=wanted), name)
        self.written(group, 6, TargetEpoch(epoch=epoch))
        self.written(
            group, 8, Current(epoch=epoch, previous_epoch=0, state=state, assigned={"T": (0,)}), name
        )

    def rare(self, group: str) -> None:
        """Append what concerns more than one group, or ends one."""
        member_id = f"{group}-a"
        self.chance.choice(
            (
                lambda: self.line(on.ShardLoading(epoch=self.sequence)),
                lambda: self.line(on.ShardUnloaded()),
                lambda: self.add(CONTROL, on.ShardLed(leader=1, epoch=self.sequence), Source.CONTROL),
                lambda: self.add(CONTROL, on.ReplicaMissed(since_ms=self.now_ms - 20_000), Source.CONTROL),
                lambda: self.line(on.ShardStalled(group=group, since_ms=self.now_ms - 5_000), request=True),
                lambda: self.add(
                    CONTROL, on.RetentionReported(retention_ms={1: 60_000 * self.sequence}), Source.CONTROL
                ),
                lambda: self.line(on.GroupsDeleted(names=", ".join(GROUPS[:2]))),
                lambda: self.line(
                    on.InstanceFenced(
                        member_id="x", instance_id="i", by_member_id=member_id, operation="heartbeat"
                    )
                ),
                lambda: self.line(on.LeaderReplaced(old_leader_id=member_id, new_leader_id=None)),
                lambda: self.add(OFFSETS, on.GroupTombstone(group=group), Source.OFFSETS),
                lambda: self.add(CONTROL, on.Settings(settings=_settings(self.chance)), Source.CONTROL),
                lambda: self.add(
                    CONTROL, on.Adopted(group=group, alert=ADOPTED % group.encode()), Source.CONTROL
                ),
                lambda: self.add(
                    OFFSETS,
                    on.GroupRecorded(
                        group=group,
                        generation=self.generation[group] + 1,
                        protocol_type="consumer",
                        protocol=None,
                        leader_id=None,
                        state_since_ms=self.now_ms,
                        members=(),
                    ),
                    Source.OFFSETS,
                ),
            )
        )()


def _settings(chance: random.Random) -> bytes:
    deny = chance.choice(("[]", '["orders"]'))
    return b'{"groups":{"allow":[".*"],"deny":%s},"forget_after_ms":%d}' % (
        deny.encode(),
        chance.choice((9_000, 10**9)),
    )


def make_slow_start(seed: int, steps: int) -> Parts:
    """Return a world whose first clock comes late: until then lines are live that no clock has dated."""
    return make_world(seed, steps, clockless=steps // 3)


def make_world(seed: int, steps: int, *, clockless: int = 0) -> Parts:
    """Return the contents of the partitions, ended by clocks that let everything pass.

    Args:
        seed: of all chance.
        steps: how many things happen.
        clockless: so many of them after the end of the backlog, and before the first clock.
    """
    world = World(random.Random(seed))
    chance = world.chance
    acts = (
        (world.heartbeats,) * 6
        + (world.commit,) * 3
        + (world.modern,) * 3
        + (world.rebalance, world.settle, world.record, world.rare, world.answer, world.ends)
    )
    live_at = chance.randint(0, steps // 2)
    for step in range(steps):
        if step == live_at:
            world.backlog = False
        if step == live_at + clockless:
            world.clocks()
        world.now_ms += chance.choice((0, 1, 30, 300, 700, 2_500))
        chance.choice(acts)(chance.choice(GROUPS))
        if step >= live_at + clockless and chance.random() < 0.4:
            world.clocks()
    for _ in range(4):
        world.now_ms += 40_000
        world.clocks(whole=True)
    return world.parts


# --- reading it --------------------------------------------------------------------------------------


def fold(records: list[Seen]) -> list[Seen]:
    """Return what a decoder makes of consecutive records: runs folded, never across a clock copy."""
    folded: list[Seen] = []
    runs: dict[Any, list[Seen]] = {}
    heard: dict[tuple[int, Source], list[Seen]] = {}

    def flush() -> None:
        for run in runs.values():
            times = tuple(sorted(one.at_ms for one in run))
            what = msgspec.structs.replace(run[-1].what, times=times)
            folded.append(msgspec.structs.replace(run[-1], at_ms=times[-1], what=what))
        for (broker, source), lines in heard.items():
            seconds = tuple(sorted({one.at_ms // 1000 for one in lines}))
            what = on.LogSeconds(broker=broker, heard=source, seconds=seconds)
            folded.append(msgspec.structs.replace(lines[-1], index=1_000, what=what))
        runs.clear()
        heard.clear()

    for seen in records:
        what = seen.what
        if isinstance(what, on.EventsClock):
            flush()
        elif seen.broker >= 0:
            heard.setdefault((seen.broker, seen.source), []).append(seen)
        if isinstance(what, on.Heartbeats | on.CommitsAnswered):
            key = (type(what), seen.broker, what, seen.backlog)
            runs.setdefault(key, []).append(seen)
        else:
            folded.append(seen)
    flush()
    return folded


def read(
    parts: Parts,
    seed: int,
    batches: int,
    judge: Judge,
    gather: Callable[[list[Seen]], list[Seen]] = lambda records: records,
) -> dict[str, Any]:
    """Read the partitions in random batches, saving the shard in between, and return all it said.

    ``gather`` makes fewer of the folded observations of one partition in one batch.
    """
    chance = random.Random(seed)
    cuts = {
        name: [0, *sorted(chance.randint(0, len(records)) for _ in range(batches - 1)), len(records)]
        for name, records in parts.items()
    }
    said: dict[str, Any] = {
        "transitions": [],
        "alerts": [],
        "contradictions": [],
        "upset": [],
        "divergences": [],
        "answers": [],
    }
    blob: bytes | None = None
    for batch in range(batches):
        rows: list[Seen] = []
        for name, records in parts.items():
            rows += gather(fold(records[cuts[name][batch] : cuts[name][batch + 1]]))
        delivered = cuts[OFFSETS][batch]
        rows = [
            msgspec.structs.replace(one, what=msgspec.structs.replace(one.what, position=delivered))
            if isinstance(one.what, on.Clock)
            else one
            for one in rows
        ]
        chance.shuffle(rows)
        shard = Shard.load(blob, cluster="c", shard=0, shard_count=1, strict=True)
        _add(said, shard.step(on.unpack(on.pack(rows)), judge))
        blob = shard.save()
    return {
        kind: _by_group(rows) if kind in {"transitions", "alerts"} else sorted(rows)
        for kind, rows in said.items()
    }


def _add(said: dict[str, Any], outputs: Outputs) -> None:
    said["answers"] += [True] * outputs.agreeing + [False] * (outputs.compared - outputs.agreeing)
    said["transitions"] += [(one.group, msgspec.to_builtins(one)) for one in outputs.transitions]
    said["alerts"] += [
        one if isinstance(one, tuple) else (one.group, msgspec.to_builtins(one)) for one in outputs.alerts
    ]
    said["contradictions"] += outputs.contradictions
    said["upset"] += [msgspec.structs.astuple(one) for one in outputs.upset]
    said["divergences"] += [
        (one.kind, one.group, one.broker) for one in outputs.divergences for _ in range(one.count)
    ]


def _by_group(rows: list[Any]) -> dict[str, list[Any]]:
    """Return rows by group, in the order in which they were written: that is their order in Kafka."""
    groups: dict[str, list[Any]] = {}
    for row in rows:
        groups.setdefault(row[0], []).append(row)
    return groups
