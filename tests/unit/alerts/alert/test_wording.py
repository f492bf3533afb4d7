"""Times, numbers and names as alerts spell them."""

import pytest

from alerts.alert.wording import some, span, times, who
from alerts.rules.registry import ALL_RULES, nobody


@pytest.mark.parametrize(
    ("duration_ms", "expected"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (4_240, "4.2 s"),
        (9_999, "10 s"),
        (59_499, "59 s"),
        (59_999, "1 min"),
        (150_000, "2 min 30 s"),
        (3_600_000, "1 h"),
        (11_100_000, "3 h 5 min"),
        (26 * 3_600_000, "26 h"),
        (47 * 3_600_000 + 59 * 60_000, "47 h 59 min"),
        (48 * 3_600_000, "2 days"),
        (7 * 86_400_000, "7 days"),
        (7 * 86_400_000 + 5 * 3_600_000 + 59_000, "7 days 5 h"),
    ],
)
def test_a_duration_is_what_people_say(duration_ms: int, expected: str) -> None:
    """Two units at most, hours for two days, and then days."""
    assert span(duration_ms) == expected


def test_a_number_can_be_read_at_night() -> None:
    """One of a kind is one, and thousands stand apart."""
    assert [times(count, "record") for count in (0, 1, 2, 2_372_577)] == [
        "0 records",
        "1 record",
        "2 records",
        "2,372,577 records",
    ]


def test_names_are_few_and_counted() -> None:
    """Three of them, equal ones once."""
    assert some(["a", "b", "a", "c", "d", "e"]) == "2 x a, b, c and 2 more"


def test_a_member_has_some_name() -> None:
    """Its client's, else its id, else that it has none."""
    assert who(member_id="m", client_id="", client_host="/10.0.0.1") == "m on 10.0.0.1"
    assert who(member_id="", client_id="", client_host="") == "an unknown member"
    assert who(member_id="m", client_id="app", client_host="", instance_id="i") == "app (instance i)"


def test_who_is_to_blame_is_never_left_blank() -> None:
    """Each alert has words for when it names no member."""
    assert [rule.name for rule in ALL_RULES if not nobody(rule.name)] == []
    assert nobody("NoRuleOfOurs").startswith("not known")
    assert (
        nobody("CommitsStopped") == "no member: nobody is left, or no source tells who owns these partitions"
    )
