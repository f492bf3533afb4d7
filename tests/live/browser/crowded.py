"""A week that is as full as it may be, of members with names that nobody should have."""

from itertools import count

import msgspec

from alerts.alert.alert import Alert, AlertStatus, Severity
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState
from coordinator_model.state.group import Basis, Cause, Transition
from streaming.history.past import Lane, Past, Point
from tests.alert_names import ALERT_NAMES
from tests.live.browser.world import HOSTILE, MINUTE
from tests.unit.made_alerts import an_alert

SECOND, DAY = 1_000, 1_440 * MINUTE
CLIENTS = [
    *HOSTILE.values(),
    "\u05e9\u05dc\u05d5\u05dd-\u0639\u0645\u064a\u0644-1",
    "\u65e5\u672c\u8a9e" * 40,
]
"""Right to left, and twice as wide."""


def crowded(now_ms: int, group: str, *, rebalances: int, every_ms: int, members: int = len(CLIENTS)) -> Past:
    """Return a past of short rebalances, each with a loss, and of short alerts of all names."""
    began = now_ms - rebalances * every_ms
    return Past(
        points=tuple(
            Point(at, 12_345_678, 9.0, 1_234.5) for at in range(began, now_ms, max(every_ms, MINUTE))
        ),
        lanes=tuple(_lane(n, began, now_ms) for n in range(members)),
        transitions=tuple(
            one for n in range(rebalances) for one in _rebalance(group, began + n * every_ms, n, every_ms)
        ),
        alerts=tuple(_alerts(group, began, now_ms, every_ms)),
    )


def _client(number: int) -> str:
    return CLIENTS[number % len(CLIENTS)] + (str(number) if number >= len(CLIENTS) else "")


def _lane(number: int, began: int, now_ms: int) -> Lane:
    return Lane(
        member_id=f"{_client(number)[:40]}-{number:03}",
        client_id=_client(number),
        client_host=f"/10.0.{number // 250}.{number % 250}",
        instance_id=None,
        seen_at_ms=began,
        gone_at_ms=-1,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        beats=((began, now_ms - SECOND),),
    )


def _rebalance(group: str, at: int, number: int, every_ms: int) -> list[Transition]:
    who = Cause(
        kind=CauseKind.SESSION_TIMEOUT if number % 2 else CauseKind.MEMBER_JOINED,
        client_id=_client(number),
        client_host="/10.0.0.1",
    )
    done = Cause(kind=CauseKind.ASSIGNMENT_STORED)
    states = (GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE)
    steps = zip(states, (*states[1:], states[0]), (who, done, done), strict=True)
    return [
        Transition(
            id=f"t-{number}-{to}",
            cluster="prod-eu",
            group=group,
            group_type="classic",
            from_state=before,
            to_state=to,
            generation=1_234_567_000 + number,
            at_ms=at + step * every_ms // 6,
            recorded_at_ms=at,
            cause=cause,
            basis=Basis.OBSERVED,
            source="coordinator_log",
        )
        for step, (before, to, cause) in enumerate(steps)
    ]


def _alerts(group: str, began: int, now_ms: int, every_ms: int) -> list[Alert]:
    severities, numbers = list(Severity), count()
    return [
        msgspec.structs.replace(
            an_alert(name=name, group=group, cluster="prod-eu", id=f"{name}-{at}", starts_at_ms=at),
            status=AlertStatus.RESOLVED,
            ends_at_ms=at + every_ms // 3,
            severity=severities[next(numbers) % 3],
        )
        for at in range(began, now_ms, every_ms * 3)
        for name in ALERT_NAMES[:11]
    ]
