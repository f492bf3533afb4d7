"""A group while a step works on it."""

from coordinator_model.shard.snapshot import Slot, decode_group, encode_group
from coordinator_model.state import Group


class Live:
    """A group while a step works on it."""

    __slots__ = ("absent", "group", "slot", "visible")

    def __init__(self, slot: Slot, group: Group, *, absent: bool = False) -> None:
        self.slot = slot
        self.group = group
        self.absent = absent
        """Not known yet, or forgotten, deleted or denied; the next sign of life begins a new group."""
        self.visible = False
        """Something to report happened to it in this step."""

    @classmethod
    def wake(cls, slot: Slot) -> "Live":
        """Decode the group in ``slot``."""
        return cls(slot, decode_group(slot.raw))

    def rest(self) -> None:
        """Encode the group back into its slot."""
        self.slot.raw = encode_group(self.group)
