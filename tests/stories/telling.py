"""Stories: what happened to one group, and what the model made of it.

A story is a text file of blocks.  A block is a few lines of observations, ``----``, and what the
model answered: transitions, departures and divergences, in the order they came, then the state the
group is in.  ``mode`` in the first block says which sources are read.  A member is written by its
client id; its generated id is made from that (``x+``: another id of the same).  After a line ``costs``
each rebalance tells what it cost, and each transition what was read again before it.  Behind ``inferred``
stands the rule that inferred a transition (``groups/core/inferences.py``).

``python -m tests.stories.telling`` writes the answers anew; read the diff before you keep it.
"""

import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from msgspec import UnsetType, structs

from coordinator_model import observations as seen_as
from coordinator_model.groups import table as classic
from coordinator_model.groups.core.turn import Context
from coordinator_model.groups.modern.progress import hold_ups
from coordinator_model.observations.base import Observation, Source
from coordinator_model.observations.log import Reason
from coordinator_model.observations.modern_records import (
    AnyPart,
    Current,
    GroupEpoch,
    MemberMetadata,
    MemberState,
    Target,
    TargetEpoch,
)
from coordinator_model.observations.records import MemberRecord, ModernRecord
from coordinator_model.observations.requests import Client
from coordinator_model.observations.seen import Seen
from coordinator_model.state.group import Group, Step, Transition
from tests.unit.made_seen import seen

HERE = Path(__file__).parent
STORIES = sorted(HERE.glob("*.txt"))
UUID = "00000000-0000-4000-8000-000000000000"
G = "orders"

MODES = {
    "full": Context("c", info_live=True, offsets_enabled=True, backlog=False, requests_live=True),
    "quiet": Context("c", info_live=True, offsets_enabled=True, backlog=False),
    "log": Context("c", info_live=True, offsets_enabled=False, backlog=False),
    "requests": Context("c", info_live=False, offsets_enabled=True, backlog=False, requests_live=True),
    "requests-alone": Context("c", info_live=False, offsets_enabled=False, backlog=False, requests_live=True),
    "offsets": Context("c", info_live=False, offsets_enabled=True, backlog=False),
    "backlog": Context("c", info_live=False, offsets_enabled=True, backlog=True),
}

Words = list[str]
Options = dict[str, str]


def member_id(name: str) -> str:
    """Return the id made of a name; "name+" is another id made of the same one."""
    plain = name.rstrip("+")
    return f"{plain}-{UUID[:-1]}{len(name) - len(plain)}" if name else ""


def name_of(member_id: str) -> str:
    """Return the name that an id was made of."""
    plain, times = member_id[: -len(UUID) - 1], member_id[-1]
    return plain + "+" * int(times) if member_id.endswith(UUID[:-1] + times) else member_id


def member_ids(names: str) -> tuple[str, ...]:
    return tuple(member_id(name) for name in names.split(",") if name)


def client(name: str, options: Options) -> Client:
    return Client(
        client_id=options.get("client", name),
        host=options.get("host", "/10.0.0.1"),
        connection=options.get("via", ""),
    )


def record(generation: str, options: Options) -> Observation:
    names = [name for name in options.get("members", "").split(",") if name]
    has = dict(one.split("/") for one in options.get("has", "").split("|") if one)
    instances = dict(pair.split(":") for pair in options.get("instances", "").split(",") if pair)
    members = tuple(
        MemberRecord(
            member_id=member_id(name),
            client_id=name,
            client_host="/10.0.0.1",
            session_timeout_ms=6_000,
            rebalance_timeout_ms=5_000,
            instance_id=instances.get(name),
            topics=("t1",) if has else None,
            assigned=partitions(has.get(name, "")) if has else None,
        )
        for name in names
    )
    return seen_as.GroupRecorded(
        group=G,
        generation=int(generation),
        protocol_type=options.get("type", "consumer"),
        protocol=options.get("protocol", "range") if members else None,
        leader_id=member_id(options.get("leader", names[0])) if names else None,
        state_since_ms=int(options.get("since", "-1")),
        members=members,
    )


