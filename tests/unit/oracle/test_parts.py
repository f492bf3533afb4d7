"""The oracle's parts: Java's order, timers, JSON lines, and what the mirror makes of its lines."""

import json
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from coordinator_model.decoding.coordinator_log import parse_coordinator_line
from coordinator_model.kafka.java_order import JavaMap, copied_order, put_in_order
from coordinator_model.observations.log import LeaderReplaced, LogNoted
from tests.oracle import Logged, log_lines
from tests.oracle.group import Group, Member
from tests.oracle.lines import play
from tests.oracle.timers import Timers
from tests.unit.oracle.stage import REBALANCE_MS, Stage, offers

PAYMENTS = [
    f"payments-{number}-{UUID(int=((number * 0x9E3779B97F4A7C15) % 2**64) << 64 | number * 31)}"
    for number in range(14)
]
"""Member ids whose order a real Java was asked for (17, ``HashMap`` and ``HashSet``)."""


ROOT = Path(__file__).parents[3]


def test_members_are_walked_over_as_java_does() -> None:
    """Five members in a table of 16 buckets, fourteen in one of 32."""
    few, many = put_in_order(PAYMENTS[:5]), put_in_order(PAYMENTS)

    assert [PAYMENTS.index(one) for one in few] == [3, 0, 1, 2, 4]
    assert [PAYMENTS.index(one) for one in many] == [5, 6, 2, 12, 8, 3, 13, 0, 7, 1, 4, 9, 10, 11]
    assert copied_order(PAYMENTS) == many


def test_of_two_strategies_with_equal_votes_java_takes_the_first_in_its_order() -> None:
    """Not the one that was counted first."""
    names = ["range", "roundrobin", "sticky", "cooperative-sticky"]

    assert put_in_order(names) == ["sticky", "range", "roundrobin", "cooperative-sticky"]


def test_a_map_is_walked_over_by_hash() -> None:
    """Java's HashMap shows single letters in their own order, whatever came first."""
    assert put_in_order("hgfedcba") == list("abcdefgh")


def test_a_map_grows_at_three_quarters() -> None:
    """With 13 keys it has 32 buckets, and "a" (97) is behind "A" (65) no longer by chance of 16."""
    few, many = put_in_order(["q", "a"]), put_in_order(["q", "a", *"bcdefghijkl"])

    assert few == ["q", "a"]  # 113 and 97 share a bucket of 16: as they came
    assert many.index("a") < many.index("q")


def test_a_map_never_shrinks() -> None:
    """Removed keys leave their buckets."""
    order: JavaMap[int] = JavaMap()
    for key in "abcdefghijklm":
        order[key] = 0
    for key in "cdefghijklm":
        order.pop(key)
    order["q"] = 0

    assert order.keys() == ["a", "b", "q"]


def test_a_copied_set_has_its_size_at_once() -> None:
    """13 keys: 32 buckets from the beginning, so order within a bucket is that of coming."""
    keys = ["q", "a", *"bcdefghijkl"]

    assert copied_order([*keys, "q"]) == sorted(keys)


def test_timers_come_in_order_and_a_key_has_one() -> None:
    """The one that was set last, of each key; at one instant the first that was set."""
    timers, rung = Timers(), []
    for key, due_ms in (("a", 5), ("b", 3), ("c", 3), ("a", 4), ("d", 1)):
        timers.schedule(key, due_ms, lambda key=key: rung.append(key))  # type: ignore[misc]
    timers.cancel("d")
    while timers.due_at() is not None:
        timers.pop()()

    assert rung == ["b", "c", "a"]


def test_the_mirror_takes_the_id_of_an_elected_leader() -> None:
    """Kafka prints the whole member, and so does the oracle; the leader is its id."""
    old, new = (
        Member(
            member_id=one,
            group_instance_id=None,
            client_id="c",
            client_host="/10.0.0.7",
            rebalance_timeout_ms=1,
            session_timeout_ms=1,
            protocol_type="consumer",
            protocols=offers("range", "sticky"),
        )
        for one in PAYMENTS[:2]
    )
    line = log_lines.leader_replaced(Group(group_id="g"), old, new)

    assert parse_coordinator_line(f"[GroupCoordinator id=1] {line.message}").observation == LeaderReplaced(
        old_leader_id=old.member_id, new_leader_id=new.member_id
    )


