"""Reads the header of a broker's log line: finds where the message begins, in any layout.

A header is made of few kinds of parts: times, levels, thread names, loggers with line and method, numbers,
what separates them, and before all that what a container runtime or syslog puts there.  It is read part by
part from the left, and ends where one of the sentences begins that a group coordinator or a request logger
writes.  So no layout needs to be known, and what is inside of a message is never looked at: a name that
imitates a header or a sentence cannot be taken for one.  Words that are no such part end the header; then
the line is of another logger, or its layout is unknown.

Each part is read by an expression that cannot backtrack and is bounded, as their number is.  What is repeated
as a whole stands in an atomic group: up to Python 3.11.4 a possessive repeat of more than one character class
loses its place where its last attempt fails (CPython issue 106052), and Debian 12 has 3.11.2.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from coordinator_model.decoding.line_times import Moment, read_time

_SIZE_MAX = 2_048
_PARTS_MAX = 32
_BRACKETS_MAX = 2
_TIMES_MAX = 3
"""The line's own behind those of a container runtime and of whoever forwarded it."""

BEGINS = re.compile(
    r"\[GroupCoordinator (?:id=)?\d|\[GroupMetadataManager brokerId=\d|Completed request:"
    r"|Group leader \[member\.id: |Loaded member MemberMetadata\("
)
"""How the messages that are read begin; the last two are 3.x's, whose logger writes no prefix."""
MARKS = re.compile(
    r"\[GroupCoordinator (?:id=)?\d|\[GroupMetadataManager brokerId=\d|Completed request:\s*\{"
)
"""Words in an unreadable line that show that it may be a coordinator or request line."""

_LEVELS = "TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|SEVERE|FATAL|CRITICAL"
_LEVEL = re.compile(
    rf"[\[(<|]?[ \t]{{0,8}}+({_LEVELS}|{_LEVELS.lower()})(?![\w.$/-])(?:[ \t]{{0,8}}+[\])>|]|[ \t])?[:,]?"
)
_CRI = re.compile(r" (?P<stream>stdout|stderr) (?P<tag>[FP])(?::\w{1,16})* ")
_SYSLOG = re.compile(
    rf" (?!(?:{_LEVELS})\b)[\w.:@-]{{1,255}}+ [\w./@-]{{1,100}}+(?:\[\d{{1,10}}\])?: ", re.IGNORECASE
)
_IN_QUOTES = r'(?>(?:"[^"\r\n]{0,500}+"[^\]\r\n"]{0,200}+){0,20})'
_SYSLOG_5424 = re.compile(
    r" \S{1,255}+ \S{1,48}+ \S{1,128}+ \S{1,32}+ "
    rf'(?:-|(?>(?:\[[^\]\r\n"]{{0,200}}+{_IN_QUOTES}\]){{1,5}}))(?: \ufeff?)?'
)
"""Host, program, process, message id, structured data."""
_PRIORITY = re.compile(r"<\d{1,3}>(1 )?")
_CONTAINER = re.compile(r"[\w.-]{1,100}+ {1,40}+\| |\[pod/[\w./-]{1,200}+\] ")
"""What docker compose and kubectl put before each line."""
_COLOUR = re.compile(r"(?>(?:(?:\x1b|#033)\[[\d;]{0,20}+m)+)")
_THREAD = re.compile(r"\[(?>(?:[^\[\]\r\n]|\[[^\[\]\r\n]{0,120}+\]){0,200})\]:?")
_CLASS = (
    r"(?:(?:Group|Coordinator|Offset|Classic|Consumer|Share|Streams|RequestChannel|MultiThreaded)[\w$]{0,100}+"
    r"|logger)"
)
_PLACE = (
    r"(?::(?:-?\d{1,7}|\?)?(?=[ \t\])|])"
    r"|[\[(](?:[\w$<>?]{1,100}+\.(?:java|scala):)?\d{1,7}[\])]|(?=[ \t:\])|,\x1b]))"
)
_METHOD = (
    r"(?:[ \t]{1,4}+(?:<init>|\??[\w$]{0,200}+)(?:\([\w.:$]{0,200}+\))?(?::\d{1,7})?"
    r"(?=[ \t]{1,4}[-:|]{1,3}[ \t]))?"
)
_LOGGER = re.compile(
    rf"[\[(|]?[ \t]{{0,2}}+((?>(?:[A-Za-z_$][\w$-]{{0,100}}+\.){{1,20}})[\w$-]{{1,200}}+|{_CLASS}){_PLACE}"
    rf"(?:[ \t]{{0,80}}+[\])|])?{_METHOD}"
)
_BARE_THREAD = re.compile(rf"(?:[\w.$@#/:-]{{1,100}}+[ \t|]{{1,8}}+){{1,6}}?(?=\[?(?:{_LEVELS})\b)")
"""A thread's name without brackets, between the time and the level."""
_THREAD_NAME = r"(?:main|(?=[\w.@$:/#]{0,99}-)[\w.@$:/#-]{1,100}+)"
_THREAD_AND_LOGGER = re.compile(
    rf"{_THREAD_NAME}[ \t]{{1,40}}+"
    rf"(?=[\[(]?(?>(?:[A-Za-z_$][\w$-]{{0,100}}+\.){{0,20}})(?:{_CLASS}|logger)[ \t:\])|(])"
)
"""A thread's name without brackets, before a logger that is the coordinator's or the request log's."""
_DATE = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d"
_NAMED = re.compile(
    rf"(?>(?:[ \t]{{0,8}}+(?!{_DATE})[\w./@+-]{{1,200}}+(?::\d{{1,9}}(?!\d))?(?::[ \t]?|[ \t])){{1,3}})"
    rf"(?=[\[(]?{_DATE})"
)
"""Who forwards a line: pod, container, host or file, before the line's own date."""
_PARENTHESES = re.compile(r"\([\w.$:@#/ -]{1,100}+\)(?=[ \t])")
_LETTER = re.compile(r"[TDIWEF](?=[ \t])")
_FIELD = re.compile(r"[\w.$@#/:-]{1,100}+ {0,80}+\| ")
"""One word between bars."""
_REST = re.compile(
    r"[ \t\ufeff]{1,200}+|[-|:>,;*]{1,5}+(?=[ \t\[])|#?\d{1,9}(?=[ \t])"
    r"|\{(?:[\w.-]{1,50}=[^{}\"\r\n]{0,100}+)?\}|\[-?\]"
)
"""Space, separators, process ids, an empty context."""
_OPENING, _CLOSING = '[("<', '])">'


