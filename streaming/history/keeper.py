"""Keeps what was: takes what batches tell, looks at the groups every ten seconds, and answers for a window.

A thread of its own; looks and their troubles are one thing, hence the length.  Batches leave rows in a
bounded list and never wait; what does not fit is dropped and counted.  Whatever goes wrong with the file
becomes a sentence, and nothing else.
"""

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from alerts.alert import Alert
from coordinator_model.kafka import SETTLED, GroupState
from coordinator_model.state import Transition
from streaming.group_store import GroupStore, KeptGroup
from streaming.history.file import COARSE, DAY_MS, FINE, HistoryFile, decoding
from streaming.history.filling import Filling, ReadPast, Row
from streaming.history.intake import ClusterRow, Intake
from streaming.history.jumps import Jumps
from streaming.history.local_file import FileTroubleError
from streaming.history.pages import UNKNOWN, Value, packed, records_in
from streaming.history.past import Past
from streaming.history.reading import GAP_MS, past_of
from streaming.history.samples import (
    LOOK_MS,
    Change,
    Sample,
    changes,
    first_changes,
    is_as_before,
    members_part,
    sample_of,
)
from streaming.history.series import (
    COARSE_MS,
    COARSE_WHOLE_MS,
    FINE_WHOLE_MS,
    HOUR_MS,
    Track,
    coarse_changes,
    fine_changes,
    grown,
)
from streaming.history.sparks import MINUTE_MS, Sparks

_log = logging.getLogger("groupwatch.history")

KEPT_MS = 7 * DAY_MS
_FINE_KEPT_MS = HOUR_MS + FINE_WHOLE_MS + LOOK_MS
_STALE_MS = 45_000
"""End offsets that are older count as unknown."""
_TOGETHER = 200
"""So many groups' lags are computed under one lock of the store."""
_LOOKS_WHOLE = 360
"""Every so many looks each group is looked at, changed or not."""
_LOOKS_PRUNE = 6
_AWAY_MS = 300_000
"""A process that was away for longer reads what another may have told meanwhile."""
_TAKE_S = 1.0
"""So often the rows of batches are written."""
NOT_YET = "History is kept from when the job is ready."
_MEGABYTE = 1_000_000


