"""The thread that asks the brokers, a few groups at a time, and writes the answers to the control topic.

A request that is not permitted is reported once and left out; nothing here stops the job.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from coordinator_model.kafka import NOT_AUTHORIZED, GroupState, shard_of
from coordinator_model.shard import read_settings
from streaming.config import ClusterPlan, ProbeConfig
from streaming.control import (
    ControlRecord,
    GroupAnswer,
    GroupsRecord,
    encode_record,
)
from streaming.driver.probing.brokers import Brokers, Layout, Listed, NotAllowedError
from streaming.driver.probing.choosing import Bucket, Rota, TypeAndState, by_call
from streaming.driver.probing.metadata import MetadataWriter, wall_ms
from streaming.driver.probing.packing import Later, packed
from streaming.health import Progress
from streaming.kafka_clients import (
    Admin,
    KafkaError,
    KafkaProducer,
    UnsupportedVersionError,
    admin_client,
    close_quietly,
)

ROUND_S = 1.0
LOOK_S = 5.0
LISTED_PER_S = 1_000
"""Lines of a group list asked for per second: the longer the list, the less often it is asked for."""
SETTINGS_S = 20.0
"""The settings include the request log's level, whose silence is an alert after a minute."""
TOPICS_S = 60.0
TOPICS_MAX = 2_000
REFUSED_S = 30.0
"""How long to wait before trying again if no group may be described."""
REST_S = 15.0
"""How long a broker that did not answer is not asked."""
TOO_OLD_S = 3_600.0
"""How long a broker is not asked about a type of group that it does not know: it may be upgraded."""
CALL_MAX = 100
"""Groups in one question, so that no broker's answer is large."""
OFFSETS_TOPIC = "__consumer_offsets"
_ANSWER_S = 10.0

NO_GROUPS = "groupwatch may not describe groups: grant its user DESCRIBE on groups, topics and cluster"
SOME_GROUPS = "groupwatch may not describe some groups ({count} of the last {asked} asked about)"
NO_SETTINGS = "groupwatch may not read broker settings: grant its user DESCRIBE_CONFIGS on the cluster"
TOO_OLD = "the brokers are too old to describe groups of type {kind}"

_log = logging.getLogger(__name__)


class MirrorView(Protocol):
    """The driver's picture of one cluster's mirror; it may be older than the mirror."""

    def groups(self) -> Mapping[str, TypeAndState]:
        """Return every group with type and state."""
        ...

    def group(self, group: str) -> TypeAndState | None:
        """Return one group's type and state; None if the mirror does not have it."""
        ...

    def members(self, group: str) -> frozenset[str]:
        """Return the ids of a group's members."""
        ...

    def topics(self) -> Iterable[str]:
        """Return the topics that groups read."""
        ...

    def last_failover(self) -> object:
        """Return the last line about loading or unloading a shard; each such line gives a different value."""
        ...

    def asked(self, requests: Mapping[str, int]) -> None:
        """Take how many requests of each kind were sent since the start."""
        ...


