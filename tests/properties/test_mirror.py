"""The mirror against a simulated coordinator: exact where it is told all, sane whatever it is told.

Lives of a group are drawn by seed.  ``--hypothesis-profile=long`` draws fifty times as many.
"""

import random
from collections import Counter
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator_model.groups import table as classic
from coordinator_model.groups.core.silent_members import next_deadline
from coordinator_model.groups.core.turn import Context
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import MOVES, GroupState
from coordinator_model.observations.base import Source
from coordinator_model.observations.seen import Seen
from coordinator_model.shard import snapshot
from coordinator_model.state.group import Group, Step, Transition
from tests.properties.examples import examples
from tests.properties.simulated import Truth
from tests.properties.simulated_clients import GROUP, Life, live

LOG, TOPIC, REQUESTS = Source.COORDINATOR_LOG, Source.OFFSETS, Source.REQUEST_LOG
MODES = {
    "full": (Context("c", True, True, False, True), {LOG, TOPIC, REQUESTS}),
    "quiet": (Context("c", True, True, False, False), {LOG, TOPIC}),
    "requests": (Context("c", False, True, False, True), {TOPIC, REQUESTS}),
    "offsets": (Context("c", False, True, False, False), {TOPIC}),
}
APPEND_MS = 2
"""How far a record's time may lie from when its commit made the group Stable."""
STEPS_MAX = 64
"""Moves, arrivals and departures that one observation of a group of a few members may cause."""

SEEDS = st.integers(0, 2**32)
EVENTS = st.integers(1, 30)


@dataclass
class Mirror:
    """The model at work on one group, with everything that it said."""

    mode: str
    group: Group = field(default_factory=lambda: classic.new_group(GROUP))
    told: list[Transition] = field(default_factory=list)
    divergences: Counter[str] = field(default_factory=Counter)
    most: int = 0
    fired: int = 0

    @property
    def context(self) -> Context:
        """Which sources are read."""
        return MODES[self.mode][0]

    def see(self, seen: Seen) -> Step:
        """Apply one observation, and before it what is due."""
        self.wait(seen.at_ms)
        step = classic.apply(self.group, seen, self.context)
        self._note(step)
        return step

    def wait(self, until_ms: int) -> None:
        """Fire what is due before ``until_ms``."""
        passed = 0
        while (due_ms := classic.due_at(self.group, self.context)) is not None and due_ms < until_ms:
            self._note(classic.pass_time(self.group, due_ms, self.context))
            passed += 1
            assert passed <= STEPS_MAX, "deadlines that do not pass"
        self.fired = max(self.fired, passed)

    def see_all(self, seen: list[Seen]) -> "Mirror":
        """Apply observations in the order in which a shard does."""
        for one in in_order(seen, self.mode):
            self.see(one)
        return self

    def _note(self, step: Step) -> None:
        self.told += step.transitions
        self.divergences.update(step.divergences)
        self.most = max(self.most, len(step.transitions) + len(step.arrivals) + len(step.departures))

    @property
    def effective(self) -> list[Transition]:
        """What was said and not replaced, in order of time."""
        replaced = {one.replaces for one in self.told}
        return sorted((one for one in self.told if one.id not in replaced), key=lambda one: one.at_ms)

    @property
    def picture(self) -> tuple[str, int, frozenset[str]]:
        """State, generation and members; of a dead group the generation means nothing."""
        group = self.group
        generation = 0 if group.state is GroupState.DEAD else group.generation
        return str(group.state), generation, frozenset(group.members)


def in_order(seen: list[Seen], mode: str) -> list[Seen]:
    """Return what the mode reads, ordered as a shard orders it."""
    sources = MODES[mode][1]
    return sorted(
        (one for one in seen if one.source in sources), key=lambda one: (one.at_ms, one.source, one.offset)
    )


def picture_of(life: Life) -> tuple[str, int, frozenset[str]]:
    """Return what the mirror should show."""
    coordinator = life.coordinator
    return coordinator.state, coordinator.generation, frozenset(coordinator.members)


def damaged(seen: list[Seen], seed: int) -> list[Seen]:
    """Return observations of which some are lost, some repeated, and some come late or early."""
    chance = random.Random(seed)
    loss, repeat, delay = chance.choice((0, 0.1, 0.5)), chance.choice((0, 0.2)), chance.choice((0, 0.2))
    order: list[tuple[int, int, Seen]] = []
    for number, one in enumerate(seen):
        if chance.random() < loss:
            continue
        copies = 2 if chance.random() < repeat else 1
        for _ in range(copies):
            late_ms = chance.choice((40, 2_000, 20_000)) if chance.random() < delay else 0
            order.append((one.at_ms + late_ms, number, one))
    return [one for _, _, one in sorted(order, key=lambda item: item[:2])]


