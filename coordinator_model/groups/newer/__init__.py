"""Groups of the newer protocols: KIP-848 consumer groups, share groups and streams groups."""

from coordinator_model.groups.newer.progress import (
    GroupProgress,
    MemberProgress,
    member_progress,
    progress_of,
)
from coordinator_model.groups.newer.table import apply, begin_anew, converts, leftovers, takes

__all__ = [
    "GroupProgress",
    "MemberProgress",
    "apply",
    "begin_anew",
    "converts",
    "leftovers",
    "member_progress",
    "progress_of",
    "takes",
]
