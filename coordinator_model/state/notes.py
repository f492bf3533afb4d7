"""Happenings in a group beside its transitions: refused requests, replaced members, long pauses.

No note makes a transition, and none is saved; the rules read them in ``Step.notes`` once.
"""

import msgspec

COMMIT = "commit"
JOIN = "join"


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A request that the coordinator refused because of its sender; "" and -1 where no source shows it."""

    at_ms: int
    operation: str
    """commit, join, sync, heartbeat or leave."""
    error_code: int
    member_id: str
    generation: int = -1
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    holder_id: str = ""
    """The member that has the instance id instead."""
    connection: str = ""
    parked: bool = False
    """Whether it had waited in the coordinator: another event ended it, and its sender may be long gone."""
    protocols: tuple[str, ...] = ()
    """Of a join: protocol type, then the assignors it offered."""
    session_timeout_ms: int = -1
    """Of a join."""
    claims: tuple[tuple[str, int, int], ...] = ()
    """Of a commit: (topic, partition, offset) that it would have written, as far as known."""


class Replaced(msgspec.Struct, frozen=True, kw_only=True):
    """An instance id went over to another member id: its process was restarted, or started twice."""

    at_ms: int
    instance_id: str
    old_id: str
    new_id: str = ""
    """"" where only the coordinator's line reports it, which does not name the new id."""
    client_id: str = ""
    client_host: str = ""
    """Of the old one."""


class Paused(msgspec.Struct, frozen=True, kw_only=True):
    """A heartbeat came after a pause that was a large part of the session timeout."""

    at_ms: int
    member_id: str
    pause_ms: int
    in_a_row: int
    """How many heartbeats in a row came after such a pause."""


class IdUnused(msgspec.Struct, frozen=True, kw_only=True):
    """A member id was handed out, and its client never came back with it."""

    at_ms: int
    member_id: str


Note = Refused | Replaced | Paused | IdUnused
