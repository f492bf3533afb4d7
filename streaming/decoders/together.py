"""Puts what the members of a group were heard to do into one observation.

On a busy cluster nearly all observations are accepted heartbeats and commits, and what each costs on its way
to its group is more than what it changes there.  Here they are coalesced across copies of the clock as well:
a line that is dated after the copy before it (less the time that a line may take) and before the copy after
it takes effect at its own time, wherever it stands.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from coordinator_model import observations as on
from coordinator_model.observations import NEVER, GroupHeard, MemberHeard, Seen, Source
from coordinator_model.ordering import AHEAD_MS, BEYOND_MS, DELAY_MS, SETTLE_MS, SKEW_MAX_MS, fastest, span_ms
from streaming.decoders import quiet_lines
from streaming.decoders.binary_column import Bools, Ints
from streaming.decoders.known_shards import known_shard
from streaming.decoders.quiet_columns import Beats, by_sender
from streaming.decoders.quiet_lines import Said
from streaming.decoders.quiet_texts import Texts
from streaming.decoders.stretches import RowPlace


class Span(NamedTuple):
    """The times (epoch ms) that lines may have between two clock copies of a partition."""

    since_ms: int = -1
    until_ms: int = NEVER


class Lines(NamedTuple):
    """Lines of one broker between two clock copies that were read as columns."""

    beats: Beats
    at_ms: Ints
    span: Span


@dataclass
class Told:
    """The observations of some lines, and what is left of these."""

    used: list[Bools]
    """Of each stretch, which lines the observations tell; the others are to be read singly."""
    seen: list[tuple[int, Seen]] = field(default_factory=list)
    """Shard and observation of each group."""


class _Group:
    """The members of a group with one generation."""

    __slots__ = ("first", "members", "more", "shard", "singly")

    def __init__(self, shard: int, first: int) -> None:
        self.shard = shard
        self.first = first
        """The first of their lines."""
        self.members: dict[str, MemberHeard] = {}
        """Each as its first sender was heard."""
        self.more: dict[str, tuple[list[int], list[int]]] = {}
        """Heartbeats and commits of a member's further senders."""
        self.singly: set[str] = set()
        """Members that came as two clients: which was the last shows in the order of the lines."""

    def add(self, said: Said, times: list[int]) -> None:
        """Add what a sender was heard to do."""
        member_id, client, instance_id = said.member_id, said.client, said.instance_id
        is_commit = said.api == quiet_lines.COMMIT
        heard = self.members.get(member_id)
        if heard is None:
            once = tuple(sorted(times)) if len(times) > 1 else tuple(times)
            beats, commits = ((), once) if is_commit else (once, ())
            self.members[member_id] = MemberHeard(member_id, client, beats, commits, instance_id)
        elif client is not heard.client and (client, instance_id) != (heard.client, heard.instance_id):
            self.singly.add(member_id)
        else:
            self.more.setdefault(member_id, ([], []))[is_commit].extend(times)

    def leave(self) -> set[str]:
        """Leave out the members that are told singly, and return them."""
        for member_id in self.singly:
            del self.members[member_id]
            self.more.pop(member_id, None)
        return self.singly

    def told(self) -> tuple[MemberHeard, ...]:
        """Return what each member was heard to do."""
        for member_id, (beats, commits) in self.more.items():
            one = self.members[member_id]
            times = tuple(sorted((*one.beats, *beats))), tuple(sorted((*one.commits, *commits)))
            self.members[member_id] = MemberHeard(member_id, one.client, *times, one.instance_id)
        return tuple(self.members.values())