class Header(NamedTuple):
    """The header of a line: everything before its message."""

    end: int
    """Where the message begins."""
    carried: int
    """Where the line begins that a container runtime or syslog carries; 0: at the start of the text."""
    is_known: bool
    """Whether the message begins like those that are read; if not, ``end`` is after time and level."""
    is_json: bool
    """The message is, or begins like, a JSON object."""
    times: tuple[Moment, ...]
    """From left to right: the last one is the line's own."""
    level: str | None
    logger: str | None
    stream: str
    """A container runtime's stream ("": none); with ``is_partial`` the message continues in its next line."""
    is_partial: bool
    has_colour: bool


class _Reading:
    """How far a header has been read."""

    def __init__(self, text: str, timezone: str, near_ms: int) -> None:
        self.text = text
        self.place = 0
        self.carried = 0
        self.told = 0
        """The end of the last part that the message cannot contain: a time, a level, a runtime's prefix."""
        self.times: list[Moment] = []
        self.level: str | None = None
        self.logger: str | None = None
        self.brackets = 0
        """Threads and contexts."""
        self.has_colour = False
        self.stream = ""
        self.is_partial = False
        self.has_structure = False
        """It began as RFC 5424 says."""
        self._timezone = timezone
        self._near_ms = near_ms

    def step(self) -> bool:
        """Read one part; False: here is no such part."""
        return any(part(self) for part in _PARTS)

    def take(self, shape: re.Pattern[str]) -> re.Match[str] | None:
        """Read a part of this shape."""
        found = shape.match(self.text, self.place)
        if found and found.end() > self.place:
            self.place = found.end()
            return found
        return None

    def time(self) -> bool:
        """Read a time, perhaps in brackets, and what syslog or a container runtime writes after it."""
        if len(self.times) >= _TIMES_MAX:
            return False
        opening = _OPENING.find(self.text[self.place : self.place + 1] or "-")
        begin = self.place + (opening >= 0)
        near_ms = next((one.at_ms for one in reversed(self.times) if one.at_ms >= 0), self._near_ms)
        moment, end = read_time(self.text, begin, self._timezone, near_ms)
        if end == begin or (opening >= 0 and self.text[end : end + 1] != _CLOSING[opening]):
            return False
        self.times.append(moment)
        self.place = end + (opening >= 0)
        if opening < 0 and self.level is None:
            self._carried()
        self.told = self.place
        return True

    def _carried(self) -> None:
        found = self.take(_CRI)
        if found:
            self.stream, self.is_partial = found["stream"], found["tag"] == "P"
        found = found or self.take(_SYSLOG_5424 if self.has_structure else _SYSLOG)
        self.carried = self.place if found else self.carried


