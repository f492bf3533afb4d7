"""Two thousand records that no broker wrote, and what is wrong with each; made without our own decoders.

The layouts are those of Kafka's schemas: a key is a version and its fields, a string is two bytes of
length and UTF-8, an offset commit of version 3 is offset, leader epoch, metadata and time.  Records of
all other types come from ``tests/golden/records``: that they are damaged is the word of Kafka's classes.
"""

import gzip
import json
import random
import struct
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coordinator_model.decoding.schemas import describe

GOLDEN = Path(__file__).parents[2] / "golden" / "records" / "damaged.jsonl.gz"
HOSTILE = (
    'quote"brace}',
    "back\\slash",
    "two\nlines",
    "  spaces  ",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "группа-потребителей",
    "🦆" * 20,
    "x" * 20_000,
    "nul\x00byte",
    "# HELP groupwatch_group_state 1",
)
"""Group ids that a client may choose; each must be shown, and none may break anything."""

_LINE_BYTES = 10_000_000
_TOO_LONG_BYTES = 17_000_000


@dataclass(frozen=True)
class Piece:
    """One record, and the reason under which it must be counted; "" if it can be read."""

    value: bytes | None
    key: bytes
    reason: str = ""


def expected(pieces: list[Piece]) -> dict[str, int]:
    """Return how many records must be counted under each reason."""
    return dict(Counter(piece.reason for piece in pieces if piece.reason))


# --- __consumer_offsets -------------------------------------------------------------------------------


def offsets(rng: random.Random, count: int) -> list[Piece]:
    """Return ``count`` records, damaged in all ways in turn, and one good commit of each hostile group."""
    makers = (
        _key_of_one_byte,
        _cut_key,
        _unknown_type,
        _cut_value,
        _no_bytes,
        _bytes_left,
        _unknown_version,
        _impossible_length,
        _huge_length,
        _no_utf8,
    )
    good = [Piece(_commit_value(7), _commit_key(name.encode())) for name in HOSTILE]
    return good + [makers[number % len(makers)](rng, number) for number in range(count - len(good))]


def of_all_types(rng: random.Random, count: int) -> list[Piece]:
    """Return ``count`` records that Kafka's classes refuse; only the name of the reason is ours."""
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if "refused" in row["kafka"]]
    pieces = []
    for row in rows:
        key, value = bytes.fromhex(row["key"]), bytes.fromhex(row["value"])
        told = describe(key, value)
        if "error" in told:  # the preview's shorter share records are none for us
            pieces.append(Piece(value, key, told["error"].split(":")[0]))
    return rng.sample(pieces, count)


def _text(value: bytes) -> bytes:
    return struct.pack(">h", len(value)) + value


def _commit_key(group: bytes) -> bytes:
    return struct.pack(">h", 1) + _text(group) + _text(b"orders") + struct.pack(">i", 0)


def _commit_value(offset: int) -> bytes:
    return struct.pack(">hqi", 3, offset, -1) + _text(b"meta") + struct.pack(">q", 1_700_000_000_000)


def _key(number: int) -> bytes:
    return _commit_key(b"damaged-%d" % number)


def _key_of_one_byte(rng: random.Random, _number: int) -> Piece:
    return Piece(_commit_value(1), bytes([rng.randrange(256)]), "truncated")


def _cut_key(rng: random.Random, number: int) -> Piece:
    key = _key(number)
    return Piece(_commit_value(1), key[: rng.randrange(2, len(key))], "truncated")


def _unknown_type(rng: random.Random, number: int) -> Piece:
    return Piece(b"\x00\x00", struct.pack(">h", rng.randrange(1_000, 30_000)) + _key(number), "unknown_type")


def _cut_value(rng: random.Random, number: int) -> Piece:
    value = _commit_value(1)
    return Piece(value[: rng.randrange(2, len(value))], _key(number), "truncated")


def _no_bytes(_rng: random.Random, number: int) -> Piece:
    return Piece(b"", _key(number), "empty")


def _bytes_left(rng: random.Random, number: int) -> Piece:
    return Piece(_commit_value(1) + rng.randbytes(rng.randrange(1, 9)), _key(number), "trailing_bytes")


def _unknown_version(rng: random.Random, number: int) -> Piece:
    value = struct.pack(">h", rng.randrange(100, 30_000)) + _commit_value(1)[2:]
    return Piece(value, _key(number), "unknown_version")


def _impossible_length(rng: random.Random, number: int) -> Piece:
    value = struct.pack(">hqih", 3, 1, -1, -rng.randrange(2, 30_000)) + bytes(8)
    return Piece(value, _key(number), "bad_length")


def _huge_length(_rng: random.Random, number: int) -> Piece:
    return Piece(struct.pack(">hqih", 3, 1, -1, 32_767) + bytes(8), _key(number), "truncated")


def _no_utf8(_rng: random.Random, number: int) -> Piece:
    return Piece(_commit_value(1), _commit_key(b"\xff\xfe-%d" % number), "bad_utf8")


# --- groupwatch-events --------------------------------------------------------------------------------


def events(rng: random.Random, count: int) -> list[Piece]:
    """Return ``count`` records: damaged ones, lines of no coordinator, and three that are very long."""
    long = [
        Piece(b"x" * _LINE_BYTES, b"1", "unknown_layout"),
        Piece(b'Completed request:{"a": "' + b"x" * _LINE_BYTES, b"1", "request_json_invalid"),
        Piece(b"y" * _TOO_LONG_BYTES, b"1", "too_long"),
    ]
    forged = [Piece(line.encode(), b"1", why) for name in HOSTILE for line, why in _forged(name)]
    makers = (
        lambda: Piece(b"", b"1", "empty"),
        lambda: Piece(b"\xff" + rng.randbytes(rng.randrange(1, 400)), b"1", "not_utf8"),
        lambda: Piece(b'{"message": 7}', b"1", "envelope_without_message"),
        lambda: Piece(b'{"message": "cut', b"1", "envelope_invalid"),
        lambda: Piece(b"{" + b"[" * 5_000, b"1", "envelope_invalid"),
        lambda: Piece(_cut_request(rng), b"1", "request_json_invalid"),
        lambda: Piece(b"Completed request: RequestHeader(apiKey=HEARTBEAT)", b"1", "request_not_json"),
        lambda: Piece(
            b"nothing that a broker says %d" % rng.randrange(10**9), rng.randbytes(4), "unknown_layout"
        ),
    )
    rest = count - len(long) - len(forged)
    return long + forged + [makers[number % len(makers)]() for number in range(rest)]


def _cut_request(rng: random.Random) -> bytes:
    line = b'Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":12,"requestApiVersion":4'
    return line[: rng.randrange(len(b"Completed request:{"), len(line))]


def _forged(group: str) -> Iterator[tuple[str, str]]:
    """Lines in the coordinator's words about a group of a hostile name; "" for one that is read."""
    now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())  # a group that is empty for a week is gone
    start = f"[{now},925] INFO [GroupCoordinator id=1] "
    yield f"{start}Group {group} with generation 3 is now empty. (org.apache.kafka.coordinator.group.X)", ""
    yield f"{start}Stabilized group {group} generation 99999999999999999999 with 3 members.", "out_of_range"
