"""GroupIdCollision: who uses a group id that is not its own, and who means to share."""

import pytest

from alerts.alert.alert import AlertStatus, Severity
from alerts.rules.engine.repeated import QUIET_MS
from coordinator_model.observations.base import Source
from coordinator_model.observations.requests import Client, CommitsAnswered, EpochAnswered, JoinAnswered
from tests.unit.alerts.rules.conftest import T0, NewStage, Stage

NAME = "GroupIdCollision"
AFTER_MS = 10 * 60_000


def manual(stage: Stage, error_code: int = 25, *, client: str = "flink", connection: str = "x") -> None:
    """A client that is no member commits."""
    what = CommitsAnswered(
        group="orders",
        member_id="",
        generation=-1,
        error_code=error_code,
        times=(T0 + stage.now_ms,),
        client=Client(client_id=client, host="/10.0.0.66", connection=connection),
        claims=(("t", 0, 5),),
    )
    stage.see(what, Source.REQUEST_LOG)


def refused_join(stage: Stage, error_code: int = 23) -> None:
    """A client may not join."""
    what = JoinAnswered(
        group="orders",
        member_id="",
        error_code=error_code,
        generation=-1,
        leader_id="",
        arrived_at_ms=T0 + stage.now_ms - 1,
        protocol_type="consumer",
        protocols=("cooperative-sticky",),
        client=Client(client_id="billing", host="/10.0.0.66"),
    )
    stage.see(what, Source.REQUEST_LOG)


@pytest.fixture
def stage(new_stage: NewStage) -> Stage:
    """Two members, INFO and request log."""
    made = new_stage(requests=True)
    made.start(2)
    made.wait(60_000)
    return made


def test_commits_without_membership(stage: Stage) -> None:
    """The second one tells; who sends them is named."""
    manual(stage)
    stage.wait(5_000)
    assert not stage.told(NAME)
    manual(stage)

    (alert,) = stage.told(NAME)
    assert alert.summary == (
        "Group orders: flink on 10.0.0.66 commits offsets under the id of this group without being a member "
        "of it."
    )
    assert "(t-0 at 5) refused with UNKNOWN_MEMBER_ID, since the group has 2 members." in alert.cause
    assert [one.client_id for one in alert.culprits] == ["flink"]


def test_they_end_by_quiet(stage: Stage) -> None:
    """Many commits are one alert, over ten minutes after the last."""
    for _ in range(20):
        manual(stage)
        stage.wait(5_000)
    assert stage.names() == {NAME}
    stage.wait(QUIET_MS)

    assert [alert.status for alert in stage.told(NAME)] == [AlertStatus.FIRING, AlertStatus.RESOLVED]


def test_one_attempt_to_reset_an_active_group_is_refused_and_no_matter(stage: Stage) -> None:
    """An operator's mistake, once."""
    manual(stage)
    stage.wait(20 * 60_000)
    manual(stage)
    stage.wait(1_000)

    assert not stage.told(NAME)


def test_a_reset_of_an_empty_group_is_ordinary(new_stage: NewStage) -> None:
    """kafka-consumer-groups commits without membership, and is accepted."""
    stage = new_stage(requests=True)
    stage.start(1)
    stage.leave("m0")
    stage.rebalance()
    for _ in range(5):
        manual(stage, error_code=0)
        stage.wait(2_000)

    assert not stage.alerts


def test_a_member_that_forgot_who_it_was_is_no_stranger(stage: Stage) -> None:
    """A client resets its member id when it leaves; the connection shows who it is."""
    stage.group.members["m0"].connection = "its-own"
    for _ in range(5):
        manual(stage, connection="its-own")
        stage.wait(2_000)

    assert not stage.told(NAME)


def test_a_join_that_does_not_fit(stage: Stage) -> None:
    """One refusal is enough: it is never ordinary."""
    refused_join(stage)

    (alert,) = stage.told(NAME)
    assert "billing on 10.0.0.66 cannot join" in alert.summary
    assert (
        "(consumer: cooperative-sticky) refused with INCONSISTENT_GROUP_PROTOCOL; "
        "the group runs consumer: range" in alert.cause
    )


def test_a_group_of_another_type(stage: Stage) -> None:
    """A share consumer under the id of a classic group is told that there is no such group."""
    what = EpochAnswered(
        group="orders",
        protocol="share",
        member_id="s",
        asked=0,
        epoch=-1,
        error_code=69,
        arrived_at_ms=T0 + stage.now_ms,
        client=Client(client_id="sharer", host="/10.0.0.7"),
    )
    stage.see(what, Source.REQUEST_LOG)

    refused = "join of sharer on 10.0.0.7 (a share group) refused with GROUP_ID_NOT_FOUND"
    assert f"{refused}; the group runs as a classic group" in stage.told(NAME)[0].cause


