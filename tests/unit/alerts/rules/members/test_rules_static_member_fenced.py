"""StaticMemberFenced: what is a restart, and what are two processes under one instance id."""

from itertools import pairwise
from typing import Any

from alerts.alert.alert import AlertStatus, Severity
from alerts.rules.engine.repeated import QUIET_MS
from coordinator_model.observations.base import Source
from coordinator_model.observations.log import InstanceFenced, InstanceRefused, StaticMemberReplaced
from coordinator_model.observations.requests import Client, Heartbeats, JoinAnswered
from tests.unit.alerts.rules.conftest import T0, NewStage, Stage

NAME = "StaticMemberFenced"
SESSION_MS = 45_000


def static(stage: Stage, count: int = 2, **options: Any) -> list[str]:
    """Bring up members with instance ids of their own."""
    names = [f"i{index}-a" for index in range(count)]
    for index, name in enumerate(names):
        options_of = {"client": f"app-{index}", "host": f"/10.0.0.{index}", **options}
        stage.join(name, instance=f"i{index}", **options_of)
    stage.rebalance(join_ms=3_000)
    return names


def replace(stage: Stage, old: str, new: str, **changes: Any) -> None:
    """A process joins under the instance id of another: the coordinator gives it a new member id."""
    stage.log(
        StaticMemberReplaced(group="orders", instance_id=stage.members[old]["instance_id"], old_member_id=old)
    )
    stage.members = {
        (new if name == old else name): {**options, **(changes if name == old else {})}
        for name, options in stage.members.items()
    }
    stage.wait(5)
    stage.store(leader=next(iter(stage.members)))


def fence(stage: Stage, member: str, by: str, instance: str = "i0", operation: str = "heartbeat") -> None:
    """The coordinator's line about a request of a process that was replaced."""
    stage.log(InstanceFenced(member_id=member, instance_id=instance, by_member_id=by, operation=operation))


def test_two_processes_fence_each_other(new_stage: NewStage) -> None:
    """The first fenced request proves that the replaced process lives; both are named."""
    stage = new_stage()
    static(stage)
    replace(stage, "i0-a", "i0-b", client_id="copy", client_host="/10.0.0.9")
    assert not stage.alerts
    stage.wait(900)
    fence(stage, "i0-a", "i0-b")

    (alert,) = stage.told(NAME)

    assert alert.severity is Severity.WARNING
    assert alert.summary == "Group orders: two processes use one group.instance.id: i0."
    assert {(one.client_id, one.client_host) for one in alert.culprits} == {
        ("app-0", "/10.0.0.0"),
        ("copy", "/10.0.0.9"),
    }
    assert "heartbeat of app-0 (instance i0) on 10.0.0.0 refused with FENCED_INSTANCE_ID" in alert.cause
    assert "copy (instance i0) on 10.0.0.9 holds it" in alert.cause


def test_a_process_that_no_request_told_of_is_not_confused_with_the_old_one(new_stage: NewStage) -> None:
    """The coordinator writes the old client and host into the record of the new member."""
    stage = new_stage()
    static(stage)
    replace(stage, "i0-a", "i0-b")
    stage.wait(900)
    fence(stage, "i0-a", "i0-b")

    (alert,) = stage.told(NAME)

    assert [(one.member_id, one.client_id) for one in alert.culprits] == [("i0-a", "app-0"), ("i0-b", "")]
    assert alert.cause.endswith("; i0-b (instance i0) holds it.")


def test_who_holds_the_id_may_be_heard_of_after_the_refusal(new_stage: NewStage) -> None:
    """The alert is told again with both."""
    stage = new_stage()
    static(stage)
    fence(stage, "i0-a", "i0-b")
    assert [one.member_id for one in stage.told(NAME)[-1].culprits] == ["i0-a"]
    replace(stage, "i0-a", "i0-b", client_id="copy", client_host="/10.0.0.9")

    alert = stage.told(NAME)[-1]

    assert (alert.revision, [one.client_id for one in alert.culprits]) == (1, ["app-0", "copy"])
    assert alert.cause.endswith("FENCED_INSTANCE_ID; copy (instance i0) on 10.0.0.9 holds it.")
    stage.wait(60_000)
    assert stage.told(NAME)[-1].revision == 1


