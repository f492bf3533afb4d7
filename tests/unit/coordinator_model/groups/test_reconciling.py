"""The mirror against the brokers' own answers: what proves a difference, what does not, what is healed."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from coordinator_model.groups.core.knowledge import known_at
from coordinator_model.groups.core.turn import Context
from coordinator_model.groups.reconciling import (
    IN_A_ROW_MS,
    LASTING_MS,
    SETTLE_MS,
    Finding,
    Verdict,
    both_sides,
    digest,
    find,
    reconcile,
)
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState
from coordinator_model.observations.answers import DescribedMember, GroupDescribed, ShardLed
from coordinator_model.observations.base import Source
from coordinator_model.observations.control import Clock, LogSeconds, Settings
from coordinator_model.observations.log import (
    AssignmentReceived,
    JoinPhaseEnded,
    MemberFailed,
    MemberIdHandedOut,
    Reason,
    RebalanceStarted,
)
from coordinator_model.observations.records import GroupRecorded, MemberRecord
from coordinator_model.observations.requests import Client, Heartbeats
from coordinator_model.observations.seen import Seen
from coordinator_model.shard.judging import Outputs
from coordinator_model.shard.live_group import Live
from coordinator_model.shard.shard import Shard
from coordinator_model.state.group import Departure, Doubt, Group, Member
from tests.unit.made_seen import seen

SINCE_MS = 1_000_000
ASKED_MS = 2_000_000
GONE = Departure(at_ms=ASKED_MS - 10, member_id="b", client_id="", client_host="", how=CauseKind.MEMBER_LEFT)
QUIET = Context(cluster="c", info_live=True, offsets_enabled=True, backlog=False)


def described(state: str, *members: str, **changes: Any) -> GroupDescribed:
    """Return an answer about group g."""
    fields: dict[str, Any] = {
        "asked_at_ms": ASKED_MS,
        "group_type": "classic",
        "protocol_type": "consumer",
        "members": tuple(
            DescribedMember(member_id=m, client_id=f"client-{m}", client_host="/10.0.0.9") for m in members
        ),
    }
    return GroupDescribed(group="g", state=state, **(fields | changes))


def told(what: GroupDescribed, *, broker: int = 1, took_ms: int = 5) -> Seen:
    """Return an answer as the shard sees it."""
    at_ms = what.asked_at_ms + took_ms
    return seen(at_ms, what, Source.CONTROL, broker=broker)


def mirrored(state: GroupState = GroupState.STABLE, *members: str, **changes: Any) -> Group:
    """Return group g as the mirror has it."""
    return Group(
        group="g",
        state=state,
        state_since_ms=SINCE_MS,
        generation=5,
        protocol="range",
        members={m: Member(member_id=m, joined_at_ms=SINCE_MS) for m in members},
        **changes,
    )


def look(group: Group, what: GroupDescribed, **changes: Any) -> Finding:
    """Hold an answer against a group that the mirror has."""
    return find(group, told(what), changes.pop("context", QUIET), **({"known": True} | changes))


# --- what one answer says ----------------------------------------------------------------------------


def test_an_answer_that_says_the_same_agrees() -> None:
    """State, members and strategy; what the broker does not tell does not count."""
    group = mirrored(GroupState.STABLE, "a", "b")
    assert look(group, described("Stable", "b", "a", protocol="range")) == Finding(Verdict.AGREES)
    assert look(group, described("Stable", "b", "a")) == Finding(Verdict.AGREES)
    assert look(group, described("Stable", members=None)) == Finding(Verdict.AGREES)


@pytest.mark.parametrize(
    ("group", "what", "kinds"),
    [
        (mirrored(GroupState.STABLE, "a"), described("PreparingRebalance", "a"), ("state_differs",)),
        (mirrored(GroupState.EMPTY), described("Stable", "a"), ("state_differs",)),
        (mirrored(GroupState.STABLE, "a"), described("Stable", "a", "b"), ("members_differ",)),
        (
            mirrored(GroupState.STABLE, "a"),
            described("Stable", "a", protocol="sticky"),
            ("protocol_differs",),
        ),
        (
            mirrored(GroupState.STABLE, "a"),
            described("Stable", "b", protocol="sticky"),
            ("members_differ", "protocol_differs"),
        ),
        (mirrored(GroupState.STABLE, "a"), described("Dead"), ("group_unknown_to_broker",)),
        (mirrored(GroupState.EMPTY), described("Empty", group_type="consumer"), ("type_differs",)),
        (mirrored(GroupState.DEAD), described("Stable", "a"), ("group_unknown_to_mirror",)),
        (
            mirrored(GroupState.STABLE, "a", group_type="consumer"),
            described("Stable", "a", group_type="consumer", epoch=6),
            ("epoch_differs",),
        ),
    ],
)
def test_a_first_difference_is_a_doubt(group: Group, what: GroupDescribed, kinds: tuple[str, ...]) -> None:
    """It names its kind, and the greatest difference hides what follows from it."""
    finding = look(group, what)
    assert (finding.verdict, finding.kinds) == (Verdict.DOUBTED, kinds)
    assert finding.doubt == Doubt(answered_at_ms=ASKED_MS + 5, state=what.state, mirror=digest(group))


def test_members_are_compared_at_rest_only() -> None:
    """In a join phase nobody outside knows who has come."""
    group = mirrored(GroupState.PREPARING_REBALANCE, "a")
    assert look(group, described("PreparingRebalance", "a", "b")).verdict is Verdict.AGREES


def test_two_that_both_know_nothing_agree() -> None:
    """A group that was deleted is deleted."""
    assert look(mirrored(GroupState.DEAD), described("Dead")).verdict is Verdict.AGREES


@pytest.mark.parametrize(
    "changes",
    [
        {"state_since_ms": ASKED_MS - SETTLE_MS + 1},
        {"held_record": b"waits for its lines"},
        {"members": {"a": Member(member_id="a", joined_at_ms=ASKED_MS - 10)}},
        {"departures": (GONE,)},
    ],
    ids=["state", "record", "arrival", "departure"],
)
def test_a_mirror_that_moved_when_asked_proves_nothing(changes: dict[str, Any]) -> None:
    """Neither for nor against; a moment earlier it would have been a doubt."""
    group = mirrored(GroupState.STABLE, "a")
    before = look(group, described("Empty")).doubt
    for name, value in changes.items():
        setattr(group, name, value)
    assert look(group, described("Empty"), before=before) == Finding(Verdict.MOVING)
    assert look(group, described("Stable", "a")).verdict is Verdict.MOVING


def test_a_broker_that_does_not_hold_the_shard_proves_nothing() -> None:
    """Its answer is about a past; what was in doubt stays so."""
    group = mirrored(GroupState.STABLE, "a")
    before = look(group, described("Empty")).doubt
    assert look(group, described("Empty"), coordinator=2, before=before) == Finding(
        Verdict.MOVING, (), before
    )
    assert look(group, described("Empty"), coordinator=1).verdict is Verdict.DOUBTED


def test_a_state_that_nobody_has_heard_of_proves_nothing() -> None:
    """A broker younger than this mirror may spell new ones."""
    assert look(mirrored(GroupState.STABLE, "a"), described("Pondering")).verdict is Verdict.MOVING


# --- what two answers say ----------------------------------------------------------------------------


def _again(group: Group, state: str, first: Finding, after_ms: int) -> Finding:
    assert first.doubt is not None
    asked_ms = first.doubt.answered_at_ms + after_ms
    return look(group, described(state, asked_at_ms=asked_ms), before=first.doubt)


def test_the_same_doubt_seconds_later_is_a_proof() -> None:
    """Just below, the first doubt stands and is not made younger."""
    group = mirrored(GroupState.STABLE, "a")
    first = look(group, described("Empty"))
    assert _again(group, "Empty", first, LASTING_MS - 1) == Finding(
        Verdict.DOUBTED, ("state_differs",), first.doubt
    )
    assert _again(group, "Empty", first, LASTING_MS) == Finding(Verdict.WRONG, ("state_differs",))


def test_a_mirror_that_moved_in_between_begins_anew() -> None:
    """The first answer was about another mirror."""
    group = mirrored(GroupState.STABLE, "a")
    first = look(group, described("Empty"))
    group.state, group.state_since_ms = GroupState.PREPARING_REBALANCE, SINCE_MS + 500  # a late line
    assert _again(group, "Empty", first, LASTING_MS).verdict is Verdict.DOUBTED


def test_answers_that_lie_far_apart_are_not_in_a_row() -> None:
    """What was and went in between, nobody knows."""
    group = mirrored(GroupState.STABLE, "a")
    first = look(group, described("Empty"))
    assert _again(group, "Empty", first, IN_A_ROW_MS + 1).verdict is Verdict.DOUBTED


def test_both_sides_can_be_read() -> None:
    """Type, state, generation and some members of each."""
    group = mirrored(GroupState.STABLE, *"abcdefg")
    assert both_sides(group, described("Empty")) == (
        "mirror: classic Stable 5 [a, b, c, d, e, … 7]; broker: classic Empty []"
    )


# --- a shard that is told ----------------------------------------------------------------------------


class World:
    """A shard with one broker; each answer is applied at once."""

    def __init__(self, *, settings: dict[str, Any] | None = None, info: bool = True) -> None:
        self.shard = Shard.load(None, cluster="c", shard=0, shard_count=1, strict=True)
        self.now_ms = SINCE_MS
        self.offset = 0
        self.info = info
        if settings is not None:
            self.say(Settings(settings=msgspec.json.encode(settings)), Source.CONTROL, broker=-1)
        self.wait(10)
        if info:
            self.say(MemberIdHandedOut(group="other", member_id="x", state="Stable"))

    def say(self, what: Any, source: Source = Source.COORDINATOR_LOG, broker: int = 1) -> Outputs:
        """Let something be said now, and time pass until it is applied."""
        self.offset += 1
        broker = -1 if source is Source.OFFSETS else broker
        self.shard.step([seen(self.now_ms, what, source, broker=broker, offset=self.offset)], None)
        return self.wait(1)

    def wait(self, seconds: float) -> Outputs:
        """Let time pass; the shard is saved and loaded."""
        self.now_ms += round(seconds * 1000)
        self.offset += 1
        clock = Clock(sequence=self.offset, end_offset=self.offset, position=self.offset)
        outputs = self.shard.step([seen(self.now_ms, clock, Source.CONTROL, offset=self.offset)], None)
        self.shard = Shard.load(self.shard.save(), cluster="c", shard=0, shard_count=1, strict=True)
        return outputs

    def answer(self, state: str, *members: str, broker: int = 1, **changes: Any) -> Outputs:
        """Let a broker answer a question that was asked 5 ms ago."""
        what = described(state, *members, **({"asked_at_ms": self.now_ms - 5} | changes))
        return self.say(what, Source.CONTROL, broker)

    def stable(
        self, *members: str, generation: int = 5, group: str = "g", instance_id: str | None = None
    ) -> None:
        """Let a generation be completed, and rest a while; the last member has the instance id."""
        if self.info:
            self.say(JoinPhaseEnded(group=group, generation=generation, member_count=len(members)))
        record = GroupRecorded(
            group=group,
            generation=generation,
            protocol_type="consumer",
            protocol="range",
            leader_id=members[0],
            state_since_ms=self.now_ms,
            members=tuple(
                MemberRecord(
                    member_id=m,
                    client_id=m,
                    client_host="/h",
                    session_timeout_ms=10_000,
                    instance_id=instance_id if m == members[-1] else None,
                )
                for m in members
            ),
        )
        self.say(record, Source.OFFSETS)
        self.wait(30)

    def rebalance(self, generation: int = 5) -> None:
        """Let the log tell of a rebalance, and nothing more."""
        reason = Reason(kind="member_joined", text="x")
        self.say(RebalanceStarted(group="g", generation=generation, reason=reason))
        self.wait(10)

    def group(self, name: str = "g") -> Group:
        """Return a group as it is now."""
        return Live.decode(self.shard.slots[name]).group


def kinds(outputs: Sequence[Outputs]) -> list[str]:
    return [one.kind for each in outputs for one in each.divergences for _ in range(one.count)]


def moves(outputs: Sequence[Outputs]) -> list[tuple[str, str, int, str, str]]:
    return [
        (str(t.from_state), str(t.to_state), t.generation, str(t.basis), t.source)
        for each in outputs
        for t in each.transitions
    ]


def twice(world: World, state: str, *members: str, **changes: Any) -> list[Outputs]:
    """Let the brokers say the same twice, six seconds apart."""
    first = world.answer(state, *members, **changes)
    world.wait(6)
    return [first, world.answer(state, *members, **changes)]


@pytest.fixture
def world() -> World:
    """A quiet cluster: topic and INFO log, one Stable group of two."""
    world = World()
    world.stable("a", "b")
    return world


def test_answers_that_agree_are_counted_and_change_nothing(world: World) -> None:
    """Two of two."""
    before = msgspec.structs.asdict(world.group())
    told = twice(world, "Stable", "a", "b", protocol="range")
    assert [(one.compared, one.agreeing) for one in told] == [(1, 1), (1, 1)]
    assert (kinds(told), moves(told)) == ([], [])
    after = msgspec.structs.asdict(world.group())
    changed = {name for name, value in after.items() if before[name] != value}
    assert changed == {"last_seen_ms", "agreed_at_ms", "members"}
    assert world.group().members["a"].client_host == "/10.0.0.9"  # what nobody else told is learnt


def test_a_mirror_that_hangs_in_a_join_phase_is_healed_once(world: World) -> None:
    """A line that was no rebalance of this group, or whose end is lost: back to the last record."""
    world.rebalance()
    told = twice(world, "Stable", "a", "b")
    assert kinds(told) == ["state_differs"]
    assert moves(told) == [("PreparingRebalance", "Stable", 5, "inferred", "model")]
    assert [(one.compared, one.agreeing) for one in told] == [(0, 0), (2, 0)]
    world.wait(10)
    assert kinds(twice(world, "Stable", "a", "b")) == []


def test_both_sides_go_along_with_the_count(world: World) -> None:
    """For the log: what the mirror said before it was healed, and what the broker said."""
    world.rebalance()
    (one,) = twice(world, "Stable", "a", "b")[1].divergences
    assert one.detail == "mirror: classic PreparingRebalance 5 [a, b]; broker: classic Stable [a, b]"
    assert (one.group, one.broker) == ("g", 1)


def test_a_lasting_difference_is_dated_from_the_first_answer(world: World) -> None:
    """The brokers have said so since then; before that nobody knows."""
    world.rebalance()
    asked_ms = world.now_ms
    (transition,) = twice(world, "Stable", "a", "b")[1].transitions
    assert transition.at_ms == asked_ms
    assert transition.cause.kind is CauseKind.UNKNOWN


def test_a_rebalance_without_its_line_is_told_as_inferred(world: World) -> None:
    """The log is thought to be live and did not tell; the answers do."""
    told = twice(world, "PreparingRebalance", "a", "b")
    assert kinds(told) == ["state_differs"]
    assert moves(told) == [("Stable", "PreparingRebalance", 5, "inferred", "model")]


def test_after_healing_the_log_is_followed_again(world: World) -> None:
    """The next lines find the mirror where the coordinator is."""
    twice(world, "PreparingRebalance", "a", "b")
    world.stable("a", "b", generation=6)
    assert (world.group().state, world.group().generation) == (GroupState.STABLE, 6)


def test_a_line_that_comes_late_takes_the_place_of_what_was_healed(world: World) -> None:
    """An inferred transition found wrong in time is replaced, not left beside the right one."""
    at_ms = world.now_ms
    told = twice(world, "PreparingRebalance", "a", "b")
    (guess,) = told[1].transitions
    reason = Reason(kind="member_joined", text="x")
    world.now_ms, now_ms = at_ms - 2_000, world.now_ms
    late = world.say(RebalanceStarted(group="g", generation=5, reason=reason))
    world.now_ms = now_ms
    late = late if late.transitions else world.wait(1)
    assert [(t.replaces, t.basis) for t in late.transitions] == [(guess.id, "observed")]


def test_members_that_the_broker_does_not_list_are_dropped_and_others_added(world: World) -> None:
    """With what DescribeGroups tells of them."""
    c = DescribedMember(
        member_id="c",
        client_id="client-c",
        client_host="/10.0.0.9",
        instance_id="i",
        topics=("t",),
        assigned={"t": (0,)},
    )
    changes = {"members": (DescribedMember(member_id="a"), c)}
    assert kinds(twice(world, "Stable", **changes)) == ["members_differ"]
    members = world.group().members
    assert set(members) == {"a", "c"}
    assert (members["c"].client_id, members["c"].client_host, members["c"].instance_id) == (
        "client-c",
        "/10.0.0.9",
        "i",
    )
    assert (members["c"].topics, members["c"].assigned) == (("t",), {"t": (0,)})
    assert members["a"].session_timeout_ms == 10_000


def test_a_static_member_under_another_id_is_the_same_member(world: World) -> None:
    """Its arrival stays, nobody departs."""
    world.stable("a", "b", generation=6, instance_id="i")
    joined_ms = world.group().members["b"].joined_at_ms
    renamed = DescribedMember(member_id="b2", instance_id="i")
    assert kinds(twice(world, "Stable", members=(DescribedMember(member_id="a"), renamed))) == [
        "members_differ"
    ]
    group = world.group()
    assert (set(group.members), group.departures) == ({"a", "b2"}, ())
    assert group.members["b2"].joined_at_ms == joined_ms


def test_the_client_that_a_member_itself_told_stays(world: World) -> None:
    """Kafka: the coordinator goes on telling the client that had a static member's instance id before."""
    own = Client(client_id="new", host="/h2", connection="1-2-0-1")
    beat = Heartbeats(group="g", member_id="b", generation=5, error_code=0, times=(world.now_ms,), client=own)
    world.say(beat, Source.REQUEST_LOG)
    world.answer("Stable", "a", "b")
    members = world.group().members
    assert (members["a"].client_id, members["a"].client_host) == ("client-a", "/10.0.0.9")
    assert (members["b"].client_id, members["b"].client_host) == ("new", "/h2")


