"""Two jobs on one checkpoint or one set of outputs: the second waits; an abandoned mark is nobody's."""

import os
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from kafka.errors import KafkaTimeoutError
from kafka.structs import TopicPartition

from streaming.control.marks import Mark, MarkHeldError, decode_mark, is_dead, mark_of
from streaming.driver.mark_keeper import ClaimStoppedError, MarkKeeper
from streaming.driver.mark_places import FILE, FileMarkPlace, TopicMarkPlace
from streaming.kafka_address import KafkaAddress

OUTPUTS = ("groupwatch-transitions", "groupwatch-alerts")


class World:
    """A folder, a control topic and a clock that goes when somebody waits; who runs renews meanwhile."""

    def __init__(self) -> None:
        self.s = 0.0
        self.files: dict[str, bytes] = {}
        self.log: list[bytes] = []
        self.young_from = 0
        """Records before this one are older than any mark that counts."""
        self.hidden = 0
        """So many of the last records a new leader does not tell of yet."""
        self.running: list[MarkKeeper] = []
        self.writers: list[SimpleNamespace] = []
        """The producers into the topic."""

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        before, self.s = self.s, self.s + seconds
        if before // 3 != self.s // 3:
            for keeper in self.running:
                keeper.renew()

    # --- a folder

    def read(self, name: str) -> bytes | None:
        """Return a file."""
        return self.files.get(name)

    def replace(self, name: str, content: bytes) -> None:
        """Write a file."""
        self.files[name] = content

    def delete(self, name: str) -> None:
        """Remove a file."""
        self.files.pop(name, None)

    # --- a topic

    def reader(self, _: KafkaAddress) -> Any:
        """Return a consumer of the topic."""
        return _Reader(self)

    def writer(self, _: KafkaAddress) -> Any:
        """Return a producer into it."""

        def send(_: str, *, value: bytes, partition: int) -> Any:
            self.log.append(value)
            written = SimpleNamespace(offset=len(self.log) - 1, partition=partition)
            return SimpleNamespace(get=lambda timeout: written)

        self.writers.append(SimpleNamespace(send=send, close=lambda timeout=None: None, is_given_up=False))
        return self.writers[-1]

    def keeper(
        self, mine: Mark | None = None, *, folder: bool = True, topic: bool = True, dead: bool = False
    ) -> MarkKeeper:
        """Return a job's keeper, of a checkpoint or of outputs or of both."""
        mine = mine or mark_of("prod", OUTPUTS, "run1")
        places: list[Any] = []
        if topic:
            address = KafkaAddress(("b:9092",))
            places.append(
                TopicMarkPlace(address, "control", mine, open_reader=self.reader, open_writer=self.writer)
            )
        if folder:
            places.append(FileMarkPlace(self, mine.token, "file:///cp"))
        return MarkKeeper(mine, places, now=lambda: self.s, dead=lambda _: dead)

    def start(self, keeper: MarkKeeper) -> MarkKeeper:
        """Let a job claim and renew."""
        keeper._thread = SimpleNamespace(start=lambda: None, ident=None)  # type: ignore[assignment]
        keeper.claim(self.wait)
        self.running.append(keeper)
        return keeper


