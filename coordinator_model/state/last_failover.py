"""The last failover of a shard."""

import msgspec

from coordinator_model.kafka import WRITE_TIMEOUT_MS


class LastFailover(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The last time at which no coordinator answered for the shard.

    The shard went from one coordinator to another, or to the same one, restarted.  Or there was no failover:
    a replica that its writes wait for had died, so that requests were answered late or refused.
    """

    at_ms: int
    came_from: int = -1
    went_to: int = -1
    """-1: no broker has loaded it yet."""
    stood: bool = False
    """Whether the coordinator stayed the same: only its writes stalled."""
    stalled_ms: int = -1
    """When a write was last refused because a replica was missing; -1: none was."""

    @property
    def over_ms(self) -> int:
        """Return until when (epoch ms), as far as known, members may have reached no coordinator.

        A request just after the last refused write may have waited as long, and then succeeded.
        """
        return self.at_ms if self.stalled_ms < 0 else self.stalled_ms + WRITE_TIMEOUT_MS
