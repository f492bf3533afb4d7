"""Consumers for the simulated coordinator, and lives of a group drawn at random.

The consumers do what the Java client does: they heartbeat but not while they join, rejoin at the next
poll after error 27, begin anew after 22 and 25, and commit between rebalances.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from coordinator_model.observations.requests import Client
from tests.properties.simulated import EMPTY, GROUP, Ask, Coordinator, World

JOINING, SYNCING, MEMBER, GONE = "joining", "syncing", "member", "gone"
NEED_ID = "need to re-join with the given member-id: "


class Consumer:
    """One process with one consumer."""

    def __init__(self, world: World, coordinator: Coordinator, name: str, *, instance: str | None) -> None:
        chance = world.chance
        self.world = world
        self.coordinator = coordinator
        self.name = name
        self.instance = instance
        self.metadata = "t"
        self.says_why = chance.random() < 0.5
        self.session_ms = chance.choice((6_000, 6_000, 10_000))
        self.rebalance_ms = chance.choice((8_000, 15_000))
        self.heartbeat_ms = chance.choice((1_000, 2_000))
        self.poll_ms = chance.choice((20, 300, 900))
        self.assign_ms = chance.choice((5, 5, 300))
        self.client = Client(
            client_id=name,
            host="/10.0.0.1",
            connection=f"{name}-{world.uuid()}",
            software="apache-kafka-java",
        )
        self.state = GONE
        self.member_id = ""
        self.generation = -1
        self.frozen_until_ms = -1
        self.never_syncs = False
        self._turn = 0
        """Grows whenever what was planned before is void."""

    def _ask(self, reason: str | None = None) -> Ask:
        return Ask(
            client=self.client,
            member_id=self.member_id,
            instance_id=self.instance,
            session_ms=self.session_ms,
            rebalance_ms=self.rebalance_ms,
            metadata=self.metadata,
            reason=reason if self.says_why else None,
        )

    def _later(self, delay_ms: int, act: Callable[[], None]) -> None:
        turn = self._turn

        def run() -> None:
            if self._turn != turn:
                return
            if self.world.now_ms < self.frozen_until_ms:
                self.world.after(self.frozen_until_ms - self.world.now_ms, run)
            else:
                act()

        self.world.after(delay_ms, run)

    def _void(self) -> None:
        self._turn += 1

    # --- life ---

    def start(self) -> None:
        """Join the group."""
        self.state, self.member_id, self.generation = JOINING, "", -1
        self.join("")

    def join(self, reason: str | None) -> None:
        """Send a JoinGroup."""
        self._void()
        self.state = JOINING
        turn = self._turn
        self.coordinator.join(self._ask(reason), lambda code, said: self._joined(turn, code, said))

    def _joined(self, turn: int, code: int, said: dict[str, Any]) -> None:
        if turn != self._turn:
            return
        if code == 79:
            self.member_id = said["member_id"]
            self._later(2, partial(self.join, NEED_ID + self.member_id))
        elif code == 0:
            self.member_id, self.generation = said["member_id"], said["generation"]
            self.state = SYNCING
            self._beat()
            leads = said["leader"] == self.member_id
            if not (leads and self.never_syncs):
                self._later(self.assign_ms if leads else 3, self._sync)
        else:
            self._refused(code)

    def _refused(self, code: int) -> None:
        if code not in {16, 25}:
            self.kill()
            return
        if code == 25:
            self.member_id = ""
        self._later(200, partial(self.join, "encountered an error from JOIN_GROUP response"))

    def _sync(self) -> None:
        turn = self._turn
        self.coordinator.sync(
            self.member_id, self.generation, self._ask(), lambda code, _: self._synced(turn, code)
        )

    def _synced(self, turn: int, code: int) -> None:
        if turn != self._turn:
            return
        if code == 0:
            self.state = MEMBER
            self._later(500, self._commit)
            return
        if code in {22, 25}:
            self.member_id = ""
        self._void()
        self._later(self.poll_ms, partial(self.join, "rebalance failed"))

    def _beat(self) -> None:
        self._later(self.heartbeat_ms, self._heartbeat)

    def _heartbeat(self) -> None:
        turn = self._turn
        self.coordinator.heartbeat(
            self.member_id, self.generation, self._ask(), lambda code, _: self._beaten(turn, code)
        )

    def _beaten(self, turn: int, code: int) -> None:
        if turn != self._turn:
            return
        if code in {22, 25}:
            self.member_id = ""
            self._void()
            self._later(self.poll_ms, partial(self.join, "rebalance failed due to a fenced generation"))
            return
        if code == 82:
            self.kill()
            return
        if code == 27 and self.state == MEMBER:
            self.state = JOINING
            self._later(self.poll_ms, partial(self.join, "group is already rebalancing"))
        self._beat()

    def _commit(self) -> None:
        if self.state == MEMBER:
            offset = self.world.now_ms // 1_000
            self.coordinator.commit(
                self.member_id, self.generation, self._ask(), offset, lambda code, said: None
            )
            self._later(2_000, self._commit)

    # --- what happens to it ---

    def kill(self) -> None:
        """End without a word."""
        self._void()
        self.state = GONE

    def leave(self, reason: str | None) -> None:
        """Leave the group, and end."""
        if self.member_id and self.state != GONE and self.instance is None:
            self.coordinator.leave(self.member_id, self._ask(), reason if self.says_why else None)
        self.kill()

    def freeze(self, for_ms: int) -> None:
        """Do nothing for a while."""
        self.frozen_until_ms = self.world.now_ms + for_ms

    def rejoin(self, reason: str) -> None:
        """Join again although nobody asked: a leader does so when partitions change."""
        if self.state == MEMBER:
            self.join(reason)

    def subscribe(self, metadata: str, reason: str) -> None:
        """Change the subscription, or what a cooperative member says it owns."""
        if self.state == MEMBER:
            self.metadata = metadata
            self.join(reason)

    def restart(self) -> None:
        """End without a word and come back: a static member under its instance id."""
        self.kill()
        self.frozen_until_ms = -1
        self.world.after(self.world.chance.choice((300, 2_000)), self.start)


class Life:
    """A group's life: some consumers, and what happens to them."""

    def __init__(
        self, seed: int, *, max_size: int = 1_000, failovers: bool = True, static: float = 0.2
    ) -> None:
        self.world = World(seed)
        self.coordinator = Coordinator(self.world, max_size=max_size)
        self.consumers: list[Consumer] = []
        self.failovers = failovers
        self.static = static
        self._made = 0

    def act(self) -> str:
        """Let one thing happen; returns what."""
        chance = self.world.chance
        living = [one for one in self.consumers if one.state != GONE]
        names = ["new"] * 3 if len(living) < 4 else []
        if living:
            names += ["kill", "freeze", "leave", "leave", "subscribe", "restart", "rejoin", "slow", "own"]
            names += ["poll_timeout", "leaves_twice", "stubborn_leader"]
        if not living:
            names += ["delete", "expire"]
        if self.failovers:
            names.append("fail_over")
        name = chance.choice(names)
        getattr(self, f"_{name}")(*((chance.choice(living),) if living else ()))
        return name

    def _new(self, _: Consumer | None = None) -> None:
        self._made += 1
        is_static = self.world.chance.random() < self.static
        instance = f"node{self._made}" if is_static else None
        one = Consumer(self.world, self.coordinator, f"c{self._made}", instance=instance)
        self.consumers.append(one)
        one.start()

    def _kill(self, one: Consumer) -> None:
        one.kill()

    def _freeze(self, one: Consumer) -> None:
        one.freeze(self.world.chance.choice((2_500, 8_000, 20_000)))

    def _leave(self, one: Consumer) -> None:
        one.leave("the consumer is being closed")

    def _leaves_twice(self, one: Consumer) -> None:
        member_id, asked = one.member_id, one._ask()
        one.leave(None)
        if member_id and one.instance is None:
            self.coordinator.leave(member_id, asked, None)

    def _poll_timeout(self, one: Consumer) -> None:
        one.says_why = True
        one.leave("consumer poll timeout has expired. This means the time between calls was longer.")

    def _subscribe(self, one: Consumer) -> None:
        one.subscribe(f"t{self.world.chance.randint(0, 9)}", "subscription has changed from [t] to [u]")

    def _own(self, one: Consumer) -> None:
        one.subscribe(f"own{self.world.chance.randint(0, 9)}", "need to revoke partitions and re-join")

    def _rejoin(self, one: Consumer) -> None:
        one.rejoin("cached metadata has changed from (1) to (2)")

    def _slow(self, one: Consumer) -> None:
        one.poll_ms = 12_000 if one.poll_ms < 5_000 else 300

    def _stubborn_leader(self, one: Consumer) -> None:
        one.never_syncs = not one.never_syncs

    def _restart(self, one: Consumer) -> None:
        one.restart()

    def _fail_over(self, _: Consumer | None = None) -> None:
        self.coordinator.fail_over()

    def _delete(self) -> None:
        # Whoever deletes has seen that the group is empty: never in the millisecond in which it became so,
        # where the line about it would sort before the record.
        while self.world.truth and self.world.truth[-1].at_ms == self.world.now_ms:
            self.world.run_until(self.world.now_ms + 1)
        self.coordinator.delete()

    def _expire(self) -> None:
        self.coordinator.expire_offsets()

    def go_on(self, steps: int) -> None:
        """Let things happen for a while."""
        for _ in range(steps):
            self.act()
            wait_ms = self.world.chance.choice((1, 40, 300, 1_000, 4_000, 9_000))
            self.world.run_until(self.world.now_ms + wait_ms)

    def settle(self) -> None:
        """Let everything that is broken be over."""
        for one in self.consumers:
            one.never_syncs, one.frozen_until_ms, one.poll_ms = False, -1, 300
        self.world.run_until(self.world.now_ms + 60_000)

    def renew(self) -> None:
        """Make a whole new generation, whose lines, requests and record are all seen."""
        self.settle()
        one = Consumer(self.world, self.coordinator, "fresh", instance=None)
        self.consumers.append(one)
        one.start()
        self.settle()

    @property
    def is_empty(self) -> bool:
        """Whether nobody is left in the group."""
        return self.coordinator.state == EMPTY


def live(seed: int, steps: int, **options: Any) -> Life:
    """Return a life of that many events."""
    life = Life(seed, **options)
    life.go_on(steps)
    return life


__all__ = ["GROUP", "Consumer", "Life", "live"]
