"""Facts of groups from reports: what probes and the server both read."""

from streaming.group_store.api import GroupDetail, Problem, schema
from streaming.group_store.picture import RebuildingRow
from streaming.group_store.view import View

__all__ = [
    "GroupDetail",
    "Problem",
    "RebuildingRow",
    "View",
    "schema",
]
