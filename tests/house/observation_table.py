"""The table of observations in the model's README: ``python -m tests.house.observation_table`` writes it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from coordinator_model import observations as on
from coordinator_model.groups.table import EFFECTS
from coordinator_model.observations.traits import TRAITS, AfterRecord, Concerns, Traits
from coordinator_model.shard.boundaries import BOUNDARIES
from coordinator_model.shard.cluster import HANDLERS
from coordinator_model.shard.cluster_shard import ClusterShard
from coordinator_model.shard.timeline import ANSWERS

README = Path(__file__).parents[2] / "coordinator_model" / "README.md"
BEGIN, END = "<!-- observations -->\n", "<!-- end of observations -->\n"
_HEAD = """| observation | concerns | a classic group | a modern group | a shard, the cluster | also |
|---|---|---|---|---|---|
"""
_ROOMS = ("coordinator_model.groups.", "coordinator_model.shard.")
_BESIDE = {
    on.LogNoted: "shows that the log is alive",
    on.LogSeconds: "`live_sources.hear`",
}
"""What a shard does with observations that cut no time."""


def table() -> str:
    """Return one line for each observation, in the order of ``TRAITS``."""
    return _HEAD + "".join(_line(one, traits) for one, traits in TRAITS.items())


def written(text: str) -> str:
    """Return the README with the table of today between its marks."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END)[1]


def _line(one: type[on.Observation], traits: Traits) -> str:
    concerns = ", ".join(str(part.name).lower() for part in Concerns if part in traits.concerns)
    cells = [f"`{one.__name__}`", concerns, *_of_groups(one), _of_all(one, traits), _also(traits)]
    return f"| {' | '.join(cells)} |\n".replace("|  |", "| |")


def _of_groups(one: type[on.Observation]) -> tuple[str, str]:
    if one in ANSWERS:
        return _named(ANSWERS[one]), "the same"
    effect = EFFECTS.get(one)
    if effect is None:
        return "", ""
    if effect.classic is effect.modern:
        return _named(effect.classic), "the same"
    return _named(effect.classic), "kept, in case it becomes classic" if effect.modern is None else _named(
        effect.modern
    )


def _of_all(one: type[on.Observation], traits: Traits) -> str:
    if traits.concerns is Concerns.WATERMARK:
        return "the buffer"
    named = [_BESIDE[one]] if one in _BESIDE else []
    named += [_named(BOUNDARIES[one])] if one in BOUNDARIES else []
    if traits.concerns & Concerns.CLUSTER:
        named.append(_named(HANDLERS.get(one, ClusterShard.step)))
    return ", ".join(named)


def _named(handler: Callable[..., Any] | None) -> str:
    if handler is None:
        return ""
    module = handler.__module__
    for room in _ROOMS:
        module = module.removeprefix(room)
    return f"`{module.replace('.', '/')}.{handler.__name__}`"


def _also(traits: Traits) -> str:
    said = [
        (traits.from_driver, "from the driver"),
        (traits.cuts_time, "cuts time"),
        (traits.coalesces, "coalesces"),
        (traits.is_taken_apart, "coalesces several of others; taken apart unless it says nothing new"),
        (traits.joins_write, "joins a write"),
        (not traits.shows_life, "no sign of life"),
        (traits.ends_life, "ends a life"),
        (traits.tells_generation, "tells a generation"),
        (traits.place is not None, f"enters {traits.place}"),
        (traits.shows_classic_life, "makes an ended modern group classic"),
        (
            traits.after_record is not AfterRecord.ALL,
            f"if older than the record, counts: {traits.after_record.value.split(':')[0]}",
        ),
    ]
    return "; ".join(words for holds, words in said if holds)


if __name__ == "__main__":
    README.write_text(written(README.read_text()))
