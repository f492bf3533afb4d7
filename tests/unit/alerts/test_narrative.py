"""A group's story in words: rebalances with their phases, alerts with what to do, the present, the whole."""

from typing import Any

import msgspec
import pytest

from alerts.alert import Alert, AlertStatus, Culprit
from alerts.narrative import ENTRIES_MAX, Explanation, Present, explain
from alerts.narrative_text import WIDTH, as_text
from coordinator_model.group import Basis, Cause, CauseKind, Transition
from coordinator_model.report import GroupReport, MemberReport
from coordinator_model.states import GroupState
from tests.unit.made_alerts import an_alert

T0 = 1_700_000_000_000
"""2023-11-14 22:13:20 UTC."""
PREPARING, COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE
STABLE, EMPTY, DEAD = GroupState.STABLE, GroupState.EMPTY, GroupState.DEAD


def move(
    at_ms: int,
    source: GroupState,
    target: GroupState,
    generation: int,
    *who: Any,
    **changes: Any,
) -> Transition:
    """One transition, ``at_ms`` after T0; ``who``: the cause's kind, and the client behind it."""
    kind, client = (*who, CauseKind.UNKNOWN, "")[:2] if len(who) != 1 else (who[0], "")
    cause = Cause(
        kind=kind,
        member_id=f"{client}-id" if client else "",
        client_id=client,
        client_host="/10.0.0.7" if client else "",
        detail=changes.pop("detail", ""),
    )
    one = Transition(
        id=f"{at_ms}{target}{generation}",
        cluster="eu",
        group="orders",
        group_type="classic",
        from_state=source,
        to_state=target,
        generation=generation,
        at_ms=T0 + at_ms,
        recorded_at_ms=T0 + at_ms,
        cause=cause,
        basis=Basis.OBSERVED,
        source="coordinator_log",
    )
    return msgspec.structs.replace(one, **changes)


def rebalance(at_ms: int, generation: int, kind: CauseKind, client: str = "app") -> list[Transition]:
    """One rebalance that works: 3 s to join, 500 ms to assign."""
    return [
        move(at_ms, STABLE, PREPARING, generation - 1, kind, client),
        move(at_ms + 3_000, PREPARING, COMPLETING, generation, CauseKind.JOIN_COMPLETED),
        move(at_ms + 3_500, COMPLETING, STABLE, generation, CauseKind.ASSIGNMENT_STORED),
    ]


def alert(**changes: Any) -> Alert:
    """An alert that fires ten seconds after T0."""
    made = {
        "starts_at_ms": T0 + 5_000,
        "detected_at_ms": T0 + 10_000,
        "summary": "Group orders lost app on 10.0.0.7.",
        "culprits": (Culprit(member_id="m", client_id="app", client_host="/10.0.0.7"),),
        "cost": "45 s.",
    }
    return an_alert(**made | changes)


def tell(
    moves: list[Transition], *alerts: Alert, since_ms: int = -1, until_ms: int = 60_000, **more: Any
) -> Explanation:
    """The story until a minute after T0."""
    return explain("eu", "orders", moves, alerts, since_ms=since_ms, until_ms=T0 + until_ms, **more)


def test_a_rebalance_is_one_entry_with_cause_phases_and_end() -> None:
    """However many states it passed."""
    told = tell(rebalance(1_000, 7, CauseKind.SESSION_TIMEOUT))

    assert [(entry.kind, entry.text, entry.details) for entry in told.entries] == [
        (
            "rebalance",
            "app on 10.0.0.7 was removed: no heartbeat for its session timeout.",
            ["Join phase 3 s, assignment 500 ms: Stable at generation 7 after 3.5 s."],
        )
    ]
    assert (told.entries[0].at_ms, told.entries[0].until_ms) == (T0 + 1_000, T0 + 4_500)


@pytest.mark.parametrize("kind", list(CauseKind))
def test_every_cause_has_words(kind: CauseKind) -> None:
    """And none of them is the name of an enumeration, with or without a culprit."""
    for client in ("app", ""):
        told = tell(rebalance(1_000, 7, kind, client))

        assert "_" not in told.entries[0].text
        assert "{" not in told.entries[0].text
        assert told.entries[0].text[0] in "aAGTO"


def test_the_clients_own_reason_is_told() -> None:
    """In its words, where it gave any."""
    moves = [move(0, STABLE, PREPARING, 3, CauseKind.MEMBER_LEFT, "app", detail="x; client reason: closing")]
    silent = [
        move(0, STABLE, PREPARING, 3, CauseKind.MEMBER_LEFT, "app", detail="x; client reason: not provided")
    ]

    assert tell(moves).entries[0].text == 'app on 10.0.0.7 left (it said: "closing").'
    assert tell(silent).entries[0].text == "app on 10.0.0.7 left."


