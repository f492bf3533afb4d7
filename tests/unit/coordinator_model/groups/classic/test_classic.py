"""The classic machine as a whole: its limits, what it keeps of members, and what must always hold."""

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model.groups import table as classic
from coordinator_model.groups.core.transitions import transition_id
from coordinator_model.groups.core.turn import Context
from coordinator_model.kafka import Error
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState, can_move
from coordinator_model.observations.base import Source
from coordinator_model.observations.log import (
    AssignmentReceived,
    GroupEmptied,
    GroupLoaded,
    GroupsDeleted,
    GroupUnloaded,
    InstanceFenced,
    JoinPhaseEnded,
    LeaderReplaced,
    LogNoted,
    MemberFailed,
    MemberIdHandedOut,
    MemberJoined,
    MemberLeft,
    MembersKicked,
    NobodyRejoined,
    PendingMemberExpired,
    Reason,
    RebalanceStarted,
    SimpleGroupCreated,
    StaticMemberReplaced,
)
from coordinator_model.observations.records import (
    Commit,
    GroupRecorded,
    GroupTombstone,
    MemberRecord,
    OffsetsCommitted,
)
from coordinator_model.observations.requests import (
    Client,
    CommitsAnswered,
    DeleteAnswered,
    Heartbeats,
    JoinAnswered,
    LeaveAnswered,
    SyncAnswered,
)
from coordinator_model.observations.seen import Seen
from coordinator_model.ordering.buffered import Run
from coordinator_model.shard.coalescing import are_quiet
from coordinator_model.state.group import Basis, Cause, Departure, Group, Member, Rebalance, Step, Transition
from coordinator_model.state.notes import Replaced

UUID = "00000000-0000-4000-8000-000000000000"
A, B = f"app-a-{UUID}", f"app-b-{UUID}"
FULL = Context("prod", info_live=True, offsets_enabled=True, backlog=False, requests_live=True)
REQUESTS = msgspec.structs.replace(FULL, info_live=False)
OFFSETS = msgspec.structs.replace(REQUESTS, requests_live=False)


def seen(at_ms: int, what: Any, source: Source = Source.COORDINATOR_LOG, broker: int = 1) -> Seen:
    return Seen(
        at_ms=at_ms,
        source=source,
        partition=0,
        offset=0,
        index=0,
        broker=broker if source is not Source.OFFSETS else -1,
        recorded_at_ms=at_ms + 3,
        backlog=False,
        what=what,
    )


def record(generation: int, *members: str, since_ms: int = -1, **more: Any) -> GroupRecorded:
    return GroupRecorded(
        group="g",
        generation=generation,
        protocol_type="consumer",
        protocol="range" if members else None,
        leader_id=members[0] if members else None,
        state_since_ms=since_ms,
        members=tuple(
            MemberRecord(
                member_id=member,
                client_id=member.removesuffix(f"-{UUID}"),
                client_host="/10.0.0.1",
                session_timeout_ms=6_000,
                rebalance_timeout_ms=30_000,
                topics=("orders",),
                assigned={"orders": (0, 1)},
                **more,
            )
            for member in members
        ),
    )


def heartbeats(*times: int, member: str = A, client: Client | None = None, **more: Any) -> Seen:
    """Return heartbeats of generation 5, accepted ones unless an error is named."""
    told = {"generation": 5, "error_code": 0, "client": client or Client(), **more}
    what = Heartbeats(group="g", member_id=member, times=times, **told)
    return seen(times[-1], what, Source.REQUEST_LOG)


def stable(*members: str, context: Context = FULL) -> Group:
    """Return a group that has just become Stable in generation 5."""
    group = classic.new_group("g")
    backlog = msgspec.structs.replace(context, info_live=False, backlog=True)
    classic.apply(group, seen(1_000, record(5, *members, since_ms=990), Source.OFFSETS), backlog)
    return group


def started(kind: str, *members: str, generation: int = 5, **more: Any) -> RebalanceStarted:
    reason = Reason(kind=kind, text=f"because of {kind}", member_ids=members, **more)
    return RebalanceStarted(group="g", generation=generation, reason=reason)


