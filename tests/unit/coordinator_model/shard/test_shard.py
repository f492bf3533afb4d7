"""One shard: routing, the end of the backlog, filters, reports, and what a failure of our own code does."""

from typing import Any

import msgspec
import pytest

from coordinator_model import groups as classic
from coordinator_model import observations as on
from coordinator_model.groups.core.turn import Context
from coordinator_model.groups.offsets.retention import EXPIRY_MARGIN_MS
from coordinator_model.kafka.states import GroupState
from coordinator_model.observations.answers import RetentionReported, ShardLed
from coordinator_model.observations.base import Source
from coordinator_model.observations.control import Adopted, Clock, LogSeconds, Settings
from coordinator_model.observations.log import (
    InstanceFenced,
    LeaderReplaced,
    LogNoted,
    MemberIdHandedOut,
    ModernMemberGone,
    Reason,
    RebalanceStarted,
    ShardLoaded,
    ShardLoading,
)
from coordinator_model.observations.records import (
    Commit,
    GroupRecorded,
    GroupTombstone,
    MemberRecord,
    ModernRecord,
    OffsetsCommitted,
)
from coordinator_model.observations.requests import (
    Client,
    GroupHeard,
    Heartbeats,
    MemberHeard,
    TransactionalCommit,
    TransactionEnded,
)
from coordinator_model.observations.seen import Seen
from coordinator_model.shard import routing
from coordinator_model.shard import settings as shard_settings
from coordinator_model.shard.awake_groups import AwakeGroups
from coordinator_model.shard.cluster import ClusterState
from coordinator_model.shard.judging import Judgement, LiveSources, Outputs
from coordinator_model.shard.live_group import Live
from coordinator_model.shard.routing import split_names
from coordinator_model.shard.shard import Shard
from coordinator_model.shard.slots import Slot
from coordinator_model.shard.snapshot import SnapshotError, decode_group
from coordinator_model.state.group import Group, Step
from tests.unit.made_seen import seen

LIVE_MS = 1_000_000


class Judge:
    """Says when it was asked about whom, and is due when told."""

    watching = False
    share = 0.7

    def __init__(self, *, due_ms: int | None = None) -> None:
        self.due_ms = due_ms
        self.settings: list[bytes] = []

    def configure(self, settings: bytes) -> None:
        """Note the settings."""
        self.settings.append(settings)

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
        """Answer with what was asked."""
        what = "removed" if removed else str(group.state)
        due_ms = self.due_ms if self.due_ms is not None and self.due_ms > now_ms else None
        return Judgement(memory=memory, alerts=[(group.group, now_ms, what)], due_ms=due_ms)

    def silent_share(self, group: str) -> float:
        """Answer as it was told to."""
        return self.share

    def is_watching(self, memory: bytes | None) -> bool:
        """Answer as it was told to."""
        return self.watching

    def adopt(self, *, alert: bytes, memory: bytes | None) -> bytes | None:
        """Remember the alert itself."""
        return alert

    def judge_cluster(
        self, *, cluster: str, state: ClusterState, memory: bytes | None, now_ms: int
    ) -> Judgement:
        """Never be asked: this is no cluster-wide shard."""
        raise AssertionError


class Witness(Judge):
    """Remembers with which memory and settings it was asked about a group that is there."""

    first: tuple[bytes | None, bytes] | None = None

    def judge(self, *, memory: bytes | None, **question: Any) -> Judgement:
        """Note the first time."""
        if self.first is None and not question["removed"]:
            self.first = (memory, self.settings[-1])
        return super().judge(memory=memory, **question)


class World:
    """A shard and the partitions that feed it: what is said is applied at the next ``until``."""

    def __init__(self, judge: Judge | None = None, *, strict: bool = True) -> None:
        self.shard = Shard.load(None, cluster="c", shard=0, shard_count=1, strict=strict)
        self.judge = judge
        self.waiting: list[Seen] = []
        self.offset = 0

    def say(self, at_ms: int, what: Any, source: Source, *, broker: int = -1, backlog: bool = False) -> None:
        """Let something stand in a partition."""
        self.offset += 1
        self.waiting.append(seen(at_ms, what, source, broker=broker, offset=self.offset, backlog=backlog))

    def record(self, at_ms: int, what: Any, *, backlog: bool = False) -> None:
        """Let the offsets topic say something."""
        self.say(at_ms, what, Source.OFFSETS, backlog=backlog)

    def line(self, at_ms: int, what: Any, *, broker: int = 1) -> None:
        """Let a coordinator's INFO log say something."""
        self.say(at_ms, what, Source.COORDINATOR_LOG, broker=broker)

    def answer(self, at_ms: int, what: Any, *, broker: int = 1) -> None:
        """Let a request log say something."""
        self.say(at_ms, what, Source.REQUEST_LOG, broker=broker)

    def control(self, at_ms: int, what: Any) -> None:
        """Let the driver say something."""
        self.say(at_ms, what, Source.CONTROL)

    def until(self, at_ms: int, *, ask: bool = False) -> Outputs:
        """Let it be ``at_ms``, save the shard and load it again."""
        self.shard.step(self.waiting, self.judge)
        self.waiting = []
        end = self.offset + 1
        self.control(at_ms, Clock(sequence=at_ms, end_offset=end, position=end, ask=ask))
        outputs = self.shard.step(self.waiting, self.judge)
        self.waiting = []
        self.shard = Shard.load(
            self.shard.save(), cluster="c", shard=0, shard_count=1, strict=self.shard.strict
        )
        return outputs

    @property
    def groups(self) -> list[str]:
        """Return the names of the groups held."""
        return sorted(self.shard.slots)


