"""One cluster of the group store, in the form that the asking thread needs."""

from collections.abc import Iterable, Mapping

from streaming.driver.probing.choosing import TypeAndState
from streaming.group_store import GroupStore


class ClusterView:
    """See ``asking.MirrorView``."""

    def __init__(self, store: GroupStore, cluster: str) -> None:
        self._store = store
        self._cluster = cluster

    def groups(self) -> Mapping[str, TypeAndState]:
        """Return every group with type and state."""
        found = self._store.types_and_states(self._cluster)
        return {name: TypeAndState(*one) for name, one in found.items()}

    def group(self, group: str) -> TypeAndState | None:
        """Return one group's type and state; None if the mirror does not have it."""
        found = self._store.members(self._cluster, group)
        return None if found is None else TypeAndState(*found[:2])

    def members(self, group: str) -> frozenset[str]:
        """Return the ids of a group's members."""
        found = self._store.members(self._cluster, group)
        return frozenset() if found is None else found[2]

    def topics(self) -> Iterable[str]:
        """Return the topics that groups read."""
        return self._store.committed_topics(self._cluster)

    def last_failover(self) -> tuple[int, str] | None:
        """Return when a broker last logged that it loads or unloads a shard, and which; None: none did."""
        return self._store.last_failover(self._cluster)

    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """Return every group with the topics that it commits to."""
        return self._store.readers(self._cluster)

    def commits(self, group: str) -> Mapping[str, Mapping[int, tuple[int, int]]]:
        """Return topic -> partition -> (offset, epoch ms) of one group."""
        return self._store.commits(self._cluster, group)

    def take_ends(self, ends: Mapping[str, Mapping[int, tuple[int, int]]]) -> None:
        """Store where topics end: topic -> partition -> (end offset, epoch ms)."""
        self._store.set_end_offsets(self._cluster, ends)

    def asked(self, requests: Mapping[str, int]) -> None:
        """Store how many requests of each kind were sent since the start."""
        self._store.probed(self._cluster, requests)
