"""Observations from the coordinator's INFO log."""

import msgspec

from coordinator_model.observations.base import GroupObservation, Observation


class Reason(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """Why a rebalance started, as the coordinator and the client put it (KIP-800).

    ``kind`` is a cause kind of the contract (``member_joined``, ``session_timeout`` …).
    ``text`` is the coordinator's whole reason, cut to 1,000 characters.
    """

    kind: str
    text: str
    member_ids: tuple[str, ...] = ()
    instance_id: str | None = None
    client_reason: str | None = None


class MemberIdHandedOut(GroupObservation, tag="id", frozen=True, kw_only=True):
    """A dynamic member got an id and must come back with it (error 79): a pending member."""

    member_id: str
    state: str = ""


class MemberJoined(GroupObservation, tag="join", frozen=True, kw_only=True):
    """A member was added to the group (second join step, an old client, or a new static member)."""

    member_id: str
    instance_id: str | None = None


class StaticMemberReplaced(GroupObservation, tag="repl", frozen=True, kw_only=True):
    """A static member came back under a new id; the log names only the old one."""

    instance_id: str
    old_member_id: str


class RebalanceStarted(GroupObservation, tag="prep", frozen=True, kw_only=True):
    """The line "Preparing to rebalance": the group is in PreparingRebalance, still at ``generation``."""

    generation: int
    reason: Reason


class JoinPhaseEnded(GroupObservation, tag="stab", frozen=True, kw_only=True):
    """The line "Stabilized": the group entered CompletingRebalance with this new generation."""

    generation: int
    member_count: int


class AssignmentReceived(GroupObservation, tag="asgn", frozen=True, kw_only=True):
    """The leader delivered its assignment; Stable follows when the record is committed."""

    generation: int
    leader_id: str
    member_count: int = -1


class GroupEmptied(GroupObservation, tag="empty", frozen=True, kw_only=True):
    """The join phase ended with nobody in the group."""

    generation: int


class MembersKicked(GroupObservation, tag="kick", frozen=True, kw_only=True):
    """Dynamic members that did not rejoin before the rebalance timeout were removed."""

    member_ids: tuple[str, ...]


class MemberFailed(GroupObservation, tag="fail", frozen=True, kw_only=True):
    """The coordinator removed a member whose session timed out."""

    member_id: str


class PendingMemberExpired(GroupObservation, tag="pexp", frozen=True, kw_only=True):
    """A pending member never came back with its id."""

    member_id: str


class MemberLeft(GroupObservation, tag="left", frozen=True, kw_only=True):
    """A member sent LeaveGroup; ``client_reason`` is None where the client gave none."""

    member_id: str
    client_reason: str | None = None
    pending: bool = False


class NobodyRejoined(GroupObservation, tag="nobody", frozen=True, kw_only=True):
    """Only static members are left and none rejoined; the join timer was armed again."""


class SimpleGroupCreated(GroupObservation, tag="simple", frozen=True, kw_only=True):
    """A manual commit created a group without members."""


class GroupLoaded(GroupObservation, tag="gload", frozen=True, kw_only=True):
    """A new coordinator loaded the group; ``group_type`` is classic, consumer, share or streams."""

    group_type: str
    member_count: int
    """-1: the line (3.x) has no number."""
    generation: int = -1
    """-1: the line (4.x) has no generation."""


class GroupUnloaded(GroupObservation, tag="gunload", frozen=True, kw_only=True):
    """The broker unloaded the group: its offsets partition went to another broker."""

    generation: int


class GroupDied(GroupObservation, tag="died", frozen=True, kw_only=True):
    """The cleanup (3.x) found the group empty and without offsets.

    A group that was never more than a simple one leaves no tombstone there.
    """

    generation: int


class ModernMemberGone(GroupObservation, tag="mgone", frozen=True, kw_only=True):
    """A member of a consumer, share or streams group left or was fenced; its record does not say which."""

    member_id: str
    kind: str
    """A cause kind: member_left or one of the timeouts."""
    text: str
    client_reason: str | None = None
    """Only members that speak the classic protocol give one."""


class LeaderReplaced(Observation, tag="lead", frozen=True, kw_only=True):
    """The leader did not rejoin and another was elected (None: nobody); the line names no group."""

    old_leader_id: str
    new_leader_id: str | None


class InstanceFenced(Observation, tag="fence", frozen=True, kw_only=True):
    """A request of a static member was refused (error 82); the line names no group."""

    member_id: str
    instance_id: str
    by_member_id: str
    operation: str


class InstanceRefused(GroupObservation, tag="irefd", frozen=True, kw_only=True):
    """A request of a static member of a consumer group (KIP-848) was refused; the line names the group."""

    member_id: str
    instance_id: str
    by_member_id: str
    fenced: bool
    """True: the sender was replaced; False: it wanted to join while another member has the id (error 111)."""


class GroupConverted(GroupObservation, tag="conv", frozen=True, kw_only=True):
    """The group's type changed: its classic members joined under a modern protocol, or back again."""

    to_classic: bool


class GroupsDeleted(Observation, tag="del", frozen=True, kw_only=True):
    """DeleteGroups: the names as logged, joined by ", ", which a group id may contain as well."""

    names: str


class ShardLoading(Observation, tag="loading", frozen=True, kw_only=True):
    """A broker begins to load this offsets partition, as leader of ``epoch``."""

    epoch: int


class ShardLoaded(Observation, tag="loaded", frozen=True, kw_only=True):
    """A broker has loaded this offsets partition."""

    epoch: int


class ShardUnloaded(Observation, tag="unloaded", frozen=True, kw_only=True):
    """A broker has unloaded this offsets partition."""


class ShardStalled(Observation, tag="stalled", frozen=True, kw_only=True):
    """The coordinator answered that a write to this offsets partition was not replicated in time."""

    group: str
    """The group of the request; the partition's other groups wait as well."""
    since_ms: int
    """When the coordinator was asked."""


class LogNoted(Observation, tag="note", frozen=True, kw_only=True):
    """A coordinator line that is known and changes nothing in a classic group; ``kind`` names it."""

    kind: str
    group: str | None = None
