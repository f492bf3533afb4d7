"""Coalesces plain offset commits: only the last of each (group, topic, partition) within a run is told.

A run of a group's commits ends where coalescing would hide something:

- at any other record of that group (a new generation, a tombstone of the group …);
- at the end of the backlog, since records in the backlog may make no outputs;
- after the backlog also at each new record time, so that the rules' answers do not depend on how the rows
  were cut into batches (the coordinator gives all records of one request one time), and where a
  partition's offset goes back or is deleted.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from coordinator_model.decoding import CommitValue, Recorded
from coordinator_model.observations import Commit, OffsetsCommitted
from streaming.decoders.binary_column import BinaryColumn, Bools, Ints
from streaming.decoders.plain_commits import topic_ids


@dataclass
class Rows:
    """Rows of a batch, one Kafka partition after the other."""

    partition: Ints
    offset: Ints
    timestamp_ms: Ints
    key: BinaryColumn
    value: BinaryColumn
    backlog: Bools


@dataclass
class Keys:
    """The distinct keys of a batch's commits, column by column; an unreadable key has no rows."""

    groups: list[str]
    group: Ints
    """Index into ``groups``."""
    lane: list[int]
    """The Kafka partition of each group: one that has commits in two of them stands there twice."""
    topic: list[str]
    partition: list[int]
    legacy: Bools


@dataclass
class Commits:
    """Readable commit rows in order, and how to read them; ``code`` is an index into ``keys``."""

    row: Ints
    time_at: Ints
    """Where the commit time stands in the values' buffer; -1: see ``odd``."""
    tombstone: Bools
    code: Ints
    keys: Keys
    odd: dict[int, CommitValue]
    """The contents of rows whose values have no plain layout."""


def coalesced_commits(
    rows: Rows, commits: Commits, others: list[tuple[int, str]]
) -> list[tuple[int, Recorded]]:
    """Return the commits coalesced by run, each with its last row; ``others`` end the runs of their group."""
    group = commits.keys.group[commits.code]
    separators = _between(commits, group, _numbers_of(rows, commits.keys, others)) if others else []
    run = _runs(rows, commits, group, separators)
    # A key belongs to one group, so if each group has one run, key and slot are the same.
    slot = commits.code if run is group else _numbered(run * len(commits.keys.topic) + commits.code)
    count = np.bincount(slot)
    last = np.zeros(len(count), np.int64)
    last[slot] = np.arange(len(slot))
    last, count = last[count > 0], count[count > 0]
    order = np.lexsort((last, run[last]))
    last = last[order]
    return _coalesced(rows, commits, run[last], last, count[order])


def _numbers_of(rows: Rows, keys: Keys, others: list[tuple[int, str]]) -> list[tuple[int, int]]:
    """Return the number of the group of each of ``others`` in its Kafka partition, if any."""
    numbers = {place: number for number, place in enumerate(zip(keys.lane, keys.groups, strict=True))}
    places = ((int(rows.partition[row]), name) for row, name in others)
    return [(numbers[place], row) for place, (row, _) in zip(places, others, strict=True) if place in numbers]


