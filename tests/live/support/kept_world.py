"""A small cluster with a job in the middle of its work, kept as a file: later versions go on with it.

``python -m tests.live.support.kept_world FILE.tar.xz`` plays and keeps one with today's code: once a release.
The brokers' data and the job's checkpoint belong together: the offsets in the one mean records of the other.
"""

import sys
import tarfile
import tempfile
from pathlib import Path

import msgspec
from confluent_kafka import Consumer

from streaming.devkit.kafka import EmbeddedKafka
from streaming.devkit.kafka.plan import free_ports, planned
from streaming.kafka_clients import admin_client
from tests.live.support.members import Member
from tests.live.support.stage import Job, Pager, alerts_of, await_that, need_jars, records_of, states_of

STEADY, MODERN, STORMY = "steady", "modern", "stormy"
GUESTS = 8
"""Members that come and go one after the other; five of them make a storm."""
_ALL_TIME = {
    "log.retention.ms": "-1",
    "log.initial.task.delay.ms": str(10**9),
    "offsets.retention.minutes": str(2**31 - 1),
}
"""Years later nothing of it may have expired."""
_FOR_EVER = "36500d"
"""How long the job remembers groups without commits; the world of 0.2.0 was made with the usual week."""
_LEFT_OUT = {"logs", "job.log", "server.log", ".lock"}


def main() -> None:
    """Play and keep one world."""
    need_jars()
    with tempfile.TemporaryDirectory(prefix="groupwatch-world-") as folder:
        _play(Path(folder))
        with tarfile.open(sys.argv[1], "w:xz", preset=9) as out:
            out.add(folder, ".", filter=_kept)


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return None if Path(entry.name).name in _LEFT_OUT else entry


def _play(folder: Path) -> None:
    kafka = EmbeddedKafka(
        folder / "kafka",
        offsets_partitions=4,
        events_partitions=1,
        rebalance_delay_ms=300,
        heap="384m",
        properties=_ALL_TIME,
    )
    with kafka, Pager() as pager:
        kafka.create_topic("orders", partitions=4)
        watched = {
            "name": "live",
            "bootstrap_servers": kafka.bootstrap_servers.split(","),
            "forget_after": _FOR_EVER,
        }
        job = Job(kafka.bootstrap_servers, folder, pager, more={"clusters": [watched]})
        admin = admin_client(kafka.address)
        members = [Member(kafka.bootstrap_servers, STEADY, f"steady-{n}") for n in (1, 2)]
        members.append(Member(kafka.bootstrap_servers, STORMY, "resident"))
        members.append(
            Member(kafka.bootstrap_servers, MODERN, "modern-1", client="confluent", protocol="consumer")
        )
        try:
            for member in members:
                member.start()
            everybody = {STEADY: "Stable", STORMY: "Stable"}
            await_that(lambda: states_of(admin, everybody) == everybody, "the groups are Stable")
            job.start()
            job.await_ready()
            for number in range(GUESTS):
                come_and_go(kafka, STORMY, f"guest-{number}")
            await_that(lambda: "RebalanceStorm" in names_of_open(kafka), "the storm is told")
            everybody |= {MODERN: "Stable"}
            await_that(lambda: job.states() == everybody, "the mirror is there")
            job.kill()
        finally:
            job.stop()
            for member in members:
                member.crash()
            admin.close()


def come_and_go(kafka: EmbeddedKafka, group: str, client_id: str) -> None:
    """A member joins, gets its assignment and leaves: two rebalances."""
    assigned: list[object] = []
    guest = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "client.id": client_id}
    )
    guest.subscribe(["orders"], on_assign=lambda *_: assigned.append(True))
    await_that(lambda: (guest.poll(0.1), assigned)[1], f"{client_id} is in {group}")
    guest.close()


def names_of_open(kafka: EmbeddedKafka) -> set[str]:
    """Return the names of alerts whose newest revision fires."""
    newest = {one["id"]: one for one in alerts_of(kafka.address)}
    return {one["name"] for one in newest.values() if one["status"] == "firing"}


def transitions_of(kafka: EmbeddedKafka) -> list[dict[str, object]]:
    """Return all transitions, in order."""
    return [one for _, one in records_of(kafka.address, "groupwatch-transitions")]


def unpack(world: Path, folder: Path) -> EmbeddedKafka:
    """Lay a kept world into a folder and return its cluster, on free ports, which does not run yet."""
    with tarfile.open(world) as kept:
        kept.extractall(folder, filter="data")
    plan = planned(folder / "kafka")
    assert plan is not None
    ports = tuple(free_ports(2))
    moved = msgspec.structs.replace(plan, ports=ports[:1], controller_ports=ports[1:])
    (folder / "kafka" / "cluster.json").write_bytes(msgspec.json.encode(moved))
    return EmbeddedKafka(folder / "kafka")


if __name__ == "__main__":
    main()
