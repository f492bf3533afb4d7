"""The configuration: validated and frozen; every mistake is reported with its place."""

from streaming.config.config import (
    ClusterConfig,
    Config,
    ConfigError,
    ProbeConfig,
    load_config,
    notes,
    settings_json,
)
from streaming.config.evidence import EvidenceConfig
from streaming.config.plan import ClusterPlan, plan_of
from streaming.config.receivers import ReceiverConfig, RouteConfig
from streaming.config.reloading import DELIVERY, Changes, Reloaded, Reloads, changes
from streaming.config.server import HttpConfig, ServerConfig, UserConfig, is_loopback
from streaming.config.silences import SilenceRequest, SilenceRequestError, kept_of_request, quiet_of
from streaming.config.types import parse_duration_ms, parse_timezone

__all__ = [
    "DELIVERY",
    "Changes",
    "ClusterConfig",
    "ClusterPlan",
    "Config",
    "ConfigError",
    "EvidenceConfig",
    "HttpConfig",
    "ProbeConfig",
    "ReceiverConfig",
    "Reloaded",
    "Reloads",
    "RouteConfig",
    "ServerConfig",
    "SilenceRequest",
    "SilenceRequestError",
    "UserConfig",
    "changes",
    "is_loopback",
    "kept_of_request",
    "load_config",
    "notes",
    "parse_duration_ms",
    "parse_timezone",
    "plan_of",
    "quiet_of",
    "settings_json",
]
