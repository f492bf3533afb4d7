"""The Spark side: session, sources, the query, its checkpoint, its sinks."""

from streaming.pipeline.beginning import (
    Beginning,
    capture,
    count_shards,
    ends_of,
    load_or_capture,
    partition_count,
    run_of,
)
from streaming.pipeline.folders import CheckpointRefusedError, Folder, folder_of, refuse_misread
from streaming.pipeline.losses import (
    Found,
    Missed,
    feed_of,
    find_losses,
    ids_of,
    settle_losses,
    topics_of,
    went_back,
)
from streaming.pipeline.query import start_query
from streaming.pipeline.reading import Reading
from streaming.pipeline.rehearsal import RehearsalError, make_archive
from streaming.pipeline.session import (
    JvmLostError,
    LateSession,
    NoSessionError,
    is_session_lost,
    session_stopped,
    start_session,
)
from streaming.pipeline.sinks import Apply, BatchSink, Row
from streaming.pipeline.sources import read_sources
from streaming.pipeline.topics import (
    TopicSpec,
    TopicsRefusedError,
    create_missing,
    ensure_topics,
    look_at_topics,
)

__all__ = [
    "Apply",
    "BatchSink",
    "Beginning",
    "CheckpointRefusedError",
    "Folder",
    "Found",
    "JvmLostError",
    "LateSession",
    "Missed",
    "NoSessionError",
    "Reading",
    "RehearsalError",
    "Row",
    "TopicSpec",
    "TopicsRefusedError",
    "capture",
    "count_shards",
    "create_missing",
    "ends_of",
    "ensure_topics",
    "feed_of",
    "find_losses",
    "folder_of",
    "ids_of",
    "is_session_lost",
    "load_or_capture",
    "look_at_topics",
    "make_archive",
    "partition_count",
    "read_sources",
    "refuse_misread",
    "run_of",
    "session_stopped",
    "settle_losses",
    "start_query",
    "start_session",
    "topics_of",
    "went_back",
]
