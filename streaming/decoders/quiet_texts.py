"""The texts of which lines that say nothing new are made, each read once.

The same clients come back batch after batch, so a worker keeps their texts as long as it lives, within a
limit.
"""

import re
from typing import Any, NamedTuple

import numpy as np

from streaming.decoders import quiet_lines as lines
from streaming.decoders.binary_column import Ints
from streaming.decoders.escaped_texts import escaped
from streaming.decoders.known_texts import Escaped, Finding, Known


def _texts_of(shape: bytes) -> re.Pattern[str]:
    """Return the expression for texts that are decoded, so that its groups are."""
    return re.compile(shape.decode(), re.ASCII)


_HEAD = re.compile(lines.HEAD)
_WHO = _texts_of(lines.WHO_AFTER + lines.WHO)
_MODERN_WHO = _texts_of(lines.WHO_AFTER + lines.MODERN_WHO)
_COMMITTER = _texts_of(lines.WHO_AFTER + lines.COMMITTER)
_OFFSETS = re.compile(lines.OFFSETS)
_ANSWERS = re.compile(lines.ANSWERS)
_CONNECTION = _texts_of(lines.CONNECTION)
_TIMED = re.compile(lines.TIMES_AFTER + lines.TIMES)
_FROM = _texts_of(lines.FROM_AFTER + lines.FROM)
_MODERN_GROUPS = (1, 2, 3, 4, 5, 6, _MODERN_WHO.groups)
APIS = (lines.HEARTBEAT, lines.COMMIT, lines.MODERN)
HEARTBEATS, COMMITS, MODERN_BEATS = range(len(APIS))
"""The index of each API in codes of senders."""

_DEPTHS = 3
"""A message stands in no JSON string, in one, or in one inside another."""
CODE_BITS = 28
"""Codes have fewer bits than this: there are fewer texts."""
_CODE = (1 << CODE_BITS) - 1
_PAIR_BYTES, _SENDER_BYTES = 300, 500
_KEPT_BYTES_MAX = 256 * 2**20
"""Of known texts, in each worker; 50,000 members that heartbeat and commit are 200 MB."""


class Words(NamedTuple):
    """The words between the parts of a line, as they stand in it."""

    who: bytes = lines.WHO_AFTER
    times: bytes = lines.TIMES_AFTER
    origin: bytes = lines.FROM_AFTER
    topics: bytes = lines.TOPICS_AFTER
    connection: bytes = lines.CONNECTION_AFTER
    end: bytes = lines.END
    """Of the message itself."""


def cut_words() -> str:
    """Return the words at which lines are cut, as ``Cutting.java`` wants them: a line each, by depth."""
    bare = Words()
    heads = (b'"requestApiKey":%d,' % api for api in (lines.COMMIT, lines.HEARTBEAT, lines.MODERN))
    parts = (bare.who, bare.times, bare.origin, bare.topics, bare.connection, bare.end)
    words = (lines.BEGIN, *parts, *heads)
    told = (escaped(word, depth) if depth else word for depth in range(_DEPTHS) for word in words)
    return b"\n".join(told).decode()


class _Committers:
    """Senders of commits: what identifies each, with its connection."""

    def __init__(self) -> None:
        self.identities = Known(_committer)
        self.connections = Known(_connection)
        self.offsets = Known(_offsets)
        self.answers = Known(_answers)
        self.values: list[tuple[lines.Texts, str]] = []
        """The groups of the committer's expression, and the connection."""
        self._codes: dict[int, int] = {}

    def codes(self, identity: Ints, connection: Ints) -> Ints:
        """Return the code of each sender; -1 where a part of it is."""
        codes = np.full(len(identity), -1)
        good = np.flatnonzero((identity >= 0) & (connection >= 0))
        pairs = (identity[good] << CODE_BITS) | connection[good]
        distinct, index = np.unique(pairs, return_inverse=True)
        codes[good] = np.array([self._code(pair) for pair in distinct.tolist()], np.int64)[index]
        return codes

    def _code(self, pair: int) -> int:
        code = self._codes.get(pair)
        if code is None:
            connection = self.connections.values[pair & _CODE]
            code = self._codes[pair] = len(self.values)
            self.values.append((self.identities.values[pair >> CODE_BITS], connection))
        return code