class Keeper:
    """The history of all clusters; see the module."""

    def __init__(
        self,
        path: Path,
        store: GroupStore,
        clusters: Sequence[str],
        *,
        clock_ms: Callable[[], int],
        watching: Callable[[str], bool] = lambda _cluster: True,
        notice: Callable[[str], None] = lambda _sentence: None,
        read_past: ReadPast | None = None,
        size_max_mb: int = 1_000,
        await_lull: Callable[[], object] = lambda: None,
        is_replayed: bool = False,
    ) -> None:
        """Prepare; ``start`` opens the file.

        Args:
            path: the file.
            store: the known groups.
            clusters: whose groups are kept.
            clock_ms: returns the time.
            watching: says whether what is known of a cluster is whole and of now.
            notice: takes a sentence for the operator; "": all is well.
            read_past: reads from elsewhere what the file lacks; None: nobody can.
            size_max_mb: when the file is larger, the oldest goes first.
            await_lull: returns when no batch runs, or after some seconds.
            is_replayed: the time is that of captured logs: nobody sets it back.
        """
        self._path = path
        self._store = store
        self._clusters = tuple(clusters)
        self._clock_ms = clock_ms
        self._await_lull = await_lull
        self._watching = watching
        self._notice = notice
        self._size_max = size_max_mb * _MEGABYTE
        self._intake = Intake(clock_ms)
        self.problem = NOT_YET
        """Why nothing is kept now; "": it is."""
        self._noticed = ""
        self._file: HistoryFile | None = None
        self._sparks = Sparks(clock_ms())
        self._numbers: dict[tuple[str, str], int] = {}
        self._tracks: dict[str, dict[str, Track]] = {}
        self._open: dict[int, dict[str, int]] = {}
        self._since: dict[str, tuple[int, int]] = {}
        """Cluster -> the running stretch: from, to."""
        self._before_ms: dict[str, int] = {}
        """Cluster -> until when an earlier stretch lasted."""
        self._ends: dict[str, tuple[int, int]] = {}
        """Cluster -> version of its end offsets, and since when it is that."""
        self._looks = 0
        self._jumps = Jumps(clock_ms(), is_replayed=is_replayed)
        self._kept_ms = KEPT_MS
        self._filling = Filling(read_past)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)

    # --- from the batches' thread --------------------------------------------------------------------

    def offer(self, cluster: str, rows: Sequence[Row]) -> None:
        """Take the rows of one batch; never waits, and drops what does not fit."""
        kept = [(cluster, *row) for row in rows if row[0] in ("transition", "alert")]
        moved = {row[2] for row in kept if row[1] == "transition"}
        if moved:
            kept += [(cluster, *row) for row in rows if row[0] == "report" and row[1] in moved]
        if kept:
            self._intake.leave(kept)

    def remember(self, alert: Alert) -> None:
        """Take an alert that came from elsewhere: a topic, or the supervisor."""
        self._intake.leave([(alert.cluster, "alert", alert.id, msgspec.json.encode(alert))])

    def dropped(self) -> Mapping[str, int]:
        """Return how many rows of batches were lost since the start, by each reason."""
        return self._intake.dropped()

    # --- the thread ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Open the file and begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Write what has come, and close the file."""
        self._stopping.set()
        self._filling.stop()
        if self._thread.ident is not None:
            self._thread.join(timeout=5)
        elif self._file is not None:
            self._file.close()

    def _run(self) -> None:
        looked = 0
        while not self._stopping.wait(_TAKE_S):
            looked += 1
            if looked * _TAKE_S * 1000 >= LOOK_MS or self.problem == NOT_YET:
                looked = 0
                self._await_lull()
                self.look()
            else:
                self.take()
        self.look()
        if self._file is not None:
            self._file.close()

    def look(self) -> None:
        """Look once at all groups, and write what changed."""
        if self._file is None and not any(map(self._watching, self._clusters)):
            return  # another process may be the one that watches, and has the file
        self._safely(lambda: self._look(self._clock_ms()))

    def take(self) -> None:
        """Write what batches told since then; a process that is killed loses no more than a second of it."""
        waits = self._intake.has_rows or self._filling.has_portion
        if waits and self._file is not None and not self.problem:
            self._safely(self._take_rows)

    def _safely(self, do: Callable[[], None]) -> None:
        try:
            do()
            self._told("")
        except FileTroubleError as error:
            self._lost(str(error))
        except sqlite3.OperationalError as error:
            self._lost(f"the history in {self._path} cannot be written: {error}")
        except sqlite3.DatabaseError as error:
            self._damaged(error)
        except Exception as error:  # of ours; nobody else may suffer from it
            _log.exception("the history cannot be kept")
            self._lost(f"the history cannot be kept: {type(error).__name__}")

    def _told(self, problem: str) -> None:
        self.problem = problem
        sentence = problem or self._intake.notice()
        if sentence != self._noticed:
            self._notice(sentence)
        self._noticed = sentence

    def _lost(self, problem: str) -> None:
        self._forget()
        self._told(problem)

    def _forget(self) -> None:
        """Forget what was not written; the next look that succeeds writes everything."""
        self._tracks.clear()
        self._since.clear()
        self._numbers.clear()
        self._sparks.unknown()
        self._filling.again()

    def _damaged(self, error: sqlite3.DatabaseError) -> None:
        self._lost(f"the history in {self._path} was damaged and is begun anew")
        try:
            if self._file is not None:
                self._begin_anew(self._file, error)
        except FileTroubleError as again:
            self._file = None
            self._told(str(again))

    def _begin_anew(self, file: HistoryFile, error: sqlite3.DatabaseError) -> None:
        file.begin_anew(str(error))
        self._sparks = Sparks(self._clock_ms())  # the new file numbers groups anew
        self._say_aside(file)

    def _say_aside(self, file: HistoryFile) -> None:
        if file.aside:
            self._intake.tell("aside", file.aside)

    def _look(self, now_ms: int) -> None:
        file = self._file or self._opened(now_ms)
        if not self._numbers:
            self._load(file)
        self._jumps.look(now_ms)
        if self._sparks.is_ahead(now_ms):
            self._refill(file, now_ms)
        self._sparks.advance(now_ms)
        with self._intake.rows() as rows, file.writing():
            lost_ms = self._write(file, rows, now_ms)
        self._intake.regained(lost_ms)
        self._looks += 1
        self._filling.want(file.unfilled(filter(self._watching, self._clusters)), now_ms - KEPT_MS)

    def _take_rows(self) -> None:
        file = self._file
        if file is not None and self._numbers:
            with self._intake.rows() as rows, file.writing():
                self._take(file, rows)
                self._take_past(file)

    def _take_past(self, file: HistoryFile) -> None:
        """Write what was before this file; rows that batches told already are left as they are."""
        portion = self._filling.next()
        if portion is not None:
            self._take(file, [(portion.cluster, *row) for row in portion.rows])
            if portion.is_last:
                file.filled(portion.cluster, self._clock_ms())

    def _write(self, file: HistoryFile, rows: list[ClusterRow], now_ms: int) -> Mapping[str, int]:
        """Write what a look finds; return the losses that it lets be read again."""
        self._take(file, rows)
        self._take_past(file)
        lost_ms = self._regain(file)
        for cluster in self._clusters:
            if self._watching(cluster):
                self._look_at(file, cluster, now_ms)
            elif self._since.pop(cluster, None) is not None:
                self._sparks.unknown()
        if self._looks % _LOOKS_PRUNE == 0 and self._jumps.is_steady:
            self._prune(file, now_ms)
        return lost_ms

    def _regain(self, file: HistoryFile) -> Mapping[str, int]:
        """Let what the topics have of lost rows be read again."""
        lost_ms = self._intake.regainable()
        if file.unfilled(lost_ms):
            self._filling.again()  # what is being read may have passed the time of the loss already
        else:
            self._filling.since_ms |= {one: at_ms - _AWAY_MS for one, at_ms in lost_ms.items()}
        for cluster in lost_ms:
            file.unfill(cluster)
        return lost_ms

    def _opened(self, now_ms: int) -> HistoryFile:
        file = HistoryFile(self._path)
        try:
            self._say_aside(file)
            try:
                self._read_before(file, now_ms)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                self._forget()
                self._begin_anew(file, error)
                self._read_before(file, now_ms)
        except BaseException:
            file.close()  # its lock would keep out the next try
            raise
        self._file = file
        return file

    def _read_before(self, file: HistoryFile, now_ms: int) -> None:
        """Read what an earlier process left."""
        self._refill(file, now_ms)
        with file.writing():
            for cluster in self._clusters:
                watched_ms = file.last_watched_ms(cluster)
                if 0 <= watched_ms < now_ms - _AWAY_MS:  # another process may have watched meanwhile
                    file.unfill(cluster)
                    self._filling.since_ms[cluster] = watched_ms - _AWAY_MS

    def _load(self, file: HistoryFile) -> None:
        self._numbers = file.numbers()
        self._open = file.open_members()
        self._before_ms = {cluster: file.last_watched_ms(cluster) for cluster in self._clusters}
        watched_ms = max(self._before_ms.values(), default=-1)
        if watched_ms >= 0:
            self._jumps.was_at(watched_ms)

    def _refill(self, file: HistoryFile, now_ms: int) -> None:
        """Fill the last hour in memory from the file."""
        sparks = Sparks(now_ms - HOUR_MS)
        for at_ms, page, one in file.all_pages(now_ms - HOUR_MS):
            if at_ms > now_ms:
                break  # written while the clock was ahead
            sparks.advance(at_ms)
            with decoding():
                sparks.lags(*records_in(page, one))
        sparks.unknown()
        sparks.advance(now_ms)
        for number, transition in file.starts_since(now_ms - HOUR_MS):
            if _is_start(transition):
                sparks.started(number, transition.at_ms)
        self._sparks = sparks

    def _prune(self, file: HistoryFile, now_ms: int) -> None:
        size = file.size()
        if size > self._size_max:
            oldest_ms = file.oldest_ms()
            reach_ms = self._kept_ms if oldest_ms is None else min(self._kept_ms, now_ms - oldest_ms)
            self._kept_ms = max(HOUR_MS, round(reach_ms * 0.9))
        elif size < self._size_max * 0.8:
            self._kept_ms = min(KEPT_MS, round(self._kept_ms * 1.01))
        before_ms = now_ms - self._kept_ms
        file.prune(now_ms - _FINE_KEPT_MS, before_ms - COARSE_WHOLE_MS, before_ms)

    # --- rows of batches ------------------------------------------------------------------------------

    def _take(self, file: HistoryFile, rows: Iterable[ClusterRow]) -> None:
        for cluster, kind, _, value in rows:
            try:
                if kind == "transition":
                    self._take_transition(file, cluster, value)
                elif kind == "alert":
                    one = msgspec.json.decode(value, type=Alert)
                    file.alert(self._number(file, one.cluster, one.group), one, value)
                else:
                    self._take_report(file, cluster, value)
            except msgspec.MsgspecError as error:
                _log.error("a %s of %s cannot be read: %s", kind, cluster, error)

    def _take_transition(self, file: HistoryFile, cluster: str, value: bytes) -> None:
        one = msgspec.json.decode(value, type=Transition)
        number = self._number(file, cluster, one.group)
        if file.transition(number, one, value) and _is_start(one):
            self._sparks.started(number, one.at_ms)

    def _take_report(self, file: HistoryFile, cluster: str, value: bytes) -> None:
        """Take a report of a group that moved: members and owners may be others at the next look."""
        told = msgspec.json.decode(value, type=_Named)
        if cluster in self._since and not told.removed:
            self._seen(file, self._track(file, cluster, told.group), value, sample_of(value), cluster)

    def _number(self, file: HistoryFile, cluster: str, group: str) -> int:
        found = self._numbers.get((cluster, group))
        if found is None:
            found = self._numbers[cluster, group] = file.number(cluster, group)
        return found

    def _track(self, file: HistoryFile, cluster: str, group: str) -> Track:
        tracks = self._tracks.setdefault(cluster, {})
        track = tracks.get(group)
        if track is None:
            track = tracks[group] = Track(self._number(file, cluster, group))
        return track

    # --- one look at one cluster ----------------------------------------------------------------------

    def _look_at(self, file: HistoryFile, cluster: str, now_ms: int) -> None:
        since = self._since.get(cluster)
        if since is None or not 0 <= now_ms - since[1] <= GAP_MS:
            self._before_ms[cluster] = min(since[1], now_ms) if since else self._before_ms.get(cluster, -1)
            for track in self._tracks.get(cluster, {}).values():
                track.forget()
            since = (now_ms, now_ms)
        is_first = since[0] == now_ms
        groups = self._store.groups(cluster)
        todo, idle = self._chosen(file, cluster, groups, now_ms, whole=is_first)
        values = [*self._valued(file, cluster, todo, now_ms, since[1])]
        values += [(track, _at_rest(track, now_ms)) for track in idle]
        values += self._gone(file, cluster, {group.group for _, group in groups}, now_ms)
        for track, value in values:
            self._sparks.lag(track.number, value.records)
        self._write_values(file, cluster, values, now_ms, since=since, is_first=is_first)
        self._since[cluster] = (since[0], now_ms)
        file.watched(cluster, since[0], now_ms)

    def _write_values(
        self,
        file: HistoryFile,
        cluster: str,
        values: list[tuple[Track, Value]],
        now_ms: int,
        *,
        since: tuple[int, int],
        is_first: bool,
    ) -> None:
        tracks = self._tracks.get(cluster, {}).values()
        if is_first or _is_crossed(since[1], now_ms, FINE_WHOLE_MS):
            chosen = {id(track) for track, _ in values}
            values = [*values, *((one, _held(one, now_ms)) for one in tracks if id(one) not in chosen)]
            fine = fine_changes(values, now_ms, whole=True)
        else:
            fine = fine_changes(values, now_ms, whole=False)
        file.values(FINE, now_ms, packed(fine))
        if is_first or _is_crossed(since[1], now_ms, COARSE_MS):
            whole = is_first or _is_crossed(since[1], now_ms, COARSE_WHOLE_MS)
            file.values(COARSE, now_ms, packed(coarse_changes(tracks, now_ms, whole=whole)))

    def _chosen(
        self,
        file: HistoryFile,
        cluster: str,
        groups: Iterable[tuple[str, KeptGroup]],
        now_ms: int,
        *,
        whole: bool,
    ) -> tuple[list[tuple[Track, KeptGroup]], list[Track]]:
        """Return the groups to look at, and those whose commits have stopped."""
        version, moved = self._store.moved_topics(cluster, self._ends.get(cluster, (-1, 0))[0])
        before, since_ms = self._ends.get(cluster, (-1, now_ms))
        turned_stale = version == before and since_ms <= now_ms - _STALE_MS < since_ms + LOOK_MS
        came_back = version != before and now_ms - since_ms > _STALE_MS
        if version != before or cluster not in self._ends:
            self._ends[cluster] = (version, now_ms)
        whole = whole or turned_stale or came_back or self._looks % _LOOKS_WHOLE == 0
        todo, idle = [], []
        for _, group in groups:
            track = self._track(file, cluster, group.group)
            if track.valued is track.report and is_as_before(track.valued, group.report):
                track.valued = track.report = group.report
            if whole or track.valued is not group.report or not moved.isdisjoint(group.topics):
                todo.append((track, group))
            elif track.fine is not None and track.fine.rate != 0 and group.topics:
                idle.append(track)
        return todo, idle

    def _valued(
        self,
        file: HistoryFile,
        cluster: str,
        todo: Iterable[tuple[Track, KeptGroup]],
        now_ms: int,
        before_ms: int,
    ) -> Iterator[tuple[Track, Value]]:
        waiting = iter(todo)
        while portion := list(islice(waiting, _TOGETHER)):
            lags = self._store.lags_of(cluster, [group.commits for _, group in portion], now_ms)
            for (track, group), lag in zip(portion, lags, strict=True):
                if track.report is not group.report:
                    self._seen(file, track, group.report, sample_of(group.report), cluster)
                track.valued = group.report
                yield track, track.take(lag, group.committed, now_ms, before_ms)

    def _seen(self, file: HistoryFile, track: Track, report: bytes, sample: Sample, cluster: str) -> None:
        """Write what a report tells of members and owners."""
        if track.report is report:
            return
        found: Iterable[Change] = ()
        if track.report:
            if members_part(track.report) != members_part(report):
                found = changes(sample_of(track.report), sample)
        else:
            known = self._open.pop(track.number, {})
            found = first_changes(known, self._before_ms.get(cluster, -1), sample)
        track.report = report
        file.members(track.number, found)
        owners = None if sample.generation == track.owners_generation else sample.owners
        if owners is not None:
            track.owners_generation = sample.generation
            file.owners(track.number, sample.generation, sample.state_since_ms, owners)

    def _gone(
        self, file: HistoryFile, cluster: str, present: set[str], now_ms: int
    ) -> list[tuple[Track, Value]]:
        """Return the groups that are no more, with nothing known of them."""
        tracks = self._tracks.get(cluster, {})
        gone = [tracks.pop(name) for name in [one for one in tracks if one not in present]]
        for track in gone:
            if track.report:
                before = sample_of(track.report)
                file.members(
                    track.number, changes(before, msgspec.structs.replace(before, members=[], at_ms=now_ms))
                )
        return [(track, UNKNOWN) for track in gone]

    # --- what people ask -------------------------------------------------------------------------------

    def spark(self, cluster: str, group: str) -> tuple[int, list[int | None], list[int]] | None:
        """Return step, lag and starts of rebalances of a group's last hour; None: nothing is kept."""
        number = self._numbers.get((cluster, group))
        if self.problem or number is None:
            return None
        return (MINUTE_MS, *self._sparks.of(number))

    def lag(self, cluster: str, group: str) -> int | None:
        """Return a group's records behind at the last look; -1: unknown, None: nobody looked."""
        number = self._numbers.get((cluster, group))
        return None if self.problem or number is None else self._sparks.now(number)

    def read(self, cluster: str, group: str, from_ms: int, to_ms: int) -> Past:
        """Return one group over a window."""
        file, problem = self._file, self.problem
        if file is None:
            return Past(problem=problem)
        try:
            return past_of(
                file, cluster, group, from_ms=from_ms, to_ms=to_ms, now_ms=self._clock_ms()
            )._replace(problem=problem)
        except sqlite3.Error as error:
            return Past(problem=problem or f"the history in {self._path} cannot be read: {error}")


class _Named(msgspec.Struct, frozen=True):
    group: str
    removed: bool = False


def _is_crossed(before_ms: int, now_ms: int, every_ms: int) -> bool:
    return before_ms // every_ms != now_ms // every_ms


def _held(track: Track, now_ms: int) -> Value:
    return UNKNOWN if track.fine is None else grown(track.fine, now_ms - track.fine_at_ms)


def _at_rest(track: Track, now_ms: int) -> Value:
    """Return the value of a group that has committed nothing since the look before."""
    return _held(track, now_ms)._replace(rate=0.0)


def _is_start(one: Transition) -> bool:
    """Return whether a rebalance starts with a transition."""
    if one.group_type == "classic":
        return one.to_state is GroupState.PREPARING_REBALANCE
    return one.from_state in SETTLED and one.to_state not in SETTLED
