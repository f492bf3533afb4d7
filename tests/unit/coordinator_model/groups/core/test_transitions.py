"""Each move by itself: ids, places, the way that is filled in, and what is settled later."""

from hashlib import blake2b

import msgspec
import pytest

from coordinator_model.groups.core.inferences import Inference
from coordinator_model.groups.core.places import place
from coordinator_model.groups.core.transitions import Target, reach, transition_id
from coordinator_model.groups.core.turn import Context, Turn
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState, can_move
from coordinator_model.state.group import Basis, Cause, Group, Step, Transition

DEAD, EMPTY = GroupState.DEAD, GroupState.EMPTY
PREPARING, COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE
STABLE = GroupState.STABLE
LIVING = (EMPTY, PREPARING, COMPLETING, STABLE)
QUIET = Context("prod", info_live=True, offsets_enabled=True, backlog=False)
BLIND = msgspec.structs.replace(QUIET, info_live=False)
LEFT = Cause(kind=CauseKind.MEMBER_LEFT, member_id="m")


def turn_on(group: Group, context: Context = QUIET, at_ms: int = 500) -> Turn:
    return Turn(
        group=group,
        context=context,
        step=Step(),
        at_ms=at_ms,
        recorded_at_ms=at_ms + 7,
        source="coordinator_log",
    )


def to(state: GroupState, generation: int, at_ms: int = 500, by: Inference | None = None) -> Target:
    return Target(to=state, generation=generation, at_ms=at_ms, cause=LEFT, by=by)


def test_a_transition_says_everything() -> None:
    """A move comes out whole, with the time of the record that told of it and a stable id."""
    group = Group(group="orders", state=STABLE, generation=5, state_since_ms=100)
    turn = turn_on(group)

    reach(turn, to(PREPARING, 5))

    assert turn.step == Step(
        transitions=[
            Transition(
                id=blake2b(b"prod|orders|PreparingRebalance|5|500", digest_size=16).hexdigest(),
                cluster="prod",
                group="orders",
                group_type="classic",
                from_state=STABLE,
                to_state=PREPARING,
                generation=5,
                at_ms=500,
                recorded_at_ms=507,
                cause=LEFT,
                basis=Basis.OBSERVED,
                source="coordinator_log",
            )
        ]
    )


def test_id_has_32_hex_digits_and_takes_any_name() -> None:
    """A group id may hold what Kafka lets in, lone surrogates of a broken client included."""
    told = transition_id("prod", "\udce4|\n", DEAD, 0, 0)

    assert len(told) == 32
    assert int(told, 16) >= 0


@pytest.mark.parametrize("source", LIVING)
@pytest.mark.parametrize("target", LIVING)
def test_any_later_place_is_reached_by_legal_moves(source: GroupState, target: GroupState) -> None:
    """Whatever was missed, the way there is the shortest that Kafka allows, inferred up to the last move."""
    group = Group(group="g", state=source, generation=5, state_since_ms=100)
    turn = turn_on(group)

    reach(turn, to(target, 7))

    moves = [(told.from_state, told.to_state) for told in turn.step.transitions]
    basis = [told.basis for told in turn.step.transitions]
    assert all(can_move(*move) for move in moves)
    assert [move[0] for move in moves] == [source, *(move[1] for move in moves[:-1])]
    assert (moves[-1][1], group.state, group.generation) == (target, target, 7)
    assert basis == [Basis.INFERRED] * (len(basis) - 1) + [Basis.OBSERVED]
    assert turn.step.divergences == (["log_line_missing"] if len(basis) > 1 else [])


@pytest.mark.parametrize("source", LIVING)
@pytest.mark.parametrize("target", LIVING)
def test_what_lies_behind_changes_nothing(source: GroupState, target: GroupState) -> None:
    """An older generation, told late or by a coordinator that lost the group, moves nobody."""
    group = Group(group="g", state=source, generation=5, state_since_ms=100)
    before = msgspec.msgpack.encode(group)
    turn = turn_on(group)

    reached = reach(turn, to(target, 4))

    assert (reached, turn.step, msgspec.msgpack.encode(group)) == (False, Step(), before)