def generation(group: str, number: int, *members: str, at_ms: int = 0) -> GroupRecorded:
    return GroupRecorded(
        group=group,
        generation=number,
        protocol_type="consumer",
        protocol="range",
        leader_id=members[0] if members else None,
        state_since_ms=at_ms,
        members=tuple(
            MemberRecord(
                member_id=member,
                client_id=f"client-{member}",
                client_host="/10.0.0.1",
                session_timeout_ms=45_000,
                rebalance_timeout_ms=300_000,
            )
            for member in members
        ),
    )


def commit(group: str, offset: int | None = 5, at_ms: int = 0) -> OffsetsCommitted:
    return OffsetsCommitted(group=group, commits=(Commit("t", 0, offset, at_ms),))


def beats(group: str, member: str, *times: int, error: int = 0) -> Heartbeats:
    return Heartbeats(group=group, member_id=member, generation=1, error_code=error, times=times)


def rebalance(group: str, number: int = 1) -> RebalanceStarted:
    reason = Reason(kind="member_joined", text="Adding new member")
    return RebalanceStarted(group=group, generation=number, reason=reason)


def settings(**values: object) -> Settings:
    return Settings(settings=msgspec.json.encode(values))


@pytest.fixture
def world() -> World:
    """Return a shard that holds one Stable group and has left its backlog."""
    world = World(Judge())
    world.record(900_000, generation("g", 1, "a", "b"), backlog=True)
    world.until(LIVE_MS)
    world.until(LIVE_MS + 1)
    return world


# --- the backlog ---------------------------------------------------------------------------------------


def test_the_backlog_is_silent() -> None:
    """Records from before the first start set states; the rules first speak when it is over."""
    world = World(Judge())
    world.record(800_000, generation("g", 1, "a"), backlog=True)
    world.record(900_000, generation("g", 2, "a"), backlog=True)
    world.until(LIVE_MS)
    outputs = world.until(LIVE_MS + 1)

    assert outputs.transitions == []
    assert [at_ms for _, at_ms, _ in outputs.alerts] == [LIVE_MS]
    assert [(one.group, one.generation) for one in outputs.reports] == [("g", 2)]


def test_every_group_is_judged_and_reported_when_the_backlog_ends() -> None:
    """At the first clock the rules see each group as it was found."""
    world = World(Judge())
    world.record(900_000, generation("g", 2, "a"), backlog=True)
    world.record(900_001, commit("simple"), backlog=True)
    world.until(LIVE_MS)
    outputs = world.until(LIVE_MS + 1)

    assert outputs.alerts == [("g", LIVE_MS, "Stable"), ("simple", LIVE_MS, "Empty")]
    assert [(one.group, one.state) for one in outputs.reports] == [
        ("g", GroupState.STABLE),
        ("simple", GroupState.EMPTY),
    ]
    assert world.shard.header.live_since_ms == LIVE_MS


def test_a_healthy_group_of_the_backlog_is_reported_when_somebody_asks() -> None:
    """Whoever starts asks for all groups, some shards at a time; at once they would be told twice."""
    world = World()
    world.record(900_000, generation("g", 2, "a"), backlog=True)
    world.record(900_001, commit("g"), backlog=True)
    end = world.offset + 1
    for at_ms in (LIVE_MS, LIVE_MS + 10_000):  # of one batch, as after a long backlog
        world.control(at_ms, Clock(sequence=at_ms, end_offset=end, position=0))
    unasked = world.shard.step(world.waiting, None)
    world.waiting = []
    asked = world.until(LIVE_MS + 10_001, ask=True)

    assert world.shard.header.live_since_ms == LIVE_MS
    assert (unasked.reports, unasked.reported) == ([], False)
    assert [(one.group, one.generation) for one in asked.reports] == [("g", 2)]


def test_something_seen_live_ends_the_backlog_before_the_first_clock() -> None:
    """What happened between the captured end offsets and the first clock is judged."""
    world = World(Judge())
    world.record(900_000, generation("g", 1, "a"), backlog=True)
    world.record(950_000, generation("g", 2, "a"))
    outputs = world.until(LIVE_MS)

    assert world.shard.header.live_since_ms == 950_000
    assert (outputs.transitions[-1].to_state, outputs.transitions[-1].at_ms) == (GroupState.STABLE, 950_000)
    assert {at_ms for _, at_ms, _ in outputs.alerts} == {950_000}


# --- groups --------------------------------------------------------------------------------------------


