"""The buffer's entries: single observations, and coalesced runs that the watermark cuts."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from coordinator_model.observations import GroupHeard, MemberHeard, Seen


class Buffered(msgspec.Struct, array_like=True):
    """A single observation in the buffer, or just released."""

    order_ms: int
    seen: Seen


class Run(msgspec.Struct, array_like=True):
    """A coalesced run in the buffer; each of its times counts as at least ``floor_ms``.

    It is of one member, or (``GroupHeard``) of several members of a group until it is taken apart.
    """

    floor_ms: int
    seen: Seen

    @property
    def times(self) -> tuple[int, ...]:
        """Return the times (epoch ms) of its member that are not applied yet."""
        return self.seen.what.times  # type: ignore[union-attr]  # only runs are wrapped

    def first_times(self, count: int) -> Sequence[int]:
        """Return at least its first ``count`` times (epoch ms), or all if it has fewer."""
        what = self.seen.what
        if type(what) is not GroupHeard:
            return self.times[:count]
        return [time for one in what.members for times in (one.beats, one.commits) for time in times[:count]]

    @property
    def since_ms(self) -> int:
        """Return its first time (epoch ms)."""
        what = self.seen.what
        if type(what) is GroupHeard:
            return what.since_ms
        return what.times[0]  # type: ignore[union-attr]  # only runs are wrapped

    def first_ms(self) -> int:
        """Return when (epoch ms) its first time takes effect."""
        return max(self.since_ms, self.floor_ms)

    def count_before(self, limit_ms: int) -> int:
        """Return how many of its times take effect before ``limit_ms``."""
        return 0 if self.floor_ms >= limit_ms else bisect_left(self.times, limit_ms)


def order_key(held: Buffered) -> tuple[int, int, int, int, int]:
    """Return the key by which a shard orders what it releases."""
    seen = held.seen
    return held.order_ms, seen.source, seen.partition, seen.offset, seen.index


def cut(run: Run, limit_ms: int) -> tuple[Run | None, Run | None]:
    """Return the part of a run that takes effect before ``limit_ms``, and the rest."""
    if run.seen.at_ms < limit_ms and run.floor_ms < limit_ms:
        return run, None
    what = run.seen.what
    if type(what) is GroupHeard:
        return _cut_together(run, what, limit_ms)
    times, count = run.times, run.count_before(limit_ms)
    if count == 0:
        return None, run
    return part(run, times[:count]), part(run, times[count:])


def rest_of(runs: Iterable[Run], from_ms: int) -> list[Run]:
    """Return the parts of ``runs`` that take effect at ``from_ms`` or later."""
    return [tail for run in runs if (tail := cut(run, from_ms)[1]) is not None]


def part(run: Run, times: tuple[int, ...]) -> Run:
    """Return a run of only these ``times``, without any trace of its other times."""
    seen = run.seen
    what = msgspec.structs.replace(seen.what, times=times)
    return Run(run.floor_ms, msgspec.structs.replace(seen, at_ms=times[-1], what=what))


def taken_apart(runs: Iterable[Run]) -> list[Run]:
    """Return runs of one member each."""
    return [one for run in runs for one in _apart(run)]


def apart(seen: Seen) -> Iterator[Seen]:
    """Yield what each member was heard to do; anything else as it is."""
    what = seen.what
    if type(what) is not GroupHeard:
        yield seen
        return
    late_ms = seen.recorded_at_ms - seen.at_ms
    for one in what.one_by_one():
        last_ms = one.times[-1]
        yield msgspec.structs.replace(seen, at_ms=last_ms, recorded_at_ms=last_ms + late_ms, what=one)


def _apart(run: Run) -> Iterator[Run]:
    if type(run.seen.what) is not GroupHeard:
        yield run
    else:
        yield from (Run(run.floor_ms, one) for one in apart(run.seen))


def _cut_together(run: Run, what: GroupHeard, limit_ms: int) -> tuple[Run | None, Run | None]:
    """Do what ``cut`` does for a run of several members."""
    if run.floor_ms >= limit_ms or what.since_ms >= limit_ms:
        return None, run
    heads: list[MemberHeard] = []
    tails: list[MemberHeard] = []
    for one in what.members:
        beats, commits = bisect_left(one.beats, limit_ms), bisect_left(one.commits, limit_ms)
        if beats == len(one.beats) and commits == len(one.commits):
            heads.append(one)
        elif not beats and not commits:
            tails.append(one)
        else:
            heads.append(_heard(one, one.beats[:beats], one.commits[:commits]))
            tails.append(_heard(one, one.beats[beats:], one.commits[commits:]))
    return _together(run, what, heads), _together(run, what, tails)


def _heard(one: MemberHeard, beats: tuple[int, ...], commits: tuple[int, ...]) -> MemberHeard:
    return MemberHeard(one.member_id, one.client, beats, commits, one.instance_id)


def _together(run: Run, what: GroupHeard, members: list[MemberHeard]) -> Run:
    """Return a run of only these members, of whom there is at least one."""
    since_ms, last_ms = span_ms(members)
    what = GroupHeard(group=what.group, generation=what.generation, since_ms=since_ms, members=tuple(members))
    return Run(run.floor_ms, msgspec.structs.replace(run.seen, at_ms=last_ms, what=what))


def span_ms(members: Iterable[MemberHeard]) -> tuple[int, int]:
    """Return the first and the last time (epoch ms) of all that members, at least one, were heard to do."""
    times = [times for one in members for times in (one.beats, one.commits) if times]
    return min(one[0] for one in times), max(one[-1] for one in times)