class _Reader:
    """A consumer of one partition that keeps its place."""

    def __init__(self, world: World) -> None:
        self._world, self._log = world, world.log
        self._at = 0

    def assign(self, _: Any) -> None:
        """Take what it is given."""

    def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where it begins."""
        return dict.fromkeys(partitions, 0)

    def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where it ends."""
        return dict.fromkeys(partitions, len(self._log) - self._world.hidden)

    def offsets_for_times(self, times: dict[TopicPartition, int]) -> dict[TopicPartition, Any]:
        """Return the first young record."""
        return dict.fromkeys(times, SimpleNamespace(offset=self._world.young_from))

    def seek(self, _: TopicPartition, offset: int) -> None:
        """Go there."""
        self._at = offset

    def position(self, _: TopicPartition) -> int:
        """Return the next offset."""
        return self._at

    def poll(self, timeout_ms: int) -> dict[str, list[Any]]:
        """Return all there is."""
        first, self._at = self._at, len(self._log)
        return {
            "p": [
                SimpleNamespace(value=value, offset=first + n, timestamp=1_000)
                for n, value in enumerate(self._log[first:])
            ]
        }

    def close(self) -> None:
        """End."""


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(("folder", "topic"), [(True, False), (False, True)], ids=["checkpoint", "outputs"])
def test_the_second_job_stands_by_and_names_the_first(world: World, *, folder: bool, topic: bool) -> None:
    """It says on which host which process runs since when, and what both would use."""
    world.start(world.keeper(folder=folder, topic=topic))
    sentence = _stands_by(world, world.keeper(folder=folder, topic=topic), 60)[0]
    assert f"process {os.getpid()} on host" in sentence
    assert "run run1, since 20" in sentence
    assert ("same checkpoint (file:///cp)" if folder else "same outputs (control, ") in sentence


def test_who_stands_by_takes_over_when_the_first_ends_or_is_silent(world: World) -> None:
    """At once after its release, and ten seconds after its last renewal."""
    first, waiting = world.start(world.keeper()), world.keeper()
    assert _stands_by(world, waiting, 30)
    world.running.remove(first)
    began = world.s
    waiting.claim(world.wait)
    assert world.s - began <= 12
    third = world.keeper()
    waiting.release()
    third.claim(world.wait)
    assert world.s - began <= 12


def test_a_producer_that_was_given_up_is_replaced(world: World) -> None:
    """It takes no record any more: without another one the mark would be abandoned, and the clock fail."""
    keeper = world.start(world.keeper(folder=False))
    world.writers[0].is_given_up = True

    world.wait(60)
    keeper.renew_along()

    assert len(world.writers) == 2
    assert len(world.log) > 1


def test_a_clean_stop_lets_the_next_one_begin_at_once(world: World) -> None:
    """It takes its mark away."""
    first = world.start(world.keeper())
    world.running.remove(first)
    first.release()
    assert FILE not in world.files
    world.start(world.keeper())
    assert world.s == 0


def test_a_mark_that_is_not_renewed_delays_nobody_beyond_ten_seconds(world: World) -> None:
    """On another machine its process cannot be seen, so it is watched; clocks are not compared."""
    abandoned = world.start(world.keeper(msgspec.structs.replace(_mark(), since_ms=4_000_000_000_000)))
    world.running.remove(abandoned)
    world.start(world.keeper())
    assert 8 < world.s <= 10


def test_a_mark_that_stands_in_the_topic_alone_is_watched_for_longer(world: World) -> None:
    """It is renewed there only with the clock, which is written each ten seconds while nothing happens."""
    world.running.remove(world.start(world.keeper(folder=False)))
    world.start(world.keeper(folder=False))
    assert 35 < world.s <= 37


def test_a_mark_in_the_topic_is_renewed_with_the_clock_or_by_itself_if_none_comes(world: World) -> None:
    """Each record there makes a batch; the file is renewed each three seconds."""
    keeper, written = world.start(world.keeper()), [len(world.log)]
    for seconds, is_along in (
        (3, False),
        (6, False),
        (1, True),
        (1, True),
        (3, True),
        (12, False),
        (4, False),
    ):
        for _ in range(seconds):
            world.wait(1)
        if is_along:
            keeper.renew_along()
        written.append(len(world.log))
    assert written == [1, 2, 2, 3, 3, 4, 4, 5]


def test_a_crashed_jobs_mark_is_nobodys_at_once_where_its_process_is_seen_to_be_gone(world: World) -> None:
    """A restart on the same machine waits for nothing."""
    world.running.remove(world.start(world.keeper()))
    world.start(world.keeper(dead=True))
    assert world.s == 0


