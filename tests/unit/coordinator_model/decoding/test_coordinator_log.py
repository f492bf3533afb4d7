"""The coordinator's own words, of Kafka 4.x and 3.x, and texts that imitate them."""

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model import observations as on
from coordinator_model.decoding.coordinator_log import LENGTH_MAX, Parsed, parse_coordinator_line
from coordinator_model.decoding.coordinator_reasons import REASONS, ReasonShape, reason_of, split_ids
from coordinator_model.decoding.coordinator_shapes import SHAPES, LogLineError, Shape
from coordinator_model.decoding.line_text import open_line
from coordinator_model.decoding.templates import Template
from coordinator_model.kafka.hashing import shard_of
from coordinator_model.observations.log import (
    AssignmentReceived,
    GroupDied,
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
    ShardLoaded,
    ShardLoading,
    ShardUnloaded,
    SimpleGroupCreated,
    StaticMemberReplaced,
)

SHARDS = 50
JAVA = "[GroupCoordinator id=1 topic=__consumer_offsets partition=7] "
RUNTIME = "[GroupCoordinator id=1] "
SCALA = "[GroupCoordinator 3]: "
MANAGER = "[GroupMetadataManager brokerId=3] "
A = "cA-ca3b18a3-a3f6-4c3f-a3e3-e97c3daff200"
B = "cB, (x)-0b3b18a3-a3f6-4c3f-a3e3-e97c3daff201"
IMITATION = "a in state PreparingRebalance with old generation 3 (reason: x)."


def started(group: str, generation: int, kind: str, text: str, **fields: object) -> RebalanceStarted:
    """Return the observation of one started rebalance."""
    reason = Reason(kind=kind, text=text, **fields)  # type: ignore[arg-type]
    return RebalanceStarted(group=group, generation=generation, reason=reason)


