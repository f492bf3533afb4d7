"""The classic group state machine, driven by whatever the sources tell."""

import msgspec

from coordinator_model.group import Group, Step
from coordinator_model.observations import Seen


class Context(msgspec.Struct, frozen=True):
    """What the shard knows of its sources while one observation is applied."""

    cluster: str
    info_live: bool
    offsets_enabled: bool
    backlog: bool
    requests_live: bool = False


def new_group(group_id: str) -> Group:
    """Return a group nobody has told us anything about yet."""
    return Group(group=group_id)


def apply(group: Group, seen: Seen, context: Context) -> Step:
    """Apply one observation to ``group`` (changed in place) and say what it did."""
    group.last_seen_ms = max(group.last_seen_ms, seen.at_ms)
    return Step()


def due_at(group: Group, context: Context) -> int | None:
    """Return the earliest time at which the model itself must act, None if never."""
    return group.held_until_ms if group.held_record is not None else None


def pass_time(group: Group, now_ms: int, context: Context) -> Step:
    """Act on the deadlines due at ``now_ms``."""
    if group.held_record is not None and group.held_until_ms <= now_ms:
        group.held_record, group.held_until_ms = None, -1
    return Step()