def rebalance(generation: str, kind: str, names: str, options: Options) -> Observation:
    reason = Reason(
        kind=kind,
        text=options.get("text", f"because of {kind}"),
        member_ids=member_ids(names),
        instance_id=options.get("instance"),
    )
    return seen_as.RebalanceStarted(group=G, generation=int(generation), reason=reason)


def joined(name: str, generation: str, code: str, options: Options) -> Observation:
    return seen_as.JoinAnswered(
        group=G,
        member_id=member_id(name),
        error_code=int(code),
        generation=int(generation),
        leader_id=member_id(options.get("leader", "")),
        arrived_at_ms=int(options["arrived"]),
        requested_member_id=member_id(options.get("requested", "" if code == "79" else name)),
        instance_id=options.get("instance"),
        session_timeout_ms=6_000,
        rebalance_timeout_ms=5_000,
        protocol_type="consumer",
        reason=options.get("reason"),
        member_ids=member_ids(options.get("members", "")),
        client=client(name, options),
    )


def times(text: str) -> tuple[int, ...]:
    return tuple(int(time) for time in text.split(","))


def commit(text: str) -> seen_as.Commit:
    place, offset = text.split("=")
    topic, partition = place.rsplit("-", 1)
    return seen_as.Commit(topic, int(partition), None if offset == "x" else int(offset), 0)


# --- records of consumer groups: what stands in one line was written as one ------------------------------


def partitions(text: str) -> dict[str, tuple[int, ...]]:
    """Return ``t1:0,1;t2:3`` as an assignment."""
    pairs = (one.split(":") for one in text.split(";") if one)
    return {topic: tuple(int(number) for number in numbers.split(",")) for topic, numbers in pairs}


def tombstone(record_type: int, name: str = "") -> ModernRecord:
    return ModernRecord(
        group=G,
        group_type="consumer",
        record_type=record_type,
        name="",
        tombstone=True,
        member_id=member_id(name),
    )


def part(record_type: int, held: AnyPart, name: str = "") -> ModernRecord:
    return ModernRecord(
        group=G,
        group_type="consumer",
        record_type=record_type,
        name="",
        tombstone=False,
        member_id=member_id(name),
        part=held,
    )


def current(text: str) -> Iterator[ModernRecord]:
    """Read ``a@3``, ``a@3=t1:0``, ``a@3=t1:0/t1:1`` (to be revoked) or ``a@3?=t1:0`` (waits for more)."""
    place, _, held = text.partition("=")
    name, epoch = place.split("@")
    assigned, _, revoking = held.partition("/")
    state = MemberState.UNRELEASED if epoch.endswith("?") else MemberState.STABLE
    yield part(
        8,
        Current(
            epoch=int(epoch.rstrip("?")),
            previous_epoch=0,
            state=MemberState.UNREVOKED if revoking else state,
            assigned=partitions(assigned),
            revoking=partitions(revoking),
        ),
        name,
    )


def joining(text: str) -> Iterator[ModernRecord]:
    """Read ``a``, ``a=t1,t2`` or ``a/instance=t1``, with ``a*`` for one that speaks the classic protocol."""
    place, _, topics = text.partition("=")
    name, _, instance = place.rstrip("*").partition("/")
    metadata = MemberMetadata(
        client_id=name,
        client_host="/10.0.0.1",
        instance_id=instance or None,
        topics=tuple(topics.split(",")) if topics else ("t1",),
        rebalance_timeout_ms=5_000,
        classic_session_ms=6_000 if place.endswith("*") else -1,
    )
    yield part(5, metadata, name)


def epoch_of(text: str) -> Iterator[ModernRecord]:
    """Read ``3`` or ``3#77`` (the hash of the topics)."""
    epoch, _, digest = text.partition("#")
    yield part(3, GroupEpoch(epoch=int(epoch), metadata_hash=int(digest or "1")))


def target(text: str) -> Iterator[ModernRecord]:
    name, _, assigned = text.partition("=")
    yield part(7, Target(assigned=partitions(assigned)), name)


def classic_record(text: str) -> Iterator[Observation]:
    generation, _, names = text.partition("=")
    yield record(generation, {"members": names})


