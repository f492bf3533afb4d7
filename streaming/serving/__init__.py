"""The HTTP server: metrics, health, the API and the page."""

from streaming.serving.api import AlertList, GroupDetail, GroupHistory
from streaming.serving.events import Hub
from streaming.serving.explaining import (
    ExplainError,
    Known,
    answer_of,
    explain_by_config,
    explain_by_url,
    explain_known,
    explain_replay,
    group_path,
    known_by_config,
    parse_since,
    print_explanations,
    replayed_groups,
)
from streaming.serving.group_history import (
    WINDOW_MAX_MS,
    WINDOW_MIN_MS,
    Window,
    history_from,
    history_of,
)
from streaming.serving.history import TopicReader
from streaming.serving.http import HttpServer, health_application
from streaming.serving.page_files import PageFiles
from streaming.serving.past_week import PastReader
from streaming.serving.server import Server
from streaming.serving.shown_alerts import RANK, ShownAlerts, loudness
from streaming.serving.view import View

__all__ = [
    "RANK",
    "WINDOW_MAX_MS",
    "WINDOW_MIN_MS",
    "AlertList",
    "ExplainError",
    "GroupDetail",
    "GroupHistory",
    "HttpServer",
    "Hub",
    "Known",
    "PageFiles",
    "PastReader",
    "Server",
    "ShownAlerts",
    "TopicReader",
    "View",
    "Window",
    "answer_of",
    "explain_by_config",
    "explain_by_url",
    "explain_known",
    "explain_replay",
    "group_path",
    "health_application",
    "history_from",
    "history_of",
    "known_by_config",
    "loudness",
    "parse_since",
    "print_explanations",
    "replayed_groups",
]
