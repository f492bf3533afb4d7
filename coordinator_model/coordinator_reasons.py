"""Reads the reason of a rebalance and the member lists in the coordinator's log lines.

The coordinator's reason is one of a dozen fixed sentences with free text inside; the client's own
reason (KIP-800) is appended to some of them.  An unknown reason is kept as text with kind ``unknown``.
"""

import re
from collections.abc import Callable

from coordinator_model.group import CauseKind
from coordinator_model.observations import Reason

REASON_LENGTH_MAX = 1000
"""Characters of a reason that are kept; a list of ids or a client id can be much longer."""
POLL_TIMEOUT_REASON = "consumer poll timeout has expired"
"""What the Java client gives as reason when ``max.poll.interval.ms`` ran out."""

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
MEMBER = rf"(?:.*?-{_UUID}|.*?)"
"""A member id: the coordinator makes them from the client's id, a dash and a UUID."""
_ID_END = re.compile(rf"-{_UUID}$")
_LIST = re.compile(r"(?:(?:Hash)?Set|List|Vector|ArrayBuffer)?[\[(](.*)[\])]", re.DOTALL)
_CLIENT = "; client reason: "

# Beginnings of the Java client's join reasons that say more than the coordinator's own sentence does.
_CLIENT_KINDS = (
    ("cached metadata has changed", CauseKind.PARTITIONS_CHANGED),
    ("subscription has changed", CauseKind.SUBSCRIPTION_CHANGED),
)


def split_ids(text: str) -> tuple[str, ...]:
    """Return the member ids of a printed list: ``[a, b]`` (Java), ``Set(a, b)`` (Scala) or ``a, b``.

    Client ids may contain ", ", so pieces are joined until one ends as a generated id does; where
    none does, every ", " separates.
    """
    inside = _LIST.fullmatch(text)
    text = inside[1] if inside else text
    pieces = text.split(", ") if text else []
    if not any(_ID_END.search(piece) for piece in pieces):
        return tuple(pieces)
    ids: list[str] = []
    begun = ""
    for piece in pieces:
        begun = f"{begun}, {piece}" if begun else piece
        if _ID_END.search(begun):
            ids.append(begun)
            begun = ""
    return (*ids, begun) if begun else tuple(ids)


def instance_of(text: str) -> str | None:
    """Return an optional instance id: Java prints ``null`` or ``None``, Scala ``None`` or ``Some(x)``."""
    if text.startswith("Some(") and text.endswith(")"):
        return text[5:-1]
    return None if text in {"None", "null"} else text


def client_reason_of(text: str) -> str | None:
    """Return what the client gave as its reason; None for the broker's own "not provided"."""
    return None if text == "not provided" else text[:REASON_LENGTH_MAX]


_Kind = Callable[[str | None], CauseKind]


def _always(kind: CauseKind) -> _Kind:
    return lambda client: kind


def _or_client(kind: CauseKind) -> _Kind:
    """``kind``, unless the client's reason is more exact."""

    def choose(client: str | None) -> CauseKind:
        told = (client_kind for start, client_kind in _CLIENT_KINDS if (client or "").startswith(start))
        return next(told, kind)

    return choose


def _leaving(client: str | None) -> CauseKind:
    """3.x only: there the rebalance's reason carries the leaving client's, and no line comes before."""
    return CauseKind.POLL_TIMEOUT if (client or "").startswith(POLL_TIMEOUT_REASON) else CauseKind.MEMBER_LEFT


_REASONS: tuple[tuple[str, _Kind], ...] = (
    (
        rf"Adding new member (?P<m>{MEMBER}) with group instance id (?P<i>.*?)",
        _always(CauseKind.MEMBER_JOINED),
    ),
    (rf"Member (?P<m>{MEMBER}) (?:is )?joining group during \w+", _always(CauseKind.MEMBER_JOINED)),
    (
        rf"Updating metadata for static member (?P<m>{MEMBER}) with instance id (?P<i>.*?)",
        _always(CauseKind.STATIC_MEMBER_REPLACED),
    ),
    (rf"Updating metadata for member (?P<m>{MEMBER}) during \w+", _or_client(CauseKind.SUBSCRIPTION_CHANGED)),
    (rf"Leader (?P<m>{MEMBER}) re-joining group during \w+", _or_client(CauseKind.LEADER_REJOINED)),
    (
        rf"Group's selectedProtocol will change because static member (?P<m>{MEMBER}) "
        r"with instance id (?P<i>.*?) joined with change of protocol",
        _always(CauseKind.PROTOCOL_CHANGED),
    ),
    (rf"removing member (?P<m>{MEMBER}) on heartbeat expiration\.?", _always(CauseKind.SESSION_TIMEOUT)),
    (r"Removing (?P<ids>.*) on pending sync request expiration", _always(CauseKind.SYNC_TIMEOUT)),
    (rf"Removing member (?P<m>{MEMBER}) on LeaveGroup", _leaving),
    (r"explicit `LeaveGroup` request for \((?P<ids>.*)\) members\.?", _always(CauseKind.MEMBER_LEFT)),
    (r"Freshly-loaded group .*over capacity.*", _always(CauseKind.COORDINATOR_MOVED)),
    (r"Downgrade group .* from consumer to classic.*", _always(CauseKind.PROTOCOL_CHANGED)),
    (
        # The missing space is Kafka's.
        rf"Error .* when storing group assignment ?during SyncGroup \(member: (?P<m>{MEMBER})\)\.?",
        _always(CauseKind.UNKNOWN),
    ),
)
_SHAPES = tuple(
    (re.compile(rf"{body}(?:{_CLIENT}(?P<client>.*))?", re.DOTALL), kind) for body, kind in _REASONS
)
_STARTS = (
    "Adding new member ",
    "Member ",
    "Updating metadata for ",
    "Leader ",
    "Group's selectedProtocol ",
    "removing member ",
    "Removing ",
    "explicit `LeaveGroup` ",
    "Freshly-loaded group ",
    "Downgrade group ",
    "Error ",
)


def is_known_start(text: str) -> bool:
    """Say whether ``text`` begins as the coordinator's reasons do (a cheap check, before ``reason_of``)."""
    return text.startswith(_STARTS)


def reason_of(text: str) -> Reason:
    """Return the reason of a rebalance from the words between ``(reason: `` and the final ``)``."""
    for shape, kind in _SHAPES:
        found = shape.fullmatch(text)
        if found:
            return _reason(text, found.groupdict(), kind)
    return Reason(kind=CauseKind.UNKNOWN.value, text=text[:REASON_LENGTH_MAX])


def _reason(text: str, words: dict[str, str | None], kind: _Kind) -> Reason:
    client = words.get("client")
    client = client_reason_of(client) if client is not None else None
    member = words.get("m")
    ids = words.get("ids")
    return Reason(
        kind=kind(client).value,
        text=text[:REASON_LENGTH_MAX],
        member_ids=(member,) if member else split_ids(ids) if ids else (),
        instance_id=instance_of(words.get("i") or "None"),
        client_reason=client,
    )