LINES = (
    '{"type": "Config", "group_initial_rebalance_delay_ms": 100}',
    "",
    '{"at_ms": 0, "type": "JoinGroup", "group_id": "g", "api_version": 3, "protocols": [{"name": "range"}]}',
    '{"at_ms": 200, "type": "FailAppends", "error": 10}',
    '{"at_ms": 300, "type": "Advance"}',
)


def test_a_coordinator_can_be_driven_by_json_lines() -> None:
    """Requests, events and time in; every outcome out, as soon as it is known."""
    told = [json.loads(line) for line in play(LINES)]

    assert [one["type"] for one in told].count("Answered") == 1
    assert told[-1]["response"]["generation_id"] == 1
    assert {one["at_ms"] for one in told} == {0, 100}


def test_ids_that_were_made_have_short_names() -> None:
    """Whoever writes lines by hand cannot know them."""
    lines = (
        '{"at_ms": 0, "type": "JoinGroup", "group_id": "g"}',
        '{"at_ms": 1, "type": "LeaveGroup", "group_id": "g", "members": [{"member_id": "$1"}]}',
    )

    told = [json.loads(line) for line in play(lines)]

    assert told[-1]["response"]["members"][0]["error_code"] == 0


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"at_ms": 0, "type": "Nonsense"}', "line 2: .*Nonsense"),
        ('{"type": "JoinGroup", "group_id": "g"}', "line 2: at_ms is missing"),
        ('{"at_ms": 0, "type": "JoinGroup", "group": "g"}', "line 2: .*group"),
        ('{"at_ms": 1, "type": "JoinGroup", "group_id": "$9"}', "line 2: .*1 member ids were made"),
        ("[]", "line 2: not an object"),
        ("{", "line 2: "),
        ('{"type": "Config"}', "line 2: Config comes first"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: str, why: str) -> None:
    """With its number and the reason."""
    with pytest.raises(ValueError, match=why):
        list(play(['{"at_ms": 1, "type": "JoinGroup", "group_id": "g"}', line]))


def test_the_command_reads_a_file(tmp_path: Path) -> None:
    """And tells what is wrong with one that it cannot read."""
    path = tmp_path / "lines.jsonl"
    path.write_text("\n".join(LINES))
    command = [sys.executable, "-m", "tests.oracle"]

    good = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    bad = subprocess.run([*command, str(tmp_path / "none")], capture_output=True, text=True, check=False)

    assert (good.returncode, good.stdout.splitlines()) == (0, list(play(LINES)))
    assert bad.returncode == 2
    assert "none" in bad.stderr


def test_the_readmes_examples_work() -> None:
    """The one in Python, and the one in JSON lines."""
    readme = (ROOT / "tests" / "oracle" / "README.md").read_text()
    code = readme.partition("```python\n")[2].partition("```")[0]
    lines = [line for line in readme.splitlines() if line.startswith('{"') and "Moved" not in line]

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = [json.loads(line) for line in play(lines)]

    assert "to_state=<GroupState.STABLE" in ran.stdout
    assert [one["to_state"] for one in told if one["type"] == "Moved"][-1] == "Empty"


def test_every_line_of_a_life_is_understood_by_the_mirror() -> None:
    """The two packages know the same coordinator: what one writes the other reads."""
    stage = Stage()
    _, follower, third = stage.stable(3, session_timeout_ms=1_000_000)
    stage.join(group_instance_id="i")
    stage.join(follower, protocols=offers("range", topics=["more"]))
    stage.wait(REBALANCE_MS)
    stage.leave(third)
    stage.beat(follower, 2, group_instance_id="i")
    stage.wait(1_000_000)
    prefix = "[GroupCoordinator id=1 topic=__consumer_offsets partition=0] "

    for outcome in stage.coordinator.outcomes:
        if isinstance(outcome, Logged):
            seen = parse_coordinator_line(prefix + outcome.message).observation
            assert seen is not None
            assert seen != LogNoted(kind="unrecognized"), outcome.message
