"""What holds for each kind of cause."""

from coordinator_model.kafka import cause_kinds as table
from coordinator_model.kafka.cause_kinds import TRAITS, CauseKind


def spelled(kinds: frozenset[CauseKind]) -> set[str]:
    return {str(kind) for kind in kinds}


def test_each_kind_has_its_traits() -> None:
    """A kind that is forgotten would silently be in no set."""
    assert set(TRAITS) == set(CauseKind)


def test_who_ended_a_membership() -> None:
    """The sets that the mirror, rules and stories ask are what the traits come to."""
    removals = {"session_timeout", "rebalance_timeout", "sync_timeout"}
    leaves = {"member_left", "all_members_left"}

    assert spelled(table.REMOVALS) == removals
    assert spelled(table.TIMEOUTS) == removals | {"poll_timeout"}
    assert spelled(table.DEPARTURES) == removals | {"poll_timeout"} | leaves
    assert spelled(table.MAYBE_LEAVES) == leaves | {"unknown"}


def test_what_begins_a_rebalance() -> None:
    """Two ways: a JoinGroup by itself, and in modern groups whatever raises the epoch."""
    rejoins = {"member_joined", "subscription_changed", "partitions_changed"}
    went = {"member_left", "all_members_left", "session_timeout", "poll_timeout", "rebalance_timeout"}

    assert spelled(table.REJOINS) == rejoins | {"leader_rejoined"}
    assert spelled(table.RAISE_EPOCH) == rejoins | went | {"static_member_replaced", "protocol_changed"}


def test_what_may_be_the_echo_of_a_failover() -> None:
    """Members notice another coordinator one by one: they come again, are late, or are removed."""
    assert spelled(table.MAY_FOLLOW_FAILOVER) == {
        "member_joined",
        "leader_rejoined",
        "session_timeout",
        "rebalance_timeout",
        "sync_timeout",
        "coordinator_moved",
    }
