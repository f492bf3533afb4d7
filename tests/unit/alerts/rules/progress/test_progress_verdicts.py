"""Verdicts on one partition: windows of (offset, lag, time), and what is to be said of them.

The first table holds the published cases of Burrow's evaluator (``core/internal/evaluator/caching_test.go``)
as facts, corrected where its users report them as false; the others are ours.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from alerts.rules.engine.options import Thresholds
from alerts.rules.progress.verdicts import CommitsStoppedOptions, Status, verdict

OK, UNKNOWN = Status.OK, Status.UNKNOWN
STOPPED, STALLED, REWOUND, GROWING = Status.STOPPED, Status.STALLED, Status.REWOUND, Status.GROWING
T0 = 1_700_000_000_000
HOUR = 3_600


class Case(NamedTuple):
    """Commits with the lag at each of them, and the end offsets told after the last one; seconds."""

    name: str
    offsets: list[int]
    lags: Sequence[int | None]
    now: int
    expected: Status
    every: int = 100
    times: list[int] | None = None
    ends: tuple[tuple[int, int], ...] = ()
    """(end offset, when)."""
    steady: int = 0
    ids: tuple[int, ...] = ()


def status(case: Case) -> Status:
    times = case.times or [case.every * (index + 1) for index in range(len(case.offsets))]
    told = zip(case.offsets, case.lags, times, strict=True)
    ends = [(offset + lag, T0 + at * 1000) for offset, lag, at in told if lag is not None]
    return verdict(
        [(offset, T0 + at * 1000) for offset, at in zip(case.offsets, times, strict=True)],
        [*ends, *((end, T0 + at * 1000) for end, at in case.ends)],
        T0 + case.now * 1000,
        steady_ms=T0 + case.steady * 1000,
        topic_ids=case.ids,
    )


UP = [1000, 2000, 3000, 4000, 5000]
SECONDS = list(range(792_748_079, 792_748_094))

BURROW = [
    Case("0: it was at the end within the window", UP, [0, 50, 100, 150, 200], 600, OK),
    Case("1: silent for exactly the window's width", UP, [0, 50, 100, 150, 200], 900, OK),
    Case("2: silent for longer, though it was at the end once", UP, [0, 50, 100, 150, 200], 1000, STOPPED),
    Case("3: silent, and behind all the time", UP, [50, 100, 150, 200, 250], 1000, STOPPED),
    Case("4: one offset, but at the end at first", [1000] * 5, [0, 50, 100, 150, 200], 600, OK),
    Case("5: one offset, and behind all the time", [1000] * 5, [100, 150, 200, 250, 300], 600, STALLED),
    Case("6: one offset, the same lag", [1000] * 5, [100] * 5, 600, STALLED),
    Case(
        "7: went back, and made it good", [1000, 2000, 3000, 2000, 4000], [100, 150, 200, 1250, 300], 600, OK
    ),
    Case("8: silent, and nothing waits", UP, [50, 100, 150, 200, 250], 1000, OK, ends=((5000, 999),)),
    # Burrow says STOP: its window is as wide as ten commits take, here 14 s.
    Case(
        "9: a commit each second, then 18 s of silence",
        SECONDS,
        [0] * 15,
        33,
        OK,
        every=1,
        ends=((792_748_500, 20), (792_749_024, 30)),
    ),
    Case(
        "9 goes on: records wait for two minutes",
        SECONDS,
        [0] * 15,
        140,
        STOPPED,
        every=1,
        ends=((792_748_500, 20), (792_749_024, 30), (792_749_900, 130)),
    ),
    Case("10: a record has come just now", SECONDS, [0] * 15, 33, OK, every=1, ends=((792_748_094, 32),)),
    Case(
        "11: the lag of some commits is not known",
        [1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500, 5000, 5500],
        [0, None, 50, None, 100, None, 150, None, 200, None],
        600,
        OK,
        every=50,
    ),
    Case("12: one record is left, an end marker", [1000, 2000, 2000], [2, 1, 1], 550, OK),
    Case(
        "15: went back, and did not make it good",
        [*UP[:3], 2000, 2500],
        [100, 150, 200, 1250, 1800],
        600,
        REWOUND,
    ),
]

STOPS = [
    Case("one commit is no habit", [1000], [500], 10_000, UNKNOWN),
    Case("two commits are none either", [1000, 2000], [500, 500], 10_000, UNKNOWN),
    Case("three are one", [1000, 2000, 3000], [500, 500, 500], 900, STOPPED),
    Case("nobody told the end", UP, [None] * 5, 10_000, UNKNOWN),
    Case("an idle partition at its end", UP, [0] * 5, 1_000_000, OK),
    Case("idle for a day, then a record comes", UP, [0] * 5, 86_450, OK, ends=((5100, 86_440),)),
    Case("and it is not read", UP, [0] * 5, 88_000, STOPPED, ends=((5100, 86_440),)),
    Case(
        "an hourly job between two runs",
        UP,
        [90] * 5,
        5 * HOUR + 3_000,
        OK,
        every=HOUR,
        ends=((9000, 20_000),),
    ),
    Case("an hourly job that has not run for five hours", UP, [90] * 5, 10 * HOUR, STOPPED, every=HOUR),
    Case(
        "runs of ten commits with pauses of an hour",
        list(range(1000, 1030)),
        [500] * 30,
        2 * HOUR + 10 + 3_700,
        OK,
        times=[run * HOUR + second for run in range(3) for second in range(10)],
    ),
    Case(
        "and one pause of two hours",
        list(range(1000, 1030)),
        [500] * 30,
        2 * HOUR + 10 + 7_200,
        STOPPED,
        times=[run * HOUR + second for run in range(3) for second in range(10)],
    ),
    Case("a slow committer", UP, [700, 650, 700, 640, 690], 5 * 240 + 239, OK, every=240),
    Case("quick commits, silent for just 90 s", UP, [300] * 5, 95, OK, every=1),
    Case("and a second more", UP, [300] * 5, 97, STOPPED, every=1),
    Case("Stable again only since a minute", UP, [300] * 5, 300, OK, every=5, steady=240),
    Case("Stable again since two", UP, [300] * 5, 361, STOPPED, every=5, steady=240),
    Case("five records left, nothing written since", UP, [5] * 5, 10_000, OK, every=10),
    Case("six", UP, [6] * 5, 10_000, STOPPED, every=10),
    Case("five left, then more are written", UP, [5] * 5, 10_000, STOPPED, every=10, ends=((5006, 5_000),)),
    Case(
        "an end marker is left for an hour, then a record comes",
        UP,
        [1] * 5,
        3_700,
        OK,
        every=10,
        ends=((5001, 3_600), (5004, 3_690)),
    ),
    Case(
        "and it is not read",
        UP,
        [1] * 5,
        3_800,
        STOPPED,
        every=10,
        ends=((5001, 3_600), (5004, 3_690)),
    ),
    Case(
        "what waited since a marker was left is no habit",
        [1000 * n for n in range(1, 16)],
        [1] * 13 + [300, 300],
        3_900,
        STOPPED,
        times=[*range(10, 130, 10), 3_700, 3_710, 3_720],
        ends=((15_600, 3_890),),
    ),
    Case("the topic was made anew and is short", UP, [500] * 5, 10_000, OK, every=10, ends=((3, 60),)),
    Case("the end is told late, and it was reached", UP, [None] * 5, 10_000, OK, ends=((5000, 9_999),)),
]

STALLS = [
    Case("the same offset at the end", [5000] * 10, [0] * 10, 110, OK, every=10),
    Case("ten commits of one offset in 90 s", [5000] * 10, [80] * 10, 101, STALLED, every=10),
    Case("ten in nine seconds are too quick", [5000] * 10, [80] * 10, 11, OK, every=1),
    Case("three commits of one offset", [5000] * 3, [80] * 3, 301, STALLED),
    Case("two", [5000] * 2, [80] * 2, 201, UNKNOWN),
    Case("one step within the window", [4000, *[5000] * 4], [80] * 5, 501, OK),
    Case("a step eleven commits ago", [4000, *[5000] * 10], [80] * 11, 1101, STALLED),
    Case("one record is left for ever", [5000] * 10, [1] * 10, 1001, OK),
    Case(
        "a marker is left and committed again for an hour, then a record comes",
        [5000] * 100,
        [1] * 99 + [3],
        3_000,
        OK,
        every=30,
    ),
    Case(
        "and it is not read",
        [5000] * 104,
        [1] * 99 + [3] * 5,
        3_121,
        STALLED,
        every=30,
    ),
    Case("new records come, and one offset stays", [5000] * 10, list(range(1, 11)), 1001, STALLED),
    Case(
        "batches of five minutes, committed every half minute, are usual",
        [1000 * (index // 10) for index in range(40)],
        [900] * 40,
        1201,
        OK,
        every=30,
    ),
]

GROWS = [
    Case(
        "ten minutes, half is read",
        [100 * n for n in range(10)],
        [100 * n + 100 for n in range(10)],
        610,
        GROWING,
        every=60,
    ),
    Case("one step down", UP * 1, [100, 900, 800, 1700, 2600], 501, OK),
    Case("the same lag all the time", UP, [500] * 5, 501, OK),
    Case(
        "it grows, but in three and a half minutes only",
        [100 * n for n in range(8)],
        [100 * n + 100 for n in range(8)],
        250,
        OK,
        every=30,
    ),
    Case(
        "the load rises hundredfold, the distance in time stays a second",
        [0, 600, 6_600, 42_600, 162_600, 522_600],
        [10, 100, 600, 2_000, 6_000, 10_000],
        400,
        OK,
        every=60,
    ),
    Case(
        "it was at the end two minutes ago",
        [100 * n for n in range(10)],
        [50] * 8 + [0, 90],
        610,
        OK,
        every=60,
    ),
    Case(
        "one jump, and then it stays",
        [100 * n for n in range(20)],
        [50] * 3 + [900] * 17,
        1210,
        OK,
        every=60,
    ),
    Case(
        "one jump, just now",
        [100 * n for n in range(20)],
        [50] * 18 + [900] * 2,
        1210,
        OK,
        every=60,
    ),
    Case(
        "stairs",
        [100 * n for n in range(20)],
        [50 + 90 * (n // 3) for n in range(20)],
        1210,
        GROWING,
        every=60,
    ),
    Case(
        "a burst that is worked off",
        [1000 * n for n in range(10)],
        [9000 - 900 * n for n in range(10)],
        610,
        OK,
        every=60,
    ),
]

REWINDS = [
    Case("far back, just now", [*UP, 100], [300] * 5 + [5200], 601, REWOUND),
    Case("one step back, just now", [*UP, 4000], [300] * 5 + [1300], 601, OK),
    Case("one step back, and no commit since", [*UP, 4000], [300] * 5 + [1300], 760, REWOUND),
    Case("one step back, made good", [*UP, 4000, 6000], [300] * 5 + [1300, 300], 760, OK),
    # Burrow looks at the first one only.
    Case(
        "made good, and back again",
        [*UP, 4500, 6000, 7000, 1000],
        [300] * 5 + [800, 300, 300, 6300],
        901,
        REWOUND,
    ),
    Case("the end fell: another topic", [*UP, 7], [300] * 5 + [3], 601, UNKNOWN),
    Case("the end is not told yet", [*UP, 7], [300] * 5 + [None], 601, OK),
    Case("a minute later it has not changed", [*UP, 7], [300] * 5 + [None], 660, REWOUND),
    Case("another topic id", [*UP, 7], [300] * 5 + [5400], 601, UNKNOWN, ids=(1, 1, 1, 1, 1, 2)),
    Case("the same topic id", [*UP, 7], [300] * 5 + [5400], 601, REWOUND, ids=(1,) * 6),
    Case("ends are never told", [*UP, 7], [None] * 6, 601, REWOUND),
    Case("all caught up again", [*UP, 7, 5600], [300] * 5 + [5400, 0], 701, OK),
    Case("a first commit", [7], [5400], 101, UNKNOWN),
    Case("no commit at all", [], [], 101, UNKNOWN),
]


@pytest.mark.parametrize("case", [*BURROW, *STOPS, *STALLS, *GROWS, *REWINDS], ids=lambda case: case.name)
def test_verdict(case: Case) -> None:
    """What is to be said of the window."""
    assert status(case) == case.expected


@pytest.mark.parametrize("case", [*BURROW, *STOPS, *STALLS, *GROWS, *REWINDS], ids=lambda case: case.name)
def test_a_verdict_has_no_clock_of_its_own(case: Case) -> None:
    """The same window a year later gives the same."""
    year = 365 * 86_400
    count = len(case.offsets)
    times = case.times or [case.every * (index + 1) for index in range(count)]
    later = case._replace(
        times=[at + year for at in times],
        ends=tuple((end, at + year) for end, at in case.ends),
        now=case.now + year,
        steady=case.steady + year if case.steady else 0,
    )
    assert status(later) == status(case)


def test_thresholds_are_the_rules() -> None:
    """A longer ``after`` is borne."""
    commits = [(1000 * n, T0 + 1000 * n) for n in range(1, 6)]
    ends = [(offset + 300, at_ms) for offset, at_ms in commits]
    patient = Thresholds()
    assert verdict(commits, ends, T0 + 200_000, thresholds=patient) is STOPPED
    patient = Thresholds({CommitsStoppedOptions: CommitsStoppedOptions(after_ms=600_000)})
    assert verdict(commits, ends, T0 + 200_000, thresholds=patient) is OK