def test_a_group_is_stable_when_its_record_is_replicated() -> None:
    """The coordinator appends the assignment, and waits for the replicas before it answers anybody."""
    group = stable(A)
    classic.apply(group, seen(2_000, started("leader_rejoined", A)), FULL)
    ended = JoinPhaseEnded(group="g", generation=6, member_count=1)
    classic.apply(group, seen(2_010, ended), FULL)
    lagging = msgspec.structs.replace(record(6, A, since_ms=2_010), uncommitted_ms=6_500)

    (told,) = classic.apply(group, seen(2_020, lagging, Source.OFFSETS), FULL).transitions

    assert (told.to_state, told.at_ms, told.recorded_at_ms) == (GroupState.STABLE, 6_500, 2_023)


def test_culprit_has_client_and_host_of_the_departed_member() -> None:
    """The line about a failed member comes first; the rebalance it causes still names its client and host."""
    group = stable(A, B)

    classic.apply(group, seen(2_000, MemberFailed(group="g", member_id=B)), FULL)
    step = classic.apply(group, seen(2_000, started("session_timeout", B)), FULL)

    assert step == Step(
        transitions=[
            Transition(
                id=transition_id("prod", "g", GroupState.PREPARING_REBALANCE, 5, 2_000),
                cluster="prod",
                group="g",
                group_type="classic",
                from_state=GroupState.STABLE,
                to_state=GroupState.PREPARING_REBALANCE,
                generation=5,
                at_ms=2_000,
                recorded_at_ms=2_003,
                cause=Cause(
                    kind=CauseKind.SESSION_TIMEOUT,
                    member_id=B,
                    client_id="app-b",
                    client_host="/10.0.0.1",
                    detail="because of session_timeout",
                ),
                basis=Basis.OBSERVED,
                source="coordinator_log",
            )
        ]
    )


def test_departure_keeps_all_that_was_known() -> None:
    """What the rules need of a member that went is kept, heartbeats and connection included."""
    group = stable(A)
    client = Client(client_id="app-a", host="/10.0.0.9", connection="c1", software="librdkafka")
    classic.apply(group, heartbeats(1_500, 1_900, client=client), FULL)

    step = classic.apply(group, seen(2_000, MemberLeft(group="g", member_id=A, client_reason="bye")), FULL)

    gone = Departure(
        at_ms=2_000,
        member_id=A,
        client_id="app-a",
        client_host="/10.0.0.9",
        how=CauseKind.MEMBER_LEFT,
        joined_at_ms=1_000,
        last_heartbeat_ms=1_900,
        session_timeout_ms=6_000,
        connection="c1",
        rebalance_timeout_ms=30_000,
        reason="bye",
    )
    assert (step, group.departures, group.members) == (Step(departures=[gone]), (gone,), {})


def test_unknown_member_is_named_by_its_id() -> None:
    """A generated member id begins with the client id, which is all that a first line tells."""
    group = classic.new_group("g")

    step = classic.apply(group, seen(2_000, started("member_left", B)), FULL)

    assert step.transitions[0].cause == Cause(
        kind=CauseKind.MEMBER_LEFT, member_id=B, client_id="app-b", detail="because of member_left"
    )


@pytest.mark.parametrize("kind", list(CauseKind))
def test_reason_becomes_the_cause(kind: CauseKind) -> None:
    """Whatever kind a reason has, the rebalance has it for its cause, and it is counted."""
    group = stable(A)

    step = classic.apply(group, seen(2_000, started(str(kind))), FULL)

    assert [told.cause.kind for told in step.transitions] == [kind]
    assert group.rebalances == {str(kind): 1}


def test_a_reason_nobody_knows_is_unknown() -> None:
    """A future Kafka's reason does not stop the model."""
    step = classic.apply(stable(A), seen(2_000, started("quorum_lost", B)), FULL)

    assert step.transitions[0].cause == Cause(
        kind=CauseKind.UNKNOWN, member_id=B, client_id="app-b", detail="because of quorum_lost"
    )


