"""Consumer, share and streams groups: their state from their records, and who holds them up."""

import itertools
from typing import Any

import msgspec
import pytest

from coordinator_model.decoding.coordinator_log import parse_coordinator_line
from coordinator_model.decoding.modern_records import part_of
from coordinator_model.groups import table as classic
from coordinator_model.groups.core.turn import Context
from coordinator_model.groups.modern.names import learn
from coordinator_model.groups.modern.progress import Why, hold_ups
from coordinator_model.kafka.states import GroupState
from coordinator_model.observations.base import Source
from coordinator_model.observations.log import LogNoted, ModernMemberGone
from coordinator_model.observations.modern_records import (
    Assignment,
    Current,
    GroupEpoch,
    MemberMetadata,
    MemberState,
    Regex,
    Target,
    TargetEpoch,
    TopicNames,
    Topology,
)
from coordinator_model.observations.records import (
    GroupRecorded,
    GroupTombstone,
    MemberRecord,
    ModernRecord,
    ModernWrite,
)
from coordinator_model.observations.requests import Heartbeats
from coordinator_model.observations.seen import Seen
from coordinator_model.ordering.buffered import Buffered
from coordinator_model.shard.report import report_of
from coordinator_model.shard.snapshot import decode_group, encode_group
from coordinator_model.shard.writes import gather
from coordinator_model.state.group import Group
from coordinator_model.state.modern import Modern, ModernMember, state_of
from tests.unit.made_seen import seen

ALONE = Context("c", info_live=False, offsets_enabled=True, backlog=False)
S = GroupState
OFFSETS_OF = {"consumer": (3, 6, 5, 7, 8), "share": (11, 12, 10, 13, 14), "streams": (17, 20, 19, 21, 22)}
"""Group type -> record types of group, target, member, member's target, current assignment."""


def record(kind: int, held: Any, member: str = "", group_type: str = "consumer") -> ModernRecord:
    return ModernRecord(
        group="g",
        group_type=group_type,
        record_type=kind,
        name="",
        tombstone=held is None,
        member_id=member,
        part=held,
    )


def shown(what: Any, at_ms: int, offset: int = 0) -> Seen:
    return seen(at_ms, what, Source.OFFSETS, offset=offset)


def metadata(name: str, **more: Any) -> MemberMetadata:
    return MemberMetadata(client_id=name, client_host="/10.0.0.1", **{"topics": ("t",), **more})


def current(
    epoch: int, state: MemberState = MemberState.STABLE, assigned: Assignment | None = None, **more: Any
) -> Current:
    return Current(epoch=epoch, previous_epoch=0, state=state, assigned=assigned or {}, **more)


def life(group_type: str) -> list[ModernRecord]:
    """Return the records of a group with one member that has all it shall have, at epoch 2."""
    epoch, target, member, members_target, assignment = OFFSETS_OF[group_type]
    return [
        record(member, metadata("a"), "a", group_type),
        record(epoch, GroupEpoch(epoch=2), "", group_type),
        record(members_target, Target(assigned={"T": (0,)}), "a", group_type),
        record(target, TargetEpoch(epoch=2), "", group_type),
        record(assignment, current(2, assigned={"T": (0,)}), "a", group_type),
    ]


def apply(group: Group, *records: Any, at_ms: int = 1_000, context: Context = ALONE) -> list[Any]:
    """Apply records written as one and return (from, to, cause) of the transitions."""
    write = ModernWrite(group="g", records=records)
    step = classic.apply(group, shown(write, at_ms), context)
    return [(one.from_state, one.to_state, str(one.cause.kind)) for one in step.transitions]


# --- state -----------------------------------------------------------------------------------------------


def member(name: str, now: Current | None) -> ModernMember:
    return ModernMember(member_id=name, metadata=metadata(name), current=now)


