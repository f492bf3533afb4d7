"""Small worlds of groups that mostly heartbeat, commit and keep up."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from coordinator_model import observations as on
from coordinator_model.observations.base import Source
from tests.properties.cut_worlds import CONTROL, EVENTS, GROUPS, MEMBERS, OFFSETS, START_MS, Parts, World


class CalmWorld(World):
    """Groups that mostly heartbeat, commit and keep up."""

    session_ms = 24_000

    def begin(self) -> None:
        """Let every group be there, with all its members, and its coordinator be known."""
        for group in GROUPS:
            self.generation[group] = 1
            self.record(group)
        self.backlog = False
        self.clocks(whole=True)
        self.beats_left = {f"{group}-a": self.chance.choice((1, 2, 3, 99)) for group in GROUPS}

    def present(self) -> tuple[str, ...]:
        """Return all members."""
        return MEMBERS

    def beat(self, group: str) -> None:
        """Append a heartbeat of most members, and the answer to a commit of some."""
        for name in MEMBERS:
            told: dict[str, Any] = {
                "group": group,
                "member_id": f"{group}-{name}",
                "generation": self.generation[group],
            }
            left = self.beats_left.get(f"{group}-{name}", 99)
            if left and self.chance.random() < 0.9:
                self.beats_left[f"{group}-{name}"] = left - 1
                beat = on.Heartbeats(**told, error_code=0, times=())
                self.add(EVENTS[0], beat, Source.REQUEST_LOG, broker=1)
            if self.chance.random() < 0.4:
                answer = on.CommitsAnswered(**told, error_code=0, times=(), client=on.Client())
                self.add(EVENTS[0], answer, Source.REQUEST_LOG, broker=1)

    def advance(self, group: str) -> None:
        """Append a commit, mostly of what was read since the last."""
        step = self.chance.choice((0, 10, 10, 10, 10, 10, 10, -500))
        offset = max(0, (self.now_ms - START_MS) // 100 + step)
        commit = on.Commit("t", self.chance.randint(0, 2), offset, self.now_ms)
        self.add(OFFSETS, on.OffsetsCommitted(group=group, commits=(commit,)), Source.OFFSETS)

    def ends(self, group: str) -> None:
        """Append where the partitions ended: a little further on."""
        end = (self.now_ms - START_MS) // 100 + self.chance.choice((0, 20, 900))
        told = on.EndOffsetsReported(group=group, ends={"t": dict.fromkeys(range(3), end)})
        self.add(CONTROL, told, Source.CONTROL)


def make_calm_world(seed: int, steps: int) -> Parts:
    """Return the contents of the partitions, ended by clocks that let everything pass."""
    world = CalmWorld(random.Random(seed))
    world.begin()
    chance = world.chance
    acts: tuple[Callable[[str], None], ...] = (world.beat,) * 9 + (world.advance,) * 12 + (world.ends,) * 3
    rarely = (world.heartbeats, world.settle, world.commit, world.answer, world.rare)
    acts += chance.choice(((), *((act,) for act in rarely)))
    return _played(world, acts, (1, 30, 200, 300, 300, 700, 700, 4_000), steps)


class WorldOfFirstBeats(CalmWorld):
    """Groups whose members begin to beat one after the other, in one generation after the other."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self.session_ms = chance.choice((6_000, 6_000, 24_000))
        self.members: dict[str, dict[str, int]] = {}
        """Of each group: member -> when it begins to beat."""
        self.recorded = ""

    def record(self, group: str) -> None:
        """Append a record of a generation whose members nobody has heard yet."""
        number, chance = self.generation[group], self.chance
        self.members[group] = {
            f"{name}{number}": self.now_ms + chance.choice((0, 0, 100, 900, 2_000, 4_500, 7_000))
            for name in MEMBERS
        }
        self.recorded = group
        super().record(group)

    def present(self) -> tuple[str, ...]:
        """Return the members of the group that is being recorded."""
        return tuple(self.members[self.recorded])

    def renew(self, group: str) -> None:
        """Append the next generation."""
        self.generation[group] += 1
        self.record(group)

    def beat(self, group: str) -> None:
        """Append a heartbeat of those that have begun, some of them late."""
        for name, begins_ms in self.members[group].items():
            if begins_ms > self.now_ms:
                continue
            beat = on.Heartbeats(
                group=group,
                member_id=f"{group}-{name}",
                generation=self.generation[group],
                error_code=0,
                times=(),
            )
            late_ms = self.chance.choice((0,) * 20 + (40, 200, 900, 4_000))
            self.add(EVENTS[0], beat, Source.REQUEST_LOG, broker=1, late_ms=late_ms)

    def answers(self, group: str) -> None:
        """Append accepted commits of members, whether they have begun to beat or not."""
        for name in self.members[group]:
            if self.chance.random() < 0.5:
                answer = on.CommitsAnswered(
                    group=group,
                    member_id=f"{group}-{name}",
                    generation=self.generation[group],
                    error_code=0,
                    times=(),
                    client=on.Client(),
                )
                self.add(EVENTS[0], answer, Source.REQUEST_LOG, broker=1)


def make_first_beats(seed: int, steps: int) -> Parts:
    """Return the contents of the partitions, ended by clocks that let everything pass."""
    world = WorldOfFirstBeats(random.Random(seed))
    world.begin()
    chance = world.chance
    acts: tuple[Callable[[str], None], ...] = (world.beat,) * 9 + (world.renew, world.answers)
    acts += chance.choice(((), (world.advance,), (world.ends,), (world.rare,)))
    return _played(world, acts, (1, 30, 200, 300, 300, 700, 700, 2_000), steps)


def _played(
    world: World, acts: Sequence[Callable[[str], None]], pauses_ms: Sequence[int], steps: int
) -> Parts:
    """Return the partitions after so many acts about some group, and clocks that let everything pass."""
    chance = world.chance
    for _ in range(steps):
        world.now_ms += chance.choice(pauses_ms)
        chance.choice(acts)(chance.choice(GROUPS[: chance.randint(1, 3)]))
        if chance.random() < 0.2:
            world.clocks(whole=True)
    for _ in range(4):
        world.now_ms += 10_000
        world.clocks(whole=True)
    return world.parts