JAVA_LINES = [
    pytest.param(
        "Dynamic member with unknown member id joins group g 1 in Empty state. "
        f"Created a new member id {A} and requesting the member to rejoin with this id.",
        MemberIdHandedOut(group="g 1", member_id=A, state="Empty"),
        id="a-dynamic-member-gets-an-id",
    ),
    pytest.param(
        f"Dynamic member with unknown member id joins group g in state Stable. Created a new member id {A} "
        "and added the member to the group.",
        MemberJoined(group="g", member_id=A),
        id="an-old-client-joins-at-once",
    ),
    pytest.param(
        f"Pending dynamic member with id {B} joins group g in Stable state. Adding to the group now.",
        MemberJoined(group="g", member_id=B),
        id="a-pending-member-comes-back",
    ),
    pytest.param(
        "Static member with groupInstanceId=i 1 and unknown member id joins group g in Empty state. "
        f"Created a new member id {A} for this member and added to the group.",
        MemberJoined(group="g", member_id=A, instance_id="i 1"),
        id="a-static-member-joins",
    ),
    pytest.param(
        "Static member with groupInstanceId=i and unknown member id joins group g in Stable state. "
        f"Replacing previously mapped member {A} with this groupInstanceId.",
        StaticMemberReplaced(group="g", instance_id="i", old_member_id=A),
        id="a-static-member-is-replaced",
    ),
    pytest.param(
        "Stabilized group g generation 4 with 2 members.",
        JoinPhaseEnded(group="g", generation=4, member_count=2),
        id="the-join-phase-ends",
    ),
    pytest.param(
        f"Assignment received from leader {A} for group g for group x for generation 4. "
        "The group has 2 members, 1 of which are static.",
        AssignmentReceived(group="g for group x", generation=4, leader_id=A, member_count=2),
        id="the-leader-delivers",
    ),
    pytest.param(
        "Group g with generation 4 is now empty with generation 5 is now empty.",
        GroupEmptied(group="g with generation 4 is now empty", generation=5),
        id="the-group-is-empty",
    ),
    pytest.param(
        f"Group g removed dynamic members who haven't joined: [{A}, {B}]",
        MembersKicked(group="g", member_ids=(A, B)),
        id="members-are-kicked",
    ),
    pytest.param(
        f"Member {A} in group g has failed, removing it from the group.",
        MemberFailed(group="g", member_id=A),
        id="a-session-expires",
    ),
    pytest.param(
        f"Pending member {A} in group g has been removed after session timeout expiration.",
        PendingMemberExpired(group="g", member_id=A),
        id="a-pending-member-expires",
    ),
    pytest.param(
        f"[Group g] Member {A} has left group through explicit `LeaveGroup` request; "
        "client reason: consumer poll timeout has expired.",
        MemberLeft(group="g", member_id=A, client_reason="consumer poll timeout has expired."),
        id="a-member-leaves-because-it-did-not-poll",
    ),
    pytest.param(
        f"[Group g] Pending member {A} has left group through explicit `LeaveGroup` request; "
        "client reason: not provided",
        MemberLeft(group="g", member_id=A, pending=True),
        id="a-pending-member-leaves-without-a-reason",
    ),
    pytest.param(
        "Group g could not complete rebalance because no members rejoined.",
        NobodyRejoined(group="g"),
        id="nobody-rejoins",
    ),
    pytest.param(
        f"Group leader [memberId: {A}, groupInstanceId: None] failed to join before the rebalance timeout. "
        f"Member ClassicGroupMember(memberId='{B}', groupInstanceId='', clientId='cB, (x)', "
        "clientHost='/10.0.0.7', rebalanceTimeoutMs=300000, sessionTimeoutMs=45000, "
        "protocolType='consumer', supportedProtocols=[range, sticky]) was elected as the new leader.",
        LeaderReplaced(old_leader_id=A, new_leader_id=B),
        id="a-new-leader",
    ),
    pytest.param(
        f"Group leader [memberId: {A}, groupInstanceId: i] failed to join before the rebalance timeout and "
        "the group couldn't proceed to the next generation because no member joined.",
        LeaderReplaced(old_leader_id=A, new_leader_id=None),
        id="no-new-leader",
    ),
    pytest.param(
        f"Request memberId={A} for static member with groupInstanceId=i is fenced by existing memberId={B} "
        "during operation txn-offset-commit",
        InstanceFenced(member_id=A, instance_id="i", by_member_id=B, operation="txn-offset-commit"),
        id="an-instance-is-fenced",
    ),
    pytest.param(
        "The following groups were deleted: g1, g2. A total of 2 offsets were removed.",
        GroupsDeleted(names="g1, g2"),
        id="groups-are-deleted",
    ),
    pytest.param(
        "The following groups were deleted: . A total of 0 offsets were removed.",
        LogNoted(kind="nothing_deleted"),
        id="no-group-is-deleted",
    ),
    pytest.param(
        "[GroupId g] Creating a simple consumer group via manual offset commit.",
        SimpleGroupCreated(group="g"),
        id="a-manual-commit-makes-a-group",
    ),
    pytest.param(
        "Loaded classic group g with 3 members.",
        GroupLoaded(group="g", group_type="classic", member_count=3),
        id="a-group-is-loaded",
    ),
    pytest.param(
        "[GroupId=g] Unloading group metadata for generation 3.",
        GroupUnloaded(group="g", generation=3),
        id="a-group-is-unloaded",
    ),
    pytest.param(
        "Static member which joins during Stable stage and doesn't affect the selected protocol "
        "will not trigger a rebalance.",
        LogNoted(kind="static_join_without_rebalance"),
        id="a-static-join-without-rebalance",
    ),
    pytest.param(
        f"[GroupId g] Member {A} joins the consumer group using the consumer protocol.",
        LogNoted(kind="modern_member_joined", group="g"),
        id="a-kip-848-member-joins",
    ),
    pytest.param("Something new.", LogNoted(kind="unrecognized"), id="a-sentence-we-do-not-know"),
]


@pytest.mark.parametrize(("message", "expected"), JAVA_LINES)
def test_java_coordinator(message: str, expected: on.AnyObservation) -> None:
    """Each sentence of Kafka 4's coordinator says what happened, in which partition, on which broker."""
    assert parse_coordinator_line(JAVA + message) == Parsed(expected, 7, 1)


