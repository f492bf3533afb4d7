"""Sentences with free text in them, read in linear time.

A template is fixed words with fields between them.  Numbers and single words are read in place; the other
fields are free text and may contain the sentence's own words, so the fixed words are searched for from the
left, and after a group from the right: each word once in each direction, never by backtracking.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
GENERATED = re.compile(rf"-{UUID}")
"""The end of a member id that the coordinator built: the client's id, a dash and a UUID."""
GENERATED_SIZE = 37
_NUMBER = r"-?\d++"
_FIXED = {
    "n": _NUMBER,
    "k": _NUMBER,
    "static": _NUMBER,
    "partition": r"\d++",
    "epoch": r"(?:-?\d++|Optional\w{0,8}(?:\[-?\d++\]|\.empty)|Some\(-?\d++\)|None)",
    "s": r"\w++",
    "op": r"[\w-]++",
}
"""Fields whose characters cannot be those of the words around them; others are free text."""
_FIXED_LENGTH_MAX = 32_767
"""Limit of digits searched for after words that numbers may contain as well, such as "-"."""
_MEMBERS = frozenset({"m", "m2"})
"""Free text that ends as a generated member id does, if it can be read so."""
_GROUP = "g"
_CANDIDATES_MAX = 64
"""Limit of possible ends of a group's name that are tried, from the right; the first one is added."""


class _Hit(NamedTuple):
    """Where fixed words were found, and the values of the fields between them."""

    start: int
    end: int
    words: Mapping[str, str]


_NO_WORDS: Mapping[str, str] = {}


