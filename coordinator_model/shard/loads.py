"""Compares lines about a whole shard with the metadata: which broker leads it, with which epoch.

A line "Finished unloading", or "Loading" with an epoch of any size, takes a shard from its coordinator, whose
lines count for nothing from then on; and anybody who can put text into a log can write one.  So such a line
is applied in doubt while the metadata do not confirm it: the observations that it makes us drop are kept for
a while.  If the metadata still disagree then, the former leader is restored and they are applied.

The metadata are asked every few seconds, so they lag behind a real failover.  Where nobody asks them (a
replay, or no permission), a line counts at once and for good.
"""

import msgspec

from coordinator_model import observations as on
from coordinator_model.groups.core import OLD_LINE
from coordinator_model.observations import Seen
from coordinator_model.ordering import Buffered
from coordinator_model.shard import live_sources
from coordinator_model.shard.snapshot import Header, Known, Unproved

CONTRADICTED = "load_contradicted"
"""The divergence under which lines are counted that the metadata contradict."""
LAG_MS = 2_000
"""An answer that comes sooner after a failover may describe the time before it."""
KEPT_MS = 30_000
KEPT_MAX = 1_000

_Load = on.ShardLoading | on.ShardLoaded


def take_line(header: Header, seen: Seen, at_ms: int) -> str | None:
    """Apply a line that a broker loads or unloads the shard; return the divergence to count, if any."""
    what, led = seen.what, header.led
    if isinstance(what, on.ShardUnloaded):
        is_own = seen.broker == header.coordinator
        if is_own and seen.at_ms < header.loaded_ms:
            return OLD_LINE
        if is_own and led is not None and led.leader == seen.broker:
            _doubt(header, at_ms)
    elif isinstance(what, _Load) and led is not None:
        is_leader = seen.broker == led.leader
        if what.epoch < led.epoch:
            return OLD_LINE
        if what.epoch == led.epoch >= 0 and not is_leader:
            return CONTRADICTED
        if what.epoch > max(led.epoch, header.epoch) and not (is_leader and led.epoch < 0):
            _doubt(header, at_ms)
    live_sources.move_shard(header, seen, at_ms)
    return None


def take_leader(header: Header, what: on.ShardLed, at_ms: int) -> list[Buffered] | None:
    """Apply the leader in the metadata.

    Returns:
        None, unless the metadata contradict a line: then the observations dropped because of that line.
    """
    if what.leader >= 0 and (header.led is None or what.epoch >= header.led.epoch):
        header.led = Known(leader=what.leader, epoch=what.epoch)
    doubt = header.unproved
    if doubt is None or what.leader < 0:
        live_sources.note_leader(header, what, at_ms)
        return None
    if not _says_otherwise(header, doubt, what):
        header.unproved = None
        live_sources.note_leader(header, what, at_ms)
        return None
    if at_ms < doubt.since_ms + LAG_MS:
        return None
    header.unproved = None
    header.coordinator, header.epoch, header.moved = doubt.coordinator, doubt.epoch, doubt.moved
    header.lost, header.loaded_ms = dict(doubt.lost), doubt.loaded_ms
    live_sources.note_leader(header, what, at_ms)
    return doubt.kept if at_ms <= doubt.since_ms + KEPT_MS else []


def keep(header: Header, held: Buffered) -> bool:
    """Keep an observation of a broker that seems to have lost the shard; False if it is dropped for good."""
    doubt = header.unproved
    if doubt is None or held.order_ms > doubt.since_ms + KEPT_MS or len(doubt.kept) >= KEPT_MAX:
        return False
    if held.seen.broker in doubt.lost:
        return False
    doubt.kept = [*doubt.kept, held]
    return True


def _doubt(header: Header, at_ms: int) -> None:
    """Store the state before a line that nothing confirms; of several lines the first counts."""
    if header.unproved is None or at_ms > header.unproved.since_ms + KEPT_MS:
        header.unproved = Unproved(
            since_ms=at_ms,
            coordinator=header.coordinator,
            epoch=header.epoch,
            lost=dict(header.lost),
            moved=header.moved,
            loaded_ms=header.loaded_ms,
        )


def _says_otherwise(header: Header, doubt: Unproved, what: on.ShardLed) -> bool:
    """Return whether the metadata name another leader, or an older epoch, than unconfirmed lines."""
    if 0 <= what.epoch != header.epoch:
        return what.epoch < header.epoch
    return what.leader == doubt.coordinator if header.coordinator < 0 else what.leader != header.coordinator


def restored(held: Buffered, at_ms: int) -> Buffered:
    """Return a kept observation as it takes effect: late, at its own time."""
    return msgspec.structs.replace(held, order_ms=max(held.order_ms, at_ms))
