"""One log line with the header and tail of its message, from the text that a record or an envelope carries.

Time: the line's own, else the envelope's, else the record's; an envelope's time is mostly when the shipper
read the line.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from coordinator_model.decoding.line_header import MARKS, Header, read_header
from coordinator_model.decoding.line_times import NO_MOMENT, Moment, local_ms, refined_ms

BREAKS_ENCODED = " [CRLF]"
"""What the layouts in ``deploy/log4j2`` end a line with to say that its line breaks were encoded."""


class Line(NamedTuple):
    """One log event."""

    broker: int
    """-1: neither key nor envelope name it."""
    at_ms: int
    """-1: unknown."""
    level: str | None
    logger: str | None
    message: str
    is_whole: bool = False
    """Whether its time had whole seconds: the milliseconds of ``at_ms`` are a guess."""


class Carrier(NamedTuple):
    """What the record and the envelopes around a line say of it."""

    broker: int
    stamp_ms: int
    """The record's timestamp."""
    timezone: str
    moment: Moment = NO_MOMENT
    """The envelope's time."""
    level: str | None = None
    logger: str | None = None
    part: tuple[str, bool] | None = None
    """The stream of which it is a part (a long line is cut), and whether another part follows."""
    around: tuple[Mapping[str, Any], ...] = ()
    """The envelopes in which it stands, the outermost first."""


class Opened(NamedTuple):
    """One line of a record."""

    line: Line
    is_known: bool
    """Whether its message begins like a group coordinator's or a request logger's."""
    has_header: bool
    """Whether anything beside the message was read: a time, a level, a logger."""
    has_marks: bool
    """Whether it could not be read, and contains words that should occur only in lines that are read."""
    breaks_encoded: bool
    """Line breaks in the message are written as ``\\n`` and ``\\r``."""
    carrier: Carrier
    text: str
    """The text in the carrier, from which the parts of a line are joined."""


_LEVEL = r"TRACE|DEBUG|INFO|WARN|ERROR|FATAL"
QUICK = re.compile(
    rf"(?:\[(\d{{4}}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)[,.](\d{{3}})\] )?(?:({_LEVEL}) )?"
    r"(?:(?=(Completed request:))|(?=\[GroupCoordinator (?:id=)?\d|\[GroupMetadataManager brokerId=\d))"
)
"""Kafka's own pattern, as nearly all lines are written."""
_REQUEST_LOGGER = "kafka.request.logger"
_REQUEST_LOGGER_BEHIND = f" ({_REQUEST_LOGGER})"
_NAME = re.compile(r"([\w.$-]+)(?::\d{1,7})?")
"""A logger, and perhaps the line in its file."""
_OURS = ("kafka.", "org.apache.kafka.")
_CONTINUATION = re.compile(
    r"\s|Caused by: |Suppressed: |\.\.\. \d+ more|[\w$]+(?:\.[\w$]+)+(?:Exception|Error)\b"
)
_TRAILING_COLOUR = re.compile(r"(?:\x1b|#033)\[[\d;]{0,20}[mK]\s*\Z")
_COLOUR_SIZE = 64
_HEADER_SIZE = 1_024
_THREAD_SIZE = 256


def is_continuation(message: str) -> bool:
    """Return whether a line without a date is the rest of an event above it: a stack trace."""
    return _CONTINUATION.match(message) is not None


def begins_anew(text: str) -> bool:
    """Return whether a text begins like a line, or like the text after a line, and so continues none."""
    opened = open_text(text[:_HEADER_SIZE], Carrier(-1, -1, "UTC"))
    has_header = opened.line.level is not None and opened.line.at_ms >= 0
    is_trace = is_continuation(text) and not text.startswith(" ")
    return opened.is_known or has_header or is_trace or text.startswith('{"')


# --- text --------------------------------------------------------------------------------------------


def open_line(text: str, *, broker: int = -1, timestamp_ms: int = -1, timezone: str = "UTC") -> Line:
    """Open one line of a file, or the text of an event.

    Args:
        text: with or without its line end.
        broker: who wrote it, if known.
        timestamp_ms: used where the line has no time of its own, for what its time leaves open, and to
            tell apart the two readings of a local time in the hour that is repeated.
        timezone: of the line's own time.
    """
    return open_text(text, Carrier(broker, timestamp_ms, timezone)).line


def open_text(text: str, carrier: Carrier) -> Opened:
    """Open what a record or an envelope carries as text."""
    text = text.rstrip("\r\n")
    quick = QUICK.match(text)
    return opened_quickly(text, quick, carrier) if quick else _opened_by_header(text, carrier)


