"""Who is asked about next: the doubtful first, everybody once in a while, never more than the rate."""

from collections import Counter

import pytest

from streaming.driver.probing.choosing import AGAIN_S, FRESH_S, ROUTINE_S, Bucket, Rota, TypeAndState, by_call

STABLE, EMPTY = TypeAndState("classic", "Stable"), TypeAndState("classic", "Empty")
PREPARING = TypeAndState("classic", "PreparingRebalance")


def shard_of(group: str) -> int:
    """Return a shard that can be read off the name: g-3-x is in shard 3."""
    return int(group.split("-")[1])


def rota(
    mirrored: dict[str, TypeAndState], listed: dict[str, TypeAndState] | None = None, *, complete: bool = True
) -> Rota:
    """Return a rota that has looked once, at second 0."""
    made = Rota(shard_of)
    made.look(mirrored, mirrored if listed is None else listed, complete=complete, now=0.0)
    return made


def test_everybody_is_asked_about_shard_by_shard_and_then_left_in_peace() -> None:
    """One shard a round, since each answer makes the job load all of it."""
    made = rota(dict.fromkeys(("g-1-a", "g-0-b", "g-1-c", "g-0-a"), STABLE))
    assert [made.due(10, second) for second in (0.0, 1.0, 2.0)] == [
        ["g-0-a", "g-0-b"],
        ["g-1-a", "g-1-c"],
        [],
    ]
    assert made.due(10, ROUTINE_S - 0.1) == []
    assert made.due(10, ROUTINE_S) == ["g-0-a", "g-0-b"]


def test_a_doubt_comes_first_and_not_before_it_can_prove_something() -> None:
    """Six seconds after the answer that did not fit."""
    made = rota(dict.fromkeys(("g-0-a", "g-0-b"), STABLE))
    made.due(10, 0.0)
    made.answered("g-0-b", fits=False)
    assert made.due(10, AGAIN_S - 0.1) == []
    assert made.due(10, AGAIN_S) == ["g-0-b"]
    made.answered("g-0-b", fits=True)
    assert made.due(10, 2 * AGAIN_S) == []


@pytest.mark.parametrize(
    ("mirrored", "listed", "urgent"),
    [
        ({"g-0-a": STABLE}, {"g-0-a": EMPTY}, "g-0-a"),
        ({"g-0-a": STABLE}, {"g-0-a": TypeAndState("consumer", "Stable")}, "g-0-a"),
        ({}, {"g-0-a": STABLE}, "g-0-a"),
        ({"g-0-a": STABLE}, {}, "g-0-a"),
        ({"g-0-a": PREPARING}, {"g-0-a": PREPARING}, "g-0-a"),
    ],
    ids=["state", "type", "unknown-to-us", "unknown-to-them", "not-at-rest"],
)
def test_what_may_be_wrong_is_asked_about_again_soon(
    mirrored: dict[str, TypeAndState], listed: dict[str, TypeAndState], urgent: str
) -> None:
    """Not only when its turn comes."""
    made = rota(mirrored, listed)
    assert made.due(10, 0.0) == [urgent]
    assert made.due(10, 1.0) == []
    assert made.due(10, AGAIN_S) == [urgent]


def test_idle_rounds_do_not_put_off_what_is_urgent() -> None:
    """What belongs to turns that nobody waits for is for whoever may be wrong."""
    made = rota({"g-0-a": STABLE, "g-0-b": STABLE})
    for second in range(25):
        made.due(10, float(second))
    made.look({"g-0-a": STABLE, "g-0-b": STABLE}, {"g-0-a": EMPTY, "g-0-b": STABLE}, complete=True, now=25.0)
    assert made.due(10, 25.0) == ["g-0-a"]


def test_nobody_is_missing_from_half_a_list() -> None:
    """A broker that gave no list may have the group."""
    made = rota({"g-0-a": STABLE}, {}, complete=False)
    made.due(10, 0.0)
    assert made.due(10, AGAIN_S) == []


def test_old_brokers_list_no_states() -> None:
    """That is no difference."""
    made = rota({"g-0-a": STABLE}, {"g-0-a": TypeAndState("classic", "")})
    made.due(10, 0.0)
    assert made.due(10, AGAIN_S) == []