def test_leave_by_instance_id_names_the_member_that_just_left() -> None:
    """The coordinator's reason is empty then; the line before has the member."""
    group = stable(A, B)
    reason = "consumer poll timeout has expired."
    left = MemberLeft(group="g", member_id=B, client_reason=reason)

    classic.apply(group, seen(2_000, left), FULL)
    step = classic.apply(group, seen(2_001, started("member_left", "")), FULL)

    assert step.transitions[0].cause == Cause(
        kind=CauseKind.POLL_TIMEOUT,
        client_id="app-b",
        client_host="/10.0.0.1",
        member_id=B,
        detail=f"because of member_left; client reason: {reason}",
    )


def test_join_phase_restarts_sessions_and_flags() -> None:
    """At its end every member has joined, none has synced, and all session timers start again."""
    group = stable(A, B)
    classic.apply(group, seen(2_000, started("leader_rejoined", A)), FULL)
    classic.apply(group, heartbeats(2_100, 2_200, member=B, error_code=27), FULL)
    during = [(m.member_id, m.rejoined, m.heartbeats_refused) for m in group.members.values()]

    classic.apply(group, seen(3_000, JoinPhaseEnded(group="g", generation=6, member_count=2)), FULL)

    after = [(m.member_id, m.rejoined, m.synced, m.session_base_ms) for m in group.members.values()]
    assert during == [(A, True, 0), (B, False, 2)]
    assert after == [(A, True, False, 3_000), (B, True, False, 3_000)]


def test_rebalance_is_kept_from_start_to_end() -> None:
    """One rebalance from Stable to Stable, with its three times."""
    group = stable(A)
    classic.apply(group, seen(2_000, started("leader_rejoined", A)), FULL)
    classic.apply(group, seen(3_000, JoinPhaseEnded(group="g", generation=6, member_count=1)), FULL)
    classic.apply(group, seen(3_500, record(6, A, since_ms=3_000), Source.OFFSETS), FULL)

    assert group.rebalance == Rebalance(
        started_at_ms=2_000,
        old_generation=5,
        cause=Cause(
            kind=CauseKind.LEADER_REJOINED,
            member_id=A,
            client_id="app-a",
            client_host="/10.0.0.1",
            detail="because of leader_rejoined",
        ),
        joined_at_ms=3_000,
        ended_at_ms=3_500,
        unstable_since_ms=2_000,
        completing_since_ms=3_000,
        not_before_ms=1_000,
        leader_id=A,
    )


def test_members_keep_their_first_arrival_over_generations() -> None:
    """Storms need to know who is new, so a record does not make old members new."""
    group = stable(A)
    classic.apply(group, seen(9_000, record(6, A, B, since_ms=8_000), Source.OFFSETS), OFFSETS)

    assert {m.member_id: m.joined_at_ms for m in group.members.values()} == {A: 1_000, B: 9_000}


def test_static_member_keeps_its_arrival_under_a_new_id() -> None:
    """A restarted static member is the same member."""
    group = stable()
    classic.apply(group, seen(2_000, record(6, A, instance_id="node-1"), Source.OFFSETS), OFFSETS)

    step = classic.apply(group, seen(3_000, record(6, B, instance_id="node-1"), Source.OFFSETS), OFFSETS)

    replaced = Replaced(
        at_ms=3_000,
        instance_id="node-1",
        old_id=A,
        new_id=B,
        client_id="app-a",
        client_host="/10.0.0.1",
    )
    assert step == Step(arrivals=[B], notes=[replaced])
    assert group.members == {
        B: Member(
            member_id=B,
            client_id="app-b",
            client_host="/10.0.0.1",
            instance_id="node-1",
            session_timeout_ms=6_000,
            rebalance_timeout_ms=30_000,
            joined_at_ms=2_000,
            session_base_ms=2_000,
            topics=("orders",),
            assigned={"orders": (0, 1)},
            synced=True,
            former=(A, 8_000),
        )
    }