@pytest.mark.parametrize(
    ("group_type", "modern", "expected"),
    [
        pytest.param("consumer", Modern(epoch=3, assignment_epoch=2), S.EMPTY, id="nobody-is-empty"),
        pytest.param(
            "consumer",
            Modern(epoch=3, assignment_epoch=2, members={"a": member("a", current(2))}),
            S.ASSIGNING,
            id="a-target-older-than-the-group-is-assigning",
        ),
        pytest.param(
            "consumer",
            Modern(epoch=3, assignment_epoch=3, members={"a": member("a", current(2))}),
            S.RECONCILING,
            id="a-member-behind-is-reconciling",
        ),
        pytest.param(
            "consumer",
            Modern(
                epoch=3, assignment_epoch=3, members={"a": member("a", current(3, MemberState.UNRELEASED))}
            ),
            S.RECONCILING,
            id="a-member-that-waits-is-reconciling",
        ),
        pytest.param(
            "consumer",
            Modern(epoch=3, assignment_epoch=3, members={"a": member("a", None)}),
            S.RECONCILING,
            id="a-member-without-assignment-is-reconciling",
        ),
        pytest.param(
            "consumer",
            Modern(epoch=3, assignment_epoch=3, members={"a": member("a", current(3))}),
            S.STABLE,
            id="all-there-is-stable",
        ),
        pytest.param(
            "share",
            Modern(epoch=3, assignment_epoch=2, members={"a": member("a", current(2))}),
            S.STABLE,
            id="a-share-group-with-members-is-stable",
        ),
        pytest.param(
            "streams",
            Modern(epoch=3, assignment_epoch=3, members={"a": member("a", current(3))}),
            S.NOT_READY,
            id="streams-without-topology-are-not-ready",
        ),
        pytest.param(
            "streams",
            Modern(
                epoch=3,
                assignment_epoch=3,
                topology_epoch=1,
                valid_topology_epoch=0,
                members={"a": member("a", current(3))},
            ),
            S.NOT_READY,
            id="streams-whose-topology-is-not-validated-are-not-ready",
        ),
        pytest.param(
            "streams",
            Modern(
                epoch=3,
                assignment_epoch=2,
                topology_epoch=0,
                valid_topology_epoch=0,
                members={"a": member("a", current(3))},
            ),
            S.ASSIGNING,
            id="streams-that-are-ready-assign",
        ),
    ],
)
def test_state(group_type: str, modern: Modern, expected: GroupState) -> None:
    """The state that the broker would answer follows from epochs and members alone."""
    assert state_of(modern, group_type) is expected


@pytest.mark.parametrize("group_type", ["consumer", "share"])
def test_compacted_records_of_a_group_come_in_any_order(group_type: str) -> None:
    """However compaction has shuffled them, the last record of each key makes the same group."""
    pictures = set()
    for order in itertools.permutations(life(group_type)):
        group = classic.new_group("g")
        for one in order:
            classic.apply(group, shown(one, 1_000), ALONE)
        pictures.add((group.state, group.generation, tuple(group.members), group.group_type))

    assert pictures == {(S.STABLE, 2, ("a",), group_type)}


def test_a_streams_group_becomes_ready_when_its_topics_are_found() -> None:
    """NotReady ends with the epoch that validates the topology."""
    group = classic.new_group("g")
    first = [one for one in life("streams") if one.record_type != 17]
    topology = record(23, Topology(epoch=0, topics=("t",)), "", "streams")
    unready = record(17, GroupEpoch(epoch=2), "", "streams")
    ready = record(17, GroupEpoch(epoch=3, topology_epoch=0), "", "streams")

    assert apply(group, topology, unready, *first) == [(S.DEAD, S.NOT_READY, "member_joined")]
    assert apply(group, ready, at_ms=2_000) == [(S.NOT_READY, S.ASSIGNING, "partitions_changed")]


def test_a_share_group_stays_stable_while_its_partitions_are_prepared() -> None:
    """Epochs and assignments move on, the state does not; each epoch is a rebalance all the same."""
    group = classic.new_group("g")
    names = TopicNames(names={"T": "orders"}, initializing={"T": (0,)})
    apply(group, record(10, metadata("a"), "a", "share"), record(11, GroupEpoch(epoch=2), "", "share"))
    moved = apply(
        group,
        record(15, names, "", "share"),
        record(11, GroupEpoch(epoch=3), "", "share"),
        record(14, current(3, assigned={"T": (0,)}), "a", "share"),
        at_ms=2_000,
    )

    assert moved == []
    assert (group.state, group.generation) == (S.STABLE, 3)
    assert group.rebalances == {"member_joined": 1, "partitions_changed": 1}
    assert group.members["a"].assigned == {"orders": (0,)}


def test_old_tombstones_of_another_type_end_nothing() -> None:
    """Tombstones of the classic record, of members unknown, and of another type are passed over."""
    group = classic.new_group("g")
    apply(group, *life("consumer"))
    classic.apply(group, shown(GroupTombstone(group="g"), 2_000), ALONE)
    apply(group, record(8, None, "x"), record(7, None, "x"), record(5, None, "x"), at_ms=2_001)
    apply(group, record(11, None, "", "share"), at_ms=2_002)

    assert (group.state, list(group.members)) == (S.STABLE, ["a"])