@pytest.mark.parametrize(
    ("message", "expected", "partition"),
    [
        (
            f"{SCALA}Preparing to rebalance group g in state PreparingRebalance with old generation 4 "
            f"(__consumer_offsets-12) (reason: Removing member {A} on LeaveGroup; "
            "client reason: consumer poll timeout has expired.)",
            started(
                "g",
                4,
                "poll_timeout",
                f"Removing member {A} on LeaveGroup; client reason: consumer poll timeout has expired.",
                member_ids=(A,),
                client_reason="consumer poll timeout has expired.",
            ),
            12,
        ),
        (
            f"{SCALA}Stabilized group g generation 5 (__consumer_offsets-12) with 1 members",
            JoinPhaseEnded(group="g", generation=5, member_count=1),
            12,
        ),
        (
            f"{SCALA}Group g with generation 6 is now empty (__consumer_offsets-12)",
            GroupEmptied(group="g", generation=6),
            12,
        ),
        (
            f"{SCALA}Group g removed dynamic members who haven't joined: Set({A}, {B})",
            MembersKicked(group="g", member_ids=(A, B)),
            None,
        ),
        (
            f"{SCALA}Member {A} in group g has failed, removing it from the group",
            MemberFailed(group="g", member_id=A),
            None,
        ),
        (
            f"{SCALA}Member MemberMetadata(memberId={A}, groupInstanceId=Some(i), clientId=cA, "
            "clientHost=/10.0.0.7, sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, "
            "supportedProtocols=List(range)) has left group g through explicit `LeaveGroup`; "
            "client reason: the consumer is being closed",
            MemberLeft(group="g", member_id=A, client_reason="the consumer is being closed"),
            None,
        ),
        (
            f"{SCALA}Dynamic member with unknown member id joins group g in Empty state. "
            f"Created a new member id {A} and request the member to rejoin with this id.",
            MemberIdHandedOut(group="g", member_id=A, state="Empty"),
            None,
        ),
        (
            f"{SCALA}Dynamic Member with unknown member id joins group g in Empty state. "
            f"Created a new member id {A} for this member and add to the group.",
            MemberJoined(group="g", member_id=A),
            None,
        ),
        (
            f"{SCALA}Request memberId={A} for static member with groupInstanceId=i is fenced by current "
            f"memberId={B} during operation heartbeat",
            InstanceFenced(member_id=A, instance_id="i", by_member_id=B, operation="heartbeat"),
            None,
        ),
        (
            f"Group leader [member.id: {A}, group.instance.id: None] failed to join before "
            "rebalance timeout, "
            f"while new leader MemberMetadata(memberId={B}, groupInstanceId=None, clientId=cB) was elected.",
            LeaderReplaced(old_leader_id=A, new_leader_id=B),
            None,
        ),
        (
            f"{MANAGER}Scheduling loading of offsets and group metadata from __consumer_offsets-12 "
            "for epoch 4",
            ShardLoading(epoch=4),
            12,
        ),
        (
            f"{MANAGER}Finished loading offsets and group metadata from __consumer_offsets-12 in 9 "
            "milliseconds "
            "for epoch 4, of which 1 milliseconds was spent in the scheduler.",
            ShardLoaded(epoch=4),
            12,
        ),
        (
            f"{MANAGER}Finished unloading __consumer_offsets-12 for coordinator epoch Some(4). "
            "Removed 0 cached offsets and 0 cached groups.",
            ShardUnloaded(),
            12,
        ),
        (
            f"{SCALA}Loading group metadata for g with generation 3",
            GroupLoaded(group="g", group_type="classic", member_count=-1, generation=3),
            None,
        ),
        (
            f"Loaded member MemberMetadata(memberId={A}, groupInstanceId=None, clientId=cA, "
            "clientHost=/10.0.0.7, sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, "
            "supportedProtocols=List(range)) in group g with generation 3.",
            LogNoted(kind="member_loaded", group="g"),
            None,
        ),
        (
            f"{MANAGER}Group g transitioned to Dead in generation 3",
            GroupDied(group="g", generation=3),
            None,
        ),
        (
            f"{RUNTIME}Scheduling loading of metadata from __consumer_offsets-12 with epoch 4",
            ShardLoading(epoch=4),
            12,
        ),
        (
            f"{RUNTIME}Finished loading of metadata from __consumer_offsets-12 with epoch 4 in 9ms where 1ms "
            "was spent in the scheduler. Loaded 3 records which total to 99 bytes.",
            ShardLoaded(epoch=4),
            12,
        ),
        (
            f"{RUNTIME}Finished unloading metadata for __consumer_offsets-12 with epoch OptionalInt[5].",
            ShardUnloaded(),
            12,
        ),
    ],
)
def test_names_its_partition(message: str, expected: on.AnyObservation, partition: int | None) -> None:
    """Kafka 3's sentences, and the runtime's, name their partition in the text or not at all."""
    assert parse_coordinator_line(message)[:2] == (expected, partition)


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        (
            f"Adding new member {A} with group instance id null; client reason: need to re-join with the "
            f"given member-id: {A}",
            "member_joined",
            {"member_ids": (A,), "client_reason": f"need to re-join with the given member-id: {A}"},
        ),
        (
            f"Adding new member {A} with group instance id i; client reason: not provided",
            "member_joined",
            {"member_ids": (A,), "instance_id": "i"},
        ),
        (f"Member {A} joining group during PreparingRebalance", "member_joined", {"member_ids": (A,)}),
        (
            f"Updating metadata for member {A} during Stable; client reason: not provided",
            "subscription_changed",
            {"member_ids": (A,)},
        ),
        (
            f"Updating metadata for member {A} during Stable; client reason: need to revoke "
            "partitions and re-join",
            "subscription_changed",
            {"member_ids": (A,), "client_reason": "need to revoke partitions and re-join"},
        ),
        (
            f"Updating metadata for member {A} during Stable; client reason: cached metadata has changed",
            "partitions_changed",
            {"member_ids": (A,), "client_reason": "cached metadata has changed"},
        ),
        (
            f"Leader {A} re-joining group during Stable; client reason: not provided",
            "leader_rejoined",
            {"member_ids": (A,)},
        ),
        (
            f"Leader {A} re-joining group during Stable; client reason: cached metadata has changed from x",
            "partitions_changed",
            {"member_ids": (A,), "client_reason": "cached metadata has changed from x"},
        ),
        (f"removing member {A} on heartbeat expiration.", "session_timeout", {"member_ids": (A,)}),
        (f"Removing [{A}, {B}] on pending sync request expiration", "sync_timeout", {"member_ids": (A, B)}),
        (f"Removing Set({A}) on pending sync request expiration", "sync_timeout", {"member_ids": (A,)}),
        (
            f"Removing HashSet({A}, {B}) on pending sync request expiration",
            "sync_timeout",
            {"member_ids": (A, B)},
        ),
        (
            f"Error NOT_COORDINATOR when storing group assignment during SyncGroup (member: {A})",
            "unknown",
            {"member_ids": (A,)},
        ),
        (f"explicit `LeaveGroup` request for ({A}) members.", "member_left", {"member_ids": (A,)}),
        ("explicit `LeaveGroup` request for () members.", "member_left", {}),
        (
            f"Group's selectedProtocol will change because static member {A} with instance id i joined with "
            "change of protocol; client reason: not provided",
            "protocol_changed",
            {"member_ids": (A,), "instance_id": "i"},
        ),
        (
            f"Updating metadata for static member {A} with instance id i; client reason: not provided",
            "static_member_replaced",
            {"member_ids": (A,), "instance_id": "i"},
        ),
        ("Freshly-loaded group g (size 3) is over capacity 2.", "coordinator_moved", {}),
        ("Downgrade group g from consumer to classic for member leaving.", "protocol_changed", {}),
        (
            f"Error NOT_COORDINATOR when storing group assignmentduring SyncGroup (member: {A}).",
            "unknown",
            {"member_ids": (A,)},
        ),
        ("something new", "unknown", {}),
    ],
)
def test_reasons(text: str, kind: str, fields: dict[str, object]) -> None:
    """The reason of a rebalance becomes a cause of the contract and keeps its words, also within its line."""
    line = (
        f"{JAVA}Preparing to rebalance group g in state PreparingRebalance with old generation 4 "
        f"(reason: {text})."
    )

    assert reason_of(text) == Reason(kind=kind, text=text, **fields)  # type: ignore[arg-type]
    assert parse_coordinator_line(line).observation == started("g", 4, kind, text, **fields)