class GroupProbe:
    """Asks one cluster's brokers about its groups until stopped."""

    def __init__(
        self,
        plan: ClusterPlan,
        probe: ProbeConfig,
        *,
        run: str,
        shard_count: int,
        producer: KafkaProducer,
        progress: Progress,
        mirror: MirrorView,
        skew_ms: Callable[[], Mapping[int, int]] = dict,
        doubts_everyone: bool = False,
        later: Later | None = None,
        connect: Callable[..., Admin] = admin_client,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._run = run
        self._shards = shard_count
        self._producer = producer
        self._later = later  # None: what could wait is written at once
        self._progress = progress
        self._mirror = mirror
        self._skew_ms = skew_ms
        self._connect = connect
        self._now = now
        self._admin: Admin | None = None
        self._requests: Counter[str] = Counter()
        self._settings = read_settings(plan.settings)
        self._rota = Rota(self._shard_of)
        self._doubts_everyone = doubts_everyone
        """Records were lost: once the mirror is complete again, every group is asked about."""
        self._bucket = Bucket(probe.groups_per_second, now())
        self._layout = Layout((), 0, {}, {}, {})
        self._listed: dict[str, Listed] = {}
        self._is_complete = False
        self._listing: tuple[float, frozenset[str]] | None = None
        self._metadata = MetadataWriter(run, self._write)
        self._due_at = dict.fromkeys(("look", "settings", "topics", "groups"), float("-inf"))
        self._refused: dict[str, str] = {}
        self._rests_until: dict[int, float] = {}
        self._too_old: dict[tuple[int, str], float] = {}
        """Broker, type of group that it did not know -> until when it is not asked."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._ask_on, name=f"asking-{plan.cluster}", daemon=True)

    def start(self) -> None:
        """Start to ask, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Stop asking; return when the last question is answered."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=2 * _ANSWER_S)
        self._drop_admin()

    def tell_all_again(self) -> None:
        """Write all leaders, settings and topics again for a shard that lost them; from any thread."""
        self._metadata.forget()
        self._due_at |= dict.fromkeys(("look", "settings", "topics"), float("-inf"))

    def listing(self) -> tuple[float, frozenset[str]] | None:
        """Return when all brokers last listed their groups, with the watched ones; None: not all did."""
        return self._listing

    def ask_for_settings(self) -> None:
        """Ask for the brokers' settings at once, after one was changed.  From any thread."""
        self._due_at["settings"] = float("-inf")

    @property
    def transaction_ms(self) -> int:
        """The brokers' longest transaction; -1: unknown yet."""
        return self._metadata.transaction_ms

    @property
    def is_alive(self) -> bool:
        """False once the thread has ended."""
        return self._thread.is_alive()

    def _ask_on(self) -> None:
        while not self._stopped.is_set():
            began = self._now()
            try:
                self.ask()
            except Exception as error:
                # The other probe reports whether the cluster answers; this one only tries again.
                _log.debug("%s: asking the brokers: %r", self._plan.cluster, error)
                self._drop_admin()
                self._due_at["look"] = float("-inf")
            self._stopped.wait(max(0.0, ROUND_S - (self._now() - began)))

    def _drop_admin(self) -> None:
        admin, self._admin = self._admin, None
        close_quietly(admin)

    # --- one round -----------------------------------------------------------------------------------

    def ask(self) -> None:
        """Ask everything that is due.

        Raises:
            kafka.errors.KafkaError: a broker does not answer, or an answer could not be written.
        """
        brokers, now = self._brokers(), self._now()
        if now >= self._due_at["look"]:
            self._look(brokers, now)
        if now >= self._due_at["settings"]:
            self._due_at["settings"] = now + SETTINGS_S
            self._ask_settings(brokers)
        if self._progress.has_caught_up and now >= self._due_at["groups"]:  # before, our mirror is not whole
            self._ask_groups(brokers, now)
        self._mirror.asked(self._requests)

    def _brokers(self) -> Brokers:
        if self._admin is None:
            self._admin = self._connect(self._plan.kafka)
        return Brokers(self._admin, self._requests)

    def _look(self, brokers: Brokers, now: float) -> None:
        """Find the brokers, the leaders, and the groups."""
        topics: list[str] = []
        if now >= self._due_at["topics"]:
            self._due_at["topics"] = now + TOPICS_S
            topics = sorted(self._mirror.topics())[:TOPICS_MAX]
        before, self._layout = self._layout, brokers.layout(OFFSETS_TOPIC, topics)
        self._metadata.repeat_leaders_after(self._mirror.last_failover())
        self._metadata.write_changes("leaders", self._layout.leaders)
        self._metadata.write_shrunk(before, self._layout)
        self._metadata.write_changes("topics", self._layout.partitions)
        self._list_groups(brokers)
        mirrored = {g: seen for g, seen in self._mirror.groups().items() if self._settings.watches(g)}
        listed = {group: TypeAndState(one.group_type, one.state) for group, one in self._listed.items()}
        self._rota.look(mirrored, listed, complete=self._is_complete, now=now)
        self._due_at["look"] = now + max(LOOK_S, len(listed) / LISTED_PER_S)

    def _list_groups(self, brokers: Brokers) -> None:
        listed: dict[str, Listed] = {}
        answered, began = 0, self._now()
        for broker in self._there():
            try:
                listed |= brokers.list_groups(broker)
                answered += 1
            except NotAllowedError:
                self._refuse("groups", NO_GROUPS, is_off=True)
            except KafkaError as error:
                self._gave_no_answer(broker, error)
            except OSError as error:
                _log.debug("%s: broker %d: %s", self._plan.cluster, broker, error)
        self._is_complete = 0 < answered == len(self._layout.brokers)
        self._listed = {group: one for group, one in listed.items() if self._settings.watches(group)}
        self._listing = (began, frozenset(self._listed)) if self._is_complete else None

    def _ask_settings(self, brokers: Brokers) -> None:
        found: dict[int, dict[str, str]] = {}
        for broker in self._there():
            try:
                found[broker] = brokers.settings(broker)
            except NotAllowedError:
                self._refuse("settings", NO_SETTINGS)
                return
            except KafkaError as error:
                self._gave_no_answer(broker, error)
            except OSError as error:
                _log.debug("%s: broker %d: %s", self._plan.cluster, broker, error)
        self._refuse("settings", "")
        self._metadata.write_changes("brokers", found)

    # --- groups --------------------------------------------------------------------------------------

    def _ask_groups(self, brokers: Brokers, now: float) -> None:
        if self._doubts_everyone:
            self._doubts_everyone = False
            self._rota.doubt_everyone()
        groups = self._rota.due(self._bucket.available(now), now)
        if not groups:
            return
        self._bucket.take(len(groups))
        refused = 0
        for (broker, kind), names in by_call(groups, self._broker_of, self._type_of).items():
            for first in range(0, len(names), CALL_MAX):
                refused += self._describe(brokers, broker, kind, names[first : first + CALL_MAX])
        if refused == len(groups):
            self._due_at["groups"] = now + REFUSED_S
        self._note_refusals(refused, len(groups))

    def _describe(self, brokers: Brokers, broker: int, kind: str, groups: Sequence[str]) -> int:
        """Ask one question and write the answers; return how many groups we may not ask about."""
        if self._now() < self._too_old.get((broker, kind), 0.0) or broker not in self._there():
            return 0
        asked_ms = wall_ms()
        try:
            told = brokers.describe(broker, kind, groups)
        except UnsupportedVersionError:
            is_news = all(known != kind for _, known in self._too_old)
            self._too_old[broker, kind] = self._now() + TOO_OLD_S
            level = logging.WARNING if is_news else logging.DEBUG
            _log.log(level, "%s: %s", self._plan.cluster, TOO_OLD.format(kind=kind))
            return 0
        except KafkaError as error:
            self._gave_no_answer(broker, error)
            return 0
        answered_ms = wall_ms()
        if told.errors:
            self._due_at["look"] = float("-inf")  # the coordinator may have moved
        fits = {answer.group: self._fits(answer) for answer in told.answers}
        for group, is_fit in fits.items():
            self._rota.answered(group, fits=is_fit)
        answers = [answer for answer in told.answers if self._is_proof(answer)]
        for is_news in (True, False):
            of_kind = [one for one in answers if fits[one.group] is not is_news]
            records = [
                GroupsRecord(
                    at_ms=answered_ms,
                    run=self._run,
                    broker=broker,
                    asked_at_ms=asked_ms,
                    skew_ms=self._skew_ms().get(broker, 0),
                    groups=pack,
                )
                for pack in packed(of_kind, self._shard_of)
            ]
            self._write_answers(records, is_news=is_news)
        return sum(1 for error in told.errors.values() if error in NOT_AUTHORIZED)

    def _is_proof(self, answer: GroupAnswer) -> bool:
        """Say whether an answer is believable: a broker answers "unknown" for a group of another type."""
        if answer.state != GroupState.DEAD or (self._is_complete and answer.group not in self._listed):
            return True
        self._due_at["look"] = float("-inf")
        return False

    def _fits(self, answer: GroupAnswer) -> bool:
        mirrored = self._mirror.group(answer.group)
        if mirrored is None:
            return answer.state == GroupState.DEAD
        if (answer.group_type, answer.state) != mirrored:
            return False
        if answer.members is None or answer.state != GroupState.STABLE:
            return True
        return {member.member_id for member in answer.members} == self._mirror.members(answer.group)

    def _note_refusals(self, refused: int, asked: int) -> None:
        if refused == asked:
            self._refuse("groups", NO_GROUPS, is_off=True)
        elif refused:
            self._refuse("groups", SOME_GROUPS.format(count=refused, asked=asked))
        else:
            self._refuse("groups", "")

    def _refuse(self, what: str, sentence: str, *, is_off: bool = False) -> None:
        """Log a missing ACL once, and its recovery once."""
        before = self._refused.get(what, "")
        self._refused[what] = sentence
        if sentence and not before:
            _log.warning("%s: %s%s", self._plan.cluster, sentence, "; reconciliation is off" * is_off)
        elif before and not sentence:
            _log.info("%s: the brokers answer again: %s", self._plan.cluster, what)
        if what == "groups":
            self._progress.reconciliation = sentence or "on"
        else:
            self._progress.broker_settings = sentence or "known"

    # --- who answers -----------------------------------------------------------------------------------

    def _there(self) -> list[int]:
        """Return the brokers, without those that are left alone for a while because they did not answer."""
        return [
            broker for broker in self._layout.brokers if self._now() >= self._rests_until.get(broker, 0.0)
        ]

    def _gave_no_answer(self, broker: int, error: Exception) -> None:
        """Leave a broker alone for a while, or each round would wait for it; the other brokers are asked."""
        self._rests_until[broker] = self._now() + REST_S
        self._due_at["look"] = min(self._due_at["look"], self._now() + LOOK_S)
        _log.debug("%s: broker %d does not answer: %s", self._plan.cluster, broker, error)

    # --- where a group is ----------------------------------------------------------------------------

    def _shard_of(self, group: str) -> int:
        return shard_of(group, max(1, self._shards))

    def _broker_of(self, group: str) -> int | None:
        led = self._layout.leaders.get(shard_of(group, max(1, self._layout.shards)))
        if led is not None:
            return led[0]
        listed = self._listed.get(group)
        return None if listed is None else listed.broker

    def _type_of(self, group: str) -> str:
        listed = self._listed.get(group)
        if listed is not None:
            return listed.group_type
        seen = self._mirror.group(group)
        return "classic" if seen is None else seen.group_type

    def _write_answers(self, records: Iterable[GroupsRecord], *, is_news: bool) -> None:
        """Write answers: at once if they are news, with the next clock if they fit the picture."""
        if is_news or self._later is None:
            self._write(records)
            return
        for record in records:
            shards = {self._shard_of(one.group) for one in record.groups}
            self._later(self._plan.control_topic, encode_record(record), shards)

    def _write(self, records: Iterable[ControlRecord]) -> None:
        sent = [
            self._producer.send(self._plan.control_topic, value=encode_record(record), partition=0)
            for record in records
        ]
        for future in sent:
            future.get(timeout=_ANSWER_S)