class _Piece:
    """Fixed words, and the fields between them that are not free text."""

    __slots__ = ("_lead", "_reach", "_shape", "_size")

    def __init__(self, parts: list[str]) -> None:
        """Begin with words and names of fields in turn."""
        self._lead = parts[0]
        self._size = len(parts[0])
        self._reach = sum(map(len, parts[::2])) + _FIXED_LENGTH_MAX * (len(parts) // 2)
        self._shape: re.Pattern[str] | None = None
        if len(parts) > 1:
            if not self._lead or any(self._lead in words for words in parts[2::2]):
                raise ValueError(f"words that cannot be searched for: {parts}")
            shapes = [
                f"(?P<{part}>{_FIXED[part]})" if index % 2 else re.escape(part)
                for index, part in enumerate(parts)
            ]
            self._shape = re.compile("".join(shapes), re.ASCII)

    def stands(self, text: str, start: int, end: int) -> bool:
        """Return whether the words may be in ``text[start:end]``."""
        return text.find(self._lead, start, end) >= 0

    def at_start(self, text: str, end: int) -> _Hit | None:
        """Return the words if ``text`` begins with them."""
        return self._hit(text, 0, end) if text.startswith(self._lead) else None

    def at_end(self, text: str, start: int, end: int) -> _Hit | None:
        """Return the words if ``text[start:end]`` ends with them."""
        if self._shape is None:
            place = end - self._size
            fits = place >= start and text.startswith(self._lead, place)
            return _Hit(place, end, _NO_WORDS) if fits else None
        place = text.rfind(self._lead, start, end)
        while place >= 0:
            found = self._shape.fullmatch(text, place, end)
            if found:
                return _Hit(place, end, found.groupdict())
            if end - place > self._reach:
                return None
            place = text.rfind(self._lead, start, place + self._size - 1)
        return None

    def first(self, text: str, start: int, end: int, *, behind_id: bool = False) -> _Hit | None:
        """Return the first occurrence of the words; with ``behind_id``, the first after a generated id."""
        place = text.find(self._lead, start, end)
        while place >= 0:
            if not behind_id or _ends_generated(text, start, place):
                hit = self._hit(text, place, end)
                if hit:
                    return hit
            place = text.find(self._lead, place + 1, end)
        return None

    def last(self, text: str, start: int, end: int) -> _Hit | None:
        """Return the last occurrence of the words."""
        return next(self.backwards(text, start, end), None)

    def backwards(self, text: str, start: int, end: int) -> Iterator[_Hit]:
        """Yield every occurrence of the words, the last first."""
        place = text.rfind(self._lead, start, end)
        while place >= 0:
            hit = self._hit(text, place, end)
            if hit:
                yield hit
            place = text.rfind(self._lead, start, place + self._size - 1)

    def _hit(self, text: str, place: int, end: int) -> _Hit | None:
        if self._shape is None:
            stop = place + self._size
            return _Hit(place, stop, _NO_WORDS) if stop <= end else None
        found = self._shape.match(text, place, end)
        return _Hit(place, found.end(), found.groupdict()) if found else None


def _ends_generated(text: str, start: int, end: int) -> bool:
    """Return whether ``text[start:end]`` ends as a generated member id does."""
    place = end - GENERATED_SIZE
    return place >= start and text[place] == "-" and GENERATED.match(text, place, end) is not None


class _Frame(NamedTuple):
    """The parts of a text that are known before its fields are read."""

    text: str
    tail: _Hit
    """The words at its end."""
    group: _Hit | None
    """The words after the group."""
    strict: bool


class Reading(NamedTuple):
    """The values of a sentence's fields."""

    words: Mapping[str, str]
    group_at: int
    """Where the group begins; -1: the sentence has none, or only one place where it can end."""


class Template:
    """One sentence: fixed words with fields such as ``{g}`` (the group) between them.

    A full stop at the end may be missing: 3.x leaves out many that 4.x writes.
    """

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        self.start = sentence.split("{", 1)[0].removesuffix(".")
        """The beginning of every such sentence."""
        self._stops = sentence.endswith(".")
        parts = re.split(r"\{(\w+)\}", sentence.removesuffix("."))
        self._longest = max(parts[::2], key=len)
        """If these words are missing, nothing else need be searched for."""
        self._fields: list[str] = []
        pieces = [[parts[0]]]
        for name, words in zip(parts[1::2], parts[2::2], strict=True):
            if name in _FIXED:
                pieces[-1] += [name, words]
            else:
                self._fields.append(name)
                pieces.append([words])
        self._head, *self._pieces = map(_Piece, pieces)
        group = self._fields.index(_GROUP) if _GROUP in self._fields else -1
        self._group = group if group < len(self._fields) - 1 else -1
        """The index of the group's field, if it can end in several places."""
        self._options = [(True, False) if name in _MEMBERS else (False,) for name in self._fields]
        """For each field, whether a generated id is looked for first."""

    def read(self, text: str, *, group_end: int = -1, strict: bool = False) -> Reading | None:
        """Return the values of the fields; None: it is another sentence.

        Args:
            text: the whole sentence.
            group_end: where the group ends, one of ``group_ends``; -1: as late as possible.
            strict: whether member ids must end like generated ones.
        """
        if self._longest not in text:
            return None
        end = len(text) - 1 if self._stops and text.endswith(".") else len(text)
        head = self._head.at_start(text, end)
        if head is None or not self._pieces:
            return Reading(head.words, -1) if head and head.end == end else None
        tail = self._pieces[-1].at_end(text, head.end, end)
        if tail is None:
            return None
        group = None
        if self._group >= 0:
            group = self._behind_group(text, head.end, tail.start, group_end)
            if group is None:
                return None
        hits = self._place(_Frame(text, tail, group, strict), 0, head.end)
        return self._reading(text, head, hits) if hits else None

    def group_ends(self, text: str, start: int) -> list[int]:
        """Return where a group that begins at ``start`` may end: the first place and up to 64 of the last."""
        piece = self._pieces[self._group]
        ends = [hit.start for hit in islice(piece.backwards(text, start, len(text)), _CANDIDATES_MAX)]
        first = piece.first(text, start, len(text))
        return sorted({*ends, first.start} if first else ends)

    def _behind_group(self, text: str, start: int, end: int, group_end: int) -> _Hit | None:
        """Return the words that end the group: as far right as the words after them allow."""
        if group_end >= 0:
            return self._pieces[self._group].first(text, group_end, end)
        hit = None
        for piece in reversed(self._pieces[self._group : -1]):
            hit = piece.last(text, start, end)
            if hit is None:
                return None
            end = hit.start
        return hit

    def _place(self, frame: _Frame, index: int, start: int) -> list[_Hit] | None:
        """Return the places of the words after each field, from the field ``index`` on, leftmost first.

        The first place leaves most room for the rest; only a generated member id is preferred to it.
        """
        text, tail, group, strict = frame
        piece, options = self._pieces[index], self._options[index]
        if index == len(self._pieces) - 1:
            fits = not strict or len(options) == 1 or _ends_generated(text, start, tail.start)
            return [tail] if fits else None
        for behind_id in options[:1] if strict else options:
            if index == self._group:
                hit = group if group and group.start >= start else None
            else:
                hit = piece.first(text, start, tail.start, behind_id=behind_id)
            rest = self._place(frame, index + 1, hit.end) if hit else None
            if hit and rest:
                rest.insert(0, hit)
                return rest
        return None

    def _reading(self, text: str, head: _Hit, hits: list[_Hit]) -> Reading:
        words, place, group_at = dict(head.words), head.end, -1
        for index, hit in enumerate(hits):
            if index == self._group and self._pieces[index].stands(text, place, hit.start):
                group_at = place
            words[self._fields[index]] = text[place : hit.start]
            if hit.words:
                words.update(hit.words)
            place = hit.end
        return Reading(words, group_at)
