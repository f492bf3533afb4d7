"""Makes ``cases.jsonl.gz``: histories of partitions, and Burrow's own verdict on each.

``make.py windows`` prints what Burrow would have stored of each history, one JSON object a line, for its
evaluator (``calculatePartitionStatus``); ``make.py join FILE`` writes the cases with its answers, one a line.
"""

import gzip
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent / "cases.jsonl.gz"
EACH = 24
"""Cases of each kind."""
INTERVALS = 10
"""Burrow's default: commits and end offsets that it keeps of a partition."""
PROBE_MS = 10_000
"""Burrow's and groupwatch's default: how often brokers are asked where partitions end."""
T0 = 1_700_000_000_000


class World:
    """One partition that is written to and read; times in ms since ``T0``."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.now = 0
        self.every = dice.choice([2, 5, 10, 15, 30, 60, 120]) * 1_000
        """Usual time between two commits."""
        self.rate: float = dice.choice([3, 20, 150, 4_000])
        """Records written each second."""
        self.end = float(dice.randint(10_000, 20_000_000))
        self.offset = 0.0
        self.read = 1.0
        """Records read for each one written."""
        self.steady = 0
        """Since when the group is Stable; 0: ever since."""
        self.commits: list[tuple[int, int]] = []
        self.ends: list[tuple[int, int]] = []
        self._next_probe = dice.randrange(PROBE_MS)

    def pass_time(self, duration: int) -> None:
        """Records are written, and the brokers asked."""
        until = self.now + duration
        while self._next_probe <= until:
            self._write(self._next_probe)
            self.ends.append((int(self.end), self.now))
            self._next_probe += PROBE_MS
        self._write(until)

    def _write(self, at: int) -> None:
        self.end += self.rate * (at - self.now) / 1_000
        self.now = at

    def commit(self, offset: float) -> None:
        """Commit an offset, at most the end; fractions of records are carried on."""
        self.offset = min(offset, self.end)
        self.commits.append((int(self.offset), self.now))

    def step(self, *, by: float | None = None) -> None:
        """Wait for the next commit and make it; ``by`` records further on."""
        gap = int(self.every * self.dice.uniform(0.95, 1.05))
        self.pass_time(gap)
        self.commit(self.offset + (self.rate * gap / 1_000 * self.read if by is None else by))

    def live(self, lag_s: float = 0.0, times: int = 0) -> None:
        """Read at a steady distance for six minutes, and fifteen commits, at least."""
        self.pass_time(20_000)
        self.commit(self.end - 1 - self.rate * lag_s)
        for _ in range(times or max(15, 400_000 // self.every)):
            self.step()

    def look(self, low: float = 0.2, high: float = 0.8) -> None:
        """Judge at a share of the usual gap after the last commit."""
        self.pass_time(int(self.every * self.dice.uniform(low, high)))

    def silence(self, shares: tuple[float, float]) -> None:
        """Fall silent for a multiple of what may be usual: the window, and at least 90 s."""
        width = self.commits[-1][1] - self.commits[-INTERVALS:][0][1]
        self.pass_time(int(max(90_000, width) * self.dice.uniform(*shares)))


def _keeps_up(world: World) -> None:
    world.live(lag_s=world.dice.choice([15, 40, 200]))
    world.look()


def _at_the_end(world: World) -> None:
    world.live()
    world.rate = 0
    world.pass_time(15_000)
    world.commit(world.end)
    world.pass_time(world.dice.choice([60_000, 900_000, 3_600_000]))


def _repeats_at_the_end(world: World) -> None:
    world.live()
    world.rate = 0
    world.pass_time(15_000)
    world.commit(world.end)
    for _ in range(40):
        world.step(by=0)


def _woken(world: World) -> None:
    """Idle for long, and records have just come."""
    _at_the_end(world)
    world.rate = 50
    world.pass_time(world.dice.choice([5_000, 20_000, 60_000]))


def _woken_and_deaf(world: World) -> None:
    _at_the_end(world)
    world.rate = 50
    world.silence((1.3, 4))


def _late(world: World) -> None:
    """Silent for less than what is usual, or than anybody should be told of."""
    world.live(lag_s=world.dice.choice([20, 300]))
    world.silence((0.3, 0.9))


def _stopped(world: World) -> None:
    world.live(lag_s=world.dice.choice([15, 60, 300]))
    world.silence((1.75, 5))


def _rebalanced(world: World) -> None:
    """Silent for as long, in a join phase that has ended just now."""
    _stopped(world)
    world.steady = world.now - world.dice.randrange(10_000, 80_000)


def _job(world: World) -> None:
    """A run each so often, a handful of commits, and records wait until the next one."""
    pause = world.dice.choice([600_000, 1_800_000])
    world.every = 2_000
    world.pass_time(20_000)
    for _ in range(4):
        world.commit(world.end - 1 - world.rate * 30)
        for _ in range(10):
            world.step()
        world.pass_time(pause)
    world.commit(world.end - 1 - world.rate * 30)
    for _ in range(10):
        world.step()
    world.pass_time(int(pause * world.dice.uniform(0.5, 1.1)))


def _few(world: World) -> None:
    """One or two commits, and then nothing: nobody knows what is usual."""
    world.pass_time(30_000)
    world.commit(world.end - world.rate * 20)
    if world.dice.random() < 0.5:
        world.step()
    world.silence((1.5, 4))


def _markers(world: World) -> None:
    """The end markers of the last transactions are left."""
    world.live()
    world.rate = 0
    world.pass_time(15_000)
    world.commit(world.end)
    world.end += world.dice.randint(1, 3)
    world.pass_time(PROBE_MS)
    if world.dice.random() < 0.5:
        world.silence((1.5, 6))
        return
    for _ in range(max(15, 100_000 // world.every)):
        world.step(by=0)
    world.look()


def _woken_behind_a_marker(world: World) -> None:
    """A marker was left for long, committed again or not, and records have just come."""
    world.live()
    world.rate = 0
    world.pass_time(15_000)
    world.commit(world.end)
    world.end += world.dice.randint(1, 2)
    if world.dice.random() < 0.5:
        world.pass_time(world.dice.choice([600_000, 3_600_000]))
    else:
        for _ in range(max(15, 600_000 // world.every)):
            world.step(by=0)
    world.rate = 50
    world.pass_time(world.dice.choice([11_000, 25_000, 60_000]))


def _stalled(world: World) -> None:
    """Says the same offset for longer than a window, while records are written."""
    world.live(lag_s=25)
    for _ in range(max(12, 200_000 // world.every)):
        world.step(by=0)
    world.look()


def _stalled_quietly(world: World) -> None:
    """The same, and nothing more is written."""
    world.live(lag_s=25)
    world.rate = 0
    for _ in range(max(12, 200_000 // world.every)):
        world.step(by=0)
    world.look()


def _stands_briefly(world: World) -> None:
    """A few commits of one offset among others that move."""
    world.every = world.dice.choice([2, 5, 10, 15]) * 1_000
    world.live(lag_s=25)
    for _ in range(4):
        world.step(by=0)
    for _ in range(3):
        world.step()
    world.look()


def _quick_repeats(world: World) -> None:
    """Ten commits of one offset within half a minute."""
    world.every = 2_000
    world.live(lag_s=25)
    for _ in range(12):
        world.step(by=0)
    world.look()


def _slow(world: World) -> None:
    """Reads less than is written, all the time."""
    world.read = world.dice.uniform(0.2, 0.85)
    world.live(lag_s=20, times=max(15, 500_000 // world.every))
    world.look()


def _slow_for_a_moment(world: World) -> None:
    """The same, for a minute and a half, having kept up before."""
    world.every = 5_000
    world.live(lag_s=20)
    world.read = 0.5
    for _ in range(18):
        world.step()
    world.look()


def _catches_up(world: World) -> None:
    world.read = world.dice.uniform(1.1, 1.5)
    world.live(lag_s=900)
    world.look()


def _rises_with_the_load(world: World) -> None:
    """Twice as much is written after a quarter of an hour, and the distance in time stays."""
    world.every = 30_000
    world.rate = 100
    world.live(lag_s=20)
    for _ in range(30):
        world.rate *= 1.02
        gap = world.every
        world.pass_time(gap)
        world.commit(world.end - 20 * world.rate)
    world.look()


def _jump(world: World) -> None:
    """More lag at once, and then it stays."""
    world.live(lag_s=20)
    world.end += world.rate * 60
    for _ in range(max(15, 400_000 // world.every)):
        world.step()
    world.look()


def _rewound(world: World) -> None:
    """Far back, and it goes on from there."""
    world.live(lag_s=20)
    usual = world.rate * world.every / 1_000
    world.step(by=-usual * world.dice.uniform(8, 9))
    for _ in range(world.dice.choice([2, 4, 6])):
        world.step()
    world.look()


def _made_good(world: World) -> None:
    """A commit that came late, by a step or two, and the next one is right."""
    world.live(lag_s=40)
    usual = world.rate * world.every / 1_000
    world.step(by=-usual * world.dice.uniform(0.3, 1.8))
    world.step(by=usual * 3.5)
    world.step()
    world.look()


def _twice(world: World) -> None:
    """A late commit that was made good, and then a real one, which is the second drop."""
    world.live(lag_s=200)
    usual = world.rate * world.every / 1_000
    world.step(by=-usual * 0.5)
    world.step(by=usual * 2)
    world.step(by=-usual * 8.5)
    for _ in range(max(1, 16_000 // world.every)):
        world.step()
    world.look()


def _made_anew(world: World) -> None:
    """The topic was deleted and made again."""
    world.live(lag_s=20)
    world.end = 0.0
    world.pass_time(2 * PROBE_MS)
    world.commit(world.end / 2)
    for _ in range(4):
        world.step()
    world.look()


KINDS: dict[str, Callable[[World], None]] = {
    name.strip("_"): kind
    for name, kind in list(globals().items())
    if name.startswith("_") and not name.startswith("__") and callable(kind)
}


def histories() -> Iterator[dict[str, Any]]:
    """Yield each case, without an answer."""
    for name, kind in KINDS.items():
        for number in range(EACH):
            world = World(random.Random(f"{name}/{number}"))
            kind(world)
            yield {
                "kind": name,
                "commits": world.commits,
                "ends": world.ends,
                "now": world.now,
                "steady": world.steady,
            }


def window(case: dict[str, Any]) -> dict[str, Any]:
    """Return what Burrow stores of a history: its rings, with the lag as it was known at each commit."""
    ends, stored = case["ends"], []
    for offset, at in case["commits"]:
        known = [end for end, told in ends if told <= at]
        stored.append([offset, at, max(0, known[-1] - offset) if known else -1])
    lag = max(0, ends[-1][0] - stored[-1][0])
    return {
        "offsets": [[offset, T0 + at, late] for offset, at, late in stored if late >= 0][-INTERVALS:],
        "broker": [end for end, _ in ends[-INTERVALS:]],
        "lag": lag,
        "now": (T0 + case["now"]) // 1_000,
    }


def main(arguments: list[str]) -> None:
    if arguments == ["windows"]:
        for case in histories():
            sys.stdout.write(json.dumps(window(case)) + "\n")
        return
    answers = Path(arguments[1]).read_text(encoding="utf-8").split()
    with gzip.GzipFile(CASES, "wb", mtime=0) as packed:
        for case, answer in zip(histories(), answers, strict=True):
            steps = {"commits": _steps(case["commits"]), "ends": _steps(case["ends"])}
            packed.write(json.dumps({**case, **steps, "burrow": answer}).encode() + b"\n")


def _steps(pairs: list[tuple[int, int]]) -> list[list[int]]:
    """Return the differences from pair to pair, which pack well."""
    before = [(0, 0), *pairs]
    return [[one - other, at - then] for (one, at), (other, then) in zip(pairs, before, strict=False)]


if __name__ == "__main__":
    main(sys.argv[1:])