def test_a_process_is_seen_to_be_gone_only_from_its_own_machine() -> None:
    """Another container has its own numbers; a later process of the same number began at another time."""
    other = msgspec.structs.replace(_mark(), process=os.getppid(), started="0")
    assert is_dead(other)
    assert not is_dead(msgspec.structs.replace(other, place="another boot"))
    assert not is_dead(msgspec.structs.replace(other, place=""))
    alive = msgspec.structs.replace(mark_of("prod", OUTPUTS), process=1)
    assert is_dead(alive)  # began when we did, and that was not when number 1 began


def test_whoever_was_frozen_while_another_took_over_writes_nothing_more(world: World) -> None:
    """It looks before it writes, and ends with the sentence; the one that took over goes on."""
    frozen = world.start(world.keeper())
    world.running.remove(frozen)
    follower = world.start(world.keeper())
    with pytest.raises(MarkHeldError, match="another groupwatch watches"):
        frozen.ensure()
    assert frozen.taken
    frozen.release()
    assert FILE in world.files
    follower.renew()


def test_a_free_mark_is_claimed_in_the_jobs_turn(world: World) -> None:
    """Several clusters are watched for an abandoned mark at once, and claimed one after the other."""
    world.running.remove(world.start(world.keeper()))
    waiting, asked = world.keeper(), []

    def may_claim() -> bool:
        asked.append(world.s)
        return len(asked) > 3

    waiting.claim(world.wait, may_claim=may_claim)
    assert asked[0] >= 9
    assert asked[-1] - asked[0] <= 3


def test_whoever_was_frozen_while_another_took_over_sends_nothing_more(world: World) -> None:
    """It looks at the marks before the next attempt, whichever of its threads wakes first."""
    frozen, follower = world.start(world.keeper()), world.keeper()
    assert frozen.may_speak()
    world.running.remove(frozen)
    world.start(follower)
    frozen._notice_sleep()
    assert not frozen.may_speak()
    assert follower.may_speak()


def test_a_successor_is_found_although_kafka_does_not_answer(world: World) -> None:
    """Who is cut off from Kafka may still reach the checkpoint, where the successor has left its mark."""
    cut_off = world.start(world.keeper())
    world.running.remove(cut_off)
    world.start(world.keeper())
    topic: Any = cut_off._places[0]
    topic.intruder = _away
    with pytest.raises(MarkHeldError):
        cut_off.look()
    assert not cut_off.may_speak()


def test_an_outage_of_kafka_silences_nobody_who_was_awake(world: World) -> None:
    """It has to be reported; whoever was frozen as well waits half a minute for an answer."""
    keeper = world.start(world.keeper())
    world.running.remove(keeper)
    topic: Any = keeper._places[0]
    topic.intruder = _away
    for _ in range(60):
        world.wait(1.0)
        keeper._notice_sleep()
        assert keeper.may_speak()
    world.wait(10.0)
    assert not keeper.may_speak()
    for _ in range(31):
        world.wait(1.0)
        keeper._notice_sleep()
    assert keeper.may_speak()


def _away(_: frozenset[str]) -> Mark | None:
    raise KafkaTimeoutError("no leader")


def test_a_broker_that_is_gone_for_some_seconds_ends_no_batch(world: World) -> None:
    """What is written would wait for it as well; it fails when nobody answers for half a minute."""
    keeper = world.start(world.keeper())
    world.running.remove(keeper)
    world.s += 20
    topic: Any = keeper._places[0]
    whole, back_at = topic.intruder, world.s + 12

    def intruder(displaced: frozenset[str]) -> Mark | None:
        if world.s < back_at:
            raise KafkaTimeoutError("no leader")
        found: Mark | None = whole(displaced)
        return found

    topic.intruder = intruder
    keeper.ensure(world.wait)
    assert world.s >= back_at

    world.s += 20
    back_at = world.s + 1_000
    with pytest.raises(KafkaTimeoutError):
        keeper.ensure(world.wait)


def test_a_frozen_job_that_renews_once_more_does_not_drive_its_follower_away(world: World) -> None:
    """It may have been frozen between its look and its record."""
    frozen = world.start(world.keeper())
    world.running.remove(frozen)
    follower = world.start(world.keeper())
    frozen._places[0].write(msgspec.structs.replace(frozen._mine, beat=5))
    follower.renew()
    with pytest.raises(MarkHeldError):
        frozen.renew()