def test_whose_client_a_heartbeat_tells_is_named_then(new_stage: NewStage) -> None:
    """The record of the replacement has the old one's client; heartbeats alone ask no rule."""
    stage = new_stage(requests=True)
    static(stage)
    stage.beat("i0-a")
    fence(stage, "i0-a", "i0-b")
    replace(stage, "i0-a", "i0-b")
    assert [one.client_id for one in stage.told(NAME)[-1].culprits] == ["app-0", ""]
    stage.members["i0-b"] |= {"client_id": "copy", "client_host": "/10.0.0.9"}
    stage.wait(1_000)
    stage.beat("i0-b")
    stage.wait(3_000)

    assert [one.client_id for one in stage.told(NAME)[-1].culprits] == ["app-0", "copy"]


def test_the_fight_is_one_alert_and_ends(new_stage: NewStage) -> None:
    """Turn after turn adds nothing; ten minutes after the last it is over."""
    stage = new_stage()
    static(stage)
    ids = ["i0-a", "i0-b", "i0-c", "i0-d", "i0-e", "i0-f"]
    for old, new in pairwise(ids):
        number = ids.index(new) % 2
        replace(stage, old, new, client_id=f"p{number}", client_host=f"/10.0.1.{number}")
        stage.wait(900)
        fence(stage, old, new)
        stage.wait(5_000)
    firing = [alert for alert in stage.told(NAME) if alert.status is AlertStatus.FIRING]
    assert [alert.revision for alert in firing] == list(range(len(firing)))
    assert len(firing) <= 3

    stage.wait(QUIET_MS)

    assert stage.told(NAME)[-1].status is AlertStatus.RESOLVED
    assert len({alert.id for alert in stage.told(NAME)}) == 1


def test_the_request_log_alone_tells_it(new_stage: NewStage) -> None:
    """Error 82 of a heartbeat, without the INFO log."""
    stage = new_stage(info=False, requests=True)
    static(stage)
    stage.wait(1_000)
    stage.beat("i0-a")
    old = dict(stage.members["i0-a"])
    replace(stage, "i0-a", "i0-b")
    stage.wait(1_000)
    client = Client(client_id=old["client_id"], host=old["client_host"])
    beat = Heartbeats(
        group="orders",
        member_id="i0-a",
        generation=1,
        error_code=82,
        times=(T0 + stage.now_ms,),
        client=client,
        instance_id="i0",
    )
    stage.see(beat, Source.REQUEST_LOG)

    assert [alert.summary for alert in stage.told(NAME)] == [
        "Group orders: two processes use one group.instance.id: i0."
    ]


def test_a_restart_is_healthy(new_stage: NewStage) -> None:
    """Each of five static members is replaced once, twice in ten minutes: two deployments."""
    stage = new_stage(requests=True)
    names = static(stage, 5)
    for turn in "bc":
        for index, name in enumerate(names):
            new = f"i{index}-{turn}"
            replace(stage, name, new)
            names[index] = new
            stage.wait(20_000)
        stage.wait(60_000)

    assert not stage.told(NAME)


def test_one_line_and_one_record_are_one_replacement(new_stage: NewStage) -> None:
    """Three replacements, each told twice, are three; two are no alarm."""
    stage = new_stage()
    static(stage)
    replace(stage, "i0-a", "i0-b")
    stage.wait(30_000)
    replace(stage, "i0-b", "i0-c")
    stage.wait(30_000)
    assert not stage.told(NAME)

    replace(stage, "i0-c", "i0-d")

    (alert,) = stage.told(NAME)
    assert "instance i0 was replaced 3 times" in alert.summary