def opened_quickly(text: str, quick: re.Match[str], carrier: Carrier) -> Opened:
    """Open a line that ``QUICK`` matches."""
    second, millis, level, request = quick.groups()
    at_ms = -1
    if second is not None:
        near_ms = carrier.moment.at_ms if carrier.moment.at_ms >= 0 else carrier.stamp_ms
        at_ms = local_ms(second, int(millis), carrier.timezone, near_ms)
    message = text[quick.end() :]
    if request is not None:
        bare, logger = _split_request(message, is_last=second is not None and level is not None)
        is_encoded = False
    else:
        bare, logger, is_encoded = _split_logger(message, is_last=second is not None and level is not None)
    is_whole = at_ms < 0 <= carrier.moment.at_ms and carrier.moment.is_whole
    if at_ms < 0:
        at_ms = _carried_ms(carrier)
    line = Line(carrier.broker, at_ms, level or carrier.level, logger or carrier.logger, bare, is_whole)
    return Opened(line, True, second is not None or level is not None, False, is_encoded, carrier, text)


def _split_request(message: str, *, is_last: bool) -> tuple[str, str | None]:
    """Cut the logger off at the end, without a search through a long text."""
    if message.endswith(_REQUEST_LOGGER_BEHIND):
        return message[: -len(_REQUEST_LOGGER_BEHIND)], _REQUEST_LOGGER
    if message.endswith((")", "]")):
        return _cut_logger(message, is_last=is_last)[:2]
    return message, None


def _opened_by_header(text: str, carrier: Carrier) -> Opened:
    near_ms = carrier.moment.at_ms if carrier.moment.at_ms >= 0 else carrier.stamp_ms
    header = read_header(text, carrier.timezone, near_ms)
    message = text[header.end :]
    if header.level is not None:
        message = message.lstrip(" \t")
    if header.has_colour:
        message = _without_colour(message)
    # A logger before the message is not repeated after it.
    is_last = header.level is not None and bool(header.times)
    bare, logger, is_encoded = message, header.logger, False
    if logger is None:
        bare, logger, is_encoded = _split_logger(message, is_last=is_last)
    at_ms, is_whole = _own_ms(header, carrier)
    level, logger = header.level or carrier.level, logger or carrier.logger
    line = Line(carrier.broker, at_ms, level, logger, bare, is_whole)
    if header.stream:
        carrier = carrier._replace(part=(header.stream, header.is_partial))
    return Opened(
        line=line,
        is_known=header.is_known,
        has_header=bool(header.times) or header.level is not None,
        has_marks=not header.is_known and MARKS.search(text) is not None,
        breaks_encoded=is_encoded,
        carrier=carrier if not header.times else carrier._replace(moment=_outer(header, carrier)),
        text=text[header.carried :],
    )


def _outer(header: Header, carrier: Carrier) -> Moment:
    """Return the time of the line's carrier: the first part of a long line has the header of the others."""
    return header.times[0] if header.carried else carrier.moment


def _own_ms(header: Header, carrier: Carrier) -> tuple[int, bool]:
    """Return when the line was written (epoch ms), and whether only its second is known.

    The innermost time is the closest to the event.
    """
    times = [one for one in reversed(header.times) if one.at_ms >= 0]
    if not times:
        return _carried_ms(carrier), carrier.moment.at_ms >= 0 and carrier.moment.is_whole
    outer = (*(one.at_ms for one in times[1:]), carrier.moment.at_ms, carrier.stamp_ms)
    return refined_ms(times[0], outer), times[0].is_whole


def _carried_ms(carrier: Carrier) -> int:
    known_ms = refined_ms(carrier.moment, (carrier.stamp_ms,))
    return known_ms if known_ms >= 0 else carrier.stamp_ms


def _without_colour(message: str) -> str:
    """Cut off the codes that end the colours begun in the header."""
    while found := _TRAILING_COLOUR.search(message, max(0, len(message) - _COLOUR_SIZE)):
        message = message[: found.start()]
    return message


def _split_logger(text: str, *, is_last: bool) -> tuple[str, str | None, bool]:
    """Cut ` (logger)` off the end, and before it the stack trace that may follow.

    Args:
        text: a message.
        is_last: the pattern is known to end with the logger; otherwise only a logger of Kafka's is one.

    Returns:
        the message, the logger, and whether its line breaks were encoded.
    """
    head, newline, rest = text.partition("\n")
    if newline and is_continuation(rest):
        found = _cut_logger(head, is_last=is_last)
        if found[1] is not None:
            return found
    return _cut_logger(text, is_last=is_last)


def _cut_logger(text: str, *, is_last: bool) -> tuple[str, str | None, bool]:
    bare = text.rstrip()
    is_encoded = bare.endswith(f"){BREAKS_ENCODED}")
    if is_encoded:
        bare = bare.removesuffix(BREAKS_ENCODED)
    elif bare.endswith("]"):
        bare, is_last = _without_thread(bare), False
    place = bare.rfind(" (") if bare.endswith(")") else -1
    name = _NAME.fullmatch(bare, place + 2, len(bare) - 1) if place >= 0 else None
    if name is None or not (is_last or is_encoded or name[1].startswith(_OURS)):
        return text, None, False
    return bare[:place], name[1], is_encoded


def _without_thread(text: str) -> str:
    """Cut ` [thread]` off behind ` (logger)`: the pattern of Strimzi up to Kafka 3.9 ends so."""
    place = text.rfind(") [", -_THREAD_SIZE)
    return text if place < 0 else text[: place + 1]
