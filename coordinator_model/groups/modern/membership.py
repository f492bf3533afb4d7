"""Keeps ``Group.members`` in step with a modern group's records: members, arrivals and departures."""

from dataclasses import dataclass, field

from coordinator_model.groups.core import MEMBERS_MAX, Turn, depart, rename, restart_session
from coordinator_model.groups.modern import departures
from coordinator_model.groups.modern.departures import Going
from coordinator_model.groups.modern.names import named
from coordinator_model.groups.modern.progress import plus
from coordinator_model.groups.modern.replay import Changes
from coordinator_model.kafka import CauseKind
from coordinator_model.state import STREAMS, Basis, Member, Modern, ModernMember


@dataclass(slots=True)
class Passage:
    """The members that joined and left in one write."""

    came: list[str] = field(default_factory=list)
    went: dict[str, Going] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    """Old id of a static member -> its new one."""

    def unexplained(self) -> str:
        """Return a member that left for an unknown reason, "" if there is none."""
        inferred = (name for name, one in self.went.items() if one.basis is Basis.INFERRED)
        return next(inferred, "")


def follow(turn: Turn, modern: Modern, changes: Changes, *, renamed: bool) -> Passage:
    """Update the members and return who joined and left; ``renamed``: names of topics were learned."""
    passage = Passage()
    for member_id, before in changes.gone.items():
        if member_id not in modern.members or member_id in changes.joined:
            _goes(turn, modern, before, changes, passage)
    group = turn.group
    for member_id, member in modern.members.items():
        if member_id not in group.members and len(group.members) < MEMBERS_MAX:
            newcomer = Member(member_id=member_id, joined_at_ms=turn.at_ms, rejoined=True)
            restart_session(newcomer, turn.at_ms, may_set_back=True)
            group.members[member_id] = newcomer
            turn.step.arrivals.append(member_id)
            passage.came.append(member_id)
        if member_id in group.members and (renamed or member_id in changes.touched):
            fill_in(group.members[member_id], modern, member, group.group_type)
    return passage


def _goes(turn: Turn, modern: Modern, before: ModernMember, changes: Changes, passage: Passage) -> None:
    successor = departures.replaced(turn.group, modern, before, changes.joined)
    if successor:
        passage.replaced[before.member_id] = successor
        modern.hints.pop(before.member_id, None)
        if before.member_id in turn.group.members:
            rename(turn, before.member_id, successor)
        return
    how = departures.how_it_went(turn, modern, before)
    passage.went[before.member_id] = how
    depart(turn, before.member_id, how.how, basis=how.basis, reason=how.client_reason)


def fill_in(member: Member, modern: Modern, known: ModernMember, group_type: str) -> None:
    """Fill in a member from its records."""
    metadata = known.metadata
    if metadata is not None:
        member.client_id, member.client_host = metadata.client_id, metadata.client_host
        member.instance_id = metadata.instance_id
        member.session_timeout_ms = metadata.classic_session_ms
        member.rebalance_timeout_ms = metadata.rebalance_timeout_ms
        topics = set(metadata.topics)
        topics.update(modern.regexes.get(metadata.regex, ()) if metadata.regex else ())
        member.topics = tuple(sorted(topics))
    # As brokers describe it: a consumer group's member keeps what it has to give up until it confirms.
    is_tasks = group_type == STREAMS
    held = known.assigned if is_tasks else plus(known.assigned, known.revoking)
    member.assigned = named(modern, held)


def leave_behind(turn: Turn, modern: Modern) -> None:
    """Remove classic members that a conversion did not take over; how they left is unknown."""
    for member_id in [m for m in turn.group.members if m not in modern.members]:
        depart(turn, member_id, CauseKind.UNKNOWN, basis=Basis.INFERRED)
