"""Lines of twice the length take at most three times as long, whatever their names are made of.

Alone: ``make growth``.  Kafka allows names of 32,767 characters, and anybody may choose them.
"""

import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

from coordinator_model.decoding.coordinator_reasons import REASONS
from coordinator_model.decoding.coordinator_shapes import SHAPES
from coordinator_model.observations.requests import GroupHeard
from coordinator_model.shard.routing import split_names
from streaming.decoders.buffered_lines import LineReader
from streaming.decoders.decoding_events import decode_lines
from streaming.devkit.bench.material import Population, heartbeat_line

pytestmark = pytest.mark.growth

LONG = 32_767
FACTOR_MAX = 3.0
RUNS, TRIES_MAX = 5, 3
AT_LEAST_S = 0.002
"""What is shorter is done several times, or the clock would be measured."""
GIVES_UP_S = 20
AT = 1_795_218_710_925
SHARDS = 4
"""Few, and each line is read in all: where a name would live decides how often it is read."""
ID = "-ca3b18a3-a3f6-4c3f-a3e3-e97c3daff200"
PREFIX = "[GroupCoordinator id=1 topic=__consumer_offsets partition={}] "
_NUMBERS = {"n", "k", "static", "partition", "epoch"}
_WORDS = {"s": "Stable", "op": "heartbeat"}
_SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)


def _decode(*lines: str) -> None:
    """Decode lines one by one."""
    for line in lines:
        row = {"partition": 0, "offset": 0, "timestamp_ms": AT, "key": None, "value": line.encode()}
        table = pa.Table.from_pylist([row], schema=_SCHEMA)
        decode_lines(LineReader({}, "UTC").lines(table), shard_count=SHARDS, timezone="UTC")


