"""The part of the settings that a shard uses itself; the rules read theirs from the same bytes."""

import re
from functools import lru_cache
from typing import Annotated

import msgspec

OWN_PREFIX = "groupwatch-"
"""Consumer groups of groupwatch itself, which are never mirrored: every start would be news."""
FORGET_AFTER_MS = 7 * 24 * 3600 * 1000
"""Longer than Kafka's own retention: a group is kept until the deletion of its offsets is read."""


class SettingsError(ValueError):
    """Settings that no shard can use."""


class GroupFilter(msgspec.Struct, frozen=True):
    """Patterns that must match a group's whole name; deny wins."""

    allow: tuple[str, ...] = (".*",)
    deny: tuple[str, ...] = ()


class ShardSettings(msgspec.Struct, frozen=True):
    """The shard's part of the control record ``settings``; keys of the rules are skipped."""

    groups: GroupFilter = GroupFilter()
    forget_after_ms: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = FORGET_AFTER_MS
    offsets_enabled: bool = True
    events_enabled: bool = True

    def watches(self, group: str) -> bool:
        """Return whether a group is to be mirrored."""
        return _watches(self.groups, group)


_DECODER = msgspec.json.Decoder(ShardSettings)


@lru_cache(maxsize=64)
def read_settings(settings: bytes | None) -> ShardSettings:
    """Return the shard's part of the settings; the defaults if there are none or they cannot be read.

    The driver checks the configuration before it writes it, so unreadable settings are a bug here, which must
    not stop the query.
    """
    try:
        return _read(settings or b"{}")
    except SettingsError:
        return ShardSettings()


def check_shard_settings(settings: bytes) -> None:
    """Check that a shard can use these settings.

    Raises:
        SettingsError: they cannot be read, or one of their patterns is invalid.
    """
    _read(settings)


def _read(settings: bytes) -> ShardSettings:
    try:
        found = _DECODER.decode(settings)
        for pattern in (*found.groups.allow, *found.groups.deny):
            re.compile(pattern)
    except (msgspec.MsgspecError, UnicodeDecodeError, re.error, OverflowError, RecursionError) as error:
        raise SettingsError(f"settings that no shard can use: {error}") from error
    return found


@lru_cache(maxsize=16_384)
def _watches(groups: GroupFilter, name: str) -> bool:
    if name.startswith(OWN_PREFIX) or any(re.fullmatch(one, name, re.DOTALL) for one in groups.deny):
        return False
    return any(re.fullmatch(one, name, re.DOTALL) for one in groups.allow)