LOGS = Path(__file__).parents[3] / "golden" / "logs"


def _logged(version: str) -> list[str]:
    lines = (LOGS / f"sentences-{version}.log").read_text(encoding="utf-8").splitlines()
    return [open_line(line).message for line in lines]


def _read_by(message: str) -> tuple[str, str]:
    """Return the template that reads a line, or its reason, and from where it is known."""
    text = re.sub(r"^\[Group\w+ [^\]]*\]:? ", "", message)
    if text.startswith("Preparing"):
        what = parse_coordinator_line(message).observation
        assert isinstance(what, RebalanceStarted)
        said = what.reason.text
        return next(
            (template.sentence, shape.known)
            for strict in (True, False)
            for shape in REASONS
            for template in shape.templates
            if template.read(said, strict=strict)
        )
    shape = next(shape for shape in SHAPES if shape.template.read(text))
    return shape.template.sentence, shape.known


@pytest.mark.parametrize("version", ["4.3.1", "3.9.2", "3.4.1"])
def test_sentences_of_running_brokers(version: str) -> None:
    """Every line that a real broker of this version logged is of a known sentence."""
    kinds = {getattr(parse_coordinator_line(message).observation, "kind", "") for message in _logged(version)}

    assert "unrecognized" not in kinds
    assert {known for _, known in map(_read_by, _logged(version))} >= {f"{version[0]}+", "4+ 3+"}


