"""A fleet as it may be at three in the morning."""

import msgspec

from alerts.alert.alert import Culprit, Severity
from coordinator_model.kafka.states import GroupState
from streaming.config.server import HttpConfig
from tests.live.browser.past import crash_loop, storm_began, survivors
from tests.live.browser.world import HOSTILE, MINUTE, World, members, now_ms

CULPRIT = Culprit(
    member_id="payments-3-0c23b2f2-c71e-40eb-9886-7293bf2cf3e0",
    client_id="payments-3",
    client_host="/10.0.4.16",
)
RUNBOOK = "https://groupwatch.example/runbooks/"


def fleet(config: HttpConfig | None = None) -> World:
    """Return two clusters with 60 groups; four are in trouble."""
    world = World({"prod-eu": True, "prod-us": True}, config=config)
    for n in range(50):
        name = ("orders", "search-indexer", "mailer", "billing", "audit")[n % 5]
        world.group(
            f"{name}-{n:02}", cluster="prod-us" if n % 3 == 0 else "prod-eu", members=members(1 + n % 7)
        )
    world.group("nightly-export", GroupState.EMPTY, members=())
    world.group("inventory", GroupState.STABLE, group_type="consumer")
    storm(world)
    stuck(world)
    world.hears("prod-eu", [(n, log, 1_200) for n in (1, 2, 3) for log in ("coordinator_log", "request_log")])
    world.hears(
        "prod-us",
        [(4, "coordinator_log", 9_000), (5, "coordinator_log", 70_000)],
        undecodable=[("coordinator_log", "unknown_layout", 17)],
    )
    behind(world)
    world.alert(
        "SessionTimeoutImminent",
        "shipping",
        summary="shipping-2 on 10.0.4.9 in group shipping: no heartbeat for 21 s; it is removed in 9 s.",
        cause="No heartbeat arrived from it although its connection is open.",
        culprits=(Culprit(member_id="shipping-2-1", client_id="shipping-2", client_host="/10.0.4.9"),),
        cost="2 partitions stand still until another member takes them.",
        advice="Look at this client now: a long GC pause, a frozen container or a blocked heartbeat thread.",
        runbook=RUNBOOK + "SessionTimeoutImminent",
        starts_at_ms=now_ms() - 21_000,
    )
    world.group("shipping", members=members(3, "shipping"))
    return world


def behind(world: World) -> None:
    """Let payments and some others lag."""
    ends = {"payments.requests": {0: (16_402, now_ms())}}
    world.view.store.set_end_offsets("prod-eu", ends)


def storm(world: World) -> None:
    """Let one member of payments die again and again."""
    world.pasts["payments"] = crash_loop
    world.group(
        "payments",
        GroupState.PREPARING_REBALANCE,
        state_since_ms=now_ms() - 3_000,
        members=survivors(),
        commits={"payments.requests": {0: (1, now_ms())}},
        rebalances={"session_timeout": 9, "member_joined": 8},
        generation=41,
    )
    world.alert(
        "RebalanceStorm",
        "payments",
        severity=Severity.CRITICAL,
        summary="Group payments rebalanced 19 times in 8 min because of session timeouts (crash loop), "
        "mostly by payments-3 on 10.0.4.16.",
        cause="Crash loop: payments-3 on 10.0.4.16 went 10 times by session timeout and came back 9 times.",
        culprits=(CULPRIT, msgspec.structs.replace(CULPRIT, member_id="payments-3-6f1d")),
        cost="19 rebalances; not Stable for 74 s in total, which stops 4 members each time. "
        "Without an owner: 592 partition-seconds over 8 partitions. Moved 95 partitions; 38 had to.",
        advice="Stop this client until it is fixed, and read its log just before each end: "
        "look for exceptions, OOM kills and failed health checks.",
        runbook=RUNBOOK + "RebalanceStorm",
        starts_at_ms=storm_began(now_ms()) + 3 * MINUTE,
    )


def stuck(world: World) -> None:
    """Let the leader of invoices join and never assign."""
    world.group(
        "invoices",
        GroupState.COMPLETING_REBALANCE,
        state_since_ms=now_ms() - 12 * MINUTE,
        members=members(3, "invoices"),
    )
    world.alert(
        "StuckCompletingRebalance",
        "invoices",
        severity=Severity.CRITICAL,
        summary="Group invoices has been waiting 12 min for its leader's assignment (generation 1).",
        cause="The leader invoices-1 joined and never delivered an assignment.",
        culprits=(Culprit(member_id="invoices-1-77", client_id="invoices-1", client_host="/10.0.7.2"),),
        cost="All 6 partitions stand still.",
        advice="Restart invoices-1; look at its assignor and at exceptions in its onPartitionsAssigned.",
        runbook=RUNBOOK + "StuckCompletingRebalance",
        starts_at_ms=now_ms() - 12 * MINUTE,
    )


def hostile(world: World) -> None:
    """Give groups, members and alerts the names that nobody should."""
    for name in HOSTILE.values():
        world.group(name, GroupState.STABLE, members=members(2, name[:60]))
    world.alert(
        "RebalanceStorm",
        HOSTILE["markup"],
        summary=f"Group {HOSTILE['turned']} is broken by {HOSTILE['markup']}.",
        cause=HOSTILE["lines"] * 5,
        culprits=(
            Culprit(member_id=HOSTILE["long"], client_id=HOSTILE["long"], client_host=HOSTILE["turned"]),
        ),
    )