FORMER, LATTER = f"node-1-{UUID}", f"node-1-{UUID[:-1]}1"
FIRST = Client(client_id="app-1", host="/10.0.0.1", connection="c1")
SECOND = Client(client_id="app-2", host="/10.0.0.2", connection="c2")
JOINED = JoinAnswered(
    group="g",
    member_id=LATTER,
    error_code=0,
    generation=5,
    leader_id=FORMER,
    arrived_at_ms=3_000,
    instance_id="node-1",
    client=SECOND,
)
"""The second process takes the first one's place."""


def static_record(member_id: str) -> GroupRecorded:
    what = record(5, member_id, instance_id="node-1")
    member = msgspec.structs.replace(what.members[0], client_id="app-1", client_host="/10.0.0.1")
    return msgspec.structs.replace(what, members=(member,))


def beat(member_id: str, at_ms: int, client: Client, error_code: int = 0) -> tuple[Any, Source]:
    told = {"error_code": error_code, "instance_id": "node-1"}
    what = heartbeats(at_ms, member=member_id, client=client, **told).what
    return what, Source.REQUEST_LOG


@pytest.mark.parametrize("context", [FULL, REQUESTS])
def test_a_static_member_is_replaced_in_whatever_order_that_is_read(context: Context) -> None:
    """One process holds the id afterwards, with its own client, and is the leader."""
    line = StaticMemberReplaced(group="g", instance_id="node-1", old_member_id=FORMER)
    told = [
        (line, Source.COORDINATOR_LOG),
        (static_record(LATTER), Source.OFFSETS),
        (JOINED, Source.REQUEST_LOG),
        beat(FORMER, 2_999, FIRST),  # accepted before
        beat(FORMER, 3_004, FIRST, Error.FENCED_INSTANCE_ID),
        beat(LATTER, 3_003, SECOND),
    ]
    for order in itertools.permutations(told):
        group = classic.new_group("g")
        backlog = msgspec.structs.replace(context, info_live=False, backlog=True)
        classic.apply(group, seen(1_000, static_record(FORMER), Source.OFFSETS), backlog)
        for index, (what, source) in enumerate(order):
            step = classic.apply(group, seen(3_000 + index, what, source), context)
            assert step.transitions == []

        clients = [(m.member_id, m.client_id, m.connection) for m in group.members.values()]
        assert clients == [(LATTER, "app-2", "c2")]
        assert group.leader_id == LATTER


def test_a_former_id_that_goes_on_is_the_right_one_after_all() -> None:
    """Nobody else speaks for long under an id that was given up."""
    group = classic.new_group("g")
    classic.apply(group, seen(1_000, static_record(FORMER), Source.OFFSETS), OFFSETS)
    classic.apply(group, seen(3_000, static_record(LATTER), Source.OFFSETS), OFFSETS)
    for at_ms, expected in ((8_000, LATTER), (8_001, FORMER)):
        what, source = beat(FORMER, at_ms, FIRST)
        classic.apply(group, seen(at_ms, what, source), REQUESTS)

        assert list(group.members) == [expected]


def test_records_keep_the_client_before_and_requests_tell_the_new_one() -> None:
    """The record of a replacement may be read after the first heartbeat of the process that took over."""
    group = stable(FORMER)
    classic.apply(group, seen(2_000, static_record(FORMER), Source.OFFSETS), FULL)
    classic.apply(group, seen(3_001, JOINED, Source.REQUEST_LOG), FULL)
    what, source = beat(LATTER, 3_002, SECOND)
    classic.apply(group, seen(3_002, what, source), FULL)

    classic.apply(group, seen(3_003, static_record(LATTER), Source.OFFSETS), FULL)

    member = group.members[LATTER]
    assert (member.client_id, member.client_host) == ("app-2", "/10.0.0.2")
    assert (member.last_heartbeat_ms, member.connection) == (3_002, "c2")

    classic.apply(group, seen(4_000, static_record("C"), Source.OFFSETS), FULL)

    assert group.members["C"].connection == "", "nobody heard of that process yet"


