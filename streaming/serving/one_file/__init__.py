"""The page of groups as one HTML file, which needs no server."""

from streaming.serving.one_file.asked import captured_by_config, captured_by_url
from streaming.serving.one_file.captured import Captured
from streaming.serving.one_file.document import document
from streaming.serving.one_file.replayed import captured_replay

__all__ = [
    "Captured",
    "captured_by_config",
    "captured_by_url",
    "captured_replay",
    "document",
]
