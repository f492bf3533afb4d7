"""What is hashed of a story, a world or a capture: what happened, without the words for people.

A field that has its default is left out as well: a struct that gains one has not changed what it says.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from coordinator_model.shard import snapshot
from coordinator_model.state.group import Step, Transition
from streaming.replay.files import Skipped
from streaming.replay.run import replay
from tests.fingerprint.worlds import load, play
from tests.saved.golden import held, is_default
from tests.stories.telling import STORIES, Telling

GOLDEN = Path(__file__).parents[1] / "golden"
LOG, JAVA_LOG, REQUESTS = (
    GOLDEN / "logs" / f"kafka-4.3.1-{name}.log" for name in ("server", "server-java-clients", "request")
)
RECORDS, MODERN_LOG = GOLDEN / "modern" / "records.jsonl", GOLDEN / "modern" / "coordinator.log"
CAPTURES = {
    "capture-full": (LOG, REQUESTS),
    "capture-quiet": (LOG,),
    "capture-requests": (REQUESTS,),
    "capture-java-clients": (JAVA_LOG,),
    "capture-modern": (RECORDS, MODERN_LOG),
    "capture-modern-offsets": (RECORDS,),
}
WORDS = {
    "Alert": {"summary", "cause", "evidence", "runbook", "cost", "advice"},
    "OpenAlert": {"closing"},
    "Occurrence": {"sentence"},
}
"""Fields with words for people."""


class Said(NamedTuple):
    """What one of them came to, in builtins."""

    transitions: Any
    alerts: Any
    blobs: Any

    def marks(self) -> list[str]:
        """Return a hash of each part."""
        return [mark(part) for part in self]


def mark(value: Any) -> str:
    """Return a hash of builtins, whatever the order of their keys."""
    packed = msgspec.json.encode(value, order="deterministic")
    return hashlib.blake2b(packed, digest_size=8).hexdigest()


def sources(wanted: str = "") -> Iterator[tuple[str, Callable[[], Said]]]:
    """Yield names that hold ``wanted``, each with what plays it."""
    for path in STORIES:
        if wanted in f"story-{path.stem}":
            yield f"story-{path.stem}", lambda path=path: _story(path)  # type: ignore[misc]
    for world in load():
        if wanted in f"world-{world.name}":
            yield f"world-{world.name}", lambda world=world: _world(world)  # type: ignore[misc]
    for name, paths in CAPTURES.items():
        if wanted in name:
            yield name, lambda paths=paths: _capture(paths)  # type: ignore[misc]


def essence(value: Any) -> Any:
    """Return a value in builtins, without words for people and without defaults."""
    match value:
        case msgspec.Struct():
            left_out = WORDS.get(type(value).__name__, set())
            names = [name for name in value.__struct_fields__ if name not in left_out]
            kept = {name: essence(held(value, name)) for name in names if not is_default(value, name)}
            return {"": type(value).__name__, **kept} if value.__struct_config__.tag is not None else kept
        case Enum():
            return value.value
        case dict():
            return sorted(([essence(key), essence(one)] for key, one in value.items()), key=str)
        case list() | tuple():
            return [essence(one) for one in value]
        case set() | frozenset():
            return sorted((essence(one) for one in value), key=str)
        case bytes():
            return value.decode("latin-1")
    return None if value is msgspec.UNSET else value


def _world(world: Any) -> Said:
    played = play(world)
    header, slots = snapshot.decode(played.blob)
    slots.sort(key=lambda slot: slot.name)
    return Said(essence(played.transitions), essence(played.alerts), essence([header, slots, played.others]))


def _capture(paths: tuple[Path, ...]) -> Said:
    skipped = Skipped()
    happened = list(replay(paths, config_rules=None, timezone="UTC", skipped=skipped, strict=True))
    transitions = [one for one in happened if isinstance(one, Transition)]
    alerts = [one for one in happened if not isinstance(one, Transition)]
    return Said(essence(transitions), essence(alerts), essence(skipped.reports))


class _Noting(Telling):
    """A story's telling that keeps what the model answered."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []

    def answer(self, step: Step) -> Iterator[str]:
        self.steps.append(step)
        return super().answer(step)


def _story(path: Path) -> Said:
    telling = _Noting()
    for line in _asked(path.read_text()):
        list(telling.line(line))
    return Said(essence([step.transitions for step in telling.steps]), [], essence(telling.group))


def _asked(story: str) -> Iterable[str]:
    for block in story.strip().split("\n\n"):
        for line in block.split("\n----")[0].strip("\n").split("\n"):
            if line and not line.startswith("#"):
                yield line