def test_a_group_that_died_comes_back_as_any_type() -> None:
    """A new life may be a classic group's."""
    group = classic.new_group("g")
    apply(group, *life("share"))
    apply(group, *(record(kind, None, "a", "share") for kind in (14, 13, 10)), at_ms=2_000)
    gone = apply(group, record(12, None, "", "share"), record(11, None, "", "share"), at_ms=3_000)
    created = GroupRecorded(
        group="g", generation=0, protocol_type="", protocol=None, leader_id=None, state_since_ms=1, members=()
    )
    classic.apply(group, shown(created, 4_000), ALONE)

    assert gone == [(S.EMPTY, S.DEAD, "group_deleted")]
    assert (group.state, group.group_type, group.modern) == (S.EMPTY, "classic", None)


def test_a_saved_group_is_the_same() -> None:
    """All of it survives saving."""
    group = classic.new_group("g")
    apply(group, *life("consumer"))

    assert decode_group(encode_group(group)) == group


# --- writes ----------------------------------------------------------------------------------------------


def test_records_of_one_write_are_put_together() -> None:
    """Neighbours of one time are one write, conversions included; classic records alone stay as they are."""
    tombstone, beat = GroupTombstone(group="g"), LogNoted(kind="x", group="g")
    first, second = life("consumer")[:2]
    held = [
        Buffered(at_ms, shown(what, at_ms, offset))
        for offset, (at_ms, what) in enumerate(
            [(10, tombstone), (20, tombstone), (20, first), (20, second), (30, first), (30, beat)]
        )
    ]

    assert [(one.order_ms, one.seen.what) for one in gather(held)] == [
        (10, tombstone),
        (20, ModernWrite(group="g", records=(tombstone, first, second))),
        (30, ModernWrite(group="g", records=(first,))),
        (30, beat),
    ]


def test_a_torn_write_would_flicker() -> None:
    """What the gathering is for: record by record, a join makes a group pass through states nobody saw."""
    torn, whole = classic.new_group("g"), classic.new_group("g")
    apply(torn, *life("consumer"))
    apply(whole, *life("consumer"))
    joining = [
        record(5, metadata("b"), "b"),
        record(3, GroupEpoch(epoch=3)),
        record(6, TargetEpoch(epoch=3)),
        record(8, current(3, assigned={"T": (0,)}), "a"),
        record(8, current(3), "b"),
    ]

    assert [move for one in joining for move in apply(torn, one, at_ms=2_000)] != []
    assert apply(whole, *joining, at_ms=2_000) == []
    assert (whole.state, whole.generation, list(whole.members)) == (S.STABLE, 3, ["a", "b"])


# --- who holds up reconciliation ---------------------------------------------------------------------------


def test_who_holds_up_reconciliation() -> None:
    """Those that others wait for come first, each with what it has to give up, until when."""
    modern = Modern(
        epoch=5,
        assignment_epoch=5,
        names={"T": "orders"},
        members={
            "wait": ModernMember(
                member_id="wait",
                metadata=metadata("wait"),
                current=current(5, MemberState.UNRELEASED, {"T": (0,)}),
                since_ms=10,
            ),
            "hold": ModernMember(
                member_id="hold",
                metadata=metadata("hold", rebalance_timeout_ms=3_000),
                current=current(4, MemberState.UNREVOKED, {"T": (1,)}, revoking={"T": (2,)}),
                since_ms=20,
            ),
            "late": ModernMember(
                member_id="late",
                metadata=metadata("late"),
                current=current(4, assigned={"T": (3,)}),
                since_ms=5,
            ),
            "away": ModernMember(
                member_id="away", metadata=metadata("away"), current=current(-2), since_ms=30
            ),
            "done": ModernMember(member_id="done", metadata=metadata("done"), current=current(5), since_ms=1),
        },
        targets={"wait": {"T": (0, 2, 3)}, "late": {}, "away": {"T": (9,)}},
    )

    found = [(one.member_id, one.why, one.partitions, one.held_by, one.until_ms) for one in hold_ups(modern)]
    assert found == [
        ("late", Why.BEHIND, {"orders": (3,)}, {}, -1),
        ("hold", Why.REVOKING, {"orders": (2,)}, {}, 3_020),
        ("away", Why.AWAY, {"orders": (9,)}, {}, -1),
        ("wait", Why.WAITING, {"orders": (2, 3)}, {"hold": {"orders": (2,)}, "late": {"orders": (3,)}}, -1),
    ]


