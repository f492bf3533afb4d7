"""Who spoke when, and which broker holds the shard: what a shard knows of its sources, not of its groups."""

from bisect import bisect_right
from typing import Final

import msgspec

from coordinator_model import observations as on
from coordinator_model.observations import Seen, Source
from coordinator_model.shard.snapshot import Header
from coordinator_model.state import Moved

REQUESTS_LIVE_MS: Final = 30_000
"""A request log that was silent longer proves nothing by the silence of one member."""
SPEAKS_MS: Final = 4_000
"""A request log that was silent longer may have been switched off: the shortest session that brokers allow
by default (6 s) ends later than this after its last line, if its member spoke three times in it."""
NEWEST: Final = 2**62
HEARD_KEPT_MS: Final = 120_000
HEARD_SHOWN_MS: Final = 110_000
"""Shorter than what is kept, or what is shown would depend on when the rest was forgotten."""
PROOF_MS_MAX: Final = 100_000
"""Who has listened for so long has done so as long as evidence goes back, whatever the session timeout."""
STALLED_APART_MS: Final = 30_000
"""Refused writes no further apart go back to one replica's death: the controller waits 9 s until it gives a
broker up, and leaders that are busy drop it from their replicas later."""
STALL_TOLD_MS: Final = 1_000
"""Each refused write says the same; so often all of the shard's sessions begin anew."""
LOST_FOR_MS: Final = 3_600_000
"""A broker that speaks as coordinator so long after it lost the shard has it again, unseen by us: its line is
lost, and nobody asks for the metadata.  One that was frozen for minutes, as virtual machines are, finds all
sessions over when it wakes, and says so before it learns that others coordinate."""


def hear(header: Header, floor_ms: int, seen: Seen) -> None:
    """Note in which seconds a broker's request log spoke.

    A second counts only once it is over: within it, whether its line has arrived yet would depend on
    how fast it was read.
    """
    what = seen.what
    if not isinstance(what, on.BrokerHeard) or what.heard is not Source.REQUEST_LOG:
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
    """Return the newest second over by ``at_ms`` in which that broker's request log spoke, or -1.

    Broker -1 stands for any of them: nobody has told yet who holds the shard.
    """
    if not header.heard:
        return -1
    if broker < 0:
        return max((_newest_ms(known, at_ms) for known in header.heard.values()), default=-1)
    return _newest_ms(header.heard.get(broker, []), at_ms)


def brokers_heard(header: Header, at_ms: int) -> int:
    """Return of how many brokers the request log had spoken by ``at_ms``."""
    return sum(_newest_ms(known, at_ms) >= 0 for known in header.heard.values())


def seconds_heard(header: Header, broker: int, at_ms: int) -> list[tuple[int, int]]:
    """Return the seconds of that broker's request log that count by ``at_ms``, almost two minutes of them."""
    known = _heard(header, broker, at_ms)
    first, last = ((at_ms - back_ms, NEWEST) for back_ms in (HEARD_SHOWN_MS, 0))
    return known[bisect_right(known, first) : bisect_right(known, last)]


def _heard(header: Header, broker: int, at_ms: int) -> list[tuple[int, int]]:
    """Return the seconds kept of that broker's request log; for -1 those of the one heard last by then."""
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
    """Say whether that broker's request log spoke within the last half minute."""
    heard_ms = requests_heard_ms(header, broker, at_ms)
    return heard_ms >= 0 and at_ms - heard_ms <= REQUESTS_LIVE_MS


def requests_steady(header: Header, broker: int, at_ms: int) -> bool:
    """Say whether that request log speaks now, and for half a minute since it last was silent for longer.

    When it comes back, switched on again or with its broker, every member seems to have been silent; and
    so does every member from when it is switched off.
    """
    known = _heard(header, broker, at_ms)
    if at_ms - _newest_ms(known, at_ms) > SPEAKS_MS:
        return False
    before = bisect_right(known, (at_ms - REQUESTS_LIVE_MS, NEWEST)) - 1
    if before < 0 or before + 1 == len(known) or known[before + 1][0] > at_ms:
        return True
    return known[before + 1][1] - known[before][1] <= REQUESTS_LIVE_MS


