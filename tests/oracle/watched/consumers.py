"""Consumers as client libraries write them, playing with a simulated coordinator at random.

Each joins, syncs, beats, joins again when it is asked to, and leaves, is frozen, crashes or takes too
long over its records, as its schedule wills.  All times are of the simulation.
"""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests import oracle as ora
from tests.oracle.values import responses as res

GROUP = "orders"
START_MS = 1_700_000_000_000
BEAT_MS = 500
SESSION_MS = (6_000, 10_000)
REBALANCE_MS = 15_000
_SUBSCRIPTION = b"\x00\x01\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff\x00\x00\x00\x00"
_OFFER = (ora.Protocol(name="range", metadata=_SUBSCRIPTION),)


class Play:
    """One group: its coordinator, the requests that it got, and time."""

    def __init__(self, seed: int, config: ora.Config | None = None) -> None:
        self.chance = random.Random(seed)
        self.coordinator = ora.Coordinator(config or ora.Config(), start_ms=START_MS)
        self.tickets: dict[int, ora.Ticket] = {}
        self.consumers: list[Consumer] = []
        self.now_ms = START_MS
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._waiting: list[tuple[ora.Ticket, Callable[[res.Response], None]]] = []
        self._count = 0

    def after(self, delay_ms: int, act: Callable[[], None]) -> None:
        """Do something later."""
        self._count += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._count, act))

    def send(self, request: ora.Request, hear: Callable[[res.Response], None]) -> None:
        """Send a request; its answer is heard some milliseconds after it left."""
        ticket = self.coordinator.request(self.now_ms, request)
        self.tickets[ticket.number] = ticket
        self._waiting.append((ticket, hear))
        self._deliver()

    def run(self, duration_ms: int) -> None:
        """Let time pass."""
        until_ms = self.now_ms + duration_ms
        while True:
            asked_ms = self._queue[0][0] if self._queue else until_ms + 1
            due_ms = self.coordinator.due_at()
            if min(asked_ms, until_ms + 1 if due_ms is None else due_ms) > until_ms:
                break
            if due_ms is not None and due_ms <= asked_ms:
                self.now_ms = max(due_ms, self.now_ms)
                self.coordinator.advance(self.now_ms)
                self._deliver()
            else:
                self.now_ms, _, act = heapq.heappop(self._queue)
                act()
        self.now_ms = until_ms
        self.coordinator.advance(until_ms)
        self._deliver()

    def _deliver(self) -> None:
        waiting, self._waiting = self._waiting, []
        for ticket, hear in waiting:
            if ticket.response is None:
                self._waiting.append((ticket, hear))
            else:
                self._answer(ticket.response, hear)

    def _answer(self, response: res.Response, hear: Callable[[res.Response], None]) -> None:
        self.after(self.chance.randint(1, 5), lambda: hear(response))

    # --- what happens to the group ---

    def something(self) -> None:
        """Do one thing to one consumer, or start another."""
        alive = [one for one in self.consumers if one.is_running]
        if len(alive) < 2 or (len(alive) < 5 and self.chance.random() < 0.3):
            self.start()
            return
        one = self.chance.choice(alive)
        acts = (one.close, one.crash, one.take_too_long, one.freeze, one.restart, one.rejoin)
        self.chance.choice(acts)()

    def start(self) -> None:
        """Start a consumer, now and then a static one."""
        number = len(self.consumers)
        taken = {one.instance_id for one in self.consumers if one.is_running}
        free = [name for name in ("i1", "i2") if name not in taken]
        instance = self.chance.choice(free) if free and self.chance.random() < 0.3 else None
        one = Consumer(self, f"c{number}", instance, self.chance.choice(SESSION_MS))
        self.consumers.append(one)
        one.join()


