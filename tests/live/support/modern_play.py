"""What happens to groups of every protocol in the live test, and why, as it must be told."""

import json
from collections.abc import Callable
from pathlib import Path

from streaming.devkit.kafka.kafka import EmbeddedKafka
from tests.live.support.members import Member
from tests.live.support.modern import PROPERTIES, Driver, Recorded, read_rows
from tests.live.support.stage import await_that, now_ms

PLANNED: dict[str, set[tuple[str, str]]] = {
    "mod": {
        ("member_joined", "a"),
        ("member_joined", "b"),
        ("subscription_changed", "b"),
        ("member_left", "a"),
        ("all_members_left", "b"),
        ("group_deleted", ""),
    },
    "slo": {
        ("member_joined", "slow"),
        ("member_joined", "fast"),
        ("rebalance_timeout", "slow"),
        ("member_left", "fast"),
        ("all_members_left", "slow"),
    },
    "sta": {
        ("member_joined", "x1"),
        ("member_joined", "x2"),
        ("member_left", "x1"),
        ("static_member_replaced", "x3"),
        ("session_timeout", "x2"),
        ("all_members_left", "x3"),
    },
    "gro": {
        ("member_joined", "g1"),
        ("member_joined", "g2"),
        ("partitions_changed", ""),
        ("member_left", "g1"),
        ("all_members_left", "g2"),
    },
    "rgx": {("member_joined", "r1"), ("subscription_changed", "r1"), ("all_members_left", "r1")},
    "shr": {("member_joined", "h1"), ("all_members_left", "h2"), ("group_deleted", "")},
    "str": {
        ("member_joined", "s1"),
        ("member_joined", "s2"),
        ("session_timeout", "s2"),
        ("all_members_left", "s1"),
        ("group_deleted", ""),
    },
    "lat": {("member_joined", "l1"), ("partitions_changed", ""), ("all_members_left", "l1")},
    "lib": {
        ("member_joined", "rd-0"),
        ("member_joined", "rd-1"),
        ("session_timeout", "rd-0"),
        ("all_members_left", "rd-1"),
    },
}
"""Group -> (cause, client id) of everything that happens to it, but for assignments that are made of it."""


class Play:
    """The schedule: a minute in the life of groups of every protocol."""

    def __init__(self, kafka: EmbeddedKafka, driver: Driver, note: Callable[[str], None]) -> None:
        """Take the stage."""
        self._kafka, self._driver, self._note = kafka, driver, note
        bootstrap = kafka.bootstrap_servers
        self._lib = [Member(bootstrap, "lib", f"rd-{n}", "confluent", protocol="consumer") for n in (0, 1)]
        self._classic = Member(bootstrap, "mig", "old", "confluent")

    def run(self) -> None:
        """Let it all happen; every wait is for an answer of the broker."""
        self._come()
        self._change()
        self._fail()
        self._restart()
        self._go()

    def end(self) -> None:
        """Leave nobody behind."""
        for member in (*self._lib, self._classic):
            member.crash()

    def _order(self, *orders: str) -> None:
        for order in orders:
            self._note(order)
            self._driver.order(order)

    def _wait(self, group: str, state: str, members: int, kind: str = "") -> None:
        self._driver.await_state(group, state, members, kind)

    def _come(self) -> None:
        for member in self._lib:
            member.start()
            self._wait("lib", "Stable", 1 + self._lib.index(member))
        self._classic.start()
        self._order("consumer a mod orders", "consumer slow slo orders rebalance=3000")
        self._order("consumer x1 sta orders instance=i1", "consumer x2 sta orders instance=i2")
        self._order("consumer g1 gro payments", "consumer g2 gro payments", "consumer r1 rgx - regex=^pay.*")
        self._order("streams s1 str orders", "streams l1 lat later", "share h1 shr orders")
        for group, state, members in (
            ("mod", "Stable", 1),
            ("slo", "Stable", 1),
            ("sta", "Stable", 2),
            ("gro", "Stable", 2),
            ("rgx", "Stable", 1),
            ("str", "Stable", 1),
            ("lat", "NotReady", 1),
            ("shr", "Stable", 1),
        ):
            self._wait(group, state, members)
        self._wait("mig", "Stable", 1, "classic")

    def _change(self) -> None:
        self._order("hold a 1500", "consumer b mod orders", "hold slow 20000", "consumer fast slo orders")
        self._order("streams s2 str orders", "share h2 shr orders", "create later 2")
        self._order("grow payments 5", "consumer new mig orders")
        self._wait("mod", "Stable", 2)
        self._wait("str", "Stable", 2)
        self._wait("lat", "Stable", 1)
        self._wait("mig", "Stable", 2, "consumer")

    def _fail(self) -> None:
        self._order("away x1", "subscribe b orders,payments", "consumer x3 sta orders instance=i1")
        self._wait("sta", "Stable", 2)
        self._order("die s2", "die x2")
        self._lib[0].crash()
        self._wait("mod", "Stable", 2)
        self._order("leave a", "leave new")
        self._wait("mod", "Stable", 1)
        self._wait("mig", "Stable", 1, "classic")

    def _restart(self) -> None:
        """The groups move to another coordinator: the same broker, started anew."""
        broker = self._kafka.broker_ids[0]
        self._note("restart")
        self._kafka.stop_broker(broker)
        self._kafka.start_broker(broker)
        for group in ("mod", "str", "sta", "lib"):
            self._wait(group, "Stable", 1)
        self._wait("slo", "Stable", 2)

    def _go(self) -> None:
        self._order(
            "leave fast", "leave h1", *(f"leave {name}" for name in ("b", "x3", "g1", "r1", "s1", "l1"))
        )
        self._order("leave slow", "leave h2", "leave g2")
        self._lib[1].close()
        self._classic.close()
        for group in PLANNED:
            self._wait(group, "Empty", 0)
        self._order("delete mod", "delete str", "delete shr")
        deleted_ms = now_ms()
        await_that(
            lambda: self._driver.latest("sta")["asked_at_ms"] > deleted_ms, "the brokers are asked once more"
        )


def play(folder: Path, note: Callable[[str], None] = lambda _: None) -> Recorded:
    """Start a broker, let the schedule happen, and return what was recorded; material stays in ``folder``."""
    cluster = EmbeddedKafka(
        folder / "kafka", offsets_partitions=8, heap="384m", properties=PROPERTIES, tell=note
    )
    recorded = Recorded()
    with cluster as kafka:
        kafka.create_topic("orders", partitions=6)
        kafka.create_topic("payments", partitions=3)
        with Driver(kafka.bootstrap_servers, folder / "driver.log") as driver:
            stage = Play(kafka, driver, note)
            try:
                stage.run()
            finally:
                stage.end()
            recorded.polls = list(driver.polls)
            recorded.failed = list(driver.failed)
        recorded.rows = read_rows(kafka.address)
        logs = kafka.folder(1) / "logs"
    answers = "\n".join(json.dumps(poll) for poll in recorded.polls)
    (folder / "answers.jsonl").write_text(answers)  # for whoever looks into a disagreement
    info, requests = logs / "server.log", logs / "kafka-request.log"
    recorded.logs = {"quiet": [info], "requests": [requests], "full": [info, requests]}
    return recorded
