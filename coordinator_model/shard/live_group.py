"""A decoded group during a step."""

from coordinator_model.groups.core import Context
from coordinator_model.shard.slots import Slot
from coordinator_model.shard.snapshot import decode_group, encode_group
from coordinator_model.state import Group


class Live:
    """A decoded group during a step."""

    __slots__ = ("absent", "at_ms", "context", "group", "slot", "visible")

    def __init__(self, slot: Slot, group: Group, *, absent: bool = False) -> None:
        self.slot = slot
        self.group = group
        self.absent = absent
        """Whether it is unknown, or was forgotten, deleted or denied; a sign of life begins a new group."""
        self.visible = False
        """Whether this step changed something that is reported."""
        self.context: Context | None = None
        """The live sources by which its deadline was last found in this step."""
        self.at_ms = -1
        """The time (epoch ms) for which it was found."""

    @classmethod
    def decode(cls, slot: Slot) -> "Live":
        """Decode the group in ``slot``."""
        return cls(slot, decode_group(slot.raw))

    def encode(self) -> None:
        """Encode the group back into its slot."""
        self.slot.raw = encode_group(self.group)
