"""The part of the settings that a shard itself obeys; the rules read theirs from the same bytes."""

import re
from functools import lru_cache

import msgspec

OWN_PREFIX = "groupwatch-"
"""Consumer groups of groupwatch itself: never mirrored, or every start would be news."""
FORGET_AFTER_MS = 8 * 24 * 3600 * 1000
"""Longer than Kafka's own retention: a group is known until the end of its offsets is told."""


class GroupFilter(msgspec.Struct, frozen=True):
    """Patterns that a group's whole name must match; deny wins."""

    allow: tuple[str, ...] = (".*",)
    deny: tuple[str, ...] = ()


class ShardSettings(msgspec.Struct, frozen=True):
    """What the control record ``settings`` says to the shard; keys for the rules are skipped."""

    groups: GroupFilter = GroupFilter()
    forget_after_ms: int = FORGET_AFTER_MS
    offsets_enabled: bool = True
    events_enabled: bool = True

    def watches(self, group: str) -> bool:
        """Say whether a group is to be mirrored."""
        return _watches(self.groups, group)


_DECODER = msgspec.json.Decoder(ShardSettings)


@lru_cache(maxsize=64)
def read_settings(settings: bytes | None) -> ShardSettings:
    """Return the shard's part of the settings; nothing, or nonsense, gives the defaults.

    The driver checks the configuration before it writes it, so nonsense here is a bug, which must not
    stop the query.
    """
    try:
        return _DECODER.decode(settings or b"{}")
    except msgspec.MsgspecError:
        return ShardSettings()


@lru_cache(maxsize=16_384)
def _watches(groups: GroupFilter, name: str) -> bool:
    if name.startswith(OWN_PREFIX) or any(re.fullmatch(one, name, re.DOTALL) for one in groups.deny):
        return False
    return any(re.fullmatch(one, name, re.DOTALL) for one in groups.allow)