# --- what is told is right -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["full", "quiet"])
@examples(80)
@given(seed=SEEDS, events=EVENTS)
def test_the_log_makes_the_mirror_exact(mode: str, seed: int, events: int) -> None:
    """With the INFO log, every transition comes out once, at its time, with its cause, and nothing else."""
    life = live(seed, events)
    life.settle()
    mirror = Mirror(mode).see_all(life.world.seen)

    assert told_as_truth(mirror.effective) == expected(life.world.truth)
    assert mirror.divergences == {}
    assert mirror.picture[0] == life.coordinator.state
    if life.coordinator.state != "Dead":
        assert mirror.picture == picture_of(life)


def expected(truth: list[Truth]) -> list[tuple[str, int, str]]:
    return [(one.to, one.generation, _kind(one.to, one.kind)) for one in truth]


def told_as_truth(told: list[Transition]) -> list[tuple[str, int, str]]:
    return [
        (str(one.to_state), one.generation, _kind(str(one.to_state), str(one.cause.kind))) for one in told
    ]


def _kind(to: str, kind: str) -> str:
    """How the last member went is the start's cause; Empty itself may tell it or say that all left."""
    return "" if to == "Empty" and kind not in {"coordinator_moved", "group_created"} else kind


@examples(60)
@given(seed=SEEDS, events=EVENTS)
def test_times_are_the_coordinators(seed: int, events: int) -> None:
    """With the INFO log, each transition has the coordinator's own time."""
    life = live(seed, events)
    told = Mirror("quiet").see_all(life.world.seen).effective

    late = [abs(ours.at_ms - truth.at_ms) for ours, truth in zip(told, life.world.truth, strict=False)]

    assert max(late, default=0) <= APPEND_MS


@examples(80)
@given(seed=SEEDS, events=EVENTS)
def test_requests_get_the_final_state_right(seed: int, events: int) -> None:
    """Without the INFO log, answers and records lead to the right state, generation and members."""
    life = live(seed, events)
    life.renew()
    mirror = Mirror("requests").see_all(life.world.seen)

    assert mirror.picture == picture_of(life)


@examples(60)
@given(seed=SEEDS, events=EVENTS)
def test_no_coordinator_is_said_to_have_moved_that_did_not(seed: int, events: int) -> None:
    """Without the INFO log, joins answered at once, static members and parked requests are no such sign."""
    told = Mirror("requests").see_all(live(seed, events, failovers=False).world.seen).told

    assert [one for one in told if one.cause.kind is CauseKind.COORDINATOR_MOVED] == []


@examples(60)
@given(seed=SEEDS, events=EVENTS)
def test_the_topic_alone_knows_each_generation(seed: int, events: int) -> None:
    """With the topic alone, every move comes out in its order: generations without a record were lost."""
    life = live(seed, events, failovers=False)
    life.renew()
    mirror = Mirror("offsets").see_all(life.world.seen)

    moves = [(str(one.to_state), one.generation) for one in mirror.effective]
    assert moves == [(one.to, one.generation) for one in life.world.truth]
    assert mirror.picture == picture_of(life)


# --- whatever is lost, repeated or late ----------------------------------------------------------------


@pytest.mark.parametrize("mode", list(MODES))
@examples(60)
@given(seed=SEEDS, events=EVENTS, harm=SEEDS)
def test_invariants_hold_whatever_arrives(mode: str, seed: int, events: int, harm: int) -> None:
    """Moves are legal or documented ways around, generations fall for a reason only, work is bounded."""
    life = live(seed, events)
    sources = MODES[mode][1]
    mirror = Mirror(mode)
    for one in damaged([one for one in life.world.seen if one.source in sources], harm):
        mirror.wait(one.at_ms)
        before = mirror.group.state, mirror.group.generation
        step = mirror.see(one)
        check_moves(before, step)
        check_group(mirror)
    mirror.wait(life.world.now_ms + 600_000)

    assert mirror.most <= STEPS_MAX