def test_an_upgrade_with_both_assignors_is_silent(stage: Stage) -> None:
    """Its joins are accepted, whatever they offer."""
    refused_join(stage, error_code=79)
    stage.wait(60_000)

    assert not stage.alerts


# --- topics -----------------------------------------------------------------------------------------------


def reads(stage: Stage, member: str, *topics: str) -> None:
    stage.members[member]["topics"] = topics


def two_services(stage: Stage, *, clients: tuple[str, str] = ("orders-1", "billing-1")) -> None:
    stage.join("m0", client=clients[0], host="/10.0.0.1")
    reads(stage, "m0", "orders")
    stage.rebalance(join_ms=3_000)
    stage.wait(30_000)
    stage.join("m1", client=clients[1], host="/10.0.0.2")
    reads(stage, "m1", "bills")
    stage.rebalance()


@pytest.mark.parametrize("sources", [{}, {"requests": True}, {"info": False, "requests": False}])
def test_two_services_with_nothing_in_common(new_stage: NewStage, sources: dict[str, bool]) -> None:
    """Different applications and different topics: two minutes are enough; it ends when one is gone."""
    stage = new_stage(**sources)
    two_services(stage)
    stage.wait(AFTER_MS // 5 - 1)
    assert not stage.told(NAME)
    stage.wait(1)

    (alert,) = stage.told(NAME)
    assert "2 sets of consumers that have no topic in common" in alert.summary
    assert "orders-1 on 10.0.0.1 reads orders; billing-1 on 10.0.0.2 reads bills" in alert.summary
    assert [one.client_id for one in alert.culprits] == ["billing-1"]

    stage.leave("m1")
    stage.rebalance()
    assert stage.told(NAME)[-1].status is AlertStatus.RESOLVED


@pytest.mark.parametrize(
    ("hosts", "severity"), [(("/a", "/b"), Severity.WARNING), (("/a", "/a"), Severity.INFO)]
)
def test_one_application_with_several_consumers_is_information(
    new_stage: NewStage, hosts: tuple[str, str], severity: Severity
) -> None:
    """The same names on the same hosts: one process with a consumer for each topic."""
    stage = new_stage()
    for index, host in enumerate(hosts):
        stage.join(f"m{index}", client=f"consumer-shop-{index}", host=host)
        reads(stage, f"m{index}", f"t{index}")
    stage.rebalance(join_ms=3_000)
    stage.wait(AFTER_MS - 1)
    assert not stage.told(NAME)
    stage.wait(1)

    assert [alert.severity for alert in stage.told(NAME)] == [severity]


def test_a_rolling_change_of_the_subscription_is_silent(new_stage: NewStage) -> None:
    """One application, old and new topics side by side for eight minutes."""
    stage = new_stage()
    names = stage.start(4)
    for name in names:
        reads(stage, name, "old")
    stage.store(leader="m0")
    for index, name in enumerate(names):
        stage.leave(name)
        stage.rebalance()
        stage.join(f"n{index}")
        reads(stage, f"n{index}", "new")
        stage.rebalance()
        stage.wait(2 * 60_000)
    stage.wait(AFTER_MS)

    assert not stage.told(NAME)


def test_overlapping_subscriptions_mean_to_share(new_stage: NewStage) -> None:
    """Two services, one topic in common."""
    stage = new_stage()
    two_services(stage)
    reads(stage, "m0", "orders", "shared")
    reads(stage, "m1", "bills", "shared")
    stage.store(leader="m0")
    stage.wait(10 * AFTER_MS)

    assert not stage.told(NAME)


def test_unknown_subscriptions_prove_nothing(new_stage: NewStage) -> None:
    """Opaque bytes of another protocol."""
    stage = new_stage()
    two_services(stage)
    reads(stage, "m1")
    stage.store(leader="m0")
    stage.wait(10 * AFTER_MS)

    assert not stage.told(NAME)


def test_a_rebalance_in_between_neither_ends_nor_restarts_it(new_stage: NewStage) -> None:
    """What holds in every generation holds all the time."""
    stage = new_stage({"group_id_collision": {"after_ms": 100_000}})
    two_services(stage, clients=("app-1", "app-2"))
    stage.wait(60_000)
    stage.join("m2", client="app-3")
    reads(stage, "m2", "orders")
    stage.rebalance()
    stage.wait(45_000)
    assert len(stage.told(NAME)) == 1

    stage.join("m3", client="app-4")
    reads(stage, "m3", "orders")
    stage.wait(5_000)
    stage.rebalance()
    assert all(alert.status is AlertStatus.FIRING for alert in stage.told(NAME))