def _blank(reading: _Reading) -> bool:
    return reading.take(_REST) is not None


def _coloured(reading: _Reading) -> bool:
    found = reading.take(_COLOUR) is not None
    reading.has_colour |= found
    return found


def _timed(reading: _Reading) -> bool:
    return reading.time()


def _levelled(reading: _Reading) -> bool:
    found = reading.take(_LEVEL) if reading.level is None else None
    if found:
        reading.level = found[1].upper()
        reading.told = reading.place
    return found is not None


def _forwarded(reading: _Reading) -> bool:
    """Read a prefix of the line: syslog's priority, docker compose's container."""
    found = None
    if reading.told == reading.carried and not reading.brackets and reading.logger is None:
        found = reading.take(_PRIORITY) or reading.take(_CONTAINER)
    if found:
        reading.has_structure = bool(found.lastindex)
        reading.told = reading.carried = reading.place
    return found is not None


def _threaded(reading: _Reading) -> bool:
    found = None
    if reading.brackets < _BRACKETS_MAX:
        found = reading.take(_THREAD) or (reading.logger and reading.take(_PARENTHESES))
    reading.brackets += bool(found)
    return bool(found)


def _named(reading: _Reading) -> bool:
    is_before = reading.level is None and reading.logger is None and not reading.brackets
    found = is_before and reading.take(_NAMED) is not None
    if found:
        reading.told = reading.place
    return found


def _in_a_letter(reading: _Reading) -> bool:
    return bool(reading.times) and reading.level is None and reading.take(_LETTER) is not None


def _logged(reading: _Reading) -> bool:
    found = reading.take(_LOGGER) if reading.logger is None else None
    if found:
        reading.logger = found[1]
    return found is not None


def _bare_thread(reading: _Reading) -> bool:
    if reading.level is None:
        return bool(reading.times) and reading.take(_BARE_THREAD) is not None
    return reading.logger is None and reading.take(_THREAD_AND_LOGGER) is not None


def _between_bars(reading: _Reading) -> bool:
    return bool(reading.times) and reading.take(_FIELD) is not None


_PARTS: tuple[Callable[[_Reading], bool], ...] = (
    _coloured,
    _timed,
    _levelled,
    _blank,
    _forwarded,
    _logged,
    _threaded,
    _named,
    _bare_thread,
    _in_a_letter,
    _between_bars,
)


def read_header(text: str, timezone: str, near_ms: int) -> Header:
    """Return the header before the message of a line.

    Args:
        text: the line.
        timezone: of times that name none.
        near_ms: a time close to the line's, for parts of the time that it lacks; -1: none.
    """
    reading = _Reading(text, timezone, near_ms)
    is_known = is_json = False
    for _ in range(_PARTS_MAX):
        is_known = BEGINS.match(text, reading.place) is not None
        is_json = text[reading.place : reading.place + 2] == '{"'
        if is_known or is_json or reading.place > _SIZE_MAX or not reading.step():
            break
    return Header(
        end=reading.place if is_known or is_json else reading.told,
        carried=reading.carried,
        is_known=is_known,
        is_json=is_json,
        times=tuple(reading.times),
        level=reading.level,
        logger=reading.logger if is_known else None,
        stream=reading.stream,
        is_partial=reading.is_partial,
        has_colour=reading.has_colour,
    )