def test_a_member_that_had_not_gone_comes_back_as_it_was(world: World) -> None:
    """A line about it was wrong; what the mirror knew of it is not lost."""
    joined_ms = world.group().members["b"].joined_at_ms
    world.say(MemberFailed(group="g", member_id="b"))
    world.wait(10)
    assert set(world.group().members) == {"a"}
    assert kinds(twice(world, "Stable", "a", "b")) == ["members_differ"]
    member = world.group().members["b"]
    assert (member.joined_at_ms, member.session_timeout_ms) == (joined_ms, 10_000)
    assert world.group().departures == ()


def test_members_of_a_group_that_turns_out_empty_have_gone(world: World) -> None:
    """How, nobody tells."""
    told = twice(world, "Empty")
    assert kinds(told) == ["state_differs"]
    assert [(gone.member_id, gone.how, gone.basis) for gone in world.group().departures] == [
        ("a", CauseKind.UNKNOWN, "inferred"),
        ("b", CauseKind.UNKNOWN, "inferred"),
    ]
    assert moves(told)[-1] == ("PreparingRebalance", "Empty", 6, "inferred", "model")


def test_an_empty_group_that_rebalances_was_joined(world: World) -> None:
    """There is no other reason; who it was, a later line or answer tells."""
    twice(world, "Empty")
    world.wait(10)
    told = twice(world, "Stable", "c")
    causes = [(str(t.to_state), t.cause.kind) for one in told for t in one.transitions]
    assert causes == [
        ("PreparingRebalance", CauseKind.MEMBER_JOINED),
        ("CompletingRebalance", CauseKind.JOIN_COMPLETED),
        ("Stable", CauseKind.ASSIGNMENT_STORED),
    ]


