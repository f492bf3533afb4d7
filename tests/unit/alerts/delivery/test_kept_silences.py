"""Silences as records of a topic that anybody may write to: read, refused, merged, ended."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from alerts.alert.alert import Alert
from alerts.alert.records import Refused
from alerts.delivery.silences import FOREVER_MS, LiveQuiet, Match, Quiet, Silence, Silenced
from alerts.delivery.silences.kept_silences import (
    KEPT_MS,
    SILENCES_MAX,
    KeptSilence,
    PatternError,
    SilenceBook,
    check_pattern,
    read_silence,
    silences_in,
)

MakeAlert = Callable[..., Alert]
NOW = 1_700_000_000_000
HOUR, DAY = 3_600_000, 86_400_000


def kept(**changes: Any) -> KeptSilence:
    """A silence of one group for an hour, but for ``changes``."""
    given: dict[str, Any] = {
        "id": "s1",
        "author": "ada",
        "comment": "deploy",
        "groups": ("payments",),
        "starts_at_ms": NOW,
        "ends_at_ms": NOW + HOUR,
        "updated_at_ms": NOW,
    }
    return KeptSilence(**given | changes)


def read(one: KeptSilence, key: bytes | None = None) -> KeptSilence | Refused:
    """Write and read it."""
    own, value = one.record()
    return read_silence(own if key is None else key, value, NOW)


def test_a_record_is_read_as_it_was_written() -> None:
    """Whole."""
    assert read(kept()) == kept()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"id": "a/b"}, "id", id="id"),
        pytest.param({"author": ""}, "author", id="nobody"),
        pytest.param({"author": "a" * 201}, "author", id="long-author"),
        pytest.param({"comment": "c" * 1_001}, "comment", id="long-comment"),
        pytest.param({"groups": ()}, "say what", id="everything"),
        pytest.param({"groups": ("g",) * 51}, "more than 50", id="too-many-groups"),
        pytest.param({"alerts": ("A" * 201,)}, "a name", id="long-name"),
        pytest.param({"groups": ("(",)}, "groups", id="no-pattern"),
        pytest.param({"groups": ("a)|(b",)}, "groups", id="escapes-its-brackets"),
        pytest.param({"groups": ("(?=a)",)}, "groups", id="look-around"),
        pytest.param({"groups": (r"(\w{0,99}){0,99}",)}, "groups", id="huge-pattern"),
        pytest.param({"groups": ("a" * 501,)}, "groups", id="long-pattern"),
        pytest.param({"ends_at_ms": None}, "end", id="no-end"),
        pytest.param({"ends_at_ms": NOW - 1}, "end", id="ends-before-it-starts"),
        pytest.param({"ends_at_ms": NOW + 367 * DAY}, "end", id="for-years"),
        pytest.param({"starts_at_ms": NOW + 367 * DAY}, "start", id="in-years"),
        pytest.param({"starts_at_ms": -1}, "start", id="before-1970"),
        pytest.param({"updated_at_ms": NOW + 2 * DAY}, "updated", id="from-the-future"),
    ],
)
def test_a_record_out_of_range_is_refused(changes: dict[str, Any], field: str) -> None:
    """With the field's name."""
    found = read(kept(**changes))

    assert isinstance(found, Refused)
    assert found.detail.startswith(field)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        pytest.param(b"s1", b"{", "not_a_silence", id="broken"),
        pytest.param(b"s1", b'{"id": "s1"}', "not_a_silence", id="incomplete"),
        pytest.param(b"s1", b"[" * 100_000, "not_a_silence", id="deep"),
        pytest.param(b"s1", b"\xff" * 10, "not_a_silence", id="no-text"),
        pytest.param(b"s1", b" " * 300_000, "out_of_range", id="long"),
        pytest.param(b"other", msgspec.json.encode(kept()), "wrong_key", id="key"),
    ],
)
def test_broken_records_are_counted_and_change_nothing(key: bytes, value: bytes, reason: str) -> None:
    """What stands in the book stays there."""
    book = SilenceBook()
    book.take("main", *kept().record(), NOW)
    book.take("main", key, value, NOW)

    assert book.newest() == {"s1": kept()}
    assert dict(book.refused) == {reason: 1}


def test_a_book_is_bounded() -> None:
    """A known silence can still be changed, and ended, when it is full."""
    book = SilenceBook()
    for n in range(SILENCES_MAX + 1):
        book.take("main", *kept(id=f"s{n}").record(), NOW)
    book.take("main", *kept(id="s0").ended(NOW).record(), NOW)

    assert len(book.newest()) == SILENCES_MAX
    assert book.newest()["s0"].state_at(NOW) == "expired"
    assert dict(book.refused) == {"too_many": 1}


