"""Which sources of a shard are live, and which broker leads it; nothing here is about single groups."""

from bisect import bisect_right
from typing import Final, NamedTuple

import msgspec

from coordinator_model import observations as on
from coordinator_model.observations import NEVER, Seen, Source
from coordinator_model.shard.snapshot import Header
from coordinator_model.state import LastFailover

REQUESTS_LIVE_MS: Final = 30_000
"""After a longer silence of the request log, the silence of one member proves nothing."""
SPEAKS_MS: Final = 4_000
"""A request log that was silent longer may have been switched off: the shortest session that brokers allow

by default (6 s) ends later than this after its last line, if its member sent three heartbeats in it.
"""
NEWEST: Final = 2**62
HEARD_KEPT_MS: Final = 120_000
HEARD_SHOWN_MS: Final = 110_000
"""Shorter than the history that is kept, or the result would depend on when the rest was dropped."""
PROOF_MS_MAX: Final = 100_000
"""Cap on the request-log history required before silence counts (only 110 s are kept)."""
STALLED_APART_MS: Final = 30_000
"""Refused writes no further apart have one cause, the death of one replica: the controller needs 9 s to give

a broker up, and busy leaders drop it from their replicas later.
"""
STALL_TOLD_MS: Final = 1_000
"""Each refused write shows the same; at most this often they restart the shard's session timers."""
LOST_FOR_MS: Final = 3_600_000
"""A broker that answers as coordinator so long after it lost the shard leads it again: its line was lost,

and the metadata are not asked.  A broker that was frozen for minutes, as virtual machines are, finds all
sessions over when it wakes, and logs that before it learns that others coordinate.
"""


def hear(header: Header, floor_ms: int, seen: Seen) -> None:
    """Note in which seconds a broker's request log had lines.

    A second counts only once it is over: within it, whether its line has arrived yet would depend on how fast
    it was read.
    """
    what = seen.what
    if not isinstance(what, on.LogSeconds) or what.heard is not Source.REQUEST_LOG:
        return
    known = header.heard.setdefault(what.broker, [])
    known.extend((max(second * 1000 + 1000, floor_ms), second * 1000) for second in what.seconds)
    known.sort()
    # A second that counts later than a newer one never decides anything.
    newest = -1
    kept: list[tuple[int, int]] = []
    for counts_ms, at_ms in known:
        if at_ms > newest:
            kept.append((counts_ms, at_ms))
            newest = at_ms
    header.heard[what.broker] = kept


def forget_heard(header: Header, before_ms: int) -> None:
    """Drop the seconds that no judgement from ``before_ms`` on can ask for."""
    for broker, known in header.heard.items():
        keep = bisect_right(known, (before_ms, NEWEST)) - 1
        if keep > 0:
            header.heard[broker] = known[keep:]


def requests_heard_ms(header: Header, broker: int, at_ms: int) -> int:
    """Return the newest second over by ``at_ms`` in which that broker's request log had a line, or -1.

    Broker -1 stands for any broker: the shard's leader is not known yet.
    """
    if not header.heard:
        return -1
    if broker < 0:
        return max((_newest_ms(known, at_ms) for known in header.heard.values()), default=-1)
    return _newest_ms(header.heard.get(broker, []), at_ms)


def brokers_heard(header: Header, at_ms: int) -> int:
    """Return how many brokers' request logs had a line by ``at_ms``."""
    return sum(_newest_ms(known, at_ms) >= 0 for known in header.heard.values())


def seconds_heard(header: Header, broker: int, at_ms: int) -> list[tuple[int, int]]:
    """Return the seconds of that broker's request log that count by ``at_ms``, for almost two minutes."""
    known = _heard(header, broker, at_ms)
    first, last = ((at_ms - back_ms, NEWEST) for back_ms in (HEARD_SHOWN_MS, 0))
    return known[bisect_right(known, first) : bisect_right(known, last)]


def _heard(header: Header, broker: int, at_ms: int) -> list[tuple[int, int]]:
    """Return the seconds kept of that broker's request log; for -1 those of the broker heard last by then."""
    if broker < 0 and header.heard:
        broker = max(sorted(header.heard), key=lambda one: _newest_ms(header.heard[one], at_ms), default=-1)
    return header.heard.get(broker, [])