def test_a_group_moves_by_its_log_lines(world: World) -> None:
    """A line of a live log makes a transition, an alert of the rules and a report."""
    world.line(LIVE_MS + 50, rebalance("g"))
    outputs = world.until(LIVE_MS + 100)

    assert [(one.to_state, one.at_ms, one.source) for one in outputs.transitions] == [
        (GroupState.PREPARING_REBALANCE, LIVE_MS + 50, "coordinator_log")
    ]
    assert outputs.alerts == [("g", LIVE_MS + 50, "PreparingRebalance")]
    assert [one.state for one in outputs.reports] == [GroupState.PREPARING_REBALANCE]


def test_what_comes_at_now_waits(world: World) -> None:
    """Only what lies before now is applied: more of the same millisecond may still come."""
    world.line(LIVE_MS + 100, rebalance("g"))

    assert world.until(LIVE_MS + 100).transitions == []
    assert len(world.until(LIVE_MS + 101).transitions) == 1


def test_the_judge_is_asked_when_it_is_due() -> None:
    """A rule's deadline is met at its exact time, though nothing happens then."""
    world = World(Judge(due_ms=LIVE_MS + 5_555))
    world.record(900_000, generation("g", 1, "a"), backlog=True)
    world.until(LIVE_MS)
    world.until(LIVE_MS + 1)
    assert world.shard.due_ms == LIVE_MS + 5_555 + 1 + world.shard.header.order.settle_ms
    outputs = world.until(LIVE_MS + 60_000)

    assert outputs.alerts == [("g", LIVE_MS + 5_555, "Stable")]


def test_quiet_heartbeats_do_not_wake_the_rules(world: World) -> None:
    """They only move timers; one after a long pause is shown, and the first after a share of its session."""
    world.answer(LIVE_MS + 3_000, beats("g", "a", *range(LIVE_MS + 100, LIVE_MS + 3_000, 100)))
    first = world.until(LIVE_MS + 4_000)
    world.answer(LIVE_MS + 40_000, beats("g", "a", LIVE_MS + 5_000, LIVE_MS + 8_000, LIVE_MS + 40_000))
    later = world.until(LIVE_MS + 50_000)

    assert first.alerts == []
    assert [at_ms for _, at_ms, _ in later.alerts] == [LIVE_MS + 31_600, LIVE_MS + 40_000]


