"""The cases of ``tests/golden/partitions`` as captured rows: the whole way from bytes to open alerts."""

import json
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from alerts.alert.alert import Alert, AlertStatus
from alerts.rules.engine.repeated import QUIET_MS
from alerts.rules.progress.verdicts import Status
from coordinator_model.kafka.hashing import shard_of
from streaming.replay.files import Skipped
from streaming.replay.run import replay
from tests.unit.coordinator_model.kafka_bytes import commit_key, commit_value
from tests.unit.partition_cases import CASES, Case

NAMES = {
    Status.STOPPED: {"CommitsStopped"},
    Status.STALLED: {"CommitsStalled"},
    Status.REWOUND: {"OffsetRewind"},
    Status.GROWING: {"LagGrowing"},
    Status.OK: set(),
    Status.UNKNOWN: set(),
}
END_MS = 1_700_100_000_000
"""All cases are judged at one moment, the end of the capture."""


def _rows(name: str, case: Case) -> list[tuple[int, str]]:
    """Return the case as one group and one topic of the same name."""
    shift, rows = END_MS - case.now_ms, []
    for end, at_ms in case.ends:
        told = {"source": "end_offset", "topic": name, "partition": 0, "offset": end}
        rows.append((at_ms + shift, json.dumps({**told, "timestamp_ms": at_ms + shift})))
    for offset, at_ms in case.commits:
        value = commit_value(offset, at_ms + shift).hex()
        record = {"key": commit_key(name, name, 0).hex(), "value": value, "timestamp_ms": at_ms + shift}
        place = {"source": "offsets", "partition": shard_of(name, 50)}
        rows.append((at_ms + shift, json.dumps({**place, **record})))
    return rows


class Told(NamedTuple):
    """Names of alerts of one group."""

    ever: set[str]
    at_the_end: set[str]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    """Replay all cases together; return what was told, by group."""
    rows = [row for name, case in _named() for row in _rows(name, case)]
    rows.sort(key=lambda row: row[0])
    clock = json.dumps({"source": "clock", "timestamp_ms": END_MS})
    capture: Path = tmp_path_factory.mktemp("cases") / "cases.jsonl"
    capture.write_text("\n".join([*(line for _, line in rows), clock]) + "\n")
    found = {name: Told(set(), set()) for name, _ in _named()}
    for one in replay([capture], config_rules=None, timezone="UTC", skipped=Skipped(), strict=True):
        if isinstance(one, Alert) and one.status is AlertStatus.FIRING:
            found[one.group].ever.add(one.name)
            found[one.group].at_the_end.add(one.name)
        elif isinstance(one, Alert):
            found[one.group].at_the_end.discard(one.name)
    return found


def _named() -> list[tuple[str, Case]]:
    """Return half of the cases that commits and ends tell whole, each with the name of its group."""
    half = list(enumerate(CASES))[::2]
    return [(f"{case.kind}-{number}", case) for number, case in half if not case.steady_ms]


def _at_the_end(case: Case) -> set[str]:
    """Return what fires; a rewind is an event, and over when nothing went back for ten minutes."""
    is_over = case.expected is Status.REWOUND and case.now_ms - _went_back_ms(case) > QUIET_MS
    return set() if is_over else NAMES[case.expected]


def _went_back_ms(case: Case) -> int:
    steps = pairwise(case.commits)
    return max(at_ms for (before, _), (offset, at_ms) in steps if offset < before)


@pytest.mark.parametrize("kind", sorted({case.kind for case in CASES if not case.steady_ms}))
def test_what_fires_is_the_verdict(kind: str, told: dict[str, Told]) -> None:
    """The alert of the verdict at the end, and no other at any time.

    But for the first pause of a batch job, when nobody knows yet that it is one.
    """
    mine = {name: case for name, case in _named() if case.kind == kind}
    first_pause = {"CommitsStopped"} if kind == "job" else set()

    assert {name: told[name] for name in mine} == {
        name: Told(NAMES[case.expected] | first_pause, _at_the_end(case)) for name, case in mine.items()
    }