def test_record_without_rebalance_timeout_uses_the_sessions() -> None:
    """Version 0 of the record has none; Kafka falls back the same way."""
    group = classic.new_group("g")
    old = msgspec.structs.replace(record(1, A).members[0], rebalance_timeout_ms=-1)
    what = msgspec.structs.replace(record(1, A), members=(old,))

    classic.apply(group, seen(1_000, what, Source.OFFSETS), OFFSETS)

    assert group.members[A].rebalance_timeout_ms == 6_000


def test_pending_ids_are_bounded() -> None:
    """A client that asks for an id again and again (KAFKA-7610) does not fill the memory."""
    group = stable(A)
    for number in range(5_050):
        handed = MemberIdHandedOut(group="g", member_id=f"x-{number}", state="Stable")
        classic.apply(group, seen(2_000 + number, handed), FULL)

    assert (len(group.pending), next(iter(group.pending))) == (5_000, "x-50")


def test_departures_are_bounded() -> None:
    """The last 32 members that went are remembered."""
    group = stable(A)
    for number in range(40):
        classic.apply(group, seen(2_000 + number, MemberFailed(group="g", member_id=f"x-{number}")), FULL)

    assert [gone.member_id for gone in group.departures] == [f"x-{number}" for number in range(8, 40)]


def test_commits_are_kept_by_partition_and_deleted_by_tombstones() -> None:
    """The newest offset of each partition, nothing of a deleted one."""
    group = stable(A)
    commits = (
        Commit("t", 0, 5, 1_500),
        Commit("t", 1, 7, 1_501),
        Commit("u", 0, 1, 1_502),
    )
    classic.apply(group, seen(1_502, OffsetsCommitted(group="g", commits=commits), Source.OFFSETS), FULL)
    gone = (Commit("t", 0, None, 1_600), Commit("u", 0, None, 1_600))
    classic.apply(group, seen(1_600, OffsetsCommitted(group="g", commits=gone), Source.OFFSETS), FULL)

    assert (group.commits, group.last_commit_ms) == ({"t": {1: (7, 1_501)}}, 1_502)


def test_due_is_the_earliest_of_grace_and_sessions() -> None:
    """The shard is told when to look again: here the first silent member, a second after its deadline."""
    group = stable(A, B)
    for member, at_ms in ((A, 2_000), (B, 1_500)):
        classic.apply(group, heartbeats(at_ms, member=member), REQUESTS)

    assert classic.due_at(group, REQUESTS) == 1_500 + 6_000 + 1_000
    assert classic.due_at(group, FULL) is None
    assert classic.due_at(group, OFFSETS) is None


def test_nothing_is_due_before_its_time() -> None:
    """A deadline passed early does nothing."""
    group = stable(A)
    classic.apply(group, heartbeats(1_500), REQUESTS)

    assert classic.pass_time(group, 8_499, REQUESTS) == Step()
    assert len(classic.pass_time(group, 8_500, REQUESTS).transitions) == 1


def test_request_log_moves_nothing_while_the_info_log_is_live() -> None:
    """With the coordinator's own word at hand, requests only tell about members."""
    group = stable(A, B)
    requests = [
        Heartbeats(group="g", member_id=A, generation=5, error_code=27, times=(2_000,)),
        LeaveAnswered(group="g", member_id=B, error_code=0),
        Heartbeats(group="g", member_id=A, generation=5, error_code=25, times=(2_100,)),
        SyncAnswered(group="g", member_id=A, error_code=27, generation=5, arrived_at_ms=2_100),
        DeleteAnswered(group="g", error_code=0),
    ]

    steps = [classic.apply(group, seen(2_100, what, Source.REQUEST_LOG), FULL) for what in requests]

    assert [step.transitions for step in steps] == [[]] * 5
    assert (group.state, group.generation, list(group.members)) == (GroupState.STABLE, 5, [A])


# --- whatever comes, in whatever order ---------------------------------------------------------------

