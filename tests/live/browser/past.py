"""What a store may have kept of a group in a crash loop."""

import math

import msgspec

from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState
from coordinator_model.shard.report import MemberReport
from coordinator_model.state.costs import ToldCost
from coordinator_model.state.group import Basis, Cause, Transition
from streaming.history.past import Lane, Owned, Past, Point

SECOND, MINUTE = 1_000, 60_000
SESSION_MS = 10_000
ROUND_MS, AWAY_MS = 55 * SECOND, 20 * SECOND
ROUNDS = 9
CLIENTS = [f"payments-{n}" for n in range(1, 5)]
DYING = "payments-3"


def storm_began(now_ms: int) -> int:
    """When the first member was lost."""
    return now_ms - ROUNDS * ROUND_MS - 40 * SECOND


def crash_loop(now_ms: int) -> Past:
    """Return two hours of payments: calm, and then one member that dies again and again."""
    began = storm_began(now_ms)
    return Past(
        points=tuple(_points(now_ms, began)),
        gaps=((now_ms - 55 * MINUTE, now_ms - 51 * MINUTE),),
        lanes=tuple(_lanes(now_ms, began)),
        owners=tuple(_owners(began)),
        transitions=tuple(_transitions(began)),
    )


def survivors() -> tuple[MemberReport, ...]:
    """Return the members that are there after the last loss."""
    return tuple(
        MemberReport(
            member_id=_member(one),
            client_id=one,
            client_host=_host(one),
            instance_id=None,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=300_000,
            last_heartbeat_ms=-1,
            assigned={t: tuple(p) for t, p in _spread(_others())[_member(one)].items()},
        )
        for one in CLIENTS
        if one != DYING
    )


def _others() -> list[str]:
    return [_member(one) for one in CLIENTS if one != DYING]


def _host(client: str) -> str:
    return f"/10.0.4.{14 + CLIENTS.index(client)}"


def _member(client: str, life: int = 0) -> str:
    return f"{client}-0c23b2f2-c71e-40eb-9886-7293bf2cf{life:03}"


def _points(now_ms: int, began: int) -> list[Point]:
    found = []
    for at in range(now_ms - 60 * MINUTE, now_ms, 10 * SECOND):
        if now_ms - 55 * MINUTE <= at < now_ms - 51 * MINUTE:
            continue
        calm = 220 + 60 * math.sin(at / 90_000) + 35 * math.sin(at / 21_000)
        lost = max(0, at - began) / 1000 * 31
        is_away = at > began and (at - began) % ROUND_MS < AWAY_MS + 8_000
        rate = 410 + 30 * math.sin(at / 40_000) - (190 if is_away else 0)
        found.append(Point(at, round(calm + lost), (calm + lost) / 400, round(rate, 1)))
    return found


def _lanes(now_ms: int, began: int) -> list[Lane]:
    found = [_lane(one, 0, began - 26 * 60 * MINUTE, -1, now_ms - 1_200) for one in CLIENTS if one != DYING]
    joined = began - 26 * 60 * MINUTE
    for life in range(ROUNDS + 1):
        gone = began + life * ROUND_MS
        if gone > now_ms:
            break
        found.append(_lane(DYING, life, joined, gone, gone - SESSION_MS))
        joined = gone + AWAY_MS
    return found


def _lane(client: str, life: int, joined: int, gone: int, beat: int) -> Lane:
    return Lane(
        member_id=_member(client, life),
        client_id=client,
        client_host="" if life % 2 else _host(client),  # gone before anybody told its host
        instance_id=None,
        seen_at_ms=joined,
        gone_at_ms=gone,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=300_000,
        beats=((joined, beat),),
    )


def _transitions(began: int) -> list[Transition]:
    found: list[Transition] = []
    for life in range(ROUNDS):
        lost = began + life * ROUND_MS
        found += _rebalance(24 + 2 * life, lost, CauseKind.SESSION_TIMEOUT, life)
        found += _rebalance(25 + 2 * life, lost + AWAY_MS, CauseKind.MEMBER_JOINED, life + 1)
    lost = began + ROUNDS * ROUND_MS
    return [*found, *_rebalance(24 + 2 * ROUNDS, lost, CauseKind.SESSION_TIMEOUT, ROUNDS)]


def _rebalance(generation: int, at: int, kind: CauseKind, life: int) -> list[Transition]:
    who = Cause(kind=kind, member_id=_member(DYING, life), client_id=DYING, client_host="/10.0.4.16")
    cost = ToldCost(
        started_ms=at,
        join_ms=3_000,
        sync_ms=900,
        assigning_ms=None,
        reconciling_ms=None,
        eager=True,
        partitions=8,
        partition_ms=31_200,
        moved=5,
        least=2,
        initial=False,
        second_step=False,
        rate_before=410.0,
        rate_during=None,
    )
    stable, preparing = GroupState.STABLE, GroupState.PREPARING_REBALANCE
    completing = GroupState.COMPLETING_REBALANCE
    steps = [
        (stable, preparing, generation, at, who),
        (preparing, completing, generation + 1, at + 3_000, Cause(kind=CauseKind.JOIN_COMPLETED)),
        (completing, stable, generation + 1, at + 3_900, Cause(kind=CauseKind.ASSIGNMENT_STORED)),
    ]
    return [
        Transition(
            id=f"t-{generation}-{to}",
            cluster="prod-eu",
            group="payments",
            group_type="classic",
            from_state=before,
            to_state=to,
            generation=number,
            at_ms=moment,
            recorded_at_ms=moment,
            cause=cause,
            basis=Basis.OBSERVED,
            source="coordinator_log",
            cost=cost if to is GroupState.STABLE else msgspec.UNSET,
        )
        for before, to, number, moment, cause in steps
    ]


def _owners(began: int) -> list[Owned]:
    whole = [_member(one) for one in CLIENTS]
    found = [Owned(began - 30 * MINUTE, 24, _spread(whole))]
    for life in range(ROUNDS):
        lost = began + life * ROUND_MS
        others = _others()
        found.append(Owned(lost + 3_900, 25 + 2 * life, _spread(others)))
        back = [_member(one, life + 1 if one == DYING else 0) for one in CLIENTS]
        found.append(Owned(lost + AWAY_MS + 3_900, 26 + 2 * life, _spread(back)))
    return found


def _spread(members: list[str]) -> dict[str, dict[str, list[int]]]:
    return {one: {"payments.requests": list(range(i, 8, len(members)))} for i, one in enumerate(members)}