def test_a_loop_of_generations_is_one_entry_with_its_turns() -> None:
    """With who was removed at each turn, and how long each phase was in vain."""
    told = tell(
        [
            move(0, STABLE, PREPARING, 3, CauseKind.MEMBER_JOINED, "new"),
            move(1_000, PREPARING, COMPLETING, 4),
            move(31_000, COMPLETING, PREPARING, 4, CauseKind.SYNC_TIMEOUT, "leader"),
        ],
    )
    (entry,) = told.entries

    assert entry.until_ms == -1
    assert entry.details == [
        "Join phase 1 s, assignment 30 s in vain (generation 4 never got one), "
        "join phase for 29 s, and it goes on.",
        "Begun anew after 31 s: leader on 10.0.0.7 was removed: it did not fetch its assignment in time.",
    ]
    assert told.summary.startswith("2 rebalances (1 x member joined, 1 x sync timeout); not Stable for 1 min")


def test_a_guess_that_was_replaced_is_not_told() -> None:
    """Only what took its place, and once, however often it was read."""
    guess = move(0, STABLE, PREPARING, 3, CauseKind.UNKNOWN, basis=Basis.INFERRED)
    right = move(100, STABLE, PREPARING, 3, CauseKind.MEMBER_LEFT, "app", replaces=guess.id)
    told = tell([guess, right, right])

    assert [entry.text for entry in told.entries] == ["app on 10.0.0.7 left."]


def test_what_is_inferred_says_so() -> None:
    """Nobody takes a guess for an observation."""
    told = tell([move(0, STABLE, PREPARING, 3, CauseKind.SESSION_TIMEOUT, "app", basis=Basis.INFERRED)])

    assert told.entries[0].text.endswith("(inferred).")


def test_an_alert_is_told_when_it_fires_and_when_it_ends() -> None:
    """With cause, culprits, cost and advice; the words of its beginning are those of its first revision."""
    resolved = alert(
        revision=1, status=AlertStatus.RESOLVED, ends_at_ms=T0 + 50_000, summary="No further one."
    )
    told = tell([], alert(), resolved)

    assert [(entry.kind, entry.at_ms - T0, entry.text) for entry in told.entries] == [
        ("alert", 10_000, "Alert SessionTimeout (warning): Group orders lost app on 10.0.0.7."),
        ("alert_over", 50_000, "Alert SessionTimeout is over: No further one."),
    ]
    assert told.entries[0].details == [
        "Cause: It was silent.",
        "By: app on 10.0.0.7",
        "Cost: 45 s.",
        "Do: Look at it.",
    ]
    assert told.summary == "No rebalance. 1 alert (SessionTimeout), all over."
    assert told.advice == []


def test_of_a_compacted_topic_the_cause_tells_what_an_alert_was_about() -> None:
    """Its last word is all that is left."""
    told = tell([], alert(revision=4, status=AlertStatus.RESOLVED, ends_at_ms=T0 + 50_000, summary="Over."))

    assert told.entries[0].text == "Alert SessionTimeout (warning): It was silent."


def test_what_fires_now_heads_the_story_with_its_advice() -> None:
    """What to do comes before what happened."""
    told = tell(rebalance(0, 2, CauseKind.SESSION_TIMEOUT), alert())

    assert told.advice == ["SessionTimeout: Look at it."]
    assert "1 alert (SessionTimeout); SessionTimeout still firing." in told.summary


def test_who_began_most_is_named() -> None:
    """If anybody stands out."""
    moves = [
        step
        for n, client in enumerate(["bad", "good", "bad"])
        for step in rebalance(n * 10_000, n + 2, CauseKind.MEMBER_JOINED, client)
    ]

    assert "Most often by bad on 10.0.0.7 (2 of 3)." in tell(moves).summary
    assert "Most often" not in tell(moves[:6]).summary


def test_a_leave_that_was_found_to_be_a_poll_timeout_is_told_as_one() -> None:
    """Clients that give no reason are found out later; the alert names the member."""
    left = move(0, STABLE, PREPARING, 3, CauseKind.MEMBER_LEFT, "app")
    late = Culprit(member_id="app-id", client_id="app", basis=Basis.INFERRED)
    told = tell([left], alert(name="PollIntervalExceeded", culprits=(late,)))

    assert told.entries[0].text == "app on 10.0.0.7 left: no poll() within max.poll.interval.ms (inferred)."
    assert told.summary.startswith("1 rebalance (1 x poll timeout)")


def test_the_last_member_that_goes_leaves_nobody() -> None:
    """Phases of no length are not worth a word."""
    told = tell([move(0, STABLE, PREPARING, 3, CauseKind.MEMBER_LEFT, "app"), move(2, PREPARING, EMPTY, 4)])

    assert told.entries[0].details == ["Nobody is left: Empty at generation 4."]


