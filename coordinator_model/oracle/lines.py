"""A coordinator as text: what happens to it as JSON lines in, what it does as JSON lines out."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from coordinator_model.oracle.config import Config
from coordinator_model.oracle.coordinator import Coordinator
from coordinator_model.oracle.outcomes import Outcome
from coordinator_model.oracle.requests import Event, Request


class Advance(msgspec.Struct, frozen=True, kw_only=True, tag="Advance", forbid_unknown_fields=True):
    """Nothing but time."""


Input: TypeAlias = Request | Event | Advance | Config


def play(lines: Iterable[str]) -> Iterator[str]:
    """Feed a coordinator with lines and give its outcomes, each as soon as it is known.

    A line is an object with ``at_ms``, ``type`` (the name of a request or event, ``Advance``, or in the
    first line ``Config``, which needs no time) and the fields of that type.  Blank lines are skipped.

    Raises:
        ValueError: a line cannot be read; the message has its number.
    """
    coordinator = Coordinator()
    told = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            coordinator = _feed(coordinator, line)
        except (msgspec.MsgspecError, ValueError) as error:
            raise ValueError(f"line {number}: {error}") from error
        yield from map(_encode, coordinator.outcomes[told:])
        told = len(coordinator.outcomes)


def _feed(coordinator: Coordinator, line: str) -> Coordinator:
    fields: Any = msgspec.json.decode(line)
    if not isinstance(fields, dict):
        raise ValueError("not an object")
    at_ms = fields.pop("at_ms", None)
    said: Input = msgspec.convert(fields, Input)
    if isinstance(said, Config):
        if coordinator.outcomes or coordinator.now_ms:
            raise ValueError("Config comes first; later it is Configure")
        return Coordinator(said)
    if not isinstance(at_ms, int):
        raise ValueError("at_ms is missing")
    if isinstance(said, Advance):
        coordinator.advance(at_ms)
    elif isinstance(said, Request):
        coordinator.request(at_ms, said)
    else:
        coordinator.event(at_ms, said)
    return coordinator


def _encode(outcome: Outcome) -> str:
    return msgspec.json.encode(outcome).decode()
