"""The judge of the live tests must itself be able to say no."""

import random
from typing import Any

import pytest

from tests.live.support import comparing, damage
from tests.live.support.comparing import Logged, Poll
from tests.live.support.histories import side_by_side


def told(to: str, at_ms: int, generation: int = 1, **more: Any) -> dict[str, Any]:
    came_from = more.pop("came_from", "Stable")
    name = more.pop("name", f"{to}/{generation}/{at_ms}")
    return {
        "id": name,
        "group": "g",
        "group_type": "classic",
        "from": came_from,
        "to": to,
        "at_ms": at_ms,
        "generation": generation,
        "replaces": None,
        **more,
    }


def test_a_poll_is_held_against_the_last_move_before_it() -> None:
    """The state claimed for a moment is where the last transition led."""
    moves = [told("Stable", 1_000), told("PreparingRebalance", 5_000)]
    polls = [Poll("g", "Stable", 3_000, 3_010), Poll("g", "Stable", 7_000, 7_010)]
    result = comparing.compare(polls, moves, {})

    assert (result.judged, result.agreed) == (2, 1)
    assert result.wrong == [(polls[1], "PreparingRebalance")]


def test_a_poll_next_to_a_move_says_nothing() -> None:
    """Between the question and the answer the group may have moved."""
    polls = [Poll("g", "Empty", 1_200, 1_210), Poll("g", "Empty", 800, 805), Poll("g", "Empty", 400, 2_000)]
    result = comparing.compare(polls, [told("Stable", 1_000)], {})

    assert result.judged == 0
    assert result.share == 1.0


def test_before_its_first_move_a_group_is_dead() -> None:
    """A group nobody told us of is unknown to the coordinator, too, or we missed its creation."""
    result = comparing.compare([Poll("g", "Dead", 10, 20), Poll("g", "Stable", 10, 20)], [], {})
    assert result.share == 0.5


def test_what_was_replaced_or_repeated_does_not_count() -> None:
    """The effective history has each transition once, without those that a later one replaces."""
    wrong, right = (
        told("Stable", 2_000, name="a"),
        told("PreparingRebalance", 2_500, name="b", replaces="a"),
    )
    assert comparing.effective([right, wrong, right]) == [right]


def test_what_a_new_coordinator_resumes_from_is_in_no_line() -> None:
    """The line about loading a group tells no transition that could be missing."""
    resumed = told("Stable", 2_000, cause={"kind": "coordinator_moved"})

    assert comparing.missing_and_extra([resumed], []) == ([], [])
    assert comparing.missing_and_extra([told("Stable", 2_000)], []) == ([], [("g", "Stable", 1)])


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (
            "poll_timeout",
            "Removing member m on LeaveGroup; client reason: consumer poll timeout has expired",
        ),
        ("member_joined", "Member m joining group during CompletingRebalance; client reason: not provided"),
    ],
)
def test_reasons_of_older_coordinators_are_held_against_ours(kind: str, reason: str) -> None:
    """Kafka 3 words a leave and a join in its own way."""
    expected = [Logged("g", "PreparingRebalance", 1, reason, 1)]
    right, wrong = (told("PreparingRebalance", 5, cause={"kind": one}) for one in (kind, "session_timeout"))

    assert comparing.wrong_causes([right], expected) == (1, [])
    assert comparing.wrong_causes([wrong], expected) == (1, [("g", 1, "session_timeout", reason)])


def test_an_assignment_that_was_given_up_made_nothing_stable() -> None:
    """The coordinator logs that it has it before it tries to store it."""
    lines = [
        "[2026-11-21 07:45:32,872] INFO [GroupCoordinator 2]: Assignment received from leader m for group g "
        "for generation 4. The group has 2 members, 0 of which are static. (k)",
        "[2026-11-21 07:45:37,875] INFO [GroupCoordinator 2]: Preparing to rebalance group g in state "
        "PreparingRebalance with old generation 4 (__consumer_offsets-3) (reason: Error REBALANCE_IN_"
        "PROGRESS when storing group assignment during SyncGroup (member: m)) (k)",
    ]

    assert [one[:3] for one in comparing.logged(lines[:1])] == [("g", "Stable", 4)]
    assert [one[:3] for one in comparing.logged(lines)] == [("g", "PreparingRebalance", 4)]


@pytest.mark.parametrize(
    "join",
    [
        "Pending dynamic member with id n joins group g in %s state. Adding to the group now. (k)",
        "Static member with groupInstanceId=i and unknown member id joins group g in %s state. Created a new "
        "member id n for this member and added to the group. (k)",
    ],
)
def test_an_assignment_that_a_join_came_before_made_nothing_stable(join: str) -> None:
    """While a replica is missed, a stored assignment counts for nobody: the join's line tells the state."""
    start = "[2026-11-21 16:53:08,740] INFO [GroupCoordinator id=2 topic=__consumer_offsets partition=7] "
    assigned = f"{start}Assignment received from leader m for group g for generation 6. It has 3 members. (k)"
    early, late = (
        comparing.logged([assigned, start + join % state]) for state in ("CompletingRebalance", "Stable")
    )

    assert comparing.missing_and_extra([], early) == ([], [])
    assert comparing.missing_and_extra([told("Stable", 5, 6)], early)[1] == []
    assert comparing.missing_and_extra([], late) == ([("g", "Stable", 6)], [])


