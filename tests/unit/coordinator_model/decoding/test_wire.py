"""The bounded reader: what it reads, and that nothing else than DecodeError comes out of it."""

import base64
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model.decoding.wire import DecodeError, Fault, Reader, print_uuid
from tests.unit.coordinator_model.kafka_bytes import tags, uvarint


def _fault(call: object) -> Fault:
    assert callable(call)
    with pytest.raises(DecodeError) as caught:
        call()
    return caught.value.fault


def test_numbers_are_big_endian_and_signed_where_kafka_says_so() -> None:
    """Each number type reads its own width, in order."""
    reader = Reader(b"\xff" + b"\xff\xfe" + b"\xff\xfe" + b"\x80\0\0\0" + b"\0\0\0\0\0\0\1\0")
    read = (reader.int8(), reader.int16(), reader.uint16(), reader.int32(), reader.int64())
    assert read == (-1, -2, 65534, -(2**31), 256)
    assert reader.remaining == 0


@pytest.mark.parametrize("size", range(8))
def test_a_number_needs_all_its_bytes(size: int) -> None:
    """One byte short is truncated, not zero."""
    assert _fault(Reader(bytes(size)).int64) is Fault.TRUNCATED


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_varints_come_back(value: int) -> None:
    """Whatever was written as a varint is read again."""
    assert Reader(uvarint(value)).uvarint() == value


@pytest.mark.parametrize("data", [b"\xff" * 6, b"\x80\x80\x80\x80\x10", b"\xff\xff\xff\xff\x1f"])
def test_a_varint_has_32_bits(data: bytes) -> None:
    """One that goes on is refused instead of followed, and one that overflows is no other tag or length."""
    assert _fault(Reader(data).uvarint) is Fault.BAD_LENGTH


def test_a_text_is_as_long_as_kafka_lets_it_be() -> None:
    """32,767 bytes; a compact length can say more, and Kafka's own reader refuses that."""
    assert Reader(b"x" * 32_767).text(32_767) == "x" * 32_767
    assert _fault(lambda: Reader(b"x" * 32_768).text(32_768)) is Fault.BAD_LENGTH


@pytest.mark.parametrize(
    ("data", "method"),
    [
        (b"\xff\xfe", Reader.short_length),
        (b"\x80\0\0\0", Reader.int_length),
        (b"\xff\xff\xff\xff\x0f", Reader.compact_length),
    ],
)
def test_lengths_that_cannot_be_are_refused(data: bytes, method: object) -> None:
    """Less than null, or more than Java can count."""
    assert callable(method)
    assert _fault(lambda: method(Reader(data))) is Fault.BAD_LENGTH


def test_null_lengths_are_none() -> None:
    """-1, and 0 in the compact form."""
    assert Reader(b"\xff\xff").short_length() is None
    assert Reader(b"\xff\xff\xff\xff").int_length() is None
    assert Reader(b"\0").compact_length() is None


def test_text_must_be_utf8() -> None:
    """A lone continuation byte is a fault of its own."""
    assert _fault(lambda: Reader(b"\x80").text(1)) is Fault.BAD_UTF8


def test_a_huge_announced_length_allocates_nothing() -> None:
    """Two billion announced bytes or elements cost no memory."""
    tracemalloc.start()
    assert _fault(lambda: Reader(bytes(20)).take(2**31 - 1)) is Fault.TRUNCATED
    assert _fault(lambda: Reader(bytes(20)).array(2**31 - 1, Reader.int32)) is Fault.TRUNCATED
    assert _fault(lambda: Reader(bytes(20)).int32s(2**31 - 1)) is Fault.TRUNCATED
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_unknown_tags_are_stepped_over_by_their_size() -> None:
    """A tag that nobody reads does not disturb what follows it."""
    reader = Reader(tags((5, b"whatever"), (9, b"")) + b"\x07")
    assert [tag for tag, _ in reader.tags()] == [5, 9]
    assert reader.int8() == 7


def test_a_tag_cannot_read_past_its_size() -> None:
    """The reader of a tag's payload ends where the payload ends."""
    (_, payload), *_ = Reader(tags((0, b"\0\0")) + bytes(8)).tags()
    assert _fault(payload.int32) is Fault.TRUNCATED


def test_what_is_left_over_is_a_fault() -> None:
    """finish() is silent at the end and only there."""
    reader = Reader(b"\1\2")
    reader.int8()
    assert _fault(reader.finish) is Fault.TRAILING_BYTES
    reader.int8()
    reader.finish()


@settings(deadline=None)
@given(st.binary(min_size=16, max_size=16))
def test_uuids_are_printed_as_kafka_does(raw: bytes) -> None:
    """22 characters of URL-safe base64, padding left out."""
    printed = print_uuid(raw)
    assert len(printed) == 22
    assert base64.urlsafe_b64decode(printed + "==") == raw


def test_the_message_names_fault_and_detail() -> None:
    """What people read begins with the label."""
    assert str(DecodeError(Fault.EMPTY)) == "empty"
    assert str(DecodeError(Fault.BAD_LENGTH, "length -7")) == "bad_length: length -7"
