"""A group's story in words: rebalances with their phases, alerts with what to do, the present, the whole."""

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from alerts.alert.alert import Alert, AlertStatus, Culprit
from alerts.story import episodes as narrative_episodes
from alerts.story.episodes import episodes_of, joined, moves_of
from alerts.story.narrative import ENTRIES_MAX, Explanation, Present, explain
from alerts.story.text import WIDTH, as_text
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState
from coordinator_model.shard.report import GroupReport, MemberReport
from coordinator_model.state.costs import ToldCost
from coordinator_model.state.group import Basis, Transition
from tests.unit.alerts.story.made_moves import COMPLETING, EMPTY, PREPARING, STABLE, T0, move, rebalance
from tests.unit.made_alerts import an_alert


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
            [
                "Join phase 3 s, assignment 500 ms: Stable at generation 7 after 3.5 s.",
                "Cost: not known, as no source told who had which partitions.",
            ],
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


def test_forged_corrections_are_followed_only_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long chain of them, with many ends, would cost the square of its length."""
    followed: list[Transition] = []

    def carried(one: Transition, _: Transition) -> Transition:
        followed.append(one)
        return one

    monkeypatch.setattr(narrative_episodes, "carried", carried)
    chain = [move(n, STABLE, PREPARING, 3, id=f"c{n}", replaces=f"c{n - 1}") for n in range(1_000)]
    ends = [move(2_000 + n, STABLE, PREPARING, 3, id=f"e{n}", replaces="c999") for n in range(10)]
    assert len(moves_of([*chain, *ends], "orders")) == 10
    assert len(followed) <= 500


def test_forged_second_steps_are_joined_only_so_far() -> None:
    """Each step that is joined has its cost summed up with those before."""
    begun = [move(2 * n, STABLE, PREPARING, 3, id=f"b{n}") for n in range(1_000)]
    done = [
        move(2 * n + 1, PREPARING, STABLE, 4, id=f"d{n}", cost=cost(second_step=n > 0)) for n in range(1_000)
    ]
    told = joined(episodes_of(moves_of([*begun, *done], "orders")))
    assert max(len(one.then) for one in told) <= 50


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


def test_a_forged_end_is_not_told_over_what_the_job_says_afterwards() -> None:
    """The last word counts, whatever its number."""
    forged = alert(revision=100, status=AlertStatus.RESOLVED, ends_at_ms=T0 + 50_000, summary="Forged.")
    jump = alert(revision=1_000, status=AlertStatus.RESOLVED, ends_at_ms=T0 + 50_000, summary="Forged.")
    told = tell([], alert(), forged, alert(revision=1, summary="Still."), jump)
    assert [one.kind for one in told.entries] == ["alert"]


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
        "Stable at generation 8 after 6 s (22:13:26).",
        "Cost: not known, as no source told who had which partitions.",
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
    """Control characters are written out, so that names stay apart."""
    text = as_text(tell(rebalance(0, 7, CauseKind.MEMBER_LEFT, "evil\x1b[2J")))

    assert "\x1b" not in text
    assert "evil\\x1b[2J" in text


# --- what rebalances cost ------------------------------------------------------------------------------


def cost(**changes: Any) -> ToldCost:
    """Of an eager rebalance that took all of six partitions for 3.5 s and moved three, where two had to."""
    known = {
        "started_ms": T0,
        "join_ms": 3_000,
        "sync_ms": 500,
        "assigning_ms": None,
        "reconciling_ms": None,
        "eager": True,
        "partitions": 6,
        "partition_ms": 21_000,
        "moved": 3,
        "least": 2,
        "initial": False,
        "second_step": False,
        "rate_before": None,
        "rate_during": None,
    }
    return ToldCost(**{**known, **changes})


def with_cost(moves: list[Transition], told: ToldCost) -> list[Transition]:
    """The same transitions, the last one with what it cost."""
    return [*moves[:-1], msgspec.structs.replace(moves[-1], cost=told)]


def leaving(at_ms: int, generation: int, **changes: Any) -> Transition:
    """The next rebalance begins."""
    return move(at_ms, STABLE, PREPARING, generation, CauseKind.MEMBER_LEFT, "app", **changes)


def test_each_rebalance_tells_what_it_cost() -> None:
    """Partition-seconds, moves against the least, and what the next transition says was read again."""
    moves = with_cost(rebalance(1_000, 7, CauseKind.MEMBER_JOINED), cost())
    told = tell([*moves, leaving(20_000, 7, reread=120)])

    assert told.entries[0].details[1] == (
        "Cost: all 6 partitions stood still (eager), 21 partition-seconds without an owner; 3 partitions "
        "moved, 2 had to; 120 records were read again."
    )
    assert " They cost 21 partition-seconds without an owner and 120 records read again." in told.summary
    assert told.entries[1].cost is None
    spent = told.entries[0].cost
    assert spent is not None
    assert spent.phases_ms == {PREPARING: 3_000, COMPLETING: 500}
    assert (spent.steps, spent.partition_ms, spent.moved, spent.least, spent.reread) == (1, 21_000, 3, 2, 120)


@pytest.mark.parametrize(
    ("changes", "reread", "sentence"),
    [
        pytest.param(
            {"eager": False, "partition_ms": 0, "moved": 0, "least": 0},
            0,
            "none of 6 partitions was without an owner; no partition moved; no record was read again.",
            id="nothing",
        ),
        pytest.param(
            {"eager": False, "partition_ms": 2_100, "moved": 1, "least": 1},
            1,
            "2.1 partition-seconds without an owner (of 6 partitions); 1 partition moved, no more than had "
            "to; 1 record was read again.",
            id="cooperative",
        ),
        pytest.param(
            {"eager": None, "partition_ms": None},
            None,
            "3 partitions moved, 2 had to. Not known: how long partitions had no owner, what was read again.",
            id="assignor-of-ones-own",
        ),
        pytest.param(
            {"least": None, "rate_before": 400.0, "rate_during": 20.0},
            0,
            "all 6 partitions stood still (eager), 21 partition-seconds without an owner; 3 partitions "
            "moved; no record was read again; offsets committed: 400/s before, 20/s during. "
            "Not known: how many had to.",
            id="least-unknown",
        ),
        pytest.param(
            {"initial": True},
            None,
            "nobody was stopped, as the group was empty; 6 partitions to read. "
            "Not known: what was read again.",
            id="first",
        ),
        pytest.param(
            {"eager": None, "partitions": None, "partition_ms": None, "moved": None, "least": None},
            None,
            "not known, as no source told who had which partitions.",
            id="opaque",
        ),
    ],
)
def test_what_is_not_known_of_a_cost_is_said(
    changes: dict[str, Any], reread: int | None, sentence: str
) -> None:
    """Zero is zero, and unknown is unknown."""
    moves = with_cost(rebalance(1_000, 7, CauseKind.MEMBER_JOINED), cost(**changes))
    after = leaving(20_000, 7) if reread is None else leaving(20_000, 7, reread=reread)

    assert tell([*moves, after]).entries[0].details[1] == f"Cost: {sentence}"


def test_both_steps_of_a_cooperative_rebalance_are_one_entry() -> None:
    """The second begins when members that gave something up join again; its cost is that of both."""
    first = cost(eager=False, partition_ms=0, moved=2, least=2)
    second = cost(eager=False, partition_ms=1_300, moved=0, least=0, second_step=True)
    told = tell(
        [
            *with_cost(rebalance(1_000, 7, CauseKind.MEMBER_JOINED), first),
            *with_cost(rebalance(5_000, 8, CauseKind.SUBSCRIPTION_CHANGED), second),
            leaving(30_000, 8, reread=7),
        ]
    )

    assert told.entries[0].details == [
        "Join phase 3 s, assignment 500 ms: Stable at generation 7 after 3.5 s.",
        "Second step, 500 ms later: join phase 3 s, assignment 500 ms: Stable at generation 8 after 3.5 s.",
        "Cost of both steps: 1.3 partition-seconds without an owner (of 6 partitions); 2 partitions moved, "
        "no more than had to; 7 records were read again.",
    ]
    assert len(told.entries) == 2
    assert told.entries[0].until_ms == T0 + 8_500
    # The one that runs counts, the second step does not; 7 s of the first, 30 s of the second.
    assert told.summary.startswith("2 rebalances (1 x member joined, 1 x member left); not Stable for 37 s")


def test_a_join_phase_whose_start_nobody_told_is_of_unknown_length() -> None:
    """The topic alone tells when it ended; zero would be a lie."""
    moves = rebalance(1_000, 7, CauseKind.MEMBER_JOINED)
    moves[0] = msgspec.structs.replace(moves[0], at_ms=moves[1].at_ms, basis=Basis.INFERRED, source="model")
    told = tell(with_cost(moves, cost(join_ms=None, partition_ms=None)))

    assert told.entries[0].details == [
        "Join phase of unknown length, assignment 500 ms: Stable at generation 7 after at least 500 ms.",
        "Cost: 3 partitions moved, 2 had to. "
        "Not known: how long partitions had no owner, what was read again.",
    ]
    assert told.entries[0].cost is not None
    assert told.entries[0].cost.phases_ms == {PREPARING: None, COMPLETING: 500}


def test_what_a_replaced_transition_told_of_costs_is_kept() -> None:
    """An end that was dated anew cost all partitions until then; the guess told what was read again."""
    moves = with_cost(rebalance(1_000, 7, CauseKind.MEMBER_JOINED), cost())
    later = msgspec.structs.replace(
        moves[-1], id="later", at_ms=moves[-1].at_ms + 1_000, cost=UNSET, replaces=moves[-1].id
    )
    guess = leaving(20_000, 7, reread=5, basis=Basis.INFERRED)
    right = leaving(20_400, 7, reread=2, replaces=guess.id)
    spent = tell([*moves, later, guess, right]).entries[0].cost

    assert spent is not None
    assert (spent.partition_ms, spent.reread) == (21_000 + 6 * 1_000, 7)


def test_a_cost_that_came_late_belongs_to_the_rebalance_before() -> None:
    """An answer may end it before its record is read; then the next transition has it."""
    guess = leaving(20_000, 7, cost=cost(), reread=5, basis=Basis.INFERRED)
    right = leaving(20_400, 7, replaces=guess.id)
    told = tell([*rebalance(1_000, 7, CauseKind.MEMBER_JOINED), guess, right])
    spent = told.entries[0].cost

    assert spent is not None
    assert (spent.partition_ms, spent.moved, spent.reread) == (21_000, 3, 5)
    assert told.entries[1].cost is None


def test_an_end_that_was_never_reached_leaves_no_cost() -> None:
    """What its assignment would have cost belongs to no rebalance: it was never stored."""
    moves = with_cost(rebalance(1_000, 7, CauseKind.MEMBER_JOINED), cost())
    never = move(9_500, COMPLETING, PREPARING, 7, CauseKind.UNKNOWN, replaces=moves[-1].id)
    told = tell([*moves, never])

    assert [entry.cost for entry in told.entries] == [None]
    assert "partition-seconds" not in as_text(told)


def test_the_last_rebalance_asks_the_present_what_was_read_again() -> None:
    """No transition has told yet; a report of another rebalance says nothing of this one."""
    moves = with_cost(rebalance(1_000, 7, CauseKind.MEMBER_JOINED), cost())
    ended_ms = moves[-1].at_ms
    of_this = tell(moves, present=Present(reread=(ended_ms, 30))).entries[0]
    of_another = tell(moves, present=Present(reread=(ended_ms - 1, 30))).entries[0]

    assert of_this.details[1].endswith("; 30 records were read again.")
    assert of_another.details[1].endswith(" Not known: what was read again.")


def test_a_sum_of_which_a_part_is_unknown_is_a_lower_bound() -> None:
    """Of two rebalances one tells its cost; the first start of the group stopped nobody."""
    told = tell(
        [
            *with_cost(rebalance(1_000, 7, CauseKind.MEMBER_JOINED), cost(initial=True, partition_ms=9_000)),
            *with_cost(rebalance(20_000, 8, CauseKind.MEMBER_JOINED), cost()),
            *rebalance(40_000, 9, CauseKind.MEMBER_JOINED),
        ]
    )

    assert " They cost at least 21 partition-seconds without an owner." in told.summary


def test_a_streams_group_shares_out_tasks() -> None:
    """They are what it hands over."""
    told = tell(
        [
            move(0, STABLE, GroupState.RECONCILING, 8, CauseKind.MEMBER_JOINED, "app", group_type="streams"),
            move(
                4_000,
                GroupState.RECONCILING,
                STABLE,
                8,
                group_type="streams",
                cost=cost(eager=False, partitions=2, partition_ms=2_000, moved=1, least=1),
            ),
        ]
    )

    assert told.entries[0].details[1] == (
        "Cost: 2 task-seconds without an owner (of 2 tasks); 1 task moved, no more than had to. "
        "Not known: what was read again."
    )