@dataclass(eq=False)
class Consumer:
    """One client; ``life`` grows when it begins anew, and what was asked before is not heard any more."""

    play: Play
    client_id: str
    instance_id: str | None
    session_ms: int
    member_id: str = ""
    generation: int = -1
    is_running: bool = True
    is_frozen: bool = False
    life: int = 0
    _later: list[Callable[[], None]] = field(default_factory=list)

    def _hear(self, hear: Callable[[res.Response], None]) -> Callable[[res.Response], None]:
        life = self.life

        def heard(response: res.Response) -> None:
            if self.is_running and self.life == life:
                self._when_awake(lambda: hear(response))

        return heard

    def _when_awake(self, act: Callable[[], None]) -> None:
        if self.is_frozen:
            self._later.append(act)
        else:
            act()

    def join(self, reason: str | None = None) -> None:
        """Ask to join (again)."""
        self.life += 1
        request = ora.JoinGroup(
            group_id=GROUP,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocols=_OFFER,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=REBALANCE_MS,
            reason=reason,
            client_id=self.client_id,
        )
        self.play.send(request, self._hear(self._joined))

    def _joined(self, answer: res.Response) -> None:
        assert isinstance(answer, res.JoinGroupResponse)
        match answer.error_code:
            case ora.Errors.NONE:
                self.member_id, self.generation = answer.member_id, answer.generation_id
                self._sync(answer)
            case ora.Errors.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
                self.join()
            case ora.Errors.FENCED_INSTANCE_ID:
                self.is_running = False
            case _:
                self.member_id = ""
                self.play.after(100, self._hear_nothing(self.join))

    def _sync(self, joined: res.JoinGroupResponse) -> None:
        shares = tuple(ora.Assignment(member_id=one.member_id, assignment=b"x") for one in joined.members)
        request = ora.SyncGroup(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=shares,
            api_version=5,
        )
        self.play.send(request, self._hear(self._synced))

    def _synced(self, answer: res.Response) -> None:
        assert isinstance(answer, res.SyncGroupResponse)
        if answer.error_code is ora.Errors.NONE:
            self.play.after(BEAT_MS, self._hear_nothing(self._beat))
        else:
            self._told(answer.error_code)

    def _hear_nothing(self, act: Callable[[], None]) -> Callable[[], None]:
        """Do something by itself, unless the consumer has begun anew meanwhile."""
        life = self.life

        def acting() -> None:
            if self.is_running and self.life == life:
                self._when_awake(act)

        return acting

    def _beat(self) -> None:
        request = ora.Heartbeat(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        self.play.send(request, self._hear(self._beaten))

    def _beaten(self, answer: res.Response) -> None:
        assert isinstance(answer, res.HeartbeatResponse)
        if answer.error_code is ora.Errors.NONE:
            self.play.after(BEAT_MS, self._hear_nothing(self._beat))
        else:
            self._told(answer.error_code)

    def _told(self, error: ora.Errors) -> None:
        if error is ora.Errors.FENCED_INSTANCE_ID:
            self.is_running = False
            return
        if error is not ora.Errors.REBALANCE_IN_PROGRESS:
            self.member_id = ""
        self.play.after(self.play.chance.randint(5, 200), self._hear_nothing(self.join))

    # --- what may happen to it ---

    def close(self) -> None:
        """Leave, unless it is static: those stay until their session ends."""
        self._leave("the consumer is being closed")
        self.is_running = False

    def _leave(self, reason: str) -> None:
        if self.instance_id is None and self.member_id and not self.is_frozen:
            one = ora.MemberIdentity(member_id=self.member_id, reason=reason)
            self.play.send(ora.LeaveGroup(group_id=GROUP, members=(one,)), lambda _: None)

    def crash(self) -> None:
        """Say nothing any more."""
        self.is_running = False

    def take_too_long(self) -> None:
        """Leave because of ``max.poll.interval.ms``, and come back."""
        self._leave("consumer poll timeout has expired.")
        self.life += 1
        if self.instance_id is None:
            self.member_id = ""
        self.play.after(self.play.chance.randint(50, 4_000), self._hear_nothing(self.join))

    def freeze(self) -> None:
        """Stop for a while, for longer or shorter than a session."""
        self.is_frozen = True
        self.play.after(self.play.chance.randint(1_000, 20_000), self._thaw)

    def _thaw(self) -> None:
        self.is_frozen = False
        later, self._later = self._later, []
        for act in later:
            act()

    def restart(self) -> None:
        """Be killed and begin anew at once: a static member under its instance id."""
        self.is_running = False
        one = Consumer(self.play, self.client_id, self.instance_id, self.session_ms)
        self.play.consumers.append(one)
        self.play.after(self.play.chance.randint(100, 3_000), one.join)

    def rejoin(self) -> None:
        """Join again by itself, as for ``enforceRebalance``."""
        if self.generation >= 0 and not self.is_frozen:
            self.join(reason="rebalance enforced by user")


def live(seed: int, events: int) -> Play:
    """Let so many things happen to a group, and time pass until nothing more comes of them."""
    play = Play(seed)
    for _ in range(events):
        play.something()
        play.run(play.chance.choice((40, 700, 3_000, 8_000, 25_000)))
    play.run(60_000)
    return play
