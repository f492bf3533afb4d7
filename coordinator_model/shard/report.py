"""The report of one group to /metrics, /api and the page: JSON, names as in the API."""

import msgspec

from coordinator_model.groups.core import Context, known_at, unknown
from coordinator_model.groups.modern import GroupProgress, MemberProgress, member_progress, progress_of
from coordinator_model.groups.offsets import open_claims
from coordinator_model.kafka import GroupState
from coordinator_model.state import Group, Member


class MemberReport(msgspec.Struct, frozen=True, kw_only=True):
    """One member for people; -1 and "" mean that no source shows it."""

    member_id: str
    client_id: str
    client_host: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    last_heartbeat_ms: int
    assigned: dict[str, tuple[int, ...]] | None
    progress: MemberProgress | None = None
    """Epochs and target assignment of a member of a consumer, share or streams group."""


class GroupReport(msgspec.Struct, frozen=True, kw_only=True):
    """One group for people and metrics, as of ``at_ms``."""

    group: str
    group_type: str
    state: GroupState
    state_since_ms: int
    generation: int
    leader_id: str | None
    protocol: str | None
    protocol_type: str
    coordinator: int
    members: tuple[MemberReport, ...]
    pending: int
    rebalances: dict[str, int]
    last_rebalance: dict[str, int | str] | None
    """started_at_ms, joined_at_ms, ended_at_ms (-1: not yet) and cause; once it has ended, partitions,
    partition_ms (time without an owner), moved, least (moves that were needed), reread, and for newer
    protocols assigning_ms and reconciling_ms (-1: unknown)."""
    commits: dict[str, dict[int, tuple[int, int]]]
    last_commit_ms: int
    last_seen_ms: int
    at_ms: int
    removed: bool = False
    """Whether the group is gone (deleted, denied, forgotten): drop its series."""
    progress: GroupProgress | None = None
    """Epochs of a consumer, share or streams group, and the members that hold up its reconciliation."""
    known_at_ms: int = -1
    """Newest time at which a source proved the state; after it, the state is only the last known one."""
    unknown: tuple[str, ...] = ()
    """What no live source shows (``knowledge.py``): running_rebalances, causes, heartbeats,

    refused_requests.
    """
    claimed: dict[str, dict[int, int]] = {}
    """Topic -> partition -> producer: pending transactional offsets, which count if it commits."""


def report_of(
    group: Group, *, at_ms: int, removed: bool = False, context: Context | None = None
) -> GroupReport:
    """Return the report of ``group`` as it is; ``context`` says which sources are live."""
    last = group.rebalance
    return GroupReport(
        group=group.group,
        group_type=group.group_type,
        state=group.state,
        state_since_ms=group.state_since_ms,
        generation=group.generation,
        leader_id=group.leader_id,
        protocol=group.protocol,
        protocol_type=group.protocol_type,
        coordinator=group.coordinator,
        members=tuple(
            MemberReport(
                member_id=m.member_id,
                client_id=m.client_id,
                client_host=m.client_host,
                instance_id=m.instance_id,
                session_timeout_ms=m.session_timeout_ms,
                rebalance_timeout_ms=m.rebalance_timeout_ms,
                last_heartbeat_ms=m.last_heartbeat_ms,
                assigned=m.assigned,
                progress=_progress(group, m),
            )
            for m in group.members.values()
        ),
        pending=len(group.pending),
        rebalances=dict(group.rebalances),
        last_rebalance=None
        if last is None
        else {
            "started_at_ms": last.started_at_ms,
            "joined_at_ms": last.joined_at_ms,
            "ended_at_ms": last.ended_at_ms,
            "cause": str(last.cause.kind),
            **_cost(group),
        },
        commits=group.commits,
        last_commit_ms=group.last_commit_ms,
        last_seen_ms=group.last_seen_ms,
        at_ms=at_ms,
        removed=removed,
        known_at_ms=-1 if context is None else known_at(group, context, at_ms),
        unknown=() if context is None else unknown(group, context),
        claimed=open_claims(group),
        progress=None if group.modern is None else progress_of(group.modern),
    )


def _progress(group: Group, member: Member) -> MemberProgress | None:
    modern = group.modern
    known = None if modern is None else modern.members.get(member.member_id)
    if modern is None or known is None:
        return None
    return member_progress(modern, known, group.group_type)


def _cost(group: Group) -> dict[str, int]:
    """Return what the last rebalance cost, once it has ended and as far as it is known."""
    costs, last = group.costs, group.rebalance
    if costs is None or costs.last is None or last is None or last.ended_at_ms < 0:
        return {}
    if costs.generation != group.generation:
        return {}
    return {name: int(getattr(costs.last, name)) for name in costs.last.__struct_fields__}