def classic_tombstone(_: str) -> Iterator[Observation]:
    yield seen_as.GroupTombstone(group=G)


PARTS: dict[str, Callable[[str], Iterator[Observation]]] = {
    "join": joining,
    "epoch": epoch_of,
    "target-epoch": lambda text: iter([part(6, TargetEpoch(epoch=int(text)))]),
    "target": target,
    "has": current,
    "gone": lambda name: (tombstone(kind, name) for kind in (8, 7, 5)),
    "ended": lambda _: (tombstone(kind) for kind in (6, 3)),
    "classic-tombstone": classic_tombstone,
    "classic-record": classic_record,
}


def write(words: Words) -> Observation:
    """Return records written as one: ``write join a / epoch 2 / target-epoch 2 / has a@2=t1:0``."""
    written: list[Any] = []
    for text in " ".join(words).split(" / "):
        verb, _, rest = text.partition(" ")
        written += PARTS[verb](rest)
    return seen_as.ModernWrite(group=G, records=tuple(written))


RAW = frozenset({"commit", "write"})
"""Verbs whose words may hold "=" of their own."""
LOG, TOPIC, REQUESTS = Source.COORDINATOR_LOG, Source.OFFSETS, Source.REQUEST_LOG
Maker = Callable[[Words, Options], Observation]
VERBS: dict[str, tuple[Source, Maker]] = {
    "id": (
        LOG,
        lambda w, o: seen_as.MemberIdHandedOut(group=G, member_id=member_id(w[0]), state=o.get("state", "")),
    ),
    "joined": (
        LOG,
        lambda w, o: seen_as.MemberJoined(group=G, member_id=member_id(w[0]), instance_id=o.get("instance")),
    ),
    "replaced": (
        LOG,
        lambda w, o: seen_as.StaticMemberReplaced(group=G, instance_id=w[0], old_member_id=member_id(w[1])),
    ),
    "preparing": (LOG, lambda w, o: rebalance(w[0], w[1], "".join(w[2:]), o)),
    "stabilized": (
        LOG,
        lambda w, o: seen_as.JoinPhaseEnded(group=G, generation=int(w[0]), member_count=int(w[1])),
    ),
    "assigned": (
        LOG,
        lambda w, o: seen_as.AssignmentReceived(group=G, generation=int(w[0]), leader_id=member_id(w[1])),
    ),
    "emptied": (LOG, lambda w, o: seen_as.GroupEmptied(group=G, generation=int(w[0]))),
    "kicked": (LOG, lambda w, o: seen_as.MembersKicked(group=G, member_ids=member_ids(w[0]))),
    "failed": (LOG, lambda w, o: seen_as.MemberFailed(group=G, member_id=member_id(w[0]))),
    "pending-expired": (LOG, lambda w, o: seen_as.PendingMemberExpired(group=G, member_id=member_id(w[0]))),
    "left": (
        LOG,
        lambda w, o: seen_as.MemberLeft(
            group=G, member_id=member_id(w[0]), client_reason=o.get("reason"), pending="pending" in w
        ),
    ),
    "nobody": (LOG, lambda w, o: seen_as.NobodyRejoined(group=G)),
    "simple": (LOG, lambda w, o: seen_as.SimpleGroupCreated(group=G)),
    "loaded": (LOG, lambda w, o: seen_as.GroupLoaded(group=G, group_type="classic", member_count=int(w[0]))),
    "loaded-3x": (
        LOG,
        lambda w, o: seen_as.GroupLoaded(
            group=G, group_type="classic", member_count=-1, generation=int(w[0])
        ),
    ),
    "converted": (LOG, lambda w, o: seen_as.GroupConverted(group=G, to_classic=w[0] == "classic")),
    "died": (LOG, lambda w, o: seen_as.GroupDied(group=G, generation=int(w[0]))),
    "unloaded": (LOG, lambda w, o: seen_as.GroupUnloaded(group=G, generation=int(w[0]))),
    "elected": (
        LOG,
        lambda w, o: seen_as.LeaderReplaced(old_leader_id=member_id(w[0]), new_leader_id=member_id(w[1])),
    ),
    "deleted": (LOG, lambda w, o: seen_as.GroupsDeleted(names=G)),
    "record": (TOPIC, lambda w, o: record(w[0], o)),
    "tombstone": (TOPIC, lambda w, o: seen_as.GroupTombstone(group=G)),
    "commit": (TOPIC, lambda w, o: seen_as.OffsetsCommitted(group=G, commits=(commit(w[0]),))),
    "write": (TOPIC, lambda w, o: write(w)),
    "modern-gone": (
        LOG,
        lambda w, o: seen_as.ModernMemberGone(group=G, member_id=member_id(w[0]), kind=w[1], text="said so"),
    ),
    "epoch-answer": (
        REQUESTS,
        lambda w, o: seen_as.EpochAnswered(
            group=G,
            protocol="consumer",
            member_id=member_id(w[0]),
            asked=int(w[1]),
            epoch=int(w[2]),
            error_code=int(o.get("error", "0")),
            arrived_at_ms=0,
            interval_ms=1_000,
            client=client(w[0], o),
        ),
    ),
    "heartbeat": (
        REQUESTS,
        lambda w, o: seen_as.Heartbeats(
            group=G,
            member_id=member_id(w[0]),
            generation=int(w[1]),
            error_code=int(w[2]),
            times=times(o["at"]),
            client=client(w[0], o),
            protocol=o.get("protocol", "classic"),
        ),
    ),
    "join": (REQUESTS, lambda w, o: joined(w[0], w[1], w[2], o)),
    "sync": (
        REQUESTS,
        lambda w, o: seen_as.SyncAnswered(
            group=G,
            member_id=member_id(w[0]),
            generation=int(w[1]),
            error_code=int(w[2]),
            arrived_at_ms=int(o.get("arrived", "0")),
            by_leader="leader" in w,
            client=client(w[0], o),
        ),
    ),
    "leave": (
        REQUESTS,
        lambda w, o: seen_as.LeaveAnswered(
            group=G,
            member_id=member_id(w[0]),
            error_code=int(w[1]),
            reason=o.get("reason"),
            client=client(w[0], o),
        ),
    ),
    "commits": (
        REQUESTS,
        lambda w, o: seen_as.CommitsAnswered(
            group=G,
            member_id=member_id(w[0]),
            generation=int(w[1]),
            error_code=int(w[2]),
            times=times(o["at"]),
            client=client(w[0], o),
        ),
    ),
    "delete-groups": (REQUESTS, lambda w, o: seen_as.DeleteAnswered(group=G, error_code=int(w[0]))),
}


