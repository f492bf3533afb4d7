"""Long records, and damaged ones: what Kafka's own classes read in them is what may be read in them."""

import gzip
import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from coordinator_model.decoding.schemas import RECORDS, describe

FOLDER = Path(__file__).parents[3] / "golden" / "records"
ROUNDS = 20_000
BYTES_FOR_EACH_BYTE = 400
"""A dict for a struct of one byte is what costs most."""

TAGGED = {field.name for record in RECORDS.values() for field in record.value if field.tag is not None}

Row = dict[str, Any]


def _packed(name: str) -> list[Row]:
    with gzip.open(FOLDER / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _described(row: Row) -> Row:
    return describe(bytes.fromhex(row["key"]), bytes.fromhex(row["value"]))


@pytest.fixture(scope="module")
def damaged() -> list[Row]:
    return _packed("damaged.jsonl.gz")


def test_long_records_are_read_whole() -> None:
    """Texts of 32,767 bytes, arrays of 150 elements and bytes whose lengths take three bytes."""
    rows = _packed("big.jsonl.gz")
    assert len(rows) == 2 * sum(record.newest + 1 for record in RECORDS.values())
    for row in rows:
        told = _described(row)
        assert (told["type"], told["version"]) == (row["type"], row["version"])
        assert (told["key"], told["value"]) == (row["key_json"], row["value_json"])


def test_what_is_read_in_damage_is_what_kafka_reads(damaged: list[Row]) -> None:
    """A value is Kafka's value, nothing left over; the shorter share records of 4.0 are the one exception."""
    read = [(row["kafka"], told) for row in damaged if "error" not in (told := _described(row))]
    others = [told for kafka, told in read if "refused" in kafka]
    assert all(RECORDS[told["type"]].older for told in others)
    assert len(others) < 10 < len(read)
    for kafka, told in read:
        if "refused" not in kafka:
            assert (told["key"], told["value"], 0) == (kafka["key"], kafka["value"], kafka["left"])


def test_what_kafka_reads_is_refused_for_a_reason(damaged: list[Row]) -> None:
    """Bytes left over, text that is no UTF-8, and tags that lie about their size: Kafka forgives them."""
    reasons: dict[str, list[Row]] = {}
    for row in damaged:
        told, kafka = _described(row), row["kafka"]
        if "error" in told and "refused" not in kafka:
            reasons.setdefault(told["error"].split(":")[0], []).append(kafka)
    assert all(kafka["left"] for kafka in reasons.pop("trailing_bytes"))
    assert all("\ufffd" in json.dumps(kafka, ensure_ascii=False) for kafka in reasons.pop("bad_utf8"))
    odd_tags = [kafka for fault in ("truncated", "bad_length") for kafka in reasons.pop(fault)]
    assert len(odd_tags) < len(damaged) / 100
    assert all(kafka["left"] or TAGGED.intersection(kafka["value"]) for kafka in odd_tags)
    assert reasons == {}


def _allocated(row: Row) -> int:
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    _described(row)
    return tracemalloc.get_traced_memory()[1] - before


def test_damage_costs_little_memory(damaged: list[Row]) -> None:
    """Whatever lengths the bytes announce, what is allocated is in proportion to the bytes that are there."""
    tracemalloc.start()
    for row in damaged:
        size = (len(row["key"]) + len(row["value"])) // 2
        # The least of three: a thread that speaks for the runner of the tests may allocate meanwhile.
        assert min(_allocated(row) for _ in range(3)) < 20_000 + BYTES_FOR_EACH_BYTE * size, row
    tracemalloc.stop()


def test_any_damage_is_described_or_refused() -> None:
    """Golden records cut, spliced and overwritten at random are JSON in the end, with a fault of the list."""
    rng = random.Random(4)
    rows = [
        json.loads(line) for file in sorted(FOLDER.glob("*.jsonl")) for line in file.open(encoding="utf-8")
    ]
    pairs = [(bytes.fromhex(row["key"]), bytes.fromhex(row["value"])) for row in rows]
    for _ in range(ROUNDS):
        key, value = rng.choice(pairs)
        told = describe(_hurt(rng, key) if rng.random() < 0.3 else key, _hurt(rng, value))
        assert ("error" in told) != ("value" in told)
        json.dumps(told, allow_nan=False)


def _hurt(rng: random.Random, whole: bytes) -> bytes:
    """Return bytes with one to three injuries."""
    for _ in range(rng.randint(1, 3)):
        start, end = sorted(rng.randrange(len(whole) + 1) for _ in range(2))
        middle = rng.choice(
            [b"", rng.randbytes(rng.randrange(6)), whole[start:end] * 2, b"\xff\xff", b"\x7f\xff\xff\xff"]
        )
        whole = whole[:start] + middle + whole[end if rng.random() < 0.7 else start :]
    return whole
