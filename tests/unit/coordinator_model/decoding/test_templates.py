"""Sentences with free text in them, and which of several readings is taken."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model.decoding.coordinator_log import parse_coordinator_line
from coordinator_model.decoding.coordinator_shapes import SHAPES
from coordinator_model.decoding.templates import Template
from coordinator_model.kafka.hashing import shard_of, shards_of_prefixes, shards_of_runs
from coordinator_model.observations.log import MemberLeft
from coordinator_model.shard.routing import split_names

ID = "-ca3b18a3-a3f6-4c3f-a3e3-e97c3daff200"
LEFT = "[Group {g}] Member {m} has left group; client reason: {x}"
SHARDS = 50


@pytest.mark.parametrize(
    ("sentence", "text", "words"),
    [
        ("Stopped.", "Stopped", {}),
        ("Stopped.", "Stopped..", None),
        ("Group {g} is empty.", "Group a b is empty", {"g": "a b"}),
        ("Group {g} is empty.", "Group  is empty.", {"g": ""}),
        (
            "Group {g} has {n} members.",
            "Group a has 5 members has -6 members.",
            {"g": "a has 5 members", "n": "-6"},
        ),
        ("Group {g} has {n} members.", "Group a has five members.", None),
        ("Member {m} in {g}.", f"Member a in b{ID} in c in d.", {"m": f"a in b{ID}", "g": "c in d"}),
        ("Member {m} in {g}.", "Member a in b.", {"m": "a", "g": "b"}),
        (LEFT, f"[Group a] Member c{ID} has left group; client reason: ", {"g": "a", "m": f"c{ID}", "x": ""}),
        (
            "From {topic}-{partition} at {epoch}",
            "From a-b-5 at -1",
            {"topic": "a-b", "partition": "5", "epoch": "-1"},
        ),
    ],
)
def test_readings(sentence: str, text: str, words: dict[str, str] | None) -> None:
    """A group is as long as it can be, other texts are short, and member ids end as generated ones do."""
    reading = Template(sentence).read(text)

    assert (None if reading is None else reading.words) == words


@pytest.mark.parametrize("group", ["g", f"g] Member a{ID} has left group; client reason: x", "g] Member b"])
@pytest.mark.parametrize(
    "reason", ["bye", f"x] Member a{ID} has left group; client reason: no", "] Member z"]
)
def test_the_partition_tells_the_group_from_what_imitates_it(group: str, reason: str) -> None:
    """Group and reason may both hold the sentence's words: the group that lives in the partition counts."""
    by_leave = "has left group through explicit `LeaveGroup` request"
    group, reason = (one.replace("has left group", by_leave) for one in (group, reason))
    home = shard_of(group, SHARDS)
    line = f"[GroupCoordinator id=1 topic=x partition={home}] [Group {group}] Member m{ID} {by_leave}; "

    assert parse_coordinator_line(
        f"{line}client reason: {reason}", shard_count=SHARDS
    ).observation == MemberLeft(group=group, member_id=f"m{ID}", client_reason=reason)


WORDS = [word for shape in SHAPES for word in re.split(r"\{\w+\}", shape.template.sentence) if word]
NAMES = st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=4).map("".join)


@settings(deadline=None)
@given(st.sampled_from(SHAPES), st.data())
def test_the_fields_make_the_sentence_again(shape: object, data: st.DataObject) -> None:
    """Whatever the names: what was read is put together to what was written."""
    template: Template = shape.template  # type: ignore[attr-defined]
    values = {"s": "Stable", "op": "heartbeat", "epoch": "5"}
    for name in re.findall(r"\{(\w+)\}", template.sentence):
        numeric = name in {"n", "k", "static", "partition"}
        values.setdefault(name, "7" if numeric else data.draw(NAMES))
    text = template.sentence.format(**values)
    reading = template.read(text)

    assert reading is not None
    assert template.sentence.format(**reading.words).rstrip(".") == text.rstrip(".")


@given(st.text(), st.lists(st.integers(0, 20), max_size=5), st.integers(1, 99))
def test_shards_of_prefixes(text: str, ends: list[int], shard_count: int) -> None:
    """One pass gives what hashing each prefix gives."""
    ends = sorted(min(end, len(text)) for end in ends)

    assert shards_of_prefixes(text, 0, ends, shard_count) == [
        shard_of(text[:end], shard_count) for end in ends
    ]


@given(st.lists(st.text(max_size=4), min_size=1, max_size=6), st.integers(1, 99))
def test_shards_of_runs(pieces: list[str], shard_count: int) -> None:
    """Each run of neighbours is found by the hashes of its pieces."""
    runs = {(a, b) for a in range(len(pieces)) for b in range(a + 1, len(pieces) + 1)}
    expected = {shard_of(", ".join(pieces[a:b]), shard_count) for a, b in runs}

    assert shards_of_runs(pieces, ", ", shard_count) == expected


def _split_slowly(names: str, known: set[str]) -> list[str]:
    parts = names.split(", ") if names else []
    found, start = [], 0
    while start < len(parts):
        runs = (", ".join(parts[start:end]) for end in range(len(parts), start, -1))
        name = next((run for run in runs if run in known), None)
        found += [] if name is None else [name]
        start += 1 if name is None else name.count(", ") + 1
    return found


LISTS = st.lists(st.sampled_from(["a", "b", "", "c d"]), min_size=1, max_size=7).map(", ".join)


@given(LISTS, st.sets(LISTS, max_size=6))
def test_deleted_names(names: str, known: set[str]) -> None:
    """Of several known groups that begin at one place in the list, the longest is meant."""
    assert split_names(names, dict.fromkeys(known)) == _split_slowly(names, known)