def test_the_topic_alone_tells_replacements(new_stage: NewStage) -> None:
    """The same generation is written again and again, with another member id for one instance id."""
    stage = new_stage(info=False)
    static(stage)
    for old, new in pairwise(("i0-a", "i0-b", "i0-c", "i0-d")):
        stage.wait(20_000)
        replace(stage, old, new)

    (alert,) = stage.told(NAME)
    assert "instance i0 was replaced 3 times in 40 s" in alert.summary
    assert {one.basis for one in alert.culprits} == {"inferred"}


def test_replacements_far_apart_are_restarts(new_stage: NewStage) -> None:
    """Three within a day, none of them near another."""
    stage = new_stage()
    static(stage)
    for old, new in (("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")):
        replace(stage, f"i0-{old}", f"i0-{new}")
        stage.wait(6 * 60_000)

    assert not stage.told(NAME)


def test_a_join_that_was_parked_proves_no_second_process(new_stage: NewStage) -> None:
    """A process that dies while it waits in its join is answered 82 when its successor joins."""
    stage = new_stage(info=False, requests=True)
    static(stage)
    stage.wait(1_000)
    parked = JoinAnswered(
        group="orders",
        member_id="i0-a",
        error_code=82,
        generation=-1,
        leader_id="",
        arrived_at_ms=T0 + stage.now_ms - 2_000,
        requested_member_id="i0-a",
        instance_id="i0",
    )
    stage.see(parked, Source.REQUEST_LOG)
    assert not stage.told(NAME)

    stage.wait(5_000)
    stage.see(
        JoinAnswered(
            group="orders",
            member_id="i0-a",
            error_code=82,
            generation=-1,
            leader_id="",
            arrived_at_ms=T0 + stage.now_ms - 1,
            requested_member_id="i0-a",
            instance_id="i0",
        ),
        Source.REQUEST_LOG,
    )
    assert len(stage.told(NAME)) == 1


def test_a_restart_that_outlasts_the_session_is_told_quietly_once(new_stage: NewStage) -> None:
    """The first is information, the second is as loud as configured; advice names a longer session."""
    stage = new_stage()
    static(stage, session_ms=10_000)
    loud, ids = [], ["i0-a", "i0-b", "i0-c"]
    for old, new in pairwise(ids):
        stage.wait(60_000)
        stage.time_out(old)
        stage.rebalance()
        stage.wait(12_000)
        stage.join(new, instance="i0", client="app-0", host="/10.0.0.0", session_ms=10_000)
        stage.rebalance()
        loud.append(stage.told(NAME)[-1].severity)

    assert loud == [Severity.INFO, Severity.WARNING]
    assert "the session of i0 ends (10 s) before a restart is done (22 s)" in stage.told(NAME)[-1].summary
    assert "(22 s here)" in stage.told(NAME)[-1].advice
    assert "app-0 (instance i0) on 10.0.0.0 came back 12 s after its session" in stage.told(NAME)[0].cause


def test_a_restart_within_the_session_is_silent(new_stage: NewStage) -> None:
    """That is what static membership is for: one replacement, no departure."""
    stage = new_stage()
    static(stage, session_ms=30_000)
    stage.wait(20_000)
    replace(stage, "i0-a", "i0-b")
    stage.wait(20 * 60_000)

    assert not stage.alerts


def test_a_member_that_was_stopped_for_long_is_no_restart(new_stage: NewStage) -> None:
    """Half an hour away: somebody stopped it."""
    stage = new_stage()
    static(stage)
    stage.time_out("i0-a")
    stage.rebalance()
    stage.wait(30 * 60_000)
    stage.join("i0-b", instance="i0", client="app-0", host="/10.0.0.0")
    stage.rebalance()

    assert not stage.told(NAME)


