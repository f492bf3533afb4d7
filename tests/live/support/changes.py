"""What happens to whole groups in a random schedule: deployments, and what operators do to their topics."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from kafka.errors import InvalidPartitionsError, KafkaError

from streaming.kafka_address import KafkaAddress
from streaming.kafka_clients.clients import admin_client
from tests.live.support.members import Member
from tests.live.support.stage import await_that

ASSIGNORS = ("range", "roundrobin,range")
"""A deployment changes from one to the other: in between, all have only range in common."""
PROTOCOLS = ("classic", "consumer")
"""Where the brokers know both, a deployment of librdkafka changes from one to the other (KIP-848)."""


@dataclass
class Cast:
    """A group's members, all with the same client, and how they are configured now."""

    group: str
    members: list[Member]
    is_cooperative: bool = False
    """Its assignor shares no protocol with another one's."""
    can_convert: bool = False
    """Its client and the brokers speak the consumer protocol too."""
    assignor: str = ASSIGNORS[0]
    protocol: str = PROTOCOLS[0]

    def running(self) -> list[Member]:
        """Return who could be restarted or asked now."""
        return [one for one in self.members if one.running and not one.frozen]


@dataclass
class Changes:
    """Does one thing after the other, each kind about as often."""

    casts: Sequence[Cast]
    address: KafkaAddress
    rng: random.Random
    topics: dict[str, int]
    """Topic -> partitions; grows."""
    note: Callable[[str], None]
    _deck: Iterator[Callable[[], None]] = field(init=False)

    def __post_init__(self) -> None:
        """Shuffle."""
        self._deck = self._shuffled()

    def happen(self) -> None:
        """Do the next thing."""
        next(self._deck)()

    def _shuffled(self) -> Iterator[Callable[[], None]]:
        while True:
            things = [self._roll, self._subscribe, self._add_partitions, self._change_assignor, self._convert]
            self.rng.shuffle(things)
            yield from things

    def _roll(self) -> None:
        """Restart a group's members, one after the other."""
        self._restart(self._one_of(self.casts), "rolling restart of")

    def _change_assignor(self) -> None:
        cast = self._one_of([one for one in self.casts if not one.is_cooperative])
        cast.assignor = _other(ASSIGNORS, cast.assignor)
        for member in cast.members:
            member.change(assignor=cast.assignor)
        self._restart(cast, f"assignor {cast.assignor} for")

    def _convert(self) -> None:
        able = [one for one in self.casts if one.can_convert]
        if not able:
            return
        cast = self._one_of(able)
        cast.protocol = _other(PROTOCOLS, cast.protocol)
        for member in cast.members:
            member.change(protocol=cast.protocol)
        self._restart(cast, f"{cast.protocol} protocol for")

    def _one_of(self, casts: Sequence[Cast]) -> Cast:
        """Return a group, if possible one to whose members something can happen."""
        return self.rng.choice([one for one in casts if one.running()] or casts)

    def _restart(self, cast: Cast, why: str) -> None:
        self.note(f"{why} {cast.group}: {len(cast.running())} members")
        for member in cast.running():
            member.close()
            member.start()
            time.sleep(self.rng.uniform(0.2, 2.0))

    def _subscribe(self) -> None:
        """Let some members of a group read another set of topics than before."""
        cast = self._one_of(self.casts)
        chosen = [one for one in cast.running() if self.rng.random() < 0.7]
        self.note(f"other topics for {', '.join(one.client_id for one in chosen) or 'nobody'}")
        for member in chosen:
            member.read_otherwise()
            time.sleep(self.rng.uniform(0.0, 1.0))

    def _add_partitions(self) -> None:
        topic = self.rng.choice(sorted(self.topics))
        self.topics[topic] += self.rng.randint(1, 3)
        self.note(f"{topic} has {self.topics[topic]} partitions")
        await_that(lambda: self._is_grown(topic), f"{topic} gets more partitions", 60)

    def _is_grown(self, topic: str) -> bool:
        """Say whether the topic has what it should have, and ask for that; a controller may be away."""
        try:
            admin = admin_client(self.address)
        except KafkaError:
            return False
        try:
            admin.create_partitions({topic: self.topics[topic]})
        except InvalidPartitionsError:
            return True  # an earlier call did it, though it got no answer
        except KafkaError:
            return False
        finally:
            admin.close()
        return True


def _other(both: tuple[str, str], one: str) -> str:
    return both[1 - both.index(one)]
