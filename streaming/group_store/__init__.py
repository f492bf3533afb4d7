"""Facts about groups from the shards' reports; probes, refilling and the server read them."""

from streaming.group_store.kept import KeptCluster, KeptGroup, RebuildingRow
from streaming.group_store.lag import Lag
from streaming.group_store.store import GroupStore

__all__ = [
    "GroupStore",
    "KeptCluster",
    "KeptGroup",
    "Lag",
    "RebuildingRow",
]
