"""Packs cells as bytes between the two stages; an observation that fails harms no other.

Decoders bound what they read, so nothing here should ever fail.  If a bound is missing, the observation is
counted and set aside, and the rest of its cell goes on.
"""

from collections.abc import Iterator, Mapping

import msgspec

from coordinator_model.observations import CLUSTER_SHARD, Seen, Source, Undecodable, pack, unpack

REASON = "unpackable"
CELL_BYTES_MAX = 512 * 2**20
"""A cell is one value of an Arrow column; all values together must stay below 2 GiB."""
_SAMPLE_BYTES = 512
_DETAIL_CHARS = 200
_ORIGINS = {
    Source.OFFSETS: "offsets",
    Source.COORDINATOR_LOG: "events",
    Source.REQUEST_LOG: "events",
    Source.CONTROL: "control",
}


def plain(text: str) -> str:
    """Return ``text`` in writable form: lone surrogates as their numbers."""
    return text.encode("utf-8", "backslashreplace").decode()


def sample_of(what: object) -> bytes:
    """Return the beginning of what was set aside, for people."""
    try:
        shown = repr(what)
    except Exception as error:  # whatever was decoded, showing it must not fail
        shown = f"{type(what).__name__}: {error!r}"
    return shown[:_SAMPLE_BYTES].encode("utf-8", "backslashreplace")[:_SAMPLE_BYTES]


def pack_cells(cells: Mapping[int, list[Seen]]) -> Iterator[tuple[int, bytes]]:
    """Yield every cell as bytes, huge ones in parts; the cluster's shard last, with failed observations."""
    bad = _Bad()
    for shard, seen in cells.items():
        if shard != CLUSTER_SHARD:
            yield from ((shard, part) for part in _parts(seen, bad))
    of_cluster = cells.get(CLUSTER_SHARD)
    if of_cluster:
        yield from ((CLUSTER_SHARD, part) for part in _parts(of_cluster, bad))
    if bad.count:
        yield CLUSTER_SHARD, pack([bad.told()])


class _Bad:
    """Observations that could not be packed; the same one for many shards counts once."""

    def __init__(self) -> None:
        self._places: set[tuple[int, int, int, int]] = set()
        self._first: tuple[Seen, Exception] | None = None

    @property
    def count(self) -> int:
        return len(self._places)

    def add(self, seen: Seen, error: Exception) -> None:
        self._places.add((int(seen.source), seen.partition, seen.offset, seen.index))
        if self._first is None:
            self._first = seen, error

    def told(self) -> Seen:
        """Return one observation about all of them, with the first as sample."""
        assert self._first is not None  # noqa: S101 - asked only if there is one
        seen, error = self._first
        what = Undecodable(
            origin=_ORIGINS[seen.source],
            reason=REASON,
            count=self.count,
            sample=sample_of(seen.what),
            detail=plain(f"{type(error).__name__}: {error}")[:_DETAIL_CHARS],
        )
        return Seen(
            at_ms=seen.recorded_at_ms,
            source=seen.source,
            partition=seen.partition,
            offset=seen.offset,
            index=seen.index,
            broker=-1,
            recorded_at_ms=seen.recorded_at_ms,
            backlog=False,
            what=what,
        )


def _parts(seen: list[Seen], bad: _Bad) -> Iterator[bytes]:
    try:
        packed = pack(seen)
    except Exception as error:
        if len(seen) == 1:
            bad.add(seen[0], error)
            return
    else:
        if len(packed) <= CELL_BYTES_MAX or len(seen) == 1:
            yield packed
            return
    good = [one for one in seen if _is_packable(one, bad)]
    if len(good) < len(seen):
        yield from _parts(good, bad) if good else ()
        return
    middle = len(seen) // 2
    yield from _parts(seen[:middle], bad)
    yield from _parts(seen[middle:], bad)


def _is_packable(one: Seen, bad: _Bad) -> bool:
    try:
        pack([one])
    except Exception as error:
        bad.add(one, error)
        return False
    return True


_PIECES = msgspec.msgpack.Decoder(list[msgspec.Raw])
_ONE = msgspec.msgpack.Decoder(Seen)


def unpack_cell(cell: bytes) -> tuple[list[Seen], int, str]:
    """Return a cell's observations, how many parts could not be read, and why the first could not.

    Only our own stages write cells, so an unreadable part is a bug of ours, which must not stop the others.
    """
    try:
        return unpack(cell), 0, ""
    except Exception as error:
        why = f"{type(error).__name__}: {error}"[:_DETAIL_CHARS]
    try:
        pieces = _PIECES.decode(cell)
    except Exception:  # not even a list: all of it
        return [], 1, why
    found: list[Seen] = []
    for piece in pieces:
        try:
            found.append(_ONE.decode(piece))
        except Exception as error:
            why = f"{type(error).__name__}: {error}"[:_DETAIL_CHARS]
    return found, len(pieces) - len(found), why
