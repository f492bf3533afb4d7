"""The demo's plan: which clients get which trouble, and which alerts must follow."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLUSTER = "demo"


@dataclass(frozen=True)
class Member:
    """One consumer process of the demo; its group is the part of its client id before the dash."""

    client_id: str
    session_ms: int = 45_000
    poll_interval_ms: int = 300_000
    play: str = "member"
    record_ms: float = 0.0
    """How long it works on each record."""

    @property
    def group(self) -> str:
        """The consumer group, which reads the topic of the same name."""
        return self.client_id.rsplit("-", 1)[0]


@dataclass(frozen=True)
class Incident:
    """One alert that must arrive, and the client that it must name first."""

    alert: str
    group: str
    culprit: str
    what: str


STORM_WINDOW_SECONDS = 60
"""A restart is explained only for members that were there when the window opened, so ``mailer`` is left
undisturbed for this long before its restart."""

CRASHING = Member("payments-3", session_ms=6_000)
FROZEN = Member("shipping-2", session_ms=30_000)
"""Long enough that its 9 s between "imminent" and "over" are noticed on a machine with much else to do."""
SLOW = Member("search-2", poll_interval_ms=6_000)
SILENT_LEADER = Member("invoices-1", play="silent-leader")
FOLLOWERS = (Member("invoices-2"), Member("invoices-3"))
RESTARTED = (Member("mailer-1"), Member("mailer-2"), Member("mailer-3"))

AT_START = (
    Member("orders-1"), Member("orders-2"), Member("audit-1"), *RESTARTED,
    Member("payments-1"), Member("payments-2"), CRASHING,
    Member("shipping-1"), FROZEN, Member("shipping-3"),
    Member("search-1"), SLOW,
)  # fmt: skip
"""Members that run before the incidents begin; the group ``invoices`` starts with its incident."""

HEALTHY_GROUPS = ("orders", "audit", "mailer")
"""No alert may name these; all of ``mailer`` is restarted, one member after the other."""

TOPICS = (*HEALTHY_GROUPS, "payments", "shipping", "search", "invoices")
PARTITIONS = 6

INCIDENTS = (
    Incident("RebalanceStorm", "payments", CRASHING.client_id, "killed and started again, in a loop"),
    Incident("SessionTimeout", "payments", CRASHING.client_id, "killed: its session ran out"),
    Incident("SessionTimeoutImminent", "shipping", FROZEN.client_id, "frozen: it still has its session"),
    Incident("SessionTimeout", "shipping", FROZEN.client_id, "frozen: its session ran out"),
    Incident("PollIntervalExceeded", "search", SLOW.client_id, "one record takes longer than it may"),
    Incident("StuckCompletingRebalance", "invoices", SILENT_LEADER.client_id, "leads, and assigns nothing"),
)

PERMITTED = {
    ("SessionTimeoutImminent", CRASHING.group),
    ("UnsafeTimeouts", CRASHING.group),
    ("UnsafeTimeouts", SLOW.group),
}
"""Also true, but it depends on the moment of the kill, or on how long the demo lasts, whether it is said.

The timeouts of those that are to fail soon differ from their neighbours'.
"""


def demo_config(
    *, bootstrap_servers: str, http_port: int, webhook_url: str, every_url: str, work: Path
) -> dict[str, Any]:
    """The job's configuration: thresholds low enough that nobody waits ten minutes for the storm.

    Args:
        bootstrap_servers: of the demo's cluster.
        http_port: where the page is.
        webhook_url: is told as people are: a group is one message, which is updated.
        every_url: is told each alert at once, for the verdict.
        work: a folder for the checkpoint.
    """
    return {
        "clusters": [{"name": CLUSTER, "bootstrap_servers": bootstrap_servers.split(",")}],
        "checkpoint": str(work / "checkpoint"),
        "trigger_interval": "1s",
        "http": {"host": "127.0.0.1", "port": http_port},
        "rules": {
            "rebalance_storm": {"rebalances": 5, "window": f"{STORM_WINDOW_SECONDS}s"},
            "stuck_completing_rebalance": {"after": "10s"},
        },
        "receivers": [
            {"name": "verdict", "webhook": {"url": every_url}},
            {"name": "demo", "webhook": {"url": webhook_url}},
        ],
        "routes": [
            {"receivers": ["verdict"], "continue": True},
            # The usual 30 s and 5 minutes, fifteen times as fast.
            {
                "receivers": ["demo"],
                "group_by": ["cluster", "group"],
                "group_wait": "2s",
                "group_interval": "20s",
            },
        ],
    }