def _between(commits: Commits, group: Ints, others: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return those of ``others`` (group, row) that have commits of their group before and after them."""
    number, row = np.array(others, np.int64).reshape(-1, 2).T
    size = 1 + max(int(number.max(initial=0)), int(group.max(initial=0)))
    first, last = first_of_each(group, commits.row, size), np.zeros(size, np.int64)
    last[group] = commits.row
    between = (first[number] < row) & (row < last[number])
    return [others[index] for index in np.flatnonzero(between).tolist()]


def _topic_ids(rows: Rows, row: Ints) -> Ints | None:
    """Return the first half of the topic's id in each of these rows, 0 if the row has none.

    None: all rows are in the backlog, where the id is not needed.
    """
    live = ~rows.backlog[row] & rows.value.present[row]
    return topic_ids(rows.value, row, live) if live.any() else None


def _coalesced(
    rows: Rows, commits: Commits, run: Ints, last: Ints, count: Ints
) -> list[tuple[int, Recorded]]:
    """Return one observation per run from the last commit of each of its keys, given run by run in order."""
    keys, code, row = commits.keys, commits.code[last].tolist(), commits.row[last]
    numbers, committed_at_ms = _read_numbers(rows, commits, last)
    topic_id = _topic_ids(rows, row)
    offset: list[int | None] = numbers.tolist()
    for index in np.flatnonzero(commits.tombstone[last]).tolist():
        offset[index] = None
    topic, partition = map(keys.topic.__getitem__, code), map(keys.partition.__getitem__, code)
    columns = [topic, partition, offset, committed_at_ms.tolist(), count.tolist()]
    made = list(map(Commit, *columns, *([] if topic_id is None else [topic_id.tolist()])))
    ends = np.append(np.flatnonzero(np.diff(run)) + 1, len(last)) if len(last) else last
    groups = map(keys.groups.__getitem__, keys.group[commits.code[last[ends - 1]]].tolist())
    spans = zip(row[ends - 1].tolist(), groups, pairwise([0, *ends.tolist()]), strict=True)
    return [
        (place, OffsetsCommitted(group=group, commits=tuple(made[start:end])))
        for place, group, (start, end) in spans
    ]


def _numbered(ids: Ints) -> Ints:
    """Return ``ids`` as small numbers from 0 on."""
    return np.unique(ids, return_inverse=True)[1]


def _runs(rows: Rows, commits: Commits, group: Ints, separators: list[tuple[int, int]]) -> Ints:
    """Return for each commit the number of its run; runs of different groups have different numbers.

    A run's commits are neighbours among the commits of their group.
    """
    live = ~rows.backlog[commits.row]
    if not separators and not live.any():
        return group
    width = len(rows.offset) + 1
    turning = _turning_points(rows, commits, live)
    cuts = np.array([number * width + row for number, row in separators], np.int64)
    cuts = np.sort(np.concatenate((cuts, group[turning] * width + commits.row[turning])))
    cut = np.searchsorted(cuts, group * width + commits.row, side="right")
    piece = _pieces_of_time(rows, commits, live)
    return _numbered((cut * width + piece) * (int(group.max(initial=0)) + 1) + group)


def _pieces_of_time(rows: Rows, commits: Commits, live: Bools) -> Ints:
    """Return a number that grows at the end of the backlog and at each new record time after it.

    Record times go back when a partition's leader changes; the number does not, or a run's commits would no
    longer be neighbours.
    """
    time = np.where(live, rows.timestamp_ms[commits.row], -1)
    return np.cumsum(np.diff(time, prepend=time[:1]) != 0)


def _turning_points(rows: Rows, commits: Commits, live: Bools) -> Ints:
    """Return the live commits before which a run ends, as indexes.

    Those are the commits that set a partition's offset back, delete it or bring it back, and the commits
    right after such a one, so that it is the last of its run and stays visible.
    """
    at = np.flatnonzero(live)
    at = at[np.argsort(commits.code[at], kind="stable")]
    same = np.diff(commits.code[at]) == 0
    offset, _ = _read_numbers(rows, commits, at)
    back = np.diff(offset) < 0
    deleted = commits.tombstone[at]
    turn = same & ((back & ~deleted[1:] & ~deleted[:-1]) | (deleted[1:] != deleted[:-1]))
    after = np.concatenate(([False], turn[:-1])) & same if len(turn) else turn
    return at[1:][turn | after] if len(at) else at


def _read_numbers(rows: Rows, commits: Commits, index: Ints) -> tuple[Ints, Ints]:
    """Return offset (none for a tombstone) and commit time of these commits."""
    row, time_at = commits.row[index], commits.time_at[index]
    offset, committed_at_ms = rows.value.number(rows.value.start[row] + 2, 8), rows.value.number(time_at, 8)
    for place in np.flatnonzero(time_at < 0).tolist():
        offset[place], committed_at_ms[place] = commits.odd[int(row[place])]
    return offset, np.where(commits.tombstone[index], rows.timestamp_ms[row], committed_at_ms)


def first_of_each(number: Ints, value: Ints, size: int) -> Ints:
    """Return the first value of each of ``size`` numbers; 0 for a number without any."""
    first = np.zeros(size, np.int64)
    # numpy keeps the last of several values for one place, so going backwards leaves the first.
    first[number[::-1]] = value[::-1]
    return first
