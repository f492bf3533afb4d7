"""The patterns behind a storm are told apart, with counts and names, and the advice fits."""

from typing import TYPE_CHECKING

import pytest

from alerts.rules.rebalances.diagnosis import Pattern
from alerts.rules.rebalances.storm_words import ADVICE
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.observations.base import Source
from coordinator_model.observations.requests import Client, Heartbeats

if TYPE_CHECKING:
    from alerts.alert.alert import Alert
    from tests.unit.alerts.rules.conftest import NewStage, Stage

MINUTE = 60_000
STORM = "RebalanceStorm"


def settled(stage: "Stage", count: int = 4) -> list[str]:
    """A group that has been working for an hour."""
    names = stage.start(count)
    stage.wait(60 * MINUTE)
    return names


def storm(stage: "Stage") -> "Alert":
    """The newest revision of the storm alert."""
    return stage.told(STORM)[-1]


def made(client: str, number: int) -> str:
    """A member id as the coordinator makes them."""
    return f"{client}-00000000-0000-4000-8000-{number:012d}"


def come(stage: "Stage", member: str, client: str, host: str) -> None:
    """A new member, and a rebalance that works."""
    stage.join(member, client=client, host=host)
    stage.rebalance()
    stage.wait(5_000)


def go(stage: "Stage", member: str) -> None:
    """A member leaves by itself."""
    stage.leave(member)
    stage.rebalance()
    stage.wait(5_000)


def lose(stage: "Stage", *members: str) -> None:
    """Members time out at the same moment."""
    for member in members:
        stage.time_out(member)
    stage.rebalance()
    stage.wait(5_000)


def test_one_client_that_dies_and_returns_is_a_crash_loop(new_stage: "NewStage") -> None:
    """With how often it went, how, and how often it came back."""
    stage = new_stage()
    settled(stage)
    for turn in range(3):
        come(stage, f"bad-{turn}", "bad", "/10.0.0.66")
        lose(stage, f"bad-{turn}")

    assert storm(stage).cause.startswith("Crash loop: bad on 10.0.0.66 went ")
    assert "by session timeout and came back" in storm(stage).cause
    assert "3 x member_joined, 2 x session_timeout" in storm(stage).cause
    assert "(crash loop)" in storm(stage).summary


def test_a_client_that_closes_politely_in_a_loop_is_a_crash_loop_too(new_stage: "NewStage") -> None:
    """Many applications close their consumer while they die."""
    stage = new_stage()
    settled(stage)
    for turn in range(3):
        come(stage, f"bad-{turn}", "bad", "/10.0.0.66")
        go(stage, f"bad-{turn}")

    assert storm(stage).cause.startswith("Crash loop: bad on 10.0.0.66 went 2 times by leaving and came back")


def test_a_process_that_returns_over_its_connection_was_paused(new_stage: "NewStage") -> None:
    """A crash would have closed the connection."""
    stage = new_stage(requests=True)
    settled(stage)
    for turn in range(4):
        stage.join(f"slow-{turn}", client="slow", host="/10.0.0.7")
        stage.rebalance()
        beat_over(stage, f"slow-{turn}", "10.0.0.1:9092-10.0.0.7:4711-3")
        stage.wait(2_000)
        lose(stage, f"slow-{turn}")

    assert storm(stage).cause.startswith("Pauses: slow on 10.0.0.7 was lost")
    assert "GC" in storm(stage).advice


def beat_over(stage: "Stage", member: str, connection: str) -> None:
    """A heartbeat that shows the member's connection."""
    options = stage.members[member]
    client = Client(client_id=options["client_id"], host=options["client_host"], connection=connection)
    stage.see(
        Heartbeats(
            group="orders",
            member_id=member,
            generation=stage.generation,
            error_code=0,
            times=(stage.group.state_since_ms + 1,),
            client=client,
        ),
        Source.REQUEST_LOG,
    )


def test_members_of_one_host_that_fall_silent_together_are_one_host(new_stage: "NewStage") -> None:
    """Whatever their clients are called: those elsewhere are well."""
    stage = new_stage()
    settled(stage)
    for index in range(3):
        stage.join(f"h{index}", client=f"h{index}", host="/10.0.0.50")
    stage.rebalance()
    stage.wait(60 * MINUTE)
    for turn in range(3):
        held = [name for name in stage.members if name.startswith("h")]
        lose(stage, *held)
        for index in range(3):
            stage.join(f"h{index}-{turn}", client=f"h{index}", host="/10.0.0.50")
        stage.rebalance()
        stage.wait(5_000)

    assert storm(stage).cause.startswith("One host: ")
    assert "10.0.0.50" in storm(stage).cause
    assert "that host" in storm(stage).advice