MEMBERS = st.sampled_from([A, B, f"app-c-{UUID}", "", "odd id"])
GENERATIONS = st.integers(0, 6)
CODES = st.sampled_from([0, 14, 16, 22, 25, 27, 79, 81, 82])
MEMBER_TUPLES = st.lists(MEMBERS, max_size=3, unique=True).map(tuple)
REASONS = st.builds(
    Reason, kind=st.sampled_from([*map(str, CauseKind), "new"]), text=st.just("why"), member_ids=MEMBER_TUPLES
)
CLIENTS = st.sampled_from([Client(), Client(client_id="app-a", host="/h", connection="c1")])
G = st.just("g")
TIMES = st.lists(st.integers(0, 60_000), min_size=1, max_size=3).map(lambda t: tuple(sorted(t)))
LINES = st.one_of(
    st.builds(MemberIdHandedOut, group=G, member_id=MEMBERS, state=st.sampled_from(["", "Stable"])),
    st.builds(MemberJoined, group=G, member_id=MEMBERS, instance_id=st.sampled_from([None, "i"])),
    st.builds(StaticMemberReplaced, group=G, instance_id=st.just("i"), old_member_id=MEMBERS),
    st.builds(RebalanceStarted, group=G, generation=GENERATIONS, reason=REASONS),
    st.builds(JoinPhaseEnded, group=G, generation=GENERATIONS, member_count=st.integers(1, 3)),
    st.builds(AssignmentReceived, group=G, generation=GENERATIONS, leader_id=MEMBERS),
    st.builds(GroupEmptied, group=G, generation=GENERATIONS),
    st.builds(MembersKicked, group=G, member_ids=MEMBER_TUPLES),
    st.builds(MemberFailed, group=G, member_id=MEMBERS),
    st.builds(PendingMemberExpired, group=G, member_id=MEMBERS),
    st.builds(MemberLeft, group=G, member_id=MEMBERS, client_reason=st.none() | st.text(max_size=3)),
    st.builds(NobodyRejoined, group=G),
    st.builds(SimpleGroupCreated, group=G),
    st.builds(GroupLoaded, group=G, group_type=st.just("classic"), member_count=st.integers(0, 2)),
    st.builds(GroupUnloaded, group=G, generation=GENERATIONS),
    st.builds(LeaderReplaced, old_leader_id=MEMBERS, new_leader_id=st.none() | MEMBERS),
    st.builds(
        InstanceFenced,
        member_id=MEMBERS,
        instance_id=st.just("i"),
        by_member_id=MEMBERS,
        operation=st.just("heartbeat"),
    ),
    st.builds(GroupsDeleted, names=G),
    st.builds(LogNoted, kind=st.just("other")),
)
RECORDS = st.one_of(
    st.builds(
        lambda generation, members, since_ms: record(generation, *members, since_ms=since_ms),
        GENERATIONS,
        MEMBER_TUPLES,
        st.integers(-1, 60_000),
    ),
    st.just(msgspec.structs.replace(record(0), protocol_type="")),
    st.builds(GroupTombstone, group=G),
    st.builds(
        lambda offset: OffsetsCommitted(group="g", commits=(Commit("t", 0, offset, 1),)),
        st.none() | st.integers(0, 9),
    ),
)
ANSWERS = st.one_of(
    st.builds(
        Heartbeats,
        group=G,
        member_id=MEMBERS,
        generation=GENERATIONS,
        error_code=CODES,
        times=TIMES,
        client=CLIENTS,
    ),
    st.builds(
        JoinAnswered,
        group=G,
        member_id=MEMBERS,
        error_code=CODES,
        generation=GENERATIONS,
        leader_id=MEMBERS,
        arrived_at_ms=st.integers(0, 60_000),
        requested_member_id=MEMBERS,
        instance_id=st.sampled_from([None, "i"]),
        session_timeout_ms=st.sampled_from([-1, 6_000]),
        rebalance_timeout_ms=st.sampled_from([-1, 5_000]),
        member_ids=MEMBER_TUPLES,
        client=CLIENTS,
    ),
    st.builds(
        SyncAnswered,
        group=G,
        member_id=MEMBERS,
        error_code=CODES,
        generation=GENERATIONS,
        arrived_at_ms=st.just(0),
        by_leader=st.booleans(),
    ),
    st.builds(
        LeaveAnswered,
        group=G,
        member_id=MEMBERS,
        error_code=CODES,
        instance_id=st.sampled_from([None, "i"]),
        client=CLIENTS,
    ),
    st.builds(
        CommitsAnswered,
        group=G,
        member_id=MEMBERS,
        generation=GENERATIONS,
        error_code=CODES,
        times=TIMES,
        client=CLIENTS,
    ),
    st.builds(DeleteAnswered, group=G, error_code=CODES),
)
SIGHTS = st.one_of(
    st.builds(
        lambda t, w, b: seen(t, w, broker=b), st.integers(0, 60_000), LINES, st.sampled_from([1, 1, 1, 2])
    ),
    st.builds(lambda t, w: seen(t, w, Source.OFFSETS), st.integers(0, 60_000), RECORDS),
    st.builds(lambda t, w: seen(t, w, Source.REQUEST_LOG), st.integers(0, 60_000), ANSWERS),
)
CONTEXTS = st.builds(
    Context,
    cluster=st.just("prod"),
    info_live=st.booleans(),
    offsets_enabled=st.booleans(),
    backlog=st.just(False),
    requests_live=st.booleans(),
)
IN_ORDER = st.lists(SIGHTS, max_size=25).map(lambda sights: sorted(sights, key=lambda s: (s.at_ms, s.source)))
IN_ANY_ORDER = st.lists(SIGHTS, max_size=25)


