"""A coordinator as text: what happens to it as JSON lines in, what it does as JSON lines out."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from tests.oracle.coordinator import Coordinator
from tests.oracle.values.config import Config
from tests.oracle.values.outcomes import Outcome
from tests.oracle.values.requests import Event, Request


class Advance(msgspec.Struct, frozen=True, kw_only=True, tag="Advance", forbid_unknown_fields=True):
    """Nothing but time."""


Input: TypeAlias = Request | Event | Advance | Config
_MADE_ID = re.compile(r"\$[0-9]{1,9}")


def play(lines: Iterable[str]) -> Iterator[str]:
    """Feed a coordinator with lines and give its outcomes, each as soon as it is known.

    A line is an object with ``at_ms``, ``type`` (the name of a request or event, ``Advance``, or in the
    first line ``Config``, which needs no time) and the fields of that type.  Blank lines are skipped.
    A string ``"$2"`` stands for the second member id that the coordinator made.

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
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ValueError(f"line {number}: {error}") from error
        yield from map(_encode, coordinator.outcomes[told:])
        told = len(coordinator.outcomes)


def _feed(coordinator: Coordinator, line: str) -> Coordinator:
    fields: Any = msgspec.json.decode(line)
    if not isinstance(fields, dict):
        raise ValueError("not an object")
    at_ms = fields.pop("at_ms", None)
    said: Input = msgspec.convert(_with_ids(fields, coordinator.made_ids), Input)
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


def _with_ids(value: Any, made: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {key: _with_ids(one, made) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_ids(one, made) for one in value]
    if not isinstance(value, str) or not _MADE_ID.fullmatch(value):
        return value
    number = int(value[1:])
    if not 1 <= number <= len(made):
        raise ValueError(f"{value}: {len(made)} member ids were made so far")
    return made[number - 1]


def _encode(outcome: Outcome) -> str:
    return msgspec.json.encode(outcome).decode()
