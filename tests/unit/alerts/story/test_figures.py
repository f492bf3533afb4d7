"""A group's states and rebalances as figures."""

import msgspec

from alerts.story.figures import Timeline, timeline
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState
from coordinator_model.state.group import Transition
from tests.unit.alerts.story.made_moves import COMPLETING, PREPARING, STABLE, T0, move, rebalance


def drawn(moves: list[Transition], *, from_ms: int = 0, to_ms: int = 60_000) -> Timeline:
    """The figures of a window, given after T0."""
    return timeline("orders", moves, [], from_ms=T0 + from_ms, to_ms=T0 + to_ms, now_ms=T0 + to_ms)


def test_each_state_has_its_span_and_the_last_one_lasts() -> None:
    """From what was before the first transition to the present state."""
    told = drawn(rebalance(1_000, 7, CauseKind.MEMBER_JOINED))
    spans = [(one.state, one.from_ms - T0, one.to_ms - T0) for one in told.states]
    assert spans[1:3] == [("PreparingRebalance", 1_000, 4_000), ("CompletingRebalance", 4_000, 4_500)]
    assert (told.states[0].from_ms, told.states[0].to_ms, told.states[0].state) == (-1, T0 + 1_000, "Stable")
    assert (told.states[3].state, told.states[3].to_ms, told.states[3].generation) == ("Stable", -1, 7)


def test_a_rebalance_has_cause_phases_and_words() -> None:
    """Who began it, when its join phase ended, when it was over."""
    (one,) = drawn(rebalance(1_000, 7, CauseKind.SESSION_TIMEOUT, "payments-3")).rebalances
    assert [at - T0 for at in (one.started_at_ms, one.joined_at_ms, one.ended_at_ms)] == [1_000, 4_000, 4_500]
    assert (one.cause.kind, one.cause.client_id, one.generation) == ("session_timeout", "payments-3", 7)
    assert one.words.startswith("Payments-3") or "payments-3" in one.words
    assert one.cost is not None
    assert one.cost.phases_ms == {"PreparingRebalance": 3_000, "CompletingRebalance": 500}


def test_a_running_rebalance_has_no_end_and_tells_what_restarted_it() -> None:
    """A leader that never assigned, and a join phase after it."""
    moves = [
        move(1_000, STABLE, PREPARING, 6, CauseKind.MEMBER_JOINED, "a"),
        move(4_000, PREPARING, COMPLETING, 7, CauseKind.JOIN_COMPLETED),
        move(14_000, COMPLETING, PREPARING, 7, CauseKind.SYNC_TIMEOUT, "b"),
    ]
    (one,) = drawn(moves).rebalances
    assert (one.ended_at_ms, one.cost, one.restarts, one.state) == (-1, None, [T0 + 14_000], PREPARING)


def test_what_was_over_before_the_window_is_left_out() -> None:
    """As is what began after it."""
    moves = [
        *rebalance(1_000, 7, CauseKind.MEMBER_LEFT),
        *rebalance(30_000, 8, CauseKind.MEMBER_LEFT),
        *rebalance(80_000, 9, CauseKind.MEMBER_LEFT),
    ]
    told = drawn(moves, from_ms=10_000)
    assert [one.generation for one in told.rebalances] == [8]
    assert next(one.state for one in told.states) == GroupState.STABLE
    assert told.states[0].generation == 7
    assert told.states[-1].to_ms == T0 + 80_000


def test_other_groups_and_replaced_transitions_are_passed_over() -> None:
    """A correction stands where the mistake stood."""
    wrong, *rest = rebalance(1_000, 7, CauseKind.UNKNOWN)
    right = msgspec.structs.replace(wrong, id="right", replaces=wrong.id, at_ms=T0 + 500)
    other = msgspec.structs.replace(wrong, id="other", group="else", at_ms=T0 + 2_000)
    (one,) = drawn([wrong, *rest, right, other]).rebalances
    assert one.started_at_ms == T0 + 500
