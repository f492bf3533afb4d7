"""What happened to a group beside its moves: who was refused, who took whose place, who paused.

Nothing here moves a group, and nothing of it is saved; the rules read it in ``Step.notes`` once.
"""

import msgspec

COMMIT = "commit"
JOIN = "join"


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A request that the coordinator refused because of who sent it; "" and -1 where nothing tells."""

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
    """Who holds the instance id instead."""
    connection: str = ""
    parked: bool = False
    """It had waited in the coordinator: what happened meanwhile ended it, and its sender may be long gone."""
    protocols: tuple[str, ...] = ()
    """Of a join: protocol type, then the assignors it offered."""
    session_timeout_ms: int = -1
    """Of a join."""
    claims: tuple[tuple[str, int, int], ...] = ()
    """Of a commit: (topic, partition, offset) that it would have written, as far as told."""


class Replaced(msgspec.Struct, frozen=True, kw_only=True):
    """An instance id went over to another member id: its process was started anew, or a second time."""

    at_ms: int
    instance_id: str
    old_id: str
    new_id: str = ""
    """"" where only the coordinator's line told, which does not name it."""
    client_id: str = ""
    client_host: str = ""
    """Of the old one."""


class Paused(msgspec.Struct, frozen=True, kw_only=True):
    """A heartbeat came after a pause that was a large part of the session timeout."""

    at_ms: int
    member_id: str
    pause_ms: int
    in_a_row: int
    """How many heartbeats have come after such a pause, without a shorter one between them."""


class IdUnused(msgspec.Struct, frozen=True, kw_only=True):
    """A member id was handed out, and its client never came back with it."""

    at_ms: int
    member_id: str


Note = Refused | Replaced | Paused | IdUnused
