"""A broker fails and another takes over its groups: nobody is blamed for what the move alone did.

Two brokers coordinate groups of healthy members, and each mode is shown what its sources tell of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
import pytest

from alerts.alert.alert import Alert
from alerts.rules import RuleJudge
from coordinator_model import observations as on
from coordinator_model.capture import Mirror
from coordinator_model.kafka.hashing import shard_of
from coordinator_model.observations.answers import LeadersDescribed, ReplicaMissed, ShardLed
from coordinator_model.observations.base import CLUSTER_SHARD, Source
from coordinator_model.observations.control import Counted, LogSeconds
from coordinator_model.observations.log import (
    GroupLoaded,
    JoinPhaseEnded,
    MemberFailed,
    MemberJoined,
    Reason,
    RebalanceStarted,
    ShardLoaded,
    ShardLoading,
    ShardStalled,
    ShardUnloaded,
)
from coordinator_model.observations.records import GroupRecorded, MemberRecord
from coordinator_model.observations.requests import Client, Heartbeats, JoinAnswered, SyncAnswered
from coordinator_model.observations.seen import Seen
from coordinator_model.state.group import Transition
from tests.unit.made_seen import seen

T0 = 1_700_000_000_000
SHARDS = 2
GROUPS = [f"g{number}" for number in range(6)]
FAILS_MS = 140_000
RETURNS_MS = 260_000
END_MS = 300_000
MEMBERS = 3
UUID = "-5f1d7bd2-0000-4000-8000-000000000001"


@dataclass
class Failover:
    """Broker 1 fails at ``FAILS_MS``, and leads again from ``RETURNS_MS`` on."""

    mode: str
    heir: int = 2
    """Who coordinates the groups of broker 1 from then on: another one, or itself, restarted."""
    session_ms: int = 10_000
    away_ms: int = 9_500
    """So long after it failed somebody coordinates its groups again."""
    apart_ms: int = 80
    """So long after the member before each member is back."""
    told_ms: int = 1_000
    """So long after it took over the metadata name broker 2."""
    lost: frozenset[str] = frozenset()
    """Members that never come back."""
    wakes_ms: int = 0
    """When broker 1, which was only frozen, goes on as if it coordinated; 0: it was not."""
    left_behind: frozenset[str] = frozenset()
    """Of these members a former self is left behind: they join broker 2 as new ones."""
    ends_ms: int = 0
    """So much later than that of the others ends the session of g1-0's former self."""
    stalls: bool = False
    """What fails is a replica: the coordinator stays, and its writes and heartbeats wait so long."""
    alerts: list[Alert] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)

    def play(self) -> set[tuple[str, str]]:
        """Return (group, name) of all alerts."""
        mirror = Mirror(
            cluster="eu",
            shard_count=SHARDS,
            settings=b"{}",
            judge=RuleJudge(b"{}"),
            feeds=2,
            offsets=True,
            strict=True,
        )
        told = _numbered(sorted(self._all(), key=lambda one: one[1].at_ms))
        for now_ms in range(0, END_MS, 500):
            cells: dict[int, list[Seen]] = {}
            while told and told[0][1].at_ms < T0 + now_ms:
                shard, seen = told.pop(0)
                cells.setdefault(shard, []).append(seen)
            mirror.feed(cells)
            happened = list(mirror.advance(T0 + now_ms))
            self.alerts += [one for one in happened if isinstance(one, Alert)]
            self.transitions += [one for one in happened if isinstance(one, Transition)]
        return {(alert.group, alert.name) for alert in self.alerts}

    def _all(self) -> Iterator[tuple[int, Seen]]:
        for shard in range(SHARDS):
            yield from self._led(shard, 1_000, 1 + shard, 0)
        for group in GROUPS:
            shard = shard_of(group, SHARDS)
            yield shard, self._seen(2_000, Source.OFFSETS, -1, self._record(group, 1, _ids(group)))
            for number in range(MEMBERS):
                yield from self._beats(group, shard, number)
        yield from self._fails()
        if self.mode != "quiet":
            yield from self._heard(1, 3_000, RETURNS_MS if self.stalls else FAILS_MS)
            yield from self._heard(1, FAILS_MS + self.away_ms if self.heir == 1 else RETURNS_MS, END_MS)
            yield from self._heard(2, 3_000, END_MS)

        joins_anew = self._asks_anew if self.mode == "requests" else self._joins_anew
        for group in sorted({name.split("-")[0] for name in self.left_behind}):
            yield from joins_anew(group, FAILS_MS + self.away_ms)
        if self.wakes_ms and self.mode != "requests":
            yield from self._raves()

    def _fails(self) -> Iterator[tuple[int, Seen]]:
        """Yield what the brokers tell of the failure, and of who does not come back after it."""
        if self.stalls:
            yield from self._refused()
        else:
            yield from self._taken(FAILS_MS + self.away_ms - 100, self.heir, 1)
            yield from self._taken(RETURNS_MS - 100, 1, 2)
        if self.mode == "requests" or self.left_behind:
            return
        for name in sorted(self.lost):
            gone = MemberFailed(group=name.split("-")[0], member_id=name)
            at_ms = FAILS_MS + self.away_ms + self.session_ms
            yield 0, self._seen(at_ms, Source.COORDINATOR_LOG, self.heir, gone)

    def _joins_anew(self, group: str, at_ms: int) -> Iterator[tuple[int, Seen]]:
        """Yield the lines of members that join under new ids, and of the sessions of those they were."""

        def line(after_ms: int, what: on.AnyObservation) -> tuple[int, Seen]:
            return 0, self._seen(at_ms + after_ms, Source.COORDINATOR_LOG, self.heir, what)

        again = sorted(name for name in self.left_behind if name.startswith(f"{group}-"))
        gone = sorted({*again, *(name for name in self.lost if name.startswith(f"{group}-"))})
        reason = Reason(kind="member_joined", text="", member_ids=(again[0] + UUID,))
        yield line(20, MemberJoined(group=group, member_id=again[0] + UUID))
        yield line(21, RebalanceStarted(group=group, generation=1, reason=reason))
        for name in again[1:]:
            yield line(500, MemberJoined(group=group, member_id=name + UUID))
        for name in gone:
            later_ms = self.ends_ms if name == "g1-0" else 0
            yield line(self.session_ms + later_ms, MemberFailed(group=group, member_id=name))
        ended = JoinPhaseEnded(group=group, generation=2, member_count=len(again))
        yield line(self.session_ms + self.ends_ms + 5, ended)
        stable = self._record(group, 2, tuple(name + UUID for name in again))
        yield 0, self._seen(at_ms + self.session_ms + self.ends_ms + 20, Source.OFFSETS, -1, stable)

    def _asks_anew(self, group: str, at_ms: int) -> Iterator[tuple[int, Seen]]:
        """Yield the same as the request log shows it: ids handed out, and joins that waited a session."""
        again = sorted(name for name in self.left_behind if name.startswith(f"{group}-"))
        names = tuple(name + UUID for name in again)
        for number, name in enumerate(again):
            client = Client(client_id=name, host="/h", connection=f"{name}@{self.heir}")
            handed = JoinAnswered(
                group=group,
                member_id=name + UUID,
                error_code=79,
                generation=-1,
                leader_id="",
                arrived_at_ms=T0 + at_ms + 20,
                requested_member_id="",
                instance_id=None,
                session_timeout_ms=self.session_ms,
                rebalance_timeout_ms=300_000,
                protocol_type="consumer",
                protocol=None,
                reason=None,
                member_ids=(),
                client=client,
            )
            joined = msgspec.structs.replace(
                handed,
                error_code=0,
                generation=2,
                leader_id=names[0],
                requested_member_id=name + UUID,
                protocol="range",
                member_ids=() if number else names,
            )
            synced = SyncAnswered(
                group=group,
                member_id=name + UUID,
                error_code=0,
                generation=2,
                arrived_at_ms=T0 + at_ms + self.session_ms + 30,
                by_leader=not number,
                instance_id=None,
                client=client,
            )
            for after_ms, what in (
                (20, handed),
                (self.session_ms + 25, joined),
                (self.session_ms + 35, synced),
            ):
                yield 0, self._seen(at_ms + after_ms + number, Source.REQUEST_LOG, self.heir, what)

    def _refused(self) -> Iterator[tuple[int, Seen]]:
        """Yield answers to commits that waited five seconds for a replica, or what the probe tells of it."""
        if self.mode == "quiet":
            at_ms = FAILS_MS + self.away_ms + self.told_ms
            missed = ReplicaMissed(since_ms=T0 + at_ms - 20_000)
            yield 0, self._seen(at_ms, Source.CONTROL, -1, missed)
            return
        for at_ms in range(FAILS_MS, FAILS_MS + self.away_ms - 4_900, 700):
            what = ShardStalled(group="g1", since_ms=T0 + at_ms)
            yield 0, self._seen(at_ms + 5_000, Source.REQUEST_LOG, 1, what)

    def _raves(self) -> Iterator[tuple[int, Seen]]:
        """Yield what a coordinator says that finds every session over before it learns that it is none."""
        for group in (one for one in GROUPS if shard_of(one, SHARDS) == 0):
            reason = Reason(kind="session_timeout", text="", member_ids=(f"{group}-0",))
            for what in (
                MemberFailed(group=group, member_id=f"{group}-0"),
                RebalanceStarted(group=group, generation=1, reason=reason),
                MemberFailed(group=group, member_id=f"{group}-1"),
            ):
                yield 0, self._seen(self.wakes_ms, Source.COORDINATOR_LOG, 1, what)
        yield 0, self._seen(self.wakes_ms + 300, Source.COORDINATOR_LOG, 1, ShardUnloaded())

    def _taken(self, at_ms: int, broker: int, epoch: int) -> Iterator[tuple[int, Seen]]:
        """Yield what tells that a broker has taken shard 0 over."""
        yield from self._led(0, at_ms + self.told_ms, broker, epoch)
        if self.mode == "requests":
            return
        yield 0, self._seen(at_ms, Source.COORDINATOR_LOG, broker, ShardLoading(epoch=epoch))
        yield 0, self._seen(at_ms + 5, Source.COORDINATOR_LOG, broker, ShardLoaded(epoch=epoch))
        for group in (one for one in GROUPS if shard_of(one, SHARDS) == 0):
            loaded = GroupLoaded(group=group, group_type="classic", member_count=MEMBERS)
            yield 0, self._seen(at_ms + 4, Source.COORDINATOR_LOG, broker, loaded)

    def _heard(self, broker: int, from_ms: int, until_ms: int) -> Iterator[tuple[int, Seen]]:
        for at_ms in range(from_ms, until_ms, 1_000):
            what = LogSeconds(broker=broker, heard=Source.REQUEST_LOG, seconds=((T0 + at_ms) // 1_000,))
            for shard in range(CLUSTER_SHARD, SHARDS):
                yield shard, self._seen(at_ms + 999, Source.REQUEST_LOG, broker, what)

    def _led(self, shard: int, at_ms: int, leader: int, epoch: int) -> Iterator[tuple[int, Seen]]:
        yield shard, self._seen(at_ms, Source.CONTROL, -1, ShardLed(leader=leader, epoch=epoch))
        told = LeadersDescribed(leaders={shard: (leader, epoch)})
        yield CLUSTER_SHARD, self._seen(at_ms, Source.CONTROL, -1, told)

    def _beats(self, group: str, shard: int, number: int) -> Iterator[tuple[int, Seen]]:
        """Yield the heartbeats of one member, a commit with each; it is back after the new coordinator is."""
        name = f"{group}-{number}"
        later_ms, beat_ms = number * self.apart_ms, min(3_000, self.session_ms // 4)
        times = [*range(4_000 + 700 * number, FAILS_MS if shard == 0 else END_MS, beat_ms)]
        if shard == 0 and name not in self.lost | self.left_behind:
            times += range(FAILS_MS + self.away_ms + later_ms, RETURNS_MS - 500, beat_ms)
            times += range(RETURNS_MS + later_ms, END_MS, beat_ms)
        for at_ms in times:
            broker = 2 if shard else self.heir if FAILS_MS <= at_ms < RETURNS_MS else 1
            if self.mode != "quiet":
                beat = Heartbeats(
                    group=group,
                    member_id=name,
                    generation=1,
                    error_code=0,
                    times=(T0 + at_ms,),
                    client=Client(client_id=name, host="/h", connection=f"{name}@{broker}"),
                )
                yield shard, self._seen(at_ms, Source.REQUEST_LOG, broker, beat)
            counted = Counted(counts=(("offsets", "OffsetCommit", 1),), committed=((shard, T0 + at_ms),))
            yield CLUSTER_SHARD, self._seen(at_ms, Source.OFFSETS, -1, counted)

    def _record(self, group: str, generation: int, member_ids: tuple[str, ...]) -> GroupRecorded:
        members = tuple(
            MemberRecord(
                member_id=member_id,
                client_id=member_id.removesuffix(UUID),
                client_host="/h",
                session_timeout_ms=self.session_ms,
                rebalance_timeout_ms=300_000,
                topics=("t",),
                assigned={"t": (number,)},
            )
            for number, member_id in enumerate(member_ids)
        )
        return GroupRecorded(
            group=group,
            generation=generation,
            protocol_type="consumer",
            protocol="range",
            leader_id=member_ids[0],
            state_since_ms=-1,
            members=members,
        )

    def _seen(self, at_ms: int, source: Source, broker: int, what: on.AnyObservation) -> Seen:
        return seen(T0 + at_ms, what, source, broker=broker, partition=max(broker - 1, 0))


def _ids(group: str) -> tuple[str, ...]:
    return tuple(f"{group}-{number}" for number in range(MEMBERS))


def _numbered(told: list[tuple[int, Seen]]) -> list[tuple[int, Seen]]:
    """Return the same with ascending offsets."""
    return [
        (shard, msgspec.structs.replace(seen, offset=offset)) for offset, (shard, seen) in enumerate(told)
    ]


MODES = ["full", "quiet", "requests"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("session_ms", [6_000, 10_000, 45_000])
@pytest.mark.parametrize("away_ms", [6_000, 9_500])
@pytest.mark.parametrize(("heir", "apart_ms"), [(1, 1_900), (2, 80), (2, 1_900)])
def test_members_that_wait_for_a_new_coordinator_are_not_silent(
    mode: str, session_ms: int, away_ms: int, apart_ms: int, heir: int
) -> None:
    """Their sessions begin anew with it, however long there was none and whoever is back first."""
    # The probe asks every few seconds; who leads the shard again is not heard before.
    told_ms = min(4_000, session_ms * 2 // 5 - 400)
    failover = Failover(
        mode, heir, session_ms=session_ms, away_ms=away_ms, apart_ms=apart_ms, told_ms=told_ms
    )

    assert failover.play() == set()


@pytest.mark.parametrize("mode", ["full", "requests"])
@pytest.mark.parametrize("away_ms", [400, 9_500])
def test_who_does_not_come_back_is_told_all_the_same(mode: str, away_ms: int) -> None:
    """Died with the broker: the new coordinator waits a session timeout for it."""
    failover = Failover(mode, away_ms=away_ms, lost=frozenset({"g1-1"}))

    assert failover.play() == {("g1", "SessionTimeout")}
    assert {one.client_id for alert in failover.alerts for one in alert.culprits} == {"g1-1"}


@pytest.mark.parametrize("mode", ["full", "quiet"])
@pytest.mark.parametrize("wakes_ms", [FAILS_MS + 20_000, FAILS_MS + 100_000])
def test_a_broker_that_wakes_up_is_not_believed(mode: str, wakes_ms: int) -> None:
    """It was frozen, another coordinates its groups since, and it finds all their sessions over."""
    failover = Failover(mode, wakes_ms=wakes_ms)

    assert failover.play() == set()
    assert {one.at_ms for one in failover.transitions if one.at_ms > T0 + 2_000} == set()


def _all_of(*groups: str) -> frozenset[str]:
    return frozenset(name for group in groups for name in _ids(group))


@pytest.mark.parametrize("mode", MODES)
def test_clients_that_join_anew_are_one_alert_about_the_move(mode: str) -> None:
    """As those of librdkafka do that found no coordinator for a session: what they were times out.

    Without the INFO log the metadata tell of the move when they have all joined.
    """
    failover = Failover(mode, left_behind=_all_of("g1", "g3", "g5"), told_ms=4_000)

    assert failover.play() == {("", "CoordinatorMoved")}
    assert "3 groups rebalanced" in failover.alerts[-1].summary


@pytest.mark.parametrize("mode", ["full", "quiet"])
def test_who_does_not_join_anew_is_lost(mode: str) -> None:
    """One of three that were left behind did die with its broker."""
    failover = Failover(mode, left_behind=_all_of("g1", "g3", "g5") - {"g1-1"}, lost=frozenset({"g1-1"}))

    assert failover.play() == {("", "CoordinatorMoved"), ("g1", "SessionTimeout")}
    assert {one.client_id for alert in failover.alerts for one in alert.culprits} == {"g1-1"}


def test_who_was_there_after_the_move_is_lost() -> None:
    """It crashed a moment later and was started again: the coordinator waited for it for longer."""
    failover = Failover("quiet", left_behind=_all_of("g1", "g3", "g5"), ends_ms=3_000)

    assert failover.play() == {("", "CoordinatorMoved"), ("g1", "SessionTimeout")}
    assert {one.client_id for alert in failover.alerts for one in alert.culprits} == {"g1-0"}


@pytest.mark.parametrize("mode", ["full", "requests"])
@pytest.mark.parametrize("away_ms", [8_000, 9_500, 20_000])
def test_members_that_wait_for_a_replica_are_not_silent(mode: str, away_ms: int) -> None:
    """Their heartbeats are not answered while older writes wait, and so are not logged."""
    failover = Failover(mode, heir=1, away_ms=away_ms, apart_ms=1_900, stalls=True)

    assert failover.play() == set()


@pytest.mark.parametrize("mode", MODES)
def test_clients_that_gave_up_waiting_are_one_alert(mode: str) -> None:
    """As those of librdkafka do: the coordinator stays, and what they were before times out there.

    Without the request log only the probe tells, when they have joined: too late to count them.
    """
    failover = Failover(mode, heir=1, left_behind=_all_of("g1", "g3", "g5"), told_ms=6_000, stalls=True)

    assert failover.play() == (set() if mode == "quiet" else {("", "CoordinatorMoved")})
    if mode == "quiet":
        return
    told = failover.alerts[-1]
    assert told.summary.startswith("Coordinators waited for a replica at ")
    assert "3 groups rebalanced" in told.summary
    assert told.cause.startswith("1 partition of the offsets topic kept the leader but could not be written")
