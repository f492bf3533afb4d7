"""A duel: the same random requests to a real broker and to the model of its coordinator.

``python -m tests.oracle.duel --seconds 120 --seed 7`` starts a broker, plays many groups at once and
prints every difference in answers, their times, the log and the records.  Exit code 0 if there is none.

Requests keep away from the instants at which the model expects a timer, since a few milliseconds decide
there, and a group is judged only up to the first answer that a busy machine delayed.  The model is run
again afterwards with the member ids that the broker made, so that Java's order of members, and so every
choice of a leader, is compared as well.
"""

import argparse
import random
import selectors
import socket
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from kafka.protocol.parser import KafkaProtocol

from streaming.devkit.kafka.kafka import EmbeddedKafka
from tests import oracle as ora
from tests.oracle.duel.random_requests import Moves
from tests.oracle.duel.verdict import LATE_MS, WRONG_MS, judge, logged, written
from tests.oracle.duel.wire import asked, told
from tests.oracle.values.responses import JoinGroupResponse

CONFIG = ora.Config(
    group_min_session_timeout_ms=500,
    group_max_session_timeout_ms=60_000,
    group_initial_rebalance_delay_ms=410,
    group_max_size=4,
)
PROPERTIES = {
    "group.min.session.timeout.ms": "500",
    "group.max.session.timeout.ms": "60000",
    "group.max.size": "4",
}
APART_MS = 160
"""A request is sent at least so long before and after a timer."""
PROMPT_MS = 30
"""What is answered at all is mostly answered by then, and a new member's id is known."""


@dataclass
class Exchange:
    """One request, and what came back."""

    at_ms: int
    request: ora.Request
    connection: socket.socket
    protocol: KafkaProtocol
    response: Any = None
    answered_ms: int | None = None


class Clock:
    """Milliseconds since the beginning, for all groups; ``until_ms`` is when to stop."""

    def __init__(self, seconds: float) -> None:
        """Begin now."""
        self.wall_ms = time.time_ns() // 1_000_000
        self._began = time.monotonic()
        self.until_ms = int(seconds * 1_000)

    def now_ms(self) -> int:
        """How long it has been."""
        return int((time.monotonic() - self._began) * 1_000)


@dataclass
class Duel:
    """One group, played for some seconds."""

    address: tuple[str, int]
    group: str
    seed: int
    clock: Clock
    exchanges: list[Exchange] = field(default_factory=list)
    ended_ms: int = 0
    disturbed: bool = False

    def __post_init__(self) -> None:
        """Make a model whose only use is to know when timers are due; it has ids of its own."""
        self._told_ids: list[str] = []
        self._shadow = ora.Coordinator(CONFIG, member_ids=self._next_id)
        self._tickets: list[ora.Ticket] = []
        self._ids: dict[str, str] = {}
        self._selector = selectors.DefaultSelector()
        self._moves = Moves(self.group, random.Random(self.seed))

    def _next_id(self, prefix: str, number: int) -> str:
        return self._told_ids.pop() if self._told_ids else ora.numbered(prefix, number)

    # --- playing ---

    def play(self) -> None:
        """Send random requests, one at a time, until the time is up or the machine disturbs."""
        self._shadow.advance(self._now_ms())
        while self._now_ms() < self.clock.until_ms and not self.disturbed:
            self._listen(self._moves.pause_ms())
            self._send(self._moves.next())
        self._listen(WRONG_MS)  # a disturbed group, too, is judged by answers that were on their way
        if not self.disturbed:
            self._keep_apart()
            self._listen(LATE_MS)  # what the last timer did has come by now, and the next one is not yet due
            self.ended_ms = self._now_ms()
        for exchange in self.exchanges:
            exchange.connection.close()

    def _disturb(self, at_ms: int) -> None:
        """End here: what was sent since may have met another state than we think."""
        self.ended_ms = min(self.ended_ms, at_ms - 1) if self.disturbed else at_ms - 1
        self.disturbed = True

    def _now_ms(self) -> int:
        return self.clock.now_ms()

    def _keep_apart(self) -> None:
        while True:
            self._shadow.advance(max(self._now_ms(), self._shadow.now_ms))
            due_ms = self._shadow.due_at()
            if due_ms is None or due_ms - self._now_ms() > APART_MS:
                return
            self._listen(due_ms - self._now_ms() + APART_MS)

    def _send(self, request: ora.Request) -> None:
        connection = socket.create_connection(self.address)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        protocol = KafkaProtocol(client_id=getattr(request, "client_id", self.group))
        protocol.send_request(asked(request))
        self._keep_apart()
        at_ms = max(self._now_ms(), self._shadow.now_ms)
        connection.sendall(protocol.send_bytes())
        if self._now_ms() - at_ms > LATE_MS:
            self._disturb(at_ms)
        connection.setblocking(False)
        exchange = Exchange(at_ms, request, connection, protocol)
        self.exchanges.append(exchange)
        self._selector.register(connection, selectors.EVENT_READ, exchange)
        self._listen(PROMPT_MS, exchange)
        asks_id = isinstance(request, ora.JoinGroup) and not request.member_id
        answer = exchange.response
        self._told_ids = [answer.member_id] if asks_id and answer and answer.member_id else []
        self._tickets.append(self._shadow.request(at_ms, self._as_shadow(request)))
        if answer is not None:
            self._pair(len(self._tickets) - 1)

    def _as_shadow(self, request: ora.Request) -> ora.Request:
        text = msgspec.json.encode(request).decode()
        for real, shadow in self._ids.items():
            text = text.replace(real, shadow)
        return msgspec.json.decode(text, type=type(request))

    def _listen(self, wait_ms: int, until_answered: Exchange | None = None) -> None:
        until_ms = self._now_ms() + wait_ms
        while (left_ms := until_ms - self._now_ms()) > 0:
            if until_answered is not None and until_answered.answered_ms is not None:
                return
            for key, _ in self._selector.select(left_ms / 1_000):
                self._receive(key.data)

    def _receive(self, exchange: Exchange) -> None:
        data = exchange.connection.recv(1 << 16)
        responses = exchange.protocol.receive_bytes(data) if data else []
        if not responses:
            if not data:
                self._selector.unregister(exchange.connection)
            return
        self._selector.unregister(exchange.connection)
        exchange.response = told(exchange.request, responses[0][1])
        exchange.answered_ms = self._now_ms()
        self._moves.learn(exchange.request, exchange.response)
        index = self.exchanges.index(exchange)
        if index < len(self._tickets):
            self._pair(index)

    def _pair(self, index: int) -> None:
        exchange, ticket = self.exchanges[index], self._tickets[index]
        real, shadow = exchange.response, ticket.response
        late_ms = (exchange.answered_ms or 0) - (ticket.answered_at_ms or 0)
        if ticket.is_answered and LATE_MS < late_ms < WRONG_MS:
            self._disturb(ticket.answered_at_ms or 0)
        if isinstance(real, JoinGroupResponse) and isinstance(shadow, JoinGroupResponse) and real.member_id:
            self._ids.setdefault(real.member_id, shadow.member_id)