@pytest.mark.parametrize(("mark", "versions"), [("4+", ["4.3.1"]), ("3+", ["3.9.2", "3.4.1"])])
def test_sentences_that_are_said_to_be_seen_were_seen(mark: str, versions: list[str]) -> None:
    """The table says of each sentence on which running brokers it was seen: exactly those that are kept."""
    shapes: list[Shape | ReasonShape] = [*SHAPES, *REASONS]
    claimed = {shape for shape in shapes if mark in shape.known.split()}
    for version in versions:
        read = {sentence for sentence, _ in map(_read_by, _logged(version))}
        seen = {shape for shape in shapes if read & {one.sentence for one in _templates(shape)}}

        assert seen == claimed


def _templates(shape: Shape | ReasonShape) -> tuple[Template, ...]:
    return (shape.template,) if isinstance(shape, Shape) else shape.templates


@pytest.mark.parametrize("version", ["4.3.1", "3.9.2", "3.4.1"])
def test_elected_leaders_of_running_brokers(version: str) -> None:
    """The new leader is printed whole, with its client and timeouts; only its id is taken."""
    told = [parse_coordinator_line(message).observation for message in _logged(version)]
    elected = [what for what in told if isinstance(what, LeaderReplaced) and what.new_leader_id]

    assert elected
    for what in elected:
        assert re.fullmatch(
            r"duel-[\w-]+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", what.new_leader_id or ""
        )


@pytest.mark.parametrize("group", [IMITATION, "a b", "x (reason: y).", "[Group z] Member q", "`é\n`", '"'])
def test_group_that_imitates_the_line(group: str) -> None:
    """A group id that contains the coordinator's own words is still read whole."""
    reason = f"Adding new member {A} with group instance id null; client reason: not provided"
    line = (
        f"{JAVA}Preparing to rebalance group {group} in state PreparingRebalance "
        f"with old generation 9 (reason: {reason})."
    )

    assert parse_coordinator_line(line).observation == started(
        group, 9, "member_joined", reason, member_ids=(A,)
    )


@pytest.mark.parametrize(("tail", "shard_count"), [("removing member x", SHARDS), ("because", None)])
def test_client_reason_that_imitates_the_line(tail: str, shard_count: int | None) -> None:
    """A client reason with the coordinator's words is not taken for the group."""
    client = f"x in state PreparingRebalance with old generation 1 (reason: {tail}"
    reason = f"Adding new member {A} with group instance id null; client reason: {client}"
    partition = shard_of("g", SHARDS)
    line = (
        f"[GroupCoordinator id=1 topic=__consumer_offsets partition={partition}] Preparing to "
        "rebalance group g "
        f"in state PreparingRebalance with old generation 9 (reason: {reason})."
    )

    assert parse_coordinator_line(line, shard_count=shard_count).observation == started(
        "g", 9, "member_joined", reason, member_ids=(A,), client_reason=client
    )


def test_leaving_reason_that_imitates_the_line() -> None:
    """The shorter group is taken where only that one lives in the line's partition."""
    client = f"bye] Member {A} has left group through explicit `LeaveGroup` request; client reason: no"
    line = (
        f"[GroupCoordinator id=1 topic=__consumer_offsets partition={shard_of('g', SHARDS)}] [Group "
        f"g] Member {A} "
        f"has left group through explicit `LeaveGroup` request; client reason: {client}"
    )

    assert parse_coordinator_line(line, shard_count=SHARDS).observation == MemberLeft(
        group="g", member_id=A, client_reason=client
    )


def test_stack_trace_below() -> None:
    """An ERROR with its stack trace in one event is read by its first line."""
    message = (
        f"{JAVA}Group g could not complete rebalance because no members rejoined.\njava.lang.X: y\n\tat z"
    )

    assert parse_coordinator_line(message).observation == NobodyRejoined(group="g")