def test_members_that_are_stopped_again_and_again_are_no_restarts(new_stage: NewStage) -> None:
    """Five minutes at a time, twice: somebody works on them."""
    stage = new_stage()
    static(stage)
    for old, new in pairwise(("i0-a", "i0-b", "i0-c")):
        stage.time_out(old)
        stage.rebalance()
        stage.wait(5 * 60_000)
        stage.join(new, instance="i0", client="app-0", host="/10.0.0.0")
        stage.rebalance()
        stage.wait(60_000)

    assert not stage.told(NAME)


def test_the_window_is_configured(new_stage: NewStage) -> None:
    """Three replacements in two minutes are none too many for a window of one."""
    stage = new_stage({"static_member_fenced": {"window_ms": 60_000}})
    static(stage)
    for old, new in pairwise(("i0-a", "i0-b", "i0-c", "i0-d")):
        replace(stage, old, new)
        stage.wait(40_000)

    assert not stage.told(NAME)


def test_a_static_member_that_dies_for_good_is_no_matter(new_stage: NewStage) -> None:
    """SessionTimeout tells of it."""
    stage = new_stage()
    static(stage)
    stage.time_out("i0-a")
    stage.rebalance()
    stage.wait(30 * 60_000)

    assert stage.names() == {"SessionTimeout"}


def test_ids_that_change_at_each_restart(new_stage: NewStage) -> None:
    """The same client comes under a new id, and the old one times out: told at the second, then loud."""
    stage = new_stage()
    static(stage, 3)
    loud = []
    for index in range(3):
        stage.join(f"new{index}-x", instance=f"new{index}", client=f"app-{index}", host=f"/10.0.0.{index}")
        stage.rebalance()
        stage.wait(SESSION_MS - 5_000)
        stage.time_out(f"i{index}-a")
        stage.rebalance()
        loud.append(stage.told(NAME)[-1].severity if stage.told(NAME) else None)

    assert loud == [None, Severity.INFO, Severity.WARNING]
    assert "group.instance.id changes at each restart" in stage.told(NAME)[-1].summary


def test_other_hosts_that_come_and_go_are_a_scaler(new_stage: NewStage) -> None:
    """Static members that die, and static members of other clients on other hosts that come."""
    stage = new_stage()
    static(stage, 4)
    for index in range(3):
        stage.join(f"new{index}-x", instance=f"new{index}", client=f"web-{index}", host=f"/10.0.7.{index}")
        stage.rebalance()
        stage.wait(30_000)
        stage.time_out(f"i{index}-a")
        stage.rebalance()

    assert not stage.told(NAME)


# --- KIP-848 -------------------------------------------------------------------------------------------


def refused(stage: Stage, member: str, holder: str) -> None:
    stage.log(
        InstanceRefused(group="orders", member_id=member, instance_id="i0", by_member_id=holder, fenced=False)
    )


def test_an_instance_id_that_its_living_holder_does_not_release(new_stage: NewStage) -> None:
    """Error 111 proves a second process once the holder has lived on for a while."""
    stage = new_stage(requests=True)
    static(stage)
    stage.beat("i0-a")
    refused(stage, "other", "i0-a")
    assert not stage.told(NAME)
    for _ in range(4):
        stage.wait(3_000)
        stage.beat("i0-a")
    stage.wait(12_000)

    (alert,) = stage.told(NAME)
    assert "a second process asks for a group.instance.id that a live process holds: i0" in alert.summary


def test_a_crashed_process_waits_for_its_dead_self(new_stage: NewStage) -> None:
    """It is refused until the session of the dead one ends, and that is no second process."""
    stage = new_stage(requests=True)
    static(stage)
    stage.beat("i0-a")
    for _ in range(8):
        stage.wait(5_000)
        refused(stage, "other", "i0-a")
    stage.time_out("i0-a")
    stage.rebalance()
    stage.wait(120_000)

    assert not stage.told(NAME)