def test_the_report_tells_epochs_and_targets() -> None:
    """The picture for people holds what ConsumerGroupDescribe answers, and why it is not there yet."""
    group = classic.new_group("g")
    apply(group, *life("consumer"), record(8, current(1), "a"))
    report = report_of(group, at_ms=2_000)

    assert report.progress is not None
    assert (report.progress.epoch, report.progress.assignment_epoch) == (2, 2)
    assert [one.why for one in report.progress.held_up_by] == [Why.BEHIND]
    told = report.members[0].progress
    assert told is not None
    assert (told.epoch, told.protocol, told.subscribed, told.target) == (1, "consumer", ("t",), {"t": (0,)})


# --- names -----------------------------------------------------------------------------------------------


def test_names_that_leave_no_doubt_are_concluded() -> None:
    """A topic assigned to several is one that all subscribe; each name is one topic's."""
    modern = Modern(
        epoch=1,
        assignment_epoch=1,
        members={"a": member("a", None), "b": member("b", None)},
        targets={"a": {"T": (0,)}, "b": {"T": (1,), "U": (0,)}},
    )
    modern.members["b"].metadata = metadata("b", topics=("t", "u"))
    learn(modern, "consumer")

    assert modern.names == {"T": "t", "U": "u"}


def test_names_in_doubt_stay_ids() -> None:
    """Two topics that every member subscribes cannot be told apart."""
    modern = Modern(
        epoch=1,
        assignment_epoch=1,
        members={"a": ModernMember(member_id="a", metadata=metadata("a", topics=("t", "u")))},
        targets={"a": {"T": (0,), "U": (0,)}},
    )
    learn(modern, "consumer")

    assert modern.names == {}


# --- parts and lines ---------------------------------------------------------------------------------------


def test_member_states_are_numbered_by_type() -> None:
    """Streams groups begin to count at one; a number nobody knows is unknown."""
    tasks = dict.fromkeys(
        (
            f"{kind}Tasks{ending}"
            for kind in ("active", "standby", "warmup")
            for ending in ("", "PendingRevocation")
        ),
        (),
    )
    epochs = {"memberEpoch": 1, "previousMemberEpoch": 0}
    found = {}
    for state in (0, 1, 2, 3, 127):
        ours = part_of(8, {}, {**epochs, "state": state, "assignedPartitions": ()})
        theirs = part_of(22, {}, {**epochs, "state": state, **tasks})
        assert isinstance(ours, Current)
        assert isinstance(theirs, Current)
        found[state] = (str(ours.state), str(theirs.state))

    assert found == {
        0: ("stable", "unknown"),
        1: ("unrevoked", "stable"),
        2: ("unreleased", "unrevoked"),
        3: ("unknown", "unreleased"),
        127: ("unknown", "unknown"),
    }


FENCED = "[GroupId {g}] Member m-1 fenced from the group because "
LEFT = "has left group through explicit `LeaveGroup` request; client reason: "


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("[GroupId {g}] Member m-1 left the consumer group.", "member_left"),
        ("[GroupId {g}] Member m-1 left the share group.", "member_left"),
        ("[GroupId {g}][MemberId m-1] Member m-1 left the streams group.", "member_left"),
        ("[GroupId {g}] Static member m-1 with instance id i left the consumer group.", "member_left"),
        (f"{FENCED}the member session expired.", "session_timeout"),
        (f"{FENCED.replace('Member', 'Streams member')}the member session expired..", "session_timeout"),
        (f"{FENCED}it failed to transition from epoch 3 within 5ms.", "rebalance_timeout"),
        (f"{FENCED}the classic member failed to join within the rebalance timeout.", "rebalance_timeout"),
        (f"{FENCED}the member failed to sync within timeout.", "sync_timeout"),
        (f"[GroupId {{g}}] Dynamic member m-1 {LEFT}consumer poll timeout has expired.", "poll_timeout"),
    ],
)
@pytest.mark.parametrize("group", ["g", "a] Member x left the consumer group. [b"])
def test_how_members_go(line: str, kind: str, group: str) -> None:
    """Each sentence names group and member, whatever the group is called."""
    text = line.replace("{g}", group)
    told = parse_coordinator_line(
        f"[GroupCoordinator id=1 topic=__consumer_offsets partition=7] {text}"
    ).observation

    assert isinstance(told, ModernMemberGone)
    assert (told.group, told.member_id, told.kind) == (group, "m-1", kind)


def test_a_static_member_that_goes_for_a_while_has_not_left() -> None:
    """Its session goes on; the line is only counted."""
    text = "[GroupId g] Static member m with instance id i temporarily left the consumer group."
    told = parse_coordinator_line(
        f"[GroupCoordinator id=1 topic=__consumer_offsets partition=7] {text}"
    ).observation

    assert told == LogNoted(kind="modern_member_away", group="g")