def test_of_two_that_claim_at_once_the_first_in_the_topic_has_it(world: World) -> None:
    """Both saw nobody; the order of the topic decides, and the first one is not disturbed."""
    first, second = world.keeper(), world.keeper()
    claim = first._places[0].write
    claim(first._mine)
    with pytest.raises(MarkHeldError):
        world.start(_blind(second))
    assert first._places[0].intruder(frozenset()) is None
    assert FILE not in world.files


def test_jobs_that_share_only_a_control_topic_do_not_meet(world: World) -> None:
    """Several clusters of one job, or monitors with outputs of their own."""
    world.start(world.keeper())
    world.start(world.keeper(mark_of("other", OUTPUTS), folder=False))
    world.start(world.keeper(mark_of("prod", ("my-transitions", "my-alerts")), folder=False))
    assert world.s == 0


def test_a_control_topic_that_was_made_anew_forgets_nobody(world: World) -> None:
    """Its offsets begin again: who works goes on, who comes meets its mark there."""
    first = world.start(world.keeper(folder=False))
    world.wait(30.0)
    world.log.clear()
    world.wait(3.0)
    assert _stands_by(world, world.keeper(folder=False), 30)
    world.running.remove(first)
    world.start(world.keeper(folder=False))
    with pytest.raises(MarkHeldError):
        first.ensure()


def test_an_end_that_is_told_too_low_once_brings_no_dead_job_back(world: World) -> None:
    """A new leader may tell less for a moment; long before stands the mark of a job that was killed."""
    dead = world.start(world.keeper(folder=False))
    world.running.remove(dead)
    world.log += [b'{"kind":"clock"}'] * 500
    world.young_from = len(world.log)
    ours = world.start(world.keeper(folder=False))
    world.wait(6.0)
    world.hidden = 3
    ours.look()
    world.hidden = 0
    world.wait(6.0)
    ours.look()
    assert not ours.taken


def test_a_stop_ends_the_waiting_for_a_mark(world: World) -> None:
    """SIGTERM is not answered nine seconds later."""
    world.running.remove(world.start(world.keeper()))
    with pytest.raises(ClaimStoppedError):
        world.keeper().claim(lambda _: True)


@pytest.mark.parametrize(
    "value",
    [b"", b"{", b"[]", b'{"cluster": 7}', msgspec.json.encode({"cluster": "prod", "since_ms": 10**30})],
)
def test_what_is_no_mark_holds_nothing(world: World, value: bytes) -> None:
    """A damaged file, or anybody's record, is passed over."""
    world.files[FILE] = value
    world.log += [b'{"kind":"mark","mark":' + value + b"}", value]
    world.start(world.keeper())
    assert world.s == 0


def test_a_year_beyond_all_calendars_is_no_mark() -> None:
    """It could not even be told."""
    assert decode_mark(msgspec.json.encode(msgspec.structs.replace(_mark(), since_ms=2**62))) is None


def _mark() -> Mark:
    return mark_of("prod", OUTPUTS, "run1")


def _stands_by(world: World, keeper: MarkKeeper, seconds: float) -> list[str]:
    """Return what a job says of the others, which it waits for in vain."""
    said: list[str] = []
    until_s = world.s + seconds

    def wait(pause_s: float) -> bool:
        world.wait(pause_s)
        return world.s >= until_s

    with pytest.raises(ClaimStoppedError):
        keeper.claim(wait, said.append)
    return said


def _blind(keeper: MarkKeeper) -> MarkKeeper:
    """Let it look around before the other's claim can be seen."""
    keeper._is_free = lambda seen, stand_by: True  # type: ignore[method-assign]
    return keeper


def test_a_mark_that_is_nested_without_end_is_none() -> None:
    """Whoever may write it would keep every job from starting."""
    assert decode_mark(b'{"zz":' + b"[" * 20_000 + b"]" * 20_000 + b"}") is None