def test_another_strategy_is_taken_over(world: World) -> None:
    """It is no transition."""
    told = twice(world, "Stable", "a", "b", protocol="sticky")
    assert (kinds(told), moves(told)) == (["protocol_differs"], [])
    assert world.group().protocol == "sticky"


def test_a_group_that_the_broker_does_not_know_is_deleted(world: World) -> None:
    """Only after it said so twice: right after its creation a group is denied for a moment."""
    told = twice(world, "Dead")
    assert kinds(told) == ["group_unknown_to_broker"]
    (end,) = told[1].transitions
    assert (end.to_state, end.cause.kind, end.basis) == (GroupState.DEAD, CauseKind.GROUP_DELETED, "inferred")


def test_a_group_that_the_mirror_does_not_know_is_adopted(world: World) -> None:
    """After the second answer; after the first there is not even a trace of it in the reports."""
    first = world.say(
        GroupDescribed(
            group="new",
            asked_at_ms=world.now_ms,
            group_type="classic",
            state="Stable",
            members=(DescribedMember(member_id="m"),),
        ),
        Source.CONTROL,
    )
    assert (first.reports, "new" in world.shard.slots) == ([], False)
    world.wait(6)
    second = world.say(
        GroupDescribed(
            group="new",
            asked_at_ms=world.now_ms,
            group_type="classic",
            state="Stable",
            members=(DescribedMember(member_id="m"),),
        ),
        Source.CONTROL,
    )
    assert kinds([first, second]) == ["group_unknown_to_mirror"]
    assert [report.group for report in second.reports] == ["new"]
    assert set(world.group("new").members) == {"m"}