class Player(threading.Thread):
    """Plays one group after another: a disturbed one is left, and the next begins."""

    def __init__(self, address: tuple[str, int], *, name: str, seed: int, clock: Clock) -> None:
        """Plan; ``start`` plays."""
        super().__init__(name=name)
        self.duels: list[Duel] = []
        self._address, self._seed, self._clock = address, seed, clock

    def run(self) -> None:
        """Play until the time is up."""
        while self._clock.now_ms() < self._clock.until_ms:
            number = len(self.duels)
            duel = Duel(self._address, f"{self.name}-{number}x", self._seed * 1_000 + number, self._clock)
            self.duels.append(duel)
            duel.play()


def run(cluster: EmbeddedKafka, *, groups: int, seconds: float, seed: int) -> tuple[list[str], int]:
    """Play, and return every difference and the number of requests that were compared."""
    for topic in ("orders", "other"):
        cluster.create_topic(topic, partitions=3)
    host, port = cluster.bootstrap_servers.split(":")
    clock = Clock(seconds)
    players = [
        Player((host, int(port)), name=f"duel-{seed}-{number}", seed=seed * 100 + number, clock=clock)
        for number in range(groups)
    ]
    for player in players:
        player.start()
    for player in players:
        player.join()
    duels = [duel for player in players for duel in player.duels]
    lines = logged(cluster, [duel.group for duel in duels], clock.wall_ms)
    records = written(cluster, [duel.group for duel in duels], clock.wall_ms)
    verdicts = [judge(CONFIG, duel, lines[duel.group], records[duel.group]) for duel in duels]
    differences = [difference for verdict in verdicts for difference in verdict.differences]
    return differences, sum(verdict.compared for verdict in verdicts)


def main() -> int:
    """Run one duel and print what differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.duel")
    parser.add_argument("--groups", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with start(Path(tempfile.mkdtemp(prefix="groupwatch-duel-"))) as cluster:
        differences, count = run(cluster, groups=options.groups, seconds=options.seconds, seed=options.seed)
    sys.stdout.write("\n".join([*differences, f"{count} requests, {len(differences)} differences\n"]))
    return 1 if differences else 0


def start(folder: Path) -> EmbeddedKafka:
    """Return a broker, not yet started, whose timeouts are short and whose groups are small."""
    delay_ms = CONFIG.group_initial_rebalance_delay_ms
    return EmbeddedKafka(folder, rebalance_delay_ms=delay_ms, properties=PROPERTIES)