class Writing:
    """The texts as they stand in so many JSON strings (0: in none); they have the same codes in all."""

    def __init__(self, texts: "Texts", depth: int) -> None:
        def known(of: Known[Any]) -> Finding:
            return Escaped(of, depth) if depth else of

        committers = texts.committers
        self.depth = depth
        self.words = Words(*(escaped(word, depth) for word in Words())) if depth else Words()
        self.apis = texts.heads.values
        self.heads, self.whos, self.moderns = known(texts.heads), known(texts.whos), known(texts.moderns)
        self.times, self.origins = known(texts.times), known(texts.origins)
        self.identities, self.connections = known(committers.identities), known(committers.connections)
        self.offsets, self.answers = known(committers.offsets), known(committers.answers)
        self.committers = committers.codes
        self.places: tuple[list[int], ...] = ([], [], [], [], [])
        """How far the words between the parts stood from the places next to them."""
        self._all: tuple[Finding, ...] = (
            self.heads,
            self.whos,
            self.moderns,
            self.times,
            self.origins,
            self.identities,
        )
        self._all += (self.connections, self.offsets, self.answers)

    @property
    def bytes(self) -> int:
        """Rough cost in bytes."""
        return sum(one.bytes for one in self._all)


class Texts:
    """Texts that are read once in the life of a process: those of the same clients come back all the time."""

    def __init__(self) -> None:
        self.whos = Known(_who)
        self.moderns = Known(_modern_who)
        self.committers = _Committers()
        self.origins = Known(_origin)
        self.heads = Known(_head)
        self.times = Known(_timed)
        self.writings = [Writing(self, depth) for depth in range(_DEPTHS)]
        self.begins: list[int] = []
        """How far the messages began behind the beginning of their rows."""
        self._said: dict[int, lines.Said] = {}
        """What was asked for, by the code of its sender."""

    def said(self, code: int) -> lines.Said:
        """Return what the sender with this code said (``Beats.sender``)."""
        said = self._said.get(code)
        if said is None:
            said = self._said[code] = self._read(*divmod(code >> CODE_BITS, len(APIS)), code & _CODE)
        return said

    def _read(self, index: int, api: int, origin: int) -> lines.Said:
        principal, software = self.origins.values[origin]
        if api == HEARTBEATS:
            return lines.said_in_beat(self.whos.values[index], principal, software)
        if api == COMMITS:
            return lines.said_in_commit(*self.committers.values[index], principal, software)
        return lines.said_in_modern_beat(self.moderns.values[index], principal, software)

    @property
    def bytes(self) -> int:
        """Their rough cost in bytes."""
        pairs = _PAIR_BYTES * len(self.committers.values) + _SENDER_BYTES * len(self._said)
        return sum(writing.bytes for writing in self.writings) + pairs


class Names:
    """The texts behind the codes of beats; the beats of one ``Reader`` share them."""

    def __init__(self) -> None:
        self.texts = _texts()
        self._bytes_before = self.texts.bytes

    @property
    def bytes(self) -> int:
        """Their rough cost in bytes, without what was known before."""
        return self.texts.bytes - self._bytes_before


def _head(text: bytes) -> int | None:
    found = _HEAD.fullmatch(text)
    return None if found is None else APIS.index(int(found[1]))


def _timed(text: bytes) -> bool | None:
    return True if _TIMED.fullmatch(text) else None


def _who(text: bytes) -> lines.Texts | None:
    try:
        found = _WHO.fullmatch(text.decode())
    except UnicodeDecodeError:
        return None
    return None if found is None else found.groups()


def _modern_who(text: bytes) -> lines.Texts | None:
    found = _MODERN_WHO.fullmatch(text.decode()) if text.isascii() else None
    return None if found is None else found.group(*_MODERN_GROUPS)


def _committer(text: bytes) -> lines.Texts | None:
    found = _COMMITTER.fullmatch(text.decode()) if text.isascii() else None
    return None if found is None else found.groups()


def _offsets(text: bytes) -> bool | None:
    return True if text.isascii() and _OFFSETS.fullmatch(text) else None


def _answers(text: bytes) -> bool | None:
    return True if text.isascii() and _ANSWERS.fullmatch(text) else None


def _connection(text: bytes) -> str | None:
    found = _CONNECTION.fullmatch(text.decode()) if text.isascii() else None
    return None if found is None else found[1]


def _origin(text: bytes) -> lines.Texts | None:
    found = _FROM.fullmatch(text.decode()) if lines.is_text(text) else None
    return None if found is None else found.groups()


_kept = Texts()


def _texts() -> Texts:
    """Return the texts of this process, which begin again when they are too many."""
    global _kept  # noqa: PLW0603 - a worker reads batch after batch
    if _kept.bytes > _KEPT_BYTES_MAX:
        _kept = Texts()
    return _kept