def run(sights: list[Seen], context: Context, *, saved: bool = False) -> tuple[Group, list[Step]]:
    """Apply everything, firing deadlines on the way; ``saved`` stores and loads the group each time."""
    group, steps = classic.new_group("g"), []
    for sight in sights:
        while (due_ms := classic.due_at(group, context)) is not None and due_ms <= sight.at_ms:
            steps.append(classic.pass_time(group, due_ms, context))
        steps.append(classic.apply(group, sight, context))
        if saved:
            group = msgspec.msgpack.decode(msgspec.msgpack.encode(group), type=Group)
    return group, steps


def is_adoption(told: Transition) -> bool:
    """Say whether a transition is one of the documented ways around the table of moves."""
    return (
        told.from_state is GroupState.DEAD
        or told.cause.kind is CauseKind.COORDINATOR_MOVED
        or told.replaces is not None
    )


@settings(max_examples=300, deadline=None)
@given(IN_ORDER | IN_ANY_ORDER, CONTEXTS)
def test_only_legal_moves_and_documented_adoptions(sights: list[Seen], context: Context) -> None:
    """Whatever comes, a transition is a move of Kafka's table, or says why it is not."""
    _, steps = run(sights, context)

    told = [transition for step in steps for transition in step.transitions]
    assert [t for t in told if not can_move(t.from_state, t.to_state) and not is_adoption(t)] == []


@settings(max_examples=300, deadline=None)
@given(IN_ORDER | IN_ANY_ORDER, CONTEXTS)
def test_a_generation_falls_only_for_a_reason(sights: list[Seen], context: Context) -> None:
    """Only a new life, a new coordinator or a corrected guess lead to a smaller generation."""
    _, steps = run(sights, context)

    told = [t for step in steps for t in step.transitions]
    falls = [after for before, after in itertools.pairwise(told) if after.generation < before.generation]
    assert [fall for fall in falls if not is_adoption(fall)] == []


@settings(max_examples=200, deadline=None)
@given(IN_ORDER | IN_ANY_ORDER, CONTEXTS)
def test_saving_and_loading_changes_nothing(sights: list[Seen], context: Context) -> None:
    """A group that is stored and loaded between any two observations ends the same and says the same."""
    assert run(sights, context, saved=True) == run(sights, context)