@contextmanager
def _giving_up() -> Iterator[None]:
    """End what takes minutes: one line that grows with the third power does."""

    def give_up(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"more than {GIVES_UP_S} s for one line")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(GIVES_UP_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _seconds(work: Callable[[], object], times: int) -> float:
    started = time.process_time()
    for _ in range(times):
        work()
    return time.process_time() - started


def _factor(short: Callable[[], object], long: Callable[[], object]) -> float:
    """Return how many times as long ``long`` takes: the least of five runs each, taken in turn."""
    times = max(1, round(AT_LEAST_S / max(_seconds(short, 1), 1e-6)))
    runs = [(_seconds(short, times), _seconds(long, times)) for _ in range(RUNS)]
    return min(run[1] for run in runs) / min(run[0] for run in runs)


def _held_to_growth(work: Callable[[int], Callable[[], object]]) -> None:
    """Hold the cost at 32,767 characters against that at 16,383; on a busy machine three times at most."""
    short, long = work(LONG // 2), work(LONG)
    with _giving_up():
        factors: list[float] = []
        while not factors or (factors[-1] > FACTOR_MAX and len(factors) < TRIES_MAX):
            factors.append(_factor(short, long))

    assert min(factors) <= FACTOR_MAX, f"{factors} times as long"


def _held_lines(line: Callable[[int], str]) -> None:
    """The same of decoding a whole line, which ``line`` makes from the length of its names."""

    def work(length: int) -> Callable[[], object]:
        made = line(length)
        lines = [made.replace(PREFIX, PREFIX.format(partition)) for partition in range(SHARDS)]
        return lambda: _decode(*(lines if PREFIX in made else [made]))

    _held_to_growth(work)


def _repeated(words: str, length: int) -> str:
    return (words * (length // len(words) + 1))[:length]


def _filled(sentence: str, length: int, *, whole: bool) -> str:
    """Return a sentence in each of whose fields its own words stand again and again.

    Args:
        sentence: a template.
        length: of each field, characters.
        whole: repeat the whole sentence, with values in its fields; else its words without them.
    """
    parts = re.split(r"\{(\w+)\}", sentence)
    values = ["5" if name in _NUMBERS else _WORDS.get(name, f"a{ID}") for name in parts[1::2]]
    again = "".join(part + (values[index] if whole else "") for index, part in enumerate(parts[:-1:2]))
    again += parts[-1]
    for index in range(1, len(parts), 2):
        free = parts[index] not in _NUMBERS and parts[index] not in _WORDS
        parts[index] = _repeated(again, length) if free else values[index // 2]
    return "".join(parts)


def _dated(message: str) -> str:
    return f"[2026-11-20 23:51:50,925] INFO {PREFIX}{message} (org.apache.kafka.coordinator.group.X)"


SENTENCES = [shape.template.sentence for shape in SHAPES]
STARTED = "Preparing to rebalance group {g} in state {s} with old generation {n} (reason: %s)."


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("sentence", SENTENCES)
def test_sentences(sentence: str, whole: bool) -> None:
    """Each sentence of the coordinator is read in linear time, in a whole line with its date and logger."""
    _held_lines(lambda length: _dated(_filled(sentence, length, whole=whole)))


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("reason", [t.sentence for shape in REASONS for t in shape.templates])
def test_reasons(reason: str, whole: bool) -> None:
    """So is each reason of a rebalance."""
    _held_lines(lambda length: _dated(_filled(STARTED % reason, length, whole=whole)))


@pytest.mark.parametrize("sentence", SENTENCES)
def test_sentences_in_an_envelope(sentence: str) -> None:
    """So is a sentence in a shipper's JSON, of another broker version and with a stack trace below it."""

    def line(length: int) -> str:
        return json.dumps(
            {"message": f"[GroupCoordinator 1]: {_filled(sentence, length, whole=True)}\n\tat x.Y"}
        )

    _held_lines(line)


@pytest.mark.parametrize("field", ["n", "k", "partition", "epoch", "s", "op"])
def test_digits_and_words(field: str) -> None:
    """Numbers and words that never end are given up in linear time."""
    digit = "w" if field in _WORDS else "9"
    for sentence in SENTENCES:

        def line(length: int, sentence: str = sentence) -> str:
            return _dated(_filled(sentence.replace(f"{{{field}}}", digit * length), 9, whole=True))

        if f"{{{field}}}" in sentence:
            _held_lines(line)


@pytest.mark.parametrize("names", [1, 63, 64, 65, 2_000])
def test_deleted_groups(names: int) -> None:
    """A line of Kafka 3 that names many groups with ", " in their names."""

    def line(length: int) -> str:
        listed = ", ".join("a" * max(1, length // names) for _ in range(names))
        told = f"The following groups were deleted: {listed}. A total of 2 offsets were removed."
        return f"[GroupCoordinator 1]: {told}"

    _held_lines(line)


def test_deleted_groups_in_their_shard() -> None:
    """Groups whose names are made of each other's are found in a list of them."""

    def work(length: int) -> Callable[[], object]:
        known = {"b" + ", a" * size: 0 for size in range(500)}
        names = ", ".join("a" * (length // 3)) + ", b"
        return lambda: split_names(names, known)

    _held_to_growth(work)


def _request(api: int, name: str, count: int) -> str:
    """Return a line whose names are ``name`` and whose lists have ``count`` entries."""
    partition = {"partitionIndex": 1, "committedOffset": 5, "errorCode": 0}
    topics = [{"name": name, "partitions": [partition] * count, "partitionIndexes": [1] * count}]
    member = {"memberId": name, "groupInstanceId": name, "reason": name, "errorCode": 0}
    common: dict[str, Any] = {
        "groupId": name,
        "memberId": name,
        "groupInstanceId": name,
        "reason": name,
        "topics": topics,
        "members": [member] * count,
        "producerId": 1,
        "memberEpoch": 0,
        "groupsNames": [name[:9]] * count,
        "results": [{"groupId": name[:9], "errorCode": 0}] * count,
        "markers": [{"producerId": 1, "transactionResult": True, "topics": topics}],
        "unknown": [[[name]]] * count,
    }
    fields = {
        "isForwarded": False,
        "requestHeader": {"requestApiKey": api, "clientId": name},
        "request": common,
        "response": {**common, "errorCode": 0, "leader": name, "protocolName": name},
        "connection": _repeated(":1-a:1-1-1", len(name)),
        "totalTimeMs": 1.5,
        "principal": name,
        "clientInformation": {"softwareName": name},
    }
    return "Completed request:" + json.dumps(fields, separators=(",", ":"))


@pytest.mark.parametrize("api", [8, 11, 12, 13, 14, 27, 28, 42, 68, 76, 88, 9, 3])
def test_requests(api: int) -> None:
    """The request log's line of each API, with long names and with long lists."""
    words = '"groupId":"Completed request:{ (kafka.request.logger)'
    _held_lines(lambda length: _request(api, _repeated(words, length), 2))
    _held_lines(lambda length: _request(api, "name", length // 32))
    _held_lines(lambda length: _request(api, "a", 1).replace('"a"', "[" * length, 1))


def test_one_member_in_many_texts() -> None:
    """A member whose lines never look alike, as a broker that throttles writes them, is put together once."""
    beat = heartbeat_line(Population(groups=1), 0, 0, AT, 1)

    def work(length: int) -> Callable[[], object]:
        numbers = range(length // 4)
        lines = [beat.replace(b'{"throttleTimeMs":0', b'{"throttleTimeMs":%d' % one) for one in numbers]
        rows = [
            {"partition": 0, "offset": one, "timestamp_ms": AT, "key": b"1", "value": line}
            for one, line in enumerate(lines)
        ]
        table = pa.Table.from_pylist(rows, schema=_SCHEMA)
        read = LineReader({}, "UTC").lines(table)
        told = decode_lines(read, shard_count=SHARDS, timezone="UTC", puts_together=True)
        assert any(type(one.what) is GroupHeard for seen in told.cells.values() for one in seen)
        return lambda: decode_lines(read, shard_count=SHARDS, timezone="UTC", puts_together=True)

    _held_to_growth(work)