def test_hostile_patterns_cost_no_time() -> None:
    """What keeps Python's own patterns busy for hours is decided at once."""
    silence = kept(groups=("(a+)+b", ".*.*.*.*.*.*.*.*.*.*.*b")).silence()

    assert not silence.match._is_of_group("a" * 30_000)


@pytest.mark.parametrize(
    ("pattern", "group", "expected"),
    [
        pytest.param("pay.*", "payments", True, id="whole"),
        pytest.param("pay", "payments", False, id="part"),
        pytest.param("a|payments", "payments", True, id="either"),
        pytest.param("payments", "payments\n", False, id="line-break"),
        pytest.param("pay.*", "pay\ud800", False, id="surrogate"),
    ],
)
def test_patterns_are_for_whole_names(pattern: str, group: str, expected: bool) -> None:
    """As in the configuration."""
    assert kept(groups=(pattern,)).silence().match._is_of_group(group) is expected


def test_a_refused_pattern_says_why() -> None:
    """In one line."""
    with pytest.raises(PatternError, match=r"look-around.*is not supported"):
        check_pattern("(?!a)")


def test_the_copy_that_was_changed_last_is_valid() -> None:
    """Whatever the order in which topics are read; the other topic is due the newer copy."""
    book, ended = SilenceBook(), kept().ended(NOW + 5)
    book.take("one", *ended.record(), NOW)
    book.take("two", *kept().record(), NOW)

    assert book.newest() == {"s1": ended}
    assert book.due("one", NOW) == []
    assert book.due("two", NOW) == [ended.record()]


def test_a_silence_of_long_ago_is_removed() -> None:
    """By a tombstone in each topic that has it."""
    book = SilenceBook()
    book.take("one", *kept().record(), NOW)
    later = NOW + HOUR + KEPT_MS

    assert book.due("one", later) == []
    assert book.due("one", later + 1) == [(b"s1", None)]
    assert book.due("two", later + 1) == []
    book.take("one", b"s1", None, later + 1)
    assert book.newest() == {}


def test_reading_a_topic_again_forgets_what_is_gone() -> None:
    """A tombstone, or a topic that was made anew, is seen as well."""
    book = SilenceBook()
    book.take("one", *kept().record(), NOW)
    book.replace("one", [kept(id="s2").record()], NOW)

    assert set(book.newest()) == {"s2"}


def test_an_ended_silence_is_newer_than_its_copies() -> None:
    """Even if the clock of the process that ends it is behind; a pending one ends as well."""
    pending = kept(starts_at_ms=NOW + HOUR, ends_at_ms=NOW + 2 * HOUR, updated_at_ms=NOW + 50)

    assert pending.state_at(NOW) == "pending"
    assert pending.ended(NOW).state_at(NOW) == "expired"
    assert pending.ended(NOW).updated_at_ms == NOW + 51
    assert read(pending.ended(NOW)) == pending.ended(NOW)


def test_acknowledging_silences_one_alert_until_it_is_resolved(make_alert: MakeAlert) -> None:
    """And no other of the same group."""
    quiet = LiveQuiet()
    quiet.add_all(silences_in({"s1": kept(groups=(), alert_id="a1", ends_at_ms=None)}, NOW))

    assert quiet.silenced(make_alert(), NOW) == Silenced(
        until_ms=FOREVER_MS, id="s1", author="ada", comment="deploy"
    )
    assert quiet.silenced(make_alert(id="a2"), NOW) is None


def test_added_silences_stand_beside_those_of_the_configuration(make_alert: MakeAlert) -> None:
    """Each can be replaced without the other; the one that ends last is named."""
    quiet = LiveQuiet(Quiet([Silence(match=Match(alerts=("LagGrowing",)), until_ms=NOW + HOUR)]))
    quiet.add_all(silences_in({"s1": kept(ends_at_ms=NOW + 2 * HOUR)}, NOW))
    lag, storm = make_alert(name="LagGrowing"), make_alert()
    assert (quiet.until_ms(lag, NOW), quiet.until_ms(storm, NOW)) == (NOW + 2 * HOUR, NOW + 2 * HOUR)

    quiet.configure(Quiet([Silence(match=Match(alerts=("LagGrowing",)), until_ms=NOW + 3 * HOUR)]))
    assert quiet.silenced(lag, NOW) == Silenced(until_ms=NOW + 3 * HOUR)
    assert quiet.until_ms(storm, NOW) == NOW + 2 * HOUR
    quiet.add_all([])
    assert quiet.until_ms(storm, NOW) is None


def test_equal_silences_are_no_change() -> None:
    """So outboxes look again only when something changed."""
    quiet = LiveQuiet()
    quiet.add_all(silences_in({"s1": kept()}, NOW))
    before = quiet.now
    quiet.add_all(silences_in({"s1": kept()}, NOW))

    assert quiet.now is before
