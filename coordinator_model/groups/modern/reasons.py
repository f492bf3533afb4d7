"""Finds the cause of a modern group's transition, from its records and the logs."""

from coordinator_model.groups.core import DETAIL_MAX, cause_by
from coordinator_model.groups.modern.membership import Passage
from coordinator_model.groups.modern.replay import Changes
from coordinator_model.kafka import REMOVALS, TIMEOUTS, CauseKind, GroupState
from coordinator_model.state import AWAY, Cause, Group, Modern


def why(group: Group, modern: Modern, changes: Changes, passage: Passage, to: GroupState) -> Cause:
    """Return why one write made a transition: what made the coordinator write it."""
    if passage.went:
        return _departure(group, passage, to)
    cause = _membership(group, modern, changes, passage)
    if cause is not None:
        return cause
    if changes.epochs or to is GroupState.NOT_READY:
        return _resolved(group, modern, changes) or _bump(group, changes)
    return _progress(group, modern, changes)


def _departure(group: Group, passage: Passage, to: GroupState) -> Cause:
    """Return the departure as a cause; of several the first member that the coordinator removed."""
    member_id = next((m for m, one in passage.went.items() if one.how in REMOVALS), next(iter(passage.went)))
    going = passage.went[member_id]
    kind = going.how
    if to is GroupState.EMPTY and kind not in TIMEOUTS:
        kind = CauseKind.ALL_MEMBERS_LEFT
    text = f"{going.text}; client reason: {going.client_reason}" if going.client_reason else going.text
    return cause_by(group, kind, member_id, text)


def _membership(group: Group, modern: Modern, changes: Changes, passage: Passage) -> Cause | None:
    if passage.came:
        detail = "" if len(passage.came) == 1 else f"{len(passage.came)} members"
        # A conversion writes the records of the members that it takes over before those of the joining one.
        return cause_by(group, CauseKind.MEMBER_JOINED, passage.came[-1], detail)
    for old, new in passage.replaced.items():
        return cause_by(group, CauseKind.STATIC_MEMBER_REPLACED, new, f"in place of {old}"[:DETAIL_MAX])
    for member_id in changes.wants_else:
        return cause_by(group, CauseKind.SUBSCRIPTION_CHANGED, member_id, _wants(modern, member_id))
    for member_id in changes.moved:
        if modern.members[member_id].epoch == AWAY:
            detail = "a static member went for a while"
            return cause_by(group, CauseKind.MEMBER_LEFT, member_id, detail)
    return None


def _wants(modern: Modern, member_id: str) -> str:
    metadata = modern.members[member_id].metadata
    if metadata is None:
        return ""
    regex = f" and {metadata.regex}" if metadata.regex else ""
    return f"subscribes to {', '.join(metadata.topics)}{regex}"


def _resolved(group: Group, modern: Modern, changes: Changes) -> Cause | None:
    """Return the member whose expression was resolved for the first time, which happens after its join."""
    for member_id, member in modern.members.items():
        if member.metadata is not None and member.metadata.regex in changes.resolved:
            detail = f"topics of {member.metadata.regex} were found"
            return cause_by(group, CauseKind.SUBSCRIPTION_CHANGED, member_id, detail)
    return None


def _bump(group: Group, changes: Changes) -> Cause:
    """Return why the epoch grew although no member changed."""
    if changes.topology_changed:
        return Cause(kind=CauseKind.SUBSCRIPTION_CHANGED, detail="another topology")
    if changes.topics_changed:
        return Cause(kind=CauseKind.PARTITIONS_CHANGED)
    if changes.updated:
        return cause_by(group, CauseKind.PROTOCOL_CHANGED, changes.updated[0], "other member metadata")
    return Cause(kind=CauseKind.UNKNOWN)


def _progress(group: Group, modern: Modern, changes: Changes) -> Cause:
    """Return how far the group came: the write asks nothing new of it."""
    if changes.retargeted:
        return Cause(kind=CauseKind.ASSIGNMENT_STORED, detail=f"target for epoch {modern.assignment_epoch}")
    for member_id in changes.moved:
        epoch = modern.members[member_id].epoch
        return cause_by(group, CauseKind.ASSIGNMENT_STORED, member_id, f"reached epoch {epoch}")
    return Cause(kind=CauseKind.UNKNOWN)