@pytest.mark.parametrize(
    "message", ["", "Kafka Server started", "[ShareCoordinator id=1] Starting up.", "Stabilized group g"]
)
def test_other_loggers(message: str) -> None:
    """Lines of other loggers are nothing to us."""
    assert parse_coordinator_line(message) == Parsed(None, None, None)


@pytest.mark.parametrize("number", ["99999999999999999999", "2147483648", "-2147483649", "9" * 10_000])
@pytest.mark.parametrize(
    "sentence",
    [
        "Stabilized group g generation {} with 1 members.",
        "Stabilized group g generation 1 with {} members.",
        "Group g with generation {} is now empty.",
        "Preparing to rebalance group g in state Stable with old generation {} (reason: x).",
        "Finished loading of metadata from __consumer_offsets-12 with epoch {} in 9ms",
        "Scheduling loading of metadata from __consumer_offsets-12 with epoch {}",
    ],
)
def test_numbers_beyond_kafkas_types(sentence: str, number: str) -> None:
    """A number that Kafka cannot have written is out of range: no observation, and no other sentence."""
    if "Finished unloading" in sentence:
        assert parse_coordinator_line(JAVA + sentence.format(number)).observation == ShardUnloaded()
        return
    with pytest.raises(LogLineError) as error:
        parse_coordinator_line(JAVA + sentence.format(number))

    assert error.value.reason == "out_of_range"


@pytest.mark.parametrize(
    "prefix",
    [
        "[GroupCoordinator id=9999999999] ",
        "[GroupCoordinator 99999999999999]: ",
        "[GroupMetadataManager brokerId=2147483648] ",
        "[GroupCoordinator id=1 topic=__consumer_offsets partition=9999999999] ",
    ],
)
def test_broker_and_partition_beyond_kafkas_types(prefix: str) -> None:
    """So is a line whose prefix names a broker or a partition that cannot be."""
    with pytest.raises(LogLineError, match="out_of_range"):
        parse_coordinator_line(f"{prefix}Stabilized group g generation 1 with 1 members.")


def test_longest_line() -> None:
    """A line of absurd length is noted, not searched."""
    message = f"{JAVA}Preparing to rebalance group " + "g" * LENGTH_MAX

    assert parse_coordinator_line(message).observation == LogNoted(kind="too_long")


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", ()),
        ("[]", ()),
        ("a, b", ("a", "b")),
        (f"[{B}, {A}]", (B, A)),
        (f"HashSet({A})", (A,)),
    ],
)
def test_lists_of_members(text: str, ids: tuple[str, ...]) -> None:
    """A printed list gives its ids, also where client ids contain the separator."""
    assert split_ids(text) == ids


@settings(deadline=None)
@given(st.sampled_from(SHAPES), st.lists(st.text(max_size=20), max_size=6), st.text(max_size=20))
def test_no_line_raises(shape: Shape, words: list[str], tail: str) -> None:
    """Whatever follows the beginning of a sentence, reading it gives an answer."""
    start = shape.template.start
    parsed = parse_coordinator_line(JAVA + start + " in group ".join(words) + tail, shard_count=SHARDS)

    assert parsed.observation is not None


@settings(deadline=None)
@given(st.text())
def test_no_text_raises(message: str) -> None:
    """Whatever the text, reading it gives an answer."""
    assert isinstance(parse_coordinator_line(message, shard_count=SHARDS), Parsed)


_NUMBERS = st.integers(-(2**70), 2**70).map(str) | st.just("9" * 5_000)
_WORDS = st.sampled_from(
    [piece for shape in SHAPES for piece in re.split(r"\{\w+\}", shape.template.sentence)]
)
_NAMES = st.lists(_WORDS | st.text(max_size=9), max_size=4).map("".join)


@settings(deadline=None)
@given(st.sampled_from(SHAPES), st.data())
def test_sentences_with_wild_values(shape: Shape, data: st.DataObject) -> None:
    """A sentence with any names and numbers gives what can be packed, or is out of range."""
    parts = re.split(r"\{(\w+)\}", shape.template.sentence)
    for index in range(1, len(parts), 2):
        numeric = parts[index] in {"n", "k", "static", "partition", "epoch"}
        parts[index] = data.draw(_NUMBERS if numeric else _NAMES)
    try:
        parsed = parse_coordinator_line(JAVA + "".join(parts), shard_count=SHARDS)
    except LogLineError:
        return

    assert msgspec.msgpack.encode(parsed.observation)
