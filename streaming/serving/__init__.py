"""The HTTP server: metrics, health, the API and the page."""

from streaming.serving.events import Hub
from streaming.serving.explaining import (
    explain_by_config,
    explain_by_url,
    explain_replay,
    parse_since,
    print_explanations,
)
from streaming.serving.history import TopicReader
from streaming.serving.http import HttpServer, health_application
from streaming.serving.past_week import PastReader
from streaming.serving.server import Server
from streaming.serving.shown_alerts import ShownAlerts
from streaming.serving.view import View

__all__ = [
    "HttpServer",
    "Hub",
    "PastReader",
    "Server",
    "ShownAlerts",
    "TopicReader",
    "View",
    "explain_by_config",
    "explain_by_url",
    "explain_replay",
    "health_application",
    "parse_since",
    "print_explanations",
]
