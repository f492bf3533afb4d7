"""Bytes and lines in, observations out."""

from coordinator_model.decoding.coordinator_log import parse_coordinator_line
from coordinator_model.decoding.coordinator_shapes import LogLineError
from coordinator_model.decoding.envelope_fields import key_broker, marks_no_end, origin_of
from coordinator_model.decoding.line_breaks import parse_broken_line
from coordinator_model.decoding.line_text import (
    BREAKS_ENCODED,
    Line,
    Opened,
    begins_anew,
    is_continuation,
    open_text,
)
from coordinator_model.decoding.line_times import (
    Moment,
    local_ms,
    local_second_ms,
    refined_ms,
    zoned_second_ms,
)
from coordinator_model.decoding.log_envelope import (
    LENGTH_MAX,
    MAY_BE_PART,
    EnvelopeError,
    may_hold_parts,
    open_lines,
    whole_line,
)
from coordinator_model.decoding.records import (
    LEGACY_OFFSET_COMMIT,
    OFFSET_COMMIT,
    CommitValue,
    Recorded,
    assigned_partitions,
    kind_of,
    observe,
    read_commit_key,
    read_commit_value,
    subscribed_topics,
)
from coordinator_model.decoding.request_log import RequestLineError, client_of, parse_request_line
from coordinator_model.decoding.schemas import describe
from coordinator_model.decoding.wire import DecodeError, Fault

__all__ = [
    "BREAKS_ENCODED",
    "LEGACY_OFFSET_COMMIT",
    "LENGTH_MAX",
    "MAY_BE_PART",
    "OFFSET_COMMIT",
    "CommitValue",
    "DecodeError",
    "EnvelopeError",
    "Fault",
    "Line",
    "LogLineError",
    "Moment",
    "Opened",
    "Recorded",
    "RequestLineError",
    "assigned_partitions",
    "begins_anew",
    "client_of",
    "describe",
    "is_continuation",
    "key_broker",
    "kind_of",
    "local_ms",
    "local_second_ms",
    "marks_no_end",
    "may_hold_parts",
    "observe",
    "open_lines",
    "open_text",
    "origin_of",
    "parse_broken_line",
    "parse_coordinator_line",
    "parse_request_line",
    "read_commit_key",
    "read_commit_value",
    "refined_ms",
    "subscribed_topics",
    "whole_line",
    "zoned_second_ms",
]
