"""Texts inside JSON strings mean what a JSON reader says, or nobody reads them here."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.decoders.escaped_texts import escaped, unescaped


@given(st.text(st.sampled_from('"\\nu0 a\x01{}é'), max_size=12))
def test_what_is_read_means_the_same_in_json(inside: str) -> None:
    """Or it is refused; whether it is a JSON string at all."""
    found = unescaped(inside.encode())
    if found is not None:
        assert json.loads(f'"{inside}"').encode() == found


@given(st.text(st.sampled_from('"{}:,az09 '), max_size=20))
def test_plain_texts_are_read(text: str) -> None:
    """Such are all names that most users have."""
    assert unescaped(escaped(text.encode())) == text.encode()


@pytest.mark.parametrize("inside", [b'"', b'\\\\"', b"\\n", b"\\u0041", b"\n", b"\xc3\xa9"])
def test_other_texts_are_left_to_others(inside: bytes) -> None:
    """Each needs a JSON reader, or is an error that must be told."""
    assert unescaped(inside) is None