def costs_of(told: Transition) -> Iterator[str]:
    """Say what a transition tells of costs, unknown numbers as "?"."""
    if not isinstance(told.reread, UnsetType):
        yield f"   read again {told.reread}"
    cost = told.cost
    if isinstance(cost, UnsetType):
        return
    classic_phases = {"join": cost.join_ms, "sync": cost.sync_ms}
    phases = {"assigning": cost.assigning_ms, "reconciling": cost.reconciling_ms}
    shown = classic_phases if told.group_type == "classic" else phases
    shown |= {"partitions": cost.partitions, "unowned-ms": cost.partition_ms}
    shown |= {"moved": cost.moved, "least": cost.least}
    text = " ".join(f"{name} {'?' if number is None else number}" for name, number in shown.items())
    kind = {True: " eager", False: "", None: " of an unknown assignor"}[cost.eager]
    marks = f"{kind}{' initial' * cost.initial}{' second-step' * cost.second_step}"
    yield f"   cost since {cost.started_ms}{marks}: {text}"


class Telling:
    """One group, as the story goes on."""

    def __init__(self) -> None:
        """Begin with a group that nobody knows."""
        self.group: Group = classic.new_group(G)
        self.context = MODES["full"]
        self.ids: dict[str, str] = {}
        self.told = 0
        self.costs = False

    def line(self, text: str) -> Iterator[str]:
        """Apply one line of observations."""
        if text.startswith("mode "):
            self.context = MODES[text.removeprefix("mode ").strip()]
            return
        if text == "costs":
            self.costs = True
            return
        now, verb, *rest = shlex.split(text)
        yield from self.wait(int(now))
        if verb != "wait":
            yield from self.answer(classic.apply(self.group, self.seen(int(now), verb, rest), self.context))

    def wait(self, now_ms: int) -> Iterator[str]:
        """Fire what is due on the way to ``now_ms``, as the shard does."""
        while (due_ms := classic.due_at(self.group, self.context)) is not None and due_ms <= now_ms:
            yield from self.answer(classic.pass_time(self.group, due_ms, self.context))

    def seen(self, now_ms: int, verb: str, rest: Words) -> Seen:
        """Return the observation that a line describes."""
        options = dict(word.split("=", 1) for word in rest if "=" in word and verb not in RAW)
        words = [word for word in rest if "=" not in word or verb in RAW]
        source, make = VERBS[verb]
        what = make(words, options)
        if isinstance(what, seen_as.OffsetsCommitted):
            commits = tuple(structs.replace(one, committed_at_ms=now_ms) for one in what.commits)
            what = structs.replace(what, commits=commits)
        broker = int(options.get("broker", "1")) if source is not TOPIC else -1
        told = cast("seen_as.AnyObservation", what)
        return seen(now_ms, told, source, broker=broker, backlog=self.context.backlog)

    def answer(self, step: Step) -> Iterator[str]:
        """Say what a step did."""
        for told in step.transitions:
            self.told += 1
            self.ids[told.id] = f"#{self.told}"
            replaces = f" replaces {self.ids[told.replaces]}" if told.replaces else ""
            rule = f" ({step.inferred[told.id]})" if told.id in step.inferred else ""
            culprit = f" by {told.cause.client_id or told.cause.member_id}" if told.cause.member_id else ""
            yield (
                f"#{self.told} {told.at_ms} {told.from_state} -> {told.to_state} {told.generation}"
                f" {told.cause.kind}{culprit} {told.basis}{rule} {told.source}{replaces}"
            )
            if self.costs:
                yield from costs_of(told)
        for name in step.arrivals:
            yield f"   came {name_of(name)}"
        for gone in step.departures:
            yield f"   went {name_of(gone.member_id)} {gone.how} {gone.basis} at {gone.at_ms}"
        for kind in step.divergences:
            yield f"   divergence {kind}"
        if step.contradicted:
            yield "   contradicted"

    def picture(self) -> str:
        """Say how the group stands."""
        group = self.group
        members = ",".join(name_of(name) for name in group.members) or "nobody"
        burned = f" burned {group.rebalance.burned}" if group.rebalance and group.rebalance.burned else ""
        kind = "" if group.group_type == "classic" else f" ({group.group_type})"
        stands = f"{group.state} {group.generation} since {group.state_since_ms} with {members}{burned}"
        return f"= {stands}{kind}{''.join(self.held_up())}"

    def held_up(self) -> Iterator[str]:
        """Say who holds up reconciliation."""
        for one in () if self.group.modern is None else hold_ups(self.group.modern):
            what = ";".join(f"{topic}:{','.join(map(str, p))}" for topic, p in one.partitions.items())
            held_by = ",".join(name_of(name) for name in one.held_by)
            by = f" held by {held_by}" if held_by else ""
            yield f"\n! {one.client_id} {one.why} {what}{by} since {one.since_ms}"


def tell(text: str) -> str:
    """Return the story with the answers that the model gives."""
    telling, out = Telling(), []
    for block in text.strip().split("\n\n"):
        asked = block.split("\n----")[0].strip("\n")
        lines = [line for line in asked.split("\n") if line and not line.startswith("#")]
        if not lines:
            out.append(asked)
            continue
        answers = [answer for line in lines for answer in telling.line(line)]
        out.append("\n".join([asked, "----", *answers, telling.picture()]))
    return "\n\n".join(out) + "\n"


if __name__ == "__main__":
    for story_path in sorted(set(STORIES) | {Path(arg) for arg in sys.argv[1:]}):
        story_path.write_text(tell(story_path.read_text()))