@settings(max_examples=200, deadline=None)
@given(IN_ORDER, CONTEXTS, st.data())
def test_each_transition_is_told_once(sights: list[Seen], context: Context, data: st.DataObject) -> None:
    """The coordinator's lines and records seen twice give the transitions of seeing them once."""
    log = [sight for sight in sights if sight.source is not Source.REQUEST_LOG]
    twice = [copy for sight in log for copy in ([sight, sight] if data.draw(st.booleans()) else [sight])]

    once_told = [t.id for step in run(log, context)[1] for t in step.transitions]
    twice_told = [t.id for step in run(twice, context)[1] for t in step.transitions]
    assert twice_told == once_told


@settings(max_examples=100, deadline=None)
@given(IN_ORDER)
def test_backlog_says_nothing(sights: list[Seen]) -> None:
    """What stood before the first start changes the group and is never told."""
    context = Context("prod", info_live=False, offsets_enabled=True, backlog=True)
    group, steps = run(sights, context)

    assert steps == [Step()] * len(steps)
    assert group.rebalances == {}


# --- the short way of heartbeats ---------------------------------------------------------------------


WORDS = st.sampled_from(["", "a", "b"])


def _commits(*times: int, client: Client) -> CommitsAnswered:
    return CommitsAnswered(group="g", member_id=A, generation=5, error_code=0, times=times, client=client)


@given(
    beats=st.lists(st.integers(1, 2_000), min_size=1, max_size=4).map(sorted),
    client=st.builds(Client, client_id=WORDS, host=WORDS, connection=WORDS, software=WORDS),
    before=st.integers(1, 3),
    context=st.sampled_from([FULL, REQUESTS]),
    backlog=st.booleans(),
    is_commit=st.booleans(),
)
def test_quiet_requests_do_the_same_the_short_way(
    beats: list[int], client: Client, before: int, context: Context, *, backlog: bool, is_commit: bool
) -> None:
    """Whatever is quiet leaves the same group behind and says nothing, either way."""
    group = stable(A, B, context=context)
    classic.apply(group, heartbeats(1_100, member=B), context)  # tells where the coordinator is
    for number in range(before):
        classic.apply(group, heartbeats(1_200 + number, client=Client(client_id="c")), context)
    beat = heartbeats(*(1_150 + time for time in beats), client=client)
    if is_commit:
        what: Any = beat.what
        beat = seen(beat.at_ms, _commits(*what.times, client=client), beat.source)
    assert are_quiet(group, [Run(0, beat)])
    other = msgspec.msgpack.decode(msgspec.msgpack.encode(group), type=Group)

    step = classic.apply(group, beat, msgspec.structs.replace(context, backlog=backlog))

    assert step == Step()
    assert classic.beat(other, beat)
    assert other == group


@pytest.mark.parametrize(
    "beat",
    [
        heartbeats(2_000, protocol="consumer"),
        heartbeats(2_000, member="nobody"),
        seen(900, _commits(900, client=Client())),
        seen(2_000, SyncAnswered(group="g", member_id=A, error_code=0, generation=5, arrived_at_ms=1_990)),
    ],
    ids=["modern protocol", "unknown member", "commit in another life", "neither heartbeat nor commit"],
)
def test_what_is_more_than_a_heartbeat_goes_the_long_way(beat: Seen) -> None:
    """Nothing is lost of what the short way does not know."""
    group = stable(A)
    group.loaded_ms = 950
    before = msgspec.msgpack.encode(group)

    assert not classic.beat(group, beat)
    assert msgspec.msgpack.encode(group) == before


def test_what_waits_for_the_log_is_looked_at_with_each_heartbeat() -> None:
    """A record that ran ahead of its lines must not wait longer because heartbeats go the short way."""
    group = stable(A)
    classic.apply(group, seen(1_500, record(7, A, since_ms=1_400), Source.OFFSETS), FULL)

    assert group.held_record is not None
    assert not classic.beat(group, heartbeats(2_000))
