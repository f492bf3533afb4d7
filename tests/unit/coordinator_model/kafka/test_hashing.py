"""Hashes of groups' names, against values of Java and against its formula, unit by unit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.kafka.hashing import java_string_hash, shard_of, shards_of_prefixes


def _by_formula(text: str) -> int:
    """Return what ``String.hashCode`` is defined as: 31 times the hash so far, and the next unit."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + 256 * high + low) % 2**32
    return value - 2**32 if value >= 2**31 else value


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("hello", 99162322), ("polygenelubricants", -(2**31)), ("\N{GRINNING FACE}", 1772899)],
)
def test_a_hash_is_that_of_java(text: str, code: int) -> None:
    """Printed by jshell; the third is the one whose absolute value no int can hold."""
    assert java_string_hash(text) == code


@given(st.text(st.characters(), max_size=300) | st.integers(0, 300).map(lambda size: "x" * size))
def test_a_hash_of_any_text_follows_the_formula(text: str) -> None:
    """Names may be long, of any language, or broken."""
    assert java_string_hash(text) == _by_formula(text)


@given(st.text(max_size=200), st.integers(0, 200))
def test_a_prefix_is_hashed_like_a_text(text: str, end: int) -> None:
    """The rest goes on from the hash of what stands before it."""
    assert shards_of_prefixes(text, 0, sorted((end, len(text))), 50) == [
        shard_of(text[:one], 50) for one in sorted((end, len(text)))
    ]


def test_the_hash_without_an_absolute_value_is_of_the_first_shard() -> None:
    """Kafka: ``Utils.abs``."""
    assert shard_of("polygenelubricants", 50) == 0