def test_heartbeats_of_a_group_nobody_knows_make_no_classic_one() -> None:
    """Until its records are read, nothing is known of it."""
    group = classic.new_group("g")
    beat = Heartbeats(
        group="g", member_id="m", generation=3, error_code=0, times=(1_000,), protocol="consumer"
    )
    classic.apply(group, shown(beat, 1_000), ALONE)

    assert (group.state, group.members) == (S.DEAD, {})


@pytest.mark.parametrize("runs", [((2_000, 5_000, 8_000),), ((2_000,), (5_000, 8_000))])
def test_heartbeats_tell_the_same_however_they_are_folded(runs: tuple[tuple[int, ...], ...]) -> None:
    """The first and the last of them count."""
    group = classic.new_group("g")
    apply(group, *life("consumer"))
    for times in runs:
        beats = Heartbeats(
            group="g", member_id="a", generation=2, error_code=0, times=times, protocol="consumer"
        )
        classic.apply(group, shown(beats, times[-1]), ALONE)

    assert (group.members["a"].first_beat_ms, group.members["a"].last_heartbeat_ms) == (2_000, 8_000)


def test_a_streams_line_names_its_group() -> None:
    """The member stands behind the group in brackets of its own, and is no part of the group's name."""
    text = "[GroupId g][MemberId m] Member joins the streams group."
    told = parse_coordinator_line(
        f"[GroupCoordinator id=1 topic=__consumer_offsets partition=7] {text}"
    ).observation

    assert told == LogNoted(kind="modern_member_joined", group="g")


def test_a_group_is_so_for_others_when_its_write_is_replicated() -> None:
    """While a replica is missed, a coordinator goes on with what it wrote, and answers as before."""
    group = classic.new_group("g")
    late = tuple(msgspec.structs.replace(one, uncommitted_ms=5_500) for one in life("consumer"))

    (told,) = classic.apply(group, shown(ModernWrite(group="g", records=late), 1_000), ALONE).transitions

    assert (told.to_state, told.at_ms, told.recorded_at_ms) == (GroupState.STABLE, 5_500, 1_000)


def test_a_conversion_counts_the_rebalance_that_it_begins() -> None:
    """It begins with the generation that the classic group had, which is no new one."""
    group = classic.new_group("g")
    recorded = GroupRecorded(
        group="g", generation=3, protocol_type="", protocol=None, leader_id=None, state_since_ms=1, members=()
    )
    classic.apply(group, shown(recorded, 500), ALONE)
    tombstone, epochs = GroupTombstone(group="g"), [record(3, GroupEpoch(epoch=epoch)) for epoch in (3, 4)]
    moved = apply(group, tombstone, record(5, metadata("a"), "a"), *epochs)

    assert moved == [(S.EMPTY, S.ASSIGNING, "protocol_changed")]
    assert group.rebalances["protocol_changed"] == 1


def test_a_static_member_that_comes_back_as_a_classic_one_makes_the_group_classic() -> None:
    """The last member of the new protocol is replaced, not gone."""
    group = classic.new_group("g")
    apply(group, record(5, metadata("a", instance_id="i"), "a"), record(3, GroupEpoch(epoch=2)))
    back = MemberRecord(
        member_id="b", client_id="b", client_host="/10.0.0.1", session_timeout_ms=6_000, instance_id="i"
    )
    recorded = GroupRecorded(
        group="g",
        generation=2,
        protocol_type="consumer",
        protocol="range",
        leader_id="b",
        state_since_ms=2_000,
        members=(back,),
    )
    gone = [record(kind, None, "a") for kind in (8, 7, 5)]
    moved = apply(group, *gone, record(6, None), record(3, None), recorded, at_ms=2_000)

    assert moved == [(S.ASSIGNING, S.PREPARING_REBALANCE, "protocol_changed")]
    assert (group.group_type, list(group.members), group.departures) == ("classic", ["b"], ())


def test_a_group_whose_first_write_tells_no_epoch_is_at_its_first() -> None:
    """A member that subscribes by an expression joins before anything is known of topics (4.3: epoch 1)."""
    group = classic.new_group("g")
    joined = apply(group, record(5, metadata("a", topics=(), regex="^t.*"), "a"), record(8, current(1), "a"))
    resolved = apply(
        group,
        record(16, Regex(expression="^t.*", topics=("t",))),
        record(3, GroupEpoch(epoch=2)),
        at_ms=2_000,
    )

    assert joined == [(S.DEAD, S.STABLE, "member_joined")]
    assert resolved == [(S.STABLE, S.ASSIGNING, "subscription_changed")]
    assert (group.generation, group.members["a"].topics) == (2, ("t",))