def test_groups_are_encoded_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor still has a group at hand then; one that is reported is needed once more."""
    world = World()
    for name in ("g", "x", "y"):
        world.record(900_000, generation(name, 1, "a"), backlog=True)
    world.until(LIVE_MS)
    world.until(LIVE_MS + 1)
    done: list[str] = []
    awake, encode = AwakeGroups._awake, Live.encode

    def woken(self: AwakeGroups, slot: Slot) -> Live:
        done.append(f"wake {slot.name}")
        return awake(self, slot)

    def encoded(self: Live) -> None:
        done.append(f"encode {self.slot.name}")
        encode(self)

    monkeypatch.setattr(AwakeGroups, "_awake", woken)
    monkeypatch.setattr(Live, "encode", encoded)
    for name in ("x", "y", "g"):
        world.answer(LIVE_MS + 200, beats(name, "a", LIVE_MS + 200))
    world.line(LIVE_MS + 210, rebalance("g"))
    assert [one.group for one in world.until(LIVE_MS + 1_000).reports] == ["g"]
    assert [one for one in done if one[-1] != "g"] == ["wake x", "encode x", "wake y", "encode y"]
    assert done[-1] == "encode g"


@pytest.mark.parametrize(
    ("spoke_at_s", "told"), [((21, 41, 45, 61, 62), ["session_timeout"]), ((61, 62), [])], ids=["on", "back"]
)
def test_a_request_log_that_comes_back_ends_no_session(
    world: World, spoke_at_s: tuple[int, ...], told: list[str]
) -> None:
    """After a long silence of the whole log, a member's silence counts only once it had time to speak."""

    def heard(second: int, *members: str) -> None:
        at_ms = LIVE_MS + second * 1000
        for member in members:
            world.answer(at_ms, beats("g", member, at_ms))
        spoke = LogSeconds(broker=1, heard=Source.REQUEST_LOG, seconds=(at_ms // 1000,))
        world.answer(at_ms, spoke)

    heard(1, "a", "b")
    steps = [world.until(LIVE_MS + 2_000)]
    for second in spoke_at_s:
        heard(second, "a")
        steps.append(world.until(LIVE_MS + (second + 1) * 1000))
    heard(63, "b")
    steps.append(world.until(LIVE_MS + 70_000))

    assert [str(one.cause.kind) for step in steps for one in step.transitions[:1]] == told


@pytest.mark.parametrize("session_s", [6, 10, 45])
def test_a_request_log_that_is_switched_off_ends_no_session(session_s: int) -> None:
    """Every member falls silent with it, though nothing happened to any."""
    world = World(Judge())
    made = generation("g", 1, "a", "b")
    members = tuple(msgspec.structs.replace(m, session_timeout_ms=session_s * 1000) for m in made.members)
    world.record(900_000, msgspec.structs.replace(made, members=members), backlog=True)
    world.until(LIVE_MS)
    world.until(LIVE_MS + 1)
    steps = []
    for beat in range(12):
        at_ms = LIVE_MS + 10 + beat * session_s * 333
        for member in ("a", "b"):
            world.answer(at_ms, beats("g", member, at_ms))
        world.answer(at_ms, LogSeconds(broker=1, heard=Source.REQUEST_LOG, seconds=(at_ms // 1000,)))
        steps.append(world.until(at_ms + 5))
    steps += [world.until(at_ms + after_s * 1000) for after_s in range(1, 100)]

    assert [one for step in steps for one in step.transitions] == []


def test_refused_heartbeats_are_shown_one_by_one(world: World) -> None:
    """A folded run of refused heartbeats is unfolded: each may be the one that a rule waits for."""
    world.answer(LIVE_MS + 30, beats("g", "a", LIVE_MS + 10, LIVE_MS + 20, LIVE_MS + 30, error=25))
    outputs = world.until(LIVE_MS + 100)

    assert [at_ms - LIVE_MS for _, at_ms, _ in outputs.alerts] == [10, 20, 30]


def test_commits_are_reported_every_five_seconds(world: World) -> None:
    """A group that only commits is reported at most once in five seconds."""
    world.judge = None
    world.record(LIVE_MS + 1_000, commit("g", 7))
    assert world.until(LIVE_MS + 2_000).reports == []
    world.record(LIVE_MS + 2_500, commit("g", 8))
    outputs = world.until(LIVE_MS + 5_000)

    assert [one.commits for one in outputs.reports] == [{"t": {0: (8, 0)}}]
    assert world.until(LIVE_MS + 20_000).reports == []


def test_an_ask_reports_every_group(world: World) -> None:
    """After a restart a clock asks, and each shard reports all its groups and that it has."""
    outputs = world.until(LIVE_MS + 100, ask=True)

    assert outputs.reported
    assert [one.group for one in outputs.reports] == ["g"]
    assert not world.until(LIVE_MS + 200).reported


# --- lines about more than one group -------------------------------------------------------------------


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(
            InstanceFenced(member_id="new", instance_id="i", by_member_id="b", operation="heartbeat"),
            id="fenced-by-a-member",
        ),
        pytest.param(
            InstanceFenced(member_id="a", instance_id="i", by_member_id="gone", operation="heartbeat"),
            id="a-member-is-fenced",
        ),
        pytest.param(LeaderReplaced(old_leader_id="a", new_leader_id="b"), id="leader-replaced"),
    ],
)
def test_lines_without_a_group_find_it_by_member(world: World, what: Any) -> None:
    """A line that names only members goes to the group that has them, found without waking the others."""
    world.record(LIVE_MS + 10, generation("other", 1, "x"))
    world.until(LIVE_MS + 20)
    world.line(LIVE_MS + 50, what)
    outputs = world.until(LIVE_MS + 100)

    assert [(group, at_ms) for group, at_ms, _ in outputs.alerts] == [("g", LIVE_MS + 50)]


def test_deleted_groups_are_told_apart_by_what_is_known() -> None:
    """The line joins names by a comma that a name may hold as well."""
    known = {name: Slot(name=name) for name in ("a", "b, c", "d")}

    assert split_names("a, b, c, x, d", known) == ["a", "b, c", "d"]
    assert split_names("", known) == []


def test_a_deleted_group_is_kept_for_a_minute_and_dropped(world: World) -> None:
    """A dead group goes with everything open about it; its last report says so."""
    world.record(LIVE_MS + 50, GroupTombstone(group="g"))
    died = world.until(LIVE_MS + 100)
    gone = world.until(LIVE_MS + 61_000)

    assert [(one.state, one.removed) for one in died.reports] == [(GroupState.DEAD, False)]
    assert [one.removed for one in gone.reports] == [True]
    assert gone.alerts == [("g", LIVE_MS + 60_050, "removed")]
    assert world.groups == []


def test_an_end_is_no_beginning(world: World) -> None:
    """Tombstones of a group that nobody knows do not make one."""
    world.record(LIVE_MS + 10, GroupTombstone(group="h"))
    world.record(LIVE_MS + 20, commit("h", None))
    world.until(LIVE_MS + 100)

    assert world.groups == ["g"]


# --- coordinators --------------------------------------------------------------------------------------


def test_a_broker_that_lost_the_shard_is_not_heard(world: World) -> None:
    """After another broker has loaded the shard, lines of the old one are counted and ignored."""
    world.line(LIVE_MS + 10, ShardLoading(epoch=3), broker=1)
    world.line(LIVE_MS + 20, ShardLoading(epoch=4), broker=2)
    world.line(LIVE_MS + 30, rebalance("g"), broker=1)
    world.answer(LIVE_MS + 60, beats("g", "a", LIVE_MS + 40, LIVE_MS + 60), broker=1)
    outputs = world.until(LIVE_MS + 100)

    assert outputs.transitions == []
    assert outputs.alerts == []
    assert [one.kind for one in outputs.divergences] == ["outdated_coordinator"]
    assert world.shard.header.coordinator == 2


def test_an_older_epoch_does_not_take_the_shard_back(world: World) -> None:
    """A line about an epoch that has passed changes nothing, however late its time."""
    world.line(LIVE_MS + 10, ShardLoading(epoch=4), broker=2)
    world.line(LIVE_MS + 20, ShardLoaded(epoch=3), broker=1)
    world.until(LIVE_MS + 100)

    assert world.shard.header.coordinator == 2


def test_a_broker_that_leads_again_is_heard_again(world: World) -> None:
    """Whoever loads the shard at a higher epoch is its coordinator, also one that had lost it."""
    for n, broker in enumerate((1, 2, 1)):
        world.line(LIVE_MS + 10 + n, ShardLoading(epoch=3 + n), broker=broker)
    world.line(LIVE_MS + 30, rebalance("g"), broker=1)
    outputs = world.until(LIVE_MS + 100)

    assert [one.to_state for one in outputs.transitions] == [GroupState.PREPARING_REBALANCE]


def test_the_info_log_is_live_from_its_first_line(world: World) -> None:
    """The first coordinator line makes the log the one that is believed."""
    assert not world.shard.header.info_live
    world.line(LIVE_MS + 10, LogNoted(kind="tombstones_generated"))
    world.until(LIVE_MS + 100)

    assert world.shard.header.info_live


def test_a_lost_line_is_a_contradiction_and_the_log_is_no_longer_believed(world: World) -> None:
    """A generation in the topic without its lines says that the broker's log loses lines."""
    world.line(LIVE_MS + 10, LogNoted(kind="tombstones_generated"))
    world.line(LIVE_MS + 20, MemberIdHandedOut(group="g", member_id="c", state="Stable"))
    world.record(LIVE_MS + 50, generation("g", 2, "a", "b", "c", at_ms=LIVE_MS + 40))
    before = world.until(LIVE_MS + 4_000)
    after = world.until(LIVE_MS + 20_000)

    assert before.contradictions == []
    ((*what, at_ms),) = after.contradictions
    assert what == [1, "coordinator_log", "g"]
    assert LIVE_MS + 50 <= at_ms <= LIVE_MS + 20_000
    assert not world.shard.header.info_live
    assert [one.to_state for one in after.transitions][-1:] == [GroupState.STABLE]


# --- settings ------------------------------------------------------------------------------------------


def test_denied_groups_are_dropped_and_not_made_again(world: World) -> None:
    """Deny wins; what is open about a denied group is resolved, and its commits make no new group."""
    world.control(LIVE_MS + 50, settings(groups={"allow": [".*"], "deny": ["g"]}))
    world.record(LIVE_MS + 60, commit("g"))
    world.record(LIVE_MS + 70, commit("h"))
    outputs = world.until(LIVE_MS + 100)

    assert ("g", LIVE_MS + 50, "removed") in outputs.alerts
    assert [one.group for one in outputs.reports if one.removed] == ["g"]
    assert world.groups == ["h"]


@pytest.mark.parametrize(
    ("name", "watched"),
    [("orders", True), ("orders-2", False), ("groupwatch-notifier", False), ("secret", False)],
)
def test_patterns_match_the_whole_name(name: str, watched: bool) -> None:
    """A pattern is for the whole name, and groupwatch's own groups are never mirrored."""
    read = shard_settings.read_settings(
        b'{"groups":{"allow":["orders","groupwatch-.*","s.*"],"deny":["secret"]}}'
    )

    assert read.watches(name) is watched


def test_new_settings_judge_every_group_again(world: World) -> None:
    """A rule that was switched off resolves at once; the same settings again change nothing."""
    world.control(LIVE_MS + 50, settings(rules={}))
    world.control(LIVE_MS + 60, settings(rules={}))
    outputs = world.until(LIVE_MS + 100)

    assert outputs.alerts == [("g", LIVE_MS + 50, "Stable")]
    assert world.judge is not None
    assert world.judge.settings[-1] == b'{"rules":{}}'


def test_a_group_not_seen_for_long_is_forgotten(world: World) -> None:
    """After forget_after without a sign the group is dropped, and comes back when it is seen."""
    world.control(LIVE_MS + 10, settings(forget_after_ms=200_000))
    outputs = world.until(LIVE_MS + 300_000)
    assert outputs.alerts[-1] == ("g", 1_100_000, "removed")
    assert world.groups == []
    world.record(LIVE_MS + 300_001, commit("g"))
    world.until(LIVE_MS + 300_100)

    assert world.groups == ["g"]


@pytest.mark.parametrize(
    ("due_ms", "share", "looks_ms"),
    [(31_000, 0.7, [31_000]), (None, 0.7, [31_600]), (31_000, 0.2, [9_100, 31_000])],
)
def test_a_first_heartbeat_is_looked_at_once(due_ms: int | None, share: float, looks_ms: list[int]) -> None:
    """For members that are heard for the first time the rules are asked together, and not sooner."""
    judge = Judge(due_ms=None if due_ms is None else LIVE_MS + due_ms)
    judge.share = share
    world = World(judge)
    world.record(900_000, generation("g", 1, "a", "b"), backlog=True)
    world.until(LIVE_MS)
    world.until(LIVE_MS + 1)
    for member, at_ms in {"a": LIVE_MS + 100, "b": LIVE_MS + 400}.items():
        world.answer(at_ms, beats("g", member, at_ms))
    heard = world.until(LIVE_MS + 2_000)
    outputs = world.until(LIVE_MS + 35_000)

    assert heard.alerts == []
    assert [at_ms - LIVE_MS for _, at_ms, _ in outputs.alerts] == looks_ms


def test_the_first_of_two_heartbeats_may_be_read_last(world: World) -> None:
    """Though both wait for the same batch, folded."""
    world.answer(LIVE_MS + 1_000, beats("g", "a", LIVE_MS + 1_000))
    heard = MemberHeard("a", Client(), (LIVE_MS + 900,))
    world.answer(LIVE_MS + 900, GroupHeard(group="g", generation=1, since_ms=LIVE_MS + 900, members=(heard,)))
    world.until(LIVE_MS + 2_000)
    member = decode_group(world.shard.slots["g"].raw).members["a"]

    assert (member.first_beat_ms, member.last_heartbeat_ms) == (LIVE_MS + 900, LIVE_MS + 1_000)


@pytest.mark.parametrize("cuts", [(), (20_000,), (31_600, 31_601)])
def test_a_first_heartbeat_is_looked_at_in_time(cuts: tuple[int, ...]) -> None:
    """Whatever else comes before that in the same batch, and after it."""
    world = World(Judge())
    world.record(900_000, generation("g", 1, "a", "b"), backlog=True)
    world.until(LIVE_MS)
    world.until(LIVE_MS + 1)
    outputs, begun_ms = [], 0
    for cut_ms in (*cuts, 60_000):
        for at_ms in range(100, 50_000, 2_500):
            if begun_ms <= at_ms < cut_ms:
                world.answer(LIVE_MS + at_ms, beats("g", "a", LIVE_MS + at_ms))
                world.answer(LIVE_MS + at_ms, beats("g", "b", LIVE_MS + at_ms + 300))
        outputs.append(world.until(LIVE_MS + cut_ms))
        begun_ms = cut_ms

    assert [at_ms for one in outputs for _, at_ms, _ in one.alerts] == [LIVE_MS + 31_600]


@pytest.mark.parametrize("watching", [False, True])
def test_a_commit_that_is_no_news_does_not_wake_the_rules(world: World, *, watching: bool) -> None:
    """Unless they watch the group."""
    assert world.judge is not None
    world.judge.watching = watching
    times = [LIVE_MS + 5_000, LIVE_MS + 6_000, LIVE_MS + 8_000]
    for at_ms in times:
        world.record(at_ms, commit("g", at_ms=at_ms))
    outputs = world.until(LIVE_MS + 9_000)

    assert [at_ms for _, at_ms, _ in outputs.alerts] == (times if watching else [])


def test_a_deadline_that_a_commit_sets_comes_before_the_next_commit(world: World) -> None:
    """Also where both commits are read at once."""
    assert world.judge is not None
    world.judge.watching, world.judge.due_ms = True, LIVE_MS + 7_000
    for at_ms in (LIVE_MS + 5_000, LIVE_MS + 8_000):
        world.record(at_ms, commit("g", at_ms=at_ms))
    outputs = world.until(LIVE_MS + 9_000)

    assert [at_ms - LIVE_MS for _, at_ms, _ in outputs.alerts] == [5_000, 7_000, 8_000]


def test_commits_put_no_deadline_of_the_rules_off() -> None:
    """They are asked when they wanted to be, between two commits."""
    world = World(Judge(due_ms=LIVE_MS + 7_000))
    world.record(900_000, generation("g", 1, "a"), backlog=True)
    world.until(LIVE_MS)
    for at_ms in (LIVE_MS + 5_000, LIVE_MS + 8_000):
        world.record(at_ms, commit("g", at_ms=at_ms))
    outputs = world.until(LIVE_MS + 9_000)

    assert LIVE_MS + 7_000 in [at_ms for _, at_ms, _ in outputs.alerts]


def test_a_group_is_not_forgotten_before_its_offsets_expire(world: World) -> None:
    """Otherwise their tombstones would be those of an unknown group, and nobody be told."""
    world.control(LIVE_MS + 10, settings(forget_after_ms=200_000))
    world.control(LIVE_MS + 10, RetentionReported(retention_ms={1: 7_200_000}))
    world.record(LIVE_MS + 20, commit("simple"))
    world.until(LIVE_MS + 300_000)
    assert world.groups == ["simple"]

    world.record(LIVE_MS + 7_500_000, commit("simple", None, LIVE_MS + 7_500_000))
    world.record(LIVE_MS + 7_500_000, GroupTombstone(group="simple"))
    outputs = world.until(LIVE_MS + 7_600_000)
    assert [(one.to_state, one.cause.kind) for one in outputs.transitions] == [
        (GroupState.DEAD, "offsets_expired")
    ]


def test_a_group_whose_end_nobody_told_is_forgotten_after_its_retention(world: World) -> None:
    """The margin for the coordinator's round is bounded: a name that is gone does not stay for ever."""
    world.control(LIVE_MS + 10, settings(forget_after_ms=200_000))
    world.control(LIVE_MS + 10, RetentionReported(retention_ms={1: 7_200_000}))
    world.record(LIVE_MS + 20, commit("simple"))
    world.until(LIVE_MS + 20 + 7_200_000 + EXPIRY_MARGIN_MS - 1)
    assert world.groups == ["simple"]
    world.until(LIVE_MS + 20 + 7_200_000 + EXPIRY_MARGIN_MS + 1)
    assert world.groups == []


def test_an_adopted_alert_is_judged_at_once(world: World) -> None:
    """An alert left open by a lost job goes to the group's memory; one of an unknown group is resolved."""
    world.control(LIVE_MS + 50, Adopted(group="g", alert=b"left open"))
    world.control(LIVE_MS + 60, Adopted(group="unknown", alert=b"left open"))
    outputs = world.until(LIVE_MS + 100)

    assert outputs.alerts == [("g", LIVE_MS + 50, "Stable"), ("unknown", LIVE_MS + 60, "removed")]
    assert world.shard.slots["g"].memory == b"left open"
    assert world.groups == ["g"]


def test_the_first_judgement_knows_settings_and_open_alerts() -> None:
    """What is seen live before a job has announced itself is judged by its settings all the same."""
    world = World(Witness())
    world.record(900_000, generation("g", 1, "a", "b"), backlog=True)
    world.answer(LIVE_MS - 500, beats("g", "a", LIVE_MS - 500))
    world.control(LIVE_MS - 100, settings(rules={"session_timeout": {"enabled": False}}))
    world.control(LIVE_MS - 90, Adopted(group="g", alert=b"left open"))
    world.control(LIVE_MS - 90, Adopted(group="gone", alert=b"left open"))
    world.control(LIVE_MS - 90, Adopted(group="g", alert=b"this as well"))
    outputs = world.until(LIVE_MS)

    assert outputs.alerts[:2] == [("gone", LIVE_MS - 500, "removed"), ("g", LIVE_MS - 500, "Stable")]
    assert isinstance(world.judge, Witness)
    assert world.judge.first == (b"this as well", b'{"rules":{"session_timeout":{"enabled":false}}}')


# --- failures ------------------------------------------------------------------------------------------


def _break_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    working = classic.apply

    def broken(group: Group, seen: Seen, context: Context) -> Step:
        if isinstance(seen.what, RebalanceStarted):
            raise ZeroDivisionError("poison")
        return working(group, seen, context)

    monkeypatch.setattr(classic, "apply", broken)


def test_a_poisoned_observation_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure of our own code on one observation is counted and kept for debugging; the rest goes on."""
    _break_apply(monkeypatch)
    world = World(Judge(), strict=False)
    world.line(LIVE_MS + 10, rebalance("g", 0))
    world.record(LIVE_MS + 20, commit("h"))
    outputs = world.until(LIVE_MS + 50)

    assert world.groups == ["g", "h"]
    kept = world.shard.header.poisoned
    assert [(one.group, one.error) for one in kept] == [("g", "ZeroDivisionError: poison")]
    assert on.unpack(kept[0].packed)[0].what == rebalance("g", 0)
    assert "internal_error" in [one.kind for one in outputs.divergences]


def test_a_failure_raises_in_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A strict shard does not hide our own mistakes."""
    _break_apply(monkeypatch)
    world = World(Judge(), strict=True)
    world.line(LIVE_MS - 10, rebalance("g", 0))

    with pytest.raises(ZeroDivisionError):
        world.until(LIVE_MS)


def test_a_changed_number_of_shards_is_refused(world: World) -> None:
    """Groups would lie on other shards, so the checkpoint is refused with the way out."""
    with pytest.raises(SnapshotError, match="begin a new checkpoint"):
        Shard.load(world.shard.save(), cluster="c", shard=0, shard_count=2)


def test_what_only_ends_a_modern_group_makes_none() -> None:
    """Tombstones that outlived their group, and lines about its members, are no sign of life."""
    world = World()
    gone = ModernRecord(
        group="g", group_type="consumer", record_type=3, name="", tombstone=True, member_id="", part=None
    )
    world.record(LIVE_MS, gone)
    world.line(LIVE_MS, ModernMemberGone(group="h", member_id="m", kind="member_left", text="left"))
    world.until(LIVE_MS + 10_000)

    assert world.groups == []


def test_a_marker_finds_the_group_of_its_producer() -> None:
    """The end of a transaction names a producer only; it is applied to the groups it committed for, once."""
    shard = Shard.load(None, cluster="c", shard=0, shard_count=1, strict=True)
    claimed = TransactionalCommit(
        group="g", member_id="", generation=-1, error_code=0, producer_id=7, offsets=(("t", 0, 5),)
    )
    ended = TransactionEnded(producer_id=7, committed=False, partition=0)
    named = [routing.groups_named(what, shard.header) for what in (claimed, claimed, ended, ended)]

    assert named == [["g"], ["g"], ["g"], []]


class Listener(Judge):
    """Remembers what steps it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []

    def judge(self, *, step: Step, **question: Any) -> Judgement:
        """Note the step."""
        self.steps.append(step)
        return super().judge(step=step, **question)


def test_a_group_is_shown_once_as_it_was_found() -> None:
    """At the end of the backlog, so that what holds already is news to the rules."""
    listener = Listener()
    world = World(listener)
    world.record(LIVE_MS - 5_000, generation("g", 3, "m", at_ms=LIVE_MS - 5_000), backlog=True)
    world.until(LIVE_MS)
    world.until(LIVE_MS + 10_000)

    assert [step.met for step in listener.steps].count(True) == 1


@pytest.mark.parametrize("at_once", [True, False])
def test_pauses_between_heartbeats_are_noted(at_once: bool) -> None:
    """The tenth in a row, and a narrow escape, however the heartbeats were read; ordinary ones never."""
    listener = Listener()
    world = World(listener)
    member = MemberRecord(member_id="m", client_id="c", client_host="/h", session_timeout_ms=6_000)
    recorded = msgspec.structs.replace(generation("g", 3), members=(member,), leader_id="m")
    world.record(LIVE_MS - 5_000, recorded, backlog=True)
    world.until(LIVE_MS)
    beats = [LIVE_MS + 3_000 * n for n in range(1, 14)]
    beats += [beats[-1] + 1_000 * n for n in range(1, 9)]
    beats += [beats[-1] + 5_500]
    runs = [tuple(beats)] if at_once else [(at_ms,) for at_ms in beats]
    for times in runs:
        beat = Heartbeats(group="g", member_id="m", generation=3, error_code=0, times=times)
        world.answer(times[-1], beat)
        if not at_once:
            world.until(times[-1] + 500)
    world.until(beats[-1] + 1_000)

    notes = [note for step in listener.steps for note in step.notes]
    assert [(note.at_ms, note.pause_ms, note.in_a_row) for note in notes] == [  # type: ignore[union-attr]
        (beats[10], 3_000, 10),
        (beats[-1], 5_500, 1),
    ]


# --- session timers ------------------------------------------------------------------------------------


class Looker(Judge):
    """Notes when it was asked about the group g."""

    def __init__(self) -> None:
        super().__init__(due_ms=LIVE_MS + 10**6)
        self.asked: list[int] = []

    def judge(self, **question: Any) -> Judgement:
        """Note it."""
        if question["group"].group == "g":
            self.asked.append(question["now_ms"])
        return super().judge(**question)


@pytest.mark.parametrize(("silent_s", "looks"), [(30, False), (50, True)])
def test_the_rules_look_at_sessions_that_a_failover_begins_anew(silent_s: int, *, looks: bool) -> None:
    """Where one was over (45 s) they foretell no end, and it has one again."""
    judge = Looker()
    world = World(judge)
    world.record(900_000, generation("g", 1, "a", "b", at_ms=900_000), backlog=True)
    world.control(900_000, ShardLed(leader=1, epoch=1))
    world.until(LIVE_MS)
    world.answer(LIVE_MS + 1_000, beats("g", "a", LIVE_MS + 1_000))
    world.until(LIVE_MS + 2_000)
    moved_ms = LIVE_MS + 1_000 + silent_s * 1_000
    world.control(moved_ms, ShardLed(leader=2, epoch=2))
    world.until(moved_ms + 1_000)

    assert (judge.asked[-1] == moved_ms) is looks


@pytest.mark.parametrize("cuts", [(), (12_000,), (15_000,), (12_000, 15_000, 18_000)])
def test_a_commit_says_by_when_the_request_log_was_silent(cuts: tuple[int, ...]) -> None:
    """Heartbeats before it that waited, folded, set no deadline by what the log had said at their time."""
    judge = Judge(due_ms=LIVE_MS + 10**6)
    judge.share = 100.0
    world = World(judge)
    for group in ("g", "h"):
        world.record(900_000, generation(group, 1, "a", "b", at_ms=900_000), backlog=True)
    world.record(900_001, commit("g"), backlog=True)
    world.until(LIVE_MS)

    def heard(since_s: int, until_s: int) -> None:
        seconds = tuple(range(LIVE_MS // 1000 + since_s, LIVE_MS // 1000 + until_s))
        told = LogSeconds(broker=1, heard=Source.REQUEST_LOG, seconds=seconds)
        world.answer(seconds[-1] * 1000, told)

    heard(0, 14)
    told: list[tuple[int, Any]] = [
        (at_ms, beats("g", member, LIVE_MS + at_ms))
        for at_ms in (1_000, 4_000, 10_000, 13_000)
        for member in ("a", "b")
    ]
    told.append((20_000, commit("g", 6)))
    outputs = []
    begun_ms = -1
    for cut_ms in (*cuts, 29_000):
        for at_ms, what in told:
            if begun_ms < at_ms <= cut_ms + 1_500:  # a batch reads a little beyond its clock
                say = world.record if isinstance(what, OffsetsCommitted) else world.answer
                say(LIVE_MS + at_ms, what)
        begun_ms = cut_ms + 1_500
        outputs.append(world.until(LIVE_MS + cut_ms))
    heard(30, 75)
    outputs.append(world.until(LIVE_MS + 76_000))

    assert [one.to_state for output in outputs for one in output.transitions] == []
