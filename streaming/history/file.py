"""The file on local disk: what is written, what is read again, and what is deleted.

SQLite; a group is known by its number.
"""

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

import msgspec

from alerts.alert import Alert
from coordinator_model.state import Transition
from streaming.history.local_file import LocalFile
from streaming.history.pages import Value, page_of, value_in
from streaming.history.past import Lane, Owned
from streaming.history.samples import Beat, Came, Change, Went

VERSION = 2
DAY_MS = 86_400_000
FINE, COARSE = "fine", "coarse"
_FOREVER = 2**62
_PORTION = 5_000
"""Most rows of a table that are deleted at once."""
_READ_MAX = 20_000
"""Most transitions, or lanes, of one answer."""
_BEFORE = 40
"""Transitions before a window that are read with it: they tell in which state it begins."""
_TABLES = """
CREATE TABLE groups (number INTEGER PRIMARY KEY AUTOINCREMENT, cluster TEXT, name TEXT,
  UNIQUE (cluster, name));
CREATE TABLE watched (cluster TEXT, from_ms INTEGER, to_ms INTEGER,
  PRIMARY KEY (cluster, from_ms)) WITHOUT ROWID;
CREATE TABLE filled (cluster TEXT PRIMARY KEY, at_ms INTEGER);
CREATE TABLE fine (page INTEGER, at_ms INTEGER, packed BLOB, PRIMARY KEY (page, at_ms));
CREATE TABLE coarse (page INTEGER, at_ms INTEGER, packed BLOB, PRIMARY KEY (page, at_ms));
CREATE TABLE transitions (id TEXT PRIMARY KEY, number INTEGER, at_ms INTEGER, value BLOB);
CREATE INDEX transitions_of ON transitions (number, at_ms);
CREATE INDEX transitions_at ON transitions (at_ms);
CREATE TABLE alerts (id TEXT PRIMARY KEY, revision INTEGER, number INTEGER, starts_ms INTEGER,
  ends_ms INTEGER, value BLOB);
CREATE INDEX alerts_of ON alerts (number, ends_ms);
CREATE INDEX alerts_at ON alerts (ends_ms);
CREATE TABLE lanes (number INTEGER, member TEXT, seen_ms INTEGER, gone_ms INTEGER, about BLOB, beats BLOB,
  PRIMARY KEY (number, member, seen_ms));
CREATE INDEX lanes_gone ON lanes (gone_ms) WHERE gone_ms >= 0;
CREATE TABLE owners (number INTEGER, generation INTEGER, at_ms INTEGER, packed BLOB,
  PRIMARY KEY (number, generation, at_ms));
CREATE INDEX owners_at ON owners (at_ms);
"""

T = TypeVar("T")
_About = tuple[str, str, str | None, int, int, bool]
"""Client id, host, instance id, session timeout, rebalance timeout, whether somebody saw it come."""
_Beats = list[list[int]]


