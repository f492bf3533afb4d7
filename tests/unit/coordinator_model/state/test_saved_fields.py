"""Saved structs only grow: checkpoints of older versions are read with everything that they say."""

from pathlib import Path
from typing import Any

import pytest

from alerts.alert.alert import Severity
from alerts.delivery.cursor_notes import CursorNotes, LastDelivery, pack_notes, unpack_notes
from coordinator_model.shard import snapshot
from streaming.workers.shard_state import STATE_SCHEMA
from tests.saved import golden
from tests.saved.fields import LIST, Entries, Entry, Field, breaches, collected, read, written
from tests.saved.golden import Blob, Filler, blobs, differences, told, uncovered


def entry(*fields: tuple[str, str, str], how: str = "array") -> Entries:
    return {"Track": Entry(how, tuple(Field(*one) for one in fields))}


OLD = entry(("commits", "int", "0"), ("span", "int", "0"))
TOLD = "gw1=aC3ET1_jWAAAAaC3ET1_jcHxFW"
COLOURS = {"Colour": Entry("enum of str", (Field("red", "", ""), Field("green", "", "")))}


def test_saved_structs_only_grow() -> None:
    """No struct, field, tag or value that an older version saved has gone, changed or moved."""
    assert breaches(read(LIST.read_text()), collected()) == []


def test_what_is_saved_is_on_the_list() -> None:
    """Whoever adds a field to a saved struct notes it with `make state`, and guards it from then on."""
    assert LIST.read_text() == written(collected())


def test_the_list_is_read_as_it_was_written() -> None:
    """Nothing is lost between the list and what is held against it."""
    assert read(written(collected())) == collected()


@pytest.mark.parametrize(
    ("new", "word"),
    [
        pytest.param({}, "Track is gone", id="struct-gone"),
        pytest.param(entry(*reversed(OLD["Track"].fields)), "was commits and is now span", id="swapped"),
        pytest.param(entry(OLD["Track"].fields[0]), "was span and is gone", id="field-gone"),
        pytest.param(
            entry(("commits", "int", "0"), ("new", "int", "0"), ("span", "int", "0")),
            "added at the end only",
            id="in-the-middle",
        ),
        pytest.param(
            entry(*OLD["Track"].fields, ("end", "int", "")), "has no default", id="new-without-default"
        ),
        pytest.param(
            entry(("commits", "str", "0"), ("span", "int", "0")), "was int and is now str", id="other-type"
        ),
        pytest.param(entry(("commits", "int", "1"), ("span", "int", "0")), "default 0", id="other-default"),
        pytest.param(entry(*OLD["Track"].fields, how="array, tag t"), "is now array, tag t", id="tag"),
    ],
)
def test_whatever_is_no_growth_is_refused(new: Entries, word: str) -> None:
    """Each way in which a saved struct can be broken is named."""
    assert [one for one in breaches(OLD, new) if word in one]


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(entry(*OLD["Track"].fields, ("end", "int", "-1")), id="a-field-at-the-end"),
        pytest.param(entry(("commits", "None | int", "0"), ("span", "int", "0")), id="a-wider-type"),
        pytest.param({**OLD, **COLOURS}, id="another-struct"),
    ],
)
def test_growth_is_no_breach(new: Entries) -> None:
    """Fields at the end, wider types and new structs are how saved state goes on."""
    assert breaches(OLD, new) == []


def test_an_enum_keeps_its_values() -> None:
    """A value that was saved is known for ever; new ones may come anywhere."""
    red = COLOURS["Colour"].fields[0]

    assert breaches(COLOURS, {"Colour": Entry("enum of str", (red,))}) == [
        "Colour no longer knows the value green"
    ]


@pytest.mark.parametrize("blob", [pytest.param(blob, id=blob.path.stem) for blob in blobs()])
def test_golden_shards_say_what_they_said(blob: Blob) -> None:
    """A checkpoint of an older version is read field by field as it was written."""
    assert differences(blob) == []


def test_every_saved_field_is_in_a_golden_shard() -> None:
    """Each field of each saved struct is other than its default somewhere; `make state` sees to it."""
    assert blobs()
    assert uncovered() == set()


def test_of_golden_shards_those_of_releases_and_the_newest_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written between two releases goes when there is one that has more."""
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    for name in (*golden.RELEASED, "v1-between", "v1-later"):
        for ending in (".bin", ".json"):
            (tmp_path / f"{name}{ending}").write_bytes(b"{}")
    (tmp_path / "v1.bin").write_bytes(b"of a test of its own")
    made = golden.make(collected())

    names = {one.name for one in tmp_path.iterdir()}
    assert names == {
        f"{name}{end}" for name in (*golden.RELEASED, made.path.stem) for end in (".bin", ".json")
    } | {"v1.bin"}


def test_released_shards_are_there() -> None:
    """Nobody deletes what a checkpoint out there may look like."""
    assert {blob.path.stem for blob in blobs()} >= golden.RELEASED


def test_a_golden_shard_is_saved_to_the_same_bytes() -> None:
    """What a shard of today's structs is decoded to encodes to the same bytes, all of it non-default."""
    packed = Filler().shard()

    assert snapshot.encode(*snapshot.decode(packed)) == packed


def test_neighbours_in_a_golden_shard_differ() -> None:
    """No two fields of one struct hold the same number or text, so that a swap would be seen."""
    waiting: list[Any] = [told(*snapshot.decode(Filler().shard()))]
    while waiting:
        one = waiting.pop()
        plain = [value for value in one.values() if isinstance(value, str) or type(value) in {int, float}]
        assert len(set(plain)) == len(plain), one
        waiting += [inner for value in one.values() for inner in within(value)]


def within(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value]
    return [inner for one in value for inner in within(one)] if isinstance(value, list) else []


def test_sparks_own_columns_stay() -> None:
    """Spark compares these with the checkpoint at each start and refuses others."""
    assert STATE_SCHEMA == "version int, due_ms long, blob binary"


def test_what_a_receiver_was_told_is_read_as_it_was_written() -> None:
    """The words in a notifier's cursor outlive an upgrade."""
    memory = CursorNotes()
    memory.add("alert-1", LastDelivery(Severity.CRITICAL, 1_700_000_040_000), frozenset({Severity.WARNING}))

    assert pack_notes(memory) == TOLD
    assert unpack_notes(TOLD) == memory