def test_what_came_after_the_end_is_not_asked_for() -> None:
    """Consumers go on while the job is being stopped."""
    line = "[2026-11-21 07:45:32,872] INFO [GroupCoordinator 2]: Group g with generation 2 is now empty (k)"

    assert comparing.logged([line], 1_795_247_132_871) == []
    assert len(comparing.logged([line], 1_795_247_132_872)) == 1


def test_lines_are_read_whatever_the_group_is_called() -> None:
    """Brackets and spaces in a name do not end it."""
    start = "[2026-11-20 23:51:50,925] INFO [GroupCoordinator id=1] "
    lines = [
        f"{start}Preparing to rebalance group g (x) in state STABLE with old generation 3 "
        "(reason: Removing member m on LeaveGroup; client reason: bye (now)). (org.apache.kafka.X)",
        f"{start}Stabilized group g (x) generation 4 with 2 members. (org.apache.kafka.X)",
        f"{start}Assignment received from leader m for group g (x) for generation 4. 2 members.",
        f"{start}Group g (x) with generation 5 is now empty. (org.apache.kafka.X)",
        "[2026-11-20 23:51:50,925] INFO something else",
    ]
    assert [one.what for one in comparing.logged(lines)] == [
        ("g (x)", "PreparingRebalance", 3),
        ("g (x)", "CompletingRebalance", 4),
        ("g (x)", "Stable", 4),
        ("g (x)", "Empty", 5),
    ]


def test_missing_and_extra_are_told_apart() -> None:
    """What the log has and we lack is missing; what only we have is extra; births and deaths have no line."""
    ours = [
        told("Empty", 1, 0, came_from="Dead"),
        told("Stable", 2),
        told("Dead", 3),
        told("Stable", 4, 2),
    ]
    logged = [Logged("g", "Stable", 1, "", 2), Logged("g", "CompletingRebalance", 2, "", 3)]
    missing, extra = comparing.missing_and_extra(ours, logged)

    assert missing == [("g", "CompletingRebalance", 2)]
    assert extra == [("g", "Stable", 2)]


@pytest.mark.parametrize(
    ("counted", "shares"),
    [((4, 1, 0), (0.75, 1.0)), ((4, 0, 1), (1.0, 0.8)), ((2, 2, 3), (0.0, 0.0)), ((0, 0, 0), (1.0, 1.0))],
)
def test_what_is_missing_costs_recall_and_what_is_extra_precision(
    counted: tuple[int, int, int], shares: tuple[float, float]
) -> None:
    """Of nothing, all is right."""
    assert comparing.recall_and_precision(*counted) == shares


def test_a_wrong_cause_is_found() -> None:
    """A rebalance that began by a timeout did not begin because somebody left."""
    logged = [Logged("g", "PreparingRebalance", 4, "removing member m on heartbeat expiration", 1)]
    right = told("PreparingRebalance", 1, 4, cause={"kind": "session_timeout"})
    wrong = told("PreparingRebalance", 1, 4, cause={"kind": "member_left"})

    assert comparing.wrong_causes([right], logged) == (1, [])
    assert comparing.wrong_causes([wrong], logged) == (1, [("g", 4, "member_left", logged[0].reason)])


def test_newer_groups_have_no_lines_to_be_held_against() -> None:
    """Their states are in the topic alone; a group that converts is judged by lines while it is classic."""
    ours = [told("Reconciling", 1, 2, group_type="consumer"), told("Stable", 2, 2, group_type="consumer")]

    assert comparing.missing_and_extra(ours, []) == ([], [])


def test_histories_stand_side_by_side() -> None:
    """In the order of time, of one group only, answers that repeat left out."""
    polls = [
        Poll("g", state, at, at + 5) for at, state in ((1_000, "Empty"), (1_200, "Empty"), (3_000, "Dead"))
    ]
    logged = [Logged("g", "Empty", 4, "", 2_500), Logged("other", "Stable", 1, "", 2_600)]
    ours = [told("Empty", 2_600, 4, cause={"kind": "member_left", "client_id": "c"}, basis="observed")]

    lines = [" ".join(line.split()) for line in side_by_side("g", polls, logged, ours)]

    assert lines[1:] == [
        "0.000 answered Empty",
        "1.500 logged Empty/4",
        "1.600 Empty/4 member_left c observed",
        "2.000 answered Dead",
    ]


def test_damage_is_the_same_each_time_and_partly_readable() -> None:
    """A seed fixes every piece, and some pieces must not be counted."""
    pieces = damage.offsets(random.Random(1), 100)
    assert pieces == damage.offsets(random.Random(1), 100)
    assert len(pieces) == 100
    assert sum(damage.expected(pieces).values()) == 100 - len(damage.HOSTILE)