def test_a_group_of_another_type_is_converted(world: World) -> None:
    """One group whose type changes."""
    told = twice(world, "Stable", "a", "b", group_type="consumer", epoch=9)
    assert kinds(told) == ["type_differs"]
    (one,) = told[1].transitions
    assert (one.group_type, one.generation, one.cause.kind) == ("consumer", 9, CauseKind.PROTOCOL_CHANGED)


def test_a_doubt_that_the_log_explains_is_none(world: World) -> None:
    """A rebalance between two answers: they were about a group that moved."""
    first = world.answer("PreparingRebalance", "a", "b")
    world.rebalance()
    second = world.answer("PreparingRebalance", "a", "b")
    assert kinds([first, second]) == []
    assert (first.compared, second.compared, second.agreeing) == (0, 1, 1)


def test_before_the_first_clock_an_answer_waits() -> None:
    """There is no mirror yet to compare it with."""
    shard = Shard.load(None, cluster="c", shard=0, shard_count=1, strict=True)
    outputs = shard.step([told(described("Stable", "a"))], None)
    assert (outputs.compared, outputs.reports, list(shard.slots)) == (0, [], [])


# --- modes without an INFO log, or without the topic ---------------------------------------------------


def test_without_a_log_one_answer_tells_of_a_rebalance() -> None:
    """The topic says nothing of its phases, so it is news and no difference."""
    world = World(info=False)
    world.stable("a", "b")
    world.wait(60)
    told = world.answer("PreparingRebalance", "a", "b")
    assert (kinds([told]), told.compared) == ([], 0)
    assert moves([told]) == [("Stable", "PreparingRebalance", 5, "inferred", "model")]


