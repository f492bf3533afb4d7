"""Reads the reason of a rebalance and the member lists in the coordinator's log lines.

The coordinator's reason is one of a dozen fixed sentences with free text inside; the client's own
reason (KIP-800) is appended to some of them.  An unknown reason is kept as text with kind ``unknown``.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from coordinator_model.decoding.templates import GENERATED, GENERATED_SIZE, Template
from coordinator_model.kafka import NOT_PROVIDED, CauseKind, how_it_left, why_it_joined
from coordinator_model.observations import Reason

REASON_LENGTH_MAX = 1000
"""Characters of a reason that are kept; a list of ids or a client id can be much longer."""

_LIST = re.compile(r"(?:(?:Hash)?Set|List|Vector|ArrayBuffer)?[\[(](.*)[\])]", re.DOTALL)


def split_ids(text: str) -> tuple[str, ...]:
    """Return the member ids of a printed list: ``[a, b]`` (Java), ``Set(a, b)`` (Scala) or ``a, b``.

    Client ids may contain ", ", so pieces are joined until one ends as a generated id does; where
    none does, every ", " separates.
    """
    inside = _LIST.fullmatch(text)
    text = inside[1] if inside else text
    pieces = text.split(", ") if text else []
    if not any(map(_is_generated, pieces)):
        return tuple(pieces)
    ids: list[str] = []
    begun: list[str] = []
    for piece in pieces:
        begun.append(piece)
        if _is_generated(piece):
            ids.append(", ".join(begun))
            begun = []
    return (*ids, ", ".join(begun)) if begun else tuple(ids)


def _is_generated(text: str) -> bool:
    return GENERATED.fullmatch(text[-GENERATED_SIZE:]) is not None


def instance_of(text: str) -> str | None:
    """Return an optional instance id: Java prints ``null`` or ``None``, Scala ``None`` or ``Some(x)``."""
    if text.startswith("Some(") and text.endswith(")"):
        return text[5:-1]
    return None if text in {"None", "null"} else text


def client_reason_of(text: str) -> str | None:
    """Return the client's reason; None for the broker's own "not provided"."""
    return None if text == NOT_PROVIDED else text[:REASON_LENGTH_MAX]


_Kind = Callable[[str | None], CauseKind]


def _always(kind: CauseKind) -> _Kind:
    return lambda client: kind


def _or_client(kind: CauseKind) -> _Kind:
    """Return ``kind``, unless the client's reason is more exact."""
    return lambda client: why_it_joined(client) or kind


class ReasonShape(NamedTuple):
    """One of the coordinator's reasons, and its kind of cause."""

    templates: tuple[Template, ...]
    kind: _Kind
    known: str
    """The broker or classes that have it (``coordinator_shapes.Shape.known``)."""


def _shape(sentence: str, kind: _Kind, known: str, *, client: bool = False) -> ReasonShape:
    """Return a sentence; with ``client`` the client's reason may follow it."""
    plain = Template(sentence)
    with_client = (Template(f"{sentence}; client reason: {{client}}"),) if client else ()
    return ReasonShape((*with_client, plain), kind, known)


REASONS = (
    _shape(
        "Adding new member {m} with group instance id {i}",
        _always(CauseKind.MEMBER_JOINED),
        "4+ 3+",
        client=True,
    ),
    _shape("Member {m} is joining group during {s}", _always(CauseKind.MEMBER_JOINED), "4-", client=True),
    _shape("Member {m} joining group during {s}", _always(CauseKind.MEMBER_JOINED), "3-", client=True),
    _shape(
        "Updating metadata for static member {m} with instance id {i}",
        _always(CauseKind.STATIC_MEMBER_REPLACED),
        "4+ 3+",
        client=True,
    ),
    _shape(
        "Updating metadata for member {m} during {s}",
        _or_client(CauseKind.SUBSCRIPTION_CHANGED),
        "4+ 3+",
        client=True,
    ),
    _shape(
        "Leader {m} re-joining group during {s}", _or_client(CauseKind.LEADER_REJOINED), "4+ 3+", client=True
    ),
    _shape(
        "Group's selectedProtocol will change because static member {m} with instance id {i} "
        "joined with change of protocol",
        _always(CauseKind.PROTOCOL_CHANGED),
        "4+ 3+",
        client=True,
    ),
    _shape("removing member {m} on heartbeat expiration.", _always(CauseKind.SESSION_TIMEOUT), "4+ 3+"),
    _shape("Removing {ids} on pending sync request expiration", _always(CauseKind.SYNC_TIMEOUT), "4+ 3+"),
    _shape("Removing member {m} on LeaveGroup", how_it_left, "3+", client=True),
    _shape("explicit `LeaveGroup` request for ({ids}) members.", _always(CauseKind.MEMBER_LEFT), "4+"),
    _shape("Freshly-loaded group {x}over capacity{y}", _always(CauseKind.COORDINATOR_MOVED), "4- 3-"),
    _shape("Downgrade group {x} from consumer to classic{y}", _always(CauseKind.PROTOCOL_CHANGED), "4+"),
    # The missing space is Kafka's.
    _shape(
        "Error {x} when storing group assignmentduring SyncGroup (member: {m}).",
        _always(CauseKind.UNKNOWN),
        "4-",
    ),
    _shape(
        "Error {x} when storing group assignment during SyncGroup (member: {m}).",
        _always(CauseKind.UNKNOWN),
        "3-",
    ),
)
_STARTS = tuple({shape.templates[0].start for shape in REASONS})


def is_known_start(text: str, start: int = 0) -> bool:
    """Return whether ``text`` continues, from ``start``, like one of the coordinator's reasons."""
    return text.startswith(_STARTS, start)


def reason_of(text: str) -> Reason:
    """Return the reason of a rebalance from the words between ``(reason: `` and the final ``)``."""
    shapes = [shape for shape in REASONS if text.startswith(shape.templates[0].start)]
    for strict in (True, False):
        for templates, kind, _ in shapes:
            for template in templates:
                reading = template.read(text, strict=strict)
                if reading:
                    return _reason(text, reading.words, kind)
    return Reason(kind=CauseKind.UNKNOWN.value, text=text[:REASON_LENGTH_MAX])


def _reason(text: str, words: Mapping[str, str], kind: _Kind) -> Reason:
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
