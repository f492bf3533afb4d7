"""Groups of the modern protocols: KIP-848 consumer groups, share groups and streams groups."""

from coordinator_model.groups.modern.from_records import (
    begin_anew,
    converts,
    group_recorded,
    groups_deleted,
    ignored,
    leftovers,
    modern_write,
    wait,
    waited,
)
from coordinator_model.groups.modern.lines import (
    commits_answered,
    epoch_answered,
    heartbeats,
    join_answered,
    leave_answered,
    modern_member_gone,
    sync_answered,
)
from coordinator_model.groups.modern.progress import (
    GroupProgress,
    MemberProgress,
    member_progress,
    progress_of,
)

__all__ = [
    "GroupProgress",
    "MemberProgress",
    "begin_anew",
    "commits_answered",
    "converts",
    "epoch_answered",
    "group_recorded",
    "groups_deleted",
    "heartbeats",
    "ignored",
    "join_answered",
    "leave_answered",
    "leftovers",
    "member_progress",
    "modern_member_gone",
    "modern_write",
    "progress_of",
    "sync_answered",
    "wait",
    "waited",
]