def _newest_ms(known: list[tuple[int, int]], at_ms: int) -> int:
    if not known:
        return -1
    if known[-1][0] <= at_ms:
        return known[-1][1]
    index = bisect_right(known, (at_ms, NEWEST)) - 1
    return known[index][1] if index >= 0 else -1


def requests_live(header: Header, broker: int, at_ms: int) -> bool:
    """Return whether that broker's request log had a line within the last half minute."""
    heard_ms = requests_heard_ms(header, broker, at_ms)
    return heard_ms >= 0 and at_ms - heard_ms <= REQUESTS_LIVE_MS


def requests_steady(header: Header, broker: int, at_ms: int) -> bool:
    """Return whether that request log is live, and has been for half a minute since its last long silence.

    When the log comes back, switched on again or with its broker, every member seems to have been silent.
    The same is true from the moment at which it is switched off.
    """
    known = _heard(header, broker, at_ms)
    if at_ms - _newest_ms(known, at_ms) > SPEAKS_MS:
        return False
    before = bisect_right(known, (at_ms - REQUESTS_LIVE_MS, NEWEST)) - 1
    if before < 0 or before + 1 == len(known) or known[before + 1][0] > at_ms:
        return True
    return known[before + 1][1] - known[before][1] <= REQUESTS_LIVE_MS


class HeardSpan(NamedTuple):
    """What a request log had said by any time from ``from_ms`` to before ``until_ms``."""

    from_ms: int
    until_ms: int
    is_live: bool
    is_steady: bool
    heard_ms: int
    seconds: list[tuple[int, int]]
    brokers: int


class HeardSpans:
    """The spans that were asked for in one step of a shard, while its request logs are as they are.

    Each observation of a group asks, and a log has lines in a few seconds of a step only.
    """

    def __init__(self, header: Header) -> None:
        self._header = header
        self._known: dict[tuple[int, int], HeardSpan] = {}

    def at(self, broker: int, at_ms: int) -> HeardSpan:
        """Return what that broker's request log had said by ``at_ms``; -1: the one that was heard last."""
        key = broker, at_ms // 1000
        span = self._known.get(key)
        if span is None or not span.from_ms <= at_ms < span.until_ms:
            span = self._known[key] = self._span(broker, at_ms)
        return span

    def _span(self, broker: int, at_ms: int) -> HeardSpan:
        header = self._header
        from_ms, until_ms = (at_ms, at_ms + 1) if broker < 0 else self._bounds(broker, at_ms)
        return HeardSpan(
            from_ms=from_ms,
            until_ms=until_ms,
            is_live=requests_live(header, broker, at_ms),
            is_steady=requests_steady(header, broker, at_ms),
            heard_ms=requests_heard_ms(header, broker, at_ms),
            seconds=seconds_heard(header, broker, at_ms),
            brokers=brokers_heard(header, at_ms),
        )

    def _bounds(self, broker: int, at_ms: int) -> tuple[int, int]:
        """Return the last time, and the next, at which anything of this is another than just before."""
        known = self._header.heard.get(broker, [])
        turns = [counts_ms for one in self._header.heard.values() for counts_ms, _ in one[:1]]
        for after_ms in (0, REQUESTS_LIVE_MS, HEARD_SHOWN_MS):
            index = bisect_right(known, (at_ms - after_ms, NEWEST))
            turns += [counts_ms + after_ms for counts_ms, _ in known[max(index - 1, 0) : index + 1]]
        newest = known[: bisect_right(known, (at_ms, NEWEST))][-1:]
        turns += [second_ms + over + 1 for _, second_ms in newest for over in (REQUESTS_LIVE_MS, SPEAKS_MS)]
        past = [turn_ms for turn_ms in turns if turn_ms <= at_ms]
        return max(past, default=-NEVER), min((one for one in turns if one > at_ms), default=NEVER)


