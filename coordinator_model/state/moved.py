"""The last move of a shard to another coordinator."""

import msgspec

from coordinator_model.kafka import WRITE_TIMEOUT_MS


class Moved(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The last time at which nobody answered for the shard.

    It went from one coordinator to another, or to itself, started anew; or it stood, and a replica that
    its writes wait for had died, so that requests were answered late or refused.
    """

    at_ms: int
    came_from: int = -1
    went_to: int = -1
    """-1: nobody has taken it over yet."""
    stood: bool = False
    """The same coordinator goes on: only its writes stalled."""
    stalled_ms: int = -1
    """When a write was last refused for want of a replica; -1: none was."""

    @property
    def over_ms(self) -> int:
        """Return until when, as far as is known, members may have spoken to nobody.

        What was asked just after the last write that was refused may have waited as long, and not in vain.
        """
        return self.at_ms if self.stalled_ms < 0 else self.stalled_ms + WRITE_TIMEOUT_MS
