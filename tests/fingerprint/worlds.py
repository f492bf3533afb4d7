"""Stored worlds: what was seen of a few groups, in the batches in which a shard was given it."""

import lzma
from collections.abc import Iterator
from pathlib import Path

import msgspec

from alerts.alert.alert import Alert
from alerts.rules import RuleJudge
from coordinator_model.observations.seen import unpack
from coordinator_model.shard.judging import Outputs
from coordinator_model.shard.shard import Shard
from coordinator_model.state.group import Transition

STORE = Path(__file__).parents[1] / "golden" / "worlds" / "worlds.msgpack.xz"


class World(msgspec.Struct, frozen=True, array_like=True):
    """One shard's input, batch by batch, as a stream would give it (``observations.pack``)."""

    name: str
    batches: list[bytes]


class Played(msgspec.Struct, kw_only=True):
    """What a shard made of its input."""

    transitions: list[Transition] = []
    alerts: list[Alert] = []
    blob: bytes = b""
    others: dict[str, int] = {}
    """Divergences by kind, answers compared, and contradictions."""


def load() -> list[World]:
    """Return the stored worlds."""
    return msgspec.msgpack.decode(lzma.decompress(STORE.read_bytes()), type=list[World])


def save(worlds: list[World]) -> None:
    """Store worlds."""
    STORE.write_bytes(lzma.compress(msgspec.msgpack.encode(worlds), preset=9))


def play(world: World) -> Played:
    """Give a shard what a world holds; it is saved and loaded after each batch."""
    played, judge = Played(), RuleJudge()
    blob: bytes | None = None
    for batch in world.batches:
        shard = Shard.load(blob, cluster="c", shard=0, shard_count=1, strict=True)
        outputs = shard.step(unpack(batch), judge)
        played.transitions += outputs.transitions
        played.alerts += outputs.alerts
        for kind, count in _counts(outputs):
            played.others[kind] = played.others.get(kind, 0) + count
        blob = shard.save()
    played.blob = blob or b""
    return played


def _counts(outputs: Outputs) -> Iterator[tuple[str, int]]:
    yield from ((one.kind, one.count) for one in outputs.divergences)
    yield "compared", outputs.compared
    yield "agreeing", outputs.agreeing
    yield "contradictions", len(outputs.contradictions)
    yield "upset", len(outputs.upset)