class HistoryFile(LocalFile):
    """One open file of history."""

    version = VERSION
    tables = _TABLES

    # --- what is written, inside ``writing`` --------------------------------------------------------

    def number(self, cluster: str, group: str) -> int:
        """Return the number of a group, a new one if it has none."""
        self._file.execute("INSERT OR IGNORE INTO groups (cluster, name) VALUES (?, ?)", (cluster, group))
        found = self._number(cluster, group)
        if found is None:
            raise sqlite3.DatabaseError("a group that was written is not there")
        return found

    def watched(self, cluster: str, since_ms: int, now_ms: int) -> None:
        """Note that a cluster was watched from one look to the next."""
        self._file.execute("INSERT OR REPLACE INTO watched VALUES (?, ?, ?)", (cluster, since_ms, now_ms))

    def filled(self, cluster: str, now_ms: int) -> None:
        """Note that what the topics had of a cluster is here."""
        self._file.execute("INSERT OR REPLACE INTO filled VALUES (?, ?)", (cluster, now_ms))

    def unfill(self, cluster: str) -> None:
        """Note that the topics have more of a cluster than is here."""
        self._file.execute("DELETE FROM filled WHERE cluster = ?", (cluster,))

    def unfilled(self, clusters: Iterable[str]) -> list[str]:
        """Return the clusters whose past was never read from the topics."""
        with self._lock:
            rows = self._file.execute("SELECT cluster FROM filled").fetchall()
        return [one for one in clusters if (one,) not in rows]

    def values(self, table: str, at_ms: int, pages: Iterable[tuple[int, bytes]]) -> None:
        """Write the packed values of one moment."""
        self._file.executemany(
            f"INSERT OR REPLACE INTO {_table(table)} VALUES (?, ?, ?)",  # noqa: S608 - our names
            ((page, at_ms, packed) for page, packed in pages),
        )

    def transition(self, number: int, one: Transition, value: bytes) -> bool:
        """Write a transition; return whether it was new."""
        row = (one.id, number, one.at_ms, value)
        return self._file.execute("INSERT OR IGNORE INTO transitions VALUES (?, ?, ?, ?)", row).rowcount > 0

    def alert(self, number: int, one: Alert, value: bytes) -> None:
        """Write the newest revision of an alert."""
        ends_ms = _FOREVER if one.ends_at_ms is None else one.ends_at_ms
        self._file.execute(
            "INSERT INTO alerts VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
            "revision = excluded.revision, ends_ms = excluded.ends_ms, value = excluded.value "
            "WHERE excluded.revision >= revision",
            (one.id, one.revision, number, one.starts_at_ms, ends_ms, value),
        )

    def owners(
        self, number: int, generation: int, at_ms: int, owners: dict[str, dict[str, list[int]]]
    ) -> None:
        """Write who had which partitions."""
        packed = zlib.compress(msgspec.msgpack.encode(owners), 1)
        self._file.execute(
            "INSERT OR IGNORE INTO owners VALUES (?, ?, ?, ?)", (number, generation, at_ms, packed)
        )

    def members(self, number: int, changes: Iterable[Change]) -> None:
        """Write who came and went, and whose heartbeats paused."""
        for one in changes:
            if isinstance(one, Came):
                self._came(number, one)
            elif isinstance(one, Went):
                self._went(number, one)
            else:
                self._beat(number, one)

    def _came(self, number: int, one: Came) -> None:
        who = one.member
        about: _About = (
            who.client_id,
            who.client_host,
            who.instance_id,
            who.session_timeout_ms,
            who.rebalance_timeout_ms,
            one.is_new,
        )
        beats = [[who.last_heartbeat_ms] * 2] if who.last_heartbeat_ms >= 0 else []
        self._file.execute(
            "INSERT OR IGNORE INTO lanes VALUES (?, ?, ?, -1, ?, ?)",
            (number, who.member_id, one.at_ms, msgspec.json.encode(about), msgspec.json.encode(beats)),
        )

    def _went(self, number: int, one: Went) -> None:
        beats = self._beats(number, one.member_id)
        if beats and one.last_beat_ms > beats[-1][1]:
            beats[-1][1] = one.last_beat_ms
        self._file.execute(
            "UPDATE lanes SET gone_ms = ?, beats = ? WHERE number = ? AND member = ? AND gone_ms < 0",
            (one.at_ms, msgspec.json.encode(beats), number, one.member_id),
        )

    def _beat(self, number: int, one: Beat) -> None:
        beats = self._beats(number, one.member_id)
        if beats and one.before_ms > beats[-1][1]:
            beats[-1][1] = one.before_ms
        beats.append([one.from_ms, one.from_ms])
        self._file.execute(
            "UPDATE lanes SET beats = ? WHERE number = ? AND member = ? AND gone_ms < 0",
            (msgspec.json.encode(beats[-_PORTION:]), number, one.member_id),
        )

    def _beats(self, number: int, member: str) -> _Beats:
        found = self._file.execute(
            "SELECT beats FROM lanes WHERE number = ? AND member = ? AND gone_ms < 0", (number, member)
        ).fetchone()
        with decoding():
            return [] if found is None else msgspec.json.decode(found[0], type=_Beats)

    def open_members(self) -> dict[int, dict[str, int]]:
        """Return group's number -> member that was there at the last look -> its last heartbeat by then."""
        found: dict[int, dict[str, int]] = {}
        with self._lock:
            rows = self._file.execute("SELECT number, member, beats FROM lanes WHERE gone_ms < 0").fetchall()
        with decoding():
            for number, member, beats in rows:
                stretches = msgspec.json.decode(beats, type=_Beats)
                found.setdefault(number, {})[member] = stretches[-1][1] if stretches else -1
        return found

    # --- what is deleted -----------------------------------------------------------------------------

    def prune(self, fine_before_ms: int, coarse_before_ms: int, before_ms: int) -> int:
        """Delete what is older, a portion of each table at most; return how many rows."""
        deleted = self._prune_pages(FINE, fine_before_ms) + self._prune_pages(COARSE, coarse_before_ms)
        for table, column in (
            ("transitions", "at_ms"),
            ("alerts", "ends_ms"),
            ("owners", "at_ms"),
            ("lanes", "gone_ms"),
        ):
            deleted += self._file.execute(
                f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} "  # noqa: S608 - our names
                f"WHERE {column} >= 0 AND {column} < ? LIMIT ?)",
                (before_ms, _PORTION),
            ).rowcount
        deleted += self._file.execute("DELETE FROM watched WHERE to_ms < ?", (before_ms,)).rowcount
        return deleted

    def _prune_pages(self, table: str, before_ms: int) -> int:
        query = f"SELECT max(page) FROM {_table(table)}"  # noqa: S608 - our names
        pages = self._file.execute(query).fetchone()[0]
        deleted = 0
        for page in range(0 if pages is None else pages + 1):
            if deleted >= _PORTION:
                break
            deleted += self._file.execute(
                f"DELETE FROM {_table(table)} WHERE page = ? AND at_ms < ?",  # noqa: S608 - our names
                (page, before_ms),
            ).rowcount
        return deleted

    def size(self) -> int:
        """Return the bytes in use."""
        with self._lock:
            pages, free, size = (
                self._file.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
        return int((pages - free) * size)

    def oldest_ms(self) -> int | None:
        """Return the time of the oldest transition or coarse value; None: there is none."""
        with self._lock:
            (found,) = self._file.execute(
                "SELECT min(at_ms) FROM (SELECT min(at_ms) AS at_ms FROM transitions "
                "UNION ALL SELECT min(from_ms) FROM watched)"
            ).fetchone()
        return found if found is None else int(found)

    # --- what is read --------------------------------------------------------------------------------

    def _number(self, cluster: str, group: str) -> int | None:
        with self._lock:
            found = self._file.execute(
                "SELECT number FROM groups WHERE cluster = ? AND name = ?", (cluster, group)
            ).fetchone()
        return None if found is None else int(found[0])

    def numbers(self) -> dict[tuple[str, str], int]:
        """Return (cluster, group) -> number, of all groups."""
        with self._lock:
            rows = self._file.execute("SELECT cluster, name, number FROM groups").fetchall()
        return {(cluster, name): number for cluster, name, number in rows}

    def find(self, cluster: str, group: str) -> int | None:
        """Return the number of a group; None: it has none."""
        return self._number(cluster, group)

    def stretches(self, cluster: str, from_ms: int, to_ms: int) -> list[tuple[int, int]]:
        """Return the times in a window in which a cluster was watched."""
        with self._lock:
            return self._file.execute(
                "SELECT from_ms, to_ms FROM watched WHERE cluster = ? AND to_ms >= ? AND from_ms <= ? "
                "ORDER BY from_ms",
                (cluster, from_ms, to_ms),
            ).fetchall()

    def last_watched_ms(self, cluster: str) -> int:
        """Return until when a cluster was watched; -1: never."""
        with self._lock:
            (found,) = self._file.execute(
                "SELECT max(to_ms) FROM watched WHERE cluster = ?", (cluster,)
            ).fetchone()
        return -1 if found is None else int(found)

    def series(self, table: str, number: int, from_ms: int, to_ms: int) -> list[tuple[int, Value]]:
        """Return the values of a group that were written in a window, by time."""
        with self._lock:
            rows = self._file.execute(
                f"SELECT at_ms, packed FROM {_table(table)} "  # noqa: S608 - our names
                "WHERE page = ? AND at_ms BETWEEN ? AND ? ORDER BY at_ms",
                (page_of(number), from_ms, to_ms),
            ).fetchall()
        with decoding():
            found = [(at_ms, value_in(packed, number)) for at_ms, packed in rows]
        return [(at_ms, value) for at_ms, value in found if value is not None]

    def all_pages(self, since_ms: int) -> list[tuple[int, int, bytes]]:
        """Return (time, page, packed values) of the fine table since then, by time."""
        with self._lock:
            return self._file.execute(
                "SELECT at_ms, page, packed FROM fine WHERE at_ms >= ? ORDER BY at_ms", (since_ms,)
            ).fetchall()

    def transitions(self, number: int, from_ms: int, to_ms: int) -> list[Transition]:
        """Return the transitions of a group in a window, and some before it, by time."""
        with self._lock:
            rows = self._file.execute(
                "SELECT value FROM transitions WHERE number = ? AND at_ms BETWEEN ? AND ? "
                "ORDER BY at_ms DESC LIMIT ?",
                (number, from_ms, to_ms, _READ_MAX),
            ).fetchall()
            rows += self._file.execute(
                "SELECT value FROM transitions WHERE number = ? AND at_ms < ? ORDER BY at_ms DESC LIMIT ?",
                (number, from_ms, _BEFORE),
            ).fetchall()
        return _decoded(rows, Transition)[::-1]

    def starts_since(self, since_ms: int) -> list[tuple[int, Transition]]:
        """Return (group's number, transition) of all groups since then."""
        with self._lock:
            rows = self._file.execute(
                "SELECT number, value FROM transitions WHERE at_ms >= ?", (since_ms,)
            ).fetchall()
        return [(number, one) for number, value in rows for one in _decoded([(value,)], Transition)]

    def alerts(self, number: int, from_ms: int, to_ms: int) -> list[Alert]:
        """Return the newest revision of each alert of a group that was open in a window."""
        with self._lock:
            rows = self._file.execute(
                "SELECT value FROM alerts WHERE number = ? AND ends_ms >= ? AND starts_ms <= ? LIMIT ?",
                (number, from_ms, to_ms, _READ_MAX),
            ).fetchall()
        return _decoded(rows, Alert)

    def lanes(self, number: int, from_ms: int, to_ms: int) -> list[Lane]:
        """Return the lives of a group's members that touch a window."""
        with self._lock:
            rows = self._file.execute(
                "SELECT member, seen_ms, gone_ms, about, beats FROM lanes "
                "WHERE number = ? AND seen_ms <= ? AND (gone_ms < 0 OR gone_ms >= ?) LIMIT ?",
                (number, to_ms, from_ms, _READ_MAX),
            ).fetchall()
        with decoding():
            return [_lane(*row) for row in rows]

    def owned(self, number: int, from_ms: int, to_ms: int) -> list[Owned]:
        """Return who had what at each end of a rebalance in a window, and at the last one before it."""
        with self._lock:
            rows = self._file.execute(
                "SELECT at_ms, generation, packed FROM owners WHERE number = ? AND at_ms <= ? AND at_ms >= "
                "coalesce((SELECT max(at_ms) FROM owners WHERE number = ? AND at_ms < ?), ?) "
                "ORDER BY at_ms LIMIT ?",
                (number, to_ms, number, from_ms, from_ms, _READ_MAX),
            ).fetchall()
        with decoding():
            return [
                Owned(
                    at_ms,
                    generation,
                    msgspec.msgpack.decode(zlib.decompress(packed), type=dict[str, dict[str, list[int]]]),
                )
                for at_ms, generation, packed in rows
            ]


@contextmanager
def decoding() -> Iterator[None]:
    """Take a value that cannot be decoded as what it is: damage of the file.

    Raises:
        sqlite3.DatabaseError: as SQLite itself does for a damaged page.
    """
    try:
        yield
    except (zlib.error, ValueError, TypeError, IndexError) as error:
        raise sqlite3.DatabaseError(f"a value in it cannot be decoded: {error}") from error


def _table(name: str) -> str:
    """Return the name of a table of values."""
    return COARSE if name == COARSE else FINE


def _decoded(rows: Sequence[tuple[bytes]], kind: type[T]) -> list[T]:
    found = []
    for (value,) in rows:
        with decoding(), suppress(msgspec.MsgspecError):  # an older version may have written it
            found.append(msgspec.json.decode(value, type=kind))
    return found


def _lane(member: str, seen_ms: int, gone_ms: int, about: bytes, beats: bytes) -> Lane:
    client_id, host, instance_id, session_ms, rebalance_ms, is_new = msgspec.json.decode(about, type=_About)
    stretches = msgspec.json.decode(beats, type=_Beats)
    return Lane(
        member_id=member,
        client_id=client_id,
        client_host=host,
        instance_id=instance_id,
        seen_at_ms=seen_ms if is_new else -1,
        gone_at_ms=gone_ms,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        beats=tuple((begin, end) for begin, end in stretches),
    )
