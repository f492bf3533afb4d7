"""Until when a group's state is proved, and what is not known of it, depends on the sources read."""

import pytest

from coordinator_model.groups.core.turn import Context
from coordinator_model.kafka.states import GroupState
from coordinator_model.shard.report import report_of
from coordinator_model.state.group import Group, Member

FULL = Context("c", True, True, False, True)
QUIET = Context("c", True, True, False, False)
REQUESTS = Context("c", False, True, False, True)
OFFSETS = Context("c", False, True, False, False)
NOW_MS = 90_000


def stable(*, heartbeat_ms: int = -1, commit_ms: int = -1, group_type: str = "classic") -> Group:
    """Return a group whose assignment was stored at 1,000 ms."""
    member = Member(member_id="a", last_heartbeat_ms=heartbeat_ms)
    return Group(
        group="g",
        group_type=group_type,
        state=GroupState.STABLE,
        state_since_ms=1_000,
        stored_at_ms=1_000,
        members={"a": member},
        last_commit_ms=commit_ms,
    )


@pytest.mark.parametrize("context", [FULL, QUIET])
def test_a_log_that_speaks_proves_the_state_now(context: Context) -> None:
    """The coordinator would have told of any move, so silence is knowledge."""
    assert report_of(stable(), at_ms=NOW_MS, context=context).known_at_ms == NOW_MS


def test_the_topic_proves_a_state_until_the_last_commit() -> None:
    """Records alone never show a rebalance that runs: the report says since when it does not know."""
    report = report_of(stable(commit_ms=40_000), at_ms=NOW_MS, context=OFFSETS)

    assert (report.state, report.known_at_ms) == (GroupState.STABLE, 40_000)
    assert report.unknown == ("running_rebalances", "causes", "heartbeats", "refused_requests")


def test_the_topic_proves_emptiness_only_when_it_is_told() -> None:
    """Commits of an empty group come from outside of it and prove nothing of its members."""
    group = Group(
        group="g", state=GroupState.EMPTY, state_since_ms=500, stored_at_ms=600, last_commit_ms=9_000
    )

    assert report_of(group, at_ms=NOW_MS, context=OFFSETS).known_at_ms == 600


def test_heartbeats_prove_a_state() -> None:
    """With requests a Stable group is known Stable at its last accepted heartbeat."""
    report = report_of(stable(heartbeat_ms=88_000), at_ms=NOW_MS, context=REQUESTS)

    assert (report.known_at_ms, report.unknown) == (88_000, ("causes",))


def test_only_requests_tell_of_heartbeats_and_refusals() -> None:
    """The quiet mode knows every move and nothing of who is refused or silent."""
    assert report_of(stable(), at_ms=NOW_MS, context=QUIET).unknown == ("heartbeats", "refused_requests")
    assert report_of(stable(), at_ms=NOW_MS, context=FULL).unknown == ()


def test_the_newer_protocols_write_every_change() -> None:
    """A consumer group's state is exact from the topic alone."""
    report = report_of(stable(group_type="consumer"), at_ms=NOW_MS, context=OFFSETS)

    assert report.known_at_ms == NOW_MS
    assert "running_rebalances" not in report.unknown


def test_nothing_is_proved_later_than_now() -> None:
    """A commit's own time may be ahead of the shard's."""
    assert report_of(stable(commit_ms=99_000), at_ms=NOW_MS, context=OFFSETS).known_at_ms == NOW_MS