def move_shard(header: Header, seen: Seen, at_ms: int) -> None:
    """Take in that a broker loads, has loaded, or gives up the shard; the coordinator's epoch decides."""
    what = seen.what
    if isinstance(what, on.ShardUnloaded):
        header.lost[seen.broker] = at_ms
        if header.coordinator in (-1, seen.broker):
            # Of one that another has taken the shard from, that move is known already.
            header.coordinator = -1
            header.moved = Moved(at_ms=min(at_ms, seen.at_ms), came_from=seen.broker)
        return
    epoch = what.epoch if isinstance(what, on.ShardLoading | on.ShardLoaded) else -1
    if epoch < header.epoch:
        return
    # A line that is read late tells all the same when it happened, and better than the metadata.
    _note_move(header, seen.broker, epoch, min(at_ms, seen.at_ms))
    if header.coordinator != seen.broker or epoch > header.epoch:
        header.loaded_ms = seen.at_ms
    header.epoch = epoch
    if header.coordinator not in (-1, seen.broker):
        header.lost[header.coordinator] = at_ms
    header.coordinator = seen.broker
    header.lost.pop(seen.broker, None)


def note_leader(header: Header, what: on.ShardLed, at_ms: int) -> None:
    """Take in whom the metadata name as leader of the offsets partition; an older epoch is old news.

    Without epochs (an old broker) only a shard that nobody is known to hold learns something.
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
    """Take in that the shard's coordinator waits for a replica; True: it is news, at most once a second.

    Just after a move that is still the same trouble.
    """
    if header.coordinator not in (-1, broker):
        return False
    last = header.moved
    if last is None or since_ms > last.over_ms + STALLED_APART_MS:
        header.moved = Moved(at_ms=since_ms, came_from=broker, went_to=broker, stood=True, stalled_ms=at_ms)
        return True
    is_news = at_ms >= last.stalled_ms + STALL_TOLD_MS
    if is_news:
        header.moved = msgspec.structs.replace(last, stalled_ms=at_ms)
    return is_news


def is_outdated(header: Header, seen: Seen, at_ms: int) -> bool:
    """Say whether a broker speaks of a shard that it has lost."""
    lost_ms = header.lost.get(seen.broker)
    if lost_ms is None or seen.source not in (Source.COORDINATOR_LOG, Source.REQUEST_LOG):
        return False
    return at_ms - lost_ms <= LOST_FOR_MS or seen.source is Source.REQUEST_LOG


def is_news_of_coordinator(header: Header, seen: Seen) -> bool:
    """Say whether a line shows that another broker than we thought holds the shard."""
    return seen.source is Source.COORDINATOR_LOG and seen.broker not in (-1, header.coordinator)


def note_coordinator(header: Header, seen: Seen) -> None:
    """Take the broker that speaks as coordinator for the one that holds the shard."""
    _note_move(header, seen.broker, header.epoch, seen.at_ms)
    if header.coordinator != seen.broker:
        header.loaded_ms = -1
    header.coordinator = seen.broker
    header.lost.pop(seen.broker, None)


def _note_move(header: Header, broker: int, epoch: int, at_ms: int) -> None:
    """Remember that the shard goes to another broker, or begins anew on its own with a later epoch."""
    last = header.moved
    given_up = last is not None and last.went_to < 0
    is_other = header.coordinator not in (-1, broker)
    if last is not None and last.went_to == broker and epoch == header.epoch and at_ms < last.at_ms:
        header.moved = msgspec.structs.replace(last, at_ms=at_ms)
    if not (given_up or is_other or epoch > header.epoch >= 0):
        return
    came_from = last.came_from if given_up and last is not None else header.coordinator
    header.moved = Moved(at_ms=at_ms, came_from=came_from, went_to=broker)


def is_first_word(header: Header, seen: Seen) -> bool:
    """Say whether a line changes what is known of the shard's sources, beside what it says."""
    if seen.source is not Source.COORDINATOR_LOG:
        return False
    return not header.info_live or is_news_of_coordinator(header, seen)
