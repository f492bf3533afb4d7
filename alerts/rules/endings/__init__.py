"""Rules about the end of groups and of their offsets."""

from alerts.rules.endings.group_deleted import GROUP_DELETED
from alerts.rules.endings.offsets_expiring import OFFSETS_EXPIRING

__all__ = [
    "GROUP_DELETED",
    "OFFSETS_EXPIRING",
]