def test_members_of_several_hosts_that_fall_silent_once_are_silence(new_stage: "NewStage") -> None:
    """No host, no client stands out: the network, or what they share."""
    stage = new_stage({"rebalance_storm": {"rebalances": 4}})
    names = settled(stage, 8)
    for name in names[:5]:
        stage.time_out(name)
        stage.rebalance()
        stage.wait(1_000)

    assert storm(stage).cause.startswith("Silence: 5 members on 10.0.0.0, 10.0.0.1, 10.0.0.2 and 2 more")


def test_restarts_without_closing_are_a_deployment(new_stage: "NewStage") -> None:
    """Each member goes once, in turn, and another takes its place: no crash loop."""
    stage = new_stage()
    names = settled(stage, 6)
    for index, name in enumerate(names):
        lose(stage, name)
        come(stage, f"n{index}", "app", f"/10.9.9.{index}")

    assert storm(stage).cause.startswith("Deployment or scaling: ")
    assert "without closing their consumers" in storm(stage).cause
    assert "close their consumers" in storm(stage).advice


@pytest.mark.parametrize("fresh_hosts", [False, True], ids=["the-same-pods", "new-pods"])
@pytest.mark.parametrize("in_one", [False, True], ids=["step-by-step", "in-one-rebalance"])
def test_several_rolling_restarts_are_no_autoscaler(
    new_stage: "NewStage", fresh_hosts: bool, in_one: bool
) -> None:
    """Each member goes and is back at once, twice within the window; the group keeps its size."""
    stage = new_stage({"rebalance_storm": {"rebalances": 3}})
    for turn in range(3):
        for index in range(4):
            host = f"/10.0.{turn if fresh_hosts else 0}.{index}"
            if turn:
                stage.leave(made(f"r{index}", turn - 1))
                if not in_one:
                    stage.rebalance()
                    stage.wait(2_000)
            stage.join(made(f"r{index}", turn), client="app" if fresh_hosts else f"r{index}", host=host)
            stage.rebalance()
            stage.wait(4_000)
        stage.wait(3 * MINUTE)

    assert {one.cause.split(":")[0] for one in stage.told(STORM)} == {"Deployment or scaling"}


@pytest.mark.parametrize("fresh_hosts", [False, True], ids=["the-same-pods", "new-pods"])
def test_membership_that_goes_up_and_down_is_an_autoscaler(new_stage: "NewStage", fresh_hosts: bool) -> None:
    """By twos: nobody crashes in step with another."""
    stage = new_stage()
    settled(stage, 2)
    for turn in range(3):
        pods = [(f"s{turn}-{n}", f"/10.8.{turn if fresh_hosts else 0}.{n}") for n in range(2)]
        for name, host in pods:
            come(stage, name, "app", host)
        stage.wait(30_000)
        for name, _ in pods:
            go(stage, name)
        stage.wait(30_000)

    assert storm(stage).cause.startswith("Autoscaler: membership goes up and down between 2 and 4 members")
    assert "autoscaler" in storm(stage).advice


def test_an_autoscaler_whose_steps_are_one_rebalance_is_one_too(new_stage: "NewStage") -> None:
    """Of those that come at once only the first makes the group rebalance, of those that go another."""
    stage = new_stage()
    settled(stage, 2)
    for turn in range(4):
        for client in ("c", "d"):
            stage.join(made(client, turn), client=client, host="/10.0.0.9")
        stage.rebalance()
        stage.wait(30_000)
        for client in ("d", "c"):
            stage.leave(made(client, turn))
        stage.rebalance()
        stage.wait(30_000)

    assert [one.cause.split(":")[0] for one in stage.told(STORM)] == ["Autoscaler"]


def test_one_client_id_from_ever_new_hosts_is_a_crash_loop(new_stage: "NewStage") -> None:
    """A pod that is made anew each time; an autoscaler's pods have the client id of the others."""
    stage = new_stage()
    settled(stage)
    for turn in range(4):
        come(stage, made("solo", turn), "solo", f"/10.0.7.{turn}")
        go(stage, made("solo", turn))

    assert {one.cause.split(":")[0] for one in stage.told(STORM)} == {"Crash loop"}


def test_what_the_topic_alone_tells_is_not_called_a_leave(new_stage: "NewStage") -> None:
    """A record tells that a member is gone, not how."""
    stage = new_stage(info=False)
    settled(stage)
    for turn in range(4):
        come(stage, made("bad", turn), "bad", "/10.0.0.66")
        lose(stage, made("bad", turn))

    assert "went 2 times by leaving or a timeout" in storm(stage).cause


def test_members_that_do_not_poll_are_slow_processing(new_stage: "NewStage") -> None:
    """Their return is the echo of their leave, not a crash loop."""
    stage = new_stage()
    settled(stage)
    for turn in range(3):
        come(stage, f"slow-{turn}", "slow", "/10.0.0.7")
        stage.leave(f"slow-{turn}", "consumer poll timeout has expired.")
        stage.rebalance()
        stage.wait(5_000)

    assert storm(stage).cause.startswith("Slow processing: slow on 10.0.0.7 did not call poll()")
    assert "max.poll.records" in storm(stage).advice