def test_a_generation_completes_then_is_stable_then_prepares_the_next() -> None:
    """The places of a group's life are in the coordinator's order."""
    places = [
        place(DEAD, 9),
        place(EMPTY, 0),
        place(PREPARING, 0),
        place(COMPLETING, 1),
        place(STABLE, 1),
        place(PREPARING, 1),
        place(EMPTY, 2),
    ]

    assert places == sorted(places)
    assert len(set(places)) == len(places)


def test_filled_moves_say_nothing_of_lost_lines_when_no_log_is_read() -> None:
    """Without an INFO log nothing is missing from it."""
    turn = turn_on(Group(group="g", state=STABLE, generation=5, state_since_ms=100), BLIND)

    reach(turn, to(STABLE, 6))

    assert [told.source for told in turn.step.transitions] == ["model", "model", "coordinator_log"]
    assert turn.step.divergences == []


@pytest.mark.parametrize(
    ("observed_ms", "says"),
    [
        pytest.param(800, 0, id="300-ms-later-is-close-enough"),
        pytest.param(200, 0, id="300-ms-earlier-is-close-enough"),
        pytest.param(801, 1, id="301-ms-is-not"),
    ],
)
def test_a_guess_is_settled_by_the_observation(observed_ms: int, says: int) -> None:
    """A guess near the truth stands; one that is not is replaced, and either way it is settled once."""
    group = Group(group="g", state=STABLE, generation=5, state_since_ms=100)
    guess = turn_on(group, BLIND)
    reach(guess, to(PREPARING, 5, by=Inference.FILLED_IN))
    turn, again = turn_on(group, BLIND), turn_on(group, BLIND)

    reach(turn, to(PREPARING, 5, at_ms=observed_ms))
    reach(again, to(PREPARING, 5, at_ms=observed_ms))

    told = [(t.from_state, t.to_state, t.at_ms, t.basis, t.replaces) for t in turn.step.transitions]
    wrong = guess.step.transitions[0].id
    assert told == [(STABLE, PREPARING, observed_ms, Basis.OBSERVED, wrong)] * says
    assert turn.step.divergences == ["inferred_wrong"] * says
    assert again.step == Step()
    assert group.guesses == ()


def test_guesses_are_bounded() -> None:
    """Only the last guesses can still be settled."""
    group = Group(group="g", state=EMPTY, generation=0, state_since_ms=0)
    for generation in range(30):
        turn = turn_on(group, BLIND, at_ms=1_000 * generation)
        reach(turn, to(PREPARING, generation, at_ms=1_000 * generation, by=Inference.FILLED_IN))
        reach(turn, to(COMPLETING, generation + 1, at_ms=1_000 * generation + 1, by=Inference.FILLED_IN))

    assert [(guess[1], guess[2]) for guess in group.guesses] == [
        (state, generation)
        for before in range(26, 30)
        for state, generation in ((PREPARING, before), (COMPLETING, before + 1))
    ]


def test_an_emptiness_that_was_guessed_wrong_is_taken_back() -> None:
    """The generation that was thought empty turns out to have members: the guess is replaced."""
    group = Group(group="g", state=PREPARING, generation=5, state_since_ms=100)
    guess = turn_on(group, BLIND)
    reach(guess, to(EMPTY, 6, by=Inference.FILLED_IN))
    turn = turn_on(group, BLIND, at_ms=900)

    reach(turn, to(STABLE, 6, at_ms=900))

    moves = [
        (told.from_state, told.to_state, told.generation, told.replaces) for told in turn.step.transitions
    ]
    wrong = guess.step.transitions[0].id
    assert moves == [(PREPARING, COMPLETING, 6, wrong), (COMPLETING, STABLE, 6, None)]
    assert turn.step.divergences == ["inferred_wrong"]
