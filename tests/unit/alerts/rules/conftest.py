"""A small coordinator: it does what Kafka's does, and the real model and rules watch it."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from alerts.alert.alert import Alert
from alerts.delivery.receivers.receiver import Notification
from alerts.delivery.receivers.webhook import webhook_body
from alerts.rules import RuleJudge
from coordinator_model import observations as on
from coordinator_model.groups import table as classic
from coordinator_model.groups.core.refusals import pause_before
from coordinator_model.groups.core.turn import Context
from coordinator_model.kafka.cause_kinds import CauseKind
from coordinator_model.observations.base import Source
from coordinator_model.observations.log import (
    AssignmentReceived,
    GroupEmptied,
    JoinPhaseEnded,
    MemberFailed,
    MemberJoined,
    MemberLeft,
    Reason,
    RebalanceStarted,
)
from coordinator_model.observations.records import GroupRecorded, MemberRecord
from coordinator_model.observations.requests import Client, Heartbeats
from coordinator_model.shard.judging import LiveSources
from coordinator_model.state.group import Step
from tests.unit.made_seen import seen

T0 = 1_700_000_000_000
"""Where every stage begins."""

BROKER = 1


class Stage:
    """One group "orders" on one broker: what is done to it is shown to the model, and judged.

    Times are milliseconds since ``T0``.  The rules are called at exactly the times they asked for.
    """

    def __init__(
        self, rules: dict[str, Any], *, protocol: str, requests: bool, info: bool, **more: Any
    ) -> None:
        self.judge = RuleJudge(json.dumps({"rules": rules, **more}).encode())
        self.protocol = protocol
        self.requests = requests
        self.info = info
        self.now_ms = 0
        self.group = classic.new_group("orders")
        self.memory: bytes | None = None
        self.due_ms: int | None = None
        self.judged = 0
        self.heard_ms: int | None = None
        """When the broker's request log was heard last; None: all the time, if it is on."""
        self.on_since_ms = 0
        """When the request log was switched on."""
        self.alerts: list[Alert] = []
        self.members: dict[str, dict[str, Any]] = {}
        self.generation = 0
        self.joined_at_ms = 0
        self.evidence: dict[str, Any] = {}
        """More of what is known at the time of judgement."""
        self._offset = 0

    # --- time and sight ----------------------------------------------------------------------------

    def wait(self, duration_ms: int) -> None:
        """Let time pass; rules and model are called at their times."""
        until_ms = self.now_ms + duration_ms
        while True:
            due = [at for at in (self.due_ms, classic.due_at(self.group, self._context())) if at is not None]
            if not due or min(due) - T0 > until_ms:
                break
            self.now_ms = max(self.now_ms, min(due) - T0)
            model_due_ms = classic.due_at(self.group, self._context())
            if model_due_ms is not None and model_due_ms <= T0 + self.now_ms:
                step = classic.pass_time(self.group, T0 + self.now_ms, self._context())
            else:
                step = Step()
            self.ask(step)
        self.now_ms = until_ms

    def see(self, what: on.AnyObservation, source: Source, *, at_ms: int | None = None) -> None:
        """Show one observation to the model, and what it did to the rules."""
        is_log = source is Source.COORDINATOR_LOG
        if (is_log and not self.info) or (source is Source.REQUEST_LOG and not self.requests):
            return
        self._offset += 1
        at = T0 + (self.now_ms if at_ms is None else at_ms)
        broker = -1 if source is Source.OFFSETS else BROKER
        told = seen(at, what, source, broker=broker, offset=self._offset)
        self.ask(classic.apply(self.group, told, self._context()))

    def ask(self, step: Step | None = None, *, removed: bool = False) -> list[Alert]:
        """Call the rules now; return what they say."""
        heard_ms = self.now_ms // 1_000 * 1_000 if self.heard_ms is None else self.heard_ms
        self.judged += 1
        judgement = self.judge.judge(
            cluster="eu",
            group=self.group,
            step=Step() if step is None else step,
            memory=self.memory,
            now_ms=T0 + self.now_ms,
            evidence=LiveSources(
                info_live=self.info,
                requests_live=self.requests,
                offsets_enabled=True,
                requests_heard_ms=T0 + heard_ms if self.requests else -1,
                live_since_ms=T0,
                requests_seconds=self._seconds(heard_ms),
                **self.evidence,
            ),
            removed=removed,
        )
        self.memory, self.due_ms = judgement.memory, judgement.due_ms
        self.alerts += judgement.alerts
        return list(judgement.alerts)

    def _seconds(self, heard_ms: int) -> list[tuple[int, int]]:
        """Return the seconds in which the request log spoke: all since it was switched on."""
        first = max(self.on_since_ms, self.now_ms - 110_000) // 1_000
        return [(T0 + (n + 1) * 1_000, T0 + n * 1_000) for n in range(first, heard_ms // 1_000 + 1)]

    def told(self, name: str) -> list[Alert]:
        """Return all revisions of alerts of that name, in order."""
        return [alert for alert in self.alerts if alert.name == name]

    def names(self) -> set[str]:
        """Return the names of all alerts so far."""
        return {alert.name for alert in self.alerts}

    # --- what the coordinator does ------------------------------------------------------------------

    def join(
        self,
        member: str,
        *,
        client: str = "app",
        host: str = "/10.0.0.1",
        instance: str | None = None,
        session_ms: int = 45_000,
        poll_ms: int = 300_000,
    ) -> None:
        """A new member joins: in a Stable, Completing or Empty group that begins a rebalance."""
        self.members[member] = {
            "client_id": client,
            "client_host": host,
            "instance_id": instance,
            "session_timeout_ms": session_ms,
            "rebalance_timeout_ms": poll_ms,
        }
        self.log(MemberJoined(group="orders", member_id=member, instance_id=instance))
        if not self.preparing:
            self.prepare(CauseKind.MEMBER_JOINED, member, f"Adding new member {member}")

    def leave(self, member: str, reason: str | None = "the consumer is being closed") -> None:
        """A member leaves by itself."""
        self.members.pop(member)
        self.log(MemberLeft(group="orders", member_id=member, client_reason=reason))
        if not self.preparing:
            self.prepare(
                CauseKind.MEMBER_LEFT, member, f"explicit `LeaveGroup` request for ({member}) members."
            )

    def time_out(self, member: str) -> None:
        """A member's session times out."""
        self.members.pop(member)
        self.log(MemberFailed(group="orders", member_id=member))
        if not self.preparing:
            self.prepare(
                CauseKind.SESSION_TIMEOUT, member, f"removing member {member} on heartbeat expiration."
            )

    def rejoin(self, member: str, kind: CauseKind, text: str) -> None:
        """A member that is here joins again and makes the group rebalance."""
        self.prepare(kind, member, text)

    def prepare(self, kind: CauseKind, member: str, text: str) -> None:
        """The join phase begins."""
        reason = Reason(kind=str(kind), text=text, member_ids=(member,) if member else ())
        self.preparing = True
        self.log(RebalanceStarted(group="orders", generation=self.generation, reason=reason))

    preparing = False

    def end_join_phase(self) -> None:
        """All have joined, or nobody is left."""
        self.generation += 1
        self.preparing = False
        self.joined_at_ms = self.now_ms
        if self.members:
            count = len(self.members)
            self.log(JoinPhaseEnded(group="orders", generation=self.generation, member_count=count))
        else:
            self.log(GroupEmptied(group="orders", generation=self.generation))
            self.store(leader=None)

    def assign(self) -> None:
        """The leader's assignment arrives and is stored: Stable."""
        leader = next(iter(self.members))
        count = len(self.members)
        self.log(
            AssignmentReceived(
                group="orders", generation=self.generation, leader_id=leader, member_count=count
            )
        )
        self.store(leader=leader)

    def store(self, *, leader: str | None) -> None:
        """The generation's record is written."""
        records = tuple(
            MemberRecord(member_id=name, **{"topics": ("t",), "assigned": {"t": (0,)}, **options})
            for name, options in self.members.items()
        )
        self.see(
            GroupRecorded(
                group="orders",
                generation=self.generation,
                protocol_type="consumer",
                protocol=self.protocol if leader else None,
                leader_id=leader,
                state_since_ms=T0 + self.joined_at_ms,
                members=records,
            ),
            Source.OFFSETS,
        )

    def rebalance(self, join_ms: int = 200, sync_ms: int = 50) -> None:
        """Finish the rebalance that is under way, as a healthy group does."""
        self.wait(join_ms)
        self.end_join_phase()
        if self.members:
            self.wait(sync_ms)
            self.assign()

    def start(self, count: int, **options: Any) -> list[str]:
        """Bring up ``count`` members on hosts of their own within one initial rebalance."""
        names = [f"m{index}" for index in range(count)]
        for index, name in enumerate(names):
            self.join(name, host=f"/10.0.0.{index}", **options)
            self.wait(100)
        self.rebalance(join_ms=3_000)
        return names

    def beat(self, member: str, error_code: int = 0, *, at_ms: int | None = None) -> None:
        """A heartbeat is answered."""
        at = T0 + (self.now_ms if at_ms is None else at_ms)
        options = self.members[member]
        client = Client(client_id=options["client_id"], host=options["client_host"])
        what = Heartbeats(
            group="orders",
            member_id=member,
            generation=self.generation,
            error_code=error_code,
            times=(at,),
            client=client,
        )
        pause = pause_before(self.group, what) if self.requests else None
        self.see(what, Source.REQUEST_LOG)
        if pause is not None:
            self.ask(Step(notes=[pause]))

    def log(self, what: on.AnyObservation) -> None:
        """The coordinator writes a line."""
        self.see(what, Source.COORDINATOR_LOG)

    def _context(self) -> Context:
        return Context(
            cluster="eu",
            info_live=self.info,
            offsets_enabled=True,
            backlog=False,
            requests_live=self.requests,
        )


NewStage = Callable[..., Stage]


@pytest.fixture
def new_stage() -> Iterator[NewStage]:
    """Return a maker of stages; rules by their key in the configuration, defaults for the rest.

    Whatever a test is about: each alert that it got must answer what its reader asks.
    """
    made: list[Stage] = []

    def make(
        rules: dict[str, Any] | None = None,
        *,
        protocol: str = "range",
        requests: bool = False,
        info: bool = True,
        **more: Any,
    ) -> Stage:
        made.append(Stage(rules or {}, protocol=protocol, requests=requests, info=info, **more))
        return made[-1]

    yield make
    for stage in made:
        fired = {alert.id for alert in stage.alerts if not alert.revision}
        for alert in stage.alerts:
            # What was adopted has the words that a test gave it.
            assert alert.id not in fired or unanswered(alert) == [], alert


def unanswered(alert: Alert) -> list[str]:
    """Return the questions that a person on call asks and the notification leaves open."""
    notification = Notification(id=alert.id, revision=alert.revision, alerts=(alert,))
    said = webhook_body(notification, receiver="oncall")["alerts"][0]["annotations"]
    empty = [name for name in QUESTIONS if not said[name].strip()]
    nameless = ["group"] if alert.group and alert.group not in said["summary"] else []
    unended = [name for name in QUESTIONS if name not in empty and said[name].rstrip()[-1] not in ".?!)"]
    return empty + nameless + [name for name in unended if name not in {"culprit", "summary"}]


QUESTIONS = ("summary", "cause", "culprit", "cost", "advice")
"""What happens (to which group), why, who, what it costs, what to do."""