def spans(copies: Sequence[tuple[int, on.EventsClock]]) -> list[Span]:
    """Return the span before each of a partition's clock copies in a batch, and that after the last.

    Args:
        copies: in their order, each with its time (epoch ms).

    Where a broker's clock is wrong, no line may have any time.
    """
    if any(abs(one) > SKEW_MAX_MS for _, copy in copies for one in (copy.lead_ms, *copy.skew_ms.values())):
        return [Span(until_ms=-1)] * (len(copies) + 1)
    since_ms, found = -1, list[Span]()
    for at_ms, copy in copies:
        found.append(Span(since_ms, at_ms + BEYOND_MS // 2))
        since_ms = max(since_ms, at_ms - SETTLE_MS + fastest(copy.skew_ms))
    return [*found, Span(since_ms)]


def put_together(
    stretches: Sequence[Lines],
    *,
    partition: int,
    broker: int,
    shard_count: int,
) -> Told:
    """Return the lines of one broker in one partition, none of them backlog, put together.

    Args:
        stretches: one after the other.
        partition: where they stand.
        broker: whose they are.
        shard_count: partitions of ``__consumer_offsets``.
    """
    plain = [_are_plain(*one) for one in stretches]
    rows = [np.flatnonzero(one) for one in plain]
    told = Told(plain)
    if not any(map(len, rows)):
        return told
    columns = [
        [column[row] for column in (one.beats.sender, one.at_ms, one.beats.offset, one.beats.stamp)]
        for one, row in zip(stretches, rows, strict=True)
    ]
    code, at_ms, offset, stamp = map(np.concatenate, zip(*columns, strict=True))
    groups, singly = _grouped(code, at_ms, stretches[0].beats.names.texts, shard_count)
    if singly:
        _leave(told.used, rows, code, singly)
    for (name, generation), group in groups.items():
        if group.members:
            late_ms = int(stamp[group.first] - at_ms[group.first])
            last_ms, what = _heard(name, generation, group)
            place = RowPlace(partition, int(offset[group.first]), last_ms + late_ms, backlog=False)
            told.seen.append((group.shard, place.seen(last_ms, Source.REQUEST_LOG, broker, what)))
    return told


def _grouped(
    code: Ints, at_ms: Ints, texts: Texts, shard_count: int
) -> tuple[dict[tuple[str, int], _Group], list[int]]:
    """Return what was heard of each group and generation, and the senders that cannot be told so."""
    groups: dict[tuple[str, int], _Group] = {}
    refused: list[int] = []
    for sender, first, _, times in by_sender(code, at_ms):
        said = texts.said(sender)
        if said.error_code:
            refused.append(sender)
            continue
        key = said.group, said.generation
        group = groups.get(key)
        if group is None:
            group = groups[key] = _Group(known_shard(said.group, shard_count), first)
        elif first < group.first:
            group.first = first
        group.add(said, times)
    mixed = {key: group.leave() for key, group in groups.items() if group.singly}
    return groups, refused + (_senders_of(mixed, code, texts) if mixed else [])


def _senders_of(members: Mapping[tuple[str, int], set[str]], code: Ints, texts: Texts) -> list[int]:
    """Return the senders among these of some ``members`` of each group and generation."""
    senders = np.unique(code).tolist()
    told = map(texts.said, senders)
    return [
        sender
        for sender, said in zip(senders, told, strict=True)
        if said.member_id in members.get((said.group, said.generation), ())
    ]


def _are_plain(beats: Beats, at_ms: Ints, span: Span) -> Bools:
    """Say of each line whether it is a classic one whose time is surely right."""
    ahead_ms = at_ms - beats.stamp
    good: Bools = beats.is_classic & (ahead_ms >= -DELAY_MS) & (ahead_ms <= AHEAD_MS)
    return good & (beats.stamp >= 0) & (at_ms >= span.since_ms) & (at_ms <= span.until_ms)


def _leave(used: list[Bools], rows: list[Ints], code: Ints, singly: list[int]) -> None:
    """Take the lines of some senders out of those that are used."""
    left = np.isin(code, singly)
    start = 0
    for mask, row in zip(used, rows, strict=True):
        mask[row[left[start : start + len(row)]]] = False
        start += len(row)


def _heard(name: str, generation: int, group: _Group) -> tuple[int, GroupHeard]:
    """Return the last time (epoch ms) and the observation of what members were heard to do."""
    members = group.told()
    since_ms, last_ms = span_ms(members)
    what = GroupHeard(group=name, generation=generation, since_ms=since_ms, members=members)
    return last_ms, what