@pytest.mark.parametrize(
    ("kind", "text", "begins"),
    [
        pytest.param(
            CauseKind.SUBSCRIPTION_CHANGED, "Updating metadata", "Changed subscriptions: ", id="subscription"
        ),
        pytest.param(
            CauseKind.PARTITIONS_CHANGED,
            "cached metadata has changed",
            "Changed partition counts",
            id="partitions",
        ),
        pytest.param(CauseKind.LEADER_REJOINED, "Leader re-joining", "The leader keeps joining", id="leader"),
        pytest.param(CauseKind.PROTOCOL_CHANGED, "protocol", "Changed assignment protocols", id="protocol"),
        pytest.param(CauseKind.UNKNOWN, "", "Cause not known", id="unknown"),
    ],
)
def test_other_causes_are_patterns_by_themselves(
    new_stage: "NewStage", kind: CauseKind, text: str, begins: str
) -> None:
    """Said with how many rebalances they made, and with advice of their own."""
    stage = new_stage()
    settled(stage)
    for _ in range(6):
        stage.wait(20_000)
        stage.rejoin("m1", kind, text)
        stage.rebalance()

    assert storm(stage).cause.startswith(begins)


def test_two_faults_at_a_time_are_both_told(new_stage: "NewStage") -> None:
    """The heavier one is the cause, the other is named with its count, and both culprits."""
    stage = new_stage({"rebalance_storm": {"rebalances": 8}})
    settled(stage)
    come(stage, "slow-x", "slow", "/10.0.0.7")
    stage.wait(60 * MINUTE)
    for turn in range(4):
        come(stage, made("bad", turn), "bad", "/10.0.0.66")
        lose(stage, made("bad", turn))
        held = next(name for name in stage.members if name.startswith("slow"))
        stage.leave(held, "consumer poll timeout has expired.")
        stage.rebalance()
        come(stage, made("slow", turn), "slow", "/10.0.0.7")

    assert storm(stage).cause.startswith("Crash loop: bad on 10.0.0.66")
    assert "Also: slow processing (" in storm(stage).cause
    assert {culprit.client_id for culprit in storm(stage).culprits} == {"bad", "slow"}


def test_words_do_not_swing_between_two_patterns(new_stage: "NewStage") -> None:
    """Two of nearly the same weight: the one told first stays, and no revision says otherwise."""
    stage = new_stage()
    settled(stage)
    for turn in range(12):
        come(stage, f"bad-{turn}", "bad", "/10.0.0.66")
        lose(stage, f"bad-{turn}")
        stage.rejoin("m1", CauseKind.SUBSCRIPTION_CHANGED, "Updating metadata")
        stage.rebalance()
        stage.wait(20_000)

    assert len(stage.told(STORM)) <= 3


def test_a_session_timeout_says_that_its_process_was_only_paused(new_stage: "NewStage") -> None:
    """When it comes back over its connection, in a revision; a restart says nothing of the kind."""
    stage = new_stage({"session_timeout_imminent": {"enabled": False}}, requests=True)
    settled(stage)
    for client, connections in (("paused", ("c-1", "c-1")), ("killed", ("c-2", "c-3"))):
        name = "SessionTimeout"
        stage.join(f"{client}-0", client=client, host="/10.0.0.7")
        stage.rebalance()
        beat_over(stage, f"{client}-0", connections[0])
        before = len(stage.told(name))
        lose(stage, f"{client}-0")
        stage.join(f"{client}-1", client=client, host="/10.0.0.7")
        beat_over(stage, f"{client}-1", connections[1])
        stage.rebalance()
        told = stage.told(name)[before:]

        assert "no heartbeat for at least 45 s, its session timeout." in told[0].summary
        assert "same connection" not in told[0].cause
        assert [
            one.cause.endswith(
                "It came back over the same connection: the process was paused (GC, CPU limit) or cut off by "
                "the network, not restarted."
            )
            for one in told[1:]
        ] == [True] * (client == "paused")
        stage.wait(60 * MINUTE)


def test_session_timeouts_of_one_host_say_so(new_stage: "NewStage") -> None:
    """As soon as the second is lost, where the group has members elsewhere."""
    stage = new_stage()
    settled(stage)
    for index in range(2):
        stage.join(f"h{index}", client=f"h{index}", host="/10.0.0.50")
    stage.rebalance()
    stage.wait(60 * MINUTE)
    lose(stage, "h0", "h1")

    assert "10.0.0.50, none elsewhere" in stage.told("SessionTimeout")[-1].cause


def test_every_pattern_has_advice() -> None:
    """None is told without what to do."""
    assert ADVICE.keys() == set(Pattern)
