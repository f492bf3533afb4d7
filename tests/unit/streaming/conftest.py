"""Reports and alerts as the state function yields them."""

from typing import Any

import msgspec
import pytest

from alerts.alert.alert import Alert
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.kafka.states import GroupState
from coordinator_model.shard.report import GroupReport, MemberReport
from coordinator_model.state.group import Basis, Cause, Transition
from tests.unit.made_alerts import an_alert

NOW_MS = 1_700_000_100_000
Row = tuple[str, str, bytes]


class Rows:
    """Makes the rows of a batch."""

    def report(self, group: str, state: GroupState = GroupState.STABLE, **changes: Any) -> Row:
        """A group's report."""
        member = MemberReport(
            member_id="m-1",
            client_id="app",
            client_host="/10.0.0.7",
            instance_id=None,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            last_heartbeat_ms=-1,
            assigned={"orders": (0, 1)},
        )
        report = GroupReport(
            group=group,
            group_type="classic",
            state=state,
            state_since_ms=NOW_MS - 60_000,
            generation=7,
            leader_id="m-1",
            protocol="range",
            protocol_type="consumer",
            coordinator=1,
            members=(member,),
            pending=0,
            rebalances={"member_left": 2, "member_joined": 5},
            last_rebalance=None,
            commits={},
            last_commit_ms=-1,
            last_seen_ms=NOW_MS,
            at_ms=NOW_MS,
        )
        return "report", group, msgspec.json.encode(msgspec.structs.replace(report, **changes))

    def alert(self, group: str = "payments", **changes: Any) -> Row:
        """An alert."""
        alert = self.make_alert(group=group, **changes)
        return "alert", alert.id, msgspec.json.encode(alert)

    def transition(self, to: GroupState, at_ms: int, **changes: Any) -> Row:
        """A transition of group g, out of Stable."""
        made = Transition(
            id=f"{to}-{at_ms}",
            cluster="eu",
            group="g",
            group_type="classic",
            from_state=GroupState.STABLE,
            to_state=to,
            generation=1,
            at_ms=at_ms,
            recorded_at_ms=at_ms,
            cause=Cause(kind=CauseKind.MEMBER_LEFT),
            basis=Basis.OBSERVED,
            source="coordinator_log",
        )
        made = msgspec.structs.replace(made, **changes)
        return "transition", made.group, msgspec.json.encode(made)

    def make_alert(self, **changes: Any) -> Alert:
        """An alert as a value."""
        began = {"starts_at_ms": NOW_MS - 10_000, "detected_at_ms": NOW_MS - 1_500}
        return an_alert(**{"name": "RebalanceStorm", "group": "payments"} | began | changes)


@pytest.fixture
def rows() -> Rows:
    return Rows()