def test_a_group_that_just_moved_is_asked_about_when_it_rests() -> None:
    """Once, and before its turn."""
    made = rota({"g-0-a": STABLE, "g-0-b": STABLE})
    made.due(10, 0.0)
    moved = {"g-0-a": EMPTY, "g-0-b": STABLE}
    made.look(moved, moved, complete=True, now=8.0)
    assert made.due(10, 8.0 + FRESH_S - 0.1) == []
    assert made.due(10, 8.0 + FRESH_S) == ["g-0-a"]
    assert made.due(10, 8.0 + FRESH_S + AGAIN_S) == []


def test_no_round_exceeds_the_budget_and_a_quarter_is_kept_for_turns() -> None:
    """A storm of a thousand groups hides no quiet one, and its groups are asked about in turn."""
    storm = {f"g-0-{n:04}": PREPARING for n in range(1_000)}
    calm = {f"g-1-{n}": STABLE for n in range(40)}
    made = rota(storm | calm)
    asked: Counter[str] = Counter()
    for second in range(300):
        due = made.due(4, float(second))
        assert len(due) <= 4
        assert len(set(due)) == len(due)
        asked.update(due)
    assert sum(asked.values()) >= 1_100
    assert max(asked.values()) <= 4
    # 300 seconds, one turn each: through the storm's shard and on to the quiet one's.
    assert sum(1 for group in storm if asked[group]) >= 700


def test_where_all_is_calm_the_whole_rate_goes_through_all_groups() -> None:
    """A thousand groups at ten a second: each once in a hundred seconds."""
    made = rota({f"g-{n % 4}-{n:04}": STABLE for n in range(1_000)})
    asked: Counter[str] = Counter()
    for second in range(101):
        asked.update(made.due(10, float(second)))
    assert len(asked) == 1_000


def test_a_rate_below_one_a_second_serves_both() -> None:
    """Urgent groups and turns share it three to one."""
    made = rota({"g-0-a": PREPARING} | {f"g-1-{n}": STABLE for n in range(9)})
    asked: Counter[str] = Counter()
    for second in range(0, 200, 10):
        asked.update(made.due(1, float(second)))
    assert asked["g-0-a"] >= 12
    assert sum(asked.values()) == 20
    assert len(asked) >= 4


def test_groups_that_are_gone_are_forgotten() -> None:
    """By the next look."""
    made = rota({"g-0-a": STABLE})
    made.due(10, 0.0)
    made.answered("g-0-a", fits=False)
    made.look({}, {}, complete=True, now=20.0)
    assert made.due(10, 20.0) == []


def test_a_bucket_saves_up_one_second_at_most() -> None:
    """A pause is no reason to ask a hundred at once."""
    bucket = Bucket(10.0, 0.0)
    assert bucket.available(60.0) == 10
    bucket.take(10)
    assert bucket.available(60.05) == 0
    assert bucket.available(60.5) == 5


def test_a_slow_bucket_fills_over_many_seconds() -> None:
    """One in ten seconds."""
    bucket = Bucket(0.1, 0.0)
    bucket.take(bucket.available(0.0))
    assert [bucket.available(second) for second in (5.0, 9.0, 20.0)] == [0, 0, 1]
    bucket.take(1)
    assert [bucket.available(second) for second in (25.0, 31.0)] == [0, 1]


def test_one_call_is_about_one_type_at_one_broker() -> None:
    """And nobody is asked about a group whose coordinator is not known."""
    brokers = {"a": 1, "b": 1, "c": 2, "d": None}
    calls = by_call(["d", "c", "b", "a"], brokers.get, lambda g: "consumer" if g == "b" else "classic")
    assert calls == {(1, "classic"): ["a"], (1, "consumer"): ["b"], (2, "classic"): ["c"]}


def test_when_records_were_lost_everybody_is_asked_about_before_anybody_again() -> None:
    """Also those that look as they should and were asked about a moment ago."""
    seen = {name: TypeAndState("classic", "Stable") for name in ("a-0", "b-0", "c-1")}
    made = rota(seen, seen)
    for _ in range(3):
        made.due(3, 0.0)
    assert made.due(3, 6.0) == []
    made.doubt_everyone()
    assert sorted(made.due(3, 6.0)) == ["a-0", "b-0", "c-1"]