def check_moves(before: tuple[GroupState, int], step: Step) -> None:
    state: GroupState | None
    state, generation = before
    for told in step.transitions:
        assert told.to_state in MOVES[told.from_state] or is_way_around(told), told
        if told.replaces is not None:  # one of the past told again, or a guess taken back
            state, generation = None, told.generation
            continue
        assert state in {None, told.from_state}, told
        assert told.generation >= generation or has_reason_to_fall(told), told
        state, generation = told.to_state, told.generation


def has_reason_to_fall(told: Transition) -> bool:
    return told.cause.kind is CauseKind.COORDINATOR_MOVED or is_new_life(told)


def is_new_life(told: Transition) -> bool:
    return told.from_state is GroupState.DEAD or told.to_state is GroupState.DEAD


def is_way_around(told: Transition) -> bool:
    """Adoption of a group met in mid-life, a new coordinator, a correction (``README.md``)."""
    return (
        told.from_state is GroupState.DEAD
        or told.cause.kind is CauseKind.COORDINATOR_MOVED
        or told.replaces is not None
        # A group whose tombstone was lost: its end is inferred where its new beginning shows.
        or told.to_state is GroupState.DEAD
    )


def check_group(mirror: Mirror) -> None:
    group, context = mirror.group, mirror.context
    assert group.generation >= 0
    assert not group.members or group.state is not GroupState.DEAD
    # A line tells that a member was added before the next one tells what that does to the group, and an
    # answer of a generation whose lines are awaited names its members.
    is_empty = group.state is GroupState.EMPTY and group.held_record is None
    assert not is_empty or all(one.joined_at_ms >= group.state_since_ms for one in group.members.values())
    assert all(name == member.member_id for name, member in group.members.items())
    if context.requests_live and not context.info_live and group.state is GroupState.STABLE:
        # Nobody whose timeout is known and whose heartbeats are seen is without a deadline.
        heard = [m for m in group.members.values() if m.last_heartbeat_ms >= 0 and m.session_timeout_ms > 0]
        due_ms = next_deadline(group, context)
        assert not heard or due_ms is not None
        assert due_ms is None or due_ms <= min(
            max(m.session_base_ms, m.last_heartbeat_ms) + m.session_timeout_ms + 1_000 for m in heard
        )


@pytest.mark.parametrize("mode", ["full", "requests"])
@examples(40)
@given(seed=SEEDS, events=EVENTS, harm=SEEDS)
def test_saving_changes_nothing(mode: str, seed: int, events: int, harm: int) -> None:
    """A group that is saved and loaded at any point goes on as if it had not been."""
    chance = random.Random(harm)
    seen = in_order(damaged(live(seed, events).world.seen, harm), mode)
    whole, broken = Mirror(mode), Mirror(mode)
    for one in seen:
        if chance.random() < 0.2:
            broken.group = snapshot.decode_group(snapshot.encode_group(broken.group))
        assert msgspec.to_builtins(whole.see(one)) == msgspec.to_builtins(broken.see(one))

    assert msgspec.to_builtins(whole.group) == msgspec.to_builtins(broken.group)


@pytest.mark.parametrize("mode", list(MODES))
@examples(60)
@given(seed=SEEDS, events=EVENTS, harm=SEEDS)
def test_a_fresh_generation_heals_everything(mode: str, seed: int, events: int, harm: int) -> None:
    """Whatever was lost, one whole generation with its lines, answers and record makes the mirror right."""
    life = live(seed, events)
    before = damaged(in_order(life.world.seen, mode), harm)
    known = len(life.world.seen)
    life.settle()
    quiet_from = len(life.world.seen)
    life.renew()
    fresh = in_order(life.world.seen[quiet_from:], mode)
    settling = damaged(in_order(life.world.seen[known:quiet_from], mode), harm)
    mirror = Mirror(mode)
    for one in (*before, *settling, *fresh):
        mirror.see(one)
    mirror.wait(life.world.now_ms)

    assert mirror.picture == picture_of(life)


@pytest.mark.parametrize("mode", list(MODES))
@examples(40)
@example(seed=1_758, events=27)  # a client leaves that had an id and had not joined
@given(seed=SEEDS, events=EVENTS)
def test_a_repeat_says_nothing(mode: str, seed: int, events: int) -> None:
    """A source read again from its last few seconds, as after a restart, tells no transition twice."""
    seen = in_order(live(seed, events).world.seen, mode)
    once, twice = Mirror(mode), Mirror(mode)
    once.see_all(seen)
    for one in seen:
        twice.see(one)
        twice.see(one)

    assert [one.id for one in twice.told] == [one.id for one in once.told]