def move_shard(header: Header, seen: Seen, at_ms: int) -> None:
    """Apply that a broker loads, has loaded, or unloads the shard; the coordinator's epoch decides."""
    what = seen.what
    if isinstance(what, on.ShardUnloaded):
        header.lost[seen.broker] = at_ms
        if header.coordinator in (-1, seen.broker):
            # If another broker has taken the shard already, that failover is known.
            header.coordinator = -1
            header.moved = LastFailover(at_ms=min(at_ms, seen.at_ms), came_from=seen.broker)
        return
    epoch = what.epoch if isinstance(what, on.ShardLoading | on.ShardLoaded) else -1
    if epoch < header.epoch:
        return
    # Even a line that is read late has the time of the failover, which the metadata lack.
    _note_move(header, seen.broker, epoch, min(at_ms, seen.at_ms))
    if header.coordinator != seen.broker or epoch > header.epoch:
        header.loaded_ms = seen.at_ms
    header.epoch = epoch
    if header.coordinator not in (-1, seen.broker):
        header.lost[header.coordinator] = at_ms
    header.coordinator = seen.broker
    header.lost.pop(seen.broker, None)


def note_leader(header: Header, what: on.ShardLed, at_ms: int) -> None:
    """Apply the leader of the offsets partition in the metadata; an older epoch changes nothing.

    Without epochs (an old broker) only a shard without a known leader gets one.
    """
    is_told_apart = what.epoch >= 0 or header.coordinator < 0
    if what.leader < 0 or what.epoch < header.epoch or not is_told_apart:
        return
    _note_move(header, what.leader, what.epoch, at_ms)
    if header.coordinator not in (-1, what.leader):
        header.lost[header.coordinator] = at_ms
    if header.coordinator != what.leader:
        header.loaded_ms = -1
    header.coordinator, header.epoch = what.leader, what.epoch
    header.lost.pop(what.leader, None)


def note_stall(header: Header, since_ms: int, broker: int, at_ms: int) -> bool:
    """Note that the shard's coordinator waits for a replica; True: it is news, at most once a second.

    Just after a failover it belongs to the same trouble.
    """
    if header.coordinator not in (-1, broker):
        return False
    last = header.moved
    if last is None or since_ms > last.over_ms + STALLED_APART_MS:
        header.moved = LastFailover(
            at_ms=since_ms, came_from=broker, went_to=broker, stood=True, stalled_ms=at_ms
        )
        return True
    is_news = at_ms >= last.stalled_ms + STALL_TOLD_MS
    if is_news:
        header.moved = msgspec.structs.replace(last, stalled_ms=at_ms)
    return is_news


def is_outdated(header: Header, seen: Seen, at_ms: int) -> bool:
    """Return whether a broker reports on a shard that it has lost."""
    lost_ms = header.lost.get(seen.broker)
    if lost_ms is None or seen.source not in (Source.COORDINATOR_LOG, Source.REQUEST_LOG):
        return False
    return at_ms - lost_ms <= LOST_FOR_MS or seen.source is Source.REQUEST_LOG


def is_news_of_coordinator(header: Header, seen: Seen) -> bool:
    """Return whether a line shows that another broker than the known one leads the shard."""
    return seen.source is Source.COORDINATOR_LOG and seen.broker not in (-1, header.coordinator)


def note_coordinator(header: Header, seen: Seen) -> None:
    """Set the broker that logs as coordinator as the shard's leader."""
    _note_move(header, seen.broker, header.epoch, seen.at_ms)
    if header.coordinator != seen.broker:
        header.loaded_ms = -1
    header.coordinator = seen.broker
    header.lost.pop(seen.broker, None)


def _note_move(header: Header, broker: int, epoch: int, at_ms: int) -> None:
    """Store that the shard goes to another broker, or begins again on its own with a later epoch."""
    last = header.moved
    given_up = last is not None and last.went_to < 0
    is_other = header.coordinator not in (-1, broker)
    if last is not None and last.went_to == broker and epoch == header.epoch and at_ms < last.at_ms:
        header.moved = msgspec.structs.replace(last, at_ms=at_ms)
    if not (given_up or is_other or epoch > header.epoch >= 0):
        return
    came_from = last.came_from if given_up and last is not None else header.coordinator
    header.moved = LastFailover(at_ms=at_ms, came_from=came_from, went_to=broker)


def is_first_word(header: Header, seen: Seen) -> bool:
    """Return whether a line changes which sources of the shard are live, beside its own content."""
    if seen.source is not Source.COORDINATOR_LOG:
        return False
    return not header.info_live or is_news_of_coordinator(header, seen)