def test_a_phase_that_was_learnt_and_led_nowhere_is_replaced() -> None:
    """The new coordinator has lost the rebalance: the inferred transition is not left beside another."""
    world = World(info=False)
    world.stable("a", "b")
    (guess,) = world.answer("PreparingRebalance", "a", "b").transitions
    world.wait(10)
    told = twice(world, "Stable", "a", "b")
    assert [(str(t.to_state), t.replaces) for one in told for t in one.transitions] == [("Stable", guess.id)]


def test_a_phase_that_was_learnt_is_blamed_on_who_had_been_silent() -> None:
    """The request log tells of heartbeats: one member sent none for its session timeout."""
    world = World(info=False)
    world.stable("a", "b")
    for member, ago_ms in (("a", 500), ("b", 12_000)):
        at_ms = world.now_ms - ago_ms
        beat = Heartbeats(group="g", member_id=member, generation=5, error_code=0, times=(at_ms,))
        world.say(beat, Source.REQUEST_LOG)
    seconds = (world.now_ms // 1000 - 2,)
    world.say(LogSeconds(broker=1, heard=Source.REQUEST_LOG, seconds=seconds), Source.REQUEST_LOG)
    told = [world.answer("PreparingRebalance", "a"), world.wait(1)]
    causes = [(t.cause.kind, t.cause.member_id) for one in told for t in one.transitions]
    assert causes == [(CauseKind.SESSION_TIMEOUT, "b")]


def test_an_answer_proves_the_state_until_it_was_asked_for() -> None:
    """Where no log is read, the state is shown with the time of its last proof."""
    world = World(info=False)
    world.stable("a", "b")
    world.wait(600)
    asked_ms = world.now_ms - 5
    world.answer("Stable", "a", "b")
    topic_alone = Context(cluster="c", info_live=False, offsets_enabled=True, backlog=False)
    assert known_at(world.group(), topic_alone, world.now_ms + 60_000) == asked_ms
    world.wait(30)
    world.answer("Empty")
    assert known_at(world.group(), topic_alone, world.now_ms + 60_000) == asked_ms


def test_without_a_log_a_result_needs_two_answers_all_the_same() -> None:
    """Results stand in the topic; a single answer may only have come first."""
    world = World(info=False)
    world.stable("a", "b")
    world.wait(60)
    assert moves([world.answer("Empty")]) == []


def test_without_the_topic_groups_from_before_are_taken_over_in_silence() -> None:
    """Their records cannot be read, and their lines are older than the watch: a snapshot."""
    world = World(settings={"offsets_enabled": False})
    told = world.answer("Stable", "a", "b", protocol="range")
    assert (kinds([told]), moves([told]), told.compared) == ([], [], 0)
    group = world.group()
    assert (group.state, set(group.members), group.protocol) == (GroupState.STABLE, {"a", "b"}, "range")
    assert {member.joined_at_ms for member in group.members.values()} == {-1}  # nobody was seen to come


def test_a_snapshot_is_no_news_for_the_rules() -> None:
    """Nobody arrived, nothing moved."""
    blind = Context(cluster="c", info_live=True, offsets_enabled=False, backlog=False)
    group, seen = Group(group="g"), told(described("Stable", "a"))
    finding = find(group, seen, blind, known=False)
    step = reconcile(group, seen, finding, blind, None)
    assert (finding.verdict, step.arrivals, step.transitions) == (Verdict.TAUGHT, [], [])
    assert set(group.members) == {"a"}


def test_without_the_topic_a_lost_end_of_a_rebalance_is_the_next_generation() -> None:
    """There is no record to be back at."""
    world = World(settings={"offsets_enabled": False})
    world.say(JoinPhaseEnded(group="g", generation=5, member_count=1))
    world.say(AssignmentReceived(group="g", generation=5, leader_id="a"))
    world.wait(30)
    world.rebalance()
    told = twice(world, "Stable", "a")
    assert moves(told) == [
        ("PreparingRebalance", "CompletingRebalance", 6, "inferred", "model"),
        ("CompletingRebalance", "Stable", 6, "inferred", "model"),
    ]
    assert kinds(told) == ["state_differs"]


# --- who holds the shard ------------------------------------------------------------------------------


def test_lines_of_a_broker_that_leads_no_longer_are_outdated(world: World) -> None:
    """The metadata name another one with a younger epoch, though no line told of the move."""
    world.say(ShardLed(leader=2, epoch=7), Source.CONTROL, broker=-1)
    reason = Reason(kind="member_joined", text="x")
    outputs = world.say(RebalanceStarted(group="g", generation=5, reason=reason))
    assert kinds([outputs, world.wait(1)]) == ["outdated_coordinator"]
    assert world.group().state is GroupState.STABLE


def test_an_older_epoch_is_old_news(world: World) -> None:
    """A broker with stale metadata moves nobody."""
    world.say(ShardLed(leader=2, epoch=7), Source.CONTROL, broker=-1)
    world.say(ShardLed(leader=1, epoch=6), Source.CONTROL, broker=-1)
    assert (world.shard.header.coordinator, world.shard.header.epoch) == (2, 7)


def test_an_answer_of_a_broker_that_leads_no_longer_counts_for_nothing(world: World) -> None:
    """It may say Dead of every group that it gave up."""
    world.say(ShardLed(leader=2, epoch=7), Source.CONTROL, broker=-1)
    assert [one.compared for one in twice(world, "Dead", broker=1)] == [0, 0]
    assert kinds(twice(world, "Dead", broker=2)) == ["group_unknown_to_broker"]