def test_one_client_is_one_whether_or_not_its_host_is_known() -> None:
    """A log tells the host of a member that goes, not of one that comes."""
    came = rebalance(0, 2, CauseKind.MEMBER_JOINED, "app")
    came[0] = msgspec.structs.replace(came[0], cause=msgspec.structs.replace(came[0].cause, client_host=""))
    told = tell([*came, *rebalance(10_000, 3, CauseKind.MEMBER_LEFT, "app")])

    assert told.entries[0].text == "app on 10.0.0.7 joined."
    assert "Most often by app on 10.0.0.7 (2 of 2)." in told.summary


def test_what_was_over_before_is_left_out() -> None:
    """But what began before and went on is not."""
    moves = [*rebalance(0, 2, CauseKind.MEMBER_JOINED), *rebalance(20_000, 3, CauseKind.MEMBER_LEFT)]
    ended = alert(revision=1, status=AlertStatus.RESOLVED, ends_at_ms=T0 + 11_000)
    told = tell(moves, ended, since_ms=T0 + 21_000)

    assert [entry.text for entry in told.entries] == ["app on 10.0.0.7 left."]
    assert told.summary.endswith("No alert.")


def test_other_groups_are_passed_over() -> None:
    """Topics hold those of all."""
    told = tell([move(0, STABLE, PREPARING, 3, group="other")], alert(group="other"))

    assert told.entries == []
    assert told.now == "What state orders is in is not known."


def test_the_present_is_told_by_the_report() -> None:
    """State and for how long, members, lag, and what no source tells."""
    report = GroupReport(
        group="orders",
        group_type="classic",
        state=STABLE,
        state_since_ms=T0,
        generation=7,
        leader_id="m1",
        protocol="range",
        protocol_type="consumer",
        coordinator=2,
        members=tuple(
            MemberReport(
                member_id=f"m{n}",
                client_id=f"app-{n}",
                client_host="/10.0.0.7",
                instance_id=None,
                session_timeout_ms=45_000,
                rebalance_timeout_ms=300_000,
                last_heartbeat_ms=-1,
                assigned=None,
            )
            for n in (1, 2)
        ),
        pending=0,
        rebalances={},
        last_rebalance=None,
        commits={},
        last_commit_ms=-1,
        last_seen_ms=T0,
        at_ms=T0,
        unknown=("heartbeats",),
    )
    present = Present(report=report, lag=[("t", 1, 4.0), ("u", 0, 0.0)])

    assert tell([], present=present).now == (
        "orders is Stable for 1 min, generation 7, coordinated by broker 2. 2 members: app-1 on 10.0.0.7, "
        "app-2 on 10.0.0.7; app-1 on 10.0.0.7 leads. It is behind by 1 record (4 s) in t. "
        "Not told by any source: heartbeats."
    )


def test_a_long_story_keeps_its_end() -> None:
    """And says how much it left out."""
    moves = [
        step for n in range(ENTRIES_MAX + 3) for step in rebalance(n * 10_000, n + 2, CauseKind.MEMBER_LEFT)
    ]
    told = tell(moves, until_ms=10_000_000)

    assert (len(told.entries), told.left_out) == (ENTRIES_MAX, 3)
    assert "(3 older entries are left out" in as_text(told)


def test_a_consumer_group_has_phases_of_its_own() -> None:
    """Computing an assignment and handing partitions over are one rebalance."""
    told = tell(
        [
            move(0, STABLE, GroupState.ASSIGNING, 8, CauseKind.MEMBER_JOINED, "app", group_type="consumer"),
            move(50, GroupState.ASSIGNING, GroupState.RECONCILING, 8, group_type="consumer"),
            move(6_050, GroupState.RECONCILING, STABLE, 8, group_type="consumer"),
        ]
    )

    assert told.entries[0].details == [
        "Computing the assignment 50 ms, handing partitions over 6 s: "
        "Stable at generation 8 after 6 s (22:13:26)."
    ]
    assert told.summary.startswith("1 rebalance (1 x member joined)")


def test_text_has_times_in_utc_with_seconds_and_keeps_to_its_width() -> None:
    """One day is named once; nothing runs beyond the line."""
    text = as_text(tell(rebalance(1_000, 7, CauseKind.SESSION_TIMEOUT), alert(), since_ms=T0))
    lines = text.splitlines()

    assert lines[0] == "Group orders of cluster eu, 2023-11-14 22:13:20 UTC to 2023-11-14 22:14:20 UTC"
    assert "22:13:21  app on 10.0.0.7 was removed: no heartbeat for its session timeout." in lines
    assert lines.count("2023-11-14 (UTC)") == 1
    assert max(map(len, lines)) <= WIDTH


def test_names_cannot_steer_a_terminal() -> None:
    """Control characters are shown as such."""
    text = as_text(tell(rebalance(0, 7, CauseKind.MEMBER_LEFT, "evil\x1b[2J")))

    assert "\x1b" not in text
    assert "evil\ufffd[2J" in text
