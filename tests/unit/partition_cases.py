"""Histories of partitions with Burrow's own verdicts on them (``tests/golden/partitions``).

What groupwatch says otherwise stands in ``CORRECTED``, each with what its users report as false.
"""

import gzip
import json
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from alerts.rules.progress.verdicts import Status

GOLDEN = Path(__file__).parents[1] / "golden" / "partitions" / "cases.jsonl.gz"
T0 = 1_700_000_000_000

MEANS = {
    "OK": Status.OK,
    "STOP": Status.STOPPED,
    "STALL": Status.STALLED,
    "REWIND": Status.REWOUND,
    "WARN": Status.GROWING,
}

CORRECTED = {
    # Its window is ten commits wide: who commits each second may be silent for ten seconds.
    ("late", "STOP"): Status.OK,
    ("quick_repeats", "STALL"): Status.OK,
    # It does not know what was usual before these ten, as of a job that runs each half hour.
    ("job", "STOP"): Status.OK,
    # A single commit is a window without any width.
    ("few", "STOP"): Status.UNKNOWN,
    # It knows nothing of rebalances.
    ("rebalanced", "STOP"): Status.OK,
    # Each transaction leaves a record that nobody reads; "allowed-lag" would have to be configured.
    ("markers", "STOP"): Status.OK,
    ("markers", "STALL"): Status.OK,
    ("woken_behind_a_marker", "STOP"): Status.OK,
    ("woken_behind_a_marker", "STALL"): Status.OK,
    # A topic of the same name is not the same topic.
    ("made_anew", "REWIND"): Status.OK,
    # It judges the first drop in the window alone.
    ("twice", "OK"): Status.REWOUND,
    # Lag that never falls, though the distance in time stays the same.
    ("rises_with_the_load", "WARN"): Status.OK,
    # It holds a commit against an end offset up to ten seconds older, so that lag seems to fall.
    ("slow", "OK"): Status.GROWING,
}


class Case(NamedTuple):
    """One history, and what Burrow says of it."""

    kind: str
    commits: list[tuple[int, int]]
    ends: list[tuple[int, int]]
    now_ms: int
    steady_ms: int
    burrow: str

    @property
    def expected(self) -> Status:
        """What is right to say."""
        return CORRECTED.get((self.kind, self.burrow), MEANS[self.burrow])


def _summed(steps: list[list[int]]) -> list[tuple[int, int]]:
    pairs = accumulate(steps, lambda so_far, step: [so_far[0] + step[0], so_far[1] + step[1]])
    return [(offset, T0 + at) for offset, at in pairs]


def cases() -> Iterator[Case]:
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            yield Case(
                kind=row["kind"],
                commits=_summed(row["commits"]),
                ends=_summed(row["ends"]),
                now_ms=T0 + row["now"],
                steady_ms=T0 + row["steady"] if row["steady"] else 0,
                burrow=row["burrow"],
            )


CASES = list(cases())
